"""A text derived from another, with the way back to the characters it was made from."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(slots=True)
class View:
    """A derived text. Piece i starts at `starts[i]` in the view and stands for source[origins[i]:origins[i]+lengths[i]];
    a verbatim piece has the same length on both sides."""

    text: str
    kind: str
    starts: list[int] = field(default_factory=list[int])
    origins: list[int] = field(default_factory=list[int])
    lengths: list[int] = field(default_factory=list[int])
    sizes: list[int] = field(default_factory=list[int])
    firm: set[int] = field(default_factory=set[int])
    """Places in the view where the source itself says that two parts belong together (joined literals)."""
    glued: bool = False
    """Were signs dropped that may as well part two words?"""
    changed: bool = False
    """Was anything else decoded?"""

    def source(self, start: int, end: int) -> tuple[int, int]:
        """The span of the source that view[start:end] was made from."""
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, end - 1) - 1
        return self._place(first, start, False), self._place(last, end - 1, True)

    def _place(self, piece: int, position: int, after: bool) -> int:
        origin, length = self.origins[piece], self.lengths[piece]
        if length == self.sizes[piece]:
            return origin + position - self.starts[piece] + (1 if after else 0)
        return origin + (length if after else 0)

    def cuts(self, start: int, end: int) -> list[int]:
        """Places inside view[start:end] where the source was cut and put together."""
        first = bisect_right(self.starts, start)
        last = bisect_right(self.starts, end - 1)
        return [
            self.starts[i]
            for i in range(first, last)
            if self.origins[i] != self.origins[i - 1] + self.lengths[i - 1] or self.lengths[i] != self.sizes[i]
        ]


class Builder:
    def __init__(self, kind: str) -> None:
        self.parts: list[str] = []
        self.view = View("", kind)
        self.length = 0

    def add(self, text: str, origin: int, length: int) -> None:
        if text:
            self.view.starts.append(self.length)
            self.view.origins.append(origin)
            self.view.lengths.append(length)
            self.view.sizes.append(len(text))
            self.parts.append(text)
            self.length += len(text)

    def cut(self, parts: int, length: int) -> None:
        """Take back what was added since there were so many parts and characters."""
        view = self.view
        for column in (self.parts, view.starts, view.origins, view.lengths, view.sizes):
            del column[parts:]
        self.length = length

    def done(self) -> View:
        self.view.text = "".join(self.parts)
        return self.view
