"""A file that somebody writes to while it is read: half of what was and half of what is must not become a conversation."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

CHANGING = "is being rewritten: it changed each time while it was read"
"""Why a file was not taken at this look."""
ATTEMPTS = 3


class Disturbed(Exception):
    """A file is not any more what it was when its reading began; what was made of it is to be undone."""


def hash_and_size(path: Path) -> tuple[str, int]:
    """sha256 and size of a file's bytes as they are read now. Raises MemberError, OSError."""
    from palace_pipeline.exports.streams import open_regular

    digest, size = hashlib.sha256(), 0
    with open_regular(path) as stream:
        while data := stream.read(1 << 20):
            digest.update(data)
            size += len(data)
    return digest.hexdigest(), size


def is_as_it_was(path: Path, before: os.stat_result, sha256: str, size: int) -> bool:
    """True if a file still says what it said when its reading began; a log may have grown, and the file may be gone."""
    try:
        now = path.stat()
        if (now.st_size, now.st_mtime_ns, now.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino):
            return True
        digest, left = hashlib.sha256(), size
        with path.open("rb") as stream:
            while left and (data := stream.read(min(left, 1 << 20))):
                digest.update(data)
                left -= len(data)
    except FileNotFoundError:
        return True
    return left == 0 and digest.hexdigest() == sha256
