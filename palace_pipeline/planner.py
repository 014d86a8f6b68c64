"""What has work: compares, for every conversation, what the ledger knows with what each stage was built from.

The one planner: command line, sensors and the gap check all ask here. Nothing to do means no run. A stage is up to date
for a conversation if its `<stage>_in` is what it would be built from now: the identity of its input and the recipe of
the code and settings that do the work. So a changed reader, rule set, chunker, room or model marks just the days it
concerns, and an input that leaves the transcript as it was costs nothing downstream.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta

from palace_pipeline.model import short_hash
from palace_pipeline.store.lake import place_of
from palace_pipeline.store.ledger import Ledger

STAGES = ("normalized", "redacted", "chunks", "drawers", "pages", "vectors", "tables")
"""Stages in the order of the flow; the names are the ledger's columns."""

# A day inside a range costs a planned and a materialisation event for each daily asset; a further run costs its set-up.
# Some 0.012 s of CPU a day against 0.8 s a run (docs/performance.md), so days up to ten apart share a run.
MERGE_GAP_DAYS = 10

EXPECTED = {
    "normalized": "input || '|' || :merge",
    "redacted": "normalized_out || '|' || :redaction",
    "chunks": "redacted_out || '|' || :chunks",
    "drawers": "chunks_out || '|' || redacted_out || '|' || :rooms",
    "pages": "redacted_out || '|' || drawers_out || '|' || :pages",
    "vectors": "drawers_out || '|' || redacted_out || '|' || :vectors",
    "tables": "redacted_out || '|' || drawers_out || '|' || pages_in || '|' || :tables",
}


WORK = {
    "normalized": "merge",
    "redacted": "redaction",
    "chunks": "chunking",
    "drawers": "rooms or model",
    "pages": "page format",
    "vectors": "indexes or model",
    "tables": "tables",
}
"""What the recipe of a stage stands for, in words."""


@dataclass(frozen=True, slots=True)
class Recipes:
    """Versions of the work of each stage, settings that change its result included. Never contains a setting's value."""

    merge: str
    redaction: str
    chunks: str
    rooms: str
    pages: str
    vectors: str
    tables: str


@dataclass(frozen=True, slots=True)
class Range:
    """Days from `first` to `last`, both inclusive."""

    first: date
    last: date

    def days(self) -> list[date]:
        return [self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1)]

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last


EVER = Range(date.min, date.max)

_COLUMNS = "provider, conversation_id, day, dated, messages, superseded_by, status, built_day, page"
_STALE = " OR ".join(f"{stage}_in IS NOT ({EXPECTED[stage]})" for stage in STAGES)


def _stale(recipes: Recipes) -> str:
    """The condition of a conversation with work, the recipes written out: so that an index can be made of it."""
    values = {name: value.replace("'", "''") for name, value in asdict(recipes).items()}
    return re.sub(r":([a-z]+)\b", lambda found: f"'{values[found[1]]}'", _STALE)


def watch(ledger: Ledger, recipes: Recipes) -> None:
    """Have the ledger keep a list of the conversations with work under these recipes, as an index over just them.

    Without it `stale_days` compares all conversations there are; with it SQLite does that when one changes. Needs the
    write lock; costs nothing unless a recipe has changed.
    """
    name = f"stale_{short_hash(*asdict(recipes).values())}"
    known = [row["name"] for row in ledger.rows("SELECT name FROM sqlite_master WHERE name GLOB 'stale_*'")]
    if known == [name]:
        return
    with ledger.transaction():
        for old in known:
            ledger.write(f"DROP INDEX {old}")
        ledger.write(f"CREATE INDEX {name} ON conversations (day) WHERE ({_stale(recipes)})")


def stale_days(ledger: Ledger, recipes: Recipes) -> list[date]:
    """Days with work, in order: those with a conversation that some stage has not built, and days that lost one."""
    rows = ledger.rows(
        f"SELECT DISTINCT day FROM conversations WHERE ({_stale(recipes)}) UNION SELECT day FROM left_days ORDER BY day"
    )
    return [date.fromisoformat(row["day"]) for row in rows]


def work_of(ledger: Ledger, span: Range, recipes: Recipes) -> str:
    """Identity of the work that some days have now: the same until a recipe, the source or what is built changes."""
    values = {**asdict(recipes), "first": span.first.isoformat(), "last": span.last.isoformat()}
    rows = ledger.rows(
        f"SELECT provider, conversation_id, input, {', '.join(f'{stage}_in' for stage in STAGES)} FROM conversations "
        f"WHERE day BETWEEN :first AND :last AND ({_stale(recipes)}) ORDER BY provider, conversation_id",
        values,  # pyright: ignore[reportArgumentType]
    )
    left = ledger.rows("SELECT day FROM left_days WHERE day BETWEEN :first AND :last ORDER BY day", values)  # pyright: ignore[reportArgumentType]
    return short_hash(repr(span), repr(recipes), *(repr(tuple(row)) for row in (*rows, *left)))


def why_stale(stage: str, made_from: str | None, wanted: str | None) -> str:
    """Why a stage has work for a conversation: `made_from` is what it was built from, `wanted` what it would be now."""
    if made_from is None:
        return "not made yet"
    if wanted is not None and made_from.rpartition("|")[0] == wanted.rpartition("|")[0]:
        return f"{WORK[stage]} has changed"
    return "new or changed at the source" if stage == "normalized" else "what it is made of has changed"


def ranges(days: Iterable[date], gap: int = MERGE_GAP_DAYS) -> list[Range]:
    """Few contiguous ranges that hold all `days`; days up to `gap` apart come into one range."""
    out: list[Range] = []
    for day in sorted(set(days)):
        if out and (day - out[-1].last).days <= gap:
            out[-1] = Range(out[-1].first, day)
        else:
            out.append(Range(day, day))
    return out


def plan(ledger: Ledger, recipes: Recipes) -> list[Range]:
    """The ranges to run now; empty if there is nothing to do."""
    return ranges(stale_days(ledger, recipes))


def due(ledger: Ledger, stage: str, span: Range, recipes: Recipes, *, force: bool = False) -> list[sqlite3.Row]:
    """Conversations of some days that a stage has to (re)build, by day; `made_from` is what to note afterwards.

    `force` takes all conversations of the days, whether stale or not: a backfill.
    """
    condition = "1" if force else f"{stage}_in IS NOT ({EXPECTED[stage]})"
    return ledger.rows(
        f"SELECT {_COLUMNS}, {EXPECTED[stage]} AS made_from FROM conversations "
        f"WHERE day BETWEEN :first AND :last AND ({condition}) AND ({EXPECTED[stage]}) IS NOT NULL "
        "ORDER BY day, provider, conversation_id",
        {**asdict(recipes), "first": span.first.isoformat(), "last": span.last.isoformat()},  # pyright: ignore[reportArgumentType]
    )


def clear_left_days(ledger: Ledger, span: Range) -> None:
    """The partitions of these days have been shown anew."""
    ledger.write("DELETE FROM left_days WHERE day BETWEEN ? AND ?", (span.first.isoformat(), span.last.isoformat()))


def split_by_month(rows: Sequence[sqlite3.Row]) -> list[tuple[str, list[sqlite3.Row]]]:
    """Conversations grouped by the month that they lie in, in order; inside a month those of one file lie together."""
    out: dict[str, list[sqlite3.Row]] = {}
    for row in rows:
        out.setdefault(row["day"][:7], []).append(row)
    return [
        (month, sorted(of_month, key=lambda row: place_of((row["provider"], row["conversation_id"]))))
        for month, of_month in sorted(out.items())
    ]
