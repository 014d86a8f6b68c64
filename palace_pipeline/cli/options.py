"""Options that several commands have in common."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

import typer

from palace_pipeline.cli.talk import UsageError

Json = Annotated[bool, typer.Option("--json", help="One JSON value on stdout.")]


_FORMS = "write year-month-day, for example 2024-05-31, today or yesterday"
_TODAY, _YESTERDAY = ("today", "今天"), ("yesterday", "昨天")


def a_day_as_said(text: str, today: date) -> date:
    """A day as people say it: 2024-05-31, today, yesterday. Raises UsageError."""
    first, last = days_as_said(text, today)
    if first != last:
        raise UsageError(f"{text!r} is no day; {_FORMS}")
    return first


def days_as_said(text: str, today: date) -> tuple[date, date]:
    """The first and the last day of what people say: a day, a month (2024-05), a year (2024). Raises UsageError."""
    word = text.strip().lower()
    if word in _TODAY:
        return today, today
    if word in _YESTERDAY:
        return today - timedelta(days=1), today - timedelta(days=1)
    if re.fullmatch(r"\d{4}(-\d{1,2}){0,2}", word, re.ASCII):
        year, *rest = map(int, word.split("-"))
        try:
            if len(rest) == 2:
                return date(year, *rest), date(year, *rest)
            months = (rest[0], rest[0]) if rest else (1, 12)
            return date(year, months[0], 1), date(year, months[1], monthrange(year, months[1])[1])
        except ValueError:
            raise UsageError(f"there is no day {text!r} in the calendar; {_FORMS}") from None
    raise UsageError(f"{text!r} is no day; {_FORMS}")


def a_day(text: str) -> datetime:
    """A UTC day on the command line."""
    try:
        return datetime.combine(a_day_as_said(text, datetime.now(UTC).date()), time())
    except UsageError as error:
        raise typer.BadParameter(str(error)) from None


def _reach(text: str) -> tuple[date, date]:
    """The days that a word of the command line stands for; today is that of the display zone."""
    from palace_pipeline.settings import default_home, load_settings

    now = datetime.now(load_settings(default_home()).zone if text.strip().lower() in (*_TODAY, *_YESTERDAY) else None)
    try:
        return days_as_said(text, now.date())
    except UsageError as error:
        raise typer.BadParameter(str(error)) from None


def _from_day(text: str) -> datetime:
    return datetime.combine(_reach(text)[0], time())


def _up_to_day(text: str) -> datetime:
    return datetime.combine(_reach(text)[1], time())


Wing = Annotated[str | None, typer.Option(help="Only this wing (project, channel).")]
Room = Annotated[str | None, typer.Option(help="Only this room.")]
Provider = Annotated[str | None, typer.Option(help="Only this provider.")]
Role = Annotated[
    str | None, typer.Option(help="Only what this role said: user (your own words), assistant (answers), bot.")
]
Since = Annotated[
    datetime | None,
    typer.Option(
        parser=_from_day, metavar="DAY", help="From this day on: 2024-05-31, 2024-05, 2024, today, yesterday."
    ),
]
Until = Annotated[
    datetime | None,
    typer.Option(parser=_up_to_day, metavar="DAY", help="Up to this day (or month, or year) and with it."),
]
