"""Gemini in Google Workspace, Takeout's conversation history: one JSON document per chat, `conversation_<n>.txt`.

`{title, creation_time, last_modification_time, conversation_turns[]}`; a turn holds `user_turn{prompt, turn_index,
turn_last_modified, turn_deleted_time?}` or `system_turn{text[{data | cards[{content}]}], images[], model_thoughts[{headline,
description}], …}`. An index that comes again is a turn that was edited or made again. Facts: one public reader of a real
export, checked 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import list_of, name_of, text_of
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Conversation, Kind, Message, Role

PROVIDER = "gemini"


class GeminiConversationReader:
    """Reads one chat per element (a file holds one)."""

    format = "gemini-conversation"
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "a public reader of Takeout's Gemini conversation history",
        "medium",
        name="Gemini in Workspace (Takeout)",
        where="takeout.google.com → Gemini: `Conversation History/conversation_<n>.txt`",
        since="2026",
    )
    layout: Literal["elements"] = "elements"

    def detect(self, head: Head) -> bool:
        """True for objects with a list of `conversation_turns`."""
        return head.shape in ("object", "array") and any(
            isinstance(item, dict) and isinstance(item.get("conversation_turns"), list) for item in head.items
        )

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation. Its id is made of its own time and first words: files are numbered anew each time."""
        turns = value.get("conversation_turns") if isinstance(value, dict) else None
        if not isinstance(turns, list):
            report.skip("conversation without turns", place, expected=False, unit="conversation")
            return
        messages = _messages(turns, report, place)
        visible = [message for message in messages if message.visible]
        if not visible:
            report.skip("no messages", place, expected=True, unit="conversation")
            return
        derive_ids(messages)
        created = value.get("creation_time")
        instant = parse_instant(created)
        start = instant.isoformat() if instant else text_of(created)
        yield Conversation(
            PROVIDER,
            derive_conversation_id(PROVIDER, start, messages[:1])
            if start
            else derive_conversation_id(PROVIDER, "", visible),
            messages,
            title=name_of(value.get("title")),
            created_at=instant,
            updated_at=parse_instant(value.get("last_modification_time")),
            local_created=parse_naive(created) if instant is None else None,
        )


READER = GeminiConversationReader()


def _messages(turns: list[Any], report: Report, place: str) -> list[Message]:
    found: list[list[Message]] = []
    last: dict[tuple[str, object], int] = {}
    for number, turn in enumerate(turns):
        spoken = False
        for key, role in (("user_turn", "user"), ("system_turn", "assistant")):
            inner = turn.get(key) if isinstance(turn, dict) else None
            if not isinstance(inner, dict):
                continue
            spoken = True
            index = inner.get("turn_index")
            named = isinstance(index, int) and not isinstance(index, bool)
            rows = _rows(inner, "user" if role == "user" else "assistant")
            if named and (older := last.get((role, index))) is not None:
                for row in found[older]:
                    row.branch_active = False
            if named:
                last[role, index] = len(found)
            found.append(rows)
            if not rows:
                report.skip("empty message", f"{place} turn {number}".strip(), expected=True)
        if not spoken:
            report.skip("not a turn", f"{place} turn {number}".strip(), expected=turn is None)
    return [row for rows in found for row in rows]


def _rows(turn: dict[str, Any], role: Role) -> list[Message]:
    stamp = turn.get("turn_last_modified")
    when = parse_instant(stamp)
    local = parse_naive(stamp) if when is None else None
    rows: list[Message] = []

    def add(role: Role, text: str, kind: Kind) -> Message:
        rows.append(Message("", role, text, kind, when, local, branch_active=not turn.get("turn_deleted_time")))
        return rows[-1]

    for thought in list_of(turn.get("model_thoughts")):
        texts = (
            [text_of(thought.get(key)).strip() for key in ("headline", "description")]
            if isinstance(thought, dict)
            else []
        )
        if text := "\n\n".join(filter(None, texts)):
            add("thinking", text, "thinking")
    texts = [text_of(turn.get("prompt"))] if role == "user" else list(_answer(turn.get("text")))
    text = "\n\n".join(text for text in texts if text.strip()).strip("\n")
    files = [_file(image) for image in list_of(turn.get("images")) + list_of(turn.get("files"))]
    if text.strip() or files:
        add(role, text, "text" if text.strip() else "image").attachment = files
    return rows


def _answer(items: object) -> Iterator[str]:
    for item in list_of(items):
        if isinstance(item, dict):
            yield text_of(item.get("data"))
            for card in list_of(item.get("cards")):
                yield text_of(card.get("content")) if isinstance(card, dict) else ""
        else:
            yield text_of(item)


def _file(value: object) -> Attachment:
    if isinstance(value, dict):
        value = value.get("name", value.get("file_name"))
    return Attachment(name=name_of(value), type="image")
