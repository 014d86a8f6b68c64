"""Google Takeout, My Activity > Gemini Apps, as HTML (what Takeout gives unless JSON is chosen).

One `div.outer-cell` per activity, newest first: a `header-cell` with the product, a `content-cell` with
`Prompted&nbsp;…<br>date<br>answer`, one with the products. Another layout has the verb and the date in the header. The file
is read a cell at a time. Facts: https://github.com/kenn-io/agentsview (Gemini Apps importer), parsers of real exports
in English, German and Portuguese; checked 2026-11-29. Conversations: see `gemini_activity`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.gemini_activity import (
    PROVIDER,
    Activity,
    add_file,
    conversations_of,
    file_named,
    is_gemini,
    is_other_kind,
    prompt_of,
)
from palace_pipeline.exports.gemini_takeout import take_links
from palace_pipeline.exports.html_text import BLOCKS, Token, attributes_of, plain_text, render, tokens
from palace_pipeline.exports.localized_times import WrittenTime, read_localized_time
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.exports.text import clean_text
from palace_pipeline.model import Conversation

MAX_CELL_CHARS = 64 * 1024 * 1024
"""A longer activity is counted and passed over."""

_PIECE = 1024 * 1024
_OUTER = re.compile(r"<div\b[^<>]{0,400}?\bouter-cell\b", re.IGNORECASE)
_OVERLAP = 500
_CLOCK = re.compile(r"\d{1,2}\s?[:.時时]\s?\d{2}|\d{1,2} ?h ?\d{2}")
_LONGEST_TIME = 90
_LONGEST_COUNT = 40


@dataclass(slots=True)
class _Line:
    """Tokens up to a line break or the border of a block. `after`: where the next line begins."""

    tokens: list[Token]
    after: int

    @property
    def text(self) -> str:
        return clean_text("".join(text for kind, text, _ in self.tokens if kind == "text")).strip()


@dataclass(slots=True)
class _Cells:
    """The tokens of the cells of one activity."""

    header: list[Token] = field(default_factory=list[Token])
    body: list[Token] = field(default_factory=list[Token])
    side: list[Token] = field(default_factory=list[Token])


class GeminiTakeoutHtmlReader:
    """Reader of `MyActivity.html` (the name depends on the account's language)."""

    format = "gemini-takeout-html"
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/kenn-io/agentsview/pull/1330 and parsers of real exports",
        "medium",
        name="Gemini (Takeout, HTML)",
        where="takeout.google.com → My Activity → only Gemini Apps: `My Activity/Gemini Apps/MyActivity.html`",
        since="2023",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """True for cells of My Activity; those of other products are taken too, and named as such.

        The style sheet before them may be longer than what detection reads: then it speaks for Gemini's own folder.
        """
        if head.shape != "text" or not head.text.lstrip("\ufeff \t\r\n").startswith("<"):
            return False
        if _OUTER.search(head.text) is None:
            return ".mdl-grid" in head.text and is_gemini([head.path])
        return "header-cell" in head.text or "content-cell" in head.text

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The conversations of the file, in its order of days."""
        undated: list[int] = []
        yield from conversations_of(_activities(member, report, undated), report)
        if undated:
            reason = "date not understood, activity kept without a time"
            report.skip(reason, f"activity {undated[0]} and others", expected=False, count=len(undated))


READER = GeminiTakeoutHtmlReader()


def _activities(member: Member, report: Report, undated: list[int]) -> Iterator[tuple[str, Activity]]:
    number = others = 0
    try:
        with member.open() as stream:
            for number, html in enumerate(_outer_cells(_texts(stream)), 1):
                place = f"activity {number}"
                if html is None:
                    report.skip("too large to be read", place, expected=False)
                    continue
                for cells in _cells_of(html):
                    product = next((line.text for line in _lines(cells.header) if line.text), "")
                    if not is_gemini([product] if product else [plain_text(cells.side)]):
                        others += 1
                        continue
                    activity, when = _activity(cells, product)
                    if when is None:
                        undated.append(number)
                    elif when.unknown_zone:
                        report.unknown[f"zone:{when.unknown_zone}"] += 1
                    yield place, activity
    except MemberError as error:
        report.skip(str(error), f"after activity {number}", expected=False, unit="file")
    if others:
        report.skip("activity of another product", expected=True, count=others)


def _texts(stream: BinaryIO) -> Iterator[str]:
    """The file as text, in pieces; UTF-8 unless a byte order mark says UTF-16."""
    piece = stream.read(_PIECE)
    wide = piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    decoder = codecs.getincrementaldecoder("utf-16" if wide else "utf-8-sig")("replace")
    while piece:
        yield decoder.decode(piece)
        piece = stream.read(_PIECE)
    yield decoder.decode(b"", final=True)


def _outer_cells(texts: Iterator[str]) -> Iterator[str | None]:
    """The HTML of each activity, from its `div` to that of the next; None for one that is too large."""
    parts: list[str] = []
    size, inside, tail = 0, False, ""

    def ended() -> str | None:
        return "".join(parts) if size <= MAX_CELL_CHARS else None

    for piece in texts:
        text = tail + piece
        at = 0
        for match in _OUTER.finditer(text):
            if inside and (parts or match.start() > at):
                parts.append(text[at : match.start()])
                size += match.start() - at
                yield ended()
            parts, size, inside, at = [], 0, True, match.start()
        # A tag may be cut by the end of a piece: what could hold its beginning is looked at again.
        keep = max(at, len(text) - _OVERLAP)
        if inside and keep > at:
            size += keep - at
            if size <= MAX_CELL_CHARS:
                parts.append(text[at:keep])
            else:
                parts = [""]
        tail = text[keep:]
    if inside:
        parts.append(tail)
        yield ended()


def _cells_of(html: str) -> Iterator[_Cells]:
    """The cells of an activity; of two, if the mark between them is damaged: each begins with a header or a body."""
    found = _Cells()
    at: list[Token] | None = None
    depth = 0
    ending = False
    for token in tokens(html):
        kind, name, attributes = token
        if name == "div" and kind != "text":
            if at is None:
                place = _place(attributes) if kind == "open" else None
                if (place == "header" and found.header) or (place in ("header", "body") and ending):
                    yield found
                    found, ending = _Cells(), False
                ending = ending or place == "side"
                at = None if place is None else getattr(found, place)
                depth = 1
                continue
            depth += 1 if kind == "open" else -1
            if depth == 0:
                at = None
                continue
        if at is not None:
            at.append(token)
    yield found


def _place(attributes: str) -> Literal["header", "body", "side"] | None:
    classes = attributes_of(attributes).get("class", "").lower()
    if "header-cell" in classes:
        return "header"
    if "content-cell" not in classes:
        return None
    return "side" if "caption" in classes or "text-right" in classes or "--2-col" in classes else "body"


def _lines(found: Sequence[Token], start: int = 0) -> Iterator[_Line]:
    line: list[Token] = []
    for number in range(start, len(found)):
        kind, name, _ = found[number]
        if kind != "text" and (name in BLOCKS or (name == "br" and kind == "open")):
            yield _Line(line, number + 1)
            line = []
        else:
            line.append(found[number])
    yield _Line(line, len(found))


def _time_of(line: _Line) -> WrittenTime | None:
    if sum(len(text) for kind, text, _ in line.tokens if kind == "text") > 4 * _LONGEST_TIME:
        return None
    return read_localized_time(line.text)


def _activity(cells: _Cells, product: str) -> tuple[Activity, WrittenTime | None]:
    """The activity and its time, which is None if no line is one."""
    found = Activity("", product=product)
    header = [line for line in _lines(cells.header) if line.text][1:]
    when = next((time for line in header if (time := _time_of(line)) is not None), None)
    label = "\n".join(line.text for line in header if _time_of(line) is None)
    if when is not None:
        _take_split(cells.body, label, found)
    else:
        when = _take_body(cells.body, found)
        if label:
            found.notes.append(label)
    _take_side(cells.side, found)
    if when is not None:
        found.created_at, found.local_time = when.instant, when.local
    return found, when


def _take_body(body: list[Token], found: Activity) -> WrittenTime | None:
    """A body that holds title, date and answer one below the other."""
    above: list[_Line] = []
    unread: int | None = None
    for line in _lines(body):
        if (when := _time_of(line)) is not None:
            _take_title(above, found)
            _take_answer(body[line.after :], found)
            return when
        said = [one for one in above if one.text]
        if unread is None and said and len(line.text) <= _LONGEST_TIME and _CLOCK.search(line.text):
            unread = len(above)
        above.append(line)
    # No date that can be read: the first line that has a clock in it is taken for one, else the title is one line.
    if unread is None:
        first = next((number for number, line in enumerate(above) if line.text), len(above) - 1)
        _take_title(above[: first + 1], found)
        _take_answer(body[above[first].after :], found)
    else:
        _take_title(above[:unread], found)
        found.notes.append(above[unread].text)
        _take_answer(body[above[unread].after :], found)
    return None


def _take_split(body: list[Token], label: str, found: Activity) -> None:
    """A body without title and date, which stand in the header: the answer, or the prompt's line and the answer."""
    prompt, known = prompt_of(label)
    first = next((line for line in _lines(body) if line.text), None)
    if first is None or (known and prompt) or is_other_kind(Activity(label, product=found.product)):
        found.title = label
        _take_answer(body, found)
    else:
        # The verb in front, as in the other layout: a no-break space ends it, so that verbs of any language do.
        typed = plain_text(first.tokens)
        found.title = f"{label.rstrip()}\u00a0{typed}" if label else typed
        _take_answer(body[first.after :], found)


def _take_title(lines: list[_Line], found: Activity) -> None:
    """The lines above the date: what was typed, then notes of the product and the files that were sent."""
    kept: list[str] = []
    before_files: int | None = None
    for line in lines:
        anchors = [attributes for kind, name, attributes in line.tokens if kind == "open" and name == "a"]
        links = [attributes_of(attributes).get("href", "") for attributes in anchors]
        if len(links) == 1 and kept and line.text.lstrip("-–• \u00a0") and _is_all_link(line):
            if (file := file_named(links[0])) is not None:
                before_files = len(kept) if before_files is None else before_files
                add_file(found.files, file)
                continue
            if links[0].startswith("https://gemini.google.com/"):
                found.addresses.append(links[0])
                found.notes.append(line.text)
                continue
        text = "".join(text for kind, text, _ in line.tokens if kind == "text")
        if text.strip() or kept:
            kept.append(text.rstrip())
    if before_files is not None:
        count = before_files - 1
        # `Attached 1 file.`, in any language.
        if 0 < count < len(kept) and len(kept[count]) <= _LONGEST_COUNT and any(c.isdecimal() for c in kept[count]):
            del kept[count]
    found.title = "\n".join(kept).strip()


def _is_all_link(line: _Line) -> bool:
    """Whether nothing but a dash stands outside the link of a line."""
    outside: list[str] = []
    within = False
    for kind, name, _ in line.tokens:
        if name == "a" and kind != "text":
            within = kind == "open"
        elif kind == "text" and not within:
            outside.append(name)
    return not "".join(outside).strip("-–• \t\r\n\u00a0\u2003")


def _take_answer(found_tokens: list[Token], found: Activity) -> None:
    shown = render(found_tokens)
    found.answer = shown.text
    take_links(shown.links, shown.images, found)


def _take_side(side: list[Token], found: Activity) -> None:
    """Links of the cells below: the chat an activity belongs to, sound and pictures of it."""
    for kind, name, attributes in side:
        if kind == "open" and name in ("a", "img"):
            values = attributes_of(attributes)
            address = values.get("href") or values.get("src") or ""
            found.addresses.append(address)
            add_file(found.files, file_named(address))
