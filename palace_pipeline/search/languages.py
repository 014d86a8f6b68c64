"""Likeness of texts whatever their language.

In the vectors of a multilingual model a part says which language a text is in, so a passage in the language of the
question outranks the right one in another. That part is measured on the same sentences in many languages
(`parallel.json`): what is left of them after their common meaning is taken away. It is taken out of both sides, and the
archive's mean with it. On a mixed archive this finds a third more across languages, and costs nothing within one
(`benchmarks/retrieval.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from palace_pipeline.embedding.derived import Arrays, derived_arrays
from palace_pipeline.model import short_hash

Floats = NDArray[np.float32]

SHIPPED = "languages.npz"
_DIRECTIONS = 13
"""One less than the languages of `parallel.json`."""
_TYPICAL_WEIGHT = 50
"""The mean of a small archive is drawn to the typical mean, as if so many typical chunks lay in it."""


class Embedder(Protocol):
    """What is needed of a model here (`embedding.model.EmbeddingModel`)."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...
    def embed_passages(self, texts: Sequence[str]) -> Floats: ...
    def embed_query(self, text: str) -> Floats: ...


@dataclass(slots=True, frozen=True, eq=False)
class Languages:
    """`directions`: orthonormal, float32 [k, dimension], the part that says the language; `typical`: a mean passage."""

    directions: Floats
    typical: Floats


@dataclass(slots=True, frozen=True, eq=False)
class Passages:
    """The vectors of an archive, prepared for `likeness`: nothing is copied but a number a row.

    `vectors` float32 [rows, dimension], as the model gave them.
    """

    vectors: Floats
    languages: Languages
    center: Floats
    lengths: Floats

    @classmethod
    def of(cls, vectors: Floats, languages: Languages) -> Passages:
        weight = _TYPICAL_WEIGHT
        total = vectors.sum(axis=0, dtype=np.float64) + weight * languages.typical
        center = (total / (len(vectors) + weight)).astype(np.float32)
        return cls._measured(vectors, center, languages)

    @classmethod
    def _measured(cls, vectors: Floats, center: Floats, languages: Languages) -> Passages:
        # |v - c|^2 without a copy of all v - c, less what the directions take out of it.
        directions = languages.directions
        squares = np.einsum("ij,ij->i", vectors, vectors) - 2 * (vectors @ center) + center @ center
        taken = vectors @ directions.T - directions @ center
        left = squares - np.einsum("ij,ij->i", taken, taken)
        return cls(vectors, languages, center, np.sqrt(np.maximum(left, 1e-6)).astype(np.float32))

    def others(self, vectors: Floats) -> Passages:
        """Other passages, seen from the mean of this archive."""
        return self._measured(vectors, self.center, self.languages)

    def likeness(self, query: Floats) -> Floats:
        """Cosine (-1 to 1) of each row with a query vector, after language and the archive's mean are taken out."""
        moved, directions = query - self.center, self.languages.directions
        bare = moved - (directions @ moved) @ directions
        bare /= max(float(np.linalg.norm(bare)), 1e-6)
        likeness = (self.vectors @ bare - self.center @ bare) / self.lengths
        return likeness.astype(np.float32, copy=False)

    def in_other_language(self, query: Floats, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some rows are in another language than a query: their language parts point another way, seen from what is
        typical of all languages (the archive's own mean says nothing where it holds one language)."""
        languages = self.languages
        asked = languages.directions @ (query - languages.typical)
        said = (self.vectors[rows] - languages.typical) @ languages.directions.T
        return said @ asked < 0


def languages_of(model: Embedder) -> Languages:
    """The language part of a model's vectors: as shipped, from the user's cache, or measured now (some seconds)."""
    source = resources.files("palace_pipeline.search")
    sentences = source.joinpath("parallel.json").read_text(encoding="utf-8")
    shipped = source.joinpath(SHIPPED)
    return of_arrays(
        derived_arrays(model, "languages", recipe(sentences), shipped, lambda: arrays_of(measure(model, sentences)))
    )


def recipe(sentences: str) -> str:
    """Identity of what the measurement depends on beside the model."""
    return f"1.{short_hash(sentences, length=8)}"


def measure(model: Embedder, sentences: str) -> Languages:
    """`sentences`: JSON, language -> the same texts in each; what stands before a blank line also counts as a query."""
    texts: dict[str, list[str]] = json.loads(sentences)
    passages = np.stack([model.embed_passages(these) for these in texts.values()])
    queries = np.stack(
        [np.stack([model.embed_query(text.split("\n\n")[0]) for text in these]) for these in texts.values()]
    )
    parts = [(vectors - vectors.mean(axis=0)).mean(axis=1) for vectors in (passages, queries)]
    _, _, directions = np.linalg.svd(np.vstack(parts).astype(np.float64), full_matrices=False)
    typical = passages.reshape(-1, passages.shape[-1]).mean(axis=0)
    return Languages(directions[: min(_DIRECTIONS, len(texts) - 1)].astype(np.float32), typical.astype(np.float32))


def arrays_of(languages: Languages) -> Arrays:
    """What is kept of it."""
    return {"directions": languages.directions, "typical": languages.typical}


def of_arrays(arrays: Arrays) -> Languages:
    """The inverse of `arrays_of`."""
    return Languages(arrays["directions"].astype(np.float32), arrays["typical"].astype(np.float32))
