"""What has been found once is found everywhere: whole values, and long enough pieces of them, in every field.

A value of 16 characters or more is looked for by its 8-character grams, so that a copy without its prefix, cut short or
wrapped is still seen. Shorter values must stand alone and whole.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ahocorasick_rs import AhoCorasick, BytesAhoCorasick, Implementation, MatchKind

from palace_pipeline.redaction.verdicts import EXAMPLES, WEAK_PASSWORDS, entropy, is_placeholder, word_share
from palace_pipeline.redaction.views import flat

GRAM = 8
LEAST_PIECE = 12
MAX_VALUE = 16_384
HEAD = 64
"""Characters by which a value is looked for that is found whole or not at all: an automaton over long ones that repeat
themselves takes quadratic time to build."""
_ODD_CASE = re.compile("[a-z][A-Z]{2,}[a-z]")
"""No word, and no name in code, is written so."""
_HUMPS = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_DIGIT = re.compile(r"\d")
_SYMBOL = re.compile(r"[^\w\s]|_")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ALNUM = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


@dataclass(slots=True, frozen=True)
class Claim:
    """A value to look for, with the mask it gets. `whole`: pieces of it are harmless (personal data, encoded blobs)."""

    value: str
    kind: str
    rule: str
    whole: bool = False


@dataclass(slots=True, frozen=True)
class Echo:
    """data[start:end] repeats a claim, or a piece of it."""

    start: int
    end: int
    claim: Claim


def worth_remembering(value: str) -> bool:
    """Is this value distinct enough to be masked wherever it stands? Short and common words are not."""
    low = value.lower()
    if len(value) < 6 or low in WEAK_PASSWORDS or is_placeholder(value):
        return False
    digit = _DIGIT.search(value) is not None
    if not digit and word_share(value) > 0.7 and _ODD_CASE.search(value) is None:
        return False
    symbol = _SYMBOL.search(value) is not None
    if len(value) < 8:
        return digit and (symbol or any(c.isalpha() for c in value))
    if symbol or (digit and len(value) >= 9):
        return True
    return (digit and any(c.isalpha() for c in value)) or entropy(value) >= 2.5


PLACED = frozenset({"url-userinfo", "login-option", "password-file"})
"""Rules whose finds are secrets because of the place alone that they stand in."""
_CAPITAL_INSIDE = re.compile("[a-z][A-Z]")
_SIGNS = re.compile("[^A-Za-z]+")


def secret_by_place(value: str) -> bool:
    """Is a password that reads like words, and of which only its place tells, no word that texts hold anyway? Words with a
    capital inside and words with signs between them are; one word is not, nor are words that stand for a password."""
    if not value.isascii() or len(value) < 8 or is_placeholder(value):
        return False
    if value.isalpha():
        words = _CAPITAL_INSIDE.search(value) and _HUMPS.findall(value)
    else:
        words = len(value) >= 16 and [word for word in _SIGNS.split(value) if word]
    return bool(words) and len(words) > 1 and not all(word.lower() in EXAMPLES for word in words)


class Memory:
    """An automaton over claims; building it costs time in proportion to the length of the values."""

    def __init__(self, claims: Iterable[Claim]) -> None:
        self._values: list[tuple[bytes, Claim]] = []
        grams: dict[bytes, list[tuple[int, int]]] = {}
        seen: set[str] = set()
        self._wide: list[tuple[str, Claim]] = []
        for claim in claims:
            for form in _forms(claim.value):
                if form in seen:
                    continue
                seen.add(form)
                data = flat(form)
                if 0x80 in data:
                    self._wide.append((form, claim))
                    if len(data) < 16 or claim.whole:
                        continue
                index = len(self._values)
                self._values.append((data, claim))
                pieces = [] if len(data) < 16 or len(data) > MAX_VALUE or claim.whole else _grams(data)
                for gram, offset in pieces:
                    grams.setdefault(gram, []).append((index, offset))
                if not pieces and 0x80 not in data:
                    grams.setdefault(data[:HEAD], []).append((index, 0))
        grams = _telling(grams)
        self._keys = list(grams)
        self._places = [grams[key] for key in self._keys]
        # One automaton a conversation: a full table takes longer to build than the texts take to search.
        self._automaton = (
            BytesAhoCorasick(self._keys, matchkind=MatchKind.Standard, implementation=Implementation.ContiguousNFA)
            if grams
            else None
        )
        # Flat data tells one letter beyond ASCII from none: what has some is looked for in the text itself.
        forms = [_searchable(form[:HEAD]) for form, _ in self._wide]
        self._wide_automaton = AhoCorasick(forms, matchkind=MatchKind.Standard) if forms else None

    def __bool__(self) -> bool:
        return self._automaton is not None or self._wide_automaton is not None

    def find(self, text: str, data: bytes, spend: Callable[[int], None]) -> Iterator[Echo]:
        """Every echo in a text; `spend` is told the work done, in characters compared."""
        if self._wide_automaton is not None:
            yield from self._wide_echoes(self._wide_automaton, text, data, spend)
        if self._automaton is None:
            return
        done: dict[int, int] = {}
        for key, start, _ in self._automaton.find_matches_as_indexes(data, overlapping=True):
            for index, offset in self._places[key]:
                if start < done.get(index, 0):
                    continue
                value, claim = self._values[index]
                low, high = start - offset, start - offset + len(value)
                if low < 0 or not data.startswith(value, low):
                    low, high = _grow(data, start, value, offset, len(self._keys[key]))
                spend(high - low)
                done[index] = high
                if self._good(text, data, low, high, value, claim):
                    yield Echo(low, high, claim)

    def _wide_echoes(
        self, automaton: AhoCorasick, text: str, data: bytes, spend: Callable[[int], None]
    ) -> Iterator[Echo]:
        for index, start, _ in automaton.find_matches_as_indexes(_searchable(text), overlapping=True):
            form, claim = self._wide[index]
            end = start + len(form)
            spend(len(form))
            if end > len(text):
                continue
            glued = _glued(data, start - 1, data[start]) or _glued(data, end, data[end - 1])
            if text[start:end] == form and not (glued and (claim.whole or end - start < LEAST_PIECE)):
                yield Echo(start, end, claim)

    def _good(self, text: str, data: bytes, low: int, high: int, value: bytes, claim: Claim) -> bool:
        size = high - low
        if size == len(value):
            if 0x80 in value and text[low:high] != claim.value:
                return False
            if size >= 12 and not claim.whole:
                return True
            return not (_glued(data, low - 1, data[low]) or _glued(data, high, data[high - 1]))
        if claim.whole or size < LEAST_PIECE:
            return False
        piece = data[low:high].decode("latin-1")
        if size >= 0.6 * len(value) and size >= 16:
            return True
        return word_share(piece) < 0.75 and len(set(piece)) >= 7 and entropy(piece) >= 2.7


def _grams(data: bytes) -> list[tuple[bytes, int]]:
    """The pieces by which a value is looked for; none when it has too few different characters, or none of ASCII."""
    step = LEAST_PIECE - GRAM + 1 if len(data) <= 1024 else GRAM
    places = range(0, len(data) - GRAM + 1, step)
    if 0x80 not in data:
        return [(gram, at) for at in places if len(set(gram := data[at : at + GRAM])) > 2]
    return [(gram, at) for at in places if 0x80 not in (gram := data[at : at + GRAM]) and len(set(gram)) > 2]


MANY = 16


def _telling(grams: dict[bytes, list[tuple[int, int]]]) -> dict[bytes, list[tuple[int, int]]]:
    """Without the pieces that many values share (`sk-ant-a`), where a value has others: they would all be compared."""
    if all(len(places) <= MANY for places in grams.values()):
        return grams
    own = {index for places in grams.values() if len(places) <= MANY for index, _ in places}
    kept: dict[bytes, list[tuple[int, int]]] = {}
    for gram, places in grams.items():
        left = places if len(places) <= MANY else [place for place in places if place[0] not in own]
        if left:
            kept[gram] = left
    return kept


def _searchable(text: str) -> str:
    """Without lone surrogates, which the automaton cannot take; as long as it was."""
    return _SURROGATE.sub("\ufffd", text)


def _grow(data: bytes, start: int, value: bytes, offset: int, size: int) -> tuple[int, int]:
    low, place = start, offset
    while low > 0 and place > 0 and data[low - 1] == value[place - 1]:
        low -= 1
        place -= 1
    high, place = start + size, offset + size
    while high < len(data) and place < len(value) and data[high] == value[place]:
        high += 1
        place += 1
    return low, high


def _glued(data: bytes, place: int, inner: int) -> bool:
    return 0 <= place < len(data) and data[place] in _ALNUM and inner in _ALNUM


_ONE_FORM = re.compile(r"[A-Za-z0-9_.~-]*[A-Za-z_][A-Za-z0-9_.~-]*")


_PERCENT = {code: urllib.parse.quote(chr(code), safe="") for code in range(128)}
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_NO_SIGNS = dict.fromkeys(map(ord, " ().+-"))


def _forms(value: str) -> Iterator[str]:
    """A value as it may be repeated: as it is, percent-encoded or decoded, JSON-escaped, its digits alone."""
    yield value
    if len(value) > 2048 or _ONE_FORM.fullmatch(value):
        return
    if "%" in value:
        yield urllib.parse.unquote(value)
    quoted = value.translate(_PERCENT) if value.isascii() else urllib.parse.quote(value, safe="")
    if quoted != value:
        yield quoted
    if _ESCAPED.search(value):
        yield json.dumps(value, ensure_ascii=False)[1:-1]
    digits = value.translate(_NO_SIGNS)
    if digits != value and digits.isdigit() and len(digits) >= 9:
        yield digits
