"""Pages of live sessions as a source: what of them becomes which row, and which files are taken for one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.engine import read_member
from palace_pipeline.exports.registry import READERS, reader_for
from palace_pipeline.exports.session_pages import READER
from palace_pipeline.model import Conversation
from palace_pipeline.workspace.session import Entry, Session, as_entry, render
from tests.exports.memory_member import MemoryMember, shown
from tests.workspace.pages_for_tests import TS, a_mutated_page, a_session

PATH = "2026-11-30/0915-1a2b3c4-修复.md"


def _session() -> Session:
    session = Session(
        "20261130-0915-1a2b3c4",
        TS,
        title="修复烤箱",
        model="m",
        tags=("a",),
        tokens_in=5,
        parent="20261129-0800-aaaaaaa",
    )
    session.sections["input"] = [as_entry("cold", TS), as_entry("and now?", TS + timedelta(minutes=5), "Jane")]
    session.sections["judgement"] = [as_entry("thermostat", TS + timedelta(minutes=1), "planner")]
    session.sections["tools"] = [as_entry("measure", TS + timedelta(minutes=2), "meter")]
    session.sections["conclusion"] = [Entry("by hand")]
    session.sections["todo"] = [as_entry("- [ ] buy\n- [x] ask", TS + timedelta(minutes=6))]
    return session


def _read(text: str, path: str = PATH) -> tuple[list[Conversation], Report]:
    member = MemoryMember({path: text.encode("utf-8", "replace")}, path)
    head = head_of(member)
    reader, report = reader_for(head), Report(path)
    assert reader is READER
    return list(read_member(member, READER, head, report)), report


def test_entries_are_rows_in_the_order_of_time() -> None:
    (conversation,), report = _read(render(_session()))
    assert report.skips == []
    assert shown(conversation) == [
        ("user", None, "cold"),
        ("assistant", "planner", "thermostat"),
        ("assistant", None, "by hand"),
        ("user", "Jane", "and now?"),
        ("assistant", None, "- [ ] buy\n- [x] ask"),
    ]
    tool = next(row for row in conversation.messages if row.role == "tool")
    assert (tool.text, tool.kind, tool.tool_name, tool.created_at) == (
        *("measure", "tool_call", "meter"),
        datetime(2026, 11, 30, 1, 17, tzinfo=UTC),
    )
    assert (conversation.provider, conversation.conversation_id, conversation.title) == (
        *("session", "20261130-0915-1a2b3c4"),
        "修复烤箱",
    )
    assert (conversation.parent_conversation_id, conversation.origin, conversation.model) == (
        *("20261129-0800-aaaaaaa", "subagent"),
        "m",
    )
    assert len({row.message_id for row in conversation.messages}) == len(conversation.messages)


def test_the_front_matter_is_a_hidden_row() -> None:
    (conversation,), _ = _read(render(_session()))
    front = conversation.messages[0]
    assert (front.visible, front.role, front.tokens_in) == (False, "system", 5)
    said = orjson.loads(front.text)
    assert (said["tags"], said["todos_open"], said["todos_done"], said["status"]) == (["a"], 1, 1, "open")


def test_ids_of_rows_stay_when_the_session_grows() -> None:
    session = _session()
    (before,), _ = _read(render(session))
    session.sections["input"].append(as_entry("more", TS + timedelta(minutes=9)))
    session.sections["conclusion"].append(as_entry("done", TS + timedelta(minutes=10)))
    (after,), _ = _read(render(session))
    ids = {row.message_id: row.text for row in after.messages}
    assert all(ids[row.message_id] == row.text for row in before.messages[1:])


def test_a_time_without_a_zone_stays_local() -> None:
    (conversation,), _ = _read("## 结论\n\n### 2026-11-30T09:20:00\n\ndone\n")
    assert (conversation.messages[1].created_at, conversation.messages[1].local_time) == (None, "2026-11-30T09:20:00")
    assert (conversation.created_at, conversation.local_created) == (None, "2026-11-30T09:15:00")


def test_links_to_earlier_parts_are_nobodys_words() -> None:
    session = _session()
    session.intro = "> [earlier](../2026-11-29/0800-aaaaaaa-earlier.md)\n\nA remark."
    (conversation,), _ = _read(render(session))
    assert [row.text for row in conversation.messages if row.message_id == "intro"] == ["A remark."]


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        (render(Session("20261130-0915-1a2b3c4", TS)), PATH, "a session without entries"),
        (render(_session()), PATH.replace(".md", ".conflict.md"), "one side of a conflict"),
        (render(_session()), PATH.replace(".md", ".conflict-2.md"), "one side of a conflict"),
    ],
)
def test_what_is_not_taken_has_a_reason(text: str, path: str, reason: str) -> None:
    conversations, report = _read(text, path)
    assert conversations == []
    assert [(skip.reason, skip.expected) for skip in report.skips] == [(reason, True)]


def test_a_copy_elsewhere_is_known_by_its_front_matter() -> None:
    (conversation,), _ = _read(render(_session()), "notes/my copy.md")
    assert conversation.conversation_id == "20261130-0915-1a2b3c4"


def test_no_other_format_is_taken_for_a_session(fixtures: Path) -> None:
    files = [
        path
        for path in sorted(fixtures.rglob("*"))
        if path.is_file() and path.suffix in (".md", ".txt", ".json", ".jsonl")
    ]
    assert len(files) > 50
    for path in files:
        member = MemoryMember({path.name: path.read_bytes()}, path.name)
        assert not READER.detect(head_of(member)), path


def test_no_other_reader_takes_a_session_first() -> None:
    member = MemoryMember({PATH: render(a_session()).encode()}, PATH)
    assert next(reader for reader in READERS if reader.detect(head_of(member))) is READER


@pytest.mark.parametrize("seed", range(0, 300, 50))
def test_damaged_pages_are_taken_or_counted(seed: int) -> None:
    for number in range(seed, seed + 50):
        text, path = a_mutated_page(number)
        member = MemoryMember({path: text.encode("utf-8", "replace")}, path.removeprefix("sessions/"))
        member = MemoryMember({member.path: member.files[path]}, member.path)
        head, report = head_of(member), Report(member.path)
        if not READER.detect(head):
            assert head.shape != "text"
            continue
        conversations = list(read_member(member, READER, head, report))
        assert len(conversations) + len(report.skips) == 1
        for conversation in conversations:
            ids = [row.message_id for row in conversation.messages]
            assert len(set(ids)) == len(ids)
