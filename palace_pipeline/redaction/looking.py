"""The first look at a text: a few passes tell which layers of the engine have work in it. Most messages end here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from palace_pipeline.redaction import names, pii, telling, views
from palace_pipeline.redaction.rules import Rule
from palace_pipeline.redaction.scanning import Literals, Signs
from palace_pipeline.redaction.tokens import SAID

URL, BEGIN, AT = b"://", b"-----BEGIN ", b"@"


class Seen(NamedTuple):
    """What stands in a text: places as (index, start, end) of anchors, telling words and marks, (start, end) of the stems of names;
    and which signs of personal data and of views there are."""

    anchors: list[tuple[int, int, int]]
    words: list[tuple[int, int, int]]
    marks: list[tuple[int, int, int]]
    stems: list[tuple[int, int]]
    personal: Collection[int]
    views: Collection[int]


_NOTHING = Seen([], [], [], [], (), ())

_SIGNS = Signs([*pii.SIGNS, *views.SIGNS])
_VIEWS = len(pii.SIGNS)
"""Where the signs of views begin among the signs."""
_WORDS = [*telling.TELLING, *SAID.keys, *names.STEMS]
_MARKS, _STEMS, _ANCHORS = len(telling.TELLING), len(telling.TELLING) + len(SAID.keys), len(_WORDS)
"""Where marks, stems and anchors begin among what is looked for."""


_NEVER = b"\xff\xff"
"""In no flat text."""


def _folded(anchor: bytes) -> bytes:
    """How an anchor is looked for in a text in small letters."""
    return _NEVER if len(set(anchor)) == 1 and anchor.isalpha() else anchor.lower()


class Looking:
    """A few passes that tell what there may be in a text: for most messages they end the work."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        by_text: dict[bytes, list[tuple[Rule, re.Pattern[bytes] | None]]] = {URL: [], BEGIN: [], AT: []}
        for rule in rules:
            for anchor in rule.anchors:
                after = re.compile(anchor.after) if anchor.after else None
                by_text.setdefault(anchor.text, []).append((rule, after))
        self.rules = [
            (text, found, bool(found) and not any(rule.back for rule, _ in found)) for text, found in by_text.items()
        ]
        """Of each anchor its text, its rules, and whether nothing but the left edge of a token may stand before it."""
        self._anchors = list(by_text)
        self._find = Literals([*_WORDS, *map(_folded, by_text)])
        # One letter again and again, in small letters, would be an anchor at every place: it is looked for as it stands.
        self._same = [(index, text) for index, text in enumerate(by_text) if _folded(text) == _NEVER]
        self._find_same = Literals([text for _, text in self._same])

    def seen(self, texts: Sequence[bytes]) -> list[Seen]:
        """What stands in each text. Pass by pass over all of them: the tables of a pass stay in the processor's cache."""
        places = [self._find.places(data.lower()) for data in texts]
        for data, found in zip(texts, places, strict=True):
            if any(text in data for _, text in self._same):
                found += (
                    (_ANCHORS + self._same[index][0], start, end) for index, start, end in self._find_same.places(data)
                )
                found.sort(key=itemgetter(2))
        signs = [_SIGNS.seen(data) for data in texts]
        return [
            self._seen(*found) if found[1] or found[2] else _NOTHING for found in zip(texts, places, signs, strict=True)
        ]

    def _seen(self, data: bytes, places: list[tuple[int, int, int]], signs: Collection[int]) -> Seen:
        anchors: list[tuple[int, int, int]] = []
        words: list[tuple[int, int, int]] = []
        marks: list[tuple[int, int, int]] = []
        stems: list[tuple[int, int]] = []
        for place in places:
            index, start, end = place
            if index >= _ANCHORS:
                index -= _ANCHORS
                if data.startswith(self._anchors[index], start):  # their case counts
                    anchors.append((index, start, end))
            elif index >= _STEMS:
                stems.append((start, end))
            elif index >= _MARKS:
                marks.append((index - _MARKS, start, end))
            else:
                words.append(place)
        if len(stems) > 1:
            stems.sort()
        if not signs:
            return Seen(anchors, words, marks, stems, (), ())
        personal = [sign for sign in signs if sign < _VIEWS]
        return Seen(anchors, words, marks, stems, personal, [sign - _VIEWS for sign in signs if sign >= _VIEWS])


BATCH = 500_000
"""Characters of fields that are looked at together: enough to be quick, and what is seen in them is small."""


def batches(fields: Sequence[str]) -> Iterator[Sequence[str]]:
    """The fields in groups of about `BATCH` characters, in order."""
    start = size = 0
    for index, text in enumerate(fields):
        size += len(text)
        if size >= BATCH:
            yield fields[start : index + 1]
            start, size = index + 1, 0
    if start < len(fields):
        yield fields[start:]
