"""An export in memory, for tests of single readers."""

from __future__ import annotations

import io
import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from palace_pipeline.exports.base import Reader, Report
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.engine import read_member
from palace_pipeline.model import Conversation


@dataclass(frozen=True)
class MemoryMember:
    """A member of an export that is a dict of path -> bytes."""

    files: Mapping[str, bytes]
    path: str

    @property
    def size(self) -> int:
        return len(self.files[self.path])

    def open(self) -> BinaryIO:
        return io.BytesIO(self.files[self.path])

    def near(self, relative: str) -> MemoryMember | None:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(self.path), relative))
        return MemoryMember(self.files, path) if path in self.files else None


def export(files: Mapping[str, Any]) -> dict[str, bytes]:
    """Files given as bytes, text, or values that become JSON."""
    return {
        path: content
        if isinstance(content, bytes)
        else content.encode()
        if isinstance(content, str)
        else json.dumps(content).encode()
        for path, content in files.items()
    }


def read(readers: list[Reader], files: Mapping[str, Any], path: str) -> tuple[list[Conversation], Report]:
    """What the first reader that knows the member makes of it."""
    member = MemoryMember(export(files), path)
    head = head_of(member)
    reader = next(reader for reader in readers if reader.detect(head))
    report = Report(path)
    return list(read_member(member, reader, head, report)), report


def shown(conversation: Conversation) -> list[tuple[str, str | None, str]]:
    """(role, speaker, text) of the visible messages."""
    return [(m.role, m.speaker, m.text) for m in conversation.visible_messages()]
