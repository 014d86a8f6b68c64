"""LibreChat: one JSON file per chat, its messages as a list (`messages`) or as nested objects (`messagesTree`).

Facts: https://github.com/danny-avila/LibreChat `client/src/hooks/Conversations/useExportConversation.ts` and
`packages/data-provider/src/types/assistants.ts`, pull request 2355, checked 2026-11-29. No file says which branch was
open: the newest leaf is taken. `exportAt` is a time of day without a date and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from palace_pipeline.exports import known_keys
from palace_pipeline.exports.attachments import base_name, url_file
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.branches import in_order
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, name_of, text_of
from palace_pipeline.exports.one_chat import one_chat
from palace_pipeline.exports.text import parse_json
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.exports.tree import Node
from palace_pipeline.exports.web_sources import citations_of
from palace_pipeline.model import Attachment, Conversation, Kind, Message, Role

_THINKING = re.compile(r":::thinking\n(.*?)\n:::[ \t]*(?:\n|$)", re.DOTALL)
_HOUSEKEEPING = ("agent_update", "summary")
_OWN_KEYS = frozenset("isCreatedByUser parentMessageId messageId sender".split())  # noqa: SIM905

Json = dict[str, Any]
Step = tuple[Role, Kind, str | None, str]


class LibreChat:
    """Reads one chat object per element."""

    format = "librechat-export"
    provider = "librechat"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/danny-avila/LibreChat useExportConversation.ts",
        "high",
        name="LibreChat export",
        where="a chat's menu → Export → JSON: one file per chat",
        since="2023",
    )
    layout: Literal["elements"] = "elements"
    known_keys = known_keys.LIBRECHAT

    def detect(self, head: Head) -> bool:
        """True if an item has a conversation id and messages in LibreChat's form."""
        return head.shape in ("array", "object", "jsonl") and any(_is_chat(item) for item in head.items)

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation."""
        messages = _flat(value) if isinstance(value, dict) else None
        yield from one_chat(messages, lambda held: _conversation(value, held, place, report), place, report)


READER = LibreChat()


def _is_chat(value: Any) -> bool:
    if not isinstance(value, dict) or "conversationId" not in value:
        return False
    held = value["messagesTree"] if "messagesTree" in value else value.get("messages")
    items = [item for item in (held if isinstance(held, list) else [held]) if isinstance(item, dict)]
    if not items:
        return isinstance(held, list) and "exportAt" in value
    return any(_OWN_KEYS & item.keys() for item in items[:8])


def _flat(value: Json) -> list[tuple[Any, str | None]] | None:
    """(message, id of the message it is nested in) of all messages, in the order of the file; however deep."""
    held = next((value[key] for key in ("messagesTree", "messages") if isinstance(value.get(key), list | dict)), None)
    if held is None:
        return None
    top: list[Any] = held if isinstance(held, list) else [held]
    found: list[tuple[Any, str | None]] = []
    stack: list[tuple[Any, str | None]] = [(item, None) for item in reversed(top)]
    while stack:
        item, above = stack.pop()
        found.append((item, above))
        children = item.get("children") if isinstance(item, dict) else None
        if isinstance(children, list):
            id = name_of(item.get("messageId")) or above
            stack += [(child, id) for child in reversed(children)]
    return found


def _conversation(value: Json, messages: list[tuple[Any, str | None]], place: str, report: Report) -> Conversation:
    nodes: dict[str, Node] = {}
    rows: dict[str, list[Message]] = {}
    for number, (message, above) in enumerate(messages):
        where = f"{place} message {number}".strip()
        if not isinstance(message, dict):
            expected = message is None
            report.skip("null in place of a message" if expected else "not a message", where, expected=expected)
            continue
        id = name_of(message.get("messageId"))
        key = id or f"#{number}"
        found = _rows(id or "", message, where, report)
        if isinstance(children := message.get("children"), dict | str) and children:
            report.skip("answers of an unknown form", where, expected=False)
        if key in nodes and not found:
            continue  # of a message that stands there twice the one with content counts
        parent = name_of(message.get("parentMessageId")) or above
        time = parse_instant(message.get("createdAt"))
        nodes[key] = Node(key, above if parent is not None and set(parent) <= {"0", "-"} else parent, time, bool(found))
        rows[key] = found
        if not found:
            text, content = message.get("text"), message.get("content")
            odd = bool(text and not isinstance(text, str)) or bool(content and not isinstance(content, str | list))
            report.skip("message of an unknown form" if odd else "empty message", where, expected=not odd)
    if not any(node.parent in nodes for node in nodes.values()):
        _chain(nodes)
    ordered = in_order(nodes, rows, None)
    derive_ids(ordered)
    options = value.get("options")
    options = options if isinstance(options, dict) else {}
    title = name_of(value.get("title"))
    return Conversation(
        "librechat",
        name_of(value.get("conversationId"))
        or derive_conversation_id("librechat", title or "", [m for m in ordered if m.visible]),
        ordered,
        title=title,
        created_at=parse_instant(options.get("createdAt")),
        updated_at=parse_instant(options.get("updatedAt")),
        model=next((m.model for m in reversed(ordered) if m.model and m.branch_active), None)
        or name_of(options.get("model")),
        account=name_of(options.get("user")),
    )


def _chain(nodes: dict[str, Node]) -> None:
    """A list without parents (an old or hand-made file) is one line of messages."""
    before: str | None = None
    for key, node in nodes.items():
        node.parent, before = before, key


# --- messages ---------------------------------------------------------------------------------------------------------


def _rows(id: str, message: Json, where: str, report: Report) -> list[Message]:
    """Thinking and tools first, then what the person sees; nothing for an empty message."""
    role = _role(message)
    created = parse_instant(message.get("createdAt"))
    local = None if created else parse_naive(message.get("clientTimestamp") or message.get("createdAt"))
    model = name_of(message.get("model")) if role == "assistant" else None
    texts: list[str] = []
    steps: list[Step] = []
    files: list[Attachment] = []
    content = next((v for v in (message.get("content"), message.get("text")) if isinstance(v, list)), None)
    for part in content or []:
        _take_part(part, texts, steps, files, where, report)
    text = "\n\n".join(text for text in texts if text.strip()).strip()
    if not text:
        text = _value(message.get("text")).strip() or _value(message.get("content")).strip()
    if role == "assistant" and text.startswith(":::thinking"):
        for thought in _THINKING.findall(text):
            steps.append(("thinking", "thinking", None, str(thought).strip()))
        text = _THINKING.sub("", text).strip()

    def row(number: str, role: Role, kind: Kind, text: str) -> Message:
        message_id = f"{id}#{number}" if id and number else id
        return Message(message_id, role, text, kind, created_at=created, local_time=local, model=model)

    rows: list[Message] = []
    for number, (step_role, kind, tool, said) in enumerate(steps):
        if said.strip() or tool:
            step = row(str(number), step_role, kind, said)
            step.tool_name = tool
            rows.append(step)
    files += _files(message.get("files"))
    if not (text or files):
        return rows
    if message.get("error") is True and role == "assistant":
        return [*rows, row("", "system", "event", text)]
    said_row = row("", role, "text" if text else "attachment", text)
    said_row.attachment, said_row.citations = files, citations_of(message.get("attachments"))
    tokens = count_of(message.get("tokenCount")) or None
    said_row.tokens_in, said_row.tokens_out = (tokens, None) if role == "user" else (None, tokens)
    return [*rows, said_row]


def _role(message: Json) -> Role:
    by_user = message.get("isCreatedByUser")
    if isinstance(by_user, bool):
        return "user" if by_user else "assistant"
    sender = name_of(message.get("sender")) or name_of(message.get("role")) or ""
    return "user" if sender.casefold() in ("user", "human") else "assistant"


def _take_part(
    part: Any, texts: list[str], steps: list[Step], files: list[Attachment], where: str, report: Report
) -> None:
    if isinstance(part, str):
        texts.append(text_of(part))
        return
    if not isinstance(part, dict):
        return
    kind = part.get("type")
    match kind:
        case "text" | "error":
            said = _value(part.get("text")) or (_value(part.get("error")) if kind == "error" else "")
            texts.append(said)
            if not said and (part.get("text") or part.get("error")):
                report.skip("text of an unknown form", where, expected=False)
        case "think":
            thought = _value(part.get("think")).strip()
            steps.append(("thinking", "thinking", None, thought))
            if not thought and part.get("think"):
                report.skip("text of an unknown form", where, expected=False)
        case "tool_call":
            _take_call(part.get("tool_call"), steps)
        case "image_file" | "image_url" | "input_audio" | "video_url" | "file":
            files.append(_file_part(part, kind))
        case str() if kind in _HOUSEKEEPING:
            return
        case _:
            report.unknown[f"content:{kind}"] += 1
            said = _value(part.get("text", part.get(kind) if isinstance(kind, str) else None))
            if said:
                texts.append(said)
            else:
                report.skip("unknown kind of content", where, expected=False)


def _value(value: Any) -> str:
    """A text, or the object `{value, annotations}` around one."""
    return text_of(value.get("value", value.get("text")) if isinstance(value, dict) else value)


def _take_call(value: Any, steps: list[Step]) -> None:
    """A tool's call and its output, in the form of agents or in one of the three of the assistants' interface."""
    if not isinstance(value, dict):
        return
    call: Json = value
    name, arguments, output = call.get("name"), call.get("args", call.get("arguments")), call.get("output")
    if isinstance(inner := call.get("function"), dict):
        name = inner.get("name")
        arguments, output = inner.get("arguments"), inner.get("output", output)
    elif isinstance(inner := call.get("code_interpreter"), dict):
        name, arguments, output = "code_interpreter", inner.get("input"), inner.get("outputs")
    elif name is None and isinstance(call.get("type"), str):
        name = call["type"]
    tool = name_of(name)
    if isinstance(arguments, str):
        try:
            parsed = parse_json(arguments)
        except (ValueError, RecursionError):
            parsed = None
        arguments = parsed if isinstance(parsed, dict) else arguments
    steps.append(("tool", "tool_call", tool, arguments_text(arguments)))
    if output not in (None, "", []):
        steps.append(("tool", "tool_result", tool, _output_text(output)))


def _output_text(output: Any) -> str:
    if isinstance(output, list):
        texts = [
            text_of(item.get("text") or item.get("logs")) if isinstance(item, dict) else text_of(item)
            for item in output
        ]
        if any(texts):
            return "\n\n".join(text for text in texts if text)
    return arguments_text(output)


def _file_part(part: Json, kind: str) -> Attachment:
    inner = part.get(kind)
    if not isinstance(inner, dict):
        return url_file(inner) if isinstance(inner, str) else Attachment(type=kind)
    if isinstance(inner.get("url"), str):
        return url_file(inner["url"])
    return _file(inner, kind.removesuffix("_file"))


def _files(value: Any) -> list[Attachment]:
    found = value if isinstance(value, list) else []
    return [_file(item, None) for item in found if isinstance(item, dict)]


def _file(item: Json, kind: str | None) -> Attachment:
    name = name_of(item.get("filename")) or base_name(text_of(item.get("filepath")).split("?")[0]) or None
    return Attachment(
        name or name_of(item.get("file_id")),
        name_of(item.get("type")) or kind,
        count_of(item.get("bytes")) or None,
        text=text_of(item.get("text")) or None,
    )
