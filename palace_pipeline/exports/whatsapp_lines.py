"""The line that begins a message in WhatsApp's text export, in the ways in which the world writes dates and clocks.

Nothing in the file says how it was written: `03/04/26` is a day in March or in April, `9:26 ب.ظ` is in the evening. A
line is read in two steps: `read_line` takes it apart, `Calendar` looks at all lines of a file and gives the times.
Line shapes: formats seen in public parsers (whatsapp-chat-parser, whatstk, chat-miner and their issues), and the short
date patterns of Unicode CLDR, which Android and iOS use; checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

MARKS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
"""Direction marks and the byte order mark: they stand everywhere in a line and say nothing about the time."""
LRM = "\u200e"
_MARKS = re.compile(f"[{MARKS}]")
_DROP = dict.fromkeys(map(ord, MARKS))
_S = r"[ \t\u00a0\u2000-\u200a\u202f\u3000]"
_WORD = r"[^\d\s\[\]:：\-–—,،、][^\d\[\]:：\-–—,،、]{0,18}?"
_HEADER = re.compile(
    rf"(?P<open>\[)?"
    rf"(?P<a>\d{{1,4}}){_S}?(?P<sep>[./\-‐年년]){_S}?(?P<b>\d{{1,2}}){_S}?[./\-‐月월]{_S}?(?P<c>\d{{1,4}})[日일]?"
    rf"(?:{_S}?\.|{_S}(?:г|ж|р|m)\.)?[,،、]?{_S}{{0,2}}"
    rf"(?:(?P<before>{_WORD}){_S}{{0,2}})?"
    rf"(?P<h>\d{{1,2}})(?:[:：.時时]|{_S}?h{_S}?)(?P<min>\d\d)(?:(?:[:：.分]|{_S}min{_S})(?P<sec>\d\d)(?:秒|{_S}s)?)?"
    rf"(?:{_S}{{0,2}}(?P<after>{_WORD}))?"
    rf"(?(open){_S}?\]{_S}?|(?:{_S}[-–—]{_S}|(?<=\d):{_S}))"
)
_PREFIX = 120
"""No header is longer."""

_JOINERS = frozenset("klo kl um at à às alle a o ob u в у в de och og, ο στις の".split())  # noqa: SIM905
"""Words between date and clock."""
_AM = frozenset(
    """
    am a 上午 上晝 凌晨 早上 清晨 午前 오전 ص غم بن قظ قبلازظهر πμ öö sa vorm fm ap dop de vm fh पूर्वाह्न পূর্বাহ্ণ முற்பகல் मपू ಪೂರ್ವಾಹ್ನ
    ਪੂਦੁ ก่อนเที่ยง pg pd paradite to дп прпб преподне претпл пре prijepodne dopoledne dopoludnia rano
    priešpiet priekšp լուսաբաց لپنهار ጥዋት
    """.split()  # noqa: SIM905
)
_PM = frozenset(
    """
    pm p 下午 下晝 晚上 傍晚 午後 오후 م غو دن بظ بعدازظهر μμ ös ch nachm em ip odp du nm eh अपराह्न অপরাহ্ণ பிற்பகல் मउ ಅಪರಾಹ್ನ
    ਬਾਦੁ หลังเที่ยง ptg md pasdite tk пп слоб поподне попл по popodne odpoledne popoludní popołudniu popiet pēcp ከሰዓት
    """.split()  # noqa: SIM905
)
_NOON = frozenset("中午 noon".split())  # noqa: SIM905
_ASIAN = frozenset("上午 下午 凌晨 早上 清晨 晚上 傍晚 中午 午前 午後 오전 오후".split())  # noqa: SIM905
_YEARS = range(2009, 2100)
"""WhatsApp began in 2009."""

Order = Literal["day first", "month first", "year first"]
_ORDERS: tuple[Order, ...] = ("day first", "month first", "year first")


class Line(NamedTuple):
    """A line that begins a message or notice. `widths`: digits of each number of the date; `word`: what stands at the
    clock (`PM`, `下午`), without blanks and dots; `rest`: all behind the header."""

    numbers: tuple[int, int, int]
    widths: tuple[int, int, int]
    separator: str
    hour: int
    minute: int
    second: int | None
    word: str
    written_word: str
    brackets: bool
    rest: str

    @property
    def key(self) -> str:
        """The written time to the minute, the same however day and month are read: a part of ids."""
        return f"{_in_any_order(self.numbers)} {_hour(self.hour, self.word)}:{self.minute:02}"


@lru_cache(4096)
def _in_any_order(numbers: tuple[int, int, int]) -> str:
    return str(sorted(number if number < 2000 else number % 100 for number in numbers))


def _hour(hour: int, word: str) -> int:
    """The hour of a 24-hour clock, as far as the word beside it is known."""
    if word in _PM:
        return hour + 12 if hour < 12 else hour
    if word in _NOON:
        return hour + 12 if hour < 11 else hour
    return 0 if word in _AM and hour == 12 else hour % 24


def read_line(line: str) -> Line | None:
    """The header of a line, or None for a line that goes on with the message before."""
    head = line[:_PREFIX]
    clean = head if head.isascii() or not _MARKS.search(head) else _MARKS.sub("", head)
    first = clean[:1]
    if not (first == "[" or first.isdecimal()):
        return None
    match = _HEADER.match(clean)
    if match is None:
        return None
    hour, minute, second = int(match["h"]), int(match["min"]), int(match["sec"]) if match["sec"] else None
    if hour > 24 or minute > 59 or (second or 0) > 59:
        return None
    written, behind = match["before"] or "", match["after"] or ""
    before, after = _bare(written) if written else "", _bare(behind) if behind else ""
    word = after or before
    if before and before not in _JOINERS and before not in _AM | _PM | _NOON and after:
        return None  # two words that nobody knows: a sentence with numbers in it
    if word in _JOINERS:
        word = ""
    numbers = (int(match["a"]), int(match["b"]), int(match["c"]))
    if not _may_be_date(numbers):
        return None
    return Line(
        numbers,
        (len(match["a"]), len(match["b"]), len(match["c"])),
        match["sep"],
        hour,
        minute,
        second,
        word,
        behind or written,
        match["open"] is not None,
        line[_behind(head, match.end()) :] if clean is not head else line[match.end() :],
    )


@lru_cache(1024)
def _bare(word: str) -> str:
    return re.sub(rf"{_S}|\.", "", word).casefold()


def _behind(head: str, count: int) -> int:
    """Where the line goes on behind `count` characters that are no marks."""
    for place, character in enumerate(head):
        if character not in MARKS:
            count -= 1
            if count == 0:
                return place + 1
    return len(head)


@lru_cache(4096)
def _may_be_date(numbers: tuple[int, int, int]) -> bool:
    return any(_date(numbers, order) is not None for order in _ORDERS) or _foreign(numbers)


# --- calendars --------------------------------------------------------------------------------------------------------


def _foreign(numbers: tuple[int, int, int]) -> bool:
    """A date of the Islamic calendar, which arithmetic alone does not turn into ours."""
    return any(1430 <= number <= 1480 for number in numbers)


@lru_cache(8192)
def _date(numbers: tuple[int, int, int], order: Order) -> date | None:
    """The day that is meant, or None. Years of the Thai and the Persian calendar become ours."""
    first, second, third = numbers
    if first > 99:
        order = "year first"
    elif third > 99 and order == "year first":
        return None
    if order == "year first":
        year, month, day = first, second, third
    else:
        year, month, day = (third, second, first) if order == "day first" else (third, first, second)
    if 1380 <= year <= 1429:
        return _persian(year, month, day)
    if year < 100:
        year += 1957 if 52 <= year <= 90 else 2000  # two digits of a Thai year: 69 is 2569 is 2026
    elif year > 2500:
        year -= 543
    if year not in _YEARS:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _persian(year: int, month: int, day: int) -> date | None:
    """The Gregorian day of a date of the Solar Hijri calendar (its 33-year rule is exact from 1799 to 2256)."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    leaps = (year * 8 + 21) // 33 - (1380 * 8 + 21) // 33
    days = (year - 1380) * 365 + leaps + (month - 1) * 31 - max(0, month - 7) + day - 1
    return date.fromordinal(date(2001, 3, 21).toordinal() + days)


# --- all lines of a file ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Calendar:
    """How a file writes its times. `certain`: the dates leave no other reading."""

    order: Order
    certain: bool
    morning: str = ""
    evening: str = ""
    """Words for the halves of the day that are in no list, found by the order of the lines."""

    def local_time(self, line: Line) -> str | None:
        """The naive time of a line, or None if it names no day of a calendar that is known."""
        day = _date(line.numbers, self.order) or _any_date(line.numbers)
        if day is None:
            return None
        hour = _hour(line.hour, line.word)
        if line.word and line.word in (self.morning, self.evening):
            hour = line.hour % 12 + (12 if line.word == self.evening else 0)
        return f"{day}T{hour:02}:{line.minute:02}:{line.second or 0:02}"


def _any_date(numbers: tuple[int, int, int]) -> date | None:
    return next((day for order in _ORDERS if (day := _date(numbers, order)) is not None), None)


def calendar_of(lines: Sequence[Line], *, english: bool = False) -> Calendar:
    """How the lines of a file are to be read. `english`: the file speaks English (`<Media omitted>`).

    The order of day, month and year is the one in which all dates exist, then the one with the fewest steps back in
    time. If both are possible: dots and dashes put the day first; an unpadded date with a two-digit year puts the month
    first where the clock says AM or PM in capitals, or the file is English with a 24-hour clock (United States); else
    the order in which the messages lie closer together; else the day comes first, as in most of the world.
    """
    distinct = list(dict.fromkeys(line.numbers for line in lines))
    halves = _halves(lines)
    sound: dict[Order, list[date]] = {
        order: [day for numbers in distinct if (day := _date(numbers, order))] for order in _ORDERS
    }
    most = max(len(days) for days in sound.values())
    possible: list[Order] = [order for order in _ORDERS if len(sound[order]) == most]
    if all(first > 99 for first, _, _ in distinct):
        return Calendar("year first", True, *halves)
    if not _may_begin_with_year(lines) and len(possible) > 1 and "year first" in possible:
        possible.remove("year first")
    if len(possible) > 1:
        back: dict[Order, int] = {
            order: sum(after < before for before, after in pairwise(sound[order])) for order in possible
        }
        possible = [order for order in possible if back[order] == min(back.values())]
    if len(possible) == 1:
        return Calendar(possible[0], True, *halves)
    style = _by_style(lines, english=english)
    closest = min(possible, key=lambda order: _span(sound[order]))  # the first of equals: day first
    guess = style if style is not None and style in possible else closest
    same = len({tuple(sound[order]) for order in possible}) == 1
    return Calendar(guess, same, *halves)


def _span(days: Sequence[date]) -> int:
    return (max(days) - min(days)).days if days else 0


def _may_begin_with_year(lines: Sequence[Line]) -> bool:
    """`26/3/14` is only written where years come first: in East Asia and in a few ISO countries."""
    return any(line.word in _ASIAN or line.separator in "年년" or line.separator == "-" for line in lines) or all(
        line.separator == "." and line.widths[0] == 2 and line.widths[1] == 1 for line in lines
    )


def _by_style(lines: Sequence[Line], *, english: bool) -> Order | None:
    """What the way of writing alone says."""
    if any(line.word in _ASIAN or line.separator in "年년" for line in lines):
        return "year first"
    if all(line.separator in ".-‐" for line in lines):
        return "day first"
    slashed = all(line.separator == "/" and line.widths[2] == 2 for line in lines)
    padded = any(
        number < 10 and width == 2
        for line in lines
        for number, width in zip(line.numbers, line.widths[:2], strict=False)
    )
    if not slashed or padded:
        return None
    words = {line.written_word for line in lines if line.word}
    if words:
        return "month first" if words <= {"AM", "PM"} else "day first"
    return "month first" if english else None


def _halves(lines: Iterable[Line]) -> tuple[str, str]:
    """Of two words at the clock that are in no list: (the one that comes first on a day, the one that comes later).

    A word that stands at 13 or later is a unit (`Uhr`, `ч.`), and so is one that stands alone.
    """
    lines = [line for line in lines if line.word and line.word not in _AM | _PM | _NOON]
    units = {line.word for line in lines if line.hour > 12}
    words = {line.word for line in lines} - units
    if len(words) != 2:
        return "", ""
    turns = Counter(
        (before.word, after.word)
        for before, after in pairwise(lines)
        if before.numbers == after.numbers and before.word != after.word and {before.word, after.word} <= words
    )
    best = turns.most_common(2)
    return best[0][0] if best and (len(best) == 1 or best[0][1] > best[1][1]) else ("", "")
