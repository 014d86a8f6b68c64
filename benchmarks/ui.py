"""`palace ui` over sixteen years of days: what its pages ask, the pages themselves, and what it costs while nothing happens.

    python -m benchmarks.ui [--minutes 5] [--assets 2]

Makes a home in a temporary folder, fills every day of some assets with a materialisation, and starts `palace ui` on it.
Pages are loaded in the system's Chromium if it and the Python package playwright are there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import psutil

from palace_pipeline.partitions import DAYS
from palace_pipeline.settings import environment, load_settings

FILLED = ["redacted_transcripts", "palace_tables", "drawers", "drawer_embeddings", "conversation_pages"]
_KEYS = ", ".join(f'{{path: ["{name}"]}}' for name in FILLED)
_NODE = 'assetNodeOrError(assetKey: {path: ["redacted_transcripts"]}) { ... on AssetNode'
QUESTIONS = {
    "states of all days of an asset": f"{{ {_NODE} {{ assetPartitionStatuses {{ ... on TimePartitionStatuses {{ ranges "
    "{ startKey endKey status } } } } } }",
    "how many days of each asset are filled": "{ assetNodes { assetKey { path } partitionStats { numMaterialized numFailed "
    "numPartitions } } }",
    "all names of days": f"{{ {_NODE} {{ partitionKeysByDimension {{ partitionKeys }} }} }} }}",
    "last run of every asset": f"{{ assetsLatestInfo(assetKeys: [{_KEYS}]) {{ latestRun {{ id status }} "
    "latestMaterialization { timestamp } } }",
    "one day's materialisation": f'{{ {_NODE} {{ assetMaterializations(partitions: ["2024-05-03"], limit: 1) '
    "{ timestamp metadataEntries { label } } } } }",
    "the last 25 runs": "{ runsOrError(limit: 25) { ... on Runs { results { runId status tags { key value } } } } }",
    "sensors and their last ticks": '{ sensorsOrError(repositorySelector: {repositoryName: "__repository__", '
    'repositoryLocationName: "palace_pipeline"}) { ... on Sensors { results { name sensorState { status ticks(limit: 1) '
    "{ status skipReason } } } } } }",
}
PAGES = {
    "the flow": ("/asset-groups", "transcripts"),
    "an asset": ("/assets/redacted_transcripts?view=overview", "Step 3 of 9"),
    "its days": ("/assets/redacted_transcripts?view=partitions", "Partitions Selected"),
    "a day": ("/assets/redacted_transcripts?view=partitions&partition=2024-05-03", "Latest materialization"),
    "the runs": ("/runs", "Success"),
    "the sensors": ("/automation", "planned_days"),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=int, default=5)
    parser.add_argument("--assets", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        fill(home, FILLED[: arguments.assets])
        with served(home) as url:
            print("\n| question | best | first |\n|---|---|---|")
            for name, question in QUESTIONS.items():
                first, *others = [seconds(lambda q=question: ask(url, q)) for _ in range(4)]
                print(f"| {name} | {min(others):.2f} s | {first:.2f} s |", flush=True)
            pages(url)
            idle(home, arguments.minutes)


def fill(home: Path, assets: list[str]) -> None:
    """One chat, and a materialisation of every day there is."""
    chat = {
        "type": "message",
        "conversation_id": "a",
        "role": "user",
        "content": "why?",
        "created_at": "2024-05-03T12:00:00Z",
    }
    export = home.with_name("export.jsonl")
    export.write_text(json.dumps(chat) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), "ingest", str(export)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    os.environ.update(environment(load_settings(home)))
    days = DAYS.get_partition_keys()
    started = time.process_time()
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        for asset in assets:
            for day in days:
                event = dg.AssetMaterialization(asset, partition=day, metadata={"dagster/partition_row_count": 7})
                instance.report_runless_asset_event(event)
    print(f"{len(days):,} days of {len(assets)} assets filled: {time.process_time() - started:.0f} CPU s", flush=True)


@contextmanager
def served(home: Path) -> Iterator[str]:
    """`palace ui` on a free port; ended with everything that it has started."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), "ui", "--port", str(port)]
    started = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    try:
        while "Ready: " not in (line := process.stderr.readline()):
            assert line, "palace ui has ended"
        print(f"ready after {time.monotonic() - started:.0f} s (load {psutil.getloadavg()[0]:.0f})", flush=True)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def ask(url: str, question: str) -> Any:
    body = json.dumps({"query": question}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        answer = json.load(response)
    assert "errors" not in answer, answer["errors"]
    return answer


def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def pages(url: str) -> None:
    """How long until a page shows what somebody opened it for."""
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    if browser_path is None:
        return
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1500, "height": 950})
        page.set_default_timeout(120_000)

        def load(path: str, text: str) -> None:
            page.goto(url + path)
            page.get_by_text(text).first.wait_for()

        print("\n| page | best | first |\n|---|---|---|")
        for name, (path, text) in PAGES.items():
            first, *others = [seconds(lambda p=path, t=text: load(p, t)) for _ in range(3)]
            print(f"| {name} | {min(others):.1f} s | {first:.1f} s |", flush=True)
        browser.close()


def idle(home: Path, minutes: int) -> None:
    """CPU seconds and memory of all processes of `palace ui`, a minute at a time."""
    time.sleep(60)
    before, started = of_all(home), time.monotonic()
    for _ in range(minutes):
        time.sleep(60)
    after, passed = of_all(home), time.monotonic() - started
    print("\n| process | CPU s a minute | MB before | MB after |\n|---|---|---|---|")
    for name, (cpu, memory) in after.items():
        then = before.get(name, (0.0, 0.0))
        print(f"| {name} | {(cpu - then[0]) * 60 / passed:.2f} | {then[1]:.0f} | {memory:.0f} |")
    total = [sum(values) for values in zip(*after.values(), strict=True)]
    then = [sum(values) for values in zip(*before.values(), strict=True)]
    print(f"| together | {(total[0] - then[0]) * 60 / passed:.2f} | {then[1]:.0f} | {total[1]:.0f} |")
    print(f"{minutes} minutes, load {psutil.getloadavg()[0]:.1f}")


def of_all(home: Path) -> dict[str, tuple[float, float]]:
    """Process (number and module) -> CPU seconds, its ended children included, and own memory in MB."""
    found: dict[str, tuple[float, float]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if str(home) not in process.environ().get("PALACE_HOME", "") and str(home) not in words:
                continue
            modules = ("dagster._daemon", "dagster_webserver", "api", "ui")
            name = next((module for module in modules if module in words), process.name())
            found[f"{name} {process.pid}"] = (sum(process.cpu_times()[:4]), process.memory_full_info().uss / 1e6)
    return found


if __name__ == "__main__":
    main()
