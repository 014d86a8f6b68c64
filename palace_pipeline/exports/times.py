"""Times as exports write them -> UTC, or a naive local time, or nothing. Never "now", never 1970 for "unknown"."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_START = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND, _LAST_SECOND = _EARLIEST.timestamp(), _LATEST.timestamp()
_MILLISECONDS_FROM = 1e11
_MICROSECONDS_FROM = 1e14
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_NAIVE = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(\.\d+)?")
_LONGEST_USUAL = len("2026-03-14T10:00:00.000000Z")
_EXCESS_DIGITS = re.compile(r"(\.\d{6})\d+")


def parse_instant(value: Any) -> datetime | None:
    """A point in time as UTC with microseconds, or None if `value` does not name one.

    Takes seconds, milliseconds (from 1e11) or microseconds (from 1e14) since 1970 as number or text, ISO 8601 with an
    offset or `Z`, and MongoDB's `{"$date": …}`. A text without an offset is not an instant: see `parse_naive`.
    Zero, negative and absurd times (before 1990, after 2200) are unknown times.
    """
    # Nearly all values are one of these two; a large export has millions of them.
    if type(value) is float:
        if not _FIRST_SECOND <= value < _LAST_SECOND:
            return _from_number(value, str(value))
        seconds, _, part = str(value).partition(".")
        return _START + timedelta(0, int(seconds), int(part[:6].ljust(6, "0")))
    if isinstance(value, str):
        text = value.strip()
        if text[4:5] != "-" and _NUMBER.fullmatch(text):
            return _from_number(float(text), text)
        return _from_iso(text)
    if isinstance(value, dict):
        inner: Any = value.get("$date", value.get("$numberLong"))  # pyright: ignore[reportUnknownVariableType]
        return parse_instant(inner) if inner is not value else None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _from_number(float(value), str(value))
    return None


def _from_number(number: float, text: str) -> datetime | None:
    if not math.isfinite(number):
        return None
    scale = 1 if abs(number) < _MILLISECONDS_FROM else 1_000 if abs(number) < _MICROSECONDS_FROM else 1_000_000
    seconds = 0
    if scale == 1 and "." in text and "e" not in text.lower():
        # Decimal digits, not the float: 1773480370.000100 has exactly 100 microseconds.
        whole, _, part = text.partition(".")
        seconds, microseconds = abs(int(whole)), int(part[:6].ljust(6, "0"))
    else:
        microseconds = round(number * (1_000_000 // scale))
    try:
        return _plausible(_START + timedelta(0, seconds, microseconds)) if number > 0 else None
    except OverflowError:
        return None


def _from_iso(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(_EXCESS_DIGITS.sub(r"\1", text) if len(text) > _LONGEST_USUAL else text)
        offset = moment.utcoffset()
        if offset is None:
            return None
        # As `astimezone` does, which takes five times as long.
        return _plausible((moment - offset).replace(tzinfo=UTC) if offset else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None


def _plausible(moment: datetime) -> datetime | None:
    return moment if _EARLIEST <= moment < _LATEST else None


def parse_naive(value: Any) -> str | None:
    """A time without a zone as `YYYY-MM-DDTHH:MM:SS`, or None (also when the text has an offset)."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    match = _NAIVE.fullmatch(text)
    if match is None:
        return None
    local = f"{match[1]}T{match[2]}{match[3] or ':00'}"
    try:
        datetime.fromisoformat(local)
    except ValueError:
        return None
    return local


def to_utc(local_time: str | None, zone: tzinfo | None) -> datetime | None:
    """The instant of a naive time in the zone that the user set for its source; None without a zone."""
    if local_time is None or zone is None:
        return None
    return datetime.fromisoformat(local_time).replace(tzinfo=zone).astimezone(UTC)
