"""Cursor's text transcripts: what was typed, when, and what the program put beside it."""

import json

import pytest

from palace_pipeline.exports.cursor_transcript import READER
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.registry import READERS
from tests.exports.memory_member import MemoryMember, export, read, shown
from tests.exports.read_database import read as read_database
from tests.exports.read_database import reasons, rows
from tests.exports.sqlite_files import cursor
from tests.exports.test_cursor import A, answer, chat, user

PATH = f"projects/home-a-dev/agent-transcripts/{A}/{A}.jsonl"


def turn(role, *blocks):
    return {
        "role": role,
        "message": {"content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]},
    }


def transcript(*records, path=PATH):
    data = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)
    return read(READERS, {path: data}, path)


STAMP = "<timestamp>Friday, Sep 18, 2026, 10:48 AM (UTC+1)</timestamp>"


def test_words_tools_and_what_the_program_put_there():
    [found], report = transcript(
        turn("user", "<dynamic_tools>x</dynamic_tools>"),
        turn("user", f"{STAMP}\n<open_files>f</open_files>\n<user_query>\nDo it 做吧\n</user_query>\n<note>n</note>"),
        turn("assistant", "I will.\n[REDACTED]", {"type": "tool_use", "name": "Read", "input": {"path": "a"}}),
        turn("assistant", "[REDACTED]"),
        turn("user", {"type": "tool_result", "content": "r"}),
        turn("assistant", {"type": "tool_result", "content": [{"type": "text", "text": "result"}]}, "Done."),
        {"type": "turn_ended", "status": "completed"},
        {"role": "user", "message": {"content": "<user_query>cut in the"}},
        {"role": "user", "message": {"content": "plain words"}},
    )
    assert rows(found) == [
        ("user", "text", None, "Do it 做吧"),
        ("assistant", "text", None, "I will."),
        ("tool", "tool_call", "Read", "path: a"),
        ("tool", "tool_result", None, "result"),
        ("assistant", "text", None, "Done."),
        ("user", "text", None, "cut in the"),
        ("user", "text", None, "plain words"),
    ]
    first = found.visible_messages()[0]
    assert first.created_at.isoformat() == "2026-09-18T09:48:00+00:00"
    assert {m.created_at for m in found.visible_messages()[1:]} == {None}
    assert (found.conversation_id, found.origin, found.project, found.title) == (A, "person", "home-a-dev", None)
    assert reasons(report) == {"message without content": (2, True)}


@pytest.mark.parametrize(
    ("stamp", "instant", "local"),
    [
        ("Friday, Sep 18, 2026, 10:48 AM (UTC+1)", "2026-09-18T09:48:00+00:00", None),
        ("Saturday, Jan 3, 2026, 12:05 AM (UTC-3:30)", "2026-01-03T03:35:00+00:00", None),
        ("Thursday, March 5, 2026, 12:05\u202fPM (UTC)", "2026-03-05T12:05:00+00:00", None),
        ("Mar 5, 2026, 17:05:09 (GMT+0530)", "2026-03-05T11:35:09+00:00", None),
        ("Friday, Sep 18, 2026, 10:48 AM", None, "2026-09-18T10:48:00"),
        ("2026-03-05T10:00:00Z", "2026-03-05T10:00:00+00:00", None),
        ("Monday, Feb 30, 2026, 10:48 AM (UTC+1)", None, None),
        ("Friday, Sep 18, 2026, 13:48 AM (UTC+1)", None, None),
        ("Friday, Foo 18, 2026, 10:48 AM (UTC+1)", None, None),
        ("yesterday", None, None),
        ("", None, None),
    ],
)
def test_times_with_their_offset_and_no_other(stamp, instant, local):
    [found], _ = transcript(turn("user", f"<timestamp>{stamp}</timestamp><user_query>q</user_query>"))
    [message] = found.messages
    assert (message.created_at and message.created_at.isoformat(), message.local_time) == (instant, local)


def test_sub_agents_have_a_file_of_their_own():
    path = f"projects/p/agent-transcripts/{A}/subagents/sub-1.jsonl"
    [found], _ = transcript(turn("user", "<user_query>look</user_query>"), turn("assistant", "found"), path=path)
    assert (found.conversation_id, found.origin, found.parent_conversation_id) == ("sub-1", "subagent", A)


def test_the_same_chat_in_the_database_has_the_same_messages(tmp_path):
    [there], _ = transcript(
        turn("user", f"{STAMP}<user_query>\nask\n</user_query>"), turn("assistant", "tell"), turn("assistant", "tell")
    )
    [here], _ = read_database(cursor(tmp_path / "state.vscdb", chat(A, user("ask"), answer("tell"), answer("tell"))))
    assert here.key == there.key
    assert [m.message_id for m in here.messages] == [m.message_id for m in there.messages]


ODD = [None, 7, "", [], {}, [None, 7, {"type": 7}, {"type": "text", "text": 7}], {"content": {"a": 1}}, {"content": 7}]


@pytest.mark.parametrize("odd", [*ODD, *({"content": value} for value in ODD)])
@pytest.mark.parametrize("role", ["user", "assistant", "novel", 7])
def test_odd_values_cost_at_most_their_line(odd, role):
    [found], report = transcript(
        turn("user", "<user_query>ask</user_query>"), {"role": role, "message": odd}, "{cut", turn("assistant", "tell")
    )
    said = [text for who, _, text in shown(found) if who in ("user", "assistant") and text]
    assert (said[0], said[-1]) == ("ask", "tell")
    assert "damaged line" in reasons(report)


def test_nothing_said_is_no_chat():
    found, report = transcript(turn("user", "<rules>x</rules>"), turn("assistant", "[REDACTED]"))
    assert found == []
    assert reasons(report)["chat without messages"] == (1, True)


def test_only_its_own_shape_is_taken_for_it():
    def detected(*records):
        data = "".join(json.dumps(record) + "\n" for record in records)
        return READER.detect(head_of(MemoryMember(export({"a.jsonl": data}), "a.jsonl")))

    assert detected(turn("user", "x"))
    assert not detected({"type": "user", **turn("user", "x")})
    assert not detected({"role": "user", "content": "x"})
    assert not detected({"role": "user", "message": "x"})
