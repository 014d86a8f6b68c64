"""A turn as `{role, content}` or `{from, value}` -> message rows: text, files, thinking, tool calls and results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from posixpath import basename
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.text import clean_text
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Citation, Kind, Message, Role

ROLES: dict[str, Role] = {
    **dict.fromkeys(("user", "human", "prompter", "client"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "gpt", "chatgpt", "bot", "model", "bard", "bing", "claude", "gemini"), "assistant"
    ),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "observation", "function_call", "tool_call", "function_response"), "tool"),
}
_ROLE_KEYS = ("role", "from", "sender")
_TEXT_KEYS = ("content", "value", "text", "parts")
_CALLS = ("function_call", "tool_call")
_TIMES = ("created_at", "createdAt", "timestamp", "create_time", "created", "time", "date")
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_IDS = ("id", "uuid", "message_id")
_DEEPEST = 20


@dataclass(slots=True)
class _Parts:
    """What the content of one turn holds."""

    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[tuple[str | None, str]] = field(default_factory=list)
    results: list[tuple[str | None, str]] = field(default_factory=list)
    files: list[Attachment] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)


def is_turn(value: Mapping[str, Any]) -> bool:
    """Whether an object is a turn: a role that chats have, and a place for what was said."""
    role = _role_name(value)
    return role is not None and role in ROLES and ("tool_calls" in value or any(key in value for key in _TEXT_KEYS))


def _role_name(value: Mapping[str, Any]) -> str | None:
    for key in _ROLE_KEYS:
        if isinstance(name := value.get(key), str):
            return name if name in ROLES else name.strip().lower()
    return None


def messages_of(turns: Iterable[tuple[str, Any]], report: Report) -> Iterator[Message]:
    """The rows of turns in order; `(place, turn)` each. An empty turn is no message, an odd one is counted."""
    tools: dict[str, str] = {}
    for place, turn in turns:
        if not isinstance(turn, dict):
            expected = turn is None
            report.skip("null in place of a message" if expected else "not a message", place, expected=expected)
            continue
        rows = _rows(turn, tools, report)
        if rows:
            yield from rows
        else:
            report.skip("empty message", place, expected=True)


def _rows(turn: Mapping[str, Any], tools: dict[str, str], report: Report) -> list[Message]:
    name = _role_name(turn)
    role = ROLES.get(name or "")
    if role is None:
        # Nobody knows what such a turn is to people, so it is kept beside the transcript and not in it.
        report.unknown[f"role:{name}"] += 1
    content = None
    for key in _TEXT_KEYS:
        if (content := turn.get(key)) is not None:
            break
    if len(turn) == 2 and type(content) is str and role is not None and role != "tool":
        # A role and words are all that most turns of data sets have.
        text = clean_text(content).strip()
        return [Message("", role, text, "system" if role == "system" else "text")] if text else []
    parts = _Parts()
    _take(content, parts, report, 0)
    for key in _THOUGHTS:
        if isinstance(thought := turn.get(key), str) and thought.strip():
            parts.thinking.append(clean_text(thought))
            break
    _take_calls(turn, parts, tools)
    return _as_rows(turn, name, role, parts, tools)


def _as_rows(
    turn: Mapping[str, Any], name: str | None, role: Role | None, parts: _Parts, tools: Mapping[str, str]
) -> list[Message]:
    created, local = time_of(turn, _TIMES)
    model = turn.get("model")
    model = clean_text(model) if isinstance(model, str) and model else None

    def row(role: Role, text: str, kind: Kind, tool: str | None = None) -> Message:
        return Message("", role, text, kind, created, local, model=model, tool_name=tool)

    text = "\n\n".join(parts.text).strip()
    rows = [row("thinking", thought.strip(), "thinking") for thought in parts.thinking] if parts.thinking else []
    if role == "tool":
        called = turn.get("name") or tools.get(str(turn.get("tool_call_id")))
        called = clean_text(called) if isinstance(called, str) else None
        if text or parts.files:
            tool = row("tool", text, "tool_call" if name in _CALLS else "tool_result", called)
            tool.attachment, tool.message_id = parts.files, _id(turn)
            rows.append(tool)
    elif text or parts.files:
        said = row(role or "system", text, "system" if role in ("system", None) else "text" if text else "attachment")
        said.hidden_reason = "unknown role" if role is None else None
        said.attachment, said.citations, said.message_id = parts.files, parts.citations, _id(turn)
        speaker = turn.get("name") if role in ("user", "assistant") else name if role is None else None
        said.speaker = clean_text(speaker).strip() or None if isinstance(speaker, str) else None
        rows.append(said)
    for tool_name, arguments in parts.calls:
        rows.append(row("tool", arguments, "tool_call", tool_name))
    for tool_id, result in parts.results:
        rows.append(row("tool", result, "tool_result", tools.get(tool_id or "")))
    return rows


def time_of(holder: Mapping[str, Any], keys: Iterable[str]) -> tuple[datetime | None, str | None]:
    """(instant, naive time) of the first key that holds a time; one of them or both are None."""
    for key in keys:
        if (value := holder.get(key)) is None:
            continue
        if (instant := parse_instant(value)) is not None:
            return instant, None
        if (local := parse_naive(value)) is not None:
            return None, local
    return None, None


def _id(turn: Mapping[str, Any]) -> str:
    for key in _IDS:
        if isinstance(value := turn.get(key), str | int) and not isinstance(value, bool):
            return clean_text(str(value)).strip()
    return ""


# --- content ----------------------------------------------------------------------------------------------------------


def _take(content: Any, parts: _Parts, report: Report, depth: int) -> None:
    """Sorts content (text, list of texts and blocks, `{text}`, `{parts}`) into `parts`."""
    if isinstance(content, str):
        if content.strip():
            parts.text.append(clean_text(content))
    elif isinstance(content, list) and depth < _DEEPEST:
        for item in content:
            _take(item, parts, report, depth + 1)
    elif isinstance(content, dict) and depth < _DEEPEST:
        _take_block(content, parts, report, depth)
    elif content is not None:
        report.skip("content of an unknown shape", expected=False)


def _take_block(block: Mapping[str, Any], parts: _Parts, report: Report, depth: int) -> None:
    match block.get("type") or block.get("content_type"):
        case "thinking" | "reasoning" | "redacted_thinking":
            thought = block.get("thinking") or block.get("text")
            if isinstance(thought, str) and thought.strip():
                parts.thinking.append(clean_text(thought))
        case "tool_use" | "tool_call" | "function_call":
            parts.calls.append((_string(block, "name"), _json(block.get("input", block.get("arguments")))))
        case "tool_result" | "function_call_output":
            inner = _Parts()
            _take(block.get("content", block.get("output")), inner, report, depth + 1)
            parts.results.append((_string(block, "tool_use_id", "call_id"), "\n\n".join(inner.text)))
            parts.files.extend(inner.files)
        case "refusal":
            _take(block.get("refusal"), parts, report, depth + 1)
        case str(kind) if kind not in _PROSE and (kind in _FILES or not _holds_text(block)):
            if kind in _FILES:
                parts.files.append(_file(block, _FILES[kind]))
            else:
                report.unknown[f"content type:{kind}"] += 1
        case kind:
            if isinstance(kind, str) and kind not in _PROSE:
                report.unknown[f"content type:{kind}"] += 1
            inner = next((block[key] for key in ("text", "value", "parts", "content") if block.get(key)), None)
            if block and not any(key in block for key in ("text", "value", "parts", "content")):
                report.skip("content of an unknown shape", expected=False)
            _take(inner, parts, report, depth + 1)
            _take_citations(block.get("annotations"), parts)


_PROSE = ("text", "input_text", "output_text", "markdown", "multimodal_text")
_FILES: dict[str, str] = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_file", "image_asset_pointer"), "image"),
    **dict.fromkeys(("audio", "input_audio", "output_audio", "audio_url"), "audio"),
    **dict.fromkeys(("video", "video_url"), "video"),
    **dict.fromkeys(("file", "input_file", "document", "attachment"), "file"),
}


def _holds_text(block: Mapping[str, Any]) -> bool:
    return any(block.get(key) for key in ("text", "value", "parts", "content"))


def _file(block: Mapping[str, Any], kind: str) -> Attachment:
    """A file by the name it is given, else by the last part of its address; never the data itself."""
    holders: list[Mapping[str, Any]] = [block]
    for key in ("file", "image_url", "input_audio", "source", "audio_url", "video_url", "document"):
        inner = block.get(key)
        holders.append(inner if isinstance(inner, dict) else {"url": inner})
    name = next((n for h in holders if (n := _string(h, "filename", "file_name", "name", "title"))), None)
    url = next((u for holder in holders if (u := _string(holder, "url"))), None)
    if name is None and url is not None and url.startswith(("http://", "https://")):
        name = _last_part(url)
    mime = next((m for h in holders if (m := _string(h, "media_type", "mime_type", "mimetype"))), None)
    said = next((t for h in holders if (t := _string(h, "transcript", "transcription"))), None)
    return Attachment(name=name, type=mime or kind, text=said)


def _last_part(url: str) -> str | None:
    try:
        return clean_text(unquote(basename(urlsplit(url).path))) or None
    except ValueError:
        return None


def _take_citations(annotations: Any, parts: _Parts) -> None:
    for annotation in annotations if isinstance(annotations, list) else ():
        if isinstance(annotation, dict):
            inner = annotation.get("url_citation")
            holder = inner if isinstance(inner, dict) else annotation
            if url := _string(holder, "url"):
                parts.citations.append(Citation(url, _string(holder, "title")))


def _take_calls(turn: Mapping[str, Any], parts: _Parts, tools: dict[str, str]) -> None:
    """Tool calls beside the content; their ids name the tools of the results that follow."""
    calls = turn.get("tool_calls")
    calls = [*calls] if isinstance(calls, list) else []
    if isinstance(old := turn.get("function_call"), dict):
        calls.append({"function": old})
    for call in calls:
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        function = function if isinstance(function, dict) else call
        name = _string(function, "name")
        if name and (call_id := _string(call, "id")):
            tools[call_id] = name
        parts.calls.append((name, _json(function.get("arguments", function.get("input")))))


def _string(holder: Mapping[str, Any], *keys: str) -> str | None:
    value = next((holder[key] for key in keys if isinstance(holder.get(key), str) and holder[key].strip()), None)
    return clean_text(value).strip() if value is not None else None


def _json(value: Any) -> str:
    if value is None:
        return ""
    try:
        return clean_text(value if isinstance(value, str) else orjson.dumps(value).decode())
    except (TypeError, ValueError):  # lone surrogates, integers of more than 64 bits
        return clean_text(str(value))
