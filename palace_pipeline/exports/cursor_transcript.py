"""Cursor's text transcripts: `~/.cursor/projects/<folder>/agent-transcripts/<chat>/<chat>.jsonl`.

Lines `{role, message: {content}}` without a type. A user's line holds the time (of its minute, with an offset) and the
words in tags, and what the program put beside them. The same chats stand in Cursor's database, with more: rows get
the same ids there. Sub-agents lie in `<chat>/subagents/`. Shape: public parsers of Cursor 2.x and 3.x
(https://github.com/kenn-io/agentsview and others), checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Literal

from palace_pipeline.exports.agent_log import Record, count_unknown, cut_blocks, records
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.ids import derive_ids
from palace_pipeline.exports.json_values import arguments_text, name_of, text_of
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Conversation, Message, short_hash

PROVIDER = "cursor"

_ENDINGS = re.compile(r"(?:\.jsonl|\.zst|\.gz)+$", re.IGNORECASE)
_TIME = re.compile(
    r"(?:\w+,\s)?(?P<month>[A-Z][a-z]{2})[a-z]*\s(?P<day>\d{1,2}),\s(?P<year>\d{4}),?\s"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?\s?(?P<half>[AP]M)?"
    r"(?:\s?\((?:UTC|GMT)(?P<offset>[+\-\u2212]\d{1,2}(?::?\d\d)?)?\)(?P<zoned>))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_QUERY, _QUERY_END = "<user_query>", "</user_query>"
_PLACEHOLDER = "[REDACTED]"
"""What stands in place of a thought."""


class CursorTranscriptReader:
    """Reads a transcript as one conversation; see the module."""

    format = "cursor-transcript"
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/kenn-io/agentsview and other public parsers",
        "medium",
        "Cursor transcripts",
        "`~/.cursor/projects/*/agent-transcripts/`",
        "2026",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """Lines with a role and a `message` around the content; other logs give their lines a type."""
        return head.shape == "jsonl" and any(
            isinstance(item, dict) and item.get("role") in ("user", "assistant") and _is_turn(item)
            for item in head.items
        )

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The one conversation of a file."""
        path = PurePosixPath(member.path.rpartition("!/")[2])
        stem = _ENDINGS.sub("", path.name)
        messages: list[Message] = []
        empty = True
        for number, record in records(member, report, _is_turn):
            empty = False
            _take(record, messages, report, f"line {number}")
        for message in messages:
            message.message_id = short_hash(message.role, message.kind, message.tool_name or "", message.text)
        derive_ids(messages)
        if not any(message.visible for message in messages):
            if not empty:
                report.skip("chat without messages", expected=True, unit="conversation")
            return
        folders = path.parts[:-1]
        chat = PurePosixPath(*folders[:-1]).name if folders and folders[-1] == "subagents" else None
        at = folders.index("agent-transcripts") if "agent-transcripts" in folders else 0
        yield Conversation(
            provider=PROVIDER,
            conversation_id=stem,
            messages=messages,
            origin="person" if chat is None else "subagent",
            parent_conversation_id=chat or None,
            project=folders[at - 1] if at else None,
        )


READER = CursorTranscriptReader()


def _is_turn(record: Record) -> bool:
    message = record.get("message")
    return isinstance(message, dict) and "content" in message and "type" not in record and "role" in record


def _take(record: Record, messages: list[Message], report: Report, place: str) -> None:
    role, message = record.get("role"), record.get("message")
    if isinstance(kind := record.get("type"), str) and role is None:
        if kind != "turn_ended":
            count_unknown(report, "record type", kind)
        return
    if not isinstance(message, dict):
        report.skip("record without a message", place, expected=False)
        return
    content = message.get("content")
    blocks: list[Any] = content if isinstance(content, list) else [content]
    before = len(messages)
    if role == "user":
        _take_user(blocks, messages, report)
    elif role == "assistant":
        _take_answer(blocks, messages, report)
    else:
        count_unknown(report, "role", role)
        _hide(messages, "unknown role", "\n\n".join(_texts(blocks, report)))
    if len(messages) == before:
        report.skip("message without content", place, expected=True)


def _take_user(blocks: list[Any], messages: list[Message], report: Report) -> None:
    text, stamps = cut_blocks("\n\n".join(_texts(blocks, report)), "timestamp")
    before, found, rest = text.partition(_QUERY)
    files = [
        Attachment(name_of(block.get("name")), "image")
        for block in blocks
        if isinstance(block, dict) and block.get("type") in ("image", "image_url")
    ]
    if found:
        own, _, after = rest.partition(_QUERY_END)  # a cut file may have lost the end: all that is left was typed
    elif text.lstrip().startswith("<") and not text.lstrip().startswith("</"):
        own, before, after = "", text, ""  # tags without words: nobody typed this
    else:
        own, before, after = text, "", ""
    start = len(messages)
    _hide(messages, "context", before)
    if own.strip() or files:
        messages.append(Message("", "user", own.strip(), "text" if own.strip() else "image", attachment=files))
    _hide(messages, "context", after)
    instant, local = _time(stamps[0]) if stamps else (None, None)
    for message in messages[start:]:
        message.created_at, message.local_time = instant, local


def _take_answer(blocks: list[Any], messages: list[Message], report: Report) -> None:
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if isinstance(block, str) or kind == "text":
            text = text_of(block if isinstance(block, str) else block.get("text")).strip()
            text = text.removesuffix(_PLACEHOLDER).rstrip()
            if text:
                messages.append(Message("", "assistant", text))
        elif kind == "thinking":
            if thought := text_of(block.get("thinking") or block.get("text")).strip():
                messages.append(Message("", "thinking", thought, "thinking"))
        elif kind == "tool_use":
            arguments = arguments_text(block.get("input"))
            messages.append(Message("", "tool", arguments, "tool_call", tool_name=name_of(block.get("name"))))
        elif kind == "tool_result":
            inner = block.get("content")
            result = "\n\n".join(_texts(inner if isinstance(inner, list) else [inner], report))
            messages.append(Message("", "tool", result, "tool_result"))
        elif block is not None:
            count_unknown(report, "content type", kind)


def _texts(blocks: list[Any], report: Report) -> list[str]:
    found: list[str] = []
    for block in blocks:
        if isinstance(block, str):
            found.append(text_of(block))
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            found.append(text_of(block["text"]))
        elif isinstance(block, dict) and block.get("type") not in ("image", "image_url", "tool_result"):
            count_unknown(report, "content type", block.get("type"))
    return [text for text in found if text.strip()]


def _hide(messages: list[Message], reason: str, text: str) -> None:
    if text.strip():
        messages.append(Message("", "system", text.strip(), "system", hidden_reason=reason))


def _time(stamp: str) -> tuple[datetime | None, str | None]:
    """`Friday, Sep 18, 2026, 10:48 AM (UTC+1)` -> an instant; without the offset a naive time; else nothing."""
    match = _TIME.fullmatch(stamp.strip())
    if match is None or match["month"] not in _MONTHS:
        return parse_instant(stamp.strip()), parse_naive(stamp.strip())
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            return None, None
        hour = hour % 12 + (12 if match["half"] == "PM" else 0)
    month = _MONTHS.index(match["month"]) + 1
    local = f"{match['year']}-{month:02}-{int(match['day']):02}T{hour:02}:{match['minute']}:{match['second'] or '00'}"
    if match["zoned"] is None:
        return None, parse_naive(local)
    hours, _, minutes = (match["offset"] or "+0").replace("\u2212", "-").partition(":")
    if len(hours) > 3:
        hours, minutes = hours[:-2], hours[-2:]
    return parse_instant(f"{local}{hours[0]}{int(hours[1:]):02}:{minutes or '00'}"), None
