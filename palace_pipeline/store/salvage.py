"""A damaged vault: which of its pieces and records are not what their names say, and a new one with all the others.

Names are hashes of the content, so there is no doubt about what is sound. SQLite has no way around a damaged page, but
every row is asked for by itself: only those on, or behind, a damaged page are lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import zstandard

from palace_pipeline.store.quiet import open_quietly, soundness
from palace_pipeline.store.vault import Vault, content_hash

Table = Literal["records", "pieces"]
TABLES: tuple[Table, ...] = ("pieces", "records")
_OTHERS = {
    "catalogue": "path, entry",
    "places": "id, path, member, sha256",
    "record_places": "record, place, seen, first_seen",
    "purged": "hash, vault, length, rolling",
}
_MISSES = 50_000
"""Row numbers in a row without an answer after which the rest of a table is given up, if nobody knows its last one."""


@dataclass(slots=True)
class Salvaged:
    """What came through: rows by table; `lost`: rows that were there and cannot be read (as far as that is known)."""

    kept: dict[str, int] = field(default_factory=dict[str, int])
    lost: dict[str, int] = field(default_factory=dict[str, int])


def ledger_damage(path: Path) -> str | None:
    """What is wrong with a ledger, indexes included, or None."""
    if (wrong := soundness(path, thorough=True)) is not None:
        return wrong
    with closing(open_quietly(path)) as db:
        return None if db.execute("PRAGMA user_version").fetchone()[0] else "is empty"


def vault_damage(folder: Path) -> str | None:
    """What is wrong with the vault of a folder, or None: its file, and every piece and record in it (all are read)."""
    path = folder / "vault.sqlite"
    if (wrong := soundness(path)) is not None:
        return wrong
    with closing(open_quietly(path)) as db:
        try:
            bad = sum(1 for table in TABLES for row in _rows(db, table) if not _is_what_it_says(row))
        except sqlite3.DatabaseError:
            return "is damaged"
    return f"holds {bad:,} pieces or records that are not what they were" if bad else None


def salvage(folder: Path, target: Path) -> Salvaged:
    """Make a vault in the folder `target` with all that can be read of the one in `folder`; that one stays as it is."""
    done = Salvaged()
    with closing(Vault(target)) as new, closing(open_quietly(folder / "vault.sqlite")) as old:
        # Without it SQLite refuses a file that is shorter than its first page says.
        old.execute("PRAGMA writable_schema=ON")
        for table in TABLES:
            done.kept[table] = done.lost[table] = 0
            for row in _readable_rows(old, table):
                if row is None or not _is_what_it_says(row):
                    done.lost[table] += 1
                else:
                    new.change(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?)", [row])
                    done.kept[table] += 1
            new.commit()
        for table, columns in _OTHERS.items():
            marks = ", ".join("?" * (columns.count(",") + 1))
            for row in _as_far_as_readable(old, f"SELECT {columns} FROM {table}"):
                new.change(f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})", [row])
            new.commit()
    return done


def _rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[str, int, bytes]]:
    yield from db.execute(f"SELECT hash, size, data FROM {table}")


def _is_what_it_says(row: tuple[Any, ...]) -> bool:
    digest, size, data = row
    try:
        return content_hash(zstandard.ZstdDecompressor().decompress(data, max_output_size=size)) == digest
    except (zstandard.ZstdError, TypeError):
        return False


def _readable_rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...] | None]:
    """Every row of a table that is reached by its number, None for one that is on a damaged page."""
    last = _last_row(db, table)
    number = misses = 0
    while number < last if last is not None else misses < _MISSES:
        number += 1
        try:
            row = db.execute(f"SELECT hash, size, data FROM {table} WHERE rowid = ?", (number,)).fetchone()
        except sqlite3.DatabaseError:
            misses += 1
            if last is not None:
                yield None
            continue
        if row is None:
            misses += 1
        else:
            misses = 0
            yield row


def _last_row(db: sqlite3.Connection, table: str) -> int | None:
    try:
        return int(db.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0)
    except sqlite3.DatabaseError:
        return None


def _as_far_as_readable(db: sqlite3.Connection, sql: str) -> Iterator[tuple[Any, ...]]:
    try:
        yield from db.execute(sql)
    except sqlite3.DatabaseError:
        return  # what comes behind the damage is not known; the records and pieces are there all the same
