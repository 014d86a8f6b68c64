"""Every place where something was talked about: what `first` and `timeline` are made of.

Search ranks and stops; here all places count, so each way of finding is a rule and not a rank. From strict to loose: the
words as they were asked (`exact`), all of them in one message (`words`: any form of a word, in any order), all of them in
one exchange with its title (`together`), all of them beside what was said and none in it (`beside`: the title, the name of
who speaks, the question that is answered), other forms of the words (`related`), a likeness above a bar (`meaning`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import groupby
from typing import Literal

import numpy as np
import polars as pl

from palace_pipeline.search.answers import Answers, Hit, Said
from palace_pipeline.search.complete import not_in_corpus, not_in_index, pieces_of
from palace_pipeline.search.engine import Asked, Searcher
from palace_pipeline.search.near import Near
from palace_pipeline.search.ranking import Weights
from palace_pipeline.store.lake import Lake, LakeDamaged
from palace_pipeline.transcripts.terms import Groups, asked_groups, bare_phrase, index_terms, plain_form, related

How = Literal["exact", "words", "together", "beside", "related", "meaning"]
HOWS: tuple[How, ...] = ("exact", "words", "together", "beside", "related", "meaning")
LITERAL: tuple[How, ...] = ("exact", "words")

LIKENESS_BAR, LONE_BAR = 0.46, 0.36
"""Likeness from which a chunk may be a mention by its meaning alone: beside others that hold the words, and where none does. On
a mixed archive of 225 chunks one question in five has a false chunk above the first bar, two in three above the second; so
only the nearest count, however large the archive, and nothing but them is a weak answer."""
MOST_BY_MEANING = 20
_KEY = ["provider", "conversation_id"]
_TOGETHER = 200
"""Chunks whose messages are read at a time."""


@dataclass(slots=True, frozen=True, order=True)
class Moment:
    """When something was said, to put it in order: the day in the display zone; whether only the day is known (then it
    stands behind what has a time); the time on a clock of that zone."""

    day: date
    only_day: bool
    clock: datetime
    place: tuple[str, str, int]


@dataclass(slots=True, frozen=True)
class Mention:
    """A message that speaks of something, and how that was told. `when` is None if nothing says when it was written."""

    how: How
    when: Moment | None
    hit: Hit


@dataclass(slots=True, frozen=True, eq=False)
class Found:
    """A mention before its quote is made."""

    how: How
    when: Moment | None
    said: Said
    answers: Answers
    also: Mapping[str, float]

    @property
    def strictness(self) -> int:
        return HOWS.index(self.how)

    def mention(self) -> Mention:
        (hit,) = self.answers.hits([self.answers.rank(self.said)], self.also)
        return Mention(self.how, self.when, hit)


class Mentions:
    """The places of one question, chunk by chunk: `literal`, `related` and `meaning` are places in `asked.corpus.chunks` that
    may hold a mention of that kind (each of the strictest kind only), in the order of their conversations' days."""

    def __init__(self, searcher: Searcher, asked: Asked) -> None:
        self.asked = asked
        self._home, self._rows = searcher.home, searcher.rows
        self._groups = asked_groups(asked.query)
        characters = {group[0]: 1.0 for group in self._groups if len(group[0]) == 1}
        self._weights = Weights(asked.weights.terms, characters | dict(asked.weights.characters))
        self._phrase = _phrase(asked.query)
        literal = _holding(asked, self._groups)
        others = _holding(asked, self._groups, related=True) - literal
        likeness = np.where(asked.allowed, np.nan_to_num(asked.meaning.likeness, nan=-1.0), -1.0)
        near = np.argsort(-likeness, kind="stable")[:MOST_BY_MEANING]
        near = near[likeness[near] >= (LIKENESS_BAR if literal or others else LONE_BAR)]
        days = asked.corpus.chunks["day"].to_list()

        def ordered(places: Iterable[int]) -> list[int]:
            return sorted(places, key=lambda place: (days[place], place))

        self.literal, self.related = ordered(literal), ordered(others)
        self.meaning = ordered(set(map(int, near)) - literal - others)
        self._literal, self._others = literal, others
        self._undated = _in_undated(searcher.lake, asked.corpus.chunks)
        allowed = asked.corpus.chunks["drawer_id"].filter(pl.Series(asked.allowed, dtype=pl.Boolean)).to_list()
        self._lacking = (
            *not_in_index(asked.reader, allowed),
            *not_in_corpus(searcher.home, searcher.lake, asked.corpus, asked.filters.provider),
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """What could not be looked through so far, in words; what is not there at all as well."""
        return self.asked.lacking(self._lacking)

    @property
    def tried(self) -> str:
        """What was looked through, and how much may speak of it, in words."""
        ways = (
            f"in these words: {len(self.literal):,}",
            f"in other forms of them: {len(self.related):,}",
            f"by meaning: {len(self.meaning):,}",
        )
        return f"{self.asked.tried(self.missing)[:-1]}; chunks that may speak of it {', '.join(ways)}."

    def day(self, place: int) -> date:
        """The day under which a chunk's conversation is filed: none of its messages is earlier, if it is dated."""
        return self.asked.corpus.chunks["day"][place]

    def undated(self, place: int) -> bool:
        """Is the conversation of a chunk without a date, so that the day under which it is filed says nothing?"""
        return place in self._undated

    def look(self, places: Sequence[int]) -> Iterator[Found]:
        """The mentions in some chunks, each message once and in the strictest way, in the order of the chunks."""
        for start in range(0, len(places), _TOGETHER):
            batch = list(places[start : start + _TOGETHER])
            nothing = np.zeros(self.asked.corpus.chunks.height, np.float32)
            near = Near(batch, self.asked.meaning.likeness, nothing)
            answers = Answers(self._home, self._rows, self.asked.corpus, near, self._weights, self.asked.days)
            best: dict[tuple[str, str, int], Found] = {}
            for place, said in groupby(answers.said, key=lambda one: one.place):
                wanted = [one for one in said if answers.wanted(one, self.asked.filters.role)]
                for found in self._in_chunk(place, wanted, answers):
                    known = best.get(spot := (*found.said.key, found.said.row["seq"]))
                    if known is None or found.strictness < known.strictness:
                        best[spot] = found
            yield from best.values()

    def _in_chunk(self, place: int, said: Sequence[Said], answers: Answers) -> Iterator[Found]:
        if not said:
            return
        found = [one for one in said if self._count(one) == len(self._groups)]
        if found:
            for one in found:
                yield self._found("exact" if self._exact(one.text) else "words", one, answers)
        elif place in self._literal:
            most = max(said, key=self._count)
            yield self._found("together" if self._count(most) else "beside", most, answers)
        elif place in self._others:
            for one in said:
                other = self._other_forms(one.text)
                if other is not None:
                    yield self._found("related", one, answers, other)
        else:
            yield self._found("meaning", max(said, key=lambda one: answers.rank(one).score), answers)

    def _found(self, how: How, said: Said, answers: Answers, also: Mapping[str, float] | None = None) -> Found:
        return Found(how, self._moment(said, answers), said, answers, also or {})

    def _moment(self, said: Said, answers: Answers) -> Moment | None:
        day = answers.day(said)
        if day is None:
            return None
        created, written = said.row["created_at"], said.row["local_time"]
        spot = (*said.key, said.row["seq"])
        if created is not None:
            return Moment(day, False, created.astimezone(self.asked.days.zone).replace(tzinfo=None), spot)
        if written is not None:
            return Moment(day, False, datetime.fromisoformat(written).replace(tzinfo=None), spot)
        return Moment(day, True, datetime.combine(day, time()), spot)

    def _count(self, said: Said) -> int:
        """How many of the groups of the question a message holds."""
        held = said.words.counts.keys() | said.words.characters
        return sum(not held.isdisjoint(group) for group in self._groups)

    def _exact(self, text: str) -> bool:
        return self._phrase.search(plain_form(text)) is not None

    def _other_forms(self, text: str) -> dict[str, float] | None:
        """The other forms by which a message speaks of all that was asked, with the weights of what they stand for; None
        if it does not."""
        weights = {**self._weights.terms, **self._weights.characters}
        held = set(index_terms(text))
        also: dict[str, float] = {}
        for group in self._groups:
            if held.isdisjoint(group):
                forms = {term: weights.get(asked, 1.0) for asked in group for term in held if related(asked, term)}
                if not forms:
                    return None
                also |= forms
        return also


def _phrase(query: str) -> re.Pattern[str]:
    """The question as it stands, at the borders of words."""
    plain = bare_phrase(query)
    phrase = re.escape(plain)
    return re.compile(rf"(?<![^\W_]){phrase}(?![^\W_])" if plain.isascii() else phrase)


def _holding(asked: Asked, groups: Groups, *, related: bool = False) -> set[int]:
    """The places of chunks that hold the groups of a question, or one of them where other pieces of the same exchange (a long
    message lies in several) hold the rest."""
    if asked.reader is None:
        return set()
    if len(groups) < 2:
        return _places(asked, asked.reader.holding(groups, asked.filters, related=related))
    of_groups = [_places(asked, asked.reader.holding((group,), asked.filters, related=related)) for group in groups]
    piece = pieces_of(asked.corpus.chunks).to_list()
    pieces = set.intersection(*({piece[place] for place in places} for places in of_groups))
    return {place for place in set.union(*of_groups) if piece[place] in pieces}


def _places(asked: Asked, drawer_ids: Iterable[str]) -> set[int]:
    places = (asked.corpus.place_of.get(drawer_id) for drawer_id in drawer_ids)
    return {place for place in places if place is not None and asked.allowed[place]}


def _in_undated(lake: Lake, chunks: pl.DataFrame) -> frozenset[int]:
    """The places of chunks whose conversation nothing dates."""
    found = [chunks.clear().select(_KEY)]
    for month in lake.months("clean/conversations"):
        with suppress(LakeDamaged):  # whoever reads the titles of its conversations names it
            rows = lake.read("clean/conversations", [month], columns=[*_KEY, "dated"])
            found.append(rows.filter(~pl.col("dated")).select(_KEY))
    return frozenset(chunks.select(_KEY).with_row_index("place").join(pl.concat(found), on=_KEY, how="semi")["place"])


SLACK = timedelta(days=1)
"""A conversation is filed under the UTC day of its first message; in another zone that is at most a day away."""
