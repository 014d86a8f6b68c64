"""OpenClaw and pi session logs: `~/.openclaw/agents/<agent>/sessions/<id>.jsonl`, `~/.pi/agent/sessions/…`.

The first line is `{"type": "session", "version", "id", "timestamp", "cwd"}`; then come entries that form a tree by
`id` and `parentId` (before version 2 they have neither and are in order). Sessions that were put aside
(`.jsonl.reset.<time>`, `.jsonl.deleted.<time>`, `.jsonl.full.bak`) have the same shape. Shape: session-manager.ts and
messages.ts of https://github.com/badlogic/pi-mono, https://github.com/openclaw/openclaw, checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Literal

from palace_pipeline.exports.agent_log import Record, count_unknown, records, side_file, side_json
from palace_pipeline.exports.attachments import inline_file, kind_of_files
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.claude_code_blocks import Rows, blocks_of
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, name_of, text_of, words_of
from palace_pipeline.exports.openclaw_text import ORIGINS, clean_answer, is_silent, program_prompt, split_user_text
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.exports.tree import Turn, left_behind
from palace_pipeline.model import Attachment, Conversation, Message, Origin

PROVIDER = "openclaw"

_ROLES = ("user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage")
_QUIET = frozenset({"thinking_level_change", "custom", "label", "leaf", "active_tools_change", "steering_mode_change"})
_SUMMARIES = {
    "compaction": "compaction summary",
    "branch_summary": "summary of another branch",
    "compactionSummary": "compaction summary",
    "branchSummary": "summary of another branch",
}
_PROGRAM_MODELS = ("delivery-mirror", "gateway-injected")
_STEM = re.compile(r"\.jsonl.*$", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(slots=True)
class _Node:
    """One entry in the tree. `starts`: it says that nothing comes before it. `program`: kind of program prompt."""

    parent: str | None
    starts: bool
    turn: Turn = ""
    program: str | None = None
    rows: list[Message] = field(default_factory=list)


@dataclass(slots=True)
class _Session:
    """What is known of a log while its lines come in."""

    report: Report
    header: Record | None = None
    title: str | None = None
    model: str | None = None
    repeated: int = 0
    tools: dict[str, str] = field(default_factory=dict[str, str])
    nodes: list[_Node] = field(default_factory=list[_Node])
    index: dict[str, int] = field(default_factory=dict[str, int])

    def place(self, record: Record) -> _Node | None:
        """The new node of an entry, or None if the entry has been written before."""
        own, parent = record.get("id"), record.get("parentId")
        if isinstance(own, str) and own:
            if own in self.index:
                self.repeated += 1
                return None
            self.index[own] = len(self.nodes)
        node = _Node(parent if isinstance(parent, str) and parent else None, parent is None and "parentId" in record)
        self.nodes.append(node)
        return node


class OpenClawReader:
    """Reader of pi and OpenClaw logs; see the module."""

    format = "openclaw-jsonl"
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/badlogic/pi-mono packages/coding-agent/src/core, https://github.com/openclaw/openclaw",
        "high",
        "OpenClaw and pi sessions",
        "`~/.openclaw/agents/<agent>/sessions/*.jsonl*`, `~/.pi/agent/sessions/`",
        "2025-11",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """A session's header, or (if the first line is lost) messages with roles in entries with ids."""
        return head.shape == "jsonl" and any(isinstance(item, dict) and _is_ours(item) for item in head.items)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The one conversation of a log."""
        session = _Session(report)
        empty = True
        for number, record in records(member, report, _is_whole):
            empty = False
            _take(session, record, f"line {number}")
        if session.repeated:
            report.skip("entry written twice", expected=True, count=session.repeated)
        conversation = _conversation(session, member)
        if conversation.visible_messages():
            yield conversation
        elif not empty:
            report.skip("session without messages", expected=True, unit="conversation")


READER = OpenClawReader()


def _is_ours(item: Record) -> bool:
    if item.get("type") == "session":
        return isinstance(item.get("id"), str) and ("cwd" in item or "version" in item)
    message = item.get("message")
    if item.get("type") != "message" or not isinstance(message, dict) or "parentId" not in item:
        return False
    return message.get("role") in _ROLES


def _is_whole(record: Record) -> bool:
    return isinstance(record.get("type"), str) and "timestamp" in record


def _take(session: _Session, record: Record, place: str) -> None:
    kind = record.get("type")
    kind = kind if isinstance(kind, str) else ""
    if kind == "session":
        session.header = session.header or record
        return
    node = session.place(record)
    if node is None:
        return
    when = parse_instant(record.get("timestamp"))
    rows = Rows(_text(record.get("id")), when, node.rows)
    if kind == "message":
        message = record.get("message")
        if isinstance(message, dict):
            rows.when = rows.when or parse_instant(message.get("timestamp"))
            _add_message(session, node, rows, message)
        else:
            session.report.skip("record without a message", place, expected=False)
    elif kind == "model_change":
        session.model = name_of(record.get("modelId")) or session.model
    elif kind == "session_info":
        session.title = name_of(record.get("name")) or session.title
    elif kind in _SUMMARIES:
        rows.add_hidden(_SUMMARIES[kind], text_of(record.get("summary")))
    elif kind == "custom_message":
        rows.add_hidden("message of an extension", "\n\n".join(_texts(record.get("content"))))
    elif kind not in _QUIET:
        count_unknown(session.report, "record type", kind)
    if rows.when is None:
        _set_local_times(rows, record)


def _set_local_times(rows: Rows, record: Record) -> None:
    """Times without a zone, for rows that have no other."""
    message = record.get("message")
    holders = [record, message] if isinstance(message, dict) else [record]
    local = next((found for h in holders if (found := parse_naive(h.get("timestamp")))), None)
    for row in rows.rows:
        if row.created_at is None and row.local_time is None:
            row.local_time = local


def _add_message(session: _Session, node: _Node, rows: Rows, message: Record) -> None:
    role = message.get("role")
    if role == "user":
        _add_user(session, node, rows, message)
    elif role == "assistant":
        _add_answer(session, node, rows, message)
    elif role == "toolResult":
        node.turn = "result"
        call = message.get("toolCallId")
        name = name_of(message.get("toolName")) or (session.tools.get(call) if isinstance(call, str) else None)
        texts, files = _content(session, message.get("content"))
        rows.add(role="tool", kind="tool_result", text="\n\n".join(texts), tool_name=name, attachment=files)
    elif role == "bashExecution":
        # A command that the person ran beside the chat: neither words nor a tool of the model.
        rows.add(role="tool", kind="tool_call", text=text_of(message.get("command")), tool_name="bash")
        rows.add(role="tool", kind="tool_result", text=text_of(message.get("output")), tool_name="bash")
    elif isinstance(role, str) and role in _SUMMARIES:
        rows.add_hidden(_SUMMARIES[role], text_of(message.get("summary")))
    elif role in ("custom", "hookMessage", "system"):
        rows.add_hidden("message of an extension", "\n\n".join(_texts(message.get("content"))))
    else:
        count_unknown(session.report, "role", role)
        rows.add_hidden("unknown role", "\n\n".join(_texts(message.get("content"))))


def _add_user(session: _Session, node: _Node, rows: Rows, message: Record) -> None:
    texts, files = _content(session, message.get("content"))
    own: list[str] = []
    injected: list[tuple[str, str]] = []
    instant: datetime | None = None
    local: str | None = None
    for text in texts:
        found = split_user_text(text)
        injected += found.injected
        files += found.files
        instant, local = instant or found.instant, local or found.local
        if found.own.strip():
            own.append(found.own)
    if rows.when is None:
        rows.when = instant
    text = "\n\n".join(own)
    sender = message.get("provenance")
    origin = name_of(sender.get("kind")) if isinstance(sender, dict) else None
    if origin is not None and origin not in ("external_user", "user"):
        rows.add_hidden("from a program" if origin != "inter_session" else "from another session", text)
    elif text or files:
        node.turn, node.program = "prompt", program_prompt(text)
        row = rows.add(role="user", kind="text" if text else kind_of_files(files), text=text, attachment=files)
        row.local_time = None if row.created_at else local
    elif not injected:
        session.report.skip("message without content", _text(rows.uuid)[:60], expected=True)
    for reason, inner in injected:
        rows.add_hidden(reason, inner)


def _add_answer(session: _Session, node: _Node, rows: Rows, message: Record) -> None:
    model = name_of(message.get("model"))
    model = None if model in _PROGRAM_MODELS else model
    session.model = model or session.model
    texts: list[str] = []
    files: list[Attachment] = []
    said: Message | None = None
    for block in blocks_of(message.get("content")):
        kind = block.get("type")
        text = clean_answer(words_of(block.get("text"), session.report)) if kind == "text" else ""
        if text.strip() or kind == "image":
            texts += [text] if text.strip() else []
            files += [_file(block)] if kind == "image" else []
            said = said or rows.add(role="assistant", model=model)
        elif kind == "thinking" and (thought := text_of(block.get("thinking"))).strip():
            rows.add(role="thinking", kind="thinking", text=thought, model=model)
        elif kind == "toolCall":
            name, call = name_of(block.get("name")), block.get("id")
            if name and isinstance(call, str):
                session.tools[call] = name
            arguments = arguments_text(block.get("arguments"))
            rows.add(role="tool", kind="tool_call", text=arguments, tool_name=name, model=model)
        elif kind not in ("text", "thinking"):
            count_unknown(session.report, "content type", kind)
    if said is not None:
        said.text, said.attachment = "\n\n".join(texts), files
        said.kind = "text" if texts else kind_of_files(files)
        said.hidden_reason = "silent reply" if is_silent(said.text) else None
    if rows.rows:
        node.turn = "answer"
        _set_usage(said or rows.rows[0], message.get("usage"))
    rows.add_hidden("error of the program", text_of(message.get("errorMessage")))


def _set_usage(row: Message, usage: object) -> None:
    """Tokens and US dollars of one answer, on one of its rows; a cost of 0 is one that nobody knows."""
    if not isinstance(usage, dict):
        return
    read, cached, written = (count_of(usage.get(key)) for key in ("input", "cacheRead", "cacheWrite"))
    out = count_of(usage.get("output"))
    if read or cached or written or out:
        row.tokens_in, row.tokens_out, row.tokens_cached = read + cached + written, out, cached
    cost = usage.get("cost")
    total = cost.get("total") if isinstance(cost, dict) else None
    if isinstance(total, int | float) and not isinstance(total, bool) and 0 < total < 1e6:
        row.cost = float(total)


# --- content ----------------------------------------------------------------------------------------------------------


def _content(session: _Session, content: object) -> tuple[list[str], list[Attachment]]:
    texts: list[str] = []
    files: list[Attachment] = []
    for block in blocks_of(content):
        kind = block.get("type")
        if kind == "image":
            files.append(_file(block))
        elif isinstance(block.get("text"), str):
            texts.append(text_of(block["text"]))
        else:
            count_unknown(session.report, "content type", kind)
    return [text for text in texts if text.strip()], files


def _texts(content: object) -> list[str]:
    return [text for block in blocks_of(content) if (text := text_of(block.get("text"))).strip()]


def _file(block: Record) -> Attachment:
    """An image without its data: `{data, mimeType}`, or a `source` as in the model's API."""
    source = block.get("source")
    holder: Record = source if isinstance(source, dict) else block
    media = holder.get("mimeType") or holder.get("media_type")
    return inline_file(media or "image", holder.get("data"), block.get("fileName") or block.get("name"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


# --- the conversation -------------------------------------------------------------------------------------------------


def _conversation(session: _Session, member: Member) -> Conversation:
    header = session.header or {}
    origin = _own_origin(session)
    messages = _rows(session)
    stem = _STEM.sub("", PurePosixPath(member.path).name)
    own_id = name_of(header.get("id"))
    conversation = Conversation(
        provider=PROVIDER,
        conversation_id=own_id or stem or derive_conversation_id(PROVIDER, stem, messages),
        messages=messages,
        title=session.title,
        created_at=parse_instant(header.get("timestamp")),
        local_created=parse_naive(header.get("timestamp")),
        origin=origin,
        model=session.model,
        project=name_of(header.get("cwd")),
    )
    parent = header.get("parentSession")
    if isinstance(parent, str) and (named := list(_UUID.finditer(parent))) and named[-1][0] != own_id:
        conversation.forked_from = named[-1][0]
    if own_id:
        _ask_index(conversation, member)
    return conversation


def _own_origin(session: _Session) -> Origin:
    """A session in which only the program prompts is its own; in others its prompts are kept out of sight."""
    prompts = [node for node in session.nodes if node.turn == "prompt"]
    kinds: Counter[Origin] = Counter(ORIGINS[node.program] for node in prompts if node.program in ORIGINS)
    if kinds and all(node.program for node in prompts):
        return kinds.most_common(1)[0][0]
    for node in prompts:
        if node.program:
            node.turn = ""
            for row in node.rows:
                if row.role == "user":
                    row.role, row.kind, row.hidden_reason = "system", "system", node.program
    return "person"


def _rows(session: _Session) -> list[Message]:
    """All rows in the order of the file, with ids, parents, and what was rewound set aside."""
    nodes = session.nodes
    ups = _ups(session)
    left = left_behind([node.turn for node in nodes], list(range(len(nodes))), ups)
    messages = [row for node in nodes for row in node.rows]
    derive_ids(messages)
    last: list[Message | None] = []
    for node, up, gone in zip(nodes, ups, left, strict=True):
        before = last[up] if up >= 0 else None
        for row in node.rows:
            row.branch_active = not gone
            row.parent_id = before.message_id if before is not None else None
            before = row
        last.append(before)
    return messages


def _ups(session: _Session) -> list[int]:
    """The parent of each entry as an index smaller than its own, -1 at the start.

    A parent that was never written, comes later, or is not named (some writers append without it) is bridged by the
    order of the file; so is `null`, except where a person went back to the very first question and asked another.
    """
    nodes = session.nodes
    found = [index if (index := session.index.get(n.parent or "", at)) < at else -1 for at, n in enumerate(nodes)]
    chained = any(node.turn == "prompt" and up >= 0 for node, up in zip(nodes, found, strict=True))
    for at, node in enumerate(nodes):
        if found[at] < 0 and not (chained and node.starts and node.turn == "prompt"):
            found[at] = at - 1
    return found


def _ask_index(conversation: Conversation, member: Member) -> None:
    """What `sessions.json` beside the logs says: whose session it is (in its key), its label, who started it."""
    wanted = conversation.conversation_id.encode("utf-8", "replace")
    if wanted not in side_file(member, "sessions.json"):
        return
    index = side_json(member, "sessions.json")
    if not isinstance(index, dict):
        return
    for key, entry in index.items():
        if not isinstance(entry, dict) or entry.get("sessionId") != conversation.conversation_id:
            continue
        conversation.title = conversation.title or name_of(entry.get("label"))
        for kind, origin in ORIGINS.items():
            if kind in str(key).split(":"):
                conversation.origin = origin
        starter = index.get(entry.get("spawnedBy")) if isinstance(entry.get("spawnedBy"), str) else None
        if isinstance(starter, dict):
            conversation.parent_conversation_id = name_of(starter.get("sessionId"))
        return
