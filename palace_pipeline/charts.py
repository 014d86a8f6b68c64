"""Counts as Markdown with pictures, for Dagster's pages: PNG bars inside the text, beside the words and numbers that
they show. Pure functions of counts and of names that are not chat text (days, rooms, kinds of finding, stages)."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

from palace_pipeline import plots

MOST_BARS = 400
"""Bars in one picture; more days than this are shown by weeks, then by months."""
MOST_ROWS = 20
WIDTH, WIDEST_BAR = 640, 24
"""Pixels of a picture, and of a bar in it when there are few."""


def days_chart(days: Mapping[date, int], what: str) -> str:
    """`what` per day from the first to the last day with any: a picture, and in words what it shows; "" for nothing.

    A long time is shown by weeks (from Monday) or months; the days of a week without any count as 0.
    """
    counted = {day: count for day, count in days.items() if count > 0}
    if not counted:
        return ""
    unit, starts, sums = _binned(counted)
    busiest = max(starts, key=lambda start: sums.get(start, 0))
    width = min(WIDTH, WIDEST_BAR * len(starts))
    picture = _picture(plots.png_bars([sums.get(start, 0) for start in starts], width), f"{what} by {unit}")
    return (
        f"**{what} by {unit}**, {min(counted)} to {max(counted)}: {sum(counted.values()):,} on {len(counted):,} day(s); "
        f"most in one {unit}: {sums[busiest]:,} ({busiest})\n\n{picture}"
    )


def _binned(days: Mapping[date, int]) -> tuple[str, list[date], dict[date, int]]:
    """The finest unit that gives few enough bars: its name, the starts of all bars in order, the sums by start."""
    first, last = min(days), max(days)
    if (last - first).days < MOST_BARS:
        return "day", [first + timedelta(days=n) for n in range((last - first).days + 1)], dict(days)
    monday = first - timedelta(days=first.weekday())
    if (last - monday).days // 7 < MOST_BARS:
        starts = [monday + timedelta(weeks=n) for n in range((last - monday).days // 7 + 1)]
        return "week", starts, _summed((day - timedelta(days=day.weekday()), n) for day, n in days.items())
    months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    return (
        "month",
        [date(month // 12, month % 12 + 1, 1) for month in months],
        _summed((day.replace(day=1), n) for day, n in days.items()),
    )


def _summed(counts: Iterable[tuple[date, int]]) -> dict[date, int]:
    sums: dict[date, int] = {}
    for start, count in counts:
        sums[start] = sums.get(start, 0) + count
    return sums


def bars_chart(rows: Sequence[tuple[str, float]], label: str, value: str) -> str:
    """A table with a bar a row, largest first, the rest of many rows as one; "" for no rows."""
    ordered = sorted(rows, key=lambda row: (-row[1], row[0]))
    shown = ordered[:MOST_ROWS]
    if rest := ordered[MOST_ROWS:]:
        shown.append((f"{len(rest)} more", sum(number for _, number in rest)))
    if not shown:
        return ""
    largest = max(number for _, number in shown)
    lines = [f"| {label} | {value} | |", "|---|---:|---|"]
    lines += [
        f"| {_cell(name)} | {_number(number)} | {_picture(plots.png_bar(number / largest if largest > 0 else 0), '')} |"
        for name, number in shown
    ]
    return "\n".join(lines)


def _cell(name: str) -> str:
    return name.replace("|", "\\|").replace("\n", " ")


def _number(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"


def _picture(png: bytes, title: str) -> str:
    return f"![{title}](data:image/png;base64,{base64.b64encode(png).decode()})"
