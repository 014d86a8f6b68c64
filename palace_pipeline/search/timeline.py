"""How a topic developed: the conversations that speak of it, oldest first, each with its first mention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from palace_pipeline.search.asking import topic_of
from palace_pipeline.search.engine import NO_WORD, Only, Searcher
from palace_pipeline.search.first import mention_json
from palace_pipeline.search.mentions import Found, Mention, Mentions
from palace_pipeline.search.ranking import Verdict
from palace_pipeline.store.lake import Key

MOST_CHUNKS = 3_000
"""Chunks whose messages are read: of a word that stands everywhere, those with the strictest mentions, and of these the
nearest in meaning."""


@dataclass(slots=True, frozen=True)
class Station:
    """A conversation that speaks of the topic: its first mention (in the strictest way it has), how many messages mention
    it (0: only what stands beside them does, as its title), and the days of the first and the last of them (display zone;
    None without a date)."""

    provider: str
    conversation_id: str
    name: str
    page: str
    first_date: str | None
    last_date: str | None
    mentions: int
    mention: Mention


@dataclass(slots=True, frozen=True)
class Timeline:
    """`stations`: oldest first, undated ones last. `months`: mentions by month (`YYYY-MM`), of all conversations, those that
    were left out for `limit` too. `left_out`: how many these are. `missing`: what could not be looked through, in words."""

    query: str
    topic: str
    verdict: Verdict
    stations: tuple[Station, ...]
    months: dict[str, int]
    left_out: int
    tried: str
    missing: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The timeline as values that JSON knows: a conversation is its hit with `how`, `mentions`, `first_date`, `last_date`."""
        return {
            "query": self.query,
            "topic": self.topic,
            "verdict": self.verdict,
            "conversations": [
                mention_json(one.mention)
                | {"mentions": one.mentions, "first_date": one.first_date, "last_date": one.last_date}
                for one in self.stations
            ],
            "months": self.months,
            "left_out": self.left_out,
            "tried": self.tried,
            "missing": list(self.missing),
        }


def timeline(searcher: Searcher, question: str, *, limit: int = 100, **only: Unpack[Only]) -> Timeline:
    """The conversations that speak of what a question asks about.

    Over `limit` those with the loosest mentions, and of these those with the fewest, are left out.
    What is only near in meaning counts as well: the topic may have had another name, or another language, then.
    """
    topic = topic_of(question)
    asked = searcher.ask(topic, **only)
    if asked is None:
        return Timeline(question, topic, "none", (), {}, 0, NO_WORD)
    mentions = Mentions(searcher, asked)
    places, cut = _read(mentions)
    by_message: dict[tuple[str, str, int], Found] = {}  # a long message lies in several chunks
    for found in mentions.look(places):
        known = by_message.get(spot := (*found.said.key, found.said.row["seq"]))
        if known is None or found.strictness < known.strictness:
            by_message[spot] = found
    by_conversation: dict[Key, list[Found]] = {}
    for found in by_message.values():
        by_conversation.setdefault(found.said.key, []).append(found)
    tried, missing = mentions.tried, mentions.missing
    if cut:
        tried, missing = f"{tried[:-1]}; {cut}.", (*missing, cut)
    by_conversation = {key: _said(these) or these for key, these in by_conversation.items()}
    months = Counter(f"{one.when.day:%Y-%m}" for these in by_conversation.values() for one in _said(these) if one.when)
    kept = sorted(by_conversation.values(), key=_weight, reverse=True)[:limit]
    kept.sort(key=_order)
    literal = any(one.how != "meaning" for these in by_conversation.values() for one in these)
    verdict: Verdict = "found" if literal else "weak" if by_conversation else "none"
    left_out = len(by_conversation) - len(kept)
    stations = tuple(map(_station, kept))
    return Timeline(question, topic, verdict, stations, dict(sorted(months.items())), left_out, tried, missing)


def _read(mentions: Mentions) -> tuple[list[int], str]:
    """The chunks whose messages are read, and which they are, in words, if others are not. Where nothing says how near a chunk
    is, they are taken all over the time: the oldest alone would show the beginning of a topic for the whole of it."""
    likeness = mentions.asked.meaning.likeness
    ways = (mentions.literal, mentions.related, mentions.meaning)
    kept: list[int] = []
    how = ""
    for places in ways:
        most = MOST_CHUNKS - len(kept)
        if len(places) <= most:
            kept += places
        elif not np.isnan(likeness[places]).all():
            kept += sorted(places, key=lambda place: -float(np.nan_to_num(likeness[place], nan=-1.0)))[:most]
            how = how or "the nearest in meaning"
        else:
            kept += [places[number * len(places) // most] for number in range(most)]
            how = how or "spread over all the time"
    total = sum(map(len, ways))
    return sorted(kept), f"only {len(kept):,} of {total:,} chunks were read, {how}" if how else ""


def _said(found: Sequence[Found]) -> list[Found]:
    """Those whose own words are a mention."""
    return [one for one in found if one.how != "beside"]


def _weight(found: Sequence[Found]) -> tuple[int, int]:
    return (-min(one.strictness for one in found), len(_said(found)))


def _order(found: Sequence[Found]) -> tuple[Any, ...]:
    dated = [one.when for one in found if one.when is not None]
    return (0, min(dated)) if dated else (1, found[0].said.key)


def _station(found: Sequence[Found]) -> Station:
    strictest = min(one.strictness for one in found)
    shown = min((one for one in found if one.strictness == strictest), key=lambda one: _order([one]))
    days = [one.when.day.isoformat() for one in found if one.when is not None]
    mention = shown.mention()
    return Station(
        mention.hit.provider,
        mention.hit.conversation_id,
        mention.hit.name,
        mention.hit.page,
        min(days, default=None),
        max(days, default=None),
        len(_said(found)),
        mention,
    )
