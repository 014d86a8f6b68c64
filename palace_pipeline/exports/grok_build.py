"""Grok Build, the command line agent: `~/.grok/sessions/<encoded folder>/<session>/chat_history.jsonl`.

Lines of type system, user, assistant, reasoning, tool_result, without times: these stand in `updates.jsonl` beside it
(`grok_updates`), title, folder and lineage in `summary.json`. A user's line with `prompt_index` was typed, one with
`synthetic_reason` was put there by the program. Shape: https://github.com/tenequm/pond docs/adapters/grok-build.md
(grok-build 1.0.5 and its source) and https://github.com/Dicklesworthstone/coding_agent_session_search/issues/328,
checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

from palace_pipeline.exports.agent_log import Record, count_unknown, records, side_json
from palace_pipeline.exports.attachments import inline_file, kind_of_files, url_file
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.grok_updates import date_messages, read_log
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import arguments_text, name_of, text_of
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.model import Attachment, Conversation, Message, short_hash

PROVIDER = "grok-cli"

_TYPES = ("system", "user", "assistant", "reasoning", "tool_result", "backend_tool_call")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_QUERY, _QUERY_END = "<user_query>", "</user_query>"
_TYPED = (None, "", "human")


class GrokBuildReader:
    """Reads a session as one conversation; see the module."""

    format = "grok-build"
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/tenequm/pond docs/adapters/grok-build.md",
        "high",
        "Grok Build sessions",
        "`~/.grok/sessions/*/*/chat_history.jsonl`",
        "2026",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """Lines of known types with their content in themselves, some of which only this product writes."""
        if head.shape != "jsonl":
            return False
        lines = [item for item in head.items if isinstance(item, dict)]
        return any(map(_is_ours, lines)) and sum(line.get("type") in _TYPES for line in lines) * 2 > len(lines)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The one conversation of a file."""
        messages: list[Message] = []
        tools: dict[str, str] = {}
        empty = True
        for number, record in records(member, report, _is_line):
            empty = False
            _take(record, messages, tools, report, f"line {number}")
        summary = side_json(member, "summary.json")
        summary = summary if isinstance(summary, dict) else {}
        log = member.near("updates.jsonl")
        cut = date_messages([m for m in messages if m.visible], read_log(log, report)) if log is not None else []
        start = next((n for n, m in enumerate(messages) if m.role != "system"), len(messages))
        messages[start:start] = [Message("", said.role, said.text.strip(), created_at=said.at) for said in cut]
        for message in messages:
            message.message_id = short_hash(message.role, message.kind, message.tool_name or "", message.text)
        derive_ids(messages)
        if any(message.visible for message in messages):
            yield _conversation(member, messages, summary)
        elif not empty:
            report.skip("session without messages", expected=True, unit="conversation")


READER = GrokBuildReader()


def _is_line(record: Record) -> bool:
    return record.get("type") in _TYPES and ("content" in record or "summary" in record)


def _is_ours(item: Record) -> bool:
    kind = item.get("type")
    if kind == "user":
        return "content" in item and ("prompt_index" in item or "synthetic_reason" in item)
    if kind == "assistant":
        return isinstance(item.get("content"), str) and ("model_id" in item or "tool_calls" in item)
    return kind == "backend_tool_call" or (kind == "tool_result" and "tool_call_id" in item and "content" in item)


def _conversation(member: Member, messages: list[Message], summary: Mapping[str, Any]) -> Conversation:
    info = summary.get("info")
    info = info if isinstance(info, dict) else {}
    folder = PurePosixPath(member.path).parent.name
    model = name_of(summary.get("current_model_id")) or next((m.model for m in messages if m.model), None)
    kind, parent = name_of(summary.get("session_kind")) or "", name_of(summary.get("parent_session_id"))
    subagent = kind.startswith("subagent")
    session_id = name_of(info.get("id")) or (folder if _UUID.fullmatch(folder) else None)
    return Conversation(
        provider=PROVIDER,
        conversation_id=session_id or derive_conversation_id(PROVIDER, folder, messages),
        messages=messages,
        title=name_of(summary.get("generated_title")) or name_of(summary.get("title")),
        created_at=parse_instant(summary.get("created_at")),
        updated_at=parse_instant(summary.get("last_active_at")) or parse_instant(summary.get("updated_at")),
        origin="subagent" if subagent else "person",
        model=model,
        project=name_of(info.get("cwd")),
        forked_from=parent if kind == "fork" else None,
        parent_conversation_id=parent if subagent else None,
    )


def _take(record: Record, messages: list[Message], tools: dict[str, str], report: Report, place: str) -> None:
    kind = record.get("type")
    texts, files = _content(record.get("content"), report)
    text = "\n\n".join(texts)
    before = len(messages)
    if kind == "user":
        _take_user(record, text, files, messages)
    elif kind == "assistant":
        _take_answer(record, text.strip(), messages, tools)
    elif kind == "reasoning":
        steps = record.get("summary")
        steps = steps if isinstance(steps, list) else [steps]
        thoughts = [text_of(step.get("text") if isinstance(step, dict) else step).strip() for step in steps]
        if thought := "\n\n".join(thought for thought in thoughts if thought):
            messages.append(Message("", "thinking", thought, "thinking"))
        return  # without a summary it is encrypted: nobody can read it
    elif kind == "tool_result":
        call = record.get("tool_call_id")
        name = tools.get(call) if isinstance(call, str) else None
        messages.append(Message("", "tool", text, "tool_result", tool_name=name, attachment=files))
    elif kind == "backend_tool_call":
        name = name_of(record.get("name")) or name_of(record.get("kind"))
        arguments = text or arguments_text(record.get("arguments", record.get("input")))
        messages.append(Message("", "tool", arguments, "tool_call", tool_name=name))
    elif kind == "system":
        _hide(messages, "instructions", text)
    else:
        # Nobody knows what such a line is to people: it is kept, but not shown as somebody's words.
        count_unknown(report, "record type", kind)
        _hide(messages, "unknown record", text)
    if len(messages) == before:
        report.skip("message without content", place, expected=True)


def _take_user(record: Record, text: str, files: list[Attachment], messages: list[Message]) -> None:
    reason = record.get("synthetic_reason")
    if reason not in _TYPED:
        _hide(messages, (name_of(reason) or "put there by the program")[:60], text)
        return
    before, found, rest = text.partition(_QUERY)
    if found:
        own, _, after = rest.partition(_QUERY_END)
    elif "prompt_index" not in record and text.lstrip().startswith("<"):
        before, own, after = text, "", ""  # tags without words: nobody typed this
    else:
        before, own, after = "", text, ""
    _hide(messages, "context", before)
    if own.strip() or files:
        kind = "text" if own.strip() else kind_of_files(files)
        messages.append(Message("", "user", own.strip(), kind, attachment=files))
    _hide(messages, "context", after)


def _take_answer(record: Record, text: str, messages: list[Message], tools: dict[str, str]) -> None:
    model = name_of(record.get("model_id"))
    if text:
        messages.append(Message("", "assistant", text, model=model))
    calls = record.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        function = function if isinstance(function, dict) else call
        name = name_of(function.get("name"))
        if name and isinstance(call.get("id"), str):
            tools[call["id"]] = name
        arguments = arguments_text(function.get("arguments", function.get("input")))
        messages.append(Message("", "tool", arguments, "tool_call", tool_name=name, model=model))


def _hide(messages: list[Message], reason: str, text: str) -> None:
    if text.strip():
        messages.append(Message("", "system", text.strip(), "system", hidden_reason=reason))


def _content(content: object, report: Report) -> tuple[list[str], list[Attachment]]:
    """Texts and files of a content: a text, or blocks."""
    texts: list[str] = []
    files: list[Attachment] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            texts.append(text_of(block))
        elif isinstance(block, dict):
            kind = block.get("type")
            if kind in ("image", "image_url", "file"):
                files.append(_file(block))
            elif isinstance(block.get("text"), str):
                texts.append(text_of(block["text"]))
            else:
                count_unknown(report, "content type", kind)
    return [text for text in texts if text.strip()], files


def _file(block: Mapping[str, Any]) -> Attachment:
    name = name_of(block.get("name")) or name_of(block.get("filename"))
    if isinstance(data := block.get("data"), str):
        return inline_file(block.get("mimeType") or block.get("media_type") or "image", data, name)
    inner = block.get("image_url")
    file = url_file(inner.get("url") if isinstance(inner, dict) else inner or block.get("url") or block.get("uri"))
    file.name = name or file.name
    return file
