"""What reading one file gathers before it becomes the file's row in the ledger, and the identity of its bytes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from palace_pipeline.exports import names
from palace_pipeline.exports.base import Member, Report
from palace_pipeline.exports.containers import DiskMember
from palace_pipeline.exports.drift import cleaned
from palace_pipeline.exports.scan import Known
from palace_pipeline.exports.streams import open_regular
from palace_pipeline.ingest.by_format import NOTHING
from palace_pipeline.ingest.kept import Kept
from palace_pipeline.model import Skip, short_hash


@dataclass(slots=True)
class File:
    """What reading one file has gathered so far. `path`: by which the ledger knows it; `place`: where it lies."""

    path: str
    shown: str
    """The file's path below its root, with which the paths of its members begin."""
    told: Callable[[Sequence[Skip]], list[Skip]]
    """Takes out of skips what may not be kept."""
    place: str
    reports: dict[str, Report] = field(default_factory=dict[str, Report])
    formats: dict[str, str] = field(default_factory=dict[str, str])
    read_as: dict[str, str] = field(default_factory=dict[str, str])
    """Member -> format."""
    nothing: Counter[str] = field(default_factory=Counter[str])
    """Format -> members of which nothing was understood."""
    taken: int = 0
    messages: int = 0
    kept: list[Kept] = field(default_factory=list[Kept])
    left: bool = False
    """It is torn, and says less than it did: all that it gave before stays."""

    def report_for(self, member: str) -> Report:
        """The report of a member; people are told the whole path."""
        place = self.path + member.removeprefix(self.shown) if member.startswith(self.shown) else member
        return self.reports.setdefault(member, Report(place))

    def skips(self) -> list[Skip]:
        return self.told([skip for report in self.reports.values() for skip in report.skips])

    def unknown(self) -> list[tuple[str, str, int]]:
        """Signs of drift for the ledger: (format, name, count)."""
        counts: dict[str, Counter[str]] = {}
        for member, report in self.reports.items():
            counts.setdefault(self.read_as.get(member, ""), Counter()).update(report.unknown)
        rows = [(name, key, count) for name, found in counts.items() for key, count in cleaned(found).items()]
        return rows + [(name, NOTHING, count) for name, count in self.nothing.items()]


class Companions:
    """Identity of what a member is read together with (`names.companions`)."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[object, ...], str] = {}

    def of(self, member: Member, file: str) -> str:
        """The identity, "" if there is nothing like that. `file`: which the member lies in. Raises MemberError, OSError."""
        found = [(name, member.near(name)) for name in names.companions(member.path)]
        hashes = [f"{name}:{self._hash(near, file)}" for name, near in found if near is not None and near.size]
        return short_hash(*hashes, length=64) if hashes else ""

    def _hash(self, member: Member, file: str) -> str:
        """The hash of a companion. Thousands of day files have the same ones, so each is read once."""
        on_disk = isinstance(member, DiskMember)
        key = (str(member.file), member.size, member.mtime_ns) if on_disk else (file, member.path)
        if key not in self._hashes:
            with member.open() as stream:
                self._hashes[key] = hash_of(stream)
        return self._hashes[key]


def not_there(path: str, row: Known | None) -> Skip:
    """A folder that is not there is an error; a single file that was taken before may well be gone."""
    gone = row is not None and row["status"] in ("done", "partial")
    return Skip("no longer there, it was taken before" if gone else "not there", path, gone, unit="file")


def hash_of_file(path: Path) -> str:
    """sha256 of a file's bytes. Raises MemberError, OSError."""
    with open_regular(path) as stream:
        return hash_of(stream)


def hash_of(stream: BinaryIO) -> str:
    """sha256 of what is left of a stream."""
    digest = hashlib.sha256()
    while data := stream.read(1 << 20):
        digest.update(data)
    return digest.hexdigest()
