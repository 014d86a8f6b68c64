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
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import BinaryIO

from palace_pipeline.exports.base import Member, Report
from palace_pipeline.exports.names import is_litter
from palace_pipeline.exports.streams import Budget, Limits, MemberError, guarded, is_packed, open_regular, unpacked

ReportFor = Callable[[str], Report]
"""Gives the report for a member's path."""

_SPOOL_BYTES = 16 * 1024 * 1024
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_ENCRYPTED, _UTF8_NAME = 0x1, 0x800
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
        for entry in _entries(path, folder, report_for):
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


def _entries(root: Path, folder: Path, report_for: ReportFor) -> list[os.DirEntry[str]]:
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
    """An open ZIP. It stays open as long as one of its members is in use, and is closed with the last of them."""

    path: str
    zip: zipfile.ZipFile
    budget: Budget
    stream: InitVar[BinaryIO]
    entries: dict[str, zipfile.ZipInfo] = field(default_factory=dict[str, zipfile.ZipInfo])

    def __post_init__(self, stream: BinaryIO) -> None:
        weakref.finalize(self, stream.close)


@dataclass(frozen=True, slots=True)
class ZipMember:
    """An entry of a ZIP; `name` is its path inside, `path` with the ZIP's own path before `!/`."""

    archive: _Archive
    name: str
    entry: zipfile.ZipInfo

    @property
    def path(self) -> str:
        return f"{self.archive.path}!/{self.name}"

    @property
    def size(self) -> int:
        return self.entry.file_size

    def open(self) -> BinaryIO:
        """Raises MemberError; reading does too: for damage, and when limits are exceeded."""
        if self.entry.flag_bits & _ENCRYPTED:
            raise MemberError("encrypted")
        try:
            stream = self.archive.zip.open(self.entry)
        except NotImplementedError as error:
            raise MemberError(f"compression method {self.entry.compress_type} is not supported") from error
        except (zipfile.BadZipFile, RuntimeError, OSError, ValueError) as error:
            raise MemberError("damaged entry of a ZIP") from error
        budget, path = self.archive.budget, self.path
        plain = guarded(stream, lambda position: budget.note(path, position))
        if not is_packed(self.name):
            return plain
        # gzip and Zstandard need to look at the first bytes twice, a ZIP entry cannot seek cheaply.
        inner = unpacked(_Rewound(plain))  # pyright: ignore[reportArgumentType]
        return guarded(inner, lambda position: budget.note(path + " unpacked", position), plain)

    def near(self, relative: str) -> ZipMember | None:
        """Another entry of the same ZIP."""
        name = posixpath.normpath(posixpath.join(posixpath.dirname(self.name), relative))
        entry = self.archive.entries.get(name)
        return None if entry is None else ZipMember(self.archive, name, entry)


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
        return (member.path, member.entry.file_size, member.entry.CRC)
    return None


def unfold(
    member: DiskMember, report_for: ReportFor, *, limits: Limits | None = None, scratch: Path | None = None
) -> Iterator[Member]:
    """The entries of a ZIP (and of ZIPs in it, one level deep), or the file itself if it is none."""
    if not member.path.lower().endswith(".zip"):
        yield member
        return
    report = report_for(member.path)
    try:
        stream = member.open()
        if not stream.read(4).startswith(_ZIP_MAGIC):
            stream.seek(0)
            empty = not stream.read(1)
            stream.close()
            report.skip("empty file" if empty else "not a ZIP, whatever its name says", expected=False, unit="file")
            return
        archive = _open_zip(member.path, stream, Budget(member.size, limits or Limits()))
    except MemberError as error:
        report.skip(str(error), expected=False, unit="file")
        return
    yield from _entries_of(archive, report_for, scratch, inner_allowed=True)


def _open_zip(path: str, stream: BinaryIO, budget: Budget) -> _Archive:
    try:
        stream.seek(0)
        return _Archive(path, zipfile.ZipFile(stream), budget, stream)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError) as error:
        stream.close()
        raise MemberError("truncated or damaged ZIP: its directory cannot be read, nothing was taken") from error


def _entries_of(
    archive: _Archive, report_for: ReportFor, scratch: Path | None, *, inner_allowed: bool
) -> Iterator[Member]:
    named: list[tuple[str, zipfile.ZipInfo]] = []
    if not archive.zip.infolist():
        report_for(archive.path).skip("empty ZIP", expected=False, unit="file")
    for entry in archive.zip.infolist():
        name = _right_name(entry)
        if entry.is_dir() or name.endswith("/"):
            continue
        safe = _safe_name(name)
        where = f"{archive.path}!/{_shown(safe or name)}"
        if safe is None:
            report_for(where).skip("unsafe name in a ZIP", expected=False, unit="file")
        elif any(is_litter(part) for part in safe.split("/")):
            report_for(where).skip("hidden or system file", expected=True, unit="file")
        elif not _is_file(entry):
            report_for(where).skip("symbolic links are not followed", expected=False, unit="file")
        elif entry.flag_bits & _ENCRYPTED:
            report_for(where).skip("encrypted", expected=False, unit="file")
        else:
            archive.entries[safe] = entry
            named.append((safe, entry))
    for name, entry in sorted(named, key=lambda pair: pair[0]):
        member = ZipMember(archive, name, entry)
        if not name.lower().endswith(".zip"):
            yield member
        elif inner_allowed:
            yield from _inner(member, report_for, scratch)
        else:
            reason = "a ZIP inside a ZIP inside a ZIP is not opened"
            report_for(member.path).skip(reason, expected=False, unit="file")


def _inner(member: ZipMember, report_for: ReportFor, scratch: Path | None) -> Iterator[Member]:
    """The entries of a ZIP inside a ZIP: it is written out first, since its directory stands at its end."""
    # A spooled file has no name once it lies on disk; it goes when the archive is closed.
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES, dir=scratch and str(scratch))  # noqa: SIM115
    try:
        with member.open() as stream:
            shutil.copyfileobj(stream, spool, 1 << 20)
        archive = _open_zip(member.path, spool, member.archive.budget)  # pyright: ignore[reportArgumentType]
    except MemberError as error:
        spool.close()
        report_for(member.path).skip(str(error), expected=False, unit="file")
        return
    yield from _entries_of(archive, report_for, scratch, inner_allowed=False)


def _right_name(entry: zipfile.ZipInfo) -> str:
    """Without the UTF-8 flag names are code page 437 by the book, and UTF-8 in Slack's exports and many others."""
    name = entry.filename
    if not entry.flag_bits & _UTF8_NAME:
        with suppress(UnicodeError):  # else it really is code page 437
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/")


def _safe_name(name: str) -> str | None:
    """The name as a clean relative path, or None if it would leave the folder it is unfolded in."""
    parts = name.split("/")
    if name.startswith("/") or _DRIVE.match(name) or ".." in parts or "\0" in name or len(name) > 4096:
        return None
    clean = "/".join(part for part in parts if part not in ("", "."))
    return clean or None


def _is_file(entry: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    return kind in (0, stat.S_IFREG)
