"""Which chunks are near a question: by words and by meaning, under the filters of the search."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palace_pipeline.search.corpus import Corpus
from palace_pipeline.search.languages import Floats
from palace_pipeline.search.ranking import CHUNK_WORDS, OTHER_LANGUAGE, Weights
from palace_pipeline.store.lexical import Filters, LexicalReader
from palace_pipeline.transcripts.terms import QueryTerms

CANDIDATES = 300
"""Chunks taken from each side before they are put together."""
CANDIDATES_OF_DAYS = 20_000
"""The same of the lexical side if the search is limited to days, which the index knows only roughly."""


@dataclass(slots=True, frozen=True, eq=False)
class Near:
    """Places in `Corpus.chunks`, nearest first. `likeness` (cosine, nan without a vector) and `words` (share of the
    question's weight) are by place of the whole corpus; `nearest` is the greatest likeness that is allowed; `foreign` are
    the places whose chunks are in another language than the question, and `across` says whether the nearest is one."""

    places: list[int]
    likeness: Floats
    words: Floats
    nearest: float | None = None
    foreign: frozenset[int] = frozenset()
    across: bool = False

    def score(self, place: int) -> float:
        score = (self.dense(place) or 0.0) + CHUNK_WORDS * float(self.words[place])
        return score + (OTHER_LANGUAGE if place in self.foreign else 0.0)

    def dense(self, place: int) -> float | None:
        likeness = float(self.likeness[place])
        return None if math.isnan(likeness) else likeness


def allowed_rows(corpus: Corpus, filters: Filters) -> NDArray[np.bool_]:
    """Which chunks of the corpus the filters leave (but for `role` and days, which are a matter of messages)."""
    wanted = pl.lit(value=True)
    for name in ("provider", "conversation_id", "wing", "room"):
        if (value := getattr(filters, name)) is not None:
            wanted &= pl.col(name) == value
    if filters.kinds:
        wanted &= pl.col("kind").is_in(filters.kinds)
    # Not `select`: without any filter that gives one row for all of them.
    return corpus.chunks.with_columns(wanted=wanted.fill_null(value=False))["wanted"].to_numpy().astype(np.bool_)


def shares_of_words(
    reader: LexicalReader | None,
    query: QueryTerms,
    weights: Weights,
    filters: Filters,
    corpus: Corpus,
    allowed: NDArray[np.bool_],
) -> Floats:
    """By place: how much of the question's weight the chunk's words give; 0 for all but the best chunks."""
    shares = np.zeros(corpus.chunks.height, np.float32)
    if reader is None or not weights.total:
        return shares
    limited = filters.since is not None or filters.until is not None
    hits = reader.search(query, CANDIDATES_OF_DAYS if limited else CANDIDATES, filters)
    # An index a step ahead of the lake, or behind it, knows chunks that are not there.
    known = [(place, score) for drawer_id, score in hits if (place := corpus.place_of.get(drawer_id)) is not None]
    if known:
        places, scores = np.array([place for place, _ in known]), np.array([score for _, score in known])
        shares[places] = np.where(allowed[places], scores / weights.total, 0.0)
    return shares


@dataclass(slots=True, frozen=True, eq=False)
class Meaning:
    """How near the chunks are in meaning, by place: `likeness`, a cosine, nan without a vector.

    `foreign`: which of some places are in another language than the question. `alike`: likeness of the question with
    texts by themselves (a chunk's vector holds its title and question as well); both None where there are no vectors.
    """

    likeness: Floats
    foreign: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None = None
    alike: Callable[[Sequence[str]], Floats] | None = None


def nearest_chunks(meaning: Meaning, words: Floats, allowed: NDArray[np.bool_], count: int) -> Near:
    """The `count` nearest of the chunks that are among the best by words or by meaning."""
    likeness = meaning.likeness
    known = np.flatnonzero(allowed & ~np.isnan(likeness))
    by_meaning = _top(likeness, known, CANDIDATES)
    by_words = _top(words, np.flatnonzero(words > 0), CANDIDATES)
    places = np.union1d(by_meaning, by_words)
    foreign = np.zeros(len(places), np.bool_) if meaning.foreign is None else meaning.foreign(places)
    scores = np.nan_to_num(likeness[places]) + CHUNK_WORDS * words[places] + OTHER_LANGUAGE * foreign
    order = np.argsort(-scores, kind="stable")[:count]
    elsewhere = frozenset(places[foreign].tolist())
    if not len(known):
        return Near(places[order].tolist(), likeness, words, None, elsewhere)
    nearest = int(known[likeness[known].argmax()])
    return Near(
        places[order].tolist(), likeness, words, float(likeness[nearest]), elsewhere, across=nearest in elsewhere
    )


def _top(values: Floats, places: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    if len(places) <= count:
        return places
    return places[np.argpartition(-values[places], count)[:count]]


def spread(corpus: Corpus, places: NDArray[np.int64], values: Sequence[float] | Floats) -> Floats:
    """Values of some places as an array over all of them, nan elsewhere."""
    out = np.full(corpus.chunks.height, np.nan, np.float32)
    out[places] = values
    return out
