"""A ledger as earlier versions wrote it, made of one of today."""

from __future__ import annotations

import sqlite3

import orjson
import zstandard


def to_version_6(db: sqlite3.Connection) -> None:
    """Version 6 kept the messages of a conversation as one packed value beside it, and no list of changed files."""
    names = ("conversation_messages", "unsettled", "unpublished")
    for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {trigger}")
    for index in ("conversations_page", "sightings_updated", "sightings_empty", "sightings_aside"):
        db.execute(f"DROP INDEX {index}")
    for (index,) in db.execute("SELECT name FROM sqlite_master WHERE name GLOB 'stale_*'").fetchall():
        db.execute(f"DROP INDEX {index}")
    db.execute("ALTER TABLE conversations ADD COLUMN message_index BLOB NOT NULL DEFAULT x''")
    for provider, conversation_id in db.execute("SELECT provider, conversation_id FROM conversations").fetchall():
        key = (provider, conversation_id)
        rows = db.execute(
            "SELECT message_id, hash FROM conversation_messages WHERE provider = ? AND conversation_id = ?", key
        )
        packed = zstandard.compress(orjson.dumps(dict(rows.fetchall()), option=orjson.OPT_SORT_KEYS), 3)
        db.execute(
            "UPDATE conversations SET message_index = ? WHERE provider = ? AND conversation_id = ?", (packed, *key)
        )
    for name in names:
        db.execute(f"DROP TABLE {name}")
    db.execute("PRAGMA user_version = 6")
