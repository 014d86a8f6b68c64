"""The analysis that the lexical index and its queries share."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.transcripts.terms import index_terms, paired_characters, plain_form, query_terms, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("向量检索", ["向量", "量检", "检索"]),
        ("用 Redis 做缓存", ["用", "redi", "做缓", "缓存"]),
        ("Deploying the databases", ["deploy", "the", "databas"]),
        ("rpt_slot", ["rpt_slot", "rpt", "slot"]),
        ("getUserName", ["getusernam", "get", "user", "name"]),
        ("os.path.join", ["os.path.join", "os", "path", "join"]),
        ("HZ-BJ-0218", ["hz-bj-0218", "hz", "bj", "0218"]),
        ("4,300 元", ["4300", "元"]),
        ("1.27.3", ["1.27.3", "1", "27", "3"]),
        ("C++ and C#", ["c++", "c", "and", "c#", "c"]),
        ("ＰｏｓｔｇｒｅＳＱＬ", ["postgresql", "postgr", "sql"]),
        ("資料庫", ["资料", "料库"]),
        ("Müller naïve", ["muller", "naiv"]),
        ("базы данных", ["баз", "дан"]),
        ("Кафка ёлка", ["кафк", "елк"]),
        ("ノート PC", ["ノー", "ート", "pc"]),
        ("서버를", ["서버", "버를"]),
        ("नमस्ते", ["नमस्ते"]),
        ("", []),
        ("?!…—", []),
    ],
)
def test_terms_of_each_script(text: str, expected: list[str]) -> None:
    assert index_terms(text) == expected


def test_traditional_and_simplified_are_one() -> None:
    assert index_terms("軟體開發與資料庫") == index_terms("软体开发与资料库")


def test_composed_and_decomposed_are_one() -> None:
    for word in ("café", "서버", "ガード", "й"):
        assert index_terms(unicodedata.normalize("NFD", word)) == index_terms(word)


def test_places_point_into_the_text_as_given() -> None:
    text = "㎏ ｶﾞｰﾄﾞ e\u0301te\u0301 rpt_slot 資料庫"
    found = {term.text: text[term.start : term.end] for term in terms(text)}
    assert found["rpt_slot"] == "rpt_slot"
    assert found["slot"] == "slot"
    assert found["资料"] == "資料"
    assert found["ガー"] == "ｶﾞｰ"
    assert found["ete"] == "e\u0301te\u0301"
    assert found["kg"] == "㎏"


def test_query_leaves_form_words_out() -> None:
    assert set(query_terms("How much did the laptop cost?").weights) == {"laptop", "cost"}
    assert set(query_terms("合同编号是多少").weights) == {"合同", "同编", "编号", "号是"}
    assert query_terms("合同编号是多少").weights["号是"] < 1
    assert set(query_terms("сколько стоил билет").weights) == {"сто", "билет"}


@pytest.mark.parametrize("query", ["what is the", "什么", "的", "是的", "の", "how much"])
def test_a_query_of_form_words_alone_keeps_them(query: str) -> None:
    assert query_terms(query)


@pytest.mark.parametrize("query", ["", "   ", "?!", "。。", "—"])
def test_a_query_without_words_asks_for_nothing(query: str) -> None:
    assert not query_terms(query)


def test_a_single_character_is_looked_up_as_such() -> None:
    assert query_terms("猫").characters == ("猫",)
    assert query_terms("猫怎么办").characters == ("猫",)
    assert "猫" in paired_characters("两只猫和 Redis")
    assert "R" not in paired_characters("Redis")


def test_a_two_character_word_is_one_term() -> None:
    assert query_terms("竞业").weights == {"竞业": 1.0}


@given(st.text(max_size=80))
def test_every_term_stands_where_it_says(text: str) -> None:
    for term in terms(text):
        assert 0 <= term.start < term.end <= len(text)
    assert [term.text for term in terms(text)] == index_terms(text)


@given(st.text(alphabet="aZé漢国カｶﾞ9_-. ㎏字", max_size=40))
def test_a_text_finds_itself(text: str) -> None:
    indexed = set(index_terms(text)) | paired_characters(text)
    query = query_terms(text)
    assert set(query.weights) <= indexed
    assert set(query.characters) <= indexed


def test_whether_a_word_keeps_its_accents_does_not_depend_on_its_neighbours() -> None:
    assert plain_form("φθινόπωρο") in plain_form("Überweisung im φθινόπωρο")
