"""ChatGPT exports (`conversations.json`, its numbered shards, and single conversations saved by browser tools).

A conversation is a `mapping` of nodes; `current_node` and `parent` lead along what the person sees, other branches are
kept as rows that are not active.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from palace_pipeline.exports import chatgpt_content as content
from palace_pipeline.exports import known_keys
from palace_pipeline.exports.attachments import kind_of_files
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.branches import in_order
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import id_of
from palace_pipeline.exports.one_chat import one_chat
from palace_pipeline.exports.text import clean_text
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.exports.tree import Node, linked
from palace_pipeline.model import Conversation, Message

_ALL = ("all", None, "")
_NODE_KEYS = frozenset({"id", "message", "parent", "children"})


class ChatGPT:
    """Reads one conversation object per element."""

    format = "chatgpt-export"
    provider = "chatgpt"
    recipe = 2
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/mohamed-chs/convoviz docs/dev/chatgpt-spec.md",
        "high",
        name="ChatGPT export",
        where="Settings → Data controls → Export data, or Privacy Portal: ZIP with `conversations*.json`",
        since="2022",
    )
    layout: Literal["elements"] = "elements"
    known_keys = known_keys.CHATGPT

    def detect(self, head: Head) -> bool:
        """True if an item has a `mapping` whose nodes hold messages with an author (DeepSeek's have none)."""
        return head.shape in ("array", "object", "jsonl") and any(_is_chat(item) for item in head.items)

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation; what has no message that a person sees is skipped."""
        mapping = value.get("mapping") if isinstance(value, dict) else None
        nodes: dict[str, Any] | None = mapping if isinstance(mapping, dict) else None
        yield from one_chat(nodes, lambda held: _conversation(value, held, report, place), place, report)


READER = ChatGPT()


def _is_chat(item: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(mapping := item.get("mapping"), dict):
        return False
    if "inserted_at" in item:  # DeepSeek's tree has the same outer shape
        return False
    nodes = [node for node in mapping.values() if isinstance(node, dict)]
    messages = [node["message"] for node in nodes if isinstance(node.get("message"), dict)]
    if messages:
        return any(isinstance(message.get("author"), dict) for message in messages)
    return "current_node" in item or bool({"conversation_id", "create_time"} & set(item))


def _conversation(value: dict[str, Any], held: dict[str, Any], report: Report, place: str) -> Conversation:
    mapping: dict[str, dict[str, Any]] = {}
    for key, node in held.items():
        if isinstance(node, dict) and (not node or not _NODE_KEYS.isdisjoint(node)):
            mapping[str(key)] = node
        elif node is not None:
            report.skip("not a message", place, expected=False)
    nodes: dict[str, Node] = {}
    for id, parent in linked(mapping).items():
        message = mapping[id].get("message")
        says = isinstance(message, dict)
        nodes[id] = Node(id, parent, parse_instant(message.get("create_time")) if says else None, says)
    rows = {id: [row] for id, node in mapping.items() if (row := _row(id, node, nodes[id].time, report, place))}
    current = value.get("current_node")
    messages = in_order(nodes, rows, current if isinstance(current, str) else None)
    derive_ids(messages)
    title = value.get("title")
    title = clean_text(title) or None if isinstance(title, str) else None
    own_id = id_of(value.get("conversation_id")) or id_of(value.get("id"))
    model = value.get("default_model_slug")
    created = value.get("create_time")
    return Conversation(
        provider="chatgpt",
        conversation_id=own_id or derive_conversation_id("chatgpt", title or "", messages),
        messages=messages,
        title=title,
        created_at=parse_instant(created),
        updated_at=parse_instant(value.get("update_time")),
        local_created=parse_naive(created),
        model=model if isinstance(model, str) else None,
    )


def _row(id: str, node: dict[str, Any], created: datetime | None, report: Report, place: str) -> Message | None:
    """The row of a node, or None if it says nothing. `created`: its message's time."""
    message = node.get("message")
    if not isinstance(message, dict):
        if message is not None:
            report.skip("not a message", place, expected=False)
        return None
    author = message.get("author")
    author = author if isinstance(author, dict) else {}
    metadata = message.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    source_role = author.get("role")
    body = content.read_content(message.get("content"), metadata, report)
    recipient = message.get("recipient")
    model = metadata.get("model_slug")
    row = Message(
        id_of(message.get("id")) or id,
        "system",
        body.text,
        created_at=created,
        local_time=None if created else parse_naive(message.get("create_time")),
        model=model if isinstance(model, str) else None,
        citations=body.citations,
        attachment=body.attachments,
    )
    name = author.get("name") if isinstance(author.get("name"), str) else None
    if source_role == "tool":
        row.role, row.kind, row.tool_name = "tool", "tool_result", name
    elif source_role == "assistant":
        _assistant(row, body.type, recipient if isinstance(recipient, str) else None, message.get("channel"))
    elif source_role == "user":
        row.role, row.kind, row.speaker = "user", content.kind_of(body), name
    else:
        row.kind = "system"
        row.hidden_reason = "system message"
        if source_role != "system":
            report.unknown[f"role:{source_role}"] += 1
    if row.role in ("user", "assistant"):
        row.hidden_reason = content.hidden_reason(body.type, metadata)
        if row.role == "assistant":
            row.text = content.without_markers(row.text, metadata)
    if row.text.strip() or row.attachment:
        return row
    if row.visible:
        report.skip("empty message", place, expected=True)
    return None


def _assistant(row: Message, type: str, recipient: str | None, channel: Any) -> None:
    """What the assistant wrote: to a tool, to itself, or to the person."""
    if type in content.THINKING or (channel == "analysis" and recipient in _ALL):
        row.role, row.kind = "thinking", "thinking"
    elif recipient not in _ALL or type == "code":
        row.role, row.kind, row.tool_name = "tool", "tool_call", recipient if recipient not in _ALL else "code"
    elif type in content.CONTEXT:
        row.role, row.kind = "assistant", "text"
    elif type in content.RESULTS:
        row.role, row.kind = "tool", "tool_result"
    else:
        row.role = "assistant"
        row.kind = "text" if row.text.strip() or not row.attachment else kind_of_files(row.attachment)
