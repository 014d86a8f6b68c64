"""What redaction would mask, before anything is kept: kind, place, and the words around the mask, never the value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from palace_pipeline.model import Conversation
from palace_pipeline.redaction.funnel import Funnel, conversation_fields

CONTEXT = 32
"""Characters of redacted text shown on each side of a mask."""


@dataclass(frozen=True, slots=True)
class Masked:
    """One place that would be masked. `preview` is cut from the redacted text, so that it holds no other value either."""

    conversation: str
    """Provider and title, redacted."""
    field: str
    """`title`, `message 12`, `message 12, attachment 1 (name)`: counted from 1."""
    kind: str
    rule: str
    length: int
    """Characters that would be masked."""
    preview: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """A field that could not be judged and would be left out whole."""

    conversation: str
    field: str
    reason: str


def what_would_be_masked(conversations: Iterable[Conversation], funnel: Funnel) -> Iterator[Masked | Withheld]:
    """Every place, in the order of the texts."""
    for conversation in conversations:
        clean = funnel.redact_fields(dict(conversation_fields(conversation)))
        shown = f"{conversation.provider}: {clean.texts.get('title') or 'untitled'}"
        for name, reason in clean.withheld:
            yield Withheld(shown, place_of(name), reason)
        before: Counter[str] = Counter()
        for found in clean.findings:
            # Where the mask stands in the redacted text: its place in the source, moved by the masks before it.
            at = clean.places[found.field][before[found.field]]
            before[found.field] += 1
            text = clean.texts[found.field]
            yield Masked(shown, place_of(found.field), found.kind, found.rule, found.length, _around(text, at))


def place_of(name: str) -> str:
    """`messages.11.attachment.0.name` -> `message 12, attachment 1 (name)`."""
    parts = name.split(".")
    if parts[0] != "messages":
        return name.replace("_", " ")
    shown = f"message {int(parts[1]) + 1}"
    if len(parts) == 3:
        return shown if parts[2] == "text" else f"{shown} ({parts[2].replace('_', ' ')})"
    return f"{shown}, {parts[2].removesuffix('s')} {int(parts[3]) + 1} ({parts[4]})"


def _around(text: str, place: tuple[int, int]) -> str:
    start, end = place
    low, high = max(0, start - CONTEXT), min(len(text), end + CONTEXT)
    cut = text[low:high]
    return ("…" if low else "") + " ".join(cut.split()) + ("…" if high < len(text) else "")
