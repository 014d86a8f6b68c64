"""Hermes sessions as files: lines, snapshots, what the gateway puts into a message, ids that do not need a time."""

import pytest

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.hermes import READERS, hermes_messages, hermes_origin
from palace_pipeline.exports.hermes_rows import split_injected
from tests.exports.codex_lines import lines
from tests.exports.memory_member import read, shown

NAME = "20260314_092640_5a3e2ff1"
FILE = f"sessions/{NAME}.jsonl"
META = {"role": "session_meta", "tools": [{"x": "y" * 5000}], "model": "m1", "platform": "telegram"}


def said(role, content, second=1, **more):
    return {"role": role, "content": content, "timestamp": f"2026-03-14T09:26:{second:02}.123456", **more}


def log(*records, path=FILE, files=None):
    return read(list(READERS), {path: lines(*records), **(files or {})}, path)


def one(*records, **more):
    (conversation,) = log(*records, **more)[0]
    return conversation


def rows(*turns):
    return hermes_messages(turns, Report())


def test_a_session_in_lines():
    conversation = one(
        {**META, "timestamp": "2026-03-14T09:26:40.000000"},
        said("user", "干潮は？"),
        said(
            "assistant",
            "",
            2,
            reasoning="hm",
            tool_calls=[{"id": "c1", "function": {"name": "tide", "arguments": '{"at": "noon"}'}}],
        ),
        said("tool", "12:40", 3, tool_call_id="c1"),
        said("assistant", "12:40です", 4),
    )
    assert (conversation.conversation_id, conversation.origin, conversation.model) == (NAME, "person", "m1")
    assert (conversation.local_created, conversation.created_at) == ("2026-03-14T09:26:40", None)
    assert [(m.role, m.kind, m.text, m.tool_name, m.model) for m in conversation.messages] == [
        ("user", "text", "干潮は？", None, None),
        ("thinking", "thinking", "hm", None, "m1"),
        ("tool", "tool_call", "at: noon", "tide", "m1"),
        ("tool", "tool_result", "12:40", "tide", None),
        ("assistant", "text", "12:40です", None, "m1"),
    ]
    assert [m.local_time for m in conversation.messages if m.visible] == ["2026-03-14T09:26:01", "2026-03-14T09:26:04"]
    assert all(m.created_at is None for m in conversation.messages)


def test_a_snapshot_and_the_log_of_one_session_have_the_same_messages():
    turns = [said("user", "hi"), said("assistant", "", 2, tool_calls=[{"id": "c", "name": "f", "arguments": {"a": 1}}])]
    turns += [said("tool", "ok", 3, tool_call_id="c"), said("assistant", "hi", 4), said("user", "hi", 5)]
    snapshot = {
        "session_id": NAME,
        "model": "m1",
        "platform": "cli",
        "session_start": "2026-03-14T09:26:40",
        "last_updated": "2026-03-14T09:30:00",
        "messages": [{k: v for k, v in turn.items() if k != "timestamp"} for turn in turns],
    }
    path = f"sessions/session_{NAME}.json"
    (as_object,), report = read(list(READERS), {path: snapshot}, path)
    as_log = one(META, *turns)
    assert as_object.key == as_log.key
    assert [m.message_id for m in as_object.messages] == [m.message_id for m in as_log.messages]
    assert len({m.message_id for m in as_log.messages}) == 5
    assert as_object.local_created == "2026-03-14T09:26:40"
    assert not report.skips


def test_database_rows_have_instants_and_the_same_ids():
    in_file = rows(said("user", "hi"), said("assistant", "hello", 2))
    in_database = rows(
        {"role": "user", "content": '[{"type": "text", "text": "hi"}]', "timestamp": 1773480401.25, "active": 1},
        {"role": "assistant", "content": "hello", "timestamp": 1773480402.25, "active": 0, "compacted": 1},
    )
    assert [m.message_id for m in in_file] == [m.message_id for m in in_database]
    assert in_database[0].created_at is not None
    assert [m.branch_active for m in in_database] == [True, True]


@pytest.mark.parametrize(
    ("row", "hidden", "active"),
    [
        ({"active": 0, "compacted": 0}, None, False),
        ({"active": 0, "compacted": 1}, None, True),
        ({"active": 1}, None, True),
        ({}, None, True),
        ({"_compressed_summary": 1}, "compaction summary", True),
        ({"display_kind": "hidden"}, "notice of the program", True),
        ({"display_kind": "steer"}, None, True),
        ({"display_kind": "hologram"}, None, True),
    ],
)
def test_what_a_row_is_to_the_person(row, hidden, active):
    report = Report()
    (message,) = hermes_messages([{"role": "user", "content": "x", **row}], report)
    assert (message.hidden_reason, message.branch_active) == (hidden, active)
    assert bool(report.unknown) == (row.get("display_kind") == "hologram")


@pytest.mark.parametrize(
    ("text", "own", "kinds"),
    [
        ("words [in brackets]", "words [in brackets]", []),
        ("[Sam] hello", "[Sam] hello", []),
        ("[System note: The session was reset.]\n\n真正的问题", "真正的问题", ["notice of the program"]),
        ("[CONTEXT COMPACTION — REFERENCE ONLY] earlier", "", ["compaction summary"]),
        ("[CONTEXT COMPACTION - REFERENCE ONLY] earlier", "", ["compaction summary"]),
        ("<memory-context>\nlikes tea\n</memory-context>\n\nwhich tea?", "which tea?", ["memory"]),
        ("<memory-context> without an end", "<memory-context> without an end", []),
        ('[SYSTEM: The user has invoked the "plan" skill]\n\n---\nbody', "", ["skill"]),
        (
            '[SYSTEM: The user has invoked the "plan" skill]\n\nbody\n\nThe user has provided the following instruction '
            "alongside the skill invocation: make a plan\n\n[Runtime note: x]",
            "make a plan",
            ["skill"],
        ),
        ("[IMPORTANT: Background process 3 finished]", "", ["notice of the program"]),
    ],
)
def test_injected_text_is_told_from_what_the_person_wrote(text, own, kinds):
    found, injected = split_injected(text)
    assert (found, [kind for kind, _ in injected]) == (own, kinds)


def test_contents_in_every_form():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    for content in (
        [{"type": "text", "text": "look"}, picture],
        '\0json:[{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}]',
    ):
        (message,) = rows({"role": "user", "content": content})
        assert (message.text, [(f.type, f.size) for f in message.attachment]) == ("look", [("image/png", 5)])
    (message,) = rows({"role": "user", "content": [picture]})
    assert (message.text, message.kind) == ("", "image")
    (printed,) = rows({"role": "tool", "content": '[{"type": "row", "id": 1}]'})
    assert printed.text == '[{"type": "row", "id": 1}]'


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning": "why"},
        {"reasoning": None, "reasoning_content": "why"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "why"}]},
        {"reasoning_details": '[{"type": "reasoning.summary", "summary": "why"}]'},
    ],
)
def test_reasoning_under_each_of_its_names(fields):
    thinking, answer = rows({"role": "assistant", "content": "so", **fields})
    assert (thinking.role, thinking.text, answer.text) == ("thinking", "why", "so")


@pytest.mark.parametrize(
    ("platform", "name", "origin"),
    [
        ("telegram", "x", "person"),
        ("cron", "x", "cron"),
        ("Subagent", "x", "subagent"),
        (None, "cron_nightly_20260314_090000", "cron"),
        (["cron"], "x", "person"),
        ("tool", "x", "tool"),
    ],
)
def test_whose_session_it_is(platform, name, origin):
    assert hermes_origin(platform, name) == origin


def test_the_index_names_a_session():
    index = {"telegram:1": {"session_id": NAME, "display_name": "Harbour", "platform": "cron"}, "x": 1}
    conversation = one({"role": "session_meta"}, said("user", "q"), files={"sessions/sessions.json": index})
    assert (conversation.title, conversation.origin) == ("Harbour", "cron")
    other = one(META, said("user", "q"), files={"sessions/sessions.json": b'{"' + NAME.encode()})
    assert other.title is None


def test_what_is_not_taken_is_counted():
    conversations, report = log(META, said("tool", "x", tool_call_id="c"), said("assistant", ""))
    assert not conversations
    assert [(s.reason, s.expected) for s in report.skips] == [
        ("message without content", True),
        ("session without messages", True),
    ]
    (conversation,), report = log(META, said("user", "q"), said("oracle", "x"), b'{"role":"user","cont')
    assert shown(conversation) == [("user", None, "q")]
    assert [s.reason for s in report.skips] == ["damaged line"]
    assert sum(report.unknown.values()) == 1
