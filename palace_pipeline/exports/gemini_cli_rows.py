"""Gemini CLI: the records of a session, replayed -> message rows.

What was taken back (`$rewindTo`) or is missing from a list that replaces the whole (`$set.messages`) stays as rows off the
active branch: it was said, and the person no longer sees it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from palace_pipeline.exports.agent_log import Record, count_unknown
from palace_pipeline.exports.attachments import base_name
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.gemini_parts import Call, Parts, split_parts
from palace_pipeline.exports.ids import derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, list_of, name_of, text_of
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Kind, Message, Role

_EMPTY = "empty message"
_NOTICES = ("info", "error", "warning")
_INJECTED = {
    "session_context": "session context",
    "hook_context": "context of a hook",
    "state_snapshot": "summary of a compaction",
    "system-reminder": "injected context",
    "environment_context": "environment",
}
_INJECTED_STARTS = {
    "This is the Gemini CLI. We are setting up the context for our chat": "session context",
    "Here is the user's editor context": "editor context",
    "Here is a summary of changes in the user's editor context": "editor context",
}
_REPLIES_TO_CONTEXT = ("Got it. Thanks for the context!", "Got it. Thanks for the additional context!")
_MOST_BLOCKS = 50
_FILES_FROM = re.compile(r"\n?--- Content from referenced files ---\n?")
_FILES_TO = re.compile(r"\n?--- End of content ---\n?")
_FILE_FROM = re.compile(r"^Content from @?(.{1,4096}?):$", re.MULTILINE)


@dataclass(slots=True)
class _Entry:
    """A message as its last record shows it. The rows are made at once: a record may hold pictures of 80 MB."""

    rows: _Rows
    active: bool = True


@dataclass(slots=True)
class Replay:
    """The state of a session while its records come in. `meta`: header fields, the last value of each."""

    report: Report
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    model: str | None = None
    _entries: dict[str, _Entry] = field(default_factory=dict[str, _Entry])
    _active: list[str] = field(default_factory=list[str])
    _places: dict[str, int] = field(default_factory=dict[str, int])
    _answered: set[str] = field(default_factory=set[str])
    """Ids of tool calls whose results are known: the history that the model is sent repeats them."""
    _unnamed: int = 0

    def take(self, record: Record, place: str) -> None:
        """One line of a log, or the whole object of an older file."""
        if "$rewindTo" in record:
            self._rewind(record["$rewindTo"], place)
        elif "$set" in record:
            if isinstance(update := record["$set"], dict):
                self._set(update, place)
            else:
                self.report.skip("change without values", place, expected=False)
        elif "sessionId" in record and "type" not in record:
            self._set(record, place)
        elif "type" in record or "content" in record:
            self._add(record)
        elif record:
            self.report.skip("record of an unknown kind", place, expected=False)
            count_unknown(self.report, "record key", next(iter(record)))

    def take_history(self, history: list[Any]) -> None:
        """A chat saved by hand: contents of the API, without times."""
        for number, turn in enumerate(history):
            if isinstance(turn, dict):
                kind = "gemini" if turn.get("role") == "model" else "user"
                self._add({"type": kind, "content": turn.get("parts")})
            else:
                self.report.skip("not a message", f"history[{number}]", expected=turn is None)

    def _set(self, values: Record, place: str) -> None:
        messages = values.get("messages")
        self.meta.update({key: value for key, value in values.items() if key != "messages" and value is not None})
        if not isinstance(messages, list):
            if messages is not None:
                self.report.skip("list of messages that is none", place, expected=False)
            return
        if not messages:  # the program takes an empty list for none
            return
        self._drop_from(0)
        for number, message in enumerate(messages):
            if isinstance(message, dict):
                self._add(message)
            else:
                self.report.skip("not a message", f"{place} messages[{number}]".strip(), expected=message is None)

    def _add(self, record: Record) -> None:
        """A message; one whose id is known takes the place of the older one."""
        id = record.get("id")
        if not isinstance(id, str) or not id:
            self._unnamed += 1
            id = f"\0{self._unnamed}"
        rows = self._rows("" if id.startswith("\0") else id, record)
        entry = self._entries.get(id)
        if entry is None:
            self._entries[id] = _Entry(rows)
        else:
            entry.rows, entry.active = rows, True
        if id not in self._places:
            self._places[id] = len(self._active)
            self._active.append(id)

    def _rewind(self, id: object, place: str) -> None:
        """Takes back a message and all after it; an unknown id takes back everything, as the program does it."""
        if not isinstance(id, str):
            self.report.skip("rewind to no message", place, expected=False)
            return
        self._drop_from(self._places.get(id, 0))

    def _drop_from(self, place: int) -> None:
        for id in self._active[place:]:
            self._entries[id].active = False
            del self._places[id]
        del self._active[place:]

    # --- rows ---

    def finish(self) -> list[Message]:
        """The rows: the active messages in their order, each followed by what was taken back after it."""
        behind: dict[str | None, list[str]] = {None: []}
        before: str | None = None
        for id, entry in self._entries.items():
            if entry.active:
                before = id
            else:
                behind.setdefault(before, []).append(id)
        rows: list[Message] = []
        for id in [*behind[None], *(one for active in self._active for one in (active, *behind.get(active, ())))]:
            entry = self._entries[id]
            if entry.rows.problem:
                self.report.skip(entry.rows.problem, expected=entry.rows.problem == _EMPTY)
            for row in entry.rows.found:
                row.branch_active = entry.active
                rows.append(row)
        derive_ids(rows)
        return rows

    def _rows(self, id: str, record: Record) -> _Rows:
        kind = record.get("type")
        stamp = record.get("timestamp")
        when = parse_instant(stamp)
        local = parse_naive(stamp) if when is None else None
        rows = _Rows(id, when, local)
        if kind == "user":
            self._user_rows(rows, record)
        elif kind == "gemini":
            self._answer_rows(rows, record)
        else:
            text = split_parts(record.get("content"), self.report).text.strip()
            if kind not in _NOTICES:
                count_unknown(self.report, "record type", kind)
                rows.problem = "message of an unknown type"
            if text:
                reason = "notice of the program" if kind in _NOTICES else "unknown type"
                rows.add("system", text, "event", id).hidden_reason = reason
        return rows

    def _user_rows(self, rows: _Rows, record: Record) -> None:
        sent = split_parts(record.get("content"), self.report)
        shown = split_parts(record.get("displayContent"), self.report)
        own = shown if shown.text.strip() else sent
        text, hidden, files = _own_words(own.texts)
        if own is shown and sent.text.strip() and sent.text.strip() != shown.text.strip():
            hidden.append(("text sent to the model", sent.text.strip()))
        for reason, inner in hidden:
            rows.add("system", inner, "system").hidden_reason = reason
        for call in sent.calls:
            if not (call.id and call.id in self._answered):
                rows.add_call(call)
        files = sent.files + files
        if text.strip() or files:
            kind: Kind = "text" if text.strip() else "attachment"
            rows.add("user", text.strip("\n"), kind, rows.id).attachment = files
        elif not rows.found:
            rows.problem = _EMPTY

    def _answer_rows(self, rows: _Rows, record: Record) -> None:
        said: Parts = split_parts(record.get("content"), self.report)
        model = name_of(record.get("model"))
        self.model = model or self.model
        for thought in list_of(record.get("thoughts")):
            rows.add_thought(thought)
        for thought in said.thoughts:
            rows.add_thought(thought)
        calls = [call for call in list_of(record.get("toolCalls")) if isinstance(call, dict)]
        named = {text_of(call.get("id")) for call in calls}
        later = [_is_later(call, rows.when) for call in calls]
        for call, is_later in zip(calls, later, strict=True):
            if not is_later:
                self._call_rows(rows, call)
        text = said.text
        if text.strip() in _REPLIES_TO_CONTEXT:
            rows.add("system", text.strip(), "system").hidden_reason = "session context"
        elif text.strip() or said.files:
            kind: Kind = "text" if text.strip() else "image"
            rows.add("assistant", text.strip("\n"), kind, rows.id).attachment = said.files
        for call, is_later in zip(calls, later, strict=True):
            if is_later:
                self._call_rows(rows, call)
        for call in said.calls:
            if not call.id or call.id not in named:
                rows.add_call(call)
        if not rows.found:
            rows.problem = _EMPTY
            return
        carrier = next((row for row in rows.found if row.role == "assistant"), rows.found[0])
        for row in rows.found:
            row.model = model
        tokens = record.get("tokens")
        if isinstance(tokens, dict):
            carrier.tokens_in = count_of(tokens.get("input"))
            carrier.tokens_out = count_of(tokens.get("output")) + count_of(tokens.get("thoughts"))
            carrier.tokens_cached = count_of(tokens.get("cached"))

    def _call_rows(self, rows: _Rows, call: Record) -> None:
        """A tool call with its result, each a row; sub-agents' calls name the agent."""
        name, id = name_of(call.get("name")), text_of(call.get("id"))
        when = parse_instant(call.get("timestamp")) or rows.when
        row = rows.add(
            "tool", arguments_text(call.get("args")), "tool_call", f"{rows.id}/{id}" if rows.id and id else ""
        )
        row.tool_name, row.created_at = name, when
        results = split_parts(call.get("result"), self.report)
        texts = [result.text for result in results.calls if result.is_result]
        files = [file for result in results.calls for file in result.files] + results.files
        text = "\n\n".join(filter(None, [*texts, results.text])) or _display_text(call.get("resultDisplay"))
        status = text_of(call.get("status"))
        if text or files or status not in ("", "success"):
            row = rows.add(
                "tool", text or f"({status})", "tool_result", f"{rows.id}/{id}/result" if rows.id and id else ""
            )
            row.tool_name, row.created_at, row.attachment = name, when, files
            if id:
                self._answered.add(id)


@dataclass(slots=True)
class _Rows:
    """The rows of one record; `problem`: why it has none that it should have."""

    id: str
    when: datetime | None
    local: str | None
    found: list[Message] = field(default_factory=list[Message])
    problem: str = ""

    def add(self, role: Role, text: str, kind: Kind, id: str = "") -> Message:
        message_id = id or (f"{self.id}/{len(self.found)}" if self.id else "")
        row = Message(message_id, role, text, kind, self.when, self.local)
        self.found.append(row)
        return row

    def add_thought(self, thought: object) -> None:
        when = None
        if isinstance(thought, dict):
            when = parse_instant(thought.get("timestamp"))
            texts = [text_of(thought.get(key)).strip() for key in ("subject", "description")]
            text = "\n\n".join(filter(None, texts))
        else:
            text = text_of(thought).strip()
        if text:
            row = self.add("thinking", text, "thinking")
            row.created_at = when or row.created_at

    def add_call(self, call: Call) -> None:
        row = self.add("tool", call.text, "tool_result" if call.is_result else "tool_call")
        row.tool_name, row.attachment = call.name, list(call.files)


def _own_words(texts: list[str]) -> tuple[str, list[tuple[str, str]], list[Attachment]]:
    """(what the person typed, `(reason, text)` of what the program put beside it, files whose text it put there).

    The program's own stands in parts of its own or at the beginning; a tag in the midst of a text is the person's.
    """
    hidden: list[tuple[str, str]] = []
    kept: list[str] = []
    for text in texts:
        inside: list[tuple[str, str]] = []
        rest = _cut_injected(text, inside)
        if rest and any(kept):
            rest, inside = text, []
        hidden += inside
        kept.append(rest)
    text = "".join(kept)
    files: list[Attachment] = []
    if (start_of := _FILES_FROM.search(text)) is not None:
        end_of = _FILES_TO.search(text, start_of.end())
        inner = text[start_of.end() : end_of.start() if end_of else len(text)]
        text = text[: start_of.start()] + (text[end_of.end() :] if end_of else "")
        pieces = _FILE_FROM.split(inner)
        for path, content in zip(pieces[1::2], pieces[2::2], strict=True):
            files.append(Attachment(name=base_name(path), type="file", text=content.strip("\n") or None))
    return text, hidden, files


def _opening_tag(text: str) -> str | None:
    start = text.lstrip()
    return next((tag for tag in _INJECTED if start.startswith(f"<{tag}>")), None)


def _cut_injected(text: str, hidden: list[tuple[str, str]]) -> str:
    """The text behind the program's own at its beginning, which goes to `hidden`."""
    for _ in range(_MOST_BLOCKS):
        if (tag := _opening_tag(text)) is None:
            break
        start = text.index(f"<{tag}>") + len(tag) + 2
        end = text.find(f"</{tag}>", start)
        inner = text[start : end if end >= 0 else len(text)].strip()
        if inner:
            hidden.append((_INJECTED[tag], inner))
        text = text[end + len(tag) + 3 :].lstrip() if end >= 0 else ""
    for start, reason in _INJECTED_STARTS.items():
        if text.lstrip().startswith(start):
            hidden.append((reason, text.strip()))
            return ""
    return text


def _is_later(call: Record, when: datetime | None) -> bool:
    called = parse_instant(call.get("timestamp"))
    return when is not None and called is not None and called > when


def _display_text(display: object) -> str:
    """What the window showed of a result: a text, or a change of a file."""
    if isinstance(display, dict):
        return text_of(display.get("fileDiff")) or arguments_text(display)
    return text_of(display)
