"""Reading the archive as it was lived: one day across all providers, one conversation around a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import Any

import polars as pl

from palace_pipeline.search.answers import Hit, moment_text, pages_of
from palace_pipeline.search.complete import not_there
from palace_pipeline.search.corpus import Days, Head, counted, heads_of, messages_of, moved
from palace_pipeline.search.engine import Searcher
from palace_pipeline.search.quotes import QUOTE_LENGTH, quote_of
from palace_pipeline.search.rows import RowReader
from palace_pipeline.store.lake import Key, Lake, LakeDamaged, month_of
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.named import NotOneError, named_conversation, resumed_in

_KEY = ["provider", "conversation_id"]
_COLUMNS = [
    *("day", *_KEY, "seq", "role", "kind", "branch_active", "hidden_reason"),
    *("speaker", "text", "created_at", "local_time", "tool_name", "model"),
]


@dataclass(slots=True, frozen=True)
class Spoken:
    """One row of a conversation.

    `message_index` counts the visible messages from 0, None for what people do not see (tools, thinking, other branches).
    `at`: its instant in UTC, or its naive time. `clock`: `HH:MM` in the display zone (or of the naive time). None: not known.
    """

    message_index: int | None
    seq: int
    role: str
    kind: str
    speaker: str | None
    at: str | None
    date: str | None
    clock: str | None
    model: str | None
    tool_name: str | None
    text: str


@dataclass(slots=True, frozen=True)
class Talk:
    """A conversation, or what was said in it on one day. `title`: the source's, '' if it has none; `name`: what people call it.
    `opening`: the beginning of what the user said first. `total`: visible
    messages in all of it. `instead_of`: `provider:id` of the one that was asked for, if this one resumed it and holds all of it."""

    provider: str
    conversation_id: str
    title: str
    name: str
    page: str
    total: int
    opening: str
    messages: tuple[Spoken, ...]
    instead_of: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The conversation as values that JSON knows."""
        return asdict(self)


@dataclass(slots=True, frozen=True)
class DayView:
    """A day in the display zone: the conversations that have messages of it, by the time of the first of them. What is
    undated is never shown here, since nothing says on which day it was written. `unread`: what could not be read, in words."""

    day: str
    zone: str
    conversations: tuple[Talk, ...]
    unread: tuple[str, ...]

    @property
    def messages(self) -> dict[str, int]:
        """Visible messages of the day by role."""
        return dict(Counter(one.role for talk in self.conversations for one in talk.messages))

    def as_json(self) -> dict[str, Any]:
        """The day as values that JSON knows."""
        return {
            "day": self.day,
            "zone": self.zone,
            "messages": self.messages,
            "conversations": [talk.as_json() for talk in self.conversations],
            "unread": list(self.unread),
        }


def day_view(home: Path, day: date, zone: tzinfo, *, provider: str | None = None) -> DayView:
    """What was said on one day, in all conversations or in those of one provider."""
    lake, days = Lake(home / "lake"), Days(day, day, zone)
    unread: list[str] = []
    parts: list[pl.DataFrame] = []
    held: set[Key] = set()
    damaged: set[str] = set()
    last = moved(day, 1)  # a conversation is filed under the day of its first message
    for month in lake.months("clean/messages"):
        if month > month_of(last):
            break
        try:
            part, keys = _of_day(lake, month, days, provider)
        except LakeDamaged as error:
            damaged.add(month)
            unread.append(str(error))
        else:
            parts.append(part)
            held |= keys
    unread += not_there(home, held, damaged, provider, last)
    rows = [row for part in parts for row in part.iter_rows(named=True)]
    keys = sorted({(row["day"], (row["provider"], row["conversation_id"])) for row in rows})
    heads, pages = heads_of(RowReader(lake), keys), pages_of(home, {key for _, key in keys})
    by_key: dict[Key, list[dict[str, Any]]] = {}
    for row in rows:
        by_key.setdefault((row["provider"], row["conversation_id"]), []).append(row)
    talks = [_talk(key, these, heads, pages, days, these[0]["total"]) for key, these in by_key.items()]
    talks.sort(
        key=lambda talk: (
            talk.messages[0].clock or "99",
            talk.messages[0].at or "",
            talk.provider,
            talk.conversation_id,
        )
    )
    return DayView(day.isoformat(), str(zone), tuple(talks), tuple(unread))


def _of_day(lake: Lake, month: str, days: Days, provider: str | None) -> tuple[pl.DataFrame, set[Key]]:
    """The visible messages of a day among those of a month file, with their texts (only those are read whole), and which
    conversations are in it."""
    known = [name for name in _COLUMNS if name not in ("text", "model", "tool_name")]
    rows = lake.read("clean/messages", [month], columns=known)
    if provider is not None:
        rows = rows.filter(pl.col("provider") == provider)
    held: set[Key] = set(rows.select(_KEY).unique().iter_rows())
    rows = counted(rows.sort([*_KEY, "seq"], maintain_order=True)).with_columns(
        total=pl.col("visible").sum().over(_KEY)
    )
    heads = lake.read("clean/conversations", [month], columns=[*_KEY, "dated"])
    rows = rows.join(heads, on=_KEY, how="left", maintain_order="left").filter(pl.col("visible") & days.inside())
    if rows.is_empty():
        return rows.with_columns(text=pl.lit(""), model=pl.lit(None), tool_name=pl.lit(None)), held
    keys = list(rows.select(_KEY).unique().iter_rows())
    texts = lake.read("clean/messages", [month], keys=keys, columns=[*_KEY, "seq", "text", "model", "tool_name"])
    return rows.join(texts, on=[*_KEY, "seq"], how="left", maintain_order="left"), held


def thread(
    home: Path, named: str, zone: tzinfo, *, around: int | None = None, context: int = 5, everything: bool = False
) -> Talk:
    """One conversation, or `context` visible messages on each side of the visible message `around` (from 0).

    `named`: `provider:id`, a page's path, the unique beginning of an id, or a drawer's id (then around what it holds, unless
    `around` is given). `everything`: tool calls, tool output, thinking and other branches too.

    Raises NotOneError if it is not clear which conversation is meant (PurgedError if that was purged), IndexError if it has
    no message of that number, LakeDamaged if its month cannot be read.
    """
    lake = Lake(home / "lake")
    day, key, seq, instead_of = _meant(home, lake, named)
    rows = lake.read("clean/messages", [month_of(day)], keys=[key], columns=_COLUMNS)
    rows = counted(rows.sort("seq", maintain_order=True)).with_columns(total=pl.col("visible").sum())
    total = int(rows["visible"].sum())
    if around is None and seq is not None:
        near = rows.filter(pl.col("visible") & (pl.col("seq") >= seq))
        around = int(near["message_index"][0]) if near.height else None
    if around is not None and not 0 <= around < total:
        raise IndexError(f"it has the messages 0 to {total - 1}" if total else "it has no visible message")
    if around is not None:
        shown = rows.filter(pl.col("visible") & pl.col("message_index").is_between(around - context, around + context))
        rows = rows.filter(pl.col("seq").is_between(shown["seq"].min(), shown["seq"].max()))
    if not everything:
        rows = rows.filter(pl.col("visible"))
    heads, pages = heads_of(RowReader(lake), [(day, key)]), pages_of(home, [key])
    talk = _talk(key, list(rows.iter_rows(named=True)), heads, pages, Days(None, None, zone), total)
    return replace(talk, instead_of=instead_of)


class PurgedError(NotOneError):
    """The conversation that is meant was purged."""


def _meant(home: Path, lake: Lake, named: str) -> tuple[date, Key, int | None, str | None]:
    """Day, conversation, the row a drawer begins with if its id was given, and the name of the conversation that was resumed in
    this one if it was asked for."""
    ledger = Ledger.reading(home / "ledger.sqlite")
    try:
        if ledger is None:
            raise NotOneError(_no_ledger(lake))
        asked = named_conversation(ledger, named)
        row = resumed_in(ledger, asked)
    except NotOneError:
        for month in lake.months("clean/chunks"):
            chunks = lake.read("clean/chunks", [month], columns=["drawer_id", "day", *_KEY, "first_seq"])
            for _, day, provider, name, seq in chunks.filter(pl.col("drawer_id") == named).iter_rows():
                return day, (provider, name), seq, None
        raise
    finally:
        if ledger is not None:
            ledger.close()
    if row["status"] == "purged":
        raise PurgedError(f"{row['provider']}:{row['conversation_id']} was purged: nothing of it is kept")
    key = (row["provider"], row["conversation_id"])
    instead_of = f"{asked['provider']}:{asked['conversation_id']}" if row is not asked else None
    return date.fromisoformat(row["day"]), key, None, instead_of


def _no_ledger(lake: Lake) -> str:
    if not lake.months("clean/conversations"):
        return "the archive is empty"
    return "the ledger, which knows the names of all conversations, is not there; palace rebuild --from vault makes it again"


def _talk(
    key: Key,
    rows: Sequence[dict[str, Any]],
    heads: dict[Key, Head],
    pages: dict[Key, str],
    days: Days,
    total: int,
) -> Talk:
    head = heads.get(key, Head())
    said = tuple(_spoken(row, days, head.dated) for row in rows)
    first = next((one.text for one in said if one.role == "user" and one.text.strip()), said[0].text if said else "")
    return Talk(*key, head.title, head.name, pages.get(key, ""), total, quote_of(first, {}, QUOTE_LENGTH).text, said)


def _spoken(row: dict[str, Any], days: Days, dated: bool) -> Spoken:
    day = days.day_of(row["created_at"], row["local_time"], row["day"], dated)
    clock: str | None = None
    if row["created_at"] is not None:
        clock = f"{row['created_at'].astimezone(days.zone):%H:%M}"
    elif row["local_time"] is not None and len(row["local_time"]) > 10:
        clock = f"{datetime.fromisoformat(row['local_time']):%H:%M}"
    return Spoken(
        message_index=row["message_index"] if row["visible"] else None,
        seq=row["seq"],
        role=row["role"],
        kind=row["kind"],
        speaker=row["speaker"],
        at=moment_text(row["created_at"], row["local_time"]),
        date=None if day is None else day.isoformat(),
        clock=clock,
        model=row["model"],
        tool_name=row["tool_name"],
        text=row["text"] or "",
    )


Place = tuple[str, str, int]


def place_of(hit: Hit) -> Place:
    """Where a hit lies: provider, conversation, row."""
    return (hit.provider, hit.conversation_id, hit.seq)


def neighbours(searcher: Searcher, hits: Sequence[Hit], count: int) -> dict[Place, list[dict[str, Any]]]:
    """The visible messages around each hit, `count` on each side, in order, without the hit itself."""
    wanted = {hit.drawer_id for hit in hits}
    corpus = searcher.corpus()
    days = {corpus.place_of[drawer] for drawer in wanted if drawer in corpus.place_of}
    keys = corpus.chunks[sorted(days)].select("day", *_KEY).unique().iter_rows()
    messages = messages_of(searcher.rows, [(day, (provider, name)) for day, provider, name in keys])
    rows = {key: frame.filter("visible").rows(named=True) for key, frame in messages.items()}
    out: dict[Place, list[dict[str, Any]]] = {}
    for hit in hits:
        said = rows.get((hit.provider, hit.conversation_id), [])
        before = [row for row in said if row["seq"] < hit.seq][-count:]
        after = [row for row in said if row["seq"] > hit.seq][:count]
        out[place_of(hit)] = [
            {name: row[name] for name in ("message_index", "seq", "role", "speaker", "text")}
            for row in (*before, *after)
        ]
    return out
