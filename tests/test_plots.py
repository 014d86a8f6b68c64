"""Plots by eye (written out) and by what must hold for any rows."""

from __future__ import annotations

import struct
import zlib
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.plots import bars, calendar, fitted, hour_of_week, png_bars, png_hours, sparkline, text_width

amounts = st.one_of(st.none(), st.integers(0, 10**9), st.floats(0, 1e9))


def test_bars_by_eye() -> None:
    rows = [("2024-01", 80), ("2024-02", 5), ("2024-03", 0), ("2024-04", None)]
    assert bars(rows, width=24) == "\n".join(
        [
            "2024-01 █████████████ 80",
            "2024-02 ▊              5",
            "2024-03                0",
            "2024-04                ?",
        ]
    )
    assert bars([]) == ""
    assert bars([("cost", 0.5), ("more", 1234.0)], width=24).splitlines()[1].endswith(" 1,234.00")


def test_wide_labels_line_up() -> None:
    lines = bars([("工作", 2), ("health", 1)], width=30).splitlines()
    assert lines[0].startswith("工作   █")
    assert lines[1].startswith("health █")
    assert {text_width(line) for line in lines} == {30}


def test_text_width_and_cut() -> None:
    assert [text_width(t) for t in ("", "ab", "向量", "e\u0301", "한국", "a\u200db")] == [0, 2, 4, 1, 4, 2]
    assert fitted("abcdef", 4) == "abc…"
    assert fitted("向量数据", 4) == "向… "
    assert fitted("a", 3) == "a  "


@given(st.lists(st.tuples(st.text(max_size=40).filter(str.isprintable), amounts), min_size=1), st.integers(1, 200))
def test_bars_keep_their_width_and_show_all_that_is_there(rows: list[tuple[str, float | None]], width: int) -> None:
    lines = bars(rows, width).split("\n")
    assert len(lines) == len(rows)
    for line, (_, value) in zip(lines, rows, strict=True):
        if value is not None and value > 0:
            assert any(block in line for block in "▏▎▍▌▋▊▉█")
    if all(value is None or value < 10**6 for _, value in rows):
        assert all(text_width(line) == max(width, 24) for line in lines)


def test_sparkline_by_eye() -> None:
    assert sparkline([0, 1, 4, 8, None]) == " ▁▄█·"
    assert sparkline([]) == ""
    assert sparkline([None, 0]) == "· "


@given(st.lists(amounts))
def test_a_sparkline_has_one_character_a_value(values: list[float | None]) -> None:
    line = sparkline(values)
    assert len(line) == len(values)
    assert [c == "·" for c in line] == [value is None for value in values]
    assert [c == " " for c in line] == [value is not None and value <= 0 for value in values]


def test_hour_of_week_by_eye() -> None:
    lines = hour_of_week([(1, 0, 4), (1, 1, 1), (7, 23, 3), (3, 12, 0)]).split("\n")
    assert lines[0] == "     0     3     6     9     12    15    18    21"
    assert lines[1] == "Mon  ██░░"
    assert lines[3] == "Wed"
    assert lines[7] == "Sun  " + " " * 46 + "▓▓"
    assert lines[8] == "     ░≤1  ▒≤2  ▓≤3  █≤4"
    assert len(hour_of_week([]).split("\n")) == 8


def test_calendar_by_eye() -> None:
    # 2024 begins on a Monday and ends on a Tuesday in its 53rd week.
    lines = calendar({date(2024, 1, 1): 1, date(2024, 12, 31): 2, date(2023, 12, 31): 99}, 2024).split("\n")
    assert lines[0].startswith("2024 Jan Feb Mar  Apr")
    assert lines[1] == "Mon  ▒"
    assert lines[2] == "Tue  " + " " * 52 + "█"
    assert lines[7] == "Sun"


@pytest.mark.parametrize(
    ("largest", "scale"),
    [
        (1, "█≤1"),
        (2, "▒≤1  █≤2"),
        (3, "▒≤1  ▓≤2  █≤3"),
        (5, "░≤1  ▒≤2  ▓≤3  █≤5"),
        (2.5, "░≤0.62  ▒≤1.25  ▓≤1.88  █≤2.50"),
    ],
)
def test_a_scale_of_counts_has_whole_numbers_that_a_cell_can_have(largest: float, scale: str) -> None:
    assert hour_of_week([(1, 0, largest)]).split("\n")[8].strip() == scale


@pytest.mark.parametrize("year", [1, 9999])
def test_the_first_and_the_last_year_can_be_drawn(year: int) -> None:
    lines = calendar({date(year, 1, 1): 4, date(year, 12, 31): 4}, year).split("\n")
    assert sum(line.count("█") for line in lines[1:8]) == 2


def decoded(png: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and lines of a palette PNG, with all its checksums verified."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    place = 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        kind, data = png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        assert struct.unpack(">I", png[place + 8 + length : place + 12 + length])[0] == zlib.crc32(kind + data)
        chunks[kind] = data
        place += 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colour, rest) == (8, 3, [0, 0, 0])
    raw = zlib.decompress(chunks[b"IDAT"])
    lines = [raw[n * (width + 1) : (n + 1) * (width + 1)] for n in range(height)]
    assert all(line[0] == 0 for line in lines)
    assert max(raw) < len(chunks[b"PLTE"]) // 3
    return width, height, [line[1:] for line in lines]


def test_png_bars_are_as_tall_as_their_values() -> None:
    width, height, lines = decoded(png_bars([0, 1, 2, None], width=40, height=22))
    assert (width, height) == (40, 22)
    assert [sum(line[x] == 3 for line in lines) for x in (4, 14, 24, 34)] == [0, 10, 20, 0]
    assert set(lines[-1]) == {5}
    assert decoded(png_bars([]))[:2] == (640, 120)
    many = decoded(png_bars([1] * 2000, width=100, height=10))
    assert many[2][5] == bytes([3]) * 100


def test_png_hours_shade_their_cells() -> None:
    width, height, lines = decoded(png_hours([(1, 0, 1), (7, 23, 4)], cell=5))
    assert (width, height) == (120, 35)
    assert (lines[0][0], lines[31][117], lines[15][60]) == (1, 4, 0)
