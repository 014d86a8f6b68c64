"""Cursor's databases: `…/Cursor/User/globalStorage/state.vscdb` and `…/User/workspaceStorage/<hash>/state.vscdb`.

Table `cursorDiskKV`: a chat under `composerData:<chat>`, its messages under `bubbleId:<chat>:<bubble>` in the order of
`fullConversationHeadersOnly`; before 2025 they stood inside it (`conversation`, `conversationMap`). Table
`composerHeaders` (2026) says which chats are sub-agents. Before 2024 chats were in the workspace's `ItemTable`; that
table also holds the tokens of the sign-in, so two keys of it are asked for by their full names and nothing else is
ever read. Copies of requests (`agentKv:blob:…`), checkpoints and file states are not read. Shapes:
https://github.com/michaeldhood/chatrxiv docs/cursor/storage-reference.md and parsers of Cursor 0.4x to 3.16, checked
2026-11-29.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from palace_pipeline.exports.agent_log import side_json
from palace_pipeline.exports.attachments import uri_path
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.cursor_bubbles import Placed, kept_bubble, messages_of
from palace_pipeline.exports.databases import Table, cell_json, grouped, holds_rows, kept_row, table_named
from palace_pipeline.exports.ids import derive_conversation_id
from palace_pipeline.exports.json_values import dicts_of, name_of
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.model import Conversation, Message

PROVIDER = "cursor"
FORMAT = "cursor-vscdb"

_CHAT, _BUBBLE = "composerData:", "bubbleId:"
_OLD_KEYS = ("workbench.panel.aichat.view.aichat.chatdata", "composer.composerData")
"""The only keys of `ItemTable` that are ever read: chats of before 2024, and of workspaces of 2024."""
_CHAT_FIELDS = (
    *("composerId", "name", "createdAt", "lastUpdatedAt", "modelConfig", "isBestOfNSubcomposer", "workspaceIdentifier"),
    *("isDraft", "isEphemeral", "generatingBubbleIds"),
)
"""What is kept of a chat's own entry, which also holds encryption keys, drafts and whole files."""
_HEADER_FIELDS = ("bubbleId", "type", "createdAt")
_TAB_FIELDS = ("tabId", "chatTitle", "lastSendTime")

Json = dict[str, Any]


class CursorReader:
    """Reads a chat as one conversation; see the module."""

    format = FORMAT
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/michaeldhood/chatrxiv docs/cursor/storage-reference.md",
        "high",
        "Cursor database",
        "`…/Cursor/User/globalStorage/state.vscdb`, `…/User/workspaceStorage/*/state.vscdb`",
        "2023",
    )
    layout: Literal["rows"] = "rows"

    def detect(self, head: Head) -> bool:
        """The editor's tables (VS Code itself has only the first), or what was kept of them."""
        if head.database is None:
            return holds_rows(head, FORMAT)
        return "cursorDiskKV" in head.keys or ("ItemTable" in head.keys and head.name.lower().endswith(".vscdb"))

    def elements(self, connection: sqlite3.Connection, report: Report) -> Iterator[tuple[str, bytes]]:
        """Each chat with those of its bubbles' fields that belong to the talk."""
        empty = True
        for place, parts in _chats(connection, report):
            empty = False
            try:
                line = kept_row(FORMAT, parts)
            except ValueError as error:
                report.skip(str(error), place, expected=False, unit="conversation")
            else:
                yield place, line
        if empty and not report.skips:
            report.skip("editor state without chats", expected=True, unit="file")

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation."""
        tab, chat = (value.get("tab"), value.get("chat")) if isinstance(value, dict) else (None, None)
        if isinstance(tab, dict):
            found = _of_tab(tab, dicts_of(value.get("bubbles")), report)
        elif isinstance(chat, dict):
            found = _of_chat(chat, value, report, place)
        else:
            report.skip("not a chat", place, expected=False, unit="conversation")
            return
        if not any(message.visible for message in found.messages):
            why = "chat without messages"
            report.skip(why, found.conversation_id, expected=True, unit="conversation")
            return
        if found.project is None:
            workspace = side_json(member, "workspace.json")
            found.project = uri_path(workspace.get("folder")) if isinstance(workspace, dict) else None
        yield found


READER = CursorReader()


# --- rows -------------------------------------------------------------------------------------------------------------


def _chats(connection: sqlite3.Connection, report: Report) -> Iterator[tuple[str, Json]]:
    store = table_named(connection, "cursorDiskKV")
    if store is not None and {"key", "value"} <= store.columns:
        yield from _stored(store, _heads(connection, report), report)
    old = table_named(connection, "ItemTable")
    if old is not None and {"key", "value"} <= old.columns:
        for key in _OLD_KEYS:
            # From the key to the key with a NUL behind it: that one key, found in the index.
            for numbers in grouped(old.keys("key", report, (key, key + "\0")), _text).values():
                for row in old.rows(numbers, ("key", "value"), report, key) or ():
                    if row.get("key") == key:
                        yield from _old(cell_json(row.get("value")), report)


def _stored(store: Table, heads: Mapping[str, Json], report: Report) -> Iterator[tuple[str, Json]]:
    """Chats of `cursorDiskKV`; `bubbleId:` keys are not parsed further than their chat before they are needed."""
    chats = grouped(store.keys("key", report, (_CHAT, _CHAT[:-1] + ";")), lambda key: _after(key, _CHAT))
    bubbles = grouped(store.keys("key", report, (_BUBBLE, _BUBBLE[:-1] + ";")), _chat_of)
    for chat_id, numbers in chats.items():
        place = f"{_CHAT}{chat_id}"
        rows = store.rows(numbers, ("key", "value"), report, place)
        own = bubbles.pop(chat_id, ())
        if rows is None:
            continue
        chat = _unwrapped(cell_json(rows[-1].get("value"))) if rows else None
        if not isinstance(chat, dict):
            gone = bool(rows) and rows[-1].get("value") is None
            why = "chat that was deleted" if gone else "damaged chat"
            report.skip(why, place, expected=gone, count=1, unit="conversation")
            continue
        said = store.rows(own, ("key", "value"), report, place)
        if said is not None:
            yield place, _with_bubbles(chat, chat_id, heads.get(chat_id), said, report)
    if left := sum(len(numbers) for numbers in bubbles.values()):
        report.skip("message of a chat that was deleted", "bubbleId", expected=True, count=left)


def _with_bubbles(chat: Json, chat_id: str, head: Json | None, rows: Iterable[Json], report: Report) -> Json:
    """What is kept of a chat: its own fields, the order of its bubbles, and the bubbles by id."""
    bubbles: Json = {}
    damaged = 0
    for row in rows:
        bubble = _unwrapped(cell_json(row.get("value")))
        if isinstance(bubble, dict):
            bubbles[str(row.get("key")).rpartition(":")[2]] = kept_bubble(bubble)
        else:
            damaged += row.get("value") is not None
    if damaged:
        report.skip("damaged message", f"{_CHAT}{chat_id}", expected=False, count=damaged)
    inside = chat.get("conversationMap")
    for name, bubble in inside.items() if isinstance(inside, dict) else ():
        if isinstance(bubble, dict):
            bubbles.setdefault(name, kept_bubble(bubble))
    return {
        "chat": {name: chat[name] for name in _CHAT_FIELDS if name in chat} | {"composerId": chat_id},
        "subagent": _subagent(chat, head or {}, chat_id),
        "name": name_of((head or {}).get("name")),
        "order": _order(chat.get("fullConversationHeadersOnly")),
        "inline": [kept_bubble(bubble) for bubble in dicts_of(chat.get("conversation"))],
        "bubbles": bubbles,
    }


def _order(headers: object) -> list[Json]:
    """The entries of a chat's list; newer ones also say the time and the kind of each message."""
    entries = [{"bubbleId": h} if isinstance(h, str) else h for h in headers] if isinstance(headers, list) else []
    return [{name: h[name] for name in _HEADER_FIELDS if name in h} for h in dicts_of(entries)]


def _heads(connection: sqlite3.Connection, report: Report) -> dict[str, Json]:
    """What the list of chats says of each: its name, whose sub-agent it is."""
    table = table_named(connection, "composerHeaders")
    if table is None or not {"composerId", "value"} <= table.columns:
        return {}
    heads: dict[str, Json] = {}
    for key, numbers in grouped(table.keys("composerId", report), _text).items():
        for row in table.rows(numbers, ("value", "isSubagent"), report, "composerHeaders") or ():
            head = cell_json(row.get("value"))
            head = head if isinstance(head, dict) else {}
            heads[key] = {
                "name": head.get("name"),
                "subagentInfo": head.get("subagentInfo"),
                "isSubagent": row.get("isSubagent") == 1,
            }
    return heads


def _subagent(chat: Json, head: Json, chat_id: str) -> Json | None:
    """`{"parent": …}` of a sub-agent, by the program's own rule; None for a person's chat."""
    if chat.get("isBestOfNSubcomposer") is True:
        return None
    infos = [info for info in (chat.get("subagentInfo"), head.get("subagentInfo")) if isinstance(info, dict)]
    parent = next((name for info in infos if (name := name_of(info.get("parentComposerId")))), None)
    if parent or chat_id.startswith("task-") or head.get("isSubagent"):
        return {"parent": parent}
    return None


def _old(value: Any, report: Report) -> Iterator[tuple[str, Json]]:
    """Chats of a workspace's own table: tabs with bubbles, or composers with a `conversation`."""
    holder = _unwrapped(value)
    if not isinstance(holder, dict):
        if holder is not None:
            report.skip("damaged chats", "ItemTable", expected=False, unit="conversation")
        return
    for tab in dicts_of(holder.get("tabs")):
        kept = {name: tab[name] for name in _TAB_FIELDS if name in tab}
        bubbles = [kept_bubble(bubble) for bubble in dicts_of(tab.get("bubbles"))]
        yield f"tab {name_of(tab.get('tabId')) or ''}".strip(), {"tab": kept, "bubbles": bubbles}
    for chat in dicts_of(holder.get("allComposers")):
        # Since 2025 this is only an index of chats in the other database.
        if (chat_id := name_of(chat.get("composerId"))) and (chat.get("conversation") or chat.get("conversationMap")):
            yield f"{_CHAT}{chat_id}", _with_bubbles(chat, chat_id, None, (), report)


def _unwrapped(value: Any) -> Any:
    """JSON that stands in a JSON string, as some versions wrote it."""
    return cell_json(value) if isinstance(value, str) else value


def _text(key: object) -> str | None:
    return key if isinstance(key, str) and key else None


def _after(key: object, prefix: str) -> str | None:
    return key.removeprefix(prefix) or None if isinstance(key, str) and key.startswith(prefix) else None


def _chat_of(key: object) -> str | None:
    """The chat in `bubbleId:<chat>:<bubble>`."""
    return (_after(key, _BUBBLE) or "").rpartition(":")[0] or None


# --- conversations ----------------------------------------------------------------------------------------------------


def _of_chat(chat: Json, value: Json, report: Report, place: str) -> Conversation:
    chat_id = name_of(chat.get("composerId")) or place
    messages = messages_of(_placed(chat, value, report, chat_id), report)
    subagent = value.get("subagent")
    config = chat.get("modelConfig")
    model = name_of(config.get("modelName")) if isinstance(config, dict) else None
    workspace = chat.get("workspaceIdentifier")
    folder = workspace.get("uri") if isinstance(workspace, dict) else None
    paths = [folder.get(key) for key in ("fsPath", "path", "external")] if isinstance(folder, dict) else [folder]
    return Conversation(
        provider=PROVIDER,
        conversation_id=chat_id,
        messages=messages,
        title=name_of(chat.get("name")) or name_of(value.get("name")),
        created_at=parse_instant(chat.get("createdAt")),
        updated_at=parse_instant(chat.get("lastUpdatedAt")),
        origin="subagent" if isinstance(subagent, dict) else "person",
        model=next((m.model for m in messages if m.model), model if model != "default" else None),
        project=next((path for raw in paths if (path := uri_path(raw))), None),
        parent_conversation_id=name_of(subagent.get("parent")) if isinstance(subagent, dict) else None,
    )


def _placed(chat: Json, value: Json, report: Report, chat_id: str) -> Iterator[Placed]:
    """The bubbles in the chat's order, then those it no longer lists: it went back behind them."""
    stored = value.get("bubbles")
    bubbles: Json = dict(stored) if isinstance(stored, dict) else {}
    unfinished = chat.get("generatingBubbleIds")
    growing = {name for name in unfinished if isinstance(name, str)} if isinstance(unfinished, list) else set[str]()
    if being_written := len(growing & bubbles.keys()):
        report.skip("answer that is still being written", chat_id, expected=True, count=being_written)
    inline = dicts_of(value.get("inline"))
    inside = {name for bubble in inline if isinstance(name := bubble.get("bubbleId"), str)}
    missing = 0
    listed: set[str] = set()
    for entry in dicts_of(value.get("order")):
        name = entry.get("bubbleId")
        if not isinstance(name, str) or name in listed:
            continue
        listed.add(name)
        bubble = bubbles.get(name)
        if name in growing:
            continue
        if isinstance(bubble, dict):
            yield Placed(bubble, header=entry)
        else:
            missing += name not in inside
    if missing:
        report.skip("message that Cursor lists and no longer has", chat_id, expected=True, count=missing)
    for bubble in inline:
        if (name := bubble.get("bubbleId")) not in listed or name not in bubbles:
            yield Placed(bubble)
            listed.update([name] if isinstance(name, str) else [])
    # A chat that lists nothing has lost its order: then its messages stand by their times.
    rest = [(name, b) for name, b in bubbles.items() if name not in listed | growing and isinstance(b, dict)]
    rest.sort(key=lambda item: (str(item[1].get("createdAt") or ""), item[0]))
    for _, bubble in rest:
        yield Placed(bubble, active=not listed)


def _of_tab(tab: Json, bubbles: list[Json], report: Report) -> Conversation:
    messages: list[Message] = messages_of(map(Placed, bubbles), report)
    title = name_of(tab.get("chatTitle"))
    return Conversation(
        provider=PROVIDER,
        conversation_id=name_of(tab.get("tabId")) or derive_conversation_id(PROVIDER, title or "", messages),
        messages=messages,
        title=title,
        updated_at=parse_instant(tab.get("lastSendTime")),
    )
