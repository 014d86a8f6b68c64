"""Claude Code logs: titles, ids, sub-agents, files, and the shapes that logs come in."""

import base64
import json

import pytest

from palace_pipeline.exports.base import Head
from palace_pipeline.exports.claude_code import READER
from palace_pipeline.model import to_record
from tests.exports.claude_code_lines import FILE, SESSION, answer, call, log, one, result, user
from tests.exports.memory_member import read, shown

# --- titles, ids, sub-agents ---


def test_titles_in_their_order():
    base = [user("u1", None, "A")]
    summary = {"type": "summary", "summary": "Sum", "leafUuid": "u1"}
    foreign = {"type": "summary", "summary": "Of another session", "leafUuid": "elsewhere"}
    ai, custom = {"type": "ai-title", "aiTitle": "By the program"}, {"type": "custom-title", "customTitle": "Mine"}
    assert one(*base, foreign).title is None
    assert one(*base, foreign, summary).title == "Sum"
    assert one(summary, ai, *base).title == "By the program"
    assert one(*base, custom, ai, summary).title == "Mine"
    assert one(*base, custom, ai, {"type": "custom-title", "customTitle": ""}).title == "By the program"


@pytest.mark.parametrize(
    ("path", "conversation_id"),
    [
        (FILE, SESSION),
        (FILE + ".zst", SESSION),
        ("my notes.jsonl", SESSION),
        (SESSION[:-1] + "9.jsonl", SESSION[:-1] + "9"),
    ],
)
def test_the_id_is_the_file_name_or_the_session_id(path, conversation_id):
    assert one(user("u1", None, "A"), path=path).conversation_id == conversation_id


@pytest.mark.parametrize(
    "path",
    [
        f"p/{SESSION}/subagents/agent-a1b2.jsonl",
        f"p/{SESSION}/subagents/workflows/w1/agent-a1b2.jsonl",
        "p/agent-a1b2.jsonl",
    ],
)
def test_the_file_of_a_sub_agent_is_a_conversation_of_its_own(path):
    side = {"isSidechain": True, "agentId": "a1b2"}
    conversation = one(user("y1", None, "count rows", **side), answer("y2", "y1", "42", **side), path=path)
    assert conversation.conversation_id == f"{SESSION}/agent-a1b2"
    assert conversation.parent_conversation_id == SESSION
    assert conversation.origin == "subagent"
    assert shown(conversation) == [("user", None, "count rows"), ("assistant", None, "42")]


def test_a_session_file_below_subagents_is_a_session():
    path = f"p/x/subagents/{SESSION}.jsonl"
    assert one(user("u1", None, "A"), path=path).origin == "person"


def test_sub_agents_inside_a_session_are_rows_of_role_tool():
    conversation = one(
        user("u1", None, "Survey"),
        answer("a1", "u1", [call("t1", "Task", prompt="count")], "m"),
        user("x1", None, "count", isSidechain=True),
        answer("x2", "x1", "42 rows", isSidechain=True),
        user("z1", None, "other agent", isSidechain=True),
        user("r1", "a1", result("t1", [{"type": "text", "text": "42"}])),
        answer("a2", "r1", "It has 42."),
    )
    assert [text for _, _, text in shown(conversation)] == ["Survey", "It has 42."]
    assert [(m.role, m.speaker, m.text) for m in conversation.messages[2:5]] == [
        ("tool", "sub-agent", "count"), ("tool", "sub-agent", "42 rows"), ("tool", "sub-agent", "other agent")
    ]  # fmt: skip
    assert all(m.branch_active for m in conversation.messages)


# --- files ---


def test_encoded_data_is_never_kept_but_the_file_is_told_of():
    secret_bytes = bytes(range(256)) * 40
    data = base64.b64encode(secret_bytes).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    note = {
        "type": "document",
        "title": "note.txt",
        "source": {"type": "text", "media_type": "text/plain", "data": "潮汐"},
    }
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}}
    conversation = one(
        user("u1", None, [image, {"type": "text", "text": "see"}, note]),
        user("u2", "u1", [image]),
        user("u3", "u2", [pdf]),
        answer("a1", "u3", [call("t1", "Read")]),
        user("r1", "a1", result("t1", [{"type": "text", "text": "shot"}, image])),
    )
    assert data.encode() not in to_record(conversation)
    assert [
        (m.kind, m.text, [(f.name, f.type, f.size, f.text) for f in m.attachment]) for m in conversation.messages
    ] == [
        ("text", "see", [(None, "image/png", len(secret_bytes), None), ("note.txt", "text/plain", None, "潮汐")]),
        ("image", "", [(None, "image/png", len(secret_bytes), None)]),
        ("attachment", "", [(None, "application/pdf", len(secret_bytes), None)]),
        ("tool_call", "", []),
        ("tool_result", "shot", [(None, "image/png", len(secret_bytes), None)]),
    ]


# --- shapes ---


def test_lines_with_nothing_but_type_and_content():
    records = [
        {"type": "human", "message": {"content": "潮汐表里的 0.3 米是什么意思？"}},
        {"type": "assistant", "message": {"content": "高度。"}},
        {"type": "user", "message": {"content": ["那负数呢？", {"type": "text", "text": "还有零？"}]}},
        {"type": "assistant", "message": {"content": {"text": "水位低。"}}},
        {"type": "assistant", "message": {"content": "高度。"}},
    ]
    conversation = one(*records, path="agent.jsonl")
    assert shown(conversation) == [
        ("user", None, "潮汐表里的 0.3 米是什么意思？"),
        ("assistant", None, "高度。"),
        ("user", None, "那负数呢？\n\n还有零？"),
        ("assistant", None, "水位低。"),
        ("assistant", None, "高度。"),
    ]
    assert all(m.created_at is None for m in conversation.messages)
    assert len({m.message_id for m in conversation.messages}) == 5
    assert one(*records[:2], path="agent.jsonl").conversation_id == conversation.conversation_id


@pytest.mark.parametrize("indent", [None, 1])
def test_a_web_session(indent):
    value = {"title": "Regatta", "loglines": [user("u1", None, "A"), 5, answer("a1", "u1", "B")]}
    conversations, report = read([READER], {"s.json": json.dumps(value, indent=indent)}, "s.json")
    assert [shown(c) for c in conversations] == [[("user", None, "A"), ("assistant", None, "B")]]
    assert (conversations[0].conversation_id, conversations[0].title) == (SESSION, "Regatta")
    assert [s.where for s in report.skips] == ["s.json: loglines[1]"]


def test_detection_by_shape():
    def knows(*items, shape="jsonl"):
        return READER.detect(Head("x.jsonl", shape, items=list(items), keys=list(items[0])))

    assert knows({"type": "mode", "mode": "normal", "sessionId": "s"})
    assert knows({"type": "summary", "summary": "x", "leafUuid": "u"})
    assert knows({"loglines": []}, shape="object")
    assert not knows({"type": "user", "content": "top-level content is another program's"})
    assert not knows({"type": "session", "version": 3, "id": "x"})
    assert not knows({"type": "progress", "hook": "telemetry without a session"})
    assert not knows({"role": "user", "message": {"content": []}})
    assert not knows({"messages": []}, shape="object")


def test_unknown_names_are_counted_and_never_quoted_when_odd():
    _, report = log(
        user("u1", None, [{"type": "text", "text": "A"}, {"type": "hologram"}]),
        {"type": "brand-new", "sessionId": SESSION},
        {"type": "a whole sentence somebody wrote", "sessionId": SESSION},
        {"type": ["x"]},
    )
    assert report.unknown == {"content type:hologram": 1, "record type:brand-new": 1, "record type:(not a name)": 2}
