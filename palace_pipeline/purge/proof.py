"""Looking for what was purged in every store and every file of the home: nothing may be left."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import zstandard
from ahocorasick_rs import BytesAhoCorasick

from palace_pipeline.model import LAKE
from palace_pipeline.redaction.forgotten import WORD, is_path, places_in_name
from palace_pipeline.store.duckfile import attached, quoted
from palace_pipeline.store.home import Home
from palace_pipeline.store.lexical import open_reader
from palace_pipeline.store.quiet import open_quietly
from palace_pipeline.store.vault import Vault
from palace_pipeline.workspace.git import HOW_TO_CLEAN, GitFailed, is_repository, objects
from palace_pipeline.workspace.index import parse_row

LEAST_BYTES = 6
"""Shorter patterns come by chance in compressed data; they are looked for in texts only."""
_BLOCK = 8 << 20
_SQLITE = b"SQLite format 3\0"
_NAMES = ("path", "source_file", "page", "place", "where", "title", "project")
"""Columns of lake and `palace.duckdb` that hold paths, or what names are made of."""


class Probes:
    """Texts to look for, in every way in which files write them. `names`: what is looked for in paths, in lower case."""

    def __init__(self, texts: Iterable[str], names: Sequence[str] = ()) -> None:
        self.texts = list(dict.fromkeys(texts))
        self.names = names
        self._texts = BytesAhoCorasick([_bytes(text) for text in self.texts]) if self.texts else None
        patterns = {pattern for text in self.texts for pattern in written(text)}
        patterns = {pattern for pattern in patterns if len(pattern) >= LEAST_BYTES}
        self._patterns = BytesAhoCorasick(sorted(patterns)) if patterns else None
        self.reach = max(map(len, patterns), default=1) - 1

    def in_text(self, text: str) -> bool:
        """Does a text show one of them?"""
        return self._texts is not None and bool(self._texts.find_matches_as_indexes(_bytes(text)))

    def in_path(self, path: str) -> bool:
        """Does a path show one, also as names of files write them?"""
        return self.in_text(path) or self._named(path)

    def in_own(self, text: str) -> bool:
        """Does a text that is no chat (a log, a row of the ledger) show one, in its paths also as names of files do?"""
        if self.in_text(text):
            return True
        return bool(self.names) and any(map(self._named, filter(is_path, WORD.findall(text))))

    def _named(self, path: str) -> bool:
        return next(places_in_name(path, self.names), None) is not None

    def in_bytes(self, data: bytes) -> bool:
        """Do bytes show one of them, as UTF-8, UTF-16 or escaped for JSON?"""
        return self._patterns is not None and bool(self._patterns.find_matches_as_indexes(data))

    def in_blocks(self, blocks: Iterable[bytes]) -> bool:
        """The same for a stream: what lies over the edge of two blocks is seen too."""
        tail = b""
        for block in blocks:
            data = tail + block
            if self.in_bytes(data):
                return True
            tail = data[-self.reach :] if self.reach else b""
        return False

    def in_value(self, value: object) -> bool:
        """The same for a value of a database that holds no chats."""
        return (isinstance(value, str) and self.in_own(value)) or (isinstance(value, bytes) and self.in_bytes(value))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def written(text: str) -> set[bytes]:
    """The bytes of a text in a file: UTF-8, both escapes of JSON (and of JSON in JSON), both orders of UTF-16."""
    plain, ascii_only = json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]
    nested = json.dumps(ascii_only)[1:-1]
    wide = {text.encode(order, "surrogatepass") for order in ("utf-16-le", "utf-16-be")}
    return {_bytes(text), _bytes(plain), ascii_only.encode(), nested.encode()} | wide


@dataclass(slots=True)
class Proof:
    """What was looked through: `stores` holds how many places each still shows (all 0 if the purge is done)."""

    probes: int
    stores: dict[str, int] = field(default_factory=dict[str, int])
    files: int = 0
    size: int = 0
    found: list[str] = field(default_factory=list[str])
    """Where something is still found; never what."""

    def as_json(self) -> dict[str, Any]:
        return {
            "probes": self.probes,
            "stores": self.stores,
            "files": self.files,
            "bytes": self.size,
            "found": self.found,
        }


def prove(
    home: Home,
    texts: Sequence[str],
    keys: Collection[tuple[str, str]],
    *,
    pieces: bool,
    spared: Collection[str] = (),
    names: Sequence[str] = (),
) -> Proof:
    """Look for texts and conversations everywhere in a home. `pieces`: also in the raw bytes of the vault, but for those
    named in `spared`; `names`: in paths, in lower case."""
    probes = Probes(texts, names)
    proof = Proof(len(probes.texts))

    def say(store: str, hits: Iterable[str]) -> None:
        places = list(dict.fromkeys(hits))
        proof.stores[store] = len(places)
        proof.found += (f"{store}: {place}" for place in places)

    say("lake", _in_lake(home, probes, keys))
    say("vault records", _in_vault(home, probes, "records", ()))
    say("vault catalogue", _in_catalogue(home, probes))
    if pieces:
        say("vault pieces", _in_vault(home, probes, "pieces", spared))
    say("palace.duckdb", _in_tables(home, probes, keys))
    say("chroma", _in_sqlite(home.path / "chroma/chroma.sqlite3", Probes(texts)))
    say("lexical", _in_lexical(home))
    say("ledger", [*_in_sqlite(home.path / "ledger.sqlite", probes), *_keys_in_ledger(home, keys)])
    say("dagster", (f"{path.name} {hit}" for path in _sqlite_below(home.dagster) for hit in _in_sqlite(path, probes)))
    if is_repository(home.path):
        say("git history", _in_history(home, probes))
    say("files", _in_files(home, probes, proof, pieces=pieces))
    return proof


def _in_history(home: Home, probes: Probes) -> Iterator[str]:
    """What was purged may live on in earlier commits, packed, where a look at files does not find it."""
    try:
        if any(probes.in_bytes(data) for data in objects(home.path)):
            yield f"{home.path / '.git'}: earlier commits hold it. {HOW_TO_CLEAN}"
    except GitFailed as error:
        yield f"{home.path / '.git'}: {error}"


def _in_lake(home: Home, probes: Probes, keys: Collection[tuple[str, str]]) -> Iterator[str]:
    for table in LAKE:
        for month in home.lake.months(table):
            # Also a part that does not count any more, or not yet.
            for path in sorted((home.lake.folder / table).glob(f"{month}.*")):
                rows = pl.read_parquet(path)
                named = [rows[column].drop_nulls().unique() for column in _NAMES if column in rows.columns]
                if any(probes.in_text(text) for text in _texts(rows)) or any(map(probes.in_path, chain(*named))):
                    yield f"{table} {path.stem}"
            if keys and not home.lake.read(table, [month], keys=keys, columns=["provider"]).is_empty():
                yield f"{table} {month} (rows)"


def _texts(frame: pl.DataFrame) -> Iterator[str]:
    """Every text of a frame, also inside lists and structs."""
    for series in frame.get_columns():
        kind = series.dtype
        if kind == pl.String:
            yield from (text for text in series.unique() if text)
        elif isinstance(kind, pl.List):
            yield from _texts(series.explode().drop_nulls().to_frame())
        elif isinstance(kind, pl.Struct):
            yield from _texts(series.struct.unnest())


def _in_vault(home: Home, probes: Probes, table: Any, spared: Collection[str]) -> Iterator[str]:
    if not (home.path / "vault/vault.sqlite").exists():
        return
    with closing(Vault(home.path / "vault", reading=True)) as vault:
        for digest, data in vault.every(table):
            if digest not in spared and probes.in_bytes(data):
                yield digest[:12]


def _in_catalogue(home: Home, probes: Probes) -> Iterator[str]:
    """What the vault knows of files lies packed in it."""
    if not (home.path / "vault/vault.sqlite").exists():
        return
    with closing(Vault(home.path / "vault", reading=True)) as vault:
        for path, packed in vault.rows("SELECT path, entry FROM catalogue"):
            entry = zstandard.ZstdDecompressor().decompress(packed)
            if probes.in_path(path) or probes.in_bytes(entry) or probes.in_own(entry.decode("utf-8", "replace")):
                yield "an entry"
        if any(probes.in_path(text) for row in vault.rows("SELECT path, member FROM places") for text in row):
            yield "a place"


def _in_tables(home: Home, probes: Probes, keys: Collection[tuple[str, str]]) -> Iterator[str]:
    if not home.warehouse.exists():
        return
    with attached(home.path) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name FROM duckdb_columns() JOIN duckdb_tables() USING (database_name, table_name) "
            "WHERE database_name = 'palace' AND data_type = 'VARCHAR' ORDER BY 1, 2"
        ).fetchall()
        for table, column in columns:
            rows = connection.execute(f'SELECT DISTINCT "{column}" FROM {table}')
            shows = probes.in_path if column in _NAMES else probes.in_text
            while part := rows.fetchmany(10_000):
                if any(shows(value) for (value,) in part if value):
                    yield f"{table}.{column}"
        for table in {table for table, column in columns if column == "conversation_id"}:
            for provider, conversation_id in keys:
                wanted = f"provider = {quoted(provider)} AND conversation_id = {quoted(conversation_id)}"
                if connection.execute(f"SELECT 1 FROM {table} WHERE {wanted} LIMIT 1").fetchall():
                    yield f"{table} (rows)"


def plain_parent(path: str, probes: Probes) -> str:
    """The nearest folder of a path that can be named without naming what is looked for."""
    folder = Path(path).parent
    while probes.in_path(str(folder)) and folder != folder.parent:
        folder = folder.parent
    return str(folder)


def _in_sqlite(path: Path, probes: Probes) -> Iterator[str]:
    """Tables of an SQLite file with a value that shows a probe."""
    if not path.exists():
        return
    with closing(open_quietly(path)) as connection:
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for name, made_by in tables:
            if str(made_by).upper().startswith("CREATE VIRTUAL"):
                continue  # what it holds lies in tables of its own
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
            chosen = ", ".join(f'"{column}"' for column in columns) or "NULL"
            rows = connection.execute(f'SELECT {chosen} FROM "{name}"')
            if any(probes.in_value(value) for row in rows for value in row):
                yield f"table {name}"


def _sqlite_below(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and is_sqlite(path)]


def is_sqlite(path: Path) -> bool:
    """Is a file an SQLite database?"""
    with path.open("rb") as stream:
        return stream.read(len(_SQLITE)) == _SQLITE


def _in_lexical(home: Home) -> Iterator[str]:
    """The index holds no text; its words come of the chunks it was built from, so it must hold none but theirs."""
    reader = open_reader(home.path / "lexical")
    if reader is None:
        return
    lake = home.lake
    chunks = lake.read("clean/chunks", lake.months("clean/chunks"), columns=["drawer_id"])["drawer_id"].to_list()
    if not set(reader.ids()) <= set(chunks):
        yield "drawers of no chunk"


def _keys_in_ledger(home: Home, keys: Collection[tuple[str, str]]) -> Iterator[str]:
    with closing(open_quietly(home.path / "ledger.sqlite")) as connection:
        for table in ("conversations", "sightings", "element_records", "published", "secret_candidates", "withheld"):
            for key in keys:
                sql = f"SELECT 1 FROM {table} WHERE provider = ? AND conversation_id = ? LIMIT 1"
                if connection.execute(sql, key).fetchone():
                    yield f"table {table} (rows)"


def own_files(home: Home) -> Iterator[Path]:
    """Every file below a home that is Palace's and not the user's own (their exports, `palace.toml`)."""
    theirs = {folder.absolute() for folder in home.settings.folders} | {home.path / "inbox"}
    theirs.discard(home.path / "sessions")  # a source as well, but part of the archive
    for folder, folders, files in os.walk(home.path):
        here = Path(folder)
        folders[:] = [name for name in folders if here / name not in theirs]
        for name in files:
            path = here / name
            if path.is_file() and not path.is_symlink() and path != home.path / "palace.toml":
                yield path


def _in_files(home: Home, probes: Probes, proof: Proof, *, pieces: bool) -> Iterator[str]:
    for path in own_files(home):
        inside = path.relative_to(home.path).as_posix()
        if probes.in_path(inside):
            yield f"a name in {Path(inside).parent.as_posix()}"
        if inside.startswith("vault/") and not pieces:
            continue
        proof.files += 1
        proof.size += path.stat().st_size
        text = path.suffix in (".md", ".json", ".yaml", ".toml", ".log", ".txt")
        if (text and _in_text_file(inside, path, probes)) or _in_file(path, probes):
            yield inside if not probes.in_path(inside) else Path(inside).parent.as_posix()


def _in_text_file(inside: str, path: Path, probes: Probes) -> bool:
    """In a file of text; of a page the words are a chat's, and only what stands above them is ours."""
    said = path.read_bytes().decode("utf-8", "replace")
    if path.suffix == ".md" and not inside.startswith("logs/"):
        ours = said[: max(0, said.find("\n---", 4))] if said.startswith("---\n") else ""
        rows = filter(None, map(parse_row, said.split("\n"))) if inside == "index.md" else ()
        named = (text for row in rows for text in (row.path, row.title))
        return probes.in_text(said) or probes.in_own(ours) or any(map(probes.in_path, named))
    return probes.in_own(said)


def _in_file(path: Path, probes: Probes) -> bool:
    with path.open("rb") as stream:
        return probes.in_blocks(iter(lambda: stream.read(_BLOCK), b""))
