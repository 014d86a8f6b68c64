"""One writer, free readers: real processes that write to one home at a time, and others that read meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from palace_pipeline.store.lock import writer
from tests.ingest.exports_for_tests import chat, export
from tests.ui.served import environment, palace, processes_of, served, until, waiting_run

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = palace(tmp_path / "home", "ingest", str(export(tmp_path / "in/a.json", chat("a", "why?", "because"))))
    assert made.returncode == 0, made.stderr
    return tmp_path / "home"


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    """A `palace` command that is not waited for."""
    command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


def conversations(home: Path) -> int:
    done = palace(home, "sql", "--json", "SELECT count(*) AS n FROM conversations")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[0]["n"]


def test_a_stray_dagster_with_its_own_home_waits_for_the_archive(home: Path, tmp_path: Path) -> None:
    stray = tmp_path / "stray"
    stray.mkdir()
    variables = {
        **environment(),
        "PALACE_HOME": str(home),
        "DAGSTER_HOME": str(stray),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }
    command = [sys.executable, "-m", "dagster", "job", "execute", "-m", "palace_pipeline.definitions"]
    with writer(home):
        run = subprocess.Popen(
            [*command, "-j", "refresh_stats"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=variables,
        )
        assert run.stdout is not None
        for line in run.stdout:
            if "Waiting for process" in line:
                break
        else:
            raise AssertionError("it did not wait for the lock")
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(3)
    assert run.wait(120) == 0
    run.stdout.close()


def test_a_database_that_is_held_open_hinders_nobody(home: Path, tmp_path: Path) -> None:
    code = (
        "import duckdb, sys\n"
        "c = duckdb.connect(sys.argv[1], read_only=True)\n"
        "print(c.execute('SELECT count(*) FROM conversations').fetchone()[0], flush=True)\n"
        "sys.stdin.readline()\n"
        "print(c.execute('SELECT count(*) FROM conversations').fetchone()[0], flush=True)\n"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", code, str(home / "palace.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdin is not None
    assert reader.stdout is not None
    assert reader.stdout.readline() == "1\n"
    more = export(tmp_path / "in/b.json", chat("b", "how?", "so"))
    assert palace(home, "ingest", str(more)).returncode == 0
    assert conversations(home) == 2
    reader.stdin.write("\n")
    reader.stdin.flush()
    assert reader.stdout.readline() == "1\n"  # it keeps what it opened
    reader.communicate(timeout=30)


def test_searches_and_questions_are_answered_while_a_run_goes_on(home: Path, tmp_path: Path) -> None:
    many = [chat(f"c{n}", f"question {n}?", f"answer {n} " * 40, start=1_714_737_600.0 + 86_400 * n) for n in range(60)]
    run = start(home, "ingest", str(export(tmp_path / "in/many.json", *many)))
    asked = 0
    while run.poll() is None:
        for command in (["search", "because", "--json"], ["sql", "--json", "SELECT 1 AS one"], ["status", "--json"]):
            done = palace(home, *command)
            assert done.returncode == 0, (command, done.stderr)
            asked += 1
    out, err = run.communicate()
    assert run.returncode == 0, (out, err)
    assert asked >= 3
    assert conversations(home) == 61


def test_two_commands_take_turns(home: Path, tmp_path: Path) -> None:
    runs = [start(home, "ingest", str(export(tmp_path / f"in/{n}.json", chat(n, "how?", "so")))) for n in ("x", "y")]
    assert [(run.communicate(timeout=200), run.returncode)[1] for run in runs] == [0, 0]
    assert conversations(home) == 3


def test_the_daemon_and_a_command_work_on_one_home_together(home: Path, tmp_path: Path) -> None:
    with served(home) as ui:
        dropped = export(home / "inbox/dropped.json", chat("dropped", "how?", "so"))
        os.utime(dropped, (time.time() - 60, time.time() - 60))
        for n in range(3):
            given = export(tmp_path / f"in/{n}.json", chat(f"given{n}", "how?", "so"))
            assert palace(home, "ingest", str(given), timeout=200).returncode == 0
        until(lambda: conversations(home) == 5, "the watched file is in as well", 240)
        idle = "{ runsOrError(filter: {statuses: [QUEUED, STARTING, STARTED]}) { ... on Runs { results { runId } } } }"
        until(lambda: ui.ask(idle)["runsOrError"]["results"] == [], "everything is done", 240)
        failed = ui.ask("{ runsOrError(filter: {statuses: [FAILURE]}) { ... on Runs { results { runId } } } }")
        assert failed["runsOrError"]["results"] == []
    assert palace(home, "doctor").returncode == 0


def test_a_cancelled_or_killed_run_holds_no_slot_of_the_pool(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(home) as ui:
        for end in ("cancelled", "killed"):
            with writer(home):
                run_id = waiting_run(ui)
                waiting = ui.launch("refresh_stats")
                assert ui.status(waiting) == "QUEUED"  # seen in the queue, not as a process that waits for the lock
                if end == "cancelled":
                    query = "mutation($id: String!) { terminateRun(runId: $id) { __typename } }"
                    assert ui.ask(query, id=run_id)["terminateRun"]["__typename"] == "TerminateRunSuccess"
                else:
                    for process in processes_of(home):
                        if "spawn_main" in " ".join(process.cmdline()):
                            process.send_signal(signal.SIGKILL)
                until(lambda r=run_id: ui.status(r) in ("CANCELED", "FAILURE"), f"it is {end}", 60)
            until(lambda r=waiting: ui.status(r) == "SUCCESS", "the next one goes on", 120)
    monkeypatch.setenv("DAGSTER_HOME", str(home / "dagster"))  # its dagster.yaml names the variable
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        info = instance.event_log_storage.get_concurrency_info("palace_home")
        assert (info.claimed_slots, info.pending_steps) == ([], [])
