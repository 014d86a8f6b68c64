"""Any damage: mutants of every fixture, and laws that must hold whatever a file has become.

The default run takes a few mutants of each file, `pytest -m slow` twenty thousand. A mutant is known by its case, file
and number; `-k` and the number that a failure names show it again.
"""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from palace_pipeline.exports.parse import parse_path
from tests.exports.fuzz_oracle import (
    Reading,
    problems,
    read,
    read_by_elements,
    silently_lost,
    source_text,
    words_missing,
)
from tests.exports.mutations import Mutant, mutants, shape_of

FIXTURES = Path(__file__).parent.parent / "fixtures" / "exports"
SEED = 20261129
FEW, MANY = 4, 20_000
WHOLE_EVERY = 4
"""Of so many mutants one is read as people do it: its whole folder from disk."""
HANG_SECONDS = 60.0
"""CPU time after which a mutant counts as a hang. A thousand times what it needs: no measure of speed."""

CHANGE_LOGS = {"vscode-copilot-log"}
"""Formats whose lines are changes to what the lines before them say: a lost one changes what the next ones mean."""


@dataclass(frozen=True)
class Case:
    """A fixture in memory: path -> content, without the right answer."""

    name: str
    files: dict[str, bytes]

    def with_file(self, path: str, data: bytes) -> dict[str, bytes]:
        return {**self.files, path: data}


CASES = [
    Case(
        folder.name,
        {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in sorted(folder.rglob("*"))
            if file.is_file() and file.name != "expected.json"
        },
    )
    for folder in sorted(path.parent for path in FIXTURES.glob("*/expected.json"))
]
FILES = [(case, path) for case in CASES for path, data in case.files.items() if data]


@contextmanager
def hang_guard() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("a hang")

    old = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)


@cache
def text_of(name: str, path: str) -> str:
    return source_text(next(case for case in CASES if case.name == name).files[path])


@cache
def original(name: str, path: str) -> tuple[Reading, str, str]:
    """How a fixture's file is read, its text, and the text of the files beside it."""
    case = next(case for case in CASES if case.name == name)
    beside = "\n".join(text_of(name, other) for other in case.files if other != path)
    return read_by_elements(case.files, path), text_of(name, path), f"{beside}\n{chr(10).join(case.files)}"


def mutant_of(case: Case, path: str, number: int) -> Mutant:
    shape = None if path.lower().endswith(".zip") else original(case.name, path)[0].shape
    shape = shape or shape_of(path, case.files[path])
    return next(mutants(path, case.files[path], shape, random.Random(f"{SEED}:{case.name}:{path}:{number}")))


def trial(case: Case, path: str, number: int, folder: Path) -> tuple[Mutant, list[str]]:
    """One mutant and every law that it breaks."""
    mutant = mutant_of(case, path, number)
    files = case.with_file(path, mutant.data)
    with hang_guard():
        if path.lower().endswith(".zip"):
            # What can be unpacked of a damaged one depends on who unpacks it.
            return mutant, whole({path: mutant.data}, folder, f"{text_of(case.name, path)}\n{source_text(mutant.data)}")
        before, was, beside = original(case.name, path)
        now = source_text(mutant.data)
        if shape_of(path, case.files[path]).kind in ("zip", "sqlite"):
            now += f"\n{was}"
        after = read(files, path)
        found = problems(mutant, before, after, f"{now}\n{beside}")
        if before.format not in CHANGE_LOGS:
            found += silently_lost(mutant, before, after, was, now)
        if mutant.same_as is not None and before.format not in CHANGE_LOGS:
            other = read(case.with_file(path, mutant.same_as), path)
            if set(other.records) != set(after.records):
                found.append("damage is not read like absence")
            if before.found and not after.report.skips:
                found.append("damage is not counted")
        if read(files, path).answer() != after.answer():
            found.append("read twice, another answer")
        if number % WHOLE_EVERY == 0:
            found += whole(files, folder, f"{now}\n{beside}")
    return mutant, found


def whole(files: dict[str, bytes], folder: Path, source: str) -> list[str]:
    """The folder as `palace parse` reads it, twice; breaches of what needs no knowledge of the mutant."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    first = parse_path(folder)
    found = [] if json.dumps(first) == json.dumps(parse_path(folder)) else ["parsed twice, another answer"]
    if not first["conversations"] and not first["skipped"] and any(data.strip() for data in files.values()):
        found.append("nothing parsed and nothing said")
    visible = (m for c in first["conversations"] for m in c["messages"] if m["role"] in ("user", "assistant", "bot"))
    if missing := words_missing((m["text"] for m in visible), source):
        found.append(f"invented {missing} words when parsed")
    return found


def run(work: list[tuple[Case, str, int]], folder: Path) -> tuple[Counter[str], list[str]]:
    """What was done how often, and every breach with what is needed to see it again."""
    done: Counter[str] = Counter()
    breaches: list[str] = []
    for count, (case, path, number) in enumerate(work):
        place = folder / str(count)
        try:
            mutant, found = trial(case, path, number, place)
        except Exception as error:
            mutant, found = mutant_of(case, path, number), [f"raised {type(error).__name__}"]
        done[mutant.how.split(" ")[0]] += 1
        breaches += [f"{case.name} | {path} | {number} | {mutant.how} | {what}" for what in found]
        if place.exists():
            for file in sorted(place.rglob("*"), reverse=True):
                file.unlink() if file.is_file() else file.rmdir()
    return done, breaches


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_few_mutants_of_each_file(case: Case, tmp_path: Path) -> None:
    paths = [path for path in case.files if (case, path) in FILES]
    few = 1 if case.name.endswith("zip-containers") else FEW  # bombs take their time
    _, breaches = run([(case, path, number) for path in paths for number in range(few)], tmp_path)
    assert not breaches, "\n".join(breaches)


@pytest.mark.slow
def test_twenty_thousand_mutants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    each = -(-MANY // len(FILES))
    work = [(case, path, number) for case, path in FILES for number in range(FEW, FEW + each)]
    done, breaches = run(work, tmp_path)
    with capsys.disabled():
        print(
            f"\n{sum(done.values())} mutants of {len(FILES)} files in {len(CASES)} fixtures, {len(breaches)} breaches"
        )
        print(", ".join(f"{how} {count}" for how, count in done.most_common()))
    assert not breaches, "\n".join(breaches)
