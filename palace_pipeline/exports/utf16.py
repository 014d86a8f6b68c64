"""JSON and JSON lines saved as UTF-16 (Windows PowerShell's `>` and some editors do): read as if it were UTF-8."""

from __future__ import annotations

import codecs
import io
from dataclasses import dataclass
from typing import BinaryIO

from palace_pipeline.exports.base import Member, Utf16

_MARKS: dict[bytes, Utf16] = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_PIECE = 1 << 18


def utf16_json(start: bytes) -> Utf16 | None:
    """The encoding, if bytes begin as JSON in UTF-16, with or without a byte order mark."""
    encoding = _MARKS.get(start[:2]) or _unmarked(start)
    if encoding is None:
        return None
    text = start[:64].decode(encoding, "replace")
    return encoding if text.lstrip("\ufeff \t\r\n\0").startswith(("[", "{")) else None


def _unmarked(start: bytes) -> Utf16 | None:
    """Two characters of ASCII: the NULs of padding before plain JSON come in another pattern."""
    nul = tuple(byte == 0 for byte in start[:4])
    if nul == (False, True, False, True):
        return "utf-16-le"
    return "utf-16-be" if nul == (True, False, True, False) else None


@dataclass(frozen=True, slots=True)
class Utf8Member:
    """A member whose UTF-16 is given as UTF-8."""

    inner: Member
    encoding: Utf16

    @property
    def path(self) -> str:
        return self.inner.path

    @property
    def size(self) -> int:
        return self.inner.size

    def open(self) -> BinaryIO:
        return io.BufferedReader(_Recoded(self.inner.open(), self.encoding), 1 << 16)

    def near(self, relative: str) -> Member | None:
        return self.inner.near(relative)


def in_utf8(member: Member, encoding: Utf16 | None) -> Member:
    """The member itself, or (if its head says that it is UTF-16) one that gives UTF-8."""
    return member if encoding is None else Utf8Member(member, encoding)


class _Recoded(io.RawIOBase):
    def __init__(self, source: BinaryIO, encoding: Utf16) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = memoryview(b"")
        self._at_start = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        while not self._ready:
            piece = self._source.read(_PIECE)
            text = self._decoder.decode(piece, final=not piece)
            if text and self._at_start:
                text, self._at_start = text.removeprefix("\ufeff"), False
            self._ready = memoryview(text.encode())
            if not piece:
                break
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        self._source.close()
        super().close()
