"""One writer per home: an OS lock on `<home>/.lock`, whoever the writer is (command line, daemon, a stray Dagster).

`flock` is used directly rather than through a lock library: the lock file also names its holder, for the message that
a waiting process prints, and the libraries truncate the file when they try. The system drops the lock of a dead holder.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from palace_pipeline.store.files import make_folder


class HomeBusy(RuntimeError):
    """Another process is writing to this home and the caller did not want to wait (any longer)."""


class Held:
    """A lock of this process: a second `writer` of the same thread goes in at once.

    `untidy`: a holder before was killed, and what it left half-written has not been looked for yet. Who did that sets it to
    False; the lock file remembers it until then.
    """

    def __init__(self) -> None:
        self.guard = threading.RLock()
        self.depth = 0
        self.descriptor = -1
        self.untidy = False


_held: dict[str, Held] = {}
_UNTIDY = b"nobody; the last writer was killed\n"
_POLL_SECONDS = 0.2


def _say(message: str) -> None:
    sys.stderr.write(message + "\n")


@contextmanager
def writer(home: Path, *, wait_seconds: float | None = None, say: Callable[[str], None] = _say) -> Generator[Held]:
    """Hold the home's write lock for the block. Waits (for ever by default), saying once for whom.

    Raises HomeBusy when `wait_seconds` have passed; 0 means: do not wait.
    """
    make_folder(home)
    held = _held.setdefault(str(home.resolve()), Held())
    with held.guard:
        if held.depth == 0:
            held.descriptor, held.untidy = _acquire(home / ".lock", wait_seconds, say)
        held.depth += 1
        try:
            yield held
        finally:
            held.depth -= 1
            if held.depth == 0:
                os.ftruncate(held.descriptor, 0)
                if held.untidy:
                    os.pwrite(held.descriptor, _UNTIDY, 0)
                os.close(held.descriptor)  # closing releases


def _acquire(path: Path, wait_seconds: float | None, say: Callable[[str], None]) -> tuple[int, bool]:
    """The open lock file, and whether the last holder was killed: then its name still stands in the file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    started, said = time.monotonic(), False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "another process"
            if wait_seconds is not None and time.monotonic() - started >= wait_seconds:
                os.close(descriptor)
                raise HomeBusy(
                    f"{path.parent} is being written by {holder}. Nothing was changed; run the command again when it "
                    "has finished."
                ) from None
            if not said:
                say(f"Waiting for {holder}, which is writing to {path.parent} …")
                said = True
            time.sleep(_POLL_SECONDS)
    untidy = os.fstat(descriptor).st_size > 0
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()} ({Path(sys.argv[0]).name})\n".encode(), 0)
    os.fsync(descriptor)  # a power cut is a kill, too
    return descriptor, untidy
