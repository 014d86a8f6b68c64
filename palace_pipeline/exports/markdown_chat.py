"""Transcripts in Markdown or plain text whose lines name the speaker: role headings, bold names, names with times.

The shapes are data (`chat_shapes.SHAPES`); here is the one engine for all of them. A file has one shape, never a mix:
of the shapes whose lines make a chat by their own rule, the one that begins first. Lines between two speaker lines
belong to the message above them. What stands before the first speaker is kept as a row of role system.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.chat_shapes import SHAPES, Shape
from palace_pipeline.exports.plaintext import document, fenced_lines, is_text_file, read_text, transcript, trim
from palace_pipeline.exports.speakers import clean_name, is_name, role_of
from palace_pipeline.exports.written_times import Written, day_heading, month_first, read_when
from palace_pipeline.model import Conversation, Message, Role

_PREFIX = 300
"""Characters at the start of a line in which a speaker can be named; keeps every match short."""
_RULE = re.compile(r"(?:(?:- ?){3,}|(?:\* ?){3,}|(?:_ ?){3,})")
_TIME = re.compile(r"\d[:：/.年-]\d")
"""Every date and every time has this somewhere; most lines of a note have not."""
_STARTS = {character for shape in SHAPES for character in shape.starts}


def _by_start(*, timed: bool) -> dict[str, tuple[Shape, ...]]:
    """Shapes that a line can have by its first character (`""`: any other)."""
    shapes = [shape for shape in SHAPES if timed or shape.rule not in ("timed", "repeated")]
    return {
        start: tuple(shape for shape in shapes if not shape.starts or (start and start in shape.starts))
        for start in ("", *_STARTS)
    }


_BY_START = {timed: _by_start(timed=timed) for timed in (True, False)}


@dataclass(frozen=True, slots=True)
class Anchor:
    """A line that names a speaker: its number, the name, what it says of the time, and the text behind."""

    line: int
    name: str
    when: Written | None
    text: str
    decorated: bool


@dataclass(slots=True)
class Chat:
    """A transcript as its text shows it. `day`: of the first dated line, for files whose lines have dates only."""

    messages: list[Message]
    title: str | None
    day: date | None = None
    empty: int = 0
    """Speaker lines without any text."""


@dataclass(slots=True)
class _Page:
    lines: list[str]
    fenced: bytearray
    days: dict[int, date] = field(default_factory=dict[int, date])
    first: int = 0
    """The first line that is neither blank nor a heading, behind the front matter."""


def parse_chat(text: str) -> Chat | None:
    """The messages of a transcript with speakers, or None if no shape makes the text one."""
    page = _page(text)
    found: dict[str, list[Anchor]] = {}
    for number, line in enumerate(page.lines):
        if line and not page.fenced[number] and not line[0].isspace():
            hit = match_line(line, number)
            if hit is not None:
                found.setdefault(hit[0].name, []).append(hit[1])
    candidates: list[tuple[int, Shape, list[Anchor]]] = []
    for shape in SHAPES:
        if anchors := found.get(shape.name):
            kept = _accepted(shape, anchors, page)
            if kept and _mostly_said(kept, page):
                candidates.append((kept[0].line, shape, kept))
    if not candidates:
        return None
    _, shape, anchors = min(candidates, key=lambda candidate: candidate[0])
    return _chat(page, shape, anchors)


def _page(text: str) -> _Page:
    lines = text.split("\n")
    page = _Page(lines, fenced_lines(lines))
    page.days = {n: day for n, line in enumerate(lines) if not page.fenced[n] and (day := day_heading(line))}
    front = next((n for n in range(1, len(lines)) if lines[n] == "---"), 0) if lines[0] == "---" else 0
    content = (n for n in range(front + bool(front), len(lines)) if lines[n].strip() and not lines[n].startswith("#"))
    page.first = next(content, len(lines))
    return page


def match_line(line: str, number: int = 0) -> tuple[Shape, Anchor] | None:
    """The first shape that the line has, with what it says; None for a line of text."""
    if not line:
        return None
    by_start = _BY_START[_TIME.search(line, 0, _PREFIX) is not None]
    shapes = by_start.get(line[0])
    if shapes is None:
        if line.find(":", 0, _PREFIX) < 0 and line.find("：", 0, _PREFIX) < 0:
            return None
        shapes = by_start[""]
    for shape in shapes:
        if shape.whole_line and len(line) > _PREFIX:
            continue
        match = shape.line.match(line, 0, _PREFIX)
        if match is None:
            continue
        raw = match["name"].strip()
        name = clean_name(raw)
        when: Written | None = None
        written: str | None = match.groupdict().get("when")
        if written is not None and (when := read_when(written)) is None:
            continue
        if not is_name(name) or (shape.rule in ("roles", "alternating") and role_of(name) is None):
            continue
        text = "" if shape.whole_line else line[match.end() :]
        return shape, Anchor(number, name.rstrip(":： "), when, text, name != raw)
    return None


# --- which lines make a chat ------------------------------------------------------------------------------------------


def _accepted(shape: Shape, anchors: list[Anchor], page: _Page) -> list[Anchor] | None:
    """The anchors that are speakers by the rule of their shape, or None if the file is no chat of this shape."""
    roles = {anchor.name: role_of(anchor.name) for anchor in anchors}
    both = {"user", "assistant"} <= set(roles.values())
    if shape.rule == "roles":
        return anchors if both else None
    if shape.rule == "alternating":
        spoken = [anchor for anchor in anchors if roles[anchor.name] != "system"]
        repeats = len({roles[anchor.name] for anchor in spoken}) < len(spoken) if both else False
        return spoken if repeats and _starts(spoken, page) else None
    if shape.rule == "labels":
        if both:
            return [anchor for anchor in anchors if roles[anchor.name] in ("user", "assistant")]
        counts = Counter(anchor.name for anchor in anchors)
        speakers = {name for name, count in counts.items() if count > 1}
        return [anchor for anchor in anchors if anchor.name in speakers] if len(speakers) > 1 else None
    full = all(a.when is not None and a.when.numbers is not None and a.when.clock is not None for a in anchors)
    if full and shape.rule == "timed":
        return anchors if len(anchors) > 1 or _starts(anchors, page) else None
    repeated = len({anchor.name for anchor in anchors}) < len(anchors)
    known = any(anchor.decorated or roles[anchor.name] is not None for anchor in anchors)
    return anchors if len(anchors) > 1 and (repeated or known) else None


def _starts(anchors: Sequence[Anchor], page: _Page) -> bool:
    return anchors[0].line <= page.first


def _mostly_said(anchors: Sequence[Anchor], page: _Page) -> bool:
    """At least half of the speaker lines have a text behind or below: a table of dates and names is no chat."""
    ends = [*(anchor.line for anchor in anchors[1:]), len(page.lines)]
    said = 0
    for anchor, end in zip(anchors, ends, strict=True):
        said += bool(anchor.text.strip()) or any(page.lines[n].strip() for n in range(anchor.line + 1, end))
    return said * 2 >= len(anchors)


# --- from lines to messages -------------------------------------------------------------------------------------------


def _chat(page: _Page, shape: Shape, anchors: list[Anchor]) -> Chat | None:
    times = [anchor.when for anchor in anchors if anchor.when is not None]
    order = month_first(times)
    days = page.days if any(when.numbers is None for when in times) else {}
    roles = _roles(anchors)
    assistants = {anchor.name for anchor in anchors if roles.get(anchor.name) == "assistant"}
    ends = [*(anchor.line for anchor in anchors[1:]), len(page.lines)]
    ruled = _ruled(page, anchors)
    title, preamble = _before(page, anchors[0].line, days, ruled)
    chat = Chat([], title, next((day for when in times if (day := when.date(order))), None))
    if preamble:
        chat.messages.append(Message("", "system", preamble, "system"))
    day = next((days[n] for n in range(anchors[0].line - 1, -1, -1) if n in days), None)
    for anchor, end in zip(anchors, ends, strict=True):
        message = Message("", roles.get(anchor.name, "user"), _body(page, shape, anchor, end, days, ruled))
        if anchor.name not in roles or (len(assistants) > 1 and anchor.name in assistants):
            message.speaker = anchor.name
        if anchor.when is not None:
            message.created_at, message.local_time = anchor.when.resolve(order, day)
        day = next((days[n] for n in range(end - 1, anchor.line, -1) if n in days), day)
        if message.text:
            chat.messages.append(message)
        else:
            chat.empty += 1
    return chat if any(message.visible for message in chat.messages) else None


def _roles(anchors: Sequence[Anchor]) -> dict[str, Role]:
    """Role of each name that is one; none at all where only one side has such a name (then all are people)."""
    roles: dict[str, Role] = {a.name: role for a in anchors if (role := role_of(a.name)) is not None}
    return roles if {"user", "assistant"} <= set(roles.values()) else {}


def _ruled(page: _Page, anchors: Sequence[Anchor]) -> bool:
    """Whether a line `---` stands before every speaker but the first: then it parts the turns and is no text."""
    return len(anchors) > 1 and all(_last_line(page, anchor.line) == "rule" for anchor in anchors[1:])


def _last_line(page: _Page, before: int) -> Literal["rule", "text"]:
    number = before - 1
    while number >= 0 and (number in page.days or not page.lines[number].strip()):
        number -= 1
    return "rule" if number >= 0 and _is_rule(page.lines[number]) else "text"


def _body(page: _Page, shape: Shape, anchor: Anchor, end: int, days: dict[int, date], ruled: bool) -> str:
    below = [page.lines[number] for number in range(anchor.line + 1, end) if number not in days]
    if shape.bullet:
        below = [line[2:] if line.startswith("  ") else line.removeprefix("\t") for line in below]
    if ruled:
        while below and not below[-1].strip():
            below.pop()
        if below and _is_rule(below[-1]):
            below.pop()
    return trim([anchor.text, *below])


def _before(page: _Page, end: int, days: dict[int, date], ruled: bool) -> tuple[str | None, str]:
    """(title, rest) of what stands before the first speaker; the title is the first `# ` heading that is no date."""
    title: str | None = None
    rest: list[str] = []
    for number, line in enumerate(page.lines[:end]):
        if number in days:
            continue
        if title is None and line.startswith("# ") and not page.fenced[number] and number not in page.days:
            title = line[2:].strip().rstrip("#").strip() or None
            if title is not None:
                continue
        rest.append(line)
    separators = ruled and all(_is_rule(line) for line in rest if line.strip())
    return title, "" if separators else trim(rest)


def _is_rule(line: str) -> bool:
    return len(line) < _PREFIX and _RULE.fullmatch(line.strip()) is not None


# --- the reader -------------------------------------------------------------------------------------------------------


def chat_conversation(chat: Chat, path: str, report: Report) -> Conversation:
    """The conversation of a parsed transcript; counts the speaker lines that had no text."""
    if chat.empty:
        report.skip("empty message", expected=True, count=chat.empty)
    conversation = transcript(chat.messages, path, chat.title)
    if chat.day is not None and not any(m.created_at or m.local_time for m in chat.messages):
        conversation.local_created = f"{chat.day.isoformat()}T00:00:00"
    return conversation


class MarkdownChatReader:
    """Reads transcripts with speakers: one conversation per file."""

    format = "markdown-chat"
    provider = "transcript"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "rules for text without structure; line shapes of public parsers",
        "medium",
        name="Markdown with speakers",
        where="written by hand or by other tools: role headings, bold names, dated names",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        return head.shape == "text" and is_text_file(head.path) and parse_chat(head.text) is not None

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        text = read_text(member, report)
        if text is None:
            return
        chat = parse_chat(text)
        # The beginning may look like a chat where the whole does not: then a code fence was cut.
        yield document(text, member.path) if chat is None else chat_conversation(chat, member.path, report)


READER = MarkdownChatReader()
