"""The wings, halls and rooms of an archive as they stand in `palace.duckdb`: how much is in each, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from palace_pipeline.rooms.classifier import described
from palace_pipeline.rooms.examples import definitions
from palace_pipeline.settings import Settings
from palace_pipeline.store.sql import query
from palace_pipeline.store.stats import VIEWS

Kind = Literal["room", "hall", "wing"]
KINDS: tuple[Kind, ...] = ("room", "hall", "wing")
MONTHS = 12
"""Months of a trend, up to the newest one of the archive."""
CROWDED = 0.6
"""A room that takes a larger share of all drawers helps nobody to find anything."""
FEW = 5
"""In an archive of fewer drawers a large share means nothing."""

# Its own words, not its name: tables that an older version has made can be shown too.
_FILED = next(view.sql for view in VIEWS if view.name == "v_filed_by_month")


@dataclass(frozen=True, slots=True)
class Place:
    """A room, hall or wing. `share`: of all drawers, 0 to 1. `by_month`: drawers in each of `Overview.months`.

    `own`: a room of `palace.toml`. `known`: false for a room that drawers are in and no settings name any more.
    """

    name: str
    drawers: int
    conversations: int
    share: float
    by_month: tuple[int, ...]
    description: str | None = None
    own: bool = False
    known: bool = True


@dataclass(frozen=True, slots=True)
class Overview:
    """Places by number of drawers, then name; rooms and halls also if they are empty. `months`: as `YYYY-MM`."""

    drawers: int
    conversations: int
    months: tuple[str, ...]
    places: dict[Kind, tuple[Place, ...]]

    @property
    def empty(self) -> list[Place]:
        """The rooms of `palace.toml` that nothing is in."""
        return [room for room in self.places["room"] if room.own and not room.drawers]

    @property
    def crowded(self) -> list[Place]:
        """Rooms that take more than `CROWDED` of the drawers."""
        return [room for room in self.places["room"] if self.drawers >= FEW and room.share > CROWDED]


def overview(home: Path, settings: Settings) -> Overview:
    """Read it. Raises NotBuiltError, QueryError (`store.sql`)."""
    drawers, conversations = _rows(home, "SELECT count(*), count(DISTINCT (provider, conversation_id)) FROM drawers")[0]
    newest = _rows(home, f"SELECT max(month) FROM ({_FILED})")[0][0]
    months = months_to(newest.year, newest.month) if newest else ()
    known = {"room": described(settings), "hall": {hall.name: hall.description for hall in definitions("hall")}}
    names = {room.name for room in settings.rooms}
    places: dict[Kind, tuple[Place, ...]] = {}
    for kind in KINDS:
        counts: dict[str, tuple[int, int]] = {
            name: (filed, talks)
            for name, filed, talks in _rows(
                home,
                f"SELECT {kind}, count(*), count(DISTINCT (provider, conversation_id)) FROM drawers "
                f"WHERE {kind} IS NOT NULL GROUP BY 1",
            )
        }
        by_month: dict[str, dict[str, int]] = {}
        for name, month, filed in _rows(
            home,
            f"SELECT {kind}, strftime(month, '%Y-%m'), sum(drawers)::BIGINT FROM ({_FILED}) "
            f"WHERE month IS NOT NULL AND {kind} IS NOT NULL GROUP BY ALL",
        ):
            by_month.setdefault(name, {})[month] = filed
        of_kind = known.get(kind)
        found = [
            Place(
                name,
                *counts.get(name, (0, 0)),
                share=counts[name][0] / drawers if name in counts and drawers else 0.0,
                by_month=tuple(by_month.get(name, {}).get(month, 0) for month in months),
                description=of_kind.get(name) if of_kind else None,
                own=kind == "room" and name in names,
                known=of_kind is None or name in of_kind,
            )
            for name in {**(of_kind or {}), **counts}
        ]
        places[kind] = tuple(sorted(found, key=lambda place: (-place.drawers, place.name)))
    return Overview(drawers, conversations, months, places)


def months_to(year: int, month: int, count: int = MONTHS) -> tuple[str, ...]:
    """The last `count` months up to one, as `YYYY-MM`."""
    last = year * 12 + month - 1
    return tuple(f"{number // 12:04}-{number % 12 + 1:02}" for number in range(max(last - count + 1, 12), last + 1))


def _rows(home: Path, sql: str) -> list[tuple[Any, ...]]:
    return query(home, sql)[1]
