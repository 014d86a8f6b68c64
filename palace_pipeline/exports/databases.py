"""SQLite databases among exports: read where they lie without leaving a trace, or from a private copy; never trusted.

A database on disk that no log of changes lies beside is opened in place, read-only and immutable: SQLite then writes
nothing, not even a `-shm`. One with a `-wal` or `-journal` that holds something, or inside a ZIP, is copied with them
into a private folder first, since its newest messages may be only there and opening it in place would write beside it.
Nothing is ever loaded whole: databases of 20 GB exist. A database may be made to harm: views and triggers are refused
by an authorizer, the work of queries is counted and limited by the size of the file, cells have a largest size, and a
row that cannot be read costs itself.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from palace_pipeline.exports.base import Head, Member, Report
from palace_pipeline.exports.containers import DiskMember
from palace_pipeline.exports.streams import MemberError, is_packed
from palace_pipeline.exports.text import parse_json

MAGIC = b"SQLite format 3\0"
MAX_CELL_BYTES = 256 * 1024 * 1024
"""A larger cell is passed over and counted."""

MAX_ROWS_BYTES = 1024 * 1024 * 1024
"""A conversation whose rows hold more is passed over and counted."""

BESIDE = ("-wal", "-journal")
"""Endings of files that hold changes which a database does not have in itself yet."""

ROWS_OF = "_rows_of"
"""Key that names the format in what is kept of a database: one JSON object for each conversation, this key first."""

_STEPS_BETWEEN = 20_000
_FREE_STEPS, _STEPS_PER_BYTE = 100_000_000, 16
"""SQLite's virtual machine takes some 50 steps to find and give a row, and a row has 30 bytes at least."""

_TEMPORARY = ".tmp-"
"""The prefix by which a home knows what a kill has left (`store.files.TEMPORARY_PREFIX`)."""
_ROOM_LEFT = 64 * 1024 * 1024
_COPY_TRIES = 3
_TABLES = 10_000

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_CELL_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 1_000_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 20,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_PRAGMAS = ("query_only = 1", "trusted_schema = 0", "cell_size_check = 1", "mmap_size = 0", "temp_store = 2")
_WHY = {
    sqlite3.SQLITE_INTERRUPT: "reading this database takes more work than its size allows",
    sqlite3.SQLITE_TOOBIG: "a cell of this database is too large to be read",
    sqlite3.SQLITE_FULL: "not enough room on the disk to read this database",
    sqlite3.SQLITE_AUTH: "tables of this database are not what their names say",
    sqlite3.SQLITE_ERROR: "tables of this database have an unknown shape",
}


@dataclass(slots=True, weakref_slot=True)
class Database:
    """An open database. It is closed, and its copy gone, when nobody holds it any more.

    `tables`: names of its real tables, those of its log included. `check` says whether it stayed as it was.
    """

    connection: sqlite3.Connection
    tables: list[str]
    check: Callable[[], None]
    """Raises MemberError if the file on disk changed while it was read: what was given may be of two states."""


def is_database(member: Member) -> bool:
    """Whether a member begins as SQLite databases do, however it is named. Raises MemberError."""
    with member.open() as stream:
        return stream.read(len(MAGIC)) == MAGIC


def open_database(member: Member, scratch: Path | None = None) -> Database:
    """A database for reading; what it is read from stays as it is, to the last byte and file beside it.

    `scratch`: a private folder for copies (default: the system's folder for temporary files); a copy loses its name as
    soon as it is open. Raises MemberError if it is damaged, changes while it is copied, or finds no room.
    """
    try:
        return _in_place(member) or _copied(member, scratch)
    except sqlite3.Error as error:
        raise MemberError(why(error)) from error
    except OSError as error:
        if isinstance(error, MemberError):
            raise
        raise MemberError(f"cannot be copied to be read ({error.strerror or type(error).__name__})") from error


def why(error: sqlite3.Error) -> str:
    """The reason to show for what SQLite raised; its own words may quote names out of the file."""
    return _WHY.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "damaged database")


# --- opening ----------------------------------------------------------------------------------------------------------


def _in_place(member: Member) -> Database | None:
    """Open a quiet database where it lies; None if its newest changes lie beside it, or if it is no file on disk."""
    if not isinstance(member, DiskMember) or is_packed(member.file.name) or _changes_beside(member):
        return None
    file = member.file
    before = _state(file)

    def check() -> None:
        if _state(file) != before or _changes_beside(member):
            raise MemberError("it changed while it was read")

    return _opened(f"{file.absolute().as_uri()}?mode=ro&immutable=1", before[0], check)


def _changes_beside(member: Member) -> list[tuple[str, Member]]:
    """(ending, member) of the non-empty logs of changes beside a database."""
    name = member.path.rsplit("/", 1)[-1]
    found = [(ending, member.near(name + ending)) for ending in BESIDE]
    return [(ending, beside) for ending, beside in found if beside is not None and beside.size > 0]


def _state(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError as error:
        raise MemberError(f"cannot be looked at ({error.strerror or type(error).__name__})") from error
    return found.st_size, found.st_mtime_ns


def _copied(member: Member, scratch: Path | None) -> Database:
    place = scratch or Path(tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=place))  # 0700
    try:
        size = _copy_all(member, folder)
        # With exclusive locking SQLite needs no `-shm`: the index of the log is kept in memory.
        return _opened(f"{(folder / 'copy').as_uri()}?mode=rw", size, lambda: None, exclusive=True)
    finally:
        # Open files live on without a name: a kill from here on leaves nothing.
        shutil.rmtree(folder)


def _copy_all(member: Member, folder: Path) -> int:
    """The database and its logs as one state; returns the bytes copied."""
    for _ in range(_COPY_TRIES):
        before = _steady(member)
        size = 0
        for ending, part in [("", member), *_changes_beside(member)]:
            size += _copy(part, folder / f"copy{ending}")
        if _steady(member) == before:
            return size
        for file in folder.iterdir():
            file.unlink()
    raise MemberError("it is being written to, it is read when it has come to rest")


def _steady(member: Member) -> object:
    """What must stay the same while a database is copied: its own state, and the beginning (salt) of each log.

    A log that only grows does no harm: what it gained is part of the copy or not, transaction by transaction.
    """
    if not isinstance(member, DiskMember):
        return None
    beginnings: list[tuple[str, bytes]] = []
    for ending, part in _changes_beside(member):
        with part.open() as stream:
            beginnings.append((ending, stream.read(32)))
    return _state(member.file), beginnings


def _copy(part: Member, target: Path) -> int:
    """Copy one file, 0600, while there is room for it. The size a ZIP tells may be wrong: room is looked at as it goes."""
    _need_room(target.parent, part.size)
    size = 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out, part.open() as stream:
        while data := stream.read(1 << 20):
            out.write(data)
            size += len(data)
            if size % _ROOM_LEFT < len(data):
                _need_room(target.parent, 0)
    return size


def _need_room(folder: Path, size: int) -> None:
    if shutil.disk_usage(folder).free < size + _ROOM_LEFT:
        raise MemberError(f"not enough room on the disk for a copy of this database ({size} bytes)")


def _opened(uri: str, size: int, check: Callable[[], None], *, exclusive: bool = False) -> Database:
    try:
        return _connected(uri, size, check, exclusive=exclusive)
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise

    def cut() -> None:
        raise MemberError("cut or damaged database: what can be read of it was taken")

    # Reading only, SQLite may be told to put up with a file that is shorter than it says and with odd table entries.
    return _connected(uri, size, cut, exclusive=exclusive, lenient=True)


def _connected(uri: str, size: int, check: Callable[[], None], *, exclusive: bool, lenient: bool = False) -> Database:
    # Whoever drops the last reference closes it, in whatever thread that happens.
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        connection.text_factory = _text
        connection.set_progress_handler(_Steps(size), _STEPS_BETWEEN)
        if exclusive:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        for pragma in (*_PRAGMAS, *(["writable_schema = 1"] if lenient else [])):
            connection.execute(f"PRAGMA {pragma}")
        connection.set_authorizer(_authorize)
        # Views and virtual tables have no root page.
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 LIMIT ?", (_TABLES,)
        )
        database = Database(connection, [name for (name,) in names if isinstance(name, str)], check)
    except BaseException:
        connection.close()
        raise
    weakref.finalize(database, connection.close)
    return database


class _Steps:
    """Ends a query (SQLite calls it every `_STEPS_BETWEEN` steps) when it has taken more than the size allows."""

    def __init__(self, size: int) -> None:
        self._left = (_FREE_STEPS + _STEPS_PER_BYTE * size) // _STEPS_BETWEEN

    def __call__(self) -> int:
        self._left -= 1
        return self._left < 0


_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}


def _authorize(action: int, first: str | None, second: str | None, _database: str | None, source: str | None) -> int:
    """Only tables are read, and nothing is called: what comes out of a view or a trigger (`source`) is refused."""
    if source is None and (
        action in _READING or (action == sqlite3.SQLITE_PRAGMA and first == "table_xinfo" and second is not None)
    ):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """A real table: its plain columns by their own names (computed ones are left out), and what its row number is called."""

    connection: sqlite3.Connection
    name: str
    columns: frozenset[str]
    number: str

    def keys(self, column: str, report: Report, between: tuple[str, str] | None = None) -> Iterator[tuple[int, object]]:
        """(row number, value of `column`) of all rows, in any order; `between`: only values from … to before ….

        Where an index is damaged the table itself is looked through: then a row may come twice.
        """
        what = f"SELECT {self.number}, {quoted(column)} FROM {quoted(self.name)}"
        where = f" WHERE {quoted(column)} >= ? AND {quoted(column)} < ?" if between else ""
        try:
            yield from self.connection.execute(what + where, between or ())
            return
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
        report.skip("damaged database: not all of its rows can be found", self.name, expected=False, unit="file")
        try:
            yield from self.connection.execute(what + " NOT INDEXED" + where, between or ())
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise

    def row(self, number: int, columns: Sequence[str]) -> dict[str, object] | None:
        """Values of those of the columns that exist, by name; None if the row is gone.

        Raises LostRow if this row alone cannot be read.
        """
        present = [column for column in columns if column in self.columns]
        what = ", ".join(map(quoted, present)) or "NULL"
        try:
            found = self.connection.execute(
                f"SELECT {what} FROM {quoted(self.name)} WHERE {self.number} = ?", (number,)
            ).fetchone()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error) and getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_TOOBIG:
                raise
            raise LostRow("row too large to be read" if not _is_damage(error) else "damaged row") from error
        return None if found is None else dict(zip(present, found, strict=False))

    def rows(
        self, numbers: Iterable[int], columns: Sequence[str], report: Report, place: str
    ) -> list[dict[str, object]] | None:
        """Those rows, in the order of their numbers; texts in BLOBs are texts, and a row that is lost is counted.

        None, and a skip, if all of them together are larger than a conversation can be.
        """
        found: list[dict[str, object]] = []
        size = 0
        for number in sorted(set(numbers)):
            try:
                row = self.row(number, columns)
            except LostRow as error:
                report.skip(str(error), place, expected=False)
                continue
            if row is None:
                continue
            for name, value in row.items():
                if isinstance(value, bytes):
                    row[name] = cell_text(value)
                size += len(value) if isinstance(value, str | bytes) else 8
            if size > MAX_ROWS_BYTES:
                report.skip("too large to be read", place, expected=False, unit="conversation")
                return None
            found.append(row)
        return found


class LostRow(ValueError):
    """One row of a table cannot be read; the text is a reason to show."""


def _is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)


def quoted(name: str) -> str:
    """An identifier for SQL."""
    return '"' + name.replace('"', '""') + '"'


def grouped(keys: Iterable[tuple[int, object]], name: Callable[[object], str | None]) -> dict[str, array[int]]:
    """Row numbers of each conversation, in the order in which the conversations were met; keys without a name are left.

    Eight bytes a row, so that millions of messages fit. Nothing has to be sorted, and no index is relied on.
    """
    groups: dict[str, array[int]] = {}
    for number, key in keys:
        if (group := name(key)) is not None:
            groups.setdefault(group, array("q")).append(number)
    return groups


def table_named(connection: sqlite3.Connection, name: str) -> Table | None:
    """The real table of that very name, or None (also for a view, a virtual table, or one without row numbers)."""
    found = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = ?", (name,)
    ).fetchone()
    if found is None:
        return None
    # The last value is 0 for plain columns, 2 and 3 for those that an expression of the file computes.
    described = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
    columns = frozenset(str(row[1]) for row in described if row[-1] == 0)
    taken = {str(row[1]).lower() for row in described}
    number = next((alias for alias in ("rowid", "_rowid_", "oid") if alias not in taken), None)
    return Table(connection, name, columns, number) if number else None


# --- what is kept of a database ---------------------------------------------------------------------------------------


def kept_row(format_name: str, parts: Mapping[str, object]) -> bytes:
    """One conversation's rows as one line of JSON; equal rows give equal bytes. Raises ValueError if it nests too deeply."""
    value = {ROWS_OF: format_name, **parts}
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:  # more than 254 levels
        raise ValueError("nested too deeply") from error


def cell_text(value: object) -> str | None:
    """A cell as text: programs store JSON as TEXT or as BLOB; None for NULL and numbers."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else None


def cell_json(value: object) -> Any:
    """The JSON in a cell, or None if there is none in it."""
    text = cell_text(value)
    if not text:
        return None
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return None


def holds_rows(head: Head, format_name: str) -> bool:
    """True if a member is what was kept of a database of this format."""
    return head.database is None and any(
        isinstance(item, dict) and item.get(ROWS_OF) == format_name for item in head.items
    )
