"""WhatsApp: a chat exported as text, `_chat.txt` in a ZIP (iOS) or `WhatsApp Chat with X.txt` (Android), media beside it.

Every line that begins with date and clock is a message, or a notice of WhatsApp (no `name: `, or on iOS U+200E before
the text); all other lines go on with the message above. Times have no zone. What is said here of day and month, words
of many languages and file names stands in `whatsapp_lines` and `whatsapp_words`; checked 2026-11-29 against public
parsers (whatsapp-chat-parser, whatstk, chat-miner, their issues) and exports quoted there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.ids import derive_ids
from palace_pipeline.exports.plaintext import TEXT_SUFFIXES, read_text, stem, suffix
from palace_pipeline.exports.speakers import is_name
from palace_pipeline.exports.whatsapp_lines import LRM, MARKS, Line, calendar_of, read_line
from palace_pipeline.exports.whatsapp_text import Said, read_body, speaks_english
from palace_pipeline.exports.whatsapp_words import chat_name, is_whatsapp_name
from palace_pipeline.model import Conversation, Message, short_hash

_LOOKED_AT = 400
"""Lines of the beginning that detection reads."""
_NAME_ENDS = re.compile(r":(?: |$)")
_QUOTES = {'"': '"', "“": "”", "«": "»", "„": "“", "「": "」", "『": "』"}
_LONGEST_NAME = 120


@dataclass(slots=True)
class _Entry:
    """A line with a time and all lines below that belong to it. `speaker` is None for a notice."""

    line: Line
    speaker: str | None
    text: str
    more: list[str] = field(default_factory=list[str])

    @property
    def body(self) -> str:
        return "\n".join([self.text, *self.more])


class WhatsAppReader:
    """Reads one chat per file."""

    format = "whatsapp-txt"
    provider = "whatsapp"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "public parsers (whatsapp-chat-parser, whatstk, chat-miner) and their issues; Unicode CLDR date patterns",
        "high",
        name="WhatsApp chat",
        where="a chat's menu → More → Export chat: `_chat.txt` in a ZIP, or `WhatsApp Chat with X.txt`",
        since="2011",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        return head.shape == "text" and _is_chat(head.text, head.path)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """At most one conversation."""
        text = read_text(member, report)
        if text is None:
            return
        entries, before = _entries(text)
        if before:
            report.skip("text before the first message", expected=False, count=before)
        notices = Counter[str]()
        messages = _messages(entries, notices, report)
        for reason, count in notices.items():
            report.skip(reason, expected=True, count=count)
        title = _title(member.path, entries)
        if messages:
            yield _conversation(messages, title, member.path)
        elif not notices:
            report.skip("chat without messages", expected=True, unit="conversation")


READER = WhatsAppReader()


# --- is it one? -------------------------------------------------------------------------------------------------------


def _is_chat(text: str, path: str) -> bool:
    """Whether a text begins as WhatsApp's exports do.

    The first line must begin a message. One such line is enough in a file that is called as WhatsApp calls it; in any
    other there must be two, and names that come again or marks of WhatsApp: a dated note or a log is no chat.
    """
    named = any(is_whatsapp_name(part) for part in path.replace("!/", "/").split("/")[-2:])
    if suffix(path) not in TEXT_SUFFIXES and not (named and not _has_ending(path)):
        return False
    lines = text.lstrip(MARKS + " \r\n").split("\n")[:_LOOKED_AT]
    if not lines or read_line(lines[0]) is None:
        return False
    if named:
        return True
    heads = [(raw, line) for raw in lines if (line := read_line(raw)) is not None]
    said = [parted for _, line in heads if (parted := _parted(line.rest)) is not None]
    if len(heads) < 2 or not said or any(line.brackets and line.second is None for _, line in heads):
        return False
    if any(LRM in raw for raw, _ in heads) or any(read_body(text).placeholder for _, text in said):
        return True
    names = Counter(name for name, _ in said)
    if sum(is_name(name) for name in names) * 2 < len(names):
        return False
    return len(said) > 1 and (len(names) < len(said) or len(said) == 2)


def _has_ending(path: str) -> bool:
    ending = suffix(path)
    return 1 < len(ending) <= 6 and ending[1:].isalnum() and not ending[1:].isdecimal()


# --- lines ------------------------------------------------------------------------------------------------------------


def _entries(text: str) -> tuple[list[_Entry], int]:
    """(messages and notices in order, lines with text before the first of them)."""
    entries: list[_Entry] = []
    before = 0
    for raw in text.split("\n"):
        line = read_line(raw)
        if line is not None:
            speaker, said = _parted(line.rest) or (None, line.rest)
            entries.append(_Entry(line, speaker, said))
        elif entries:
            entries[-1].more.append(raw)
        elif raw.strip(MARKS + " \t"):
            before += 1
    _without_notices(entries)
    return entries, before


def _parted(rest: str) -> tuple[str, str] | None:
    """(speaker, text) of what stands behind the time; None for a notice."""
    match = _NAME_ENDS.search(rest, 0, _LONGEST_NAME + 2)
    if match is None:
        return None
    name = rest[: match.start()]
    name = (name if name.isascii() else name.translate(_NO_MARKS)).strip()
    if name.startswith("~"):
        name = name[1:].strip()  # iOS: somebody who is not in the address book
    return (name, rest[match.end() :]) if name else None


_NO_MARKS = dict.fromkeys(map(ord, MARKS))


def _without_notices(entries: Sequence[_Entry]) -> None:
    """Notices with a colon in a quoted name (`… changed the group name to "Trip: Rome"`) have no speaker."""
    counts = Counter(entry.speaker for entry in entries)
    for entry in entries:
        if entry.speaker is not None and counts[entry.speaker] == 1 and _is_torn(entry.speaker):
            entry.speaker = None


def _is_torn(name: str) -> bool:
    """A quotation begins in the name and does not end in it."""
    for opening, closing in _QUOTES.items():
        if opening == closing:
            if name.count(opening) % 2:
                return True
        elif opening in name and name.rfind(opening) > name.rfind(closing):
            return True
    return False


# --- messages ---------------------------------------------------------------------------------------------------------


def _messages(entries: Sequence[_Entry], notices: Counter[str], report: Report) -> list[Message]:
    calendar = calendar_of(
        [entry.line for entry in entries], english=any(speaks_english(entry.text) for entry in entries[:2000])
    )
    ios = any(entry.line.brackets for entry in entries)
    messages: list[Message] = []
    undated = 0
    for entry in entries:
        if entry.speaker is None:
            notices["notice of WhatsApp"] += 1
            continue
        said = read_body(entry.body, marked=ios)
        if said.notice is not None:
            notices[said.notice] += 1
            continue
        message = _message(entry, said, calendar.local_time(entry.line))
        undated += message.local_time is None
        messages.append(message)
    if messages and not calendar.certain:
        # Nothing is lost, so the count is 0; it is said because the dates may be wrong.
        report.skip(f"day and month may be the other way round: read as {calendar.order}", expected=True, count=0)
    if undated:
        report.unknown["calendar:foreign"] += undated
    derive_ids(messages)
    return messages


def _message(entry: _Entry, said: Said, local_time: str | None) -> Message:
    # The id must be the same in an export with media and without, of another phone, and after a contact was renamed.
    return Message(
        short_hash("whatsapp message", entry.line.key, said.text),
        "user",
        said.text,
        kind="text" if said.text else said.kind,
        local_time=local_time,
        speaker=entry.speaker,
        attachment=said.files,
    )


def _conversation(messages: list[Message], title: str | None, path: str) -> Conversation:
    first = messages[0]
    return Conversation(
        "whatsapp",
        short_hash("whatsapp", title or "", first.message_id),
        messages,
        title=title or stem(path),
        project=title or stem(path),
    )


def _title(path: str, entries: Sequence[_Entry]) -> str | None:
    """The chat's name: in the name of the file, else of the archive or folder it lies in, else as iOS writes it.

    iOS lets the chat itself say the first notice (`Harbour: Messages and calls are end-to-end encrypted`).
    """
    parts = path.replace("!/", "/").split("/")
    own = stem(parts[-1])
    candidates = [own, *(_bare_archive(part) for part in reversed(parts[:-1][-2:]))]
    for candidate in candidates:
        if (name := chat_name(candidate)) is not None:
            return name
    if own.casefold() not in ("_chat", "chat") and not is_whatsapp_name(own):
        return own
    first = entries[0] if entries else None
    if first is not None and first.line.brackets and first.speaker and first.text.startswith(LRM):
        return first.speaker
    return None


def _bare_archive(name: str) -> str:
    return name.removesuffix(".zip").removesuffix(".ZIP")
