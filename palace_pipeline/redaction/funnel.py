"""The one funnel: every text of a conversation goes through it before anything is stored, shown or indexed.

Fail closed: a field that cannot be judged (an exception, a spent work budget, masks that do not settle) is withheld
whole, with a reason, and the rest of the conversation goes on.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from palace_pipeline.model import Attachment, Citation, Conversation, Finding, Message
from palace_pipeline.redaction.engine import Engine, RuleEngine
from palace_pipeline.redaction.forgotten import KIND as PURGED
from palace_pipeline.redaction.forgotten import Forgotten, find
from palace_pipeline.redaction.hits import Span
from palace_pipeline.redaction.made import Nature, told, whole_path
from palace_pipeline.redaction.recipe import redaction_recipe
from palace_pipeline.redaction.remember import hashes, remembered
from palace_pipeline.redaction.selfcheck import check
from palace_pipeline.redaction.unjudged import echoes, unjudged_tokens
from palace_pipeline.redaction.verdicts import looks_random
from palace_pipeline.redaction.views import flat, views_of
from palace_pipeline.redaction.words import WORDS
from palace_pipeline.redaction.work import WorkLimit
from palace_pipeline.settings import RedactionSettings

ROUNDS = 6
MAX_FIELD = 64 * 1024 * 1024
"""Characters; a longer field is withheld unread."""

NAMED = ("person", "project")
"""Kinds of the user's own names: with pseudonyms their mask is the rule, `[PERSON_3]`."""
_CLAIMING = ("rule", "name", "container", "view")
"""Layers whose finds are secrets by themselves, and not because they were known already."""
_MARKS = ("[REDACTED:", "[WITHHELD:", "[PERSON_", "[PROJECT_")

GUESSABLE = WORDS["guessable_kinds"]
"""Kinds whose values can be found again by trying: their masks never carry a keyed hash."""


@dataclass(slots=True)
class Clean:
    """Texts after redaction, by field name. `withheld`: (field, reason).

    `places`: where the masks stand in a clean text, in the order of the field's findings.
    """

    texts: dict[str, str]
    places: dict[str, list[tuple[int, int]]] = field(default_factory=dict[str, list[tuple[int, int]]])
    findings: list[Finding] = field(default_factory=list[Finding])
    withheld: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass(slots=True)
class Redacted:
    """A conversation that may be kept. `findings` name place, kind and rule, never the value."""

    conversation: Conversation
    findings: list[Finding] = field(default_factory=list[Finding])
    withheld: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    claims: set[bytes] = field(default_factory=set[bytes])
    """With `remember`: keyed hashes of what was masked as a secret here, for other conversations."""


@dataclass(slots=True, frozen=True)
class Leak:
    """Something in a text that is about to be published and should not be: text number, place, kind."""

    index: int
    start: int
    end: int
    kind: str
    rule: str


class Funnel:
    """Built once from the settings and the home's key (any bytes; it keys fingerprints and correlated masks).

    `forgotten`: values that the user purged. Raises ValueError when a file of known values cannot be read (going on
    without it would let its values through), EngineBlind when a layer of the engine finds nothing.
    """

    def __init__(
        self,
        settings: RedactionSettings,
        key: bytes,
        engine: Engine | None = None,
        forgotten: tuple[Forgotten, ...] = (),
    ) -> None:
        self._engine: Engine = engine or _sighted(settings)
        self._key = key
        self._correlate = settings.correlate
        self._pseudonyms = settings.pseudonyms
        self._remember = settings.remember
        self._forgotten = forgotten
        kinds = "|".join(sorted(map(re.escape, self._engine.kinds | {PURGED}), key=len, reverse=True))
        own = rf"REDACTED:(?:{kinds})(?::[0-9a-f]{{6}})?|WITHHELD:[a-z-]{{1,24}}|(?:PERSON|PROJECT)_\d{{1,9}}"
        self._mask = re.compile(rf"\[(?:{own})\]")
        self._recipe = f"{self._engine.version}/{redaction_recipe(settings, key, forgotten)}"
        self._looked: tuple[list[str], Nature, list[list[Span] | str]] | None = None
        """Texts that were looked at last, as they went in, and what was found: a second look at the same ones, of which
        nothing was masked, can find nothing else."""

    @property
    def recipe(self) -> str:
        """Version of everything that decides what is masked; a keyed hash stands for the user's own settings."""
        return self._recipe

    def redact_conversation(self, conversation: Conversation, known: frozenset[bytes] = frozenset()) -> Redacted:
        """The same conversation with clean texts (itself, if they are); messages, order, ids, times and numbers are untouched.

        `known`: what other conversations claim (`remember.hashes`).
        """
        texts = dict(conversation_fields(conversation))
        clean = self.redact_fields(texts, known)
        if not clean.findings and not clean.withheld:
            return Redacted(conversation)
        claimed = (
            texts[found.field][found.start : found.end]
            for found in clean.findings
            if self._remember and found.layer in _CLAIMING and found.kind not in GUESSABLE
        )
        claims = hashes(claimed, self._key)
        return Redacted(with_fields(conversation, clean.texts), clean.findings, clean.withheld, claims)

    def candidates(self, texts: Iterable[str]) -> set[bytes]:
        """Keyed hashes of what is left in clean texts and could be claimed by another conversation."""
        return hashes(texts, self._key) if self._remember else set()

    def redact_fields(
        self, texts: Mapping[str, str], known: frozenset[bytes] = frozenset(), nature: Nature = whole_path
    ) -> Clean:
        """Clean texts of fields that belong together: what one of them claims is found in all. `nature`: where in them a value
        that was purged says nothing."""
        unique = list(dict.fromkeys(texts.values()))
        outcome = dict(zip(unique, self._redact(unique, known, nature), strict=True))
        clean = Clean({})
        for name, text in texts.items():
            got = outcome[text]
            clean.texts[name] = got.text
            if got.reason:
                clean.withheld.append((name, got.reason))
            clean.findings += [self._finding(name, text, span) for span in got.spans]
            clean.places[name] = [place[:2] for place in got.places]
        return clean

    def scan_published(self, texts: Sequence[str], nature: Nature = whole_path) -> list[Leak]:
        """What a second look still finds in texts about to be published; our own masks are no finding.

        A text that cannot be scanned is a leak of kind `unreadable`, all of it.
        """
        leaks: list[Leak] = []
        looked, self._looked = self._looked, None
        same = looked is not None and looked[0] == texts and looked[1] is nature
        every = looked[2] if looked is not None and same else self._scan(list(texts), nature)
        for index, found in enumerate(every):
            if isinstance(found, str):
                leaks.append(Leak(index, 0, len(texts[index]), "unreadable", found))
                continue
            try:
                left = merged(outside(found, self._masks(texts[index]), texts[index]))
            except Exception as error:  # noqa: BLE001 - fail closed; the message may quote the text
                leaks.append(Leak(index, 0, len(texts[index]), "unreadable", _reason(error)))
                continue
            leaks += [Leak(index, s.start, s.end, s.kind, s.rule) for s in left]
        return leaks

    def has_mask(self, text: str) -> bool:
        """Does a text show that something in it was masked or withheld?"""
        return bool(self._masks(text))

    def kinds_of_masks(self, text: str) -> list[str]:
        """Of each mask in a text, in order, the kind of what it stands for; what is withheld stands for nothing."""
        found = [mask[0] for mask in self._mask.finditer(text)] if _may_hold_masks(text) else []
        return [
            mask.split(":")[1].rstrip("]") if ":" in mask else mask[1:].partition("_")[0].lower()
            for mask in found
            if not mask.startswith("[WITHHELD:")
        ]

    # --- inside

    def _redact(self, texts: list[str], known: frozenset[bytes], nature: Nature) -> list[_Outcome]:
        every = self._scan(texts, nature)
        outcomes = [self._first(text, found, known) for text, found in zip(texts, every, strict=True)]
        self._looked = None if any(got.spans or got.reason for got in outcomes) else (texts, nature, every)
        # The output of a changed field is scanned again until nothing more is found: masks are stable then, and the
        # text that is kept has passed the same scan as any other.
        for _ in range(ROUNDS):
            dirty = [i for i, got in enumerate(outcomes) if got.spans and not got.settled]
            if not dirty:
                return outcomes
            for i, found in zip(dirty, self._scan([outcomes[i].text for i in dirty], nature), strict=True):
                outcomes[i] = self._again(texts[i], outcomes[i], found)
        return [got if got.settled or not got.spans else _Outcome.withheld("not-settled") for got in outcomes]

    def _first(self, text: str, found: list[Span] | str, known: frozenset[bytes]) -> _Outcome:
        if isinstance(found, str):
            return _Outcome.withheld(found)
        try:
            if known:
                places = remembered(text, known, self._key)
                found = [*found, *(Span(start, end, "secret", "remembered", "memory", 0.4) for start, end in places)]
            return self._render(text, merged(outside(found, self._masks(text), text)))
        except Exception as error:  # noqa: BLE001 - fail closed; the message may quote the text
            return _Outcome.withheld(_reason(error))

    def _again(self, text: str, got: _Outcome, found: list[Span] | str) -> _Outcome:
        if isinstance(found, str):
            return _Outcome.withheld(found)
        try:
            more = merged(outside(found, self._masks(got.text), got.text))
            if not more:
                got.settled = True
                return got
            back = [s._replace(start=got.source(s.start), end=got.source(s.end, after=True)) for s in more]
            return self._render(text, merged([*got.spans, *back]))
        except Exception as error:  # noqa: BLE001 - fail closed; the message may quote the text
            return _Outcome.withheld(_reason(error))

    def _scan(self, texts: list[str], nature: Nature) -> list[list[Span] | str]:
        """Spans of each text, or the reason why it has none. One bad text never takes the others along."""
        texts = [self._mask.sub(_blank, text) if _may_hold_masks(text) else text for text in texts]
        too_long = [len(text) > MAX_FIELD for text in texts]
        good = [text for text, bad in zip(texts, too_long, strict=True) if not bad]
        try:
            found: list[list[Span] | str] = [*_answer(self._engine.scan(good), good)]
        except Exception:  # noqa: BLE001 - whatever it was: each text is tried alone, those that fail are withheld
            found = [self._scan_alone(text) for text in good]
            fine = [i for i, one in enumerate(found) if not isinstance(one, str)]
            try:
                together = [good[i] for i in fine]
                for i, spans in zip(fine, _answer(self._engine.scan(together), together), strict=True):
                    found[i] = spans
            except Exception as error:  # noqa: BLE001 - they fail only together: without memory none may pass
                for i in fine:
                    found[i] = _reason(error)
        rest = iter(found)
        every = ["too-long" if bad else next(rest) for bad in too_long]
        if any(isinstance(one, str) for one in every):
            every = _beside_unjudged(texts, every)
        return self._with_forgotten(texts, every, nature) if self._forgotten else every

    def _with_forgotten(
        self, texts: list[str], found: list[list[Span] | str], nature: Nature
    ) -> list[list[Span] | str]:
        """What was found, and the values that the user purged: in the texts and in their views."""
        out: list[list[Span] | str] = []
        for text, spans in zip(texts, found, strict=True):
            if not isinstance(spans, str):
                try:
                    places = list(find(text, self._forgotten, self._key))
                    for view in views_of(text, flat(text)):
                        places += (view.source(*place) for place in find(view.text, self._forgotten, self._key))
                    spans = [
                        *spans,
                        *(Span(*place, PURGED, PURGED, "known", 1.0) for place in told(text, places, nature)),
                    ]
                except Exception as error:  # noqa: BLE001 - fail closed; the message may quote the text
                    spans = _reason(error)
            out.append(spans)
        return out

    def _scan_alone(self, text: str) -> list[Span] | str:
        try:
            return _answer(self._engine.scan([text]), [text])[0]
        except Exception as error:  # noqa: BLE001 - fail closed; the message may quote the text, so it is dropped
            return _reason(error)

    def _masks(self, text: str) -> list[tuple[int, int]]:
        return [m.span() for m in self._mask.finditer(text)] if _may_hold_masks(text) else []

    def _render(self, text: str, spans: list[Span]) -> _Outcome:
        got = _Outcome("", spans, settled=not spans)
        parts: list[str] = []
        position = written = 0
        for span in spans:
            parts.append(text[position : span.start])
            written += span.start - position
            mask = self._mask_of(text[span.start : span.end], span)
            got.places.append((written, written + len(mask), span.start, span.end))
            parts.append(mask)
            written += len(mask)
            position = span.end
        parts.append(text[position:])
        got.text = "".join(parts)
        return got

    def _mask_of(self, value: str, span: Span) -> str:
        kind = span.kind
        if self._pseudonyms and kind in NAMED:
            return f"[{span.rule.upper().replace('-', '_')}]"
        if not self._correlate or kind in GUESSABLE or (len(value) < 16 and not looks_random(value, 12)):
            return f"[REDACTED:{kind}]"
        return f"[REDACTED:{kind}:{self._hash(value)[:6]}]"

    def _hash(self, value: str) -> str:
        return hmac.new(self._key, value.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def _finding(self, name: str, text: str, span: Span) -> Finding:
        parts = name.split(".")
        seq = int(parts[1]) if parts[0] == "messages" else None
        fingerprint = self._hash(text[span.start : span.end])[:12]
        return Finding(name, span.kind, span.rule, span.layer, span.start, span.end, seq, fingerprint)


@dataclass(slots=True)
class _Outcome:
    """One text after a round: `places` are (start, end) in the output and in the input of every mask."""

    text: str
    spans: list[Span]
    settled: bool = False
    reason: str = ""
    places: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])

    @classmethod
    def withheld(cls, reason: str) -> _Outcome:
        return cls(f"[WITHHELD:{reason}]", [], settled=True, reason=reason)

    def source(self, position: int, after: bool = False) -> int:
        """The place in the input of a place in the output; one inside a mask moves to the mask's edge."""
        shift = 0
        for out_start, out_end, start, end in self.places:
            if position <= out_start:
                break
            if position < out_end:
                return end if after else start
            shift = end - out_end
        return position + shift


def _may_hold_masks(text: str) -> bool:
    return "[" in text and any(mark in text for mark in _MARKS)


def _blank(mask: re.Match[str]) -> str:
    """In the place of a mask, while its text is scanned: the words of a mask must not tell of what stands beside it."""
    return "\0" * len(mask[0])


def _sighted(settings: RedactionSettings) -> RuleEngine:
    """The built-in engine, after every layer has shown that it finds something. Raises EngineBlind."""
    engine = RuleEngine(settings)
    plain = settings.model_copy(update={"allow_rules": (), "allow": ()})
    check(engine if settings == plain else RuleEngine(plain), plain)
    return engine


def _beside_unjudged(texts: list[str], found: list[list[Span] | str]) -> list[list[Span] | str]:
    """What was found, and what the texts without an answer may have named as a secret, in the others."""
    try:
        tokens = unjudged_tokens(text for text, one in zip(texts, found, strict=True) if isinstance(one, str))
        return [
            one
            if isinstance(one, str)
            else [*one, *(Span(*place, "secret", "unjudged", "memory", 0.4) for place in echoes(text, tokens))]
            for text, one in zip(texts, found, strict=True)
        ]
    except Exception as error:  # noqa: BLE001 - fail closed; the message may quote the text
        return [one if isinstance(one, str) else _reason(error) for one in found]


def _answer(found: list[list[Span]], texts: Sequence[str]) -> list[list[Span]]:
    """What an engine found, if it can be true. Raises ValueError: masks in wrong places would let a secret stand."""
    if len(found) != len(texts):
        raise ValueError("an answer for other texts")
    for spans, text in zip(found, texts, strict=True):
        if not all(0 <= span.start < span.end <= len(text) for span in spans):
            raise ValueError("a place outside of its text")
    return found


def _reason(error: Exception) -> str:
    return "work-limit" if isinstance(error, WorkLimit) else "redactor-error"


# --- spans ------------------------------------------------------------------------------------------------------------


def outside(spans: Sequence[Span], masks: list[tuple[int, int]], text: str) -> list[Span]:
    """Spans with masked places cut out; a rest of fewer than four letters or digits is dropped."""
    if not masks:
        return list(spans)
    out: list[Span] = []
    for span in spans:
        at = span.start
        for low, high in [m for m in masks if m[0] < span.end and m[1] > span.start] + [(span.end, span.end)]:
            piece = text[at:low]
            whole = at == span.start and low == span.end
            if low > at and (whole or sum(c.isalnum() for c in piece) >= 4):
                out.append(span._replace(start=at, end=low))
            at = max(at, high)
    return out


def merged(spans: Sequence[Span]) -> list[Span]:
    """Sorted spans without overlaps; joined ones keep the kind of the surest, then longest, part."""
    out: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if out and span.start < out[-1].end:
            best = max(out[-1], span, key=lambda s: (s.confidence, s.end - s.start))
            out[-1] = best._replace(start=out[-1].start, end=max(out[-1].end, span.end))
        else:
            out.append(span)
    return out


# --- the texts of a conversation --------------------------------------------------------------------------------------

_HEAD = ("title", "account", "project", "model", "source_file")
_OF_MESSAGE = ("text", "speaker", "model", "tool_name", "hidden_reason")
_texts_of = attrgetter(*_OF_MESSAGE)
_OF_ATTACHMENT = ("name", "type", "text")
_OF_CITATION = ("url", "title")


def conversation_fields(conversation: Conversation) -> Iterator[tuple[str, str]]:
    """Name and value of every text; ids, times and the vault reference of an attachment are no text.

    The name of a model is one: people name their own (a path, a team, an address).
    """
    for name in _HEAD:
        if value := getattr(conversation, name):
            yield name, value
    for seq, message in enumerate(conversation.messages):
        for name, value in zip(_OF_MESSAGE, _texts_of(message), strict=True):
            if value:
                yield f"messages.{seq}.{name}", value
        for index, attachment in enumerate(message.attachment):
            for name in _OF_ATTACHMENT:
                if value := getattr(attachment, name):
                    yield f"messages.{seq}.attachment.{index}.{name}", value
        for index, citation in enumerate(message.citations):
            for name in _OF_CITATION:
                if value := getattr(citation, name):
                    yield f"messages.{seq}.citations.{index}.{name}", value


def with_fields(conversation: Conversation, texts: Mapping[str, str]) -> Conversation:
    """A copy of the conversation with these texts in place of its own."""

    def pick(prefix: str, names: Sequence[str]) -> dict[str, str]:
        return {name: texts[prefix + name] for name in names if prefix + name in texts}

    messages: list[Message] = []
    for seq, message in enumerate(conversation.messages):
        here = f"messages.{seq}."
        attachments: list[Attachment] = [
            replace(a, **pick(f"{here}attachment.{i}.", _OF_ATTACHMENT)) for i, a in enumerate(message.attachment)
        ]
        citations: list[Citation] = [
            replace(c, **pick(f"{here}citations.{i}.", _OF_CITATION)) for i, c in enumerate(message.citations)
        ]
        messages.append(replace(message, **pick(here, _OF_MESSAGE), attachment=attachments, citations=citations))
    return replace(conversation, **pick("", _HEAD), messages=messages)
