"""Locating candidates in bytes, in time linear in the text, whatever the text is: RE2, and runs of one class."""

from __future__ import annotations

from collections.abc import Iterator

import re2

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

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Start and end of each run, in order."""
        marks = data.translate(self._table)
        start = marks.find(self._least)
        while start >= 0:
            end = marks.find(b" ", start + len(self._least))
            if end < 0:
                end = len(data)
            yield start, end
            start = marks.find(self._least, end)
