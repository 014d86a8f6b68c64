"""Taking what was deleted from SQLite off the disk: out of the file's free pages, and out of its log."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path


def compact(path: Path) -> None:
    """Rewrite an SQLite file without its free pages and empty its log. The caller has it closed; readers are waited for.

    Takes room for a copy, in the file's own folder. Raises sqlite3.OperationalError if somebody keeps it open for long
    or the disk is full; nothing is lost then, and it can be done again.
    """
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as connection, _working_in(path.parent):
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("VACUUM")
        if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise sqlite3.OperationalError(f"{path} is being read: its log could not be emptied")


@contextmanager
def _working_in(folder: Path) -> Generator[None]:
    """SQLite's own temporary copy holds what the file holds, so it has to stay in the home."""
    before = os.environ.get("SQLITE_TMPDIR")
    os.environ["SQLITE_TMPDIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SQLITE_TMPDIR"]
        else:
            os.environ["SQLITE_TMPDIR"] = before
