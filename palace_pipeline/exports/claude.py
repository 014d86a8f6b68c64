"""Claude.ai: the account export (`conversations.json`) and the web API's JSON that browser tools save.

The export is a flat array; the API's JSON is a tree with `parent_message_uuid` and `current_leaf_message_uuid`.
Content stands in blocks; the flat `text` beside them replaces tools by a placeholder and is only a fallback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from palace_pipeline.exports import known_keys
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.branches import in_order
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import id_of, json_text, words_of
from palace_pipeline.exports.one_chat import one_chat
from palace_pipeline.exports.text import clean_text
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.exports.tree import Node
from palace_pipeline.model import Attachment, Citation, Conversation, Message, Role

_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant", "ai": "assistant"}
_PLACEHOLDER_WORDS = "This block is not supported on your current device yet"
_PLACEHOLDER = re.compile(r"(?:```[^\n`]*\n)?" + _PLACEHOLDER_WORDS + r"\.?(?:\n```)?\n?")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_SILENT_BLOCKS = ("token_budget", "flag")


class Claude:
    """Reads one conversation object per element."""

    format = "claude-ai-export"
    provider = "claude"
    recipe = 2
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/kenn-io/agentsview internal/parser/claude_ai.go",
        "high",
        name="Claude.ai export, web JSON",
        where="Settings → Privacy → Export data: ZIP with `conversations.json`; JSON saved by browser extensions",
        since="2023",
    )
    layout: Literal["elements"] = "elements"
    known_keys = known_keys.CLAUDE

    def detect(self, head: Head) -> bool:
        """True if an item has a list of `chat_messages` (the first chats of an export are often empty)."""
        return head.shape in ("array", "object", "jsonl") and any(
            isinstance(item, dict) and isinstance(item.get("chat_messages"), list) for item in head.items
        )

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation. Chats without any message are usual (8 of 10 in some exports): expected skips."""
        items = value.get("chat_messages") if isinstance(value, dict) else None
        messages: list[Any] | None = items if isinstance(items, list) else None
        read = partial(_conversation, value, report=report, place=place)
        yield from one_chat(messages, read, place, report, silent="only blank messages")


READER = Claude()


def _conversation(value: dict[str, Any], items: list[Any], report: Report, place: str) -> Conversation:
    sources: dict[str, dict[str, Any]] = {}
    rows: dict[str, list[Message]] = {}
    replaced = set[str]()
    for number, item in enumerate(items):
        where = f"{place} message {number}".strip()
        if not isinstance(item, dict):
            report.skip("not a message", where, expected=item is None)
            continue
        id = id_of(item.get("uuid")) or f"#{number}"
        known = sources.get(id)
        if known == item:
            report.skip("the same message twice", where, expected=True)
            continue
        made = _rows(item, report, where)
        if known is not None:
            # Of two states of a message the newer one is what the person sees, in the place of the first.
            spare = f"{id}#{number}"
            replaced.add(spare)
            newer = _changed_at(item) >= _changed_at(known)
            sources[spare], rows[spare] = (known, rows[id]) if newer else (item, made)
            item, made = (item, made) if newer else (known, rows[id])
        sources[id], rows[id] = item, made
    parents = {id: _text(item.get("parent_message_uuid")) for id, item in sources.items()}
    nodes = {
        id: Node(id, parent if parent in sources else None, parse_instant(sources[id].get("created_at")))
        for id, parent in parents.items()
    }
    leaf = value.get("current_leaf_message_uuid")
    leaf = leaf if isinstance(leaf, str) and leaf in sources else None
    known_parents = [node.parent for id, node in nodes.items() if node.parent is not None and id not in replaced]
    # An array without a tree is in order as it stands: question and answer share one time there.
    is_flat = not known_parents or (leaf is None and len(set(known_parents)) == len(known_parents))
    messages = in_order(nodes, rows, leaf, [id for id in sources if id not in replaced] if is_flat else None)
    derive_ids(messages)
    name, created, model = value.get("name"), value.get("created_at"), value.get("model")
    name = clean_text(name) if isinstance(name, str) else None
    project, account = value.get("project"), value.get("account")
    return Conversation(
        provider="claude",
        conversation_id=id_of(value.get("uuid")) or derive_conversation_id("claude", name or "", messages),
        messages=messages,
        title=name,
        created_at=parse_instant(created),
        updated_at=parse_instant(value.get("updated_at")),
        local_created=parse_naive(created),
        model=model if isinstance(model, str) else None,
        account=_text(account.get("uuid")) if isinstance(account, dict) else None,
        project=_text(project.get("name")) if isinstance(project, dict) else None,
    )


def _text(value: Any) -> str | None:
    return clean_text(value) if isinstance(value, str) and value else None


def _changed_at(item: dict[str, Any]) -> datetime:
    return parse_instant(item.get("updated_at")) or parse_instant(item.get("created_at")) or _LONG_AGO


def _rows(item: dict[str, Any], report: Report, place: str) -> list[Message]:
    """Thinking and tools first, as they came before the end of the answer, then what the person sees."""
    sender = item.get("sender") or item.get("role")
    role = _ROLES.get(sender) if isinstance(sender, str) else None
    if role is None:
        report.unknown[f"sender:{sender}"] += 1
        role = "system"
    id, created = id_of(item.get("uuid")), item.get("created_at")
    at = parse_instant(created)
    base = Message(id, role, created_at=at, local_time=None if at else parse_naive(created))
    side: list[Message] = []
    texts: list[str] = []
    for number, block in enumerate(_blocks(item.get("content"))):
        if not _read_block(block, number, base, side, texts):
            type = str(block.get("type"))
            report.unknown[f"block:{type}"] += 1
            report.skip("unknown kind of content block", f"{place}, block {number}", expected=False)
    text = "\n\n".join([text for text in texts if text.strip()])
    if not text:
        text = _spoken(words_of(item.get("text"), report, place)).strip("\n")
    files = _files(item, report, place)
    if not text.strip():
        # A long paste becomes an attachment: then it is what the person said.
        text = "\n\n".join(file.text for file in files if file.text and file.text.strip()) if role == "user" else ""
        for file in files if text else []:
            file.text = None
    base.text, base.attachment = text, base.attachment + files
    base.kind = "system" if role == "system" else "text" if text.strip() or not base.attachment else "attachment"
    base.hidden_reason = "unknown sender" if role == "system" else None
    if text.strip() or base.attachment:
        return [*side, base]
    if not side:
        report.skip("empty message", place, expected=True)
    return side


def _spoken(text: str) -> str:
    text = clean_text(text)
    return _PLACEHOLDER.sub("", text) if _PLACEHOLDER_WORDS in text else text


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Content blocks, also of hand-made files (a text, a list of texts, one object)."""
    blocks: list[dict[str, Any]] = []
    for value in content if isinstance(content, list) else (content,):
        if isinstance(value, dict):
            blocks.append(value)
        elif isinstance(value, str):
            blocks.append({"type": "text", "text": value})
    return blocks


def _read_block(block: dict[str, Any], number: int, base: Message, side: list[Message], texts: list[str]) -> bool:
    """Takes one block; False if it is of a kind that nobody knows."""
    type = block.get("type", "text")
    if type == "text" or (type == "voice_note" and isinstance(block.get("text"), str)):
        if isinstance(text := block.get("text"), str):
            texts.append(_spoken(text))
        elif text:
            return False  # words in a form of which nobody knows where they begin
        if cited := block.get("citations"):
            known = {(citation.url, citation.title) for citation in base.citations}
            base.citations += [c for c in _citations(cited) if (c.url, c.title) not in known]
        return True
    row = Message(f"{base.message_id}#{number}" if base.message_id else "", "tool", created_at=base.created_at)
    row.local_time = base.local_time
    name = block.get("name")
    row.tool_name = name if isinstance(name, str) else None
    if type == "thinking":
        row.role, row.kind, row.tool_name = "thinking", "thinking", None
        row.text = clean_text(str(block.get("thinking") or ""))
    elif type == "tool_use":
        row.kind, row.text = "tool_call", _as_text(block.get("input"))
    elif type == "tool_result":
        row.kind, row.text = "tool_result", _result_text(block.get("content"))
    elif type in ("image", "document"):
        base.attachment.append(Attachment(type=type))
        return True
    else:
        return type in _SILENT_BLOCKS
    if row.text.strip() or row.tool_name:
        side.append(row)
    return True


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return clean_text(value)
    return clean_text(json_text(value))


def _result_text(content: Any) -> str:
    """A tool's answer: texts, titles and addresses of its blocks; pictures left out."""
    if not isinstance(content, list):
        return _as_text(content)
    lines: list[str] = []
    for item in content:
        if isinstance(item, str):
            lines.append(clean_text(item))
        elif isinstance(item, dict) and item.get("type") not in ("image", "document"):
            said = [clean_text(t) for key in ("title", "url", "text") if isinstance(t := item.get(key), str) and t]
            lines.append("\n".join(said) if said else _as_text(item))
    return "\n\n".join(lines)


def _citations(value: Any) -> list[Citation]:
    found: list[Citation] = []
    for item in value if isinstance(value, list) else []:
        if not isinstance(item, dict):
            continue
        details = item.get("details")
        details = details if isinstance(details, dict) else {}
        url = item.get("url") or details.get("url")
        title = item.get("title") or details.get("title")
        if isinstance(url, str) and url:
            found.append(Citation(clean_text(url), clean_text(title) if isinstance(title, str) else None))
        found += _citations(item.get("sources"))
    return found


def _files(item: dict[str, Any], report: Report, place: str) -> list[Attachment]:
    files: list[Attachment] = []
    names: set[str | None] = set()
    for key in ("attachments", "files", "files_v2"):
        entries = item.get(key)
        for entry in entries if isinstance(entries, list) else []:
            if not isinstance(entry, dict):
                continue
            name, type, size = entry.get("file_name"), entry.get("file_type") or entry.get("file_kind"), None
            if isinstance(entry.get("file_size"), int) and entry["file_size"] is not True:
                size = entry["file_size"]
            pasted = words_of(entry.get("extracted_content"), report, place) or None
            file = Attachment(_text(name), _text(type), size, text=pasted)
            if key == "attachments" or file.name is None or file.name not in names:
                files.append(file)
                names.add(file.name)
    return files
