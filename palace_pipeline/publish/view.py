"""A conversation as it is shown to others: what was said, with its time in one zone; tools and thinking folded."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime, tzinfo

from palace_pipeline.model import DOCUMENT_PROVIDERS, VISIBLE_ROLES, Attachment, Citation, Conversation, Message
from palace_pipeline.transcripts.page_labels import SOURCES, name_of, said_by, shown_rows, summary_of
from palace_pipeline.transcripts.page_tail import size_in_words, squeezed
from palace_pipeline.transcripts.terms import written_traditionally

_MARKDOWN_OF_PEOPLE = (*DOCUMENT_PROVIDERS, "session", "perplexity")
"""Providers whose user rows are Markdown; elsewhere people type text, and `__init__` is no bold word."""
MANY_COLUMNS = 8
"""A table of more columns is set smaller on paper, where it cannot be moved under the reader's eye."""
_LANGUAGE_BY = 4_000
_KANA = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_HANGUL = re.compile("[\uac00-\ud7af\u1100-\u11ff]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002fa1f]")


@dataclass(slots=True, frozen=True)
class Part:
    """One row. `number` counts those that people see from 1, None for what is folded. `time`: `HH:MM`, `day`: the date,
    both in the zone of the view (or as written, without a zone); `instant`: ISO, for machines. '' if unknown.

    `as_written`: the text is no Markdown. `wrapped`: its line ends are where an editor broke the lines.
    `cut`: characters left out at its end.
    """

    number: int | None
    role: str
    name: str
    day: str
    time: str
    instant: str
    text: str
    as_written: bool
    wrapped: bool
    edited: bool
    language: str
    files: tuple[Attachment, ...]
    sources: tuple[Citation, ...]
    cut: int = 0


@dataclass(slots=True, frozen=True)
class View:
    """`parts`: each a row that people see, or a run of folded ones. `summary`: product, number of messages, zone.

    `dates`: first and last day ('' if unknown). `chatty`: a chat among people, whose contents are its days.
    """

    title: str
    provider: str
    summary: str
    dates: tuple[str, str]
    language: str
    chatty: bool
    parts: tuple[Part | tuple[Part, ...], ...]
    messages: int


def view_of(conversation: Conversation, zone: tzinfo, *, folded: bool = True, most: int | None = None) -> View:
    """The rows of a redacted conversation that its page shows. Without `folded`, tools, thinking and system rows are left
    out; with `most`, each of them is cut to so many characters."""
    rows = shown_rows(conversation)
    parts: list[Part | tuple[Part, ...]] = []
    run: list[Part] = []
    number = 0
    for row in rows:
        if row.role in VISIBLE_ROLES:
            number += 1
            if run:
                parts.append(tuple(run))
                run = []
            parts.append(_part(row, conversation.provider, zone, number, None))
        elif folded and (row.text.strip() or row.attachment or row.citations):
            run.append(_part(row, conversation.provider, zone, None, most))
    if run:
        parts.append(tuple(run))
    said = [part for part in parts if isinstance(part, Part)]
    days = [part.day for part in said if part.day]
    title = name_of(conversation, rows)
    speakers = {row.speaker for row in rows if row.role == "user" and row.speaker}
    return View(
        title=title,
        provider=conversation.provider,
        summary=summary_of(conversation, rows, _zone_name(zone), SOURCES),
        dates=(min(days), max(days)) if days else ("", ""),
        language=language_of(" ".join([title, *(part.text[:_LANGUAGE_BY] for part in said[:8])])) or "en",
        chatty=len(speakers) > 1,
        parts=tuple(parts),
        messages=number,
    )


def _part(row: Message, provider: str, zone: tzinfo, number: int | None, most: int | None) -> Part:
    day, time, instant = _when(row, zone)
    text = row.text.replace("\r\n", "\n").replace("\r", "\n")
    cut = max(0, len(text) - most) if most is not None else 0
    return Part(
        number=number,
        role=row.role,
        name=said_by(row, provider),
        day=day,
        time=time,
        instant=instant,
        text=text[: len(text) - cut],
        as_written=row.role == "tool" or (row.role == "user" and provider not in _MARKDOWN_OF_PEOPLE),
        wrapped=provider in DOCUMENT_PROVIDERS,
        edited=row.edited_at is not None,
        language=language_of(text) if number is not None else "",
        files=tuple(row.attachment),
        sources=tuple(row.citations),
        cut=cut,
    )


def _when(row: Message, zone: tzinfo) -> tuple[str, str, str]:
    if row.created_at is not None:
        there = row.created_at.astimezone(zone)
        return f"{there:%Y-%m-%d}", f"{there:%H:%M}", there.isoformat(timespec="seconds")
    if row.local_time:
        written = datetime.fromisoformat(row.local_time)
        return f"{written:%Y-%m-%d}", f"{written:%H:%M}" if len(row.local_time) > 10 else "", row.local_time
    return "", "", ""


def _zone_name(zone: tzinfo) -> str:
    return "UTC" if str(zone) in ("Etc/UTC", "Etc/UCT", "Universal", "Zulu") else str(zone)


def language_of(text: str) -> str:
    """The language a browser needs to know to choose the right form of Han characters: ja, ko, zh-Hans, zh-Hant; else ''."""
    sample = text[:_LANGUAGE_BY]
    if sample.isascii():
        return ""
    if _KANA.search(sample):
        return "ja"
    if _HANGUL.search(sample):
        return "ko"
    if _HAN.search(sample):
        return "zh-Hant" if written_traditionally(sample) else "zh-Hans"
    return ""


def runs_left(text: str) -> bool:
    """Is a text read from right to left? By its first letter, as Unicode has it."""
    for char in text[:2_000]:
        direction = unicodedata.bidirectional(char)
        if direction in ("R", "AL"):
            return True
        if direction == "L":
            return False
    return False


def contents_of(view: View) -> list[tuple[str, int]]:
    """The lines of the contents and the number of the message that each leads to: what the user asked, or the days of a chat
    among people. Empty where there is nothing to choose from."""
    said = [part for part in view.parts if isinstance(part, Part) and part.number is not None]
    lines: list[tuple[str, int]] = []
    if view.chatty:
        day = ""
        for part in said:
            if part.day and part.day != day and part.number is not None:
                day = part.day
                lines.append((day, part.number))
    else:
        lines = [
            (line, part.number)
            for part in said
            if part.role == "user"
            and part.number is not None
            and (line := squeezed(part.text.strip().partition("\n")[0], 90))
        ]
    return lines if len(lines) > 1 else []


def file_line(file: Attachment) -> str:
    """A file beside a message: its name, type and size. Its bytes are not in the archive."""
    facts = ", ".join(fact for fact in (squeezed(file.type or "", 80), size_in_words(file.size)) if fact)
    name = squeezed(file.name or "", 200) or "attachment"
    return f"{name} ({facts})" if facts else name
