"""Ids that are made where the source gave none."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.ids import derive_conversation_id, derive_ids, whole_content_id
from palace_pipeline.model import Message

messages = st.lists(
    st.builds(
        Message,
        message_id=st.sampled_from(["", "a", "a~2", "a~3", "a~2~2", "b"]),
        role=st.sampled_from(["user", "assistant"]),
        text=st.sampled_from(["hi", "hello", ""]),
    ),
    max_size=12,
)


def ids_of(found: list[Message]) -> list[str]:
    copies = [replace(message) for message in found]
    derive_ids(copies)
    return [message.message_id for message in copies]


@given(messages)
def test_every_message_has_an_id_of_its_own(found: list[Message]) -> None:
    ids = ids_of(found)
    assert all(ids)
    assert len(set(ids)) == len(ids)


@given(messages, st.integers(0, 12))
def test_growth_changes_no_id(found: list[Message], length: int) -> None:
    assert ids_of(found)[:length] == ids_of(found[:length])


@given(messages)
def test_ids_of_the_source_stay_where_they_are_the_first(found: list[Message]) -> None:
    ids = ids_of(found)
    seen: set[str] = set()
    for message, own in zip(found, ids, strict=True):
        if message.message_id and message.message_id not in seen:
            assert own == message.message_id
        seen.add(own)


def test_a_conversation_is_known_by_its_beginning_or_by_all_that_it_says() -> None:
    short = [Message("", "user", "hi")]
    long = [*short, Message("", "assistant", "hello")]
    assert derive_conversation_id("x", "chat", short) == derive_conversation_id("x", "chat", long)
    assert whole_content_id("list", short) != whole_content_id("list", long)
