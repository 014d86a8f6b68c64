"""Mistral Le Chat: one file `chat-<id>.json` per chat, a list of its messages; files lie in `chat-<id>-files/`.

The list is in no order: `createdAt` gives it. There is no title. An answer stands in `contentChunks` (text, tool
calls, references…), of which `content` repeats the text or is empty. Shape: public readers of real exports, among
them https://github.com/Superkikim/nexus-ai-chat-importer src/providers/lechat, looked at on 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal

from palace_pipeline.exports import known_keys
from palace_pipeline.exports.attachments import kind_of_files, url_file
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import arguments_text, id_of, name_of, text_of
from palace_pipeline.exports.records import records_of
from palace_pipeline.exports.text import parse_json
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.exports.web_sources import citations_of
from palace_pipeline.model import Attachment, Conversation, Kind, Message, Role

_ROLES: dict[str, Role] = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant",
                           "system": "system", "tool": "tool"}  # fmt: skip
_MARKS = {"contentChunks", "canvas", "quotes", "reaction", "version", "preferenceOver"}
_TEXT_KEYS = ("text", "content", "thinking", "reasoning", "quote")
_DEEPEST = 8

Json = dict[str, Any]


class LeChat:
    """Reads a whole file: its messages belong together and must be put in order."""

    format = "mistral-lechat"
    provider = "mistral"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/Superkikim/nexus-ai-chat-importer src/providers/lechat",
        "medium",
        name="Mistral Le Chat export",
        where="Admin console → Privacy → Export: ZIP with `chat-<id>.json`",
        since="2025",
    )
    layout: Literal["whole"] = "whole"
    known_keys = known_keys.MISTRAL

    def detect(self, head: Head) -> bool:
        """True if messages name their chat (`chatId`) and have Le Chat's own fields."""
        return head.shape in ("array", "jsonl") and any(_is_message(item) for item in head.items)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """One conversation per `chatId`, nearly always one per file."""
        chats: dict[str, list[tuple[datetime | None, list[Message]]]] = {}
        latest: dict[tuple[str, str], tuple[int, list[Message]]] = {}
        for place, value in records_of(member, report):
            if not isinstance(value, dict):
                report.skip("not a message", place, expected=value is None)
                continue
            chat = id_of(value.get("chatId"))
            time = parse_instant(value.get("createdAt"))
            if rows := _rows(value, chat, time, member, place, report):
                _one_version(latest, chat, value, rows)
                chats.setdefault(chat, []).append((time, rows))
        for chat, messages in chats.items():
            conversation = _conversation(chat, messages)
            if conversation.visible_messages():
                yield conversation
            else:
                report.skip("no message that a person sees", expected=True, unit="conversation")
        if not chats:
            report.skip("empty conversation", expected=True, unit="conversation")


READER = LeChat()


def _is_message(item: Any) -> bool:
    return (
        isinstance(item, dict) and isinstance(item.get("chatId"), str) and "role" in item and bool(_MARKS & set(item))
    )


def _one_version(
    latest: dict[tuple[str, str], tuple[int, list[Message]]], chat: str, value: Json, rows: list[Message]
) -> None:
    """Of a message that comes in several versions the last one is what the person sees."""
    id = id_of(value.get("id"))
    if not id:
        return
    version = number if isinstance(number := value.get("version"), int) else 0
    before = latest.get((chat, id))
    if before is None:
        latest[chat, id] = version, rows
        return
    newer = before[0] <= version
    for row in before[1] if newer else rows:
        row.branch_active = False
    if newer:
        latest[chat, id] = version, rows


def _conversation(chat: str, messages: list[tuple[datetime | None, list[Message]]]) -> Conversation:
    last = datetime.max.replace(tzinfo=UTC)
    ordered = [row for _, rows in sorted(messages, key=lambda pair: pair[0] or last) for row in rows]
    derive_ids(ordered)
    return Conversation(
        "mistral",
        chat or derive_conversation_id("mistral", "", [row for row in ordered if row.visible]),
        ordered,
    )


def _rows(value: Json, chat: str, time: datetime | None, member: Member, place: str, report: Report) -> list[Message]:
    """Thinking and tools as they came, then what was said; empty if the message says nothing."""
    id, role = id_of(value.get("id")), value.get("role")
    known = _ROLES.get(role.casefold()) if isinstance(role, str) else None
    base = Message(
        id,
        known or "system",
        created_at=time,
        local_time=parse_naive(value.get("createdAt")) if time is None else None,
        model=name_of(value.get("model")),
    )
    if known is None:
        report.unknown[f"role:{role}"] += 1
        base.hidden_reason = "unknown role"
    side: list[Message] = []
    texts: list[str] = []
    pages: list[Any] = []

    def beside(role: Role, kind: Kind, text: str, tool: str | None = None) -> None:
        if text.strip() or tool:
            row_id = f"{id}#{len(side)}" if id else ""
            side.append(Message(row_id, role, text, kind, base.created_at, base.local_time, model=base.model,
                                tool_name=tool))  # fmt: skip

    chunks = value.get("contentChunks")
    for number, chunk in enumerate(chunks if isinstance(chunks, list) else ()):
        if isinstance(chunk, str):
            chunk = {"type": "text", "text": chunk}
        if not isinstance(chunk, dict):
            report.skip("not a piece of a message", f"{place}, chunk {number}", expected=chunk is None)
            continue
        match chunk.get("type"):
            case "text":
                texts.append(_words(chunk))
            case "thinking" | "reasoning" | "think":
                beside("thinking", "thinking", _words(chunk))
            case "tool_call":
                name, result = name_of(chunk.get("name")), chunk.get("publicResult", chunk.get("result"))
                arguments = chunk.get("publicArguments", chunk.get("arguments"))
                beside("tool", "tool_call", arguments_text(arguments), name or "tool_call")
                beside("tool", "tool_result", arguments_text(result), None)
                if result is not None and side:
                    side[-1].tool_name = name
                pages.append(_opened(result))
            case "reference":
                pages.append(chunk)
            case "image_url":
                url = chunk.get("imageUrl", chunk.get("image_url"))
                base.attachment.append(url_file(url.get("url") if isinstance(url, dict) else url))
            case "custom_element":
                beside("tool", "tool_result", arguments_text({k: v for k, v in chunk.items() if k != "type"}),
                       "custom_element")  # fmt: skip
            case type:
                report.unknown[f"chunk:{type}"] += 1
                report.skip("unknown kind of chunk", f"{place}, chunk {number}", expected=False)
                beside("tool", "tool_result", _words(chunk), None)
    base.text = "".join(texts).strip("\n")
    if not base.text.strip():
        base.text = text_of(value.get("content"))
    if value.get("content") is not None and not isinstance(value["content"], str) and not base.text.strip():
        report.skip("content that is no text", place, expected=False)
    if pages and known == "assistant":
        base.citations = citations_of(*pages)
    base.attachment += _files(value, chat, member)
    base.attachment += _papers(value)
    if base.text.strip() or base.attachment:
        if known in ("user", "assistant"):
            base.kind = "text" if base.text.strip() else kind_of_files(base.attachment)
        else:
            base.kind = "tool_result" if known == "tool" else "system"
        return [*side, base]
    if not side:
        report.skip("empty message", place, expected=True)
    return side


def _opened(value: Any) -> Any:
    """What a tool gave back: an object, or the same as a JSON text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse_json(value)
        except (ValueError, RecursionError):
            return None
    return value


def _words(value: Any, depth: int = 0) -> str:
    """The text of a chunk: a string under one of its keys, or a list of such chunks."""
    if type(value) is dict and type(text := value.get("text")) is str and text:
        return text_of(text)
    if isinstance(value, str):
        return text_of(value)
    if depth > _DEEPEST:
        return ""
    if isinstance(value, list):
        return "".join(_words(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return next((words for key in _TEXT_KEYS if (words := _words(value.get(key), depth + 1))), "")
    return ""


def _files(value: Json, chat: str, member: Member) -> list[Attachment]:
    """Files that were sent, by name; their size if they lie in the chat's folder."""
    files: list[Attachment] = []
    for item in found if isinstance(found := value.get("files"), list) else ():
        holder: Json = item if isinstance(item, dict) else {"name": item}
        name, type = name_of(holder.get("name")), name_of(holder.get("type"))
        if name is None and type is None:
            continue
        beside = member.near(f"chat-{chat}-files/{name}") if name and "/" not in chat and "/" not in name else None
        files.append(Attachment(name, type, None if beside is None else beside.size))
    return files


def _papers(value: Json) -> Iterator[Attachment]:
    """Documents written in a canvas, and passages that the person quoted, with their text."""
    for key, type in (("canvas", "canvas"), ("quotes", "quote")):
        for item in found if isinstance(found := value.get(key), list) else ():
            text = _words(item)
            title = name_of(item.get("title")) if isinstance(item, dict) else None
            if text.strip() or title:
                yield Attachment(title, type, text=text or None)
