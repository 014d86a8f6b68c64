"""Which day a conversation belongs to."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.model import Conversation, Message
from palace_pipeline.transcripts.day import DayHint, day_of

START, TODAY = date(2010, 1, 1), date(2025, 6, 30)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def chat(*messages: Message, **values) -> Conversation:
    return Conversation("chatgpt", "c1", list(messages), **values)


def dated(text: str, **values) -> Message:
    return Message(text, "user", created_at=utc(text), **values)


def naive(text: str) -> Message:
    return Message(text, "user", local_time=text)


def test_the_earliest_message_counts_wherever_it_stands() -> None:
    record = chat(
        dated("2024-05-03T00:10:00"),
        dated("2024-05-02T23:59:59.999999", branch_active=False),
        Message("x", "assistant"),
        created_at=utc("2024-01-01T00:00:00"),
    )
    older_sighting = chat(dated("2024-04-30T12:00:00", hidden_reason="context"))
    assert day_of([record], START, TODAY) == DayHint(date(2024, 5, 2), source="message")
    assert day_of([record, older_sighting], START, TODAY) == DayHint(date(2024, 4, 30), source="message")


def test_the_date_is_that_of_utc() -> None:
    shanghai = Message("a", "user", created_at=datetime(2024, 5, 3, 7, tzinfo=timezone(timedelta(hours=8))))
    assert day_of([chat(shanghai)], START, TODAY).day == date(2024, 5, 2)


def test_a_naive_time_counts_with_its_own_date() -> None:
    record = chat(naive("2024-05-03T00:10:00"), dated("2024-05-03T12:00:00"))
    assert day_of([record], START, TODAY).day == date(2024, 5, 3)


@pytest.mark.parametrize(
    ("record", "day"),
    [
        (chat(Message("a", "user"), created_at=utc("2024-02-29T23:00:00")), date(2024, 2, 29)),
        (chat(Message("a", "user"), local_created="2024-02-28T23:00:00"), date(2024, 2, 28)),
        (chat(Message("a", "user"), updated_at=utc("2024-02-29T23:00:00")), None),
    ],
)
def test_the_creation_time_counts_only_if_no_message_is_dated(record: Conversation, day: date | None) -> None:
    assert day_of([record], START, TODAY) == DayHint(day, *((None, "created") if day else ("no time", None)))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (dated("2009-12-31T23:59:59"), "before the start"),
        (naive("2009-12-31T23:59:59"), "before the start"),
        (dated("2025-07-01T00:00:00"), "in the future"),
    ],
)
def test_a_date_outside_the_limits_is_none(message: Message, reason: str) -> None:
    assert day_of([chat(message)], START, TODAY) == DayHint(None, reason)
    other = dated("2024-05-03T12:00:00")
    assert day_of([chat(message, other)], START, TODAY) == DayHint(date(2024, 5, 3), reason, "message")
    created = chat(message, created_at=utc("2024-05-04T12:00:00"))
    assert day_of([created], START, TODAY) == DayHint(date(2024, 5, 4), reason, "created")


def test_the_limits_themselves_are_days_of_the_archive() -> None:
    assert day_of([chat(dated("2010-01-01T00:00:00"))], START, TODAY).day == START
    assert day_of([chat(dated("2025-06-30T23:59:59"))], START, TODAY).day == TODAY


def test_nothing_has_no_day() -> None:
    assert day_of([], START, TODAY) == DayHint(None, "no time")
    assert not day_of([chat()], START, TODAY).dated


moments = st.datetimes(datetime(2009, 1, 1), datetime(2026, 1, 1), timezones=st.just(UTC))


@given(st.lists(moments, min_size=1), st.randoms(use_true_random=False))
def test_the_order_and_grouping_of_messages_make_no_difference(times: list[datetime], random) -> None:
    found = [Message(str(i), "user", created_at=time) for i, time in enumerate(times)]
    whole = day_of([chat(*found)], START, TODAY)
    random.shuffle(found)
    assert day_of([chat(m) for m in found], START, TODAY) == whole
