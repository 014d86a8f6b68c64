"""Chroma holds the drawers of the lake with their vectors, no more and no less, and a sample is really there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palace_pipeline.checks.look import PLACE, Look, Part
from palace_pipeline.checks.result import Check, Found, Problem
from palace_pipeline.model import KEY_SCHEMA

SAMPLE = 50
"""Drawers of each part that are read back with text and vector: Chroma can lose vectors and still count right."""
_KEY = list(KEY_SCHEMA)
_TABLE = "chroma palace_drawers"
ANEW = "palace rebuild"
Stored = Mapping[str, tuple[str, NDArray[np.float32]]]


def look_at(part: Part, found: Found) -> None:
    settled = part.settled("vectors").select(_KEY)
    drawers = part.rows("clean/drawers", (*PLACE, "drawer_id"))
    own = drawers.join(settled, on=_KEY, how="semi")
    vectors = part.rows("clean/vectors", (*PLACE, "drawer_id"))
    found.note(
        _named(own.join(vectors, on="drawer_id", how="anti"), "have no vector", "lake/clean/vectors", backfilled=True)
    )
    found.counts["drawers"] += own.height
    store = part.look.chroma
    if store is None:
        found.note(_named(own, "are not there: Chroma holds nothing", _TABLE))
        return
    there = store.ids(part.span.first, part.span.last)
    found.counts["in Chroma"] += len(there)
    ids = own["drawer_id"].to_list()
    found.note(_named(own.filter(~pl.col("drawer_id").is_in(list(there))), "are missing", _TABLE))
    # What a run is about to write, or to take away, is noted as published.
    known = set(drawers["drawer_id"].to_list()) | {
        row["drawer_id"]
        for row in part.ledger(
            "SELECT p.drawer_id FROM conversations c CROSS JOIN published p "
            "ON p.provider = c.provider AND p.conversation_id = c.conversation_id "
            "WHERE c.day BETWEEN :first AND :last AND (p.hash IS NULL OR c.vectors_in IS NULL)"
        )
    }
    if surplus := there - known:
        found.note(
            [Problem(f"{len(surplus):,} drawers that the lake does not know", _TABLE, part.span.first, mend=ANEW)]
        )
    sample = [name for name in ids[:: max(1, len(ids) // SAMPLE)][:SAMPLE] if name in there]
    found.counts["read back"] += len(sample)
    if sample:
        found.note(
            _named(own.filter(pl.col("drawer_id").is_in(unlike(part, sample, store.stored(sample)))), _UNLIKE, _TABLE)
        )


_UNLIKE = "have another text or vector than in the lake"


def unlike(part: Part, sample: Sequence[str], stored: Stored) -> list[str]:
    """Those of a sample whose text or vector in Chroma is not that of the lake, or cannot be read."""
    rows = part.rows("clean/vectors", ("drawer_id", "vector")).filter(pl.col("drawer_id").is_in(sample))
    texts = part.rows("clean/chunks", ("drawer_id", "text")).filter(pl.col("drawer_id").is_in(sample))
    vector_of = dict(zip(rows["drawer_id"].to_list(), rows["vector"].to_numpy(), strict=True))
    text_of = dict(texts.iter_rows())
    return [name for name in sample if not _same(stored.get(name), text_of.get(name), vector_of.get(name))]


def _same(stored: tuple[str, NDArray[np.float32]] | None, text: str | None, vector: NDArray[np.float32] | None) -> bool:
    if stored is None or text is None or vector is None:
        return False
    return stored[0] == text and stored[1].shape == vector.shape and bool(np.allclose(stored[1], vector, atol=1e-6))


def _named(rows: pl.DataFrame, what: str, table: str, *, backfilled: bool = False) -> list[Problem]:
    counted = rows.group_by(PLACE).len("rows").sort(PLACE)
    mend = None if backfilled else ANEW
    return [
        Problem(f"{count:,} drawers {what}", table, day, (provider, conversation_id), mend)
        for day, provider, conversation_id, count in counted.iter_rows()
    ]


def nothing_beside(look: Look, found: Found) -> None:
    """When everything was looked at: what stands in Chroma on no day."""
    store = look.chroma if look.everything else None
    if store is not None and (beside := store.count() - found.counts["in Chroma"]) > 0:
        found.note([Problem(f"{beside:,} drawers on no day of the calendar", _TABLE, mend=ANEW)])


INDEX = Check(
    name="index_holds_every_drawer",
    asset="drawer_embeddings",
    stage="vectors",
    description="Chroma holds exactly the drawers of these days; a sample, read back, has the lake's text and vector.",
    look_at=look_at,
    finish=nothing_beside,
)
