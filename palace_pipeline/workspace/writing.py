"""Putting a page in its place: what is there is the old page or the new one, whole and readable, at any moment.

Written beside it, read back and parsed, flushed, then renamed over it if the page is still what was read; looked at once
more. A page that somebody else has changed in the meantime is theirs: the new one goes beside it, or what was to be done is
done again with theirs.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from palace_pipeline.store.files import TEMPORARY_PREFIX, Told, replacing, write_bytes
from palace_pipeline.workspace.locks import Lock
from palace_pipeline.workspace.logs import append_error
from palace_pipeline.workspace.names import CONFLICT


class NotWritten(Told):
    """A page could not be read back as it was written; the old one is in its place."""


class PageChanged(Told):
    """Somebody else has written the page since it was read; nothing was changed."""


class PageChangedSince(PageChanged):
    """The page was put in its place, and somebody has written in it at once: what was put may be there or not."""


class LinkInHome(Told):
    """A file or folder of the workspace is a symbolic link, or no file at all."""


@dataclass(slots=True, frozen=True)
class Fingerprint:
    """What a page was when it was read."""

    mtime_ns: int
    sha256: str


def plain_file(path: Path) -> bool:
    """Whether a path is a file of its own: no folder, no pipe, and no link, be it dangling or to a file of another place."""
    return not path.is_symlink() and path.is_file()


def assert_own(home: Path, *paths: Path) -> None:
    """Raises LinkInHome if one of these paths below the home is a symbolic link, or lies behind one: what is written there
    would land in another place, unredacted words of which could come in. The home itself may be one. The same for a pipe or
    a device, on which a reader would wait for ever."""
    for path in paths:
        inside = path.relative_to(home) if path.is_absolute() else path
        for part in (*reversed(inside.parents[:-1]), inside):
            if (home / part).is_symlink():
                raise LinkInHome(
                    f"{part} in {home} is a symbolic link, and Palace follows none inside of its home. Nothing was "
                    "changed. Put the file or folder itself in its place, then do it again (the home as a whole may be a "
                    "link)."
                )
        if (home / inside).exists() and not ((home / inside).is_file() or (home / inside).is_dir()):
            raise LinkInHome(
                f"{inside} in {home} is a pipe or a device. Nothing was changed. Delete it, then do it again."
            )


def fingerprint(path: Path) -> Fingerprint | None:
    """The fingerprint of a page, None if it is not there."""
    try:
        return read_page(path)[1]
    except FileNotFoundError:
        return None


def read_page(path: Path, *, wait: bool = False) -> tuple[bytes, Fingerprint]:
    """The bytes of a page and its fingerprint. `wait`: for a second at most, while an editor that saves in place has just
    emptied it or written the beginning. Raises OSError."""
    waits = _WAITS if wait else 0
    while True:
        data, info = _read(path)
        seen = Fingerprint(info.st_mtime_ns, hashlib.sha256(data).hexdigest())
        if not (waits and is_half(data) and is_fresh(seen)):
            return data, seen
        time.sleep(_WAIT_SECONDS)
        waits -= 1


def assert_whole(path: Path) -> None:
    """Raises PageChanged if a file was emptied a moment ago and stays so: whoever saves it in place is not through."""
    try:
        data, seen = read_page(path, wait=True)
    except FileNotFoundError:
        return
    if is_half(data) and is_fresh(seen):
        raise PageChanged(f"{path} is half there: somebody is writing it. Nothing was changed; do it again.")


def file_state(path: Path) -> tuple[int, int]:
    """What tells that a file was changed: time of change (ns) and size; zeros if it is not there."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def is_half(data: bytes) -> bool:
    """Whether a page is empty, or ends in its front matter: what a program leaves in between that writes it in place."""
    return not data.strip() or (_FRONT_BEGINS.match(data) is not None and _FRONT_ENDS.search(data) is None)


def is_fresh(seen: Fingerprint) -> bool:
    """Whether a page was written a moment ago."""
    return abs(time.time_ns() - seen.mtime_ns) < _FRESH_SECONDS * 10**9


_WAITS, _WAIT_SECONDS, _FRESH_SECONDS = 20, 0.05, 2
_FRONT_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*(?:\r?\n|\Z)")
_FRONT_ENDS = re.compile(rb"\n---[ \t]*(?:\r?\n|\Z)")


def _read(path: Path) -> tuple[bytes, os.stat_result]:
    """A file's bytes and state. Without the layers of `io`, which cost more than a page of eight kilobytes itself."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        info = os.fstat(descriptor)
        parts: list[bytes] = []
        while part := os.read(descriptor, info.st_size + 1):
            parts.append(part)
    finally:
        os.close(descriptor)
    return b"".join(parts), info


def put_page(
    home: Path,
    path: Path,
    data: bytes,
    *,
    seen: Fingerprint | None,
    same: Callable[[bytes], bool],
    as_conflict: Callable[[], bytes] | None = None,
    lock: Lock | None = None,
    durable: bool = True,
    keep_half: bool = True,
) -> Path:
    """Make `data` the page at `path`, unless it is no longer what was `seen` (None: not there); returns what was written.

    `same`: whether bytes that were read back are the page. If somebody else has changed the page in between, theirs
    stays, `as_conflict()` goes beside it as `<name>.conflict.md`, and `logs/errors.md` gets a line; without it
    PageChanged is raised, for those who can do the same again. Not `durable`: without fsync, for many pages at once
    (`store.files.sync_files` when all are written). `keep_half`: a page that is half there (`is_half`) stays beside as a
    copy, and as the same file: if somebody is at it still, what they write lands there. Raises NotWritten, LockLost and
    OSError; the page is then as it was.
    """
    if data and seen is not None and hashlib.sha256(data).hexdigest() == seen.sha256 and fingerprint(path) == seen:
        return path  # nothing new
    kept = list[Path]()
    try:
        with replacing(path, durable=durable, last=lambda: kept.extend(_make_way(path, seen, keep_half))) as temporary:
            _write(temporary, data)
            written, info = _read(temporary)
            if not same(written):
                raise NotWritten(_unreadable(home, path))
            if lock is not None:
                lock.assert_held()
    except PageChanged:
        if as_conflict is None:
            raise
        return _beside(home, path, as_conflict())
    for copy in kept:
        append_error(home, "conflict", path, f"it was half there when it was written; that file is {copy.name} now")
    try:
        there, now = _read(path)
    except FileNotFoundError:
        return path  # deleted by somebody at once: theirs to decide
    # The same file with other bytes: an editor that writes in place had the old page open, and has put it over ours.
    if now.st_ino == info.st_ino and there != data:
        if as_conflict is None:
            raise PageChangedSince(_CHANGED.format(path.name))
        return _beside(home, path, as_conflict())
    return path


def _make_way(path: Path, seen: Fingerprint | None, keep_half: bool) -> list[Path]:
    """Keep a page that is half there; returns where. Raises PageChanged if it is not any more what was seen."""
    try:
        data, now = read_page(path)
    except FileNotFoundError:
        data, now = b"", None
    if now != seen:
        raise PageChanged(_CHANGED.format(path.name))
    if now is None or not keep_half or not is_half(data):
        return []
    copy = free_name(path)
    try:
        os.link(path, copy)
    except OSError:  # a file system without links
        write_bytes(copy, data)
    return [copy]


_CHANGED = "{} was changed by somebody else while it was written. Theirs stays; read it again and repeat what you did."


def _write(temporary: Path, data: bytes) -> None:
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)


def _unreadable(home: Path, path: Path) -> str:
    shown = path.relative_to(home) if path.is_relative_to(home) else path
    return f"{shown} could not be read back as it was written; the page before it is in its place. Try again."


def free_name(page: Path) -> Path:
    """The next free name of a copy beside a page: `<name>.conflict.md`, `<name>.conflict-2.md`, …"""
    number = 1
    while True:
        copy = page.with_name(f"{page.stem}{CONFLICT}{'' if number == 1 else f'-{number}'}.md")
        if not copy.exists():
            return copy
        number += 1


def _beside(home: Path, path: Path, data: bytes) -> Path:
    """Put a page beside the one that somebody else has changed, under the next free name."""
    copy = free_name(path)
    write_bytes(copy, data)
    append_error(
        home,
        "conflict",
        path,
        f"somebody else changed it while it was written; what was to be written is in {copy.name}",
    )
    return copy


def remove_own_leftovers(folder: Path, name: str) -> None:
    """Delete temporary files that killed writers of a page left; only for the holder of its lock."""
    for path in folder.glob(f"{TEMPORARY_PREFIX}????????-{name}*"):
        path.unlink(missing_ok=True)
