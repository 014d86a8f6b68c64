"""Hybrid search over the archive: by words (lexical index) and by meaning (vectors of the lake), in any language.

Chunks are found, messages are answered: each message of the nearest chunks is a hit of its own with a verbatim quote.
Search holds no lock and never opens Chroma, so it works while a run writes. What is missing (no model, no index, no
vectors yet) narrows it to the rest, and is said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, TextIO, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from palace_pipeline.exports.text import clean_text
from palace_pipeline.search.answers import Answers, Hit
from palace_pipeline.search.complete import months_gone
from palace_pipeline.search.corpus import Corpus, CorpusReader, Days, moved, texts_of
from palace_pipeline.search.languages import Embedder
from palace_pipeline.search.meaning import Load, MeaningReader
from palace_pipeline.search.near import Meaning, allowed_rows, nearest_chunks, shares_of_words
from palace_pipeline.search.ranking import Verdict, Weights, verdict_of, weigh
from palace_pipeline.search.rows import RowReader
from palace_pipeline.search.spelling import respelled
from palace_pipeline.settings import EmbeddingSettings, Settings
from palace_pipeline.store.lake import Key, Lake
from palace_pipeline.store.lexical import Filters, LexicalReader, StaleIndexError, commit_of, open_reader
from palace_pipeline.transcripts.terms import QueryTerms, plain_form, query_terms

DEFAULT_KINDS = ("exchange", "people", "document")
_POOL = 40
"""Chunks whose messages are looked at, at least; twice the hits that are asked for if that is more."""


_LOOKED_UP = 5
"""Chunks in which the spelling of a word is looked up."""
NO_WORD = "The question holds no word to look for."


class Only(TypedDict, total=False):
    """What is looked through. `since`, `until`: days in the display zone, inclusive. `kinds` of chunks: exchange, people,
    document, and on request tool and thinking, which are found by their words only."""

    wing: str | None
    room: str | None
    provider: str | None
    role: str | None
    since: date | None
    until: date | None
    kinds: Sequence[str]


@dataclass(slots=True, frozen=True)
class Found:
    """The hits of one conversation, best first."""

    provider: str
    conversation_id: str
    name: str
    page: str
    hits: tuple[Hit, ...]
    alike: tuple[Found, ...] = ()
    """Conversations whose best hit says nearly the same: they are folded into this one where people look, and only there."""


@dataclass(slots=True, frozen=True)
class SearchResult:
    """`verdict`: whether this was talked about; it never keeps hits back. `tried`: what was searched, in words."""

    query: str
    verdict: Verdict
    hits: list[Hit]
    tried: str
    missing: tuple[str, ...] = ()
    """What could not be looked through, in words; `tried` says it too."""
    slips: tuple[str, ...] = ()
    """Words of the question that stand nowhere and were read as words a letter away."""

    def by_conversation(self) -> list[Found]:
        """The hits grouped for people: conversations in the order of their best hit."""
        groups: dict[Key, list[Hit]] = {}
        for hit in self.hits:
            groups.setdefault((hit.provider, hit.conversation_id), []).append(hit)
        return [Found(*key, hits[0].name, hits[0].page, tuple(hits)) for key, hits in groups.items()]

    def folded(self) -> list[Found]:
        """The same, with those that say nearly the same as one before folded into it."""
        kept: list[tuple[frozenset[str], list[Found]]] = []
        for found in self.by_conversation():
            pieces = _pieces(found.hits[0].quote)
            like = next((group for other, group in kept if _alike(pieces, other)), None)
            if like is None:
                kept.append((pieces, [found]))
            else:
                like.append(found)
        return [replace(first, alike=tuple(rest)) for _, (first, *rest) in kept]


_PIECE = 5
_NEARLY = 0.8


def _pieces(text: str) -> frozenset[str]:
    plain = plain_form(text)
    return frozenset(plain[at : at + _PIECE] for at in range(max(1, len(plain) - _PIECE + 1)))


def _alike(a: frozenset[str], b: frozenset[str]) -> bool:
    """Do two quotes share four of five of their pieces?"""
    return len(a & b) >= _NEARLY * len(a | b)


@dataclass(slots=True, frozen=True, eq=False)
class Asked:
    """A question with all that it is asked of.

    By place in `corpus.chunks`: `allowed` (which chunks the filters leave), `meaning`, and `words` (how near by words; 0 where
    that was not asked for). `troubles`: what could not be looked through, in words; `gone`: what is not there at all; `slips`:
    words that were read as others (`spelling.respelled`).
    """

    query: str
    weights: Weights
    filters: Filters
    days: Days
    corpus: Corpus
    allowed: NDArray[np.bool_]
    meaning: Meaning
    words: NDArray[np.float32]
    reader: LexicalReader | None
    troubles: tuple[str, ...]
    gone: tuple[str, ...]
    slips: tuple[str, ...]
    unread: Mapping[tuple[str, str], str]
    """What could not be read since the question was asked (`RowReader.unread`)."""

    @property
    def missing(self) -> tuple[str, ...]:
        """What could not be looked through so far, in words."""
        return self.lacking(self.gone)

    def lacking(self, gone: Iterable[str]) -> tuple[str, ...]:
        """`missing`, by somebody who has looked closer at what is not there."""
        return tuple(dict.fromkeys([*self.troubles, *gone, *self.unread.values()]))

    def tried(self, missing: Sequence[str]) -> str:
        """What was searched, in words."""
        chunks = self.corpus.chunks.height
        if not chunks and not self.gone:
            return "The archive holds nothing that could be searched yet."
        allowed = int(self.allowed.sum())
        left = f"{allowed:,} of {chunks:,} chunks" if allowed < chunks else f"{chunks:,} chunks"
        if allowed < chunks and self.filters.kinds == DEFAULT_KINDS:
            left += " (without tool output and thinking)"
        return "; ".join([f"Searched {left}", *(trouble.removesuffix(".") for trouble in missing)]) + "."


def load_default_model(settings: EmbeddingSettings) -> Embedder:
    """The configured model; its module is imported here only, since that is slow."""
    from palace_pipeline.embedding.model import load_model

    return load_model(settings)


class Searcher:
    """Answers questions about one home. Keeps what it has read, and looks at each question whether it has changed."""

    def __init__(self, home: Path, settings: Settings, load: Load = load_default_model) -> None:
        self.home = home
        self._settings = settings
        self.lake = Lake(home / "lake")
        self.rows = RowReader(self.lake)
        self._corpus = CorpusReader(self.lake)
        self._meaning = MeaningReader(home, settings.embedding, load)
        self._lexical: tuple[object, LexicalReader] | None = None
        self._allowed: tuple[Corpus, Filters, NDArray[np.bool_]] | None = None
        self._gone: tuple[Corpus, tuple[str, ...]] | None = None
        self._pool = ThreadPoolExecutor(2)

    def search(self, query: str, *, limit: int = 10, recent: date | None = None, **only: Unpack[Only]) -> SearchResult:
        """The messages nearest to a question, best first, at most `limit`; with `recent` (today, as a rule) those of the last
        months before others that are as near."""
        asked = self.ask(query, by_words=True, **only)
        if asked is None:
            return SearchResult(clean_text(query).strip(), "none", [], NO_WORD)
        near = nearest_chunks(asked.meaning, asked.words, asked.allowed, max(_POOL, 2 * limit))
        answers = Answers(self.home, self.rows, asked.corpus, near, asked.weights, asked.days)
        ranked = answers.ranked(asked.filters.role, recent)
        wanted = len(asked.weights.terms) + len(asked.weights.characters)
        verdict = verdict_of(near.nearest, *answers.coverage(), wanted, across=near.across) if ranked else "none"
        hits = answers.hits(ranked[:limit])
        return SearchResult(asked.query, verdict, hits, asked.tried(asked.missing), asked.missing, asked.slips)

    def corpus(self) -> Corpus:
        """The chunks as they are now."""
        return self._corpus.read()

    def ask(
        self, query: str, *, as_passage: bool = False, by_words: bool = False, **only: Unpack[Only]
    ) -> Asked | None:
        """A question made ready: what it is compared with, and how near each chunk is in meaning; None without a word.

        `as_passage`: it is no question but a text like those of the archive; `by_words`: how near each chunk is by its words,
        too, of which misspelt ones are read as meant.
        """
        query = clean_text(query).strip()
        terms = query_terms(query)
        if not terms:
            return None
        days = Days(only.get("since"), only.get("until"), self._settings.zone)
        self.rows.unread.clear()
        filters = _filters(days, only)
        known = bool(self.lake.months("clean/vectors"))
        # Vector and words are looked for beside the rest: the model, the index and the vectors hold no lock meanwhile.
        vector = self._pool.submit(self._meaning.vector, query, as_passage=as_passage) if known else None
        corpus = self._corpus.read()
        reader, no_words = self._reader()
        allowed = self._left_by(filters, corpus)
        unread = list(corpus.unread)
        if days.limited:
            spans = self._corpus.spans()
            allowed = allowed & days.between(spans)
            unread += (trouble for trouble in spans.unread if trouble not in unread)
        slips: tuple[str, ...] = ()
        if by_words and reader:
            terms, slips = respelled(query, terms, reader, partial(self._holding, reader, corpus))
        frequency = reader.document_frequency if reader else lambda _: 0
        weights = weigh(terms, frequency, reader.count() if reader else corpus.chunks.height)
        looking = (
            self._pool.submit(shares_of_words, reader, terms, weights, filters, corpus, allowed) if by_words else None
        )
        meaning, no_meaning = self._meaning.of(corpus, query, vector, as_passage=as_passage)
        words = looking.result() if looking is not None else np.zeros(corpus.chunks.height, np.float32)
        troubles = tuple(trouble for trouble in (*unread, no_words, no_meaning) if trouble)
        gone = self._months_gone(corpus)
        return Asked(
            query,
            weights,
            filters,
            days,
            corpus,
            allowed,
            meaning,
            words,
            reader,
            troubles,
            gone,
            slips,
            self.rows.unread,
        )

    def _left_by(self, filters: Filters, corpus: Corpus) -> NDArray[np.bool_]:
        """`allowed_rows`; who asks twice mostly asks with the same filters."""
        kept = self._allowed
        if kept is None or kept[0] is not corpus or kept[1] != filters:
            self._allowed = kept = (corpus, filters, allowed_rows(corpus, filters))
        return kept[2]

    def _holding(self, reader: LexicalReader, corpus: Corpus, term: str) -> Iterator[str]:
        """The texts of some chunks that hold a term."""
        hits = reader.search(QueryTerms({term: 1.0}, ()), _LOOKED_UP, boosts={"body": 1.0})
        places = [corpus.place_of[drawer_id] for drawer_id, _ in hits if drawer_id in corpus.place_of]
        yield from texts_of(self.rows, corpus.chunks[places]).values()

    def _months_gone(self, corpus: Corpus) -> tuple[str, ...]:
        """`months_gone`; a corpus is another when files have come or gone."""
        if self._gone is None or self._gone[0] is not corpus:
            self._gone = (corpus, tuple(months_gone(self.home, self.lake)))
        return self._gone[1]

    def _reader(self) -> tuple[LexicalReader | None, str | None]:
        commit = commit_of(self.home / "lexical")
        if self._lexical is None or not commit or self._lexical[0] != commit:
            try:
                reader = open_reader(self.home / "lexical")
            except StaleIndexError as error:
                return None, f"not by words: {error}"
            if reader is None:
                return None, "not by words: there is no lexical index"
            self._lexical = (commit, reader)
        return self._lexical[1], None


def _filters(days: Days, only: Only) -> Filters:
    """The lexical index knows the UTC days of a chunk: a day of slack on each side covers every zone."""
    since, until = (
        None if day is None else int(f"{moved(day, slack):%Y%m%d}")
        for day, slack in ((days.since, -1), (days.until, 1))
    )
    return Filters(
        provider=only.get("provider"),
        wing=only.get("wing"),
        room=only.get("room"),
        role=only.get("role"),
        kinds=tuple(only.get("kinds", DEFAULT_KINDS)),
        since=since,
        until=until,
    )


# --- palace search --jsonl --------------------------------------------------------------------------------------------


def search_lines(source: Iterable[str], out: TextIO, searcher: Searcher) -> int:
    """`{"id", "query", "limit"}` a line in, `{"id", "verdict", "hits": [...]}` a line out, at once and in order; returns
    how many lines were answered by `{"id", "error"}`."""
    bad = 0
    for number, line in enumerate(source, 1):
        if not line.strip():
            continue
        answer = _answer(line, number, searcher)
        bad += "error" in answer
        out.write(json.dumps(answer) + "\n")
        out.flush()
    return bad


def _answer(line: str, number: int, searcher: Searcher) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {"id": None, "error": f"line {number} is not JSON"}
    if not isinstance(record, dict) or not isinstance(record.get("query"), str):
        return {"id": record.get("id") if isinstance(record, dict) else None, "error": f"line {number} has no query"}
    limit = record.get("limit", 10)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        return {"id": record.get("id"), "error": f"line {number}: limit is no positive whole number"}
    result = searcher.search(record["query"], limit=limit)
    return {"id": record.get("id"), "verdict": result.verdict, "hits": [hit.as_json() for hit in result.hits]}
