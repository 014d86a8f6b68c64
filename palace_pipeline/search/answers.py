"""From chunks that are near to messages that answer: ranked one by one, dated, with a verbatim quote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from palace_pipeline.search.corpus import Corpus, Days, Head, between, heads_of, messages_of, texts_of
from palace_pipeline.search.near import Near
from palace_pipeline.search.quotes import quote_of
from palace_pipeline.search.ranking import (
    ASKED,
    CONVERSATION_WORDS,
    HALF_LIFE_DAYS,
    MESSAGE_WORDS,
    NAMED,
    RECENT,
    Weights,
    Words,
    covered,
    share_of_words,
)
from palace_pipeline.search.rows import RowReader
from palace_pipeline.store.lake import Key
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.transcripts.terms import index_terms

_COVERED_BY, _COVERED_TOGETHER = 3, 20
"""The nearest chunks whose words count for the verdict: each by itself, and all together."""


@dataclass(slots=True, frozen=True)
class Hit:
    """One message.

    `message_index` counts the visible messages of its conversation from 0 (None for tool output and thinking), `seq` all
    its rows. `score` orders the hits, also across questions; `dense` (a cosine, None without a vector) and `lexical` (a
    share of the question's words, about 0 to 2) are its parts. `date`: the message's day in the display zone; `at`: its
    instant in UTC, or its naive time; None if unknown. `quote` is a slice of the message, `marks` are start and end of
    the matches in it (code points). `title`: the source's, '' if it has none; `name`: what
    people call the conversation, then the beginning of what was asked first. `page` is relative to the home, '' before it
    is written.
    """

    provider: str
    conversation_id: str
    message_index: int | None
    seq: int
    role: str
    speaker: str | None
    score: float
    dense: float | None
    lexical: float
    date: str | None
    at: str | None
    title: str
    name: str
    page: str
    wing: str | None
    room: str | None
    drawer_id: str
    quote: str
    marks: tuple[tuple[int, int], ...]

    def as_json(self) -> dict[str, Any]:
        """The hit as values that JSON knows."""
        return asdict(self)


@dataclass(slots=True, frozen=True, eq=False)
class Said:
    """A message (or a section of a document) in a chunk that is near; `place` of the chunk in the corpus."""

    row: Mapping[str, Any]
    place: int
    text: str
    words: Words

    @property
    def key(self) -> Key:
        return _key_of(self.row)


@dataclass(slots=True, frozen=True)
class Ranked:
    """A message with its score and the share of the question's words in it."""

    score: float
    share: float
    said: Said


class Answers:
    """The messages of the chunks near to one question."""

    def __init__(self, home: Path, rows: RowReader, corpus: Corpus, near: Near, weights: Weights, days: Days) -> None:
        self._home = home
        self._rows = rows
        self._near = near
        self._heads: dict[Key, Head] = {}
        self._weights = weights
        self._days = days
        self._chunks = corpus.chunks[near.places]
        self._placed = dict(zip(near.places, self._chunks.iter_rows(named=True), strict=True))

    def ranked(self, role: str | None = None, recent: date | None = None) -> list[Ranked]:
        """Each message once, with the best of its chunks, best first; only what one role said, and of the days asked.

        `recent`: the day to which what is younger counts more.
        """
        best: dict[tuple[str, str, int], Ranked] = {}
        for said in self.said:
            if not self.wanted(said, role):
                continue
            ranked = self.rank(said)
            place = (*said.key, said.row["seq"])
            if place not in best or best[place].score < ranked.score:
                best[place] = ranked
        if recent is not None:
            best = {place: self._aged(one, recent) for place, one in best.items()}
        return sorted(best.values(), key=lambda ranked: -ranked.score)

    def _aged(self, ranked: Ranked, today: date) -> Ranked:
        day = self.day(ranked.said)
        bonus = RECENT * 0.5 ** (max((today - day).days, 0) / HALF_LIFE_DAYS) if day is not None else 0.0
        return replace(ranked, score=ranked.score + bonus)

    def wanted(self, said: Said, role: str | None) -> bool:
        """Is this of the role and of the days that are asked for?"""
        if role is not None and said.row["role"] != role:
            return False
        return not self._days.limited or self._days.holds(self.day(said))

    def rank(self, said: Said) -> Ranked:
        """A message with its score."""
        share = share_of_words(said.words, self._weights, self._mean_length)
        score = self._near.score(said.place) + MESSAGE_WORDS * share
        score += CONVERSATION_WORDS * self._held_by[said.key]
        score += ASKED if said.row["role"] == "user" else 0.0
        score += NAMED if said.row["speaker"] in self._named else 0.0
        return Ranked(score, share, said)

    @cached_property
    def _named(self) -> frozenset[str]:
        """The speakers that the question names."""
        speakers: set[str] = {said.row["speaker"] for said in self.said if said.row["speaker"]}
        asked = self._weights.terms.keys()
        return frozenset(speaker for speaker in speakers if not asked.isdisjoint(index_terms(speaker)))

    def coverage(self) -> tuple[float, float]:
        """The share of the question's weight that stands in one of the nearest chunks, and in the nearest together, 0 to 1.
        The title of its conversation counts as a chunk's own words."""
        near = {place: self._placed[place] for place in self._near.places[:_COVERED_TOGETHER]}
        self._read_heads({_key_of(chunk): chunk["day"] for chunk in near.values()})
        titles = {key: Words.of(head.title, self._weights) for key, head in self._heads.items()}
        words = {place: [titles[key]] if (key := _key_of(chunk)) in titles else [] for place, chunk in near.items()}
        for said in self.said:
            if said.place in words:
                words[said.place].append(said.words)
        alone = [covered(these, self._weights) for these in list(words.values())[:_COVERED_BY]]
        return max(alone, default=0.0), covered([one for these in words.values() for one in these], self._weights)

    def hits(self, ranked: Sequence[Ranked], also: Mapping[str, float] = MappingProxyType({})) -> list[Hit]:
        """What is shown of messages; `also`: terms beside the question's that are marked, with their weights."""
        keys = {one.said.key: one.said.row["day"] for one in ranked}
        self._read_heads(keys)
        pages = pages_of(self._home, keys)
        return [self._hit(one, pages, also) for one in ranked]

    def _hit(self, ranked: Ranked, pages: Mapping[Key, str], also: Mapping[str, float]) -> Hit:
        said, row, chunk = ranked.said, ranked.said.row, self._placed[ranked.said.place]
        quote = quote_of(said.text, {**self._weights.terms, **self._weights.characters, **also})
        day, dense = self.day(said), self._near.dense(said.place)
        return Hit(
            provider=row["provider"],
            conversation_id=row["conversation_id"],
            message_index=row["message_index"] if row["visible"] else None,
            seq=row["seq"],
            role=row["role"],
            speaker=row["speaker"],
            score=round(ranked.score, 4),
            dense=None if dense is None else round(dense, 4),
            lexical=round(ranked.share, 4),
            date=None if day is None else day.isoformat(),
            at=moment_text(row["created_at"], row["local_time"]),
            title=self._head(said).title,
            name=self._head(said).name,
            page=pages.get(said.key, ""),
            wing=chunk["wing"],
            room=chunk["room"],
            drawer_id=chunk["drawer_id"],
            quote=quote.text,
            marks=quote.marks,
        )

    def day(self, said: Said) -> date | None:
        """The day of a message in the display zone; None if it is not known."""
        row = said.row
        # Whether the conversation has a date matters only where the message has none.
        dated = row["created_at"] is None and row["local_time"] is None and self._head(said).dated
        return self._days.day_of(row["created_at"], row["local_time"], row["day"], dated)

    def _head(self, said: Said) -> Head:
        """The head of the conversation of a message."""
        self._read_heads({said.key: said.row["day"]})
        return self._heads[said.key]

    def _read_heads(self, days: Mapping[Key, date]) -> None:
        """Have the heads of conversations, each filed under its day, in `_heads`."""
        new = [(day, key) for key, day in days.items() if key not in self._heads]
        if new:
            found = heads_of(self._rows, new)
            self._heads |= {key: found.get(key, Head()) for _, key in new}

    @cached_property
    def _held_by(self) -> dict[Key, float]:
        """What share of the question's weight the near chunks of each conversation hold together, 0 to 1."""
        texts: dict[Key, list[Words]] = {}
        for said in self.said:
            texts.setdefault(said.key, []).append(said.words)
        return {key: covered(these, self._weights) for key, these in texts.items()}

    @cached_property
    def _mean_length(self) -> float:
        return float(np.mean([said.words.length for said in self.said])) if self.said else 1.0

    @cached_property
    def said(self) -> list[Said]:
        """Every message of the near chunks, once a chunk; in the order of these."""
        chunks = self._placed.values()
        messages = messages_of(self._rows, {(chunk["day"], _key_of(chunk)) for chunk in chunks})
        documents = [chunk["kind"] == "document" for chunk in chunks]
        pieces = texts_of(self._rows, self._chunks.filter(documents)) if any(documents) else {}
        out: list[Said] = []
        for place, chunk in self._placed.items():
            rows = messages.get(_key_of(chunk))
            if rows is None:
                continue
            for row in between(rows, chunk["first_seq"], chunk["last_seq"]).iter_rows(named=True):
                if _belongs(row, chunk["kind"]):
                    # A section of a document or an attachment is found for its own text, not for all of the file's.
                    text = pieces.get(chunk["drawer_id"]) or row["text"] or ""
                    if text.strip():
                        out.append(Said(row, place, text, Words.of(text, self._weights)))
        return out


def _key_of(row: Mapping[str, Any]) -> Key:
    return (row["provider"], row["conversation_id"])


def _belongs(row: Mapping[str, Any], kind: str) -> bool:
    """Chunks of talk hold what people see; between its messages lie rows that are no part of them."""
    return bool(row["visible"]) if kind in ("exchange", "people") else True


def moment_text(created_at: datetime | None, local_time: str | None) -> str | None:
    if created_at is None:
        return local_time
    return created_at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def pages_of(home: Path, keys: Iterable[Key]) -> dict[Key, str]:
    """Where the pages of conversations lie, by the ledger."""
    ledger = Ledger.reading(home / "ledger.sqlite")
    if ledger is None:
        return {}
    try:
        found = {key: ledger.conversation(key) for key in keys}
    finally:
        ledger.close()
    return {key: row["page"] for key, row in found.items() if row is not None and row["page"]}
