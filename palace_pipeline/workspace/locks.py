"""Lock files: who writes a page now. A file `.<name>.lock` beside it, made by whoever comes first (O_EXCL), says which
process of which machine holds it and until when; what a dead process left, or what has expired, is taken away.

A plain file rather than an OS lock, so that a shell script or an agent in any language can take part; the OS lock on the
folder is held only for the moment in which a lock file is taken away, so that nobody removes the fresh lock of another.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import secrets
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from palace_pipeline.store.files import TEMPORARY_PREFIX, Told, make_folder

LOCK_SECONDS = 30
"""How long a lock holds without being taken off; a write takes a few milliseconds."""
_UNREADABLE_SECONDS = 10
"""How long a lock without words in it holds (a script may make an empty one)."""
_LONGEST = 4096
"""Bytes of a lock file that are looked at."""
_LONGEST_PAUSE = 0.02


class PageBusy(Told):
    """Another process holds the lock of a page and did not let go."""


class LockLost(Told):
    """The lock expired before the page was put in its place; nothing was changed."""


@dataclass(slots=True)
class Lock:
    """A lock that this process holds. `after_kill`: its holder before was killed, so what that one did may be half done."""

    path: Path
    token: str
    after_kill: bool = False

    def assert_held(self) -> None:
        """Raises LockLost if somebody else has taken it over."""
        if not _holds(self.path, self.token):
            raise LockLost(
                f"The lock of {self.path.name} expired while the page was written. Nothing was changed; try again."
            )


@contextmanager
def locked(
    folder: Path, name: str, *, wait_seconds: float = 2 * LOCK_SECONDS, hand_on: bool = False
) -> Generator[Lock]:
    """Hold `.<name>.lock` in a folder (made if need be) for the block. Raises PageBusy after `wait_seconds`.

    `hand_on`: what a killed holder may have left half done is not for this one to finish: the next finds the lock as dead
    as it was.
    """
    make_folder(folder)
    path = folder / f".{name}.lock"
    lock = _acquire(path, time.monotonic() + wait_seconds)
    try:
        yield lock
    finally:
        with _folder_alone(folder):
            if not _holds(path, lock.token):
                pass  # it expired, and is another's
            elif lock.after_kill and hand_on:
                os.utime(path, (0, 0))
            else:
                path.unlink()


def is_locked(path: Path) -> bool:
    """Whether a lock file is there and holds."""
    return path.exists() and not _stale(path)


def _acquire(path: Path, until: float) -> Lock:
    token = secrets.token_hex(8)
    while True:
        with suppress(FileExistsError):
            _write(path, token)
            return Lock(path, token)
        if _stale(path):
            with _folder_alone(path.parent):
                if _stale(path):  # still: another may have taken it over
                    # Put in its place, not taken away first: a kill in between would hide that something is half done.
                    fresh = path.with_name(f"{TEMPORARY_PREFIX}{token[:8]}-{path.name[1:]}")
                    _write(fresh, token)
                    fresh.replace(path)
                    return Lock(path, token, after_kill=True)
            continue
        if time.monotonic() > until:
            holder = _said(path)
            raise PageBusy(
                f"{path} is held by process {holder.get('pid', '?')} on {holder.get('host', '?')}. Nothing was changed; "
                "try again when it has finished. If there is no such process any more, delete that file."
            )
        time.sleep(random.uniform(0, _LONGEST_PAUSE))


def _write(path: Path, token: str) -> None:
    """A new lock file. Raises FileExistsError if there is one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    ends = datetime.now(UTC) + timedelta(seconds=LOCK_SECONDS)
    said = {"pid": os.getpid(), "host": _host(), "until": ends.isoformat(timespec="milliseconds"), "token": token}
    try:
        os.write(descriptor, f"{json.dumps(said)}\n".encode())  # a few bytes: whole or not at all
    finally:
        os.close(descriptor)


def _holds(path: Path, token: str) -> bool:
    """Whether a lock file is still the one with this token."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return token.encode() in os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)


@cache
def _host() -> str:
    return socket.gethostname()


def _stale(path: Path) -> bool:
    """Whether a lock's process is dead or its time is over; False if it is gone. Its time is over at its `until`, but
    always so many seconds after the file was made: the clock of who wrote it may have been wrong."""
    try:
        made = path.stat().st_mtime
    except FileNotFoundError:
        return False
    said = _said(path)
    try:
        until = datetime.fromisoformat(str(said["until"])).timestamp()
        pid = int(str(said["pid"]))
    except (KeyError, ValueError):
        return time.time() - made > _UNREADABLE_SECONDS
    return time.time() > min(until, made + LOCK_SECONDS) or (said.get("host") == _host() and not _alive(pid))


def _said(path: Path) -> dict[str, object]:
    """What stands in a lock file, nothing if it is no JSON object or gone."""
    with suppress(OSError, ValueError):
        value = json.loads(path.read_bytes())
        return value if isinstance(value, dict) else {}
    return {}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # another user's
    return True


@contextmanager
def _folder_alone(folder: Path) -> Generator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
