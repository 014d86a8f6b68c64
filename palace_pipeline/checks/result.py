"""What a check says: whether it holds, and if not what is wrong, where, and which command mends it. Never a word of a chat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Literal

from palace_pipeline.planner import Range, ranges

if TYPE_CHECKING:
    from palace_pipeline.checks.look import Look, Part

Severity = Literal["error", "warn"]
Key = tuple[str, str]
MOST_NAMED = 20
"""Problems that a result names; all are counted."""
_KEPT = 1_000
_MOST_COMMANDS = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `table`: the store or table; `mend`: what puts it right (None: a backfill of its day)."""

    what: str
    table: str = ""
    day: date | None = None
    key: Key | None = None
    mend: str | None = None
    severity: Severity = "error"

    @property
    def where(self) -> str:
        """Table, day and conversation, as far as they are known."""
        key = f"{self.key[0]} {self.key[1]}" if self.key is not None else ""
        return ", ".join(part for part in (self.table, str(self.day or ""), key) if part)

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


@dataclass(slots=True)
class Found:
    """What a check saw, part by part: problems (the first thousand), how many there were, and figures that add up.

    `shares`: (row of a table, column) -> count, for checks that show a table.
    """

    problems: list[Problem] = field(default_factory=list[Problem])
    errors: int = 0
    warnings: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    shares: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def note(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if problem.severity == "error":
                self.errors += 1
            else:
                self.warnings += 1
            if len(self.problems) < _KEPT:
                self.problems.append(problem)


@dataclass(frozen=True, slots=True)
class Result:
    """A check's answer. `figures`: what it counted; `rows`: a table to show beside them."""

    name: str
    asset: str
    blocking: bool
    passed: bool
    severity: Severity
    count: int
    problems: Sequence[Problem]
    figures: dict[str, int]
    rows: Sequence[dict[str, str | int | float]] = ()

    @property
    def mends(self) -> list[str]:
        """The commands (or acts) that put it right, each once; days close together are one backfill."""
        said = [problem.mend for problem in self.problems if problem.mend]
        spans = ranges(problem.day for problem in self.problems if not problem.mend and problem.day is not None)
        return [*map(backfill, spans[:_MOST_COMMANDS]), *dict.fromkeys(said)][:_MOST_COMMANDS]

    def told(self) -> dict[str, str]:
        """The answer as receipts keep it."""
        return {"check": self.name, "asset": self.asset, "severity": self.severity, "what": self.said}

    @property
    def said(self) -> str:
        """The answer in plain words."""
        if self.passed:
            return "As it should be."
        mends = " · ".join(self.mends)
        return f"{self.what}." + (f" Mend: {mends}" if mends else "")

    @property
    def what(self) -> str:
        """What is wrong and where: the worst three, and how many more there are."""
        first = "; ".join(str(problem) for problem in self.problems[:3])
        return first + (f"; and {self.count - 3:,} more" if self.count > 3 else "")


@dataclass(frozen=True, slots=True)
class Check:
    """A check of some days. `stage`: the last stage of the flow that it depends on; what waits for it (or for one before)
    is not compared.

    `look_at` is called for one part of the days after the other, in bounded memory; `finish` at the end. A `blocking`
    check that finds an error stops the run before anything is published.
    """

    name: str
    asset: str
    stage: str
    description: str
    look_at: Callable[[Part, Found], None]
    blocking: bool = False
    finish: Callable[[Look, Found], None] | None = None
    table: Callable[[Found], list[dict[str, str | int | float]]] | None = None

    def result(self, found: Found) -> Result:
        count = found.errors + found.warnings
        worst_first = sorted(found.problems, key=lambda problem: problem.severity != "error")
        return Result(
            name=self.name,
            asset=self.asset,
            blocking=self.blocking,
            passed=count == 0,
            severity="warn" if count and not found.errors else "error",
            count=count,
            problems=worst_first[:MOST_NAMED],
            figures=dict(sorted(found.counts.items())),
            rows=self.table(found) if self.table is not None else (),
        )


def backfill(span: Range) -> str:
    """The command that makes days again from the vault."""
    return f"palace backfill --from {span.first} --to {span.last}"
