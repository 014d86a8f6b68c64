"""What every stage shares: its job, bounded batches, and the note of what it did."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from sqlite3 import Row

from palace_pipeline.planner import Range, Recipes
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger

Key = tuple[str, str]
Counts = dict[str, int]
BATCH_MESSAGES = 20_000
"""Messages handled at once: bounds the memory of a stage whatever the range (a long conversation comes alone)."""


@dataclass(frozen=True, slots=True)
class Job:
    """One call of a stage: the days, what counts as up to date, and whether to redo it all (`force`: a backfill)."""

    home: Home
    span: Range
    recipes: Recipes
    batch: str
    force: bool = False


def key_of(row: Row) -> Key:
    return (row["provider"], row["conversation_id"])


def day_of(row: Row) -> date:
    return date.fromisoformat(row["day"])


def gone(row: Row) -> bool:
    """True for a conversation that is to have no rows: purged, or contained in one that was resumed from it."""
    return row["superseded_by"] is not None or row["status"] == "purged"


def batches(rows: Sequence[Row], limit: int = BATCH_MESSAGES) -> Iterator[list[Row]]:
    """Rows in runs of at most `limit` messages together, at least one row each."""
    part: list[Row] = []
    size = 0
    for row in rows:
        if part and size + row["messages"] > limit:
            yield part
            part, size = [], 0
        part.append(row)
        size += row["messages"]
    if part:
        yield part


def logged(job: Job, ledger: Ledger, stage: str, started: float, counts: Counts) -> Counts:
    """Note what a stage did (for receipts and plots) and give the counts back."""
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    ledger.log_stage(job.batch, stage, finished, time.perf_counter() - started, dict(counts))
    return counts
