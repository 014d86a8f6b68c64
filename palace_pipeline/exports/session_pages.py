"""Sessions of a palace workspace: the Markdown pages that agents and people write in `sessions/` of a palace home.

The shape is this project's own (docs/workspace.md), looked at on 2026-11-30. A page is read in any state in which its
front matter or its file name says which session it is. What a page says now is what the session says: it has no history
here. One row hidden from people carries the front matter (status, tags, to-dos, tokens), so that it can be counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

import orjson

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.plaintext import is_text_file, read_text
from palace_pipeline.model import Conversation, Kind, Message, Role
from palace_pipeline.workspace import names
from palace_pipeline.workspace.reading import SessionError, parse
from palace_pipeline.workspace.sections import EXACT, Section
from palace_pipeline.workspace.session import FRONT, PART, Entry, Session, in_time, summary_of, todos

_OWN_ID = re.compile(r"^id\s*[:：]\s*[\"']?\d{8}-\d{4}-[0-9a-f]{7}[\"']?\s*$", re.MULTILINE)
_ROLES: dict[Section, tuple[Role, Kind]] = {
    "input": ("user", "text"),
    "judgement": ("assistant", "text"),
    "tools": ("tool", "tool_call"),
    "conclusion": ("assistant", "text"),
    "todo": ("assistant", "text"),
}
_PART_LINK = re.compile(r"^> \[[^\n]*\]\(\.\./\d{4}-\d\d-\d\d/[^\n()]+\.md\)$", re.MULTILINE)
"""Links to the pages of earlier parts, which are conversations of their own."""


class SessionReader:
    """Reads one session page."""

    format = "palace-session"
    provider = "session"
    recipe = 2
    spec = SpecTarget(
        "2026-11-30",
        "this project's own pages",
        "high",
        name="Palace session",
        where="`sessions/` of the palace home, written by `palace session`, agents and people",
        since="2026-11",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        if head.shape != "text" or not is_text_file(head.path):
            return False
        if names.id_of(names.page_of_copy(head.path)) is not None:
            return True
        return _OWN_ID.search(head.text) is not None and sum(f"## {name}\n" in head.text for name in EXACT) > 1

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        if names.is_copy(member.path):
            report.skip("one side of a conflict", expected=True, unit="conversation")
            return
        text = read_text(member, report)
        if text is None:
            return
        try:
            session = parse(text, member.path)
        except SessionError:
            report.skip("neither file name nor front matter says which session it is", expected=False, unit="file")
            return
        rows = messages_of(session)
        if not session.damaged and not any(row.visible or row.role == "tool" for row in rows):
            report.skip("a session without entries", expected=True, unit="conversation")
            return
        yield Conversation(
            "session",
            session.id,
            rows,
            title=session.title or names.title_in(member.path) or None,
            created_at=_instant(session.ts),
            local_created=_local(session.ts),
            origin="subagent" if session.parent and session.role != PART else "person",
            model=session.model,
            parent_conversation_id=session.parent,
            source_file=member.path,
            damaged=session.damaged,
        )


def messages_of(session: Session) -> list[Message]:
    """The rows of a session in the order of time; what has none stands behind what stands before it on the page."""
    rows = [_front(session)]
    if intro := _PART_LINK.sub("", session.intro).strip():
        rows.append(Message("intro", "assistant", intro))
    seen: Counter[str] = Counter()
    for section, entry in in_time(session):
        identity = f"{section}:{entry.at.isoformat() if entry.at else 'by hand'}"
        seen[identity] += 1
        if seen[identity] > 1:
            identity += f"#{seen[identity]}"
        rows.append(_row(identity, section, entry, session))
    return rows


def _row(identity: str, section: Section, entry: Entry, session: Session) -> Message:
    role, kind = _ROLES[section]
    return Message(
        identity,
        role,
        entry.text,
        kind,
        created_at=_instant(entry.at),
        local_time=_local(entry.at),
        speaker=entry.who if role != "tool" else None,
        tool_name=entry.who if role == "tool" else None,
        model=session.model if role == "assistant" else None,
    )


def _front(session: Session) -> Message:
    waiting, done = todos(session)
    said = {
        "role": session.role,
        "parent": session.parent,
        "tags": list(session.tags),
        "status": session.status,
        "summary": summary_of(session),
        "turns": session.turns,
        "todos_open": waiting,
        "todos_done": done,
    }
    return Message(
        FRONT,
        "system",
        orjson.dumps(said).decode(),
        "system",
        created_at=_instant(session.ts),
        local_time=_local(session.ts),
        tokens_in=session.tokens_in,
        tokens_out=session.tokens_out,
        hidden_reason="front matter of a session",
    )


def _instant(time: datetime | None) -> datetime | None:
    try:
        return time.astimezone(UTC) if time is not None and time.tzinfo is not None else None
    except OverflowError:
        return None  # an hour from the end of the calendar


def _local(time: datetime | None) -> str | None:
    return time.isoformat(timespec="seconds") if time is not None and time.tzinfo is None else None


READER = SessionReader()
