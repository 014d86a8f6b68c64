"""Days on the command line: as people say them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.cli.options import a_day_as_said, days_as_said
from palace_pipeline.cli.talk import UsageError

TODAY = date(2024, 3, 1)


@pytest.mark.parametrize(
    ("said", "first", "last"),
    [
        ("2024-05-31", date(2024, 5, 31), date(2024, 5, 31)),
        ("2024-5-3", date(2024, 5, 3), date(2024, 5, 3)),
        ("2024-02", date(2024, 2, 1), date(2024, 2, 29)),
        ("2023-2", date(2023, 2, 1), date(2023, 2, 28)),
        ("2024", date(2024, 1, 1), date(2024, 12, 31)),
        ("9999-12", date(9999, 12, 1), date(9999, 12, 31)),
        ("today", TODAY, TODAY),
        ("今天", TODAY, TODAY),
        (" Yesterday ", date(2024, 2, 29), date(2024, 2, 29)),
        ("昨天", date(2024, 2, 29), date(2024, 2, 29)),
    ],
)
def test_a_day_a_month_a_year(said: str, first: date, last: date) -> None:
    assert days_as_said(said, TODAY) == (first, last)


@pytest.mark.parametrize(
    "said", ["", "2024-13", "2023-02-29", "0000", "24", "2024-1-1-1", "2024-", "١٢٣٤", "last week"]
)
def test_what_is_no_day(said: str) -> None:
    with pytest.raises(UsageError, match="for example 2024-05-31"):
        days_as_said(said, TODAY)


def test_a_month_is_no_day() -> None:
    with pytest.raises(UsageError, match="is no day"):
        a_day_as_said("2024-05", TODAY)


@given(st.dates())
def test_every_date_is_itself(day: date) -> None:
    assert days_as_said(day.isoformat(), TODAY) == (day, day)
    first, last = days_as_said(f"{day:%Y-%m}" if day.year > 999 else f"{day.year:04}-{day.month}", TODAY)
    assert first.day == 1
    assert first <= day <= last
