"""Reading a home's SQLite files without leaving a trace: what only looks must change nothing, not even beside them."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def open_quietly(path: Path) -> sqlite3.Connection:
    """A read-only connection.

    SQLite makes a `-wal` and a `-shm` beside a database of that mode even to read it, and a reader cannot take them
    away again. Without a log that holds something, the file is all there is and is opened as it lies. With one, a
    writer is at work or was killed: both files are there then, and what stands in them counts.
    """
    log = path.with_name(f"{path.name}-wal")
    alone = not (log.exists() and log.stat().st_size)
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}",
        uri=True,
        timeout=60,
        isolation_level=None,
    )


def state_of(path: Path) -> tuple[int, int, bool]:
    """Changes when somebody writes to a database: tells whether what was read as it lay is whole."""
    info = path.stat()
    log = path.with_name(f"{path.name}-wal")
    return info.st_size, info.st_mtime_ns, log.exists() and log.stat().st_size > 0
