"""All sightings of one conversation -> its one transcript.

The order in which records come never matters, and merging a result again with any record it was made of changes
nothing. Both follow from one rule: every choice is the maximum of a total order in which the result itself stands at
least as high as each of its parts (that is why ties are broken by values and not by a hash of the whole row, which
filling in a missing field would change).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal

from palace_pipeline.model import Conversation, Message, short_hash

MERGE_RECIPE = "1"
"""Change it when the same records give another transcript: days are then merged again."""

Key = tuple[str, str]
Rank = tuple[datetime, int, str]

_NEVER = datetime.min.replace(tzinfo=UTC)
_OF_NEWEST_RECORD = frozenset({"branch_active", "hidden_reason"})
_FILLED = tuple(
    f.name for f in fields(Message) if f.name not in {"message_id", "role", "kind", "text"} | _OF_NEWEST_RECORD
)
_NEWEST_WINS = (
    "title",
    "account",
    "model",
    "project",
    "origin",
    "parent_conversation_id",
    "source_file",
)


@dataclass(slots=True, frozen=True)
class _Version:
    """A message as one record shows it; `known_at` is the age of that record."""

    message: Message
    known_at: datetime


def merge(records: Sequence[Conversation]) -> Conversation:
    """One transcript with every message of every record; nothing that was once seen goes away.

    Of a message in several versions the one with text comes before the empty one, then the later edit, the later
    record, the longer text; what it does not say is filled in from the next best. Whether it is on the active branch,
    or hidden, is what the newest record that has it says. Rows keep the order of the newest and fullest record (in
    people chats: of time), and rows that only other records have stand behind the row they followed there.

    The records are not changed. Raises ValueError without records, or if they are of different conversations.
    """
    if not records:
        raise ValueError("nothing to merge")
    if len({record.key for record in records}) > 1:
        raise ValueError("records of different conversations cannot be merged")
    versions: dict[str, list[_Version]] = {}
    for record in records:
        known_at = _known_at(record)
        for message in record.messages:
            versions.setdefault(message.message_id, []).append(_Version(message, known_at))
    merged = {message_id: _best(seen) for message_id, seen in versions.items()}
    order: Literal["source", "time"] = "time" if any(r.order == "time" for r in records) else "source"
    ranked = sorted(
        ((_rank(r, ids), ids, r) for r, ids in _sequences(records, merged, order)), key=_first, reverse=True
    )
    sequence = _interleave([ids for _, ids, _ in ranked])
    if order == "time":
        sequence = _in_time(sequence, merged)
    result = replace(
        ranked[0][2],
        messages=[merged[message_id] for message_id in sequence],
        order=order,
        created_at=min((r.created_at for r in records if r.created_at), default=None),
        updated_at=max((r.updated_at for r in records if r.updated_at), default=None),
        local_created=min((r.local_created for r in records if r.local_created), default=None),
        # Not the newest record's word: the ledger, which holds no records, must come to the same.
        forked_from=max((r.forked_from for r in records if r.forked_from), default=None),
        **{name: _newest(name, ranked) for name in _NEWEST_WINS},
    )
    newest = max(map(_known_at, records))
    if _known_at(result) < newest:
        # A version that lost was younger than all that stayed: the result is still as young as its youngest record.
        result.updated_at = newest
    return result


def superseded(
    sizes: Mapping[Key, int], ids_of: Callable[[Key], Set[str]], forked_from: Mapping[Key, Key]
) -> dict[Key, Key]:
    """Conversations that a resumed copy repeats in full -> that copy (the last of a chain of copies).

    `sizes`: how many messages each conversation has; `ids_of`: their ids, asked only where the sizes leave a doubt;
    `forked_from`: a conversation -> the one whose start it repeats. Two branches that both went on keep both; so does a
    conversation without messages. This is the one rule for `palace parse` and for the ledger; what it says of a
    conversation depends on its family alone (see `family`).
    """
    origins = {key: _ancestors(key, forked_from) for key in sizes if key in forked_from}
    copies: dict[Key, list[Key]] = {}
    for copy, ancestors in origins.items():
        for origin in ancestors:
            copies.setdefault(origin, []).append(copy)
    heirs: dict[Key, Key] = {}
    for key, found in copies.items():
        if not sizes.get(key):
            continue
        by_worth = sorted(((sizes[copy], len(origins[copy]), copy) for copy in found), reverse=True)
        for size, _, copy in by_worth:
            # In a circle of equal copies (each claims to come of the other) the greatest key stays.
            if copy in origins.get(key, ()) and (size, copy) <= (sizes[key], key):
                continue
            if size >= sizes[key] and ids_of(key) <= ids_of(copy):
                heirs[key] = copy
                break
    return {key: _last(heir, heirs) for key, heir in heirs.items()}


def family(key: Key, parent_of: Callable[[Key], Key | None], copies_of: Callable[[Key], Iterable[Key]]) -> set[Key]:
    """All conversations that are copies of one another, however far, `key` among them; circles are walked once."""
    found = {key}
    ahead = [key]
    while ahead:
        at = ahead.pop()
        parent = parent_of(at)
        near = {*copies_of(at), *([parent] if parent is not None else [])} - found
        found |= near
        ahead += near
    return found


def _known_at(record: Conversation) -> datetime:
    """How recent a record is: the source's own word, else its last dated message."""
    if record.updated_at:
        return record.updated_at
    times = [time for m in record.messages for time in (m.created_at, m.edited_at) if time]
    return max(times, default=record.created_at or _NEVER)


def _best(seen: list[_Version]) -> Message:
    if len(seen) == 1:
        return seen[0].message
    ordered = [version.message for version in sorted(seen, key=_worth, reverse=True)]
    best = ordered[0]
    values: dict[str, Any] = {}
    for name in _FILLED:
        if getattr(best, name) in (None, []):
            value = next((v for m in ordered if (v := getattr(m, name)) not in (None, [])), None)
            if value is not None:
                values[name] = value
    state = max(
        seen, key=lambda v: (v.known_at, v.message.branch_active, _comparable(v.message.hidden_reason, least=False))
    )
    for name in _OF_NEWEST_RECORD:
        values[name] = getattr(state.message, name)
    return replace(best, **values)


def _worth(version: _Version) -> tuple[Any, ...]:
    m = version.message
    rest = tuple(_comparable(getattr(m, name)) for name in ("role", "kind", *_FILLED))
    return (bool(m.text.strip()), m.edited_at or _NEVER, version.known_at, len(m.text), m.text, *rest)


def _comparable(value: Any, *, least: bool = True) -> tuple[bool, Any]:
    """Any field value as something that can be ordered; what is missing comes first (`least`) or last."""
    if value is None or value == []:
        return (not least, "")
    if isinstance(value, list):
        return (least, repr([astuple(item) for item in value]))
    return (least, value)


def _sequences(
    records: Sequence[Conversation], merged: Mapping[str, Message], order: str
) -> list[tuple[Conversation, list[str]]]:
    """Each record with its message ids, doubled ones once, in the order that the result will use."""
    found: list[tuple[Conversation, list[str]]] = []
    for record in records:
        ids = list(dict.fromkeys(m.message_id for m in record.messages))
        found.append((record, _in_time(ids, merged) if order == "time" else ids))
    return found


def _rank(record: Conversation, ids: list[str]) -> Rank:
    return (_known_at(record), len(ids), short_hash(*ids))


def _first(item: tuple[Rank, list[str], Conversation]) -> Rank:
    return item[0]


def _interleave(sequences: list[list[str]]) -> list[str]:
    """The first sequence, with what only later ones have put behind its predecessor there (at the start if none).

    Linear: rows are linked, and each is looked at once.
    """
    base = sequences[0]
    if all(len(ids) == 0 or ids == base for ids in sequences[1:]):
        return base
    following: dict[str | None, str | None] = dict(zip([None, *base], [*base, None], strict=True))
    for ids in sequences[1:]:
        before: str | None = None
        for message_id in ids:
            if message_id not in following:
                following[message_id] = following[before]
                following[before] = message_id
            before = message_id
    result: list[str] = []
    at = following[None]
    while at is not None:
        result.append(at)
        at = following[at]
    return result


def _in_time(ids: list[str], messages: Mapping[str, Message]) -> list[str]:
    """Ids ordered by instant, equal instants as they came.

    Naive times are ordered among themselves in the places they hold, since nothing says how they stand to instants. A
    row without any time stays behind the row before it.
    """
    blocks: list[list[str]] = []
    places: dict[str, list[int]] = {"instant": [], "local": []}
    start: list[str] = []
    for message_id in ids:
        message = messages[message_id]
        if message.created_at is None and message.local_time is None:
            (blocks[-1] if blocks else start).append(message_id)
            continue
        places["local" if message.created_at is None else "instant"].append(len(blocks))
        blocks.append([message_id])
    result = list(blocks)
    for kind, where in places.items():
        name = "created_at" if kind == "instant" else "local_time"
        by_time = sorted((blocks[i] for i in where), key=lambda block: getattr(messages[block[0]], name))
        for place, block in zip(where, by_time, strict=True):
            result[place] = block
    return start + [message_id for block in result for message_id in block]


def _newest(name: str, ranked: Sequence[tuple[Rank, list[str], Conversation]]) -> Any:
    """The value of the newest record that has one (a title of blanks is none); equal records: the greater value."""
    values = [(rank, getattr(record, name)) for rank, _, record in ranked]
    present = [(bool(value.strip()), rank, value) for rank, value in values if value is not None]
    return max(present)[2] if present else None


def _ancestors(key: Key, forked_from: Mapping[Key, Key]) -> list[Key]:
    """The conversations a copy goes back to, nearest first; a circle is walked once."""
    found: dict[Key, None] = {}
    at = forked_from.get(key)
    while at is not None and at != key and at not in found:
        found[at] = None
        at = forked_from.get(at)
    return list(found)


def _last(key: Key, heirs: Mapping[Key, Key]) -> Key:
    while key in heirs:
        key = heirs[key]
    return key
