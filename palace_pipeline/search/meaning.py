"""How near the chunks of an archive are to a question in meaning.

While a new model takes the place of an old one, each conversation has the vectors of one of the two. A vector is only
ever compared with a question that its own model embedded; what comes out is put on one scale by how far the chunks of
each lie apart, so that nothing is lost while the new vectors are being made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palace_pipeline.embedding.vectors import model_entry
from palace_pipeline.search.corpus import Corpus
from palace_pipeline.search.languages import Embedder, Floats, Passages, languages_of
from palace_pipeline.search.near import Meaning, spread
from palace_pipeline.settings import EmbeddingSettings
from palace_pipeline.store.ledger import Ledger

Load = Callable[[EmbeddingSettings], Embedder]


@dataclass(slots=True, frozen=True, eq=False)
class _Side:
    """The vectors that one model made of a corpus, ready for questions; `places` in the corpus of its rows, and `row_of`
    each place (-1 without a vector)."""

    model: Embedder
    passages: Passages
    places: NDArray[np.int64]
    row_of: NDArray[np.int64]

    @classmethod
    def of(cls, corpus: Corpus, model: Embedder) -> _Side:
        mine = corpus.vector_model == model.key
        vectors = corpus.vectors if mine.all() else corpus.vectors[mine]
        places = corpus.vector_row[mine]
        row_of = np.full(corpus.chunks.height, -1, np.int64)
        row_of[places] = np.arange(len(places))
        return cls(model, Passages.of(vectors, languages_of(model)), places, row_of)

    def foreign(self, vector: Floats, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some places hold a chunk in another language than a question."""
        rows = self.row_of[places]
        return (rows >= 0) & self.passages.in_other_language(vector, np.maximum(rows, 0))


class MeaningReader:
    """Keeps the models and what it has prepared of the corpus, until that changes."""

    def __init__(self, home: Path, settings: EmbeddingSettings, load: Load) -> None:
        self._home = home
        self._settings = settings
        self._load = load
        self._model: Embedder | None = None
        self._prepared: tuple[Corpus, list[_Side], int] | None = None

    def vector(self, query: str, *, as_passage: bool = False) -> tuple[Embedder, Floats]:
        """The configured model and the vector of a question. Raises EmbeddingError."""
        if self._model is None:
            self._model = self._load(self._settings)
        return self._model, _embedded(self._model, query, as_passage=as_passage)

    def of(
        self, corpus: Corpus, query: str, asked: Future[tuple[Embedder, Floats]] | None, *, as_passage: bool = False
    ) -> tuple[Meaning, str | None]:
        """How near every chunk is to a question; or why that is not known, of all or of some. `asked`: its vector."""
        from palace_pipeline.embedding.convert import EmbeddingError

        nothing = Meaning(spread(corpus, np.zeros(0, np.int64), []))
        if asked is None:
            return nothing, "not by meaning: there are no vectors"
        try:
            model, vector = asked.result()
        except EmbeddingError as error:
            return nothing, f"not by meaning: {error}"
        sides, left = self._sides(corpus, model)
        trouble = f"not by meaning: {left:,} chunks, whose vectors were made with another model" if left else None
        if not sides:
            return nothing, "not by meaning: the vectors were made with another model"
        vectors = [
            vector if side.model is model else _embedded(side.model, query, as_passage=as_passage) for side in sides
        ]
        likeness = nothing.likeness.copy()
        near = [side.passages.likeness(vector) for side, vector in zip(sides, vectors, strict=True)]
        for side, values in zip(sides, near, strict=True):
            likeness[side.places] = values if side is sides[0] else values * _scale(near[0], values)

        def foreign(places: NDArray[np.int64]) -> NDArray[np.bool_]:
            told = [side.foreign(vector, places) for side, vector in zip(sides, vectors, strict=True)]
            return np.logical_or.reduce(told)

        def alike(texts: Sequence[str]) -> Floats:
            return sides[0].passages.others(sides[0].model.embed_passages(texts)).likeness(vectors[0])

        return Meaning(likeness, foreign, alike), trouble

    def _sides(self, corpus: Corpus, model: Embedder) -> tuple[list[_Side], int]:
        """The vectors by model, those of the configured one first; and how many are of a model that cannot be had."""
        kept = self._prepared
        if kept is not None and kept[0] is corpus:
            return kept[1], kept[2]
        keys: set[str] = set(corpus.vector_model.tolist())
        models = [model] if model.key in keys else []
        models += self._others(sorted(keys - {model.key}))
        missing = keys - {one.key for one in models}
        left = sum(int((corpus.vector_model == key).sum()) for key in missing)
        sides = [_Side.of(corpus, one) for one in models]
        self._prepared = (corpus, sides, left)
        return sides, left

    def _others(self, keys: Sequence[str]) -> list[Embedder]:
        """The models of other vectors, where the ledger knows what they were called in the settings."""
        from palace_pipeline.embedding.convert import EmbeddingError

        ledger = Ledger.reading(self._home / "ledger.sqlite") if keys else None
        if ledger is None:
            return []
        try:
            names = {key: ledger.meta(model_entry(key)) for key in keys}
        finally:
            ledger.close()
        found: list[Embedder] = []
        for key, name in names.items():
            if name is None:
                continue
            try:
                other = self._load(self._settings.model_copy(update={"model": name}))
            except EmbeddingError:  # its folder is gone: counted among those that cannot be had
                continue
            found += [other] if other.key == key else []
        return found


def _embedded(model: Embedder, query: str, *, as_passage: bool) -> Floats:
    return model.embed_passages([query])[0] if as_passage else model.embed_query(query)


def _scale(one: Floats, other: Floats) -> float:
    """By what the likeness of another model's vectors is multiplied to lie as far apart as that of the first."""
    spread_of = float(other.std())
    return float(one.std()) / spread_of if spread_of > 0 and len(one) > 1 else 1.0
