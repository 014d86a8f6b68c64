"""A conversation as bytes: in parts as at once."""

import hashlib
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline import model
from palace_pipeline.model import (
    Attachment,
    Conversation,
    Message,
    from_record,
    message_hash,
    record_identity,
    record_parts,
    to_record,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ['"text":""', '"messages":[]', '\\"text\\":\\"\\"', '潮汐\U0001f30a\u2028\x00\n"']
)
MESSAGES = st.builds(
    Message,
    message_id=TEXT,
    role=st.sampled_from(model.ROLES),
    text=TEXT,
    tool_name=st.none() | TEXT,
    created_at=st.none() | st.just(datetime(2026, 3, 14, 10, tzinfo=UTC)),
    attachment=st.lists(st.builds(Attachment, name=TEXT, text=st.just("") | TEXT), max_size=2),
)
CONVERSATIONS = st.builds(
    Conversation,
    provider=TEXT,
    conversation_id=TEXT,
    messages=st.lists(MESSAGES, max_size=3),
    title=st.none() | TEXT,
    account=st.none() | TEXT,
    project=st.none() | TEXT,
)


@pytest.fixture(autouse=True, scope="module")
def short_pieces():
    usual, model._LONG_TEXT = model._LONG_TEXT, 3
    yield
    model._LONG_TEXT = usual


@settings(deadline=None)
@given(CONVERSATIONS)
def test_parts_are_the_record(conversation):
    data = b"".join(record_parts(conversation))
    assert data == to_record(conversation)
    assert from_record(data) == conversation


@settings(deadline=None)
@given(CONVERSATIONS)
def test_the_identity_is_that_of_the_record_and_of_each_message(conversation):
    record, index = record_identity(conversation)
    assert record == hashlib.sha256(to_record(conversation)).hexdigest()
    assert index == {message.message_id: message_hash(message) for message in conversation.messages}
