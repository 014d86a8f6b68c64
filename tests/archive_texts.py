"""Every text below a home that people, tools and indexes can read: opened, decompressed and decoded, with its place.

`lake/raw` and `vault` are left out: they hold the unredacted conversations, for their owner only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import zstandard

from palace_pipeline.store.lexical import open_reader

UNREDACTED = ("lake/raw/", "vault/")


def readable_files(home: Path) -> Iterator[tuple[str, Path]]:
    """Name and path of every file below a home but the unredacted ones."""
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_file() and not name.startswith(UNREDACTED):
            yield name, path


def stored_texts(home: Path) -> Iterator[tuple[str, str]]:
    """(place, text): file names, plain files, every column of every table, stored fields of the lexical index."""
    for name, path in readable_files(home):
        yield "name of a file", name
        if path.suffix == ".parquet":
            yield from _parquet(name, path)
        elif path.suffix == ".duckdb":
            yield from _duckdb(name, path)
        elif path.read_bytes()[:15] == b"SQLite format 3":
            yield from _sqlite(name, path)
        else:
            yield name, path.read_bytes().decode("utf-8", "surrogateescape")
    reader = open_reader(home / "lexical")
    if reader is not None:
        searcher = reader._index.searcher()
        import tantivy

        found = searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs)).hits
        for _, address in found:
            yield "lexical", str(searcher.doc(address).to_dict())


def raw_bytes(home: Path) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of every file, with what deleted rows may have left in it."""
    for name, path in readable_files(home):
        yield name, path.read_bytes()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("latin-1")
        if value[:4] == b"\x28\xb5\x2f\xfd":
            yield zstandard.ZstdDecompressor().decompressobj().decompress(value).decode("utf-8", "replace")
    elif isinstance(value, dict):
        yield from _all(value.keys())
        yield from _all(value.values())
    elif isinstance(value, list | tuple):
        yield from _all(value)


def _all(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield from _strings(value)


def _parquet(name: str, path: Path) -> Iterator[tuple[str, str]]:
    for row in pl.read_parquet(path).iter_rows(named=True):
        for column, value in row.items():
            if column != "vector":
                for text in _strings(value):
                    yield f"{name} {column}", text


def _duckdb(name: str, path: Path) -> Iterator[tuple[str, str]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        for (table,) in tables:
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            columns = [item[0] for item in cursor.description or []]
            for row in cursor.fetchall():
                for column, value in zip(columns, row, strict=True):
                    for text in _strings(value):
                        yield f"{name} {table}.{column}", text
        for (sql,) in connection.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall():
            yield f"{name} views", sql


def _sqlite(name: str, path: Path) -> Iterator[tuple[str, str]]:
    connection = sqlite3.connect(path)
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            columns = [item[0] for item in cursor.description]
            for row in cursor:
                for column, value in zip(columns, row, strict=True):
                    for text in _strings(value):
                        yield f"{name} {table}.{column}", text
    finally:
        connection.close()
