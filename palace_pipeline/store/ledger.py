"""The ledger: what was found, what it held, on which day each conversation lies, and what has been built of it.

SQLite in WAL mode. It holds no text of a chat: paths, ids, hashes, counts and times only. One writer (the home's lock),
any number of readers.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import zstandard

from palace_pipeline.model import Skip, short_hash
from palace_pipeline.redaction.forgotten import Forgotten
from palace_pipeline.store.files import Told, make_folder
from palace_pipeline.store.keep import keep_copy
from palace_pipeline.store.quiet import is_damage, open_quietly, state_of
from palace_pipeline.store.versions import TooNew

Key = tuple[str, str]
SCHEMA_VERSION = 7


def _noting(table: str, name: str, event: str, rows: Sequence[str]) -> str:
    """A trigger that notes the paths of rows as changed. OR IGNORE would not do: the statement that fires a trigger says
    what happens on a conflict inside it, too."""
    notes = (f"INSERT INTO unpublished SELECT {row}.path WHERE {row}.path NOT IN unpublished;" for row in rows)
    return f"CREATE TRIGGER IF NOT EXISTS {table}_{name} AFTER {event} ON {table} BEGIN {' '.join(notes)} END"


_AT_SIZE = (
    # The messages of a conversation over all its sightings, and the hash of each as it was last seen. A row a message: a
    # channel that comes in a thousand files is not read whole for each of them.
    "CREATE TABLE IF NOT EXISTS conversation_messages (provider TEXT NOT NULL, conversation_id TEXT NOT NULL, "
    "message_id TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (provider, conversation_id, message_id)) WITHOUT ROWID",
    "CREATE TRIGGER IF NOT EXISTS conversations_gone AFTER DELETE ON conversations BEGIN DELETE FROM conversation_messages "
    "WHERE provider = old.provider AND conversation_id = old.conversation_id; END",
    # Conversations of which something new was noted, and whose day and input are not yet in line with it.
    "CREATE TABLE IF NOT EXISTS unsettled (provider TEXT NOT NULL, conversation_id TEXT NOT NULL, "
    "PRIMARY KEY (provider, conversation_id)) WITHOUT ROWID",
    # Files of which something has changed since the tables were published.
    "CREATE TABLE IF NOT EXISTS unpublished (path TEXT PRIMARY KEY) WITHOUT ROWID",
    *(
        _noting(table, name, event, rows)
        for table in ("files", "skips")
        for name, event, rows in (
            ("new", "INSERT", ("new",)),
            ("changed", "UPDATE", ("old", "new")),
            ("gone", "DELETE", ("old",)),
        )
    ),
    # What is asked for at every look, found without going through all there is.
    "CREATE INDEX IF NOT EXISTS conversations_page ON conversations (page)",
    "CREATE INDEX IF NOT EXISTS sightings_updated ON sightings (provider, conversation_id, updated_at)",
    "CREATE INDEX IF NOT EXISTS sightings_empty ON sightings (provider, conversation_id) WHERE messages = 0",
    "CREATE INDEX IF NOT EXISTS sightings_aside ON sightings (record) WHERE superseded = 1",
)
"""Since version 7: what keeps the price of a small change small in a large archive."""

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- A file of an export folder as it was when last read.
CREATE TABLE IF NOT EXISTS files (
  path TEXT PRIMARY KEY, root TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
  sha256 TEXT, status TEXT NOT NULL, reason TEXT, provider TEXT, format TEXT, recipe TEXT NOT NULL,
  first_seen_at TEXT NOT NULL, read_at TEXT NOT NULL, conversations INTEGER NOT NULL, messages INTEGER NOT NULL,
  skipped INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;

-- What was not taken of a file, and why.
CREATE TABLE IF NOT EXISTS skips (
  path TEXT NOT NULL, provider TEXT, place TEXT NOT NULL, reason TEXT NOT NULL, expected INTEGER NOT NULL,
  count INTEGER NOT NULL, unit TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS skips_path ON skips (path);

-- Names (never values) that no reader knows: the drift alarm.
CREATE TABLE IF NOT EXISTS unknown_names (
  path TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL, format TEXT
);
CREATE INDEX IF NOT EXISTS unknown_path ON unknown_names (path);

-- The bytes of a member in the vault.
CREATE TABLE IF NOT EXISTS members (
  path TEXT NOT NULL, member TEXT NOT NULL, use TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL,
  pieces BLOB NOT NULL,
  PRIMARY KEY (path, member)
) WITHOUT ROWID;

-- The smallest thing that is read by itself: an element of a JSON array, or a whole member. Known element, no parsing.
CREATE TABLE IF NOT EXISTS elements (
  element TEXT PRIMARY KEY, format TEXT NOT NULL, recipe TEXT NOT NULL, pieces BLOB NOT NULL, skips BLOB NOT NULL,
  unknown BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS element_records (
  element TEXT NOT NULL, provider TEXT NOT NULL, conversation_id TEXT NOT NULL, record TEXT NOT NULL,
  PRIMARY KEY (element, provider, conversation_id, record)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS element_records_key ON element_records (provider, conversation_id);
CREATE TABLE IF NOT EXISTS file_elements (
  path TEXT NOT NULL, member TEXT NOT NULL, position INTEGER NOT NULL, element TEXT NOT NULL,
  PRIMARY KEY (path, member, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS file_elements_element ON file_elements (element);

-- One form in which a conversation was seen. `superseded`: a later record holds all of it (2: this one was dropped).
CREATE TABLE IF NOT EXISTS sightings (
  provider TEXT NOT NULL, conversation_id TEXT NOT NULL, record TEXT NOT NULL, path TEXT NOT NULL, member TEXT NOT NULL,
  sha256 TEXT NOT NULL, seen_day TEXT NOT NULL, earliest TEXT, undated_reason TEXT, created TEXT, updated_at TEXT,
  messages INTEGER NOT NULL, message_index BLOB NOT NULL, superseded INTEGER NOT NULL DEFAULT 0, forked_from TEXT,
  PRIMARY KEY (provider, conversation_id, record)
) WITHOUT ROWID;

-- Conversation -> day, and for each stage what it was built from (`_in`) and what came out (`_out`).
CREATE TABLE IF NOT EXISTS conversations (
  provider TEXT NOT NULL, conversation_id TEXT NOT NULL, day TEXT NOT NULL, dated INTEGER NOT NULL, undated_reason TEXT,
  first_seen_day TEXT NOT NULL, input TEXT NOT NULL, messages INTEGER NOT NULL,
  forked_from TEXT, superseded_by TEXT, status TEXT NOT NULL DEFAULT 'ok', built_day TEXT, page TEXT,
  normalized_in TEXT, normalized_out TEXT, redacted_in TEXT, redacted_out TEXT, chunks_in TEXT, chunks_out TEXT,
  drawers_in TEXT, drawers_out TEXT, pages_in TEXT, vectors_in TEXT, tables_in TEXT,
  PRIMARY KEY (provider, conversation_id)
);
CREATE INDEX IF NOT EXISTS conversations_day ON conversations (day);
CREATE INDEX IF NOT EXISTS conversations_fork ON conversations (provider, forked_from);

-- The drawers of a conversation in Chroma and the lexical index; `hash` NULL: about to be written.
CREATE TABLE IF NOT EXISTS published (
  provider TEXT NOT NULL, conversation_id TEXT NOT NULL, drawer_id TEXT NOT NULL, hash TEXT,
  PRIMARY KEY (provider, conversation_id, drawer_id)
) WITHOUT ROWID;

-- With `[redaction] remember`: keyed hashes of what was masked as a secret, and of what is left and could be one.
CREATE TABLE IF NOT EXISTS secret_claims (hash BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS secret_candidates (
  hash BLOB NOT NULL, provider TEXT NOT NULL, conversation_id TEXT NOT NULL,
  PRIMARY KEY (hash, provider, conversation_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS secret_candidates_key ON secret_candidates (provider, conversation_id);

-- What the user purged, known by keyed hashes only: it is not taken in again. `vault` 1: nor are the raw bytes.
CREATE TABLE IF NOT EXISTS tombstones (hash BLOB PRIMARY KEY, vault INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS forgotten (
  proof BLOB PRIMARY KEY, length INTEGER NOT NULL, rolling BLOB NOT NULL, vault INTEGER NOT NULL
) WITHOUT ROWID;

-- Conversations of which something could not be published: where (place and kind, never the value), built from what,
-- and how often it was tried.
CREATE TABLE IF NOT EXISTS withheld (
  provider TEXT NOT NULL, conversation_id TEXT NOT NULL, made_from TEXT NOT NULL, attempts INTEGER NOT NULL,
  places TEXT NOT NULL, PRIMARY KEY (provider, conversation_id)
) WITHOUT ROWID;

-- How names of files are shown (null: as they are), by the rules of redaction they were looked at with.
CREATE TABLE IF NOT EXISTS shown_names (name TEXT PRIMARY KEY, recipe TEXT NOT NULL, shown TEXT) WITHOUT ROWID;

-- Days that lost a conversation to another day: their partitions have to be shown anew.
CREATE TABLE IF NOT EXISTS left_days (day TEXT PRIMARY KEY) WITHOUT ROWID;

-- What each stage did, for receipts and plots.
CREATE TABLE IF NOT EXISTS stage_log (
  batch TEXT NOT NULL, stage TEXT NOT NULL, finished_at TEXT NOT NULL, seconds REAL NOT NULL, counts TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS stage_log_batch ON stage_log (batch);
{";".join(_AT_SIZE)};
"""

_UPGRADES = {
    1: ("ALTER TABLE unknown_names ADD COLUMN format TEXT",),
    2: ("ALTER TABLE sightings ADD COLUMN forked_from TEXT",),
    3: (
        "CREATE TABLE IF NOT EXISTS tombstones (hash BLOB PRIMARY KEY, vault INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS forgotten (proof BLOB PRIMARY KEY, length INTEGER NOT NULL, rolling BLOB NOT NULL, "
        "vault INTEGER NOT NULL) WITHOUT ROWID",
    ),
    4: (
        "CREATE TABLE IF NOT EXISTS withheld (provider TEXT NOT NULL, conversation_id TEXT NOT NULL, "
        "made_from TEXT NOT NULL, attempts INTEGER NOT NULL, places TEXT NOT NULL, "
        "PRIMARY KEY (provider, conversation_id)) WITHOUT ROWID",
    ),
    5: (
        "CREATE TABLE IF NOT EXISTS shown_names (name TEXT PRIMARY KEY, recipe TEXT NOT NULL, shown TEXT) "
        "WITHOUT ROWID",
    ),
    6: (
        *_AT_SIZE,
        "INSERT OR IGNORE INTO conversation_messages SELECT provider, conversation_id, key, atom "
        "FROM conversations, json_each(unpacked(message_index))",
        "ALTER TABLE conversations DROP COLUMN message_index",
        "INSERT OR IGNORE INTO unpublished SELECT path FROM files",
    ),
}
"""From a version to the next one. What a table does not know yet is null until its file is read again."""


class LedgerTooNew(TooNew):
    """The home was written by a newer Palace."""


class LedgerDamaged(Told):
    """The ledger cannot be read, or is gone from an archive that had one; the text names the command that mends it."""

    @classmethod
    def of(cls, path: Path, what: str) -> LedgerDamaged:
        return cls(
            f"the ledger ({path}) {what}. Nothing was changed. Make it again from the vault with: "
            "palace rebuild --from vault"
        )


def pack_index(index: dict[str, str]) -> bytes:
    """Message id -> message hash, as compact bytes."""
    return zstandard.compress(orjson.dumps(index, option=orjson.OPT_SORT_KEYS), 3)


def unpack_index(data: bytes) -> dict[str, str]:
    """The inverse of `pack_index`."""
    return orjson.loads(zstandard.decompress(data))


def input_fingerprint(records: Iterable[str]) -> str:
    """Identity of a set of sightings, whatever the order in which they came."""
    return short_hash(*sorted(records))


def _is_locked_away(path: Path) -> bool:
    """True for a file that is there and may be read only (another user's, a read-only disk): readers need no more."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _to_read_only(path: Path) -> sqlite3.Connection:
    db = open_quietly(path)
    if db.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
        return db
    copy = sqlite3.connect(":memory:", isolation_level=None)  # an older one is brought up to date there
    db.backup(copy)
    db.close()
    return copy


def _to_write(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        make_folder(path.parent)
        path.touch(mode=0o600)
    return sqlite3.connect(path or ":memory:", timeout=60, isolation_level=None)


class Ledger:
    """`ledger.sqlite` of a home (or `:memory:` for a dry run without one)."""

    def __init__(self, path: Path | None) -> None:
        locked_away = path is not None and _is_locked_away(path)
        self.path = None if locked_away else path
        self.db = _to_read_only(path) if path is not None and locked_away else _to_write(path)
        self.db.row_factory = sqlite3.Row
        try:
            if self._refuse_newer(str(path)) == SCHEMA_VERSION and locked_away:
                return
            self.db.execute("PRAGMA journal_mode=WAL")
            self.db.execute("PRAGMA synchronous=NORMAL")
            # The name of a page holds words of its title: what is deleted here is overwritten too.
            self.db.execute("PRAGMA secure_delete=ON")
            self._bring_up_to_date(str(path))
        except sqlite3.DatabaseError as error:
            self.db.close()
            if path is not None and is_damage(error):
                raise LedgerDamaged.of(path, "is damaged") from error
            raise

    @classmethod
    def reading(cls, path: Path) -> Ledger | None:
        """The ledger of a home for readers, or None if there is none yet (reading creates nothing)."""
        return cls(path) if path.exists() else None

    @classmethod
    def copy_of(cls, path: Path) -> Ledger:
        """A ledger in memory with what a home's holds: for looks that keep nothing and must not hold up a writer."""
        copy = cls(None)
        if path.exists():
            before, after = None, state_of(path)
            while before != after:  # a writer that came in between may have torn what was read
                before = after
                source = open_quietly(path)
                source.backup(copy.db)
                source.close()
                after = state_of(path)
            copy._bring_up_to_date(str(path))
        return copy

    def _bring_up_to_date(self, path: str) -> None:
        """Make the tables, or change those of an older version (a file is copied before). Raises LedgerTooNew."""
        version = self._refuse_newer(path)
        if version == 0:
            self.db.executescript(_SCHEMA)
            self.db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        elif version < SCHEMA_VERSION:
            with self.transaction():
                # Another process may have done it while this one waited.
                version = self.db.execute("PRAGMA user_version").fetchone()[0]
                if self.path is not None and version < SCHEMA_VERSION:
                    keep_copy(self.path, version)
                self.db.create_function("unpacked", 1, lambda data: zstandard.decompress(data).decode())
                for step in range(version, SCHEMA_VERSION):
                    for statement in _UPGRADES[step]:
                        self.db.execute(statement)
                self.db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _refuse_newer(self, path: str) -> int:
        """The version of the file; closes it and raises LedgerTooNew if this Palace does not know it."""
        version: int = self.db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            self.db.close()
            raise LedgerTooNew.of(path, version, SCHEMA_VERSION)
        return version

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Generator[None]:
        """All or nothing; with `keep=False` (a dry run) always nothing. Inner transactions join the outer one."""
        if self.db.in_transaction:
            yield
            return
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT" if keep else "ROLLBACK")

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        return self.db.execute(sql, parameters).fetchall()

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Row | None:
        return self.db.execute(sql, parameters).fetchone()

    def write(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self.db.execute(sql, parameters)

    def write_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self.db.executemany(sql, rows)

    # --- files and elements -------------------------------------------------------------------------------------------

    def known_files(self) -> dict[str, sqlite3.Row]:
        """Path -> root, size, mtime_ns, inode, sha256, status, recipe of every file ever read."""
        rows = self.rows("SELECT path, root, size, mtime_ns, inode, sha256, status, recipe, attempts FROM files")
        return {row["path"]: row for row in rows}

    def replace_skips(
        self, path: str, provider: str | None, skips: Iterable[Skip], unknown: Iterable[tuple[str, str, int]]
    ) -> None:
        """What a file did not give, and the names that no reader knows: (format, name, count)."""
        self.write("DELETE FROM skips WHERE path = ?", (path,))
        self.write("DELETE FROM unknown_names WHERE path = ?", (path,))
        self.write_many(
            "INSERT INTO skips VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((path, provider, s.where, s.reason, int(s.expected), s.count, s.unit) for s in skips),
        )
        self.write_many(
            "INSERT INTO unknown_names (path, format, name, count) VALUES (?, ?, ?, ?)",
            ((path, format_name, name, count) for format_name, name, count in unknown),
        )

    # --- conversations ------------------------------------------------------------------------------------------------

    def conversation(self, key: Key) -> sqlite3.Row | None:
        return self.one("SELECT * FROM conversations WHERE provider = ? AND conversation_id = ?", key)

    def sightings(self, key: Key, *, empty: bool = False) -> list[sqlite3.Row]:
        """The live sightings of a conversation (not those that a later one contains); `empty`: those without messages."""
        return self.rows(
            "SELECT * FROM sightings WHERE provider = ? AND conversation_id = ? AND superseded = 0 "
            f"{'AND messages = 0 ' if empty else ''}ORDER BY record",
            key,
        )

    def message_hashes(self, key: Key, ids: Iterable[str] | None = None) -> dict[str, str]:
        """Hashes of a conversation's messages (of those among `ids` that it has) by id, as they were last seen."""
        sql = "SELECT message_id, hash FROM conversation_messages WHERE provider = ? AND conversation_id = ?"
        if ids is None:
            return dict(self.db.execute(sql, key).fetchall())
        wanted = orjson.dumps(list(ids)).decode()
        found = self.db.execute(f"{sql} AND message_id IN (SELECT value FROM json_each(?))", (*key, wanted))
        return dict(found.fetchall())

    def note_messages(self, key: Key, index: Mapping[str, str]) -> None:
        """Note messages that are new in a conversation, or say something else now: id -> hash."""
        self.write_many(
            "INSERT OR REPLACE INTO conversation_messages VALUES (?, ?, ?, ?)",
            ((*key, name, value) for name, value in index.items()),
        )

    def replace_messages(self, key: Key, index: Mapping[str, str]) -> None:
        """These are all messages of a conversation."""
        self.write("DELETE FROM conversation_messages WHERE provider = ? AND conversation_id = ?", key)
        self.note_messages(key, index)
        self.write(
            "UPDATE conversations SET messages = ? WHERE provider = ? AND conversation_id = ?", (len(index), *key)
        )

    def mark_built(self, stage: str, built: Iterable[tuple[Key, str, str | None]], extra: Sequence[str] = ()) -> None:
        """Note for a stage what each conversation was built from, and the identity of the result."""
        columns = f"{stage}_in = ?" + (f", {stage}_out = ?" if f"{stage}_out" in _OUT_COLUMNS else "")
        columns += "".join(f", {part}" for part in extra)
        sql = f"UPDATE conversations SET {columns} WHERE provider = ? AND conversation_id = ?"
        has_out = f"{stage}_out" in _OUT_COLUMNS
        with self.transaction():
            self.write_many(
                sql, ((made_from, out, *key) if has_out else (made_from, *key) for key, made_from, out in built)
            )

    # --- what was purged ----------------------------------------------------------------------------------------------

    def tombstones(self) -> dict[bytes, bool]:
        """Keyed hashes of purged conversations; True if their raw bytes are not to be kept either."""
        return {row["hash"]: bool(row["vault"]) for row in self.rows("SELECT hash, vault FROM tombstones")}

    def forgotten(self, *, vault: bool = False) -> tuple[Forgotten, ...]:
        """Values that were purged; with `vault` only those whose raw bytes are not to be kept either."""
        rows = self.rows("SELECT * FROM forgotten WHERE vault >= ? ORDER BY proof", (int(vault),))
        return tuple(Forgotten(row["length"], int.from_bytes(row["rolling"], "big"), row["proof"]) for row in rows)

    def forget(self, values: Iterable[Forgotten], *, vault: bool) -> None:
        """Note values that were purged. What was to go from the vault too stays so."""
        self.write_many(
            "INSERT INTO forgotten (proof, length, rolling, vault) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (proof) DO UPDATE SET vault = max(vault, excluded.vault)",
            ((value.proof, value.length, value.rolling.to_bytes(8, "big"), int(vault)) for value in values),
        )

    def bury(self, hashes: Iterable[bytes], *, vault: bool) -> None:
        """Note conversations that were purged."""
        self.write_many(
            "INSERT INTO tombstones (hash, vault) VALUES (?, ?) "
            "ON CONFLICT (hash) DO UPDATE SET vault = max(vault, excluded.vault)",
            ((one, int(vault)) for one in hashes),
        )

    # --- log ----------------------------------------------------------------------------------------------------------

    def secret_claims(self) -> frozenset[bytes]:
        """Keyed hashes of all that conversations claimed to be secret."""
        return frozenset(row["hash"] for row in self.rows("SELECT hash FROM secret_claims"))

    def note_secrets(self, found: Iterable[tuple[Key, Iterable[bytes], Iterable[bytes]]]) -> None:
        """Note what conversations claim, and what is left in them; where a claim is left, redaction has work again.

        What is left was looked at with the claims of before: so only new claims make work, and it ends.
        """
        for key, claims, left in found:
            self.write_many("INSERT OR IGNORE INTO secret_claims VALUES (?)", ((claim,) for claim in claims))
            self.write("DELETE FROM secret_candidates WHERE provider = ? AND conversation_id = ?", key)
            self.write_many("INSERT INTO secret_candidates VALUES (?, ?, ?)", ((one, *key) for one in left))
        self.write(
            "UPDATE conversations SET redacted_in = NULL WHERE (provider, conversation_id) IN "
            "(SELECT provider, conversation_id FROM secret_claims CROSS JOIN secret_candidates USING (hash))"
        )

    def withheld(self) -> list[dict[str, Any]]:
        """What is withheld now: provider, conversation_id, `what` (conversation or fields), places with their kinds."""
        rows = self.rows(
            "SELECT provider, conversation_id, status, places FROM withheld JOIN conversations "
            "USING (provider, conversation_id) WHERE places != '[]' AND status != 'purged' ORDER BY 1, 2"
        )
        return [
            {
                "provider": row["provider"],
                "conversation_id": row["conversation_id"],
                "what": "conversation" if row["status"] == "withheld" else "fields",
                "places": [{"place": place, "kind": kind} for place, kind in orjson.loads(row["places"])],
            }
            for row in rows
        ]

    def log_stage(self, batch: str, stage: str, finished_at: str, seconds: float, counts: dict[str, Any]) -> None:
        self.write(
            "INSERT INTO stage_log VALUES (?, ?, ?, ?, ?)",
            (batch, stage, finished_at, seconds, orjson.dumps(counts).decode()),
        )

    def meta(self, name: str) -> str | None:
        row = self.one("SELECT value FROM meta WHERE name = ?", (name,))
        return row["value"] if row else None

    def set_meta(self, name: str, value: str) -> None:
        self.write("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


_OUT_COLUMNS = {"normalized_out", "redacted_out", "chunks_out", "drawers_out"}
