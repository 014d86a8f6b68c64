"""The clock is set back, by an hour or by ten years: nothing waits until it is as late again as it was before."""

import time
import uuid
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.events.log import EventLogEntry
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteInstigatorOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, SensorInstigatorData

from palace_pipeline.exports.scan import Seen
from palace_pipeline.runs import end_dead_runs, forget_ticks_ahead
from palace_pipeline.settings import environment, load_settings
from palace_pipeline.store.home import Home
from sensors.exports import Watch, identity, request_for
from sensors.gaps import Asked, wait_for_look
from sensors.retries import LAST_RETRY_SECONDS, WORK_TAG, Tried, asked_for, tried

NOW = 1_800_000_000.0
Clock = Callable[[float], None]
HOUR, YEARS = 3600.0, 10 * 365 * 86_400.0
BACK = pytest.mark.parametrize("back", [HOUR, YEARS])


def seen(path: str, changed: float) -> Seen:
    return Seen(path, "/in", 10, int(changed * 1e9), int(changed * 1e9), 1)


@pytest.fixture
def instance(tmp_path: Path):
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as made:
        yield made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch):
    """Set the clock to a time (seconds since 1970)."""

    def set_to(at: float) -> None:
        monkeypatch.setattr(time, "time", lambda: at)

    return set_to


@BACK
def test_readings_that_failed_are_tried_again(back: float) -> None:
    files = [seen("/in/a.json", NOW - 100), seen("/in/b.json", NOW - 100)]
    watch = Watch(failures=3, not_before=NOW + 240, suspects={identity(files[0]): (9, NOW + LAST_RETRY_SECONDS)})
    assert request_for(files, {}, watch, NOW).work is None
    request = request_for(files, {}, Watch.of(watch.cursor()), NOW - back - LAST_RETRY_SECONDS)
    assert request.leave == ["/in/a.json"]
    assert request.files == 1
    assert request.watch.suspects[identity(files[0])] == (9, NOW - back - LAST_RETRY_SECONDS)


@BACK
def test_a_file_from_before_the_clock_was_set_back_is_to_blame_for_its_reading(back: float) -> None:
    bad = seen("/in/a.json", NOW)
    now = NOW - back
    asked = request_for([bad], {}, Watch(), now)
    assert asked.work is not None
    judged = request_for([bad], {}, asked.watch, now + 60, failed=True).watch
    assert list(judged.suspects) == [identity(bad)]


@BACK
@pytest.mark.parametrize("log", [5, 6])
def test_the_look_for_gaps_comes_within_a_day(back: float, log: int) -> None:
    last, now, waited = Asked(at=NOW, log=5, seen=5, moved=NOW), NOW - back, 0.0
    while waited < 2 * 86_400:
        last = Asked.of(last.looked_at(log, now).cursor())
        if wait_for_look(last, Tried(), now) <= 0:
            break
        now, waited = now + 300, waited + 300
    assert waited <= (25 if log == 5 else 2) * HOUR


def run(instance: dg.DagsterInstance, tags: dict[str, str]) -> dg.DagsterRun:
    return instance.add_run(dg.DagsterRun(job_name="build_days", run_id=str(uuid.uuid4()), tags=tags))


@BACK
def test_failed_days_are_tried_again_and_then_with_pauses(
    back: float, instance: dg.DagsterInstance, clock: Clock
) -> None:
    tag = asked_for("w", 0, {})[1][WORK_TAG]
    clock(NOW)
    for _ in range(3):
        instance.report_run_failed(run(instance, {WORK_TAG: tag}))
    assert tried(instance, "w").not_before > NOW
    now = NOW - back
    clock(now)
    assert tried(instance, "w").attempts == 3
    assert tried(instance, "w").not_before <= now
    instance.report_run_failed(run(instance, {WORK_TAG: tag}))
    assert now < tried(instance, "w").not_before <= now + LAST_RETRY_SECONDS


@BACK
def test_a_run_that_was_killed_does_not_count_as_one_that_is_starting(
    back: float, instance: dg.DagsterInstance, clock: Clock, tmp_path: Path
) -> None:
    home = Home(load_settings(tmp_path / "home"))
    clock(NOW)
    dead = run(instance, {})
    instance.handle_new_event(started(dead))
    clock(NOW - back)
    assert end_dead_runs(instance, home) == [dead.run_id]
    found = instance.get_run_by_id(dead.run_id)
    assert found is not None
    assert found.status is dg.DagsterRunStatus.FAILURE


def started(dead: dg.DagsterRun) -> EventLogEntry:
    event = DagsterEvent(event_type_value=DagsterEventType.RUN_START.value, job_name=dead.job_name)
    return EventLogEntry(None, 10, "", dead.run_id, time.time(), job_name=dead.job_name, dagster_event=event)


@BACK
def test_a_sensor_whose_last_tick_lies_ahead_looks_again_with_its_cursor(
    back: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(load_settings(tmp_path / "home"))
    for name, value in environment(home.settings).items():
        monkeypatch.setenv(name, value)
    with home.writing(), dg.DagsterInstance.from_config(str(home.dagster)) as instance:
        instance.add_instigator_state(ticked_at(NOW))
        assert forget_ticks_ahead(instance, NOW + 1) == []
        assert forget_ticks_ahead(instance, NOW - back) == ["gaps"]
        assert forget_ticks_ahead(instance, NOW - back) == []
        (state,) = instance.all_instigator_state()
    assert isinstance(state.instigator_data, SensorInstigatorData)
    assert state.instigator_data.cursor == "kept"
    assert state.instigator_data.last_tick_start_timestamp is None


def ticked_at(at: float) -> InstigatorState:
    origin = RemoteInstigatorOrigin(
        repository_origin=RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "__repository__"),
        instigator_name="gaps",
    )
    data = SensorInstigatorData(last_tick_timestamp=at, last_tick_start_timestamp=at, cursor="kept", min_interval=30)
    return InstigatorState(origin, InstigatorType.SENSOR, InstigatorStatus.DECLARED_IN_CODE, data)
