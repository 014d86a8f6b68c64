"""A JSON array of any size -> the raw bytes of each element, in the memory of one element.

Works on blocks: one `bytes.translate` marks the few bytes that decide the structure, numpy does the rest on their
positions only, so that a 1 GB export on one line costs seconds and never its size in memory.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from palace_pipeline.exports.text import parse_json

BLOCK_BYTES = 1024 * 1024
MAX_ELEMENT_BYTES = 1024 * 1024 * 1024
"""A longer element is given as b"" (the caller counts it), so that a lost bracket cannot take all memory."""

_QUOTE, _BACKSLASH, _COMMA = 0x22, 0x5C, b","
_LONGEST_RUN = 64
_STRUCTURE = bytes(byte in b'"[]{}' for byte in range(256))
_SPACE = b" \t\r\n\0"
_USUAL_GAPS = (b", ", b",", b",\n", b"")
_LEADING = re.compile(rb"[ \t\r\n\x00]*")
_KEY_TAIL_BYTES = 4096
_MAX_STRAYS = 100
_FIRST_KEY = re.compile(rb'\s*\{\s*("(?:[^"\\]|\\.)*")')
_PIECE = re.compile(rb'"(?:[^"\\]|\\.)*"?|[^",]+|,', re.DOTALL)

Positions = npt.NDArray[np.int64]


class ArrayCut(ValueError):
    """The array does not end as it should; all whole elements before have been given. Its text names no content.

    `inside`: the file ended within the array; `rest`: the element in which it did, as far as it goes.
    """

    def __init__(self, why: str, rest: bytes = b"", *, inside: bool = False) -> None:
        super().__init__(why)
        self.rest, self.inside = rest, inside


def split_array(
    stream: _Readable, key: str | None = None, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[int, bytes]]:
    """(index, raw bytes) of each element of a top-level array, or of the array under a top-level `key` of an object.

    A byte order mark, blanks and NULs around elements are left out. Garbage between two elements comes as an element
    of its own (it does not parse), and a comma too few or too many loses nothing. Elements are not checked otherwise.

    Arrays that stand one behind the other count as one. Raises ArrayCut after the last whole element: if the file ends
    inside an array, holds anything else after a top-level array, does not begin with an array (or an object), or has no
    array under `key`.
    """
    index = 0
    for _ in range(_MAX_ARRAYS):
        scan = Structure()
        block, start = first_block(stream, block_bytes)
        opener = block[start : start + 1]
        if opener != (b"[" if key is None else b"{"):
            raise ArrayCut("the file does not begin with a JSON array" if key is None else "the file is no JSON object")
        walk = _Walk(level=1, wanted=None if key is None else key.encode(), index=index)
        while block:
            yield from walk.feed(block, *scan.feed(block, start))
            if walk.ended:
                break
            block, start = stream.read(block_bytes), 0
        if not walk.ended:
            yield from walk.rest()
            if walk.wanted is not None:
                raise ArrayCut("the file has no such array")
            raise ArrayCut("the file ends inside the array", b"".join(walk.parts) if walk.open else b"", inside=True)
        if key is not None:
            return
        after = walk.trailing.strip(_SPACE)
        while not after and (block := stream.read(block_bytes)):
            after = block.strip(_SPACE)
        if not after:
            return
        if not after.startswith(b"["):
            break
        # Shards of one export that somebody joined into one file: arrays, one behind the other.
        stream, index = _Behind(after, stream), walk.index
    raise ArrayCut("there is more after the end of the array")


def whole_values(damaged: bytes, budget: int | None = None) -> Iterator[bytes]:
    """Objects inside an element that does not parse and that look like its brothers: they begin with the same key.

    A lost quote or bracket makes a splitter take all that follows for one element; this finds the good ones again. The
    caller decides what they are worth. `budget`: bytes to scan at most (default: four times the element, and 64 MiB).
    """
    first = _FIRST_KEY.match(damaged)
    if first is None:
        return
    left = budget if budget is not None else 4 * len(damaged) + 64 * 1024 * 1024
    opener = re.compile(rb"[,\[\]}\s](?=\{\s*" + re.escape(first[1]) + rb"\s*:)")
    at = 1
    while left > 0 and (match := opener.search(damaged, at)) is not None:
        start = match.end()
        tail = _Tail(damaged, start)
        found = next(_one_element(tail), None)
        left -= tail.at - start
        if found is None:
            at = start
            continue
        try:
            parse_json(found)
        except ValueError:
            at = start
            continue
        yield found
        at = start + len(found)


class _Tail:
    """A part of some bytes as the stream of an array that begins there."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self.at, self._opened = data, start, False

    def read(self, size: int = -1, /) -> bytes:
        if not self._opened:
            self._opened = True
            return b"["
        piece = self._data[self.at : self.at + size]
        self.at += len(piece)
        return piece


def _one_element(tail: _Tail) -> Iterator[bytes]:
    try:
        for _, raw in split_array(tail, None, 65536):  # pyright: ignore[reportArgumentType]
            yield raw
    except ArrayCut:
        return


def first_block(stream: _Readable, block_bytes: int) -> tuple[bytes, int]:
    """The first block with something in it, and where that begins. Blanks before the array cost no memory."""
    head = stream.read(max(block_bytes, 4)).removeprefix(b"\xef\xbb\xbf")
    while head:
        match = _LEADING.match(head)
        start = match.end() if match else 0
        if start < len(head):
            return head, start
        head = stream.read(block_bytes)
    return b"", 0


_MAX_ARRAYS = 100
"""Arrays one behind the other: each looks at its block anew, so there has to be an end."""


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Behind:
    """A stream of which a part has been read already."""

    def __init__(self, read: bytes, stream: _Readable) -> None:
        self._read, self._stream = read, stream

    def read(self, size: int = -1, /) -> bytes:
        if self._read:
            part, self._read = self._read[:size], self._read[size:]
            return part
        return self._stream.read(size)


def has_more(stream: _Readable, block_bytes: int) -> bool:
    while block := stream.read(block_bytes):
        if block.strip(_SPACE):
            return True
    return False


class Structure:
    """Finds the brackets of a block that stand outside strings; carries string and escape state to the next block."""

    def __init__(self) -> None:
        self.in_string = False
        self.escape = False

    def feed(self, block: bytes, start: int = 0) -> tuple[Positions, npt.NDArray[np.int8]]:
        """Positions of the structural brackets from `start` on, and +1 (opens) or -1 (closes) for each."""
        if self.escape:
            block = b"_" + block[1:]
        self.escape = block.endswith(b"\\") and (len(block) - len(block.rstrip(b"\\"))) % 2 == 1
        marks = np.frombuffer(block.translate(_STRUCTURE), dtype=np.bool_)
        at = np.flatnonzero(marks)
        if start:
            at = at[np.searchsorted(at, start) :]
        byte = np.frombuffer(block, dtype=np.uint8)[at]
        quote = byte == _QUOTE
        if b'\\"' in block:
            escaped = _escaped(block, at, quote)
            at, byte, quote = at[~escaped], byte[~escaped], quote[~escaped]
        inside = np.bitwise_xor.accumulate(quote) if len(quote) else quote
        if self.in_string:
            inside = ~inside
        if len(inside):
            self.in_string = bool(inside[-1])
        bracket = ~(quote | inside)
        found = byte[bracket]
        return at[bracket], np.where((found & 0x06) == 0x02, 1, -1).astype(np.int8)


def _escaped(block: bytes, at: Positions, quote: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which of the marks `at` are quotes behind an odd number of backslashes."""
    code = np.frombuffer(block, dtype=np.uint8)
    odd = quote & (at > 0) & (code[at - 1] == _BACKSLASH)
    numbers = np.flatnonzero(odd)
    back = 2
    while len(numbers):
        place = at[numbers] - back
        numbers = numbers[(place >= 0) & (code[place] == _BACKSLASH)]
        odd[numbers] ^= True
        back += 1
        if back > _LONGEST_RUN:
            for number in numbers.tolist():
                end = begin = int(at[number])
                while begin and block[begin - 1] == _BACKSLASH:
                    begin -= 1
                odd[number] = (end - begin) % 2 == 1
            break
    return odd


@dataclass
class _Walk:
    """Cuts blocks into elements. `level` is the depth of the array's inside; `wanted` the key still looked for."""

    level: int
    wanted: bytes | None
    depth: int = 0
    index: int = 0
    ended: bool = False
    trailing: bytes = b""

    def __post_init__(self) -> None:
        self.parts: list[bytes] = []  # the open element, or the gap between two elements, as far as seen
        self.size = 0
        self.open = False
        self.look_from = _KEY_TAIL_BYTES
        self.strays = 0

    def feed(self, block: bytes, at: Positions, step: npt.NDArray[np.int8]) -> Iterator[tuple[int, bytes]]:
        """The elements that end in this block. `at`, `step`: its brackets."""
        done, cursor = 0, 0
        while done is not None and not self.ended:
            done, cursor = yield from self._run(block, at[done:], step[done:], cursor, done)
        if self.ended:
            return
        self._keep(block[cursor:])
        if self.wanted is not None:
            self.parts = [b"".join(self.parts)[-_KEY_TAIL_BYTES:]]
        elif not self.open and self.size > self.look_from:
            yield from self._gap(b"", whole=False)
            # What is left is one long scalar: look again when it has doubled, not with every block.
            self.look_from = max(_KEY_TAIL_BYTES, 2 * self.size)

    def _run(
        self, block: bytes, at: Positions, step: npt.NDArray[np.int8], cursor: int, done: int
    ) -> Generator[tuple[int, bytes], None, tuple[int | None, int]]:
        """Walks brackets until the level changes: (how many brackets of the block are then behind, or None; where)."""
        depth = self.depth + np.cumsum(step, dtype=np.int64)
        turns = self._turns(depth, step)
        level = self.level
        for number, place, after, up in zip(
            turns.tolist(), at[turns].tolist(), depth[turns].tolist(), step[turns].tolist(), strict=True
        ):
            opens = up > 0
            if opens and after == level + 1 and self.wanted is not None:
                found = self._finds(block[cursor:place], block[place : place + 1])
                cursor = place
                if found:
                    # The array's own inside lies one level deeper: look at the rest of the block anew.
                    self.wanted, self.level, self.depth = None, after, after
                    return done + number + 1, place + 1
            elif opens and after == level:
                cursor = place + 1  # the array itself
            elif opens and after == level + 1:
                gap = block[cursor:place]
                if self.parts or gap not in _USUAL_GAPS:
                    yield from self._gap(gap)
                cursor, self.open = place, True
            elif not opens and after == level:
                if self.wanted is not None:
                    self._drop()
                elif self.parts:
                    self._keep(block[cursor : place + 1])
                    yield self._give()
                else:  # it began in this block, as most do
                    self.open, self.index = False, self.index + 1
                    yield self.index - 1, block[cursor : place + 1] if place - cursor < MAX_ELEMENT_BYTES else b""
                cursor = place + 1
            elif not opens and after == level - 1:
                if self.wanted is None:
                    yield from self._gap(block[cursor:place])
                if self.wanted is None and block[place : place + 1] != b"]" and self.strays < _MAX_STRAYS:
                    # A bracket too many: the element before is damaged, the array goes on.
                    self.strays += 1
                    self.depth = self.level
                    return done + number + 1, place + 1
                self.ended, self.trailing = self.wanted is None, block[place + 1 :]
                self.depth = after
                return None, place + 1
        self.depth = int(depth[-1]) if len(depth) else self.depth
        return None, cursor

    def _turns(self, depth: Positions, step: npt.NDArray[np.int8]) -> Positions:
        """Numbers of the brackets that begin or end an element or the array."""
        level = self.level
        opens = (step > 0) & ((depth == level + 1) | (depth == level))
        closes = (step < 0) & ((depth == level) | (depth == level - 1))
        return np.flatnonzero(opens | closes)

    def _finds(self, before: bytes, bracket: bytes) -> bool:
        """Does the key that is looked for stand right before this bracket, and is it an array?"""
        tail = (b"".join(self.parts) + before)[-_KEY_TAIL_BYTES:].rstrip(_SPACE)
        self._drop()
        if bracket != b"[" or not tail.endswith(b":"):
            return False
        name = b'"' + (self.wanted or b"") + b'"'
        tail = tail[:-1].rstrip(_SPACE)
        return tail.endswith(name) and not tail[: -len(name)].endswith(b"\\")

    def _keep(self, piece: bytes) -> None:
        if piece and self.size <= MAX_ELEMENT_BYTES:
            self.parts.append(piece)
        self.size += len(piece)

    def _drop(self) -> None:
        self.parts, self.size, self.open = [], 0, False

    def _give(self) -> tuple[int, bytes]:
        """The element that ended. Nothing here holds it any longer: its reader may need the memory."""
        number, self.index = self.index, self.index + 1
        parts, fits = self.parts, self.size <= MAX_ELEMENT_BYTES
        self._drop()
        if not fits:
            return number, b""
        return number, parts[0] if len(parts) == 1 else b"".join(parts)

    def _gap(self, piece: bytes, *, whole: bool = True) -> Iterator[tuple[int, bytes]]:
        """What stands between two containers: commas and blanks, scalars, garbage. `whole`: the gap ends here."""
        if not self.parts and piece.strip(_SPACE) in (b"", _COMMA):
            return
        text = b"".join(self.parts) + piece
        self._drop()
        piece_parts: list[bytes] = []
        end = 0
        for match in _PIECE.finditer(text):
            if match[0] == _COMMA:
                yield from self._scalar(piece_parts)
                piece_parts, end = [], match.end()
            else:
                piece_parts.append(match[0])
        if whole:
            yield from self._scalar(piece_parts)
        else:
            self._keep(text[end:])

    def _scalar(self, parts: list[bytes]) -> Iterator[tuple[int, bytes]]:
        if raw := b"".join(parts).strip(_SPACE):
            number, self.index = self.index, self.index + 1
            yield number, raw

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """Whole scalars before a cut; the last one may be cut itself and is left out."""
        if self.wanted is None and not self.open:
            yield from self._gap(b"", whole=False)
