"""The DuckDB file of a home as a file: opened with bounds, changed on a copy, put in place by one rename.

Nobody opens `palace.duckdb` itself for writing, so a reader (a notebook, a BI tool, `duckdb -readonly`) never stops a
run: it keeps the version that it opened, the next opening sees the new one. A change works in a folder of the home that
only the owner can enter; a kill leaves that folder, and the next change removes it. Callers hold the home's write lock.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from palace_pipeline.store.files import sync_folder

if TYPE_CHECKING:
    import duckdb

DATABASE = "palace.duckdb"
STORAGE_VERSION = "v1.2.0"
"""The oldest DuckDB that can read the file. Newer formats make it 4% smaller (2,000,000 messages: 36 and 37 MB)."""

_WORK = ".tmp-warehouse"
_MEMORY_LIMIT = "512MB"
_THREADS = 2


class NotBuiltError(FileNotFoundError):
    """There is no `palace.duckdb` yet: nothing has been published in this home."""


def database(home: Path) -> Path:
    return home / DATABASE


def quoted(text: str | Path) -> str:
    """An SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"


@contextmanager
def working_folder(home: Path) -> Generator[Path]:
    """An empty folder (0700) on the home's own disk, for the file to come, staged rows and what DuckDB spills."""
    folder = home / _WORK
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def opened(path: Path) -> Generator[duckdb.DuckDBPyConnection]:
    """A writing connection to a file inside a working folder; the caller ends with CHECKPOINT.

    No write-ahead log: the file counts only when it is complete, and the log made a full build three times as slow.
    """
    if "?" in str(path):
        raise ValueError(f"{path.parent.parent}: DuckDB cannot work below a folder with '?' in its name")
    spill = path.with_name("spill")
    spill.mkdir(mode=0o700, exist_ok=True)
    with _memory_database(spill=str(spill)) as connection:
        options = f"STORAGE_VERSION {quoted(STORAGE_VERSION)}, RECOVERY_MODE no_wal_writes"
        connection.execute(f"ATTACH {quoted(path)} AS palace ({options})")
        connection.execute("USE palace")
        yield connection


@contextmanager
def attached(home: Path) -> Generator[duckdb.DuckDBPyConnection]:
    """A read-only look at the published file, without spilling to disk; times are shown in UTC.

    Raises NotBuiltError; duckdb.Error if the file is unreadable.
    """
    path = database(home)
    if not path.exists():
        raise NotBuiltError(f"{path} is not built yet (palace ingest builds it)")
    with _memory_database(spill="") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"ATTACH {quoted(path)} AS palace (READ_ONLY)")
        connection.execute("USE palace")
        yield connection


def read_through(home: Path) -> None:
    """Read every value of every table: DuckDB compares what it reads with checksums, and a block that nobody needs may be
    damaged for years. Raises NotBuiltError; duckdb.Error if something is not what was written.
    """
    with attached(home) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'palace'").fetchall()
        for (table,) in tables:
            connection.execute(f'SELECT max(hash(COLUMNS(*))) FROM "{table}"').fetchall()


@contextmanager
def _memory_database(*, spill: str) -> Generator[duckdb.DuckDBPyConnection]:
    """A database in memory to attach files to, with bounds and without the network.

    Not `duckdb.connect(file)`: that keeps one database a path and process, so a second connection would go on showing
    the version of the file that the first one opened, and must have the same settings.
    """
    import duckdb

    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": _MEMORY_LIMIT,
            "threads": _THREADS,
            "temp_directory": spill,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        },
    )
    try:
        yield connection
    finally:
        connection.close()


def copy_file(source: Path, target: Path) -> None:
    """Copy bytes; where the file system can share blocks (btrfs, XFS), nothing is copied at all. Target: 0600."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with source.open("rb") as reading, os.fdopen(descriptor, "wb") as writing:
        if not _copied_by_kernel(reading.fileno(), writing.fileno()):
            reading.seek(0)
            writing.seek(0)
            shutil.copyfileobj(reading, writing, 1 << 20)


def _copied_by_kernel(source: int, target: int) -> bool:
    if not hasattr(os, "copy_file_range"):  # macOS
        return False
    try:
        while os.copy_file_range(source, target, 1 << 30):
            pass
    except OSError:  # a file system or kernel without it: the plain copy tells of a real failure
        return False
    return True


def put_in_place(built: Path, home: Path) -> None:
    """Make a built and closed file the home's database: durable, 0600, in one rename."""
    target = database(home)
    built.chmod(0o600)
    with built.open("rb") as stream:
        os.fsync(stream.fileno())
    # Left by somebody who opened the file for writing; DuckDB would refuse the new file beside the old log.
    target.with_name(f"{DATABASE}.wal").unlink(missing_ok=True)
    built.replace(target)
    sync_folder(home)
