"""Telegram Desktop's export: `result.json` with one chat, or with everything (`chats.list`, `left_chats.list`).

Facts: https://core.telegram.org/import-export and https://github.com/telegramdesktop/tdesktop
`export_output_json.cpp` (its own string escapes, `from` null for deleted accounts, `date_unixtime` since 2021), issue
25000 there; checked 2026-11-29. Full exports of 15 GB are real, so the file is gone through message by message.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from typing import Any, BinaryIO, Literal

from palace_pipeline.exports import known_keys
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.detect import completed
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.records import salvaged
from palace_pipeline.exports.splitter import ArrayCut
from palace_pipeline.exports.telegram_rows import ACTIONS, as_message
from palace_pipeline.exports.text import clean_text, parse_json
from palace_pipeline.exports.tree_splitter import Choice, Found, JsonPath, split_tree
from palace_pipeline.model import Conversation, Message

_CHAT_TYPES = frozenset(
    """
    saved_messages replies verification_codes personal_chat bot_chat private_group private_supergroup
    public_supergroup private_channel public_channel
    """.split()  # noqa: SIM905 - ten quoted names would read worse
)
_ACCOUNT_KEYS = frozenset(
    "personal_information contacts frequent_contacts sessions web_sessions other_data profile_pictures stories".split()  # noqa: SIM905
)
_LISTS = ("chats", "left_chats")
_CHAT_START = re.compile(
    rb'\{\s*(?:"(?:name|type|id)"\s*:\s*(?:"(?:[^"\\]|\\.)*+"|[^\s,"{}\[\]]+)\s*,\s*){1,4}"messages"\s*:\s*\[',
    re.DOTALL,
)
_SALVAGED_CHATS = 10_000
_HEAD_BYTES = 65536
_MAX_SALVAGE = 256 * 1024 * 1024


@dataclass(slots=True)
class _Chat:
    """A chat as far as it has been gone through."""

    place: str
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    notices: Counter[str] = field(default_factory=Counter[str])
    records: int = 0
    listed: bool = False
    """It has a list of messages."""


class TelegramReader:
    """Reads a single chat or a full export."""

    format = "telegram-json"
    provider = "telegram"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/telegramdesktop/tdesktop export_output_json.cpp",
        "high",
        name="Telegram export",
        where="Telegram Desktop: chat menu → Export chat history, or Settings → Advanced → Export Telegram data; JSON",
        since="2018",
    )
    layout: Literal["whole"] = "whole"
    known_keys = known_keys.TELEGRAM

    def detect(self, head: Head) -> bool:
        value = head.items[0] if head.shape == "object" and head.items else None
        if not isinstance(value, dict):
            return False
        if any(isinstance(value.get(key), dict) and isinstance(value[key].get("list"), list) for key in _LISTS):
            return True
        if "about" in value and isinstance(value.get("personal_information"), dict):
            return True
        return isinstance(value.get("messages"), list) and _is_chat(value)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        single = _is_single(member)
        with member.open() as stream:
            yield from _single(stream, report) if single else _full(stream, report)


READER = TelegramReader()


def _is_chat(value: Mapping[str, Any]) -> bool:
    """Telegram's name for the kind of chat, or messages that only Telegram writes."""
    messages = [item for item in value["messages"] if isinstance(item, dict)][:8]
    dated = [
        item
        for item in messages
        if ("date_unixtime" in item or "date" in item) and ("from_id" in item or "actor" in item or "from" in item)
    ]
    known = isinstance(value.get("type"), str) and value["type"] in _CHAT_TYPES
    if not messages:
        return known and "id" in value
    return bool(dated) and (known or any("date_unixtime" in item for item in dated))


def _is_single(member: Member) -> bool:
    """Whether the file is one chat: its list of messages then stands right at the beginning."""
    with member.open() as stream:
        data = stream.read(_HEAD_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n\0")
    try:
        value = parse_json(completed(data))
    except (ValueError, RecursionError):
        return _CHAT_START.match(data) is not None
    return isinstance(value, dict) and "messages" in value and not any(key in value for key in _LISTS)


def _choose(path: JsonPath) -> Choice:
    """The way to the messages of a full export."""
    if len(path) == 1:
        return "enter" if path[0] in _LISTS else "skip"
    if len(path) == 2:
        return "enter" if path[1] == "list" else "skip"
    if len(path) == 4:
        return "enter" if path[3] == "messages" else "skip"
    return "enter" if len(path) == 3 else "take"


def _choose_single(path: JsonPath) -> Choice:
    if len(path) == 1:
        return "enter" if path[0] == "messages" else "skip"
    return "take"


def _single(stream: BinaryIO, report: Report, place: str = "") -> Iterator[Conversation]:
    """The chat of a file that holds one."""
    chat = _Chat(place)
    try:
        for found in split_tree(stream, _choose_single, 3):
            if swallowed := _take(chat, found.path, found, report):
                yield from _found_again(swallowed, report)
    except ArrayCut as cut:
        if cut.inside or not place:
            report.skip(f"cut or damaged: {cut}", place, expected=False, unit="file")
        _salvage(chat, cut.rest, report)
    yield from _ended(chat, report)


def _full(stream: BinaryIO, report: Report) -> Iterator[Conversation]:
    """The chats of a full export, each as soon as it has been gone through."""
    chat: _Chat | None = None
    passed = set[str | int]()
    open_lists = set[JsonPath]()

    def choose(path: JsonPath) -> Choice:
        choice = _choose(path)
        if choice == "skip":
            passed.add(path[0])
        return choice

    damaged = b""
    try:
        for found in split_tree(stream, choose, 6):
            if found.entered and len(found.path) in (1, 2):
                open_lists.add(found.path)
            elif len(found.path) == 3:
                yield from _ended(chat, report)
                chat = _begun(found, report)
            elif len(found.path) > 3 and chat is not None and (rest := _take(chat, found.path[3:], found, report)):
                yield from _found_again(rest, report)
    except ArrayCut as cut:
        report.skip(f"cut or damaged: {cut}", chat.place if chat else "", expected=False, unit="file")
        damaged = cut.rest if chat is None else _salvage(chat, cut.rest, report)
    yield from _ended(chat, report)
    yield from _found_again(damaged, report)
    for path in sorted(open_lists):
        if len(path) == 1 and (path[0], "list") not in open_lists:
            report.skip("no list of chats", str(path[0]), expected=False, unit="file")
    if passed & _ACCOUNT_KEYS:
        report.skip("account data of a full export (contacts, sessions): not read", expected=True, unit="file")


def _begun(found: Found, report: Report) -> _Chat | None:
    place = f"{found.path[0]}[{found.path[2]}]"
    if not found.entered or found.raw != b"{":
        expected = found.raw == b"null"
        reason = "null in place of a chat" if expected else "not a chat"
        report.skip(reason, place, expected=expected, unit="conversation")
        return None
    return _Chat(place)


def _take(chat: _Chat, inside: JsonPath, found: Found, report: Report) -> bytes:
    """One value of a chat. Returns a damaged piece in which other chats may have been swallowed, else b""."""
    if len(inside) == 1:
        if found.entered:
            chat.listed = True
        elif isinstance(inside[0], str):
            chat.values[inside[0]] = _scalar(found.raw)
        return b""
    if len(inside) != 2 or found.entered:
        return b""
    chat.records += 1
    try:
        record = parse_json(found.raw)
    except (ValueError, RecursionError):
        place = f"{chat.place} messages[{inside[1]}]".strip()
        report.skip("damaged JSON" if found.raw else "too large to be read", place, expected=False)
        return _salvage(chat, found.raw, report)
    if isinstance(record, dict) and isinstance(record.get("messages"), list):
        # The list before lacks its end: this is the next chat.
        return b"[" + found.raw
    _add(chat, record, inside[1], report)
    return b""


def _salvage(chat: _Chat, damaged: bytes, report: Report) -> bytes:
    """Adds the whole messages of a damaged piece, up to where another chat begins; returns what remains from there."""
    if len(damaged) > _MAX_SALVAGE:
        return b""
    start = _CHAT_START.search(damaged)
    own = damaged[: start.start()] if start else damaged
    for record in salvaged(own, lambda value: isinstance(value, dict) and "type" in value and "date" in value):
        _add(chat, record, "in a damaged part", report)
    return damaged[start.start() :] if start else b""


def _found_again(damaged: bytes, report: Report) -> Iterator[Conversation]:
    """The chats in what a lost quote or bracket has swallowed."""
    starts = [match.start() for match in _CHAT_START.finditer(damaged)][:_SALVAGED_CHATS]
    for start, end in pairwise([*starts, len(damaged)]):
        yield from _single(BytesIO(damaged[start:end]), report, "chat in a damaged part")


def _add(chat: _Chat, record: Any, number: str | int, report: Report) -> None:
    usual = isinstance(record, dict) and record.get("type") == "message" and record.get("text")
    if usual and (message := as_message(record, _bot_of(chat.values), report)) is not None:
        chat.messages[message.message_id or f"#{len(chat.messages)}"] = message
        return
    place = f"{chat.place} messages[{number}]".strip()
    if not isinstance(record, dict):
        report.skip("null in place of a message" if record is None else "not a message", place, expected=record is None)
        return
    kind = record.get("type")
    if kind == "service":
        action = record.get("action")
        if isinstance(action, str) and action not in ACTIONS:
            report.unknown[f"action:{action}"] += 1
        chat.notices["service record"] += 1
        return
    if kind == "unsupported":
        report.skip("message of a kind that the exporting Telegram did not know", place, expected=False)
        return
    if kind != "message" and kind is not None:
        report.unknown[f"type:{kind}"] += 1
    message = as_message(record, _bot_of(chat.values), report)
    if message is None:
        if "text" in record and (not record["text"] or isinstance(record["text"], str | list)):
            chat.notices["empty message"] += 1
        else:
            report.skip("message without content", place, expected=False)
        return
    chat.messages[message.message_id or f"#{len(chat.messages)}"] = message


def _bot_of(values: Mapping[str, Any]) -> str | None:
    """The `from_id` of the program in a chat with one."""
    return f"user{values.get('id')}" if values.get("type") == "bot_chat" else None


def _ended(chat: _Chat | None, report: Report) -> Iterator[Conversation]:
    if chat is None:
        return
    for reason, count in chat.notices.items():
        report.skip(reason, chat.place, expected=True, count=count)
    messages = list(chat.messages.values())
    if not messages:
        if not chat.listed:
            report.skip("chat without a list of messages", chat.place, expected=False, unit="conversation")
        elif not chat.records or chat.notices.total() == chat.records:
            report.skip("empty conversation", chat.place, expected=True, unit="conversation")
        return
    name, number, kind = (chat.values.get(key) for key in ("name", "id", "type"))
    if isinstance(kind, str) and kind not in _CHAT_TYPES:
        report.unknown[f"chat type:{kind}"] += 1
    title = clean_text(name).strip() or None if isinstance(name, str) else None
    given = isinstance(number, int | str) and not isinstance(number, bool) and str(number).strip()
    chat_id = clean_text(str(number)).strip() if given else derive_conversation_id("telegram", title or "", messages)
    derive_ids(messages)
    yield Conversation(
        "telegram",
        chat_id,
        messages,
        title=title,
        project=title,
        order="time" if any(message.created_at for message in messages) else "source",
    )


def _scalar(raw: bytes) -> Any:
    try:
        return parse_json(raw)
    except ValueError:
        return None
