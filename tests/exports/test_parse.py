"""`palace parse`: what the answer says about times, dates, copies and things beside the messages."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from palace_pipeline.exports import parse, registry
from palace_pipeline.exports.base import SpecTarget
from palace_pipeline.exports.parse import parse_path
from palace_pipeline.model import Attachment, Citation, Conversation, Message
from palace_pipeline.settings import Settings, Source

NOON = datetime(2026, 3, 14, 12, 0, 0, 123_456, tzinfo=UTC)


@pytest.fixture
def reads(monkeypatch, tmp_path):
    """Lets a reader give these conversations, one list per file of the folder; gives the answer of `parse_path`."""

    class Given:
        format, provider, recipe, layout = "given", "chatgpt", 1, "whole"
        spec = SpecTarget("2026-11-29", "test", "high")

        def detect(self, head):
            return "given" in head.keys

        def read(self, member, report):
            yield from files[int(Path(member.path).stem)]

    files = []

    def run(*lists, settings=None):
        files[:] = lists
        for number in range(len(lists)):
            (tmp_path / f"{number}.json").write_text('{"given": 1}')
        return parse_path(tmp_path, settings)

    monkeypatch.setattr(registry, "READERS", [Given()])
    return run


def conversation(id, *messages, **more):
    return Conversation("chatgpt", id, list(messages), **more)


def test_a_message_in_full(reads):
    message = Message(
        "m", "assistant", "hi", created_at=NOON, speaker="A", citations=[Citation("https://example.invalid", "T")],
        attachment=[Attachment("a.txt", text="inside"), Attachment("b.png")],
    )  # fmt: skip
    answer = reads([conversation("c", message, title="T")])
    assert answer["conversations"] == [
        {
            "provider": "chatgpt",
            "conversation_id": "c",
            "title": "T",
            "start_date": "2026-03-14",
            "messages": [
                {
                    "role": "assistant",
                    "kind": "text",
                    "speaker": "A",
                    "text": "hi",
                    "timestamp": "2026-03-14T12:00:00.123Z",
                    "local_time": None,
                    "tool_name": None,
                    "citations": [{"url": "https://example.invalid", "title": "T"}],
                }
            ],
            "attachments": [{"name": "a.txt", "text": "inside"}, {"name": "b.png", "text": None}],
        }
    ]


def test_the_active_branch_with_all_roles_and_without_hidden_rows(reads):
    rows = [
        Message("1", "system", "s", kind="system", hidden_reason="system message"),
        Message("2", "user", "old", branch_active=False),
        Message("3", "user", "q"),
        Message("4", "thinking", "t", kind="thinking"),
        Message("5", "tool", "x", kind="tool_call", tool_name="web"),
        Message("6", "assistant", "a"),
    ]
    shown = reads([conversation("c", *rows)])["conversations"][0]["messages"]
    assert [(m["role"], m["tool_name"]) for m in shown] == [
        ("user", None),
        ("thinking", None),
        ("tool", "web"),
        ("assistant", None),
    ]


@pytest.mark.parametrize(
    ("messages", "head", "date"),
    [
        ([("user", None, None), ("assistant", NOON, None)], {}, "2026-03-14"),
        ([("tool", datetime(2020, 1, 1, tzinfo=UTC), None), ("user", NOON, None)], {}, "2026-03-14"),
        ([("user", None, "2026-03-15T00:30:00"), ("user", NOON, None)], {}, "2026-03-15"),
        ([("user", None, None)], {"created_at": NOON}, "2026-03-14"),
        ([("user", None, None)], {"local_created": "2026-03-16T23:00:00"}, "2026-03-16"),
        ([("user", None, None)], {}, None),
    ],
)
def test_start_date(reads, messages, head, date):
    rows = [
        Message(str(n), role, "x", created_at=time, local_time=local) for n, (role, time, local) in enumerate(messages)
    ]
    assert reads([conversation("c", *rows, **head)])["conversations"][0]["start_date"] == date


def test_naive_times_become_utc_only_with_a_zone_for_their_source(reads, tmp_path):
    row = Message("m", "user", "x", local_time="2026-03-15T00:30:00")
    without = reads([conversation("c", row)])["conversations"][0]
    assert (without["messages"][0]["timestamp"], without["start_date"]) == (None, "2026-03-15")
    settings = Settings(home=tmp_path, sources=(Source(path=tmp_path, timezone="Asia/Shanghai"),))
    with_zone = reads([conversation("c", row)], settings=settings)["conversations"][0]
    assert with_zone["messages"][0]["timestamp"] == "2026-03-14T16:30:00.000Z"
    assert with_zone["messages"][0]["local_time"] == "2026-03-15T00:30:00"
    assert with_zone["start_date"] == "2026-03-14"
    elsewhere = Settings(home=tmp_path, sources=(Source(path=tmp_path / "sub", timezone="Asia/Shanghai"),))
    assert reads([conversation("c", row)], settings=elsewhere)["conversations"][0]["messages"][0]["timestamp"] is None


def test_several_readings_of_one_conversation_are_one(reads):
    one, two = Message("1", "user", "q"), Message("2", "assistant", "a")
    answer = reads([conversation("c", one)], [conversation("c", one, two)], [conversation("d", one)])
    assert [(c["conversation_id"], len(c["messages"])) for c in answer["conversations"]] == [("c", 2), ("d", 1)]


def test_a_copy_that_repeats_all_of_an_older_one_replaces_it(reads):
    one, two, three = (Message(str(n), "user", str(n)) for n in range(3))
    answer = reads([conversation("old", one, two)], [conversation("new", one, two, three, forked_from="old")])
    assert [c["conversation_id"] for c in answer["conversations"]] == ["new"]
    answer = reads([conversation("old", one, three)], [conversation("new", one, two, forked_from="old")])
    assert [c["conversation_id"] for c in answer["conversations"]] == ["old", "new"]


def test_files_that_nobody_wants_are_counted_by_folder_and_all_others_one_by_one(tmp_path):
    for name in ("a/1.png", "a/2.png", "b/3.png", "x.json", "y.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert parse_path(tmp_path)["skipped"] == [
        {"reason": "empty file", "where": "x.json", "expected": False, "count": 1},
        {"reason": "empty file", "where": "y.json", "expected": False, "count": 1},
        {
            "reason": "asset beside the chats",
            "where": "a/1.png and 1 more in its folder",
            "expected": True,
            "count": 2,
        },
        {"reason": "asset beside the chats", "where": "b/3.png", "expected": True, "count": 1},
    ]


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        parse_path(tmp_path / "no")


def test_as_a_command(tmp_path):
    (tmp_path / "note.md").write_text("日记", encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", parse.__name__, str(tmp_path / "note.md")], capture_output=True, check=True, timeout=60
    )
    assert json.loads(run.stdout)["conversations"][0]["messages"][0]["text"] == "日记"
    assert list(tmp_path.iterdir()) == [tmp_path / "note.md"]
