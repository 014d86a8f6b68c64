"""From a backup back to a home: all of it is read and compared beside what is there, and then put in place together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from palace_pipeline.backup.format import FILES, FOLDERS, Backup, BackupError, opened
from palace_pipeline.rebuild.derived import derive, note_left
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.progress import report
from palace_pipeline.store.files import make_folder, sync_folder
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.lock import writer
from palace_pipeline.store.swap import finish_swaps, swap_in

_FOLDER = ".restore"
_NAMES = ("ledger.sqlite", ".key", "palace.toml", *FOLDERS)


def restore(home: Path, source: Path, batch: str, *, force: bool = False) -> Backup:
    """Make the home what the backup holds, and its indexes and tables from that.

    Raises BackupError, with nothing changed, if anything in the backup is not as it should be, or if there is an archive
    at `home` already. With `force` that one is moved to `before-upgrades/`.
    """
    with writer(home):
        finish_swaps(home)
        if not force and (there := _occupied(home)):
            raise BackupError(
                f"{home} is not empty ({there} is there). Nothing was changed. Restore to another place with --home, or "
                "say --force: what is there is moved to before-upgrades/ then"
            )
        with opened(source) as backup:
            staged = home / _FOLDER
            if staged.exists():
                shutil.rmtree(staged)
            make_folder(staged)
            try:
                for number, name in enumerate(backup.about.members):
                    _extract(backup.blocks(name), staged / name)
                    report("restore", number + 1, len(backup.about.members))
                _make_ready(staged)
            except BackupError as error:
                shutil.rmtree(staged)
                raise BackupError(
                    f"{backup.about.path}: {error}. Nothing was restored; take an older backup"
                ) from error
            except BaseException:
                shutil.rmtree(staged)
                raise
            names = [*_NAMES, *(name for name in FILES if name not in _NAMES)]
            swap_in(home, staged, names, keep_old=names)
            about = backup.about
        restored = Home(load_settings(home))
        with restored.writing():
            derive(restored, batch)
        return about


def _occupied(home: Path) -> str | None:
    """The first thing of an archive that lies in a folder, or None."""
    for name in (*FILES, "palace.duckdb"):
        if (home / name).exists():
            return name
    for name in FOLDERS:
        if any(path.is_file() for path in (home / name).rglob("*")):
            return name
    return None


def _extract(blocks: Iterable[bytes], target: Path) -> None:
    make_folder(target.parent)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        for block in blocks:
            stream.write(block)
        stream.flush()
        os.fsync(stream.fileno())
    sync_folder(target.parent)


def _make_ready(staged: Path) -> None:
    """Whatever indexes and tables lie in the home then: they are made anew, by us or by who comes after a kill."""
    if not (staged / "ledger.sqlite").exists() or not (staged / "schema_version").exists():
        raise BackupError("it lacks the ledger, so it is no whole backup")
    with closing(Ledger(staged / "ledger.sqlite")) as ledger:
        note_left(ledger)
        ledger.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.rmtree(staged / "before-upgrades", ignore_errors=True)
