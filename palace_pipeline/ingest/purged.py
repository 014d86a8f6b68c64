"""What the user purged stays out: conversations by their tombstones, values by what proves them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Row
from typing import BinaryIO

from palace_pipeline.exports.base import Member
from palace_pipeline.exports.scan import Missing, Seen
from palace_pipeline.model import Conversation, Skip
from palace_pipeline.redaction.forgotten import Forgotten, masked_name, masked_path
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Key, Ledger

PURGED = "purged by you"
"""Why a conversation is left out."""
REMOVED = "removed from the vault by palace purge"
"""Why a place of a file that is read from the vault holds nothing."""
_BLOCK = 8 << 20
_OVERLAP = 64 << 10
"""Bytes looked at twice: more than a purged value takes, however it is written."""


_QUOTED = re.compile(rb'"([^"\\\x00-\x1f]{8,200})"')
"""Where ids stand in JSON."""


def mark_of(grave: bytes) -> str:
    """How skips tell purged conversations apart without naming them."""
    return grave.hex()[:12]


@dataclass(frozen=True, slots=True)
class Purged:
    """What a home has purged. Empty for most: then nothing is looked at."""

    key: bytes
    tombstones: dict[bytes, bool]
    values: tuple[Forgotten, ...]
    unkept: tuple[Forgotten, ...]
    """Values that raw bytes which are kept must not show."""

    @classmethod
    def of(cls, home: Home, ledger: Ledger) -> Purged:
        """What a home's ledger says; the home's key is only asked for if it says anything."""
        tombstones, values = ledger.tombstones(), ledger.forgotten()
        key = home.key() if tombstones or values else b""
        return cls(key, tombstones, values, ledger.forgotten(vault=True))

    @property
    def from_vault(self) -> bool:
        """True if anything was purged together with its raw bytes."""
        return bool(self.unkept) or any(self.tombstones.values())

    def hides(self, key: Key) -> str | None:
        """The mark of a conversation that was purged (the same wherever it is seen), None for others."""
        if not self.tombstones or (grave := _tombstone(key, self.key)) not in self.tombstones:
            return None
        return mark_of(grave)

    def clean(self, conversation: Conversation) -> Conversation:
        """The conversation without purged values."""
        if not self.values:
            return conversation
        from palace_pipeline.redaction.forgetting import without_forgotten

        return without_forgotten(conversation, self.values, self.key)

    def clean_name(self, name: str) -> str:
        """A path without purged values."""
        return masked_path(name, self.values, self.key) if self.values else name

    def known_as(self, name: str) -> str:
        """The name by which the ledger knows a file or member: its own, but for purged values. Two stay two."""
        return masked_name(name, self.values, self.key) if self.values else name

    def file_known_as(self, seen: Seen) -> Seen:
        """A file as the ledger knows it."""
        if not self.values:
            return seen
        return replace(seen, path=self.known_as(seen.path), root=self.known_as(seen.root))

    def files_known_as(self, found: Iterable[Seen | Missing]) -> list[Seen | Missing]:
        """The same for what a scan found: what may be compared with the ledger."""
        return [self.file_known_as(one) if isinstance(one, Seen) else Missing(self.known_as(one.path)) for one in found]

    def told(self, skips: Sequence[Skip]) -> list[Skip]:
        """Skips whose places show no purged value."""
        if not self.values:
            return list(skips)
        return [replace(skip, where=self.known_as(skip.where)) for skip in skips]

    def keeps(self, raw: bytes, keys: Collection[Key]) -> bool:
        """May the raw bytes of these conversations be kept? Not if all of them were purged with theirs, or a value was.

        Bytes in which no conversation was found may be a part of a purged one: known by the ids in it.
        """
        if not keys and self._is_part([raw]):
            return False
        return self._keeps_chats(keys) and not self._shown([raw])

    def keeps_member(
        self, member: Member, read: Callable[[], Iterable[Conversation]] | None = None, *, damaged: bool = False
    ) -> bool:
        """The same for a whole member; it is read for that only in a home where something was purged with its bytes.

        `damaged`: no reader could take it.
        """
        if not self.from_vault:
            return True
        keys = {conversation.key for conversation in read()} if read is not None else set[Key]()
        if not self._keeps_chats(keys):
            return False
        if not keys and (damaged or read is not None):
            with member.open() as stream:
                if self._is_part(_blocks(stream)):
                    return False
        if not self.unkept:
            return True
        with member.open() as stream:
            return not self._shown(_blocks(stream))

    def _is_part(self, blocks: Iterable[bytes]) -> bool:
        """Do bytes hold an id of a conversation that was purged with its raw bytes, or of one of its messages?"""
        if not any(self.tombstones.values()):
            return False
        from palace_pipeline.redaction.forgetting import part_mark

        return any(
            part_mark(name.decode("utf-8", "replace"), self.key) in self.tombstones
            for block in blocks
            for name in set(_QUOTED.findall(block))
        )

    def _keeps_chats(self, keys: Collection[Key]) -> bool:
        if not self.tombstones or not keys:
            return True
        graves = [self.tombstones.get(_tombstone(key, self.key)) for key in keys]
        return any(grave is None for grave in graves) or not any(graves)

    def _shown(self, blocks: Iterable[bytes]) -> bool:
        if not self.unkept:
            return False
        from palace_pipeline.redaction.forgetting import shows

        return any(shows(block, self.unkept, self.key) for block in blocks)


class KnownFiles(Mapping[str, Row]):
    """What the ledger knows of files, asked for by the names that they have on the disk."""

    def __init__(self, home: Home, ledger: Ledger) -> None:
        self.rows, self._purged = ledger.known_files(), Purged.of(home, ledger)
        """By the names that the ledger has."""

    def __getitem__(self, path: str) -> Row:
        return self.rows[self._purged.known_as(path)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def _tombstone(key: Key, secret: bytes) -> bytes:
    from palace_pipeline.redaction.forgetting import tombstone

    return tombstone(*key, secret)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """A stream in blocks that overlap."""
    tail = b""
    while data := stream.read(_BLOCK):
        yield tail + data
        tail = data[-_OVERLAP:]
