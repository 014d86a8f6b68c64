"""A JSON array of any size -> the raw bytes of each element, in the memory of one element.

Works on blocks: one `bytes.translate` marks the few bytes that decide the structure, numpy does the rest on their
positions only, so that a 1 GB export on one line costs seconds and never its size in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

BLOCK_BYTES = 2 * 1024 * 1024
MAX_ELEMENT_BYTES = 1024 * 1024 * 1024
"""A longer element is given as b"" (the caller counts it), so that a lost bracket cannot take all memory."""

_QUOTE, _BACKSLASH, _OPEN, _CLOSE, _COMMA = 0x22, 0x5C, b"[{", b"]}", b","
_STRUCTURE = bytes(byte in b'"\\[]{}' for byte in range(256))
_SPACE = b" \t\r\n\0"
_LEADING = re.compile(rb"[ \t\r\n\x00]*")
_KEY_TAIL_BYTES = 4096
_PIECE = re.compile(rb'"(?:[^"\\]|\\.)*"?|[^",]+|,', re.DOTALL)

Positions = npt.NDArray[np.int64]


class ArrayCut(ValueError):
    """The array does not end as it should; all whole elements before have been given. Its text names no content."""


def split_array(
    stream: BinaryIO, key: str | None = None, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[int, bytes]]:
    """(index, raw bytes) of each element of a top-level array, or of the array under a top-level `key` of an object.

    A byte order mark, blanks and NULs around elements are left out. Garbage between two elements comes as an element
    of its own (it does not parse), and a comma too few or too many loses nothing. Elements are not checked otherwise.

    Raises ArrayCut after the last whole element: if the file ends inside the array, holds anything but blanks after
    a top-level array, does not begin with an array (or an object), or has no array under `key`.
    """
    scan = _Structure()
    block, start = _first_block(stream, block_bytes)
    opener = block[start : start + 1]
    if opener != (b"[" if key is None else b"{"):
        raise ArrayCut("the file does not begin with a JSON array" if key is None else "the file is no JSON object")
    walk = _Walk(level=1, wanted=None if key is None else key.encode())
    while block:
        yield from walk.feed(block, *scan.feed(block, start))
        if walk.ended:
            break
        block, start = stream.read(block_bytes), 0
    if not walk.ended:
        yield from walk.rest()
        raise ArrayCut("the file has no such array" if walk.wanted is not None else "the file ends inside the array")
    if key is None and (walk.trailing.strip(_SPACE) or _has_more(stream, block_bytes)):
        raise ArrayCut("there is more after the end of the array")


def _first_block(stream: BinaryIO, block_bytes: int) -> tuple[bytes, int]:
    """The first block with something in it, and where that begins. Blanks before the array cost no memory."""
    head = stream.read(max(block_bytes, 4)).removeprefix(b"\xef\xbb\xbf")
    while head:
        match = _LEADING.match(head)
        start = match.end() if match else 0
        if start < len(head):
            return head, start
        head = stream.read(block_bytes)
    return b"", 0


def _has_more(stream: BinaryIO, block_bytes: int) -> bool:
    while block := stream.read(block_bytes):
        if block.strip(_SPACE):
            return True
    return False


class _Structure:
    """Finds the brackets of a block that stand outside strings; carries string and escape state to the next block."""

    def __init__(self) -> None:
        self.in_string = False
        self.backslashes = 0

    def feed(self, block: bytes, start: int = 0) -> tuple[Positions, npt.NDArray[np.int8]]:
        """Positions of the structural brackets from `start` on, and +1 (opens) or -1 (closes) for each."""
        marks = np.frombuffer(block.translate(_STRUCTURE), dtype=np.bool_)
        at = np.flatnonzero(marks)
        if start:
            at = at[np.searchsorted(at, start) :]
        byte = np.frombuffer(block, dtype=np.uint8)[at]
        quote = byte == _QUOTE
        slash = byte == _BACKSLASH
        if self.backslashes or slash.any():
            quote &= ~self._escaped(at, slash, len(block))
        elif len(block) > start:
            self.backslashes = 0
        inside = (np.cumsum(quote) + self.in_string) & 1
        if len(inside):
            self.in_string = bool(inside[-1])
        bracket = ~(byte == _QUOTE) & ~slash & (inside == 0)
        found = byte[bracket]
        return at[bracket], np.where((found & 0x06) == 0x02, 1, -1).astype(np.int8)

    def _escaped(self, at: Positions, slash: npt.NDArray[np.bool_], size: int) -> npt.NDArray[np.bool_]:
        """For each marked byte: does an odd number of backslashes stand right before it?"""
        count = len(at)
        numbers = np.arange(count)
        before = np.empty(count, dtype=bool)  # is the byte right before a backslash?
        if count:
            before[0] = False
            before[1:] = slash[:-1] & (at[1:] == at[:-1] + 1)
        # Length of the run of backslashes that ends right before each marked byte.
        begins = slash & ~before
        run_start = np.maximum.accumulate(np.where(begins, numbers, -1))
        length = np.where(before, numbers - run_start, 0)
        if count:
            length[slash] = np.where(before[slash], numbers[slash] - run_start[slash], 0)
        carried = self.backslashes
        if carried and count and at[0] == 0:
            # The first run continues the one that ended the block before (or the first quote follows it).
            first_run = numbers == np.cumsum(before | (numbers == 0)) - 1
            length[first_run] += carried
        self.backslashes = self._trailing(at, slash, size)
        return (length & 1) == 1

    def _trailing(self, at: Positions, slash: npt.NDArray[np.bool_], size: int) -> int:
        """How many backslashes end the block (with those carried over if the whole block is backslashes)."""
        run = 0
        while run < len(at) and slash[-1 - run] and at[-1 - run] == size - 1 - run:
            run += 1
        return run + self.backslashes if run == size else run


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

    def feed(self, block: bytes, at: Positions, step: npt.NDArray[np.int8]) -> Iterator[tuple[int, bytes]]:
        depth = self.depth + np.cumsum(step, dtype=np.int64)
        cursor = 0
        for number in self._turns(depth, step):
            place, after = int(at[number]), int(depth[number])
            opens = step[number] > 0
            if opens and after == self.level + 1 and self.wanted is not None:
                if self._finds(block[cursor:place], block[place : place + 1]):
                    self.wanted, self.level = None, after
                    self._drop()
                    cursor = place + 1
                    self.depth = after
                    # The array's own inside lies one level deeper: look at the rest of the block anew.
                    rest = number + 1
                    moved = at[rest:] - cursor
                    yield from self.feed(block[cursor:], moved, step[rest:])
                    return
                cursor = place
            elif opens and after == self.level:
                cursor = place + 1  # the array itself
            elif opens and after == self.level + 1:
                yield from self._gap(block[cursor:place])
                cursor, self.open = place, True
            elif not opens and after == self.level:
                if self.wanted is None:
                    self._keep(block[cursor : place + 1])
                    yield self._give()
                self._drop()
                cursor = place + 1
            elif not opens and after == self.level - 1:
                if self.wanted is None:
                    yield from self._gap(block[cursor:place])
                    self.ended, self.trailing = True, block[place + 1 :]
                return
        self.depth = int(depth[-1]) if len(depth) else self.depth
        self._keep(block[cursor:])
        if self.wanted is not None:
            self.parts = [b"".join(self.parts)[-_KEY_TAIL_BYTES:]]
        elif not self.open and self.size > _KEY_TAIL_BYTES:
            yield from self._gap(b"", whole=False)

    def _turns(self, depth: Positions, step: npt.NDArray[np.int8]) -> list[int]:
        """Numbers of the brackets that begin or end an element or the array."""
        level = self.level
        opens = (step > 0) & ((depth == level + 1) | (depth == level))
        closes = (step < 0) & ((depth == level) | (depth == level - 1))
        return np.flatnonzero(opens | closes).tolist()

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
        number, self.index = self.index, self.index + 1
        return number, b"" if self.size > MAX_ELEMENT_BYTES else b"".join(self.parts)

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
