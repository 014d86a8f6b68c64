"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.json` (to 0.38) and `.jsonl` (since 0.39, spring 2026).

One object with `messages`, or a log that is replayed: a header, messages (the same id again replaces), `{"$set": {…}}`,
`{"$rewindTo": id}`. Sub-agents write `chats/<session>/<id>.jsonl`. Chats saved by hand are `checkpoint-<tag>.json`.
Facts: https://github.com/google-gemini/gemini-cli packages/core/src/services/chatRecordingService.ts and core/logger.ts,
checked 2026-11-29.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Literal

from palace_pipeline.exports.agent_log import Record, records
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.gemini_cli_rows import Replay
from palace_pipeline.exports.gemini_parts import bytes_of, salvaged
from palace_pipeline.exports.ids import derive_conversation_id
from palace_pipeline.exports.json_values import name_of, text_of
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.exports.text import parse_json
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.model import Conversation

PROVIDER = "gemini-cli"

MAX_OBJECT_BYTES = 1024 * 1024 * 1024
_TYPES = ("user", "gemini", "info", "error", "warning")
_LINES = re.compile(r"\.jsonl(?:\.zst|\.gz)?$", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]{64}")
_CHECKPOINT = re.compile(r"checkpoint-(.+)\.json$", re.IGNORECASE)
_PATH_BYTES = 4096
_PROJECTS_BYTES = 4 * 1024 * 1024
_META_KEYS = frozenset(
    """
    sessionId projectHash startTime lastUpdated messages summary directories kind activeExtensionName memoryScratchpad
    id timestamp type content displayContent toolCalls thoughts tokens model $set $rewindTo history authType
    messageId message clientHistory toolCall commitHash filePath
    """.split()  # noqa: SIM905
)


class GeminiCliReader:
    """Reader of Gemini CLI sessions, checkpoints and prompt histories; see the module."""

    format = "gemini-cli"
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/google-gemini/gemini-cli packages/core/src/services/chatRecordingService.ts",
        "high",
        name="Gemini CLI session",
        where="`~/.gemini/tmp/<project>/chats/session-*.json`, `.jsonl`",
        since="2025-06",
    )
    layout: Literal["whole"] = "whole"
    known_keys = {"": _META_KEYS}  # noqa: RUF012 - never changed

    def detect(self, head: Head) -> bool:
        """A session's header or messages, a checkpoint, or the list of prompts."""
        items = [item for item in head.items if isinstance(item, dict)]
        if head.shape == "object":
            # Of a large file only the first keys are known.
            return {"sessionId", "projectHash"} <= set(head.keys) or any(map(_is_checkpoint, items))
        if head.shape == "jsonl":
            return any(_is_line(item) for item in items)
        return head.shape == "array" and bool(items) and all(map(_is_prompt, items))

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The one conversation of a file, or none."""
        replay = Replay(report)
        value = _value_of(member, report)
        if isinstance(value, list):
            report.skip("prompt history beside the sessions", expected=True, count=max(len(value), 1))
            return
        if value is not None and _is_checkpoint(value):
            if "toolCall" in value:
                report.skip("restore point of a tool call", expected=True, unit="conversation")
                return
            replay.take_history(value["history"])
        elif value is not None:
            replay.take(value, "")
        else:
            for number, record in records(member, report, _is_line):
                replay.take(record, f"line {number}")
        if (conversation := _conversation(replay, member)) is not None:
            yield conversation
        else:
            report.skip("session in which nothing was said", expected=True, unit="conversation")


READER = GeminiCliReader()


def _is_line(item: Record) -> bool:
    if isinstance(item.get("sessionId"), str) and isinstance(item.get("projectHash"), str):
        return True
    if "$rewindTo" in item or isinstance(item.get("$set"), dict):
        return True
    return item.get("type") in _TYPES and "content" in item and "timestamp" in item and isinstance(item.get("id"), str)


def _is_checkpoint(item: Record) -> bool:
    history = item.get("history")
    if not isinstance(history, list) or "sessionId" in item:
        return False
    turns = [turn for turn in history if isinstance(turn, dict)][:4]
    return bool(turns) and all(turn.get("role") in ("user", "model") and "parts" in turn for turn in turns)


def _is_prompt(item: Record) -> bool:
    return isinstance(item.get("messageId"), int) and "sessionId" in item and "message" in item


def _value_of(member: Member, report: Report) -> Record | list[Any] | None:
    """The one JSON value of a file, or None for JSON lines. Of a file that is cut what comes before the cut."""
    if _LINES.search(member.path):
        return None
    data = bytes_of(member, report, MAX_OBJECT_BYTES).removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r\n")
    try:
        value = parse_json(data)
    except ValueError:
        if isinstance(_first_line(data), dict):
            return None  # lines under another name
        value = salvaged(data, "messages", "type", report)
    return value if isinstance(value, dict | list) else {}


def _first_line(data: bytes) -> object:
    try:
        return parse_json(data.split(b"\n", 1)[0])
    except ValueError:
        return None


def _conversation(replay: Replay, member: Member) -> Conversation | None:
    messages = replay.finish()
    if not any(message.hidden_reason is None and message.role != "system" for message in messages):
        return None
    meta = replay.meta
    name, *above = reversed(PurePosixPath(member.path).parts)
    nested = above[1:2] == ["chats"]
    is_agent = meta.get("kind") == "subagent" or nested
    stem = re.sub(r"(?:\.jsonl?|\.zst|\.gz)+$", "", name, flags=re.IGNORECASE)
    conversation_id = name_of(meta.get("sessionId"))
    title = name_of(meta.get("summary"))
    if (saved := _CHECKPOINT.fullmatch(name)) is not None and conversation_id is None:
        title = saved[1]
    return Conversation(
        PROVIDER,
        conversation_id or derive_conversation_id(PROVIDER, stem, messages),
        messages,
        title=title,
        created_at=parse_instant(meta.get("startTime")),
        updated_at=parse_instant(meta.get("lastUpdated")),
        origin="subagent" if is_agent else "person",
        model=replay.model,
        project=_project(member, above[2 if nested else 1 :], nested, meta),
        parent_conversation_id=above[0] if nested else None,
    )


def _project(member: Member, above: list[str], nested: bool, meta: Record) -> str | None:
    """The working folder: from files beside the session that name it, else the folder's own short name.

    `above`: the names of the project's folder and of those around it.
    """
    up = "../../" if nested else "../"
    if (found := _text_near(member, f"{up}.project_root", _PATH_BYTES)) is not None and found.strip():
        return found.strip()
    folder = above[0] if above else ""
    wanted = (folder, text_of(meta.get("projectHash")))
    for path, slug in _listed_projects(member, f"{up}../../projects.json").items():
        if slug == folder or hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest() in wanted:
            return text_of(path)
    return folder if above[1:2] == ["tmp"] and not _HEX.fullmatch(folder) else None


def _listed_projects(member: Member, relative: str) -> Record:
    """Path -> short name of `~/.gemini/projects.json`."""
    try:
        value = parse_json(_text_near(member, relative, _PROJECTS_BYTES) or "{}")
    except ValueError:
        return {}
    projects = value.get("projects") if isinstance(value, dict) else None
    return projects if isinstance(projects, dict) else {}


def _text_near(member: Member, relative: str, limit: int) -> str | None:
    beside = member.near(relative)
    if beside is None:
        return None
    try:
        with beside.open() as stream:
            return text_of(stream.read(limit).decode("utf-8", "replace"))
    except MemberError:
        return None  # the session itself is readable, only its folder's name is not known
