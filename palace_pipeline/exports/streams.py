"""Opening files safely, decompressing on the fly, and stopping bombs by the bytes that were really read."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import stat
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


_USUAL_RATIO = 50


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
    """Counts what the members of one outermost container unfolded to; reading a member again costs nothing.

    A member that is refused is counted no longer, so that a bomb takes nothing from its good neighbours. The more of
    them there are, the sooner the next one is refused.
    """

    packed: int
    limits: Limits = field(default_factory=Limits)
    read: dict[str, int] = field(default_factory=dict)
    total: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """Members that unfolded to too much, and the reason."""

    def note(self, member: str, position: int, packed: int | None = None) -> None:
        """`member` has been read up to `position`. Raises MemberError if that is more than allowed.

        `packed`: what the member itself takes of the container; without it the member is the whole container.
        """
        if member in self.refused:
            raise MemberError(self.refused[member])
        more = position - self.read.get(member, 0)
        if more <= 0:
            return
        self.read[member] = position
        self.total += more
        if (reason := self._refusal(position, self.packed if packed is None else packed)) is not None:
            self.total -= self.read.pop(member)
            self.refused[member] = reason
            raise MemberError(reason)

    def _refusal(self, position: int, packed: int) -> str | None:
        limits, bombs = self.limits, min(len(self.refused), 20)
        if position > limits.member:
            return f"unfolds to more than {limits.member} bytes"
        if self.total > limits.total:
            return f"its container unfolds to more than {limits.total} bytes"
        if position <= min(_USUAL_RATIO, limits.ratio) * packed:
            return None  # as text does: whatever is packed beside it, all such members together are no bomb
        if position > max(limits.ratio_from >> bombs, limits.ratio * packed >> bombs):
            return f"unfolds to more than {limits.ratio} times its size (a ZIP bomb?)"
        if self.total > max(limits.ratio_from, limits.ratio * self.packed):
            return f"its container unfolds to more than {limits.ratio} times its size (a ZIP bomb?)"
        return None


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
        # As much as is there: what comes before damage must not be lost with what comes behind it.
        self._read: Callable[[int], bytes] = getattr(inner, "read1", inner.read)
        self._position = 0
        self._failed: MemberError | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self._failed is not None:
            raise self._failed
        try:
            piece = self._piece(len(buffer))
        except MemberError as error:
            self._failed = error
            raise
        buffer[: len(piece)] = piece
        return len(piece)

    def _piece(self, size: int) -> bytes:
        try:
            piece = self._read(size)
        except EOFError as error:
            raise MemberError("its compressed data is cut") from error
        except (zlib.error, lzma.LZMAError, gzip.BadGzipFile, zstandard.ZstdError) as error:
            raise MemberError("its compressed data is damaged") from error
        self._position += len(piece)
        self._note(self._position)
        return piece

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
            if self._also is not None:
                self._also.close()
        super().close()


class _Careful(io.BufferedReader):
    """Gives what stands before damage, and raises when more is asked for. All at once (`read()`) raises."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return super().read(size)
        parts: list[bytes] = []
        try:
            while size and (data := self.read1(size)):
                parts.append(data)
                size -= len(data)
        except MemberError:
            if not parts:
                raise
        return b"".join(parts)


def guarded(inner: _Reads, note: Callable[[int], None], also: _Reads | None = None) -> BinaryIO:
    """`inner` as a buffered stream that reports its position to `note` and closes `also` with itself."""
    return _Careful(_Guarded(inner, note, also), 1 << 18)
