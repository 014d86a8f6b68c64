"""Hermes Agent's database: `~/.hermes/state.db` and `~/.hermes/profiles/<name>/state.db` (SQLite, mostly with a WAL).

Tables `sessions` and `messages`; their columns come and go, so only those that exist are read. The rows of a message
are made by `hermes_rows`, as for the session files of the same product. Compressed rows were really said; those that
are neither active nor compacted were rewound. Shape: `hermes_state_common.py` (schema 30) of
https://github.com/NousResearch/hermes-agent, checked 2026-11-29.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.databases import Table, cell_json, grouped, holds_rows, kept_row, table_named
from palace_pipeline.exports.hermes import PROVIDER, hermes_origin
from palace_pipeline.exports.hermes_rows import hermes_messages
from palace_pipeline.exports.json_values import count_of, name_of
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.model import Conversation, Message, Origin

FORMAT = "hermes-db"

_SESSION = (
    *("id", "source", "display_name", "model", "parent_session_id", "started_at", "end_reason", "cwd", "title"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "estimated_cost_usd", "actual_cost_usd"),
)
_MESSAGE = (
    *("id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "model", "token_count"),
    *("reasoning", "reasoning_content", "reasoning_details", "active", "compacted", "_compressed_summary"),
    "display_kind",
)
_MARKERS = ("_branched_from", "_delegate_from", "_reset_from")
_COPY = ("role", "content", "timestamp", "tool_call_id", "tool_calls", "tool_name")
"""What is equal in a message and in the copy of it that a compression keeps."""
_RESETS = {"session_reset", "session_switch", "idle", "daily", "suspended", "resume_pending_expired", "new_session"}

Row = dict[str, Any]


class HermesDatabaseReader:
    """Reads a session as one conversation; see the module."""

    format = FORMAT
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/NousResearch/hermes-agent hermes_state_common.py",
        "high",
        "Hermes database",
        "`~/.hermes/state.db`, `~/.hermes/profiles/*/state.db`",
        "2026",
    )
    layout: Literal["rows"] = "rows"

    def detect(self, head: Head) -> bool:
        """Tables of sessions and messages with this product's columns, or what was kept of them."""
        if head.database is None:
            return holds_rows(head, FORMAT)
        tables = _tables(head.database.connection)
        return tables is not None and "started_at" in tables[0].columns and {"role", "content"} <= tables[1].columns

    def elements(self, connection: sqlite3.Connection, report: Report) -> Iterator[tuple[str, bytes]]:
        """Each session with its messages and what its parent says of it; of its settings only its lineage."""
        tables = _tables(connection)
        if tables is None:
            return
        sessions, messages = tables
        known = {key: numbers[-1] for key, numbers in grouped(sessions.keys("id", report), _key).items()}
        said = grouped(messages.keys("session_id", report), lambda key: _key(key) or "")
        if nobodys := said.pop("", None):
            report.skip("message without a session", "messages", expected=False, count=len(nobodys))
        for key in [*known, *(key for key in said if key not in known)]:
            rows = messages.rows(said.get(key, ()), _MESSAGE, report, key)
            if rows is None:
                continue
            session = _session(sessions, known.get(key), key, report)
            parent = session.get("parent_session_id")
            above = known.get(parent) if isinstance(parent, str) else None
            ended = sessions.rows([above], ("end_reason",), report, key) if above is not None else None
            try:
                line = kept_row(FORMAT, {"session": session, "parent": ended[0] if ended else None, "messages": rows})
            except ValueError as error:
                report.skip(str(error), key, expected=False, unit="conversation")
            else:
                yield key, line

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation."""
        session = value.get("session") if isinstance(value, dict) else None
        rows = value.get("messages") if isinstance(value, dict) else None
        if not isinstance(session, dict) or not isinstance(rows, list) or (key := name_of(session.get("id"))) is None:
            report.skip("session without messages", place, expected=False, unit="conversation")
            return
        turns = _once([row for row in rows if isinstance(row, dict)], report, key)
        model = name_of(session.get("model"))
        messages = hermes_messages(turns, report, model=model)
        if not any(message.visible for message in messages):
            report.skip("session without messages", key, expected=True, unit="conversation")
            return
        _note_use(session, messages)
        parent, above = name_of(session.get("parent_session_id")), value.get("parent")
        kind = _kind(session, above if isinstance(above, dict) else {})
        origin: Origin = hermes_origin(session.get("source"), key)
        if origin == "person":
            origin = "tool" if session.get("source") == "tool" else "subagent" if kind == "subagent" else "person"
        yield Conversation(
            provider=PROVIDER,
            conversation_id=key,
            messages=messages,
            title=name_of(session.get("title")) or name_of(session.get("display_name")),
            created_at=parse_instant(session.get("started_at")),
            origin=origin,
            model=model,
            project=name_of(session.get("cwd")),
            forked_from=parent if kind == "copy" else None,
            parent_conversation_id=parent if origin == "subagent" else None,
        )


READER = HermesDatabaseReader()


def _tables(connection: sqlite3.Connection) -> tuple[Table, Table] | None:
    sessions, messages = table_named(connection, "sessions"), table_named(connection, "messages")
    if sessions is None or messages is None or "id" not in sessions.columns or "session_id" not in messages.columns:
        return None
    return sessions, messages


def _key(value: object) -> str | None:
    """A session's id as text; NULL and others belong to no session."""
    if isinstance(value, int):
        return str(value)
    return value or None if isinstance(value, str) else None


def _session(sessions: Table, number: int | None, key: str, report: Report) -> Row:
    """A session's row; messages whose session is lost are still a conversation."""
    found = sessions.rows([number], (*_SESSION, "model_config"), report, key) if number is not None else None
    session: Row = dict(found[0]) if found else {}
    # The configuration of the model names servers and may hold keys: only where the session comes from is taken.
    config = cell_json(session.pop("model_config", None))
    if isinstance(config, dict):
        session |= {marker: config[marker] for marker in _MARKERS if isinstance(config.get(marker), str)}
    return {**session, "id": key}


def _kind(session: Mapping[str, Any], parent: Mapping[str, Any]) -> Literal["own", "copy", "subagent"]:
    """What a session with a parent is: a copy that goes on (a branch, a compression), a fresh start, or a sub-agent.

    As the product itself tells them apart; without its newer columns a child is nobody's sub-agent.
    """
    if session.get("_delegate_from"):
        return "subagent"
    ended = parent.get("end_reason")
    if session.get("_branched_from") or ended in ("branched", "compression"):
        return "copy"
    if session.get("_reset_from") or ended in _RESETS:
        return "own"
    return "subagent" if session.get("parent_session_id") and "end_reason" in parent else "own"


def _once(rows: list[Row], report: Report, key: str) -> list[Row]:
    """The rows in the order of their times (then of their numbers), without the copies that a compression leaves."""
    last = 0.0
    timed: list[tuple[float, int, Row]] = []
    for number, row in enumerate(rows):  # by their own numbers
        at = row.get("timestamp")
        last = float(at) if isinstance(at, int | float) and at == at else last
        timed.append((last, number, row))
    timed.sort(key=lambda entry: entry[:2])
    seen: set[tuple[str, ...]] = set()
    kept: list[Row] = []
    for _, _, row in timed:
        shown = row.get("active", 1) == 1 or row.get("compacted") == 1
        identity = tuple(repr(row.get(name)) for name in _COPY)
        if shown and identity in seen:
            continue
        if shown:
            seen.add(identity)
        kept.append(row)
    if copies := len(rows) - len(kept):
        report.skip("message copied by a compression", key, expected=True, count=copies)
    return kept


def _note_use(session: Mapping[str, Any], messages: list[Message]) -> None:
    """The session's own sums of tokens and cost stand at its last answer; no message has them for itself."""
    answers = [message for message in messages if message.role == "assistant" and message.visible]
    if not answers:
        return
    last = answers[-1]
    last.tokens_in = count_of(session.get("input_tokens")) or None
    last.tokens_cached = count_of(session.get("cache_read_tokens")) or None
    if not any(message.tokens_out for message in messages):
        last.tokens_out = count_of(session.get("output_tokens")) or None
    for name in ("actual_cost_usd", "estimated_cost_usd"):
        cost = session.get(name)
        if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 < cost < 1e6:
            last.cost = float(cost)
            break
