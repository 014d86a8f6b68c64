"""Which runs are alive: the process of a run holds an OS lock on a file of its own as long as the run goes on.

Dagster believes a run to be running until somebody says otherwise. When the process that would have said so is killed
together with the run, nobody does. A lock is dropped by the system however its holder ends, and unlike a process number
it cannot come to mean another process.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from palace_pipeline.store.files import make_folder


class Life(Enum):
    """What the mark of a run says. `UNMARKED`: it has not begun its work, has ended, or was begun by other means."""

    ALIVE = "alive"
    DEAD = "dead"
    UNMARKED = "unmarked"


def marks_of(home: Path) -> Path:
    """The folder of the marks of a home's runs."""
    return home / "dagster" / "alive"


@contextmanager
def alive(folder: Path, run_id: str) -> Generator[None]:
    """Mark the run as alive for the block (nothing happens if it is marked already: steps of one run)."""
    path = folder / run_id
    try:
        make_folder(folder)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # a full or read-only disk: the run's own work will say so, in better words
        yield
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield
            return
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def life_of(folder: Path, run_id: str) -> Life:
    """What the run's mark says now."""
    try:
        descriptor = os.open(folder / run_id, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return Life.UNMARKED
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return Life.ALIVE
    finally:
        os.close(descriptor)
    return Life.DEAD


def dead_runs(folder: Path) -> list[str]:
    """Ids of runs that were killed and whose mark is still there. Costs a look at a folder that is nearly always empty."""
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if life_of(folder, path.name) is Life.DEAD)


def forget(folder: Path, run_id: str) -> None:
    """Remove the mark of a run that was found dead and is noted as such."""
    (folder / run_id).unlink(missing_ok=True)
