"""What search reads of the lake: where every chunk lies, its vector, and the messages of the chunks that are near.

Month files are replaced whole while a run writes, and one table may be a step ahead of another: rows that have no
partner yet are left out, and a month that cannot be read is named, not fatal. Nothing here takes a lock or writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palace_pipeline.model import CHUNKS, DRAWERS, VECTORS, VISIBLE_ROLES
from palace_pipeline.search.rows import RowReader
from palace_pipeline.store.lake import Key, Lake, LakeDamaged
from palace_pipeline.transcripts.page_labels import called

_KEY = ["provider", "conversation_id"]
_PLACE = ["drawer_id", "day", *_KEY, "kind", "first_seq", "last_seq"]
_TABLES = ("clean/chunks", "clean/drawers", "clean/vectors")
_MESSAGE = [
    *("day", *_KEY, "seq", "role", "kind", "branch_active", "hidden_reason"),
    *("speaker", "text", "created_at", "local_time"),
]

_NO_VECTORS = np.zeros((0, VECTORS["vector"].size), np.float32)
_AT_ONCE = 2
"""Months that are read at the same time; each may take some ten MB beside what is kept of it."""
Signature = tuple[tuple[tuple[str, int, int], ...], ...]


@dataclass(frozen=True, eq=False)
class Corpus:
    """All chunks at one moment.

    `chunks`: drawer_id, day, provider, conversation_id, kind, first_seq, last_seq, and wing and room (null for what is
    no drawer). `vectors` float32 [m, dimension] with `vector_row` [m], the places in `chunks`, and `vector_model` [m],
    the keys of the models. `unread`: what could not be read, in words.
    """

    chunks: pl.DataFrame
    vectors: NDArray[np.float32]
    vector_row: NDArray[np.int64]
    vector_model: NDArray[np.object_]
    unread: tuple[str, ...] = ()

    @cached_property
    def place_of(self) -> dict[str, int]:
        """Drawer id -> place in `chunks`."""
        return {drawer_id: place for place, drawer_id in enumerate(self.chunks["drawer_id"].to_list())}


@dataclass(slots=True, frozen=True, eq=False)
class _Month:
    """`row` [m]: the place in `chunks` of each vector; `model` [m]: the key of its model."""

    signature: Signature
    chunks: pl.DataFrame
    vectors: NDArray[np.float32]
    row: NDArray[np.int64]
    model: NDArray[np.object_]


@dataclass(slots=True, frozen=True, eq=False)
class Spans:
    """`first` and `last` [n]: microseconds since 1970 (UTC) between which the messages of each chunk were said. What is known
    to the day only reaches over that day in every zone; a chunk without any date has none (`last` before `first`)."""

    signature: Signature
    chunks: pl.DataFrame
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    unread: tuple[str, ...] = ()


_NEVER = (1 << 62, -(1 << 62))
_EAST, _WEST = timedelta(hours=14), timedelta(hours=36)
"""How far a day of some zone may begin before, and end after, the midnight with which it begins in UTC."""


def _spans_of(lake: Lake, name: str, chunks: pl.DataFrame, signature: Signature) -> Spans:
    first, last = (np.full(chunks.height, value, np.int64) for value in _NEVER)
    try:
        rows = lake.read("clean/messages", [name], columns=[*_KEY, "seq", "day", "created_at", "local_time"])
        heads = lake.read("clean/conversations", [name], columns=[*_KEY, "dated"])
    except LakeDamaged as error:
        return Spans(signature, chunks, first, last, (str(error),))
    rows = rows.join(heads, on=_KEY, how="left", maintain_order="left")
    written = pl.col("local_time").str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    day = written.fill_null(pl.when(pl.col("dated")).then(pl.col("day"))).cast(pl.Datetime("us"))
    instant = pl.col("created_at").dt.replace_time_zone(None)
    said = rows.select(
        *_KEY, "seq", instant.fill_null(day - _EAST).alias("first"), instant.fill_null(day + _WEST).alias("last")
    )
    placed = chunks.select(*_KEY, "first_seq", "last_seq").with_row_index("row")
    inside = placed.join(said, on=_KEY).filter(pl.col("seq").is_between("first_seq", "last_seq"))
    known = inside.group_by("row").agg(pl.col("first").min(), pl.col("last").max()).drop_nulls()
    first[known["row"].to_numpy()] = known["first"].to_physical().to_numpy()
    last[known["row"].to_numpy()] = known["last"].to_physical().to_numpy()
    return Spans(signature, chunks, first, last)


def _microseconds(instant: datetime) -> int:
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@dataclass(slots=True)
class CorpusReader:
    """Reads the corpus, and only what has changed when asked again."""

    lake: Lake
    _months: dict[str, _Month] = field(default_factory=dict[str, _Month])
    _corpus: Corpus | None = None
    _spans: dict[str, Spans] = field(default_factory=dict[str, "Spans"])

    def spans(self) -> Spans:
        """When the messages of each chunk were said, by place in the corpus that was read last."""
        now = [_files_now(self.lake, table) for table in ("clean/messages", "clean/conversations")]
        found: dict[str, Spans] = {}
        for name, month in self._months.items():
            signature = tuple(files.get(name, ()) for files in now)
            known = self._spans.get(name)
            if known is None or known.signature != signature or known.chunks is not month.chunks:
                known = _spans_of(self.lake, name, month.chunks, signature)
            found[name] = known
        self._spans = found
        parts = list(found.values())
        unread = tuple(trouble for part in parts for trouble in part.unread)
        none = np.zeros(0, np.int64)
        first = np.concatenate([none, *(part.first for part in parts)])
        last = np.concatenate([none, *(part.last for part in parts)])
        return Spans((), pl.DataFrame(), first, last, unread)

    def read(self) -> Corpus:
        """The chunks as the month files now have them; the same object while no file has changed."""
        unread: list[str] = []
        found: dict[str, _Month] = {}
        now = [_files_now(self.lake, table) for table in _TABLES]
        signatures = {month: tuple(files.get(month, ()) for files in now) for month in sorted(now[0])}
        known = {month: self._months.get(month) for month in signatures}
        changed = [month for month, had in known.items() if had is None or had.signature != signatures[month]]
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # a file's vectors are decoded by one thread each
            read = dict(
                zip(changed, pool.map(lambda month: self._month_or_why(month, signatures[month]), changed), strict=True)
            )
        for month, had in known.items():
            part = read.get(month, had)
            if isinstance(part, str):
                unread.append(part)
            elif part is not None:
                found[month] = part
        if self._corpus is None or unread or found != self._months:
            self._months, self._corpus = {}, None  # nobody needs them any more, and they are large
            self._corpus = _joined(found, tuple(unread))
            self._months = found
        return self._corpus

    def _month_or_why(self, month: str, signature: Signature) -> _Month | str:
        """A month, or why it cannot be read."""
        try:
            return self._month(month, signature)
        except LakeDamaged as error:
            return str(error)

    def _month(self, month: str, signature: Signature) -> _Month:
        chunks = self.lake.read("clean/chunks", [month], columns=_PLACE)
        drawers = self.lake.read("clean/drawers", [month], columns=["drawer_id", "wing", "room"])
        vectors = self.lake.read("clean/vectors", [month], columns=["drawer_id", "model", "vector"])
        placed = chunks.join(drawers, on="drawer_id", how="left", maintain_order="left")
        rows = placed.select("drawer_id").with_row_index("row")
        vectors = vectors.join(rows, on="drawer_id", how="inner", maintain_order="left")
        return _Month(
            signature,
            placed,
            vectors["vector"].to_numpy() if vectors.height else _NO_VECTORS,
            vectors["row"].to_numpy().astype(np.int64),
            vectors["model"].to_numpy().astype(object),
        )


def _files_now(lake: Lake, table: str) -> dict[str, tuple[tuple[str, int, int], ...]]:
    """The files of each month of a table as they are now. One look at the folder: it is taken before each question."""
    found: dict[str, list[tuple[str, int, int]]] = {}
    with suppress(FileNotFoundError), os.scandir(lake.folder / table) as entries:
        for entry in entries:
            if entry.name.endswith(".parquet") and not entry.name.startswith("."):
                with suppress(FileNotFoundError):
                    status = entry.stat()
                    month = entry.name.split(".", 1)[0]
                    found.setdefault(month, []).append((entry.name, status.st_mtime_ns, status.st_ino))
    return {month: tuple(sorted(files)) for month, files in found.items()}


def _joined(months: dict[str, _Month], unread: tuple[str, ...]) -> Corpus:
    """The months as one. Their vectors lie in one array afterwards, and the months hold parts of it: a large archive's are
    hundreds of megabytes, which must not lie in memory twice."""
    if not months:
        schema = {name: CHUNKS[name] for name in _PLACE} | {name: DRAWERS[name] for name in ("wing", "room")}
        none = np.zeros(0, np.int64)
        return Corpus(pl.DataFrame(schema=schema), _NO_VECTORS, none, none.astype(object), unread)
    vectors = np.empty((sum(len(month.vectors) for month in months.values()), _NO_VECTORS.shape[1]), np.float32)
    rows: list[NDArray[np.int64]] = []
    chunks, at = 0, 0
    for name, month in months.items():
        end = at + len(month.vectors)
        vectors[at:end] = month.vectors
        rows.append(month.row + chunks)
        months[name] = replace(month, vectors=vectors[at:end])
        chunks, at = chunks + month.chunks.height, end
    return Corpus(
        pl.concat([month.chunks for month in months.values()], rechunk=True),
        vectors,
        np.concatenate(rows),
        np.concatenate([month.model for month in months.values()]),
        unread,
    )


def messages_of(rows: RowReader, keys: Iterable[tuple[date, Key]]) -> dict[Key, pl.DataFrame]:
    """The `counted` message rows of some conversations (day and key of each), by `seq`; what is gone is left out."""
    return rows.by_conversation("clean/messages", keys, _MESSAGE, counted)


def counted(messages: pl.DataFrame) -> pl.DataFrame:
    """Message rows with `visible` and `message_index` (the count of visible messages before, in the conversation)."""
    visible = pl.col("role").is_in(VISIBLE_ROLES) & pl.col("branch_active") & pl.col("hidden_reason").is_null()
    index = pl.col("visible").cast(pl.Int64).cum_sum().over(_KEY) - 1
    return messages.with_columns(visible=visible).with_columns(message_index=index)


def between(messages: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
    """The messages of a conversation (sorted by `seq`) from one to another, both included."""
    seq = messages["seq"].to_numpy()  # numpy: a search in a Series is a query of its own, a hundred times slower
    start = int(seq.searchsorted(first, "left"))
    return messages.slice(start, int(seq.searchsorted(last, "right")) - start)


class Head(NamedTuple):
    """Of a conversation: its source's title ('' if it has none), whether it has a date, and what people call it."""

    title: str = ""
    dated: bool = False
    name: str = "Untitled"


def heads_of(rows: RowReader, keys: Sequence[tuple[date, Key]]) -> dict[Key, Head]:
    """The heads of some conversations (day and key of each)."""
    found = rows.of("clean/conversations", keys, [*_KEY, "title", "dated"])
    heads = {(provider, name): (title or "", bool(dated)) for provider, name, title, dated in found.iter_rows()}
    untitled = [(day, key) for day, key in keys if key in heads and not heads[key][0].strip()]
    asked = {key: _asked_first(of) for key, of in messages_of(rows, untitled).items()} if untitled else {}
    return {key: Head(title, dated, called(title, asked.get(key, ""))) for key, (title, dated) in heads.items()}


def _asked_first(messages: pl.DataFrame) -> str:
    said = messages.filter(pl.col("visible") & (pl.col("role") == "user") & (pl.col("text").str.strip_chars() != ""))
    return said.sort("seq")["text"][0] if said.height else ""


def texts_of(rows: RowReader, chunks: pl.DataFrame) -> dict[str, str]:
    """The texts of some rows of `Corpus.chunks`, by drawer id."""
    keys = [(day, (provider, name)) for day, provider, name in chunks.select("day", *_KEY).unique().iter_rows()]
    found = rows.of("clean/chunks", keys, ["drawer_id", "text"])
    wanted = set(chunks["drawer_id"].to_list())
    return {drawer_id: text for drawer_id, text in found.iter_rows() if drawer_id in wanted}


def moved(day: date, by: int) -> date:
    """The day `by` days later (or earlier), or the last (or first) day there is."""
    return date.fromordinal(min(max(day.toordinal() + by, 1), date.max.toordinal()))


@dataclass(slots=True, frozen=True)
class Days:
    """The days from `since` to `until` (inclusive, either may be open) as a person in `zone` counts them."""

    since: date | None
    until: date | None
    zone: tzinfo

    @property
    def limited(self) -> bool:
        return self.since is not None or self.until is not None

    def holds(self, day: date | None) -> bool:
        """Whether a message of that day is looked for; one without a day is, unless days are asked for."""
        if day is None:
            return not self.limited
        return (self.since is None or day >= self.since) and (self.until is None or day <= self.until)

    def day_of(self, created_at: datetime | None, local_time: str | None, day: date, dated: bool) -> date | None:
        """The day of a message: of its instant in the zone, else of its naive time, else its conversation's."""
        if created_at is not None:
            return created_at.astimezone(self.zone).date()
        if local_time is not None:
            return date.fromisoformat(local_time[:10])
        return day if dated else None

    def between(self, spans: Spans) -> NDArray[np.bool_]:
        """Which chunks may hold a message of these days; whether it does is asked of its messages."""
        mask = np.ones(len(spans.first), np.bool_)
        if self.since is not None:
            mask &= spans.last >= _microseconds(self._midnight(self.since))
        if self.until is not None:
            mask &= spans.first < _microseconds(self._midnight(moved(self.until, 1)))
        return mask

    def inside(self) -> pl.Expr:
        """For rows of messages with `dated` of their conversations: `day_of` between `since` and `until`. Instants are compared, so
        that no zone's name is needed (the system's may have none)."""
        written = pl.col("local_time").str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
        day = written.fill_null(pl.when(pl.col("dated")).then(pl.col("day")))
        instant = pl.col("created_at")
        known, naive = instant.is_not_null(), day.is_not_null()
        if self.since is not None:
            known &= instant >= pl.lit(self._midnight(self.since))
            naive &= day >= self.since
        if self.until is not None:
            known &= instant < pl.lit(self._midnight(moved(self.until, 1)))
            naive &= day <= self.until
        return pl.when(instant.is_not_null()).then(known).otherwise(naive)

    def _midnight(self, day: date) -> datetime:
        try:
            return datetime.combine(day, time(), self.zone).astimezone(UTC)
        except OverflowError:  # the first or last day there is, in a zone far from UTC
            return datetime.combine(day, time(), UTC)
