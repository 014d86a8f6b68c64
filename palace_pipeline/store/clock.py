"""UTC instants -> wall-clock times of a zone, for whole columns and any `tzinfo` (a named zone or an offset)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

import polars as pl

_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(2100, 1, 1, tzinfo=UTC)
_STEP = timedelta(days=7)


@lru_cache(maxsize=8)
def zone_changes(zone: tzinfo) -> list[tuple[datetime, timedelta]]:
    """The instants (UTC, to the second) from which an offset to UTC holds, the first one being 1970.

    Looked for week by week: a zone that went forth and back within one week would be missed.
    """
    changes = [(_FIRST, _offset(zone, _FIRST))]
    week = _FIRST
    while week < _LAST:
        following = week + _STEP
        if _offset(zone, following) != changes[-1][1]:
            changes.append((_change_between(zone, week, following), _offset(zone, following)))
        week = following
    return changes


def _offset(zone: tzinfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def _change_between(zone: tzinfo, before: datetime, after: datetime) -> datetime:
    old = _offset(zone, before)
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=int((after - before).total_seconds()) // 2)
        before, after = (middle, after) if _offset(zone, middle) == old else (before, middle)
    return after


def to_local(zone: tzinfo) -> Callable[[pl.Series], pl.Series]:
    """A function from a column of UTC instants to one of times without a zone (microseconds; null stays null)."""
    changes = zone_changes(zone)
    since = pl.Series([change for change, _ in changes], dtype=pl.Datetime("us", "UTC"))
    offsets = pl.Series([offset for _, offset in changes], dtype=pl.Duration("us"))

    def convert(instants: pl.Series) -> pl.Series:
        index = since.search_sorted(instants, side="right").cast(pl.Int64)
        index = pl.select(pl.when(index > 0).then(index - 1).otherwise(0)).to_series()
        return (instants + offsets.gather(index)).dt.replace_time_zone(None)

    return convert
