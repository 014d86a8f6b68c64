"""Databases through the whole engine, and their kept lines through it again."""

from __future__ import annotations

from pathlib import Path

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.engine import elements_of, identify, read_member
from palace_pipeline.model import Conversation, to_record
from tests.exports.memory_member import MemoryMember
from tests.exports.sqlite_files import member


class Lines(MemoryMember):
    """A member that the vault kept line by line."""

    holds_lines = True


def read(path: Path) -> tuple[list[Conversation], Report]:
    """What is understood of a database; it must be understood alike from what the vault would keep of it."""
    one = member(path)
    report = Report(one.path)
    identified = identify(one, report)
    if identified is None:
        return [], report
    reader, head = identified
    found = list(read_member(one, reader, head, report))
    lines = b"\n".join(e.raw or b"" for e in elements_of(one, head, Report(one.path), reader))
    beside = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.suffix == ".json"}
    kept = Lines({**beside, one.path: lines}, one.path)
    if lines:
        again = identify(kept, Report(one.path))
        assert again is not None
        assert again[0] is reader
        second = list(read_member(kept, *again, Report(one.path)))
        assert [to_record(c) for c in second] == [to_record(c) for c in found]
    return found, report


def lines_of(path: Path) -> bytes:
    """What the vault would keep of a database."""
    one = member(path)
    identified = identify(one, Report(one.path))
    assert identified is not None
    reader, head = identified
    return b"\n".join(e.raw or b"" for e in elements_of(one, head, Report(one.path), reader))


def rows(conversation: Conversation) -> list[tuple[str, str, str | None, str]]:
    """(role, kind, tool, text) of the rows that are not hidden, on the active branch."""
    return [
        (m.role, m.kind, m.tool_name, m.text) for m in conversation.messages if m.branch_active and not m.hidden_reason
    ]


def reasons(report: Report) -> dict[str, tuple[int, bool]]:
    """Reason -> (count, expected)."""
    out: dict[str, tuple[int, bool]] = {}
    for skip in report.skips:
        out[skip.reason] = (out.get(skip.reason, (0, True))[0] + skip.count, skip.expected)
    return out
