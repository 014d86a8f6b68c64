"""What a dry run shows beside its counts: a pick list of conversations, and how a few of each format were understood.

A person looks at five before they import five thousand. What is shown goes through redaction first; nothing of it is
kept anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from palace_pipeline.ingest.tally import Tally
from palace_pipeline.model import Conversation, short_hash
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.store.ledger import Key, Ledger
from palace_pipeline.transcripts.page_labels import called

SAMPLES = 5
"""Conversations of each format that are shown as they were understood."""
FIRST_WORDS = 80
"""Characters of the first words that are shown."""
ASKED = 2_000
"""Characters of the first question that redaction gets to see of each conversation without a title."""
CONTEXT = 100_000
"""Characters of a sample that redaction gets to see, so that what one message calls a password is masked in the first."""
_BATCH = 500


@dataclass(slots=True)
class _Read:
    """What was read of a conversation. `asked`: the beginning of what was asked first, where no title was read. Days are those
    of the first and the last dated message that people see."""

    title: str | None = None
    asked: str = ""
    first: str | None = None
    last: str | None = None


@dataclass(slots=True)
class Sample:
    """A conversation as it was understood, still unredacted: `asked` what the user said first,
    `words` what somebody did, `context` the rest."""

    key: Key
    format: str
    title: str | None
    first: str | None
    last: str | None
    roles: dict[str, int]
    speakers: list[str]
    visible: int
    attachments: int
    asked: str
    words: str
    context: list[str]


@dataclass(frozen=True, slots=True)
class Pick:
    """A line of the pick list. `messages`: all rows of the conversation, of which `new` and `updated` ones."""

    key: Key
    format: str
    outcome: str
    title: str | None
    asked: str
    first: str | None
    last: str | None
    messages: int
    new: int
    updated: int


@dataclass(slots=True)
class Preview:
    """Gathers while a dry run reads; `finish` when it has read everything, before its ledger goes away."""

    read: dict[Key, _Read] = field(default_factory=dict[Key, _Read])
    samples: dict[str, list[tuple[tuple[int, str], Sample]]] = field(
        default_factory=dict[str, list[tuple[tuple[int, str], Sample]]]
    )
    picks: list[Pick] = field(default_factory=list[Pick])

    def saw(self, format_name: str, conversation: Conversation) -> None:
        """A conversation was read, whole or as one file shows it."""
        days = sorted(day for message in conversation.visible_messages() if (day := _day(message)))
        read = self.read.setdefault(conversation.key, _Read())
        read.title = conversation.title or read.title
        read.asked = "" if read.title else read.asked or _asked_first(conversation)[:ASKED]
        if days:
            read.first = min(read.first or days[0], days[0])
            read.last = max(read.last or days[-1], days[-1])
        self._sample(format_name, conversation, days)

    def _sample(self, format_name: str, conversation: Conversation, days: list[str]) -> None:
        """Keep it if it is one of the few that are shown: a choice that looks random and is the same every time."""
        plain = conversation.origin == "person" and any(m.role == "user" for m in conversation.visible_messages())
        rank = (0 if plain else 1, short_hash(*conversation.key))
        kept = self.samples.setdefault(format_name, [])
        before = next((sample for _, sample in kept if sample.key == conversation.key), None)
        if before is not None:
            if before.visible >= len(conversation.visible_messages()):
                return
            kept[:] = [item for item in kept if item[1] is not before]
        elif len(kept) == SAMPLES and rank >= kept[-1][0]:
            return
        kept.append((rank, _sample_of(format_name, conversation, days)))
        kept.sort(key=lambda item: item[0])
        del kept[SAMPLES:]

    def finish(self, ledger: Ledger, tally: Tally) -> None:
        """Make the pick list of all conversations that were looked at, read or known from before.

        One that is continued in another session is no conversation of its own, so it is not among the samples either.
        """
        formats = {
            (row["provider"], row["conversation_id"]): row["format"]
            for row in ledger.rows(
                "SELECT DISTINCT r.provider, r.conversation_id, e.format "
                "FROM element_records r JOIN elements e USING (element)"
            )
        }
        known = {
            (row["provider"], row["conversation_id"]): row
            for row in ledger.rows(
                "SELECT provider, conversation_id, day, dated, messages, superseded_by FROM conversations"
            )
        }
        for key in sorted({*tally.chats, *tally.untouched_chats(ledger)}):
            row = known.get(key)
            if row is None or row["superseded_by"]:
                continue
            chat = tally.chats.get(key)
            read = self.read.get(key, _Read())
            day = row["day"] if row["dated"] else None
            self.picks.append(
                Pick(
                    key,
                    formats.get(key, ""),
                    chat.outcome if chat is not None else "unchanged",
                    read.title,
                    read.asked,
                    read.first or day,
                    read.last or day,
                    row["messages"],
                    chat.new if chat is not None else 0,
                    chat.updated if chat is not None else 0,
                )
            )
        listed = {pick.key for pick in self.picks}
        for kept in self.samples.values():
            kept[:] = [item for item in kept if item[1].key in listed]

    def shown(self, funnel: Funnel, known_titles: Mapping[Key, str | None]) -> dict[str, Any]:
        """What may be shown. `known_titles`: clean titles of conversations that the archive has already."""
        titles = _clean(funnel, (pick.title for pick in self.picks if pick.title))
        asked = _clean(funnel, (pick.asked for pick in self.picks if pick.asked))
        conversations = [
            {
                "format": pick.format,
                "provider": pick.key[0],
                "conversation_id": pick.key[1],
                "outcome": pick.outcome,
                "title": (title := titles.get(pick.title or "") or known_titles.get(pick.key)),
                "name": called(title, asked.get(pick.asked, "")),
                "first_day": pick.first,
                "last_day": pick.last,
                "messages": pick.messages,
                "new_messages": pick.new,
                "updated_messages": pick.updated,
            }
            for pick in sorted(self.picks, key=lambda p: (p.format, _OUTCOMES[p.outcome], p.first or "", p.key))
        ]
        counts: dict[str, Counter[str]] = {}
        for pick in self.picks:
            counts.setdefault(pick.format, Counter())[pick.outcome] += 1
        formats = [
            {
                "format": name,
                **{outcome: found[outcome] for outcome in _OUTCOMES},
                "samples": [_shown_sample(funnel, sample) for _, sample in self.samples.get(name, [])],
            }
            for name, found in sorted(counts.items())
        ]
        return {"formats": formats, "conversations": conversations}


_OUTCOMES = {"new": 0, "updated": 1, "unchanged": 2}


def _day(message: Any) -> str | None:
    if message.created_at is not None:
        return message.created_at.date().isoformat()
    return message.local_time[:10] if message.local_time else None


def _sample_of(format_name: str, conversation: Conversation, days: list[str]) -> Sample:
    visible = conversation.visible_messages()
    opening = next((m for m in visible if m.role == "user" and m.text.strip()), None)
    opening = opening or next((m for m in visible if m.text.strip()), None)
    left = CONTEXT
    context: list[str] = []
    for message in conversation.messages:
        if left > 0 and message.text:
            context.append(message.text[:left])
            left -= len(message.text)
    return Sample(
        conversation.key,
        format_name,
        conversation.title,
        days[0] if days else None,
        days[-1] if days else None,
        dict(Counter[str](message.role for message in conversation.messages)),
        list(dict.fromkeys(message.speaker for message in visible if message.speaker))[:SAMPLES],
        len(visible),
        sum(len(message.attachment) for message in conversation.messages),
        _asked_first(conversation)[:CONTEXT],
        opening.text[:CONTEXT] if opening is not None else "",
        context,
    )


def _asked_first(conversation: Conversation) -> str:
    return next((m.text for m in conversation.visible_messages() if m.role == "user" and m.text.strip()), "")


def _clean(funnel: Funnel, texts_of_picks: Iterable[str]) -> dict[str, str]:
    """Title, or what was asked first -> as it may be shown."""
    unique = list(dict.fromkeys(texts_of_picks))
    clean: dict[str, str] = {}
    for at in range(0, len(unique), _BATCH):
        batch = unique[at : at + _BATCH]
        texts = funnel.redact_fields({str(number): text for number, text in enumerate(batch)}).texts
        clean |= {text: one_line(texts[str(number)]) for number, text in enumerate(batch)}
    return clean


def _shown_sample(funnel: Funnel, sample: Sample) -> dict[str, Any]:
    fields = {"title": sample.title or "", "words": sample.words, "asked": sample.asked}
    fields |= {f"speaker{number}": speaker for number, speaker in enumerate(sample.speakers)}
    fields |= {f"context{number}": text for number, text in enumerate(sample.context)}
    clean = funnel.redact_fields(fields).texts
    return {
        "provider": sample.key[0],
        "conversation_id": sample.key[1],
        "title": (title := one_line(clean["title"]) or None),
        "name": called(title, clean["asked"]),
        "first_day": sample.first,
        "last_day": sample.last,
        "messages": sample.visible,
        "roles": sample.roles,
        "speakers": [one_line(clean[f"speaker{number}"]) for number in range(len(sample.speakers))],
        "attachments": sample.attachments,
        "first_words": one_line(clean["words"]),
    }


def one_line(text: str, most: int = FIRST_WORDS) -> str:
    """Text on one line, cut to a number of characters."""
    line = " ".join(text[: most * 20].split())
    return line if len(line) <= most else line[: most - 1] + "…"
