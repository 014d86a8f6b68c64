"""OpenAI Codex rollouts: `~/.codex/sessions/YYYY/MM/DD/rollout-<local time>-<id>.jsonl`, also `.jsonl.zst`.

Every line is `{timestamp, type, payload}`; before September 2025 lines were bare response items below a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Literal

from palace_pipeline.exports.agent_log import Record, count_unknown, records, side_file
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.codex_rows import Transcript, path_file
from palace_pipeline.exports.ids import derive_conversation_id
from palace_pipeline.exports.json_values import list_of, name_of, text_of
from palace_pipeline.exports.text import parse_json
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.model import Attachment, Conversation

PROVIDER = "codex"

_LINE_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_QUIET_LINES = frozenset(
    """
    world_state token_usage_record inter_agent_communication_metadata security_risk_score retained_context
    realtime_item
    """.split()  # noqa: SIM905
)
_LEGACY_ITEMS = ("message", "reasoning", "function_call", "function_call_output", "local_shell_call")
_QUIET_EVENTS = frozenset(
    """
    task_started turn_started task_complete turn_complete turn_aborted context_compacted patch_apply_begin
    patch_apply_end patch_apply_updated exec_command_begin exec_command_end exec_command_output_delta
    terminal_interaction mcp_tool_call_begin mcp_tool_call_end web_search_begin web_search_end image_generation_begin
    image_generation_end view_image_tool_call entered_review_mode exited_review_mode thread_goal_updated
    thread_settings_applied sub_agent_activity plan_update turn_diff background_event error warning stream_error
    guardian_warning guardian_assessment deprecation_notice item_started hook_started hook_completed
    exec_approval_request apply_patch_approval_request request_user_input elicitation_request request_permissions
    dynamic_tool_call_request dynamic_tool_call_response session_configured shutdown_complete model_reroute
    model_verification turn_moderation_metadata agent_reasoning_section_break mcp_startup_update mcp_startup_complete
    undo_started undo_completed collab_agent_spawn_begin collab_agent_spawn_end collab_agent_interaction_begin
    collab_agent_interaction_end collab_waiting_begin collab_waiting_end collab_close_begin collab_close_end
    collab_resume_begin collab_resume_end raw_response_item user_shell_command
    """.split()  # noqa: SIM905
)
_QUIET_TURN_ITEMS = frozenset(
    """
    HookPrompt CommandExecution DynamicToolCall CollabAgentToolCall SubAgentActivity WebSearch ImageView Sleep
    ImageGeneration FileChange McpToolCall ContextCompaction FunctionCallOutput
    """.split()  # noqa: SIM905
)
"""Completed items that response items show as well (as calls and their outputs)."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_ENDINGS = re.compile(r"(?:\.jsonl|\.zst|\.gz)+$", re.IGNORECASE)
_INDEX_PLACES = [f"{'../' * up}session_index.jsonl" for up in (4, 3, 2, 1, 0)]
_INDEX_LINE = 64 * 1024
_OWN_TURN_AFTER, _NO_COPY_AFTER = timedelta(milliseconds=250), timedelta(seconds=60)


@dataclass(slots=True)
class _Session:
    """What is known of a rollout while its lines come in."""

    transcript: Transcript
    id: str | None = None
    created_at: datetime | None = None
    project: str | None = None
    title: str | None = None
    model: str | None = None
    forked_from: str | None = None
    parent: str | None = None
    is_subagent: bool = False
    header_line: int | None = None
    stamp: object = None
    when: datetime | None = None
    """The time of the line, parsed from `stamp`."""
    copied_at: datetime | None = None
    """When the lines of the parent were copied, as far as headers tell."""
    copy_has_turn_times: bool = False


class CodexReader:
    """Reader of Codex rollouts; see the module."""

    format = "codex-rollout"
    provider = PROVIDER
    recipe = 2
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/openai/codex codex-rs/history, protocol, rollout",
        "high",
        name="Codex rollout",
        where="`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl[.zst]`, `archived_sessions/`",
        since="2025-05",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """Lines in envelopes, or the older bare ones."""
        if head.shape != "jsonl":
            return False
        lines = [item for item in head.items if isinstance(item, dict)]
        if any(_is_whole(line) and line["type"] in _LINE_TYPES for line in lines):
            return True
        return any(_is_legacy(line) for line in lines)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The one conversation of a rollout."""
        session = _Session(Transcript(report))
        empty = True
        for number, record in records(member, report, _is_whole):
            empty = False
            _take(session, record, number, report)
            del record
        messages = session.transcript.finish()
        if not session.transcript.own_rows:
            if not empty:
                report.skip("session without messages", expected=True, unit="conversation")
            return
        stem = _ENDINGS.sub("", PurePosixPath(member.path).name)
        conversation_id = _id(session, stem) or derive_conversation_id(PROVIDER, stem, messages)
        yield Conversation(
            provider=PROVIDER,
            conversation_id=conversation_id,
            messages=messages,
            title=session.title or _indexed_title(member, conversation_id),
            created_at=session.created_at,
            origin="subagent" if session.is_subagent else "person",
            model=session.model,
            project=session.project,
            forked_from=session.forked_from if session.forked_from != conversation_id else None,
            parent_conversation_id=session.parent,
        )


READER = CodexReader()


def _is_whole(record: Record) -> bool:
    return isinstance(record.get("type"), str) and isinstance(record.get("payload"), dict) and "timestamp" in record


def _is_legacy(record: Record) -> bool:
    if "type" not in record:
        return record.get("record_type") == "state" or ("instructions" in record and "timestamp" in record)
    if record["type"] == "message":
        content = record.get("content")
        blocks = content if isinstance(content, list) else []
        return any(isinstance(b, dict) and b.get("type") in ("input_text", "output_text") for b in blocks)
    return record["type"] == "function_call" and "arguments" in record and "call_id" in record


def _take(session: _Session, record: Record, number: int, report: Report) -> None:
    payload, kind = record.get("payload"), _name(record.get("type"))
    stamp = record.get("timestamp")
    if stamp != session.stamp:  # what is told twice has one time
        session.stamp, session.when = stamp, parse_instant(stamp)
    when = session.when
    if not isinstance(payload, dict):
        _take_legacy(session, record, number, when, report)
        return
    if kind == "session_meta":
        _take_header(session, payload, number, when)
        return
    if session.transcript.replaying and _starts_own_turn(session, kind, payload, when):
        session.transcript.replaying = False
    if kind == "response_item":
        session.transcript.add_item(payload, when)
    elif kind == "event_msg":
        _take_event(session, payload, when, report)
    elif kind == "turn_context":
        _take_turn_context(session, payload)
    elif kind == "compacted":
        session.transcript.add_note("compaction summary", text_of(payload.get("message")), when)
    elif kind == "inter_agent_communication":
        text = text_of(payload.get("content"))
        if session.is_subagent and text.strip():
            session.transcript.add_user("event", [text], [], when)
        else:
            session.transcript.add_note("message between agents", text, when)
    elif kind not in _QUIET_LINES:
        count_unknown(report, "record type", kind)


def _take_legacy(session: _Session, record: Record, number: int, when: datetime | None, report: Report) -> None:
    kind = _name(record.get("type"))
    if kind is None and "record_type" in record:
        return
    if kind is None and isinstance(record.get("id"), str):
        _take_header(session, record, number, when)
    elif kind is not None and (kind in _LEGACY_ITEMS or kind.endswith(("_call", "_output"))):
        session.transcript.add_item(record, when)
    else:
        count_unknown(report, "record type", kind)


def _take_header(session: _Session, payload: Record, number: int, when: datetime | None) -> None:
    """The first header is the session's own; a further one of another session begins a copy of that one's lines."""
    header_id = name_of(payload.get("id")) or name_of(payload.get("session_id"))
    if session.header_line is not None:
        if header_id and header_id != session.id and not session.transcript.own_rows:
            session.forked_from = session.forked_from or header_id
            session.transcript.replaying = session.created_at is not None
            session.copied_at = max(filter(None, (session.copied_at, when)), default=None)
        return
    session.header_line = number
    session.id = header_id
    session.created_at = parse_instant(payload.get("timestamp")) or when
    session.project = name_of(payload.get("cwd"))
    source = payload.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    session.forked_from = name_of(payload.get("forked_from_id"))
    session.parent = name_of(payload.get("parent_thread_id")) or _spawner(spawned)
    session.is_subagent = spawned is not None or payload.get("thread_source") == "subagent"
    if session.is_subagent:
        session.parent = session.parent or session.forked_from
    session.copied_at = session.created_at
    session.transcript.replaying = session.forked_from is not None and session.created_at is not None


def _spawner(spawned: object) -> str | None:
    spawn = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
    return name_of(spawn.get("parent_thread_id")) if isinstance(spawn, dict) else None


def _starts_own_turn(session: _Session, kind: str | None, payload: Record, when: datetime | None) -> bool:
    """Does the copy of the parent's lines end here?

    Copied lines carry new times, so their turn ids tell: those are UUIDs of version 7 with the time when the turn
    really began. Without such ids a later time than that of the fork is all there is to go by. A line that is much
    later than the fork was not copied, whatever its turn id says.
    """
    turn_id = payload.get("turn_id")
    starts = kind == "turn_context" or payload.get("type") in ("task_started", "turn_started")
    asks = payload.get("type") == "user_message" or (payload.get("type") == "message" and payload.get("role") == "user")
    if session.created_at is None or session.copied_at is None or not (starts or asks):
        return False
    began = _uuid_time(turn_id)
    if began is not None:
        session.copy_has_turn_times = True
        if began >= session.created_at.replace(microsecond=0):
            return True
    margin = _NO_COPY_AFTER if session.copy_has_turn_times else _OWN_TURN_AFTER
    return when is not None and when > session.copied_at + margin


def _uuid_time(value: object) -> datetime | None:
    if not isinstance(value, str) or not _UUID.fullmatch(value) or value[14] != "7":
        return None
    return parse_instant(int(value[:8] + value[9:13], 16))


def _take_turn_context(session: _Session, payload: Record) -> None:
    model = name_of(payload.get("model"))
    session.transcript.model = model or session.transcript.model
    if not session.transcript.replaying:
        session.model = model or session.model
        session.project = session.project or name_of(payload.get("cwd"))


def _take_event(session: _Session, payload: Record, when: datetime | None, report: Report) -> None:
    kind = _name(payload.get("type"))
    transcript = session.transcript
    if kind == "user_message":
        images = [Attachment(type="image") for _ in list_of(payload.get("images"))]
        images += [path_file(path) for path in list_of(payload.get("local_images"))]
        transcript.add_user("event", [text_of(payload.get("message"))], images, when)
    elif kind == "agent_message":
        transcript.add_answer("event", text_of(payload.get("message")), when)
    elif kind == "agent_reasoning" or kind == "agent_reasoning_raw_content":
        transcript.add_thinking("event", [text_of(payload.get("text"))], when)
    elif kind == "item_completed":
        _take_turn_item(session, payload.get("item"), when, report)
    elif kind == "token_count":
        transcript.count_tokens(payload.get("info"))
    elif kind == "thread_name_updated":
        if not transcript.replaying:
            session.title = name_of(payload.get("thread_name"))
    elif kind == "thread_rolled_back":
        transcript.roll_back(payload.get("num_turns"))
    elif kind not in _QUIET_EVENTS:
        count_unknown(report, "event type", kind)


def _take_turn_item(session: _Session, item: object, when: datetime | None, report: Report) -> None:
    """Items of `item_completed`, which replaces the older events since version 0.147."""
    if not isinstance(item, dict):
        count_unknown(report, "turn item", None)
        return
    kind = _name(item.get("type"))
    transcript = session.transcript
    if kind == "UserMessage":
        transcript.add_message("event", "user", item.get("content"), when)
    elif kind == "AgentMessage":
        transcript.add_message("event", "assistant", item.get("content"), when)
    elif kind == "Plan":
        transcript.add_answer("event", text_of(item.get("text")), when)
    elif kind == "Reasoning":
        parts = [*list_of(item.get("summary_text")), *list_of(item.get("raw_content"))]
        transcript.add_thinking("event", [text_of(part) for part in parts], when)
    elif kind not in _QUIET_TURN_ITEMS:
        count_unknown(report, "turn item", kind)


def _name(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _id(session: _Session, stem: str) -> str | None:
    """The header's id. If the header is damaged the file name has it (a later header is that of a fork's parent)."""
    named = list(_UUID.finditer(stem))
    if named and session.header_line != 1:
        return named[-1][0]
    return session.id or (named[-1][0] if named else None)


def _indexed_title(member: Member, conversation_id: str) -> str | None:
    """The session's last name in `session_index.jsonl`, which lies beside the `sessions` folder."""
    wanted = conversation_id.encode("utf-8", "replace")
    place = next((place for place in _INDEX_PLACES if member.near(place) is not None), None)
    index = side_file(member, place) if place is not None and wanted else b""
    # It has a line for every session and is asked by every session: only the lines that name this one are looked at.
    end = len(index)
    while (at := index.rfind(wanted, 0, end)) >= 0:
        end = index.rfind(b"\n", 0, at) + 1
        line, _, _ = index[end : at + _INDEX_LINE].partition(b"\n")
        if title := _title_in(line.removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r"), conversation_id):
            return title
    return None


def _title_in(line: bytes, conversation_id: str) -> str | None:
    try:
        entry = parse_json(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or entry.get("id") != conversation_id:
        return None
    return name_of(entry.get("thread_name"))
