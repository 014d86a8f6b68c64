"""Charts of counts: every count is in one bar, and what is said of them is true."""

import base64
import re
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.charts import MOST_BARS, bars_chart, days_chart
from palace_pipeline.plots import png_bar
from tests.test_plots import decoded

PICTURE = re.compile(r"!\[[^\]]*\]\(data:image/png;base64,([A-Za-z0-9+/=]+)\)")


def pictures(chart: str) -> list[tuple[int, int, list[bytes]]]:
    return [decoded(base64.b64decode(found)) for found in PICTURE.findall(chart)]


def test_a_few_days_are_shown_day_by_day() -> None:
    chart = days_chart({date(2024, 5, 3): 2, date(2024, 5, 6): 4}, "messages")
    assert "messages by day" in chart
    assert "2024-05-03 to 2024-05-06: 6 on 2 day(s); most in one day: 4 (2024-05-06)" in chart
    ((width, height, lines),) = pictures(chart)
    heights = [sum(line[int((n + 0.5) * width / 4)] == 3 for line in lines) for n in range(4)]
    assert heights == [(height - 2) // 2, 0, 0, height - 2]


def test_years_are_shown_by_weeks_and_decades_by_months() -> None:
    assert "by week" in days_chart({date(2020, 1, 1): 1, date(2024, 1, 1): 1}, "messages")
    long = days_chart({date(2010, 1, 31): 3, date(2010, 1, 1): 1, date(2026, 11, 30): 2}, "messages")
    assert "most in one month: 4 (2010-01-01)" in long


@given(st.dictionaries(st.integers(0, 7000), st.integers(1, 9), min_size=1, max_size=40))
def test_no_day_vanishes(counts: dict[int, int]) -> None:
    days = {date(2010, 1, 1) + timedelta(days=n): count for n, count in counts.items()}
    chart = days_chart(days, "messages")
    assert f": {sum(days.values()):,} on {len(days):,} day(s)" in chart
    ((_, _, lines),) = pictures(chart)
    assert any(3 in line for line in lines)


def test_nothing_gives_no_chart() -> None:
    assert days_chart({}, "messages") == days_chart({date(2024, 1, 1): 0}, "messages") == bars_chart([], "a", "b") == ""


def test_rows_have_bars_in_proportion_and_the_rest_is_counted() -> None:
    chart = bars_chart([("b|c", 5), ("a", 10), ("none", 0)], "room", "drawers")
    assert [line.split(" | ")[0] for line in chart.splitlines()[2:]] == ["| a", "| b\\|c", "| none"]
    assert [max(line.count(3) for line in lines) for _, _, lines in pictures(chart)] == [240, 120, 0]
    many = bars_chart([(str(n), 1) for n in range(30)], "room", "drawers")
    assert "| 10 more | 10 |" in many
    assert MOST_BARS < 640  # a bar is at least a column of the picture wide


def test_a_lying_bar_is_as_long_as_its_share_and_never_invisible() -> None:
    assert decoded(png_bar(0.5, width=10, height=4))[2] == [bytes(10), *[bytes([3] * 5 + [0] * 5)] * 2, bytes(10)]
    assert decoded(png_bar(0.0001, width=10, height=3))[2][1].count(3) == 1
