"""Publishing: rows of the clean lake, page paths, exports and skips -> the tables of `palace.duckdb`.

A full build and an incremental publish run the same statements over a few month files at a time, so memory follows the
largest month, rows of a month lie together (a delete by day touches few of them), and both ways give the same tables.
Text stays in the lake: the views `message_text` and `drawer_text` join it by the absolute path of this home.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import polars as pl

from palace_pipeline.model import (
    CHUNKS,
    CONVERSATIONS,
    DRAWERS,
    FINDINGS,
    KEY_SCHEMA,
    MESSAGES,
    UTC_TIME,
    VISIBLE_ROLES,
)
from palace_pipeline.store import stats
from palace_pipeline.store.clock import to_local, zone_changes
from palace_pipeline.store.duckfile import copy_file, database, opened, put_in_place, quoted, working_folder
from palace_pipeline.store.lake import Lake, LakeDamaged, month_of
from palace_pipeline.store.warehouse_schema import SCHEMA_VERSION, TABLES, definitions
from palace_pipeline.transcripts.words import words_of

if TYPE_CHECKING:
    import duckdb

Key = tuple[str, str]
Row = Mapping[str, Any]
Rows = Iterable[Row] | Callable[[Collection[str] | None], Iterable[Row]]


class FileRows(TypedDict):
    """What `publish` is told of export files: see there."""

    exports: Rows
    skips: Rows
    paths: Collection[str] | None


_KEY = list(KEY_SCHEMA)
_MONTH = re.compile(r"\d{4}-\d{2}")
_PLACE = ["day", *_KEY]
_LOAD = Path(__file__).with_name("warehouse_load.sql").read_text(encoding="utf-8")
_LAKE: dict[str, dict[str, Any]] = {
    "conversations": CONVERSATIONS,
    "messages": MESSAGES,
    "findings": FINDINGS,
    "drawers": DRAWERS,
}
_ROWS: dict[str, dict[str, Any]] = {
    "exports": {
        **dict.fromkeys(("path", "sha256", "provider", "format"), pl.String),
        "first_seen_at": UTC_TIME,
        **dict.fromkeys(("size", "conversations", "messages", "skipped"), pl.Int64),
        **dict.fromkeys(("status", "reason"), pl.String),
    },
    "skips": {
        **dict.fromkeys(("path", "provider", "place", "reason"), pl.String),
        "expected": pl.Boolean,
        "count": pl.Int64,
        "unit": pl.String,
    },
}
_ADDED = {"conversations": ("page",), "messages": ("words", "visible", "local_at")}
"""Columns of the tables that are made here, beside those that the lake has."""
_TEXT_VIEWS: dict[str, tuple[str, str, str, dict[str, str], dict[str, Any]]] = {
    # view: (table, table of the lake, comment, columns from the lake with their comments, their schema)
    "message_text": (
        "messages",
        "messages",
        "messages with their redacted text, read from the lake of this home",
        {"message_id": "the source's message id", "text": "redacted text"},
        MESSAGES,
    ),
    "drawer_text": (
        "drawers",
        "chunks",
        "drawers with their redacted text, read from the lake of this home",
        {"text": "redacted text, verbatim", "context": "the question of a continued answer, embedded before the text"},
        CHUNKS,
    ),
}
_JOINED_BY = {"messages": ("day", *_KEY, "seq"), "drawers": ("day", *_KEY, "drawer_id")}
_BATCH_BYTES = 32 << 20
_MANY = 1_000
"""Below this many changed conversations an incremental publish is cheap whatever the archive's size."""


@dataclass(frozen=True)
class PublishResult:
    """`counts`: rows per table after the publish. `written`: False if the file said it all already and was left."""

    counts: dict[str, int]
    full: bool
    written: bool = True


def publish(
    home: Path,
    changed: Sequence[tuple[str, str, date]] | None,
    removed: Collection[Key] = (),
    *,
    exports: Rows,
    skips: Rows,
    pages: Mapping[Key, str],
    paths: Collection[str] | None = None,
    zone: tzinfo = UTC,
) -> PublishResult:
    """Bring `palace.duckdb` up to the clean lake; needs the home's write lock.

    `changed`: provider, conversation id and day of every conversation whose rows, drawers or page are new since the
    last publish; None builds everything anew. `removed`: conversations that are no more.
    `exports`, `skips`: all rows of these tables (`first_seen_at`: datetime or ISO text), or a function that gives those
    of some paths (of all, for None). `paths`: the export files whose rows are new since the last publish; None: not
    known, all rows are looked at.
    `pages`: page paths relative to the home, of every conversation; only those of changed ones are looked up, unless
    the file is missing, damaged, of another recipe, home or zone, or most of it changed: then it is built anew whatever
    `changed` says. `zone`: of the `local_*` columns.

    Raises LakeDamaged for a month file that cannot be read; the published file is then as it was.
    """
    import duckdb

    rows: dict[str, Rows] = {
        table: source if callable(source) else list(source)
        for table, source in (("exports", exports), ("skips", skips))
    }
    with working_folder(home) as folder:
        built = folder / "new.duckdb"
        result = None
        if changed is not None and database(home).exists():
            try:
                new = None if paths is None else set(paths)
                result = _incremental(home, built, changed, removed, rows, new, pages, zone)
            except duckdb.Error:
                # Damaged, half-copied under somebody's writing, or not ours: everything in it can be made again.
                result = None
        if result is None:
            for leftover in folder.glob("new.duckdb*"):
                leftover.unlink()
            result = _full(home, built, rows, pages, zone)
        if result.written:
            put_in_place(built, home)
        return result


def _recipe(home: Path, zone: tzinfo) -> dict[str, str]:
    """What rows in a file depend on besides the lake: if any of it differs, the file is built anew."""
    text = "\n".join((*definitions(), _LOAD))
    return {
        "schema_version": str(SCHEMA_VERSION),
        "recipe": hashlib.sha256(text.encode()).hexdigest()[:16],
        "home": str(home.absolute()),
        "display_zone": str(zone),
        "zone_changes": hashlib.sha256(repr(zone_changes(zone)).encode()).hexdigest()[:16],
    }


# --- the two ways -----------------------------------------------------------------------------------------------------


def _full(home: Path, built: Path, rows: Mapping[str, Rows], pages: Mapping[Key, str], zone: tzinfo) -> PublishResult:
    with opened(built) as connection:
        # One transaction: with a commit each statement waits for the disk.
        connection.execute("BEGIN")
        for statement in definitions():
            connection.execute(statement)
        page_frame = _page_frame(pages, pages.keys())
        for months in _batches(home, _months(home)):
            _load(connection, home, months, None, page_frame, zone, built.parent)
        meta = _recipe(home, zone)
        for table, source in rows.items():
            meta[f"{table}_digest"] = _stage_rows(source, None, table, built.parent)
            _load_rows(connection, table, built.parent)
        _create_text_views(connection, home)
        return _finish(connection, meta | stats.define(connection), full=True)


def _incremental(
    home: Path,
    built: Path,
    changed: Sequence[tuple[str, str, date]],
    removed: Collection[Key],
    rows: Mapping[str, Rows],
    paths: set[str] | None,
    pages: Mapping[Key, str],
    zone: tzinfo,
) -> PublishResult | None:
    """None: the present file cannot be continued. Raises duckdb.Error if it cannot be read."""
    copy_file(database(home), built)
    with opened(built) as connection:
        meta: dict[str, str] = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        if any(meta.get(name) != value for name, value in _recipe(home, zone).items()):
            return None
        keys = [*((provider, conversation_id) for provider, conversation_id, _ in changed), *removed]
        touched = pl.DataFrame(keys, schema=KEY_SCHEMA, orient="row").unique()
        if touched.height > _MANY and touched.height * 2 > _count(connection, "conversations"):
            return None
        connection.execute("BEGIN")
        replaced = [_replace_rows(connection, name, rows[name], paths, meta, built.parent) for name in rows]
        if touched.is_empty() and not any(replaced):
            return PublishResult(_counts(connection), full=False, written=False)
        _delete(connection, touched, built.parent)
        days = pl.DataFrame(list(changed), schema={**KEY_SCHEMA, "day": pl.Date}, orient="row")
        page_frame = _page_frame(pages, days.select(_KEY).iter_rows())
        for months in _batches(home, sorted({month_of(day) for day in days["day"]})):
            _load(connection, home, months, days, page_frame, zone, built.parent)
        _create_text_views(connection, home)
        return _finish(connection, meta, full=False)


def _delete(connection: duckdb.DuckDBPyConnection, touched: pl.DataFrame, folder: Path) -> None:
    if touched.is_empty():
        return
    file = folder / "touched.parquet"
    touched.write_parquet(file)
    connection.execute("CREATE OR REPLACE TEMP TABLE touched AS FROM read_parquet($1)", [_as_glob(file)])
    first, last = connection.execute(
        "SELECT min(day), max(day) FROM conversations SEMI JOIN touched USING (provider, conversation_id)"
    ).fetchall()[0]
    if first is None:  # all new
        return
    for table in _LAKE:
        # Rows of a day lie together: the bounds of the days keep DuckDB from reading the rest of the table.
        connection.execute(
            f"DELETE FROM {table} WHERE day BETWEEN $1 AND $2"
            " AND (provider, conversation_id) IN (SELECT (provider, conversation_id) FROM touched)",
            [first, last],
        )


def _finish(connection: duckdb.DuckDBPyConnection, meta: dict[str, str], *, full: bool) -> PublishResult:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    meta = {**meta, "published_at": now, **({"built_at": now} if full else {})}
    connection.execute("DELETE FROM meta")
    connection.execute("INSERT INTO meta SELECT unnest($1), unnest($2)", [list(meta.keys()), list(meta.values())])
    connection.execute("COMMIT")
    counts = _counts(connection)
    connection.execute("CHECKPOINT")
    return PublishResult(counts, full)


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    return connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]


def _counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    return {table: _count(connection, table) for table in TABLES if table != "meta"}


# --- months of the lake -----------------------------------------------------------------------------------------------


def _table_folder(home: Path, table: str) -> Path:
    return home / "lake" / "clean" / table


def _months(home: Path) -> list[str]:
    """Months for which any table has a file."""
    lake = Lake(home / "lake")
    return sorted({month for table in _LAKE for month in lake.months(f"clean/{table}") if _MONTH.fullmatch(month)})


def _batches(home: Path, months: Iterable[str]) -> Iterator[list[str]]:
    """Runs of months whose message files together are not large: a statement costs as much as some thousand rows."""
    lake = Lake(home / "lake")
    batch: list[str] = []
    size = 0
    for month in months:
        more = sum(file.stat().st_size for file in lake.files("clean/messages", month))
        if batch and size + more > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(month)
        size += more
    if batch:
        yield batch


def _load(
    connection: duckdb.DuckDBPyConnection,
    home: Path,
    months: list[str],
    keys: pl.DataFrame | None,
    pages: pl.DataFrame,
    zone: tzinfo,
    folder: Path,
) -> None:
    """Add the rows of some month files (of `keys` only, unless None).

    A row whose conversation has no head on the same day (a move that is not finished) waits for its own publish: all rows
    of a conversation in the tables have its one day, by which they are found again.
    """
    wanted = None if keys is None else list(keys.select(_KEY).iter_rows())
    heads = _scan(home, "conversations", months, wanted)
    if keys is not None:
        heads = heads.join(keys.lazy(), on=_PLACE, how="semi", maintain_order="left")
    heads = heads.join(pages.lazy(), on=_KEY, how="left", maintain_order="left")
    staged = {"conversations": _stage(heads, "conversations", months, folder)}
    places = pl.read_parquet(staged["conversations"], columns=_PLACE, glob=False)
    for table in ("messages", "findings", "drawers"):
        rows = _scan(home, table, months, wanted)
        if keys is not None:
            rows = rows.filter(pl.col("day").is_in(places["day"].unique().to_list()))
        rows = rows.join(places.lazy(), on=_PLACE, how="semi", maintain_order="left")
        if table == "messages":
            rows = _message_columns(rows, zone)
        staged[table] = _stage(rows, table, months, folder)
    for statement in _statements(_LOAD):
        files = {table: _as_glob(path) for table, path in staged.items() if f"${table}" in statement}
        connection.execute(statement, files)


def _scan(home: Path, table: str, months: Iterable[str], keys: Collection[Key] | None) -> pl.LazyFrame:
    lake = Lake(home / "lake")
    sources = [path for month in months for path in lake.files(f"clean/{table}", month, keys)]
    return pl.scan_parquet(sources, glob=False) if sources else pl.LazyFrame(schema=_LAKE[table])


def _stage(rows: pl.LazyFrame, table: str, months: Sequence[str], folder: Path) -> Path:
    """Write the columns of a table, as a stream; returns the file."""
    target = folder / f"{table}.parquet"
    added = _ADDED.get(table, ())
    names = [name for name in TABLES[table].names if name in _LAKE[table] or name in added]
    try:
        rows.select(names).sink_parquet(target, maintain_order=True, compression="lz4")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise LakeDamaged(
            f"a file of lake/clean/{table} from {months[0]} to {months[-1]} cannot be read ({type(error).__name__})"
        ) from error
    return target


def _message_columns(rows: pl.LazyFrame, zone: tzinfo) -> pl.LazyFrame:
    visible = pl.col("role").is_in(VISIBLE_ROLES) & pl.col("branch_active") & pl.col("hidden_reason").is_null()
    on_the_clock = pl.col("created_at").map_batches(to_local(zone), return_dtype=pl.Datetime("us"), is_elementwise=True)
    as_written = (
        pl.col("local_time").str.slice(0, 19).str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False)
    )
    local = pl.coalesce(on_the_clock, as_written)
    # An instant of the calendar's last hours has no local time in a zone that is ahead: no program can read that year.
    local_at = pl.when(local.dt.year().is_between(1, 9999)).then(local)
    return rows.with_columns(words=words_of("text"), visible=visible, local_at=local_at)


def _statements(script: str) -> list[str]:
    return [part for part in script.split(";\n") if part.strip()]


def _page_frame(pages: Mapping[Key, str], keys: Iterable[Key]) -> pl.DataFrame:
    found = ((key, pages.get(key)) for key in keys)
    rows = [(*key, page) for key, page in found if page is not None]
    return pl.DataFrame(rows, schema={**KEY_SCHEMA, "page": pl.String}, orient="row")


# --- rows handed in ---------------------------------------------------------------------------------------------------


def _replace_rows(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    source: Rows,
    paths: Collection[str] | None,
    meta: dict[str, str],
    folder: Path,
) -> bool:
    """Replace the rows of some paths, or all of them if they differ from those in the file; whether there was any."""
    if paths is not None and not paths:
        return False
    digest = _stage_rows(source, paths, table, folder)
    if paths is None:
        if meta.get(f"{table}_digest") == digest:
            return False
        connection.execute(f"DELETE FROM {table}")
        meta[f"{table}_digest"] = digest
    else:
        wanted = [str(path) for path in _series("path", list(paths), pl.String)]
        connection.execute(f"DELETE FROM {table} WHERE path IN (SELECT unnest($1))", [wanted])
        meta[f"{table}_digest"] = ""  # of all rows: not known any more
    _load_rows(connection, table, folder)
    return True


def _stage_rows(source: Rows, paths: Collection[str] | None, table: str, folder: Path) -> str:
    """Write rows of `exports` or `skips` as they will be loaded; returns their digest."""
    if callable(source):
        rows = list(source(paths))
    else:
        rows = [row for row in source if paths is None or row["path"] in paths]
    schema = _ROWS[table]
    if unknown := {name for row in rows for name in row} - schema.keys():
        raise ValueError(f"{table} has no columns {sorted(unknown)}")
    target = folder / f"{table}.parquet"
    pl.DataFrame([_series(name, [row.get(name) for row in rows], kind) for name, kind in schema.items()]).write_parquet(
        target, compression="lz4", statistics=False
    )
    return hashlib.sha256(target.read_bytes()).hexdigest()[:16]


def _series(name: str, values: list[Any], kind: Any) -> pl.Series:
    if kind == UTC_TIME:
        values = [_instant(value) for value in values]
    elif kind == pl.Boolean:
        values = [None if value is None else bool(value) for value in values]
    try:
        return pl.Series(name, values, dtype=kind)
    except UnicodeEncodeError:
        # A file name that is no UTF-8 reaches us with lone surrogates, which no Parquet or DuckDB text can hold.
        clean = [None if value is None else value.encode("utf-8", "backslashreplace").decode() for value in values]
        return pl.Series(name, clean, dtype=kind)


def _instant(value: datetime | str | None) -> datetime | None:
    if value is None:
        return None
    instant = datetime.fromisoformat(value) if isinstance(value, str) else value
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _load_rows(connection: duckdb.DuckDBPyConnection, table: str, folder: Path) -> None:
    connection.execute(f"INSERT INTO {table} BY NAME FROM read_parquet($1)", [_as_glob(folder / f"{table}.parquet")])


# --- views over text --------------------------------------------------------------------------------------------------


def _as_glob(path: Path | str) -> str:
    """A path for `read_parquet`, which takes `*`, `?` and `[` in it as a pattern."""
    return re.sub(r"([\[*?])", r"[\1]", str(path))


def _create_text_views(connection: duckdb.DuckDBPyConnection, home: Path) -> None:
    for view, (table, lake_table, comment, added, schema) in _TEXT_VIEWS.items():
        folder = _table_folder(home.absolute(), lake_table)
        if any(_MONTH.fullmatch(path.name.split(".")[0]) for path in folder.glob("*.parquet")):
            # Not `*`: a file that is being written has another name until it is complete.
            source = f"read_parquet({quoted(_as_glob(folder) + '/[0-9][0-9][0-9][0-9]-[0-9][0-9]*.parquet')})"
        else:
            names = (*_JOINED_BY[table], *added)
            kinds = {pl.Date: "DATE", pl.Int64: "BIGINT", pl.String: "VARCHAR"}
            source = f"(SELECT {', '.join(f'NULL::{kinds[schema[n]]} AS {n}' for n in names)} WHERE false)"
        columns = ", ".join((*(f"r.{name}" for name in TABLES[table].names), *(f"t.{name}" for name in added)))
        connection.execute(
            f"CREATE OR REPLACE VIEW {view} AS SELECT {columns} FROM {table} AS r"
            f" JOIN {source} AS t USING ({', '.join(_JOINED_BY[table])})"
        )
        connection.execute(f"COMMENT ON VIEW {view} IS {quoted(comment)}")
        comments = {name: text for name, _, text in TABLES[table].columns} | added
        for name, text in comments.items():
            connection.execute(f"COMMENT ON COLUMN {view}.{name} IS {quoted(text)}")
