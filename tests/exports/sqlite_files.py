"""Small SQLite files, made to measure."""

import json
import shutil
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from palace_pipeline.exports.base import Member, Report
from palace_pipeline.exports.containers import members_of

KV = "CREATE TABLE {} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"


def database(path: Path, *statements: str | tuple[str, Any]) -> Path:
    """A database in its usual mode with what the statements make."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    for statement in statements:
        if isinstance(statement, str):
            connection.executescript(statement)
        else:
            connection.execute(*statement)
    connection.close()
    return path


def with_log(path: Path, before: Iterable[str | tuple[str, Any]], after: Iterable[str | tuple[str, Any]]) -> Path:
    """A database in WAL mode; what `after` makes is only in its `-wal`, as while the program runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    work = path.parent / "work"
    work.mkdir()
    connection = sqlite3.connect(work / path.name, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    for statement in before:
        connection.execute(*([statement] if isinstance(statement, str) else statement))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for statement in after:
        connection.execute(*([statement] if isinstance(statement, str) else statement))
    for ending in ("", "-wal"):
        shutil.copy(work / (path.name + ending), path.parent / (path.name + ending))
    connection.close()
    shutil.rmtree(work)
    return path


def cursor(path: Path, store: Mapping[str, Any], items: Mapping[str, Any] | None = None, *more: str) -> Path:
    """Cursor's two tables; values that are no text or bytes become JSON."""
    rows = [("cursorDiskKV", store), ("ItemTable", items or {})]
    return database(
        path,
        *(KV.format(table) for table, _ in rows),
        *more,
        *(
            (
                f"INSERT INTO {table} VALUES (?, ?)",
                (key, value if isinstance(value, str | bytes | None) else json.dumps(value)),
            )
            for table, values in rows
            for key, value in values.items()
        ),
    )


def member(path: Path) -> Member:
    """The one member of that path in its folder."""
    return next(found for found in members_of(path.parent, Report) if found.path.rpartition("/")[2] == path.name)


def folder_state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder with its bytes and its time."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }
