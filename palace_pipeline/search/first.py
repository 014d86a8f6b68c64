"""When was something first talked about? The earliest mention, and what was looked through to know that none is earlier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any, Unpack

import polars as pl

from palace_pipeline.model import VISIBLE_ROLES
from palace_pipeline.search.asking import topic_of
from palace_pipeline.search.corpus import Days
from palace_pipeline.search.engine import NO_WORD, Asked, Only, Searcher
from palace_pipeline.search.mentions import HOWS, LITERAL, SLACK, Found, How, Mention, Mentions
from palace_pipeline.search.ranking import Verdict
from palace_pipeline.store.lake import Lake, LakeDamaged

UNDATED = 20
"""Mentions without a date that are shown."""
_AT_ONCE = 200
_KEY = ["provider", "conversation_id"]


@dataclass(slots=True, frozen=True)
class Searched:
    """What was looked through: visible messages that the filters leave, their conversations, the days of the first and the
    last; `before`: those of days before the day of the mention. `missing`: what could not be looked through, in words."""

    messages: int = 0
    conversations: int = 0
    since: date | None = None
    until: date | None = None
    before: int = 0
    undated: int = 0
    missing: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Could all of it be looked through?"""
        return not self.missing


@dataclass(slots=True, frozen=True)
class FirstMention:
    """`first`: the earliest mention in the words of the question, or else in the strictest way that has any. `earlier`: what
    comes before it in looser ways, strictest first. `undated`: mentions of which nothing says when they were written, the
    strictest `UNDATED` of `undated_in_all`."""

    query: str
    topic: str
    verdict: Verdict
    first: Mention | None
    earlier: tuple[Mention, ...]
    undated: tuple[Mention, ...]
    searched: Searched
    tried: str
    undated_in_all: int = 0

    def as_json(self) -> dict[str, Any]:
        """The answer as values that JSON knows: a mention is its hit with `how`."""
        return {
            "query": self.query,
            "topic": self.topic,
            "verdict": self.verdict,
            "first": None if self.first is None else mention_json(self.first),
            "earlier": [mention_json(one) for one in self.earlier],
            "undated": [mention_json(one) for one in self.undated],
            "undated_in_all": self.undated_in_all,
            "searched": {
                **asdict(self.searched),
                "complete": self.searched.complete,
                "since": _iso(self.searched.since),
                "until": _iso(self.searched.until),
            },
            "tried": self.tried,
        }


def _iso(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def mention_json(mention: Mention) -> dict[str, Any]:
    """A mention as values that JSON knows."""
    return {"how": mention.how, **mention.hit.as_json()}


def first_mention(searcher: Searcher, question: str, **only: Unpack[Only]) -> FirstMention:
    """The first mention of what a question asks about.

    The strict ways are looked through whole before a looser one counts; each stops where nothing earlier can come.
    """
    topic = topic_of(question)
    asked = searcher.ask(topic, **only)
    if asked is None:
        return FirstMention(question, topic, "none", None, (), (), Searched(), NO_WORD)
    mentions = Mentions(searcher, asked)
    best: dict[How, Found] = {}
    undated = _earliest(mentions, mentions.literal, LITERAL, best)
    undated += _earliest(mentions, mentions.related, (*LITERAL, "related"), best)
    undated += _earliest(mentions, mentions.meaning, (*LITERAL, "meaning"), best)
    main = min((found for how, found in best.items() if how in LITERAL), key=_when, default=None)
    if main is None:
        main = next((best[how] for how in HOWS if how in best), None)
    looser = [found for how, found in best.items() if main and _when(found) < _when(main) and how not in LITERAL]
    undated.sort(key=lambda found: found.strictness)
    if main is None and undated:
        verdict: Verdict = "weak" if undated[0].how == "meaning" else "found"
    else:
        verdict = "none" if main is None else "weak" if main.how == "meaning" else "found"
    first = None if main is None else main.mention()
    return FirstMention(
        question,
        topic,
        verdict,
        first,
        tuple(found.mention() for found in sorted(looser, key=lambda found: found.strictness)),
        tuple(found.mention() for found in undated[:UNDATED]),
        _searched(searcher.lake, mentions, None if main is None or main.when is None else main.when.day),
        mentions.tried,
        len(undated),
    )


def _when(found: Found) -> Any:
    assert found.when is not None  # undated ones are kept apart
    return found.when


def _earliest(mentions: Mentions, places: Sequence[int], enough: Sequence[How], best: dict[How, Found]) -> list[Found]:
    """Put into `best` the earliest mention of each way; returns those without a date.

    Stops behind the day from which on none of the ways in `enough` can be earlier. What is filed under no day of its own
    is looked at in any case.
    """
    undated: list[Found] = []
    filed = [place for place in places if not mentions.undated(place)]
    loose = [place for place in places if mentions.undated(place)]
    for batch in (*_batches(filed), *_batches(loose)):
        known = [_when(found).day for how, found in best.items() if how in enough]
        if known and not mentions.undated(batch[0]) and mentions.day(batch[0]) > min(known) + SLACK:
            continue
        for found in mentions.look(batch):
            if found.when is None:
                undated.append(found)
            elif found.how not in best or _when(found) < _when(best[found.how]):
                best[found.how] = found
    return undated


def _batches(places: Sequence[int]) -> Iterator[Sequence[int]]:
    return (places[at : at + _AT_ONCE] for at in range(0, len(places), _AT_ONCE))


def _searched(lake: Lake, mentions: Mentions, day: date | None) -> Searched:
    """Counts of what the question was looked for in; `day`: of the mention."""
    asked = mentions.asked
    chunks = asked.corpus.chunks.filter(pl.Series(asked.allowed, dtype=pl.Boolean))
    missing = dict.fromkeys(mentions.missing)
    parts: list[pl.DataFrame] = []
    for month in lake.months("clean/messages"):
        try:
            parts.append(_of_month(lake, month, asked, chunks))
        except LakeDamaged as error:
            missing[str(error)] = None
    if not parts:
        return Searched(missing=tuple(missing))
    rows, zone = pl.concat(parts), asked.days.zone
    known = [moment.astimezone(zone).date() for moment in _ends(rows["created_at"])]
    written = rows.filter(pl.col("created_at").is_null())
    known += [date.fromisoformat(moment[:10]) for moment in _ends(written["local_time"])]
    written = written.filter(pl.col("local_time").is_null())
    known += _ends(written.filter("dated")["day"])
    return Searched(
        rows.height,
        rows.select(_KEY).unique().height,
        min(known, default=None),
        max(known, default=None),
        0 if day is None else rows.filter(Days(None, day - timedelta(days=1), zone).inside()).height,
        written.filter(~pl.col("dated")).height,
        tuple(missing),
    )


def _of_month(lake: Lake, month: str, asked: Asked, chunks: pl.DataFrame) -> pl.DataFrame:
    """The visible messages of a month file that the question was looked for in, without their texts."""
    columns = [*_KEY, "seq", "day", "role", "branch_active", "hidden_reason", "created_at", "local_time"]
    rows = lake.read("clean/messages", [month], columns=columns).join(chunks, on=_KEY, how="semi")
    if asked.filters.room is not None:  # a conversation has chunks in several rooms
        starts = chunks.select(*_KEY, "first_seq", "last_seq").sort("first_seq", "last_seq")
        rows = rows.sort("seq").join_asof(starts, left_on="seq", right_on="first_seq", by=_KEY, check_sortedness=False)
        rows = rows.filter(pl.col("seq") <= pl.col("last_seq"))
    heads = lake.read("clean/conversations", [month], columns=[*_KEY, "dated"])
    roles = [asked.filters.role] if asked.filters.role else sorted(VISIBLE_ROLES)
    seen = pl.col("branch_active") & pl.col("hidden_reason").is_null() & pl.col("role").is_in(roles)
    rows = rows.filter(seen).join(heads, on=_KEY, how="left").with_columns(pl.col("dated").fill_null(value=False))
    return rows.filter(asked.days.inside()) if asked.days.limited else rows


def _ends(values: pl.Series) -> list[Any]:
    """The least and the greatest of the values that there are."""
    known = values.drop_nulls()
    return [known.min(), known.max()] if len(known) else []
