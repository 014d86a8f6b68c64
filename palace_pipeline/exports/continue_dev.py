"""Continue (the editor extension): `~/.continue/sessions/<uuid>.json` with the index `sessions.json` beside them.

A session is `{sessionId, title, workspaceDirectory, history}`; an item of the history holds its `message`, and beside
it what the program gathered: context items, the editor's state, logs of prompts, outputs of tools. None of those are a
person's words. Some tools write the message's fields into the item itself. No message has a time; the index has the
day a session began. Shape: core/util/history.ts and core/index.d.ts of https://github.com/continuedev/continue,
checked 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from palace_pipeline.exports.agent_log import Record, count_unknown, side_file, side_json
from palace_pipeline.exports.attachments import base_name, uri_path, url_file
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, dict_of, dicts_of, name_of, text_of, unpacked
from palace_pipeline.exports.text import parse_json
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.model import Attachment, Conversation, Message

PROVIDER = "continue"

_SESSION_KEYS = frozenset(
    "sessionId title workspaceDirectory history mode chatModelTitle usage dateCreated".split()  # noqa: SIM905
)
_ITEM_KEYS = frozenset(
    """
    message contextItems editorState modifiers promptLogs toolCallState toolCallStates isGatheringContext reasoning
    appliedRules conversationSummary checkpoint isBeforeCheckpoint role content id toolCalls toolCallId
    """.split()  # noqa: SIM905
)


class ContinueReader:
    """Reads one session object; see the module."""

    format = "continue-session"
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/continuedev/continue core/util/history.ts, core/index.d.ts",
        "high",
        "Continue sessions",
        "`~/.continue/sessions/<uuid>.json`",
        "2024",
    )
    layout: Literal["elements"] = "elements"
    known_keys = {"": _SESSION_KEYS, "history.*": _ITEM_KEYS}  # noqa: RUF012 - never changed

    def detect(self, head: Head) -> bool:
        """An object with `sessionId` and a list `history` (whose items, if any, are messages)."""
        return head.shape in ("object", "array", "jsonl") and any(
            isinstance(item, dict) and _is_session(item) for item in head.items
        )

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation. Sessions without any message are usual: expected skips."""
        history = value.get("history") if isinstance(value, dict) else None
        if not isinstance(history, list):
            report.skip("session without a history", place, expected=False, unit="conversation")
            return
        if not history:
            report.skip("empty history", place, expected=True, unit="conversation")
            return
        conversation = _conversation(value, history, member, report, place)
        if conversation.visible_messages():
            yield conversation
        else:
            report.skip("session without messages", place, expected=True, unit="conversation")


READER = ContinueReader()


def _is_session(item: Record) -> bool:
    history = item.get("history")
    if not isinstance(item.get("sessionId"), str) or not isinstance(history, list):
        return False
    first = next((entry for entry in history if isinstance(entry, dict)), None)
    return first is None or isinstance(first.get("message"), dict) or "role" in first


def _conversation(session: Record, history: list[Any], member: Member, report: Report, place: str) -> Conversation:
    rows = _Rows(report, answered=_answered(history))
    for number, item in enumerate(history):
        where = f"{place} history[{number}]".strip()
        if not isinstance(item, dict):
            report.skip("not a message", where, expected=item is None)
            continue
        message = item.get("message")
        rows.add(item, message if isinstance(message, dict) else item, where)
    derive_ids(rows.messages)
    session_id = name_of(session.get("sessionId"))
    entry = _index_entry(member, session_id) if session_id else {}
    title = name_of(session.get("title")) or name_of(entry.get("title"))
    folder = name_of(session.get("workspaceDirectory")) or name_of(entry.get("workspaceDirectory"))
    return Conversation(
        provider=PROVIDER,
        conversation_id=session_id or derive_conversation_id(PROVIDER, title or "", rows.messages),
        messages=rows.messages,
        title=title,
        created_at=parse_instant(entry.get("dateCreated")),
        model=name_of(session.get("chatModelTitle")),
        project=uri_path(folder),
    )


def _answered(history: list[Any]) -> set[str]:
    """Ids of the calls whose result is a message of its own."""
    found: set[str] = set()
    for item in history:
        message = item.get("message") if isinstance(item, dict) else None
        message = message if isinstance(message, dict) else item
        if isinstance(message, dict) and message.get("role") == "tool":
            call = message.get("toolCallId") or message.get("tool_call_id")
            if isinstance(call, str):
                found.add(call)
    return found


class _Rows:
    """Collects the rows of a history."""

    def __init__(self, report: Report, answered: set[str]) -> None:
        self.messages: list[Message] = []
        self._report = report
        self._answered = answered
        self._tools: dict[str, str] = {}
        self._last_thought = ""

    def add(self, item: Record, message: Record, where: str) -> None:
        """The rows of one item."""
        role = message.get("role")
        texts, files = self._content(message.get("content"))
        text = "\n\n".join(texts)
        before = len(self.messages)
        if role == "user":
            self._last_thought = ""
            files += [_context_file(context) for context in dicts_of(item.get("contextItems")) if _is_shown(context)]
            if text.strip() or files:
                kind = "text" if text.strip() else "attachment"
                self._add(message, Message("", "user", text, kind, attachment=files))
        elif role == "assistant":
            self._add_answer(item, message, text, files)
        elif role == "thinking":
            self._add_thought(text or _reasoning(item))
        elif role == "tool":
            call = message.get("toolCallId") or message.get("tool_call_id")
            name = self._tools.get(call) if isinstance(call, str) else None
            self.messages.append(Message("", "tool", text, "tool_result", tool_name=name, attachment=files))
        elif role in ("system", "developer"):
            self._hide("instructions", text)
        else:
            count_unknown(self._report, "role", role)
            self._hide("unknown role", text)
        self._hide("conversation summary", text_of(item.get("conversationSummary")))
        if len(self.messages) == before:
            self._report.skip("message without content", where, expected=True)

    def _add_answer(self, item: Record, message: Record, text: str, files: list[Attachment]) -> None:
        self._add_thought(_reasoning(item))
        model = _model(item)
        if text.strip() or files:
            kind = "text" if text.strip() else "attachment"
            self._add(message, Message("", "assistant", text, kind, model=model, attachment=files))
            _set_usage(self.messages[-1], message.get("usage"))
        states = {_call_id(state): state for state in dicts_of(item.get("toolCallStates"))}
        calls = dicts_of(message.get("toolCalls")) or [dict_of(state.get("toolCall")) for state in states.values()]
        for call in calls:
            function = dict_of(call.get("function"))
            name, call_id = name_of(function.get("name")), call.get("id")
            if name and isinstance(call_id, str):
                self._tools[call_id] = name
            arguments = arguments_text(unpacked(function.get("arguments")))
            self.messages.append(Message("", "tool", arguments, "tool_call", tool_name=name, model=model))
        for call_id, state in states.items():
            if call_id not in self._answered and (output := _output(state)):
                name = self._tools.get(call_id or "")
                self.messages.append(Message("", "tool", output, "tool_result", tool_name=name))

    def _add_thought(self, thought: str) -> None:
        """Reasoning often stands in a message of its own and again beside the answer."""
        thought = thought.strip()
        if thought and thought != self._last_thought:
            self._last_thought = thought
            self.messages.append(Message("", "thinking", thought, "thinking"))

    def _add(self, message: Record, row: Message) -> None:
        row.message_id = name_of(message.get("id")) or ""
        self.messages.append(row)

    def _hide(self, reason: str, text: str) -> None:
        if text.strip():
            self.messages.append(Message("", "system", text.strip(), "system", hidden_reason=reason))

    def _content(self, content: object) -> tuple[list[str], list[Attachment]]:
        """Texts and files of a content: a text, or parts `text` and `imageUrl`."""
        if isinstance(content, str):
            return ([text_of(content)] if content.strip() else []), []
        texts: list[str] = []
        files: list[Attachment] = []
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, str):
                texts.append(text_of(part))
            elif isinstance(part, dict) and isinstance(part.get("text"), str):
                texts.append(text_of(part["text"]))
            elif isinstance(part, dict) and (image := part.get("imageUrl", part.get("image_url"))) is not None:
                files.append(url_file(dict_of(image).get("url") or image))
            elif isinstance(part, dict):
                count_unknown(self._report, "content type", part.get("type"))
        return [text for text in texts if text.strip()], files


def _is_shown(context: Record) -> bool:
    return context.get("hidden") is not True


def _context_file(context: Record) -> Attachment:
    """A file, page or search that the person put beside a question: its name and what was read of it."""
    address = dict_of(context.get("uri")).get("value")
    name = name_of(context.get("name")) or name_of(context.get("description"))
    if name is None and isinstance(address, str):
        name = base_name(address)
    kind = dict_of(context.get("id")).get("providerTitle")
    return Attachment(name=name, type=name_of(kind), text=text_of(context.get("content")) or None)


def _reasoning(item: Record) -> str:
    return text_of(dict_of(item.get("reasoning")).get("text"))


def _model(item: Record) -> str | None:
    """The model of an answer, from the newest log of its prompts; their texts are not looked at."""
    return next(
        (name for log in reversed(dicts_of(item.get("promptLogs"))) if (name := name_of(log.get("modelTitle")))), None
    )


def _set_usage(row: Message, usage: object) -> None:
    if isinstance(usage, dict) and "promptTokens" in usage:
        row.tokens_in = count_of(usage.get("promptTokens"))
        row.tokens_out = count_of(usage.get("completionTokens"))
        details = usage.get("promptTokensDetails")
        row.tokens_cached = count_of(details.get("cachedTokens")) if isinstance(details, dict) else None


def _call_id(state: Record) -> str | None:
    call = state.get("toolCallId") or dict_of(state.get("toolCall")).get("id")
    return call if isinstance(call, str) else None


def _output(state: Record) -> str:
    found = [text_of(part.get("content")) for part in dicts_of(state.get("output"))]
    return "\n\n".join(text for text in found if text.strip())


# --- the index --------------------------------------------------------------------------------------------------------


def _index_entry(member: Member, session_id: str) -> Record:
    """What `sessions.json` says of a session. Entries of the old kind (`session_id`) are none of this product's."""
    data = side_file(member, "sessions.json")
    at = data.find(f'"{session_id}"'.encode("utf-8", "replace"))
    if at < 0:
        return {}
    # The index has an entry per session and is asked once per session: only the one entry is parsed, if that can be.
    start, end = data.rfind(b"{", 0, at), data.find(b"}", at)
    try:
        entry = parse_json(data[start : end + 1])
    except (ValueError, RecursionError):
        entry = None
    if isinstance(entry, dict) and entry.get("sessionId") == session_id:
        return entry
    index = side_json(member, "sessions.json")
    return next((entry for entry in dicts_of(index) if entry.get("sessionId") == session_id), {})
