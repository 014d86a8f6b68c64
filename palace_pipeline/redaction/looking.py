"""The first look at a text: a few passes tell which layers of the engine have work in it. Most messages end here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from palace_pipeline.redaction import names, pii, telling, views
from palace_pipeline.redaction.rules import Rule
from palace_pipeline.redaction.scanning import Literals, Signs
from palace_pipeline.redaction.tokens import SAID

URL, BEGIN, AT = b"://", b"-----BEGIN ", b"@"


@dataclass(slots=True, frozen=True)
class Seen:
    """What stands in a text: places as (index, start, end) of anchors, telling words and marks, (start, end) of the stems of names;
    and which signs of personal data and of views there are."""

    anchors: list[tuple[int, int, int]]
    words: list[tuple[int, int, int]]
    marks: list[tuple[int, int, int]]
    stems: list[tuple[int, int]]
    personal: Collection[int]
    views: Collection[int]


_SIGNS = Signs([*pii.SIGNS, *views.SIGNS])
_VIEWS = len(pii.SIGNS)
"""Where the signs of views begin among the signs."""
_WORDS = Literals([*telling.TELLING, *SAID.keys, *names.STEMS])
_MARKS, _STEMS = len(telling.TELLING), len(telling.TELLING) + len(SAID.keys)
"""Where the marks and the stems begin among the words."""


class Looking:
    """A few passes that tell what there may be in a text: for most messages they end the work."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        by_text: dict[bytes, list[tuple[Rule, re.Pattern[bytes] | None]]] = {URL: [], BEGIN: [], AT: []}
        for rule in rules:
            for anchor in rule.anchors:
                after = re.compile(anchor.after) if anchor.after else None
                by_text.setdefault(anchor.text, []).append((rule, after))
        self.rules = list(by_text.items())
        self._anchors = Literals(list(by_text))

    def seen(self, texts: Sequence[bytes]) -> list[Seen]:
        """What stands in each text. Pass by pass over all of them: the tables of a pass stay in the processor's cache."""
        anchors = [self._anchors.places(data) for data in texts]
        words = [_WORDS.places(data.lower()) for data in texts]
        signs = [_SIGNS.seen(data) for data in texts]
        return [_seen(*found) for found in zip(anchors, words, signs, strict=True)]


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


def _seen(anchors: list[tuple[int, int, int]], found: list[tuple[int, int, int]], signs: Collection[int]) -> Seen:
    words: list[tuple[int, int, int]] = []
    marks: list[tuple[int, int, int]] = []
    stems: list[tuple[int, int]] = []
    for place in found:
        index, start, end = place
        if index >= _STEMS:
            stems.append((start, end))
        elif index >= _MARKS:
            marks.append((index - _MARKS, start, end))
        else:
            words.append(place)
    stems.sort()
    personal = [sign for sign in signs if sign < _VIEWS]
    return Seen(anchors, words, marks, stems, personal, [sign - _VIEWS for sign in signs if sign >= _VIEWS])
