"""A file, folder or ZIP -> its members, one after the other, each openable on its own.

What is not given is counted with its reason: links and special files, litter of operating systems, names that would
leave the export, encrypted or damaged archives.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import stat
import tempfile
import weakref
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from palace_pipeline.exports.base import Member, Report
from palace_pipeline.exports.names import is_litter
from palace_pipeline.exports.streams import Budget, Limits, MemberError, guarded, is_packed, open_regular, unpacked
from palace_pipeline.exports.zip_entries import (
    Directory,
    Entry,
    NoDirectory,
    entries_of,
    entry_at,
    find_directory,
    found_entries,
    open_entry,
)

ReportFor = Callable[[str], Report]
"""Gives the report for a member's path."""

_SPOOL_BYTES = 16 * 1024 * 1024
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_NAMED = 1000
"""Skips of one reason in one ZIP that are told one by one."""
_DRIVE = re.compile(r"[A-Za-z]:")


def members_of(
    path: Path, report_for: ReportFor, *, limits: Limits | None = None, scratch: Path | None = None
) -> Iterator[Member]:
    """All members of a file, a folder or a ZIP, in the order of their names.

    `scratch`: a private folder for ZIPs inside ZIPs that are too large for memory; without it they lie in the system's
    folder for temporary files, without a name (nobody else can open them). Raises FileNotFoundError.
    """
    for file in files_of(path, report_for):
        yield from unfold(file, report_for, limits=limits, scratch=scratch)


# --- files on disk ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiskMember:
    """A file below `root`. `path` is what people see: names that are no UTF-8 are made readable in it."""

    root: Path
    file: Path
    path: str
    size: int
    mtime_ns: int

    def open(self) -> BinaryIO:
        """Raises MemberError if it is no regular file (any more) or cannot be read."""
        stream = open_regular(self.file)
        if not is_packed(self.file.name):
            return stream
        budget = Budget(self.size)
        return guarded(unpacked(stream), lambda position: budget.note(self.path, position), stream)

    def near(self, relative: str) -> DiskMember | None:
        """A regular file by path relative to this one's folder, if it lies below the root and no link leads to it."""
        if relative.startswith("/") or "\0" in relative:
            return None
        # With plain strings: logs and day files ask for their neighbours by the ten thousand.
        target = posixpath.normpath(posixpath.join(posixpath.dirname(str(self.file)), relative))
        folder = posixpath.dirname(target)
        root = str(self.root)
        if (folder != root and not folder.startswith(root.rstrip("/") + "/")) or _is_linked(root, folder):
            return None
        return _disk_member(self.root, Path(target)) if posixpath.lexists(target) else None


def _is_linked(root: str, folder: str) -> bool:
    """Does a link lead from the root to a folder in it? One above the root (`/tmp` of macOS, a moved home) is none."""
    real = posixpath.realpath(folder)
    return real != folder and real != posixpath.normpath(f"{posixpath.realpath(root)}/{folder[len(root) :]}")


def _disk_member(root: Path, file: Path) -> DiskMember | None:
    try:
        found = file.lstat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return DiskMember(root, file, _shown(file.relative_to(root).as_posix()), found.st_size, found.st_mtime_ns)


def _shown(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def files_of(path: Path, report_for: ReportFor) -> Iterator[DiskMember]:
    """The regular files of a folder and all folders in it, or the one file; ZIPs stay closed.

    Links are not followed (only `path` itself may be one). Raises FileNotFoundError.
    """
    path = path.resolve(strict=True)
    if not path.is_dir():
        if (member := _disk_member(path.parent, path)) is not None:
            yield member
        else:
            report_for(_shown(path.name)).skip("not a regular file", expected=False, unit="file")
        return
    folders = [path]
    while folders:
        folder = folders.pop()
        below: list[Path] = []
        for entry in _listed(path, folder, report_for):
            file = Path(entry.path)
            shown = _shown(file.relative_to(path).as_posix())
            if is_litter(entry.name):
                report_for(shown).skip("hidden or system file", expected=True, unit="file")
            elif entry.is_symlink():
                inside = _leads_inside(path, file)
                report_for(shown).skip("symbolic links are not followed", expected=inside, unit="file")
            elif entry.is_dir(follow_symlinks=False):
                below.append(file)
            elif (member := _disk_member(path, file)) is not None:
                yield member
            else:
                report_for(shown).skip("not a regular file", expected=False, unit="file")
        folders.extend(reversed(below))


def _listed(root: Path, folder: Path, report_for: ReportFor) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        shown = _shown(folder.relative_to(root).as_posix())
        reason = f"folder cannot be read ({error.strerror or type(error).__name__})"
        report_for(shown).skip(reason, expected=False, unit="file")
        return []


def _leads_inside(root: Path, link: Path) -> bool:
    """A link to something that is found anyway costs nothing."""
    try:
        return link.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return False


# --- ZIPs -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, weakref_slot=True)
class _Archive:
    """An open ZIP. It stays open as long as one of its members is in use, and is closed with the last of them.

    `names` in order, `places` of their entries beside them: in the directory, or (without one) in `found`. Entries are
    looked up when they are needed, for there may be a million. `share`: bytes of the outermost container per byte.
    """

    path: str
    stream: BinaryIO
    budget: Budget
    share: float = 1.0
    directory: Directory | None = None
    found: list[Entry] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    places: array[int] = field(default_factory=lambda: array("Q"))

    def __post_init__(self) -> None:
        weakref.finalize(self, self.stream.close)

    def entry(self, place: int) -> Entry:
        return self.found[place] if self.directory is None else entry_at(self.stream, self.directory, place)

    def member(self, number: int) -> ZipMember:
        return ZipMember(self, self.names[number], self.entry(self.places[number]))


@dataclass(frozen=True, slots=True)
class ZipMember:
    """An entry of a ZIP; `name` is its path inside, `path` with the ZIP's own path before `!/`."""

    archive: _Archive
    name: str
    entry: Entry

    @property
    def path(self) -> str:
        return f"{self.archive.path}!/{self.name}"

    @property
    def size(self) -> int:
        return self.entry.size

    def open(self) -> BinaryIO:
        """Raises MemberError; reading does too: for damage, and when limits are exceeded."""
        archive, path = self.archive, self.path
        packed = int(self.entry.packed * archive.share)
        stream = open_entry(archive.stream, self.entry, archive.directory)
        # The member holds the archive, and with it the file, as long as its content is read.
        plain = guarded(stream, lambda position: self.archive.budget.note(path, position, packed))
        if not is_packed(self.name):
            return plain
        # gzip and Zstandard need to look at the first bytes twice, a ZIP entry cannot seek cheaply.
        inner = unpacked(_Rewound(plain))  # pyright: ignore[reportArgumentType]
        return guarded(inner, lambda position: archive.budget.note(path + " unpacked", position, packed), plain)

    def near(self, relative: str) -> ZipMember | None:
        """Another entry of the same ZIP."""
        name = posixpath.normpath(posixpath.join(posixpath.dirname(self.name), relative))
        at = bisect_left(self.archive.names, name)
        return self.archive.member(at) if self.archive.names[at : at + 1] == [name] else None


class _Rewound:
    """A stream whose first bytes may be read, given back once, and read again."""

    def __init__(self, inner: BinaryIO) -> None:
        self._inner, self._start, self._first = inner, b"", True

    def read(self, size: int = -1, /) -> bytes:
        if self._first:
            self._first = False
            self._start = self._inner.read(size)
            return self._start
        if self._start:
            piece, self._start = (self._start, b"") if size < 0 else (self._start[:size], self._start[size:])
            return piece + self._inner.read() if size < 0 else piece
        return self._inner.read(size)

    def seek(self, _offset: int, _whence: int = 0, /) -> int:
        return 0

    def close(self) -> None:
        self._inner.close()


def mark_of(member: Member) -> tuple[object, ...] | None:
    """What is equal only for members with the same bytes, as far as can be told without reading them; else None."""
    if isinstance(member, DiskMember):
        return (str(member.file), member.size, member.mtime_ns)
    if isinstance(member, ZipMember):
        return (member.path, member.entry.size, member.entry.crc)
    return None


def unfold(
    member: DiskMember, report_for: ReportFor, *, limits: Limits | None = None, scratch: Path | None = None
) -> Iterator[Member]:
    """The entries of a ZIP (and of ZIPs in it, one level deep), or the file itself if it is none."""
    if not member.path.lower().endswith(".zip"):
        yield member
        return
    try:
        stream = member.open()
        archive = _Archive(member.path, stream, Budget(member.size, limits or Limits()))
        if not stream.read(4).startswith(_ZIP_MAGIC):
            stream.seek(0)
            reason = "not a ZIP, whatever its name says" if stream.read(1) else "empty file"
            report_for(member.path).skip(reason, expected=False, unit="file")
            return
        yield from _entries(archive, report_for, scratch, inner_allowed=True)
    except OSError as error:
        reason = str(error) if isinstance(error, MemberError) else f"cannot be read ({error.strerror})"
        report_for(member.path).skip(reason, expected=False, unit="file")


def _entries(
    archive: _Archive, report_for: ReportFor, scratch: Path | None, *, inner_allowed: bool
) -> Iterator[Member]:
    skips = _Skips(archive.path, report_for)
    _list(archive, skips)
    for number, name in enumerate(archive.names):
        member = archive.member(number)
        if not name.lower().endswith(".zip"):
            yield member
        elif inner_allowed:
            yield from _inner(member, report_for, scratch)
        else:
            skips.add(name, "a ZIP inside a ZIP inside a ZIP is not opened", expected=False)
    skips.tell_rest()


class _Skips:
    """Skips of one ZIP. Those beyond the first thousand for one reason are counted together."""

    def __init__(self, archive: str, report_for: ReportFor) -> None:
        self._archive, self.report_for = archive, report_for
        self._counts: Counter[tuple[str, bool]] = Counter()

    def add(self, name: str, reason: str, *, expected: bool) -> None:
        self._counts[reason, expected] += 1
        if self._counts[reason, expected] <= _NAMED:
            self.report_for(f"{self._archive}!/{_shown(name)}").skip(reason, expected=expected, unit="file")

    def tell_rest(self) -> None:
        for (reason, expected), count in self._counts.items():
            if count > _NAMED:
                report = self.report_for(self._archive)
                report.skip(reason, expected=expected, count=count - _NAMED, unit="file")


def _list(archive: _Archive, skips: _Skips) -> None:
    """Fill an archive's names with what may be read of it."""
    report_for, stream = skips.report_for, archive.stream
    try:
        archive.directory = find_directory(stream)
        seen = _take(archive, entries_of(stream, archive.directory), skips)
        if not seen:
            report_for(archive.path).skip("empty ZIP", expected=False, unit="file")
    except NoDirectory as error:
        archive.directory = None
        archive.names.clear()
        del archive.places[:]
        note = partial(_note_search, archive)
        archive.found = list(found_entries(stream, note))
        seen = _take(archive, enumerate(archive.found), skips)
        found = f"{seen} of its files were found without it" if seen else "nothing was taken"
        report_for(archive.path).skip(f"truncated or damaged ZIP: {error}, {found}", expected=False, unit="file")
    _sort(archive, skips)


def _note_search(archive: _Archive, name: str, position: int, packed: int) -> None:
    archive.budget.note(f"{archive.path}!/{name} searched", position, int(packed * archive.share))


def _take(archive: _Archive, entries: Iterable[tuple[int, Entry]], skips: _Skips) -> int:
    """Note the entries that are files with good names; returns how many there are in all."""
    count = 0
    for place, entry in entries:
        count += 1
        name = entry.name
        if name.endswith("/"):
            continue
        safe = _safe_name(name)
        if safe is None:
            skips.add(name, "unsafe name in a ZIP", expected=False)
        elif any(map(is_litter, safe.split("/"))):
            skips.add(safe, "hidden or system file", expected=True)
        elif stat.S_IFMT(entry.mode) not in (0, stat.S_IFREG):
            skips.add(safe, "symbolic links are not followed", expected=False)
        elif entry.encrypted:
            skips.add(safe, "encrypted", expected=False)
        else:
            archive.names.append(safe)
            archive.places.append(place)
    return count


def _sort(archive: _Archive, skips: _Skips) -> None:
    """Names in order. Of a name that is used twice each file is given, the later ones with a number."""
    names, places = archive.names, archive.places
    order = sorted(range(len(names)), key=names.__getitem__)
    kept: list[tuple[str, int]] = []
    again = 1
    for before, number in zip([-1, *order], order, strict=False):
        name, place = names[number], places[number]
        again = again + 1 if before >= 0 and names[before] == name else 1
        if again > 1:
            one, other = archive.entry(places[before]), archive.entry(place)
            if (one.crc, one.size, one.packed) == (other.crc, other.size, other.packed):
                skips.add(name, "stands twice in the ZIP", expected=True)
                continue
            stem, dot, ending = name.rpartition(".")
            name = f"{stem} ({again}).{ending}" if dot else f"{name} ({again})"
        kept.append((name, place))
    kept.sort()
    archive.names = [name for name, _ in kept]
    archive.places = array("Q", (place for _, place in kept))


def _inner(member: ZipMember, report_for: ReportFor, scratch: Path | None) -> Iterator[Member]:
    """The entries of a ZIP inside a ZIP: it is written out first, since its directory stands at its end.

    One that is cut or damaged is written out as far as it goes.
    """
    # A spooled file has no name once it lies on disk; it goes when the archive is closed.
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES, dir=scratch and str(scratch))  # noqa: SIM115
    outer = member.archive
    archive = _Archive(member.path, spool, outer.budget)  # pyright: ignore[reportArgumentType]
    try:
        with member.open() as stream:
            shutil.copyfileobj(stream, spool, 1 << 20)
    except MemberError as error:
        report_for(member.path).skip(str(error), expected=False, unit="file")
        if not spool.tell():
            return
    archive.share = outer.share * member.entry.packed / max(1, spool.tell())
    yield from _entries(archive, report_for, scratch, inner_allowed=False)


def _safe_name(name: str) -> str | None:
    """The name as a clean relative path, or None if it would leave the folder it is unfolded in."""
    parts = name.split("/")
    if name.startswith("/") or _DRIVE.match(name) or ".." in parts or "\0" in name or len(name) > 4096:
        return None
    clean = "/".join(part for part in parts if part not in ("", "."))
    return clean or None
