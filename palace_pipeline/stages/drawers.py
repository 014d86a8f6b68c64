"""`drawers`: every chunk of talk filed in wing, hall and room. Filing needs the chunk's vector, so it is made here once.

Chunks of tools' output and of thinking are no drawers: they stay searchable by words, on request.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from palace_pipeline.embedding.model import load_model
from palace_pipeline.embedding.vectors import ensure_vectors, missing_texts, model_entry
from palace_pipeline.model import DRAWERS, VECTORS, frame, short_hash
from palace_pipeline.planner import due, split_by_month
from palace_pipeline.rooms.classifier import load_classifier, wing_of
from palace_pipeline.stages.common import Counts, Job, Key, batches, key_of, logged
from palace_pipeline.stages.progress import report

FILED_KINDS = ("exchange", "people", "document")
EMBED_BATCH_MESSAGES = 4_000
"""Smaller than elsewhere: a kill loses at most about a minute of embedding."""


def drawer_identity(drawer: Mapping[str, Any]) -> str:
    """All that a drawer's row says; the ledger notes the hash of those of a conversation."""
    return "|".join(str(drawer[name]) for name in DRAWERS)


def file_drawers(job: Job) -> Counts:
    """File what has changed. Returns conversations, drawers, and vectors that had to be made."""
    started = time.perf_counter()
    counts: Counts = {"conversations": 0, "drawers": 0, "vectors": 0}
    home, lake = job.home, job.home.lake
    with home.ledger() as ledger:
        work = due(ledger, "drawers", job.span, job.recipes, force=job.force)
        model = load_model(home.settings.embedding) if work else None
        classifier = load_classifier(home.settings, model) if model else None
        if model:  # search asks it of the vectors of an old model as long as there are some
            ledger.set_meta(model_entry(model.key), home.settings.embedding.model)
        done = 0
        for month, rows in split_by_month(work):
            for part in batches(rows, EMBED_BATCH_MESSAGES):
                assert model is not None
                assert classifier is not None
                keys = [key_of(row) for row in part]
                chunks = lake.read("clean/chunks", [month], keys=keys).filter(pl.col("kind").is_in(FILED_KINDS))
                known = lake.read("clean/vectors", [month], keys=keys)
                missing = missing_texts(chunks, known, model.key).height
                vectors = ensure_vectors(chunks, known, model, partial(report, "embedding"))
                counts["vectors"] += missing
                lake.replace("clean/vectors", month, keys, vectors.select(list(VECTORS)))
                heads = lake.read("clean/conversations", [month], keys=keys)
                wings = {
                    (head["provider"], head["conversation_id"]): wing_of(head, home.settings.wings)
                    for head in heads.iter_rows(named=True)
                }
                filed = classifier.classify(chunks["text"].to_list(), vectors["vector"].to_numpy())
                out: list[dict[str, Any]] = []
                parts: dict[Key, list[str]] = {}
                for row, place in zip(chunks.iter_rows(named=True), filed, strict=True):
                    key = (row["provider"], row["conversation_id"])
                    drawer = {name: row[name] for name in DRAWERS if name in row}
                    drawer |= {
                        "wing": wings[key],
                        "hall": place.hall,
                        "room": place.room,
                        "confidence": round(place.confidence, 4),
                    }
                    out.append(drawer)
                    parts.setdefault(key, []).append(drawer_identity(drawer))
                lake.replace("clean/drawers", month, keys, frame(out, DRAWERS))
                built: list[tuple[Key, str, str | None]] = [
                    (key_of(row), row["made_from"], short_hash(*parts[key_of(row)]) if key_of(row) in parts else "none")
                    for row in part
                ]
                ledger.mark_built("drawers", built)
                counts["conversations"] += len(part)
                counts["drawers"] += len(out)
                done += len(part)
                report("filing", done, len(work))
        return logged(job, ledger, "drawers", started, counts)
