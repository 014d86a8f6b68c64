"""Rows of `index.md` that are gone (a deleted, shortened or older file) are written again, from the pages that lie there."""

from __future__ import annotations

from pathlib import Path

import orjson

from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.transcripts.page import PageError, parse
from palace_pipeline.transcripts.page_path import parse_name
from palace_pipeline.workspace import index, names
from palace_pipeline.workspace.hiding import hide_by_rules
from palace_pipeline.workspace.reading import parse as parse_session
from palace_pipeline.workspace.writing import plain_file

_SEEN = "index_seen"
"""In the ledger's `meta`: the state of `index.md` when no row was missing in it."""


def without_row(home: Home, ledger: Ledger) -> list[str]:
    """Pages and sessions, by their paths below the home, that lie there and of which the index says nothing."""
    said = index.keys(home.path)
    rows = ledger.rows("SELECT provider, page FROM conversations WHERE page != ''")
    pages = [row["page"] for row in rows if row["provider"] != "session" and index.key_of(row["page"]) not in said]
    sessions = [path for path in names.pages_in(home.path) if names.id_of(path) not in said]
    return [path for path in (*pages, *sessions) if plain_file(home.path / path)]


def complete_index(home: Home, ledger: Ledger) -> int:
    """Add the rows that are missing; returns how many. Nothing is looked for in a file that is as it was when all were
    there. Needs the write lock."""
    state = orjson.dumps(_state(home.path / index.INDEX)).decode()
    if ledger.meta(_SEEN) == state:
        return 0
    missing = without_row(home, ledger)
    if missing:
        # A hand may have written on the pages since: the index shows what the rules let stand.
        clean = hide_by_rules(Funnel(home.settings.redaction, home.key(), forgotten=ledger.forgotten())).row
        index.add_missing(home.path, (clean(_row(home.path, path)) for path in missing))
        state = orjson.dumps(_state(home.path / index.INDEX)).decode()
    ledger.set_meta(_SEEN, state)
    return len(missing)


def _row(home: Path, path: str) -> index.Row:
    """The row of a page or a session as its file says it; of a page that cannot be read, as its name says it."""
    text = (home / path).read_bytes().decode("utf-8", "replace")
    if names.id_of(path) is not None:
        return index.session_row(parse_session(text, path), path)
    try:
        page = parse(text)
    except PageError:
        name = parse_name(path.rpartition("/")[2])
        assert name is not None, "the ledger knows only pages that Palace has named"
        return index.Row(name[0], path.rpartition("/")[2][11:-12], (), "", path)
    return index.conversation_row(page.conversation, page.head.day, page.user.tags, path)


def _state(path: Path) -> list[int]:
    try:
        info = path.stat()
    except FileNotFoundError:
        return []
    return [info.st_size, info.st_mtime_ns, info.st_ino]
