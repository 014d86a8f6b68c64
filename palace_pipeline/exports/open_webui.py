"""Open WebUI: `chat-export-<ms>.json`, a list of chats, each a tree of messages with the place where the person is.

Facts: https://github.com/open-webui/open-webui `src/lib/utils/index.ts`, `backend/open_webui/models/chats.py`, issues
29299 (`childrenIds` are often empty: only `parentId` counts) and pull request 23455 (messages without role and parent);
checked 2026-11-29. Since 0.6 a chat lies in `{id, user_id, title, chat}`, before that it was the whole object.
Times of messages are seconds, that of the inner chat milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from palace_pipeline.exports import known_keys
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.branches import in_order
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import count_of, name_of, text_of
from palace_pipeline.exports.one_chat import one_chat
from palace_pipeline.exports.open_webui_content import Parts, read_parts
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.exports.tree import Node
from palace_pipeline.model import Conversation, Message, Role

_ROLES: dict[str, Role] = {"user": "user", "human": "user", "assistant": "assistant", "model": "assistant"}
_SYSTEMS = ("system", "developer")
_OWN_KEYS = frozenset("parentId childrenIds models done".split())  # noqa: SIM905
"""Keys of a message that lists of turns by others do not have."""

Json = dict[str, Any]


class OpenWebUI:
    """Reads one chat per element."""

    format = "open-webui-export"
    provider = "open-webui"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/open-webui/open-webui src/lib/utils/index.ts, issues 29299 and 23455",
        "high",
        name="Open WebUI export",
        where="Settings → Data controls → Export chats, or a chat's menu → Download → JSON: `chat-export-<ms>.json`",
        since="2024",
    )
    layout: Literal["elements"] = "elements"
    known_keys = known_keys.OPEN_WEBUI

    def detect(self, head: Head) -> bool:
        """True if an item has a history (or messages that only Open WebUI writes), bare or in `chat`."""
        return head.shape in ("array", "object", "jsonl") and any(_is_chat(item) for item in head.items)

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation."""
        outer = value if isinstance(value, dict) else {}
        inner = outer.get("chat")
        chat: Json = inner if isinstance(inner, dict) else outer
        messages = _messages_of(chat)
        yield from one_chat(messages, lambda held: _conversation(outer, chat, held, place, report), place, report)


READER = OpenWebUI()


def _is_chat(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    inner = value.get("chat")
    chat: Json = inner if isinstance(inner, dict) else value
    history = chat.get("history")
    if isinstance(history, dict) and isinstance(history.get("messages"), dict):
        return True
    flat = chat.get("messages")
    if not isinstance(flat, list):
        return False
    if isinstance(inner, dict) and ("user_id" in value or "models" in inner):
        return True
    return any(isinstance(item, dict) and "role" in item and _OWN_KEYS & item.keys() for item in flat[:8])


def _messages_of(chat: Json) -> dict[str, Any] | None:
    """Messages by id: those of the history, else the flat list of old chats (the branch that was open)."""
    history = chat.get("history")
    stored = history.get("messages") if isinstance(history, dict) else None
    if isinstance(stored, dict) and any(isinstance(message, dict) for message in stored.values()):
        return stored
    flat = stored if isinstance(stored, list) else chat.get("messages")
    if not isinstance(flat, list):
        return stored if isinstance(stored, dict) else None
    found: dict[str, Any] = {}
    before: str | None = None
    for number, message in enumerate(flat):
        id = name_of(message.get("id")) if isinstance(message, dict) else None
        id = id if id is not None and id not in found else f"#{number}"
        if isinstance(message, dict):
            if "parentId" not in message:
                message = {**message, "parentId": before}
            before = id
        found[id] = message
    return found


def _conversation(outer: Json, chat: Json, messages: Mapping[str, Any], place: str, report: Report) -> Conversation:
    nodes: dict[str, Node] = {}
    rows: dict[str, list[Message]] = {}
    strangers: list[Message] = []
    for key, message in messages.items():
        where = f"{place} message {len(rows) + len(strangers)}".strip()
        if not isinstance(message, dict):
            expected = message is None
            report.skip("null in place of a message" if expected else "not a message", where, expected=expected)
            continue
        found = _rows(key, message, report)
        role = message.get("role")
        if not isinstance(role, str) or role not in (*_ROLES, *_SYSTEMS):
            # A piece without role and parent is left of a broken write: it is kept beside the transcript.
            if role is not None:
                report.unknown[f"role:{role}"] += 1
            strangers += found
            continue
        parent = message.get("parentId")
        nodes[key] = Node(key, parent if isinstance(parent, str) else None, found[-1].created_at if found else None)
        rows[key] = found
        if not found:
            nodes[key].says = False
            odd = message.get("content") not in (None, "", [], {})
            report.skip("message of an unknown form" if odd else "empty message", where, expected=not odd)
    history = chat.get("history")
    leaf = history.get("currentId") if isinstance(history, dict) else None
    ordered = [*_system(chat), *in_order(nodes, rows, leaf if isinstance(leaf, str) and leaf in nodes else None)]
    for stranger in strangers:
        stranger.branch_active = False
    ordered += strangers
    derive_ids(ordered)
    title = name_of(outer.get("title")) or name_of(chat.get("title"))
    given = name_of(outer.get("id")) or name_of(chat.get("id"))
    created = parse_instant(outer.get("created_at")) or parse_instant(chat.get("timestamp"))
    return Conversation(
        "open-webui",
        given or derive_conversation_id("open-webui", title or "", [m for m in ordered if m.visible]),
        ordered,
        title=title,
        created_at=created,
        updated_at=parse_instant(outer.get("updated_at")),
        model=_model(chat, ordered),
        account=name_of(outer.get("user_id")),
    )


def _model(chat: Json, messages: list[Message]) -> str | None:
    """The model that answered last, else the first that was chosen."""
    used = next((m.model for m in reversed(messages) if m.model and m.branch_active), None)
    chosen = chat.get("models")
    return (
        used or next((name for item in chosen if (name := name_of(item))), None) if isinstance(chosen, list) else used
    )


def _system(chat: Json) -> list[Message]:
    """The system prompt of a chat, which the person wrote once and nobody sees in the chat."""
    params = chat.get("params")
    found = (chat.get("system"), params.get("system") if isinstance(params, dict) else None)
    text = next((text for value in found if (text := text_of(value).strip())), None)
    return [] if text is None else [Message("", "system", text, "system", hidden_reason="system prompt")]


def _rows(key: str, message: Json, report: Report) -> list[Message]:
    """Thinking and tools, which led to the answer, then what the person sees; nothing for an empty message."""
    name = message.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    id = "" if key.startswith("#") else text_of(key)
    stamp = message.get("timestamp")
    created, local = parse_instant(stamp), parse_naive(stamp)
    model = name_of(message.get("model")) or name_of(message.get("modelName")) if role == "assistant" else None
    parts = read_parts(message, report, answer=role == "assistant")

    def row(number: str, role: Role, text: str) -> Message:
        message_id = f"{id}#{number}" if id and number else id
        return Message(message_id, role, text, created_at=created, local_time=local, model=model)

    rows: list[Message] = []
    for number, (kind, tool, text) in enumerate(parts.steps):
        if not text.strip() and not tool:
            continue
        step = row(str(number), "thinking" if kind == "thinking" else "tool", text)
        step.kind = "thinking" if kind == "thinking" else "tool_call" if kind == "call" else "tool_result"
        step.tool_name = tool
        rows.append(step)
    said = _said(row("", role or "system", "\n\n".join(parts.text).strip()), parts, message, role)
    if said.text or said.attachment:
        rows.append(said)
    error = _error(message.get("error"))
    if error and error not in said.text:
        failed = row("error", "system", error)
        failed.kind = "event"
        rows.append(failed)
    merged = message.get("merged")
    if isinstance(merged, dict) and (text := text_of(merged.get("content")).strip()):
        rows.append(row("merged", "assistant", text))
    return rows


def _said(said: Message, parts: Parts, message: Json, role: Role | None) -> Message:
    said.kind = "text" if said.text else "attachment"
    said.attachment, said.citations = parts.files, parts.citations
    if role is None:
        said.kind = "system"
        said.hidden_reason = "system prompt" if message.get("role") in _SYSTEMS else "unknown role"
    if role == "assistant":
        usage = next((u for key in ("usage", "info") if isinstance(u := message.get(key), dict)), {})
        details = next((d for key in _CACHED if isinstance(d := usage.get(key), dict)), {})
        said.tokens_in = _first(usage, "prompt_tokens", "input_tokens", "prompt_eval_count")
        said.tokens_out = _first(usage, "completion_tokens", "output_tokens", "eval_count")
        said.tokens_cached = _first(details, "cached_tokens")
        cost = usage.get("cost")
        said.cost = (
            float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e6 else None
        )
    return said


_CACHED = ("prompt_tokens_details", "input_tokens_details")


def _first(usage: Mapping[str, Any], *keys: str) -> int | None:
    return next((count for key in keys if (count := count_of(usage.get(key)))), None)


def _error(value: Any) -> str:
    """What Open WebUI shows in place of an answer that failed."""
    for key in ("content", "message", "detail"):
        if isinstance(value, dict) and value.get(key):
            value = value[key]
    return text_of(value).strip()
