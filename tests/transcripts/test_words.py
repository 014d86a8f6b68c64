"""Words by hand, and the same number from Python, Polars and SQL."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.transcripts.words import count_words, words_of, words_sql

BY_HAND = [
    ("", 0),
    ("   \n\t", 0),
    ("one two  three\nfour", 4),
    ("don't stop, it’s fine", 4),
    ("state-of-the-art, snake_case and 3.14!", 4),
    ("the value is -- none ... !?", 4),
    ("我昨天讨论了向量数据库。", 11),
    ("API网关 timeout", 4),
    ("コーヒーを飲む", 7),
    ("ｶﾞｷﾞ", 2),
    ("が", 1),
    ("か\u3099", 1),
    ("안녕하세요 세계", 2),
    ("สวัสดี", 2),
    ("Привет, мир", 2),
    ("مرحبا بالعالم", 2),
    ("می\u200cخواهم", 1),
    ("नमस्ते दुनिया", 2),
    ("cafe\u0301 naïve", 2),
    ("😀 ❤️ 👨‍👩‍👧", 0),
    ("1️⃣ go", 2),
    ("a\u200bb", 2),
    ("\ufeffhello", 1),
    ("𠮷野家", 3),
    ("x\ud800y", 2),
]


@pytest.mark.parametrize(("text", "words"), BY_HAND)
def test_count_by_hand(text: str, words: int) -> None:
    assert count_words(text) == words


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


def sql_counts(connection: duckdb.DuckDBPyConnection, texts: list[str]) -> list[int]:
    rows = connection.execute(f"SELECT {words_sql('t')} FROM (SELECT unnest($1) AS t)", [texts]).fetchall()
    return [row[0] for row in rows]


def test_sql_counts_the_same_by_hand(connection: duckdb.DuckDBPyConnection) -> None:
    cases = [case for case in BY_HAND if "\ud800" not in case[0]]
    assert sql_counts(connection, [text for text, _ in cases]) == [words for _, words in cases]


def test_every_assigned_character_counts_the_same_in_polars_and_sql(connection: duckdb.DuckDBPyConnection) -> None:
    odd = {"Cs", "Cn", "Co"}  # Python knows fewer assigned characters than the two engines may
    characters = [c for c in map(chr, range(1, sys.maxunicode + 1)) if unicodedata.category(c) not in odd]
    pieces = ["".join(f"a{c}b {c}" for c in characters[i : i + 100]) for i in range(0, len(characters), 100)]
    frame = pl.DataFrame({"text": pieces}).select(words_of("text"))
    assert sql_counts(connection, pieces) == frame["text"].to_list()


anything = st.characters(codec="utf-8", exclude_categories=("Cn",))
mixed = st.text(st.one_of(st.sampled_from("ab1 '’.-_，。我们カーﾞก\u0301\u3099\u200d\ufe0f한글"), anything))


@settings(deadline=None)
@given(st.lists(mixed, max_size=20))
def test_all_three_agree(connection: duckdb.DuckDBPyConnection, texts: list[str]) -> None:
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String}).select(words_of("text"))
    assert [count_words(text) for text in texts] == frame["text"].to_list()
    if texts:
        assert sql_counts(connection, texts) == frame["text"].to_list()


@given(mixed, mixed)
def test_words_of_two_texts_add_up(one: str, two: str) -> None:
    assert count_words(f"{one}\n{two}") == count_words(one) + count_words(two)
