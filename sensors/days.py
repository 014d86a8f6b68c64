"""Days with work: what the planner finds stale is asked for, range by range."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import dagster as dg
import orjson

from assets.jobs import build_days, refresh_stats
from assets.running import BATCH_TAG, PLANNED_TAG
from palace_pipeline.console import TOLD
from palace_pipeline.failing import Failing, days_name, note_failing
from palace_pipeline.model import short_hash
from palace_pipeline.partitions import range_tags
from palace_pipeline.planner import Range, plan, work_of
from palace_pipeline.reasons import REASON_TAG, reason_for
from palace_pipeline.resources import PalaceResource
from palace_pipeline.runs import end_dead_runs
from palace_pipeline.stages.missing import mark_missing
from palace_pipeline.stages.publish import exports_waiting
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.withheld import try_again
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.lock import HomeBusy
from sensors.retries import MOST_ATTEMPTS, Tried, asked_for, tried, under_way

RANGES_A_TICK = 20
QUIET_SECONDS = 600.0
"""While nothing has happened, deleted pages and indexes are looked for this often."""
REST = 100
"""A look at everything is followed by this many times its own CPU time of rest."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Ranges to ask for (with the identity of their work and its earlier attempts), and all that have failed before."""

    ranges: list[tuple[Range, str, int]] = field(default_factory=list[tuple[Range, str, int]])
    failing: list[Failing] = field(default_factory=list[Failing])

    @property
    def waiting(self) -> int:
        return len(self._later)

    @property
    def given_up(self) -> int:
        return sum(one.again_at is None for one in self.failing)

    @property
    def next_at(self) -> float | None:
        return min(self._later, default=None)

    @property
    def _later(self) -> list[float]:
        asked = {work for _, work, _ in self.ranges}
        return [one.again_at for one in self.failing if one.again_at is not None and one.work not in asked]

    def reason(self, now: float) -> str:
        said: list[str] = []
        if self.waiting:
            said.append(f"{self.waiting} range(s) failed; the next attempt is in {(self.next_at or now) - now:.0f} s")
        if self.given_up:
            said.append(
                f"{self.given_up} range(s) failed {MOST_ATTEMPTS} times and are left (palace status, palace ingest)"
            )
        return "; ".join(said) or "every day is up to date"


def ranges_to_ask(
    work: Sequence[tuple[Range, str]], tried_before: Callable[[str], Tried], now: float, most: int = RANGES_A_TICK
) -> Asked:
    """Of the planner's ranges, those to ask for now. Pure but for what it is handed.

    A range whose work was asked for before and is still there has failed: it is tried again with a growing pause, and
    not for ever. The identity of the work changes when a day, a recipe or the source does: that is another range.
    """
    ask: list[tuple[Range, str, int]] = []
    failing: list[Failing] = []
    for span, identity in work:
        if len(ask) == most:
            break
        before = tried_before(identity)
        again_at = None if before.given_up else max(now, before.not_before)
        if before.attempts:
            failing.append(Failing("days", days_name(span), identity, before.attempts, again_at))
        if again_at == now:
            ask.append((span, identity, before.attempts))
    return Asked(ask, failing)


@dataclass(frozen=True, slots=True)
class Quiet:
    """Remembered after a look that asked for nothing: what the ledger was like then, and until when that is enough."""

    state: str = ""
    until: float = 0.0

    @classmethod
    def of(cls, cursor: str | None) -> "Quiet":
        try:
            found = orjson.loads(cursor or "{}")
            return cls(str(found["state"]), float(found["until"]))
        except (orjson.JSONDecodeError, TypeError, ValueError, KeyError):
            return cls()


def state_of(ledger: Ledger, recipes: object) -> str:
    """Changes with every stage that finishes, every look for gaps that marked something, and every recipe."""
    row = ledger.one("SELECT max(rowid) AS n FROM stage_log")
    return short_hash(str(row["n"] if row else 0), ledger.meta("gaps_marked") or "", repr(recipes))


def range_requests(
    asked: Sequence[tuple[Range, str, int]], batch: str, why: Callable[[Range], str]
) -> list[dg.RunRequest]:
    """One run for each range of days that has work."""
    runs: list[dg.RunRequest] = []
    for span, identity, attempts in asked:
        tags = {**range_tags(span), BATCH_TAG: batch, PLANNED_TAG: "true", REASON_TAG: why(span)}
        run_key, tags = asked_for(identity, attempts, tags)
        runs.append(dg.RunRequest(job_name=build_days.name, run_key=run_key, tags=tags, run_config=TOLD))
    return runs


@dg.sensor(
    jobs=[build_days, refresh_stats],
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Asks the planner which days have work (new sightings, changed recipes) and starts `build_days` for them.",
)
def planned_days(context: dg.SensorEvaluationContext, palace: PalaceResource) -> dg.SensorResult | dg.SkipReason:
    """Start runs for the planner's ranges."""
    home: Home = palace.open()
    if not home.exists:
        return dg.SkipReason("no archive yet")
    end_dead_runs(context.instance, home)
    if under_way(context.instance):
        return dg.SkipReason("work is under way")
    now, began, quiet = time.time(), time.thread_time(), Quiet.of(context.cursor)
    recipes = recipes_of(home)
    with home.ledger() as ledger:
        state = state_of(ledger, recipes)
    if state == quiet.state and now < quiet.until < now + 24 * 3600:
        return dg.SkipReason("nothing has happened since the last look")
    try:
        with home.writing(wait_seconds=0), home.ledger() as ledger:
            mark_missing(home, ledger)
            try_again(ledger)
    except HomeBusy:
        return dg.SkipReason("another process is writing to the archive")
    with home.ledger() as ledger:
        work = [(span, work_of(ledger, span, recipes)) for span in plan(ledger, recipes)]
        asked = ranges_to_ask(work, lambda identity: tried(context.instance, identity), now)
        batch = f"watch-{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now))}"
        runs = range_requests(asked.ranges, batch, lambda span: reason_for(ledger, recipes, span))
        if not work and exports_waiting(ledger):
            identity = short_hash("refresh", ledger.meta("exports_read") or "")
            before = tried(context.instance, identity)
            if before.attempts:
                again_at = None if before.given_up else max(now, before.not_before)
                asked = Asked(failing=[Failing("statistics", "", identity, before.attempts, again_at)])
            if now >= before.not_before and not before.given_up:
                tags = {BATCH_TAG: batch, REASON_TAG: "files or skips have changed, no day has"}
                run_key, tags = asked_for(identity, before.attempts, tags)
                runs = [dg.RunRequest(job_name=refresh_stats.name, run_key=run_key, tags=tags, run_config=TOLD)]
    note_failing(home, "days", asked.failing)
    if runs:
        context.update_cursor("")
        return dg.SensorResult(run_requests=runs)
    until = max(now + QUIET_SECONDS, now + REST * (time.thread_time() - began))
    until = min(until, asked.next_at) if asked.next_at is not None else until
    context.update_cursor(orjson.dumps({"state": state, "until": until}).decode())
    return dg.SkipReason(asked.reason(now))
