"""Chats as plain lists of turns: OpenAI `messages`, ShareGPT `conversations`, and what people write by hand or convert.

Two files: a list of turns is one conversation (`FlatReader`, JSON array or JSON lines), a list of objects that hold
such lists is many (`ListReader`). Nothing that is missing is invented. Facts: OpenAI's chat and responses reference,
data sets in ShareGPT's shape, https://github.com/lm-sys/FastChat, checked 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids, whole_content_id
from palace_pipeline.exports.plaintext import stem
from palace_pipeline.exports.records import records_of
from palace_pipeline.exports.text import clean_text
from palace_pipeline.exports.turns import is_turn, messages_of, time_of
from palace_pipeline.model import Conversation, Message

_LISTS = ("messages", "conversations", "conversation", "chat_messages")
"""Keys under which a conversation keeps its turns."""
_IDS = ("id", "conversation_id", "conversationId", "chat_id", "session_id", "uuid")
_TITLES = ("title", "name")
_CREATED = ("created_at", "createdAt", "create_time", "created", "timestamp", "date")
_UPDATED = ("updated_at", "updatedAt", "update_time", "updated")
_SPEC = SpecTarget(
    "2026-11-29",
    "OpenAI API reference, ShareGPT data sets, FastChat",
    "high",
    name="flat messages",
    where='`[{"role", "content"}]`, `{"messages": […]}`, ShareGPT `conversations[].from/value`; JSON or JSONL',
    since="2022",
)


class FlatReader:
    """Reads a list of turns, as JSON array or as JSON lines: one conversation per file."""

    format = "flat-messages"
    provider = "sharegpt"
    recipe = 2
    spec = _SPEC
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        return head.shape in ("array", "jsonl") and _are_turns(head.items)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        messages = list(messages_of(records_of(member, report), report))
        if _spoken(messages, "", report):
            yield _conversation(messages, {}, member.path, whole=False)


class ListReader:
    """Reads conversations that are objects with a list of turns: in an array, in JSON lines, or one alone."""

    format = "messages"
    provider = "sharegpt"
    recipe = 2
    spec = _SPEC
    layout: Literal["elements"] = "elements"

    def detect(self, head: Head) -> bool:
        items = [item for item in head.items if isinstance(item, dict | list)]
        if head.shape not in ("array", "object", "jsonl") or not items:
            return False
        # An empty conversation says nothing, an odd one among others is a damaged one.
        found = [_are_turns(turns[:8]) for item in items if (turns := _turns_of(item))]
        return bool(found) and sum(found) * 2 >= len(found)

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        turns = _turns_of(value)
        if turns is None:
            report.skip("not a conversation", place, expected=False, unit="conversation")
            return
        head: Mapping[str, Any] = value if isinstance(value, dict) else {}
        numbered = ((f"{place}[{number}]", turn) for number, turn in enumerate(turns))
        messages = list(messages_of(numbered, report))
        if _spoken(messages, place, report):
            yield _conversation(messages, head, member.path, whole=bool(place))


READERS = (FlatReader(), ListReader())


def _turns_of(value: Any) -> list[Any] | None:
    """The list of turns that a conversation is or holds; the first that is not empty."""
    if isinstance(value, list):
        return value
    lists = [value[key] for key in _LISTS if isinstance(value.get(key), list)] if isinstance(value, dict) else []
    return next((turns for turns in lists if turns), lists[0] if lists else None)


def _are_turns(values: list[Any]) -> bool:
    values = [value for value in values if value is not None]
    return bool(values) and all(isinstance(value, dict) and is_turn(value) for value in values)


def _spoken(messages: list[Message], place: str, report: Report) -> bool:
    if any(message.visible for message in messages):
        return True
    report.skip("no messages", place, expected=True, unit="conversation")
    return False


def _conversation(messages: list[Message], head: Mapping[str, Any], path: str, *, whole: bool) -> Conversation:
    """The conversation of these messages. `whole`: it is one of many in a file.

    Without an id of its own, one of many that has neither title nor time is known by all that it says.
    """
    title = _text(head, _TITLES)
    created, local_created = time_of(head, _CREATED)
    visible = [message for message in messages if message.visible]
    conversation_id = _text(head, _IDS)
    if conversation_id is None:
        dated = created or local_created or any(m.created_at or m.local_time for m in messages)
        if whole and not title and not dated:
            conversation_id = whole_content_id(f"sharegpt {stem(path)}", visible)
        else:
            start = created.isoformat() if created else local_created or ""
            conversation_id = derive_conversation_id("sharegpt", f"{title or stem(path)}{start}", visible)
    derive_ids(messages)
    model = head.get("model")
    return Conversation(
        "sharegpt",
        conversation_id,
        messages,
        title=title,
        created_at=created,
        updated_at=time_of(head, _UPDATED)[0],
        local_created=local_created,
        model=clean_text(model) if isinstance(model, str) and model else None,
        source_file=path,
    )


def _text(head: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = head.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return clean_text(value).strip()
    return None
