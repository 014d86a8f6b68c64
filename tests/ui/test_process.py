"""`palace ui` as a process: it starts, tells what is in its way, stops clean, and nothing is left however it ends."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from dagster._utils.interrupts import setup_interrupt_handlers

from palace_pipeline.cli import service
from palace_pipeline.cli.talk import UsageError
from palace_pipeline.cli.ui import check_port, serve
from palace_pipeline.runner import sigterm_kept
from palace_pipeline.store.lock import writer
from tests.ingest.exports_for_tests import chat, export
from tests.ui.served import environment, free_port, palace, processes_of, served, until, waiting_run

slow = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one day in it."""
    folder = tmp_path_factory.mktemp("built")
    made = palace(folder / "home", "ingest", str(export(folder / "in/a.json", chat("a", "why?", "because"))))
    assert made.returncode == 0, made.stderr
    return folder / "home"


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "home"))


def status_in(home: Path, run_id: str) -> str:
    """What Dagster's storage says of a run, asked without a UI."""
    code = (
        "import dagster as dg, sys\n"
        "with dg.DagsterInstance.from_config(sys.argv[1]) as i: print(i.get_run_by_id(sys.argv[2]).status.value)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(home / "dagster"), run_id],
        capture_output=True,
        text=True,
        check=True,
        env={**environment(), "DAGSTER_HOME": str(home / "dagster")},
    )
    return done.stdout.strip()


def test_a_taken_port_is_told_before_anything_is_started() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} is taken"):
            check_port(port)
    check_port(free_port())


def _deaf() -> None:
    """What a script starts by `&` inherits, and what a parent may ignore beside that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def test_a_service_of_dagster_ends_politely_though_its_parent_ignores_signals(tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(
        "import time; from dagster._utils.interrupts import setup_interrupt_handlers as take_over\n"
        "try:\n    take_over(); print('ready', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    raise SystemExit(7)\n",
        encoding="utf-8",
    )
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, service.__file__, str(reading), "shown"],
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=(reading,),
        env={**environment(), "PYTHONPATH": str(tmp_path)},
        start_new_session=True,
        preexec_fn=_deaf,
    )
    os.close(reading)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    os.close(writing)
    assert child.wait(30) == 7
    child.stdout.close()


def test_a_run_leaves_sigterm_as_it_was() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with sigterm_kept():
            setup_interrupt_handlers()
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN  # as Dagster does it
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def test_a_service_imports_from_where_its_parent_does_and_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(
        "import sys, time; print(sys.path, flush=True); time.sleep(60)", encoding="utf-8"
    )
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, service.__file__, str(reading), "shown"],
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=(reading,),
        env={**environment(), "PYTHONPATH": str(tmp_path)},
        start_new_session=True,
        preexec_fn=_deaf,
    )
    os.close(reading)
    assert child.stdout is not None
    path = ast.literal_eval(child.stdout.readline())
    os.close(writing)
    assert child.wait(30) == -signal.SIGTERM
    child.stdout.close()
    # Dagster takes the first one away before it loads the definitions.
    assert path[1] == str(tmp_path)
    assert str(Path(service.__file__).parent) not in path


def test_a_code_server_that_cannot_start_is_told_and_nothing_else_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text("raise SystemExit(3)", encoding="utf-8")
    (tmp_path / "marks.py").write_text("open('started', 'w')", encoding="utf-8")
    services = {"code server": ["broken"], "webserver": ["marks"]}
    reading, writing = os.pipe()
    variables = {**environment(), "PYTHONPATH": str(tmp_path)}
    assert serve(services, tmp_path, variables, "http://127.0.0.1:1", reading, tmp_path / "socket") == 1
    os.close(reading)
    os.close(writing)
    assert "the code server has ended by itself (code 3)" in capsys.readouterr().err
    assert not (tmp_path / "started").exists()


@slow
def test_a_second_ui_and_a_taken_port_are_told_plainly(home: Path, tmp_path: Path) -> None:
    with served(home) as ui:
        again = palace(home, "ui", "--port", str(free_port()))
        assert (again.returncode, again.stderr.count("\n")) == (1, 1)
        assert f"already running on {home}: {ui.url}" in again.stderr
        other = palace(tmp_path / "other", "ui", "--port", ui.url.rpartition(":")[2])
        assert (other.returncode, other.stderr.count("\n")) == (2, 1)
        assert "is taken by another program" in other.stderr


@slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_with_a_run_under_way_and_leaves_no_process(home: Path, number: int) -> None:
    with served(home) as ui:
        with writer(home):
            run_id = waiting_run(ui)
            assert ui.stop(number) == 0
        until(lambda: not processes_of(home), "no process is left", 5)
        assert ui.process.stderr is not None
        said = ui.process.stderr.read()
        assert f"{run_id[:8]} stopped; what it had finished is kept" in said
        assert "failed" not in said
    assert status_in(home, run_id) in ("FAILURE", "CANCELED")
    assert palace(home, "ingest").returncode == 0


@slow
def test_after_kill_9_of_the_whole_tree_the_next_command_clears_the_dead_run(home: Path) -> None:
    with served(home) as ui, writer(home):
        run_id = waiting_run(ui)
        for process in processes_of(home):
            process.kill()
        until(lambda: not processes_of(home), "all are killed", 10)
    assert status_in(home, run_id) == "STARTED"  # nobody has said otherwise
    assert palace(home, "ingest").returncode == 0
    assert status_in(home, run_id) == "FAILURE"
    assert not list((home / "dagster/alive").iterdir())


@slow
def test_after_kill_9_of_the_command_its_services_end_and_a_new_ui_clears_the_dead_run(home: Path) -> None:
    with served(home) as ui, writer(home):
        run_id = waiting_run(ui)
        ui.process.kill()
        until(lambda: not processes_of(home), "the services have ended", 30)
    with served(home) as ui:
        assert ui.status(run_id) in ("FAILURE", "CANCELED")


@slow
def test_a_killed_worker_is_cleared_by_a_sensor_while_the_ui_goes_on(home: Path) -> None:
    with served(home) as ui:
        with writer(home):
            run_id = waiting_run(ui)
            (worker,) = [p for p in processes_of(home) if "spawn_main" in " ".join(p.cmdline())]
            worker.kill()
            until(lambda: ui.status(run_id) == "FAILURE", "the run counts as failed")
        done = ui.launch("refresh_stats")
        until(lambda: ui.status(done) == "SUCCESS", "the next run is not held up")


@slow
def test_a_service_that_ends_by_itself_stops_everything_with_an_error(home: Path) -> None:
    with served(home) as ui:
        (daemon,) = [p for p in processes_of(home) if "dagster._daemon" in p.cmdline()]
        daemon.kill()
        assert ui.process.wait(60) == 1
        assert ui.process.stderr is not None
        assert "the daemon has ended by itself" in ui.process.stderr.read()
        until(lambda: not processes_of(home), "no process is left", 5)


@slow
def test_it_does_not_wait_for_somebody_who_is_writing(home: Path) -> None:
    with writer(home), served(home) as ui:
        assert psutil.pid_exists(ui.process.pid)
