"""Members as the vault keeps them: storing their bytes once, and giving them back to a reader when the file is gone."""

from __future__ import annotations

import hashlib
import io
import posixpath
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol

import orjson

from palace_pipeline.exports.base import ElementReader, Head, Member, Report, RowsReader
from palace_pipeline.exports.engine import Element, elements_of
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.vault import Vault


class Digest(Protocol):
    """A running hash (hashlib's objects have no public type)."""

    def update(self, data: bytes, /) -> None: ...


Use = Literal["whole", "array", "lines", "side", "asset", "damaged"]
"""What a member's bytes are kept for, and (array, lines) that its elements are kept one by one."""


NOTHING_KEPT = b"null"
"""Stands where an element was whose bytes were purged."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A member whose bytes are in the vault. `pieces` in order; empty for members kept element by element."""

    member: str
    use: Use
    size: int
    sha256: str
    pieces: list[str]
    cut: str | None = None
    """Why no more than this could be read of it."""


def keep_whole(ledger: Ledger, vault: Vault | None, path: str, member: Member, use: Use, named: str) -> Kept:
    """Put a member's bytes into the vault; of a log that only grew just the new tail.

    `path`, `named`: by which the ledger knows file and member. Without a vault (dry run) the bytes are only measured. Of a
    member that is damaged somewhere comes what stands before. Raises MemberError when nothing of it can be read.
    """
    row = ledger.one("SELECT size, sha256, pieces FROM members WHERE path = ? AND member = ?", (path, named))
    digest = hashlib.sha256()
    size = 0
    pieces: list[str] = []
    with member.open() as stream:
        if row is not None and row["size"] > 0:
            head = hashlib.sha256()
            left: int = row["size"]
            with suppress(MemberError):  # then it is not the file that it was
                while left and (data := stream.read(min(left, 1 << 20))):
                    head.update(data)
                    left -= len(data)
            if left == 0 and head.hexdigest() == row["sha256"]:
                digest, size, pieces = head, row["size"], orjson.loads(row["pieces"])
        if size:
            size, pieces, cut = _append(stream, vault, digest, size, pieces)
            return Kept(named, use, size, digest.hexdigest(), pieces, cut)
    with member.open() as stream:
        size, pieces, cut = _append(stream, vault, digest, 0, [])
    return Kept(named, use, size, digest.hexdigest(), pieces, cut)


def _append(
    stream: BinaryIO, vault: Vault | None, digest: Digest, size: int, pieces: list[str]
) -> tuple[int, list[str], str | None]:
    out = list(pieces)
    before = size
    try:
        if vault is None:
            while data := stream.read(1 << 20):
                digest.update(data)
                size += len(data)
            return size, out, None
        for name, data in vault.put_stream(stream):
            digest.update(data)
            size += len(data)
            out.append(name)
    except MemberError as error:
        if size == before:
            raise
        return size, out, str(error)
    return size, out, None


@dataclass(frozen=True, slots=True)
class Bounded:
    """A member cut at the size that was kept: what is appended while it is read belongs to the next look."""

    inner: Member
    size: int

    @property
    def path(self) -> str:
        return self.inner.path

    def open(self) -> BinaryIO:
        return io.BufferedReader(_Upto(self.inner.open(), self.size), 1 << 16)

    def near(self, relative: str) -> Member | None:
        return self.inner.near(relative)


class _Upto(io.RawIOBase):
    def __init__(self, inner: BinaryIO, left: int) -> None:
        self._inner, self._left = inner, left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        data = self._inner.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._inner.close()
        super().close()


@dataclass(frozen=True, slots=True)
class VaultMember:
    """A member read back from the vault. Elements of an array come as a JSON array again, lines as lines.

    That is for whoever has to see what it is; `kept_elements` gives them byte by byte as they were kept, where splitting
    the array again would lose the blanks around one, and could not take apart what is damaged.
    """

    ledger: Ledger
    vault: Vault
    file: str
    path: str
    use: Use
    size: int
    pieces: list[str]
    elements: list[tuple[int, str, list[str]]]
    """Position, name and pieces of each element, for members that are kept element by element."""

    @property
    def holds_lines(self) -> bool:
        """True if it is JSON lines whatever its name: those of a database are."""
        return self.use == "lines"

    def open(self) -> BinaryIO:
        if self.use == "array":
            return io.BufferedReader(_Joined(self._raw(), b"[", b",", b"]"), 1 << 16)
        if self.use == "lines":
            return io.BufferedReader(_Joined(self._raw(), b"", b"\n", b"\n"), 1 << 16)
        return self.vault.open_pieces(self.pieces)

    def _raw(self) -> Iterator[bytes]:
        return (self._bytes(pieces) for _, _, pieces in self.elements)

    def _bytes(self, pieces: list[str]) -> bytes:
        return b"".join(self.vault.piece(name) for name in pieces) if pieces else NOTHING_KEPT

    def kept_elements(self) -> Iterator[Element]:
        """The elements as they were kept."""
        for position, _, pieces in self.elements:
            yield Element(position, self._bytes(pieces), f"line {position}" if self.holds_lines else f"[{position}]")

    @property
    def names(self) -> dict[int, str]:
        """Position -> name by which the ledger knows the element."""
        return {position: name for position, name, _ in self.elements}

    def near(self, relative: str) -> VaultMember | None:
        """Another kept member of the same file (a ZIP), or of the same folder of exports."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(self.path), relative))
        found = _kept_members(self.ledger, self.vault, "path = ? AND member = ?", (self.file, beside))
        if not found:
            file = posixpath.normpath(posixpath.join(posixpath.dirname(self.file), relative))
            found = _kept_members(self.ledger, self.vault, "path = ? AND use != 'asset' LIMIT 1", (file,))
        return found[0] if found else None


def elements_in(member: Member, head: Head, report: Report, reader: ElementReader | RowsReader) -> Iterator[Element]:
    """The raw elements of a member, in order; of one that was kept element by element, just those."""
    if isinstance(member, VaultMember) and member.use in ("array", "lines"):
        return member.kept_elements()
    return elements_of(member, head, report, reader)


def vault_members(ledger: Ledger, vault: Vault, path: str) -> list[VaultMember]:
    """The members of a file that readers can read again, in the order of their names."""
    return _kept_members(
        ledger, vault, "path = ? AND use IN ('whole', 'array', 'lines', 'damaged') ORDER BY member", (path,)
    )


def _kept_members(ledger: Ledger, vault: Vault, where: str, values: tuple[str, ...]) -> list[VaultMember]:
    rows = ledger.rows(f"SELECT path, member, use, size, pieces FROM members WHERE {where}", values)
    return [
        VaultMember(
            ledger,
            vault,
            row["path"],
            row["member"],
            row["use"],
            row["size"],
            orjson.loads(row["pieces"]),
            _elements(ledger, row["path"], row["member"]) if row["use"] in ("array", "lines") else [],
        )
        for row in rows
    ]


def _elements(ledger: Ledger, path: str, member: str) -> list[tuple[int, str, list[str]]]:
    rows = ledger.rows(
        "SELECT f.position, e.element, e.pieces FROM file_elements f JOIN elements e USING (element) "
        "WHERE f.path = ? AND f.member = ? ORDER BY f.position",
        (path, member),
    )
    return [(row["position"], row["element"], orjson.loads(row["pieces"])) for row in rows]


class _Joined(io.RawIOBase):
    """Parts with something before, between and after them, as a raw stream."""

    def __init__(self, parts: Iterator[bytes], before: bytes, between: bytes, after: bytes) -> None:
        self._source = self._pieces(parts, before, between, after)
        self._part = memoryview(b"")

    @staticmethod
    def _pieces(parts: Iterator[bytes], before: bytes, between: bytes, after: bytes) -> Iterator[bytes]:
        yield before
        for number, part in enumerate(parts):
            if number:
                yield between
            yield part
        yield after

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        while not self._part:
            part = next(self._source, None)
            if part is None:
                return 0
            self._part = memoryview(part)
        count = min(len(buffer), len(self._part))
        buffer[:count] = self._part[:count]
        self._part = self._part[count:]
        return count
