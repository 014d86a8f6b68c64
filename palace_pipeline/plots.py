"""Small plots from rows: Unicode text for a terminal, PNG bytes (without a plotting library) for Dagster's pages.

Pure functions. `None` is unknown and shown as such, never as 0; anything above 0 is always visible.
"""

from __future__ import annotations

import struct
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from datetime import date

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_STEPS = "▁▂▃▄▅▆▇█"
_SHADES = " ░▒▓█"
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def text_width(text: str) -> int:
    """Terminal columns of a text: two for East Asian wide characters, none for marks and format characters."""
    return sum(
        0
        if unicodedata.category(c) in ("Mn", "Me", "Cf", "Cc")
        else 2
        if unicodedata.east_asian_width(c) in "WF"
        else 1
        for c in text
    )


def fitted(text: str, width: int) -> str:
    """A text in exactly `width` columns: padded, or cut with an ellipsis."""
    if text_width(text) > width:
        while text and text_width(text) > width - 1:
            text = text[:-1]
        text += "…" if width > 0 else ""
    return text + " " * (width - text_width(text))


def bars(rows: Sequence[tuple[str, float | None]], width: int = 80) -> str:
    """One line a row: label, bar, number. Lines are at most `width` columns (at least 24 are used)."""
    if not rows:
        return ""
    width = max(width, 24)
    numbers = ["?" if value is None else _number(value) for _, value in rows]
    number_width = max(map(len, numbers))
    label_width = min(max(text_width(label) for label, _ in rows), width // 3)
    room = max(width - label_width - number_width - 2, 1)
    largest = max((value for _, value in rows if value is not None), default=0)
    lines = [
        f"{fitted(label, label_width)} {fitted(_bar(value or 0, largest, room), room)} {number:>{number_width}}"
        for (label, value), number in zip(rows, numbers, strict=True)
    ]
    return "\n".join(lines)


def _bar(value: float, largest: float, room: int) -> str:
    if value <= 0:
        return ""
    eighths = max(round(value / largest * room * 8), 1)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def sparkline(values: Sequence[float | None]) -> str:
    """One character a value: a space for nothing, `·` for unknown, eight heights for the rest."""
    largest = max((value for value in values if value is not None), default=0)
    return "".join(
        "·" if value is None else " " if value <= 0 else _STEPS[_level(value, largest, len(_STEPS)) - 1]
        for value in values
    )


def _level(value: float, largest: float, levels: int) -> int:
    """0 for nothing, else 1 to `levels` in equal steps up to the largest."""
    return 0 if value <= 0 else max(1, -int(-value * levels // largest))


def hour_of_week(rows: Sequence[tuple[int, int, float]]) -> str:
    """Heat map of (weekday 1 = Monday, hour, value): a line a day, a cell an hour, with the scale below."""
    values = {(weekday, hour): value for weekday, hour, value in rows}
    largest = max(values.values(), default=0)
    lines = ["     " + "".join(f"{hour:<6}" for hour in range(0, 24, 3)).rstrip()]
    for number, name in enumerate(_WEEKDAYS, start=1):
        cells = (_SHADES[_level(values.get((number, hour), 0), largest, 4)] * 2 for hour in range(24))
        lines.append(f"{name}  {''.join(cells)}".rstrip())
    return "\n".join([*lines, *_scale(largest)])


def calendar(days: Mapping[date, float], year: int) -> str:
    """Heat map of a year: a line a weekday, a column a week (from Monday), with the scale below."""
    first, last = date(year, 1, 1), date(year, 12, 31)
    own = {day: value for day, value in days.items() if day.year == year}
    largest = max(own.values(), default=0)
    # Numbers of days: the last week of the calendar's last year ends behind it.
    start = first.toordinal() - first.weekday()
    weeks = range(start, last.toordinal() + 1, 7)
    by_number = {day.toordinal(): value for day, value in own.items()}
    head = [" "] * (len(weeks) + 3)
    for month, name in enumerate(_MONTHS, start=1):
        column = (date(year, month, 1).toordinal() - start) // 7
        head[column : column + 3] = name
    lines = [f"{year} {''.join(head)}".rstrip()]
    for number, name in enumerate(_WEEKDAYS):
        cells = (_SHADES[_level(by_number.get(week + number, 0), largest, 4)] for week in weeks)
        lines.append(f"{name}  {''.join(cells)}".rstrip())
    return "\n".join([*lines, *_scale(largest)])


def _scale(largest: float) -> list[str]:
    """What the four shades stand for (the upper end of each): whole numbers where whole things are counted, and then no
    shade that none of them can have."""
    if largest <= 0:
        return []
    ends = {shade: largest * n / 4 for n, shade in enumerate(_SHADES[1:], start=1)}
    if float(largest).is_integer():
        ends = {shade: float(int(end)) for shade, end in ends.items()}
        ends = {shade: end for shade, end in ends.items() if _SHADES[_level(end, largest, 4)] == shade}
    return ["     " + "  ".join(f"{shade}≤{_number_of(end)}" for shade, end in ends.items())]


def _number_of(end: float) -> str:
    return f"{end:,.0f}" if end.is_integer() else f"{end:.2f}"


# --- PNG --------------------------------------------------------------------------------------------------------------

_PALETTE = ((255, 255, 255), (219, 234, 254), (147, 197, 253), (59, 130, 246), (30, 64, 175), (148, 163, 184))
_AXIS = 5


def png_bars(values: Sequence[float | None], width: int = 640, height: int = 120) -> bytes:
    """A PNG of one bar a value over a base line, without labels: it goes beside a table that has them."""
    pixels = [bytearray(width) for _ in range(height)]
    largest = max((value for value in values if value is not None), default=0)
    for number, value in enumerate(values):
        # More values than columns share them: none of them may vanish between two columns.
        left = number * width // len(values)
        right = max((number + 1) * width // len(values), left + 1)
        gap = 1 if right - left > 2 else 0
        tall = max(round((value or 0) / largest * (height - 2)), 1) if value and value > 0 else 0
        for line in pixels[height - 1 - tall : height - 1]:
            line[left : right - gap] = bytes([3]) * (right - gap - left)
    pixels[-1][:] = bytes([_AXIS]) * width
    return _png(pixels)


def png_bar(share: float, width: int = 240, height: int = 14) -> bytes:
    """A PNG of one lying bar: `share` (0 to 1) of the width; anything above 0 is visible."""
    long = max(round(min(share, 1) * width), 1) if share > 0 else 0
    line = bytes([3]) * long + bytes([0]) * (width - long)
    return _png([bytearray(width), *(bytearray(line) for _ in range(height - 2)), bytearray(width)])


def png_hours(rows: Sequence[tuple[int, int, float]], cell: int = 20) -> bytes:
    """A PNG heat map of (weekday 1 = Monday, hour, value): 24 cells wide, 7 high, Monday first."""
    values = {(weekday, hour): value for weekday, hour, value in rows}
    largest = max(values.values(), default=0)
    pixels: list[bytearray] = []
    for weekday in range(1, 8):
        shades = (_level(values.get((weekday, hour), 0), largest, 4) for hour in range(24))
        line = b"".join(bytes([shade]) * (cell - 1) + b"\0" for shade in shades)
        pixels += [bytearray(line) for _ in range(cell - 1)] + [bytearray(24 * cell)]
    return _png(pixels)


def _png(lines: Sequence[bytearray]) -> bytes:
    """Palette indices as a PNG (ISO/IEC 15948): signature, IHDR, PLTE, IDAT with filter 0, IEND."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", len(lines[0]), len(lines), 8, 3, 0, 0, 0)
    palette = bytes(value for colour in _PALETTE for value in colour)
    body = zlib.compress(b"".join(b"\0" + bytes(line) for line in lines), 9)
    parts = (chunk(b"IHDR", head), chunk(b"PLTE", palette), chunk(b"IDAT", body), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
