"""The vault: the raw bytes of what was read, and the records made of them. Content-addressed, so nothing is kept twice.

A member's bytes are kept as a list of *pieces*. Elements of a JSON array are pieces of their own, so a monthly
re-export adds only the chats that changed; a log that grew adds its tail. Pieces and records lie compressed (zstd) in
one SQLite file: thousands of small values, transactions, and bytes that are really gone after a purge.

It also says where each record came from, what the ledger knows of each file, and what was purged
(`store/catalogue.py`), so that a lost ledger can be made again from it.
"""

from __future__ import annotations

import hashlib
import io
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import zstandard

from palace_pipeline.store.files import make_folder
from palace_pipeline.store.quiet import open_quietly
from palace_pipeline.store.versions import TooNew

SCHEMA_VERSION = 2
"""2: the catalogue. Tables were only added, so an older vault is changed in nothing that it holds."""
PIECE_BYTES = 4 * 1024 * 1024
_LARGEST_BLOB = 990_000_000
"""Compressed bytes of a record; SQLite's own limit is a little more."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS pieces (hash TEXT PRIMARY KEY, size INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS records (hash TEXT PRIMARY KEY, size INTEGER NOT NULL, data BLOB NOT NULL);

-- The copy of what only the ledger knows of files and records; see store/catalogue.py.
CREATE TABLE IF NOT EXISTS catalogue (path TEXT PRIMARY KEY, entry BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS places (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL, member TEXT NOT NULL, sha256 TEXT NOT NULL, UNIQUE (path, member, sha256)
);
CREATE TABLE IF NOT EXISTS record_places (
  record TEXT PRIMARY KEY, place INTEGER NOT NULL, seen TEXT NOT NULL, first_seen TEXT NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS record_is_gone AFTER DELETE ON records
  BEGIN DELETE FROM record_places WHERE record = old.hash; END;
CREATE TABLE IF NOT EXISTS purged (hash BLOB PRIMARY KEY, vault INTEGER NOT NULL, length INTEGER, rolling BLOB)
  WITHOUT ROWID;
"""


class VaultTooNew(TooNew):
    """The vault was written by a newer Palace."""


class RecordTooLarge(ValueError):
    """A conversation that no cell of a database can hold."""


def content_hash(data: bytes) -> str:
    """Identity of bytes in the vault: sha256 in hex."""
    return hashlib.sha256(data).hexdigest()


class Vault:
    """`vault/vault.sqlite` of a home. Writers hold the home's lock; `commit` makes what was added durable.

    `reading`: it is there, and nothing is put into it (a dry run).
    """

    def __init__(self, folder: Path, *, reading: bool = False) -> None:
        path = folder / "vault.sqlite"
        if reading:
            self._db = open_quietly(path)
            self._refuse_newer(path)
        else:
            make_folder(folder)
            path.touch(mode=0o600)
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            version = self._refuse_newer(path)
            self._db.execute("PRAGMA journal_mode=WAL")
            # The ledger must never know of bytes that a power cut took from here.
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("PRAGMA secure_delete=ON")
            if version < SCHEMA_VERSION:
                self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        self._compress = zstandard.ZstdCompressor(level=3).compress
        self._decompress = zstandard.ZstdDecompressor().decompress

    def _refuse_newer(self, path: Path) -> int:
        """The version of the file; closes it and raises VaultTooNew if this Palace does not know it."""
        version: int = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            self._db.close()
            raise VaultTooNew.of(path, version, SCHEMA_VERSION)
        return version

    def close(self) -> None:
        self.commit()
        self._db.close()

    def commit(self) -> None:
        """End the transaction that the first write after the last commit began."""
        if self._db.in_transaction:
            self._db.execute("COMMIT")

    def roll_back(self) -> None:
        """Undo what was put in since the last commit."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def change(self, sql: str, rows: Iterable[Sequence[Any]] = ((),)) -> None:
        """Run a statement for each row, in the transaction that the next `commit` ends."""
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(sql, rows)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """The rows that a query gives."""
        return self._db.execute(sql, parameters).fetchall()

    def _put(self, table: str, digest: str, data: bytes) -> str:
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        known = self._db.execute(f"SELECT 1 FROM {table} WHERE hash = ?", (digest,)).fetchone()
        if known is None:
            self._db.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", (digest, len(data), self._compress(data)))
        return digest

    def _get(self, table: str, digest: str) -> bytes:
        row = self._db.execute(f"SELECT size, data FROM {table} WHERE hash = ?", (digest,)).fetchone()
        if row is None:
            raise KeyError(f"{table[:-1]} {digest[:12]}… is not in the vault")
        return self._decompress(row[1], max_output_size=row[0])

    def put_bytes(self, data: bytes) -> list[str]:
        """Keep bytes; returns the hashes of their pieces in order."""
        return [
            self._put("pieces", content_hash(part), part)
            for part in (data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))
        ]

    def put_stream(self, stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
        """Keep a stream piece by piece; yields (hash, bytes) of each."""
        while part := stream.read(PIECE_BYTES):
            yield self._put("pieces", content_hash(part), part), part

    def open_pieces(self, hashes: Iterable[str]) -> BinaryIO:
        """The bytes of some pieces as one stream; only one piece is in memory at a time."""
        return io.BufferedReader(_Pieces(self, list(hashes)), buffer_size=1 << 16)

    def piece(self, digest: str) -> bytes:
        return self._get("pieces", digest)

    def put_record(self, data: bytes) -> str:
        """Keep the canonical bytes of a conversation (`model.to_record`); returns their hash."""
        return self._put("records", content_hash(data), data)

    def put_record_parts(self, digest: str, parts: Iterable[bytes]) -> None:
        """Keep a record of any size that comes in parts; `digest` is the hash of all of them together.

        Raises RecordTooLarge if SQLite could not hold it even compressed.
        """
        compressor = zstandard.ZstdCompressor(level=3).compressobj()
        packed: list[bytes] = []
        waiting: list[bytes] = []
        size = left = 0
        for part in parts:
            waiting.append(part)
            left += len(part)
            if left >= PIECE_BYTES:
                packed.append(compressor.compress(b"".join(waiting)))
                waiting.clear()
                size, left = size + left, 0
                if sum(map(len, packed)) > _LARGEST_BLOB:
                    raise RecordTooLarge
        if not packed:
            self._put("records", digest, b"".join(waiting))
            return
        packed += compressor.compress(b"".join(waiting)), compressor.flush()
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        row = (digest, size + left, sum(map(len, packed)))
        put = self._db.execute("INSERT OR IGNORE INTO records VALUES (?, ?, zeroblob(?))", row)
        if put.rowcount:
            # Piece by piece: bound as one value it would be in memory three times.
            with self._db.blobopen("records", "data", put.lastrowid or 0) as cell:
                for piece in packed:
                    cell.write(piece)

    def note_place(self, record: str, path: str, member: str, sha256: str, *, seen: str, first_seen: str) -> None:
        """Note where a record was read: file, member, hash of the file; the days (ISO) on which it was, and on which its
        conversation was first seen."""
        self.change("INSERT OR IGNORE INTO places (path, member, sha256) VALUES (?, ?, ?)", [(path, member, sha256)])
        self.change(
            "INSERT OR REPLACE INTO record_places SELECT ?, id, ?, ? FROM places "
            "WHERE path = ? AND member = ? AND sha256 = ?",
            [(record, seen, first_seen, path, member, sha256)],
        )

    def record(self, digest: str) -> bytes:
        return self._get("records", digest)

    def drop_records(self, hashes: Iterable[str]) -> None:
        """Forget records that a longer record of the same conversation contains (the raw pieces stay)."""
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("DELETE FROM records WHERE hash = ?", ((h,) for h in hashes))

    def lacks(self, table: Literal["records", "pieces"], hashes: Iterable[str]) -> set[str]:
        """Those of some hashes that are not there."""
        find = f"SELECT 1 FROM {table} WHERE hash = ?"
        return {one for one in hashes if self._db.execute(find, (one,)).fetchone() is None}

    def every(self, table: Literal["records", "pieces"]) -> Iterator[tuple[str, bytes]]:
        """Hash and bytes of all records or pieces."""
        for digest in self._hashes(table):
            yield digest, self._get(table, digest)

    def keep_only(self, table: Literal["records", "pieces"], wanted: Collection[str]) -> int:
        """Delete all records or pieces but these; returns how many were deleted. `compact` takes the bytes from the disk."""
        doomed = [digest for digest in self._hashes(table) if digest not in wanted]
        if doomed and not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(f"DELETE FROM {table} WHERE hash = ?", ((digest,) for digest in doomed))
        return len(doomed)

    def _hashes(self, table: str) -> list[str]:
        return [row[0] for row in self._db.execute(f"SELECT hash FROM {table} ORDER BY hash")]


class _Pieces(io.RawIOBase):
    """Pieces of the vault one behind the other as a raw stream."""

    def __init__(self, vault: Vault, hashes: list[str]) -> None:
        self._vault, self._hashes, self._part, self._next = vault, hashes, memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not self._part:
            if self._next >= len(self._hashes):
                return 0
            self._part = memoryview(self._vault.piece(self._hashes[self._next]))
            self._next += 1
        count = min(len(buffer), len(self._part))
        buffer[:count] = self._part[:count]
        self._part = self._part[count:]
        return count
