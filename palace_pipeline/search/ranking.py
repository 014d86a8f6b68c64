"""How near a chunk, and each message in it, is to a question; and whether that is near enough to speak of a find.

All parts are absolute: likeness is a cosine, words count as a share of what the question's words could give at most. So
the scores of two questions can be compared, and a question in another language is not decided by a stray common word.
Weights and bounds were set on a mixed-language archive and looked at on English chats (`benchmarks/retrieval.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from palace_pipeline.transcripts.terms import QueryTerms, index_terms, paired_characters

Verdict = Literal["found", "weak", "none"]

CHUNK_WORDS = 0.3
MESSAGE_WORDS, CONVERSATION_WORDS = 0.25, 0.35
"""What the words count for: those of the message, and what of the question the near chunks of its conversation hold together
(evidence is often in two places)."""
ASKED = 0.08
"""What the user said is looked for more often than the answer to it."""
NAMED = 0.1
"""What it adds that the question names the speaker: who asks what somebody did mostly wants their own words."""
OTHER_LANGUAGE = 0.04
"""What it adds that a chunk is in another language than the question: it cannot hold the question's words."""
RECENT, HALF_LIFE_DAYS = 0.3, 180
"""What being said today adds, where recent things are asked for, and after how many days half of it is left."""

_K1, _B = 1.2, 0.75

_TYPICAL_LIKENESS = 0.35
_FOUND, _NONE = 0.8, -0.4
_FOUND_ACROSS, _NONE_ACROSS = 0.32, 0.26


@dataclass(frozen=True)
class Weights:
    """The question's terms and characters, each with its weight times its rarity in the archive (idf)."""

    terms: Mapping[str, float]
    characters: Mapping[str, float]

    @cached_property
    def total(self) -> float:
        return sum(self.terms.values()) + sum(self.characters.values())


def weigh(query: QueryTerms, document_frequency: Callable[[str], int], documents: int) -> Weights:
    """`document_frequency`: in how many of `documents` chunks a term stands. A word of no chunk weighs most: that it is
    missing tells a lot."""

    def rarity(term: str) -> float:
        held = document_frequency(term)
        return math.log(1 + (max(documents - held, 0) + 0.5) / (held + 0.5))

    return Weights(
        {term: weight * rarity(term) for term, weight in query.weights.items()},
        {character: rarity(character) for character in query.characters},
    )


@dataclass(slots=True, frozen=True)
class Words:
    """The words of one text, as far as ranking needs them."""

    counts: Mapping[str, int]
    characters: frozenset[str]
    length: int

    @classmethod
    def of(cls, text: str, weights: Weights) -> Words:
        terms = index_terms(text)
        counts = Counter(term for term in terms if term in weights.terms)
        characters = frozenset(paired_characters(text) & set(weights.characters)) if weights.characters else frozenset()
        return cls(counts, characters, len(terms))


def share_of_words(words: Words, weights: Weights, mean_length: float) -> float:
    """BM25 of a text as a share of the question's total weight: 0 nothing, about 1 every word once, at most 2.2."""
    if not weights.total:
        return 0.0
    norm = _K1 * (1 - _B + _B * words.length / max(mean_length, 1.0))
    score = sum(weights.terms[term] * count * (_K1 + 1) / (count + norm) for term, count in words.counts.items())
    return (score + math.fsum(weights.characters[character] for character in words.characters)) / weights.total


def covered(texts: Sequence[Words], weights: Weights) -> float:
    """What share of the question's weight stands in these texts together, 0 to 1."""
    if not weights.total:
        return 0.0
    held: set[str] = set().union(*(words.counts for words in texts))
    characters: set[str] = set().union(*(words.characters for words in texts))
    # fsum: sets have no order, and the same question must give the same score.
    sum_held = math.fsum([weights.terms[t] for t in held] + [weights.characters[c] for c in characters])
    return sum_held / weights.total


def verdict_of(
    likeness: float | None, coverage: float, together: float, terms: int, *, across: bool = False
) -> Verdict:
    """Was this talked about? `likeness`: of the nearest chunk (None without vectors); `coverage`: the share of the question's
    weight in one of the nearest chunks, `together`: in the nearest twenty, 0 to 1; `terms`: how many words it asks for (the
    more, the less of them can be hoped for in one place); `across`: the nearest chunk is in another language, so that its
    likeness alone may tell.

    A logistic rule, fitted on 249 questions of a mixed archive. Its honest limits, cross-validated there: 76 % of the
    answerable questions are called found and 4 % none; of those never discussed 28 % are called found, nearly all of them
    about people and things that do occur.
    """
    near = _TYPICAL_LIKENESS if likeness is None else likeness
    strength = 1.56 * near + 0.69 * coverage + 2.91 * together + 1.29 * math.log1p(terms) - 3.55
    if strength >= _FOUND or (across and near >= _FOUND_ACROSS):
        return "found"
    return "weak" if strength >= _NONE or (across and near >= _NONE_ACROSS) else "none"
