"""Reading a home's SQLite files without leaving a trace: what only looks must change nothing, not even beside them."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

DAMAGED = (
    "A database of the archive is damaged. What was finished before is kept. Which one, and what mends it, says: "
    "palace doctor"
)


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


def is_damage(error: sqlite3.Error) -> bool:
    """True if SQLite says that a file is not what it should be (not that it is busy, or the disk full)."""
    return isinstance(error, sqlite3.DatabaseError) and (
        any(words in str(error) for words in ("malformed", "not a database", "unsupported file format"))
        # Tables that are not there any more, or whose description cannot be read: only a damaged file lacks them.
        or str(error).startswith(("no such table", "database schema"))
    )


def soundness(path: Path, *, thorough: bool = False) -> str | None:
    """What is wrong with an SQLite file, or None. `thorough` also compares indexes with their tables."""
    if not path.exists():
        return "is not there"
    check = f"PRAGMA {'integrity' if thorough else 'quick'}_check(1)"
    try:
        if os.access(path.parent, os.W_OK):
            # Not as it lies: a writer that comes in between would look like damage.
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=60)
        else:
            connection = open_quietly(path)
        with closing(connection):
            answer = connection.execute(check).fetchone()[0]
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and not is_damage(error):
            raise
        return "is damaged"
    return None if answer == "ok" else "is damaged"
