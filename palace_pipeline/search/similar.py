"""Is this in the archive already? Chunks and messages whose text is nearly the same, by the likeness of their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Unpack

import numpy as np
import polars as pl

from palace_pipeline.search.answers import pages_of
from palace_pipeline.search.corpus import Head, between, heads_of, messages_of, texts_of
from palace_pipeline.search.engine import NO_WORD, Asked, Only, Searcher
from palace_pipeline.search.quotes import quote_of

NEARLY_THE_SAME = 0.9
"""Likeness (cosine without the part that says the language) from which two texts count as the same. A paraphrase has about 0.5
to 0.8, another text on the same topic less."""
_KEY = ["provider", "conversation_id"]
_CONTEXT = 0.3
"""What title and question may take from the likeness of a chunk with its own text (0.26 was seen)."""
_FEWEST = 10
"""Chunks whose messages are looked at, at least: a message of a chunk has that as its nearest, however little like it is as a
whole (one of 11 characters had it fourth)."""
_LONGER = 2
"""A message that is so many times longer or shorter is not the same text, and is not embedded to know it."""


@dataclass(slots=True, frozen=True)
class Similar:
    """A chunk, or a message in it, with how like it is (-1 to 1). `message_index` counts the visible messages from 0; None: it is
    the whole chunk, or no visible message. `date`: the first day of its messages (display zone), None if it is not known."""

    similarity: float
    provider: str
    conversation_id: str
    title: str
    name: str
    page: str
    date: str | None
    wing: str | None
    room: str | None
    drawer_id: str
    message_index: int | None
    quote: str


@dataclass(slots=True, frozen=True)
class Duplicates:
    """`duplicate`: whether anything is as like as the bar; `similar`: what is, most alike first."""

    duplicate: bool
    bar: float
    similar: tuple[Similar, ...]
    tried: str

    def as_json(self) -> dict[str, Any]:
        """The answer as values that JSON knows."""
        return {**asdict(self), "similar": [asdict(one) for one in self.similar]}


@dataclass(slots=True, frozen=True)
class _Text:
    """A text that is compared: of a chunk as a whole, or of one message in it."""

    drawer_id: str
    text: str
    message_index: int | None = None


def _rows(searcher: Searcher, chunks: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The messages of some chunks, by drawer id."""
    keys = [(day, (p, c)) for day, p, c in chunks.select("day", *_KEY).unique().iter_rows()]
    messages = messages_of(searcher.rows, keys)
    found: dict[str, list[dict[str, Any]]] = {}
    for chunk in chunks.iter_rows(named=True):
        of_conversation = messages.get((chunk["provider"], chunk["conversation_id"]))
        if of_conversation is not None:
            within = between(of_conversation, chunk["first_seq"], chunk["last_seq"])
            found[chunk["drawer_id"]] = within.rows(named=True)
    return found


def _day(asked: Asked, rows: Sequence[Mapping[str, Any]], *, dated: bool) -> str | None:
    """The first day of some messages of a conversation."""
    days = [asked.days.day_of(row["created_at"], row["local_time"], row["day"], dated) for row in rows]
    known = [day for day in days if day is not None]
    return min(known).isoformat() if known else None


def _compared(
    text: str,
    bar: float,
    chunks: pl.DataFrame,
    texts: Mapping[str, str],
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
) -> list[_Text]:
    """What a text is compared with once more: chunks (with their `likeness`) that may be as like as the bar, and of all those
    given the messages of about its length."""
    found: list[_Text] = []
    for drawer_id, likeness in chunks.select("drawer_id", "likeness").iter_rows():
        whole = texts.get(drawer_id, "")
        if likeness >= bar - _CONTEXT:
            found.append(_Text(drawer_id, whole))
        for row in rows.get(drawer_id, ()):
            said = row["text"] or ""
            if row["visible"] and said != whole and len(text) <= _LONGER * len(said) <= _LONGER**2 * len(text):
                found.append(_Text(drawer_id, said, row["message_index"]))
    return found


def duplicates_of(
    searcher: Searcher, text: str, *, bar: float = NEARLY_THE_SAME, limit: int = 10, **only: Unpack[Only]
) -> Duplicates:
    """What is at least as like a text as `bar`, of each chunk once: itself, or the message in it that is most like. Of a long text
    the model reads the beginning only.

    The nearest are compared once more by their text alone: the vectors of the archive hold title and question as well.
    """
    asked = searcher.ask(text, as_passage=True, **only)
    if asked is None:
        return Duplicates(False, bar, (), NO_WORD)
    if asked.meaning.alike is None:
        return Duplicates(False, bar, (), asked.tried(asked.missing))
    likeness = np.where(asked.allowed, np.nan_to_num(asked.meaning.likeness, nan=-1.0), -1.0)
    near = [int(place) for place in np.argsort(-likeness, kind="stable")[: max(limit, _FEWEST)] if asked.allowed[place]]
    chunks = asked.corpus.chunks[near].with_columns(likeness=pl.Series(likeness[near]))
    rows = _rows(searcher, chunks)
    compared = _compared(asked.query, bar, chunks, texts_of(searcher.rows, chunks), rows)
    values = asked.meaning.alike([one.text for one in compared]).tolist() if compared else []
    best: dict[str, tuple[float, _Text]] = {}
    for value, one in zip(values, compared, strict=True):
        if value >= bar and (one.drawer_id not in best or value > best[one.drawer_id][0]):
            best[one.drawer_id] = (value, one)
    chunks = chunks.filter(pl.col("drawer_id").is_in(list(best)))
    keys = {(day, (p, c)) for day, p, c in chunks.select("day", *_KEY).iter_rows()}
    heads, pages = heads_of(searcher.rows, sorted(keys)), pages_of(searcher.home, {key for _, key in keys})
    found: list[Similar] = []
    for row in chunks.iter_rows(named=True):
        key, drawer_id = (row["provider"], row["conversation_id"]), row["drawer_id"]
        value, one = best[drawer_id]
        head = heads.get(key, Head())
        said = rows.get(drawer_id, [])
        if one.message_index is not None:
            said = [message for message in said if message["visible"] and message["message_index"] == one.message_index]
        found.append(
            Similar(
                similarity=round(value, 4),
                provider=key[0],
                conversation_id=key[1],
                title=head.title,
                name=head.name,
                page=pages.get(key, ""),
                date=_day(asked, said, dated=head.dated),
                wing=row["wing"],
                room=row["room"],
                drawer_id=drawer_id,
                message_index=one.message_index,
                quote=quote_of(one.text, asked.weights.terms).text,
            )
        )
    found.sort(key=lambda one: (-one.similarity, one.drawer_id))
    return Duplicates(bool(found), bar, tuple(found[:limit]), asked.tried(asked.missing))
