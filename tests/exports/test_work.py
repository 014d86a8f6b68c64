"""The work of reading grows with the input and no faster: counted in lines of code that run and in bytes read."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, BinaryIO

import pytest

import palace_pipeline.exports
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.engine import identify, read_member
from palace_pipeline.transcripts.merge import merge
from tests.exports.fuzz_oracle import read_by_elements
from tests.exports.memory_member import MemoryMember
from tests.exports.mutations import Shape, dump, element_list, load, places, shape_of
from tests.exports.test_fuzz import CASES, Case

OUR_CODE = next(iter(palace_pipeline.exports.__path__)).removesuffix("exports")
ID_KEY = re.compile(
    r"(?i)^(?:.*_)?(?:id|ids|uuid|uuids|parent|parents|children|leaf|node|key)$|(?:Id|Ids|Uuid|ID)$|parent"
)
OF_THE_WHOLE = re.compile(r"(?i)session|conversation|thread|fork|^chat|project|user")


@dataclass(frozen=True)
class Counted(MemoryMember):
    """A member that notes how many bytes were read of it, in all passes."""

    counts: dict[str, int] | None = None

    def open(self) -> BinaryIO:
        counts = self.counts if self.counts is not None else {}

        class Stream(io.BytesIO):
            def readinto(self, buffer: Any) -> int:
                got = super().readinto(buffer)
                counts["bytes"] = counts.get("bytes", 0) + got
                return got

            def read(self, size: int | None = -1) -> bytes:
                got = super().read(size)
                counts["bytes"] = counts.get("bytes", 0) + len(got)
                return got

            def readline(self, size: int | None = -1) -> bytes:
                got = super().readline(size)
                counts["bytes"] = counts.get("bytes", 0) + len(got)
                return got

        return Stream(self.files[self.path])


def work_of(files: Mapping[str, bytes], path: str) -> tuple[int, int, int]:
    """Lines of our code that ran, bytes read, rows that came out, for reading and merging one file."""
    lines = 0

    def in_line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal lines
        lines += event == "line"
        return in_line

    def on_call(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return in_line if frame.f_code.co_filename.startswith(OUR_CODE) else None

    member, report = Counted(files, path, counts := {}), Report(path)
    old = sys.gettrace()
    sys.settrace(on_call)
    try:
        known = identify(member, report)
        found = list(read_member(member, *known, report)) if known else []
        seen: dict[tuple[str, str], list[Any]] = {}
        for conversation in found:
            seen.setdefault(conversation.key, []).append(conversation)
        rows = sum(len(merge(records).messages) for records in seen.values())
    finally:
        sys.settrace(old)
    return lines, counts.get("bytes", 0), rows


# --- the same file, several times as long -----------------------------------------------------------------------------


def grown(data: bytes, shape: Shape, times: int) -> bytes | None:
    """A file of the same format with `times` as much in it; None if nothing in it can be repeated."""
    if shape.kind == "text":
        return b"\n".join([data] * times)
    if shape.kind == "jsonl":
        values = [value for line in data.split(b"\n") if (value := _value(line)) is not None]
        ids = _ids(values, OF_THE_WHOLE if not shape.elements else None)
        return b"\n".join(dump(_renamed(value, ids, n)) for n in range(times) for value in values)
    if shape.kind != "json":
        return None
    whole = load(data)
    elements = element_list(whole, shape)
    if elements is not None:
        elements[:] = _repeated_list(elements, times, None)
    elif isinstance(whole, list):
        whole = _repeated_list(whole, times, OF_THE_WHOLE)
    else:
        tables = [(len(dump(h[k])), number, h, k) for number, (h, k) in enumerate(places(whole)) if _is_table(h[k])]
        if not tables:
            return None
        _, _, holder, key = max(tables, key=lambda table: table[:2])
        table = holder[key]
        if isinstance(table, list):
            holder[key] = _repeated_list(table, times, OF_THE_WHOLE)
        else:
            ids = _ids([table], OF_THE_WHOLE) | {name for name, value in table.items() if isinstance(value, dict)}
            holder[key] = {k: v for n in range(times) for k, v in _renamed(table, ids, n).items()}
    return dump(whole)


def _value(line: bytes) -> Any:
    try:
        return load(line) if line.strip() else None
    except ValueError:
        return None


def _is_table(value: Any) -> bool:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return len(inner) > 1 and sum(isinstance(item, dict) for item in inner) > len(inner) // 2


def _repeated_list(items: list[Any], times: int, kept: re.Pattern[str] | None) -> list[Any]:
    ids = _ids(items, kept)
    return [_renamed(item, ids, n) for n in range(times) for item in items]


def _ids(value: Any, kept: re.Pattern[str] | None) -> set[str]:
    """Strings that stand where ids stand; not under keys that match `kept` (the session's own id, in each line)."""
    found: set[str] = set()
    stay: set[str] = set()
    for holder, key in places([value]):
        inner = holder[key]
        for text in inner if isinstance(inner, list) else [inner]:
            if isinstance(text, str) and text and isinstance(key, str):
                if kept and kept.search(key):
                    stay.add(text)
                elif ID_KEY.search(key):
                    found.add(text)
    return found - stay


def _renamed(value: Any, ids: set[str], copy: int) -> Any:
    """A copy with other ids (the first copy as it was), however deep."""
    if copy == 0:
        return value
    if isinstance(value, dict):
        return {
            f"{k}-{copy}" if k in ids else k: _later(k, v, copy) or _renamed(v, ids, copy) for k, v in value.items()
        }
    if isinstance(value, list):
        return [_renamed(item, ids, copy) for item in value]
    return f"{value}-{copy}" if isinstance(value, str) and value in ids else value


def _later(key: str, value: Any, copy: int) -> Any:
    """Numbers that are ids, and times that are (Slack's `ts`), of another copy."""
    if key == "id" and type(value) is int:
        return value + copy * 10**6
    if key in ("ts", "thread_ts") and isinstance(value, str) and value.replace(".", "", 1).isdigit():
        return f"{float(value) + 1000 * copy:.6f}"
    return None


def check(case: Case, path: str, first: int) -> str | None:
    """None if the work is linear (or nothing of the file can be repeated), else what was counted."""
    reading = read_by_elements(case.files, path)
    if not reading.found:
        return None
    shape = reading.shape or shape_of(path, case.files[path])
    sizes = [first, 2 * first, 4 * first]
    files = [grown(case.files[path], shape, times) for times in sizes]
    if any(data is None for data in files):
        return None
    counts = [work_of(case.with_file(path, data), path) for data in files if data is not None]
    for what in (0, 1):
        one, two, four = (count[what] for count in counts)
        # Linear work doubles its growth with each doubling of the input, square work makes it four times as large.
        if four - two > 3 * (two - one) + 50 * first:
            return f"{case.name} | {path} | {'lines' if what == 0 else 'bytes'}: {one}, {two}, {four}"
    return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_work_is_linear(case: Case) -> None:
    largest = max(case.files, key=lambda path: len(case.files[path]))
    assert check(case, largest, 4) is None


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_work_is_linear_in_every_file(case: Case) -> None:
    assert not [wrong for path in case.files if (wrong := check(case, path, 24))]


def test_square_work_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure itself: a reader that looks at all rows for each row must not pass."""
    from palace_pipeline.exports import ids

    derive = ids.derive_ids
    source = "def slow(messages):\n    for a in messages:\n        for b in messages:\n            a is b\n    derive(messages)\n"
    space: dict[str, Any] = {"derive": derive}
    exec(compile(source, OUR_CODE + "exports/slow.py", "exec"), space)
    monkeypatch.setattr("palace_pipeline.exports.claude.derive_ids", space["slow"])
    turns = [{"uuid": str(number), "sender": "human", "text": "x"} for number in range(9)]
    case = Case("x", {"a.json": dump({"uuid": "c", "chat_messages": turns})})
    assert check(case, "a.json", 4) is not None
