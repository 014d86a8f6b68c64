"""What another set of rooms would do to an archive: every drawer is filed again in memory, by the vectors that it has.

Reads the ledger (as a copy) and the lake; writes nothing. The model is asked for the texts of the rooms only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date
from heapq import nlargest
from typing import Any

import polars as pl

from palace_pipeline.embedding.model import load_model
from palace_pipeline.filing.overview import CROWDED, FEW
from palace_pipeline.model import KEY_SCHEMA
from palace_pipeline.planner import EVER, due, split_by_month
from palace_pipeline.rooms.classifier import Classifier, Filed, described, load_classifier, wing_of
from palace_pipeline.rooms.examples import FALLBACK
from palace_pipeline.search.corpus import Head, heads_of
from palace_pipeline.search.rows import RowReader
from palace_pipeline.settings import Settings, Wing
from palace_pipeline.stages.common import batches, gone, key_of
from palace_pipeline.stages.progress import report
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.home import Home
from palace_pipeline.store.lake import Lake
from palace_pipeline.store.ledger import Ledger

QUOTE = 160
"""Most characters of a quote."""
EXAMPLES = 8
_PER_MOVE = 2
"""Examples of one move, the surest ones."""


@dataclass(frozen=True, slots=True)
class Example:
    """A drawer that would move. `name`: what people call its conversation. `quote`: verbatim the beginning of its redacted
    text. `confidence`: of its new room."""

    before: str
    after: str
    confidence: float
    drawer_id: str
    day: str
    provider: str
    conversation_id: str
    title: str
    name: str
    page: str
    quote: str


@dataclass(frozen=True, slots=True)
class Change:
    """Drawers of a room (or wing) as they are filed now, and as they would be."""

    name: str
    now: int
    then: int


@dataclass(frozen=True, slots=True)
class Trial:
    """`drawers`: those that were filed again; `without_vector`: those that were not, and stay where they are; `gone`:
    conversations of which drawers, texts or title are not in the lake.

    `moves` and `wing_moves`: (from, to) -> drawers, largest first.
    """

    drawers: int
    without_vector: int
    moved: int
    conversations: int
    rooms: tuple[Change, ...]
    moves: dict[tuple[str, str], int]
    wings: tuple[Change, ...]
    wing_moves: dict[tuple[str, str], int]
    examples: tuple[Example, ...]
    gone: int = 0

    def room(self, name: str) -> Change:
        """One room of `rooms`; an empty one if nothing is or would be in it."""
        return next((room for room in self.rooms if room.name == name), Change(name, 0, 0))

    @property
    def general(self) -> Change:
        """What speaks for no room."""
        return self.room(FALLBACK["room"])

    @property
    def crowded(self) -> list[Change]:
        """Rooms that would take more than `CROWDED` of the drawers."""
        return [room for room in self.rooms if self.drawers >= FEW and room.then > CROWDED * self.drawers]


@dataclass(slots=True)
class _Tally:
    """What has been seen so far."""

    rooms: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    wings: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    talks: dict[tuple[str, str], date] = field(default_factory=dict[tuple[str, str], date])
    without_vector: int = 0
    gone: int = 0
    examples: dict[tuple[str, str], list[Example]] = field(default_factory=dict[tuple[str, str], list[Example]])


def what_if(home: Home, tried: Settings) -> Trial:
    """File all drawers of a home by the rooms and wings of other settings, and compare. Raises EmbeddingError."""
    tally = _Tally()
    with closing(Ledger.copy_of(home.ledger_path)) as ledger:
        rows = due(ledger, "drawers", EVER, recipes_of(home, ledger.forgotten()), force=True)
        found = ledger.rows("SELECT provider, conversation_id FROM conversations WHERE drawers_out != 'none'")
    with_drawers = {key_of(row) for row in found}
    work = [row for row in rows if not gone(row) and key_of(row) in with_drawers]
    if work:
        model = load_model(home.settings.embedding)
        classifier = load_classifier(tried, model)
        done = 0
        for month, of_month in split_by_month(work):
            for part in batches(of_month):
                keys = [key_of(row) for row in part]
                pages = {key_of(row): row["page"] or "" for row in part}
                _compare(home.lake, month, keys, pages, classifier, model.key, tried.wings, tally)
                done += len(part)
                report("filing", done, len(work))
    return Trial(
        drawers=tally.rooms.total(),
        without_vector=tally.without_vector,
        moved=sum(count for (before, after), count in tally.rooms.items() if before != after),
        conversations=len(tally.talks),
        rooms=_changes(tally.rooms, described(tried)),
        moves=_moves(tally.rooms),
        wings=_changes(tally.wings, ()),
        wing_moves=_moves(tally.wings),
        examples=_named(home.lake, tally, list(_chosen(tally.examples, _moves(tally.rooms)))),
        gone=tally.gone,
    )


def _compare(
    lake: Lake,
    month: str,
    keys: Sequence[tuple[str, str]],
    pages: Mapping[tuple[str, str], str],
    classifier: Classifier,
    model_key: str,
    wings: Sequence[Wing],
    tally: _Tally,
) -> None:
    """File the drawers of some conversations of a month again, and add what that gives to `tally`."""
    filed = lake.read("clean/drawers", [month], keys=keys)
    texts = lake.read("clean/chunks", [month], keys=keys, columns=["drawer_id", "text"])
    vectors = lake.read("clean/vectors", [month], keys=keys, columns=["drawer_id", "model", "vector"])
    of_model = vectors.filter(pl.col("model") == model_key).unique("drawer_id", keep="first", maintain_order=True)
    drawers = filed.join(texts, on="drawer_id", maintain_order="left").join(
        of_model.select("drawer_id", "vector"), on="drawer_id", maintain_order="left"
    )
    heads = {
        (head["provider"], head["conversation_id"]): head
        for head in lake.read("clean/conversations", [month], keys=keys).iter_rows(named=True)
    }
    texts = texts.filter(pl.col("drawer_id").is_in(filed["drawer_id"].implode()))
    there = _keys(filed) & heads.keys() - _keys(filed.join(texts, on="drawer_id", how="anti"))
    tally.gone += len(set(keys) - there)
    wanted = pl.DataFrame(sorted(there), schema=KEY_SCHEMA, orient="row")
    filed, drawers = (part.join(wanted, on=list(KEY_SCHEMA), how="semi") for part in (filed, drawers))
    if filed.is_empty():
        return
    tally.without_vector += filed.height - drawers.height
    places = classifier.classify(drawers["text"].to_list(), drawers["vector"].to_numpy())
    for row, place in zip(drawers.drop("vector").iter_rows(named=True), places, strict=True):
        key = (row["provider"], row["conversation_id"])
        head = heads[key]
        tally.wings[row["wing"], wing_of(head, wings)] += 1
        move = (row["room"], place.room)
        tally.rooms[move] += 1
        if move[0] == move[1]:
            continue
        tally.talks[key] = row["day"]
        kept = tally.examples.setdefault(move, [])
        kept.append(_example(row, head, place, pages[key]))
        tally.examples[move] = nlargest(_PER_MOVE, kept, key=lambda example: example.confidence)


def _keys(rows: pl.DataFrame) -> set[tuple[str, str]]:
    """The conversations that rows belong to."""
    return set(rows.select(list(KEY_SCHEMA)).unique().iter_rows())


def _example(row: Mapping[str, Any], head: Mapping[str, Any], place: Filed, page: str) -> Example:
    return Example(
        before=row["room"],
        after=place.room,
        confidence=round(place.confidence, 4),
        drawer_id=row["drawer_id"],
        day=str(row["day"]) if head["dated"] else "",
        provider=row["provider"],
        conversation_id=row["conversation_id"],
        title=head["title"] or "",
        name="",
        page=page,
        quote=beginning(row["text"]),
    )


def beginning(text: str, most: int = QUOTE) -> str:
    """The first line of a text that says something, as it stands there; a long one up to a blank, if there is one."""
    line = next((line.strip() for line in text.splitlines() if any(map(str.isalnum, line))), text.strip()[:most])
    if len(line) <= most:
        return line
    cut = line[: most + 1]
    return (cut.rsplit(None, 1)[0] if " " in cut.strip() else cut[:most]).rstrip()


def _named(lake: Lake, tally: _Tally, examples: Sequence[Example]) -> tuple[Example, ...]:
    """Examples with what people call their conversations."""
    keys = dict.fromkeys((one.provider, one.conversation_id) for one in examples)
    heads = heads_of(RowReader(lake), [(tally.talks[key], key) for key in keys])
    return tuple(replace(one, name=heads.get((one.provider, one.conversation_id), Head()).name) for one in examples)


def _changes(counts: Mapping[tuple[str, str], int], known: Iterable[str]) -> tuple[Change, ...]:
    now, then = Counter[str](), Counter[str]()
    for (before, after), count in counts.items():
        now[before] += count
        then[after] += count
    names = {*known, *now, *then}
    return tuple(
        sorted(
            (Change(name, now[name], then[name]) for name in names), key=lambda room: (-room.then, -room.now, room.name)
        )
    )


def _moves(counts: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    moved = [(move, count) for move, count in counts.items() if move[0] != move[1]]
    return dict(sorted(moved, key=lambda item: (-item[1], item[0])))


def _chosen(examples: Mapping[tuple[str, str], list[Example]], moves: Iterable[tuple[str, str]]) -> Iterator[Example]:
    """A few in all: one of each move, largest move first, then a second one of each."""
    order = list(moves)
    turns = [examples[move][turn] for turn in range(_PER_MOVE) for move in order if turn < len(examples[move])]
    yield from turns[:EXAMPLES]
