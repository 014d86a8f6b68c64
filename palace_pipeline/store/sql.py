"""Read-only SQL over a palace home: the tables, the views, and the clean lake's Parquet files, nothing else."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from palace_pipeline.store.duckfile import attached, quoted

if TYPE_CHECKING:
    import duckdb

_READING_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_READING_FUNCTIONS = re.compile(
    r"range|generate_series|unnest|repeat|repeat_row|summary|histogram|histogram_values|json_each|json_tree"
    r"|read_parquet|parquet_(scan|schema|metadata|file_metadata)|glob|duckdb_\w+|pragma_\w+|pg_timezone_names"
)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b(\s+(?P<analyze>ANALYZE)\b)?", re.IGNORECASE)
_LARGEST_JSON_INTEGER = 2**63


class QueryError(ValueError):
    """The statement is not allowed, or DuckDB refuses it; the text says why."""


def query(
    home: Path, sql: str, params: Sequence[object] | Mapping[str, object] = ()
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of one reading statement (SELECT, FROM, WITH, VALUES, SHOW, DESCRIBE, SUMMARIZE, EXPLAIN).

    `params` for `?`, `$1` or `$name`. Times come as aware datetimes in UTC. Nothing can be written, no file but those
    of `lake/clean` be read, no setting be changed. Raises NotBuiltError, QueryError.
    """
    import duckdb

    try:
        sql.encode()
    except UnicodeEncodeError as error:  # bytes of the command line that are no UTF-8
        raise QueryError("the statement is no valid Unicode text") from error
    try:
        with attached(home) as connection:
            _lock(connection, home)
            connection.execute(_checked(connection, sql), params or None)
            columns = [str(item[0]) for item in connection.description or []]
            return columns, connection.fetchall()
    except duckdb.Error as error:
        raise QueryError(str(error)) from error


def _lock(connection: duckdb.DuckDBPyConnection, home: Path) -> None:
    clean = str(home.absolute() / "lake" / "clean")
    # The views name their files by a pattern in which special characters of the path are escaped.
    escaped = re.sub(r"([\[*?])", r"[\1]", clean)
    folders = ", ".join(quoted(folder) for folder in {clean, escaped})
    connection.execute(f"SET allowed_directories = [{folders}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _checked(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The statement to execute, which has been seen to consist of known reading parts only.

    DuckDB's read-only mode protects its own file only: COPY, even inside a WITH, and some table functions write others.
    """
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError("write exactly one statement")
    if statements[0].type == duckdb.StatementType.EXPLAIN:
        explain = _EXPLAIN.match(sql)
        if explain is None:
            raise QueryError("write EXPLAIN or EXPLAIN ANALYZE, without options, at the start of the statement")
        return f"EXPLAIN {explain['analyze'] or ''} {_checked(connection, sql[explain.end() :])}"
    if statements[0].type != duckdb.StatementType.SELECT:
        raise QueryError(
            "only reading is allowed: SELECT, FROM, WITH, VALUES, SHOW, DESCRIBE, SUMMARIZE, EXPLAIN"
            " (and PIVOT, with its values named: ON column IN (...))"
        )
    tree = orjson.loads(connection.execute("SELECT json_serialize_sql($1)", [sql]).fetchall()[0][0])
    if tree.get("error"):
        raise QueryError(str(tree.get("error_message")))
    for node in _nodes(tree):
        kind = str(node.get("type"))
        if kind.endswith("_NODE") and kind not in _READING_NODES:
            raise QueryError("only reading is allowed, also inside WITH")
        if kind == "TABLE_FUNCTION":
            name = str((node.get("function") or {}).get("function_name")).lower()
            if _READING_FUNCTIONS.fullmatch(name) is None:
                raise QueryError(f"the table function {name} is not allowed here")
    return sql


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def to_json_rows(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[dict[str, Any]]:
    """Rows as objects, keys in select order; a name that comes again gets `_1`, `_2`.

    Instants become ISO text in UTC with `Z`, times without a zone and dates ISO text, decimals and finite numbers
    numbers (an integer beyond 64 bits text), NaN and infinity null, bytes base64, durations seconds.
    """
    names: list[str] = []
    for column in columns:
        name, number = column, 0
        while name in names:
            number += 1
            name = f"{column}_{number}"
        names.append(name)
    return [{name: _json_value(value) for name, value in zip(names, row, strict=True)} for row in rows]


def _json_value(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -_LARGEST_JSON_INTEGER <= value < _LARGEST_JSON_INTEGER else str(value)
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return _json_value(int(value) if value == value.to_integral_value() else float(value))
        case datetime():
            return value.isoformat() if value.tzinfo is None else _utc_text(value)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case dict():
            return {str(key): _json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_json_value(item) for item in value]
        case _:  # UUID and what DuckDB may add
            return str(value)


def _utc_text(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
