"""Counted work: what a scan may cost in proportion to its text, never by the clock."""

from __future__ import annotations

WORK_BASE = 4_000_000
WORK_PER_CHARACTER = 60


class WorkLimit(Exception):
    """The counted work of a scan went over its budget; the message never quotes the text."""


class Work:
    """A budget of counted steps (about one character looked at)."""

    def __init__(self, characters: int) -> None:
        self.left = WORK_BASE + WORK_PER_CHARACTER * characters

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise WorkLimit("work budget spent")
