"""The engine: fields of one conversation in, places to mask out. Work is counted, never timed.

Layers: `rule` (a token known by its shape), `name` (by the name beside it), `container` (by what holds it), `personal`,
`private` (the user's own patterns), `known` (the user's own values), `memory` (a repeat), each in the text as it stands,
in its normalised and joined views, and in what is encoded in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from palace_pipeline.redaction import containers, names, pii, telling
from palace_pipeline.redaction.foreign import foreign_names, foreign_words
from palace_pipeline.redaction.hits import Hit, Span
from palace_pipeline.redaction.known import known_values
from palace_pipeline.redaction.looking import AT, BEGIN, URL, Looking, Seen, batches
from palace_pipeline.redaction.memory import PLACED, Claim, Memory, secret_by_place, worth_remembering
from palace_pipeline.redaction.people import Names
from palace_pipeline.redaction.readings import Closed, Reading
from palace_pipeline.redaction.recipe import ENGINE_RECIPE
from palace_pipeline.redaction.rules import ALNUM, body_of, in_context, load_rules, match, starts_here
from palace_pipeline.redaction.scanning import Program, Runs
from palace_pipeline.redaction.second import Kingfisher
from palace_pipeline.redaction.tokens import DIGEST_SIZES, NUMBER, Said, Token, said_number, unknown_token
from palace_pipeline.redaction.verdicts import secret_enough
from palace_pipeline.redaction.view import View
from palace_pipeline.redaction.views import MAX_DECODED, called_for, decoded_base64, decoded_hex, flat, views_of
from palace_pipeline.redaction.words import WORDS
from palace_pipeline.redaction.work import Work
from palace_pipeline.settings import RedactionSettings

MAX_DEPTH = 2
MAX_RUN = MAX_DECODED * 4 // 3 - 4
"""Characters of an encoded run that are decoded at least; the rest of a longer one is masked."""


class Engine(Protocol):
    """Whatever can find what has to go."""

    @property
    def version(self) -> str:
        """Changes when the engine would find other places."""
        ...

    @property
    def kinds(self) -> frozenset[str]:
        """Every kind a span may have."""
        ...

    def scan(self, fields: Sequence[str]) -> list[list[Span]]:
        """Spans for each field of one conversation, in any order, possibly overlapping. Raises WorkLimit."""
        ...


# --- the engine -------------------------------------------------------------------------------------------------------

_DIGITS = b"0123456789"
_BACKSLASH = 92
_GOING_ON = (b".", b":", b"|", b"~", b"=")
"""Behind these another part of a token may stand."""
_TOKEN_RUN = re.compile(rb"[A-Za-z0-9_\-]{0,4096}")
RUN = Runs(bytes(ALNUM) + b"+/_-", 20)
_BASE64_TEXT = re.compile(
    rb"(?:[C-DI-Za-f3-7][A-Za-z0-9+/_\-]{3}){5}|(?:[4-7][A-Za-z0-9+/]{3}){2}|0[JKLY][A-Za-z0-9+/]{2}[QR]|(?:0[xX])?(?:[2-7][0-9a-fA-F]){16}|[A-Z2-7]{32}|[A-Za-z0-9+/]{3,4}A[A-Z][A-Za-z0-9+/]{0,2}A"
)


class RuleEngine:
    """The built-in engine. Build it once: `scan` keeps nothing between conversations."""

    def __init__(self, settings: RedactionSettings | None = None) -> None:
        """Raises ValueError when an env file cannot be read, `allow_rules` names a rule that does not exist, or Kingfisher is
        asked for and not installed."""
        settings = settings or RedactionSettings()
        self._rules = load_rules()
        self._looking = Looking(self._rules)
        self._located = tuple(rule for rule in self._rules if rule.locate)
        self._located_any = re.compile(b"|".join(b"(?:" + rule.regex.pattern + b")" for rule in self._located))
        self._private = tuple(Program(pattern.encode(), latin=False) for pattern in settings.private_patterns)
        known = [Claim(value, "known-value", "known-value") for value in known_values(settings)]
        self._known = Memory(known) if known else None
        self._names = Names(settings)
        self._second = Kingfisher() if settings.kingfisher else None
        self._asked = bool(self._private or self._second)
        self._allow = frozenset(settings.allow)
        self._off = frozenset(settings.allow_rules)
        if unknown := self._off - self.kinds - {rule.id for rule in self._rules}:
            raise ValueError(f"allow_rules: there is no kind or rule called {', '.join(sorted(unknown))}")

    @property
    def version(self) -> str:
        return f"rules-{ENGINE_RECIPE}"

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(rule.kind for rule in self._rules) | OTHER_KINDS

    def scan(self, fields: Sequence[str]) -> list[list[Span]]:
        """Spans of all fields. What one field claims is looked for in all of them."""
        work = Work(sum(map(len, fields)))
        scanned: list[tuple[list[Reading], list[Hit]]] = []
        for texts in batches(fields):
            flats = [flat(text) for text in texts]
            seen = self._looking.seen(flats)
            scanned += [self._scan_field(*field, work) for field in zip(texts, flats, seen, strict=True)]
        if self._allow or self._off:
            scanned = [(readings, [hit for hit in hits if self._wanted(hit)]) for readings, hits in scanned]
        claims: dict[str, Claim] = {}
        for _, hits in scanned:
            for hit in hits:
                if hit.value in claims or hit.layer == "known":
                    continue
                if not worth_remembering(hit.value):
                    if hit.rule in PLACED and secret_by_place(hit.value):
                        claims[hit.value] = Claim(hit.value, hit.kind, hit.rule, True)
                    continue
                claims[hit.value] = Claim(hit.value, hit.kind, hit.rule, hit.whole)
                tail = hit.value[hit.prefix :].lstrip("-_.")
                # a longer tail is found by the pieces of the whole
                if hit.prefix and 12 <= len(tail) < max(16, 0.6 * len(hit.value)) and not hit.whole:
                    claims.setdefault(tail, Claim(tail, hit.kind, hit.rule))
        memory = Memory(claims.values()) if claims else None
        if memory:
            for readings, hits in scanned:
                for reading in readings:
                    hits += (hit for hit in reading.found(memory, work, "memory") if hit.value not in self._allow)
        return [[hit.span for hit in hits] for _, hits in scanned]

    def _wanted(self, hit: Hit) -> bool:
        return not (hit.value in self._allow or hit.kind in self._off or hit.rule in self._off)

    def _scan_field(self, text: str, data: bytes, seen: Seen, work: Work) -> tuple[list[Reading], list[Hit]]:
        reading = Reading(text, data, [])
        if len(text) < 4:  # nothing but a name or a pattern of the user's own is so short
            own = [reading.named(found) for found in self._names.find(text)]
            own += (hit for index, pattern in enumerate(self._private) for hit in _private(text, pattern, index))
            return [], own
        hits: list[Hit] = []
        readings: list[Reading] = []
        self._read(reading, seen, work, 0, readings, hits)
        return readings, hits

    def _read(
        self, reading: Reading, seen: Seen, work: Work, depth: int, readings: list[Reading], hits: list[Hit]
    ) -> None:
        """Scan one reading of a field and all readings under it; hits are in places of the field itself."""
        readings.append(reading)
        text, data = reading.text, reading.data
        work.spend(8 * len(text))
        plain = text.isascii() and not (seen.anchors or seen.stems or seen.words or seen.personal or self._asked)
        own = [] if plain else list(self._plain(text, data, work, reading.joints, seen))
        runs = RUN.spans(data) if depth < MAX_DEPTH else []
        blobs = list(self._runs(text, data, work, own, seen, runs)) if runs else []
        for hit in own:
            placed = reading.place(hit)
            if placed is not None:
                hits.append(placed)
        if self._known is not None:
            hits += reading.found(self._known, work, "known")
        if self._names:
            hits += (reading.named(found) for found in self._names.find(text))
        for start, end, inside in blobs:
            before = len(hits)
            view = View(inside, "decoded", [0], [start], [end - start], [len(inside)])
            self._below(Reading(inside, flat(inside), [*reading.chain, view]), work, depth, readings, hits)
            if len(hits) > before and reading.chain == []:
                hits.append(Hit(start, end, hits[before].kind, "encoded", "view", 0.9, text[start:end], whole=True))
        if depth >= MAX_DEPTH or not called_for(text, data, seen.views):
            return
        for view in views_of(text, data, seen.views, Closed(text, data, own, seen.anchors)):
            chain = [*reading.chain, view]
            below = Reading(view.text, flat(view.text), chain, own=own, joints=view.kind == "joined")
            self._below(below, work, depth, readings, hits)

    def _below(self, reading: Reading, work: Work, depth: int, readings: list[Reading], hits: list[Hit]) -> None:
        self._read(reading, self._looking.seen([reading.data])[0], work, depth + 1, readings, hits)

    # --- one text, as it stands

    def _plain(self, text: str, data: bytes, work: Work, joints: bool, seen: Seen) -> Iterator[Hit]:
        if seen.anchors:
            yield from self._anchored(text, data, work, seen.anchors)
        if seen.stems:
            for found in names.assigned(data, seen.stems):
                yield _named(text, found)
        words = foreign_words(text)
        if words:
            for found in foreign_names(text, data, words):
                yield _named(text, found)
        if seen.words or words:
            for held in telling.told(text, data, seen.words, words):
                yield _held(text, held)
        if seen.personal and not joints:  # numbers of two lines are two numbers
            for found in pii.personal(text, data, seen.personal):
                yield _personal(text, found)
        for held in self._second.find(text) if self._second else ():
            yield _held(text, held)
        for index, pattern in enumerate(self._private):
            yield from _private(text, pattern, index)

    def _anchored(self, text: str, data: bytes, work: Work, places: list[tuple[int, int, int]]) -> Iterator[Hit]:
        done: dict[str, int] = {}
        for index, start, end in places:
            anchor, rules, bound = self._looking.rules[index]
            if bound and start and data[start - 1] in ALNUM and data[start - 2] != _BACKSLASH:
                continue  # the middle of a word
            if anchor == AT:
                found = pii.email_at(data, start, text)
                if found is not None:
                    yield _personal(text, found)
                continue
            if anchor == URL:
                work.spend(100)
                if start >= done.get("://", 0):
                    url_end = done["://"] = containers.url_end(data, start)
                    for held in containers.url_parameters(data, start, url_end):
                        yield _held(text, held)
                    for held in containers.url_paths(data, start, url_end):
                        yield _held(text, held)
                for held in containers.url_credentials(data, start):
                    yield _held(text, held)
                continue
            if anchor == BEGIN:
                held = containers.private_keys(data, start) if start >= done.get("pem", 0) else None
                if held is not None:
                    done["pem"] = held.end
                    work.spend(held.end - held.start)
                    yield _held(text, held)
                continue
            for rule, after in rules:
                if after is not None and after.match(data, end) is None:
                    continue
                if start < done.get(rule.id, 0) or not (rule.back or starts_here(data, start, rule.bare_start)):
                    continue
                got = match(rule, data, start, end)
                if got is not None:
                    low, high, prefix = got
                    done[rule.id] = high
                    work.spend(high - low)
                    yield Hit(low, high, rule.kind, rule.id, "rule", 0.95, text[low:high], prefix=prefix)
                else:
                    run = _TOKEN_RUN.match(data, start)
                    size = run.end() - start if run else 0
                    work.spend(20 + size)
                    if size > 256:
                        done[rule.id] = start + size

    def _runs(
        self, text: str, data: bytes, work: Work, own: list[Hit], seen: Seen, runs: list[tuple[int, int]]
    ) -> Iterator[tuple[int, int, str]]:
        """Long unbroken runs: rules without a fixed part, wallet keys, and texts that are encoded in them."""
        known = {hit.start: hit.end for hit in own}
        said: Said | None = None
        for start, end in runs:
            number = NUMBER.match(data, start, end)
            after = data[end : end + 1]
            if number is not None and after != b"=":
                if number.lastindex:
                    continue  # a UUID
                if after == b".":  # none of the others is a number in hex alone
                    self._located_at(text, data, start, own)
                size = end - start
                if size in DIGEST_SIZES:
                    said = said or Said(text, data, seen.marks)
                    token = said_number(data, start, end, said)
                    if token is not None and known.get(token.start, 0) < token.end:
                        own.append(_token(text, token))
                if size >= 32 and _BASE64_TEXT.match(data, start) is not None:
                    plain = decoded_hex(text[start:end])
                    if plain is not None:
                        yield self._encoded(start, end, plain, own, work)
                continue
            edge = start + (start > 0 and data[start - 1] == _BACKSLASH and data[start] in b"nrt")
            while edge < end and data[edge] in b"+/-_":
                edge += 1
            run = data[edge:end]
            digits = len(run) - len(run.translate(None, _DIGITS))
            if after == b"=":  # padding of base64
                end += 2 if data[end + 1 : end + 2] == b"=" else 1
            size = end - start
            if digits:
                self._located_at(text, data, edge, own)
                if 26 <= size <= 52 and data[start] in b"13KL5T9c" and (kind := pii.base58_check(text[start:end])):
                    own.append(Hit(start, end, kind, kind, "personal", 0.95, text[start:end]))
            if known.get(edge, 0) >= end and after not in _GOING_ON and (not edge or data[edge - 1] not in b".:|~/"):
                pass  # all of it is known
            # letters alone are a token only with the sign of base64 behind them
            elif (digits or size > len(run)) and end - edge >= 20 and (digits > 1 or b"_" in run or b"-" in run):
                said = said or Said(text, data, seen.marks)
                token = unknown_token(data, edge, end, said)
                if token is not None and known.get(token.start, 0) < token.end:
                    own.append(_token(text, token))
            if size >= 24 and _BASE64_TEXT.match(data, start) is not None:
                plain = decoded_base64(text[start:end])
                if plain is not None:
                    yield self._encoded(start, end, plain, own, work)

    def _located_at(self, text: str, data: bytes, start: int, own: list[Hit]) -> None:
        """Tokens without a fixed part that begin at `start`."""
        if self._located_any.match(data, start) is None:
            return
        for rule in self._located:
            found = rule.regex.match(data, start)
            if found and in_context(rule, data, start) and secret_enough(body_of(found[0])):
                prefix = found[0].rfind(b"_") + 1 or found[0].rfind(b"-") + 1
                value = text[start : found.end()]
                own.append(Hit(start, found.end(), rule.kind, rule.id, "rule", 0.8, value, prefix=prefix))

    @staticmethod
    def _encoded(start: int, end: int, plain: str, own: list[Hit], work: Work) -> tuple[int, int, str]:
        work.spend(2 * len(plain))
        if end - start > MAX_RUN:
            # Text in it that is not decoded is not judged either.
            own.append(Hit(start + MAX_RUN, end, "secret", "unread", "view", 0.3, "", whole=True))
        return start, end, plain


# --- hits from finders ------------------------------------------------------------------------------------------------

_NAMED_KIND = {"password": "password", "strong": "secret", "weak": "secret", "phrase": "seed-phrase"}
OTHER_KINDS = WORDS["other_kinds"]
"""Kinds that no rule of rules.toml has."""


def _token(text: str, found: Token) -> Hit:
    value = text[found.start : found.end]
    return Hit(found.start, found.end, "token", found.rule, "rule", 0.6, value, prefix=found.prefix)


def _named(text: str, found: names.Assigned) -> Hit:
    value = text[found.start : found.end]
    kind = _NAMED_KIND[found.strength]
    confidence = 0.6 if found.strength == "weak" else 0.8
    return Hit(found.start, found.end, kind, f"name-{found.strength}", "name", confidence, value)


def _held(text: str, found: containers.Held) -> Hit:
    value = text[found.start : found.end]
    return Hit(found.start, found.end, found.kind, found.rule, "container", 0.9, value)


def _personal(text: str, found: pii.Personal) -> Hit:
    value = text[found.start : found.end]
    confidence = 0.85 if found.sure else 0.5
    return Hit(found.start, found.end, found.kind, found.kind, "personal", confidence, value, whole=True)


def _private(text: str, pattern: Program, index: int) -> Iterator[Hit]:
    data = text.encode("utf-8", "surrogatepass")
    narrow = len(data) == len(text)
    at, seen = 0, 0
    for spans in pattern.spans(data):
        low, high = spans[0]
        if low == high:
            continue
        if narrow:
            start, end = low, high
        else:
            start = seen + len(data[at:low].decode("utf-8", "surrogatepass"))
            end = start + len(data[low:high].decode("utf-8", "surrogatepass"))
            at, seen = high, end
        rule = f"private-{index + 1}"
        yield Hit(start, end, "private-pattern", rule, "private", 1.0, text[start:end], whole=True)
