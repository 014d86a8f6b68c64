"""Looking at export folders: which files are there, which are new or changed, which have come to rest. Pure but for stat.

Used by the command line, the ingest and the folder sensor alike.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from palace_pipeline.exports.names import companions, is_beside_database, is_litter
from palace_pipeline.model import short_hash
from palace_pipeline.workspace import names as sessions

SETTLE_SECONDS = 10.0
"""A file that changed less than this ago may still be being written."""
SESSION_COPY = "a copy of a session's page (palace conflicts shows both)"


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


Place = tuple[str, str]
"""Where a look was cut short: the path it was looking through, and the last folder below it that it has done."""


def scan(paths: Iterable[Path], home: Path | None = None, after: Place | None = None) -> Iterator[Seen | Missing]:
    """Every file below the paths (a file stands for itself), in a fixed order; links are named, never followed.

    `home`: the archive itself, which is no export of anything (its inbox and its sessions are). `after`: leave out what
    lies before the place where an earlier look ended (all is looked at if there is no such place any more).
    """
    archive = str(home.absolute()) if home is not None else None
    paths = [path.absolute() for path in paths]
    if after is not None and after[0] in (names := [str(path) for path in paths]):
        paths = paths[names.index(after[0]) :]
    else:
        after = None
    for path in paths:
        done = after[1] if after is not None and str(path) == after[0] else None
        if (
            home is not None
            and path.is_relative_to(home.absolute())
            and not any(path.is_relative_to(home.absolute() / name) for name in ("inbox", "sessions"))
        ):
            yield Seen(str(path), str(path), 0, 0, 0, 0, "the archive itself", expected=True)
            continue
        try:
            info = path.lstat()
        except OSError:
            yield Missing(str(path))
            continue
        if stat.S_ISDIR(info.st_mode):
            yield from _below(str(path), str(path), archive, done)
        elif sessions.is_folder(path.parent) and str(path) in sessions.copies(map(str, path.parent.glob("*.md"))):
            yield Seen(str(path), str(path.parent), 0, 0, 0, 0, SESSION_COPY, expected=True)
        else:
            yield _Beside().with_companions(_seen(str(path), str(path.parent), info))


def seen_again(files: Iterable[tuple[str, str]]) -> Iterator[Seen | Missing]:
    """Files that were found before, as they are now: (path, the root they were found below)."""
    beside = _Beside()
    for path, root in files:
        try:
            info = os.lstat(path)
        except OSError:
            yield Missing(path)
        else:
            yield beside.with_companions(_seen(path, root, info))


@dataclass(slots=True)
class _Beside:
    """The states of companions, looked at once however many files have them (Slack's lists belong to every day file)."""

    known: dict[str, os.stat_result | None] = field(default_factory=dict[str, os.stat_result | None])

    def with_companions(self, seen: Seen, here: Mapping[str, os.stat_result] | None = None) -> Seen:
        """The file with its companions in its times. `here`: what is known of the files of its own folder, if all is."""
        beside = companions(seen.path)
        if not beside or seen.problem is not None:
            return seen
        states: list[tuple[str, int, int]] = []
        changed = seen.ctime_ns
        for name in beside:
            info = here.get(name) if here is not None and "/" not in name else self._look(seen, name)
            if info is not None and info.st_size and stat.S_ISREG(info.st_mode):
                states.append((name, info.st_size, info.st_mtime_ns))
                changed = max(changed, info.st_ctime_ns)
        if not states:
            return seen
        mixed = hashlib.blake2b(repr((seen.mtime_ns, states)).encode("utf-8", "surrogateescape"), digest_size=7)
        return replace(seen, mtime_ns=int.from_bytes(mixed.digest()), ctime_ns=changed)

    def _look(self, seen: Seen, name: str) -> os.stat_result | None:
        path = os.path.normpath(f"{seen.path.rpartition('/')[0]}/{name}")
        if not path.startswith(f"{seen.root.rstrip('/')}/"):
            return None  # nothing above the export belongs to it
        if path not in self.known:
            try:
                self.known[path] = os.lstat(path)
            except OSError:
                self.known[path] = None
        return self.known[path]


def scan_part(
    paths: Iterable[Path],
    home: Path | None,
    after: Place | None,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Seen | Missing], Place | None]:
    """`scan` for so many seconds, ending with a whole folder; and where to go on, None if the end was reached."""
    until = clock() + seconds
    found: list[Seen | Missing] = []
    folder: Place | None = None
    for item in scan(paths, home, after):
        here = (item.root, item.path.rpartition("/")[0]) if isinstance(item, Seen) else None
        if here != folder and folder is not None and clock() >= until:
            return found, folder
        folder = here
        found.append(item)
    return found, None


def _is_done(folder: str, done: str) -> bool:
    """True if a walk that has come to the folder `done` has been in `folder` and all below it."""
    parts, last = folder.split("/"), done.split("/")
    return parts < last and last[: len(parts)] != parts


def _below(folder: str, root: str, archive: str | None, done: str | None = None) -> Iterator[Seen]:
    # An explicit stack: folders may be nested deeper than Python's recursion goes.
    stack = [folder]
    beside = _Beside()
    while stack:
        current = stack.pop()
        if done is not None and _is_done(current, done):
            continue
        try:
            with os.scandir(current) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            yield Seen(_readable(current), _readable(root), 0, 0, 0, 0, f"folder cannot be read ({error.strerror})")
            continue
        folders: list[str] = []
        found: dict[str, os.stat_result] = {}
        present = {entry.name for entry in entries}
        copies = sessions.copies(entry.path for entry in entries) if sessions.is_folder(current) else {}
        out: list[Seen] = []
        for entry in entries:
            if entry.path == archive:
                out.append(Seen(entry.path, root, 0, 0, 0, 0, "the archive itself", expected=True))
                continue
            if is_litter(entry.name):
                if sessions.is_own_hidden(entry.name) and sessions.is_folder(current):
                    continue  # nothing that anybody gave to be read
                reason = "hidden or system file"
                out.append(Seen(_readable(entry.path), _readable(root), 0, 0, 0, 0, reason, expected=True))
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError as error:
                reason = f"cannot be looked at ({error.strerror})"
                out.append(Seen(_readable(entry.path), _readable(root), 0, 0, 0, 0, reason))
                continue
            found[entry.name] = info
            if stat.S_ISDIR(info.st_mode):
                folders.append(entry.path)
            elif entry.path in copies:
                out.append(Seen(_readable(entry.path), _readable(root), 0, 0, 0, 0, SESSION_COPY, expected=True))
            elif not (is_beside_database(entry.name) and entry.name.rpartition("-")[0] in present):
                # What lies beside a database is part of it and no file of its own.
                out.append(_seen(entry.path, root, info))
        if done is None or current.split("/") > done.split("/"):
            for seen in out:
                yield beside.with_companions(seen, found)
        stack.extend(reversed(folders))


def _readable(path: str) -> str:
    """A path that can be stored and shown; bytes that are no UTF-8 become replacement marks."""
    if path.isascii():
        return path
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
    """True if nobody has written to the file for a while. The change time counts: copying tools set the other one back.

    A change time in the future (the clock was set back, or a file server's runs ahead) says nothing: a file that is read
    too early is read again when it has changed.
    """
    age = now - seen.ctime_ns / 1e9
    return age >= SETTLE_SECONDS or age < -SETTLE_SECONDS


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


def identity(seen: Seen) -> str:
    """A file in its present state."""
    return short_hash(seen.path, str(seen.size), str(seen.mtime_ns), length=12)


def fingerprint(files: Iterable[Seen]) -> str:
    """Identity of a set of files in their present state: the sensor's run key."""
    return short_hash(*sorted(f"{seen.path}|{seen.size}|{seen.mtime_ns}" for seen in files))
