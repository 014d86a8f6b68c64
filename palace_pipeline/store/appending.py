"""Files that only grow: whole lines are added at the end, by many processes at once, and none is torn or lost.

The writers take turns by an OS lock on the file itself, which the system drops when a process dies: a lock file beside
it would have to expire first. A kill in the middle of a write (the system stops it between two memory pages) leaves a
line without its end; the next writer ends it, so that only the line nobody was told is written is damaged.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from palace_pipeline.store.files import make_folder, sync_folder, write_bytes

_BLANK = 64
"""Bytes up to which a file may be one that holds nothing but line ends."""


def append_lines(path: Path, lines: Sequence[str], *, head: str = "") -> None:
    """Add lines (without line ends) at the end of a file, made with `head` if it is not there, is empty or blank.

    Durable when it returns; if it raises OSError (a full disk), none of the lines is there. A line break inside a line
    is the caller's mistake and raises ValueError before anything is written.
    """
    if lines:
        with _own_turn(path) as descriptor:
            _add(descriptor, lines, head)


def append_chosen(path: Path, choose: Callable[[bytes], Sequence[str]], *, head: str = "") -> Sequence[str]:
    """`append_lines` of what `choose` makes of the file's content, which nobody can change in between; returns the lines."""
    with _own_turn(path) as descriptor:
        lines = choose(_read(descriptor, 0))
        if lines:
            _add(descriptor, lines, head)
    return lines


def change_lines(path: Path, change: Callable[[str], str | None]) -> int:
    """Write lines anew, or take them out (None), in a file that otherwise only grows: what is purged or masked has to go.
    Returns how many lines changed. `change` may take its time: others wait only for lines that were added meanwhile."""
    if not path.exists():
        return 0
    known = {line: change(line) for line in path.read_bytes().decode("utf-8", "replace").split("\n")}
    with _own_turn(path) as descriptor:
        lines = _read(descriptor, 0).decode("utf-8", "replace").split("\n")
        changed = [known[line] if line in known else change(line) for line in lines]
        count = sum(new != line for new, line in zip(changed, lines, strict=True))
        if count:
            write_bytes(path, "\n".join(line for line in changed if line is not None).encode("utf-8", "replace"))
    return count


@contextmanager
def _own_turn(path: Path) -> Generator[int]:
    """The open file, while no other process adds to it."""
    make_folder(path.parent)
    fresh = not path.exists()
    descriptor = _locked(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)  # releases
    if fresh:
        sync_folder(path.parent)


def _locked(path: Path) -> int:
    """The open file with its lock. Who waited while `keep_lines` put a new file in its place opens that one."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            opened = os.fstat(descriptor)
            with suppress(FileNotFoundError):
                there = path.stat()
                if (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _add(descriptor: int, lines: Sequence[str], head: str) -> None:
    if any("\n" in line or "\r" in line for line in lines):
        raise ValueError("a line must not hold a line break")
    size = os.fstat(descriptor).st_size
    blank = size <= _BLANK and not _read(descriptor, 0).strip()
    start = head if blank else "" if _read(descriptor, size - 1) == b"\n" else "\n"
    _write(descriptor, size, (start + "".join(f"{line}\n" for line in lines)).encode("utf-8", "replace"))


def _read(descriptor: int, start: int) -> bytes:
    parts: list[bytes] = []
    while part := os.pread(descriptor, 1 << 24, start):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _write(descriptor: int, before: int, data: bytes) -> None:
    """All of the data, durable, or none of it."""
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, before)
        raise
