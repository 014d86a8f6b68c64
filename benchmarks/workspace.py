"""What the workspace costs, in CPU time: pages written, pages read and parsed back, rows of the index looked up.

    python benchmarks/workspace.py [--pages 2000] [--rows 100000]

Session pages of 8 KB and 12 messages, in the forms agents write them. Each figure stands beside a baseline of the same
run, so that a busy machine shows: `Path.write_text` of the same text, and PyYAML's safe loader for the front matter with
a split at the headings. Written means all that a page goes through but fsync: lock, temporary file, read back, parsed,
compared, renamed, looked at again. The collector is off, as in `timeit`.
"""

from __future__ import annotations

import argparse
import gc
import random
import re
import resource
import shutil
import tempfile
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import yaml

from palace_pipeline.settings import Settings
from palace_pipeline.workspace import index, names
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.locks import locked
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.sections import SECTIONS
from palace_pipeline.workspace.session import Session, as_entry, render
from palace_pipeline.workspace.writing import put_page

WORDS = (
    *("the", "oven", "stays", "cold", "thermostat", "measured", "element", "replace", "because", "value"),
    *("烤箱", "温控器", "加热", "测量", "更换", "然后"),
)
BEGIN = datetime.fromisoformat("2026-01-01T08:00:00+08:00")


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def best(work: Callable[[], object], rounds: int = 3) -> float:
    """CPU seconds of the best of some rounds."""
    times: list[float] = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        before = cpu()
        work()
        times.append(cpu() - before)
        gc.enable()
    return min(times)


def a_session(number: int) -> Session:
    """A page of 8 KB with 12 messages; fifty begin on each day."""
    chance = random.Random(number)
    ts = BEGIN + timedelta(days=number // 50, minutes=number % 50)
    session = Session(
        names.session_id(ts, str(number)),
        ts,
        title=f"修复烤箱 {number}",
        tags=("烤箱", "repair"),
        model="some-model",
        turns=3,
        tokens_in=1200,
        tokens_out=300,
        summary="换掉温控器: done",
    )
    for entry in range(12):
        lines = [" ".join(chance.choices(WORDS, k=12)) for _ in range(7)]
        text = "\n".join(
            [*lines[:3], "", "```python", "x = 1  # no heading", "```", "", *lines[3:], "", "- [ ] test it"]
        )
        session.sections[SECTIONS[entry % 5]].append(as_entry(text, ts + timedelta(seconds=entry), "planner"))
    return session


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pages", type=int, default=2000)
    options.add_argument("--rows", type=int, default=100_000)
    given = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="palace-workspace-"))
    try:
        pages(folder, given.pages)
        lookups(folder, given.rows)
    finally:
        shutil.rmtree(folder)


def pages(folder: Path, number: int) -> None:
    workspace = Workspace(settings=Settings(home=folder))
    sessions = [a_session(n) for n in range(number)]
    paths = [folder / names.path_of(session.id, session.title) for session in sessions]
    texts = [render(session) for session in sessions]
    size = sum(len(text.encode()) for text in texts) / number
    print(f"{number:,} pages of {size:,.0f} bytes and 12 messages, CPU time, best of three")
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)

    def write() -> None:
        for session, path in zip(sessions, paths, strict=True):
            with locked(path.parent, names.prefix_of(session.id)) as lock:
                data = render(session).encode()

                def same(read: bytes, data: bytes = data, session: Session = session, path: Path = path) -> bool:
                    return read == data and parse(read.decode(), path).sections == session.sections

                put_page(folder, path, data, seen=None, same=same, lock=lock, durable=False)
            path.unlink()

    def write_text() -> None:
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")

    def read() -> None:
        for path in paths:
            parse(path.read_bytes().decode(), path)

    def read_with_yaml() -> None:
        for path in paths:
            _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
            yaml.safe_load(front)
            re.split(r"^(?:##|###) .*$", body, flags=re.MULTILINE)

    show("written (fsync apart)", number, best(write), 1500)
    show("  baseline: Path.write_text, unsafe", number, best(write_text))
    show("read and parsed back", number, best(read), 3000)
    show("  baseline: yaml.safe_load and re.split", number, best(read_with_yaml))
    assert all(
        parse(path.read_bytes().decode(), path) == session for path, session in zip(paths, sessions, strict=True)
    )
    assert len(list(workspace.sessions())) == number


def show(what: str, number: int, seconds: float, bar: int | None = None) -> None:
    rate = number / seconds
    verdict = "" if bar is None else f"  bar {bar:,}: {'met' if rate >= bar else 'MISSED'}"
    print(f"{what:42} {rate:>9,.0f} pages/s{verdict}")


def lookups(folder: Path, number: int) -> None:
    day = date(2024, 5, 3)
    rows = [
        index.Row(
            day,
            f"如何修复烤箱 {n}",
            ("烤箱",),
            "温控器坏了，换掉以后就好了。",
            f"conversations/chatgpt/2024/2024-05-03-x-{n:08x}.md",
        )
        for n in range(number)
    ]
    index.add_rows(folder, rows)
    size = (folder / index.INDEX).stat().st_size / 1e6
    print(f"index.md of {number:,} rows, {size:.1f} MB, CPU time of one lookup, best of three")
    for what, key in (("first row", f"chatgpt:{0:08x}"), ("last row", rows[-1].key), ("no row", "chatgpt:ffffffff")):
        milliseconds = best(lambda key=key: index.find(folder, key)) * 1000
        print(f"{what:42} {milliseconds:>9.1f} ms  bar 50: {'met' if milliseconds < 50 else 'MISSED'}")
    milliseconds = best(lambda: index.rows(folder), 1) * 1000
    print(f"{'  baseline: every row taken apart':42} {milliseconds:>9.1f} ms")


if __name__ == "__main__":
    main()
