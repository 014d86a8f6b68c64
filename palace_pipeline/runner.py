"""Starting runs from the command line: in this process, on the home's own Dagster instance, so that the UI shows them.

Imported only when there is work: Dagster costs a second to load.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import dagster as dg

from palace_pipeline.definitions import defs
from palace_pipeline.partitions import range_tags
from palace_pipeline.planner import Range
from palace_pipeline.reasons import REASON_TAG, reason_for
from palace_pipeline.runs import COMMAND_LINE, STARTED_BY, end_dead_runs, end_runs_of
from palace_pipeline.settings import environment, load_settings
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.home import Home

DAILY_KEYS = sorted(set(defs.resolve_all_asset_keys()) - {dg.AssetKey("raw_exports"), dg.AssetKey("palace_stats")})
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class RunFailed(RuntimeError):
    """A run did not end well; the text says which step and why, without data."""


def read_exports(
    home: Home, paths: Sequence[str], batch: str, limit: int | None = None, *, only: Sequence[str] = ()
) -> None:
    """Run `raw_exports` for some paths (none: the configured folders), or for `only` some of their files. Raises RunFailed."""
    config = {"ops": {"raw_exports": {"config": {"paths": list(paths), "limit": limit, "only": list(only)}}}}
    reason = f"palace: {len(paths)} path(s) named" if paths else "palace: the configured folders"
    _execute(home, "read_exports", config, {"palace/receipt": batch, REASON_TAG: reason})


def build_days(home: Home, span: Range, batch: str, *, force: bool = False, last: bool = True) -> None:
    """Run the daily assets for a range of days, and with the `last` range the statistics. Raises RunFailed."""
    with home.ledger() as ledger:
        reason = "made again on request" if force else reason_for(ledger, recipes_of(home), span)
    tags = {**range_tags(span), "palace/receipt": batch, REASON_TAG: reason}
    tags |= {} if force else {"palace/stale_only": "true"}
    _execute(home, "build_days", {}, tags, None if last else DAILY_KEYS)


def refresh_stats(home: Home, batch: str) -> None:
    """Run `palace_stats` alone. Raises RunFailed."""
    _execute(
        home, "refresh_stats", {}, {"palace/receipt": batch, REASON_TAG: "files or skips have changed, no day has"}
    )


@contextmanager
def sigterm_kept() -> Generator[None]:
    """What SIGTERM does is the same afterwards.

    Dagster leaves it doing what SIGINT does: where a script started this by `&`, that is nothing, and nobody could end it
    between two runs.
    """
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():  # Dagster changes it there only
            signal.signal(signal.SIGTERM, before)


def _execute(
    home: Home, job: str, config: dict[str, Any], tags: dict[str, str], selection: list[dg.AssetKey] | None = None
) -> None:
    os.environ.update(environment(home.settings))
    with sigterm_kept():
        run = defs.resolve_job_def(job).execute_in_process(
            run_config={**config, **_QUIET},
            instance=_instance(str(home.dagster)),
            tags={**tags, STARTED_BY: COMMAND_LINE},
            asset_selection=selection,
            raise_on_error=False,
        )
    if not run.success:
        raise RunFailed(_reason(run))


@lru_cache(maxsize=1)
def _instance(folder: str) -> dg.DagsterInstance:
    """The instance in DAGSTER_HOME `folder`. Opening it checks its databases, which costs a third of a run: once is enough.

    The caller holds the home's lock, and every run of the command line holds it from beginning to end: those that still
    count as running were killed.
    """
    instance = dg.DagsterInstance.from_config(folder)
    home = Home(load_settings(Path(folder).parent))
    end_runs_of(instance, home, {STARTED_BY: COMMAND_LINE})
    end_dead_runs(instance, home)
    return instance


def clear_dead_runs(home: Home) -> None:
    """Note as failed what was killed (a run of the command line, of the UI): opening the instance does it."""
    os.environ.update(environment(home.settings))
    _instance(str(home.dagster))


def _reason(run: dg.ExecuteInProcessResult) -> str:
    for check in run.get_asset_check_evaluations():
        if check.blocking and not check.passed and check.severity == dg.AssetCheckSeverity.ERROR:
            return f"{check.asset_key.to_user_string()}, {check.check_name.replace('_', ' ')}: {check.description}"
    for event in run.all_events:
        if event.is_step_failure:
            error = event.step_failure_data.error
            told = event.step_failure_data.user_failure_data
            text = (told.description if told else None) or (error.cls_name if error else None) or "unknown error"
            return f"{event.step_key}: {text}"
    return "the run did not start"
