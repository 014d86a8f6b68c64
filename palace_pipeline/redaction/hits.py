"""What the engine finds: places to mask, with what is known of them."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A place to mask: code points [start, end) of a field."""

    start: int
    end: int
    kind: str
    rule: str
    layer: str
    confidence: float


class Hit(NamedTuple):
    """A span with the plain value under it (which differs from the text in a decoded view)."""

    start: int
    end: int
    kind: str
    rule: str
    layer: str
    confidence: float
    value: str
    whole: bool = False
    prefix: int = 0

    @property
    def span(self) -> Span:
        return Span(*self[:6])
