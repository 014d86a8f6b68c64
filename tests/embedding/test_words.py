"""Tokens word by word: the offsets that the package gives for the whole text, whatever stands in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel

from palace_pipeline.embedding.model import EmbeddingModel
from palace_pipeline.embedding.tokens import read_tokenizer, words_of
from palace_pipeline.embedding.words import Words, encoded
from tests.embedding.own_model import WORDS, make_folder

ODD = "\u00a0\u3000\u0301\u00b4\u2581\ufffd\u0001\u007f\u0085\ufb01\uff5e~\u1100\u1161\u2026\u20ac\u4e2d\u0130\u212b\U0001f9ff"
"""Blanks, marks and signs that a normaliser turns into others, into several, or into nothing."""
TEXTS = st.lists(
    st.sampled_from(["word", "retry.", "retry", "`x = f(y)`", "\u2014", "it\u2019s", "", "", "hash" * 12, "red", *ODD])
    | st.text(st.sampled_from("abcXYZ019_.,:;!?()[]\"'-" + ODD), max_size=6),
    max_size=40,
).map(" ".join)


@pytest.fixture(scope="module")
def own_words(model: EmbeddingModel) -> Words:
    return words_of(model._tokenizer)  # pyright: ignore[reportPrivateUsage]


@settings(max_examples=500, deadline=None)
@given(text=TEXTS)
def test_the_default_models_words(model: EmbeddingModel, own_words: Words, text: str):
    if text:
        found, whole = own_words.offsets(text), encoded(model._tokenizer, text)  # pyright: ignore[reportPrivateUsage]
        np.testing.assert_array_equal(found, whole)


def test_the_default_models_words_are_learned(own_words: Words, monkeypatch: pytest.MonkeyPatch):
    text = "Some words come again , and some  words \u2014 again \u2014 do not . "
    before = own_words.offsets(text)
    monkeypatch.setattr(own_words, "_tokenizer", None)  # nobody asks it any more
    np.testing.assert_array_equal(own_words.offsets(text), before)
    with pytest.raises(AttributeError):
        own_words.offsets(text + "unseen")


@pytest.mark.parametrize("splits", [pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit()])
@pytest.mark.parametrize("normal", [None, normalizers.BertNormalizer(), normalizers.NFKC()])
@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
def test_words_of_other_tokenizers(splits: object, normal: object, text: str):
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = splits
    if normal is not None:
        tokenizer.normalizer = normal
    if text:
        np.testing.assert_array_equal(words_of(tokenizer).offsets(text), encoded(tokenizer, text))


def test_tokens_that_were_added_are_found_across_blanks(tmp_path: Path):
    tokenizer = read_tokenizer(make_folder(tmp_path / "m") / "tokenizer.json")
    tokenizer.add_tokens([AddedToken("red green", normalized=False)])
    text = "blue red green blue"
    assert words_of(tokenizer).offsets(text).tolist() == [[0, 4], [5, 14], [15, 19]]


@pytest.mark.parametrize(
    "splits",
    [
        pre_tokenizers.Punctuation(),
        pre_tokenizers.ByteLevel(),
        pre_tokenizers.Metaspace(split=False),
        pre_tokenizers.Metaspace(prepend_scheme="never"),
    ],
)
def test_a_tokenizer_that_reads_across_blanks_is_asked_as_a_whole(splits: object):
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = splits
    text = "red green red  green"
    assert words_of(tokenizer).offsets(text).tolist() == encoded(tokenizer, text).tolist()
