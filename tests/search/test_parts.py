"""The parts of search that are pure: likeness without language, ranking, quotes."""

from __future__ import annotations

import json
import math
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.search import languages
from palace_pipeline.search.languages import Languages, Passages
from palace_pipeline.search.quotes import QUOTE_LENGTH, quote_of
from palace_pipeline.search.ranking import Weights, Words, covered, share_of_words, verdict_of, weigh
from palace_pipeline.transcripts.terms import asked_groups, index_terms, paired_characters, query_terms, related

RANDOM = np.random.default_rng(7)

# --- likeness ---------------------------------------------------------------------------------------------------------


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def test_likeness_is_the_cosine_of_what_is_left() -> None:
    directions = np.linalg.qr(RANDOM.normal(size=(16, 3)))[0].T.astype(np.float32)
    typical = (RANDOM.normal(size=16) * 0.1).astype(np.float32)
    vectors, query = unit(RANDOM.normal(size=(40, 16))), unit(RANDOM.normal(size=16))
    center = (vectors.sum(axis=0) + 50 * typical) / 90
    left = np.eye(16) - directions.T @ directions
    expected = unit((vectors - center) @ left) @ unit((query - center) @ left)
    got = Passages.of(vectors, Languages(directions, typical)).likeness(query)
    assert np.allclose(got, expected, atol=1e-5)


def test_language_does_not_outrank_meaning() -> None:
    meaning, english, chinese = np.eye(3, 12)
    directions = unit(np.array([english - chinese]))
    passages = unit(np.array([meaning + 3 * chinese, 0.5 * meaning + np.eye(12)[5] + 3 * english]))
    query = unit(meaning + 3 * english)
    assert (passages @ query).argmax() == 1  # as the model has it: the language decides
    prepared = Passages.of(passages, Languages(directions, np.zeros(12, np.float32)))
    assert prepared.likeness(query).argmax() == 0


def test_another_language_is_seen_whatever_is_said() -> None:
    meaning, english, chinese = np.eye(3, 12)
    passages = unit(np.array([meaning + chinese, np.eye(12)[5] + english, meaning + english, np.eye(12)[5] + chinese]))
    prepared = Passages.of(passages, Languages(unit(np.array([english - chinese])), np.zeros(12, np.float32)))
    rows = np.array([3, 2, 0, 1])
    assert prepared.in_other_language(unit(meaning + english), rows).tolist() == [True, False, True, False]
    assert prepared.in_other_language(unit(meaning + chinese), rows).tolist() == [False, True, False, True]


def test_an_archive_of_one_language_holds_no_other() -> None:
    english = np.eye(12)[1]
    passages = unit(RANDOM.normal(size=(30, 12)) * 0.1 + english)
    prepared = Passages.of(passages, Languages(unit(np.array([english - np.eye(12)[2]])), np.zeros(12, np.float32)))
    assert not prepared.in_other_language(unit(english), np.arange(30)).any()


def test_the_shipped_directions_belong_to_the_shipped_sentences(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Default:
        name = "multilingual-e5-small"
        key = "multilingual-e5-small@0"

    monkeypatch.setattr(languages, "measure", lambda *_: pytest.fail("ship anew: benchmarks/retrieval.py languages"))
    directions = languages.languages_of(Default()).directions  # type: ignore[arg-type]
    assert np.allclose(directions @ directions.T, np.eye(len(directions)), atol=1e-4)


def test_the_sentences_say_the_same_in_every_language() -> None:
    sentences = json.loads(resources.files("palace_pipeline.search").joinpath("parallel.json").read_text("utf-8"))
    assert len(sentences) == languages._DIRECTIONS + 1
    assert {len(texts) for texts in sentences.values()} == {8}
    assert {text.count("\n\n") for texts in sentences.values() for text in texts[1:]} == {0}


# --- words ------------------------------------------------------------------------------------------------------------


def test_a_rare_word_weighs_more_and_a_missing_one_most() -> None:
    held = {"kettl": 50, "lantern": 1}
    weights = weigh(query_terms("kettle lantern saucer"), lambda term: held.get(term, 0), 100)
    assert weights.terms["kettl"] == pytest.approx(math.log(1 + 50.5 / 50.5))
    assert weights.terms["kettl"] < weights.terms["lantern"] < weights.terms["saucer"]


def test_share_of_words_by_hand() -> None:
    weights = Weights({"a": 2.0, "b": 1.0}, {"猫": 1.0})
    words = Words({"a": 2}, frozenset("猫"), 10)
    # BM25 with k1 1.2, b .75, a text of mean length: 2 * 2 * 2.2 / (2 + 1.2), and the character, of a total of 4
    assert share_of_words(words, weights, 10) == pytest.approx((2 * 2 * 2.2 / 3.2 + 1) / 4)
    assert share_of_words(words, weights, 5) < share_of_words(words, weights, 10)
    assert share_of_words(words, Weights({}, {}), 10) == 0


def test_words_of_a_text_are_those_that_are_asked_for() -> None:
    weights = Weights({"slot": 1.0, "rpt_slot": 2.0}, {"库": 1.0})
    words = Words.of("rpt_slot of the 資料庫", weights)
    assert (dict(words.counts), words.characters) == ({"rpt_slot": 1, "slot": 1}, frozenset("库"))
    assert words.length == 7  # rpt_slot, rpt, slot, of, the, two pairs


def test_coverage_counts_texts_together() -> None:
    weights = Weights({"a": 3.0, "b": 1.0}, {})
    assert covered([Words({"a": 5}, frozenset(), 9)], weights) == 0.75
    assert covered([Words({"a": 5}, frozenset(), 9), Words({"b": 1}, frozenset(), 9)], weights) == 1
    assert covered([], weights) == 0


def test_verdicts() -> None:
    assert verdict_of(None, 1.0, 1.0, 3) == "found"
    assert verdict_of(0.6, 0.0, 0.0, 10) == "weak"  # in another language
    assert verdict_of(0.3, 0.6, 0.9, 6) == "found"
    assert verdict_of(0.3, 0.1, 0.1, 4) == "none"
    assert verdict_of(0.4, 1.0, 1.0, 1) == "found"  # one word, and it is there
    assert verdict_of(0.2, 0.0, 0.0, 1) == "none"


def test_across_languages_likeness_alone_may_tell() -> None:
    assert verdict_of(0.35, 0.0, 0.0, 5) == "none"  # where its words could stand and do not
    assert verdict_of(0.35, 0.0, 0.0, 5, across=True) == "found"
    assert verdict_of(0.28, 0.0, 0.0, 5, across=True) == "weak"
    assert verdict_of(0.2, 0.0, 0.0, 5, across=True) == "none"
    order = ["none", "weak", "found"]
    for low, high in ((-1.0, 0.0), (0.0, 0.3), (0.3, 0.9)):
        assert order.index(verdict_of(low, 0.2, 0.3, 5)) <= order.index(verdict_of(high, 0.2, 0.3, 5))
        assert order.index(verdict_of(0.3, 0.2, max(low, 0), 5)) <= order.index(verdict_of(0.3, 0.2, high, 5))


# --- quotes -----------------------------------------------------------------------------------------------------------


def test_a_short_message_is_quoted_whole_with_its_matches() -> None:
    quote = quote_of("We keep rpt_slot=12 for now.", {"rpt_slot": 1.0, "slot": 1.0, "rpt": 1.0})
    assert quote.text == "We keep rpt_slot=12 for now."
    assert [quote.text[start:end] for start, end in quote.marks] == ["rpt_slot"]


def test_a_chinese_word_is_one_mark_whatever_its_characters() -> None:
    quote = quote_of("這個資料庫要備份，資料很多", {"资料": 1.0, "料库": 1.0})
    assert [quote.text[start:end] for start, end in quote.marks] == ["資料庫", "資料"]


def test_a_long_message_is_quoted_around_what_was_asked() -> None:
    filler = "Nothing of note here, only words. " * 40
    text = filler + "The lantern by the kettle cost 40 euro. " + filler
    quote = quote_of(text, {"lantern": 2.0, "kettl": 1.0})
    assert "The lantern by the kettle cost 40 euro." in quote.text
    assert len(quote.text) <= QUOTE_LENGTH
    assert quote.text == text[quote.start : quote.start + len(quote.text)]
    assert text[quote.start - 1] in " \n"  # no word is cut
    assert {quote.text[start:end] for start, end in quote.marks} == {"lantern", "kettle"}


def test_without_a_match_the_beginning_is_quoted() -> None:
    text = "First sentence. " + "More and more. " * 60
    quote = quote_of(text, {"absent": 1.0})
    assert quote.text.startswith("First sentence.")
    assert quote.text.endswith(".")
    assert quote.marks == ()


@given(
    st.text(alphabet="ab .\n漢字。kettle", max_size=700),
    st.sets(st.sampled_from(["kettl", "ab", "汉字", "字"]), max_size=3),
)
def test_a_quote_is_always_a_slice_and_marks_lie_in_it(text: str, wanted: set[str]) -> None:
    quote = quote_of(text, dict.fromkeys(wanted, 1.0))
    assert quote.text == text[quote.start : quote.start + len(quote.text)]
    assert len(quote.text) <= QUOTE_LENGTH
    assert quote.text == quote.text.strip()
    assert bool(quote.text) == bool(text.strip())
    ends = [place for mark in quote.marks for place in mark]
    assert ends == sorted(ends)
    assert all(0 <= start < end <= len(quote.text) for start, end in quote.marks)


# --- what a text must hold to speak of all of a question --------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "text", "holds"),
    [
        ("数据库迁移", "我们要迁移数据库", True),
        ("数据库迁移", "数据已经迁走", False),
        ("PostgreSQL", "moved to postgresql last week", True),
        ("PostgreSQL", "MySQL only", False),
        ("gpt-4o", "GPT 4o is out", True),
        ("C++", "plain C", False),
        ("C++", "modern c++", True),
        ("我的猫", "猫很可爱", True),
        ("the kettle", "A kettle!", True),
    ],
)
def test_groups(query: str, text: str, holds: bool) -> None:
    held = set(index_terms(text)) | paired_characters(text)
    assert all(not held.isdisjoint(group) for group in asked_groups(query)) is holds


@given(st.text(max_size=60))
def test_a_text_holds_all_of_itself(text: str) -> None:
    held = set(index_terms(text)) | paired_characters(text)
    groups = asked_groups(text)
    assert all(not held.isdisjoint(group) for group in groups)
    assert bool(groups) is bool(query_terms(text))


@pytest.mark.parametrize(
    ("asked", "term", "alike"),
    [
        ("postgr", "postgresql", True),
        ("postgresql", "postgr", True),
        ("lantern", "lantren", True),
        ("lantern", "lanterns", True),
        ("kettle", "settle", False),  # another word
        ("model", "modal", False),  # too short for a slip
        ("data", "date", False),
        ("port", "portugal", False),
    ],
)
def test_related_forms(asked: str, term: str, alike: bool) -> None:
    assert related(asked, term) is alike
    assert related(term, asked) is alike
