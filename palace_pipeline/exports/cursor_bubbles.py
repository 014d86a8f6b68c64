"""Cursor's bubbles (one message, thought or tool call each) -> message rows.

Ids are made of role, kind and text and of how often that came before: the same chat in the database and in Cursor's
text transcripts then has each message once. Shapes: https://github.com/michaeldhood/chatrxiv
docs/cursor/storage-reference.md and parsers of Cursor 0.4x to 3.16, checked 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from palace_pipeline.exports.agent_log import count_unknown
from palace_pipeline.exports.attachments import base_name, uri_path
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.ids import derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, name_of, text_of
from palace_pipeline.exports.text import parse_json
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Citation, Message, short_hash

Bubble = Mapping[str, Any]

BUBBLE_FIELDS = (
    *("bubbleId", "id", "type", "text", "rawText", "richText", "initText", "createdAt", "modelInfo", "modelType"),
    *("tokenCount", "thinking", "allThinkingBlocks", "toolFormerData", "codeBlocks", "images", "context"),
    *("webReferences", "docsReferences", "aiWebSearchResults", "isDisplayOnly", "isEphemeral", "skipRendering"),
)
"""What is kept of a bubble; it also holds copies of files, lint results and settings, up to megabytes."""
_TOOL_FIELDS = ("name", "tool", "toolCallId", "rawArgs", "params", "result", "error", "status")
_CONTEXT_FIELDS = ("fileSelections", "folderSelections", "selections", "terminalSelections", "selectedImages")
_ROLES: dict[object, Literal["user", "assistant"]] = {
    **dict.fromkeys((1, "1", "user", "human"), "user"),
    **dict.fromkeys((2, "2", "ai", "assistant"), "assistant"),
}
_HIDDEN = {
    "isDisplayOnly": "shown by the program only",
    "isEphemeral": "not part of the chat",
    "skipRendering": "hidden",
}
_DEEPEST = 100_000


@dataclass(frozen=True, slots=True)
class Placed:
    """A bubble where its chat puts it; `active` is False if the chat went back behind it. `header`: its entry there."""

    bubble: Bubble
    active: bool = True
    header: Bubble | None = None


def kept_bubble(bubble: Bubble) -> dict[str, Any]:
    """A bubble without what is no part of the talk."""
    kept = {name: bubble[name] for name in BUBBLE_FIELDS if bubble.get(name) not in (None, "", [], {})}
    for name, fields in (("toolFormerData", _TOOL_FIELDS), ("context", _CONTEXT_FIELDS)):
        if isinstance(inner := kept.get(name), dict):
            kept[name] = {field: inner[field] for field in fields if inner.get(field) not in (None, "", [])}
    if text_of(kept.get("text")).strip():
        for name in ("rawText", "richText", "initText", "codeBlocks"):
            kept.pop(name, None)  # the text again, in other forms
    return kept


def messages_of(placed: Iterable[Placed], report: Report) -> list[Message]:
    """The rows of a chat's bubbles in order: thought, words, tool call, tool result."""
    messages: list[Message] = []
    model: str | None = None
    blank = 0
    for place in placed:
        bubble = place.bubble
        kind = bubble.get("type")
        if kind is None and place.header is not None:
            kind = place.header.get("type")
        role = _ROLES.get(kind) if isinstance(kind, int | str) else None
        model = _model(bubble) or (model if role == "assistant" else None)
        rows = list(_rows(bubble, role))
        if role is None:
            count_unknown(report, "bubble type", str(kind) if isinstance(kind, int | str) else kind)
        blank += not rows
        created, local = _time(bubble, place.header)
        hidden = next((why for flag, why in _HIDDEN.items() if bubble.get(flag) is True), None)
        for row in rows:
            row.created_at, row.local_time = created, local
            row.branch_active = place.active
            row.hidden_reason = row.hidden_reason or hidden
            if row.role in ("assistant", "thinking") or row.kind == "tool_call":
                row.model = model
            row.message_id = short_hash(row.role, row.kind, row.tool_name or "", row.text)
        _note_tokens(bubble, rows)
        messages += rows
    if blank:
        report.skip("message without content", expected=True, count=blank)
    derive_ids(messages)
    return messages


def _rows(bubble: Bubble, role: Literal["user", "assistant"] | None) -> Iterator[Message]:
    for thought in _thoughts(bubble):
        yield Message("", "thinking", thought, "thinking")
    text = _text(bubble)
    files = _files(bubble)
    if role is None and text:
        # Nobody knows what such a bubble is to people: it is kept, but not shown as somebody's words.
        yield Message("", "system", text, "system", hidden_reason="unknown role")
    elif role is not None and (text or (role == "user" and files)):
        said = Message("", role, text, "text" if text else "attachment")
        said.attachment = files if role == "user" else []
        said.citations = _citations(bubble)
        yield said
    yield from _tool_rows(bubble.get("toolFormerData"))


def _text(bubble: Bubble) -> str:
    """The words: plain, else out of the editor's tree, else (an answer of nothing but code) its blocks of code."""
    for name in ("text", "rawText"):
        if text := text_of(bubble.get(name)).strip():
            return text
    for name in ("richText", "initText"):
        if text := _editor_text(bubble.get(name)):
            return text
    if bubble.get("toolFormerData"):
        return ""
    blocks = bubble.get("codeBlocks")
    found = [
        f"```{text_of(block.get('languageId'))}\n{code}\n```"
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict) and (code := text_of(block.get("content")).strip())
    ]
    return "\n\n".join(found)


def _editor_text(value: object) -> str:
    """The text of a Lexical editor's state (JSON, or JSON in a string), walked without recursion."""
    if isinstance(value, str):
        value = _json(value)
    if not isinstance(value, dict):
        return ""
    out: list[str] = []
    stack: list[Any] = [value.get("root", value)]
    for _ in range(_DEEPEST):
        if not stack:
            break
        node = stack.pop()
        if isinstance(node, str):
            out.append(node)
        elif isinstance(node, dict):
            if node.get("type") == "linebreak":
                out.append("\n")
            elif text := text_of(node.get("text")):
                out.append(text)
            children = node.get("children")
            if isinstance(children, list):
                if node.get("type") in ("paragraph", "listitem", "code"):
                    stack.append("\n")
                stack.extend(reversed(children))
    return "".join(out).strip()


def _thoughts(bubble: Bubble) -> list[str]:
    thinking = bubble.get("thinking")
    blocks = bubble.get("allThinkingBlocks")
    found: dict[str, None] = {}
    for block in (thinking, *(blocks if isinstance(blocks, list) else ())):
        inner = block.get("text") or block.get("thinking") if isinstance(block, dict) else block
        text = text_of(inner).strip()
        if text:
            found[text] = None
    return list(found)


def _tool_rows(tool: object) -> Iterator[Message]:
    if not isinstance(tool, dict):
        return
    name = name_of(tool.get("name"))
    arguments = tool.get("rawArgs") or tool.get("params")
    result = tool.get("result") or tool.get("error")
    if name is None and not arguments and not result:
        return
    parsed = _json(arguments) if isinstance(arguments, str) else arguments
    arguments = parsed if isinstance(parsed, dict | list) else arguments
    yield Message("", "tool", arguments_text(arguments), "tool_call", tool_name=name)
    if result:
        yield Message("", "tool", arguments_text(result), "tool_result", tool_name=name)


def _files(bubble: Bubble) -> list[Attachment]:
    """What a person put beside a message: files and folders by name, marked text and terminal output with their text."""
    context = bubble.get("context")
    context = context if isinstance(context, dict) else {}
    files: dict[tuple[str | None, str, str | None], Attachment] = {}
    for kind, holders in (
        ("image", (bubble.get("images"), context.get("selectedImages"))),
        ("file", (context.get("fileSelections"), context.get("selections"))),
        ("folder", (context.get("folderSelections"),)),
        ("terminal", (context.get("terminalSelections"),)),
    ):
        for holder in holders:
            for item in holder if isinstance(holder, list) else ():
                if isinstance(item, dict):
                    name, text = _file_name(item), text_of(item.get("text")) or None
                    files[name, kind, text] = Attachment(name, kind, text=text)
    return list(files.values())


def _file_name(item: Bubble) -> str | None:
    for holder in (item.get("uri"), item):
        if isinstance(holder, dict):
            for key in ("fsPath", "path", "relativePath", "external", "name"):
                if path := uri_path(holder.get(key)):
                    return base_name(path) or None
        elif path := uri_path(holder):
            return base_name(path) or None
    return None


def _citations(bubble: Bubble) -> list[Citation]:
    found: dict[str, Citation] = {}
    for name in ("webReferences", "docsReferences", "aiWebSearchResults"):
        items = bubble.get(name)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and (url := name_of(item.get("url"))):
                found.setdefault(url, Citation(url, name_of(item.get("title"))))
    return list(found.values())


def _model(bubble: Bubble) -> str | None:
    """The model a bubble names; "default" says that the program chose, not what."""
    info = bubble.get("modelInfo")
    name = name_of(info.get("modelName")) if isinstance(info, dict) else None
    name = name or name_of(bubble.get("modelType"))
    return None if name == "default" else name


def _time(bubble: Bubble, header: Bubble | None) -> tuple[datetime | None, str | None]:
    """(instant, naive time): the bubble's own, else the one its chat's list has. User bubbles often have none."""
    for holder in (bubble, header or {}):
        value = holder.get("createdAt")
        if (instant := parse_instant(value)) is not None:
            return instant, None
        if (local := parse_naive(value)) is not None:
            return None, local
    return None, None


def _note_tokens(bubble: Bubble, rows: list[Message]) -> None:
    count = bubble.get("tokenCount")
    row = next((row for row in rows if row.role == "assistant"), None)
    if isinstance(count, dict) and row is not None:
        row.tokens_in = count_of(count.get("inputTokens")) or None
        row.tokens_out = count_of(count.get("outputTokens")) or None


def _json(text: str) -> object:
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return None
