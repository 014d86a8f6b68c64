"""All readers, in the order in which they are asked. A new format is one import and one line here."""

from __future__ import annotations

from palace_pipeline.exports import chatgpt, claude, claude_code, codex
from palace_pipeline.exports.base import Head, Reader

READERS: list[Reader] = [
    # more special shapes first
    chatgpt.READER,
    claude.READER,
    claude_code.READER,
    codex.READER,
]


def reader_for(head: Head) -> Reader | None:
    """The first reader that knows the shape, or None."""
    return next((reader for reader in READERS if reader.detect(head)), None)


def reader_named(format_name: str) -> Reader | None:
    """The reader of a format by its name, as the ledger keeps it."""
    return next((reader for reader in READERS if reader.format == format_name), None)
