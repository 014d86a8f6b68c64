"""What a look found lost is marked in the ledger as due; the planner then asks for exactly those days."""

from __future__ import annotations

from collections.abc import Iterable

from palace_pipeline.gaps.compare import Gap
from palace_pipeline.gaps.sides import Damaged
from palace_pipeline.stages.missing import mark_missing
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger

_MADE_BY = {
    "raw/messages": "normalized",
    "raw/conversations": "normalized",
    "clean/messages": "redacted",
    "clean/conversations": "redacted",
    "clean/findings": "redacted",
    "clean/chunks": "chunks",
    "clean/drawers": "drawers",
    "clean/vectors": "drawers",
}
"""Table of the lake -> the stage that makes it."""


def mark(home: Home, ledger: Ledger, gaps: Iterable[Gap], damaged: Iterable[Damaged] = ()) -> int:
    """Note that these stages have to work on these conversations again; returns how many marks were set.

    Needs the home's write lock. A month file that cannot be read is deleted, as all of it can be made again from the
    vault; every conversation of the month is then due.
    """
    count = 0
    with ledger.transaction():
        for gap in gaps:
            for stage in gap.stages:
                if stage == "vectors":
                    ledger.write("UPDATE published SET hash = NULL WHERE provider = ? AND conversation_id = ?", gap.key)
                ledger.write(
                    f"UPDATE conversations SET {stage}_in = NULL WHERE provider = ? AND conversation_id = ?", gap.key
                )
                count += 1
    for table, month in damaged:
        # Noted first: a kill in between leaves a file that is looked at again.
        ledger.write(f"UPDATE conversations SET {_MADE_BY[table]}_in = NULL WHERE day LIKE ?", (f"{month}-%",))
        for path in home.lake.files(table, month):
            path.unlink(missing_ok=True)
        count += 1
    return count + mark_missing(home, ledger)
