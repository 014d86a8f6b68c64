"""What stands in a ZIP: its directory, its entries, and (when the directory is cut off) what can be found without it.

Written from PKWARE's APPNOTE 6.3.10, looked at 2026-11-29. Not with `zipfile`, which takes half a gigabyte for a million
entries, gives up a whole download for its last missing byte, and knows neither Zstandard nor overlapping entries.
"""

from __future__ import annotations

import bz2
import io
import lzma
import struct
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import BinaryIO, Protocol

import zstandard

from palace_pipeline.exports.streams import MemberError

_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END_64, _LOCATOR_64, _DESCRIPTOR = b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08"
_LOCAL_HEADER = struct.Struct("<4x H H H 4x I I I H H")
_CENTRAL_HEADER = struct.Struct("<4x 4x H H 4x I I I H H H 4x I I")
_END_RECORD = struct.Struct("<4x H H H H I I H")
_END_RECORD_64 = struct.Struct("<4x Q 4x I I Q Q Q Q")
_FULL_16, _FULL_32 = 0xFFFF, 0xFFFFFFFF
_ZIP64_FIELD, _UNICODE_NAME_FIELD = 0x0001, 0x7075
_ENCRYPTED, _STREAMED, _UTF8_NAME = 0x2041, 0x8, 0x800
_END_BYTES = 65536 + 22 + 20
_PIECE = 1 << 18
_STORED, _DEFLATED, _DEFLATE64, _BZIP2, _LZMA, _ZSTANDARD = 0, 8, 9, 12, 14, 93
_NOT_READ = {
    _DEFLATE64: "packed by Deflate64 (Windows does that with more than 2 GB): not read, unpack the ZIP first",
}

Note = Callable[[str, int, int], None]
"""Is told the name of an entry, up to which byte it has been unfolded, and from how many; raises MemberError if that is
too much."""


class NoDirectory(ValueError):
    """A ZIP's directory is missing or damaged. The text is a reason to show."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file in a ZIP. `packed`, `size` in bytes as the ZIP says; `mode`: Unix mode, 0 if it has none.

    `offset`: of its local header. `cut`: the ZIP ends within it.
    """

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int
    mode: int = 0
    cut: bool = False

    @property
    def encrypted(self) -> bool:
        return bool(self.flags & _ENCRYPTED)


# --- the directory ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Directory:
    """Where the directory of a ZIP lies, and where its entries begin (in order, so that overlaps show).

    `shift`: bytes before the ZIP itself (a program that unpacks it).
    """

    start: int
    size: int
    shift: int
    starts: array[int] = field(default_factory=lambda: array("Q"))

    def room(self, entry: Entry) -> int:
        """Where the bytes of an entry must end: at the next entry, or at the directory."""
        at = bisect_right(self.starts, entry.offset)
        return self.starts[at] if at < len(self.starts) else self.start


def find_directory(stream: BinaryIO) -> Directory:
    """The directory by the record at the ZIP's end. Raises NoDirectory."""
    length = stream.seek(0, io.SEEK_END)
    begin = max(0, length - _END_BYTES)
    stream.seek(begin)
    tail = stream.read(_END_BYTES)
    at = len(tail)
    while (at := tail.rfind(_END, 0, at)) >= 0:
        if len(tail) - at >= _END_RECORD.size and (found := _directory_at(stream, tail, at, begin)) is not None:
            return found
    raise NoDirectory("its directory is missing")


def _directory_at(stream: BinaryIO, tail: bytes, at: int, begin: int) -> Directory | None:
    disk, _, _, count, size, offset, _ = _END_RECORD.unpack_from(tail, at)
    end = begin + at
    locator = tail[at - 20 : at] if at >= 20 else b""
    if locator.startswith(_LOCATOR_64):
        for place in (int.from_bytes(locator[8:16], "little"), end - 20 - _END_RECORD_64.size):
            stream.seek(place)
            record = stream.read(_END_RECORD_64.size)
            if record.startswith(_END_64) and len(record) == _END_RECORD_64.size:
                _, disk, _, _, count, size, offset = _END_RECORD_64.unpack(record)
                end = place
                break
    elif disk != _FULL_16 and disk > 0:
        raise NoDirectory("it is one part of a ZIP in several files, join them first")
    for start in (end - size, offset):
        if 0 <= start <= end:
            stream.seek(start)
            if stream.read(4) == _CENTRAL or (count == 0 and size == 0):
                return Directory(start, min(size, end - start), start - offset)
    return None


def entries_of(stream: BinaryIO, directory: Directory) -> Iterator[tuple[int, Entry]]:
    """(place in the directory, entry) of all entries, in its order. Fills `directory.starts`. Raises NoDirectory."""
    at, held, held_from = 0, b"", 0
    starts = directory.starts
    while at < directory.size:
        if at + 3 * _FULL_16 + _CENTRAL_HEADER.size > held_from + len(held) and held_from + len(held) < directory.size:
            held, held_from = held[at - held_from :], at
            stream.seek(directory.start + at + len(held))
            held += stream.read(min(1 << 20, directory.size - at - len(held)))
        entry, length = _central(held, at - held_from, directory.shift)
        starts.append(entry.offset)
        yield at, entry
        at += length
    if any(later < earlier for earlier, later in pairwise(starts)):
        directory.starts = array("Q", sorted(starts))


def entry_at(stream: BinaryIO, directory: Directory, place: int) -> Entry:
    """The entry at a place that `entries_of` gave."""
    stream.seek(directory.start + place)
    header = stream.read(_CENTRAL_HEADER.size)
    names, extras, comment = _CENTRAL_HEADER.unpack(header)[5:8] if len(header) == _CENTRAL_HEADER.size else (0, 0, 0)
    return _central(header + stream.read(names + extras + comment), 0, directory.shift)[0]


def _central(data: bytes, at: int, shift: int) -> tuple[Entry, int]:
    """The entry of a directory record, and the record's length."""
    if data[at : at + 4] != _CENTRAL or len(data) - at < _CENTRAL_HEADER.size:
        raise NoDirectory("its directory is damaged")
    flags, method, crc, packed, size, names, extras, comment, attributes, offset = _CENTRAL_HEADER.unpack_from(data, at)
    behind = at + _CENTRAL_HEADER.size
    length = _CENTRAL_HEADER.size + names + extras + comment
    raw_name = data[behind : behind + names]
    extra = data[behind + names : behind + names + extras]
    if len(raw_name) < names or len(extra) < extras:
        raise NoDirectory("its directory is damaged")
    sizes = _wide(extra, size, packed, offset)
    name = _name(raw_name, flags, extra)
    size, packed, offset = sizes
    if not 0 <= offset + shift < 1 << 63:
        raise NoDirectory("its directory is damaged")
    return Entry(name, raw_name, flags, method, crc, packed, size, offset + shift, attributes >> 16), length


def _fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        yield kind, extra[at + 4 : at + 4 + length]
        at += 4 + length


def _wide(extra: bytes, *values: int) -> list[int]:
    """Sizes and offset of more than 32 bits stand in a field of their own, one after the other, if they are needed."""
    wide = next((data for kind, data in _fields(extra) if kind == _ZIP64_FIELD), b"")
    found: list[int] = []
    for value in values:
        if value == _FULL_32 and len(wide) >= 8:
            value, wide = int.from_bytes(wide[:8], "little"), wide[8:]
        found.append(value)
    return found


def _name(raw: bytes, flags: int, extra: bytes) -> str:
    """Without the UTF-8 flag names are code page 437 by the book, and UTF-8 in Slack's exports and many others."""
    for kind, data in _fields(extra):
        if kind == _UNICODE_NAME_FIELD and len(data) > 5 and int.from_bytes(data[1:5], "little") == zlib.crc32(raw):
            raw, flags = data[5:], flags | _UTF8_NAME
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        name = raw.decode("cp437")
    return name.replace("\\", "/")


# --- without a directory ----------------------------------------------------------------------------------------------


def found_entries(stream: BinaryIO, note: Note) -> Iterator[Entry]:
    """Entries by their local headers, one after the other, for a ZIP whose end is missing; the last may be cut.

    Entries whose length is not in their header are unfolded to find their end.
    """
    length = stream.seek(0, io.SEEK_END)
    at = _next_header(stream, 0)
    while at is not None:
        entry, data = _local(stream, at)
        if entry is None:
            return
        known = not entry.flags & _STREAMED or entry.packed
        end = data + entry.packed if known else _end_of_data(stream, entry, data, length, note)
        if end is None:  # too large, or of a kind whose end does not show
            at = _next_header(stream, data)
            continue
        cut = end > length
        yield _with(entry, min(end, length) - data, cut=cut)
        at = None if cut else _next_header(stream, end)


def _with(entry: Entry, packed: int, *, cut: bool) -> Entry:
    return Entry(
        *(entry.name, entry.raw_name, entry.flags, entry.method, entry.crc, packed, entry.size, entry.offset),
        cut=cut,
    )


def _next_header(stream: BinaryIO, start: int) -> int | None:
    """The place of the next local header from `start` on."""
    stream.seek(start)
    held = b""
    while data := stream.read(_PIECE):
        held += data
        if (found := held.find(_LOCAL)) >= 0:
            return start + found
        start += max(0, len(held) - 3)
        held = held[-3:]
    return None


def _local(stream: BinaryIO, at: int) -> tuple[Entry | None, int]:
    """The entry of a local header (None if that is cut) and the place of its data."""
    stream.seek(at)
    header = stream.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size or not header.startswith(_LOCAL):
        return None, at
    _, flags, method, crc, packed, size, names, extras = _LOCAL_HEADER.unpack(header)
    raw_name, extra = stream.read(names), stream.read(extras)
    if len(raw_name) < names or len(extra) < extras:
        return None, at
    size, packed = _wide(extra, size, packed)
    entry = Entry(_name(raw_name, flags, extra), raw_name, flags, method, crc, packed, size, at)
    return entry, at + _LOCAL_HEADER.size + names + extras


def _end_of_data(stream: BinaryIO, entry: Entry, data: int, length: int, note: Note) -> int | None:
    """Where the data of an entry ends that was written before its size was known; more than `length` if it is cut."""
    if entry.encrypted or entry.method not in (_DEFLATED, _ZSTANDARD):
        return None
    raw = _Region(stream, data, length)
    unfold = _unfolder(entry.method)
    position = 0
    try:
        while not unfold.eof:
            piece = raw.read(_PIECE)
            if not piece:
                return length + 1
            position += len(unfold.feed(piece))
            while unfold.waiting and not unfold.eof:
                position += len(unfold.feed(b""))
                note(entry.name, position, raw.position - data)
            note(entry.name, position, raw.position - data)
    except (zlib.error, zstandard.ZstdError, MemberError):
        return None
    return raw.position - unfold.left_over


# --- content ----------------------------------------------------------------------------------------------------------


def open_entry(stream: BinaryIO, entry: Entry, directory: Directory | None) -> io.RawIOBase:
    """The content of an entry; reading raises MemberError for damage. Nothing else may move `stream` meanwhile but
    others that read from it in this way."""
    if entry.encrypted:
        raise MemberError("encrypted")
    local, data = _local(stream, entry.offset)
    if local is None or local.raw_name != entry.raw_name:
        raise MemberError("damaged entry of a ZIP")
    if directory is not None and data + entry.packed > directory.room(entry):
        raise MemberError("its bytes are those of another entry too (a ZIP bomb?)")
    if entry.method not in _METHODS and entry.method != _STORED:
        raise MemberError(_NOT_READ.get(entry.method, f"compression method {entry.method} is not supported"))
    raw = _Region(stream, data, data + entry.packed)
    return _Content(raw, entry)


class _Region:
    """A part of a stream that others read from as well."""

    def __init__(self, stream: BinaryIO, start: int, end: int) -> None:
        self._stream, self.position, self._end = stream, start, end

    def read(self, size: int) -> bytes:
        self._stream.seek(self.position)
        data = self._stream.read(min(size, self._end - self.position))
        self.position += len(data)
        return data


class _Unfolds(Protocol):
    """A decompressor that gives not more than a piece at once."""

    eof: bool
    left_over: int
    """Bytes behind the end that were fed."""
    waiting: bool
    """True if there is more without more input."""

    def feed(self, data: bytes) -> bytes: ...


class _Deflated:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(-15)
        self.eof, self.left_over, self.waiting = False, 0, False

    def feed(self, data: bytes) -> bytes:
        inner = self._inner
        out = inner.decompress(inner.unconsumed_tail + data, _PIECE)
        self.eof, self.left_over = inner.eof, len(inner.unused_data)
        self.waiting = bool(inner.unconsumed_tail) or len(out) >= _PIECE
        return out


class _Limited:
    """bz2's and lzma's decompressors, which keep their input themselves."""

    def __init__(self, inner: bz2.BZ2Decompressor | lzma.LZMADecompressor) -> None:
        self._inner = inner
        self.eof, self.left_over, self.waiting = False, 0, False

    def feed(self, data: bytes) -> bytes:
        out = self._inner.decompress(data, _PIECE)
        self.eof = self._inner.eof
        self.left_over = len(self._inner.unused_data) if self.eof else 0
        self.waiting = not self.eof and not self._inner.needs_input
        return out


class _Lzma:
    """LZMA as ZIPs have it: a version, the length of the properties, the properties, raw data."""

    def __init__(self) -> None:
        self._head, self._inner = b"", None
        self.eof, self.left_over, self.waiting = False, 0, False

    def feed(self, data: bytes) -> bytes:
        if self._inner is None:
            self._head += data
            length = 4 + int.from_bytes(self._head[2:4], "little")
            if len(self._head) < max(length, 9):
                return b""
            properties, dictionary = self._head[4], int.from_bytes(self._head[5:9], "little")
            lclp, pb = properties % 45, properties // 45
            kind = {"id": lzma.FILTER_LZMA1, "dict_size": dictionary, "lc": lclp % 9, "lp": lclp // 9, "pb": pb}
            self._inner = _Limited(lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[kind], memlimit=None))
            data = self._head[length:]
        out = self._inner.feed(data)
        self.eof, self.left_over, self.waiting = self._inner.eof, self._inner.left_over, self._inner.waiting
        return out


class _Zstandard:
    """A step of 4 KB may give 32,000 times as much, which must still fit."""

    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        self._data = b""
        self.eof, self.left_over, self.waiting = False, 0, False

    def feed(self, data: bytes) -> bytes:
        self._data += data
        step, self._data = self._data[:4096], self._data[4096:]
        out = self._inner.decompress(step) if step else b""
        self.eof = self._inner.eof
        self.left_over = len(self._inner.unused_data) + len(self._data) if self.eof else 0
        self.waiting = bool(self._data) and not self.eof
        return out


_METHODS: dict[int, Callable[[], _Unfolds]] = {
    _DEFLATED: _Deflated,
    _BZIP2: lambda: _Limited(bz2.BZ2Decompressor()),
    _LZMA: _Lzma,
    _ZSTANDARD: _Zstandard,
}


def _unfolder(method: int) -> _Unfolds:
    return _METHODS[method]()


class _Content(io.RawIOBase):
    """What an entry holds; at its end its length and checksum must be right."""

    def __init__(self, raw: _Region, entry: Entry) -> None:
        self._raw, self._entry = raw, entry
        self._unfold = None if entry.method == _STORED else _unfolder(entry.method)
        self._ready = memoryview(b"")
        self._crc = self._size = 0
        self._over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        while not self._ready and not self._over:
            try:
                self._ready = memoryview(self._next())
            except (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError, ValueError, EOFError) as error:
                if isinstance(error, MemberError):
                    raise
                raise MemberError("its compressed data is damaged") from error
            self._crc = zlib.crc32(self._ready, self._crc)
            self._size += len(self._ready)
        if not self._ready and self._over:
            self._check()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _next(self) -> bytes:
        """The next bytes; sets `_over` at the end."""
        unfold = self._unfold
        if unfold is None:
            data = self._raw.read(_PIECE)
            self._over = not data
            return data
        if unfold.eof:
            self._over = True
            return b""
        if unfold.waiting:
            return unfold.feed(b"")
        data = self._raw.read(_PIECE)
        if not data:
            if self._entry.method == _LZMA and self._size == self._entry.size:
                self._over = True  # LZMA may do without a mark at its end
                return b""
            raise MemberError("its compressed data is cut")
        return unfold.feed(data)

    def _check(self) -> None:
        entry = self._entry
        if entry.cut:
            raise MemberError("its compressed data is cut")
        streamed = entry.flags & _STREAMED and not entry.crc and not entry.size
        if not streamed and self._crc != entry.crc:
            raise MemberError("its compressed data is damaged")
