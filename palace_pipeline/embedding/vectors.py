"""Chunk rows -> vector rows, embedding only what has no vector yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palace_pipeline.model import VECTORS

Progress = Callable[[int, int], None]

_SLICE = 256
"""Texts handed to the model at once: bounds what is held beside the result."""


class Embedder(Protocol):
    """What is needed of a model here (`embedding.model.EmbeddingModel`)."""

    @property
    def key(self) -> str: ...

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]: ...


def model_entry(key: str) -> str:
    """The entry of the ledger's `meta` that says what the model of a key is called in the settings."""
    return f"model {key}"


def passage_of(context: str, text: str) -> str:
    """What is embedded of a chunk: its context (the question of a continued answer), then its text."""
    return f"{context}\n{text}" if context else text


def missing_texts(chunks: pl.DataFrame, known: pl.DataFrame, key: str) -> pl.DataFrame:
    """`text_hash`, `context`, `text` of what the model `key` has not embedded yet: once each, in order of `chunks`."""
    have = known.filter(pl.col("model") == key).select("text_hash").unique()
    rows = chunks.select("text_hash", "context", "text").unique("text_hash", keep="first", maintain_order=True)
    return rows.join(have, on="text_hash", how="anti", maintain_order="left")


def ensure_vectors(
    chunks: pl.DataFrame,
    known: pl.DataFrame,
    model: Embedder,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """A vector row (schema `model.VECTORS`) for every row of `chunks`, in the same order.

    `known`: vector rows (columns `text_hash`, `model`, `vector`) of any model and day; those of this model's key are
    used again, so a text is embedded once however often and wherever it occurs. `progress` is called with the number of
    texts embedded so far and of all that are missing. Equal input gives equal output, bit for bit.
    """
    missing = missing_texts(chunks, known, model.key)
    parts = [_reusable(known, model.key)]
    for number, rows in enumerate(missing.iter_slices(_SLICE)):
        texts = [passage_of(context, text) for context, text in rows.select("context", "text").iter_rows()]
        step = partial(_forward, progress, number * _SLICE, missing.height) if progress else None
        vectors = pl.Series("vector", model.embed_passages(texts, step), dtype=VECTORS["vector"])
        parts.append(pl.DataFrame([rows["text_hash"], vectors]))
    table = pl.concat(parts)
    keys = chunks.select(
        "day", "provider", "conversation_id", "drawer_id", "text_hash", pl.lit(model.key).alias("model")
    )
    return keys.join(table, on="text_hash", how="left", maintain_order="left").select(list(VECTORS))


def _forward(progress: Progress, before: int, total: int, done: int, _of_slice: int) -> None:
    progress(before + done, total)


def _reusable(known: pl.DataFrame, key: str) -> pl.DataFrame:
    rows = known.filter(pl.col("model") == key).select("text_hash", "vector")
    return rows.unique("text_hash", keep="first", maintain_order=True)
