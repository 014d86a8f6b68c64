"""The copy in the vault of what the ledger knows of files and records, and the way back to a ledger.

The ledger can be lost: deleted, cut, overwritten. Then the pieces of the vault would be bytes without a name. So the
vault notes, in the same step as the bytes: every file as it was last read (`catalogue`), the place and the days of
every record (`record_places`), and what was purged, which must not come back. Not in it: forms of a conversation that
a later one holds whole, the raw bytes of earlier versions of a file by name, receipts and times of the stages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
import zstandard

from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.vault import Vault

_FILE = (
    "path, root, size, mtime_ns, inode, sha256, status, reason, provider, format, recipe, first_seen_at, read_at, "
    "conversations, messages, skipped, attempts"
)
_SKIP = "provider, place, reason, expected, count, unit"
_UNKNOWN = "name, count, format"
_MEMBER = "member, use, size, sha256, pieces"


def note_file(ledger: Ledger, vault: Vault, path: str) -> None:
    """Bring what the vault knows of a file in line with the ledger."""
    row = ledger.one(f"SELECT {_FILE} FROM files WHERE path = ?", (path,))
    if row is None:
        vault.change("DELETE FROM catalogue WHERE path = ?", [(path,)])
        return
    members = [
        (*member[:4], orjson.loads(member["pieces"]), *_elements(ledger, path, member["member"]))
        for member in ledger.rows(f"SELECT {_MEMBER} FROM members WHERE path = ? ORDER BY member", (path,))
    ]
    entry: dict[str, Any] = {
        "file": list(row),
        "skips": [list(skip) for skip in ledger.rows(f"SELECT {_SKIP} FROM skips WHERE path = ?", (path,))],
        "unknown": [
            list(name) for name in ledger.rows(f"SELECT {_UNKNOWN} FROM unknown_names WHERE path = ?", (path,))
        ],
        "members": members,
    }
    packed = zstandard.compress(orjson.dumps(entry), 3)
    vault.change("INSERT OR REPLACE INTO catalogue VALUES (?, ?)", [(path, packed)])


def _elements(ledger: Ledger, path: str, member: str) -> tuple[str, str, list[list[Any]]]:
    """How a member was read (format and recipe), and of each of its elements place, name and pieces."""
    rows = ledger.rows(
        "SELECT f.position, f.element, e.pieces, e.format, e.recipe FROM file_elements f JOIN elements e USING (element) "
        "WHERE f.path = ? AND f.member = ? ORDER BY f.position",
        (path, member),
    )
    if not rows:
        return "", "", []
    elements = [[row["position"], row["element"], orjson.loads(row["pieces"])] for row in rows]
    return rows[0]["format"], rows[0]["recipe"], elements


def note_purged(ledger: Ledger, vault: Vault) -> None:
    """Bring what the vault knows of purged conversations and values in line with the ledger."""
    vault.change("DELETE FROM purged")
    vault.change("INSERT INTO purged (hash, vault) VALUES (?, ?)", map(tuple, ledger.rows("SELECT * FROM tombstones")))
    rows = ledger.rows("SELECT proof, vault, length, rolling FROM forgotten")
    vault.change("INSERT OR REPLACE INTO purged (hash, vault, length, rolling) VALUES (?, ?, ?, ?)", map(tuple, rows))


def note_everything(ledger: Ledger, vault: Vault) -> None:
    """Make the copy anew from the ledger (an older home, a purge), as one transaction that the caller commits."""
    note_purged(ledger, vault)
    for table in ("catalogue", "record_places", "places"):
        vault.change(f"DELETE FROM {table}")
    for row in ledger.rows("SELECT path FROM files"):
        note_file(ledger, vault, row["path"])
    for row in ledger.rows(
        "SELECT s.record, s.path, s.member, s.sha256, s.seen_day, c.first_seen_day FROM sightings s "
        "JOIN conversations c USING (provider, conversation_id) WHERE s.superseded != 2"
    ):
        vault.note_place(*row[:4], seen=row["seen_day"], first_seen=row["first_seen_day"])


def put_back(ledger: Ledger, vault: Vault) -> list[str]:
    """Into an empty ledger: files with their members, elements and skips, and what was purged; returns the paths.

    What an element could not give, and which records were made of it, is known when it has been read again.
    """
    with ledger.transaction():
        for digest, kept, length, rolling in vault.rows("SELECT hash, vault, length, rolling FROM purged"):
            if length is None:
                ledger.write("INSERT OR REPLACE INTO tombstones VALUES (?, ?)", (digest, kept))
            else:
                ledger.write("INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?, ?)", (digest, length, rolling, kept))
        paths: list[str] = []
        for path, packed in vault.rows("SELECT path, entry FROM catalogue ORDER BY path"):
            entry = orjson.loads(zstandard.decompress(packed))
            _put_rows(ledger, "files", _FILE, [entry["file"]])
            _put_rows(ledger, "skips", f"path, {_SKIP}", ([path, *skip] for skip in entry["skips"]))
            _put_rows(ledger, "unknown_names", f"path, {_UNKNOWN}", ([path, *name] for name in entry["unknown"]))
            for member, use, size, sha256, pieces, read_as, recipe, elements in entry["members"]:
                row = [path, member, use, size, sha256, orjson.dumps(pieces)]
                _put_rows(ledger, "members", f"path, {_MEMBER}", [row])
                ledger.write_many(
                    "INSERT OR IGNORE INTO elements VALUES (?, ?, ?, ?, ?, ?)",
                    ((name, read_as, recipe, orjson.dumps(kept), b"[]", b"{}") for _, name, kept in elements),
                )
                ledger.write_many(
                    "INSERT OR IGNORE INTO file_elements VALUES (?, ?, ?, ?)",
                    ((path, member, position, name) for position, name, _ in elements),
                )
            paths.append(path)
    return paths


def _put_rows(ledger: Ledger, table: str, columns: str, rows: Iterable[Iterable[Any]]) -> None:
    marks = ", ".join("?" * (columns.count(",") + 1))
    ledger.write_many(f"INSERT INTO {table} ({columns}) VALUES ({marks})", (tuple(row) for row in rows))
