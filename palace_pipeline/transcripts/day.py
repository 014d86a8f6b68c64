"""The day a conversation belongs to, as far as its records tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from palace_pipeline.model import Conversation

Reason = Literal["no time", "before the start", "in the future"]


@dataclass(slots=True, frozen=True)
class DayHint:
    """`day` is None for a conversation without a usable time (the ledger then keeps the day it was first seen).

    `reason`: why there is no day, or which dates were passed over to find one. `source`: whether a message's time or the
    conversation's creation gave it (a message of any sighting comes before the creation time of all).
    """

    day: date | None
    reason: Reason | None = None
    source: Literal["message", "created"] | None = None

    @property
    def dated(self) -> bool:
        return self.day is not None


def day_of(records: Iterable[Conversation], start: date, today: date) -> DayHint:
    """The UTC date of the earliest dated message over all branches of all records of one conversation.

    A naive time counts with its own date. Only if no message is dated, the source's creation time counts. A date before
    `start` or after `today` (both are days, in UTC) is no date: a camera clock or a wrong unit wrote it.
    """
    records = list(records)
    passed_over: set[Reason] = set()
    sources: tuple[tuple[Literal["message", "created"], Iterator[date]], ...] = (
        ("message", _message_dates(records)),
        ("created", _creation_dates(records)),
    )
    for source, dates in sources:
        usable: list[date] = []
        for found in dates:
            if found < start:
                passed_over.add("before the start")
            elif found > today:
                passed_over.add("in the future")
            else:
                usable.append(found)
        if usable:
            return DayHint(min(usable), min(passed_over, default=None), source)
    return DayHint(None, min(passed_over) if passed_over else "no time")


def _message_dates(records: list[Conversation]) -> Iterator[date]:
    for record in records:
        for message in record.messages:
            if message.created_at is not None:
                yield message.created_at.astimezone(UTC).date()
            elif message.local_time is not None:
                yield datetime.fromisoformat(message.local_time).date()


def _creation_dates(records: list[Conversation]) -> Iterator[date]:
    for record in records:
        if record.created_at is not None:
            yield record.created_at.astimezone(UTC).date()
        elif record.local_created is not None:
            yield datetime.fromisoformat(record.local_created).date()
