"""Copilot CLI logs: words against injected context, tools, sub-agents, tokens, names."""

import pytest

from palace_pipeline.exports.copilot_cli import READER
from tests.exports.codex_lines import lines
from tests.exports.memory_member import read, shown

FILE = "session-state/cop-1/events.jsonl"


def event(kind, second=1, own=None, **data):
    value = {"type": kind, "data": data, "timestamp": f"2026-03-14T09:26:{second:02}.000Z", "parentId": None}
    return value if own is None else {**value, "id": own}


START = event("session.start", 0, sessionId="cop-1", context={"cwd": "/home/sample/tide", "branch": "main"})


def log(*records, path=FILE, files=None):
    return read([READER], {path: lines(*records), **(files or {})}, path)


def one(*records, **more):
    (conversation,) = log(*records, **more)[0]
    return conversation


def test_a_session():
    conversation = one(
        START,
        event("user.message", 1, "u1", content="读配置", transformedContent="<context>ZZ</context>读配置"),
        event(
            "assistant.message",
            2,
            "a1",
            content="",
            reasoningText="hm",
            toolRequests=[{"toolCallId": "t1", "name": "view", "arguments": {"path": "a.json"}}],
        ),
        event("tool.execution_start", 2, "s1", toolCallId="t1", toolName="view", arguments={"path": "a.json"}),
        event("tool.execution_complete", 3, "c1", toolCallId="t1", success=True, result={"content": "{}"}, model="m1"),
        event("assistant.message", 4, "a2", content="空的", toolRequests=[], outputTokens=7),
    )
    assert [(m.message_id, m.role, m.text, m.tool_name) for m in conversation.messages] == [
        ("u1", "user", "读配置", None),
        ("a1", "thinking", "hm", None),
        ("a1/1", "tool", "path: a.json", "view"),
        ("c1", "tool", "{}", "view"),
        ("a2", "assistant", "空的", None),
    ]
    assert (conversation.conversation_id, conversation.project, conversation.model) == (
        "cop-1",
        "/home/sample/tide",
        "m1",
    )
    assert conversation.messages[4].tokens_out == 7
    assert "ZZ" not in repr(conversation)


def test_reasoning_that_is_told_twice_comes_once():
    conversation = one(
        START,
        event("user.message", content="q"),
        event("assistant.reasoning", 2, reasoningId="r", content="why"),
        event("assistant.message", 3, content="a", reasoningText="why"),
        event("user.message", 4, content="q2"),
        event("assistant.message", 5, content="a2", reasoningText="why"),
    )
    assert [m.role for m in conversation.messages] == ["user", "thinking", "assistant", "user", "thinking", "assistant"]


@pytest.mark.parametrize(
    ("fields", "visible"),
    [
        ({}, True),
        ({"source": "user"}, True),
        ({"source": "walkie-talkie"}, True),
        ({"source": "skill-pdf"}, False),
        ({"source": "system"}, False),
        ({"source": "schedule-3"}, False),
        ({"source": ["skill"]}, True),
        ({"isAutopilotContinuation": True}, False),
        ({"inputOrigin": "authenticated-cross-session"}, False),
    ],
)
def test_messages_that_a_program_sent_are_hidden(fields, visible):
    conversation = one(START, event("user.message", content="mine"), event("user.message", content="whose?", **fields))
    assert len(conversation.visible_messages()) == 1 + visible
    assert {m.role for m in conversation.messages} == ({"user"} if visible else {"user", "system"})


def test_sub_agents_speak_in_rows_of_tools():
    inside = {**event("assistant.message", 3, content="counted 9"), "agentId": "ag1"}
    older = event("assistant.message", 4, content="counted 8", parentToolCallId="t")
    conversation = one(
        START, event("user.message", content="count"), inside, older, event("assistant.message", content="9")
    )
    assert [text for _, _, text in shown(conversation)] == ["count", "9"]
    assert [(m.role, m.speaker) for m in conversation.messages[1:3]] == [("tool", "sub-agent")] * 2


def test_attachments_and_results_with_files():
    attachments = [
        {"type": "file", "path": "C:\\src\\表.csv", "displayName": ""},
        {"type": "selection", "filePath": "/a/b.py", "text": "def f(): ..."},
        {"type": "blob", "data": "aGVsbG8=", "mimeType": "image/png", "displayName": "shot.png"},
    ]
    contents = [{"type": "text", "text": "seen"}, {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]
    conversation = one(
        START,
        event("user.message", content="", attachments=attachments),
        event("tool.execution_complete", toolCallId="t", result={"contents": contents}),
        event("tool.execution_complete", toolCallId="t2", success=False, error={"message": "denied"}),
        event("tool.execution_complete", toolCallId="t3", result="plain"),
    )
    question, *results = conversation.messages
    assert [(f.name, f.text, f.size) for f in question.attachment] == [
        ("表.csv", None, None),
        ("b.py", "def f(): ...", None),
        ("shot.png", None, 5),
    ]
    assert (question.kind, question.visible) == ("attachment", True)
    assert [(m.text, len(m.attachment)) for m in results] == [("seen", 1), ("denied", 0), ("plain", 0)]


def test_totals_of_a_run_are_set_so_that_sums_are_right():
    def shutdown(read, out, cached):
        usage = {"inputTokens": read, "outputTokens": out, "cacheReadTokens": cached}
        return event(
            "session.shutdown", modelMetrics={"m1": {"usage": usage}, "m2": {"usage": {"inputTokens": 1}}, "x": 1}
        )

    conversation = one(
        START,
        event("user.message", content="q"),
        event("assistant.message", content="a", outputTokens=30),
        event("assistant.message", content="b", outputTokens=20),
        shutdown(1000, 60, 700),
        event("session.resume", sessionId="cop-1"),
        event("user.message", content="q2"),
        event("assistant.message", content="c"),
        shutdown(10, 5, 0),
        shutdown(99, 99, 99),
    )
    assert sum(m.tokens_in or 0 for m in conversation.messages) == 1012
    assert sum(m.tokens_out or 0 for m in conversation.messages) == 65
    assert sum(m.tokens_cached or 0 for m in conversation.messages) == 700
    assert all(m.cost is None for m in conversation.messages)


def test_what_was_rewound_is_on_another_branch():
    conversation = one(
        START,
        event("user.message", 1, "u1", content="A"),
        event("assistant.message", 2, "a1", content="B"),
        event("user.message", 3, "u2", content="wrong"),
        event("session.snapshot_rewind", 4, "r", upToEventId="u2", eventsRemoved=1),
        event("user.message", 5, "u3", content="right"),
    )
    assert [text for _, _, text in shown(conversation)] == ["A", "B", "right"]


@pytest.mark.parametrize(
    ("manifest", "title"),
    [
        ("id: cop-1\nname: Tide tables\nsummary: other\n", "Tide tables"),
        ("summary: |-\n  潮汐表\n  second line\n", "潮汐表"),
        ("summary: ''\n", None),
        ("- a list", None),
        ("a: [broken", None),
        ("summary: 2026-99-99\n? [a]\n: b", None),
        (b"\xff\xfe\x00", None),
    ],
)
def test_the_name_stands_in_the_manifest(manifest, title):
    records = [START, event("user.message", content="q")]
    assert one(*records, files={"session-state/cop-1/workspace.yaml": manifest}).title == title


def test_ids_from_the_path_when_the_first_line_is_lost():
    assert one(event("user.message", content="q")).conversation_id == "cop-1"
    assert one(event("user.message", content="q"), path="session-state/cop-9.jsonl").conversation_id == "cop-9"


def test_a_transcript_of_vs_code_is_left_out_where_its_chat_lies():
    start = event("session.start", sessionId="v1", vscodeVersion="1.110", producer="copilot-agent")
    path = "workspaceStorage/0a/GitHub.copilot-chat/transcripts/v1.jsonl"
    records = [start, event("user.message", content="q")]
    alone = one(*records, path=path)
    assert (alone.provider, alone.conversation_id) == ("vscode-copilot", "transcript-v1")
    found, report = log(*records, path=path, files={"workspaceStorage/0a/chatSessions/v1.jsonl": b"{}"})
    assert not found
    assert [s.expected for s in report.skips] == [True]


def test_what_is_not_taken_is_counted():
    odd = [
        event("hologram.shown"),
        {"type": "user.message", "data": 3},
        b'{"type":"user.message","da',
        event("hook.start"),
    ]
    (conversation,), report = log(START, event("user.message", content="q"), *odd, event("user.message", content=""))
    assert shown(conversation) == [("user", None, "q")]
    assert [(s.reason, s.expected) for s in report.skips] == [
        ("line is no event", False),
        ("damaged line", False),
        ("message without content", True),
    ]
    assert sum(report.unknown.values()) == 1
    found, report = log(START, event("session.info"))
    assert not found
    assert [s.expected for s in report.skips] == [True]
