"""The one partitions definition: UTC days, from `PALACE_START` (default 2010-01-01) to today."""

from __future__ import annotations

import os
import warnings

import dagster as dg

from palace_pipeline.planner import Range

RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"

# Dagster says at every start that backfill policies are in beta; the version is pinned, people need not read it.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
SINGLE_RUN = dg.BackfillPolicy.single_run()
"""A range of days is one run, in the UI as on the command line."""

# From the environment, not from palace.toml: loading definitions reads no files (`palace` passes the setting on).
DAYS = dg.DailyPartitionsDefinition(os.environ.get("PALACE_START", "2010-01-01"), end_offset=1)


def span_of(context: dg.AssetExecutionContext) -> Range:
    """The days of a run: one partition, or a contiguous range of them."""
    window = context.partition_time_window
    days = (window.end - window.start).days
    first = window.start.date()
    return Range(first, Range(first, first).last.fromordinal(first.toordinal() + days - 1))


def range_tags(span: Range) -> dict[str, str]:
    """Run tags that make a run cover a range of days."""
    return {RANGE_START: span.first.isoformat(), RANGE_END: span.last.isoformat()}
