"""A session's page -> values, whatever people, models and programs have done to it.

Nothing that is said on a page is lost, and what the reader accepts is written anew to a form that stays the same from
then on. It refuses a page only if nothing says which session it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath
from typing import NamedTuple

from palace_pipeline.exports.plaintext import fenced_lines
from palace_pipeline.exports.text import clean_text
from palace_pipeline.workspace import front, names
from palace_pipeline.workspace.sections import EXACT, SECTIONS, Language, Section, as_heading
from palace_pipeline.workspace.session import (
    ENTRY_LINE,
    SECTION_LINE,
    Entry,
    Session,
    Status,
    one_line,
    trimmed,
    unescaped,
)


class SessionError(ValueError):
    """The text is no session: neither its front matter nor its file name says an id. Quotes nothing."""


class _Head(NamedTuple):
    """A heading: where its line begins and ends, whose it is, and what stands behind the name."""

    start: int
    end: int
    section: Section
    language: Language
    explanation: str


def parse(text: str, path: PurePath | str | None = None, language: Language = "zh") -> Session:
    """The session of a page. `path`: where it lies, whose name says the id; `language`: of a page without a heading.

    Takes CRLF and a BOM. A page whose id or time had to be guessed has status conflict and says why in `problems`.
    Raises SessionError.
    """
    found, body = front.open_front(clean_text(text).lstrip("\ufeff"))
    by_name = names.id_of(path) if path is not None else None
    written = front.text_in(found.values.get("id"))
    session = by_name or (written if names.is_id(written) else None)
    if session is None:
        raise SessionError("no session: neither the file name nor the front matter says an id")
    status = front.status_in(found)
    if by_name and written != by_name:
        found.problems.append("the id is missing; it is that of the file name" if not written else _OTHER_ID)
    ts = front.time_in(found.values.get("ts"))
    if ts is None:
        found.problems.append("the time is missing; it is that of the id, to the minute and without a zone")
        ts = names.time_of(session)
    body = f"\n{body}"
    if _merge_failed(body):
        found.problems.append(_MERGED)
    if found.problems:
        status = _worse(status, found.problems)
    title, intro, heads = _heads(body)
    read = Session(
        session,
        ts,
        title=title,
        role=one_line(front.text_in(found.values.get("role")), 80) or "assistant",
        parent=front.parent_in(found),
        tags=front.short_tags(found),
        model=front.text_in(found.values.get("model")) or None,
        turns=front.number_in(found.values.get("turns")) or 0,
        tokens_in=front.number_in(found.values.get("tokens_in")),
        tokens_out=front.number_in(found.values.get("tokens_out")),
        status=status,
        summary=front.short_summary(found),
        language=heads[0].language if heads else language,
        intro=intro,
        extra=found.extra,
    )
    for section, raw in _texts(body, heads).items():
        read.sections[section] = list(_entries(raw))
    read.problems = tuple(found.problems)
    # A program that is ended while it writes leaves a page that ends in the middle of a line, without its last sections.
    cut = not body.endswith("\n") and len({head.section for head in heads}) < len(SECTIONS)
    read.damaged = cut or status == "conflict"
    return read


_MERGED = (
    "what two wrote stands on it with the marks of Git (<<<<<<<, =======, >>>>>>>); keep what is right, take them out"
)
_OTHER_ID = "the id is another one than that of the file name, which counts"


def _worse(status: Status, problems: list[str]) -> Status:
    """Conflict if which session it is, when it was or what its properties are had to be guessed."""
    guessed = any("missing" in said or "torn" in said or said in (_OTHER_ID, _MERGED) for said in problems)
    return "conflict" if guessed else status


_MERGE_MARK = re.compile(r"\n<{7} [^\n]*\n+(?=##)")
_MERGE = re.compile(r"\n<{7} [^\n]*(?=\n)(?=(?:\n(?![<>=]{7})[^\n]*)*\n={7}(?:\n(?![<>=]{7})[^\n]*)*\n>{7} )")


def _merge_failed(body: str) -> bool:
    """Whether Git has put its marks around entries, or into what a person wrote by hand. In the text of a program they stay
    text: it may be about such marks; and so they do in code."""
    if "\n<<<<<<< " not in body:
        return False
    ends = (match.end() - 1 for match in _MERGE_MARK.finditer(body))
    if any(ENTRY_LINE.match(body, end) or SECTION_LINE.match(body, end) for end in ends):
        return True
    return any(_by_hand(body[: match.start() + 1]) for match in _MERGE.finditer(body))


def _by_hand(before: str) -> bool:
    """Is what stands behind this beginning of a body a person's own text, and no code?"""
    section, entry = (
        max((match.end() for match in line.finditer(before)), default=0) for line in (SECTION_LINE, ENTRY_LINE)
    )
    return section >= entry and before.count("\n```", section) % 2 == 0


# --- the body --------------------------------------------------------------------------------------------------------


def _heads(body: str) -> tuple[str, str, list[_Head]]:
    """(title, text before the first section, headings of sections in order)."""
    heads = [_Head(m.start(), m.end(), *EXACT[m[1]], "") for m in SECTION_LINE.finditer(body)]
    missing = set(SECTIONS).difference(head.section for head in heads)
    if missing:
        heads = sorted([*heads, *_other_forms(body, missing)])
    title, intro = _title(trimmed(body[: heads[0].start] if heads else body))
    return title, unescaped(intro), heads


def _title(top: str) -> tuple[str, str]:
    """(title, the other text) of what stands before the first section. Text may stand before the heading, too: a person's,
    or a comment."""
    if "# " not in top:
        return "", top
    first, _, rest = top.partition("\n")
    if first.startswith("# ") and (title := first[2:].strip()):
        return title, trimmed(rest)
    lines = top.split("\n")
    for number, (line, inside) in enumerate(zip(lines, fenced_lines(lines), strict=True)):
        if line.startswith("# ") and not inside and (title := line[2:].strip()):
            around = (trimmed("\n".join(lines[:number])), trimmed("\n".join(lines[number + 1 :])))
            return title, "\n\n".join(filter(None, around))
    return "", top


def _other_forms(body: str, missing: set[Section]) -> Iterator[_Head]:
    """Headings of sections that have no exact one: those with `#`, else lines in bold; none inside a code fence."""
    lines = body.split("\n")
    if not any(line.lstrip(" ")[:1] in ("#", "＃", "*", "_") for line in lines):
        return
    fenced = fenced_lines(lines)
    hashes: list[_Head] = []
    bold: list[_Head] = []
    start = 0
    for line, inside in zip(lines, fenced, strict=True):
        end = start + len(line)
        if not inside and (found := as_heading(line)) is not None and found[0] in missing:
            kind = bold if line.lstrip(" ")[:1] in ("*", "_") else hashes
            kind.append(_Head(start, end, found[0], found[2], found[1]))
        start = end + 1
    with_hashes = {head.section for head in hashes}
    yield from hashes
    yield from (head for head in bold if head.section not in with_hashes)


def _texts(body: str, heads: list[_Head]) -> dict[Section, str]:
    """The raw text of each section; a heading that stands twice goes on where the first ended."""
    found: dict[Section, str] = {}
    for number, head in enumerate(heads):
        end = heads[number + 1].start if number + 1 < len(heads) else len(body)
        text = body[head.end : end]
        if head.explanation:
            text = f"\n{head.explanation}\n\n{trimmed(text)}"
        found[head.section] = f"{found[head.section].rstrip()}\n\n{trimmed(text)}" if head.section in found else text
    return found


def _entries(raw: str) -> Iterator[Entry]:
    """The entries of a section; a line like an entry's whose time does not exist is text."""
    at: datetime | None = None
    who: str | None = None
    start = 0
    for match in ENTRY_LINE.finditer(raw) if "### " in raw else ():
        try:
            time = datetime.fromisoformat(match[1])
        except ValueError:
            continue
        text = trimmed(unescaped(raw[start : match.start()]))
        if text or at is not None:
            yield Entry(text, at, who)
        at, who, start = time, (match[2] or "").strip() or None, match.end()
    text = trimmed(unescaped(raw[start:]))
    if text or at is not None:
        yield Entry(text, at, who)
