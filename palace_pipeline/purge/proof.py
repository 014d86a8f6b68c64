"""Looking for what was purged in every store and every file of the home: nothing may be left."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl
import zstandard

from palace_pipeline.exports.text import decode
from palace_pipeline.model import LAKE, from_record
from palace_pipeline.purge.probes import Probes
from palace_pipeline.redaction import made
from palace_pipeline.redaction.forgetting import is_name
from palace_pipeline.redaction.funnel import conversation_fields
from palace_pipeline.store.duckfile import attached, quoted
from palace_pipeline.store.home import Home
from palace_pipeline.store.lexical import open_reader
from palace_pipeline.store.quiet import open_quietly
from palace_pipeline.store.vault import Vault
from palace_pipeline.store.warehouse_schema import TABLES
from palace_pipeline.workspace import names
from palace_pipeline.workspace.git import HOW_TO_CLEAN, GitFailed, is_repository, objects
from palace_pipeline.workspace.hiding import said_on_page
from palace_pipeline.workspace.index import parse_row

_BLOCK = 8 << 20
_SQLITE = b"SQLite format 3\0"
_MADE_FOLDERS = ("lake", "lexical", "chroma", "dagster", "receipts", "vault", "quarantine")
"""Folders in which every name is made of times, ids and hashes."""
_SETTINGS = ("dagster/dagster.yaml", "dagster/workspace.yaml")
"""Files that are the same in every home."""


@dataclass(slots=True)
class Proof:
    """What was looked through: `stores` holds how many places each still shows (all 0 if the purge is done)."""

    probes: int
    stores: dict[str, int] = field(default_factory=dict[str, int])
    files: int = 0
    size: int = 0
    found: list[str] = field(default_factory=list[str])
    """Where something is still found; never what."""
    unread: list[str] = field(default_factory=list[str])
    """Files that could not be read, and why: what was purged may still stand in them."""
    spared: int = 0
    """Places in days, ids, hashes and fixed words that Palace or a product makes: they stay."""

    def as_json(self) -> dict[str, Any]:
        return {
            "probes": self.probes,
            "stores": self.stores,
            "files": self.files,
            "bytes": self.size,
            "found": self.found,
            "unread": self.unread,
            "spared": self.spared,
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
    say("vault records", _in_records(home, probes))
    say("vault catalogue", _in_catalogue(home, probes))
    if pieces:
        say("vault pieces", _in_pieces(home, probes, spared))
    say("palace.duckdb", _in_tables(home, probes, keys))
    say("chroma", _in_chroma(home.path / "chroma/chroma.sqlite3", probes))
    say("lexical", _in_lexical(home))
    say("ledger", [*_in_sqlite(home.path / "ledger.sqlite", probes), *_keys_in_ledger(home, keys)])
    say("dagster", (f"{path.name} {hit}" for path in _sqlite_below(home.dagster) for hit in _in_sqlite(path, probes)))
    if is_repository(home.path):
        say("git history", _in_history(home, probes))
    say("files", _in_files(home, probes, proof, pieces=pieces))
    proof.spared = probes.spared
    return proof


def _in_history(home: Home, probes: Probes) -> Iterator[str]:
    """What was purged may live on in earlier commits, packed, where a look at files does not find it."""
    try:
        if any(
            probes.in_bytes(data) and _in_page(data.decode("utf-8", "replace"), probes) for data in objects(home.path)
        ):
            yield f"{home.path / '.git'}: earlier commits hold it. {HOW_TO_CLEAN}"
    except GitFailed as error:
        yield f"{home.path / '.git'}: {error}"


def _in_lake(home: Home, probes: Probes, keys: Collection[tuple[str, str]]) -> Iterator[str]:
    for table in LAKE:
        for month in home.lake.months(table):
            # Also a part that does not count any more, or not yet.
            for path in sorted((home.lake.folder / table).glob(f"{month}.*")):
                rows = pl.read_parquet(path)
                if any(probes.in_column(table, column, text, made.said) for column, text in _texts(rows)):
                    yield f"{table} {path.stem}"
            if keys and not home.lake.read(table, [month], keys=keys, columns=["provider"]).is_empty():
                yield f"{table} {month} (rows)"


def _texts(frame: pl.DataFrame) -> Iterator[tuple[str, str]]:
    """Every text of a frame with its column, also inside lists and structs."""
    for series in frame.get_columns():
        kind = series.dtype
        if kind == pl.String:
            yield from ((series.name, text) for text in series.unique() if text)
        elif isinstance(kind, pl.List):
            yield from _texts(series.explode().drop_nulls().to_frame())
        elif isinstance(kind, pl.Struct):
            yield from ((series.name, text) for _, text in _texts(series.struct.unnest()))


def _in_records(home: Home, probes: Probes) -> Iterator[str]:
    if not (home.path / "vault/vault.sqlite").exists():
        return
    with closing(Vault(home.path / "vault", reading=True)) as vault:
        for digest, data in vault.every("records"):
            if shows(probes, data):
                yield digest[:12]


def shows(probes: Probes, record: bytes) -> bool:
    """Whether a record shows it: in what was said, in names also as names of files write it, or in ids."""
    text = record.decode("utf-8", "replace")
    if (
        not probes.in_bytes(record)
        and not probes.in_text(text)
        and not any(map(text.lower().__contains__, probes.names))
    ):
        return False  # as a rule
    conversation = from_record(record)
    fields = dict(conversation_fields(conversation))
    if any(probes.in_path(said, made.said) if is_name(name) else probes.in_text(said) for name, said in fields.items()):
        return True
    ids = (conversation.conversation_id, conversation.forked_from, conversation.parent_conversation_id)
    if any(probes.in_text(name, made.ident) for name in ids if name):
        return True
    named = (name for message in conversation.messages for name in (message.message_id, message.parent_id) if name)
    return any(probes.in_text(name, made.message_ident) for name in named)


def _in_pieces(home: Home, probes: Probes, spared: Collection[str]) -> Iterator[str]:
    if not (home.path / "vault/vault.sqlite").exists():
        return
    with closing(Vault(home.path / "vault", reading=True)) as vault:
        for digest, data in vault.every("pieces"):
            if digest not in spared and probes.in_bytes(data, made.raw):
                yield digest[:12]


def _in_catalogue(home: Home, probes: Probes) -> Iterator[str]:
    """What the vault knows of files lies packed in it."""
    if not (home.path / "vault/vault.sqlite").exists():
        return
    with closing(Vault(home.path / "vault", reading=True)) as vault:
        for path, packed in vault.rows("SELECT path, entry FROM catalogue"):
            entry = zstandard.ZstdDecompressor().decompress(packed)
            said = entry.decode("utf-8", "replace")
            if probes.in_path(path) or probes.in_bytes(entry, made.own) or probes.in_own(said):
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
            where = " WHERE key != 'home'" if table == "meta" else ""  # where the archive lies is the user's to say
            rows = connection.execute(f'SELECT DISTINCT "{column}" FROM {table}{where}')
            default = made.own if table == "meta" else made.said
            while part := rows.fetchmany(10_000):
                if any(probes.in_column(table, column, value, default) for (value,) in part if value):
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
            if any(
                probes.in_column(name, column, value, made.own)
                for row in rows
                for column, value in zip(columns, row, strict=True)
            ):
                yield f"table {name}"


def _in_chroma(path: Path, probes: Probes) -> Iterator[str]:
    """Documents and what stands beside them; all other tables are Chroma's own."""
    if not path.exists():
        return
    with closing(open_quietly(path)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, sql in _OF_CHROMA.items():
            if table in there and any(
                probes.in_column("", column, value, made.said)
                for key, data in connection.execute(sql)
                if data is not None
                for column, value in _values(key, data)
            ):
                yield f"table {table}"


_OF_CHROMA = {
    "embedding_metadata": "SELECT key, string_value FROM embedding_metadata",
    "embedding_fulltext_search_content": "SELECT 'chroma:document', c0 FROM embedding_fulltext_search_content",
    "embeddings_queue": "SELECT '', metadata FROM embeddings_queue",
}


def _values(key: str, data: str) -> Iterable[tuple[str, object]]:
    """What stands beside a document, by its key; in the queue all of one lies in one text."""
    if key:
        return [(key, data)]
    try:
        return cast("dict[str, object]", json.loads(data)).items()
    except (ValueError, AttributeError):
        return [("", data)]


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


def own_files(home: Home, failed: Callable[[OSError], object] | None = None) -> Iterator[Path]:
    """Every file below a home that is Palace's and not the user's own (their exports, `palace.toml`). `failed`: called for
    folders that cannot be read."""
    theirs = {folder.absolute() for folder in home.settings.folders} | {home.path / "inbox"}
    theirs.discard(home.path / "sessions")  # a source as well, but part of the archive
    for folder, folders, files in os.walk(home.path, onerror=failed):
        here = Path(folder)
        folders[:] = [name for name in folders if here / name not in theirs]
        for name in files:
            path = here / name
            if _is_file(path) and not path.is_symlink() and path != home.path / "palace.toml":
                yield path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # it is in a folder that cannot be entered: whoever reads it says so
        return True


def _in_files(home: Home, probes: Probes, proof: Proof, *, pieces: bool) -> Iterator[str]:
    def failed(error: OSError, shown: str | None = None) -> None:
        shown = shown or Path(str(error.filename)).relative_to(home.path).as_posix()
        proof.unread.append(f"{shown} ({error.strerror or type(error).__name__})")

    for path in own_files(home, failed):
        inside = path.relative_to(home.path).as_posix()
        in_name = not inside.startswith(tuple(f"{folder}/" for folder in _MADE_FOLDERS)) and probes.in_path(inside)
        if in_name:
            yield f"a name in {Path(inside).parent.as_posix()}"
        if inside in _SETTINGS or (inside.startswith("vault/") and not pieces):
            continue
        try:
            found = _in_file(inside, path, probes)
            proof.size += path.stat().st_size
        except OSError as error:  # it is named, and the others are looked at
            failed(error, Path(inside).parent.as_posix() if in_name else inside)
            continue
        proof.files += 1
        if found:
            yield inside if not in_name else Path(inside).parent.as_posix()


def _in_file(inside: str, path: Path, probes: Probes) -> bool:
    if path.suffix in (".md", ".json", ".yaml", ".toml", ".log", ".txt") and not inside.startswith("lexical/"):
        data = path.read_bytes()
        said = decode(data) if path.suffix == ".md" else data.decode("utf-8", "replace")
        if said is not None and _in_text_file(inside, path, said, probes):
            return True
        if said is not None and (path.suffix == ".md" or said.encode("utf-8", "replace") == data):
            return False  # in whatever encoding it is, there is no other text in it
    # Rows of databases are looked at one by one; here what lies between them is, where names of columns stand as well.
    place = str(path.parent) if inside == "palace.duckdb" else ""  # which says where it lies
    probes = probes.unlike("\n".join((_FIXED, _schema(path), place)))
    with path.open("rb") as stream:
        return probes.in_blocks(iter(lambda: stream.read(_BLOCK), b""), made.stored)


_FIXED = "\n".join(
    (
        *made.words(),
        *(column for table in LAKE.values() for column in table),
        *(repr(definition) for definition in TABLES.values()),
    )
)
"""Words that stand in the files of databases, whatever these hold."""


def _schema(path: Path) -> str:
    """What an SQLite file says of its own tables, '' for other files."""
    if not is_sqlite(path):
        return ""
    with closing(open_quietly(path)) as connection:
        found = list(connection.execute("SELECT coalesce(name, '') || coalesce(sql, '') FROM sqlite_master"))
        if path.name == "chroma.sqlite3":
            found += connection.execute("SELECT filename || sql FROM migrations")
            found += connection.execute("SELECT DISTINCT key FROM embedding_metadata")
            found += connection.execute("SELECT coalesce(schema_str, '') || name FROM collections")
    return "\n".join(text for (text,) in found)


def _in_text_file(inside: str, path: Path, said: str, probes: Probes) -> bool:
    """In a file of text; of a page the words are a chat's, and only what stands above them is ours."""
    if inside.startswith("logs/") or inside == "index.md":
        rows = filter(None, map(parse_row, said.split("\n"))) if inside == "index.md" else ()
        return probes.in_own(said, made.line) or any(probes.in_path(row.title, made.said) for row in rows)
    return _in_page(said, probes, inside) if path.suffix == ".md" else probes.in_own(said)


def _in_page(said: str, probes: Probes, inside: str = "") -> bool:
    """In a page, of a live session or of another kind. In its properties also as names of files write it."""
    ours = said[: max(0, said.find("\n---", 4))] if said.startswith("---\n") else ""
    if names.id_of(names.page_beside(Path(inside))) is not None if inside else said.startswith("---\nid: "):
        if probes.in_text("\n".join(said_on_page(said))):
            return True
        probes.spared += probes.in_text(said)
        return False
    if not inside.startswith(("conversations/", "notes/")) and inside:
        return probes.in_text(said) or probes.in_own(ours, made.said)
    return probes.in_text(said, made.page) or probes.in_own(ours, made.page)
