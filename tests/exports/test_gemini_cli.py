"""Gemini CLI: sessions as objects and as logs, sub-agents, checkpoints, and damage."""

import hashlib
import itertools
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.gemini_cli import READER
from palace_pipeline.exports.registry import reader_for
from palace_pipeline.model import to_record
from tests.exports.memory_member import MemoryMember, export, read, shown
from tests.exports.people_damage import ODD, places, retyped

FIXTURES = Path(__file__).parent.parent / "fixtures" / "exports"
HASH = hashlib.sha256(b"/home/u/tides").hexdigest()
FOLDER = f".gemini/tmp/{HASH}/chats"
FILE = f"{FOLDER}/session-2026-03-14T09-26-aaaa1111.jsonl"
HEADER = {"sessionId": "s-1", "projectHash": HASH, "startTime": "2026-03-14T09:26:40.000Z", "kind": "main"}


def message(id, kind, content, **more):
    return {
        "id": id,
        "timestamp": f"2026-03-14T09:{26 + len(str(id)):02}:00.000Z",
        "type": kind,
        "content": content,
    } | more


def user(id, text, **more):
    return message(id, "user", [{"text": text}], **more)


def gemini(id, text, **more):
    return message(id, "gemini", [{"text": text}], **more)


def of_log(*records, path=FILE, **files):
    lines = b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in (HEADER, *records))
    return read([READER], {path: lines} | files, path)


def texts(conversations):
    return [text for conversation in conversations for _, _, text in shown(conversation)]


def all_rows(conversations, role):
    return [m for conversation in conversations for m in conversation.messages if m.role == role]


# --- replay ---


def test_messages_are_replaced_in_their_place():
    conversations, report = of_log(user("a", "ask"), gemini("b", ""), user("c", "more"), gemini("b", "answer"))
    assert texts(conversations) == ["ask", "answer", "more"]
    assert [m.message_id for m in conversations[0].messages] == ["a", "b", "c"]
    assert not report.skips


def test_what_is_taken_back_stays_off_the_branch():
    conversations, _ = of_log(
        user("a", "one"),
        gemini("b", "two"),
        user("c", "wrong"),
        gemini("d", "no"),
        {"$rewindTo": "c"},
        user("e", "right"),
    )
    assert texts(conversations) == ["one", "two", "right"]
    assert [(m.text, m.branch_active) for m in conversations[0].messages] == [
        *(("one", True), ("two", True), ("wrong", False), ("no", False), ("right", True))
    ]


def test_a_rewind_to_an_unknown_message_takes_back_all():
    conversations, _ = of_log(user("a", "one"), {"$rewindTo": "gone"}, user("b", "two"))
    assert texts(conversations) == ["two"]


def test_a_list_replaces_the_whole_and_an_empty_one_nothing():
    conversations, _ = of_log(
        user("a", "one"),
        gemini("b", "two"),
        {"$set": {"messages": [gemini("b", "two!"), user("c", "three")]}},
        user("d", "four"),
    )
    assert texts(conversations) == ["two!", "three", "four"]
    conversations, _ = of_log(user("a", "one"), {"$set": {"messages": []}}, {"$set": {"messages": None}})
    assert texts(conversations) == ["one"]


def test_head_of_a_session():
    (conversation,), _ = of_log(
        user("a", "ask"),
        gemini("b", "answer", model="gemini-sample"),
        {"$set": {"summary": "Tides", "lastUpdated": "2026-03-15T00:00:00Z"}},
    )
    assert (conversation.conversation_id, conversation.title, conversation.model) == ("s-1", "Tides", "gemini-sample")
    assert conversation.created_at == datetime(2026, 3, 14, 9, 26, 40, tzinfo=UTC)
    assert conversation.updated_at == datetime(2026, 3, 15, tzinfo=UTC)
    assert (conversation.origin, conversation.parent_conversation_id, conversation.project) == ("person", None, None)


@pytest.mark.parametrize(
    ("folder", "beside", "project"),
    [
        (HASH, {f".gemini/tmp/{HASH}/.project_root": b"/home/u/tides\n"}, "/home/u/tides"),
        (
            HASH,
            {".gemini/projects.json": {"projects": {"/home/u/other": "other", "/home/u/tides": "tides"}}},
            "/home/u/tides",
        ),
        ("tides", {".gemini/projects.json": {"projects": {"/home/u/tides": "tides"}}}, "/home/u/tides"),
        ("tides", {}, "tides"),
        ("tides", {".gemini/projects.json": b"{damaged"}, "tides"),
        ("tides", {".gemini/projects.json": {"projects": [1]}}, "tides"),
        ("f" * 64, {}, None),
    ],
)
def test_the_project_is_named_by_files_beside_the_session(folder, beside, project):
    path = f".gemini/tmp/{folder}/chats/session-x.jsonl"
    header = HEADER if folder == HASH else HEADER | {"projectHash": "0" * 64}
    files = {path: "\n".join(map(json.dumps, (header, user("a", "ask"))))} | beside
    assert read([READER], files, path)[0][0].project == project
    nested = f".gemini/tmp/{folder}/chats/s-1/agent-7.jsonl"
    files[nested] = files.pop(path)
    (conversation,), _ = read([READER], files, nested)
    assert (conversation.project, conversation.origin, conversation.parent_conversation_id) == (
        project,
        "subagent",
        "s-1",
    )


# --- rows ---


def test_tools_thoughts_tokens():
    call = {
        "id": "t1",
        "name": "read_file",
        "args": {"path": "tide.txt", "lines": [1, 2]},
        "status": "success",
        "timestamp": "2026-03-14T09:26:44.000Z",
        "result": [{"functionResponse": {"id": "t1", "name": "read_file", "response": {"output": "high\nlow"}}}],
        "resultDisplay": "shown",
    }
    failed = {
        "id": "t2",
        "name": "shell",
        "args": {},
        "status": "cancelled",
        "timestamp": "2026-03-14T10:00:00.000Z",
        "result": None,
    }
    conversations, report = of_log(
        user("a", "ask"),
        gemini(
            "b",
            "answer",
            thoughts=[{"subject": "Plan", "description": "Read it.", "timestamp": "2026-03-14T09:26:43.000Z"}],
            toolCalls=[call, failed],
            tokens={"input": 10, "output": 5, "cached": 2, "thoughts": 3, "total": 18},
            model="gemini-sample",
        ),
        user("c", "")
        | {"content": [{"functionResponse": {"id": "t1", "name": "read_file", "response": {"output": "again"}}}]},
    )
    rows = [(m.role, m.kind, m.text, m.tool_name) for m in conversations[0].messages]
    assert rows == [
        ("user", "text", "ask", None),
        ("thinking", "thinking", "Plan\n\nRead it.", None),
        ("tool", "tool_call", "path: tide.txt\nlines: [1,2]", "read_file"),
        ("tool", "tool_result", "high\nlow", "read_file"),
        ("assistant", "text", "answer", None),
        ("tool", "tool_call", "", "shell"),
        ("tool", "tool_result", "(cancelled)", "shell"),
    ]
    answer = conversations[0].messages[4]
    assert (answer.tokens_in, answer.tokens_out, answer.tokens_cached) == (10, 8, 2)
    assert all(skip.expected for skip in report.skips)


@pytest.mark.parametrize(
    ("result", "display", "text"),
    [
        ([{"functionResponse": {"response": {"error": "no such file"}}}], None, "no such file"),
        (
            [
                {
                    "functionResponse": {
                        "response": {"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AAAA"}]}
                    }
                }
            ],
            None,
            "a",
        ),
        ("plain", None, "plain"),
        (None, {"fileDiff": "-a\n+b", "fileName": "x"}, "-a\n+b"),
        (None, "shown", "shown"),
    ],
)
def test_results_of_tools(result, display, text):
    call = {"id": "t", "name": "n", "args": {}, "status": "success", "result": result, "resultDisplay": display}
    conversations, _ = of_log(user("a", "ask"), gemini("b", "", toolCalls=[call]))
    assert [m.text for m in all_rows(conversations, "tool") if m.kind == "tool_result"] == [text]


INJECTED = "<session_context>\nToday is Friday.\n</session_context>"


@pytest.mark.parametrize(
    ("content", "own", "hidden"),
    [
        ([{"text": INJECTED}], None, 1),
        ([{"text": INJECTED}, {"text": "ask"}], "ask", 1),
        (f"{INJECTED}\n\nask", "ask", 1),
        ("<session_context>never closed", None, 1),
        (f"What is {INJECTED}?", f"What is {INJECTED}?", 0),
        ("This is the Gemini CLI. We are setting up the context for our chat.\nToday's date", None, 1),
        ([{"text": "<state_snapshot>summary</state_snapshot>"}], None, 1),
        ([{"text": "Fix it"}, {"text": "<hook_context>x</hook_context>"}], "Fix it", 1),
        ("a <b> c", "a <b> c", 0),
    ],
)
def test_injected_context_is_never_a_persons_words(content, own, hidden):
    conversations, _ = of_log(message("a", "user", content), gemini("b", "answer"))
    assert texts(conversations) == ([own] if own else []) + ["answer"]
    assert sum(m.hidden_reason is not None for m in conversations[0].messages) == hidden


def test_files_that_were_named_are_attachments_and_their_text_is_not_typed():
    content = [
        {"text": "Explain @src/tide.py "},
        {"text": "\n--- Content from referenced files ---"},
        {"text": "\nContent from @src/tide.py:\n"},
        {"text": "def tide():\n    pass\n"},
        {"text": "\n--- End of content ---"},
    ]
    (conversation,), _ = of_log(
        message("a", "user", content), message("b", "user", content, displayContent="Explain @src/tide.py")
    )
    first, second = conversation.visible_messages()
    assert (first.text.strip(), second.text) == ("Explain @src/tide.py", "Explain @src/tide.py")
    assert [(f.name, f.text) for f in first.attachment] == [("tide.py", "def tide():\n    pass")]
    assert [m.hidden_reason for m in conversation.messages if m.hidden_reason] == ["text sent to the model"]


def test_files_and_other_parts():
    content = [
        {"text": "look"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/tide.pdf"}},
        {"hologram": {"x": 1}},
        {"videoMetadata": {}},
    ]
    conversations, report = of_log(message("a", "user", content), gemini("b", "answer"))
    assert [(f.name, f.type, f.size) for f in conversations[0].messages[0].attachment] == [
        (None, "image/png", 3),
        ("tide.pdf", "application/pdf", None),
    ]
    assert dict(report.unknown) == {"content type:hologram": 1}


def test_notices_are_hidden_and_unknown_types_are_named():
    conversations, report = of_log(
        user("a", "ask"), message("i", "info", "update"), message("e", "error", "quota"), message("n", "novel", "words")
    )
    assert texts(conversations) == ["ask"]
    assert sorted(m.text for m in all_rows(conversations, "system")) == ["quota", "update", "words"]
    assert dict(report.unknown) == {"record type:novel": 1}
    assert [skip.expected for skip in report.skips] == [False]


# --- files ---


@pytest.mark.parametrize("indent", [None, 2])
def test_the_older_object_and_its_log_are_one_conversation(indent):
    messages = [user("a", "ask"), gemini("b", "answer"), gemini("b", "better")]
    value = {**HEADER, "messages": messages, "summary": "Tides"}
    path = FILE.removesuffix("l")
    conversations, report = read([READER], {path: json.dumps(value, indent=indent).encode()}, path)
    by_log, _ = of_log(*messages, {"$set": {"summary": "Tides"}})
    assert [to_record(c) for c in conversations] == [to_record(c) for c in by_log]
    assert not report.skips


@pytest.mark.parametrize("indent", [None, 2])
def test_an_object_that_is_cut_gives_what_is_whole(indent):
    value = {**HEADER, "messages": [user("a", "ask"), gemini("b", "answer"), user("c", "more and more")]}
    path = FILE.removesuffix("l")
    data = json.dumps(value, indent=indent).encode()
    data = data[: data.index(b"and more")]
    conversations, report = read([READER], {path: data}, path)
    assert texts(conversations)[:2] == ["ask", "answer"]
    assert [skip.unit for skip in report.skips if not skip.expected] == ["file", "message"]


def test_damage_in_the_midst_of_an_object_costs_one_message():
    value = {**HEADER, "messages": [user("a", "ask"), gemini("b", "answer"), user("c", "more")]}
    path = FILE.removesuffix("l")
    data = json.dumps(value).encode().replace(b'"gemini"', b'"gem"ini"')
    conversations, report = read([READER], {path: data}, path)
    assert [(c.conversation_id, texts([c])) for c in conversations] == [("s-1", ["ask", "more"])]
    assert [skip.unit for skip in report.skips] == ["file", "message"]


def test_lines_in_a_file_called_json():
    path = FILE.removesuffix("l")
    assert texts(of_log(user("a", "ask"), gemini("b", "answer"), path=path)[0]) == ["ask", "answer"]


def test_damaged_lines_cost_themselves():
    conversations, report = of_log(
        user("a", "ask"), b"\0\0\0\n", b'{"id":"x","type":"gem\n', gemini("b", "an\0swer\ud800"), b"[1]\n"
    )
    assert texts(conversations) == ["ask", "answer\ufffd"]
    assert [(skip.reason, skip.where.rpartition(" ")[2]) for skip in report.skips] == [
        *(("damaged line", "3"), ("damaged line", "4"), ("line is no record", "6"))
    ]


def test_a_saved_chat_and_a_restore_point():
    history = [
        {"role": "user", "parts": [{"text": "This is the Gemini CLI. We are setting up the context for our chat."}]},
        {"role": "model", "parts": [{"text": "Got it. Thanks for the context!"}]},
        {"role": "user", "parts": [{"text": "ask"}]},
        {
            "role": "model",
            "parts": [
                {"thought": True, "text": "hm"},
                {"text": "I look."},
                {"functionCall": {"name": "ls", "args": {}}},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "a b"}}}]},
        {"role": "model", "parts": [{"text": "Two files."}]},
    ]
    path = ".gemini/tmp/tides/checkpoint-before%20fix.json"
    (conversation,), _ = read([READER], {path: {"history": history, "authType": "x"}}, path)
    assert texts([conversation]) == ["ask", "I look.", "Two files."]
    assert [(m.role, m.text) for m in conversation.messages if m.role in ("thinking", "tool")] == [
        *(("thinking", "hm"), ("tool", ""), ("tool", "a b"))
    ]
    assert conversation.title == "before%20fix"
    path = ".gemini/tmp/tides/checkpoints/2026-write_file.json"
    conversations, report = read([READER], {path: {"history": history, "toolCall": {"name": "write_file"}}}, path)
    assert (conversations, [skip.expected for skip in report.skips]) == ([], [True])


def test_the_prompt_history_is_a_side_file():
    path = ".gemini/tmp/tides/logs.json"
    entries = [
        {"sessionId": "s-1", "messageId": n, "type": "user", "message": "ask", "timestamp": "2026-03-14T09:26:40Z"}
        for n in range(3)
    ]
    conversations, report = read([READER], {path: entries}, path)
    assert conversations == []
    assert [(skip.expected, skip.count) for skip in report.skips] == [(True, 3)]


def test_a_session_in_which_nothing_was_said():
    conversations, report = of_log(message("a", "user", [{"text": INJECTED}]), message("i", "info", "hello"))
    assert (conversations, [skip.expected for skip in report.skips]) == ([], [True])


# --- what always holds ---

SAMPLE = [
    HEADER,
    user("a", "first", displayContent=[{"text": "first"}]),
    gemini(
        "b",
        "second",
        thoughts=[{"subject": "s", "description": "d", "timestamp": "2026-03-14T09:26:43.000Z"}],
        toolCalls=[
            {
                "id": "t1",
                "name": "n",
                "args": {"x": 1},
                "status": "success",
                "timestamp": "2026-03-14T09:26:44.000Z",
                "result": [{"functionResponse": {"id": "t1", "name": "n", "response": {"output": "out"}}}],
                "resultDisplay": {"fileDiff": "d"},
            }
        ],
        tokens={"input": 1, "output": 2, "cached": 0, "total": 3},
        model="m",
    ),
    {
        "$set": {
            "summary": "S",
            "messages": [user("a", "first"), gemini("b", "second"), user("q", "q")],
            "lastUpdated": "x",
        }
    },
    {"$rewindTo": "q"},
    message("z", "user", [{"text": "last"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]),
]


def of_values(values):
    member = MemoryMember({FILE: b"".join(json.dumps(value).encode() + b"\n" for value in values)}, FILE)
    report = Report(FILE)
    return list(READER.read(member, report)), report


def test_any_field_of_any_type():
    for path, odd in itertools.product(places(SAMPLE), ODD):
        if path == (5,) or path[:1] == (5,):
            continue
        conversations, _ = of_values(retyped(SAMPLE, path, odd))
        assert "last" in texts(conversations), path


def test_any_field_of_the_older_object():
    value = {**HEADER, "messages": [user("a", "first"), *SAMPLE[2:3], user("z", "last")]}
    path = FILE.removesuffix("l")
    for place, odd in itertools.product(places(value), ODD):
        if place[:2] == ("messages", 2) or place == ("messages",):
            continue
        member = MemoryMember({path: json.dumps(retyped(value, place, odd)).encode()}, path)
        assert "last" in texts(list(READER.read(member, Report(path)))), place


IDS = st.sampled_from("abcdef")
STEPS = st.one_of(
    st.builds(lambda id, text: user(id, text), IDS, st.sampled_from(["x", "y", "z"])),
    st.builds(lambda id: {"$rewindTo": id}, IDS),
    st.builds(
        lambda ids: {"$set": {"messages": [user(id, f"set {id}") for id in ids]}},
        st.lists(IDS, max_size=4, unique=True),
    ),
)


@given(st.lists(STEPS, max_size=25))
@settings(max_examples=150)
def test_the_replay_is_that_of_the_program(steps):
    """Against the plain meaning of the log: an ordered map of messages."""
    state = {}
    ever = set()
    for step in steps:
        if "$rewindTo" in step:
            ids = list(state)
            state = {id: state[id] for id in ids[: ids.index(step["$rewindTo"])]} if step["$rewindTo"] in state else {}
        elif "$set" in step:
            messages = step["$set"]["messages"]
            state = {m["id"]: m["content"][0]["text"] for m in messages} if messages else state
        else:
            state[step["id"]] = step["content"][0]["text"]
        ever |= set(state)
    conversations, _ = of_values([HEADER, *steps])
    rows = conversations[0].messages if conversations else []
    assert [(m.message_id, m.text) for m in rows if m.branch_active] == list(state.items())
    assert {m.message_id for m in rows} == ever


def test_a_long_session_of_rewinds_costs_what_it_is_long():
    steps = [user(f"u{n}", "x") for n in range(5_000)]
    steps += [step for n in range(4_999, 0, -1) for step in ({"$rewindTo": f"u{n}"}, user(f"u{n}", "y"))]
    conversations, _ = of_values([HEADER, *steps])
    assert len(conversations[0].visible_messages()) == 2


def test_no_other_export_is_taken_for_one():
    ours = {"19-gemini-cli-json", "20-gemini-cli-jsonl"}
    for file in FIXTURES.rglob("*"):
        if file.is_file() and file.name != "expected.json":
            name = file.relative_to(FIXTURES).as_posix()
            head = head_of(MemoryMember({name: file.read_bytes()}, name))
            assert READER.detect(head) == (file.relative_to(FIXTURES).parts[0] in ours)


def test_detection_through_the_registry():
    for path, content in export(
        {FILE: json.dumps(HEADER), "a.json": {**HEADER, "messages": [user("a", "x" * 2_000_000)]}}
    ).items():
        assert reader_for(head_of(MemoryMember({path: content}, path))) is READER
