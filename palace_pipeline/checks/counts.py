"""Do the counts add up along the road, conversation by conversation: from records to rows, chunks, vectors, tables, page?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from palace_pipeline.checks.look import Part
from palace_pipeline.checks.result import Check, Found, Problem
from palace_pipeline.model import KEY_SCHEMA
from palace_pipeline.stages.drawers import FILED_KINDS
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import unpack_index
from palace_pipeline.store.quiet import open_quietly

_KEY = list(KEY_SCHEMA)
_LAKE = ("raw/conversations", "raw/messages", "clean/conversations", "clean/messages", "clean/findings")
_TABLES = ("conversations", "messages", "drawers", "findings")
_BATCH = 500

EQUAL: dict[str, tuple[str, ...]] = {
    "conversations": ("ledger", "raw/conversations", "clean/conversations", "table conversations"),
    "messages": ("ledger messages", "raw/messages", "clean/messages + withheld", "table messages + withheld"),
    "findings": ("clean/findings", "table findings"),
    "chunks": ("clean/chunks", "published chunks"),
    "drawers": ("chunks of talk", "clean/drawers", "clean/vectors", "table drawers", "published drawers"),
    "pages": ("ledger", "pages + withheld"),
}
"""What has to be equal for every conversation: name -> counts."""


def look_at(part: Part, found: Found) -> None:
    counts = counted(part)
    for name in sorted({name for names in EQUAL.values() for name in names}):
        found.counts[name] += int(counts[name].sum())
    found.counts["waiting"] += part.heads.filter(pl.col("tables")).height
    tables = part.look.warehouse is not None
    equal = {what: tuple(n for n in names if tables or not n.startswith("table ")) for what, names in EQUAL.items()}
    found.note(differences(counts, equal))
    found.note(_sources(part, found))


def differences(counts: pl.DataFrame, equal: Mapping[str, Sequence[str]] = EQUAL) -> list[Problem]:
    """A problem for each conversation and comparison whose counts (columns of these names) are not all equal."""
    out: list[Problem] = []
    for what, (first, *others) in equal.items():
        names = (first, *others)
        unequal = pl.any_horizontal(pl.lit(False), *(pl.col(first) != pl.col(other) for other in others))
        for row in counts.filter(unequal).sort("day", *_KEY).iter_rows(named=True):
            shown = ", ".join(f"{name} {row[name]:,}" for name in names)
            out.append(
                Problem(f"{what} do not add up: {shown}", "", row["day"], (row["provider"], row["conversation_id"]))
            )
    return out


def counted(part: Part) -> pl.DataFrame:
    """A row a conversation of the days that waits for nothing (or has rows though it should have none): all its counts."""
    heads = part.heads.filter(~pl.col("tables"))
    live = (~pl.col("gone")).cast(pl.Int64)
    withheld = pl.col("status") == "withheld"
    base = heads.select(
        *_KEY,
        "day",
        "page",
        ledger=live,
        held=pl.when(withheld).then(pl.col("messages")).otherwise(0) * live,
        no_page=(withheld | (pl.col("page") == "")).fill_null(False).cast(pl.Int64) * live,
        **{"ledger messages": pl.col("messages") * live},
    )
    waiting = part.heads.filter(pl.col("tables")).select(_KEY)
    counts = [_rows(part, table) for table in _LAKE]
    chunks = part.rows("clean/chunks", (*_KEY, "day", "drawer_id", "kind", "text_hash"))
    filed = chunks.filter(pl.col("kind").is_in(FILED_KINDS))
    drawers = part.rows("clean/drawers", (*_KEY, "day", "drawer_id"))
    vectors = part.rows("clean/vectors", (*_KEY, "day", "drawer_id", "text_hash"))
    published = part.ledger_frame(
        "SELECT c.provider, c.conversation_id, p.drawer_id FROM conversations c CROSS JOIN published p "
        "ON p.provider = c.provider AND p.conversation_id = c.conversation_id "
        "WHERE c.day BETWEEN :first AND :last AND p.hash IS NOT NULL",
        {**KEY_SCHEMA, "drawer_id": pl.String},
    )
    counts += [
        _grouped(chunks, "clean/chunks"),
        _grouped(filed, "chunks of talk"),
        _grouped(drawers.join(filed, on=[*_KEY, "drawer_id"], how="semi"), "clean/drawers"),
        # A vector counts if it is that of the chunk as it reads now.
        _grouped(vectors.join(filed, on=[*_KEY, "drawer_id", "text_hash"], how="semi"), "clean/vectors"),
        _grouped(published, "published chunks"),
        _grouped(published.join(filed, on=[*_KEY, "drawer_id"], how="semi"), "published drawers"),
    ]
    counts += _of_tables(part)
    for count in counts:
        base = base.join(count, on=_KEY, how="full", coalesce=True)
    # Rows of a conversation that moved, or is still to be built, are not compared yet.
    base = base.join(waiting, on=_KEY, how="anti")
    base = base.join(_moving(part, base), on=_KEY, how="anti")
    there = [(part.look.home.path / page).exists() if page else False for page in base["page"].to_list()]
    base = base.with_columns(pages=pl.Series(there, dtype=pl.Boolean).cast(pl.Int64))
    numbers = [name for name, kind in base.schema.items() if kind.is_integer()]
    base = base.with_columns(pl.col(numbers).fill_null(0), pl.col("day").fill_null(part.span.first))
    return base.with_columns(
        **{
            "clean/messages + withheld": pl.col("clean/messages") + pl.col("held"),
            "table messages + withheld": pl.col("table messages") + pl.col("held"),
            "pages + withheld": pl.col("pages") * pl.col("ledger") + pl.col("no_page"),
        }
    )


def _rows(part: Part, table: str) -> pl.DataFrame:
    return _grouped(part.rows(table, (*_KEY, "day")), table)


def _grouped(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return rows.group_by(_KEY).agg(pl.len().cast(pl.Int64).alias(name))


def _of_tables(part: Part) -> list[pl.DataFrame]:
    """Rows of the days in `palace.duckdb`; none if it is not there."""
    found: dict[str, list[tuple[str, str, int]]] = {table: [] for table in _TABLES}
    connection = part.look.warehouse
    if connection is not None:
        sql = " UNION ALL ".join(
            f"SELECT '{table}', provider, conversation_id, count(*) FROM {table} WHERE day BETWEEN $1 AND $2 GROUP BY ALL"
            for table in _TABLES
        )
        for table, provider, conversation_id, count in connection.execute(
            sql, [part.span.first, part.span.last]
        ).fetchall():
            found[table].append((provider, conversation_id, count))
    return [
        pl.DataFrame(rows, schema={**KEY_SCHEMA, f"table {table}": pl.Int64}, orient="row")
        for table, rows in found.items()
    ]


def _moving(part: Part, counts: pl.DataFrame) -> pl.DataFrame:
    """Conversations with rows here that belong to another day and have not been built there yet."""
    strangers = counts.filter(pl.col("ledger").is_null()).select(_KEY)
    keys: list[Any] = []
    for key in strangers.iter_rows():
        row = part.look.ledger.one(
            "SELECT day, built_day FROM conversations WHERE provider = ? AND conversation_id = ?", key
        )
        if row is not None and row["day"] != row["built_day"]:
            keys.append(key)
    return pl.DataFrame(keys, schema=KEY_SCHEMA, orient="row")


def _sources(part: Part, found: Found) -> list[Problem]:
    """Records of the days' conversations: in the vault, and holding together the messages that the ledger counts."""
    ids: dict[tuple[str, str], set[str]] = {}
    records: dict[str, tuple[str, str]] = {}
    for row in part.ledger(
        "SELECT s.provider, s.conversation_id, s.record, s.message_index FROM conversations c CROSS JOIN sightings s "
        "ON s.provider = c.provider AND s.conversation_id = c.conversation_id "
        "WHERE c.day BETWEEN :first AND :last AND s.superseded = 0 AND c.status != 'purged'"
    ):
        key = (row["provider"], row["conversation_id"])
        ids.setdefault(key, set()).update(unpack_index(row["message_index"]))
        records[row["record"]] = key
    found.counts["records"] += len(records)
    day_of: dict[tuple[str, str], Any] = {}
    out: list[Problem] = []
    for provider, conversation_id, day, messages, gone, waits in part.heads.select(
        *_KEY, "day", "messages", "gone", "normalized"
    ).iter_rows():
        key = (provider, conversation_id)
        day_of[key] = day
        if gone or waits:
            continue
        held = len(ids.get(key, ()))
        if held != messages:
            what = f"its records hold {held:,} messages, the ledger counts {messages:,}"
            out.append(Problem(what, "ledger", day, key, _READ_AGAIN))
    for record in _lacking(part.look.home, list(records)):
        key = records[record]
        out.append(Problem("a record of it is not in the vault", "vault", day_of.get(key), key, _READ_AGAIN))
    return out


_READ_AGAIN = "palace rebuild --from vault (what it lacks is read from the exports that are still there), or palace restore BACKUP"


def _lacking(home: Home, records: list[str]) -> list[str]:
    path = home.path / "vault/vault.sqlite"
    if not path.exists() or not records:
        return records
    database = open_quietly(path)
    try:
        there: set[str] = set()
        for at in range(0, len(records), _BATCH):
            some = records[at : at + _BATCH]
            marks = ",".join("?" * len(some))
            there.update(row[0] for row in database.execute(f"SELECT hash FROM records WHERE hash IN ({marks})", some))
    finally:
        database.close()
    return [record for record in records if record not in there]


COUNTS = Check(
    name="counts_add_up",
    asset="palace_tables",
    stage="tables",
    description=(
        "For every conversation: records = ledger = raw = redacted = table; chunks = published; chunks of talk = drawers = "
        "vectors = table = index; one page. What is withheld is counted as that."
    ),
    look_at=look_at,
)
