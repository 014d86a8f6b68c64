"""Files of an export: written whole, and with a seal by which a later export knows what it wrote itself and nobody has changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from palace_pipeline.store.files import replacing

Kind = Literal["html", "docx", "pdf", "md"]
Outcome = Literal["written", "unchanged", "in the way"]

_BEFORE = {
    "html": b"<!-- palace export ",
    "md": b"<!-- palace export ",
    "pdf": b"% palace export ",
    "docx": b"palace export ",
}
_AFTER = {"html": b" -->\n", "md": b" -->\n", "pdf": b"\n", "docx": b""}
_DIGEST = 64
_SEAL = re.compile(rb"palace export ([0-9a-f]{64})(?: -->)?\n?\Z")
_STEP = 1 << 20


def seal_size(kind: Kind) -> int:
    """Bytes of a seal."""
    return len(_BEFORE[kind]) + _DIGEST + len(_AFTER[kind])


def put(path: Path, data: bytes, kind: Kind, *, overwrite: bool = False) -> Outcome:
    """Write one file of an export, sealed; 0600. One that is there is replaced only if it is an export that nobody has changed
    since, or with `overwrite`. A symbolic link is replaced, never followed."""
    with building(path, kind, overwrite=overwrite) as file:
        file.stream.write(data)
    return file.outcome


class Built:
    """A file that is being written: what stands in `stream` becomes the file. `outcome` is known at the end."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.outcome: Outcome = "in the way"


@contextmanager
def building(path: Path, kind: Kind, *, overwrite: bool = False) -> Generator[Built]:
    """`put` for what is too large to be held in memory. An error inside leaves the old file."""
    temporary: Path | None = None
    try:
        with replacing(path, durable=False) as temporary:
            with temporary.open("xb") as stream:
                temporary.chmod(0o600)
                built = Built(stream)
                yield built
                stream.flush()
                stream.write(_BEFORE[kind])
                stream.flush()
                digest = _digest(temporary, temporary.stat().st_size)
                stream.write(digest.encode() + _AFTER[kind])
            built.outcome = _outcome(path, temporary, digest, overwrite=overwrite)
            if built.outcome != "written":
                raise _LeaveIt
    except _LeaveIt:
        return


class _LeaveIt(Exception):
    """The file that is there stays."""


def _outcome(path: Path, fresh: Path, digest: str, *, overwrite: bool) -> Outcome:
    if path.is_symlink():
        return "written" if overwrite else "in the way"
    if not path.exists():
        return "written"
    if path.is_dir():
        return "in the way"
    seal = seal_of(path)
    if seal == digest and path.stat().st_size == fresh.stat().st_size:
        return "unchanged"
    return "written" if overwrite or seal is not None else "in the way"


def seal_of(path: Path) -> str | None:
    """The seal of a file, if it has one that still holds."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - 200))
        match = _SEAL.search(stream.read())
    if match is None:
        return None
    seal = match[1].decode()
    return seal if _digest(path, size - (len(match[0]) - len(b"palace export "))) == seal else None


def _digest(path: Path, size: int) -> str:
    """sha256 of the first `size` bytes of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while size > 0 and (part := stream.read(min(_STEP, size))):
            digest.update(part)
            size -= len(part)
    return digest.hexdigest()
