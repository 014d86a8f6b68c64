"""A session as values, and as the Markdown page that people read and agents write.

    ---
    id: "20261130-0915-1a2b3c4"      the schema: docs/workspace.md; properties of others stay
    ts: 2026-11-30T09:15:00+08:00
    …
    ---

    # Title

    ## 用户输入                       the five sections, always all of them

    ### 2026-11-30T09:15:02+08:00 · who      an entry that a program added; text without such a line is a person's

    text as it was said

Text stands on the page as it is. A line of it that reads like a heading of ours gets a backslash (Markdown shows the same),
which the reader takes away: so a text can neither end nor begin an entry, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from palace_pipeline.transcripts import front_matter
from palace_pipeline.transcripts.page_tail import closing_lines
from palace_pipeline.workspace.sections import EXACT, NAMES, SECTIONS, Language, Section

Status = Literal["open", "closed", "conflict"]
STATUSES: tuple[Status, ...] = get_args(Status)
KEYS = ("id", "ts", "role", "parent", "tags", "model", "turns", "tokens_in", "tokens_out", "status", "summary")
MOST_TAGS = 5
SUMMARY_LENGTH = 80
FRONT = "front"
"""Message id of the row that carries the front matter of a live session in the archive."""
PART = "part"
"""The role of a page that holds an earlier part of a session which grew too long; its `parent` is that session."""

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?"
_OURS = rf"(?:## (?:{'|'.join(map(re.escape, EXACT))})|### {_TIME}(?: · .*)?)[ \t]*"
# With the line end before them: a pattern that begins with plain characters is searched for three times as fast as `^`.
ENTRY_LINE = re.compile(rf"\n### ({_TIME})(?: · ([^\n]*)|[ \t]*)(?=\n|\Z)")
SECTION_LINE = re.compile(rf"\n## ({'|'.join(map(re.escape, EXACT))})[ \t]*(?=\n|\Z)")
_LIKE_OURS = re.compile(rf"^(\\*){_OURS}$", re.MULTILINE)
_ESCAPED = re.compile(rf"^\\(\\*{_OURS})$", re.MULTILINE)
_BLANK_START = re.compile(r"\s*\n")
_SENTENCE = re.compile(r"[^\n]+?(?:[。！？!?]+[”」』\"’）)]*|\.(?=\s|$)|(?=\n|$))")
_MARKUP = re.compile(r"[ \t]*(?:[-*+>]|\d+[.)]|#{1,6})[ \t]+(?:\[[ xX]\][ \t]+)?")
_TODO = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[([ xX])\][ \t]+\S", re.MULTILINE)


@dataclass(slots=True, frozen=True)
class Entry:
    """What was put into a section at once. `at` (with its offset) and `who` are None where a person wrote it by hand."""

    text: str
    at: datetime | None = None
    who: str | None = None


def _no_entries() -> dict[Section, list[Entry]]:
    return {section: [] for section in SECTIONS}


@dataclass(slots=True)
class Session:
    """A session page. `ts`: its begin, with its offset (without one if only the file name says it, to the minute).

    `title`: as the heading says it. `intro`: text between the heading and the first section. `extra`: lines of YAML of
    properties that are not the schema's. `tokens_*`: counts, None if unknown. `problems`: what the reader had to guess,
    in words without content; `damaged`: it is torn or in conflict, and may say less than it did. Neither is on the page.
    """

    id: str
    ts: datetime | None
    title: str = ""
    role: str = "assistant"
    parent: str | None = None
    tags: tuple[str, ...] = ()
    model: str | None = None
    turns: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    status: Status = "open"
    summary: str = ""
    language: Language = "zh"
    intro: str = ""
    sections: dict[Section, list[Entry]] = field(default_factory=_no_entries)
    extra: str = ""
    problems: tuple[str, ...] = ()
    damaged: bool = field(default=False, compare=False)

    def entries(self) -> Iterable[tuple[Section, Entry]]:
        """All entries in the order of the page."""
        return ((section, entry) for section in SECTIONS for entry in self.sections[section])


def render(session: Session) -> str:
    """The page of a session; the same values give the same text. Line ends are LF."""
    values: dict[str, front_matter.Value] = {
        "id": session.id,
        "ts": session.ts,
        "role": session.role,
        "parent": session.parent,
        "tags": session.tags,
        "model": session.model,
        "turns": session.turns,
        "tokens_in": session.tokens_in,
        "tokens_out": session.tokens_out,
        "status": session.status,
        "summary": session.summary,
    }
    out = ["---\n", front_matter.dump(values), session.extra, "---\n"]
    if session.title:
        out += ("\n# ", session.title, "\n")
    if session.intro:
        out += ("\n", escaped(session.intro), "\n")
    for section, name in NAMES[session.language].items():
        out += ("\n## ", name, "\n")
        for entry in session.sections[section]:
            if entry.at is not None:
                out += ("\n### ", heading(entry.at), f" · {entry.who}" if entry.who else "", "\n")
            if entry.text:
                out += ("\n", escaped(entry.text), "\n")
    return "".join(out)


def heading(at: datetime) -> str:
    """An instant as the heading of an entry has it: with its offset, seconds at least."""
    return at.isoformat(timespec="seconds" if not at.microsecond else "microseconds")


def escaped(text: str) -> str:
    """Text for the page: what reads like a heading of ours gets one more backslash."""
    return _LIKE_OURS.sub(r"\\\g<0>", text) if "## " in text else text


def unescaped(text: str) -> str:
    """The inverse of `escaped`."""
    return _ESCAPED.sub(r"\1", text) if "\\#" in text or "\\\\" in text else text


def trimmed(text: str) -> str:
    """Text without blank lines at its ends; the indentation of its first line stays."""
    text = text.rstrip()
    start = _BLANK_START.match(text)
    return text[start.end() :] if start else text


def as_entry(text: str, at: datetime | None = None, who: str | None = None) -> Entry:
    """An entry of a text that a program hands in: clean, on one line where it is a name, and with every fence closed,
    so that it cannot swallow the sections behind it in a viewer."""
    from palace_pipeline.exports.text import without_controls

    text = trimmed(without_controls(text))
    return Entry("\n".join([text, *closing_lines(text)]), at, one_line(who or "", 80) or None)


def one_line(text: str, length: int) -> str:
    """Text on one line, blanks squeezed, at most `length` characters."""
    from palace_pipeline.exports.text import without_controls

    line = " ".join(without_controls(text[: length * 8]).split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def first_sentence(text: str, length: int = SUMMARY_LENGTH) -> str:
    """The first sentence of a text in any script, without list marks and bold, at most `length` characters."""
    for line in text[: length * 20].split("\n"):
        start = _MARKUP.match(line)
        plain = (line[start.end() :] if start else line).replace("**", "").replace("`", "").strip()
        if plain and (match := _SENTENCE.match(plain)):
            return one_line(match[0], length)
    return ""


def summary_of(session: Session) -> str:
    """The summary the writer gave, else the first sentence of the conclusion: of the last one, where it was closed twice."""
    return session.summary or next(reversed(_conclusions(session)), "")


def given_summary(session: Session) -> str:
    """The summary the writer gave; '' if it is one that Palace made of a conclusion."""
    return "" if session.summary in _conclusions(session) else session.summary


def _conclusions(session: Session) -> list[str]:
    """First sentences of the conclusions."""
    return [found for entry in session.sections["conclusion"] if (found := first_sentence(entry.text))]


def todos(session: Session) -> tuple[int, int]:
    """(open, done) to-dos: list items with a box in any section."""
    boxes = [box for _, entry in session.entries() for box in _TODO.findall(entry.text)]
    return boxes.count(" "), len(boxes) - boxes.count(" ")


def in_time(session: Session) -> list[tuple[Section, Entry]]:
    """All entries as they followed in time; one without a time stands behind what stands before it on the page."""
    last = _seconds(session.ts)
    found: list[tuple[float, Section, Entry]] = []
    for section, entry in session.entries():
        at = _seconds(entry.at)
        last = last if at is None else at
        found.append((last or 0.0, section, entry))
    # The sort keeps what is equal in the order of the page.
    return [(section, entry) for _, section, entry in sorted(found, key=lambda one: one[0])]


def _seconds(time: datetime | None) -> float | None:
    """Seconds since 1970 of a time with an offset; a time without one is no instant."""
    try:
        return time.timestamp() if time is not None and time.tzinfo is not None else None
    except OverflowError:
        return None  # an hour from the end of the calendar


def body_size(session: Session) -> int:
    """Bytes of what was said, without headings and front matter."""
    return sum(len(entry.text.encode("utf-8", "replace")) for _, entry in session.entries())


def status_after(before: Status, *, close: bool, more: bool) -> Status:
    """The status after an entry. A conflict stays one: somebody has to look."""
    if before == "conflict":
        return before
    return "closed" if close else "open" if more else before


def added(known: int | None, more: int) -> int | None:
    """Tokens with more of them; None is unknown."""
    return (known or 0) + more if more else known
