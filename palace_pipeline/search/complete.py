"""Is what a question was looked for in all that there is? What the ledger knows is held against what was there to read.

A proof that nothing earlier exists is none where a month file is gone, a run has not yet built what it found, or the
lexical index is a step behind the lake.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date
from pathlib import Path

import polars as pl

from palace_pipeline.search.corpus import Corpus
from palace_pipeline.store.lake import Key, Lake, LakeDamaged
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.lexical import LexicalReader

_KEY = ["provider", "conversation_id"]
_KNOWN = (
    "SELECT provider, conversation_id, day, chunks_out FROM conversations "
    "WHERE superseded_by IS NULL AND status != 'purged' AND coalesce(chunks_out, '') != 'none'"
)
"""Conversations that chunks have been made of, or will be (`chunks_out` NULL)."""
_WITHHELD = (
    "SELECT provider, day FROM withheld JOIN conversations USING (provider, conversation_id) "
    "WHERE superseded_by IS NULL AND status != 'purged'"
)
GONE = "gone from the lake (palace gaps --all --heal makes it again)"
_LISTED = 6
"""Months that are named."""
NO_LEDGER = (
    "the ledger, which knows what there should be, is not there (palace rebuild --from vault makes it again): "
    "nobody can tell whether this is all"
)


def not_in_index(reader: LexicalReader | None, drawer_ids: Collection[str]) -> Iterator[str]:
    """Whether the lexical index lacks some of these chunks, in words; by their ids, since others may be in it too many."""
    if reader is not None and (lacking := len(set(drawer_ids).difference(reader.ids()))):
        yield f"the lexical index lacks {lacking:,} of {len(drawer_ids):,} chunks"


def not_in_corpus(home: Path, lake: Lake, corpus: Corpus, provider: str | None = None) -> Iterator[str]:
    """Whether chunks, messages or titles of some conversations are not there, in words."""
    held: set[Key] = set(corpus.chunks.select(_KEY).unique().iter_rows())
    read = corpus.chunks["day"].dt.strftime("%Y-%m").unique()
    damaged = set(lake.months("clean/chunks")).difference(read)  # `Corpus.unread` names them
    for table in ("clean/messages", "clean/conversations"):
        keys: set[Key] = set()
        for month in lake.months(table):
            try:
                keys.update(lake.read(table, [month], columns=_KEY).unique().iter_rows())
            except LakeDamaged as error:
                damaged.add(month)
                yield str(error)
        held &= keys
    yield from not_there(home, held, damaged, provider)


def not_there(
    home: Path,
    held: Collection[Key],
    damaged: Collection[str] = (),
    provider: str | None = None,
    until: date | None = None,
) -> Iterator[str]:
    """Whether the ledger knows conversations (of one provider; that begin up to a day) which are not among these, or of which
    redaction withholds something, in words; without a ledger nobody knows, which is said too. `damaged`: months that could
    not be read, which is said elsewhere."""
    ledger = Ledger.reading(home / "ledger.sqlite")
    if ledger is None:
        if held:
            yield NO_LEDGER
        return
    try:
        known, withheld = ledger.rows(_KNOWN), ledger.rows(_WITHHELD)
    finally:
        ledger.close()
    last = "9999-12-31" if until is None else until.isoformat()
    lacking = [
        row["chunks_out"]
        for row in known
        if (row["provider"], row["conversation_id"]) not in held
        and row["day"][:7] not in damaged
        and provider in (None, row["provider"])
        and row["day"] <= last
    ]
    hidden = sum(provider in (None, row["provider"]) and row["day"] <= last for row in withheld)
    for count, what in (
        (lacking.count(None), "not built yet (palace ingest goes on with it)"),
        (len(lacking) - lacking.count(None), GONE),
        (
            hidden,
            "withheld in whole or in part, since redaction could not judge it (palace ingest --json has the places)",
        ),
    ):
        if count:
            yield f"{_are(count)} {what}"


def months_gone(home: Path, lake: Lake) -> Iterator[str]:
    """Whether whole months that the ledger knows are gone from the lake, in words: the quick look of a search, which does not
    compare conversation by conversation."""
    ledger = Ledger.reading(home / "ledger.sqlite")
    if ledger is None:
        return
    there = set(lake.months("clean/chunks")) & set(lake.months("clean/messages"))
    try:
        if {row["day"][:7] for row in ledger.rows("SELECT DISTINCT day FROM conversations")} <= there:
            return  # as a rule; days alone are asked of their index, a tenth of the time
        known = ledger.rows(f"SELECT substr(day, 1, 7) AS month, count(chunks_out) AS made FROM ({_KNOWN}) GROUP BY 1")
    finally:
        ledger.close()
    gone = {row["month"]: row["made"] for row in known if row["made"] and row["month"] not in there}
    if gone:
        listed = ", ".join(sorted(gone)[:_LISTED]) + (" …" if len(gone) > _LISTED else "")
        count = sum(gone.values())
        yield f"{_are(count)} {GONE}: {listed}"


def _are(count: int) -> str:
    return f"{count:,} conversation{' is' if count == 1 else 's are'}"


def pieces_of(chunks: pl.DataFrame) -> pl.Series:
    """A number for each row of `Corpus.chunks`, the same for the pieces of one exchange (or of one long message). A section
    of a document stands by itself."""
    together = [*_KEY, "kind"]
    ordered = chunks.select(*together, "first_seq", "last_seq").with_row_index("place")
    ordered = ordered.sort(*together, "first_seq", "last_seq", "place")
    reached = pl.col("last_seq").cum_max().shift(1).over(together)
    begins = reached.is_null() | (pl.col("first_seq") > reached) | (pl.col("kind") == "document")
    return ordered.with_columns(begins.cum_sum().alias("piece")).sort("place")["piece"]
