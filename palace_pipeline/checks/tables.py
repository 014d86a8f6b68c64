"""The schema of every table, from one factory over `model.py`: columns, types, what may be null, what is unique, and the
values and bounds that there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, get_args

import polars as pl

from palace_pipeline.checks.look import Look, Part
from palace_pipeline.checks.result import Check, Found, Problem, backfill
from palace_pipeline.model import KEY_SCHEMA, LAKE, ROLES, Kind, Origin
from palace_pipeline.planner import Range

if TYPE_CHECKING:
    import duckdb

_KEY = tuple(KEY_SCHEMA)
_STATUS = ("ok", "partial", "withheld", "purged")
_CHUNK_KINDS = ("exchange", "people", "document", "tool", "thinking")


@dataclass(frozen=True, slots=True)
class Rule:
    """What rows of a table must be. `unique`: sets of columns that no two rows share; `bounds`: least and greatest."""

    columns: Mapping[str, Any]
    required: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])


_MESSAGE_VALUES = {"role": tuple(ROLES), "kind": get_args(Kind)}
_MESSAGE_COLUMNS = ("message_id", "seq", "branch_active", "role", "kind", "text", "citations", "attachment")
_PLACES = {"seq": (0, float("inf"))}
_CONVERSATIONS = (("dated", "origin", "status"), (_KEY,), {"origin": get_args(Origin), "status": _STATUS}, {})
_PIECES = ("drawer_id", "chunk_index", "kind", "first_seq", "last_seq", "tokens")
_COUNTED = {name: (0, float("inf")) for name in ("chunk_index", "first_seq", "last_seq", "tokens")}
_BY_TABLE: dict[str, tuple[Any, Any, Any, Any]] = {
    # That no id stands there twice is told by `messages.DOUBLED`, with all else that can be doubled.
    "raw/messages": (_MESSAGE_COLUMNS, ((*_KEY, "seq"),), _MESSAGE_VALUES, _PLACES),
    "raw/conversations": _CONVERSATIONS,
    "clean/messages": (_MESSAGE_COLUMNS, ((*_KEY, "message_id"), (*_KEY, "seq")), _MESSAGE_VALUES, _PLACES),
    "clean/conversations": _CONVERSATIONS,
    "clean/findings": (("field", "kind", "rule", "layer", "fingerprint"), (), {}, {"length": (0, 1e12)}),
    "clean/chunks": (
        (*_PIECES, "text", "context", "text_hash"),
        (("drawer_id",), (*_KEY, "chunk_index")),
        {"kind": _CHUNK_KINDS},
        _COUNTED,
    ),
    "clean/drawers": (
        (*_PIECES, "wing", "hall", "room", "confidence"),
        (("drawer_id",), (*_KEY, "chunk_index")),
        {"kind": _CHUNK_KINDS[:3]},
        {**_COUNTED, "confidence": (0, 1)},
    ),
    "clean/vectors": (("drawer_id", "text_hash", "model"), (("drawer_id",),), {}, {}),
}


def rule_of(table: str) -> Rule:
    """The rule of a table of the lake. Every column of `required` and `unique` is one of its schema."""
    required, unique, values, bounds = _BY_TABLE[table]
    return Rule(LAKE[table], ("day", *_KEY, *required), unique, values, bounds)


RULES = {table: rule_of(table) for table in LAKE}


# --- the lake ---------------------------------------------------------------------------------------------------------


def columns_wrong(columns: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """How the columns of a file differ from the schema, in words; the order does not matter."""
    wrong = [f"column {name} is missing" for name in columns if name not in found]
    wrong += [f"column {name} is not in the schema" for name in found if name not in columns]
    wrong += [
        f"column {name} holds {found[name]} instead of {_type(kind)}"
        for name, kind in columns.items()
        if name in found and found[name] != kind
    ]
    return wrong


def _type(kind: Any) -> str:
    return str(kind() if isinstance(kind, type) else kind)


def rows_wrong(table: str, rule: Rule, rows: pl.DataFrame) -> Iterator[Problem]:
    """Rows with a null where none may be, with an unknown value, out of bounds, or twice where they are unique."""
    for name in rule.required:
        yield from _each(table, rows.filter(pl.col(name).is_null()), f"{name} is empty")
    for name, values in rule.values.items():
        yield from _each(table, rows.filter(~pl.col(name).is_in(values)), f"{name} is none of {', '.join(values)}")
    for name, (least, greatest) in rule.bounds.items():
        outside = rows.filter(~pl.col(name).is_between(least, greatest))
        yield from _each(table, outside, f"{name} is out of bounds")
    if "first_seq" in rows.columns:
        yield from _each(table, rows.filter(pl.col("first_seq") > pl.col("last_seq")), "it ends before it begins")
    for unique in rule.unique:
        again = rows.filter(~pl.struct(unique).is_first_distinct())
        own = [name for name in unique if name not in _KEY]
        yield from _each(table, again, f"two rows have the same {' and '.join(own) or 'key'}")


def _each(table: str, rows: pl.DataFrame, what: str) -> Iterator[Problem]:
    """A problem for each conversation of these rows."""
    if rows.is_empty():
        return
    for day, provider, conversation_id, count in rows.group_by("day", *_KEY, maintain_order=True).len().iter_rows():
        times = f" ({count:,} rows)" if count > 1 else ""
        key = (provider or "?", conversation_id or "?")
        yield Problem(what + times, table, day, key)


def schema_check(asset: str, stage: str, tables: Iterable[str]) -> Check:
    """The check of some tables of the lake: one of these for every asset that leaves tables there."""
    tables = tuple(tables)

    def look_at(part: Part, found: Found) -> None:
        lake = part.look.home.lake
        for table in tables:
            bad = False
            months = lake.months_of(table, part.span.first, part.span.last)
            for month, path in [(name, path) for name in months for path in lake.files(table, name)]:
                try:
                    wrong = columns_wrong(LAKE[table], pl.read_parquet_schema(path))
                except (pl.exceptions.PolarsError, OSError) as error:
                    wrong = [f"the file cannot be read ({type(error).__name__})"]
                found.note(Problem(what, f"lake/{table}/{path.name}", mend=_anew(month)) for what in wrong)
                bad = bad or bool(wrong)
                found.counts["files"] += 1
            if not bad:
                rows = part.rows(table)
                found.counts[f"rows of {table}"] += rows.height
                found.note(rows_wrong(f"lake/{table}", RULES[table], rows))

    return Check(
        name="schema_holds",
        asset=asset,
        stage=stage,
        blocking=True,
        description=f"{' and '.join(tables)}: columns, types, nothing empty that must not be, keys unique, known values.",
        look_at=look_at,
    )


def _anew(month: str) -> str:
    """Every day of the month again."""
    year, number = map(int, month.split("-"))
    last = date(year + number // 12, number % 12 + 1, 1) - timedelta(days=1)
    return backfill(Range(date.fromisoformat(f"{month}-01"), last))


# --- DuckDB -----------------------------------------------------------------------------------------------------------

_DUCKDB_KEYS: dict[str, tuple[str, ...]] = {
    "conversations": _KEY,
    "messages": (*_KEY, "seq"),
    "drawers": ("drawer_id",),
}
_WHOLE_KEYS: dict[str, tuple[str, ...]] = {"exports": ("path",), "meta": ("key",)}
"""Of tables without days: looked at only when everything is."""
ANEW = "palace rebuild"


def published_check(asset: str, stage: str) -> Check:
    """The same for the tables of `palace.duckdb`."""

    def look_at(part: Part, found: Found) -> None:
        def note(connection: duckdb.DuckDBPyConnection) -> None:
            for table, unique in _DUCKDB_KEYS.items():
                rows = connection.execute(
                    f"SELECT day, provider, conversation_id, count(*) FROM {table} WHERE day BETWEEN $1 AND $2 "
                    f"GROUP BY {', '.join(unique)}, day, provider, conversation_id HAVING count(*) > 1 "
                    "ORDER BY ALL LIMIT 1000",
                    [part.span.first, part.span.last],
                ).fetchall()
                found.note(
                    Problem(
                        f"{count:,} rows of the same key", f"palace.duckdb {table}", day, (provider, conversation_id)
                    )
                    for day, provider, conversation_id, count in rows
                )

        _with_tables(part.look, found, note)

    def finish(look: Look, found: Found) -> None:
        from palace_pipeline.store.warehouse_schema import TABLES

        def note(connection: duckdb.DuckDBPyConnection) -> None:
            rows = connection.execute(
                "SELECT table_name, column_name, data_type FROM duckdb_columns() "
                "WHERE database_name = 'palace' AND schema_name = 'main' AND NOT internal"
            ).fetchall()
            there: dict[str, dict[str, str]] = {}
            for table, column, kind in rows:
                there.setdefault(table, {})[column] = kind
            for table, wanted in TABLES.items():
                columns = {name: _SQL_NAMES.get(kind, kind) for name, kind, _ in wanted.columns}
                wrong = columns_wrong(columns, there.get(table, {})) if table in there else ["the table is missing"]
                found.note(Problem(what, f"palace.duckdb {table}", mend=ANEW) for what in wrong)
                found.counts["tables"] += 1
            for table, unique in _WHOLE_KEYS.items() if look.everything else ():
                twice = connection.execute(
                    f"SELECT count(*) FROM (SELECT 1 FROM {table} GROUP BY {', '.join(unique)} HAVING count(*) > 1)"
                ).fetchall()[0][0]
                if twice:
                    found.note([Problem(f"{twice:,} keys stand twice", f"palace.duckdb {table}", mend=ANEW)])

        _with_tables(look, found, note)

    return Check(
        name="schema_holds",
        asset=asset,
        stage=stage,
        description="palace.duckdb: every table with its columns and types, keys unique. (Too late for a gate: it is published.)",
        look_at=look_at,
        finish=finish,
    )


_SQL_NAMES = {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}


def _with_tables(look: Look, found: Found, note: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
    """Call `note` with the published tables; a file that cannot be read, or has other tables, is said once."""
    import duckdb

    try:
        connection = look.warehouse
        if connection is not None:
            note(connection)
    except duckdb.Error as error:
        if not any(problem.mend == ANEW for problem in found.problems):
            found.note(
                [Problem(f"cannot be read as it should be ({type(error).__name__})", "palace.duckdb", mend=ANEW)]
            )
