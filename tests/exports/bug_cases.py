"""The table of public bug reports (`bug_cases.toml`) -> `docs/bug-cases.md`.

`python -m tests.exports.bug_cases` writes the document; a test compares it with the table.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = ROOT / "docs" / "bug-cases.md"
FIXTURES = ROOT / "tests" / "fixtures" / "exports"
HERE = "tests/exports/test_bug_cases.py"

_HEAD = """\
# How importers of AI chats fail, and what Palace does

{count} public reports about other programs, each tried in the tests: {held} of them on a fixture whose right answer is
compared, {made} on input that a test makes. What stands under "elsewhere" is what the report says, in our words, at the
time it was written; the program may have been mended since.

The table is made from `tests/exports/bug_cases.toml` (`python -m tests.exports.bug_cases`), and a test compares the two.
"""


@dataclass(frozen=True)
class BugCase:
    """A report: what goes wrong elsewhere, what Palace does, and what tries it."""

    id: str
    area: str
    url: str
    wrong: str
    right: str
    fixtures: list[str] = field(default_factory=list[str])
    tests: list[str] = field(default_factory=list[str])

    def folders(self) -> list[Path]:
        """The fixtures that hold it."""
        return [folder for number in self.fixtures for folder in FIXTURES.glob(f"{number}*-*")]

    def places(self) -> list[tuple[str, str]]:
        """(file, function) of its tests; "" for all of a file."""
        named = [test if "/" in test else f"{HERE}::{test}" for test in self.tests]
        return [(name.partition("::")[0], name.partition("::")[2]) for name in named]


def table() -> list[BugCase]:
    """All cases, in the order of the file."""
    found = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return [BugCase(name, **values) for name, values in found.items()]


def functions_of(file: str) -> set[str]:
    """Names of the test functions of a file below the project."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def rendered() -> str:
    """The document."""
    cases = table()
    made = sum(bool(case.tests) for case in cases)
    parts = [_HEAD.format(count=len(cases), held=sum(bool(case.fixtures) for case in cases), made=made)]
    for area in dict.fromkeys(case.area for case in cases):
        parts.append(f"\n## {area}\n\n| case | elsewhere | Palace | tried by |\n|---|---|---|---|")
        parts += [_row(case) for case in cases if case.area == area]
    return "\n".join(parts) + "\n"


def _row(case: BugCase) -> str:
    tried = [f"fixture {', '.join(case.fixtures)}"] if case.fixtures else []
    tried += [f"`{name or file.removeprefix('tests/')}`" for file, name in case.places()]
    cells = [f"[{case.id}]({case.url})", case.wrong, case.right, "; ".join(tried)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    DOCUMENT.write_text(rendered(), "utf-8")
