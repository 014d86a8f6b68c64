"""Watching the export folders: a new or changed file that has come to rest starts a reading."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import dagster as dg
import orjson

from assets.jobs import read_exports
from palace_pipeline.console import TOLD
from palace_pipeline.exports.scan import (
    SETTLE_SECONDS,
    Known,
    Missing,
    Seen,
    changes,
    fingerprint,
    has_settled,
    identity,
    scan_part,
)
from palace_pipeline.failing import Failing, note_failing, noted
from palace_pipeline.ingest.purged import KnownFiles
from palace_pipeline.ingest.recipes import current_in
from palace_pipeline.reasons import REASON_TAG
from palace_pipeline.resources import PalaceResource
from palace_pipeline.runs import end_dead_runs
from palace_pipeline.store.home import Home
from sensors.retries import CODE, MOST_ATTEMPTS, WORK_TAG, asked_for, due, pause_after, tag_of, tried, under_way

MOST_SUSPECTS = 40
"""Files that are remembered as having failed; it bounds the cursor."""
TICK_SECONDS = 15.0
"""A look at the folders stops after so long and goes on at the next tick; Dagster would end it at 60 s."""
REST = 100
"""A look is followed by this many times its own CPU time of rest: watching costs at most a hundredth of a core."""
LONGEST_REST_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Watch:
    """What is remembered between two looks; a few hundred bytes, however many files there are.

    `asked`: what was asked for last and not judged yet, `alone`: the one file of it if it was one, `asked_at`: when.
    `failures`: readings in a row that failed. `suspects`: identity of a file -> (failed attempts, not again before).
    `rest_until`: no look before; `after`: where the last look, cut short, ended (root, folder). `code`: that of the
    attempts; another one may succeed.
    Times are seconds since 1970.
    """

    asked: str = ""
    alone: str = ""
    asked_at: float = 0.0
    failures: int = 0
    not_before: float = 0.0
    suspects: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    rest_until: float = 0.0
    after: tuple[str, str] | None = None
    code: str = CODE

    @classmethod
    def of(cls, cursor: str | None) -> "Watch":
        """From a cursor; one that cannot be read (somebody wrote it by hand, or an older version) is none."""
        try:
            found = orjson.loads(cursor or "{}")
            known = {name: found[name] for name in cls.__dataclass_fields__ if name in found}
            watch = cls(**known)
            if watch.code != CODE:
                watch = replace(watch, failures=0, not_before=0.0, suspects={}, rest_until=0.0, code=CODE)
            after = watch.after
            suspects = {str(name): (int(n), float(at)) for name, (n, at) in watch.suspects.items()}
            return replace(watch, suspects=suspects, after=(str(after[0]), str(after[1])) if after else None)
        except (orjson.JSONDecodeError, TypeError, ValueError, AttributeError, KeyError, IndexError):
            return cls()

    def by_clock(self, now: float) -> "Watch":
        """The same for a clock that may have been set back: nothing is put off for longer than it was to be."""
        suspects = {name: (n, due(at, now, n)) for name, (n, at) in self.suspects.items()}
        return replace(self, not_before=due(self.not_before, now, self.failures), suspects=suspects)

    def cursor(self) -> str:
        return orjson.dumps(asdict(self)).decode()


@dataclass(frozen=True, slots=True)
class Request:
    """A reading to ask for, or the reason why not. `only`: this file alone; `leave`: all but these."""

    watch: Watch
    work: str | None = None
    reason: str = ""
    only: list[str] = field(default_factory=list[str])
    leave: list[str] = field(default_factory=list[str])
    files: int = 0


def request_for(
    found: Sequence[Seen | Missing],
    known: Mapping[str, Known],
    watch: Watch,
    now: float,
    *,
    is_current: Callable[[Known], bool] = lambda _known: True,
    failed: bool = False,
    whole: bool = True,
) -> Request:
    """What a look at the folders leads to. Pure: everything it knows is handed in.

    All settled new files are asked for at once. If that reading `failed` (or left them as new as they were), the first
    of them is the suspect: files are noted one by one, so what came before it was taken. It is left out from then on
    and tried alone, with a growing pause and a last time; the others go on without it. A folder that is not there is a
    reason, not an empty folder. `whole`: the look came to the end of the folders.
    """
    watch = watch.by_clock(now)
    fresh = changes(found, known, is_current)
    settled = [seen for seen in fresh if has_settled(seen, now)]
    names = {identity(seen): seen for seen in settled}
    suspects = {name: value for name, value in watch.suspects.items() if name in names or not whole}
    if watch.asked:
        ready = [seen for name, seen in names.items() if name not in suspects]
        failed = failed or watch.asked == (watch.alone if watch.alone in names else fingerprint(ready))
        watch = _judged(watch, suspects, names, now) if failed else replace(watch, failures=0, not_before=0.0)
    watch = replace(watch, asked="", alone="", suspects=suspects)
    ready = [seen for name, seen in names.items() if name not in suspects]
    again = [
        seen
        for name, seen in names.items()
        if name in suspects and suspects[name][0] < MOST_ATTEMPTS and now >= suspects[name][1]
    ]
    if now >= watch.not_before and (ready or again):
        watch = replace(watch, asked_at=now)
        if not ready:
            name = identity(again[0])
            return Request(replace(watch, asked=name, alone=name), name, only=[again[0].path], files=1)
        work = fingerprint(ready)
        leave = [seen.path for name, seen in names.items() if name in suspects]
        return Request(replace(watch, asked=work), work, leave=leave, files=len(ready))
    return Request(watch, reason="; ".join(_reasons(found, len(fresh) - len(settled), watch, now)))


def _judged(watch: Watch, suspects: dict[str, tuple[int, float]], names: Mapping[str, Seen], now: float) -> Watch:
    """After a reading that failed: who is to blame, and how long to wait. Adds to `suspects`."""
    failures = watch.failures + 1
    then = watch.asked_at - SETTLE_SECONDS
    asked = (name for name, seen in names.items() if name not in suspects and not then < seen.ctime_ns / 1e9 <= now)
    blamed = watch.alone or next(asked, "")
    if blamed and (blamed in suspects or len(suspects) < MOST_SUSPECTS):
        attempts = suspects.get(blamed, (0, 0.0))[0] + 1
        suspects[blamed] = (attempts, now + pause_after(attempts))
    return replace(watch, failures=failures, not_before=now + pause_after(failures))


def failing_files(found: Iterable[Seen | Missing], watch: Watch, before: Sequence[Failing]) -> list[Failing]:
    """The suspects with their names; of one in a folder that this look did not come to, it is known from `before`."""
    if not watch.suspects:
        return []
    names = {one.work: one.name for one in before}
    names |= {identity(seen): seen.path for seen in found if isinstance(seen, Seen)}
    return [
        Failing("file", names[name], name, attempts, again if attempts < MOST_ATTEMPTS else None)
        for name, (attempts, again) in watch.suspects.items()
        if name in names
    ]


def _reasons(found: Iterable[Seen | Missing], unsettled: int, watch: Watch, now: float) -> list[str]:
    given_up = sum(attempts >= MOST_ATTEMPTS for attempts, _ in watch.suspects.values())
    waiting = len(watch.suspects) - given_up
    said = [f"{unsettled} file(s) are still being written"] if unsettled else []
    if now < watch.not_before:
        said.append(f"the last {watch.failures} reading(s) failed; the next one is in {watch.not_before - now:.0f} s")
    elif waiting:
        said.append(f"{waiting} file(s) failed and are tried again later")
    if given_up:
        said.append(f"{given_up} file(s) failed {MOST_ATTEMPTS} times and are left until they change (palace status)")
    said = said or ["nothing new"]
    gone = [item.path for item in found if isinstance(item, Missing)]
    return [*said, f"not there: {', '.join(gone)}"] if gone else said


@dg.sensor(
    job=read_exports,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Looks at the export folders; a new or changed file that has come to rest starts `read_exports`.",
)
def export_folders(context: dg.SensorEvaluationContext, palace: PalaceResource) -> dg.SensorResult | dg.SkipReason:
    """Watch the folders of `palace.toml`."""
    watch, now = Watch.of(context.cursor), time.time()
    home: Home = palace.open()
    end_dead_runs(context.instance, home)
    if read_exports.name in under_way(context.instance):
        return dg.SkipReason("the last reading is still running")
    if not watch.asked and now < watch.rest_until < now + LONGEST_REST_SECONDS + 1:
        return dg.SkipReason(f"many files: the next look is in {watch.rest_until - now:.0f} s")
    began = time.thread_time()
    found, after = scan_part(home.settings.folders, home.path, watch.after, TICK_SECONDS)
    known: Mapping[str, Known] = {}
    if home.exists:
        with home.ledger() as ledger:
            known = KnownFiles(home, ledger)
    request = request_for(
        found,
        known,
        watch,
        now,
        is_current=current_in(home.settings),
        failed=bool(watch.asked) and _failed(context.instance, watch.asked),
        whole=after is None and watch.after is None,
    )
    rest = min(REST * (time.thread_time() - began), LONGEST_REST_SECONDS)
    # Where there is work, or the look has not come to its end, the next one follows at once.
    rest_until = now + rest if request.work is None and after is None else 0.0
    watch = replace(request.watch, after=after if request.work is None else watch.after, rest_until=rest_until)
    context.update_cursor(watch.cursor())
    if home.exists:
        note_failing(home, "files", failing_files(found, watch, noted(home, "files")))
    if request.work is None:
        more = "" if after is None else f"; {len(found)} files looked at, the next tick goes on"
        return dg.SkipReason(request.reason + more)
    attempts = tried(context.instance, request.work).attempts
    run_key, tags = asked_for(request.work, attempts, {REASON_TAG: f"{request.files} new or changed file(s)"})
    config = {"settled": True, "only": request.only, "leave": request.leave}
    run = dg.RunRequest(run_key=run_key, tags=tags, run_config={"ops": {"raw_exports": {"config": config}}, **TOLD})
    return dg.SensorResult(run_requests=[run])


def _failed(instance: dg.DagsterInstance, work: str) -> bool:
    """Did the last run for this work end badly?"""
    runs = instance.get_runs(dg.RunsFilter(tags={WORK_TAG: tag_of(work)}), limit=1)
    return bool(runs) and runs[0].status in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
