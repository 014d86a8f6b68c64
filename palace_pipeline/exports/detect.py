"""The beginning of a member -> its shape, so that readers can be chosen without reading it."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from palace_pipeline.exports.base import Head, Member
from palace_pipeline.exports.databases import MAGIC, open_database
from palace_pipeline.exports.deep_json import parse_deep
from palace_pipeline.exports.splitter import ArrayCut, split_array, whole_values
from palace_pipeline.exports.text import decode, json_lines, parse_json
from palace_pipeline.exports.utf16 import utf16_json
from palace_pipeline.exports.workbook import NotAWorkbookError, first_rows, looks_like_workbook

HEAD_BYTES = 1024 * 1024
TEXT_BYTES = 256 * 1024
_ITEMS = 8
_HEADER_ROWS = 20
_BLANK_BYTES = 64 * 1024 * 1024
_SMALLEST_PART = 64
_SPACE = b" \t\r\n\0"
_WRAPPERS = ("conversations", "chats", "sessions", "threads", "data", "items")
_JSONL_NAME = re.compile(
    r"\.(?:jsonl|ndjson)(?:\.(?:reset|deleted|full|bak|old)(?:[.-][\w:+.-]*)?)?(?:\.(?:zst|gz))?$", re.ASCII
)
"""Names of JSON lines, also of sessions that an agent has put aside (`.jsonl.reset.<time>`, `.jsonl.full.bak`)."""
_JSON_ENDINGS = (".json", ".json.gz", ".json.zst")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|[\[\]{},]', re.DOTALL)


def head_of(member: Member, scratch: Path | None = None) -> Head:
    """What stands at the beginning of a member: at most 1 MiB is looked at (leading blanks not counted).

    Null elements are passed over. A record, or a whole file, that is larger than that is completed as if it ended
    there, so its first keys still show. A database is opened (`scratch`: where a copy may lie for that, see
    `open_database`). Raises MemberError (an OSError) if the member cannot be read.
    """
    with member.open() as stream:
        data, whole = _beginning(stream)
    if data.startswith(MAGIC):
        database = open_database(member, scratch)
        return Head(member.path, "sqlite", keys=database.tables, database=database)
    if looks_like_workbook(data):
        with suppress(NotAWorkbookError):
            sheets = first_rows(member, _HEADER_ROWS)
            return Head(member.path, "workbook", items=[{"sheet": sheet, "rows": rows} for sheet, rows in sheets])
    encoding = utf16_json(data)
    if encoding is not None:
        data = data[: len(data) & ~1].decode(encoding, "replace").removeprefix("\ufeff").encode()
    # Of a database lines are kept under its own name, which does not say so.
    head = _head(member.path, data, whole, lines=getattr(member, "holds_lines", False))
    head.encoding = encoding
    return head


def _head(path: str, data: bytes, whole: bool, *, lines: bool) -> Head:
    body = data.removeprefix(b"\xef\xbb\xbf").strip(_SPACE)
    if not body:
        return Head(path, "empty" if whole else "binary")
    name = path.lower()
    if lines or _JSONL_NAME.search(name):
        return _lines_head(path, data, whole, certain=True) or _text_head(path, data)
    if body[:1] in b"[{":
        strict = not name.endswith(_JSON_ENDINGS)
        # What is one value from its beginning to its end cannot be lines of objects as well.
        value = _at_once(body) if whole else None
        head = _lines_head(path, data, whole) if value is None else None
        head = head or _json_head(path, body, whole, value, strict=strict)
        if head is not None:
            return head
    return _text_head(path, data)


def _beginning(stream: BinaryIO) -> tuple[bytes, bool]:
    """The first bytes, and whether that is all. Blanks at the start (some exports are padded) are read past."""
    data = stream.read(HEAD_BYTES)
    passed = 0
    while len(data) >= HEAD_BYTES and len(slim := data.strip(_SPACE)) < 2 and passed < _BLANK_BYTES:
        passed += len(data)
        more = stream.read(HEAD_BYTES)
        data = slim + more
        if len(more) < HEAD_BYTES:
            return data, True
    return data, len(data) < HEAD_BYTES


def _text_head(path: str, data: bytes) -> Head:
    text = decode(data[:TEXT_BYTES])
    return Head(path, "binary") if text is None else Head(path, "text", text=text)


def _lines_head(path: str, data: bytes, whole: bool, *, certain: bool = False) -> Head | None:
    """The head of JSON lines. Not `certain` by the name: at least two lines, and most of them whole objects."""
    items: list[Any] = []
    seen = 0
    for _, line in json_lines(io.BytesIO(data)):
        seen += 1
        item = _value(line) if line[:1] in b"[{" and len(line) > 1 else None
        if isinstance(item, dict) or (certain and isinstance(item, list)):
            items.append(item)
        if len(items) == _ITEMS * 4 or seen == _ITEMS * 16:
            break
    if certain:
        if not items and not whole and isinstance(item := _value(completed(data.strip(_SPACE))), dict):
            items = [item]
        return Head(path, "jsonl", items=items, keys=_keys(items)) if items or not _looks_like_text(data) else None
    return Head(path, "jsonl", items=items, keys=_keys(items)) if seen > 1 and len(items) * 2 > seen else None


def _looks_like_text(data: bytes) -> bool:
    return data.lstrip(_SPACE)[:1] not in (b"{", b"[")


def _at_once(body: bytes) -> Any:
    """The value of a sound file, which most are; else None."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _json_head(path: str, body: bytes, whole: bool, value: Any, *, strict: bool) -> Head | None:
    """The head of one JSON value (`value` if it is known). `strict`: what does not call itself JSON must be JSON to its
    end."""
    if body[:1] == b"[":
        if isinstance(value, list):
            items = _without_nulls(value[: _ITEMS * 64])
            sound = bool(items)
        else:
            items, sound = _first_items(body)
        if strict and (not sound or not all(isinstance(item, dict | list) for item in items)):
            return None
        return Head(path, "array", items=items, keys=_keys(items))
    if value is None and whole:
        value = _value(body)
    if not isinstance(value, dict):
        made_whole = completed(body)
        value = _value(made_whole)
        if strict and (not value or body.startswith(made_whole)):  # something else follows the object
            return None
    if not isinstance(value, dict) and strict:
        return None
    if not isinstance(value, dict):
        for key in _WRAPPERS:
            items, _ = _first_items(body, key)
            if any(isinstance(item, dict) for item in items):
                return Head(path, "object", items=items, keys=[key], wrapped=key)
        value = _before_damage(body)
    if not isinstance(value, dict):
        return Head(path, "text", text=body[:TEXT_BYTES].decode("utf-8", "replace"))
    for key in _WRAPPERS:
        inner = _without_nulls(value.get(key))
        first = next((item for item in inner if isinstance(item, dict)), None)
        if first is not None and not _is_turn(first):
            return Head(path, "object", items=inner, keys=list(value), wrapped=key)
    return Head(path, "object", items=[value], keys=list(value))


def _before_damage(body: bytes) -> Any:
    """As much of a damaged object as can be read: its first half, quarter, eighth… as if it ended there."""
    size = len(body) // 2
    while size >= _SMALLEST_PART:
        if isinstance(value := _value(completed(body[:size])), dict) and value:
            return value
        size //= 2
    return None


def _first_items(body: bytes, key: str | None = None) -> tuple[list[Any], bool]:
    """The first values of an array (or of the one under `key`) that are not null, and whether all is well so far."""
    items: list[Any] = []
    damaged = b""
    sound = True
    count = 0
    try:
        for _, raw in split_array(io.BytesIO(body), key, block_bytes=65536):
            count += 1
            try:
                item = parse_json(raw)
            except ValueError:
                sound = False
                damaged = damaged or raw
                continue
            if item is not None:
                items.append(item)
            if len(items) == _ITEMS or count == _ITEMS * 64:
                return items, sound
    except ArrayCut as cut:
        sound = sound and cut.inside
        damaged = damaged or cut.rest
    if not items and key is None:
        # One element larger than what was read: take what there is of it.
        items = _without_nulls(_value(completed(body)))
        sound = sound and bool(items)
    if damaged:
        # A lost quote makes one element of all that follows: what stands whole in it says what the file is.
        items += map(parse_json, islice(whole_values(damaged), _ITEMS))
    return items, sound


def _without_nulls(value: Any) -> list[Any]:
    return [item for item in value if item is not None][:_ITEMS] if isinstance(value, list) else []


def _keys(items: list[Any]) -> list[str]:
    return list(next((item for item in items if isinstance(item, dict)), {}))


def _is_turn(item: dict[str, Any]) -> bool:
    """A list of turns is one conversation, not a list of conversations."""
    return ("from" in item and "value" in item) or ("role" in item and ("content" in item or "text" in item))


def _value(data: bytes) -> Any:
    try:
        return parse_json(data)
    except ValueError as error:
        if not isinstance(error.__cause__, RecursionError):
            return None
    try:
        return parse_deep(data)
    except ValueError:
        return None


def completed(prefix: bytes) -> bytes:
    """The beginning of a JSON value made whole: cut behind the last complete value, open brackets closed."""
    stack: list[bytes] = []
    safe = 0
    for token in _TOKEN.finditer(prefix):
        mark = token[0]
        if mark in (b"{", b"["):
            stack.append(b"}" if mark == b"{" else b"]")
        elif mark in (b"}", b"]"):
            if stack:
                stack.pop()
        elif mark != b",":
            continue
        safe = token.start() if mark == b"," else token.end()
        if not stack:
            break
    return prefix[:safe] + b"".join(reversed(stack))
