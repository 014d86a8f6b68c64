"""Notes: any other `.md` or `.txt` is a document, one message with the whole text, never cut into turns.

A file whose transcript begins after more text than detection looks at arrives here too, so the whole text is asked once
more whether it is a transcript.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.markdown_chat import chat_conversation, parse_chat
from palace_pipeline.exports.plaintext import document, is_text_file, read_text, transcript
from palace_pipeline.exports.quotes import parse_quotes
from palace_pipeline.model import Conversation


class NotesReader:
    """Reads notes; the last reader to ask, since every text file is one if it is nothing else."""

    format = "plain-notes"
    provider = "text"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "rules for text without structure",
        "high",
        name="plain note",
        where="any other `.md`, `.txt`",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        return head.shape in ("text", "empty") and is_text_file(head.path)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        text = read_text(member, report)
        if text is not None:
            yield read_as_text(text, member.path, report)


def read_as_text(text: str, path: str, report: Report) -> Conversation:
    """What a text is: a `>` transcript, a transcript with speakers, or (nearly always here) a document."""
    if (turns := parse_quotes(text)) is not None:
        return transcript(turns, path)
    if (chat := parse_chat(text)) is not None:
        return chat_conversation(chat, path, report)
    return document(text, path)


READER = NotesReader()
