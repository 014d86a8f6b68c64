"""A look at some days of an archive: rows of the lake, what the ledger and the tables say, what Chroma holds. Reads only.

The days are looked at in parts of bounded size, a part whole days: what belongs to a conversation lies on one day.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, timedelta
from sqlite3 import Row
from typing import TYPE_CHECKING, Any

import polars as pl

from palace_pipeline.model import KEY_SCHEMA, LAKE
from palace_pipeline.planner import EXPECTED, STAGES, Range
from palace_pipeline.stages.common import BATCH_MESSAGES
from palace_pipeline.store.home import Home

if TYPE_CHECKING:
    import duckdb

    from palace_pipeline.store.vectors import VectorReader

Key = tuple[str, str]
PLACE = ["day", *KEY_SCHEMA]
_HEADS: dict[str, Any] = {
    **KEY_SCHEMA,
    "day": pl.Date,
    "messages": pl.Int64,
    "status": pl.String,
    "page": pl.String,
    "gone": pl.Boolean,
    **dict.fromkeys(STAGES, pl.Boolean),
}
_WAITS = ", ".join(
    f"({stage}_in IS NULL OR substr({stage}_in, 1, length({made_from})) IS NOT ({made_from})) AS {stage}_waits"
    for stage, made_from in ((stage, EXPECTED[stage].rpartition(" || :")[0]) for stage in STAGES)
)
"""1 where a stage was not built from what is there now. Recipes do not count: what older rules made is of one piece too."""
_STANDING = (
    f"SELECT provider, conversation_id, day, messages, superseded_by, status, page, {_WAITS} FROM conversations "
    "WHERE day BETWEEN :first AND :last ORDER BY day, provider, conversation_id"
)
_LARGE = {"clean/vectors": ("vector",)}
"""Columns that no check needs of every row."""


class Look:
    """Some days of a home, opened for reading. Use as a context manager.

    Chroma may be opened by one process at a time: whoever asks for `chroma` holds the home's write lock.
    """

    def __init__(self, home: Home, span: Range, *, everything: bool = False) -> None:
        self.home, self.span, self.everything = home, span, everything
        self._open = ExitStack()
        self._warehouse: duckdb.DuckDBPyConnection | None = None
        self._chroma: VectorReader | None = None

    def __enter__(self) -> Look:
        self.ledger = self._open.enter_context(self.home.ledger())
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()

    def parts(self) -> Iterator[Part]:
        """The days in parts of some 20,000 messages, without gaps: what lies on a day nobody knows of is seen too."""
        rows = self.ledger.rows(
            "SELECT day, sum(messages) AS messages FROM conversations WHERE day BETWEEN ? AND ? GROUP BY day ORDER BY day",
            (self.span.first.isoformat(), self.span.last.isoformat()),
        )
        first, size = self.span.first, 0
        for row in rows:
            day = date.fromisoformat(row["day"])
            if size and size + row["messages"] > BATCH_MESSAGES:
                yield Part(self, Range(first, day - timedelta(days=1)))
                first, size = day, 0
            size += row["messages"]
        yield Part(self, Range(first, self.span.last))

    @property
    def warehouse(self) -> duckdb.DuckDBPyConnection | None:
        """The published tables, or None if there are none yet. Raises duckdb.Error if the file cannot be read."""
        if self._warehouse is None and self.home.warehouse.exists():
            from palace_pipeline.store.duckfile import attached

            self._warehouse = self._open.enter_context(attached(self.home.path))
        return self._warehouse

    @property
    def chroma(self) -> VectorReader | None:
        """The collection, or None if there is none yet."""
        if self._chroma is None:
            from palace_pipeline.store.vectors import reading

            self._chroma = self._open.enter_context(reading(self.home.chroma))
        return self._chroma


class Part:
    """Whole days of a look, few enough to be in memory together. Nothing is read before somebody asks, and each once."""

    def __init__(self, look: Look, span: Range) -> None:
        self.look, self.span = look, span
        self._rows: dict[tuple[str, tuple[str, ...]], pl.DataFrame] = {}
        self._heads: pl.DataFrame | None = None

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Rows of a table of the lake on these days. Raises LakeDamaged."""
        wanted = tuple(columns or (name for name in LAKE[table] if name not in _LARGE.get(table, ())))
        if (table, wanted) not in self._rows:
            self._rows[table, wanted] = self.look.home.lake.of_days(
                table, self.span.first, self.span.last, columns=wanted
            )
        return self._rows[table, wanted]

    @property
    def heads(self) -> pl.DataFrame:
        """What the ledger says of the days' conversations; a column for each stage: True if the conversation waits for it
        or for one before. `gone`: it is to have no rows."""
        if self._heads is None:
            rows = self.ledger(_STANDING)
            self._heads = pl.DataFrame(list(map(_head, rows)), schema=_HEADS, orient="row")
        return self._heads

    def settled(self, stage: str) -> pl.DataFrame:
        """Heads of conversations that are built up to a stage."""
        return self.heads.filter(~pl.col(stage))

    def ledger(self, sql: str) -> list[Row]:
        """Rows of a statement with the days as `:first` and `:last`."""
        span = {"first": self.span.first.isoformat(), "last": self.span.last.isoformat()}
        return self.look.ledger.rows(sql, span)  # pyright: ignore[reportArgumentType] - named parameters

    def ledger_frame(self, sql: str, schema: Mapping[str, pl.DataType | type[pl.DataType]]) -> pl.DataFrame:
        """The same as a frame; the schema names the statement's columns in their order."""
        return pl.DataFrame([tuple(row) for row in self.ledger(sql)], schema=schema, orient="row")

    def keys(self, frame: pl.DataFrame) -> Generator[tuple[Key, date]]:
        """Conversation and day of each row of a frame."""
        for provider, conversation_id, day in frame.select(*KEY_SCHEMA, "day").iter_rows():
            yield (provider, conversation_id), day


def _head(row: Row) -> tuple[Any, ...]:
    waits = False
    stages: list[bool] = []
    for stage in STAGES:
        waits = waits or bool(row[f"{stage}_waits"])
        stages.append(waits)
    gone = row["superseded_by"] is not None or row["status"] == "purged"
    day = date.fromisoformat(row["day"])
    return (row["provider"], row["conversation_id"], day, row["messages"], row["status"], row["page"], gone, *stages)
