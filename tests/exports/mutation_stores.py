"""Damaged and drifted databases and ZIPs: cells, columns, tables; files inside."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.exports.mutations import Mutant, Shape, change, dump, flip, mutants, shape_of


def _database(data: bytes, work: Callable[[sqlite3.Connection], str | None]) -> tuple[str, bytes] | None:
    """A database after a change. (A log that lies beside it is not looked at: what counts is the changed file.)"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.db")
        path.write_bytes(data)
        try:
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA journal_mode=DELETE")
            how = work(connection)
            connection.commit()
            connection.close()
        except sqlite3.DatabaseError:
            return None
        return None if how is None else (how, path.read_bytes())


def _table_names(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    return sorted(name for (name,) in rows if not name.startswith("sqlite_"))


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]


def tables(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    """A column or table that another version does not have, or has under another name."""

    def work(connection: sqlite3.Connection) -> str | None:
        names = _table_names(connection)
        if not names:
            return None
        table = rng.choice(names)
        column = rng.choice(_columns(connection, table))
        way = rng.choice(["drop column", "drop column", "rename column", "drop table", "empty table", "new column"])
        connection.execute(
            {
                "drop column": f'ALTER TABLE "{table}" DROP COLUMN "{column}"',
                "rename column": f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO zz',
                "drop table": f'DROP TABLE "{table}"',
                "empty table": f'DELETE FROM "{table}"',
                "new column": f'ALTER TABLE "{table}" ADD COLUMN zz TEXT DEFAULT 7',
            }[way]
        )
        return f"{way} {table}.{column}"

    made = _database(data, work)
    return made and Mutant(made[0], made[1], lost=made[0].startswith(("empty", "drop table")))


def cells(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    """One cell of another type, or with its JSON changed; a row dropped."""

    def work(connection: sqlite3.Connection) -> str | None:
        filled = [(table, row) for table in _table_names(connection) for (row,) in _rowids(connection, table)]
        if not filled:
            return None
        table, row = rng.choice(filled)
        column = rng.choice(_columns(connection, table))
        (old,) = connection.execute(f'SELECT "{column}" FROM "{table}" WHERE rowid = ?', (row,)).fetchone()
        new, how = _other_cell(old, rng)
        if how == "drop row":
            connection.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))
        else:
            connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (new, row))
        return f"{how} in {table}.{column}"

    made = _database(data, work)
    return made and Mutant(made[0], made[1], lost=made[0].startswith("drop row"))


def _rowids(connection: sqlite3.Connection, table: str) -> list[tuple[int]]:
    try:
        return connection.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid').fetchall()
    except sqlite3.OperationalError:  # a table WITHOUT ROWID
        return []


def _other_cell(old: Any, rng: random.Random) -> tuple[Any, str]:
    text = old if isinstance(old, str) else old.decode("utf-8", "replace") if isinstance(old, bytes) else ""
    if text[:1] in ("{", "[") and rng.random() < 0.7:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict | list) and (how := change(value, rng)):
            new = dump(value)
            return (new if isinstance(old, bytes) else new.decode()), f"JSON {how}"
    if rng.random() < 0.1:
        return None, "drop row"
    new = rng.choice(
        [None, 0, -1, 2**62, 1.5, 1e300, "", "zz", b"", b"\xff\xfe", b"{", text[: len(text) // 2], "\0", "[]", "{}"]
    )
    return new, f"cell as {type(new).__name__}"


def inner(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    """One file inside a ZIP (or workbook) changed, dropped or doubled, and the ZIP made again."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [(info, archive.read(info)) for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError):
        return flip(path, data, shape, rng)
    entries = [(info, content) for info, content in entries if len(content) < 1 << 20]
    if not entries:
        return None
    number = rng.randrange(len(entries))
    info, content = entries[number]
    lost = False
    if rng.random() < 0.1 or not content:
        del entries[number]
        how, lost = "drop entry", True
    else:
        made = next(mutants(info.filename, content, shape_of(info.filename, content), rng))
        entries[number] = (info, made.data)
        how, lost = f"{made.how} in an entry", made.lost
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in entries:
            archive.writestr(info.filename, content)
    return Mutant(how, out.getvalue(), lost=lost)
