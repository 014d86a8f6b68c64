"""What always fails: tried again with pauses, given up, named by `palace status` and `palace doctor`, tried by new code."""

import json
import time
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

import sensors.exports
from palace_pipeline.cli.app import main
from palace_pipeline.exports.scan import scan
from palace_pipeline.failing import Failing, failing, note_failing, noted
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from sensors import export_folders, gaps, planned_days
from sensors.exports import Watch, failing_files
from sensors.retries import MOST_ATTEMPTS, pause_after
from tests.ingest.exports_for_tests import chat, export
from tests.sensors.test_ticks import Watcher


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(load_settings(tmp_path / "home"))
    with home.writing(), home.ledger():
        return home


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


def palace(home: Home, *arguments: str) -> int:
    """A command in this process; returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(home.path), *arguments])
    return int(ended.value.code or 0)


def status(home: Home, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    capsys.readouterr()
    assert palace(home, "status", *more) == 0
    return capsys.readouterr().out


def breaks_on(name: str):
    """The reading of a file that ends the run."""
    from palace_pipeline.ingest.run import Run

    read = Run._read

    def broken(self: Run, seen, row):
        if Path(seen.path).name == name:
            raise RuntimeError("no such thing as this file has ever been seen")
        return read(self, seen, row)

    return broken


def test_a_file_that_always_ends_the_run_is_given_up_and_named_and_the_others_get_in(
    home: Home, instance: dg.DagsterInstance, later, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "bad", "c"):
        export(home.path / f"inbox/{name}.json", chat(name, "hi", "hello"))
    bad = home.path / "inbox/bad.json"
    watcher = Watcher(export_folders, instance, home)
    pauses: list[float] = []
    with monkeypatch.context() as broken:
        broken.setattr("palace_pipeline.ingest.run.Run._read", breaks_on("bad.json"))
        failed_at = 0.0
        for _ in range(200):
            asked = watcher.tick()
            if isinstance(asked, str):
                later(300)
                if "left until they change" in asked:
                    break
                continue
            ends_well = watcher.run(asked[0], "read_exports")
            if not ends_well:
                pauses.append(time.time() - failed_at)
                failed_at = time.time()
            if len(pauses) == 3:
                (one,) = json.loads(status(home, capsys, "--json"))["failing"]
                assert (one["what"], one["name"]) == ("file", str(bad))
            later(30)
    assert len(pauses) == MOST_ATTEMPTS
    assert all(pause >= pause_after(n) for n, pause in enumerate(pauses))
    assert 511 * 60 <= sum(pauses[1:]) < 10 * 3600  # 1 + 2 + 4 + … + 256 minutes, and the looks between
    assert len(set(watcher.keys)) == len(watcher.keys)
    with home.ledger() as ledger:
        taken = {Path(path).name for path in ledger.known_files()}
        assert taken == {"a.json", "c.json"}
        (one,) = failing(home, ledger)
    assert (one.attempts, one.again_at) == (MOST_ATTEMPTS, None)
    assert f"reading {bad} failed {MOST_ATTEMPTS} times and is left until something changes" in status(home, capsys)
    assert palace(home, "doctor") == 1
    assert f"reading {bad} failed {MOST_ATTEMPTS} times" in capsys.readouterr().out
    for _ in range(3):
        later(24 * 3600)
        assert "left until they change" in watcher.tick()
    with monkeypatch.context() as newer:  # the next Palace may be able to read it
        newer.setattr(sensors.exports, "CODE", "another")
        (request,) = watcher.tick()
        assert request.run_config["ops"]["raw_exports"]["config"]["leave"] == []
    # What somebody else has read meanwhile is no longer told, though no sensor has looked since.
    assert palace(home, "ingest") == 0
    capsys.readouterr()
    assert "bad.json" not in status(home, capsys)


def test_days_that_always_fail_are_named_until_they_are_made(
    home: Home, instance: dg.DagsterInstance, later, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    export(home.path / "inbox/a.json", chat("a", "hi", "hello"))
    assert Watcher(export_folders, instance, home).run(dg.RunRequest(), "read_exports")
    watcher = Watcher(planned_days, instance, home)
    attempts = 0
    with monkeypatch.context() as broken:
        broken.setattr("assets.transcripts.normalize", lambda _job: 1 / 0)
        while attempts < MOST_ATTEMPTS:
            asked = watcher.tick()
            if not isinstance(asked, str):
                assert not watcher.run(asked[0], "build_days")
                attempts += 1
                watcher.tick()
            if attempts == 1:
                assert "making 2024-05-03 failed once; palace ui tries again at" in status(home, capsys)
            later(7 * 3600)
    said = watcher.tick()
    assert isinstance(said, str)
    assert "1 range(s) failed 10 times and are left" in said
    assert "making 2024-05-03 failed 10 times and is left" in status(home, capsys)
    assert palace(home, "ingest") == 0
    capsys.readouterr()
    assert "2024-05-03 failed" not in status(home, capsys)


def test_a_file_outside_the_folders_that_always_fails_is_not_tried_for_ever_however_often_it_is_found(
    home: Home, instance: dg.DagsterInstance, later, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [export(tmp_path / f"elsewhere/{n}.json", chat(f"{n}", "hi", "hello")) for n in range(3)]
    watcher = Watcher(gaps, instance, home)
    config = {"ops": {"raw_exports": {"config": {"paths": [str(file) for file in files]}}}}
    assert watcher.run(dg.RunRequest(run_config=config), "read_exports")
    for n, file in enumerate(files):
        export(file, chat(f"{n}", "hi", "hello", "and?"))
    order: list[list[str]] = []
    for _ in range(4 * MOST_ATTEMPTS):
        later(25 * 3600)
        asked = watcher.tick()
        for request in asked if not isinstance(asked, str) else []:
            with monkeypatch.context() as broken:
                if request.job_name == "read_exports":
                    broken.setattr("palace_pipeline.ingest.run.Run._read", breaks_on("1.json"))
                    order.append(request.run_config["ops"]["raw_exports"]["config"]["only"])
                assert watcher.run(request, str(request.job_name)) == (request.job_name != "read_exports")
    assert len(order) == 2 * MOST_ATTEMPTS  # for all three of them, and for the one that was left
    assert order[0][0].endswith("0.json")
    assert order[1][0].endswith("2.json")
    with home.ledger() as ledger:
        grown = [row["conversation_id"] for row in ledger.rows("SELECT * FROM conversations WHERE messages = 3")]
        assert sorted(grown) == ["0", "2"]
        (one,) = failing(home, ledger)
    assert (one.name, one.again_at) == (str(files[1]), None)


def test_the_note_is_written_when_it_changes_and_goes_away(home: Home) -> None:
    one = Failing("file", "/in/a.zip", "abc", 2, 1e9)
    note_failing(home, "files", [one])
    (file,) = home.dagster.glob("failing-*")
    before = file.stat()
    note_failing(home, "files", [one])
    assert (file.stat().st_ino, noted(home, "files")) == (before.st_ino, [one])
    assert before.st_mode & 0o077 == 0
    file.write_bytes(b'[{"what": 1')
    assert noted(home, "files") == []
    note_failing(home, "files", [one])
    note_failing(home, "files", [])
    assert list(home.dagster.glob("failing-*")) == []


def test_a_suspect_in_a_folder_that_a_look_did_not_come_to_keeps_its_name(home: Home) -> None:
    export(home.path / "inbox/a.json", chat("a", "hi", "hello"))
    found = list(scan([home.path / "inbox"], home.path))
    (name,) = {sensors.exports.identity(seen) for seen in found}
    watch = replace(Watch(), suspects={name: (2, 5.0), "gone": (1, 1.0)})
    before = failing_files(found, watch, [])
    assert [(one.name, one.attempts, one.again_at) for one in before] == [(str(home.path / "inbox/a.json"), 2, 5.0)]
    assert failing_files([], watch, before) == before
    assert failing_files(found, Watch(), before) == []
