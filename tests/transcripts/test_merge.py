"""Merging sightings: by hand for each rule, then the laws for any records."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.model import Attachment, Citation, Conversation, Message
from palace_pipeline.transcripts.merge import merge, superseded

NOON = datetime(2024, 5, 3, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def said(message_id: str, text: str | None = None, **values) -> Message:
    return Message(message_id, values.pop("role", "user"), f"text of {message_id}" if text is None else text, **values)


def chat(*messages: Message, **values) -> Conversation:
    return Conversation("chatgpt", "c1", list(messages), **values)


def ids(conversation: Conversation) -> list[str]:
    return [m.message_id for m in conversation.messages]


def merged_all_ways(*records: Conversation) -> Conversation:
    """The merge, after checking that the order of the records makes no difference."""
    results = [merge(list(order)) for order in permutations(records)]
    assert all(result == results[0] for result in results)
    return results[0]


def test_one_record_stays_as_it_is_and_is_not_the_same_object() -> None:
    record = chat(said("a"), said("b", role="assistant"), title="", updated_at=at(5), source_file="x.zip!/c.json")
    result = merge([record])
    assert result == record
    assert result.messages is not record.messages


def test_a_grown_export_updates_and_an_older_one_does_not_shrink() -> None:
    old = chat(said("a"), said("b"), title="Draft", updated_at=at(1))
    new = chat(said("a"), said("b"), said("c"), title="Final", updated_at=at(9))
    result = merged_all_ways(old, new)
    assert (ids(result), result.title, result.updated_at) == (["a", "b", "c"], "Final", at(9))


def test_a_newer_but_poorer_export_loses_nothing() -> None:
    full = chat(said("a"), said("b"), said("c"), updated_at=at(1), model="m1", created_at=at(0))
    poor = chat(said("a"), said("c"), title="  ", updated_at=at(9))
    result = merged_all_ways(full, poor)
    assert ids(result) == ["a", "b", "c"]
    assert (result.model, result.created_at, result.updated_at) == ("m1", at(0), at(9))


def test_rows_only_others_have_stand_behind_their_predecessor() -> None:
    newest = chat(said("b"), said("d"), said("e"), updated_at=at(9))
    older = chat(said("a"), said("b"), said("c1"), said("c2"), said("d"), updated_at=at(5))
    oldest = chat(said("a"), said("x"), said("e"), said("f"), updated_at=at(1))
    assert ids(merged_all_ways(newest, older, oldest)) == ["a", "x", "b", "c1", "c2", "d", "e", "f"]


@pytest.mark.parametrize(
    ("loser", "winner"),
    [
        ((said("a", "", edited_at=at(8)), 9), (said("a", "words"), 1)),
        ((said("a", "longer by far"), 9), (said("a", "short", edited_at=at(2)), 1)),
        ((said("a", "longer by far"), 1), (said("a", "short"), 9)),
        ((said("a", "short"), 5), (said("a", "longer"), 5)),
    ],
    ids=["text before none", "later edit", "later record", "longer text"],
)
def test_which_version_of_a_message_wins(loser: tuple[Message, int], winner: tuple[Message, int]) -> None:
    records = [chat(message, updated_at=at(minutes)) for message, minutes in (loser, winner)]
    assert merged_all_ways(*records).messages[0].text == winner[0].text


def test_without_a_time_of_its_own_a_record_is_as_old_as_its_last_message() -> None:
    old = chat(said("a", "long first version", created_at=at(0)), said("b", created_at=at(1)))
    new = chat(said("a", "new", created_at=at(0)), said("c", created_at=at(7)))
    result = merged_all_ways(old, new)
    assert [m.text for m in result.messages] == ["new", "text of b", "text of c"]
    assert result.updated_at is None


def test_what_the_best_version_leaves_out_is_filled_in() -> None:
    cited = [Citation("https://example.org/a")]
    old = chat(said("a", model="m1", citations=cited, created_at=at(0), cost=0.5), updated_at=at(1))
    new = chat(said("a", "new", attachment=[Attachment("map.png")], tokens_in=0), updated_at=at(9))
    (message,) = merged_all_ways(old, new).messages
    assert message == said(
        "a",
        "new",
        model="m1",
        citations=cited,
        created_at=at(0),
        cost=0.5,
        attachment=[Attachment("map.png")],
        tokens_in=0,
    )


def test_branch_and_hiding_are_what_the_newest_record_says() -> None:
    old = chat(said("a", edited_at=at(3)), said("b", hidden_reason="profile"), said("gone"), updated_at=at(1))
    new = chat(said("a", branch_active=False), said("b"), updated_at=at(9))
    a, gone, b = sorted(merged_all_ways(old, new).messages, key=lambda m: ("a", "gone", "b").index(m.message_id))
    assert (a.branch_active, gone.branch_active, b.hidden_reason) == (False, True, None)


def test_people_chats_are_in_order_of_time_and_ties_keep_theirs() -> None:
    first = chat(said("b", created_at=at(2)), said("t1", created_at=at(3)), said("t2", created_at=at(3)), order="time")
    second = chat(said("c", created_at=at(9)), said("a", created_at=at(1)), order="time")
    assert ids(merged_all_ways(first, second)) == ["a", "b", "t1", "t2", "c"]


def test_naive_times_keep_their_places_and_timeless_rows_their_predecessor() -> None:
    record = chat(
        said("start"),
        said("z", created_at=at(9)),
        said("z-file"),
        said("n2", local_time="2024-05-03T09:00:00"),
        said("y", created_at=at(1)),
        said("n1", local_time="2024-05-01T09:00:00"),
        order="time",
    )
    assert ids(merge([record])) == ["start", "y", "n1", "z", "z-file", "n2"]


def test_doubled_ids_in_one_record_are_one_message() -> None:
    """A branch command of Claude Code writes each message twice."""
    assert ids(merge([chat(said("a"), said("a", ""), said("b"), said("a"))])) == ["a", "b"]


def test_what_cannot_be_merged_is_refused() -> None:
    with pytest.raises(ValueError):
        merge([])
    with pytest.raises(ValueError):
        merge([chat(said("a")), replace(chat(said("a")), conversation_id="c2")])


# --- laws -------------------------------------------------------------------------------------------------------------

times = st.none() | st.integers(0, 4).map(at)
names = st.sampled_from([None, "", "m1", "m2"])
messages = st.builds(
    Message,
    message_id=st.sampled_from("abcdef"),
    role=st.sampled_from(["user", "assistant", "tool"]),
    text=st.sampled_from(["", "x", "y", "longer"]),
    created_at=times,
    edited_at=times,
    local_time=st.sampled_from([None, "2024-05-03T09:00:00", "2024-05-03T10:00:00"]),
    branch_active=st.booleans(),
    model=names,
    tokens_in=st.none() | st.integers(0, 2),
    hidden_reason=st.sampled_from([None, "context", "profile"]),
    attachment=st.lists(st.builds(Attachment, name=names), max_size=1),
)
records = st.builds(
    Conversation,
    provider=st.just("chatgpt"),
    conversation_id=st.just("c1"),
    messages=st.lists(messages, max_size=6),
    title=names,
    created_at=times,
    updated_at=times,
    local_created=st.sampled_from([None, "2024-05-03T09:00:00"]),
    origin=st.sampled_from(["person", "subagent"]),
    account=names,
    model=names,
    order=st.sampled_from(["source", "time"]),
)


@given(st.lists(records, min_size=1, max_size=4).flatmap(lambda r: st.tuples(st.just(r), st.permutations(r))))
def test_the_order_of_records_makes_no_difference(pair: tuple[list[Conversation], list[Conversation]]) -> None:
    assert merge(pair[0]) == merge(pair[1])


@given(st.lists(records, min_size=1, max_size=4))
def test_merging_the_result_again_changes_nothing(found: list[Conversation]) -> None:
    result = merge(found)
    assert merge([result]) == result
    for record in found:
        assert merge([result, record]) == result
    assert merge([*found, result]) == result


@given(st.lists(records, min_size=1, max_size=4))
def test_every_message_once_and_every_winning_text_is_one_that_was_there(found: list[Conversation]) -> None:
    result = merge(found)
    assert sorted(ids(result)) == sorted({m.message_id for r in found for m in r.messages})
    for message in result.messages:
        texts = {m.text for r in found for m in r.messages if m.message_id == message.message_id}
        assert message.text in texts
        assert message.text or texts == {""}


@given(records, records, records)
def test_merging_in_steps_gives_the_same_messages(a: Conversation, b: Conversation, c: Conversation) -> None:
    assert set(ids(merge([merge([a, b]), c]))) == set(ids(merge([a, b, c])))


@given(st.lists(st.tuples(st.integers(1, 6), st.text(max_size=3)), min_size=1, max_size=5))
def test_exports_of_a_growing_chat_give_its_last_state(states: list[tuple[int, str]]) -> None:
    """Each later export shows more messages, and its own wording of all of them (empty never replaces words)."""
    length = 0
    exports: list[Conversation] = []
    for number, (more, wording) in enumerate(states):
        length += more
        texts = [said(f"m{i}", f"{wording} {i}", created_at=at(i)) for i in range(length)]
        exports.append(chat(*texts, updated_at=at(1000 + number)))
    assert merge(exports[::-1]).messages == exports[-1].messages


# --- resumed copies ---------------------------------------------------------------------------------------------------


def key(name: str) -> tuple[str, str]:
    return ("claude-code", name)


def heirs(conversations: dict[str, str], forks: dict[str, str]) -> dict[str, str]:
    sets = {key(name): set(value) for name, value in conversations.items()}
    sizes = {name: len(value) for name, value in sets.items()}
    found = superseded(sizes, sets.__getitem__, {key(a): key(b) for a, b in forks.items()})
    return {old[1]: new[1] for old, new in found.items()}


def test_a_resumed_copy_replaces_what_it_repeats() -> None:
    assert heirs({"A": "12", "B": "1234"}, {"B": "A"}) == {"A": "B"}
    assert heirs({"A": "12", "B": "12"}, {"B": "A"}) == {"A": "B"}


def test_a_chain_of_copies_leads_to_the_last_even_past_a_missing_link() -> None:
    assert heirs({"A": "1", "B": "12", "C": "123"}, {"B": "A", "C": "B"}) == {"A": "C", "B": "C"}
    assert heirs({"A": "1", "C": "123"}, {"B": "A", "C": "B"}) == {"A": "C"}


def test_branches_that_went_on_are_both_kept() -> None:
    assert heirs({"A": "125", "B": "1234"}, {"B": "A"}) == {}
    assert heirs({"A": "12", "B": "1234"}, {}) == {}
    assert heirs({"A": "", "B": "1"}, {"B": "A"}) == {}


def test_of_two_copies_the_longer_one_is_the_heir() -> None:
    assert heirs({"A": "1", "B": "12", "C": "134"}, {"B": "A", "C": "A"}) == {"A": "C"}


def test_equal_copies_that_claim_each_other_leave_one() -> None:
    assert heirs({"A": "12", "B": "12"}, {"B": "A", "A": "B"}) == {"A": "B"}
    assert heirs({"A": "1", "B": "1", "C": "1"}, {"B": "A", "C": "B", "A": "C"}) == {"A": "C", "B": "C"}
