"""A redacted conversation -> chunks that fit the embedding model: one question with its answers is one unit.

Every word of what a person saw stands in exactly one chunk, verbatim and in order. A chunk's id comes from its text and
its conversation, so that a conversation that grows keeps the chunks of all units but its last.

- exchange: consecutive messages of the user, a blank line, the answers up to the next question. A long unit goes on
  in further chunks.
- people: a chat among people; `Name: text` a message, grouped by pauses and size.
- document: Markdown and text files by their headings, and what the source extracted of attachments.
- tool, thinking: a row each (long ones cut), for search on request.

A chunk's `context` is embedded before its text and is no part of it: the conversation's title, the (shortened) question
of a continued answer, the message before a group of people's messages, the heading above a piece of a document.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from palace_pipeline.chunking.cuts import SECTION, Cutter, Piece, estimated_ends, layout_of
from palace_pipeline.model import DOCUMENT_PROVIDERS, Chunk, Conversation, Message, short_hash

CHUNK_RECIPE = "1"
"""Raise it when the chunks of some conversation change. What the chunks also depend on is the model's tokenizer."""

PEOPLE_PROVIDERS = ("slack", "discord", "telegram", "whatsapp")
PAUSE = timedelta(minutes=30)
"""A longer silence in a chat among people begins a new chunk."""

PEOPLE_TOKENS = 96
"""A chat among people is grouped up to this size. Its topics change quickly: on public chats, groups of 64 to 96 tokens
with the message before as context find the right session more often than single messages or full windows do."""

Kind = Literal["exchange", "people", "document", "tool", "thinking"]


class Tokens(Protocol):
    """The tokenizer of the embedding model (`embedding.model.load_model`)."""

    @property
    def max_tokens(self) -> int:
        """Most tokens the model takes of one text."""
        ...

    def token_offsets(self, text: str) -> NDArray[np.int64]:
        """Start and end of each token in code points, int64 [tokens, 2]; linear in the text's length."""
        ...


@dataclass(slots=True)
class _Said:
    """A message with its place in the conversation."""

    seq: int
    message: Message
    text: str


@dataclass(slots=True)
class _Part:
    """A chunk before it has a number and an id."""

    kind: Kind
    first_seq: int
    last_seq: int
    text: str
    context: str
    tokens: int


def chunk_conversation(conversation: Conversation, tokenizer: Tokens) -> list[Chunk]:
    """The chunks of a redacted conversation in reading order; no chunk is empty.

    Budget: seven eighths of the model's `max_tokens`, context counted; the rest is for prefix, marks, and tokens that
    come out otherwise at a cut. `first_seq`, `last_seq`: places in `conversation.messages`.
    """
    cutting = _Cutting(tokenizer, conversation.title or "")
    said = [_Said(seq, m, m.text) for seq, m in enumerate(conversation.messages)]
    visible = [s for s in said if s.message.visible and s.text.strip()]
    if conversation.provider in DOCUMENT_PROVIDERS:
        parts = [part for s in visible for part in cutting.document(s.seq, s.text)]
    elif _among_people(conversation):
        parts = list(cutting.people(visible))
    else:
        parts = [part for unit in _units(visible) for part in cutting.exchange(unit)]
    parts.extend(_beside(said, cutting))
    # Stable, by the first message only: a chunk's number does not move when the conversation grows behind it.
    parts.sort(key=lambda part: part.first_seq)
    return list(_numbered(conversation, parts))


def _numbered(conversation: Conversation, parts: Iterable[_Part]) -> Iterator[Chunk]:
    seen: Counter[tuple[str, str]] = Counter()
    for index, part in enumerate(parts):
        same = seen[part.kind, part.text]
        seen[part.kind, part.text] += 1
        identity = (conversation.provider, conversation.conversation_id, part.kind, part.text, str(same))
        yield Chunk(
            drawer_id=short_hash(*identity, length=24),
            chunk_index=index,
            kind=part.kind,
            first_seq=part.first_seq,
            last_seq=part.last_seq,
            text=part.text,
            context=part.context,
            tokens=part.tokens,
        )


def _among_people(conversation: Conversation) -> bool:
    if conversation.provider in PEOPLE_PROVIDERS:
        return True
    visible = conversation.visible_messages()
    if any(message.role != "user" for message in visible):
        return False
    return len({message.speaker for message in visible if message.speaker}) > 1


def _units(visible: Sequence[_Said]) -> Iterator[list[_Said]]:
    """Messages from a question up to the next; what comes before the first question is a unit of its own."""
    unit: list[_Said] = []
    for said in visible:
        if said.message.role == "user" and unit and unit[-1].message.role != "user":
            yield unit
            unit = []
        unit.append(said)
    if unit:
        yield unit


def _beside(said: Sequence[_Said], cutting: _Cutting) -> Iterator[_Part]:
    """Attachments' text, tool output and thinking of the branch that the person sees."""
    for s in said:
        message = s.message
        if not message.branch_active or message.hidden_reason is not None:
            continue
        for attachment in message.attachment:
            yield from cutting.document(s.seq, attachment.text or "", attachment.name or "")
        if message.visible:
            continue
        if message.role == "thinking" or message.kind == "thinking":
            yield from cutting.row("thinking", s.seq, s.text)
        elif message.role == "tool":
            yield from cutting.row("tool", s.seq, s.text)


class _Cutting:
    """Cuts units with one tokenizer and its budget. `title`: a name for all of the text, part of every context."""

    def __init__(self, tokenizer: Tokens, title: str) -> None:
        self._tokenizer = tokenizer
        self._counted = ("", 0)
        self._budget = tokenizer.max_tokens * 7 // 8
        self._context = self._budget // 6
        self._people_size = min(PEOPLE_TOKENS, self._budget - self._context)
        self._title = self._shortened(title, self._context // 3)

    def exchange(self, unit: Sequence[_Said]) -> Iterator[_Part]:
        text = "\n\n".join(s.text for s in unit)
        starts = _starts([s.text for s in unit], gap=2)
        question = "\n\n".join(s.text for s in unit if s.message.role == "user")
        context = self._title
        for number, piece in enumerate(self._pieces(text, self._title, starts)):
            if number == 1:
                left = self._context - self._count(self._title)
                context = _joined(self._title, self._shortened(question, left))
            first, last = (bisect_right(starts, at) - 1 for at in (piece.start, piece.end - 1))
            yield self._part("exchange", unit[first].seq, unit[last].seq, text, piece, context)

    def document(self, seq: int, text: str, name: str | None = None) -> Iterator[_Part]:
        """A document or an attachment; `context`: its name, and the heading above a piece that begins without one."""
        title = self._title if name is None else self._shortened(name, self._context // 3)
        headings: list[int] | None = None
        for piece in self._pieces(text, title, sections=True):
            if headings is None:
                headings = _headings(text)
            above = bisect_right(headings, piece.start) - 1
            heading = ""
            if above >= 0 and headings[above] != piece.start:
                heading = self._shortened(text[headings[above] :].split("\n", 1)[0], self._context // 3)
            yield self._part("document", seq, seq, text, piece, _joined(title, heading))

    def row(self, kind: Literal["tool", "thinking"], seq: int, text: str) -> Iterator[_Part]:
        """Sized by an estimate: such rows can be gigabytes, and they are not embedded unless somebody asks for it."""
        cutter = Cutter(text, estimated_ends(text), self._budget, self._budget)
        for piece in cutter.pieces(lambda: layout_of(text)):
            yield self._part(kind, seq, seq, text, piece, "")

    def people(self, visible: Sequence[_Said]) -> Iterator[_Part]:
        """Messages grouped; the context of a group is the message before it, if that was said just before."""
        group: list[_Said] = []
        size = 0
        context = before_text = ""
        before: datetime | None = None
        for said in visible:
            text = said.text.strip()
            text = f"{said.message.speaker}: {text}" if said.message.speaker else text
            tokens = self._count(text)
            now = _instant(said.message) or before
            paused = _far_apart(before, now)
            if group and (paused or size + tokens > self._people_size):
                yield from self._group(group, size, context)
                group, size = [], 0
                context = "" if paused else self._tail(before_text)
            group.append(_Said(said.seq, said.message, text))
            size += tokens
            before, before_text = now, text
        if group:
            yield from self._group(group, size, context)

    def _group(self, group: Sequence[_Said], size: int, context: str) -> Iterator[_Part]:
        if len(group) > 1:
            text = "\n".join(s.text for s in group)
            yield self._part("people", group[0].seq, group[-1].seq, text, Piece(0, len(text), size), context)
            return
        [said] = group
        for piece in self._pieces(said.text, context):
            yield self._part("people", said.seq, said.seq, said.text, piece, context)
            context = self._shortened(f"{said.message.speaker}:", self._context) if said.message.speaker else ""

    def _pieces(
        self, text: str, context: str, boundaries: Sequence[int] = (), *, sections: bool = False
    ) -> list[Piece]:
        """Pieces of a text whose first one stands behind `context`."""
        ends = self._tokenizer.token_offsets(text)[:, 1]
        cutter = Cutter(text, ends, self._budget - self._count(context), self._budget - self._context)
        return cutter.pieces(lambda: layout_of(text, boundaries=boundaries, sections=sections))

    def _part(self, kind: Kind, first: int, last: int, text: str, piece: Piece, context: str) -> _Part:
        return _Part(kind, first, last, text[piece.start : piece.end], context, piece.tokens + self._count(context))

    def _count(self, text: str) -> int:
        if text == self._counted[0]:
            return self._counted[1]  # a title stands before every unit
        count = len(self._tokenizer.token_offsets(text)) if text else 0
        self._counted = (text, count)
        return count

    def _shortened(self, text: str, limit: int) -> str:
        """A title or question in at most `limit` tokens: whole, or its beginning and its end (where the asking is)."""
        text = text.strip()
        offsets = self._tokenizer.token_offsets(text)
        if len(offsets) <= limit:
            self._counted = (text, len(offsets))
            return text
        if limit < 12:
            return text[: offsets[limit - 1, 1]]
        # Three less: the dots between and what comes out as one token more beside them.
        head = (limit - 3) * 2 // 3
        tail = limit - 3 - head
        return f"{text[: offsets[head - 1, 1]].strip()} … {text[offsets[-tail, 0] :].strip()}"

    def _tail(self, text: str) -> str:
        offsets = self._tokenizer.token_offsets(text)
        return text if len(offsets) <= self._context else text[offsets[-self._context, 0] :].strip()


def _joined(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _starts(texts: Sequence[str], gap: int) -> list[int]:
    """Where each text begins when they are joined with `gap` characters between."""
    return [0, *accumulate(len(text) + gap for text in texts[:-1])]


def _headings(text: str) -> list[int]:
    layout = layout_of(text, sections=True)
    return [start for start, level in zip(layout.starts, layout.levels, strict=True) if level == SECTION]


def _instant(message: Message) -> datetime | None:
    """When it was said; a time without a zone stays one (and is not compared with the others)."""
    if message.created_at is not None or message.local_time is None:
        return message.created_at
    return datetime.fromisoformat(message.local_time)


def _far_apart(before: datetime | None, now: datetime | None) -> bool:
    if before is None or now is None or (before.tzinfo is None) != (now.tzinfo is None):
        return False
    return abs(now - before) > PAUSE
