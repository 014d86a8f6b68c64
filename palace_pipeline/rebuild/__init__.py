"""`palace rebuild`: every derived store from scratch, beside the old ones, which are read until the new ones are whole.

From the lake: Chroma, the lexical index, `palace.duckdb`. From the vault: before that the ledger's knowledge of what was
built, the lake and the pages, from records that are read anew out of the raw bytes; a lost or damaged ledger or vault is
made again as far as the other one, the export files and the lake still know. A kill costs the step it hit: the next
`palace rebuild` goes on, and an `ingest` brings what is left to its end.
"""

from __future__ import annotations

from palace_pipeline.rebuild.derived import derive, finish, note_left
from palace_pipeline.rebuild.foundation import Recovered, make_foundation
from palace_pipeline.store.home import Home

__all__ = ["Recovered", "finish", "from_lake", "from_vault"]


def from_lake(home: Home, batch: str) -> dict[str, int]:
    """Make both indexes and the tables anew from the lake. Needs the write lock. Returns rows by store.

    Raises LakeDamaged (the text names what mends it), LedgerDamaged.
    """
    with home.ledger() as ledger:
        note_left(ledger)
    return derive(home, batch)


def from_vault(home: Home, batch: str) -> tuple[Recovered, dict[str, int]]:
    """Make everything behind the vault anew. Needs the write lock. Returns what had to be recovered, and rows by store."""
    recovered = make_foundation(home, batch)
    return recovered, derive(home, batch)
