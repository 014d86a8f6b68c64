"""GitHub Copilot CLI: `~/.copilot/session-state/<id>/events.jsonl` (before 2026 `<id>.jsonl`), `workspace.yaml` beside.

Every line is an event `{type, data, id, timestamp, parentId}`. What a person typed is `content`; `transformedContent`
is the same with injected context and is not read. VS Code's chat writes transcripts in the same shape. Shape:
session-events.ts of https://github.com/github/copilot-sdk, internal/parser/copilot.go of
https://github.com/kenn-io/agentsview, checked 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Literal

from palace_pipeline.exports.agent_log import Record, count_unknown, records, side_file
from palace_pipeline.exports.attachments import base_name, inline_file
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.claude_code_blocks import Rows
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, dicts_of, name_of, text_of, unpacked, words_of
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Conversation, Message

PROVIDER = "copilot-cli"

_SIGNS = frozenset(
    """
    session.start session.resume session.shutdown session.model_change session.info user.message assistant.message
    assistant.turn_start assistant.turn_end tool.execution_start tool.execution_complete
    """.split()  # noqa: SIM905
)
_QUIET_GROUPS = ("hook.", "permission.", "elicitation.", "sampling.", "mcp.", "mcp_", "external_tool.", "command.")
_QUIET = frozenset(
    """
    session.idle session.info session.warning session.truncation session.usage_info session.usage_checkpoint
    session.context_changed session.mode_changed session.plan_changed session.todos_changed session.skills_loaded
    session.workspace_file_changed session.tools_updated session.background_tasks_changed session.compaction_start
    session.task_complete session.remote_steerable_changed session.permissions_changed session.extensions_loaded
    session.mcp_servers_loaded session.mcp_server_status_changed session.custom_agents_updated session.binary_asset
    session.auto_mode_resolved session.import_legacy session.context_cleared session.session_limits_changed
    session.mode_notice_delivered session.schedule_created session.schedule_cancelled session.schedule_rearmed
    session.autopilot_objective_changed session.custom_notification session.canvas_opened session.canvas_closed
    assistant.turn_start assistant.turn_end assistant.intent assistant.streaming_delta assistant.message_delta
    assistant.message_start assistant.reasoning_delta assistant.tool_call_delta assistant.idle
    assistant.server_tool_progress tool.execution_progress tool.execution_partial_result tool.search_activated
    subagent.started subagent.configured subagent.completed subagent.failed subagent.selected subagent.deselected
    user_input.requested user_input.completed pending_messages.modified abort model.call_start model.call_finished
    model.call_failure exit_plan_mode.requested exit_plan_mode.completed commands.changed capabilities.changed
    auto_mode_switch.requested auto_mode_switch.completed
    """.split()  # noqa: SIM905
)
_PROGRAM_SOURCES = (
    "skill", "system", "command", "schedule", "jit-instruction", "autopilot", "thinking-exhausted", "agent", "hook",
)  # fmt: skip
_CHATS_OF_TRANSCRIPTS = ("../../chatSessions/{}.jsonl", "../../chatSessions/{}.json")
_TITLE_LENGTH = 200
_MANIFEST_BYTES = 65536


@dataclass(slots=True)
class _Session:
    """What is known of a log while its events come in. `run`: answers since the last totals; `thoughts`: of a turn."""

    report: Report
    id: str | None = None
    created_at: datetime | None = None
    project: str | None = None
    title: str | None = None
    model: str | None = None
    is_editor: bool = False
    rows: list[Message] = field(default_factory=list)
    tools: dict[str, str] = field(default_factory=dict[str, str])
    called: set[str] = field(default_factory=set[str])
    seen: dict[str, int] = field(default_factory=dict[str, int])
    repeated: int = 0
    run: list[Message] = field(default_factory=list)
    thoughts: set[str] = field(default_factory=set[str])


class CopilotCliReader:
    """Reader of Copilot CLI event logs; see the module."""

    format = "copilot-cli"
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/github/copilot-sdk session-events, https://github.com/kenn-io/agentsview copilot.go",
        "high",
        "Copilot CLI sessions",
        "`~/.copilot/session-state/<id>/events.jsonl`",
        "2025-09",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """Lines with one of this product's event types and a `data` object."""
        return head.shape == "jsonl" and any(isinstance(item, dict) and _is_ours(item) for item in head.items)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The one conversation of a log."""
        session = _Session(report)
        empty = True
        for number, record in records(member, report, _is_whole):
            empty = False
            _take(session, record, f"line {number}")
        if session.repeated:
            report.skip("event written twice", expected=True, count=session.repeated)
        if session.is_editor and session.id and any(member.near(p.format(session.id)) for p in _CHATS_OF_TRANSCRIPTS):
            report.skip("transcript of a chat that lies beside it", expected=True, unit="conversation")
            return
        conversation = _conversation(session, member)
        if conversation.visible_messages():
            yield conversation
        elif not empty:
            report.skip("session without messages", expected=True, unit="conversation")


READER = CopilotCliReader()


def _is_ours(item: Record) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind in _SIGNS and isinstance(item.get("data"), dict)


def _is_whole(record: Record) -> bool:
    return isinstance(record.get("type"), str) and isinstance(record.get("data"), dict)


def _take(session: _Session, record: Record, place: str) -> None:
    kind, data, event = record.get("type"), record.get("data"), record.get("id")
    if not isinstance(kind, str) or not isinstance(data, dict):
        session.report.skip("line is no event", place, expected=False)
        return
    if isinstance(event, str) and event:
        if event in session.seen:
            session.repeated += 1
            return
        session.seen[event] = len(session.rows)
    stamp = record.get("timestamp")
    rows = Rows(event if isinstance(event, str) else "", parse_instant(stamp))
    side = bool(record.get("agentId") or data.get("parentToolCallId"))
    match kind:
        case "session.start" | "session.resume":
            _start(session, data, rows.when)
        case "user.message":
            _add_user(session, rows, data, place)
        case "assistant.message":
            _add_answer(session, rows, data)
        case "assistant.reasoning":
            _add_thought(session, rows, data.get("content"))
        case "tool.execution_start" | "tool.user_requested":
            _add_call(session, rows, data, data.get("toolName"))
        case "tool.execution_complete":
            _add_result(session, rows, data)
        case "assistant.usage":
            _set_usage(session, data)
        case "session.shutdown":
            _set_totals(session, data)
        case "session.model_change":
            session.model = name_of(data.get("newModel")) or session.model
        case "session.title_changed":
            session.title = name_of(data.get("title")) or session.title
        case "session.snapshot_rewind":
            _rewind(session, data.get("upToEventId"))
        case "system.message" | "system.notification":
            rows.add_hidden("instructions" if kind == "system.message" else "notice", text_of(data.get("content")))
        case "skill.invoked":
            rows.add_hidden("skill", text_of(data.get("content")))
        case "session.compaction_complete" | "session.handoff":
            rows.add_hidden("compaction summary", text_of(data.get("summaryContent") or data.get("summary")))
        case "session.error":
            rows.add_hidden("error of the program", text_of(data.get("message")))
        case _ if kind not in _QUIET and not kind.startswith(_QUIET_GROUPS):
            count_unknown(session.report, "event type", kind)
        case _:
            pass
    local = parse_naive(stamp) if rows.when is None else None
    for row in rows.rows:
        row.local_time = local
        if side and row.role in ("user", "assistant"):  # said by and to a sub-agent
            row.role, row.speaker = "tool", "sub-agent"
    session.rows += rows.rows


def _start(session: _Session, data: Record, when: datetime | None) -> None:
    session.id = session.id or name_of(data.get("sessionId"))
    session.created_at = session.created_at or parse_instant(data.get("startTime")) or when
    session.is_editor = session.is_editor or "vscodeVersion" in data
    session.model = name_of(data.get("selectedModel")) or session.model
    context = data.get("context")
    if session.project is None and isinstance(context, dict):
        session.project = name_of(context.get("cwd")) or name_of(context.get("gitRoot"))


def _add_user(session: _Session, rows: Rows, data: Record, place: str) -> None:
    session.thoughts.clear()
    text = words_of(data.get("content"), session.report, place).strip()
    files = [_file(item) for item in dicts_of(data.get("attachments"))]
    source = data.get("source")
    if reason := _why_hidden(data, source):
        rows.add_hidden(reason, text)
    elif text or files:
        if isinstance(source, str) and source not in ("", "user", "human"):
            count_unknown(session.report, "message source", source)
        rows.add(role="user", kind="text" if text else "attachment", text=text, attachment=files)
    else:
        session.report.skip("message without content", place, expected=True)


def _why_hidden(data: Record, source: object) -> str | None:
    if data.get("isAutopilotContinuation") is True:
        return "from a program: autopilot"
    if isinstance(data.get("inputOrigin"), str):
        return "from another session"
    if isinstance(source, str) and (kind := next((k for k in _PROGRAM_SOURCES if source.startswith(k)), None)):
        return f"from a program: {kind}"
    return None


def _add_answer(session: _Session, rows: Rows, data: Record) -> None:
    model = name_of(data.get("model")) or session.model
    session.model = model
    _add_thought(session, rows, data.get("reasoningText"))
    text = words_of(data.get("content"), session.report).strip()
    if text:
        rows.add(role="assistant", text=text)
    for request in dicts_of(data.get("toolRequests")):
        _add_call(session, rows, request, request.get("name"))
    for row in rows.rows:
        row.model = model
    answer = next((row for row in rows.rows if row.role == "assistant"), rows.rows[0] if rows.rows else None)
    if answer is not None:
        session.run.append(answer)
        if out := count_of(data.get("outputTokens")):
            answer.tokens_out = out


def _add_thought(session: _Session, rows: Rows, value: object) -> None:
    """Reasoning is told by an event of its own and again with the answer."""
    thought = text_of(value).strip()
    if thought and thought not in session.thoughts:
        session.thoughts.add(thought)
        rows.add(role="thinking", kind="thinking", text=thought, model=session.model)


def _add_call(session: _Session, rows: Rows, data: Record, tool: object) -> None:
    """A call, requested by the model or begun by the program; whichever is told first."""
    name, call = name_of(tool), data.get("toolCallId")
    if isinstance(call, str):
        if call in session.called:
            return
        session.called.add(call)
        session.tools[call] = name or ""
    rows.add(role="tool", kind="tool_call", text=arguments_text(unpacked(data.get("arguments"))), tool_name=name)


def _add_result(session: _Session, rows: Rows, data: Record) -> None:
    call, result = data.get("toolCallId"), data.get("result")
    tool = (session.tools.get(call) if isinstance(call, str) else None) or name_of(data.get("toolName"))
    text, files = text_of(result), []
    if isinstance(result, dict):
        text = text_of(result.get("content")) or text_of(result.get("detailedContent"))
        files = [file for item in dicts_of(result.get("contents")) if (file := _result_file(item)) is not None]
        if not text:
            text = "\n\n".join(filter(None, (text_of(item.get("text")) for item in dicts_of(result.get("contents")))))
    error = data.get("error")
    if not text:
        text = text_of(error.get("message")) if isinstance(error, dict) else text_of(error)
    rows.add(role="tool", kind="tool_result", text=text, tool_name=tool or None, attachment=files)
    model = name_of(data.get("model"))
    if model and session.run and session.run[-1].model is None:
        session.run[-1].model = session.model = model


def _result_file(item: Record) -> Attachment | None:
    kind = item.get("type")
    if kind in ("image", "audio", "blob"):
        return inline_file(item.get("mimeType") or kind, item.get("data"), item.get("name"))
    if kind == "resource_link":
        return Attachment(
            name=name_of(item.get("name")) or name_of(item.get("uri")), type=name_of(item.get("mimeType"))
        )
    return None


def _file(item: Record) -> Attachment:
    """A file, folder, selection, image or page that the person put beside a message."""
    kind = name_of(item.get("type"))
    if isinstance(item.get("data"), str):
        return inline_file(item.get("mimeType") or kind, item["data"], item.get("displayName") or item.get("name"))
    path = name_of(item.get("path")) or name_of(item.get("filePath")) or name_of(item.get("url"))
    name = name_of(item.get("displayName")) or name_of(item.get("title")) or (base_name(path) if path else None)
    return Attachment(name=name or None, type=kind, text=text_of(item.get("text")) or None)


# --- tokens -----------------------------------------------------------------------------------------------------------


def _set_usage(session: _Session, data: Record) -> None:
    """Tokens of the last answer. Its `cost` counts premium requests and no money."""
    if session.run:
        row = session.run[-1]
        row.tokens_in = count_of(data.get("inputTokens"))
        row.tokens_out = count_of(data.get("outputTokens"))
        row.tokens_cached = count_of(data.get("cacheReadTokens"))


def _set_totals(session: _Session, data: Record) -> None:
    """Tokens of a run, which is all that most logs say: what its answers do not say themselves is set on the last."""
    run, session.run = session.run, []
    metrics = data.get("modelMetrics")
    usages = [m.get("usage") for m in metrics.values() if isinstance(m, dict)] if isinstance(metrics, dict) else []
    usages = [usage for usage in usages if isinstance(usage, dict)]
    if not run or not usages:
        return
    for name, key in (
        ("tokens_in", "inputTokens"), ("tokens_out", "outputTokens"), ("tokens_cached", "cacheReadTokens"),
    ):  # fmt: skip
        known = sum(getattr(row, name) or 0 for row in run)
        rest = sum(count_of(usage.get(key)) for usage in usages) - known
        if rest > 0:
            setattr(run[-1], name, (getattr(run[-1], name) or 0) + rest)


# --- the conversation -------------------------------------------------------------------------------------------------


def _rewind(session: _Session, event: object) -> None:
    """The person went back to before an event: what came since stays, on a branch that is not active."""
    start = session.seen.get(event) if isinstance(event, str) else None
    if start is not None:
        for row in session.rows[start:]:
            row.branch_active = False


def _conversation(session: _Session, member: Member) -> Conversation:
    derive_ids(session.rows)
    path = PurePosixPath(member.path)
    folder = path.parent.name if path.name.startswith("events.") else path.name.split(".")[0]
    own_id = session.id or folder or derive_conversation_id(PROVIDER, "", session.rows)
    manifest = _manifest(member)
    title = session.title or name_of(manifest.get("name")) or name_of(manifest.get("title"))
    title = title or name_of(manifest.get("summary"))
    return Conversation(
        provider="vscode-copilot" if session.is_editor else PROVIDER,
        conversation_id=f"transcript-{own_id}" if session.is_editor else own_id,
        messages=session.rows,
        title=title.splitlines()[0][:_TITLE_LENGTH] if title else None,
        created_at=session.created_at,
        model=session.model,
        project=session.project or name_of(manifest.get("cwd")),
    )


def _manifest(member: Member) -> Record:
    """`workspace.yaml` beside the log: names and folders of the session."""
    data = side_file(member, "workspace.yaml")
    if not data or len(data) > _MANIFEST_BYTES:
        return {}
    import yaml

    try:
        value: object = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
