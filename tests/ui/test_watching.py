"""`palace ui` left alone: a file that is dropped is taken, a run that fails is told, what always fails is given up; and
days that are chosen in the UI are made again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.runner import DAILY_KEYS
from tests.archive_state import state
from tests.ingest.exports_for_tests import START, chat, export
from tests.ui.served import Served, palace, served, until

pytestmark = pytest.mark.slow

ATTEMPTS = 3
_SITE = f"""
import importlib.abc, importlib.util, os, signal, sys

def _less_patience(module):
    module.FIRST_RETRY_SECONDS, module.MOST_ATTEMPTS = 1.0, {ATTEMPTS}

def _killer(module):
    read = module.Run._read
    def killed(self, seen, row):
        if os.path.basename(seen.path) == "killer.json":
            os.kill(os.getpid(), signal.SIGKILL)
        return read(self, seen, row)
    module.Run._read = killed

_AFTER = {{"sensors.retries": _less_patience, "palace_pipeline.ingest.run": _killer}}

class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        then = _AFTER.pop(name, None)
        if then is None:
            return None
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (run(module), then(module))[0]
        return spec

sys.meta_path.insert(0, _Finder())
"""
"""For the processes of `palace ui`: a file whose reading kills the process, as one that takes all memory does, and pauses
that a test can wait for."""


@contextmanager
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server on this machine; yields its address and what was posted to it."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", got
        server.shutdown()
        thread.join()


def drop(folder: Path, name: str, *chats: Any) -> Path:
    """A file that has come to rest a while ago, but for its change time."""
    file = export(folder / name, *chats)
    os.utime(file, (time.time() - 60, time.time() - 60))
    return file


def status(home: Path) -> dict[str, Any]:
    done = palace(home, "status", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def runs(ui: Served, job: str) -> list[tuple[str, str]]:
    """Id and status of a job's runs, the newest first."""
    query = "query($p: String) { runsOrError(filter: {pipelineName: $p}) { ... on Runs { results { runId status } } } }"
    return [(run["runId"], run["status"]) for run in ui.ask(query, p=job)["runsOrError"]["results"]]


def test_a_dropped_file_is_taken_and_one_that_kills_its_run_is_told_tried_again_and_given_up(tmp_path: Path) -> None:
    home, watched = tmp_path / "home", tmp_path / "downloads"
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(_SITE, encoding="utf-8")
    told = tmp_path / "told.json"
    code = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + chr(10))"
    watched.mkdir()
    home.mkdir()
    with webhook() as (url, posted):
        command = json.dumps([sys.executable, "-c", code, str(told)])
        (home / "palace.toml").write_text(
            f'[[sources]]\npath = "{watched}"\n[alerts]\ncommand = {command}\nwebhook = "{url}"\n', encoding="utf-8"
        )
        path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        with served(home, PYTHONPATH=path) as ui:
            drop(watched, "a.json", chat("a", "why?", "because"))
            until(lambda: (home / "schema_version").exists() and status(home)["conversations"] == 1, "a is in", 200)
            until(lambda: status(home)["days_with_work"] == 0, "its day is made", 200)

            killer = drop(watched, "killer.json", chat("k", "how?", "so"))
            drop(watched, "z.json", chat("z", "when?", "now"))
            until(lambda: status(home)["failing"], "the file is named as failing", 300)
            (failing,) = status(home)["failing"]
            assert (failing["what"], failing["name"]) == ("file", str(killer))
            until(lambda: status(home)["conversations"] == 2, "the other file is in", 200)

            until(lambda: status(home)["failing"][0]["again_at"] is None, "the file is given up", 500)
            assert status(home)["failing"][0]["attempts"] == ATTEMPTS
            said = palace(home, "status").stdout
            assert f"reading {killer} failed {ATTEMPTS} times and is left until something changes" in said
            doctor = palace(home, "doctor")
            assert doctor.returncode == 1
            assert f"reading {killer} failed {ATTEMPTS} times" in doctor.stdout + doctor.stderr

            failed = [run_id for run_id, ended in runs(ui, "read_exports") if ended == "FAILURE"]
            assert len(failed) == ATTEMPTS
            until(lambda: len(posted) == ATTEMPTS, "every failure is posted", 120)
            receipts = [json.loads(file.read_bytes()) for file in (home / "receipts").glob("failed-*.json")]
            lines = [json.loads(line) for line in told.read_text("utf-8").splitlines()]
            for what in (posted, receipts, lines):
                assert {one["run"] for one in what} == set(failed)
                assert all("was killed" in one["reasons"][0] for one in what)
            count = len(runs(ui, "read_exports"))
            time.sleep(70)  # two looks and more
            assert len(runs(ui, "read_exports")) == count
    # The command without that fault takes it at once.
    assert palace(home, "ingest").returncode == 0
    assert (status(home)["conversations"], status(home)["failing"]) == (3, [])


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """The folder may not be written for a while, not even by root."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("mounting a file system needs root")
    if subprocess.run(["mount", "--bind", str(folder), str(folder)], check=False).returncode:
        pytest.skip("this system does not let us mount")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_folder_that_may_not_be_written_is_told_and_what_waits_is_done_when_it_may_be(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert palace(home, "ingest", str(export(tmp_path / "in/a.json", chat("a", "why?", "because")))).returncode == 0
    with served(home) as ui:
        with read_only(home / "lake"):
            drop(home / "inbox", "b.json", chat("b", "how?", "so", start=START + 86_400))
            until(lambda: list((home / "receipts").glob("failed-*.json")), "the failed run is told", 300)
            told = [json.loads(file.read_bytes()) for file in (home / "receipts").glob("failed-*.json")]
            assert f"Read-only file system: {home / 'lake'}. " in told[0]["reasons"][0]
            until(lambda: status(home)["failing"], "what failed is named", 120)
        until(lambda: status(home)["conversations"] == 2, "it is read when the folder may be written again", 400)
        until(lambda: status(home)["days_with_work"] == 0, "and its day is made", 200)
        assert status(home)["failing"] == []
        assert runs(ui, "build_days")[0][1] == "SUCCESS"


def backfill(ui: Served, days: list[str]) -> None:
    """What the UI does when assets and days are chosen and launched; waits until it is done."""
    launched = ui.ask(
        """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) { __typename
             ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }""",
        p={
            "assetSelection": [{"path": key.path} for key in DAILY_KEYS],
            "partitionNames": days,
            "tags": [],
            "fromFailure": False,
        },
    )["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    query = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
                 ... on PartitionBackfill { status } } }"""

    def ended() -> str | None:
        status = ui.ask(query, id=launched["backfillId"])["partitionBackfillOrError"]["status"]
        return status if status in ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED") else None

    assert until(ended, "the backfill has ended", 400) == "COMPLETED_SUCCESS"


def made(ui: Served, days: list[str]) -> dict[tuple[str, str], float]:
    """(asset, day) -> when it was made last, in milliseconds."""
    query = """query($k: AssetKeyInput!, $d: [String!]) { assetNodeOrError(assetKey: $k) { ... on AssetNode {
                 latestMaterializationByPartition(partitions: $d) { partition timestamp } } } }"""
    found: dict[tuple[str, str], float] = {}
    for key in DAILY_KEYS:
        rows = ui.ask(query, k={"path": key.path}, d=days)["assetNodeOrError"]["latestMaterializationByPartition"]
        found |= {(key.to_user_string(), row["partition"]): float(row["timestamp"]) for row in rows if row}
    return found


def test_days_and_a_range_chosen_in_the_ui_are_made_again_from_the_vault_and_no_others(tmp_path: Path) -> None:
    days = [time.strftime("%Y-%m-%d", time.gmtime(START + 86_400 * n)) for n in range(8)]
    chats = [chat(f"c{n}", "why?", f"because {n}", start=START + 86_400 * n) for n in range(8)]
    source = export(tmp_path / "in/a.json", *chats)
    home = tmp_path / "home"
    assert palace(home, "ingest", str(source), timeout=300).returncode == 0
    source.unlink()  # from the vault
    before = state(home)
    with served(home) as ui:
        for chosen in ([days[0], days[3], days[6]], days[1:4]):
            at = made(ui, days)
            assert len(at) == len(DAILY_KEYS) * len(days)
            backfill(ui, chosen)
            after = made(ui, days)
            assert {day for (_, day), when in after.items() if when > at[_, day]} == set(chosen)
            assert all(after[asset, day] > at[asset, day] for asset, day in at if day in chosen)
        left = ui.ask("{ runsOrError(filter: {statuses: [FAILURE]}) { ... on Runs { results { runId } } } }")
        assert left["runsOrError"]["results"] == []
    assert state(home) == before
