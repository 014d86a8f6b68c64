"""JSON of any size and nesting -> the values at the places that are wanted, in the memory of one value.

`splitter.split_array` knows one array. This goes through arrays of objects that hold arrays, such as Telegram's full
export (`chats.list[].messages[]`, fifteen gigabytes of it), on the same marks and as fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from typing import BinaryIO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from palace_pipeline.exports import splitter
from palace_pipeline.exports.splitter import (
    BLOCK_BYTES,
    ArrayCut,
    Positions,
    Structure,
    first_block,
    has_more,
)
from palace_pipeline.exports.text import parse_json

_SPACE = b" \t\r\n\0"
_COMMA = b","
_MAX_STRAYS = 1000
_KEY_TAIL_BYTES = 4096
_STRING = rb'"((?:[^"\\]|\\.)*)"'
_FIELD = re.compile(_STRING + rb'\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,"{}\[\]]+)', re.DOTALL)
_LAST_KEY = re.compile(_STRING + rb"\s*:\s*$", re.DOTALL)
_SCALAR = re.compile(rb'"(?:[^"\\]|\\.)*"|[^\s,"]+', re.DOTALL)

JsonPath = tuple[str | int, ...]
"""Keys and indexes from the root to a value."""
Choice = Literal["enter", "take", "skip"]


class Found(NamedTuple):
    """A value that `split_tree` came to. `entered`: it is a container (`raw` is its bracket) whose values follow."""

    path: JsonPath
    raw: bytes
    entered: bool = False


def split_tree(
    stream: BinaryIO, choose: Callable[[JsonPath], Choice], depth: int, block_bytes: int = BLOCK_BYTES
) -> Iterator[Found]:
    """The values of JSON of any size, as deep as wanted, in file order and in the memory of one value.

    `choose` is asked for every object and array below an entered one: enter it (its own values are then looked at), take
    it whole, or pass it over; those of one array are treated alike. Scalars of entered containers come as they are.
    `depth`: the level of the deepest values that are taken or passed over (the root is level 1); brackets deeper than
    that cost next to nothing.

    A value over `splitter.MAX_ELEMENT_BYTES` comes as b"". A bracket too many or too few costs the value it stands in.
    Raises ArrayCut after the last whole value if the file ends inside (`rest`: what was being taken), or is no JSON.
    """
    scan = Structure()
    block, start = first_block(stream, block_bytes)
    if block[start : start + 1] not in (b"[", b"{"):
        raise ArrayCut("the file is no JSON object or array")
    walk = _Tree(choose, depth)
    while block:
        yield from walk.feed(block, *scan.feed(block, start))
        if walk.ended:
            break
        block, start = stream.read(block_bytes), 0
    if not walk.ended:
        raise ArrayCut("the file ends inside", b"".join(walk.parts) if walk.choice == "take" else b"", inside=True)
    if walk.trailing.strip(_SPACE) or has_more(stream, block_bytes):
        raise ArrayCut("there is more after the end")


class _Tree:
    """The state of `split_tree`: the entered containers, and the value that is being taken or passed over."""

    def __init__(self, choose: Callable[[JsonPath], Choice], limit: int) -> None:
        self.choose, self.limit = choose, limit
        self.paths: list[JsonPath] = []
        self.kinds: list[bytes] = []
        self.counts: list[int] = []
        self.choices: list[Choice | None] = []  # of the elements of an array, once it is known
        self.depth = 0
        self.choice: Choice = "enter"
        self.path: JsonPath = ()
        self.opener = b""
        self.parts: list[bytes] = []
        self.size = 0
        self.strays = 0
        self.ended = False
        self.trailing = b""

    def feed(self, block: bytes, at: Positions, step: npt.NDArray[np.int8]) -> Iterator[Found]:
        """The values that end in this block. `at`, `step`: its brackets."""
        done, cursor = 0, 0
        while done is not None and not self.ended:
            done, cursor = yield from self._run(block, at[done:], step[done:], cursor, done)
        if not self.ended:
            self._keep(block[cursor:])

    def _run(
        self, block: bytes, at: Positions, step: npt.NDArray[np.int8], cursor: int, done: int
    ) -> Generator[Found, None, tuple[int | None, int]]:
        """Walks brackets until damage changes the depth: (how many brackets are then behind, or None; where)."""
        depth = self.depth + np.cumsum(step, dtype=np.int64)
        opens = step > 0
        turns = np.flatnonzero((opens & (depth <= self.limit)) | (~opens & (depth < self.limit)))
        for number, place, after, opening in zip(
            turns.tolist(), at[turns].tolist(), depth[turns].tolist(), opens[turns].tolist(), strict=True
        ):
            bracket = block[place : place + 1]
            level = len(self.kinds)
            if self.choice == "enter":
                if opening and self.choices[-1:] == ["take"] and not self.parts and _is_gap(block[cursor:place]):
                    # Nearly all that a large file holds: one more message of a list.
                    self.path = (*self.paths[-1], self.counts[-1])
                    self.counts[-1] += 1
                    self.choice, self.opener, cursor = "take", bracket, place
                    continue
                if opening and self._lacks_end(block[cursor:place]):
                    yield from self._gap(block[cursor:place])
                    self._leave()
                    self._stray()
                    self.depth = len(self.kinds)
                    return done + number, place
                if opening:
                    yield from self._opens(block[cursor:place], bracket)
                    cursor = place if self.choice != "enter" else place + 1
                    continue
                if not self._fits(bracket, self.kinds[-1]):
                    cursor = yield from self._mends(block, cursor, place, bracket)
                    if self.ended:
                        return None, cursor
                    return done + number + 1, cursor
                yield from self._gap(block[cursor:place])
                cursor = place + 1
                self._leave()
            elif not opening and after == level:
                fits = self._fits(bracket, self.opener)
                if fits and not self.parts and self.choice == "take":
                    self.choice = "enter"
                    yield Found(self.path, block[cursor : place + 1] if place - cursor < _max() else b"")
                    cursor = place + 1
                    continue
                cut = not fits and self._fits(bracket, self.kinds[-1])
                self._keep(block[cursor : place if cut else place + 1])
                yield from self._give()
                cursor = place + 1
                if cut:
                    # The value lacks its end, and this is the end of what holds it.
                    self._leave()
                    self.depth = len(self.kinds)
                    self._stray()
                    if self.ended:
                        self.trailing = block[cursor:]
                        return None, cursor
                    return done + number + 1, cursor
            if self.ended:
                self.trailing = block[cursor:]
                return None, cursor
        self.depth = int(depth[-1]) if len(depth) else self.depth
        return None, cursor

    def _fits(self, bracket: bytes, opener: bytes) -> bool:
        return (bracket == b"}") == (opener == b"{")

    def _lacks_end(self, gap: bytes) -> bool:
        """A container without a key in an object of a list: the object before it was not closed."""
        if self.kinds[-2:] != [b"[", b"{"]:
            return False
        return _LAST_KEY.search((b"".join(self.parts) + gap)[-_KEY_TAIL_BYTES:]) is None

    def _opens(self, gap: bytes, bracket: bytes) -> Iterator[Found]:
        """A container begins: its scalars before, then its own place."""
        path: JsonPath = ()
        if self.kinds:
            key = yield from self._gap(gap, opening=True)
            path = (*self.paths[-1], key)
            self.choice = self.choices[-1] or self.choose(path)
            if self.kinds[-1] == b"[":
                self.choices[-1] = self.choice
        if self.choice == "enter":
            self.kinds.append(bracket)
            self.paths.append(path)
            self.counts.append(0)
            self.choices.append(None)
            yield Found(path, bracket, entered=True)
        else:
            self.path, self.opener = path, bracket

    def _mends(self, block: bytes, cursor: int, place: int, bracket: bytes) -> Generator[Found, None, int]:
        """A bracket of the wrong kind: `]` in an object closes the array around it, `}` in an array is one too many."""
        self._stray()
        yield from self._gap(block[cursor:place])
        if bracket == b"]" and self.kinds[-2:-1] == [b"["]:
            self._leave()
            self._leave()
        self.depth = len(self.kinds)
        if self.ended:
            self.trailing = block[place + 1 :]
        return place + 1

    def _stray(self) -> None:
        self.strays += 1
        if self.strays > _MAX_STRAYS:
            raise ArrayCut("too many brackets do not fit")

    def _leave(self) -> None:
        self.kinds.pop()
        self.paths.pop()
        self.counts.pop()
        self.choices.pop()
        self.ended = not self.kinds

    def _keep(self, piece: bytes) -> None:
        if self.choice != "skip" and piece:
            if self.size <= _max():
                self.parts.append(piece)
            self.size += len(piece)

    def _give(self) -> Iterator[Found]:
        choice, self.choice = self.choice, "enter"
        raw = b"" if self.size > _max() else b"".join(self.parts)
        self.parts, self.size = [], 0
        if choice == "take":
            yield Found(self.path, raw)

    def _gap(self, piece: bytes, *, opening: bool = False) -> Generator[Found, None, str | int]:
        """The scalars between two containers; returns the key or index of the container that follows."""
        if not self.parts and _is_gap(piece):
            text = b""
        else:
            text = b"".join(self.parts) + piece if self.size <= _max() else b""
            self.parts, self.size = [], 0
        path = self.paths[-1]
        if self.kinds[-1] == b"{":
            for match in _FIELD.finditer(text):
                yield Found((*path, _key(match[1])), match[2])
            last = _LAST_KEY.search(text[-_KEY_TAIL_BYTES:]) if opening else None
            return _key(last[1]) if last is not None else ""
        for match in _SCALAR.finditer(text):
            yield Found((*path, self.counts[-1]), match[0])
            self.counts[-1] += 1
        if opening:
            self.counts[-1] += 1
        return self.counts[-1] - 1


def _is_gap(piece: bytes) -> bool:
    return piece == _COMMA or piece.strip(_SPACE) in (b"", _COMMA)


def _max() -> int:
    return splitter.MAX_ELEMENT_BYTES


def _key(raw: bytes) -> str:
    try:
        value = parse_json(b'"' + raw + b'"')
    except ValueError:
        value = None
    return value if isinstance(value, str) else raw.decode("utf-8", "replace")
