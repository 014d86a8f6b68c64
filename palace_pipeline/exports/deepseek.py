"""DeepSeek: the web export (`conversations.json`) and the web page's own JSON of one chat, as browser tools save it.

A conversation is a `mapping` like ChatGPT's, but its messages have no author: what was asked, thought, searched and
answered stands in `fragments`. No leaf is named: the newest one is what the person sees. Times carry +08:00 for
everybody. Exports of early 2025 have `content` and `reasoning_content` in place of fragments, and no role: question
and answer alternate. Shape: https://github.com/xionglongztz/DeepSeekDataExporter,
https://github.com/andrmkrff/deepseek-chat-export, https://github.com/ceyaima/deepseek-exporter (samples),
looked at on 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from palace_pipeline.exports import known_keys
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.branches import in_order, kept_above
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, id_of, list_of, name_of, text_of
from palace_pipeline.exports.one_chat import one_chat
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.exports.tree import Node, linked
from palace_pipeline.exports.web_sources import Page, citations, pages_of, pages_text
from palace_pipeline.model import Attachment, Conversation, Kind, Message, Role

_ASKED = ("REQUEST",)
_ANSWERED = ("RESPONSE", "TEMPLATE_RESPONSE")
_THOUGHT = ("THINK",)
_TOOLS = ("SEARCH", "READ_LINK", "FILE")
_HOUSEKEEPING = ("TIP",)
_ROLES: dict[str, Role] = {"user": "user", "human": "user", "assistant": "assistant", "model": "assistant"}
_THOUGHTS = ("reasoning_content", "thinking_content")

Json = dict[str, Any]


class DeepSeek:
    """Reads one conversation object per element."""

    format = "deepseek-export"
    provider = "deepseek"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/xionglongztz/DeepSeekDataExporter, https://github.com/ceyaima/deepseek-exporter samples",
        "high",
        name="DeepSeek export",
        where="Settings → Data → Export all chats: ZIP with `conversations.json`",
        since="2025",
    )
    layout: Literal["elements"] = "elements"
    known_keys = known_keys.DEEPSEEK

    def detect(self, head: Head) -> bool:
        """True if an item has a `mapping` and DeepSeek's own times or fragments (ChatGPT's messages have authors)."""
        return head.shape in ("array", "object", "jsonl") and any(_is_chat(item) for item in head.items)

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation; one in which nobody says anything is skipped."""
        opened = _opened(value, report, place) if isinstance(value, dict) else None
        head, mapping, leaf = opened or ({}, None, None)
        yield from one_chat(mapping, lambda held: _conversation(head, held, leaf, report, place), place, report)


READER = DeepSeek()


def _is_chat(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    item = _unwrapped(item)
    if isinstance(item.get("chat_session"), dict) and isinstance(item.get("chat_messages"), list):
        return True
    if not isinstance(mapping := item.get("mapping"), dict):
        return False
    messages = [node["message"] for node in mapping.values() if isinstance(node, dict)
                and isinstance(node.get("message"), dict)]  # fmt: skip
    if any(isinstance(message.get("author"), dict) for message in messages):
        return False
    return "inserted_at" in item or any("fragments" in message or "inserted_at" in message for message in messages)


def _unwrapped(value: Json) -> Json:
    """The chat inside an answer of the web page's own API: `{code, data: {biz_data: {…}}}`."""
    for key in ("data", "biz_data"):
        if isinstance(inner := value.get(key), dict):
            value = inner
    return value


def _opened(value: Json, report: Report, place: str) -> tuple[Json, dict[str, Json], str | None] | None:
    """(head, nodes by id, leaf) of a conversation of either kind; nodes that are none are counted."""
    value = _unwrapped(value)
    nodes: dict[str, Any]
    if isinstance(messages := value.get("chat_messages"), list):
        session = value.get("chat_session")
        value = session if isinstance(session, dict) else value
        nodes = {}
        for number, message in enumerate(messages):
            known = isinstance(message, dict)
            id = (id_of(message.get("message_id")) if known else "") or f"#{number}"
            node = {"parent": message.get("parent_id"), "message": message} if known else message
            nodes[id if id not in nodes else f"{id}#{number}"] = node
    elif isinstance(mapping := value.get("mapping"), dict):
        nodes = mapping
    else:
        return None
    for node in nodes.values():
        if not isinstance(node, dict):
            report.skip("not a message", place, expected=node is None)
    whole = {id: node for id, node in nodes.items() if isinstance(node, dict)}
    return value, whole, id_of(value.get("current_message_id")) or None


def _conversation(
    head: Json, mapping: Mapping[str, Json], leaf: str | None, report: Report, place: str
) -> Conversation:
    messages = {id: node["message"] for id, node in mapping.items() if isinstance(node.get("message"), dict)}
    for node in mapping.values():
        if not isinstance(node.get("message"), dict | None):
            report.skip("not a message", place, expected=False)
    nodes = {
        id: Node(id, parent, parse_instant(messages[id].get("inserted_at")) if id in messages else None, id in messages)
        for id, parent in linked(mapping).items()
    }
    # Fragments say who speaks; only messages without any need to be seen in their line.
    bare = any(not message.get("fragments") for message in messages.values())
    roles = _roles(nodes, messages) if bare else {}
    rows: dict[str, list[Message]] = {}
    for id, message in messages.items():
        if found := _rows(id, message, roles.get(id, "user"), nodes[id].time, report, place):
            rows[id] = found
        else:
            nodes[id].time = None  # an answer that never came is not the newest thing said
    ordered = in_order(nodes, rows, leaf)
    derive_ids(ordered)
    title, created = name_of(head.get("title")), head.get("inserted_at")
    return Conversation(
        provider="deepseek",
        conversation_id=id_of(head.get("id")) or derive_conversation_id("deepseek", title or "", ordered),
        messages=ordered,
        title=title,
        created_at=parse_instant(created),
        updated_at=parse_instant(head.get("updated_at")),
        local_created=parse_naive(created),
        model=name_of(head.get("model")),
    )


def _roles(nodes: Mapping[str, Node], messages: Mapping[str, Json]) -> dict[str, Role]:
    """Who wrote each message, as far as its fragments do not say: its role, what it holds, else taking turns."""
    above = kept_above(nodes, messages)
    roles: dict[str, Role] = {}
    for start in messages:
        way: list[str] = []
        at: str | None = start
        while at is not None and at not in roles:
            if (said := _stated_role(messages[at])) is not None:
                roles[at] = said
                break
            roles[at] = "user"  # of a cycle nobody can say who began
            way.append(at)
            at = above.get(at)
        for id in reversed(way):
            parent = above.get(id)
            roles[id] = "assistant" if parent is not None and roles[parent] == "user" else "user"
    return roles


def _stated_role(message: Json) -> Role | None:
    author = message.get("author")
    for value in (message.get("role"), author, author.get("role") if isinstance(author, dict) else None):
        if isinstance(value, str) and (role := _ROLES.get(value.casefold())) is not None:
            return role
    types = [f.get("type") for f in list_of(message.get("fragments")) if isinstance(f, dict)]
    if types:
        return "user" if any(type in _ASKED for type in types) else "assistant"
    thought = any(isinstance(message.get(key), str) and message[key] for key in _THOUGHTS)
    return "assistant" if thought or message.get("search_results") else None


def _rows(id: str, message: Json, role: Role, time: datetime | None, report: Report, place: str) -> list[Message]:
    """The rows of a message: question, thinking and tools in order, then the answer; empty if it says nothing."""
    local = parse_naive(message.get("inserted_at")) if time is None else None
    model = name_of(message.get("model"))
    named = not id.startswith("#")

    def row(role: Role, text: str = "", mark: str = "") -> Message:
        return Message(f"{id}{mark}" if named else "", role, text, created_at=time, local_time=local, model=model)

    asked: list[str] = []
    answered: list[str] = []
    side: list[Message] = []
    pages: list[Page] = []
    for number, fragment in enumerate(_fragments(message, role)):
        if not isinstance(fragment, dict):
            report.skip("not a fragment of a message", place, expected=fragment is None)
            continue
        type, text = fragment.get("type"), _content(fragment.get("content"))
        if not isinstance(fragment.get("content"), str | list | None):
            report.skip("content that is no text", place, expected=False)
        found = pages_of(fragment.get("results"), fragment.get("references"))
        pages += found
        if type in _ASKED:
            asked.append(text)
        elif type in _ANSWERED:
            answered.append(text)
        elif type in _THOUGHT:
            if text.strip():
                side.append(thought := row("thinking", text, f"#{number}"))
                thought.kind = "thinking"
        elif type in _HOUSEKEEPING:
            report.skip("hint of the web page", place, expected=True)
        else:
            if not isinstance(type, str) or not (type in _TOOLS or type.startswith("TOOL_")):
                report.unknown[f"fragment:{type}"] += 1
                report.skip("unknown kind of fragment", place, expected=False)
            for words, kind, mark in _tool_texts(fragment, text or pages_text(found)):
                side.append(tool := row("tool", words, f"#{number}{mark}"))
                tool.kind, tool.tool_name = kind, (name_of(type) or "").lower() or None
    files = [file for item in list_of(message.get("files")) if (file := _file(item)) is not None]
    said: list[Message] = []
    spoken: tuple[tuple[Role, list[str]], ...] = (("user", asked), ("assistant", answered))
    for speaker, texts in spoken:
        if text := "\n\n".join([text for text in texts if text.strip()]):
            said.append(row(speaker, text, "" if not said else "#answer"))
    if not said and files:
        said.append(row(role))
        said[0].kind = "attachment"
    if said:
        said[0].attachment = files
        if pages and said[-1].role == "assistant":
            said[-1].citations = citations({page.url: page for page in pages}.values())
    elif not side:
        report.skip("empty message", place, expected=True)
    questions = [message for message in said if message.role == "user"]
    return [*questions, *side, *(message for message in said if message.role != "user")]


def _fragments(message: Json, role: Role) -> list[Any]:
    """The fragments of a message; those of the early shape are made of its single fields."""
    if fragments := list_of(message.get("fragments")):
        return fragments
    thought = next((message[key] for key in _THOUGHTS if message.get(key)), None)
    searched = message.get("search_results")
    return [
        *([{"type": "THINK", "content": thought}] if thought else []),
        *([{"type": "SEARCH", "results": searched}] if searched else []),
        {"type": "REQUEST" if role == "user" else "RESPONSE", "content": message.get("content")},
    ]


def _content(value: Any) -> str:
    return "\n\n".join(text for item in value if (text := text_of(item))) if isinstance(value, list) else text_of(value)


def _tool_texts(fragment: Json, given: str) -> Iterator[tuple[str, Kind, str]]:
    """(text, kind, mark for its id) of what a tool was asked, and of what it gave back."""
    queries = [query.get("query") if isinstance(query, dict) else query for query in list_of(fragment.get("queries"))]
    asked = "\n".join(text_of(query) for query in queries if text_of(query))
    asked = asked or arguments_text(fragment.get("query") or fragment.get("arguments"))
    if asked.strip():
        yield asked, "tool_call", "q"
    if given.strip():
        yield given, "tool_result", ""


def _file(item: Any) -> Attachment | None:
    if isinstance(item, str):
        return Attachment(name=name_of(item))
    if not isinstance(item, dict):
        return None
    name = next((name for key in ("file_name", "name", "id") if (name := name_of(item.get(key)))), None)
    size = next((size for key in ("file_size", "size") if (size := count_of(item.get(key)))), None)
    text = next((text for key in ("content", "text") if (text := text_of(item.get(key)))), None)
    return Attachment(name, name_of(item.get("type") or item.get("mime_type")), size, text=text)
