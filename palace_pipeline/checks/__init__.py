"""The checks of an archive: one list, used by every run over its days and by `palace doctor` over all of them.

A check sees rows and figures, and says in plain words what is wrong, where (table, day, conversation) and which command
mends it; never a word of a chat. `docs/architecture.md` says which ones stop a run, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from palace_pipeline.checks.counts import COUNTS
from palace_pipeline.checks.exports import ACCOUNTED, FRESH, accounted
from palace_pipeline.checks.look import Look
from palace_pipeline.checks.messages import DOUBLED, QUALITY, TIMES
from palace_pipeline.checks.notes import NOTES
from palace_pipeline.checks.pages import PAGES
from palace_pipeline.checks.result import Check, Found, Problem, Result
from palace_pipeline.checks.tables import published_check, schema_check
from palace_pipeline.checks.vectors import INDEX
from palace_pipeline.checks.words import WORDS
from palace_pipeline.planner import Range
from palace_pipeline.store.home import Home
from palace_pipeline.store.lake import LakeDamaged

__all__ = ["CHECKS", "OF_FILES", "Check", "Problem", "Result", "audit", "examine", "of_asset", "whole"]

CHECKS: tuple[Check, ...] = (
    schema_check("normalized_transcripts", "normalized", ("raw/messages", "raw/conversations")),
    DOUBLED,
    TIMES,
    QUALITY,
    schema_check("redacted_transcripts", "redacted", ("clean/messages", "clean/conversations", "clean/findings")),
    schema_check("redacted_chunks", "chunks", ("clean/chunks",)),
    WORDS,
    schema_check("drawers", "drawers", ("clean/drawers", "clean/vectors")),
    PAGES,
    NOTES,
    INDEX,
    published_check("palace_tables", "tables"),
    COUNTS,
)
"""The checks of days, in the order of the flow."""
OF_FILES: tuple[Check, ...] = (ACCOUNTED, FRESH)
"""Those of `raw_exports`; see `checks.exports`."""


def of_asset(asset: str) -> list[Check]:
    """The checks of an asset."""
    return [check for check in (*CHECKS, *OF_FILES) if check.asset == asset]


def examine(home: Home, span: Range, checks: Sequence[Check] = CHECKS, *, everything: bool = False) -> list[Result]:
    """Look at some days, once, and say what each check finds. `everything`: the span is all there is.

    The caller holds the home's write lock: a run between two stages looks like something broken.
    """
    found = {id(check): Found() for check in checks}
    able = list(checks)
    with Look(home, span, everything=everything) as look:
        for part in look.parts():
            able = [check for check in able if _looked(check, found[id(check)], lambda c, f: c.look_at(part, f))]  # noqa: B023
        for check in able:
            if check.finish is not None:
                _looked(check, found[id(check)], lambda c, f: c.finish(look, f) if c.finish is not None else None)
    return [check.result(found[id(check)]) for check in checks]


def _looked(check: Check, found: Found, look: object) -> bool:
    """Call a look; what keeps it from looking is a finding. Returns whether it could."""
    try:
        assert callable(look)
        look(check, found)
    except LakeDamaged as error:
        found.note([Problem(error.what, mend=error.mend)])
        return False
    except Exception as error:  # noqa: BLE001 - a store that cannot be read has many words for it, which may quote a text
        found.note([Problem(f"could not look ({type(error).__name__})", check.asset, mend="palace doctor")])
        return False
    return True


def audit(home: Home, span: Range) -> dict[str, str]:
    """What is wrong on some days, and with files: asset and check -> what, where and what mends it. Empty if nothing is."""
    with home.writing(), home.ledger() as ledger:
        results = [*examine(home, span), accounted(home, ledger)]
    return {f"{result.asset} {result.name}": result.said for result in results if not result.passed}


def whole(home: Home) -> Range | None:
    """All days of an archive: those of the ledger and those of the lake. None if there are none."""
    with home.ledger() as ledger:
        row = ledger.one("SELECT min(day), max(day) FROM conversations")
    days: list[date] = [date.fromisoformat(day) for day in (row or ()) if day]
    for table in ("raw/messages", "clean/messages", "clean/drawers"):
        days += _bounds(home.lake.months(table))
    return Range(min(days), max(days)) if days else None


def _bounds(months: Iterable[str]) -> list[date]:
    """First and last day that the months may have."""
    names = sorted(months)
    if not names:
        return []
    year, month = map(int, names[-1].split("-"))
    after = date(year + month // 12, month % 12 + 1, 1)
    return [date.fromisoformat(f"{names[0]}-01"), date.fromordinal(after.toordinal() - 1)]
