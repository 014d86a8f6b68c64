"""Which conversations an export is of: those that are named, that a search finds, of some days, of a room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from palace_pipeline.search.corpus import Days, counted, moved
from palace_pipeline.store.lake import Key, Lake, month_of
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.named import NotOneError, named_conversation, resumed_in

if TYPE_CHECKING:
    from palace_pipeline.search.engine import Searcher

_KEY = ["provider", "conversation_id"]
_NEAR = 0.5


@dataclass(slots=True, frozen=True)
class Only:
    """What conversations must be; days in the display zone, inclusive. One belongs to a room or wing if a drawer of it does, and
    to a day if somebody said something in it on that day."""

    provider: str | None = None
    room: str | None = None
    wing: str | None = None
    since: date | None = None
    until: date | None = None


@dataclass(slots=True, frozen=True)
class Chosen:
    """A conversation, the day it is filed under, and why it was chosen: what a search found in it."""

    day: date
    key: Key
    quotes: tuple[str, ...] = field(default=())


def named(ledger: Ledger, names: Iterable[str]) -> list[Chosen]:
    """The conversations that are named (`provider:id`, a page, the beginning of an id), each once. Raises NotOneError."""
    found: dict[Key, Chosen] = {}
    for name in names:
        row = resumed_in(ledger, named_conversation(ledger, name))
        key = (row["provider"], row["conversation_id"])
        if row["status"] == "purged":
            raise NotOneError(f"{key[0]}:{key[1]} was purged: nothing of it is kept")
        found.setdefault(key, Chosen(date.fromisoformat(row["day"]), key))
    return list(found.values())


def matching(home: Path, only: Only, zone: tzinfo) -> list[Chosen]:
    """All conversations that are as asked, by day. Month by month: what grows is the list of ids. Raises LakeDamaged."""
    lake, days = Lake(home / "lake"), Days(only.since, only.until, zone)
    chosen: list[Chosen] = []
    for month in lake.months("clean/conversations"):
        if only.until is not None and month > month_of(moved(only.until, 1)):
            break  # a conversation is filed under the day of its first message
        heads = lake.read("clean/conversations", [month], columns=[*_KEY, "day", "dated"])
        if only.provider is not None:
            heads = heads.filter(pl.col("provider") == only.provider)
        if only.room is not None or only.wing is not None:
            drawers = lake.read("clean/drawers", [month], columns=[*_KEY, "room", "wing"])
            for name, value in (("room", only.room), ("wing", only.wing)):
                drawers = drawers if value is None else drawers.filter(pl.col(name) == value)
            heads = heads.join(drawers, on=_KEY, how="semi")
        if days.limited and heads.height:
            heads = heads.join(_said_in(lake, month, heads, days), on=_KEY, how="semi")
        chosen += (Chosen(day, (provider, name)) for provider, name, day, _ in heads.iter_rows())
    return sorted(chosen, key=lambda one: (one.day, one.key))


def _said_in(lake: Lake, month: str, heads: pl.DataFrame, days: Days) -> pl.DataFrame:
    columns = ["day", *_KEY, "seq", "role", "branch_active", "hidden_reason", "created_at", "local_time"]
    rows = lake.read("clean/messages", [month], columns=columns).join(heads.drop("day"), on=_KEY, how="inner")
    return counted(rows).filter(pl.col("visible") & days.inside()).select(_KEY)


def searched(searcher: Searcher, query: str, only: Only, limit: int) -> list[Chosen]:
    """The conversations that speak of something, best first, at most `limit`.

    A search keeps nothing back, however far it is; what is given away must be meant. So there are none if its verdict is that
    this was never talked about, and only those whose best hit scores at least half as high as the best of all.
    """
    result = searcher.search(
        query,
        limit=4 * limit,
        provider=only.provider,
        room=only.room,
        wing=only.wing,
        since=only.since,
        until=only.until,
    )
    if result.verdict == "none" or not result.hits:
        return []
    bar = _NEAR * result.hits[0].score
    found = [one for one in result.by_conversation() if one.hits[0].score >= bar][:limit]
    days = _days_of(searcher, [(one.provider, one.conversation_id) for one in found])
    return [
        Chosen(days[key], key, tuple(hit.quote for hit in one.hits[:3] if hit.score >= bar))
        for one in found
        if (key := (one.provider, one.conversation_id)) in days
    ]


def _days_of(searcher: Searcher, keys: Sequence[Key]) -> dict[Key, date]:
    chunks = searcher.corpus().chunks.select("day", *_KEY).unique()
    wanted = set(keys)
    return {(p, c): day for day, p, c in chunks.iter_rows() if (p, c) in wanted}
