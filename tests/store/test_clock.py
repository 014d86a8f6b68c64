"""Columns of instants on a zone's clock, against Python's own conversion, instant by instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.store.clock import to_local, zone_changes

ZONES: list[tzinfo] = [
    UTC,
    timezone(timedelta(hours=5, minutes=45)),
    ZoneInfo("Europe/Berlin"),
    ZoneInfo("Asia/Shanghai"),
    ZoneInfo("Australia/Lord_Howe"),  # half an hour of summer time
    ZoneInfo("Pacific/Apia"),  # left out a whole day in 2011
    ZoneInfo("Africa/Casablanca"),  # changes around Ramadan
]
instants = st.datetimes(datetime(1970, 1, 1), datetime(2099, 12, 31)).map(lambda value: value.replace(tzinfo=UTC))


def converted(zone: tzinfo, values: list[datetime | None]) -> list[datetime | None]:
    return to_local(zone)(pl.Series(values, dtype=pl.Datetime("us", "UTC"))).to_list()


@given(st.sampled_from(ZONES), st.lists(st.one_of(st.none(), instants), max_size=20))
def test_a_column_says_what_python_says(zone: tzinfo, values: list[datetime | None]) -> None:
    expected = [None if value is None else value.astimezone(zone).replace(tzinfo=None) for value in values]
    assert converted(zone, values) == expected


@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_the_second_of_a_change_and_the_one_before(zone: tzinfo) -> None:
    edges = [change for change, _ in zone_changes(zone)[1:]]
    values = [value for edge in edges for value in (edge - timedelta(seconds=1), edge)]
    assert converted(zone, list(values)) == [value.astimezone(zone).replace(tzinfo=None) for value in values]


def test_times_outside_the_known_years_take_the_nearest_offset() -> None:
    zone = timezone(timedelta(hours=1))
    assert converted(zone, [datetime(1950, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)]) == [
        datetime(1950, 1, 1, 1),
        datetime(2200, 1, 1, 1),
    ]
