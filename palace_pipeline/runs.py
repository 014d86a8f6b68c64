"""Runs whose process was killed: found by their mark (`store.alive`) and noted as failed, whoever looks first.

The sensors look at every tick, `palace ingest` and `palace backfill` before they work, `palace ui` before it starts.
That one also sees to sensors whose last tick lies in the future, since somebody has set the clock back: Dagster would wait
until then.
"""

from __future__ import annotations

import os
import sys
import time

import dagster as dg
from dagster._core.scheduler.instigation import InstigatorType, SensorInstigatorData

from palace_pipeline.settings import environment, load_settings
from palace_pipeline.store.alive import Life, forget, life_of
from palace_pipeline.store.home import Home

STARTED_BY, COMMAND_LINE = "palace/started_by", "command line"

KILLED = "the process of this run was killed; what it had finished is kept, and the next run goes on from there"
BEGUN = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
LAUNCHED = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING]
UNFINISHED = [dg.DagsterRunStatus.QUEUED, *LAUNCHED, *BEGUN]
START_SECONDS = 180.0
"""A process that has not begun its run after so long never will (Dagster's own limit, whose daemon may not be there)."""


def end_dead_runs(
    instance: dg.DagsterInstance, home: Home, *, now: float | None = None, start_seconds: float = START_SECONDS
) -> list[str]:
    """Note as failed (a cancelled one: as cancelled) what is no longer alive; returns the ids.

    Queued runs are left alone: the next daemon takes them. `start_seconds` 0 says that nothing can be starting.
    """
    now = time.time() if now is None else now
    ended: list[str] = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=[*LAUNCHED, *BEGUN])):
        run = record.dagster_run
        life = life_of(home.alive, run.run_id)
        # The mark is made when the step's process opens its resources, a moment after the run counts as started.
        since = record.start_time or record.create_timestamp.timestamp()
        # `abs`: one that lies ahead is from before the clock was set back.
        if life is Life.ALIVE or (life is Life.UNMARKED and abs(now - since) < start_seconds):
            continue
        _end(instance, home, run)
        ended.append(run.run_id)
    return ended


def end_runs_of(instance: dg.DagsterInstance, home: Home, tags: dict[str, str]) -> None:
    """Note runs with these tags as failed that cannot be alive, since the caller holds the lock which they need."""
    for run in instance.get_runs(dg.RunsFilter(tags=tags, statuses=[*LAUNCHED, *BEGUN])):
        _end(instance, home, run)


def _end(instance: dg.DagsterInstance, home: Home, run: dg.DagsterRun) -> None:
    fresh = instance.get_run_by_id(run.run_id)
    if fresh is not None and not fresh.is_finished:
        if fresh.status is dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(fresh, KILLED)
        else:
            instance.report_run_failed(fresh, KILLED)
    instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    forget(home.alive, run.run_id)


def forget_ticks_ahead(instance: dg.DagsterInstance, now: float | None = None) -> list[str]:
    """Let sensors look again whose last tick lies in the future; returns their names. What they remember stays."""
    now = time.time() if now is None else now
    found: list[str] = []
    for state in instance.all_instigator_state(instigator_type=InstigatorType.SENSOR):
        data = state.instigator_data
        if not isinstance(data, SensorInstigatorData):
            continue
        if max(data.last_tick_timestamp or 0.0, data.last_tick_start_timestamp or 0.0) > now:
            fresh = data._replace(last_tick_timestamp=None, last_tick_start_timestamp=None)
            instance.update_instigator_state(state.with_data(fresh))
            found.append(state.instigator_name)
    return found


def main(*, starting: bool = True) -> None:
    """What `palace ui` does before it starts its daemon (`starting`: anything at all), in a process of its own: the one that
    stays is to be a small one."""
    home = Home(load_settings())
    os.environ.update(environment(home.settings))
    with dg.DagsterInstance.from_config(str(home.dagster)) as instance:
        forget_ticks_ahead(instance)
        if starting:
            end_dead_runs(instance, home, start_seconds=0)


if __name__ == "__main__":
    main(starting="--clock" not in sys.argv)
