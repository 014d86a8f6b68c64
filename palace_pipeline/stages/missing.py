"""What was taken away from the archive by hand is made again: deleted pages, rows of `index.md`, a deleted search index,
deleted tables."""

from __future__ import annotations

import os
import time
from pathlib import Path

import orjson

from palace_pipeline.planner import EVER, due, watch
from palace_pipeline.stages.embed import begin_anew
from palace_pipeline.stages.indexed import complete_index
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger

_FOLDERS = "page_folders"
"""In the ledger's `meta`: the state of each folder of pages when nothing was missing in it."""
_SETTLED_NS = 2_000_000_000


def mark_missing(home: Home, ledger: Ledger) -> int:
    """Mark as due whatever should lie in the home and does not; returns how many things were missing.

    A page deleted by hand is a gap (forgetting is another command); an index that is gone is begun anew. It is the look
    before planning: the ledger lists from now on what has work.
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
    rows = complete_index(home, ledger)
    recipes = recipes_of(home)
    if home.chroma_next.exists() and not due(ledger, "vectors", EVER, recipes):
        # It was killed before it took its place: the next run compares it with the lake, and puts it there.
        ledger.write("UPDATE conversations SET vectors_in = NULL")
    watch(ledger, recipes)
    return len(lost) + len(gone) + tables + rows


def _lost_pages(home: Home, ledger: Ledger) -> list[str]:
    """Pages that are not where they were written.

    Of a folder whose state is that of the last look, in which nothing was missing, no name is read: in a large archive a
    look would cost more than the work on a grown conversation.
    """
    known: dict[str, list[int]] = orjson.loads(ledger.meta(_FOLDERS) or "{}")
    seen: dict[str, list[int]] = {}
    lost: list[str] = []
    for folder in _folders_of_pages(ledger):
        state = _state(home.path / folder)
        if state is not None and known.get(folder) == state:
            seen[folder] = state
            continue
        present = _names(home.path / folder)
        missing = [page for page in _pages_in(ledger, folder) if page.rpartition("/")[2] not in present]
        lost += missing
        # A folder that has just changed may change again without another time of change.
        if state is not None and not missing and max(state[:2]) < time.time_ns() - _SETTLED_NS:
            seen[folder] = state
    if seen != known:
        ledger.set_meta(_FOLDERS, orjson.dumps(seen).decode())
    return lost


def _folders_of_pages(ledger: Ledger) -> list[str]:
    """Folders (relative to the home) in which the ledger has pages; found by leaps over the index of pages."""
    found: list[str] = []
    after = ""
    while (row := ledger.one("SELECT min(page) AS page FROM conversations WHERE page > ?", (after,))) and row["page"]:
        folder = row["page"].rpartition("/")[0]
        found.append(folder)
        after = f"{folder}/\U0010ffff"
    return found


def _pages_in(ledger: Ledger, folder: str) -> list[str]:
    rows = ledger.rows(
        "SELECT page FROM conversations WHERE page > ? AND page < ? AND pages_in IS NOT NULL",
        (f"{folder}/", f"{folder}/\U0010ffff"),
    )
    return [row["page"] for row in rows if row["page"].rpartition("/")[0] == folder]


def _state(folder: Path) -> list[int] | None:
    """What changes with every name that comes to a folder or goes: times of change (ns) and the folder's own number."""
    try:
        info = folder.stat()
    except OSError:
        return None
    return [info.st_mtime_ns, info.st_ctime_ns, info.st_ino]


def _names(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return set()
