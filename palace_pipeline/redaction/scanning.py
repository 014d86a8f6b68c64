"""Locating candidates in bytes, in time linear in the text, whatever the text is: RE2, and runs of one class."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import re2
from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

Spans = list[tuple[int, int]]


class Program:
    """A compiled RE2 pattern. `latin`: over single bytes (`views.flat`); otherwise over UTF-8.

    It calls the extension under re2's Python layer: that layer makes three objects a match, which is most of the cost
    where there are thousands of candidates in a megabyte.
    """

    def __init__(self, pattern: bytes, *, latin: bool = True) -> None:
        options = re2.Options()
        options.max_mem = 64 << 20
        if latin:
            options.encoding = re2.Options.Encoding.LATIN1
        self._match = re2.compile(pattern, options)._regexp.Match  # pyright: ignore[reportPrivateUsage]
        self._anchor = re2._Anchor.UNANCHORED  # pyright: ignore[reportPrivateUsage]

    def found(self, data: bytes) -> bool:
        """Is there any match?"""
        return self._match(self._anchor, data, 0, len(data))[0][0] >= 0

    def spans(self, data: bytes, resume: int = 0) -> Iterator[Spans]:
        """All matches, each as the spans of its groups, (-1, -1) for a group that took no part.

        The search goes on behind group `resume` of a match. Patterns must not match the empty text.
        """
        run, anchor = self._match, self._anchor
        position, end = 0, len(data)
        while True:
            spans = run(anchor, data, position, end)
            if spans[0][0] < 0:
                return
            yield spans
            position = max(spans[resume][1], position + 1)


class Runs:
    """Unbroken runs of at least so many bytes of one class: a table and a search, ten times as fast as a pattern."""

    def __init__(self, characters: bytes, least: int) -> None:
        self._table = bytes(b"x"[0] if byte in characters else b" "[0] for byte in range(256))
        self._least = b"x" * least

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Start and end of each run, in order."""
        marks = data.translate(self._table)
        start = marks.find(self._least)
        found: list[tuple[int, int]] = []
        while start >= 0:
            end = marks.find(b" ", start + len(self._least))
            if end < 0:
                end = len(data)
            found.append((start, end))
            start = marks.find(self._least, end)
        return found


class Signs:
    """Which of several patterns there are in a text, in one pass (RE2's set of patterns)."""

    def __init__(self, patterns: Sequence[bytes]) -> None:
        options = re2.Options()
        options.max_mem = 64 << 20
        options.encoding = re2.Options.Encoding.LATIN1
        signs = re2.Set.SearchSet(options)
        for pattern in patterns:
            signs.Add(pattern)
        signs.Compile()
        self._match = signs.Match

    def seen(self, data: bytes) -> Collection[int]:
        """The indexes of the patterns that match somewhere."""
        return self._match(data) or ()


class Literals:
    """Where fixed strings stand in a text, overlapping ones too, in order of their ends (Aho-Corasick)."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        self._find = BytesAhoCorasick(
            strings, matchkind=MatchKind.Standard, implementation=Implementation.DFA
        ).find_matches_as_indexes

    def places(self, data: bytes) -> list[tuple[int, int, int]]:
        """(index of the string, start, end) of each place."""
        return self._find(data, overlapping=True)
