"""What a backup looks like, and whether one is whole: a ZIP, or the folder that it was unpacked to."""

from __future__ import annotations

import errno
import hashlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import orjson

from palace_pipeline.store.files import Told
from palace_pipeline.store.home import SCHEMA_VERSION
from palace_pipeline.store.upgrade import known_versions
from palace_pipeline.store.versions import TooNew

MANIFEST = "manifest.json"
FORMAT = 1
PREFIX = "palace-backup-"
FILES = ("ledger.sqlite", ".key", "palace.toml", "index.md", "store_versions.json", "schema_version")
PAGES = ("conversations", "sessions", "memory", "artifacts", "logs", "notes")
"""Folders of the workspace, in which people and programs write at any time."""
FOLDERS = ("lake", *PAGES, "quarantine", "receipts", "vault")
BLOCK = 1 << 20
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, ValueError, RuntimeError)
"""What `zipfile` raises for a file with changed bits, one that then seems to be encrypted or of another version included."""


class BackupError(Told):
    """A backup cannot be made, is damaged, or is none; the text says what and what to do."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup says of itself. `stores`: their schema versions; `members`: name -> (bytes, sha256)."""

    path: Path
    made_at: str
    palace: str
    stores: dict[str, int]
    conversations: int
    members: dict[str, tuple[int, str]]
    left_out: list[str]

    @property
    def size(self) -> int:
        """Bytes of all that it holds."""
        return sum(size for size, _ in self.members.values())


def find(source: Path) -> Path:
    """The backup that is meant: a file, an unpacked folder, or the newest file of a folder. Raises BackupError."""
    if not source.exists():
        raise BackupError(f"there is no {source}")
    if source.is_file() or (source / MANIFEST).exists():
        return source
    found = sorted(source.glob(f"{PREFIX}*.zip"))
    if not found:
        raise BackupError(f"{source} holds no backup ({PREFIX}….zip, or {MANIFEST} of an unpacked one)")
    return found[-1]


class Opened:
    """A backup to read from. `opened` makes it."""

    def __init__(self, path: Path, archive: zipfile.ZipFile | None) -> None:
        self._path, self._archive = path, archive
        self.about = self._manifest()

    @contextmanager
    def member(self, name: str) -> Generator[IO[bytes]]:
        """The bytes of a member. Raises KeyError if it is not there."""
        if self._archive is None:
            try:
                stream = (self._path / name).open("rb")
            except FileNotFoundError:
                raise KeyError(name) from None
        else:
            stream = self._archive.open(name)
        with stream:
            yield stream

    def blocks(self, name: str) -> Iterator[bytes]:
        """The content of a member, compared with what the manifest says when it ends. Raises BackupError."""
        size, sha256 = self.about.members[name]
        digest, length = hashlib.sha256(), 0
        try:
            with self.member(name) as stream:
                while data := stream.read(BLOCK):
                    digest.update(data)
                    length += len(data)
                    yield data
        except KeyError:
            raise BackupError(f"{name} is missing") from None
        except (*_DAMAGED, OSError) as error:
            raise BackupError(f"{name} is damaged ({type(error).__name__})") from error
        if length != size or digest.hexdigest() != sha256:
            raise BackupError(f"{name} is not what was put into the backup")

    def _manifest(self) -> Backup:
        try:
            with self.member(MANIFEST) as stream:
                said: dict[str, Any] = orjson.loads(stream.read())
            members = {str(name): (int(size), str(digest)) for name, (size, digest) in said["members"].items()}
            backup = Backup(
                self._path,
                str(said["made_at"]),
                str(said["palace"]),
                {str(name): int(version) for name, version in said["stores"].items()},
                int(said["conversations"]),
                members,
                [str(name) for name in said["left_out"]],
            )
            version = int(said["format"])
        except KeyError:
            raise BackupError(
                f"{self._path} is no backup of Palace: it has no {MANIFEST} that lists what is in it"
            ) from None
        except (*_DAMAGED, TypeError, AttributeError, OSError) as error:
            raise BackupError(
                f"{self._path} is damaged: its {MANIFEST} cannot be read ({type(error).__name__})"
            ) from error
        if version > FORMAT:
            raise TooNew.of(self._path, version, FORMAT)
        known = known_versions(SCHEMA_VERSION)
        for name, of_store in backup.stores.items():
            if of_store > known.get(name, 0):
                raise TooNew.of(f"the {name} in {self._path}", of_store, known.get(name, 0))
        if bad := [name for name in members if not _belongs(name)]:
            raise BackupError(f"{self._path} is no backup of Palace: {bad[0]!r} does not belong into one")
        return backup


def _belongs(name: str) -> bool:
    """No member may lead out of the home, or to a place where nothing of a backup lies."""
    parts = PurePosixPath(name).parts
    return name in FILES or (
        len(parts) > 1 and parts[0] in FOLDERS and ".." not in parts and "\0" not in name and not name.startswith("/")
    )


@contextmanager
def opened(source: Path) -> Generator[Opened]:
    """A backup, its manifest read. Raises BackupError, TooNew."""
    path = find(source)
    if path.is_dir():
        yield Opened(path, None)
        return
    try:
        archive = zipfile.ZipFile(path)
    except (*_DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # which is what a wrong offset leads to
            raise
        raise BackupError(
            f"{path} is cut or damaged: the list at its end, by which its parts are found, is not there. "
            "Nothing was restored; copy the file again, or take an older backup"
        ) from error
    with archive:
        yield Opened(path, archive)


def verify(source: Path) -> tuple[Backup, list[str]]:
    """Read all of a backup: what it says of itself, and what is wrong with it, a line each. Raises BackupError, TooNew."""
    wrong: list[str] = []
    with opened(source) as backup:
        for name in backup.about.members:
            try:
                for _ in backup.blocks(name):
                    pass
            except BackupError as error:
                wrong.append(str(error))
        return backup.about, wrong
