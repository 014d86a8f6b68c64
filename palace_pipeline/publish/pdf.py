"""A printed page as the same bytes each time: what the browser writes of the clock and of itself is taken out."""

from __future__ import annotations

import re

_DATE = re.compile(rb"/(CreationDate|ModDate) \(D:([^)]{8,30})\)")
_WRITTEN_BY = re.compile(rb"/Creator \(((?:[^()\\]|\\.){6,400})\)", re.DOTALL)


def steady(pdf: bytes) -> bytes:
    """The PDF without the time of printing and the browser's version, byte for byte as long (its table of places stays right)."""
    pdf = _DATE.sub(lambda match: b"/%b (D:%b)" % (match[1], b"19700101000000Z".ljust(len(match[2]))), pdf)
    return _WRITTEN_BY.sub(lambda match: b"/Creator (%b)" % b"Palace".ljust(len(match[1])), pdf)
