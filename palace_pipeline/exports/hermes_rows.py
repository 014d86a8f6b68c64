"""Hermes Agent: messages as plain mappings (a line, an item of a snapshot, a database row) -> message rows.

A user message may hold more than the person's words: notes of the gateway, memory, a skill, summaries after a
compression. Those become hidden rows. Marks seen in https://github.com/NousResearch/hermes-agent (gateway, agent) and
its public parsers, checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from palace_pipeline.exports.agent_log import count_unknown, cut_blocks
from palace_pipeline.exports.attachments import base_name, kind_of_files, url_file
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.ids import derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, name_of, text_of, unpacked
from palace_pipeline.exports.text import clean_text, parse_json
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Message, short_hash

Row = Mapping[str, Any]

_STRUCTURED = "\0json:"
_TEXT_BLOCKS = ("text", "input_text", "output_text")
_FILE_BLOCKS = ("image_url", "input_image", "image", "file", "input_file", "document", "input_audio", "audio", "video")
_BLOCKS = frozenset({*_TEXT_BLOCKS, *_FILE_BLOCKS})
_REASONING = ("reasoning", "reasoning_content", "reasoning_details")
_INJECTED_STARTS = (
    ("[CONTEXT COMPACTION", "compaction summary"),
    ("[CONTEXT SUMMARY", "compaction summary"),
    ("[PRIOR CONTEXT", "compaction summary"),
    ("[Your active task list was preserved across context compression", "compaction summary"),
    ("[ASYNC DELEGATION BATCH COMPLETE", "notice of the program"),
    ("[Continuing toward your standing goal", "notice of the program"),
    ("[IMPORTANT: Background process", "notice of the program"),
    ("[SYSTEM: Background process", "notice of the program"),
)
_SKILL = re.compile(r"\[(?:SYSTEM|IMPORTANT): The user has invoked the \"")
_INSTRUCTION = "The user has provided the following instruction alongside the skill invocation: "
_RUNTIME_NOTE = "\n\n[Runtime note:"
_NOTE = re.compile(r"\s*\[(?:System note|Note: model was just switched)[^\]]{0,4000}\]\s*", re.IGNORECASE)
_PROGRAM_KINDS = frozenset(
    """
    hidden internal_notification notification model_switch auto_continue async_delegation_complete process_notification
    compression_summary
    """.split()  # noqa: SIM905
)
_PLAIN_KINDS = frozenset({"", "normal", "text", "message", "visible", "steer", "voice"})


def hermes_messages(rows: Iterable[Row], report: Report, *, model: str | None = None) -> list[Message]:
    """Message rows, in the order given, with their ids.

    Keys that count, all optional and of any type: `role`, `content` (text, blocks, JSON of blocks, NUL + `json:` +
    JSON), `timestamp` (seconds since 1970, ISO, or naive local time), `reasoning` and its variants, `tool_calls` (list
    or JSON), `tool_call_id`, `tool_name`, `model`, `token_count`; of the database also `active`, `compacted`,
    `_compressed_summary`, `display_kind`. `model`: of rows that name none.

    Ids are made of role, kind and content and of how often that came before, without the time: a file has naive times
    and the database has instants of the same message.
    """
    messages: list[Message] = []
    tools: dict[str, str] = {}
    blank = 0
    for row in rows:
        before = len(messages)
        _add(row, messages, tools, report)
        blank += len(messages) == before
        _finish(row, messages[before:], model)
    if blank:
        report.skip("message without content", expected=True, count=blank)
    derive_ids(messages)
    return messages


def _finish(row: Row, made: list[Message], model: str | None) -> None:
    """Time, branch and id of the rows that one message gave."""
    stamp = row.get("timestamp")
    when = parse_instant(stamp)
    local = parse_naive(stamp) if when is None else None
    said_by = name_of(row.get("model")) or model
    rewound = "active" in row and not _is_set(row.get("active")) and not _is_set(row.get("compacted"))
    for message in made:
        message.created_at, message.local_time = when, local
        message.branch_active = not rewound
        if message.role in ("assistant", "thinking") or message.kind == "tool_call":
            message.model = said_by
        called = message.tool_name or "" if message.kind == "tool_call" else ""
        message.message_id = short_hash(message.role, message.kind, called, message.text)
    answer = next((m for m in made if m.role == "assistant"), made[-1] if made else None)
    tokens = count_of(row.get("token_count"))
    if answer is not None and tokens and answer.model is not None and row.get("role") == "assistant":
        answer.tokens_out = tokens


def _is_set(value: object) -> bool:
    """A database's truth: 1 or true."""
    return value is True or value == 1


def _add(row: Row, messages: list[Message], tools: dict[str, str], report: Report) -> None:
    role = row.get("role")
    texts, files = _content(row.get("content"), report)
    text = "\n\n".join(texts)
    if role == "user":
        _add_user(row, text, files, messages, report)
    elif role == "assistant":
        _add_answer(row, text, files, messages, tools)
    elif role in ("tool", "function"):
        call = row.get("tool_call_id")
        name = name_of(row.get("tool_name")) or name_of(row.get("name"))
        name = name or (tools.get(call) if isinstance(call, str) else None)
        messages.append(Message("", "tool", text, "tool_result", tool_name=name, attachment=files))
    elif role in ("system", "developer", "session_meta"):
        _hide(messages, "instructions", text)
    else:
        # Nobody knows what such a message is to people: it is kept, but not shown as somebody's words.
        count_unknown(report, "role", role)
        _hide(messages, "unknown role", text)


def _add_user(row: Row, text: str, files: list[Attachment], messages: list[Message], report: Report) -> None:
    kind = row.get("display_kind")
    kind = kind if isinstance(kind, str) else ""
    if _is_set(row.get("_compressed_summary")):
        _hide(messages, "compaction summary", text)
        return
    if kind in _PROGRAM_KINDS:
        _hide(messages, "notice of the program", text)
        return
    if kind not in _PLAIN_KINDS:
        count_unknown(report, "display kind", kind)
    own, injected = split_injected(text)
    for reason, inner in injected:
        _hide(messages, reason, inner)
    if own or files:
        messages.append(Message("", "user", own, "text" if own else kind_of_files(files), attachment=files))


def _add_answer(row: Row, text: str, files: list[Attachment], messages: list[Message], tools: dict[str, str]) -> None:
    thought = next((found for key in _REASONING if (found := _reasoning(row.get(key)))), "")
    if thought:
        messages.append(Message("", "thinking", thought, "thinking"))
    if text.strip() or files:
        summary = _is_set(row.get("_compressed_summary")) or _why_injected(text) is not None
        said = Message(
            "", "assistant", text.strip(), "text" if text.strip() else kind_of_files(files), attachment=files
        )
        said.hidden_reason = "compaction summary" if summary else None
        messages.append(said)
    for call in _list(row.get("tool_calls")):
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        function = function if isinstance(function, dict) else call
        name = name_of(function.get("name"))
        for key in ("id", "call_id"):
            if name and isinstance(call.get(key), str):
                tools[call[key]] = name
        arguments = function.get("arguments", function.get("input"))
        messages.append(Message("", "tool", arguments_text(unpacked(arguments)), "tool_call", tool_name=name))


def _hide(messages: list[Message], reason: str, text: str) -> None:
    if text.strip():
        messages.append(Message("", "system", text.strip(), "system", hidden_reason=reason))


# --- what the gateway puts into a user's message ----------------------------------------------------------------------


def split_injected(text: str) -> tuple[str, list[tuple[str, str]]]:
    """(what the person wrote, [(what kind of injected text, that text)]) of a user message."""
    reason = _why_injected(text)
    if reason is not None:
        return "", [(reason, text)]
    if _SKILL.match(text):
        return _split_skill(text)
    text, memory = cut_blocks(text, "memory-context")
    injected = [("memory", inner) for inner in memory]
    at = 0
    while match := _NOTE.match(text, at):
        injected.append(("notice of the program", match[0].strip()))
        at = match.end()
    return text[at:].strip(), injected


def _why_injected(text: str) -> str | None:
    start = text[:200].lstrip()
    return next((reason for mark, reason in _INJECTED_STARTS if start.startswith(mark)), None)


def _split_skill(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A skill's text with, at its end, what the person wrote beside its name."""
    skill, found, own = text.partition(_INSTRUCTION)
    if not found:
        return "", [("skill", text)]
    own, note, rest = own.partition(_RUNTIME_NOTE)
    return own.strip(), [("skill", skill.strip() + note + rest)]


# --- values -----------------------------------------------------------------------------------------------------------


def _content(value: object, report: Report) -> tuple[list[str], list[Attachment]]:
    """Texts and files of a content in any of its forms."""
    if isinstance(value, str):
        blocks = _blocks_in(value)
        if blocks is None:
            text = clean_text(value)
            return ([text] if text.strip() else []), []
        value = blocks
    if isinstance(value, dict):
        value = [value]
    texts: list[str] = []
    files: list[Attachment] = []
    for block in value if isinstance(value, list) else ():
        if isinstance(block, str):
            texts.append(clean_text(block))
        elif isinstance(block, dict):
            kind = block.get("type")
            if kind in _FILE_BLOCKS:
                files.append(_file(block))
            elif isinstance(block.get("text"), str):
                texts.append(clean_text(block["text"]))
            else:
                count_unknown(report, "content type", kind)
    return [text for text in texts if text.strip()], files


def _blocks_in(text: str) -> list[Any] | None:
    """The blocks that a text holds as JSON: marked as such, or a list of blocks of known types only."""
    marked = text.startswith(_STRUCTURED)
    if not marked and not text.startswith('[{"type"'):
        return None
    inner = _parsed(text[len(_STRUCTURED) :] if marked else text)
    if marked:
        return inner if isinstance(inner, list) else None if inner is None else [inner]
    if isinstance(inner, list) and all(isinstance(b, dict) and _type_of(b) in _BLOCKS for b in inner):
        return inner
    return None


def _type_of(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _file(block: Mapping[str, Any]) -> Attachment:
    kind = _type_of(block)
    holder = next((block[key] for key in ("image_url", "file", "source", "input_audio") if key in block), None)
    inner: Mapping[str, Any] = holder if isinstance(holder, dict) else {"url": holder}
    file = url_file(inner.get("url") or inner.get("file_data") or block.get("url"))
    if file.type == "image" and not kind.endswith(("image", "image_url")):
        file.type = kind.removeprefix("input_")
    named = next(
        (name for h in (block, inner) for key in ("filename", "name", "path") if (name := name_of(h.get(key)))), None
    )
    file.name = base_name(named) if named else file.name
    return file


def _reasoning(value: object) -> str:
    """The words of a reasoning field: a text, or steps (also as JSON) that hold `text`, `summary` or `thinking`."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        inner = _parsed(value)
        value = inner if isinstance(inner, list | dict) else value
    if isinstance(value, str):
        return clean_text(value).strip()
    steps = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    found = [
        next((text for key in ("text", "thinking", "summary") if (text := text_of(step.get(key)))), "")
        for step in steps
        if isinstance(step, dict)
    ]
    return "\n\n".join(text.strip() for text in found if text.strip())


def _list(value: object) -> list[Any]:
    """A list, or the list (or single object) that a JSON text holds."""
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, dict):
        return [value]
    return value if isinstance(value, list) else []


def _parsed(text: str) -> object:
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return None
