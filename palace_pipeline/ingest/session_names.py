"""Before pages of live sessions are read: what must not be shown is masked (what writers that were killed had still to
mask, what new rules find, what somebody has put back), and a page that has another name now is known by it.

A page's name is its title, so it is another one when what the title said is masked, or when somebody renames the file.
Nothing of the old name must stay in the ledger: the tables show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from palace_pipeline.ingest.file_rows import quarantine_file
from palace_pipeline.ingest.purged import Purged
from palace_pipeline.redaction.forgotten import MASK
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.stages.recipes import redaction_of
from palace_pipeline.stages.words_gone import note_old_words
from palace_pipeline.store import catalogue
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Key, Ledger
from palace_pipeline.store.vault import Vault
from palace_pipeline.workspace import names
from palace_pipeline.workspace.forgetting import mask_again
from palace_pipeline.workspace.hiding import hide_by_rules, hide_values
from palace_pipeline.workspace.memory import MEMORY
from palace_pipeline.workspace.sweeping import all_sessions, finish_claims, mask_put_back, page_of

_RULES = "sessions_recipe"
"""Name in the ledger's `meta` of the rules by which live sessions, memory and logs were looked at last."""

_TABLES = (
    *((table, ("path",)) for table in ("files", "skips", "unknown_names", "unpublished")),
    *((table, ("path", "member")) for table in ("members", "file_elements", "sightings")),
)
"""Tables of the ledger, and their columns that say where a page lies: as a whole path, and below the home."""


def ready_sessions(home: Home) -> int:
    """Do all of it; returns of how many pages the name is another. Needs the write lock, and to be done before folders are
    looked through."""
    if not (home.path / names.SESSIONS).is_dir() and not (home.path / MEMORY).is_dir():
        return 0
    finish_claims(home.path, home.key)
    with home.ledger() as ledger, home.vault() as vault:
        _follow_rules(home, ledger)
        moved = follow_names(home, ledger, vault)
        vault.commit()
    return moved


def ready_pages(home: Home) -> None:
    """The same for pages that no archive was made of yet: none is begun."""
    if home.ledger_path.exists():
        ready_sessions(home)
    else:
        finish_claims(home.path, home.key)
        mask_put_back(home.path, home.key, all_sessions(home.path), None, None)


def _changed(home: Home, ledger: Ledger) -> Iterator[Path]:
    """Pages of sessions that are not what the ledger has read."""
    known = ledger.known_files()
    known_as = Purged.of(home, ledger).known_as
    for path in all_sessions(home.path):
        row = known.get(known_as(str(path)))
        with suppress(FileNotFoundError):
            now = path.stat()
            if row is None or (row["size"], row["mtime_ns"], row["inode"]) != (
                now.st_size,
                now.st_mtime_ns,
                now.st_ino,
            ):
                yield path


def _follow_rules(home: Home, ledger: Ledger) -> None:
    """Mask what the rules of today find in what programs wrote under earlier ones, and what somebody has put back. What
    cannot be read now is looked at again by the next run."""
    forgotten = ledger.forgotten()
    recipe = redaction_of(home, forgotten)

    def funnel() -> Funnel:
        return Funnel(home.settings.redaction, home.key(), forgotten=forgotten)

    purged = hide_values(forgotten, home.key(), MASK) if forgotten else None
    new = ledger.meta(_RULES) != recipe
    rules = None if new else lambda: hide_by_rules(funnel())
    mask_put_back(home.path, home.key, list(_changed(home, ledger)), purged, rules)
    if new and not mask_again(home.path, funnel()).left:
        ledger.set_meta(_RULES, recipe)


def follow_names(home: Home, ledger: Ledger, vault: Vault) -> int:
    """Know pages of sessions by the names that they have now; returns how many have another. The caller commits the vault."""
    known_as = Purged.of(home, ledger).known_as
    root = known_as(f"{home.path / names.SESSIONS}/")
    rows = ledger.rows("SELECT path FROM files WHERE substr(path, 1, ?) = ?", (len(root), root))
    rows += ledger.rows("SELECT DISTINCT path FROM sightings WHERE substr(path, 1, ?) = ?", (len(root), root))
    moved: dict[str, str] = {}
    for path in {str(row["path"]) for row in rows}:
        session = names.id_of(path)
        if (
            session is not None
            and not Path(path).exists()
            and (now := page_of(home.path / names.folder_of(session), session)) is not None
        ):
            moved[path] = known_as(str(now))
    moved = {old: new for old, new in moved.items() if old != new}
    if not moved:
        return 0
    with ledger.transaction():
        for old, new in moved.items():
            _move(home, ledger, old, new)
        note_old_words(ledger)
    for old, new in moved.items():
        catalogue.note_file(ledger, vault, old)
        catalogue.note_file(ledger, vault, new)
        vault.change("UPDATE OR REPLACE places SET path = ?, member = ? WHERE path = ?", [(new, _inside(new), old)])
    return len(moved)


def _move(home: Home, ledger: Ledger, old: str, new: str) -> None:
    for row in ledger.rows("SELECT DISTINCT provider, conversation_id FROM sightings WHERE path = ?", (old,)):
        source_is_called_anew(ledger, (row["provider"], row["conversation_id"]))
    for table, columns in _TABLES:
        values = (new, _inside(new))[: len(columns)]
        sets = ", ".join(f"{column} = ?" for column in columns)
        ledger.write(f"UPDATE OR REPLACE {table} SET {sets} WHERE path = ?", (*values, old))
    ledger.write("DELETE FROM shown_names WHERE name IN (?, ?)", (old, _inside(old)))
    quarantine_file(home, old).unlink(missing_ok=True)


def source_is_called_anew(ledger: Ledger, key: Key) -> None:
    """Rows, page, tables and indexes of a conversation say where it was read: they are made anew."""
    ledger.write(
        "UPDATE conversations SET normalized_in = NULL, redacted_in = NULL, pages_in = NULL, vectors_in = NULL, "
        "tables_in = NULL WHERE provider = ? AND conversation_id = ?",
        key,
    )


def _inside(path: str) -> str:
    """How a page's path stands in rows: from `sessions/` on."""
    return path[path.rindex(f"/{names.SESSIONS}/") + 1 :]
