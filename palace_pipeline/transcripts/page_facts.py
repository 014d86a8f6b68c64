"""The comment lines of a page: the facts of a row, or of the whole conversation, as JSON that nobody has to look at.

What people look for is in the front matter and in the headings. Here stands the rest of what pages must hold for the
archive to be made again from them alone: ids, tokens, costs, times of the conversation, and how many rows of other
branches or hidden ones lie between two that are shown (`gap`), so that every message keeps its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast, get_args

import orjson

from palace_pipeline.model import ROLES, Attachment, Citation, Conversation, Kind, Message

_KINDS = get_args(Kind)
_OF_ROW = (
    *(("at", "created_at"), ("local", "local_time"), ("edited", "edited_at"), ("speaker", "speaker")),
    *(("model", "model"), ("tool", "tool_name"), ("in", "tokens_in"), ("out", "tokens_out")),
    *(("cached", "tokens_cached"), ("cost", "cost")),
)
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("local", "speaker", "model", "tool"), str),
    **dict.fromkeys(("in", "out", "cached"), int),
    "cost": (int, float),
}
_OF_CONVERSATION = (
    *(("created", "created_at"), ("updated", "updated_at"), ("account", "account"), ("project", "project")),
    *(("forked_from", "forked_from"), ("parent", "parent_conversation_id"), ("file", "source_file")),
)
_TIMES = ("created", "updated")


@dataclass(slots=True, frozen=True)
class About:
    """What a page says of its conversation out of sight. `values`: fields of a `Conversation`; `gap`: rows after the
    last one that is shown."""

    values: dict[str, Any]
    gap: int = 0


def facts_of(message: Message, tail: int, gap: int, sources: list[tuple[str, str | None]]) -> str:
    """The facts of a row. `tail`: lines after the text; `gap`: rows before it that are not shown; `sources`: what
    those lines read back to, which is said once more where a source holds what a link cannot."""
    values: dict[str, Any] = {"role": message.role}
    if message.kind != usual_kind(message.role):
        values["kind"] = message.kind
    values["id"] = message.message_id
    for name, field in _OF_ROW:
        if (value := getattr(message, field)) is not None:
            values[name] = value
    if message.attachment:
        values["files"] = [
            {k: v for k in ("name", "type", "size", "ref") if (v := getattr(file, k)) is not None}
            for file in message.attachment
        ]
    if (told := [(source.url, source.title) for source in message.citations]) != sources:
        values["sources"] = told
    if gap:
        values["gap"] = gap
    if tail:
        values["tail"] = tail
    return _in_a_comment(values)


def facts_of_file(number: int) -> str:
    """What stands before the text of a row's file (`number` counts its files from 0)."""
    return f'{{"text_of_file":{number}}}'


def facts_of_conversation(conversation: Conversation, model: str | None, gap: int) -> str:
    """The facts of a conversation, or '' if there are none. `model`: what the front matter says; `gap`: see `About`."""
    values: dict[str, Any] = {
        name: value for name, field in _OF_CONVERSATION if (value := getattr(conversation, field)) is not None
    }
    if conversation.model != model:
        values["model"] = conversation.model
    if gap:
        values["gap"] = gap
    return _in_a_comment({"conversation": values}) if values else ""


def about(values: Any) -> About:
    """The inverse of `facts_of_conversation`. Raises ValueError or TypeError."""
    if not isinstance(values, dict):
        raise TypeError("no facts of a conversation")
    found: dict[str, Any] = {}
    for name, field in (*_OF_CONVERSATION, ("model", "model")):
        if name in values:
            value = values[name]
            if value is not None and not isinstance(value, str):
                raise TypeError(name)
            found[field] = instant(value) if name in _TIMES else value
    return About(found, count(values.get("gap")))


def row_of(values: dict[str, Any], text: str, links: list[tuple[str, str | None]]) -> Message:
    """A row from its facts, its text, and the sources among the lines after it. Raises ValueError, TypeError or KeyError."""
    role = values["role"]
    kind = values.get("kind") or usual_kind(role)
    if role not in ROLES or kind not in _KINDS or not isinstance(values.get("id", ""), str):
        raise ValueError("role, kind or id")
    for name, kinds in _TYPES.items():
        if values.get(name) is not None and (not isinstance(values[name], kinds) or isinstance(values[name], bool)):
            raise TypeError(name)
    for name in ("in", "out", "cached"):
        if not -(1 << 63) <= (values.get(name) or 0) < 1 << 63:
            raise ValueError(name)
    return Message(
        message_id=values.get("id", ""),
        role=role,
        kind=cast(Kind, kind),
        text=text,
        created_at=instant(values.get("at")),
        local_time=values.get("local"),
        edited_at=instant(values.get("edited")),
        speaker=values.get("speaker"),
        model=values.get("model"),
        tool_name=values.get("tool"),
        tokens_in=values.get("in"),
        tokens_out=values.get("out"),
        tokens_cached=values.get("cached"),
        cost=values.get("cost"),
        citations=[Citation(str(url), title) for url, title in values.get("sources", links)],
        attachment=[Attachment(**file) for file in values["files"]] if "files" in values else [],
    )


def usual_kind(role: str) -> str:
    """The kind that a row of this role has where none is said."""
    return role if role in ("thinking", "system") else "text"


def instant(value: str | None) -> datetime | None:
    """An instant as it stands on a page. Raises ValueError or TypeError."""
    return None if value is None else datetime.fromisoformat(value)


def count(value: Any) -> int:
    """A number of rows as it stands on a page. Raises ValueError for what none can be."""
    if value is None:
        return 0
    if not isinstance(value, int) or not 0 <= value < 1 << 24:
        raise ValueError("gap")
    return value


def _in_a_comment(values: dict[str, Any]) -> str:
    text = orjson.dumps(values, option=orjson.OPT_UTC_Z).decode()
    if "--" in text or ">" in text or "<" in text:
        text = text.replace("--", "-\\u002d").replace("<", "\\u003c").replace(">", "\\u003e")
    return text
