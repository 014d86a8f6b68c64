"""While a new model takes the place of an old one: both sides are found, and no vector meets the question of the other."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import polars as pl
import pytest

from palace_pipeline.embedding.convert import EmbeddingError
from palace_pipeline.embedding.vectors import model_entry
from palace_pipeline.search.engine import Searcher
from palace_pipeline.settings import EmbeddingSettings, Settings
from palace_pipeline.store.ledger import Ledger
from tests.search.small_archive import Archive, BagOfTerms


class Turned(BagOfTerms):
    """The same meanings in other places of the vector: compared with it, the stand-in's own questions mean nothing."""

    name = "turned"
    key = "turned@111111111111"

    def embed_passages(self, texts: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        return np.roll(super().embed_passages(texts)[:, ::-1], 7, axis=1)


MODELS = {"new": Turned, "old": BagOfTerms}


def load(settings: EmbeddingSettings) -> Any:
    if settings.model not in MODELS:
        raise EmbeddingError("its folder is gone")
    return MODELS[settings.model]()


@pytest.fixture
def half(archive: Archive) -> Archive:
    """The chats of 2023 have the vectors of the new model, the others still those of the old one."""
    month = ["2023-05"]
    texts = archive.lake.read("clean/chunks", month).select("drawer_id", "text")
    known = archive.lake.read("clean/vectors", month)
    text_of = dict(texts.iter_rows())
    vectors = Turned().embed_passages([text_of[drawer] for drawer in known["drawer_id"]])
    anew = known.with_columns(
        pl.lit(Turned.key).alias("model"), pl.Series("vector", vectors, dtype=known["vector"].dtype)
    )
    archive.lake.replace("clean/vectors", month[0], [("claude", "竞业")], anew)
    with closing(Ledger(archive.home / "ledger.sqlite")) as ledger:
        ledger.set_meta(model_entry(BagOfTerms.key), "old")
        ledger.set_meta(model_entry(Turned.key), "new")
    return archive


def searcher(archive: Archive, model: str) -> Searcher:
    settings = Settings(home=archive.home, embedding=EmbeddingSettings(model=model))
    return Searcher(archive.home, settings, load)


@pytest.mark.parametrize("model", ["new", "old"])
def test_both_sides_are_found_by_meaning(half: Archive, model: str) -> None:
    search = searcher(half, model).search
    across = search("灯笼")  # the stand-in knows it as a lantern: no word of it is in the English chat
    assert across.hits[0].conversation_id == "lamps"
    assert across.hits[0].dense is not None
    other = search("竞业协议")
    assert other.hits[0].conversation_id == "竞业"
    assert other.hits[0].dense is not None
    assert "not by meaning" not in across.tried


def test_likeness_is_that_of_an_archive_of_one_model(half: Archive, archive: Archive) -> None:
    """Every vector meets the question of its own model, so each side ranks as if it were alone."""
    asked = searcher(half, "new").ask("copper lantern terrace")
    assert asked is not None
    likeness = dict(zip(asked.corpus.chunks["drawer_id"], asked.meaning.likeness, strict=True))
    best = max((drawer for drawer in likeness if not np.isnan(likeness[drawer])), key=lambda name: likeness[name])
    assert best.startswith("lamps-exchange-0")


def test_vectors_of_a_model_that_is_gone_are_counted(half: Archive) -> None:
    with closing(Ledger(half.home / "ledger.sqlite")) as ledger:
        ledger.set_meta(model_entry(BagOfTerms.key), "/no/such/folder")
    result = searcher(half, "new").search("copper lantern")
    assert result.hits[0].conversation_id == "lamps"  # by its words
    assert result.hits[0].dense is None
    assert "not by meaning: 4 chunks, whose vectors were made with another model" in result.tried
