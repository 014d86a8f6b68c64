"""Slips of the pen in a question: a word that stands nowhere is read as the one of the archive that is a letter away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from palace_pipeline.store.lexical import LexicalReader
from palace_pipeline.transcripts.terms import QueryTerms, index_terms, one_letter_away, plain_form, terms

_TRIED = 3
"""Terms that a word is compared with, the most frequent ones."""
_WORD = re.compile(r"[^\W\d_]+")

Texts = Callable[[str], Iterable[str]]
"""Some texts of the archive that hold a term."""


def respelled(query: str, asked: QueryTerms, reader: LexicalReader, texts: Texts) -> tuple[QueryTerms, tuple[str, ...]]:
    """The terms of a question with each misspelt one in the form that the archive has, and the words of the question that were
    read so. Of several forms the most frequent is taken; a word that stands anywhere, or is like no word of the archive,
    stays. Terms are stems: what is a letter away is a word of the texts, not the stem of one that nobody wrote."""
    slips: dict[str, str] = {}
    instead: dict[str, str] = {}
    for one in terms(query):
        if one.text in asked.weights and one.text not in slips and not reader.holds(one.text):
            word = query[one.start : one.end]
            meant = _meant(word, reader, texts)
            if meant is not None:
                slips[one.text], instead[one.text] = word, meant
    if not instead:
        return asked, ()
    weights: dict[str, float] = {}
    for term, weight in asked.weights.items():
        read_as = instead.get(term, term)
        weights[read_as] = max(weight, weights.get(read_as, 0.0))
    return QueryTerms(weights, asked.characters), tuple(slips.values())


def _meant(word: str, reader: LexicalReader, texts: Texts) -> str | None:
    forms: dict[str, set[str]] = {}
    for other in one_letter_away(plain_form(word)):
        for term in index_terms(other):
            forms.setdefault(term, set()).add(other)
    known = sorted(((reader.document_frequency(term), term) for term in forms), reverse=True)
    for frequency, term in known[:_TRIED]:
        if frequency and any(not forms[term].isdisjoint(_WORD.findall(plain_form(text))) for text in texts(term)):
            return term
    return None
