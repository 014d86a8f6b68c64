"""Hermes Agent sessions as files: `~/.hermes/sessions/<date>_<time>_<hex>.jsonl` and `session_<id>.json`.

JSON lines begin with `session_meta`; then come messages in OpenAI's shape with naive local times. The JSON snapshot
(`session_id`, `session_start`, `messages`) is what command-line sessions leave. The database of the same product is
read by `hermes_db`; `hermes_messages` makes the rows of all three, with ids of content, so that one session seen in a
file and in the database has each message once. Shape: https://github.com/NousResearch/hermes-agent and the parser of
https://github.com/kenn-io/agentsview (internal/parser/hermes.go), checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

from palace_pipeline.exports.agent_log import Record, records, side_file, side_json
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.hermes_rows import hermes_messages
from palace_pipeline.exports.json_values import name_of
from palace_pipeline.exports.text import clean_text
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Conversation, Message, Origin

PROVIDER = "hermes"

_ENDINGS = re.compile(r"(?:\.jsonl|\.json|\.zst|\.gz)+$", re.IGNORECASE)
_SNAPSHOT_KEYS = ("session_start", "last_updated", "system_prompt", "platform", "message_count", "base_url")
_HERMES_KEYS = ("finish_reason", "reasoning", "reasoning_details", "tool_call_id")
_ORIGINS: dict[str, Origin] = {
    "cron": "cron", "subagent": "subagent", "delegate": "subagent", "heartbeat": "heartbeat", "tool": "tool",
}  # fmt: skip
_SPEC = SpecTarget(
    "2026-11-29",
    "https://github.com/NousResearch/hermes-agent, https://github.com/kenn-io/agentsview internal/parser/hermes.go",
    "high",
    "Hermes sessions",
    "`~/.hermes/sessions/*.jsonl`, `session_*.json`",
    "2026",
)


def hermes_origin(platform: object, session_id: str) -> Origin:
    """Whose session it is, from its platform (in the database: `source`) or the name that scheduled jobs get."""
    if isinstance(platform, str) and platform.lower() in _ORIGINS:
        return _ORIGINS[platform.lower()]
    return "cron" if session_id.startswith("cron_") else "person"


class HermesLogReader:
    """Reads a session as JSON lines; see the module."""

    format = "hermes-jsonl"
    provider = PROVIDER
    recipe = 1
    spec = _SPEC
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """Lines with a `session_meta`, or (without one) answers as this product writes them, with naive times."""
        if head.shape != "jsonl":
            return False
        lines = [item for item in head.items if isinstance(item, dict)]
        if any(line.get("role") == "session_meta" for line in lines):
            return True
        return any(_is_answer(line) for line in lines) and all("role" in line for line in lines)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The one conversation of a file."""
        stem = _ENDINGS.sub("", PurePosixPath(member.path).name)
        meta: Record = {}
        rows: list[Message] = []
        empty = True

        def turns() -> Iterator[Record]:
            nonlocal empty
            for _, record in records(member, report, _is_whole):
                empty = False
                if record.get("role") == "session_meta":
                    for key in ("model", "platform", "timestamp", "title", "cwd"):
                        meta.setdefault(key, record.get(key))  # tools may be hundreds of kilobytes
                else:
                    yield record

        rows = hermes_messages(turns(), report)
        conversation = _conversation(member, stem, meta, rows, meta.get("timestamp"))
        if conversation.visible_messages():
            yield conversation
        elif not empty:
            report.skip("session without messages", expected=True, unit="conversation")


class HermesSnapshotReader:
    """Reads a session as one JSON object; see the module."""

    format = "hermes-json"
    provider = PROVIDER
    recipe = 1
    spec = _SPEC
    layout: Literal["elements"] = "elements"

    def detect(self, head: Head) -> bool:
        """An object (or several) with `session_id`, `messages` and what else this product writes beside them."""
        return head.shape in ("object", "array", "jsonl") and any(
            isinstance(item, dict) and _is_snapshot(item) for item in head.items
        )

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation."""
        turns = value.get("messages") if isinstance(value, dict) else None
        if not isinstance(turns, list):
            report.skip("session without messages", place, expected=False, unit="conversation")
            return
        known = [turn for turn in turns if isinstance(turn, dict)]
        if odd := len(turns) - len(known):
            report.skip("not a message", place, expected=False, count=odd)
        stem = _ENDINGS.sub("", PurePosixPath(member.path).name).removeprefix("session_")
        rows = hermes_messages(known, report)
        conversation = _conversation(
            member, name_of(value.get("session_id")) or stem, value, rows, value.get("session_start")
        )
        conversation.updated_at = parse_instant(value.get("last_updated"))
        if conversation.visible_messages():
            yield conversation
        else:
            report.skip("session without messages", place, expected=True, unit="conversation")


READERS = (HermesLogReader(), HermesSnapshotReader())


def _is_whole(record: Record) -> bool:
    return isinstance(record.get("role"), str) and "timestamp" in record


def _is_answer(line: Record) -> bool:
    """An answer or a tool's result with this product's fields and a naive time; others write neither together."""
    if line.get("role") not in ("assistant", "tool") or parse_naive(line.get("timestamp")) is None:
        return False
    return any(key in line for key in _HERMES_KEYS)


def _is_snapshot(item: Record) -> bool:
    if not isinstance(item.get("session_id"), str) or not isinstance(item.get("messages"), list):
        return False
    return sum(key in item for key in _SNAPSHOT_KEYS) >= 2


def _conversation(
    member: Member, session_id: str, head: Mapping[str, Any], rows: list[Message], started: object
) -> Conversation:
    model = name_of(head.get("model"))
    for row in rows:
        if row.role in ("assistant", "thinking") or row.kind == "tool_call":
            row.model = row.model or model
    entry = _index_entry(member, session_id)
    platform = head.get("platform") or entry.get("platform")
    return Conversation(
        provider=PROVIDER,
        conversation_id=clean_text(session_id),
        messages=rows,
        title=name_of(head.get("title")) or name_of(entry.get("display_name")),
        created_at=parse_instant(started),
        local_created=parse_naive(started),
        origin=hermes_origin(platform, session_id),
        model=model,
        project=name_of(head.get("cwd")),
    )


def _index_entry(member: Member, session_id: str) -> Mapping[str, Any]:
    """What the index of live sessions, `sessions.json`, says of a session: its name, the platform."""
    if not session_id or session_id.encode("utf-8", "replace") not in side_file(member, "sessions.json"):
        return {}
    index = side_json(member, "sessions.json")
    entries = index.values() if isinstance(index, dict) else index if isinstance(index, list) else ()
    return next((e for e in entries if isinstance(e, dict) and e.get("session_id") == session_id), {})


__all__ = ["PROVIDER", "READERS", "hermes_messages", "hermes_origin"]
