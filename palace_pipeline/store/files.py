"""Writing files so that a reader, or the next run after a kill, sees the old content or the new, never a part."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

TEMPORARY_PREFIX = ".tmp-"
DISK_FULL = "The disk is full. What was finished before is kept; make room and run: palace ingest"

SYNCS_AT_A_TIME = 16
_ROOM_BYTES = 256 * 1024
"""With less than this left on the disk any failure is taken for a lack of room."""


class Told(RuntimeError):
    """An error whose words are made for people and hold no content: what happened, what was kept, what to do."""

    usage: ClassVar[bool] = False
    """Was something asked that cannot be meant (exit code 2), or did something fail (1)?"""


def disk_is_full(error: BaseException, folder: Path) -> bool:
    """True if an error of the system, of SQLite, DuckDB or Polars comes from a lack of room in `folder`.

    Not all of them say so: SQLite calls it a "disk I/O error" when it cannot make its shared memory file.
    """
    if (isinstance(error, OSError) and error.errno == errno.ENOSPC) or any(
        words in str(error).lower() for words in ("disk is full", "no space left on device")
    ):
        return True
    with suppress(OSError):
        return shutil.disk_usage(folder).free < _ROOM_BYTES
    return False


def not_writable(error: BaseException, home: Path) -> str | None:
    """For people, if an error comes from a folder of the home that may not be written; files, which are named after
    chats, are not named, pages of sessions by the beginning of their names. SQLite, DuckDB and Polars have their own words
    for it."""
    if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        place, why = str(error.filename or ""), os.strerror(error.errno)
        if place and not Path(place).is_relative_to(home):
            return (
                f"{why}: a file in {Path(place).parent}. What was finished before is kept. Palace needs it: make it readable, "
                "then: palace ingest"
            )
        inside = Path(place).relative_to(home).parts if place else ()
        where = home.joinpath(*inside[:1])
        if where.name in ("sessions", "memory") and Path(place).suffix == ".md":
            named = Path(place)
            if where.name == "sessions":  # by its day, time and hash: behind them stands a title
                named = named.with_name(f"{named.name[:12]}…")
            elif len(inside) > 2:  # of an entity
                named = named.parent
            return (
                f"{why}: {named}. What was finished before is kept. This one file has to be readable and writable for the user "
                "who runs Palace; then: palace ingest"
            )
    elif "readonly database" in str(error).lower():
        where, why = home, "Read-only file system"
    else:
        return None
    return (
        f"{why}: {where}. What was finished before is kept. The archive has to be writable for the user who runs Palace; "
        "it is tried again by itself, at once with: palace ingest"
    )


def make_folder(path: Path, mode: int = 0o700) -> Path:
    """The folder, made with its parents if need be; new ones are the owner's alone."""
    if path.is_dir():
        return path
    # Path.mkdir gives parents the usual mode, so they are made one by one.
    for part in [path, *path.parents][::-1]:
        if not part.exists():
            part.mkdir(mode=mode, exist_ok=True)
    return path


@contextmanager
def replacing(path: Path, *, durable: bool = True, last: Callable[[], object] | None = None) -> Generator[Path]:
    """A temporary path in the same folder that becomes `path` (0600, fsynced) when the block ends without an error.

    `last`: called right before the rename, with nothing slow in between; the file stays as it is if it raises. Not
    `durable`: without fsync, for many small files that can be made again; call `sync_files` when all are written.
    """
    make_folder(path.parent)
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(4)}-{path.name}"[:200])
    try:
        yield temporary
        temporary.chmod(0o600)
        if durable:
            _sync(temporary)
        if last is not None:
            last()
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if durable:
        sync_folder(path.parent)


def write_bytes(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Atomic write of a whole file, 0600; `durable` as for `replacing`."""
    with replacing(path, durable=durable) as temporary:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)


def sync_folder(path: Path) -> None:
    """Make renames in a folder durable."""
    _sync(path)


def sync_files(paths: Iterable[Path]) -> None:
    """Make files and their names durable. Waiting for many at a time costs a disk little more than waiting for one."""
    files = [path for path in dict.fromkeys(paths) if path.exists()]
    with ThreadPoolExecutor(SYNCS_AT_A_TIME) as threads:
        for _ in threads.map(_sync, files):
            pass
        for _ in threads.map(_sync, {path.parent for path in files}):
            pass


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path, *, below: bool = True, prefix: str = TEMPORARY_PREFIX) -> int:
    """Delete temporary files and folders that a kill left in `folder` (and `below`), under the home's lock; returns how
    many."""
    count = 0
    for path in list(folder.rglob(f"{prefix}*") if below else folder.glob(f"{prefix}*")):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
            count += 1
        elif path.is_file():
            path.unlink()
            count += 1
    return count


def restrict(folder: Path) -> None:
    """Take all rights from others in a folder whose files another library made (0700 and 0600)."""
    folder.chmod(0o700)
    for path in folder.rglob("*"):
        # A library's own temporary file may go away while we look.
        with suppress(FileNotFoundError):
            path.chmod(0o700 if path.is_dir() else 0o600)


@contextmanager
def replacing_folder(path: Path) -> Generator[Path]:
    """A new folder beside `path` that takes its place when the block ends without an error.

    A kill leaves the old folder; between the two renames there is none for a moment: `put_back_folder` undoes that.
    """
    put_back_folder(path)
    fresh, old = path.with_name(f".{path.name}-new"), path.with_name(f".{path.name}-old")
    for leftover in (fresh, old):
        if leftover.exists():
            shutil.rmtree(leftover)
    yield make_folder(fresh)
    if path.exists():
        path.rename(old)
    fresh.rename(path)
    sync_folder(path.parent)
    if old.exists():
        shutil.rmtree(old)


def put_back_folder(path: Path) -> None:
    """Undo a `replacing_folder` that was killed between its two renames."""
    old = path.with_name(f".{path.name}-old")
    if old.exists() and not path.exists():
        old.rename(path)
