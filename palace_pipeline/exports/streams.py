"""Opening files safely, decompressing on the fly, and stopping bombs by the bytes that were really read."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

import zstandard

_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BUFFER = 1 << 17
"""Lines of logs are longer than the usual 8 KB."""
_ZSTD_PIECE = 4096
"""Compressed bytes per step: a step may give 32,000 times as much, and that must still fit."""


class MemberError(OSError):
    """A member cannot be opened or read to its end. The text is a reason to show, free of content."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one container may unfold to, in bytes. `ratio` (unfolded : packed) counts only from `ratio_from` on:

    repetitive JSON packs 400 : 1 and is legal, so a ratio alone proves nothing; ten gigabytes from ten megabytes do.
    """

    member: int = 64 * 1024**3
    total: int = 256 * 1024**3
    ratio: int = 250
    ratio_from: int = 1024**3


@dataclass(slots=True)
class Budget:
    """Counts what the members of one outermost container unfolded to; reading a member again costs nothing."""

    packed: int
    limits: Limits = field(default_factory=Limits)
    read: dict[str, int] = field(default_factory=dict[str, int])
    total: int = 0

    def note(self, member: str, position: int) -> None:
        """`member` has been read up to `position`. Raises MemberError if that is more than allowed."""
        more = position - self.read.get(member, 0)
        if more <= 0:
            return
        self.read[member] = position
        self.total += more
        limits = self.limits
        if position > limits.member:
            raise MemberError(f"unfolds to more than {limits.member} bytes")
        if self.total > limits.total:
            raise MemberError(f"its container unfolds to more than {limits.total} bytes")
        if self.total > max(limits.ratio_from, limits.ratio * self.packed):
            raise MemberError(f"its container unfolds to more than {limits.ratio} times its size (a ZIP bomb?)")


def open_regular(path: Path) -> BinaryIO:
    """A regular file for reading; never follows a symbolic link at its end, never waits for a FIFO.

    Raises MemberError otherwise.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise MemberError(_why_not_opened(error)) from error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise MemberError("not a regular file")
    return os.fdopen(number, "rb", _BUFFER)


def _why_not_opened(error: OSError) -> str:
    return f"cannot be opened ({error.strerror or type(error).__name__})"


def is_packed(name: str) -> bool:
    """Does the name say that the file is one compressed stream?"""
    return name.lower().endswith((".gz", ".zst"))


def unpacked(stream: BinaryIO) -> BinaryIO:
    """The stream itself, or its decompressed content if it begins as gzip or Zstandard."""
    start = stream.read(4)
    stream.seek(0)
    if start.startswith(_ZSTD_MAGIC):
        return io.BufferedReader(_Zstandard(stream), 1 << 16)
    return gzip.GzipFile(fileobj=stream) if start.startswith(_GZIP_MAGIC) else stream  # pyright: ignore[reportReturnType]


class _Zstandard(io.RawIOBase):
    """Zstandard frames one after the other. Unlike the library's own reader it notices a frame that is cut."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._ready = memoryview(b"")
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        while not self._ready:
            piece = self._left or self._source.read(_ZSTD_PIECE)
            self._left = b""
            if not piece:
                if self._frame is not None:
                    raise EOFError("compressed data is cut")
                return 0
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            self._ready = memoryview(self._frame.decompress(piece))
            if self._frame.eof:
                self._left, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        self._source.close()
        super().close()


class _Reads(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...

    def close(self) -> None: ...


class _Guarded(io.RawIOBase):
    """Counts what is read and turns what archive libraries raise into MemberError."""

    def __init__(self, inner: _Reads, note: Callable[[int], None], also: _Reads | None) -> None:
        self._inner, self._note, self._also = inner, note, also
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            piece = self._inner.read(len(buffer))
        except EOFError as error:
            raise MemberError("its compressed data is cut") from error
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zstandard.ZstdError) as error:
            raise MemberError("its compressed data is damaged") from error
        self._position += len(piece)
        self._note(self._position)
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
            if self._also is not None:
                self._also.close()
        super().close()


def guarded(inner: _Reads, note: Callable[[int], None], also: _Reads | None = None) -> BinaryIO:
    """`inner` as a buffered stream that reports its position to `note` and closes `also` with itself."""
    return io.BufferedReader(_Guarded(inner, note, also), 1 << 18)
