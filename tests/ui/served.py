"""A real `palace ui` for tests: started on a free port, asked over GraphQL, and looked at from outside."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from palace_pipeline.console import TOLD

WAIT_SECONDS = 120.0
REPOSITORY = {"repositoryLocationName": "palace_pipeline", "repositoryName": "__repository__"}


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def palace(home: Path, *arguments: str, timeout: float = WAIT_SECONDS) -> subprocess.CompletedProcess[str]:
    """A `palace` command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(),
        check=False,
    )


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PALACE_HOME", "DAGSTER_HOME")}


def until(true: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
    """Wait for something; what it was waiting for is in the error."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.2)
    raise AssertionError(f"waited {seconds:.0f} s in vain for: {what}")


def processes_of(home: Path) -> list[psutil.Process]:
    """All processes (but zombies) that were given this home, whoever started them."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            mine = str(home) in process.environ().get("PALACE_HOME", "") or str(home) in process.cmdline()
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@dataclass
class Served:
    """A running `palace ui`."""

    home: Path
    url: str
    process: subprocess.Popen[str]

    def ask(self, query: str, **variables: Any) -> Any:
        """A GraphQL question; raises AssertionError with the server's words if it is refused."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def launch(self, job: str, tags: dict[str, str] | None = None, config: Mapping[str, Any] | None = None) -> str:
        """Launch a job as the launchpad does (with `config`: as a sensor); returns the run's id."""
        answer = self.ask(
            """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) {
                 __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }""",
            p={
                "selector": {**REPOSITORY, "jobName": job},
                "runConfigData": config or {},
                "executionMetadata": {"tags": [{"key": k, "value": v} for k, v in (tags or {}).items()]},
            },
        )["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return answer["run"]["runId"]

    def status(self, run_id: str) -> str:
        query = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
        return self.ask(query, id=run_id)["runOrError"]["status"]

    def stop(self, number: int = signal.SIGTERM, seconds: float = 60) -> int:
        self.process.send_signal(number)
        return self.process.wait(seconds)


def waiting_run(ui: Served) -> str:
    """A run that has begun and waits for the home's lock, which the caller holds: ours, or one that a sensor asked for."""
    ui.launch("refresh_stats", config=TOLD)
    marks = ui.home / "dagster/alive"

    def begun() -> str | None:
        return next((m.name for m in marks.glob("*") if ui.status(m.name) == "STARTED"), None)

    return until(begun, "a run has begun")


@contextmanager
def served(home: Path, **variables: str) -> Generator[Served]:
    """Start `palace ui` on a home (with `variables` in its environment), wait until it can be opened, and leave nothing
    behind."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), "ui", "--port", str(port)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**environment(), **variables},
    )
    ui = Served(home, f"http://127.0.0.1:{port}", process)
    try:
        assert process.stderr is not None
        lines: list[str] = []
        while "Ready: " not in (line := process.stderr.readline()):
            lines.append(line)
            assert process.poll() is None or line, "".join(lines)
        locations = "{ workspaceOrError { ... on Workspace { locationEntries { loadStatus } } } }"
        until(lambda: '"LOADED"' in json.dumps(ui.ask(locations)), "the definitions are loaded")
        yield ui
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
        for left in processes_of(home):
            with suppress(psutil.Error):
                left.kill()
        process.wait(10)
        if process.stderr is not None:
            process.stderr.close()
