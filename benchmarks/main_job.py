"""What the main job costs: every stage, the whole `palace ingest`, a second one that has nothing to do, and MemPalace.

    python benchmarks/main_job.py                      500 generated Claude Code sessions of 40 messages
    python benchmarks/main_job.py --mempalace VENV     and MemPalace of that environment on 50 of them

Each stage runs in a fresh process that has loaded all libraries first: CPU seconds are those of the process with all
threads and children from then on, and memory is the highest of its own (anonymous) memory, looked at every 5 ms, less
what it had after loading. Mapped files (Parquet, model, indexes) are not counted, for the system takes them back when it
likes. Whole commands are measured from outside, start and imports included. Where there is no /proc, memory is the
system's figure with mapped files. MemPalace: docs/performance.md says how to set it up.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from sessions import write_sessions

ROOT = Path(__file__).parents[1]
EVERY = 0.005
REPEATS = 5
"""Runs of the short commands, whose median is shown."""
ROUNDS = 2
"""Runs of each side of the comparison, in turn; the mean is shown."""
HEAVY = ("chromadb", "duckdb", "onnxruntime", "phonenumbers", "polars", "re2", "tantivy", "tokenizers")
MINILM = Path("~/.cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx")
_STATM = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU and wall seconds, and the peak of own memory in MB."""

    cpu: float
    wall: float
    memory: float


class PeakMemory(threading.Thread):
    """Looks at the own memory of a process until it is stopped; bytes."""

    def __init__(self, pid: int | str = "self") -> None:
        super().__init__(daemon=True)
        self._file = Path(f"/proc/{pid}/statm")
        self._over = threading.Event()
        self.first = self.peak = self._now()

    def _now(self) -> int:
        try:
            _, resident, shared, *_ = self._file.read_bytes().split()
        except (OSError, ValueError):  # no /proc here, or the process is gone
            return 0
        return (int(resident) - int(shared)) * resource.getpagesize()

    def run(self) -> None:
        while not self._over.wait(EVERY):
            self.peak = max(self.peak, self._now())

    def stop(self) -> None:
        self._over.set()
        self.join()
        self.peak = max(self.peak, self._now())


def _maxrss_bytes(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


# --- one stage, in a process of its own -------------------------------------------------------------------------------


def stages(home_folder: Path, exports: Path) -> dict[str, Callable[[], Mapping[str, int]]]:
    """Name of a stage -> its work on all ranges that the planner gives. In the order of the flow."""
    from palace_pipeline.checks import audit, whole
    from palace_pipeline.ingest import ingest
    from palace_pipeline.planner import plan
    from palace_pipeline.settings import load_settings
    from palace_pipeline.stages.chunk import chunk
    from palace_pipeline.stages.common import Counts, Job
    from palace_pipeline.stages.drawers import file_drawers
    from palace_pipeline.stages.embed import publish_vectors
    from palace_pipeline.stages.normalize import normalize
    from palace_pipeline.stages.pages import write_pages
    from palace_pipeline.stages.publish import publish_exports, publish_tables
    from palace_pipeline.stages.recipes import recipes_of
    from palace_pipeline.stages.redact import redact
    from palace_pipeline.store.home import Home

    home = Home(load_settings(home_folder))

    def daily(stage: Callable[[Job], Counts]) -> Callable[[], Counts]:
        def work() -> Counts:
            recipes = recipes_of(home)
            with home.ledger() as ledger:
                spans = plan(ledger, recipes)
            total: Counts = {"ranges": len(spans)}
            for span in spans:
                for name, count in stage(Job(home, span, recipes, "benchmark")).items():
                    total[name] = total.get(name, 0) + count
            return total

        return work

    def read() -> dict[str, int]:
        found = ingest(home, [exports], batch="benchmark").as_counts()
        return {name: count for name, count in found.items() if isinstance(count, int)}

    def check() -> dict[str, int]:
        span = whole(home)
        return {"failed": len(audit(home, span)) if span is not None else 0}

    return {
        "raw_exports": read,
        "normalized_transcripts": daily(normalize),
        "redacted_transcripts": daily(redact),
        "redacted_chunks": daily(chunk),
        "drawers": daily(file_drawers),
        "conversation_pages": daily(write_pages),
        "drawer_embeddings": daily(publish_vectors),
        "palace_tables": daily(publish_tables),
        "palace_stats": lambda: publish_exports(home, "benchmark"),
        "checks": check,
    }


def run_stage(name: str, home: Path, exports: Path) -> None:
    """Do one stage here and print what it cost as JSON; name "" only loads the libraries."""
    for library in HEAVY:
        __import__(library)
    works = stages(home, exports)
    loaded = time.process_time()
    memory = PeakMemory()
    memory.start()
    wall = time.perf_counter()
    counts: Mapping[str, int] = {}
    if name:
        from palace_pipeline.settings import load_settings
        from palace_pipeline.store.home import Home

        with Home(load_settings(home)).writing():
            counts = works[name]()
    wall = time.perf_counter() - wall
    memory.stop()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = time.process_time() - loaded + children.ru_utime + children.ru_stime
    peak = memory.peak - memory.first if _STATM.exists() else _maxrss_bytes(resource.getrusage(resource.RUSAGE_SELF))
    base = {"cpu": loaded, "wall": 0.0, "memory": memory.first / 1e6}
    print(json.dumps({"cost": asdict(Cost(cpu, wall, peak / 1e6)), "loaded": base, "counts": dict(counts)}))


def measure_stage(name: str, home: Path, exports: Path) -> tuple[Cost, Cost, dict[str, int]]:
    """(cost of the stage, cost of loading, counts) from a process of its own."""
    command = [sys.executable, __file__, "--stage", name, "--home", str(home), "--exports", str(exports)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment(), cwd=ROOT)
    told = json.loads(done.stdout.splitlines()[-1])
    return Cost(**told["cost"]), Cost(**told["loaded"]), told["counts"]


# --- whole commands ---------------------------------------------------------------------------------------------------


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "ANONYMIZED_TELEMETRY": "False", **more}


def measure_command(command: Sequence[str], **variables: str) -> tuple[Cost, str]:
    """What a command costs with all its children, and what it printed."""
    with tempfile.TemporaryFile() as output:
        wall = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(**variables),
            cwd=ROOT,
        )
        memory = PeakMemory(process.pid)
        memory.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - wall
        memory.stop()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        told = output.read().decode("utf-8", "replace")
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{told[-2000:]}")
    peak = memory.peak if _STATM.exists() else _maxrss_bytes(usage)
    return Cost(usage.ru_utime + usage.ru_stime, wall, peak / 1e6), told


def palace(home: Path, *words: str) -> tuple[Cost, str]:
    """A command of Palace as a person calls it."""
    return measure_command([sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), *words])


def median(runs: Sequence[Cost]) -> Cost:
    return _over(runs, statistics.median)


def mean(runs: Sequence[Cost]) -> Cost:
    return _over(runs, statistics.fmean)


def _over(runs: Sequence[Cost], fold: Callable[[list[float]], float]) -> Cost:
    return Cost(fold([r.cpu for r in runs]), fold([r.wall for r in runs]), fold([r.memory for r in runs]))


# --- the parts of the report ------------------------------------------------------------------------------------------


def show(name: str, cost: Cost, messages: int | None = None, note: str = "") -> None:
    rate = f"{messages / cost.cpu:,.0f}" if messages else ""
    cells = (name, f"{cost.cpu:.2f}", f"{cost.wall:.2f}", f"{cost.memory:.0f}", rate, note)
    print(f"| {' | '.join(cells)} |", flush=True)


def header(first: str, last: str = "") -> None:
    print(
        f"\n| {first} | CPU s | wall s | memory MB | messages per CPU s | {last} |\n|---|---|---|---|---|---|",
        flush=True,
    )


def report_stages(folder: Path, exports: Path, messages: int) -> None:
    """Table of the stages."""
    home = folder / "stages"
    _, loading, _ = measure_stage("", home, exports)
    print(f"\nLoading all libraries: {loading.cpu:.2f} CPU s, {loading.memory:.0f} MB of own memory.")
    header("stage", "what")
    total, wall, highest = 0.0, 0.0, 0.0
    for name in stages(home, exports):
        cost, _, counts = measure_stage(name, home, exports)
        told = ", ".join(f"{n.replace('_', ' ')} {c}" for n, c in counts.items() if c and not n.startswith("finding:"))
        show(name, cost, messages, told)
        total, wall, highest = total + cost.cpu, wall + cost.wall, max(highest, cost.memory)
    show("all stages", Cost(total, wall, highest), messages, "memory: the highest")


def report_commands(folder: Path, exports: Path, messages: int) -> None:
    """Table of whole commands: the ingest, one that has nothing to do, the status."""
    home = folder / "whole"
    header("command", "what")
    whole, _ = palace(home, "ingest", str(exports))
    show("palace ingest", whole, messages, "empty home; start, libraries and Dagster included")
    again, status = list[Cost](), list[Cost]()
    for _ in range(REPEATS):
        again.append(palace(home, "ingest", str(exports))[0])
        status.append(palace(home, "status")[0])
    show("palace ingest again", median(again), note=f"starts no run; median of {REPEATS}")
    show("palace status", median(status), note=f"median of {REPEATS}")
    beyond = median(again).cpu - median(status).cpu
    print(f"\nA second ingest costs {beyond:.2f} CPU s beyond `palace status`.")


def report_comparison(folder: Path, files: Sequence[Path], venv: Path, minilm: Path, messages: int) -> None:
    """Ours and MemPalace on the same sessions, in turn."""
    some = folder / "some"
    for file in files:
        place = some / "projects" / file.parent.name / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    user = folder / "mempalace-user"
    model = user / MINILM.relative_to("~")
    model.parent.mkdir(parents=True)
    model.symlink_to(minilm.expanduser().resolve(), target_is_directory=True)
    ours, theirs = list[Cost](), list[Cost]()
    receipt, told = "", ""
    for turn in range(ROUNDS):
        cost, receipt = palace(folder / f"ours-{turn}", "ingest", str(some))
        ours.append(cost)
        command = [str(venv / "bin" / "mempalace"), "--palace", str(folder / f"mempalace-{turn}")]
        command += ["mine", str(some / "projects"), "--mode", "convos", "--direct"]
        # A home of its own: nothing of the user's is read or changed. No PYTHONPATH, which would bring in our libraries.
        cost, told = measure_command(command, HOME=str(user), PYTHONPATH="", XDG_CACHE_HOME=str(user / ".cache"))
        theirs.append(cost)
    name = subprocess.run([venv / "bin" / "mempalace", "--version"], stdout=subprocess.PIPE, text=True, check=True)
    header(f"the same {len(files)} sessions", "what")
    for title, costs, drawers in (
        ("palace ingest", ours, re.search(r"(\d+) drawers", receipt)),
        (f"{name.stdout.strip()}, mine --mode convos", theirs, re.search(r"Drawers filed: (\d+)", told)),
    ):
        note = f"{mean(costs).cpu / len(files):.2f} CPU s per session, {drawers[1] if drawers else '?'} drawers"
        show(title, mean(costs), messages, note)
    print(f"\nRatio of the CPU seconds, ours to theirs: {mean(ours).cpu / mean(theirs).cpu:.2f}", flush=True)


def load() -> str:
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--messages", type=int, default=40, help="of a session")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mempalace", type=Path, metavar="VENV", help="environment that has mempalace")
    parser.add_argument("--minilm", type=Path, default=MINILM, help=f"its ONNX model (default: {MINILM})")
    parser.add_argument("--compared", type=int, default=50, help="sessions that both are given")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--exports", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stage is not None:
        run_stage(given.stage, given.home, given.exports)
        return
    if given.mempalace and not (given.minilm.expanduser() / "model.onnx").exists():
        raise SystemExit(f"{given.minilm} holds no model.onnx: MemPalace would try to download it")
    from palace_pipeline.embedding.convert import ensure_converted

    ensure_converted()  # once for each user of the machine, not a cost of this archive
    with tempfile.TemporaryDirectory(prefix="palace-benchmark-") as temporary:
        folder = Path(temporary)
        files = write_sessions(folder / "exports", given.sessions, given.messages, given.seed)
        messages = given.sessions * given.messages
        size = sum(file.stat().st_size for file in files) / 1e6
        print(
            f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        )
        print(f"Python {platform.python_version()}, {', '.join(f'{n} {version(n)}' for n in ('dagster', 'polars'))}")
        print(f"{given.sessions} sessions of {given.messages} messages, {size:.1f} MB. Load at the start: {load()}")
        if not _STATM.exists():
            print("No /proc here: memory is the highest resident size, mapped files and libraries included.")
        report_stages(folder, folder / "exports", messages)
        report_commands(folder, folder / "exports", messages)
        if given.mempalace:
            step = max(1, len(files) // given.compared)
            some = files[::step][: given.compared]
            report_comparison(folder, some, given.mempalace, given.minilm, len(some) * given.messages)
        print(f"\nLoad at the end: {load()}")


if __name__ == "__main__":
    main()
