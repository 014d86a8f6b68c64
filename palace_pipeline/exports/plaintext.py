"""What the readers of `.md` and `.txt` files share: the file as clean text, its code fences, and what it can become.

A text file is a transcript (provider `transcript`) if its lines say so, else a document (`markdown`, `text`). Whatever
it becomes, no text of it is lost: only the marks of a transcript (`>`, names, times, separators) are taken away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from palace_pipeline.exports.base import Member, Report
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.text import clean_text, decode
from palace_pipeline.model import Conversation, Message, short_hash

MAX_TEXT_BYTES = 64 * 1024 * 1024
"""A larger text file is no note and no transcript that somebody wrote; it is counted, not taken."""

MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdown", ".mkd")
TEXT_SUFFIXES = (".txt", ".text")
DOCUMENT_MESSAGE = "document"
"""Message id of a document's only message: an edited note is the same message with a new text, not a second one."""

_PACKED = (".gz", ".zst")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")


def suffix(path: str) -> str:
    """The file name's last ending in lower case, packing left out (`a/B.MD.gz` -> `.md`); `""` if it has none."""
    name = _unpacked(path)
    return name[name.rindex(".") :].lower() if "." in name[1:] else ""


def stem(path: str) -> str:
    """The file name without folders and ending: the name a person gave the chat."""
    name = _unpacked(path)
    return name[: len(name) - len(suffix(path))]


def _unpacked(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    for ending in _PACKED:
        name = name.removesuffix(ending)
    return name


def is_text_file(path: str) -> bool:
    """Whether the name is that of a note or transcript in text."""
    return suffix(path) in (*MARKDOWN_SUFFIXES, *TEXT_SUFFIXES)


def read_text(member: Member, report: Report) -> str | None:
    """The member's clean text (LF, no NUL), or None after counting why there is none."""
    with member.open() as stream:
        data = stream.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        report.skip("text file over 64 MiB", expected=False, unit="file")
        return None
    decoded = decode(data)
    if decoded is None:
        report.skip("not readable as text", expected=False, unit="file")
        return None
    text = clean_text(decoded).removeprefix("\ufeff")
    if not text.strip():
        report.skip("empty file", expected=True, unit="file")
        return None
    return text


def document(text: str, path: str) -> Conversation:
    """A note: one message with the whole text, no time. It is identified by its path, so that it can be edited."""
    provider = "markdown" if suffix(path) in MARKDOWN_SUFFIXES else "text"
    message = Message(DOCUMENT_MESSAGE, "user", text.strip())
    return Conversation(provider, short_hash(provider, path), [message], title=stem(path), source_file=path)


def transcript(messages: list[Message], path: str, title: str | None = None) -> Conversation:
    """A chat written as text; it has no id of its own, and its name is the file's where it has no heading."""
    visible = [message for message in messages if message.visible]
    conversation_id = derive_conversation_id("transcript", stem(path), visible)
    derive_ids(messages)
    return Conversation("transcript", conversation_id, messages, title=title or stem(path), source_file=path)


def trim(lines: Sequence[str]) -> str:
    """Lines as one text without blank lines at its ends; the indentation of the first line stays."""
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return "\n".join(lines[first:last]).rstrip()


def fenced_lines(lines: Sequence[str]) -> bytearray:
    """1 for each line that belongs to a code fence (its marks included), else 0; linear in the number of lines.

    A fence that nothing closes is none: an answer cut in the middle of its code must not swallow the turns after it.
    Unlike CommonMark any indentation is allowed, since fences in lists are indented as deep as the list.
    """
    inside = bytearray(len(lines))
    marks: list[tuple[int, str, int, bool, bool]] = []  # line, character, length, may open, may close
    for number, line in enumerate(lines):
        if "```" not in line and "~~~" not in line:
            continue
        match = _FENCE.match(line)
        if match is not None:
            mark, rest = match[1], match[2]
            marks.append((number, mark[0], len(mark), mark[0] == "~" or "`" not in rest, not rest.strip()))
    # longest[i]: the longest closing mark of each character from mark i on, so that a hopeless opener costs nothing.
    longest: list[dict[str, int]] = [{"`": 0, "~": 0}]
    for _, character, length, _, closes in reversed(marks):
        after = longest[-1]
        longest.append({**after, character: max(after[character], length)} if closes else after)
    longest.reverse()
    at = 0
    while at < len(marks):
        start, character, length, opens, _ = marks[at]
        at += 1
        if not opens or longest[at][character] < length:
            continue
        while not (marks[at][1] == character and marks[at][2] >= length and marks[at][4]):
            at += 1
        end = marks[at][0]
        inside[start : end + 1] = b"\x01" * (end + 1 - start)
        at += 1
    return inside
