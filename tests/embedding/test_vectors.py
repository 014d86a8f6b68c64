"""Vector rows: one for every chunk, and no text embedded twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palace_pipeline.embedding.vectors import Progress, ensure_vectors, passage_of
from palace_pipeline.model import CHUNKS, VECTORS, frame, short_hash


class Fake:
    """Remembers what it embedded; a vector holds the text's length."""

    def __init__(self, key: str = "fake@1") -> None:
        self.key = key
        self.seen: list[str] = []

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        self.seen.extend(texts)
        for number in range(len(texts)):
            if progress:
                progress(number + 1, len(texts))
        return np.array([[len(text)] + [0] * 383 for text in texts], np.float32).reshape(-1, 384)


def chunk_rows(*texts: str, context: str = "") -> pl.DataFrame:
    return frame(
        [
            {
                "day": date(2024, 1, 1 + number),
                "provider": "chatgpt",
                "conversation_id": f"c{number}",
                "drawer_id": f"d{number}",
                "text": text,
                "context": context,
                "text_hash": short_hash(context, text, length=32),
            }
            for number, text in enumerate(texts)
        ],
        CHUNKS,
    )


NONE = frame([], VECTORS)


def test_a_row_for_every_chunk_in_order_and_equal_texts_once():
    model, chunks = Fake(), chunk_rows("aa", "b", "aa")
    rows = ensure_vectors(chunks, NONE, model)
    assert model.seen == ["aa", "b"]
    assert rows.schema == pl.Schema(VECTORS)
    assert rows["drawer_id"].to_list() == ["d0", "d1", "d2"]
    assert rows.select("day", "provider", "conversation_id", "text_hash").equals(
        chunks.select("day", "provider", "conversation_id", "text_hash")
    )
    assert rows["vector"].to_numpy()[:, 0].tolist() == [2, 1, 2]
    assert set(rows["model"]) == {"fake@1"}


def test_known_vectors_are_used_again_wherever_they_were():
    known = ensure_vectors(chunk_rows("aa", "b"), NONE, Fake())
    model = Fake()
    moved = known.with_columns(day=date(2020, 1, 1), conversation_id=pl.lit("elsewhere"))
    rows = ensure_vectors(chunk_rows("b", "new", "aa"), moved, model)
    assert model.seen == ["new"]
    assert rows["vector"].to_numpy()[:, 0].tolist() == [1, 3, 2]


def test_vectors_of_another_model_are_not():
    known = ensure_vectors(chunk_rows("aa"), NONE, Fake("other@1"))
    model = Fake()
    assert ensure_vectors(chunk_rows("aa"), known, model)["model"].to_list() == ["fake@1"]
    assert model.seen == ["aa"]


def test_the_context_is_embedded_before_the_text():
    model = Fake()
    ensure_vectors(chunk_rows("answer", context="question"), NONE, model)
    assert model.seen == ["question\nanswer"]
    assert passage_of("", "answer") == "answer"


def test_progress_runs_over_all_that_is_missing():
    texts = [f"text {number}" for number in range(300)]
    seen: list[tuple[int, int]] = []
    ensure_vectors(chunk_rows(*texts[:28]), NONE, Fake(), lambda done, total: seen.append((done, total)))
    assert seen == [(number, 28) for number in range(1, 29)]


def test_more_texts_than_one_slice():
    rows = frame(
        [{"drawer_id": f"d{n}", "text": "x" * n, "context": "", "text_hash": f"{n}"} for n in range(600)], CHUNKS
    )
    seen: list[tuple[int, int]] = []
    vectors = ensure_vectors(rows, NONE, Fake(), lambda done, total: seen.append((done, total)))
    assert vectors["vector"].to_numpy()[:, 0].tolist() == list(range(600))
    assert seen == [(number, 600) for number in range(1, 601)]


def test_no_chunks_no_rows():
    assert ensure_vectors(chunk_rows(), NONE, Fake()).equals(NONE)
