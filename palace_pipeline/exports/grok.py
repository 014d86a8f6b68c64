"""Grok: the account export of grok.com (`prod-grok-backend.json`, at any depth of the export's folders).

One object with `conversations[]` of `{conversation, responses[].response}`. Two generations: in mid-2025
`conversation_id` and `response_id` with ISO times, later `id` and `_id` with MongoDB's `{"$date": {"$numberLong": ms}}`.
Responses form a tree by `parent_response_id`; `leaf_response_id` is mostly null, or names a response that is not in the
export. Files lie beside it as `prod-mc-asset-server/<id>/content`; the two account files are never read.
Shape: seven public readers of real exports, among them https://github.com/hugoamorales/grok_export_toolkit and
https://github.com/codeface-io/mac-stack grok/export_conversations, looked at on 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from palace_pipeline.exports import grok_content as content
from palace_pipeline.exports import known_keys
from palace_pipeline.exports.attachments import kind_of_files
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.branches import in_order
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import name_of, text_of
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.exports.tree import Node
from palace_pipeline.model import Attachment, Conversation, Message, Role

_BESIDE = {"projects", "tasks", "media_posts"}
_ASSETS = ("prod-mc-asset-server/{}/content", "../prod-mc-asset-server/{}/content")
_ASSET_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
_MAGIC = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"%PDF": "application/pdf"}

Json = dict[str, Any]


class Grok:
    """Reads one `{conversation, responses}` per element."""

    format = "grok-export"
    provider = "grok"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/hugoamorales/grok_export_toolkit, https://github.com/codeface-io/mac-stack",
        "high",
        name="Grok export",
        where="accounts.x.ai/data or Settings → Data controls: ZIP with `prod-grok-backend.json`",
        since="2025",
    )
    layout: Literal["elements"] = "elements"
    known_keys = known_keys.GROK

    def detect(self, head: Head) -> bool:
        """True for `{conversation, responses}` objects, and for a backend file that begins with its other lists."""
        if head.shape not in ("array", "object", "jsonl"):
            return False
        if any(_is_chat(item) for item in head.items):
            return True
        keys = set(head.keys)
        known = "media_posts" in keys or ("conversations" in keys and bool(keys & _BESIDE))
        return head.shape == "object" and head.wrapped is None and known

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation per `{conversation, responses}`; a whole backend file gives all of its own."""
        inner = value.get("conversations") if isinstance(value, dict) and "responses" not in value else None
        if isinstance(inner, list):
            for number, item in enumerate(inner):
                yield from _read(item, member, f"{place} conversations[{number}]".strip(), report)
            if not inner:
                report.skip("no conversations", place, expected=True, unit="conversation")
            return
        yield from _read(value, member, place, report)


READER = Grok()


def _is_chat(item: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(head := item.get("conversation"), dict):
        return False
    return isinstance(item.get("responses"), list) or "leaf_response_id" in head


def _read(value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
    responses = value.get("responses") if isinstance(value, dict) else None
    if not isinstance(responses, list):
        report.skip("conversation without messages", place, expected=value is None, unit="conversation")
        return
    if not responses:
        report.skip("empty conversation", place, expected=True, unit="conversation")
        return
    head = value.get("conversation")
    conversation = _conversation(head if isinstance(head, dict) else {}, responses, member, place, report)
    if not conversation.visible_messages():
        report.skip("no message that a person sees", place, expected=True, unit="conversation")
        return
    yield conversation


def _id(value: Any, *keys: str) -> str:
    """The first id under one of the keys; MongoDB's own ids come as `{"$oid": …}`."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, dict):
            found = found.get("$oid")
        if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
            return str(found)
    return ""


def _conversation(head: Json, responses: list[Any], member: Member, place: str, report: Report) -> Conversation:
    found = _responses(responses, place, report)
    tree = _linked(found)
    rows: dict[str, list[Message]] = {}
    nodes: dict[str, Node] = {}
    before: str | None = None
    for id, response in found.items():
        time = parse_instant(response.get("create_time"))
        rows_here = _rows(response, time, member, f"{place} response {len(nodes)}".strip(), report)
        # In a tree an empty parent is a beginning (an edited first question); without any link it is one line.
        linked = tree and "parent_response_id" in response
        parent = (_id(response, "parent_response_id") or None) if linked else before
        # What says nothing has no time of its own: a draft or a failed answer is not the newest thing said.
        nodes[id] = Node(id, parent, time if rows_here else None, bool(rows_here))
        if rows_here:
            rows[id] = rows_here
        before = id
    messages = in_order(nodes, rows, _id(head, "leaf_response_id") or None)
    derive_ids(messages)
    title, created = name_of(head.get("title")), head.get("create_time")
    id = _id(head, "id", "conversation_id", "_id") or _shared_id(found)
    return Conversation(
        provider="grok",
        conversation_id=id or derive_conversation_id("grok", title or "", messages),
        messages=messages,
        title=title,
        created_at=parse_instant(created),
        updated_at=parse_instant(head.get("modify_time")),
        local_created=parse_naive(created),
        origin="cron" if _id(head, "task_result_id") else "person",
    )


def _shared_id(found: dict[str, Json]) -> str:
    """The conversation that all responses name, if its own head has no id."""
    ids = {_id(response, "conversation_id") for response in found.values()} - {""}
    return ids.pop() if len(ids) == 1 else ""


def _responses(responses: list[Any], place: str, report: Report) -> dict[str, Json]:
    """The responses by id, in order; without any link between them in the order of their times, if all have one."""
    found: dict[str, Json] = {}
    for number, item in enumerate(responses):
        response = item.get("response", item) if isinstance(item, dict) else None
        if not isinstance(response, dict):
            report.skip("not a message", f"{place} response {number}".strip(), expected=item is None)
            continue
        id = _id(response, "_id", "response_id", "id") or f"#{number}"
        if found.get(id) == response:
            report.skip("the same message twice", f"{place} response {number}".strip(), expected=True)
            continue
        found[id if id not in found else f"{id}#{number}"] = response
    if not _linked(found):
        times = {id: parse_instant(response.get("create_time")) for id, response in found.items()}
        dated = {id: time for id, time in times.items() if time is not None}
        if len(dated) == len(found):
            return {id: found[id] for id in sorted(found, key=dated.__getitem__)}
    return found


def _linked(found: dict[str, Json]) -> bool:
    return any(_id(response, "parent_response_id") in found for response in found.values())


def _role(sender: Any) -> Role | None:
    name = sender.strip().casefold() if isinstance(sender, str) else ""
    if name in ("human", "user"):
        return "user"
    return "assistant" if name in ("assistant", "model", "ai", "bot") or name.startswith("grok") else None


def _rows(response: Json, time: datetime | None, member: Member, place: str, report: Report) -> list[Message]:
    """Thinking and tools first, as they came before the answer, then what the person sees."""
    role = _role(response.get("sender"))
    base = Message(
        _id(response, "_id", "response_id", "id"),
        role or "system",
        created_at=time,
        local_time=parse_naive(response.get("create_time")) if time is None else None,
        model=name_of(response.get("model")),
    )
    if role is None:
        report.unknown[f"sender:{response.get('sender')}"] += 1
        base.kind, base.hidden_reason = "system", "unknown sender"
    message = response.get("message")
    if not isinstance(message, str | None):
        report.skip("message that is no text", place, expected=False)
    base.text, cards = text_of(message), content.cards_of(response)
    side: list[Message] = []
    if role != "user":
        base.text, shown = content.without_markup(base.text)
        base.citations = content.citations(response, cards)
        for number, (text, kind, tool) in enumerate([*content.side_texts(response), *shown]):
            thinking = kind == "thinking"
            id = f"{base.message_id}#{number}" if base.message_id else ""
            side.append(Message(id, "thinking" if thinking else "tool", text, kind, base.created_at, base.local_time,
                                model=base.model, tool_name=tool))  # fmt: skip
    base.attachment = [*_files(response, member), *content.pictures(response, cards)]
    if base.text.strip() or base.attachment:
        if role is not None:
            base.kind = "text" if base.text.strip() else kind_of_files(base.attachment)
        return [*side, base]
    if not side:
        failed = bool(response.get("error"))
        report.skip("answer that failed in the source" if failed else "empty message", place, expected=True)
    return side


def _files(response: Json, member: Member) -> list[Attachment]:
    """Files that were sent: ids, or objects with an id and a name. A file that the export lacks keeps its id."""
    files: dict[str, Attachment] = {}
    for key in ("file_attachments", "image_attachments", "file_attachments_metadata"):
        for item in value if isinstance(value := response.get(key), list) else ():
            holder: Json = item if isinstance(item, dict) else {"id": item}
            id = _id(holder, "id", "asset_id", "file_metadata_id", "fileMetadataId")
            names = (name_of(holder.get(k)) for k in ("file_name", "fileName", "name"))
            file = Attachment(name=next((name for name in names if name), None))
            types = (name_of(holder.get(k)) for k in ("mime_type", "file_mime_type", "fileMimeType"))
            file.type = next((type for type in types if type), None)
            if id and (known := files.get(id)) is not None:
                known.name = file.name if known.name == id and file.name else known.name
                known.type = known.type or file.type
            elif id or file.name:
                _look(file, id, member)
                file.name = file.name or id
                files[id or f"#{len(files)}"] = file
    return list(files.values())


def _look(file: Attachment, id: str, member: Member) -> None:
    """Size and type of a file that lies in the export."""
    if not _ASSET_ID.fullmatch(id):
        return
    asset = next((found for path in _ASSETS if (found := member.near(path.format(id))) is not None), None)
    if asset is None:
        return
    file.size = asset.size
    try:
        with asset.open() as stream:
            start = stream.read(16)
    except OSError:  # it is there and cannot be read: its own entry in the export says so
        return
    file.type = file.type or next((type for magic, type in _MAGIC.items() if start.startswith(magic)), None)
