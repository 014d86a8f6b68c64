"""The user's own list of names: people and projects, in any script, however a text writes their case."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from ahocorasick_rs import AhoCorasick, MatchKind

from palace_pipeline.settings import RedactionSettings

_SURROGATE = re.compile("[\ud800-\udfff]")
_JOINED_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
"""Scripts that write no blank between words, or particles right behind a name: a name may be part of a longer run."""


@dataclass(frozen=True, slots=True)
class Named:
    """text[start:end] is a listed name. `kind`: person or project; `number`: its place in the list, from 1."""

    start: int
    end: int
    kind: str
    number: int


class Names:
    """An automaton over all listed names. The longest name at a place counts (`Jane Doe` before `Jane`)."""

    def __init__(self, settings: RedactionSettings) -> None:
        self._labels: list[tuple[str, int]] = []
        ways: list[str] = []
        for kind, listed in (("person", settings.people), ("project", settings.projects)):
            for number, name in enumerate(listed, 1):
                for way in name:
                    ways.append(way.lower())
                    self._labels.append((kind, number))
        self._automaton = AhoCorasick(ways, matchkind=MatchKind.LeftmostLongest) if ways else None

    def __bool__(self) -> bool:
        return self._automaton is not None

    def find(self, text: str) -> Iterator[Named]:
        """Every listed name in a text. Case is ignored; a name in letters must stand alone as a word."""
        if self._automaton is None:
            return
        low = text.lower()
        if len(low) != len(text):  # a letter whose lower case is two: places would not fit
            low = "".join(lowered if len(lowered := char.lower()) == 1 else char for char in text)
        low = _SURROGATE.sub("\ufffd", low)
        for index, start, end in self._automaton.find_matches_as_indexes(low):
            if not (_one_word(text, start) or _one_word(text, end)):
                yield Named(start, end, *self._labels[index])


def _one_word(text: str, place: int) -> bool:
    """Do the characters on both sides of a place belong to one word?"""
    if not 0 < place < len(text):
        return False
    left, right = text[place - 1], text[place]
    return left.isalnum() and right.isalnum() and not (_joined(left) or _joined(right))


def _joined(char: str) -> bool:
    return not char.isascii() and unicodedata.name(char, "").startswith(_JOINED_SCRIPTS)
