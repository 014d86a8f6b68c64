"""Options that several commands have in common."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON value on stdout.")]


def a_day(text: str) -> datetime:
    """A day as it is written on the command line."""
    how = "write year-month-day, for example 2024-05-31"
    if re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", text) is None:
        raise typer.BadParameter(f"{text!r} is no day; {how}")
    year, month, day = map(int, text.split("-"))
    try:
        return datetime(year, month, day)
    except ValueError:
        raise typer.BadParameter(f"there is no day {text!r} in the calendar; {how}") from None


Wing = Annotated[str | None, typer.Option(help="Only this wing (project, channel).")]
Room = Annotated[str | None, typer.Option(help="Only this room.")]
Provider = Annotated[str | None, typer.Option(help="Only this provider.")]
Role = Annotated[
    str | None, typer.Option(help="Only what this role said: user (your own words), assistant (answers), bot.")
]
Since = Annotated[datetime | None, typer.Option(parser=a_day, metavar="YYYY-MM-DD", help="From this day on.")]
Until = Annotated[datetime | None, typer.Option(parser=a_day, metavar="YYYY-MM-DD", help="Up to this day.")]
