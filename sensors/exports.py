"""Watching: new files in the export folders, and days that have work."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from assets.jobs import build_days, read_exports, refresh_stats
from assets.running import BATCH_TAG, PLANNED_TAG
from palace_pipeline.exports.scan import Known, Missing, Seen, changes, fingerprint, has_settled, scan
from palace_pipeline.ingest.purged import KnownFiles
from palace_pipeline.ingest.recipes import current_in
from palace_pipeline.model import short_hash
from palace_pipeline.partitions import range_tags
from palace_pipeline.planner import Range, plan
from palace_pipeline.reasons import REASON_TAG, reason_for
from palace_pipeline.resources import PalaceResource
from palace_pipeline.runs import end_dead_runs
from palace_pipeline.stages.missing import mark_missing
from palace_pipeline.stages.publish import exports_waiting
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.withheld import try_again
from palace_pipeline.store.home import Home
from palace_pipeline.store.lock import HomeBusy

IN_FLIGHT = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
FIRST_RETRY_SECONDS = 60
LAST_RETRY_SECONDS = 6 * 3600


@dataclass(frozen=True, slots=True)
class Request:
    """A run to ask for, or the reason why not; `cursor` is remembered until the next look."""

    cursor: str
    run_key: str | None = None
    reason: str | None = None


def request_for(
    found: Sequence[Seen | Missing],
    known: Mapping[str, Known],
    cursor: str | None,
    now: float,
    is_current: Callable[[Known], bool] = lambda _known: True,
) -> Request:
    """What a look at the folders leads to. Pure: everything it knows is handed in.

    A set of settled new files is asked for once; if it is still new after its run (the run failed), again with a
    growing pause, so that a file that always fails costs little. A folder that is not there is a reason, not an empty
    folder.
    """
    missing = [item.path for item in found if isinstance(item, Missing)]
    fresh = changes(found, known, is_current)
    settled = [seen for seen in fresh if has_settled(seen, now)]
    if not settled:
        waiting = f"{len(fresh)} file(s) are still being written" if fresh else "nothing new"
        gone = f"; not there: {', '.join(missing)}" if missing else ""
        return Request(cursor or "", reason=waiting + gone)
    return retried(fingerprint(settled), f"the same {len(settled)} file(s)", cursor, now)


def retried(key: str, what: str, cursor: str | None, now: float) -> Request:
    """Ask for work once; for the same work again only after a pause that grows with every failure."""
    state = json.loads(cursor) if cursor else {}
    attempt = state.get("attempt", 0) + 1 if state.get("key") == key else 1
    if attempt > 1 and now < state.get("not_before", 0):
        return Request(cursor or "", reason=f"{what} failed {attempt - 1} time(s); waiting")
    pause = min(FIRST_RETRY_SECONDS * 2 ** (attempt - 1), LAST_RETRY_SECONDS)
    state = {"key": key, "attempt": attempt, "not_before": round(now + pause)}
    return Request(json.dumps(state), run_key=f"{key}-{attempt}")


def busy(context: dg.SensorEvaluationContext, job: str) -> bool:
    """True while a run of the job that the daemon started is queued or running.

    Runs of the command line do not count: the home's lock keeps them apart from ours, and one that was killed would
    count as running until somebody cleans up.
    """
    runs = context.instance.get_runs(dg.RunsFilter(job_name=job, statuses=IN_FLIGHT))
    return any("palace/started_by" not in run.tags for run in runs)


@dg.sensor(
    job=read_exports,
    minimum_interval_seconds=20,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Looks at the export folders; a new or changed file that has come to rest starts `read_exports`.",
)
def export_folders(context: dg.SensorEvaluationContext, palace: PalaceResource) -> dg.SensorResult | dg.SkipReason:
    """Watch the folders of `palace.toml`."""
    home: Home = palace.open()
    end_dead_runs(context.instance, home)
    if busy(context, read_exports.name):
        return dg.SkipReason("the last reading is still running")
    known: Mapping[str, Known] = {}
    if home.exists:
        with home.ledger() as ledger:
            known = KnownFiles(home, ledger)
    current = current_in(home.settings)
    request = request_for(list(scan(home.settings.folders, home.path)), known, context.cursor, time.time(), current)
    if request.run_key is None:
        return dg.SkipReason(request.reason)
    run = dg.RunRequest(run_key=request.run_key, tags={REASON_TAG: "new or changed files"})
    return dg.SensorResult(run_requests=[run], cursor=request.cursor)


def requests_for(
    spans: Sequence[Range], batch: str, run_key: str, why: Callable[[Range], str] = lambda _span: "days with work"
) -> list[dg.RunRequest]:
    """One run for each range of days that has work."""
    return [
        dg.RunRequest(
            job_name=build_days.name,
            run_key=f"{run_key}-{span.first}-{span.last}",
            tags={**range_tags(span), BATCH_TAG: batch, PLANNED_TAG: "true", REASON_TAG: why(span)},
        )
        for span in spans
    ]


@dg.sensor(
    jobs=[build_days, refresh_stats],
    minimum_interval_seconds=20,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Asks the planner which days have work (new sightings, changed recipes) and starts `build_days` for them.",
)
def planned_days(context: dg.SensorEvaluationContext, palace: PalaceResource) -> dg.SensorResult | dg.SkipReason:
    """Start runs for the planner's ranges."""
    home: Home = palace.open()
    if not home.exists:
        return dg.SkipReason("no archive yet")
    end_dead_runs(context.instance, home)
    if any(busy(context, job.name) for job in (build_days, read_exports, refresh_stats)):
        return dg.SkipReason("work is under way")
    try:
        with home.writing(wait_seconds=0), home.ledger() as ledger:
            mark_missing(home, ledger)
            try_again(ledger)
    except HomeBusy:
        return dg.SkipReason("another process is writing to the archive")
    with home.ledger() as ledger:
        recipes = recipes_of(home)
        spans = plan(ledger, recipes)
        waiting = exports_waiting(ledger)
        state = ledger.one("SELECT count(*) AS n FROM stage_log WHERE stage = 'raw_exports'")
    if not spans and not waiting:
        return dg.SkipReason("every day is up to date")
    # The same days under the same recipes after the same reading: the last run of them failed.
    key = short_hash(*map(repr, spans), repr(recipes), str(state["n"] if state else 0))
    request = retried(key, "the same day(s)", context.cursor, time.time())
    if request.run_key is None:
        return dg.SkipReason(request.reason)
    batch = f"watch-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
    with home.ledger() as ledger:
        runs = requests_for(spans, batch, request.run_key, lambda span: reason_for(ledger, recipes, span))
    if not runs:
        tags = {BATCH_TAG: batch, REASON_TAG: "files or skips have changed, no day has"}
        runs = [dg.RunRequest(job_name=refresh_stats.name, run_key=request.run_key, tags=tags)]
    return dg.SensorResult(run_requests=runs, cursor=request.cursor)
