"""Putting stores that were made beside the old ones in their place, all of them or (after a kill) later: never some.

What is to be moved is written down first; from then on the swap counts as decided, and whoever takes the write lock
next brings it to its end. Up to then the old stores are what everybody reads.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import orjson

from palace_pipeline.store.files import make_folder, sync_folder, write_bytes
from palace_pipeline.store.keep import set_aside

FOLDERS = (".rebuild", ".restore")
"""Folders of the home in which stores are made beside the old ones."""
_PLAN = "swap.json"


def swap_in(home: Path, staged: Path, names: Sequence[str], *, keep_old: Sequence[str] = ()) -> None:
    """Move `names` (paths below `staged`) to the same paths below the home, and remove the folder. Needs the write lock.

    What they replace is deleted; of `keep_old` it is kept in `before-upgrades/`. Databases must be closed.
    """
    plan = {"names": [name for name in names if (staged / name).exists()], "keep_old": list(keep_old)}
    write_bytes(staged / _PLAN, orjson.dumps(plan))
    _carry_out(home, staged)


def finish_swaps(home: Path) -> int:
    """Bring swaps to their end that a kill interrupted; returns how many. Needs the write lock."""
    found = [home / name for name in FOLDERS if (home / name / _PLAN).exists()]
    for staged in found:
        _carry_out(home, staged)
    return len(found)


def _carry_out(home: Path, staged: Path) -> None:
    plan = orjson.loads((staged / _PLAN).read_bytes())
    for name in plan["names"]:
        source, target = staged / name, home / name
        if not source.exists():
            continue  # done before the kill
        make_folder(target.parent)
        keep = name in plan["keep_old"]
        if source.is_dir():
            _replace_folder(home, source, target, keep=keep)
        else:
            _replace_file(home, source, target, keep=keep)
        sync_folder(target.parent)
    shutil.rmtree(staged)


def _replace_folder(home: Path, source: Path, target: Path, *, keep: bool) -> None:
    # Of two folders none can replace the other in one step: for a moment there is none.
    old = target.with_name(f".{target.name}-replaced")
    if old.exists():
        shutil.rmtree(old)
    if target.exists():
        if keep:
            set_aside(home, target)
        else:
            target.rename(old)
    source.rename(target)
    if old.exists():
        shutil.rmtree(old)


def _replace_file(home: Path, source: Path, target: Path, *, keep: bool) -> None:
    """A file is replaced in one step. Of an SQLite file also its log goes: it would be read into the new one."""
    sidecars = [target.with_name(f"{target.name}{end}") for end in ("-wal", "-shm")]
    if target.exists():
        if any(log.exists() for log in sidecars):
            # Damaged: then nobody reads what stands in its log either.
            with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(target, timeout=60)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if keep:
            # A second name first: the file itself must be there all the time.
            copy = target.with_name(f"replaced-{target.name}")
            copy.unlink(missing_ok=True)
            os.link(target, copy)
            set_aside(home, copy)
    source.chmod(0o600)
    source.replace(target)
    for log in sidecars:
        log.unlink(missing_ok=True)
