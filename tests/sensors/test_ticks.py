"""Sensors and jobs together on a real archive and Dagster's own records: failures, purged files, gaps."""

import json
import time
from pathlib import Path

import dagster as dg
import pytest

from palace_pipeline.definitions import defs
from palace_pipeline.resources import PalaceResource
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from sensors import export_folders, gaps, planned_days
from tests.ingest.exports_for_tests import chat, export


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


@pytest.fixture
def instance(tmp_path: Path):
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as made:
        yield made


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch):
    """Let time pass: seconds from now on."""
    real, ahead = time.time, [60.0]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])

    def wait(seconds: float) -> None:
        ahead[0] += seconds

    return wait


class Watcher:
    """A sensor with its cursor, as the daemon would call it."""

    def __init__(self, sensor: dg.SensorDefinition, instance: dg.DagsterInstance, home: Home) -> None:
        self.sensor, self.instance, self.home, self.cursor = sensor, instance, home, None
        self.keys: list[str] = []

    def tick(self) -> list[dg.RunRequest] | str:
        resources = {"palace": PalaceResource(home=str(self.home.path))}
        with dg.build_sensor_context(instance=self.instance, resources=resources, cursor=self.cursor) as context:
            said = self.sensor(context)
            self.cursor = context.cursor
        if isinstance(said, dg.SkipReason):
            return said.skip_message or ""
        assert isinstance(said, dg.SensorResult)
        self.keys += [str(run.run_key) for run in said.run_requests or []]
        return list(said.run_requests or [])

    def run(self, request: dg.RunRequest, job: str) -> bool:
        resources = {"palace": PalaceResource(home=str(self.home.path))}
        result = defs.resolve_job_def(request.job_name or job).execute_in_process(
            instance=self.instance,
            resources=resources,
            tags=request.tags,
            run_config=request.run_config,
            raise_on_error=False,
        )
        return result.success


def test_a_reading_that_fails_is_asked_for_again_later_and_alone_and_its_key_is_another(
    home: Home, instance: dg.DagsterInstance, later, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(home.path / "inbox/a.json", chat("a", "hi", "hello"))
    watcher = Watcher(export_folders, instance, home)
    with monkeypatch.context() as broken:
        broken.setattr("assets.exports.ingest", lambda *_, **__: 1 / 0)
        (request,) = watcher.tick()
        assert not watcher.run(request, "read_exports")
    assert "failed" in watcher.tick()
    later(120)
    (request,) = watcher.tick()
    assert request.run_config["ops"]["raw_exports"]["config"]["only"] == [str(home.path / "inbox/a.json")]
    assert watcher.run(request, "read_exports")
    assert watcher.tick() == "nothing new"
    assert len(set(watcher.keys)) == 2


def test_a_file_that_is_forgotten_by_the_ledger_can_run_again(home: Home, instance: dg.DagsterInstance, later) -> None:
    export(home.path / "inbox/a.json", chat("a", "hi", "hello"))
    watcher = Watcher(export_folders, instance, home)
    for _ in range(2):
        later(60)
        (request,) = watcher.tick()
        assert watcher.run(request, "read_exports")
        assert watcher.tick() == "nothing new"
        with home.ledger() as ledger:
            ledger.write("DELETE FROM files")
    assert len(set(watcher.keys)) == 2


@pytest.mark.slow
def test_what_is_lost_is_found_by_the_look_and_asked_for_by_the_planner(
    home: Home, instance: dg.DagsterInstance, later
) -> None:
    now = time.time()
    export(
        home.path / "inbox/a.json",
        chat("a", "hi", "hello", start=now - 3 * 86_400),
        chat("b", "x", "y", start=now - 60 * 86_400),
    )
    files, days, looks = (Watcher(sensor, instance, home) for sensor in (export_folders, planned_days, gaps))
    assert all(files.run(request, "read_exports") for request in files.tick())
    asked = days.tick()
    assert all(days.run(request, "build_days") for request in asked)
    assert isinstance(days.tick(), str)
    assert "next look" in looks.tick()  # the work has only just ended
    later(700)
    (request,) = looks.tick()
    assert looks.run(request, "look_for_gaps")
    assert found(home)["clean"] is True
    assert "next look" in looks.tick()
    month = time.strftime("%Y-%m", time.gmtime(now - 3 * 86_400))
    home.lake.path("clean/chunks", month).unlink()
    later(25 * 3600)
    (request,) = looks.tick()
    assert looks.run(request, "look_for_gaps")
    assert found(home)["clean"] is False
    (request,) = days.tick()
    day = time.strftime("%Y-%m-%d", time.gmtime(now - 3 * 86_400))
    assert request.tags["dagster/asset_partition_range_end"] == day
    assert days.run(request, "build_days")
    assert "next look" in looks.tick()
    later(2 * 3600)
    (request,) = looks.tick()
    assert looks.run(request, "look_for_gaps")
    assert found(home)["clean"] is True
    assert len(set(looks.keys)) == 3


def found(home: Home) -> dict[str, object]:
    with home.ledger() as ledger:
        return json.loads(ledger.meta("gaps_found") or "{}")


def test_a_file_outside_the_folders_that_grew_is_read_by_the_gap_sensor_once(
    home: Home, instance: dg.DagsterInstance, later, tmp_path: Path
) -> None:
    file = export(tmp_path / "elsewhere/a.json", chat("a", "hi", "hello"))
    config = {"ops": {"raw_exports": {"config": {"paths": [str(file)]}}}}
    watcher = Watcher(gaps, instance, home)
    assert watcher.run(dg.RunRequest(run_config=config), "read_exports")
    export(file, chat("a", "hi", "hello", "and?"))
    with home.writing(), home.ledger() as ledger:
        ledger.set_meta("gaps_found", json.dumps({"at": "now", "files": [str(file)]}))
    (request,) = watcher.tick()
    assert watcher.run(request, "read_exports")
    with home.ledger() as ledger:
        row = ledger.one("SELECT messages FROM conversations")
    assert row is not None
    assert row["messages"] == 3
    assert "next look" in watcher.tick()
