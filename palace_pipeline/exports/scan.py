"""Looking at export folders: which files are there, which are new or changed, which have come to rest. Pure but for stat.

Used by the command line, the ingest and the folder sensor alike.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from palace_pipeline.exports.names import companions, is_beside_database, is_litter
from palace_pipeline.model import short_hash

SETTLE_SECONDS = 10.0
"""A file that changed less than this ago may still be being written."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as a scan found it. `root`: the folder it was found below.

    Of a file that is read together with others (`names.companions`) `mtime_ns` also stands for their sizes and times,
    so that it is read again when one of them changes; `ctime_ns` is the last change of all of them.
    `problem`: why it is not read, if so; `expected`: nobody would want it.
    """

    path: str
    root: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    problem: str | None = None
    expected: bool = False


class Known(Protocol):
    """What the ledger remembers of a file (a row with these keys)."""

    def __getitem__(self, key: str, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Missing:
    """A configured folder or named path that is not there: a reason, never an empty folder."""

    path: str


def scan(paths: Iterable[Path], home: Path | None = None) -> Iterator[Seen | Missing]:
    """Every file below the paths (a file stands for itself), in a fixed order; links are named, never followed.

    `home`: the archive itself, which is no export of anything (its inbox is).
    """
    archive = str(home.absolute()) if home is not None else None
    for path in paths:
        path = path.absolute()
        if (
            home is not None
            and path.is_relative_to(home.absolute())
            and not path.is_relative_to(home.absolute() / "inbox")
        ):
            yield Seen(str(path), str(path), 0, 0, 0, 0, "the archive itself", expected=True)
            continue
        try:
            info = path.lstat()
        except OSError:
            yield Missing(str(path))
            continue
        if stat.S_ISDIR(info.st_mode):
            yield from _below(str(path), str(path), archive)
        else:
            yield _Beside().with_companions(_seen(str(path), str(path.parent), info))


State = tuple[int, int, int]
"""Size, modification time and change time (ns) of a file."""


@dataclass(slots=True)
class _Beside:
    """The states of companions, looked at once however many files have them (Slack's lists belong to every day file)."""

    known: dict[str, State | None] = field(default_factory=dict[str, State | None])

    def with_companions(self, seen: Seen) -> Seen:
        """The file with its companions in its times."""
        beside = companions(seen.path)
        if not beside or seen.problem is not None:
            return seen
        folder = seen.path.rpartition("/")[0]
        states: list[tuple[str, State]] = []
        for name in beside:
            path = f"{folder}/{name}" if not name.startswith("../") else f"{folder.rpartition('/')[0]}/{name[3:]}"
            # Nothing above the export belongs to it.
            if path.startswith(f"{seen.root.rstrip('/')}/") and (state := self._state(path)) is not None:
                states.append((name, state))
        if not states:
            return seen
        mixed = short_hash(str(seen.mtime_ns), *(f"{name}|{size}|{mtime}" for name, (size, mtime, _) in states))
        changed = max(seen.ctime_ns, *(ctime for _, (_, _, ctime) in states))
        return replace(seen, mtime_ns=int(mixed[:15], 16), ctime_ns=changed)

    def _state(self, path: str) -> State | None:
        if path not in self.known:
            try:
                info = Path(path).lstat()
            except OSError:
                info = None
            whole = info is not None and stat.S_ISREG(info.st_mode) and info.st_size > 0
            self.known[path] = (info.st_size, info.st_mtime_ns, info.st_ctime_ns) if info and whole else None
        return self.known[path]


def _below(folder: str, root: str, archive: str | None) -> Iterator[Seen]:
    # An explicit stack: folders may be nested deeper than Python's recursion goes.
    stack = [folder]
    beside = _Beside()
    while stack:
        current = stack.pop()
        try:
            with os.scandir(current) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            yield Seen(_readable(current), _readable(root), 0, 0, 0, 0, f"folder cannot be read ({error.strerror})")
            continue
        folders: list[str] = []
        present = {entry.name for entry in entries}
        for entry in entries:
            if is_beside_database(entry.name) and entry.name.rpartition("-")[0] in present:
                continue  # part of the database that it lies beside
            if entry.path == archive:
                yield Seen(entry.path, root, 0, 0, 0, 0, "the archive itself", expected=True)
                continue
            if is_litter(entry.name):
                yield Seen(_readable(entry.path), _readable(root), 0, 0, 0, 0, "hidden or system file", expected=True)
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError as error:
                yield Seen(
                    _readable(entry.path), _readable(root), 0, 0, 0, 0, f"cannot be looked at ({error.strerror})"
                )
                continue
            if stat.S_ISDIR(info.st_mode):
                folders.append(entry.path)
            else:
                yield beside.with_companions(_seen(entry.path, root, info))
        stack.extend(reversed(folders))


def _readable(path: str) -> str:
    """A path that can be stored and shown; bytes that are no UTF-8 become replacement marks."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _seen(path: str, root: str, info: os.stat_result) -> Seen:
    problem = None
    if (readable := _readable(path)) != path:
        return Seen(readable, _readable(root), 0, 0, 0, 0, "its name is not UTF-8, rename it to have it read")
    if stat.S_ISLNK(info.st_mode):
        problem = "symbolic link, not followed"
    elif not stat.S_ISREG(info.st_mode):
        problem = "not a regular file"
    return Seen(path, root, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, problem)


def is_unchanged(seen: Seen, known: Known | None) -> bool:
    """True if the ledger has read exactly this file (size, modification time, inode)."""
    return (
        known is not None
        and known["size"] == seen.size
        and known["mtime_ns"] == seen.mtime_ns
        and known["inode"] == seen.inode
    )


def has_settled(seen: Seen, now: float) -> bool:
    """True if nobody has written to the file for a while. The change time counts: copying tools set the other one back."""
    return now - seen.ctime_ns / 1e9 >= SETTLE_SECONDS


def changes(
    found: Iterable[Seen | Missing], known: Mapping[str, Known], is_current: Callable[[Known], bool]
) -> list[Seen]:
    """Files to read: new, or not as the ledger read them, or read by what has changed since (`is_current` is False).

    What cannot be read anyway (a link, a system file) is no reason to start.
    """
    out: list[Seen] = []
    for seen in found:
        if isinstance(seen, Missing) or seen.problem is not None:
            continue
        row = known.get(seen.path)
        if row is None or not is_unchanged(seen, row) or not is_current(row):
            out.append(seen)
    return out


def fingerprint(files: Iterable[Seen]) -> str:
    """Identity of a set of files in their present state: the sensor's run key."""
    return short_hash(*sorted(f"{seen.path}|{seen.size}|{seen.mtime_ns}" for seen in files))
