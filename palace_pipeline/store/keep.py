"""Copies of what an upgrade or a repair is about to change, kept in `before-upgrades/` of the home."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from palace_pipeline.store.files import make_folder, replacing

FOLDER = "before-upgrades"


def keep_copy(path: Path, version: int) -> Path:
    """Copy an SQLite file of a home as it is committed now; returns the copy. A copy of that version is made once."""
    folder = make_folder(path.parent / FOLDER)
    copy = folder / f"{path.stem}-schema-{version}{path.suffix}"
    if not copy.exists():
        with replacing(copy) as temporary, closing(sqlite3.connect(path, timeout=60)) as source:
            temporary.touch(mode=0o600)
            with closing(sqlite3.connect(temporary)) as target:
                source.backup(target)
    return copy


def set_aside(home: Path, path: Path) -> Path:
    """Move a file or folder that cannot be used (any more) out of the way; returns where it is now."""
    now = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    inside = path.relative_to(home).as_posix().replace("/", "-")
    target = make_folder(home / FOLDER) / f"{now}-{inside}"
    number = 1
    while target.exists():
        number += 1
        target = target.with_name(f"{now}-{number}-{inside}")
    path.rename(target)
    return target


def kept(home: Path) -> list[Path]:
    """What lies there, by name."""
    folder = home / FOLDER
    return sorted(folder.iterdir()) if folder.is_dir() else []


def forget_kept(home: Path) -> None:
    """Delete all copies: they may hold what was purged."""
    if (home / FOLDER).exists():
        shutil.rmtree(home / FOLDER)
