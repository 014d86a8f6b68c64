"""Where a long text may be cut, and cutting it into pieces of bounded token count.

Nothing is changed or lost: a piece is a slice of the text, only blank space at the cuts is trimmed. Cuts are chosen
from the front with a look at no more than the next two pieces, so that a text which grows keeps its first pieces.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SECTION, PARAGRAPH, ITEM, LINE, SENTENCE, CODE_GAP, CODE_LINE = range(7)
"""Kinds of places, best first: before a heading of a document or between messages; between blocks; between list items;
between lines of prose; after a sentence; at a blank line inside code; between lines of code or rows of a table."""

_AVOID = 99
"""Between a heading and its text, inside a fence's first or last line: only as good as any other space."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_ITEM = re.compile(
    r"(\s*)(?:[-*+]\s|[•·①-⑳]|\(?\d{1,3}[.)]\s|[（(][一二三四五六七八九十\d]{1,3}[)）]|[一二三四五六七八九十\d]{1,3}、)\s*\S"
)
_TABLE = re.compile(r"\s*\|.*\|\s*$|\s*:?-{3,}:?\s*\|")
_TABLE_RULE = frozenset(" \t|:+-")
_SENTENCE_END = re.compile(r"(?:[。！？；…]+|(?<![.!?؟۔।])[.!?؟۔।]++(?=[\s\"'”’)\]]))[\"'”’»」』）)\]]*\s*")
_CLAUSE_END = re.compile(r"[，、；：,;:]\s*|\s+")
_COLON = (":", "：")


@dataclass(slots=True)
class Layout:
    """The lines that a cut may come before (`starts`), how good that is, and which lines are code or table."""

    starts: list[int]
    levels: list[int]
    rigid: list[bool]

    def is_rigid(self, position: int) -> bool:
        """Whether a position lies in code or in a table, where the end of a sentence means nothing."""
        place = bisect_right(self.starts, position) - 1
        return place >= 0 and self.rigid[place]


def layout_of(text: str, *, boundaries: Sequence[int] = (), sections: bool = False) -> Layout:
    """Read a text's Markdown lines. `boundaries`: positions where messages meet; `sections`: cut at headings first."""
    layout = Layout([], [], [])
    joints = set(boundaries)
    heading = SECTION if sections else PARAGRAPH
    state = _Lines(heading)
    for start, line in _lines(text):
        if start in joints:
            state = _Lines(heading)
        if not line.strip():
            state.blank = True
            continue
        level, rigid = state.read(line)
        layout.starts.append(start)
        layout.levels.append(SECTION if start in joints else level)
        layout.rigid.append(rigid)
    return layout


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, text[start:end]
        start = end + 1


class _Lines:
    """What the lines so far say about the next one."""

    def __init__(self, heading_level: int) -> None:
        self.heading_level = heading_level
        self.blank = False
        self.fence = ""
        self.last = ""
        """What the line before was: "", heading, lead (ends with a colon), item, table, open, code, prose."""

    def read(self, line: str) -> tuple[int, bool]:
        """Level of a cut before this line that is not blank, and whether the line is code or table."""
        blank, last = self.blank, self.last
        self.blank = False
        if self.fence:
            return self._read_code(line, blank)
        if found := _FENCE.match(line):
            mark, rest = found.groups()
            if not (mark[0] == "`" and "`" in rest):  # else a whole code span in one line
                self.fence, self.last = mark, "open"
                return (LINE if last == "lead" else _after(last, PARAGRAPH)), True
        if _HEADING.match(line):
            self.last = "heading"
            return self.heading_level, False
        if _TABLE.match(line):
            self.last = "table"
            if _TABLE_RULE.issuperset(line):
                return _AVOID, True
            return (CODE_LINE if last == "table" and not blank else _after(last, PARAGRAPH)), True
        if item := _ITEM.match(line):
            self.last = "item"
            nested = len(item.group(1)) > 1
            return (LINE if nested or last == "lead" else _after(last, ITEM)), False
        self.last = (
            "lead" if line.rstrip().endswith(_COLON) else "item" if last == "item" and line[0] in " \t" else "prose"
        )
        if not blank:
            return _after(last, LINE), False
        return (LINE if last == "lead" or self.last == "item" else _after(last, PARAGRAPH)), False

    def _read_code(self, line: str, blank: bool) -> tuple[int, bool]:
        closing = line.strip()
        if closing.startswith(self.fence) and not closing.strip(self.fence[0]):
            self.fence, self.last = "", "prose"
            return _AVOID, True
        first = self.last == "open"
        self.last = "code"
        return (_AVOID if first else CODE_GAP if blank else CODE_LINE), True


def _after(last: str, level: int) -> int:
    return _AVOID if last == "heading" else level


_WIDE = 64
"""Characters; no word of any language gives fewer tokens."""


@dataclass(slots=True)
class Piece:
    """A slice of a text: `text[start:end]`, trimmed, and its tokens."""

    start: int
    end: int
    tokens: int


class Cutter:
    """Cuts one text whose token ends are known (`ends`: code points, ascending).

    `first`, `later`: most tokens of the first piece, and of all others (which share the budget with their context).
    """

    def __init__(self, text: str, ends: NDArray[np.int64], first: int, later: int) -> None:
        self._text = text
        self._ends = _dense(ends, len(text))
        self._first = first
        self._later = later
        self._layout = Layout([], [], [])
        self._places: list[list[int]] = []

    def pieces(self, layout: Callable[[], Layout]) -> list[Piece]:
        """The pieces of the text in order; `layout` is asked for only if there is something to cut."""
        if len(self._ends) > self._first:
            self._layout = layout()
            levels = list(zip(self._layout.starts, self._layout.levels, strict=True))
            self._places = [[start for start, level in levels if level == kind] for kind in range(CODE_LINE + 1)]
        found: list[Piece] = []
        start = 0
        while start < len(self._text):
            end = self._cut(start, self._later if found else self._first)
            a, b = _trimmed(self._text, start, end)
            if a < b:
                found.append(Piece(a, b, self._index(b) - self._index(a)))
            start = end
        return found

    def _index(self, position: int) -> int:
        return int(self._ends.searchsorted(position, side="right"))

    def _position(self, index: int) -> int:
        """The last place with at most `index` tokens before it (one character may be several tokens)."""
        if index < len(self._ends) and index > 0 and self._ends[index] == self._ends[index - 1]:
            index = int(np.searchsorted(self._ends, self._ends[index - 1], side="left"))
        return int(self._ends[index - 1]) if index > 0 else 0

    def _cut(self, start: int, budget: int) -> int:
        begin = self._index(start)
        left = len(self._ends) - begin
        if left <= budget:
            return len(self._text)
        if left <= budget + self._later:
            # Two pieces are left: about equal ones, so that the last is no crumb.
            low, high, aim = max(left - self._later, left // 4), min(budget, left - left // 4), left // 2
        else:
            low, high, aim = budget // 2, budget, budget
        middle, top, ideal = (self._position(begin + n) for n in (low, high, aim))
        bottom = self._position(begin + max(1, budget // 8))
        # Messages and sections are worth a piece of a quarter, other places one of a half.
        soft = self._best((SECTION,), self._position(begin + max(1, budget // 4)), top, ideal)
        soft = self._best(range(PARAGRAPH, LINE + 1), middle, top, ideal) if soft is None else soft
        soft = self._sentence(middle, top, ideal) if soft is None else soft
        # Rather a short piece than a cut through a block of code or a table.
        soft = self._best(range(SECTION, LINE + 1), bottom, middle, middle) if soft is None else soft
        hard = self._best((CODE_GAP, CODE_LINE), middle, top, ideal) if soft is None else soft
        hard = self._space(middle, top) if hard is None else hard
        return self._hard(start, top) if hard is None else hard

    def _best(self, kinds: Sequence[int], low: int, high: int, ideal: int) -> int | None:
        """The place nearest to `ideal` among those of the best kind that has any in (low, high]."""
        for kind in kinds:
            places = self._places[kind]
            a, b = bisect_right(places, low), bisect_right(places, high)
            if a < b:
                at = bisect_left(places, ideal, a, b)
                near = places[max(a, at - 1) : min(b, at + 1)]
                return min(near, key=lambda place: abs(place - ideal))
        return None

    def _sentence(self, low: int, high: int, ideal: int) -> int | None:
        places = [m.end() for m in _SENTENCE_END.finditer(self._text, low, high) if m.end() <= high]
        places = [place for place in places if place > low and not self._layout.is_rigid(place - 1)]
        return min(places, key=lambda place: abs(place - ideal), default=None)

    def _space(self, low: int, high: int) -> int | None:
        return max((m.end() for m in _CLAUSE_END.finditer(self._text, low, high) if m.end() > low), default=None)

    def _hard(self, start: int, top: int) -> int:
        """In the middle of a word, but not between a letter and its marks or the parts of an emoji."""
        for end in range(top, max(start, top - 16), -1):
            if not _belongs_to_left(self._text, end):
                return end
        return max(top, start + 1)


def _dense(ends: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Token ends, and more of them where a stretch of text has none, so that no piece is endless.

    A tokenizer drops control characters, and makes one token of a megabyte of spaces or of unknown signs.
    """
    if not len(ends) or (ends[1:] < ends[:-1]).any():
        ends = np.maximum.accumulate(ends)
    edges = np.empty(len(ends) + 2, np.int64)
    edges[0], edges[1:-1], edges[-1] = 0, ends, length
    gaps = edges[1:] - edges[:-1]
    if gaps.max() <= _WIDE:
        return ends
    (wide,) = np.nonzero(gaps > _WIDE)
    more = [np.arange(edges[i] + _WIDE, edges[i + 1], _WIDE, dtype=np.int64) for i in wide]
    return np.sort(np.concatenate([ends, *more]))


def estimated_ends(text: str) -> NDArray[np.int64]:
    """Token ends of a text without a tokenizer: right to about 15% for prose of any language, code, logs and JSON.

    Weights (hundredths of a token a character) fitted to the default model's tokenizer, a tenth added for safety.
    """
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    weights = _WEIGHTS[np.minimum(points, _IDEOGRAPHS)]
    counts = np.cumsum(weights, dtype=np.int64) // 100
    return np.nonzero(np.diff(counts, prepend=0))[0] + 1


_IDEOGRAPHS = 0x2E80
"""From here on nearly every character is a word or a syllable."""


def _weights() -> NDArray[np.uint8]:
    weights = np.full(_IDEOGRAPHS + 1, 44, np.uint8)
    weights[:128] = [
        0
        if chr(c).isspace()
        else 30
        if chr(c).islower()
        else 66
        if chr(c).isupper()
        else 77
        if chr(c).isdigit()
        else 99
        for c in range(128)
    ]
    weights[_IDEOGRAPHS] = 88
    return weights


_WEIGHTS = _weights()


def _belongs_to_left(text: str, position: int) -> bool:
    if not 0 < position < len(text):
        return False
    character = text[position]
    return unicodedata.combining(character) != 0 or character in _JOINERS or text[position - 1] == "\u200d"


_JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f\u20e3") | {chr(c) for c in range(0x1F3FB, 0x1F400)}


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without blank lines before and blank space after; the first line keeps its indentation at a line start."""
    while end > start and text[end - 1].isspace():
        end -= 1
    first = start
    while first < end and text[first].isspace():
        first += 1
    line = text.rfind("\n", start, first) + 1
    if line > start or start == 0 or text[start - 1] == "\n":
        return max(line, start), end
    return first, end
