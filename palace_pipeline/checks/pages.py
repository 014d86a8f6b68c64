"""Pages read back to the rows that they were made of."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from palace_pipeline.checks.look import Part
from palace_pipeline.checks.result import Check, Found, Key, Problem
from palace_pipeline.model import KEY_SCHEMA, Conversation, Message
from palace_pipeline.transcripts.page import PageError, ParsedPage, parse
from palace_pipeline.transcripts.rows import conversations_of

_KEY = list(KEY_SCHEMA)
_SHOWN = ("message_id", "role", "kind", "speaker", "created_at", "local_time", "edited_at", "model", "tool_name")
"""Fields of a message that its page holds, beside the text."""


def look_at(part: Part, found: Found) -> None:
    heads = part.settled("pages").filter(~pl.col("gone") & pl.col("page").is_not_null() & (pl.col("page") != ""))
    if heads.is_empty():
        return
    pages = {(row[0], row[1]): row[2] for row in heads.select(*_KEY, "page").iter_rows()}
    wanted = heads.select(_KEY)
    clean = conversations_of(
        part.rows("clean/conversations").join(wanted, on=_KEY, how="semi", maintain_order="left"),
        part.rows("clean/messages").join(wanted, on=_KEY, how="semi"),
    )
    for head, conversation in clean:
        if head["status"] == "withheld":
            continue
        page = pages[conversation.key]
        found.counts["pages"] += 1
        path = part.look.home.path / page
        what = _wrong(path, conversation, found)
        if what is not None:
            found.note([_problem(what, head["day"], conversation.key, page, _mend(what, path))])


def _mend(what: str, path: Path) -> str | None:
    if what == "is not there":
        return "palace ingest"
    # What cannot be read may be somebody's words and is not written over: the page stands beside it, if it was due since.
    return "palace conflicts" if path.with_name(f"{path.stem}.conflict.md").exists() else None


def _problem(what: str, day: object, key: Key, page: str, mend: str | None) -> Problem:
    from datetime import date

    return Problem(
        f"the page {what}",
        Path(page).parent.as_posix(),
        day if isinstance(day, date) else None,
        key,
        mend,
    )


def _wrong(path: Path, conversation: Conversation, found: Found) -> str | None:
    try:
        data = path.read_bytes()
    except OSError as error:
        return "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
    try:
        parsed = parse(data.decode("utf-8"))
    except UnicodeDecodeError:
        return "is no UTF-8"
    except PageError as error:
        return f"cannot be read back: {error}"
    wrong = unlike(parsed, conversation)
    if wrong is not None and not parsed.intact:
        # Its owner changed it: that is theirs to do, and the next writing keeps their version beside it.
        found.counts["pages changed by their owner"] += 1
        return None
    return wrong


def unlike(parsed: ParsedPage, conversation: Conversation) -> str | None:
    """In what a page that was read back differs from its rows, in words; None if in nothing. Never quotes."""
    if parsed.problems:
        return f"cannot be read back whole: {parsed.problems[0]}"
    if parsed.conversation.key != conversation.key:
        return "is that of another conversation"
    if parsed.conversation.title != conversation.title:
        return "has another title than its conversation"
    rows = [m for m in conversation.messages if m.branch_active and m.hidden_reason is None]
    back = parsed.conversation.messages
    if len(rows) != len(back):
        return f"reads back to {len(back):,} messages instead of {len(rows):,}"
    for number, (row, read) in enumerate(zip(rows, back, strict=True), start=1):
        if (field := _field_unlike(row, read)) is not None:
            return f"reads back to another {field} of message {number:,}"
    return None


def _field_unlike(row: Message, read: Message) -> str | None:
    for name in _SHOWN:
        if getattr(row, name) != getattr(read, name):
            return name
    if row.text != read.text and _lines(row.text) != read.text:
        return "text"
    if len(row.citations) != len(read.citations):
        return "number of sources"
    if len(row.attachment) != len(read.attachment):
        return "number of files"
    return None


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


PAGES = Check(
    name="pages_read_back",
    asset="conversation_pages",
    stage="pages",
    description="Every page, read back from disk, gives the messages it was made of: roles, speakers, instants, text.",
    look_at=look_at,
)
