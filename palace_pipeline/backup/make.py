"""Making a backup, under the home's lock: what is written then belongs together."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import zipfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from palace_pipeline import __version__
from palace_pipeline.backup.format import (
    BLOCK,
    FILES,
    FOLDERS,
    FORMAT,
    MANIFEST,
    PAGES,
    PREFIX,
    Backup,
    BackupError,
    verify,
)
from palace_pipeline.stages.progress import report
from palace_pipeline.store.files import TEMPORARY_PREFIX, make_folder, replacing
from palace_pipeline.store.home import SCHEMA_VERSION, Home
from palace_pipeline.store.quiet import soundness
from palace_pipeline.store.upgrade import known_versions

_DATABASES = ("ledger.sqlite", "vault/vault.sqlite")
_COMPRESSED = (".parquet", "vault.sqlite")


def make_backup(home: Home, target: Path | None = None) -> Backup:
    """Write a backup (0600) to a file, or under a name with the time into a folder (default: the current one); it is read
    back before it counts. Needs the write lock.

    Raises BackupError if it would lie in the home, would replace something, or while a purge is unfinished.
    """
    path = _path(home, target)
    for name in _DATABASES:
        if (home.path / name).exists() and (wrong := soundness(home.path / name)) is not None:
            raise BackupError(f"{home.path / name} {wrong}: a backup of it could not be used. See: palace doctor")
    with home.ledger() as ledger:
        if ledger.meta("purging") is not None:
            raise BackupError("a purge was interrupted; finish it first (palace ingest), or the backup would hold it")
        row = ledger.one("SELECT count(*) AS n FROM conversations WHERE superseded_by IS NULL AND status != 'purged'")
    for left in path.parent.glob(f"{TEMPORARY_PREFIX}*-{PREFIX}*"):
        left.unlink()  # of one that was killed: it holds what a backup holds
    with replacing(path) as temporary:
        _write(home, temporary, int(row["n"]) if row else 0)
        backup, wrong = verify(temporary)
        if wrong:
            raise BackupError(f"what was written to {path} cannot be read back: {wrong[0]}. Try another disk")
    return Backup(path, *(getattr(backup, name) for name in Backup.__dataclass_fields__ if name != "path"))


def _path(home: Home, target: Path | None) -> Path:
    target = (target or Path()).expanduser().absolute()
    # A name without an ending is that of a folder, also of one that is made now: a second backup has to find room in it.
    is_folder = target.is_dir() or not (target.suffix or target.exists())
    path = target / f"{PREFIX}{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip" if is_folder else target
    if path.resolve().is_relative_to(home.path.resolve()):
        raise BackupError(f"{path} lies in the archive itself: it would be lost with it. Name another place")
    if path.exists():
        raise BackupError(f"{path} is there already; name another file, or a folder")
    if is_folder and target.parent.is_dir():
        make_folder(target)
    if not path.parent.is_dir():
        raise BackupError(f"there is no folder {target.parent if is_folder else path.parent}")
    return path


def _write(home: Home, target: Path, conversations: int) -> None:
    members: dict[str, tuple[int, str]] = {}
    left_out: list[str] = []
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w+b") as stream, zipfile.ZipFile(stream, "w") as archive:
        found = list(_found(home, left_out))
        for number, (name, path) in enumerate(found):
            try:
                with _at_rest(home, name, path) as source:
                    members[name] = _add(archive, name, source)
            except FileNotFoundError:
                if name.partition("/")[0] not in PAGES:
                    raise
                # Pages are their owner's: one may be deleted, or replaced by an editor, at any time.
            report("backup", number + 1, len(found))
        about: dict[str, Any] = {
            "format": FORMAT,
            "made_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "palace": __version__,
            "home": str(home.path),
            "stores": known_versions(SCHEMA_VERSION),
            "conversations": conversations,
            "members": members,
            "left_out": left_out,
        }
        archive.writestr(MANIFEST, orjson.dumps(about, option=orjson.OPT_INDENT_2))


def _found(home: Home, left_out: list[str]) -> Iterator[tuple[str, Path]]:
    """(name in the backup, file) of everything that belongs in it; what is no regular file is named in `left_out`."""
    for name in FILES:
        if (home.path / name).exists():
            yield name, home.path / name
    for folder in FOLDERS:
        for place, folders, files in os.walk(home.path / folder):
            folders.sort()
            for file in sorted(files):
                path = Path(place) / file
                name = path.relative_to(home.path).as_posix()
                if (
                    file.startswith(TEMPORARY_PREFIX)
                    or file.endswith(".lock")
                    or name in (f"{one}{end}" for one in _DATABASES for end in _LOGS)
                ):
                    continue
                if not stat.S_ISREG(path.lstat().st_mode) or not _is_text(name):
                    left_out.append(name.encode("utf-8", "replace").decode())
                    continue
                yield name, path


_LOGS = ("-wal", "-shm", "-journal")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # a name that is no UTF-8: no ZIP can hold it
        return False
    return True


@contextmanager
def _at_rest(home: Home, name: str, path: Path) -> Generator[Path]:
    """A file that nobody writes to: of a database all that is committed, without a log beside it."""
    if name not in _DATABASES:
        yield path
        return
    if name != "ledger.sqlite":
        # Under the lock nobody writes to it; with an empty log the file is all there is, and needs no second copy.
        with closing(sqlite3.connect(path, timeout=60)) as connection:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if not busy:
            yield path
            return
    copy = home.path / "vault" / f"{TEMPORARY_PREFIX}backup.sqlite"
    try:
        copy.unlink(missing_ok=True)
        copy.touch(mode=0o600)
        with closing(sqlite3.connect(path, timeout=60)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def _add(archive: zipfile.ZipFile, name: str, source: Path) -> tuple[int, str]:
    """Add a file; returns its size and sha256 as they were read."""
    info = zipfile.ZipInfo(name, datetime.fromtimestamp(max(source.stat().st_mtime, 315_619_200), UTC).timetuple()[:6])
    info.external_attr = 0o600 << 16
    info.compress_type = zipfile.ZIP_STORED if name.endswith(_COMPRESSED) else zipfile.ZIP_DEFLATED
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as reading, archive.open(info, "w", force_zip64=True) as writing:
        while data := reading.read(BLOCK):
            digest.update(data)
            size += len(data)
            writing.write(data)
    return size, digest.hexdigest()
