"""What redaction would mask, before anything is kept: kind, place, and the words around the mask, never the value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from palace_pipeline.model import Conversation
from palace_pipeline.redaction.funnel import Clean, Funnel, conversation_fields

CONTEXT = 32
"""Characters of redacted text shown on each side of a mask."""
EXAMPLES = 8
"""Places of one kind that are shown to people: of as many different values as there are."""
_EXTENSION = re.compile(r"(\.[A-Za-z0-9]{1,8})(?=$|!/|: )")


@dataclass(frozen=True, slots=True)
class Masked:
    """One place that would be masked. `preview` is cut from the redacted text, so that it holds no other value either."""

    number: int
    """Of the conversation, counted from 1 in the order of reading; 0 for the name of a file."""
    conversation: str
    """Provider and title, redacted."""
    files: tuple[str, ...]
    """Files that show the conversation; names go through redaction too."""
    field: str
    """`title`, `message 12`, `message 12, attachment 1 (name)`: counted from 1."""
    kind: str
    rule: str
    value: int
    """The same number for the same value, counted from 1; nothing leads back to it."""
    length: int
    """Characters that would be masked."""
    preview: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """A field that could not be judged and would be left out, or (`whole`) where a second look still finds something:
    then nothing of the conversation would be published."""

    number: int
    conversation: str
    files: tuple[str, ...]
    field: str
    reason: str
    whole: bool = False


def what_would_be_masked(
    conversations: Iterable[tuple[Conversation, Iterable[str]]],
    funnel: Funnel,
    called: Callable[[str | None, str], str],
) -> Iterator[Masked | Withheld]:
    """Every place, in the order of the texts. `called`: the name of a conversation from its title and what was
    asked first. With each conversation the files that show it.

    What stands in the name of a file is told once, before the first conversation of the file.
    """
    values: dict[str, int] = {}
    names: dict[str, str] = {}
    for number, (conversation, files) in enumerate(conversations, start=1):
        for name in files:
            if name not in names:
                clean = _redacted_name(funnel, name)
                names[name] = _joined(clean.texts["name"])
                for _, reason in clean.withheld:
                    yield Withheld(0, "name of a file", (names[name],), "name", reason)
                yield from _places(clean, 0, f"name of a file: {names[name]}", (names[name],), values)
        shown_files = tuple(names[name] for name in files)
        texts = {name: text for name, text in conversation_fields(conversation) if name != "source_file"}
        clean = funnel.redact_fields(texts)
        shown = f"{conversation.provider}: {called(clean.texts.get('title'), _asked_first(conversation, clean))}"
        for name, reason in clean.withheld:
            yield Withheld(number, shown, shown_files, place_of(name), reason)
        yield from _places(clean, number, shown, shown_files, values)
        fields = list(clean.texts)
        leaks = funnel.scan_published([clean.texts[name] for name in fields])
        for name, kind in dict.fromkeys((fields[leak.index], leak.kind) for leak in leaks):
            yield Withheld(number, shown, shown_files, place_of(name), kind, whole=True)


def _places(clean: Clean, number: int, shown: str, files: tuple[str, ...], values: dict[str, int]) -> Iterator[Masked]:
    before: Counter[str] = Counter()
    for found in clean.findings:
        # Where the mask stands in the redacted text: its place in the source, moved by the masks before it.
        at = clean.places[found.field][before[found.field]]
        before[found.field] += 1
        value = values.setdefault(f"{found.kind}:{found.fingerprint}", len(values) + 1)
        preview = _around(clean.texts[found.field], at)
        place = place_of(found.field)
        yield Masked(number, shown, files, place, found.kind, found.rule, value, found.length, preview)


def _asked_first(conversation: Conversation, clean: Clean) -> str:
    """What the user asked first, redacted."""
    rows = enumerate(conversation.messages)
    asked = (number for number, row in rows if row.role == "user" and row.branch_active and row.hidden_reason is None)
    texts = (clean.texts.get(f"messages.{number}.text", "") for number in asked)
    return next((text for text in texts if text.strip()), "")


def shown_name(funnel: Funnel, name: str) -> str:
    """The name of a file as it may be shown."""
    return _joined(_redacted_name(funnel, name).texts["name"])


def _redacted_name(funnel: Funnel, name: str) -> Clean:
    # An extension at the end of an address would make another address of it.
    return funnel.redact_fields({"name": _EXTENSION.sub(r"\n\1", name)})


def _joined(name: str) -> str:
    return name.replace("\n.", ".")


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


@dataclass(slots=True)
class OfKind:
    """All places of one kind: how many, in how many conversations, of how many values; a few to be shown."""

    kind: str
    places: int = 0
    conversations: set[int] = field(default_factory=set[int])
    values: set[int] = field(default_factory=set[int])
    new: list[Masked] = field(default_factory=list[Masked])
    again: list[Masked] = field(default_factory=list[Masked])

    def add(self, place: Masked) -> None:
        self.places += 1
        if place.number:
            self.conversations.add(place.number)
        chosen = self.again if place.value in self.values else self.new
        self.values.add(place.value)
        if len(chosen) < EXAMPLES:
            chosen.append(place)

    @property
    def examples(self) -> list[Masked]:
        """Different values first, in the order of reading."""
        return [*self.new, *self.again][:EXAMPLES]


def by_kind(places: Iterable[Masked]) -> list[OfKind]:
    """Kinds by their number of places."""
    kinds: dict[str, OfKind] = {}
    for place in places:
        kinds.setdefault(place.kind, OfKind(place.kind)).add(place)
    return sorted(kinds.values(), key=lambda of: (-of.places, of.kind))
