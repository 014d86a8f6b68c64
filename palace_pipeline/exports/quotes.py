"""Transcripts whose user turns are quoted with `>` and whose answers stand below them.

The inner format of MemPalace, also written by hand: no roles, no times, no ids. Its own rule (three `>` lines make a
chat) takes prose with quotations for a chat and misses short chats, so this one looks at how the file begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.plaintext import document, fenced_lines, is_text_file, read_text, transcript, trim
from palace_pipeline.model import Conversation, Message

_CALLOUT = re.compile(r">\s*\[![\w-]+\]")
"""`> [!NOTE]`: a box of GitHub and Obsidian, never typed as a question."""
_ATTRIBUTION = re.compile(r"\s*(?:[—–―]|--\s)")
"""The line under a motto that names its author."""


def parse_quotes(text: str) -> list[Message] | None:
    """User and assistant turns of a `>` transcript, or None if the text is none.

    It is one if its first line that is not blank starts with `>`, and there are two or more user turns with text
    between them, or the answer stands directly under the first turn. A `>` line opens a turn at the start or after a
    blank line; under answer text it is a quotation, in a code fence it is code.
    """
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None or not lines[first].startswith(">") or _CALLOUT.match(lines[first]):
        return None
    turns = _turns(lines[first:])
    asked = sum(turn[0] == "user" and (at == 0 or turns[at - 1][0] != "user") for at, turn in enumerate(turns))
    if asked < 2 and not _answered_directly(turns):
        return None
    messages = [Message("", role, body) for role, content in turns if (body := trim(content))]
    return messages if any(message.role == "assistant" for message in messages) else None


def _turns(lines: list[str]) -> list[tuple[Literal["user", "assistant"], list[str]]]:
    """Turns in order; an answer of blank lines only is left out, so two `>` blocks with a gap are neighbours."""
    code = fenced_lines(lines)
    turns: list[tuple[Literal["user", "assistant"], list[str]]] = []
    quoting, after_blank = False, True
    answer: list[str] = []
    for number, line in enumerate(lines):
        marked = line.startswith(">") and not code[number]
        if marked and (quoting or (after_blank and not _CALLOUT.match(line))):
            if not quoting:
                if any(part.strip() for part in answer):
                    turns.append(("assistant", answer))
                answer = []
                turns.append(("user", []))
            turns[-1][1].append(line[2:] if line[1:2] == " " else line[1:])
            quoting = True
        else:
            answer.append(line)
            quoting = False
        after_blank = not line.strip()
    if any(part.strip() for part in answer):
        turns.append(("assistant", answer))
    return turns


def _answered_directly(turns: list[tuple[Literal["user", "assistant"], list[str]]]) -> bool:
    """The line right under the first turn is answer text (and not the author of a motto)."""
    if len(turns) < 2 or turns[1][0] != "assistant":
        return False
    under = turns[1][1][0]
    return bool(under.strip()) and not _ATTRIBUTION.match(under)


class QuoteReader:
    """Reads `>` transcripts: one conversation per file."""

    format = "quote-transcript"
    provider = "transcript"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "rules for text without structure; inner format of MemPalace",
        "high",
        name="`>` transcript",
        where="written by hand or by other tools: `> question`, answer below",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        return head.shape == "text" and is_text_file(head.path) and parse_quotes(head.text) is not None

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        text = read_text(member, report)
        if text is None:
            return
        turns = parse_quotes(text)
        # The beginning may look like a transcript where the whole does not: then a code fence was cut.
        yield document(text, member.path) if turns is None else transcript(turns, member.path)


READER = QuoteReader()
