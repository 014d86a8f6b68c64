"""Codex: events and response items of a rollout -> message rows.

A rollout says most things twice: as an event (what the window showed) and as a response item (what the model was
sent). Which of the two exists depends on the version, and a log may have been continued by another version. So both are
read: what one source says and the other has already said, at about the same time, is the same message.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from palace_pipeline.exports.agent_log import Record, count_unknown, cut_blocks
from palace_pipeline.exports.attachments import base_name, inline_file, kind_of_files, url_file
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.codex_text import is_image_mark, split_user_text
from palace_pipeline.exports.ids import derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, name_of, text_of
from palace_pipeline.exports.text import parse_json
from palace_pipeline.model import Attachment, Kind, Message, Role

Source = Literal["event", "item"]

_TWIN_WITHIN = timedelta(minutes=10)
_OTHER: dict[Source, Source] = {"event": "item", "item": "event"}
_TEXT_BLOCKS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")
_QUIET_ITEMS = frozenset(
    """
    ghost_snapshot compaction compaction_summary compaction_trigger context_compaction additional_tools other
    """.split()  # noqa: SIM905
)
_MARKED_UP = re.compile(r"\s*<([A-Za-z][\w-]*)(?:\s[^>]*)?>.*</\1>\s*", re.DOTALL)
_BLANKS = b" \t\n\v\f\r\x1c\x1d\x1e\x1f"
"""Blanks as `str.split` knows them."""
_JSON_OUTPUT_KEYS = {"output", "metadata"}


@dataclass(slots=True)
class _Said:
    """A row that one source has given and the other may still repeat."""

    row: Message
    key: str | bytes
    when: datetime | None
    matched: bool = False


@dataclass(slots=True)
class Transcript:
    """The rows of one rollout while its lines come in.

    `replaying`: the lines are a copy of another session's; what they say is kept out of sight. `model`: of the turn.
    """

    report: Report
    replaying: bool = False
    model: str | None = None
    own_rows: int = 0
    _rows: list[Message] = field(default_factory=list)
    _said: dict[tuple[Source, str, str | bytes], deque[_Said]] = field(default_factory=dict)
    _tools: dict[str, str] = field(default_factory=dict)
    _turns: list[list[Message]] = field(default_factory=list)
    _gap_items: list[_Said] = field(default_factory=list)
    _gap_has_event: bool = False
    _answered: list[Message] = field(default_factory=list)
    _total: tuple[int, int, int] = (0, 0, 0)
    _unplaced: tuple[int, int, int] = (0, 0, 0)

    # --- messages ---

    def add_message(self, source: Source, role: str, content: object, when: datetime | None) -> None:
        """A message of the user, the model, or the program (roles developer and system)."""
        texts: list[str] = []
        files: list[Attachment] = []
        _count_odd(content, self.report)
        for block in _blocks(content):
            kind = str(block.get("type", "")).lower()
            if kind in _TEXT_BLOCKS:
                text = text_of(block.get("text"))
                if not is_image_mark(text):
                    texts.append(text)
            elif (file := _file(kind, block)) is not None:
                files.append(file)
            else:
                count_unknown(self.report, "content type", block.get("type"))
        if role == "user":
            self.add_user(source, texts, files, when)
        elif role == "assistant":
            self.add_answer(source, "\n\n".join(filter(None, texts)), when, files)
        elif role in ("developer", "system"):
            self._hide("instructions", "\n\n".join(texts), when)
        else:
            count_unknown(self.report, "role", role)

    def add_user(self, source: Source, texts: list[str], files: list[Attachment], when: datetime | None) -> None:
        """A user message, given as its blocks; what the program put into it becomes hidden rows."""
        own_texts: list[str] = []
        for text in texts:
            own, injected, mentioned = split_user_text(text)
            self._hide("injected context", injected, when, once=source)
            files += [Attachment(name=name) for name in mentioned]
            if own.strip():
                own_texts.append(own)
        text = "\n\n".join(own_texts)
        if not text and not files:
            return
        said = self._say(source, "user", text, when, files)
        if source == "event":
            self._gap_has_event = True
        elif said is not None:
            self._gap_items.append(said)
        if said is not None:
            self._turns.append([said.row])

    def add_answer(
        self, source: Source, text: str, when: datetime | None, files: list[Attachment] | None = None
    ) -> None:
        """Words of the model. A plan is a message of its own, since newer versions show it as one.

        Marks of the model's memory are never shown and left out.
        """
        text, marks = cut_blocks(text, "oai-mem-citation")
        text, plans = cut_blocks(text, "proposed_plan")
        if marks or plans:
            text = text.strip()
        self._close_gap()
        if text.strip() or files:
            self._say(source, "assistant", text, when, files or [])
        for plan in plans:
            if plan.strip():
                self._say(source, "assistant", plan.strip(), when, [])

    def add_thinking(self, source: Source, texts: list[str], when: datetime | None) -> None:
        """Summaries or raw texts of the model's reasoning, one row each."""
        for text in texts:
            if text.strip():
                self._close_gap()
                self._say(source, "thinking", text, when, [])

    def _say(
        self, source: Source, role: Role, text: str, when: datetime | None, files: list[Attachment]
    ) -> _Said | None:
        """A new row, or None if the other source has said it already."""
        key = _without_blanks(text)
        twin = self._twin(source, role, key, when)
        if twin is not None:
            twin.matched = True
            twin.row.attachment = twin.row.attachment or files
            return None
        kind: Kind = "thinking" if role == "thinking" else "text"
        if not text:
            kind = kind_of_files(files)
        row = Message("", role, text, kind, created_at=when, attachment=files)
        self._keep(row, by_model=role != "user")
        said = _Said(row, key, when)
        self._said.setdefault((source, role, key), deque()).append(said)
        return said

    def _twin(self, source: Source, role: Role, key: str | bytes, when: datetime | None) -> _Said | None:
        waiting = self._said.pop((_OTHER[source], role, key), None)
        while waiting:
            said = waiting.popleft()
            if not _close(said.when, when):
                continue
            if waiting:
                self._said[_OTHER[source], role, key] = waiting
            return said
        return None

    def _hide(self, reason: str, text: str, when: datetime | None, once: Source | None = None) -> None:
        """A hidden row; injected text that both sources carry comes once."""
        text = text.strip()
        if not text:
            return
        key = _without_blanks(text)
        if once is not None and self._twin(once, "system", key, when) is not None:
            return
        row = Message("", "system", text, "system", created_at=when, hidden_reason=reason)
        self._keep(row, by_model=False)
        if once is not None:
            self._said.setdefault((once, "system", key), deque()).append(_Said(row, key, when))

    def add_note(self, reason: str, text: str, when: datetime | None) -> None:
        """A text of the program about the conversation, kept out of sight."""
        self._hide(reason, text, when)

    def _keep(self, row: Message, *, by_model: bool) -> None:
        if self.replaying:
            row.hidden_reason = row.hidden_reason or "copied from the session this one was forked from"
        elif row.hidden_reason is None:
            self.own_rows += 1
        if by_model:
            row.model = self.model
            self._answered.append(row)
        self._rows.append(row)
        if self._turns:
            self._turns[-1].append(row)

    def _close_gap(self) -> None:
        """The model speaks. If events tell what the user asked, other marked-up user items before it are injected.

        That hides wrappers which are too new to be known by name.
        """
        if self._gap_has_event:
            for said in self._gap_items:
                if not said.matched and said.row.hidden_reason is None and _MARKED_UP.fullmatch(said.row.text):
                    said.row.hidden_reason = "injected context"
        self._gap_items, self._gap_has_event = [], False

    # --- tools ---

    def add_item(self, item: Record, when: datetime | None) -> None:
        """A response item."""
        kind = item.get("type")
        if kind == "message":
            self.add_message("item", str(item.get("role")), item.get("content"), when)
        elif kind == "reasoning":
            parts = [*_blocks(item.get("summary")), *_blocks(item.get("content"))]
            self.add_thinking("item", [text_of(part.get("text")) for part in parts], when)
        elif not isinstance(kind, str):
            count_unknown(self.report, "item type", kind)
        elif kind.endswith("_output"):
            self._add_output(item, when)
        elif kind.endswith("_call"):
            self._add_call(kind, item, when)
        elif kind == "agent_message":
            self.add_note("message between agents", "\n\n".join(_texts(item.get("content"))), when)
        elif kind not in _QUIET_ITEMS:
            count_unknown(self.report, "item type", kind)

    def _add_call(self, kind: str, item: Record, when: datetime | None) -> None:
        self._close_gap()
        call = item.get("call_id") or item.get("id")
        call = call if isinstance(call, str) else ""
        name = name_of(item.get("name")) or kind.removesuffix("_call")
        files: list[Attachment] = []
        if kind == "image_generation_call":
            text = text_of(item.get("revised_prompt"))
            files = [inline_file("image/png", item["result"])] if isinstance(item.get("result"), str) else []
        else:
            arguments = item.get("arguments") or item.get("input") or item.get("action") or None
            text = arguments_text(_unpacked(arguments))
        if call:
            self._tools[call] = name
        row = Message(call, "tool", text, "tool_call", created_at=when, tool_name=name, attachment=files)
        self._keep(row, by_model=True)

    def _add_output(self, item: Record, when: datetime | None) -> None:
        self._close_gap()
        call = item.get("call_id")
        call = call if isinstance(call, str) else ""
        text, files = _output(item.get("output", item.get("tools")))
        row = Message(f"{call}/output" if call else "", "tool", text, "tool_result", created_at=when)
        row.tool_name, row.attachment = self._tools.get(call), files
        self._keep(row, by_model=False)

    # --- what changes rows that are there ---

    def count_tokens(self, info: object) -> None:
        """Tokens of the model's last answer, from the growth of the session's totals (events are often repeated).

        They are set on one row of that answer: its words if it has some, else its last row.
        """
        if not isinstance(info, dict):
            return
        total = _usage(info.get("total_token_usage"))
        if total is None:
            used = _usage(info.get("last_token_usage"))
        else:
            before, self._total = self._total, total
            if total == before:
                return
            grown = (total[0] - before[0], total[1] - before[1], total[2] - before[2])
            if before != (0, 0, 0) and min(grown) >= 0:
                used = grown
            else:
                used = _usage(info.get("last_token_usage")) or total
        if used is None or self.replaying:
            self._answered = []
            return
        used = (used[0] + self._unplaced[0], used[1] + self._unplaced[1], used[2] + self._unplaced[2])
        words = [row for row in self._answered if row.role == "assistant"]
        rows = words or self._answered
        self._answered = []
        if not rows:
            self._unplaced = used
            return
        self._unplaced = (0, 0, 0)
        rows[-1].tokens_in, rows[-1].tokens_out, rows[-1].tokens_cached = used

    def roll_back(self, turns: object) -> None:
        """The user took back the last turns: they stay, on a branch that is not active."""
        self._close_gap()
        left = count_of(turns)
        while left and self._turns:
            rows = self._turns.pop()
            left -= rows[0].hidden_reason is None
            for row in rows:
                row.branch_active = False

    def finish(self) -> list[Message]:
        """The rows in the order of the file, with ids."""
        self._close_gap()
        derive_ids(self._rows)
        return self._rows


def _without_blanks(text: str) -> str | bytes:
    """What is equal for texts that differ in blanks alone."""
    return text.encode().translate(None, _BLANKS) if text.isascii() else "".join(text.split())


def _close(first: datetime | None, second: datetime | None) -> bool:
    return first is None or second is None or abs(first - second) <= _TWIN_WITHIN


def _count_odd(content: object, report: Report) -> None:
    """Count content that is none: no text, no list of texts and blocks, or a text block without a text."""
    blocks = content if isinstance(content, list) else [content]
    odd = sum(
        not isinstance(block, str | None)
        and (
            not isinstance(block, dict)
            or not isinstance(content, list)
            or (str(block.get("type", "")).lower() in _TEXT_BLOCKS and not isinstance(block.get("text"), str | None))
        )
        for block in blocks
    )
    if odd:
        report.skip("content of an unknown shape", expected=False, count=odd)


def _blocks(content: object) -> Iterator[Record]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, str):
                yield {"type": "text", "text": block}
            elif isinstance(block, dict):
                yield block


def _texts(content: object) -> list[str]:
    return [text for block in _blocks(content) if (text := text_of(block.get("text")))]


def _file(kind: str, block: Record) -> Attachment | None:
    if kind in ("input_image", "image", "output_image"):
        return url_file(block.get("image_url") or block.get("url"))
    if kind in ("local_image", "localimage"):
        return path_file(block.get("path"))
    if kind in ("input_file", "file"):
        return Attachment(name=name_of(block.get("filename")) or name_of(block.get("name")))
    if kind in ("skill", "mention"):
        return Attachment(name=name_of(block.get("name")))
    return None


def path_file(path: object) -> Attachment:
    """An attachment for an image that was given by its path."""
    return Attachment(name=name_of(base_name(path)) if isinstance(path, str) else None, type="image")


def _unpacked(value: object) -> object:
    """Arguments are often JSON in a string."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            inner = parse_json(value)
        except (ValueError, RecursionError):
            return value
        return inner if isinstance(inner, dict | list) else value
    return value


def _output(value: object) -> tuple[str, list[Attachment]]:
    """Text and files of a tool's output: a text, `{"output": text, "metadata": …}` (also as JSON), or content blocks.

    JSON that a tool printed stays as it was printed.
    """
    if isinstance(value, str) and value.startswith("{") and '"output"' in value[:4096]:
        inner = _unpacked(value)
        if isinstance(inner, dict) and "output" in inner and _JSON_OUTPUT_KEYS.issuperset(inner):
            value = inner
    if isinstance(value, dict):
        for key in ("output", "content"):
            if isinstance(inner := value.get(key), str | list):
                return _output(inner) if isinstance(inner, list) else (text_of(inner), [])
        return arguments_text(value), []
    if isinstance(value, list) and value and all(isinstance(b, dict) and isinstance(b.get("type"), str) for b in value):
        texts: list[str] = []
        files: list[Attachment] = []
        for block in value:
            if (file := _file(block["type"], block)) is not None:
                files.append(file)
            elif isinstance(block.get("text"), str):
                texts.append(text_of(block["text"]))
            else:
                texts.append(arguments_text(block))
        return "\n\n".join(filter(None, texts)), files
    return arguments_text(value), []


def _usage(value: object) -> tuple[int, int, int] | None:
    """(all input, output, cached part of the input)."""
    if not isinstance(value, dict):
        return None
    return (
        count_of(value.get("input_tokens")),
        count_of(value.get("output_tokens")),
        count_of(value.get("cached_input_tokens")),
    )
