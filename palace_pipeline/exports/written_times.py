"""Dates and clock times as chats written as text hold them: `2024-03-15 11:58 PM`, `3/15/2024 6:37 PM`, `[18:37]`.

What is written is read in two steps, because `3/4/2024` alone says nothing: `read_when` takes the numbers of one line,
`month_first` looks at all of a file, `Written.resolve` gives the time. A time without a zone stays without one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from itertools import pairwise

_MONTHS = {
    name: number
    for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)  # noqa: SIM905
}
_SPACE = "[ \u00a0\u2007\u2009\u202f]"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\.?,?|(?:星期|周|週)[一二三四五六日天])"
_DATE = (
    r"(?:(?P<y1>\d{4})(?P<s1>[-/.])(?P<m1>\d{1,2})(?P=s1)(?P<d1>\d{1,2})"
    r"|(?P<y2>\d{4})年(?P<m2>\d{1,2})月(?P<d2>\d{1,2})[日号]"
    r"|(?P<n1>\d{1,2})(?P<s3>[-/.])(?P<n2>\d{1,2})(?P=s3)(?P<y3>\d{4}|\d\d)"
    r"|(?P<m4>[a-z]{3,9})\.? (?P<d4>\d{1,2})(?:st|nd|rd|th)?,? (?P<y4>\d{4})"
    r"|(?P<d5>\d{1,2})[ -](?P<m5>[a-z]{3,9})\.?[ -](?P<y5>\d{4}|\d\d)"
    r"|(?P<relative>today|yesterday))"
)
_CLOCK = (
    r"(?:(?P<cn>上午|下午|凌晨|早上|中午|晚上)" + _SPACE + r"?)?"
    r"(?P<h>\d{1,2})[:：](?P<min>\d\d)(?:[:：](?P<sec>\d\d)(?:[.,]\d{1,9})?)?"
    r"(?:" + _SPACE + r"?(?P<half>[ap])\.?" + _SPACE + r"?m\.?)?"
)
_ZONE = r"(?P<zone>z|utc|gmt|(?:utc|gmt)?[+-]\d\d?(?::?\d\d)?)"
WHEN = re.compile(
    rf"(?:{_WEEKDAY}{_SPACE}?)?(?:{_DATE}(?:,?{_SPACE}at|,)?)?"
    rf"(?:(?:(?<=\d)t|{_SPACE}{{1,2}}|(?<!\w))(?:{_WEEKDAY}{_SPACE})?{_CLOCK}(?:{_SPACE}?{_ZONE})?)?",
    re.IGNORECASE,
)
_DAY_HEADING = re.compile(
    rf"#{{1,4}}{_SPACE}+(?:{_WEEKDAY}{_SPACE}?)?(?:(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}})|(\d{{4}})年(\d{{1,2}})月(\d{{1,2}})日)"
    rf"(?:{_SPACE}?[（(]?{_WEEKDAY}[)）]?)?\s*",
    re.IGNORECASE,
)
_LONGEST = 60
_EARLIEST_YEAR, _LATEST_YEAR = 1990, 2200


@dataclass(frozen=True, slots=True)
class Written:
    """What a line says of its time. `numbers`: (year, month, day), or (year, first, second) where `ambiguous`.

    `clock` is None for a date alone; `numbers` is None for a time of day alone (and for "today"). `offset` is None
    without a zone. `twelve_hours`: written with AM or PM.
    """

    numbers: tuple[int, int, int] | None
    ambiguous: bool
    clock: time | None
    offset: timedelta | None
    twelve_hours: bool

    def date(self, month_first: bool) -> date | None:
        """The calendar day in the given reading of `3/4/2024`, None if there is none (or no such day)."""
        if self.numbers is None:
            return None
        year, first, second = self.numbers
        month, day = (second, first) if self.ambiguous and not month_first else (first, second)
        try:
            return date(year, month, day) if _EARLIEST_YEAR <= year < _LATEST_YEAR else None
        except ValueError:
            return None

    def resolve(self, month_first: bool, day: date | None = None) -> tuple[datetime | None, str | None]:
        """(instant in UTC, naive local time), one of them or both None. `day` is used where the line has no date."""
        on = self.date(month_first) if self.numbers is not None else day
        if on is None or self.clock is None:
            return None, None
        local = datetime.combine(on, self.clock)
        if self.offset is None:
            return None, local.isoformat(timespec="seconds")
        try:
            return local.replace(tzinfo=timezone(self.offset)).astimezone(UTC), None
        except (ValueError, OverflowError):
            return None, local.isoformat(timespec="seconds")


def read_when(text: str) -> Written | None:
    """The date, the time of day, or both, if `text` is nothing else; None for `24:00`, `09:60`, `on track`."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    match = WHEN.fullmatch(text)
    if match is None:
        return None
    part = match.groupdict()
    try:
        clock = _clock(part)
        offset = _offset(part["zone"])
    except ValueError:
        return None
    numbers = _numbers(part)
    written = Written(numbers, part["n1"] is not None, clock, offset, bool(part["half"] or part["cn"]))
    if numbers is None and clock is None:
        return None
    return written if numbers is None or written.date(True) or written.date(False) else None


def _clock(part: dict[str, str | None]) -> time | None:
    if part["h"] is None:
        return None
    hour, half, chinese = int(part["h"]), (part["half"] or "").lower(), part["cn"]
    if half:
        if not 1 <= hour <= 12:
            raise ValueError("no hour of a 12-hour clock")
        hour = hour % 12 + (12 if half == "p" else 0)
    elif (chinese in ("下午", "晚上") and hour < 12) or (chinese == "中午" and hour < 11):
        hour += 12
    elif chinese in ("上午", "凌晨") and hour == 12:
        hour = 0
    return time(hour, int(part["min"] or 0), int(part["sec"] or 0))


def _offset(zone: str | None) -> timedelta | None:
    if zone is None:
        return None
    digits = zone.upper().removeprefix("UTC").removeprefix("GMT").replace(":", "")
    if digits in ("", "Z"):
        return timedelta(0)
    hours, minutes = int(digits[1:3]), int(digits[3:] or 0)
    if hours > 14 or minutes > 59:
        raise ValueError("no offset from UTC")
    return timedelta(hours=hours, minutes=minutes) * (-1 if digits[0] == "-" else 1)


def _numbers(part: dict[str, str | None]) -> tuple[int, int, int] | None:
    for year, month, day in (("y1", "m1", "d1"), ("y2", "m2", "d2"), ("y3", "n1", "n2")):
        if part[year] is not None:
            return _year(part[year]), int(part[month] or 0), int(part[day] or 0)
    for year, month, day in (("y4", "m4", "d4"), ("y5", "m5", "d5")):
        if part[year] is not None:
            return _year(part[year]), _MONTHS.get((part[month] or "")[:3].lower(), 0), int(part[day] or 0)
    return None


def _year(digits: str | None) -> int:
    year = int(digits or 0)
    return year + 2000 if year < 100 else year


def month_first(times: Iterable[Written]) -> bool:
    """How a file writes `3/4/2024`: the reading in which all dates exist, else the one with fewer steps back in time.

    If both do, AM and PM speak for month first (as Teams and WhatsApp write it in the United States).
    """
    unclear = [written for written in times if written.ambiguous]
    readings = [[written.date(order) for written in unclear] for order in (True, False)]
    missing = [sum(day is None for day in days) for days in readings]
    if missing[0] != missing[1]:
        return missing[0] < missing[1]
    back = [sum(1 for before, after in pairwise(_known(days)) if after < before) for days in readings]
    if back[0] != back[1]:
        return back[0] < back[1]
    return any(written.twelve_hours for written in unclear)


def _known(days: list[date | None]) -> Iterator[date]:
    return (day for day in days if day is not None)


def day_heading(line: str) -> date | None:
    """The day that a heading `# 2024-03-15` (one to four `#`, a weekday may stand beside it) sets, else None."""
    if not line.startswith("#") or len(line) > _LONGEST:
        return None
    match = _DAY_HEADING.fullmatch(line)
    if match is None:
        return None
    year, month, day = (match[1], match[3], match[4]) if match[1] else (match[5], match[6], match[7])
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
