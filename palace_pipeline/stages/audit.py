"""Do the counts add up along the road? Ledger, lake, indexes, tables and pages of some days, side by side."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from palace_pipeline.planner import Range
from palace_pipeline.store.home import Home
from palace_pipeline.store.lake import month_of
from palace_pipeline.store.sql import query


def audit(home: Home, span: Range) -> dict[str, dict[str, int]]:
    """What differs on some days: see `differences`."""
    return differences(measured(home, span))


def differences(counts: dict[str, int]) -> dict[str, dict[str, int]]:
    """Name of a comparison -> the counts that should be equal. Empty if everything adds up."""
    equal = {
        "conversations": ("ledger conversations", "raw conversations", "clean conversations", "table conversations"),
        "messages": ("ledger messages", "raw messages", "clean messages + withheld", "table messages + withheld"),
        "drawers": ("filed drawers", "vectors", "table drawers", "published drawers"),
        "chunks": ("chunks", "published chunks"),
        "pages": ("ledger conversations", "pages + withheld"),
    }
    return {
        name: {place: counts[place] for place in places}
        for name, places in equal.items()
        if len({counts[place] for place in places}) > 1
    }


def measured(home: Home, span: Range) -> dict[str, int]:
    """All counts of some days, by name."""
    first, last = span.first.isoformat(), span.last.isoformat()
    with home.ledger() as ledger:
        live = ledger.rows(
            "SELECT messages, page, status FROM conversations WHERE day BETWEEN ? AND ? AND superseded_by IS NULL "
            "AND status != 'purged'",
            (first, last),
        )
        published = ledger.rows(
            "SELECT p.drawer_id FROM published p JOIN conversations c USING (provider, conversation_id) "
            "WHERE c.day BETWEEN ? AND ? AND p.hash IS NOT NULL",
            (first, last),
        )
    withheld = [row for row in live if row["status"] == "withheld"]
    held_back = sum(row["messages"] for row in withheld)
    lake = {
        table: _rows(home, table, span)
        for table in (
            *("raw/conversations", "raw/messages", "clean/conversations", "clean/messages"),
            *("clean/chunks", "clean/drawers", "clean/vectors"),
        )
    }
    drawer_ids = _ids(home, "clean/drawers", span)
    published_ids = {row["drawer_id"] for row in published}
    where = "WHERE day BETWEEN CAST(? AS DATE) AND CAST(? AS DATE)"
    tables = {
        "conversations": f"SELECT count(*) FROM conversations {where}",
        "messages": f"SELECT count(*) FROM messages {where}",
        "drawers": f"SELECT count(*) FROM drawers {where}",
    }
    table = {name: int(query(home.path, sql, [first, last])[1][0][0]) for name, sql in tables.items()}
    pages = [Path(row["page"]) for row in live if row["page"]]
    return {
        "ledger conversations": len(live),
        "ledger messages": sum(row["messages"] for row in live),
        "raw conversations": lake["raw/conversations"],
        "raw messages": lake["raw/messages"],
        "clean conversations": lake["clean/conversations"],
        "clean messages + withheld": lake["clean/messages"] + held_back,
        "chunks": lake["clean/chunks"],
        "published chunks": len(published_ids),
        "filed drawers": lake["clean/drawers"],
        "vectors": lake["clean/vectors"],
        "published drawers": len(drawer_ids & published_ids),
        "table conversations": table["conversations"],
        "table messages + withheld": table["messages"] + held_back,
        "table drawers": table["drawers"],
        "pages + withheld": sum((home.path / page).exists() for page in pages)
        + len(withheld)
        + sum(row["page"] == "" for row in live),
    }


def _frame(home: Home, table: str, span: Range, column: str) -> pl.DataFrame:
    months = [m for m in home.lake.months(table) if month_of(span.first) <= m <= month_of(span.last)]
    return home.lake.read(table, months, columns=["day", column]).filter(
        pl.col("day").is_between(span.first, span.last)
    )


def _rows(home: Home, table: str, span: Range) -> int:
    return _frame(home, table, span, "provider").height


def _ids(home: Home, table: str, span: Range) -> set[str]:
    return set(_frame(home, table, span, "drawer_id")["drawer_id"].to_list())
