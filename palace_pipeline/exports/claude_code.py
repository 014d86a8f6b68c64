"""Claude Code session logs: `~/.claude/projects/<folder>/<session>.jsonl` and `<session>/subagents/agent-<id>.jsonl`.

Also the web sessions of claude.ai/code (one JSON object with `loglines`) and hand-made lines that hold nothing but
`type` and `message`. A session is one conversation, and so is each sub-agent with a file of its
own. Sub-agents inside a session's file (before 2026) become rows of role tool in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import PurePosixPath
from typing import Literal

from palace_pipeline.exports.agent_log import Record, count_unknown, records
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.claude_code_thread import Thread, rows_of
from palace_pipeline.exports.ids import derive_conversation_id
from palace_pipeline.exports.json_values import name_of
from palace_pipeline.exports.text import parse_json
from palace_pipeline.model import Conversation

PROVIDER = "claude-code"

_TURNS = ("user", "assistant", "human")
_LINKS = frozenset({"system", "attachment", "progress"})
"""Records without words that stand in the chain of parents."""
_BOOKKEEPING = frozenset(
    """
    summary custom-title ai-title agent-name agent-color agent-setting permission-mode mode last-prompt pr-link tag
    file-history-snapshot queue-operation turn_end atis-latch attribution-snapshot content-replacement worktree-state
    speculation-accept marble-origami-commit marble-origami-snapshot hook_event started result
    """.split()  # noqa: SIM905
)
_LEADING_KINDS = frozenset(
    """
    queue-operation last-prompt ai-title custom-title agent-name mode permission-mode progress system attachment
    """.split()  # noqa: SIM905
)
"""Records that may stand before the first turn; most real files begin with some."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_AGENT_FILE = re.compile(r"agent-(.+)")
_ENDINGS = re.compile(r"(?:\.jsonl|\.ndjson|\.json|\.zst|\.gz)+$", re.IGNORECASE)
_SPREAD_OVER_LINES = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{[ \t\r]*\n")
_MAX_WEB_BYTES = 512 * 1024 * 1024


@dataclass(slots=True)
class _Session:
    """What is known of a file while its records come in."""

    tools: dict[str, str] = field(default_factory=dict[str, str])
    places: Iterator[int] = field(default_factory=count)
    threads: dict[str, Thread] = field(default_factory=dict[str, Thread])
    sides: dict[str, str] = field(default_factory=dict[str, str])
    """uuid of a record of an inline sub-agent -> uuid of that sub-agent's first record."""
    agent_file: str | None = None
    session_id: str | None = None
    foreign_id: str | None = None
    forked_from: str | None = None
    project: str | None = None
    titles: dict[str, str] = field(default_factory=dict[str, str])
    summaries: list[tuple[object, str]] = field(default_factory=list[tuple[object, str]])


class ClaudeCodeReader:
    """Reader of Claude Code logs; see the module."""

    format = "claude-code-jsonl"
    provider = PROVIDER
    recipe = 2
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/kenn-io/agentsview and logs of versions 1.0 to 2.1",
        "high",
        name="Claude Code log",
        where="`~/.claude/projects/<folder>/<session>.jsonl`",
        since="2025",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """Lines of Claude Code, or an object with `loglines`."""
        if head.shape == "object":
            return "loglines" in head.keys
        return head.shape == "jsonl" and any(isinstance(item, dict) and _is_ours(item) for item in head.items)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The session and its inline sub-agents, or the one sub-agent of a file of its own."""
        stem = _ENDINGS.sub("", PurePosixPath(member.path).name)
        session = _Session()
        if "subagents" in PurePosixPath(member.path).parts and (match := _AGENT_FILE.fullmatch(stem)):
            session.agent_file = match[1]
        web = _spread_session(member)
        lines = records(member, report, _is_whole) if web is None else iter([(1, web)])
        empty = True
        for number, record in lines:
            empty = False
            if isinstance(record.get("loglines"), list):
                _take_web(session, record, stem, report)
            else:
                _take(session, record, f"line {number}", stem, report)
            del record
        own_id = stem if _UUID.fullmatch(stem) else session.session_id
        found = list(_conversations(session, own_id, stem, member, report))
        if not found and not empty:
            report.skip("session without messages", expected=True, unit="conversation")
        yield from found


READER = ClaudeCodeReader()


def _is_ours(item: Record) -> bool:
    kind = item.get("type")
    if "loglines" in item:
        return True
    if kind in _TURNS and "parentUuid" in item:
        return True
    if kind in _TURNS and isinstance(message := item.get("message"), dict):
        return "content" in message
    if kind == "summary":
        return "leafUuid" in item
    if kind == "file-history-snapshot":
        return "snapshot" in item
    return isinstance(kind, str) and kind in _LEADING_KINDS and isinstance(item.get("sessionId"), str)


def _is_whole(record: Record) -> bool:
    return isinstance(record.get("type"), str) and isinstance(record.get("sessionId"), str)


def _spread_session(member: Member) -> Record | None:
    """The object of a web session that is spread over lines, or None if there is one object a line."""
    with member.open() as stream:
        start = stream.read(64)
        if not _SPREAD_OVER_LINES.match(start):
            return None
        data = start + stream.read(_MAX_WEB_BYTES)
    try:
        value = parse_json(data.removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r\n"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _take_web(session: _Session, web: Record, stem: str, report: Report) -> None:
    """A session of claude.ai/code as its web API gives it."""
    session.session_id = session.session_id or name_of(web.get("session_id")) or name_of(web.get("id"))
    if title := name_of(web.get("title")):
        session.titles.setdefault("ai-title", title)
    for index, record in enumerate(web["loglines"]):
        if isinstance(record, dict):
            _take(session, record, f"loglines[{index}]", stem, report)
        else:
            report.skip("line is no record", f"loglines[{index}]", expected=False)


def _take(session: _Session, record: Record, place: str, stem: str, report: Report) -> None:
    """Sort one record into its thread, or note what it says about the session."""
    kind = record.get("type")
    if not isinstance(kind, str):
        count_unknown(report, "record type", kind)
    elif kind in _TURNS:
        message = record.get("message")
        if not isinstance(message, dict):
            report.skip("record without a message", place, expected=False)
            return
        if message.get("content") is None:
            report.skip("message without content", place, expected=True)
        thread = _thread_of(session, record, stem, report)
        if kind == "assistant":
            thread.add_assistant(record, message)
        else:
            thread.add_user(record, message)
    elif kind in _LINKS:
        thread = _thread_of(session, record, stem, report)
        attachment = record.get("attachment")
        if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
            thread.add_queued(record, attachment)
        elif isinstance(record.get("uuid"), str):
            thread.add_link(record)
    elif kind == "queue-operation":
        _thread_of(session, record, stem, report).add_queue_operation(record)
    elif kind == "summary":
        if title := name_of(record.get("summary")):
            session.summaries.append((record.get("leafUuid"), title))
    elif kind == "custom-title" or kind == "ai-title":
        title = name_of(record.get("customTitle" if kind == "custom-title" else "aiTitle"))
        session.titles[kind] = title or ""
    elif kind not in _BOOKKEEPING:
        count_unknown(report, "record type", kind)


def _thread_of(session: _Session, record: Record, stem: str, report: Report) -> Thread:
    """The thread a record belongs to: "" is the conversation itself, others are named by their sub-agent."""
    side = record.get("isSidechain") is True
    if side and not session.threads and (match := _AGENT_FILE.fullmatch(stem)):
        session.agent_file = match[1]
    session_id = record.get("sessionId", record.get("session_id"))
    if isinstance(session_id, str) and session_id:
        session.session_id = session.session_id or session_id
        if session_id != stem and not side:
            session.foreign_id = session_id
    if session.project is None:
        session.project = name_of(record.get("cwd"))
    forked = record.get("forkedFrom")
    if isinstance(forked, dict):
        session.forked_from = name_of(forked.get("sessionId")) or session.forked_from
    name = session.agent_file or ""
    if side and not name:
        agent, uuid, parent = record.get("agentId"), record.get("uuid"), record.get("parentUuid")
        if isinstance(agent, str) and agent:
            name = agent
        else:
            name = session.sides.get(parent, "") if isinstance(parent, str) else ""
            name = name or f"inline-{uuid}"
            if isinstance(uuid, str):
                session.sides[uuid] = name
    thread = session.threads.get(name)
    if thread is None:
        thread = session.threads[name] = Thread(session.tools, session.places, report)
    return thread


def _conversations(
    session: _Session, own_id: str | None, stem: str, member: Member, report: Report
) -> Iterator[Conversation]:
    if repeated := sum(thread.repeated for thread in session.threads.values()):
        report.skip("record written twice", expected=True, count=repeated)
    main = session.threads.get("")
    inside = [thread for name, thread in session.threads.items() if name] if main is not None else []
    for name, thread in session.threads.items():
        if name and main is not None:
            continue
        messages = rows_of(thread, inside)
        if not any(m.hidden_reason is None for m in messages):
            continue
        conversation = Conversation(
            provider=PROVIDER,
            conversation_id=own_id or derive_conversation_id(PROVIDER, stem, messages),
            messages=messages,
            model=thread.model,
            project=session.project,
        )
        if name:
            parent = _parent_of(session, own_id, member)
            conversation.conversation_id = f"{parent}/agent-{name}" if parent else f"agent-{name}"
            conversation.origin = "subagent"
            conversation.parent_conversation_id = parent
        else:
            conversation.title = _title(session, thread)
            origin = session.forked_from or (session.foreign_id if own_id == stem else None)
            conversation.forked_from = origin if origin != own_id else None
        yield conversation


def _parent_of(session: _Session, own_id: str | None, member: Member) -> str | None:
    """The session that started a sub-agent: records carry its id, folders are named by it."""
    if session.agent_file is None:
        return own_id
    parts = PurePosixPath(member.path).parts
    above = parts[parts.index("subagents") - 1] if "subagents" in parts[1:] else ""
    return above if _UUID.fullmatch(above) else session.session_id or above or None


def _title(session: _Session, thread: Thread) -> str | None:
    """The person's title, else the program's, else the last summary of this file's own records."""
    named = session.titles.get("custom-title") or session.titles.get("ai-title")
    own = [title for leaf, title in session.summaries if leaf is None or thread.knows(leaf)]
    return named or (own[-1] if own else None)
