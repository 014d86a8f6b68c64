"""Grok Build's `updates.jsonl`, the log beside a session's chat: when each message was said, and what a compression cut.

It repeats every output of every tool and grows to gigabytes beside a chat of one megabyte, so it is streamed, and only
lines that hold words of the person or the answer are parsed. Shape: https://github.com/tenequm/pond
docs/adapters/grok-build.md (grok-build 1.0.5 and its source), checked 2026-11-29.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from palace_pipeline.exports.base import Member, Report
from palace_pipeline.exports.json_values import text_of
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.exports.text import json_lines, parse_json
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.model import Message

_KIND = re.compile(rb'"sessionUpdate"\s*:\s*"([A-Za-z_]{1,40})"')
_SPOKEN: dict[bytes, Literal["user", "assistant"]] = {
    b"user_message_chunk": "user",
    b"agent_message_chunk": "assistant",
}
_COMPRESSED = (b"compaction_checkpoint", b"auto_compact_completed")
_REWOUND = b"rewind_marker"
_INJECTED = ("hostTurn", "hideFromScrollback")
_KIND_WITHIN = 4096


@dataclass(slots=True)
class Said:
    """One message as the log has it: its pieces joined, and the time of the first of them."""

    role: Literal["user", "assistant"]
    text: str
    at: datetime | None
    prompt: int | None = None


@dataclass(slots=True)
class Log:
    """The messages of a log in order; `compressed`: how many of them stood before the last compression."""

    said: list[Said] = field(default_factory=list[Said])
    compressed: int = 0


def read_log(member: Member, report: Report) -> Log:
    """What a session's log says was said. A damaged line costs itself, a log that cannot be read costs the times."""
    log = Log()
    joins = False
    damaged = 0
    try:
        with member.open() as stream:
            for _, line in json_lines(stream):
                match = _KIND.search(line, 0, _KIND_WITHIN) or _KIND.search(line)
                kind = match[1] if match else b""
                if (role := _SPOKEN.get(kind)) is None:
                    joins = False
                    if kind in _COMPRESSED:
                        log.compressed = len(log.said)
                    elif kind == _REWOUND:
                        _rewind(log, line)
                    continue
                piece = _piece(line, role)
                if piece is None:
                    damaged += 1
                    continue
                last = log.said[-1] if log.said and joins else None
                if last is not None and last.role == role and last.prompt == piece.prompt:
                    last.text += piece.text
                else:
                    log.said.append(piece)
                joins = True
    except MemberError as error:
        report.skip(f"the log beside it: {error}", expected=False)
    if damaged:
        report.skip("damaged line in the log beside it", expected=False, count=damaged)
    log.said = [said for said in log.said if said.text.strip()]
    return log


def _piece(line: bytes, role: Literal["user", "assistant"]) -> Said | None:
    try:
        value: Any = parse_json(line)
    except (ValueError, RecursionError):
        return None
    holder = value if isinstance(value, dict) else {}
    params = holder.get("params")
    params = params if isinstance(params, dict) else holder  # old lines have no envelope
    update = params.get("update")
    update = update if isinstance(update, dict) else {}
    metas = [meta for meta in (update.get("_meta"), params.get("_meta")) if isinstance(meta, dict)]
    content = update.get("content")
    text = text_of(content.get("text")) if isinstance(content, dict) else text_of(content)
    if any(meta.get(name) is True for meta in metas for name in _INJECTED):
        text = ""
    stamps = [*(meta.get("agentTimestampMs") for meta in metas), holder.get("timestamp")]
    at = next((instant for stamp in stamps if (instant := parse_instant(stamp))), None)
    prompt = next((meta["promptIndex"] for meta in metas if isinstance(meta.get("promptIndex"), int)), None)
    return Said(role, text, at, prompt)


def _rewind(log: Log, line: bytes) -> None:
    """Leave out what a rewind cut off, if the marker says from which prompt on."""
    match = re.search(rb'"(?:target_?)?prompt_?index"\s*:\s*(\d{1,9})', line, re.IGNORECASE)
    if match is None:
        return
    first = int(match[1])
    at = next((n for n, said in enumerate(log.said) if said.prompt is not None and said.prompt >= first), None)
    if at is not None:
        del log.said[at:]
        log.compressed = min(log.compressed, at)


def date_messages(messages: Sequence[Message], log: Log) -> list[Said]:
    """Give messages the times of the log, in place; returns what was said before a compression and is not among them.

    Both are in one order, so a message is looked for behind the place of the one before it. Nothing gets a time that
    the log does not have for exactly its words.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for number, said in enumerate(log.said):
        places.setdefault((said.role, _words(said.text)), []).append(number)
    at = -1
    found: set[int] = set()
    for message in messages:
        numbers = places.get((message.role, _words(message.text)))
        if not numbers or (index := bisect_right(numbers, at)) == len(numbers):
            continue
        at = numbers[index]
        found.add(at)
        message.created_at = log.said[at].at
    # The tail that a compression keeps stands in the log once: equal words are the same message.
    known = {(message.role, _words(message.text)) for message in messages}
    return [
        said
        for number, said in enumerate(log.said[: log.compressed])
        if number not in found and (said.role, _words(said.text)) not in known
    ]


def _words(text: str) -> str:
    return " ".join(text.split())
