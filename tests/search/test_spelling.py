"""A misspelt word of a question finds what the right one finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.search import spelling
from palace_pipeline.store.lexical import LexicalIndex, LexicalReader, LexicalRow, open_reader
from palace_pipeline.transcripts.terms import QueryTerms, one_letter_away, plain_form, query_terms
from tests.search.small_archive import Archive

WORDS = ("Deployment", "lanterns", "развертывание", "Überweisung", "φθινόπωρο")


def respelled(query: str, asked: QueryTerms, reader: LexicalReader) -> tuple[QueryTerms, tuple[str, ...]]:
    return spelling.respelled(query, asked, reader, lambda _: [" ".join(WORDS)])


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> LexicalReader:
    path = tmp_path_factory.mktemp("index") / "lexical"
    row = LexicalRow(
        "a", " ".join(WORDS), "marmalade", "Kaleidoscopes", "chatgpt", "one", "w", "general", "exchange", ("user",), 1
    )
    with LexicalIndex(path) as index:
        index.upsert([row])
    opened = open_reader(path)
    assert opened is not None
    return opened


@pytest.mark.parametrize(
    ("slip", "word"),
    [
        ("deploymnet", "deployment"),
        ("Depoyment", "deployment"),
        ("deploymentt", "deployment"),
        ("lenterns", "lantern"),
        ("разветрывание", "развертывание"),
        ("überweisnug", "überweisung"),
    ],
)
def test_a_slip_is_read_as_what_the_archive_has(reader: LexicalReader, slip: str, word: str) -> None:
    terms, slips = respelled(f"the {slip}?", query_terms(f"the {slip}?"), reader)
    assert (terms.weights, slips) == (query_terms(word).weights, (slip,))


@pytest.mark.parametrize("word", ["deployment", "lantern", "marmalade", "kaleidoscope", "xylophone", "lanter5", "lamp"])
def test_what_stands_somewhere_or_is_nothing_like_it_stays(reader: LexicalReader, word: str) -> None:
    asked = query_terms(word)
    assert respelled(word, asked, reader) == (asked, ())


@given(st.data(), st.sampled_from([plain_form(word) for word in WORDS]))
def test_every_single_slip_leads_back(reader: LexicalReader, data: st.DataObject, word: str) -> None:
    slip = data.draw(st.sampled_from(sorted(set(one_letter_away(word)))))
    asked = query_terms(slip)
    if len(slip) >= 6 and not any(map(reader.holds, asked.weights)):
        terms, slips = respelled(slip, asked, reader)
        assert terms.weights.keys() == query_terms(word).weights.keys()
        assert slips == (slip,)


def test_the_stem_of_a_word_that_nobody_wrote_is_no_reading(reader: LexicalReader) -> None:
    asked = query_terms("deploying")  # stands there as deployment, by its stem
    assert respelled("deploying", asked, reader) == (asked, ())
    asked = query_terms("deplyoing")  # deploying is a letter away, and nobody wrote it
    assert respelled("deplyoing", asked, reader) == (asked, ())


def test_a_search_finds_and_says_it(archive: Archive) -> None:
    right, slip = archive.searcher().search("copper lantern"), archive.searcher().search("copper latnern")
    assert (slip.verdict, [hit.seq for hit in slip.hits]) == (right.verdict, [hit.seq for hit in right.hits])
    assert (slip.slips, right.slips) == (("latnern",), ())
    assert slip.hits[0].quote[slice(*slip.hits[0].marks[-1])] == right.hits[0].quote[slice(*right.hits[0].marks[-1])]


def test_no_index_no_slips(archive: Archive, tmp_path: Path) -> None:
    (archive.home / "lexical").rename(tmp_path / "gone")
    assert archive.searcher().search("copper latnern").slips == ()
