"""Both sides of some days as values: what the ledger says of their conversations, and what lies in each store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from functools import cached_property
from sqlite3 import Row
from typing import TYPE_CHECKING, Any

import polars as pl

from palace_pipeline.gaps.compare import Expected, Gap, Held, Key, missing
from palace_pipeline.model import Conversation, short_hash
from palace_pipeline.planner import EXPECTED, STAGES, Range, Recipes, split_by_month, why_stale
from palace_pipeline.stages.chunk import chunks_identity
from palace_pipeline.stages.common import batches, gone, key_of
from palace_pipeline.stages.drawers import drawer_identity
from palace_pipeline.stages.normalize import raw_identity
from palace_pipeline.stages.redact import clean_identity
from palace_pipeline.store.duckfile import NotBuiltError, attached
from palace_pipeline.store.home import Home
from palace_pipeline.store.lake import LakeDamaged
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.lexical import LexicalReader, StaleIndexError, open_reader
from palace_pipeline.store.vectors import VectorReader, reading
from palace_pipeline.transcripts.rows import conversations_of

if TYPE_CHECKING:
    import duckdb

Archive = dict[str, dict[Key, Held]]
Damaged = tuple[str, str]
"""A month file of the lake that cannot be read: (table, month)."""

_AT_ONCE = 10_000
"""Conversations that are looked at together, in whole months; a month may have more."""
_IN_AND_WANTED = ", ".join(f"{stage}_in, ({EXPECTED[stage]}) AS {stage}_wanted" for stage in STAGES)
_COLUMNS = (
    "provider, conversation_id, day, dated, messages, superseded_by, status, built_day, page, normalized_out, "
    f"redacted_out, chunks_out, drawers_out, {_IN_AND_WANTED}"
)


@dataclass(slots=True)
class Days:
    """What a look at some days found. `conversations`: how many were compared; `withheld`: how many of them are, whole
    or in part."""

    gaps: list[Gap] = field(default_factory=list[Gap])
    damaged: list[Damaged] = field(default_factory=list[Damaged])
    conversations: int = 0
    withheld: int = 0


def look_at_days(home: Home, ledger: Ledger, span: Range, recipes: Recipes, *, indexes: bool = True) -> Days:
    """Compare the conversations of some days with every store of the archive, month by month in bounded batches.

    `indexes`: also look into Chroma and the lexical index; while another process writes they are best left alone.
    """
    out = Days()
    held = {(place["provider"], place["conversation_id"]) for place in ledger.withheld()}
    with _Stores(home, indexes=indexes) as stores:
        for part_of_span in _together(ledger, span):
            rows = ledger.rows(
                f"SELECT {_COLUMNS} FROM conversations WHERE day BETWEEN :first AND :last "
                "ORDER BY day, provider, conversation_id",
                {**asdict(recipes), **_iso(part_of_span)},  # pyright: ignore[reportArgumentType] - named parameters
            )
            out.conversations += sum(not gone(row) for row in rows)
            out.withheld += sum(key_of(row) in held or (row["status"] == "withheld" and not gone(row)) for row in rows)
            tables, ids = stores.tables(part_of_span), stores.index_ids(part_of_span)
            for month, part in ((month, part) for month, of in split_by_month(rows) for part in batches(of)):
                archive, drawers, chunks = _lake(home, month, part, out.damaged)
                archive |= tables
                archive["page"] = {
                    key_of(row): Held(1) for row in part if row["page"] and (home.path / row["page"]).exists()
                }
                for place, wanted in (("chroma", drawers), ("lexical", chunks)):
                    if place in ids:
                        archive[place] = {key: Held(len(names & ids[place])) for key, names in wanted.items()}
                out.gaps += missing(_expected(part, archive, drawers, chunks), archive)
    out.damaged = sorted(set(out.damaged))
    return out


def _together(ledger: Ledger, span: Range) -> Iterator[Range]:
    """The days with conversations, as many whole months as are looked at together: a question to tables and indexes costs
    the more the more they hold, whatever few days it is about."""
    months = ledger.rows(
        "SELECT min(day) AS first, max(day) AS last, count(*) AS conversations FROM conversations "
        "WHERE day BETWEEN :first AND :last GROUP BY substr(day, 1, 7) ORDER BY 1",
        _iso(span),  # pyright: ignore[reportArgumentType] - named parameters
    )
    first, last, count = None, None, 0
    for month in months:
        if first is not None and last is not None and count + month["conversations"] > _AT_ONCE:
            yield Range(first, last)
            first, count = None, 0
        first = first or date.fromisoformat(month["first"])
        last, count = date.fromisoformat(month["last"]), count + month["conversations"]
    if first is not None and last is not None:
        yield Range(first, last)


def _iso(span: Range) -> dict[str, str]:
    return {"first": span.first.isoformat(), "last": span.last.isoformat()}


# --- the source -------------------------------------------------------------------------------------------------------


def _expected(
    rows: Iterable[Row], archive: Archive, drawers: Mapping[Key, set[str]], chunks: Mapping[Key, set[str]]
) -> Iterator[Expected]:
    for row in rows:
        waiting = {
            stage: why_stale(stage, row[f"{stage}_in"], row[f"{stage}_wanted"])
            for stage in STAGES
            if row[f"{stage}_in"] != row[f"{stage}_wanted"]
        }
        places = {} if gone(row) else _places(row, archive, drawers, chunks, waiting)
        yield Expected(date.fromisoformat(row["day"]), key_of(row), waiting, places)


def _places(
    row: Row,
    archive: Archive,
    drawers: Mapping[Key, set[str]],
    chunks: Mapping[Key, set[str]],
    waiting: Mapping[str, str],
) -> dict[str, Held]:
    key = key_of(row)
    withheld = row["status"] == "withheld"
    said = 0 if withheld else int(row["messages"])
    raw = archive.get("raw", {}).get(key, Held())
    last = raw.last if raw.count == row["messages"] and not withheld else None
    filed, cut = drawers.get(key, set[str]()), chunks.get(key, set[str]())
    # Nobody notes the number of findings: where the lake and the table differ, one of them has lost some.
    found = [
        archive[place].get(key, Held(0)).count or 0 for place in ("findings", "table findings") if place in archive
    ]
    findings = max(found, default=0) if "tables" not in waiting else found[0] if found else 0
    return {
        "raw": Held(int(row["messages"]), None, row["normalized_out"]),
        "clean": Held(said, last, None if withheld or row["redacted_out"] == "none" else row["redacted_out"]),
        "findings": Held(findings),
        "chunks": Held(0) if withheld else Held(None, None, row["chunks_out"]),
        "drawers": Held(0) if withheld else Held(None, None, row["drawers_out"]),
        "vectors": Held(len(filed), None, _names(filed)),
        "page": Held(1 if row["page"] and not withheld else 0),
        "chroma": Held(len(filed)),
        "lexical": Held(len(cut)),
        "table conversations": Held(1),
        "table messages": Held(said, last),
        "table drawers": Held(len(filed)),
        "table findings": Held(findings),
    }


# --- the archive ------------------------------------------------------------------------------------------------------


def _lake(
    home: Home, month: str, rows: Sequence[Row], damaged: list[Damaged]
) -> tuple[Archive, dict[Key, set[str]], dict[Key, set[str]]]:
    """What the lake holds of some conversations of a month; beside it their drawer and chunk ids."""
    keys = [key_of(row) for row in rows]

    def read(table: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        try:
            return home.lake.read(table, [month], keys=keys, columns=columns)
        except LakeDamaged:
            damaged.append((table, month))
            return home.lake.read(table, [], columns=columns)

    archive: Archive = {
        "raw": _transcripts(read("raw/conversations"), read("raw/messages"), _raw_fingerprint),
        "clean": _transcripts(read("clean/conversations"), read("clean/messages"), _clean_fingerprint),
        "findings": {
            key: Held(count) for key, count in _counts(read("clean/findings", ["provider", "conversation_id"]))
        },
    }
    cut: dict[Key, list[tuple[str, int, str]]] = {}
    for row in read(
        "clean/chunks", ["provider", "conversation_id", "drawer_id", "chunk_index", "text_hash"]
    ).iter_rows():
        cut.setdefault((row[0], row[1]), []).append(row[2:])
    filed: dict[Key, list[dict[str, Any]]] = {}
    for drawer in read("clean/drawers").iter_rows(named=True):
        filed.setdefault((drawer["provider"], drawer["conversation_id"]), []).append(drawer)
    vectors: dict[Key, set[str]] = {}
    for row in read("clean/vectors", ["provider", "conversation_id", "drawer_id"]).iter_rows():
        vectors.setdefault((row[0], row[1]), set()).add(row[2])
    archive["chunks"] = {
        key_of(row): Held(
            len(own := cut.get(key_of(row), [])), None, chunks_identity(date.fromisoformat(row["day"]), own)
        )
        for row in rows
    }
    archive["drawers"] = {
        key: Held(len(own := filed.get(key, [])), None, short_hash(*map(drawer_identity, own)) if own else "none")
        for key in keys
    }
    archive["vectors"] = {key: Held(len(names), None, _names(names)) for key, names in vectors.items()}
    return (
        archive,
        {key: {drawer["drawer_id"] for drawer in own} for key, own in filed.items()},
        {key: {drawer_id for drawer_id, _, _ in own} for key, own in cut.items()},
    )


def _transcripts(
    heads: pl.DataFrame, messages: pl.DataFrame, fingerprint: Callable[[dict[str, Any], Conversation], str]
) -> dict[Key, Held]:
    said = {key: Held(count, None, "rows without a head") for key, count in _counts(messages)}
    for head, conversation in conversations_of(heads, messages):
        times = [message.created_at for message in conversation.messages if message.created_at is not None]
        said[conversation.key] = Held(
            len(conversation.messages), max(times, default=None), fingerprint(head, conversation)
        )
    return said


def _raw_fingerprint(head: dict[str, Any], conversation: Conversation) -> str:
    return raw_identity(head["day"].isoformat(), head["dated"], head["source_sha256"] or "", conversation)


def _clean_fingerprint(head: dict[str, Any], conversation: Conversation) -> str:
    return clean_identity(head, head["status"], conversation)


def _counts(rows: pl.DataFrame) -> Iterator[tuple[Key, int]]:
    for provider, conversation_id, count in rows.group_by("provider", "conversation_id").len().iter_rows():
        yield (provider, conversation_id), count


def _names(ids: Iterable[str]) -> str:
    return short_hash(*sorted(ids))


_DAYS = "day BETWEEN $1 AND $2"
_TABLES = {
    "table conversations": f"SELECT provider, conversation_id, count(*), NULL FROM conversations WHERE {_DAYS} GROUP BY ALL",
    "table messages": "SELECT provider, conversation_id, count(*), max(created_at) FROM messages "
    f"WHERE {_DAYS} GROUP BY ALL",
    "table drawers": f"SELECT provider, conversation_id, count(*), NULL FROM drawers WHERE {_DAYS} GROUP BY ALL",
    "table findings": "SELECT provider, conversation_id, count(*), NULL FROM findings SEMI JOIN "
    f"(SELECT provider, conversation_id FROM conversations WHERE {_DAYS}) USING (provider, conversation_id) GROUP BY ALL",
}


class _Stores:
    """Tables and indexes of a home, each opened once for a look, when it is first asked for. Use as a context manager."""

    def __init__(self, home: Home, *, indexes: bool) -> None:
        self._home, self._indexes = home, indexes
        self._open = ExitStack()

    def __enter__(self) -> _Stores:
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()

    @cached_property
    def _warehouse(self) -> duckdb.DuckDBPyConnection:
        return self._open.enter_context(attached(self._home.path))

    @cached_property
    def _chroma(self) -> VectorReader | None:
        return self._open.enter_context(reading(self._home.chroma))

    @cached_property
    def _lexical(self) -> LexicalReader | None:
        try:
            return open_reader(self._home.path / "lexical")
        except StaleIndexError:
            return None

    def tables(self, span: Range) -> Archive:
        """What `palace.duckdb` holds of some days; nothing at all if it is not there or cannot be read."""
        import duckdb

        out: Archive = {}
        for place, statement in _TABLES.items():
            try:
                rows = self._warehouse.execute(statement, [span.first, span.last]).fetchall()
            except (NotBuiltError, duckdb.Error):
                return {name: {} for name in _TABLES}
            out[place] = {(row[0], row[1]): Held(row[2], _utc(row[3])) for row in rows}
        return out

    def index_ids(self, span: Range) -> dict[str, set[str]]:
        """The ids that both indexes hold of some days; nothing where the indexes are not looked at."""
        if not self._indexes:
            return {}
        first, last = (day.year * 10_000 + day.month * 100 + day.day for day in (span.first, span.last))
        lexical = set(self._lexical.ids(first, last)) if self._lexical is not None else set[str]()
        try:
            chroma = self._chroma.ids(span.first, span.last) if self._chroma is not None else set[str]()
        except (TypeError, AttributeError):  # a mistake of ours is no lost drawer
            raise
        except Exception:  # noqa: BLE001 - whatever Chroma says of a damaged folder: nobody finds anything in it
            chroma = set[str]()
        return {"chroma": chroma, "lexical": lexical}


def _utc(value: object) -> datetime | None:
    return value if isinstance(value, datetime) else None
