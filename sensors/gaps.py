"""When to compare source and archive: after work was done, and once a day without any.

A sensor and no schedule: a schedule would look at the hour, whether or not anything has happened, and never soon after.
The look is a run, not a part of the tick: it may take minutes, and its memory goes away with its process. It marks what
is missing; `planned_days` asks for those days, with its own attempts and pauses.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

import dagster as dg
import orjson

from assets.jobs import look_for_gaps, read_exports
from palace_pipeline.console import TOLD
from palace_pipeline.exports.scan import Seen, identity
from palace_pipeline.failing import Failing, note_failing
from palace_pipeline.ingest.chosen import these
from palace_pipeline.model import short_hash
from palace_pipeline.reasons import REASON_TAG
from palace_pipeline.resources import PalaceResource
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from sensors.retries import Tried, asked_for, tried, under_way

SOONEST_SECONDS = 3600.0
REST_SECONDS = 600.0
"""Without any stage that has ended, work counts as done."""
LATEST_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Asked:
    """The last look that was asked for: when (seconds since 1970), and how far the log of the stages was then.

    `seen`, `moved`: how far the log was at the last tick, and since when it has been there.
    """

    at: float = 0.0
    log: int = -1
    seen: int = -1
    moved: float = 0.0

    @classmethod
    def of(cls, cursor: str | None) -> "Asked":
        try:
            found = orjson.loads(cursor or "{}")
            return cls(float(found["at"]), int(found["log"]), int(found["seen"]), float(found["moved"]))
        except (orjson.JSONDecodeError, TypeError, ValueError, KeyError):
            return cls()

    def cursor(self) -> str:
        return orjson.dumps(asdict(self)).decode()

    def looked_at(self, log: int, now: float) -> "Asked":
        """After a tick that found the log so far. A look in the future (the clock was set back) counts as one of now."""
        last = replace(self, at=min(self.at, now))
        return last if log == self.seen and self.moved <= now else replace(last, seen=log, moved=now)


def wait_for_look(last: Asked, before: Tried, now: float) -> float:
    """Seconds until the next look is due; 0 or less: now. Pure; `last` has been told how far the log is.

    While a reading is followed by the building of its days, everything new would count as missing: so the log has to
    have come to rest. `before`: the attempts at looking at this very state.
    """
    if last.seen == last.log:
        return last.at + LATEST_SECONDS - now
    return max(last.at + SOONEST_SECONDS, last.moved + REST_SECONDS, before.not_before) - now


@dataclass(frozen=True, slots=True)
class Outside:
    """Files outside the watched folders that the last look found new or changed; `at`: when it did, seconds since 1970.

    `work`: the files in the state of then. The same files in the same state are the same work, however often looks find
    them: it is not tried for ever.
    """

    paths: list[str]
    work: str
    at: float

    @classmethod
    def of(cls, ledger: Ledger) -> "Outside":
        found = orjson.loads(ledger.meta("gaps_found") or "{}")
        paths = [str(path) for path in found.get("files", [])]
        try:
            at = datetime.fromisoformat(str(found["at"])).timestamp()
        except (KeyError, ValueError):
            at = 0.0
        return cls(paths, str(found.get("work") or short_hash("files", *paths)), at)


@dg.sensor(
    jobs=[look_for_gaps, read_exports],
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Compares source and archive after work was done, else once a day; what is missing is made again.",
)
def gaps(context: dg.SensorEvaluationContext, palace: PalaceResource) -> dg.SensorResult | dg.SkipReason:
    """Start a look when one is due, and read what the last one found outside the watched folders."""
    home: Home = palace.open()
    if not home.exists:
        return dg.SkipReason("no archive yet")
    if under_way(context.instance):
        return dg.SkipReason("work is under way")
    now = time.time()
    with home.ledger() as ledger:
        row = ledger.one("SELECT max(rowid) AS n FROM stage_log")
        log = int(row["n"] or 0) if row else 0
        outside = Outside.of(ledger)
        files = [item for item in these(home, ledger, outside.paths) if isinstance(item, Seen)]
    last = Asked.of(context.cursor).looked_at(log, now)
    context.update_cursor(last.cursor())
    run, failing = _reading(context.instance, outside, files, now)
    note_failing(home, "outside", failing)
    if run is not None:
        return dg.SensorResult(run_requests=[run])
    work = short_hash("gaps", str(log), time.strftime("%Y-%m-%d", time.gmtime(now)))
    before = tried(context.instance, work)
    wait = wait_for_look(last, before, now)
    if wait > 0:
        return dg.SkipReason(f"the next look is in {wait / 60:.0f} minutes")
    context.update_cursor(replace(last, at=now, log=log).cursor())
    run_key, tags = asked_for(work, before.attempts, {REASON_TAG: "source against archive"})
    return dg.SensorResult(
        run_requests=[dg.RunRequest(job_name=look_for_gaps.name, run_key=run_key, tags=tags, run_config=TOLD)]
    )


def _reading(
    instance: dg.DagsterInstance, outside: Outside, files: Sequence[Seen], now: float
) -> tuple[dg.RunRequest | None, list[Failing]]:
    """A run for the files that the last look found, and those (`files`: as they are now) of which it has failed.

    Every second attempt begins at the other end: files are noted one by one, and one that ends the run is to keep none
    of the others out.
    """
    before = tried(instance, outside.work)
    if not outside.paths or (before.well and before.ended >= outside.at):
        return None, []
    failing: list[Failing] = []
    if before.attempts and not before.well:
        again_at = None if before.given_up else max(now, before.not_before)
        failing = [Failing("file", seen.path, identity(seen), before.attempts, again_at) for seen in files]
    if before.given_up or now < before.not_before:
        return None, failing
    config = {"only": outside.paths[::-1] if before.attempts % 2 else outside.paths, "settled": True}
    tags = {REASON_TAG: f"{len(outside.paths)} file(s) outside the watched folders"}
    run_key, tags = asked_for(outside.work, before.attempts, tags)
    run_config = {"ops": {"raw_exports": {"config": config}}, **TOLD}
    return dg.RunRequest(job_name=read_exports.name, run_key=run_key, tags=tags, run_config=run_config), failing
