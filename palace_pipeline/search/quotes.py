"""The part of a message that answers: verbatim, cut at natural places, with the matches marked beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from palace_pipeline.transcripts.terms import Term, terms

QUOTE_LENGTH = 280
"""Most characters of a quote."""

_BREAK = re.compile(r"\n+|(?<=[.!?。！？；;])\s*|(?<=[，,、：:])\s*|\s+")
"""Places to begin or end at, sought near the wanted length; the best kind that is near wins."""
_REACH = 60


@dataclass(slots=True, frozen=True)
class Quote:
    """`text` is a slice of the message from `start`; `marks`: start and end (code points of `text`) of each match."""

    text: str
    start: int
    marks: tuple[tuple[int, int], ...]


def quote_of(text: str, weights: Mapping[str, float], length: int = QUOTE_LENGTH) -> Quote:
    """The stretch of at most `length` characters that holds the most weight of distinct terms; the beginning if none."""
    alone = [Term(c, place, place + 1) for place, c in enumerate(text) if c in weights]
    found = sorted([term for term in terms(text) if term.text in weights] + alone, key=lambda term: term.start)
    start, end = _stretch(text, found, weights, length)
    start, end = _trimmed(text, start, end)
    marks = _joined([(term.start, term.end) for term in found if start <= term.start and term.end <= end])
    return Quote(text[start:end], start, tuple((at - start, to - start) for at, to in marks))


def _stretch(text: str, found: Sequence[Term], weights: Mapping[str, float], length: int) -> tuple[int, int]:
    if len(text) <= length:
        return 0, len(text)
    best, span = 0.0, (0, 0)
    room = length * 3 // 4  # leave some words around the match
    last = 0
    for first, term in enumerate(found):
        last = max(last, first)
        while last + 1 < len(found) and found[last + 1].end - term.start <= room:
            last += 1
        # fsum: a set has no order, and the same question must give the same quote.
        held = math.fsum(weights[name] for name in {other.text for other in found[first : last + 1]})
        if held > best:
            best, span = held, (term.start, found[last].end)
    spare = length - (span[1] - span[0])
    start = max(0, min(span[0] - spare // 3, len(text) - length))
    start = _break_after(text, start, span[0]) if start else 0
    end = min(len(text), start + length)
    return start, (_break_before(text, end, span[1]) if end < len(text) else end)


def _break_after(text: str, at: int, latest: int) -> int:
    """A natural place to begin, from `at` on, but not behind `latest`."""
    places = [match.end() for match in _BREAK.finditer(text, at, min(at + _REACH, latest))]
    return min(_best(text, places), latest) if places else at


def _break_before(text: str, at: int, earliest: int) -> int:
    """A natural place to end, up to `at`, but not before `earliest`."""
    places = [match.start() for match in _BREAK.finditer(text, max(at - _REACH, earliest), at)]
    return _best(text, places[::-1]) if places else at


def _best(text: str, places: Sequence[int]) -> int:
    """The first place at a line's or sentence's border, else the first."""
    for place in places:
        around = text[max(place - 1, 0) : place + 1]
        if any(character in "\n.!?。！？" for character in around):
            return place
    return places[0]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - (len(part) - len(part.rstrip())) if part.strip() else start


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping and touching spans as one, in order (the pairs of a Chinese word; a name and its parts)."""
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
