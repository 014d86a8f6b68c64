"""From a Dagster step to a stage of the library and back: the job, the metadata, and errors without chat text."""

import sqlite3
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import polars as pl

from palace_pipeline.charts import bars_chart, days_chart
from palace_pipeline.metadata import FILES, TABLES, rows_per_day, table_schema
from palace_pipeline.partitions import span_of
from palace_pipeline.planner import Range
from palace_pipeline.settings import SettingsError, default_home
from palace_pipeline.stages.common import Counts, Job
from palace_pipeline.stages.names import write_receipt
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.files import DISK_FULL, Told, disk_is_full, not_writable
from palace_pipeline.store.home import Home
from palace_pipeline.store.lake import LakeDamaged, month_of
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.lock import HomeBusy
from palace_pipeline.store.quiet import DAMAGED, is_damage

# Dagster takes the annotation only without its type parameter when an asset also gives check results.
if TYPE_CHECKING:
    Materialized = dg.MaterializeResult[Any]
else:
    Materialized = dg.MaterializeResult

BATCH_TAG = "palace/receipt"
PLANNED_TAG = "palace/stale_only"
"""Set by the planner's runs, which do only what is stale. A run without it (a click in the UI) redoes its days."""

TELLING_ERRORS = (SettingsError, Told, HomeBusy, LakeDamaged)
"""Errors whose own words are made for people and hold no content."""


def batch_of(context: dg.AssetExecutionContext) -> str:
    """The batch that this run's work is noted under; runs of one `palace ingest` share it."""
    return context.run.tags.get(BATCH_TAG, context.run.run_id)


def run_stage(context: dg.AssetExecutionContext, home: Home, stage: Callable[[Job], Counts]) -> tuple[Range, Counts]:
    """Run a stage for the step's days under the write lock; returns the days and the stage's counts.

    The seconds of the stage (without waiting for the lock) are noted with the materialisation, so that Dagster's plots
    show them over time. Raises dg.Failure with a text that names what went wrong and never quotes data.
    """
    span = span_of(context)
    with told(), home.writing():
        job = Job(
            home=home,
            span=span,
            recipes=recipes_of(home),
            batch=batch_of(context),
            force=PLANNED_TAG not in context.run.tags,
        )
        started = time.perf_counter()
        counts = stage(job)
        seconds = time.perf_counter() - started
        with home.ledger() as ledger:
            write_receipt(home, ledger, job.batch)
    note_run(context, span, {"seconds of work": round(seconds, 3)})
    return span, counts


def note_run(context: dg.AssetExecutionContext, span: Range, metadata: Mapping[str, Any]) -> None:
    """Metadata of a run as a whole go to its last day, which is what Dagster shows of the asset.

    Handed over with the result they would be stored with each day of the range, and the pictures in them, too.
    """
    context.add_asset_metadata(metadata, partition_key=span.last.isoformat())


@contextmanager
def told() -> Generator[None]:
    """Errors of the block as dg.Failure: the event log must not show them in their own words, which may quote a chat."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised again in words that are safe to keep
        raise failure(error) from None


def failure(error: Exception) -> dg.Failure:
    """An error as Dagster may show it: its own words if they are made for people, else its type and place."""
    if isinstance(error, dg.Failure):
        return error
    if isinstance(error, TELLING_ERRORS):
        return dg.Failure(str(error), allow_retries=False)
    if disk_is_full(error, default_home()):
        return dg.Failure(DISK_FULL, allow_retries=False)
    if (words := not_writable(error, default_home())) is not None:
        return dg.Failure(words, allow_retries=False)
    if isinstance(error, sqlite3.Error) and is_damage(error):
        return dg.Failure(DAMAGED, allow_retries=False)
    places = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)[-6:]]
    return dg.Failure(
        f"{type(error).__name__} at {' < '.join(reversed(places))}. What was finished before is kept; the next run goes "
        "on from there. `palace doctor` checks the archive.",
        allow_retries=False,
    )


def result(
    context: dg.AssetExecutionContext,
    home: Home,
    asset: str,
    span: Range,
    counts: Counts,
    checks: Sequence[dg.AssetCheckResult] = (),
    charts: Mapping[str, str] | None = None,
) -> Materialized:
    """The materialisation of a table: rows of every day that has any, columns, counts of the run, pictures of them."""
    days = table_days(home, FILES[asset], span)
    metadata = {
        "dagster/column_schema": table_schema(TABLES[asset]),
        **by_day(context, days, _ROWS[asset]),
        **{name: dg.MetadataValue.md(chart) for name, chart in (charts or {}).items() if chart},
        **shown_counts(counts),
    }
    note_run(context, span, metadata)
    return dg.MaterializeResult(check_results=checks)


_ROWS = {
    "normalized_transcripts": "messages",
    "redacted_transcripts": "messages",
    "redacted_chunks": "chunks",
    "drawers": "drawers",
    "drawer_embeddings": "vectors",
}


def by_day(context: dg.AssetExecutionContext, days: Mapping[str, int], what: str) -> dict[str, Any]:
    """Metadata of rows by day (ISO): the count of each day goes to its partition, sum and picture to the run's."""
    for day, count in days.items():
        context.add_asset_metadata({"dagster/partition_row_count": count}, partition_key=day)
    chart = days_chart({date.fromisoformat(day): count for day, count in days.items()}, what)
    picture = {f"{what} by day": dg.MetadataValue.md(chart)} if len(days) > 1 else {}
    return {"dagster/row_count": sum(days.values()), **picture}


def shown_counts(counts: Counts) -> dict[str, int]:
    """Counts of a stage under names that are read."""
    return {name.replace("finding:", "masked: ").replace("_", " "): count for name, count in counts.items()}


def findings_chart(counts: Counts) -> str:
    """What a run has masked, by kind."""
    prefix = "finding:"
    kinds = [(name.removeprefix(prefix), count) for name, count in counts.items() if name.startswith(prefix)]
    return bars_chart(kinds, "kind", "places masked")


def rooms_chart(home: Home, span: Range) -> str:
    """The drawers of some days by room."""
    months = [m for m in home.lake.months("clean/drawers") if month_of(span.first) <= m <= month_of(span.last)]
    rows = home.lake.read("clean/drawers", months, columns=["day", "room"])
    counts = rows.filter(pl.col("day").is_between(span.first, span.last)).group_by("room").len()
    return bars_chart([(str(room), count) for room, count in counts.iter_rows()], "room", "drawers")


def seconds_chart(ledger: Ledger) -> str:
    """Seconds of work by stage over the last hundred notes of each, so that a stage that became slow is seen."""
    rows = ledger.rows(
        "SELECT stage, sum(seconds) AS seconds FROM (SELECT stage, seconds, row_number() OVER "
        "(PARTITION BY stage ORDER BY rowid DESC) AS age FROM stage_log) WHERE age <= 100 GROUP BY stage"
    )
    return bars_chart([(row["stage"], float(row["seconds"])) for row in rows], "stage (last 100 times)", "seconds")


def conversations_by_day(home: Home, span: Range) -> dict[str, int]:
    """Conversations that are shown, by day (ISO) inside a span."""
    with home.ledger() as ledger:
        rows = ledger.rows(
            "SELECT day, count(*) AS n FROM conversations WHERE day BETWEEN ? AND ? AND page IS NOT NULL "
            "AND superseded_by IS NULL AND status != 'purged' GROUP BY day ORDER BY day",
            (span.first.isoformat(), span.last.isoformat()),
        )
        return {row["day"]: row["n"] for row in rows}


def table_days(home: Home, table: str, span: Range) -> dict[str, int]:
    """Rows of a lake table by day (ISO) inside a span."""
    months = [m for m in home.lake.months(table) if month_of(span.first) <= m <= month_of(span.last)]
    days = home.lake.read(table, months, columns=["day"])
    return rows_per_day(days.filter(pl.col("day").is_between(span.first, span.last)))
