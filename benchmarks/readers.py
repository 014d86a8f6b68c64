"""What Palace and MemPalace make of the same small exports, format by format.

    python benchmarks/readers.py                     Palace alone
    python benchmarks/readers.py --mempalace VENV    and MemPalace of that environment

Every folder of `tests/fixtures/exports` holds files as a product writes them and the right answer. Counted are the
messages a person saw: *found* is a message whose whole text stands under its own role. *foreign* counts texts that must
not be in a transcript and are (thinking, hidden prompts, other branches, keys). *raw* counts files whose JSON was taken
for prose. MemPalace is asked through its own file scan and its own normalisation, which is what it would file; it keeps
no times, ids or titles, so these are not compared.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from palace_pipeline.exports.parse import parse_path
from palace_pipeline.model import VISIBLE_ROLES

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures" / "exports"

# Runs in MemPalace's environment: prints the transcripts that it would file of a folder, and files that it gave up on.
_MEMPALACE = """
import json, sys
from mempalace.convo_miner import scan_convos
from mempalace.normalize import normalize_conversations
out = []
for folder in sys.argv[1:]:
    texts, failed = [], 0
    for path in scan_convos(folder):
        try:
            texts += [text for text in normalize_conversations(str(path)) if text.strip()]
        except Exception:
            failed += 1
    out.append({"texts": texts, "failed": failed})
print(json.dumps(out))
"""


@dataclass(slots=True)
class Score:
    """Counts of one format. `wanted`: visible messages with text in the right answers."""

    wanted: int = 0
    found: int = 0
    foreign: int = 0
    raw: int = 0
    failed: int = 0

    def add(self, other: Score) -> None:
        """Sum in place."""
        for name, value in zip(self.__slots__, astuple(other), strict=True):
            setattr(self, name, getattr(self, name) + value)


def plain(text: str) -> str:
    """Without the differences that are no fault: white space, a space before a stop, byte order marks."""
    return re.sub(r" (?=[.,])", "", re.sub(r"\s+", " ", text.replace("\ufeff", ""))).strip()


def wanted_of(expected: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """(role, parts of the text) of each visible message that has text."""
    return [
        (message["role"], parts)
        for conversation in expected["conversations"]
        for message in conversation["messages"]
        if (parts := [plain(part) for part in message.get("segments") or [message["text"]] if plain(part)])
    ]


def of_palace(folder: Path, expected: dict[str, Any]) -> Score:
    """Our reading of a folder against the right answer."""
    shown = [
        (message["role"], plain(message["text"]))
        for conversation in parse_path(folder)["conversations"]
        for message in conversation["messages"]
        if message["role"] in VISIBLE_ROLES
    ]
    score = Score()
    for role, parts in wanted_of(expected):
        score.wanted += 1
        score.found += any(role == said_by and all(part in text for part in parts) for said_by, text in shown)
    everything = "\n".join(text for _, text in shown)
    score.foreign = sum(mark in everything for mark in expected.get("must_not_contain", []))
    return score


def of_mempalace(answer: dict[str, Any], expected: dict[str, Any]) -> Score:
    """Its transcripts against the right answer. It marks a person's words by `> ` before their first line (not in notes)."""
    score = Score(failed=answer["failed"])
    texts: list[str] = answer["texts"]
    score.raw = sum(text.lstrip()[:2] in ('{"', "[{", "{\n", "[\n") for text in texts)
    talk = [plain(text) for text in texts if text.lstrip()[:1] not in ("{", "[")]
    for role, parts in wanted_of(expected):
        score.wanted += 1
        score.found += any(
            all(part in text for part in parts)
            and (expected["format"] == "plain-notes" or (f"> {parts[0]}" in text) == (role == "user"))
            for text in talk
        )
    score.foreign = sum(any(mark in text for text in texts) for mark in expected.get("must_not_contain", []))
    return score


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mempalace", type=Path, metavar="VENV", help="environment that has mempalace")
    given = parser.parse_args()
    cases = sorted(path.parent for path in FIXTURES.glob("*/expected.json"))
    ours: dict[str, Score] = {}
    theirs: dict[str, Score] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folders: list[Path] = []
        for case in cases:
            # Under a name that says nothing, and without the answer.
            folders.append(Path(scratch, f"{len(folders):02}"))
            shutil.copytree(case, folders[-1], ignore=shutil.ignore_patterns("expected.json"))
        expected = [json.loads((case / "expected.json").read_text("utf-8")) for case in cases]
        for folder, right in zip(folders, expected, strict=True):
            ours.setdefault(right["format"], Score()).add(of_palace(folder, right))
        if given.mempalace:
            command = [str(given.mempalace / "bin" / "python"), "-c", _MEMPALACE, *map(str, folders)]
            answers = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            for answer, right in zip(answers, expected, strict=True):
                theirs.setdefault(right["format"], Score()).add(of_mempalace(answer, right))
    columns = "| format | messages | Palace found | foreign |"
    print(columns + (" MemPalace found | foreign | raw JSON as prose | failed |" if theirs else ""))
    print("|---|---|---|---|" + ("---|---|---|---|" if theirs else ""))
    total, other = Score(), Score()
    for name in sorted(ours):
        total.add(ours[name])
        line = f"| {name} | {ours[name].wanted} | {ours[name].found} | {ours[name].foreign} |"
        if theirs:
            other.add(theirs[name])
            line += f" {theirs[name].found} | {theirs[name].foreign} | {theirs[name].raw} | {theirs[name].failed} |"
        print(line)
    line = f"| all | {total.wanted} | {total.found} | {total.foreign} |"
    if theirs:
        line += f" {other.found} | {other.foreign} | {other.raw} | {other.failed} |"
    print(line)
    if theirs:
        print(f"\nratio of messages found, MemPalace to Palace: {other.found / max(total.found, 1):.2f}")


if __name__ == "__main__":
    sys.exit(main())
