"""Is this in the archive already? Chunks whose text is nearly the same, by the likeness of their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Unpack

import numpy as np

from palace_pipeline.search.answers import pages_of
from palace_pipeline.search.corpus import between, heads_of, messages_of, texts_of
from palace_pipeline.search.engine import NO_WORD, Asked, Only, Searcher
from palace_pipeline.search.quotes import quote_of
from palace_pipeline.store.lake import Key

NEARLY_THE_SAME = 0.9
"""Likeness (cosine without the part that says the language) from which two texts count as the same. A paraphrase has about 0.5
to 0.8, another text on the same topic less."""
_KEY = ["provider", "conversation_id"]
_CONTEXT = 0.3
"""What title and question may take from the likeness of a chunk with its own text (0.26 was seen)."""


@dataclass(slots=True, frozen=True)
class Similar:
    """A chunk, with how like it is (-1 to 1). `date`: the first day of its messages (display zone), None if it is not known."""

    similarity: float
    provider: str
    conversation_id: str
    title: str
    page: str
    date: str | None
    wing: str | None
    room: str | None
    drawer_id: str
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


def _said(
    searcher: Searcher, asked: Asked, places: Sequence[int], heads: Mapping[Key, tuple[str, bool]]
) -> dict[str, str]:
    """The first day of the messages of some chunks, by drawer id."""
    chunks = asked.corpus.chunks[list(places)]
    keys = [(day, (p, c)) for day, p, c in chunks.select("day", *_KEY).unique().iter_rows()]
    messages = messages_of(searcher.rows, keys)
    found: dict[str, str] = {}
    for chunk in chunks.iter_rows(named=True):
        key = (chunk["provider"], chunk["conversation_id"])
        if key not in messages:
            continue
        dated = heads.get(key, ("", False))[1]
        rows = between(messages[key], chunk["first_seq"], chunk["last_seq"]).iter_rows(named=True)
        days = [asked.days.day_of(row["created_at"], row["local_time"], row["day"], dated) for row in rows]
        if known := [day for day in days if day is not None]:
            found[chunk["drawer_id"]] = min(known).isoformat()
    return found


def duplicates_of(
    searcher: Searcher, text: str, *, bar: float = NEARLY_THE_SAME, limit: int = 10, **only: Unpack[Only]
) -> Duplicates:
    """The chunks that are at least as like a text as `bar`. Of a long text the model reads the beginning only.

    The nearest are compared once more by their text alone: the vectors of the archive hold title and question as well.
    """
    asked = searcher.ask(text, as_passage=True, **only)
    if asked is None:
        return Duplicates(False, bar, (), NO_WORD)
    if asked.meaning.alike is None:
        return Duplicates(False, bar, (), asked.tried)
    likeness = np.where(asked.allowed, np.nan_to_num(asked.meaning.likeness, nan=-1.0), -1.0)
    near = [int(place) for place in np.argsort(-likeness, kind="stable")[:limit] if likeness[place] >= bar - _CONTEXT]
    rows = asked.corpus.chunks[near]
    texts = texts_of(searcher.rows, rows)
    compared = (
        asked.meaning.alike([texts.get(drawer_id, "") for drawer_id in rows["drawer_id"]]) if near else np.zeros(0)
    )
    keys = {(day, (p, c)) for day, p, c in rows.select("day", "provider", "conversation_id").iter_rows()}
    heads, pages = heads_of(searcher.rows, sorted(keys)), pages_of(searcher.home, {key for _, key in keys})
    said = _said(searcher, asked, near, heads)
    found: list[Similar] = []
    for value, row in zip(compared.tolist(), rows.iter_rows(named=True), strict=True):
        key = (row["provider"], row["conversation_id"])
        one = Similar(
            round(value, 4),
            *key,
            heads.get(key, ("", False))[0],
            pages.get(key, ""),
            said.get(row["drawer_id"]),
            row["wing"],
            row["room"],
            row["drawer_id"],
            quote_of(texts.get(row["drawer_id"], ""), asked.weights.terms).text,
        )
        found += [one] if value >= bar else []
    found.sort(key=lambda one: (-one.similarity, one.drawer_id))
    return Duplicates(bool(found), bar, tuple(found), asked.tried)
