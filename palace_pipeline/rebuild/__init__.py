"""`palace rebuild`: every derived store from scratch, beside the old ones, which are read until the new ones are whole.

From the lake: Chroma, the lexical index, `palace.duckdb`. From the vault: before that the ledger's knowledge of what was
built, the lake and the pages, from records that are read anew out of the raw bytes; a lost or damaged ledger or vault is
made again as far as the other one, the export files and the lake still know. From the pages: all of it from Markdown
alone, as far as pages hold it. A kill costs the step it hit: the next
`palace rebuild` goes on, and an `ingest` brings what is left to its end.
"""

from __future__ import annotations

from palace_pipeline.rebuild.derived import derive, finish, note_left
from palace_pipeline.rebuild.foundation import Recovered, make_foundation
from palace_pipeline.rebuild.pages import Taken, any_pages, take_pages
from palace_pipeline.store.home import Home

__all__ = ["Recovered", "Taken", "any_pages", "finish", "from_lake", "from_pages", "from_vault"]


def from_lake(home: Home, batch: str) -> dict[str, int]:
    """Make both indexes and the tables anew from the lake. Needs the write lock. Returns rows by store.

    Raises LakeDamaged (the text names what mends it), LedgerDamaged.
    """
    with home.ledger() as ledger:
        note_left(ledger)
    return derive(home, batch)


def from_pages(home: Home, batch: str) -> tuple[Taken, dict[str, int]]:
    """Take in what the pages say of conversations that are not known otherwise, and make everything behind anew. Needs
    the write lock. Returns what became of the pages, and rows by store."""
    with home.ledger() as ledger:
        note_left(ledger, pages=True)
    taken = take_pages(home)
    with home.ledger() as ledger:
        note_left(ledger)
    return taken, derive(home, batch)


def from_vault(home: Home, batch: str) -> tuple[Recovered, dict[str, int]]:
    """Make everything behind the vault anew. Needs the write lock. Returns what had to be recovered, and rows by store."""
    recovered = make_foundation(home, batch)
    return recovered, derive(home, batch)
