"""Many writers at once, and writers that are killed: run as a program, since it forks.

`python -m tests.workspace.writers together HOME PROCESSES ENTRIES` · `… killed HOME KILLS SEED` · `… shown HOME PROCESSES
SEED`
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from palace_pipeline.workspace import index
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.memory import facts, set_fact
from palace_pipeline.workspace.sweeping import finish_claims

_PER_SESSION = 15
"""Kills of one session before the next begins."""


def _forked(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)


def together(home: Path, processes: int, entries: int) -> None:
    """All add to one session, begin one of their own, set a fact each and log a tool."""
    workspace = Workspace(home)
    shared = workspace.new("Shared", input="go")

    def work(number: int) -> Callable[[], None]:
        def run() -> None:
            own = workspace.new(f"Own {number}")
            for entry in range(entries):
                section = ("judgement", "tools", "todo")[entry % 3]
                workspace.append(shared.id, section, f"entry {number}.{entry}", who=f"w{number}", tokens_in=1)
            workspace.append(own.id, "conclusion", f"Done {number}.")
            set_fact(workspace, f"key {number}", f"value {number}")

        return run

    children = [_forked(work(number)) for number in range(processes)]
    codes = [os.waitpid(child, 0)[1] for child in children]
    assert codes == [0] * processes, codes

    page = workspace.load(shared.id)
    said = [entry.text for _, entry in page.session.entries()]
    assert sorted(said) == sorted(["go", *(f"entry {n}.{e}" for n in range(processes) for e in range(entries))])
    assert page.session.problems == ()
    assert page.session.tokens_in == processes * entries
    assert len(list(workspace.sessions())) == processes + 1
    rows = {row.title: row.summary for row in index.rows(home)}
    assert rows == {"Shared": "", **{f"Own {n}": f"Done {n}." for n in range(processes)}}
    assert facts(workspace) == {f"key {n}": f"value {n}" for n in range(processes)}
    calls = [line for line in (home / "logs/tool-calls.md").read_text().splitlines() if line.startswith("- ")]
    assert len(calls) == processes * len(range(1, entries, 3))
    assert all("entry " in line for line in calls)
    _nothing_left(home)


def killed(home: Path, kills: int, seed: int) -> None:
    """A writer is killed at any moment, again and again; all that it was told is written is there, and all is whole."""
    chance = random.Random(seed)
    workspace = Workspace(home)
    noted: dict[str, list[str]] = {}
    session = ""
    for number in range(kills):
        if number % _PER_SESSION == 0:
            session = workspace.new(f"Session {number}").id
            noted[session] = []
        reading, writing = os.pipe()

        def work(session: str = session, number: int = number, writing: int = writing) -> None:
            for entry in range(1000):
                text = f"entry {number}.{entry} " + "x" * 200
                page = workspace.append(session, ("tools", "judgement")[entry % 2], text, tags=[f"t{entry % 5}"])
                assert page.path.name.endswith(".md")
                os.write(writing, f"{text}\n".encode())

        child = _forked(work)
        os.close(writing)
        with os.fdopen(reading) as stream:
            for _ in range(chance.randrange(3)):
                noted[session].append(stream.readline().removesuffix("\n"))
            time.sleep(chance.uniform(0.0, 0.012))  # a whole step takes some five milliseconds
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            noted[session] += stream.read().splitlines()
        _all_there(workspace, session, noted[session])
    for one, texts in noted.items():
        workspace.append(one, "todo", "- [ ] after the kills")
        _all_there(workspace, one, texts)
        assert index.find(home, one) is not None
    for line in (home / "index.md").read_text(encoding="utf-8").splitlines():
        assert not line or line.startswith(("| ", "|---", "# ")), "a torn row"
    assert not list(home.rglob("*.conflict*"))
    _nothing_left(home)


def shown(home: Path, processes: int, seed: int) -> None:
    """Each writer shows in one of three pages of a conversation that something all of them say is a secret; a third of the
    writers is killed meanwhile. What is shown is nowhere in the end, what else was said is all there."""
    chance = random.Random(seed)
    workspace = Workspace(home)
    values = [
        f"Kiwi{''.join(chance.sample('hrxbtnq', 5))}{''.join(chance.sample('7395', 3))}Q" for _ in range(processes)
    ]
    root = workspace.new("root", input=" ".join(values)).id
    pages = [root, *(workspace.new(f"of {values[n]}", parent=root, input=" ".join(values)).id for n in range(2))]

    def work(number: int) -> Callable[[], None]:
        def run() -> None:
            for entry in range(3):
                workspace.append(pages[(number + entry) % 3], "tools", f"w{number}.{entry} uses {values[number - 1]}")
            workspace.append(pages[number % 3], "judgement", f"w{number} shows: the password is {values[number]}")
            set_fact(workspace, f"key {number}", values[number])

        return run

    children = [_forked(work(number)) for number in range(processes)]
    doomed = children[::3]
    for child in doomed:
        time.sleep(chance.uniform(0.0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)  # at once: as long as nobody has asked for it, its process and so its lock count as alive
    codes = [os.waitpid(child, 0)[1] for child in children if child not in doomed]
    assert not any(codes), codes
    finish_claims(home, lambda: workspace.key)
    text = "".join(path.read_text(encoding="utf-8") for path in workspace.sessions())
    for number, child in enumerate(children):
        told = [entry for entry in range(3) if f"w{number}.{entry} uses" in text]
        assert child in doomed or told == [0, 1, 2], f"{number} lost words"
        if f"w{number} shows: the password is [REDACTED" in text:
            left = [path.name for path in home.rglob("*") if _shows(path, values[number])]
            assert left == [], left
        else:
            assert child in doomed
    for page in pages:
        assert workspace.load(page).session.problems == ()


def _shows(path: Path, value: str) -> bool:
    return value.lower() in path.name.lower() or (path.is_file() and value.encode() in path.read_bytes())


def _all_there(workspace: Workspace, session: str, texts: list[str]) -> None:
    page = workspace.load(session).session
    assert page.problems == (), page.problems
    said = [entry.text for _, entry in page.entries()]
    assert len(said) == len(set(said)), "an entry stands twice"
    missing = set(texts) - set(said)
    assert not missing, f"{len(missing)} lost"
    assert len(said) <= len(texts) + _PER_SESSION + 1  # the one that was being told when the kill came


def _nothing_left(home: Path) -> None:
    left = [path.name for path in home.rglob(".*") if path.is_file() and path.name not in (".key",)]
    assert left == [], left


if __name__ == "__main__":
    {"together": together, "killed": killed, "shown": shown}[sys.argv[1]](
        Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    )
