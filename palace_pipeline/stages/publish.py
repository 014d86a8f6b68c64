"""`palace_tables`: what people query in DuckDB, from the lake and the ledger."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from palace_pipeline.planner import due
from palace_pipeline.stages.common import Counts, Job, Key, day_of, gone, key_of, logged
from palace_pipeline.store import warehouse
from palace_pipeline.store.ledger import Ledger


def publish_tables(job: Job) -> Counts:
    """Bring `palace.duckdb` up to date for what has changed on the job's days. Returns rows per table."""
    started = time.perf_counter()
    home = job.home
    with home.ledger() as ledger:
        work = due(ledger, "tables", job.span, job.recipes, force=job.force)
        result = warehouse.publish(
            home.path,
            changed=[(*key_of(row), day_of(row)) for row in work if not gone(row)],
            removed=[key_of(row) for row in work if gone(row)],
            exports=export_rows(ledger),
            skips=skip_rows(ledger),
            pages=PagesOf(ledger),
            zone=home.settings.zone,
        )
        built: list[tuple[Key, str, str | None]] = [(key_of(row), row["made_from"], None) for row in work]
        ledger.mark_built("tables", built)
        return logged(job, ledger, "tables", started, {"conversations": len(work), **result.counts})


class PagesOf(Mapping[Key, str]):
    """Page paths (relative to the home) of every conversation, looked up in the ledger when asked for."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __getitem__(self, key: Key) -> str:
        row = self._ledger.one("SELECT page FROM conversations WHERE provider = ? AND conversation_id = ?", key)
        if row is None or row["page"] is None:
            raise KeyError(key)
        return row["page"]

    def __iter__(self) -> Iterator[Key]:
        for row in self._ledger.rows("SELECT provider, conversation_id FROM conversations WHERE page IS NOT NULL"):
            yield key_of(row)

    def __len__(self) -> int:
        row = self._ledger.one("SELECT count(*) AS n FROM conversations WHERE page IS NOT NULL")
        return row["n"] if row else 0


def export_rows(ledger: Ledger) -> list[dict[str, Any]]:
    """Rows of the table `exports`."""
    rows = ledger.rows(
        "SELECT path, sha256, provider, format, first_seen_at, size, conversations, messages, skipped, status, reason "
        "FROM files ORDER BY path"
    )
    return [dict(row) for row in rows]


def skip_rows(ledger: Ledger) -> list[dict[str, Any]]:
    """Rows of the table `skips`."""
    rows = ledger.rows(
        "SELECT path, provider, place, reason, expected, unit, sum(count) AS count FROM skips "
        "GROUP BY path, provider, place, reason, expected, unit ORDER BY path, place, reason"
    )
    return [{**dict(row), "expected": bool(row["expected"])} for row in rows]
