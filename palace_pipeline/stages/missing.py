"""What was taken away from the archive by hand is made again: deleted pages, a deleted index, deleted tables."""

from __future__ import annotations

import os

from palace_pipeline.stages.embed import begin_anew
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger


def mark_missing(home: Home, ledger: Ledger) -> int:
    """Mark as due whatever should lie in the home and does not; returns how many things were missing.

    A page deleted by hand is a gap (forgetting is another command); an index that is gone is begun anew.
    """
    lost = _lost_pages(home, ledger)
    with ledger.transaction():
        ledger.write_many("UPDATE conversations SET pages_in = NULL WHERE page = ?", ((page,) for page in lost))
        published = ledger.one("SELECT 1 FROM published WHERE hash IS NOT NULL LIMIT 1") is not None
        indexes = (home.path / "chroma/chroma.sqlite3", home.path / "lexical/meta.json")
        gone = [index for index in indexes if not index.exists()] if published else []
        tables = not home.warehouse.exists() and (
            ledger.one("SELECT 1 FROM conversations WHERE tables_in IS NOT NULL LIMIT 1") is not None
        )
        if tables:
            ledger.write("UPDATE conversations SET tables_in = NULL")
    if gone:
        begin_anew(ledger)
    return len(lost) + len(gone) + tables


def _lost_pages(home: Home, ledger: Ledger) -> list[str]:
    present: set[str] = set()
    stack = [str(home.conversations)]
    while stack:
        folder = stack.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
                    else:
                        present.add(os.path.relpath(entry.path, home.path))
        except FileNotFoundError:
            continue
    pages = ledger.rows("SELECT page FROM conversations WHERE page != '' AND pages_in IS NOT NULL")
    return [row["page"] for row in pages if row["page"] not in present]
