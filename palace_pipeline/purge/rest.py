"""What follows once the ledger has let something go: every store loses it, and what was deleted leaves the disk.

Everything here can be done again from any point, and needs nothing that the ledger does not know: a purge that was
killed is finished by the next one, or by the next ingest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import orjson

from palace_pipeline.ingest.file_rows import quarantine_file
from palace_pipeline.ingest.session_names import follow_names
from palace_pipeline.planner import plan, ranges
from palace_pipeline.purge.proof import is_sqlite
from palace_pipeline.redaction import made
from palace_pipeline.redaction.forgetting import KIND_IN_NAMES
from palace_pipeline.redaction.forgotten import Forgotten, masked, masked_name, masked_paths
from palace_pipeline.stages.chunk import chunk
from palace_pipeline.stages.common import Counts, Job
from palace_pipeline.stages.drawers import file_drawers
from palace_pipeline.stages.embed import publish_vectors, rebuild_indexes
from palace_pipeline.stages.normalize import normalize
from palace_pipeline.stages.pages import write_pages
from palace_pipeline.stages.publish import publish_exports, publish_tables
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.redact import redact
from palace_pipeline.store import catalogue, pages
from palace_pipeline.store.compact import compact
from palace_pipeline.store.files import write_bytes
from palace_pipeline.store.home import Home
from palace_pipeline.store.keep import forget_kept
from palace_pipeline.store.ledger import Key, Ledger
from palace_pipeline.store.notes import update_notes
from palace_pipeline.transcripts.notes import NOTES
from palace_pipeline.workspace.forgetting import forget_conversations, mask_values
from palace_pipeline.workspace.names import folder_of, is_id, prefix_of

UNFINISHED = "purging"
"""Name in the ledger's `meta` of what a purge still has to do."""
PUT_OFF = "purge_put_off"
"""The same of what could not be masked in sessions and memory, since a file was not to be read or written."""
BEFORE_INDEXES: tuple[Callable[[Job], Counts], ...] = (normalize, redact, chunk, file_drawers, write_pages)
_KINDS_OF_TEXT = ("text", "char", "clob")


@dataclass(frozen=True, slots=True)
class Rest:
    """What a purge still has to do: sweep raw bytes out of the vault, look at every day (a value) or some."""

    vault: bool
    value: bool

    def noted(self) -> str:
        return orjson.dumps({"vault": self.vault, "value": self.value}).decode()


def rest_of(ledger: Ledger) -> Rest | None:
    """What a purge that was killed still has to do, or None."""
    noted = ledger.meta(UNFINISHED)
    return Rest(**orjson.loads(noted)) if noted else None


def note_rest(ledger: Ledger, rest: Rest) -> None:
    """In the transaction that lets something go: what has to follow, beside what an earlier purge has left to do."""
    before = rest_of(ledger)
    if before is not None:
        rest = Rest(rest.vault or before.vault, rest.value or before.value)
    ledger.set_meta(UNFINISHED, rest.noted())


def finish(home: Home, batch: str) -> dict[str, int]:
    """Do what a purge still has to do. Needs the write lock. Returns what was removed and rewritten; {} if there was
    nothing to do. A page of a session, or a file of memory, that cannot be read now is put off until the next time."""
    with home.ledger() as ledger:
        rest = rest_of(ledger)
        if rest is None:
            if ledger.meta(PUT_OFF):
                mask_workspace(home, ledger.forgotten())
            return {}
        gone = _purged(ledger)
        recipes = recipes_of(home)
        days = [
            date.fromisoformat(row["day"])
            for row in ledger.rows("SELECT day FROM conversations WHERE status = 'purged'")
        ]
        spans = plan(ledger, recipes) if rest.value else ranges(days, 0)
        values = ledger.forgotten()
        with home.vault() as vault:
            # First of all: should the ledger be lost now, what was purged must not come back out of the raw bytes.
            catalogue.note_purged(ledger, vault)
    removed = {"conversations": len(gone), "pages": 0, "records": 0, "pieces": 0}
    if rest.value:
        mask_workspace(home, values)
        with home.ledger() as ledger, home.vault() as vault:
            follow_names(home, ledger, vault)  # before the stages say where rows come from
            vault.commit()
            spans = plan(ledger, recipes)
    for span in spans:
        for stage in BEFORE_INDEXES:
            removed["pages"] += stage(Job(home, span, recipes, batch)).get("removed", 0)
    for key in gone:
        gone_pages = pages.forget_page(home.path, *key)
        update_notes(home.path, [path.relative_to(home.path).as_posix() for path in gone_pages], [])
        removed["pages"] += len(gone_pages)
    removed["pages"] += forget_conversations(home.path, gone).pages
    _forget_session_files(home, gone)
    if rest.value:
        clean_files(home, values)
        mask_values(home.path, values, home.key(), pages=False)  # rows that the stages have added, with tags of people
    removed |= _sweep_vault(home, pieces=rest.vault)
    for span in spans:
        publish_vectors(Job(home, span, recipes, batch))
    with home.ledger() as ledger:
        rebuild_indexes(home, ledger, recipes)
    built = [publish_tables(Job(home, span, recipes, batch))["anew"] for span in spans]
    publish_exports(home, batch, anew=not any(built))
    with home.ledger() as ledger, ledger.transaction():
        for key in gone:
            for table in ("published", "conversations"):
                ledger.write(f"DELETE FROM {table} WHERE provider = ? AND conversation_id = ?", key)
        for start in _beginnings(home, gone):  # the tables have asked for it once more
            ledger.write("DELETE FROM shown_names WHERE substr(name, 1, ?) = ?", (len(start), start))
    forget_kept(home.path)
    compact(home.path / "vault/vault.sqlite")
    compact(home.path / "ledger.sqlite")
    with home.ledger() as ledger:
        ledger.write("DELETE FROM meta WHERE name = ?", (UNFINISHED,))
    return removed


def mask_workspace(home: Home, values: Sequence[Forgotten]) -> None:
    """Mask purged values in sessions, memory, index and logs, and note whether that has to be done once more."""
    left = mask_values(home.path, values, home.key()).left
    with home.ledger() as ledger:
        if left:
            ledger.set_meta(PUT_OFF, "1")
        else:
            ledger.write("DELETE FROM meta WHERE name = ?", (PUT_OFF,))


def _beginnings(home: Home, gone: Sequence[Key]) -> list[str]:
    """How the paths of the pages of live sessions among some conversations begin."""
    sessions = [name for provider, name in gone if provider == "session" and is_id(name)]
    return [f"{home.path / folder_of(session)}/{prefix_of(session)}" for session in sessions]


def _forget_session_files(home: Home, gone: Sequence[Key]) -> None:
    """The page of a live session went with it, and its name says the title: unlike a file of the user's it is not known
    any more."""
    with home.ledger() as ledger, ledger.transaction():
        for start in _beginnings(home, gone):
            for row in ledger.rows("SELECT path FROM files WHERE substr(path, 1, ?) = ?", (len(start), start)):
                path = row["path"]
                ledger.write(
                    "DELETE FROM elements WHERE element IN (SELECT element FROM file_elements WHERE path = ?)", (path,)
                )
                for table in ("file_elements", "members", "skips", "unknown_names", "files"):
                    ledger.write(f"DELETE FROM {table} WHERE path = ?", (path,))
                quarantine_file(home, path).unlink(missing_ok=True)


def _purged(ledger: Ledger) -> list[Key]:
    rows = ledger.rows("SELECT provider, conversation_id FROM conversations WHERE status = 'purged' ORDER BY 1, 2")
    return [(row["provider"], row["conversation_id"]) for row in rows]


def _sweep_vault(home: Home, *, pieces: bool) -> dict[str, int]:
    """Delete what the ledger does not refer to any more."""
    with home.ledger() as ledger, home.vault() as vault:
        records = {row["record"] for row in ledger.rows("SELECT record FROM sightings")}
        removed = {"records": vault.keep_only("records", records), "pieces": 0}
        if pieces:
            rows = ledger.rows("SELECT pieces FROM elements UNION ALL SELECT pieces FROM members")
            wanted = {name for row in rows for name in orjson.loads(row["pieces"])}
            removed["pieces"] = vault.keep_only("pieces", wanted)
        catalogue.note_everything(ledger, vault)
        return removed


# --- files that no stage writes anew ----------------------------------------------------------------------------------


def clean_files(home: Home, values: Sequence[Forgotten]) -> int:
    """Mask purged values in what belongs to the user on pages, in receipts, quarantine notes and Dagster's storage."""
    key = home.key()
    changed = 0
    for path in sorted([*home.conversations.rglob("*.md"), *(home.path / NOTES).rglob("*.md")]):
        changed += _clean_page(path, values, key)
    for path in sorted(home.quarantine.glob("*.json")):
        changed += _clean_note(home, path, values, key)
    for folder in (home.receipts, home.dagster):
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or path.is_symlink():
                continue
            if is_sqlite(path):
                changed += _clean_sqlite(path, values, key)
            elif path.suffix in (".json", ".log", ".txt", ".err", ".out"):
                changed += _clean_text(path, values, key)
    return changed


def _clean_page(path: Path, values: Sequence[Forgotten], key: bytes) -> bool:
    text = path.read_bytes().decode("utf-8", "replace")
    end = text.find("\n---", 4) if text.startswith("---\n") else 0
    clean = masked_paths(text[:end], values, key, KIND_IN_NAMES, made.page) + masked(
        text[end:], values, key, nature=made.page
    )
    if clean == text:
        return False
    write_bytes(path, clean.encode())
    return True


def _clean_note(home: Home, path: Path, values: Sequence[Forgotten], key: bytes) -> bool:
    """A note of the quarantine lies under the name by which its file is known."""
    text = path.read_bytes().decode("utf-8", "replace")
    name = masked_name(orjson.loads(text)["path"], values, key)
    entry: dict[str, Any] = {**orjson.loads(masked_name(text, values, key, made.own)), "path": name}
    if entry == orjson.loads(text):
        return False
    write_bytes(quarantine_file(home, name), orjson.dumps(entry, option=orjson.OPT_INDENT_2))
    if path != quarantine_file(home, name):
        path.unlink()
    return True


def _clean_text(path: Path, values: Sequence[Forgotten], key: bytes) -> bool:
    text = path.read_bytes().decode("utf-8", "replace")
    if (clean := masked_paths(text, values, key)) == text:
        return False
    write_bytes(path, clean.encode())
    return True


def _clean_sqlite(path: Path, values: Sequence[Forgotten], key: bytes) -> int:
    changed = 0
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    try:
        connection.execute("PRAGMA secure_delete=ON")
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            changed += _clean_table(connection, table, values, key)
    finally:
        connection.close()
    if changed:
        compact(path)
    return changed


def _clean_table(connection: sqlite3.Connection, table: str, values: Sequence[Forgotten], key: bytes) -> int:
    columns: list[Any] = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    changed = 0
    for name in (column[1] for column in columns if any(kind in column[2].lower() for kind in _KINDS_OF_TEXT)):
        sql = f'SELECT DISTINCT "{name}" FROM "{table}" WHERE typeof("{name}") = \'text\''
        for (text,) in connection.execute(sql).fetchall():
            if (clean := masked_paths(text, values, key)) != text:
                update = f'UPDATE OR REPLACE "{table}" SET "{name}" = ? WHERE "{name}" = ?'
                changed += connection.execute(update, (clean, text)).rowcount
    return changed
