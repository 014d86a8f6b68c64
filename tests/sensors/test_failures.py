"""A run that failed is told: in `receipts/`, to a real command, to a real server. What cannot be told never raises."""

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import dagster as dg
import psutil
import pytest

import palace_pipeline.alerts as alerts_module
from palace_pipeline.alerts import send
from palace_pipeline.definitions import defs
from palace_pipeline.resources import PalaceResource
from palace_pipeline.settings import AlertSettings, SettingsError, load_settings
from sensors.failures import tell
from tests.ingest.exports_for_tests import chat, export

TOLD = {"what": "a run of Palace failed", "reasons": ["normalized_transcripts: 数据库"]}


@contextmanager
def server(status: int = 200, location: str | None = None) -> Iterator[tuple[str, list[bytes]]]:
    """A server on this machine; yields its address and what was posted to it."""
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}/palace", got
        served.shutdown()
        thread.join()


def command(code: str, *more: str) -> AlertSettings:
    return AlertSettings(command=(sys.executable, "-c", code, *more))


def test_a_command_gets_the_reason_on_its_stdin_and_no_shell_sees_it(tmp_path: Path) -> None:
    file = tmp_path / "told; touch x"
    assert send(command("import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())", str(file)), TOLD) == []
    assert json.loads(file.read_bytes()) == TOLD
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_webhook_gets_the_reason_as_json() -> None:
    with server() as (url, got):
        assert send(AlertSettings(webhook=url), TOLD) == []
    assert [json.loads(data) for data in got] == [TOLD]


def test_what_cannot_be_told_is_told_back_and_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts_module, "COMMAND_SECONDS", 0.2)
    monkeypatch.setattr(alerts_module, "WEBHOOK_SECONDS", 0.2)
    assert send(AlertSettings(command=("/nowhere/at all",)), TOLD) == [
        "the command of [alerts] could not be started (FileNotFoundError)"
    ]
    assert send(command("raise SystemExit(7)"), TOLD) == ["the command of [alerts] ended with 7"]
    assert "was stopped" in send(command("import time; time.sleep(9)"), TOLD)[0]
    with server(500) as (url, _):
        assert send(AlertSettings(webhook=url), TOLD) == ["the webhook of [alerts] answered 500"]
    assert "could not be reached" in send(AlertSettings(webhook=url), TOLD)[0]  # it is gone now


@pytest.mark.parametrize(
    ("url", "error"),
    [("http://127.0.0.1:port/palace", "InvalidURL"), ("http://[::1/palace", "ValueError")],
)
def test_an_address_that_is_none_is_told_back(url: str, error: str) -> None:
    assert send(AlertSettings(webhook=url), TOLD) == [f"the webhook of [alerts] could not be reached ({error})"]


def test_a_server_that_speaks_no_http_is_told_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/palace"
        assert send(AlertSettings(webhook=url), TOLD) == [
            "the webhook of [alerts] could not be reached (BadStatusLine)"
        ]
        thread.join()


def test_a_command_that_hangs_is_stopped_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts_module, "COMMAND_SECONDS", 1.0)
    child = tmp_path / "child"
    script = f"sleep 600 & echo $! > '{child}'; wait"
    assert "was stopped" in send(AlertSettings(command=("sh", "-c", script)), TOLD)[0]
    for _ in range(100):
        if not psutil.pid_exists(pid := int(child.read_text())) or psutil.Process(pid).status() == "zombie":
            return
        time.sleep(0.02)
    pytest.fail("what the command had started is still running")


def test_a_webhook_is_not_followed_elsewhere() -> None:
    with server() as (elsewhere, got), server(302, elsewhere) as (url, _):
        assert send(AlertSettings(webhook=url), TOLD) == ["the webhook of [alerts] answered 302"]
    assert got == []


def test_both_are_told_even_if_one_fails() -> None:
    with server() as (url, got):
        assert len(send(AlertSettings(command=("/nowhere",), webhook=url), TOLD)) == 1
    assert len(got) == 1


def test_settings(tmp_path: Path) -> None:
    (tmp_path / "palace.toml").write_text('[alerts]\ncommand = ["true"]\nwebhook = "http://127.0.0.1:1/x"\n')
    assert load_settings(tmp_path).alerts == AlertSettings(command=("true",), webhook="http://127.0.0.1:1/x")
    for wrong in ('webhook = "ftp://x"', 'webhook = "x"', 'comand = ["true"]'):
        (tmp_path / "palace.toml").write_text(f"[alerts]\n{wrong}\n")
        with pytest.raises(SettingsError, match="alerts"):
            load_settings(tmp_path)


def test_a_failed_run_leaves_its_reason_in_the_receipts_and_no_chat_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    export(home / "inbox/a.json", chat("a", "why?", "because"))
    resources = {"palace": PalaceResource(home=str(home))}
    with server() as (url, got), dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as instance:
        assert defs.resolve_job_def("read_exports").execute_in_process(instance=instance, resources=resources).success
        with (home / "palace.toml").open("a") as settings:
            settings.write(f'\n[alerts]\nwebhook = "{url}"\n')

        def broken(*_: object) -> None:
            raise ValueError("the chat said: because")

        monkeypatch.setattr("palace_pipeline.stages.normalize.merge", broken)
        run = defs.resolve_job_def("build_days").execute_in_process(
            instance=instance, resources=resources, partition_key="2024-05-03", raise_on_error=False
        )
        assert not run.success
        (event,) = [event for event in run.all_events if event.event_type_value == "PIPELINE_FAILURE"]
        context = dg.build_run_status_sensor_context(
            sensor_name="run_failures",
            dagster_event=event,
            dagster_instance=instance,
            dagster_run=run.dagster_run,
        ).for_run_failure()
        tell(PalaceResource(home=str(home)).open(), context)
    (file,) = (home / "receipts").glob("failed-*.json")
    told = json.loads(file.read_bytes())
    assert [json.loads(data) for data in got] == [told]
    assert told["job"] == "build_days"
    assert told["reasons"][0].startswith("normalized_transcripts: ValueError at ")
    assert "palace doctor" in told["next"]
    assert b"because" not in file.read_bytes()
    assert file.stat().st_mode & 0o077 == 0


def test_a_run_whose_process_was_killed_says_so_whoever_noticed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    export(home / "inbox/a.json", chat("a", "why?", "because"))
    resources = {"palace": PalaceResource(home=str(home))}
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as instance:
        assert defs.resolve_job_def("read_exports").execute_in_process(instance=instance, resources=resources).success
        run = instance.create_run_for_job(defs.resolve_job_def("read_exports"))
        event = instance.report_run_failed(run)  # as the code server does when the process of a run is gone
        context = dg.build_run_status_sensor_context(
            sensor_name="run_failures", dagster_event=event, dagster_instance=instance, dagster_run=run
        ).for_run_failure()
        tell(PalaceResource(home=str(home)).open(), context)
    (file,) = (home / "receipts").glob("failed-*.json")
    assert "the process of this run was killed" in json.loads(file.read_bytes())["reasons"][0]
