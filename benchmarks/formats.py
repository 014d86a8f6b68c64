"""How fast exports are read, and with how much memory: generated exports of every format, in processes of their own.

    python benchmarks/formats.py                          200 MB of each format
    python benchmarks/formats.py --megabytes 20 codex     20 MB of the formats whose names begin so

*Reading* is what `palace ingest` does with a file before it keeps anything: its members are found, each reader is chosen
by the content, and all conversations are made and let go. CPU seconds are those of the process after its imports, the
least of three runs. *Memory* is the highest own (anonymous) memory above that after the imports, looked at from outside
every 5 ms, so that no lock of the interpreter hides it; *largest* is the longest conversation as the archive keeps it.
The ratio is to a baseline in the same runs that makes nothing of what it reads: `orjson.loads` of every line or file,
Python's HTML parser, the rows of a database, or the lines of a text.
"""

from __future__ import annotations

import argparse
import html.parser
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import export_files
import export_files_more
from main_job import PeakMemory, load

ROUNDS = 3
KINDS = export_files.KINDS | export_files_more.KINDS


# --- in a process of its own ------------------------------------------------------------------------------------------


def read(folder: Path, *, sizes: bool = False) -> dict[str, Any]:
    """Read everything below a folder; with `sizes` also how long the longest conversation is."""
    from palace_pipeline.exports.base import Report
    from palace_pipeline.exports.containers import members_of
    from palace_pipeline.exports.engine import identify, read_member
    from palace_pipeline.model import record_parts

    conversations = messages = largest = 0
    formats: set[str] = set()
    for member in members_of(folder, Report):
        report = Report(member.path)
        if (found := identify(member, report)) is None:
            continue
        reader, head = found
        formats.add(reader.format)
        for conversation in read_member(member, reader, head, report):
            conversations += 1
            messages += len(conversation.messages)
            if sizes:
                largest = max(largest, sum(map(len, record_parts(conversation))))
            del conversation
    return {"conversations": conversations, "messages": messages, "largest": largest, "formats": sorted(formats)}


def read_with_sizes(folder: Path) -> dict[str, Any]:
    return read(folder, sizes=True)


def baseline(folder: Path) -> dict[str, Any]:
    """Go through the same bytes and make nothing of them."""
    import orjson

    name = ""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        start = path.open("rb").read(16)
        if start.startswith(b"SQLite"):
            name = "rows of sqlite3"
            for _ in sqlite3.connect(path).execute("SELECT * FROM cursorDiskKV"):
                pass
        elif path.suffix == ".html":
            name = "html.parser"
            html.parser.HTMLParser().feed(path.read_text("utf-8"))
        elif path.suffix == ".jsonl":
            name = "orjson.loads"
            with path.open("rb") as lines:
                for line in lines:
                    orjson.loads(line)
        elif start.lstrip()[:1] in (b"[", b"{") and path.suffix not in (".txt", ".md"):
            name = "orjson.loads"
            orjson.loads(path.read_bytes())
        else:
            name = "str.splitlines"
            path.read_text("utf-8").splitlines()
    return {"name": name}


WORK: dict[str, Callable[[Path], dict[str, Any]]] = {"read": read, "sizes": read_with_sizes, "baseline": baseline}


def work(what: str, folder: Path) -> None:
    """Import everything, say so, wait for a line, work, and print what it cost as JSON."""
    import orjson  # noqa: F401

    from palace_pipeline.exports import engine  # noqa: F401

    print("ready", flush=True)
    sys.stdin.readline()
    started = time.process_time()
    found = WORK[what](folder)
    print(json.dumps(found | {"cpu": time.process_time() - started}))


# --- around it --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds, the peak of own memory above that after the imports in MB, and what the work has counted."""

    cpu: float
    memory: float
    counts: dict[str, Any]


def measured(what: str, folder: Path) -> Cost:
    command = [sys.executable, __file__, "--work", what, "--folder", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit("a process ended before its work")
        memory = PeakMemory(process.pid)
        memory.start()
        process.stdin.write("\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        memory.stop()
        process.stdin.close()
    if process.returncode or not answer:
        raise SystemExit(f"a process failed ({process.returncode})")
    counts = json.loads(answer)
    return Cost(counts["cpu"], (memory.peak - memory.first) / 1e6, counts)


def report(name: str, folder: Path, size: int) -> None:
    KINDS[name](folder, size, export_files.Talk(1))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    sizes = measured("sizes", folder)
    reads = [measured("read", folder) for _ in range(ROUNDS)]
    bases = [measured("baseline", folder) for _ in range(ROUNDS)]
    cpu, base = min(cost.cpu for cost in reads), min(cost.cpu for cost in bases)
    memory, largest = max(cost.memory for cost in reads), sizes.counts["largest"] / 1e6
    print(
        f"| {name} | {size / 1e6:.0f} | {sizes.counts['conversations']:,} | {sizes.counts['messages']:,} | {cpu:.2f} "
        f"| {size / 1e6 / cpu:.0f} | {memory:.0f} | {largest:.1f} | {bases[0].counts['name']} {size / 1e6 / base:.0f} "
        f"| {base / cpu:.2f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", help="beginnings of names; without any, all formats")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--work", choices=sorted(WORK), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work is not None:
        work(given.work, given.folder)
        return
    names = [name for name in KINDS if not given.formats or name.startswith(tuple(given.formats))]
    now = datetime.now(UTC)
    print(f"{now:%Y-%m-%d %H:%M} UTC, {platform.system()} {platform.machine()}, {os.cpu_count()} cores, ", end="")
    print(f"Python {platform.python_version()}. Load at the start: {load()}\n")
    print("| format | MB | conversations | messages | CPU s | MB/s | memory MB | largest MB | baseline MB/s | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="palace-benchmark-") as folder:
            report(name, Path(folder), given.megabytes * 1_000_000)
    print(f"\nLoad at the end: {load()}")


if __name__ == "__main__":
    main()
