"""Google AI Studio prompts, and Gemini's chats in Workspace."""

import itertools
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.gemini_conversation import READER as WORKSPACE
from palace_pipeline.exports.google_ai_studio import READER
from palace_pipeline.exports.registry import reader_for
from tests.exports.memory_member import MemoryMember, read, shown
from tests.exports.people_damage import ODD, places, retyped

FIXTURES = Path(__file__).parent.parent / "fixtures" / "exports"
FILE = "Google AI Studio/Lamp 灯"


def prompt(*chunks, **more):
    return {
        "runSettings": {"model": "models/gemini-sample"},
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "chunkedPrompt": {"chunks": list(chunks), "pendingInputs": [{"text": "unsent", "role": "user"}]},
    } | more


def of_chunks(*chunks, path=FILE, **more):
    conversations, report = read([READER], {path: prompt(*chunks, **more)}, path)
    return conversations[0] if conversations else None, report


def user(text, **more):
    return {"role": "user", "text": text, "tokenCount": 5} | more


def model(text, **more):
    return {"role": "model", "text": text, "finishReason": "STOP", "tokenCount": 7} | more


def visible(conversation):
    return [(role, text) for role, _, text in shown(conversation)]


def test_a_prompt():
    conversation, report = of_chunks(
        user("ask"),
        model("hm", isThought=True, parts=[{"text": "hm", "thought": True}]),
        model("About 40 m.", parts=[{"text": "About "}, {"text": "40 m."}]),
    )
    assert visible(conversation) == [("user", "ask"), ("assistant", "About 40 m.")]
    assert [(m.role, m.text, m.hidden_reason) for m in conversation.messages if not m.visible] == [
        ("system", "Be brief.", "system instruction"),
        ("thinking", "hm", None),
        ("user", "unsent", "not sent"),
    ]
    assert (conversation.title, conversation.model) == ("Lamp 灯", "gemini-sample")
    ask, answer = conversation.visible_messages()
    assert (ask.tokens_in, answer.tokens_out, answer.model) == (5, 7, "gemini-sample")
    assert not report.skips


@pytest.mark.parametrize(
    ("chunk", "texts", "thoughts"),
    [
        (model("answer", parts=[{"text": "hm", "thought": True}, {"text": "answer"}]), ["answer"], ["hm"]),
        (model("", parts=[{"text": "answer"}]), ["answer"], []),
        (model("hm", parts=[{"text": "hm", "thought": True}]), [], ["hm"]),
        (model("hm", isThought=True), [], ["hm"]),
        (model("", isThought=True, parts=[{"text": "h"}, {"text": "m"}]), [], ["hm"]),
        (model("a\n\nb"), ["a\n\nb"], []),
    ],
)
def test_text_parts_and_thoughts_say_things_once(chunk, texts, thoughts):
    conversation, _ = of_chunks(user("ask"), chunk)
    assert [text for role, text in visible(conversation) if role == "assistant"] == texts
    assert [m.text for m in conversation.messages if m.role == "thinking"] == thoughts


@pytest.mark.parametrize(
    ("chunks", "want"),
    [
        (["file", "ask", "answer"], [("ask", 1), ("answer", 0)]),
        (["ask", "file", "answer"], [("ask", 1), ("answer", 0)]),
        (["file", "file", "ask"], [("ask", 2)]),
        (["ask", "answer", "file", "ask"], [("ask", 0), ("answer", 0), ("ask", 1)]),
        (["ask", "answer", "file", "answer"], [("ask", 0), ("answer", 0), ("", 1), ("answer", 0)]),
        (["file"], [("", 1)]),
    ],
)
def test_files_go_to_the_words_they_were_sent_with(chunks, want):
    file = {"role": "user", "driveImage": {"id": "drive-id"}, "tokenCount": 258}
    conversation, _ = of_chunks(
        *({"file": file, "ask": user("ask"), "answer": model("answer")}[name] for name in chunks)
    )
    assert [(m.text, len(m.attachment)) for m in conversation.visible_messages()] == want


def test_kinds_of_files_code_and_sources():
    conversation, report = of_chunks(
        user("", driveDocument={"id": "1"}),
        user("", inlineFile={"mimeType": "text/plain", "data": "AAAA"}),
        user("", youtubeVideo={"id": "v"}),
        user("ask"),
        model("", executableCode={"language": "PYTHON", "code": "print(1)"}),
        model("", codeExecutionResult={"outcome": "OUTCOME_OK", "output": "1"}),
        model("answer", grounding={"groundingSources": [{"uri": "https://x.test", "title": "X"}, {"uri": None}]}),
        model("", inlineImage={"mimeType": "image/png", "data": "AAAA"}),
        model("", errorMessage="quota"),
    )
    messages = conversation.visible_messages()
    assert [(f.type, f.size) for f in messages[0].attachment] == [
        ("document", None),
        ("text/plain", 3),
        ("video", None),
    ]
    assert [(m.role, m.kind, m.text) for m in messages] == [
        *(("user", "text", "ask"), ("assistant", "text", "answer"), ("assistant", "image", ""))
    ]
    assert [(m.kind, m.text) for m in conversation.messages if m.role == "tool"] == [
        *(("tool_call", "print(1)"), ("tool_result", "1"))
    ]
    assert [(c.url, c.title) for c in messages[1].citations] == [("https://x.test", "X")]
    assert not report.skips


def test_times_and_identity():
    stamped = [user("ask", createTime="2026-03-14T10:00:00.5Z"), model("answer", createTime="2026-03-14T10:00:01Z")]
    dated, _ = of_chunks(*stamped)
    assert dated.messages[1].created_at == datetime(2026, 3, 14, 10, 0, 0, 500_000, tzinfo=UTC)
    renamed, _ = of_chunks(*stamped, user("more"), path="Renamed")
    assert dated.conversation_id == renamed.conversation_id
    assert {m.message_id for m in dated.messages} < {m.message_id for m in renamed.messages}
    bare = of_chunks(user("hi"))[0].conversation_id
    assert bare != of_chunks(user("hi"), path="Other")[0].conversation_id
    assert bare == of_chunks(user("hi"), model("hello"))[0].conversation_id
    assert of_chunks(user("hi"))[0].messages[1].created_at is None


def test_prompts_that_were_never_run_and_strange_roles():
    conversation, report = of_chunks()
    assert (conversation, [skip.expected for skip in report.skips]) == (None, [True])
    conversation, report = of_chunks(user("ask"), {"role": "narrator", "text": "words"}, None, 7)
    assert visible(conversation) == [("user", "ask")]
    assert [m.text for m in conversation.messages if m.hidden_reason == "unknown role"] == ["words"]
    assert sorted(skip.expected for skip in report.skips) == [False, False, True]
    assert dict(report.unknown) == {"role:narrator": 1}


def test_a_bare_list_of_chunks_keeps_thoughts_apart():
    chunks = [user("ask"), model("hm", isThought=True), model("answer", isThought=False)]
    assert reader_for(head_of(MemoryMember({"a.json": json.dumps(chunks).encode()}, "a.json"))) is READER
    (conversation,), _ = read([READER], {"a.json": chunks}, "a.json")
    assert (visible(conversation), conversation.title) == ([("user", "ask"), ("assistant", "answer")], "a")


@pytest.mark.parametrize(
    ("change", "want"),
    [
        (lambda data: data[: data.index(b"third")], ["first", "second"]),
        (lambda data: data.replace(b'"second"', b'"sec"ond"'), ["first", "third"]),
        (lambda data: data[:-1], ["first", "second", "third"]),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_damage_costs_what_it_hits(change, want, indent):
    data = change(json.dumps(prompt(user("first"), model("second"), user("third")), indent=indent).encode())
    report = Report(FILE)
    (conversation,) = READER.read(MemoryMember({FILE: data}, FILE), report)
    assert [m.text for m in conversation.visible_messages()] == want
    assert any(not skip.expected for skip in report.skips)


def test_a_large_prompt_is_known_by_its_beginning():
    big = prompt(user("", inlineImage={"mimeType": "image/png", "data": "A" * 3_000_000}), user("ask"))
    assert reader_for(head_of(MemoryMember({FILE: json.dumps(big).encode()}, FILE))) is READER


SAMPLE = prompt(
    user("first", createTime="2026-03-14T10:00:00Z"),
    user("", driveImage={"id": "x"}),
    model("hm", isThought=True, parts=[{"text": "hm", "thought": True}]),
    model(
        "second",
        parts=[{"text": "second"}, {"functionCall": {"name": "f", "args": {}}}],
        grounding={"groundingSources": [{"uri": "https://x.test", "title": "t"}]},
        executableCode={"language": "PYTHON", "code": "1"},
        branchParent={"promptId": "p", "displayName": "d"},
    ),
    user("last"),
)


def test_any_field_of_any_type():
    for path, odd in itertools.product(places(SAMPLE), ODD):
        if path in (("chunkedPrompt",), ("chunkedPrompt", "chunks")) or path[:3] == ("chunkedPrompt", "chunks", 4):
            continue
        member = MemoryMember({FILE: json.dumps(retyped(SAMPLE, path, odd)).encode()}, FILE)
        conversations = list(READER.read(member, Report(FILE)))
        assert ("user", "last") in visible(conversations[0]), path


WORDS = st.text(st.characters(categories=["L"]), min_size=1, max_size=5)


@given(st.lists(st.tuples(st.sampled_from(["user", "model", "thought"]), WORDS), min_size=1, max_size=12))
def test_every_chunk_is_told_once_and_in_order(spoken):
    chunks = [
        user(text) if who == "user" else model(text, isThought=who == "thought", parts=[{"text": text}])
        for who, text in spoken
    ]
    conversation, _ = of_chunks(*chunks)
    rows = [(m.role, m.text) for m in conversation.messages[1:-1]] if conversation else []
    roles = {"user": "user", "model": "assistant", "thought": "thinking"}
    if any(who != "thought" for who, _ in spoken):
        assert rows == [(roles[who], text) for who, text in spoken]


def test_no_other_export_is_taken_for_one():
    for file in FIXTURES.rglob("*"):
        if file.is_file() and file.name != "expected.json":
            name = file.relative_to(FIXTURES).as_posix()
            head = head_of(MemoryMember({name: file.read_bytes()}, name))
            assert READER.detect(head) == name.startswith("41-google-ai-studio/")
            assert not WORKSPACE.detect(head)


# --- Gemini in Workspace ---

CHAT = {
    "title": "Tides",
    "creation_time": "2026-03-14T10:00:00Z",
    "last_modification_time": "2026-03-14T10:05:00Z",
    "conversation_turns": [
        {"user_turn": {"prompt": "first", "turn_index": 0, "turn_last_modified": "2026-03-14T10:00:00Z"}},
        {
            "system_turn": {
                "text": [{"data": "rejected"}],
                "turn_index": 1,
                "turn_last_modified": "2026-03-14T10:00:05Z",
            }
        },
        {
            "system_turn": {
                "text": [{"data": "answer"}, {"cards": [{"content": "card"}]}],
                "images": ["conversation_1_turn_1_images_0"],
                "model_thoughts": [{"headline": "Plan", "description": "Look."}],
                "turn_index": 1,
                "turn_last_modified": "2026-03-14T10:00:09Z",
            }
        },
        {"user_turn": {"prompt": "gone", "turn_index": 2, "turn_deleted_time": "2026-03-14T10:02:00Z"}},
        {"user_turn": {"prompt": "last", "turn_index": 4, "turn_last_modified": "2026-03-14T10:04:00Z"}},
    ],
}
CHAT_FILE = "Takeout/Gemini/Conversation History/conversation_1.txt"


def test_a_workspace_chat():
    (conversation,), report = read([WORKSPACE], {CHAT_FILE: CHAT}, CHAT_FILE)
    assert visible(conversation) == [("user", "first"), ("assistant", "answer\n\ncard"), ("user", "last")]
    assert [(m.role, m.text, m.branch_active) for m in conversation.messages if not m.visible] == [
        *(("assistant", "rejected", False), ("thinking", "Plan\n\nLook.", True), ("user", "gone", False))
    ]
    assert [f.name for f in conversation.visible_messages()[1].attachment] == ["conversation_1_turn_1_images_0"]
    assert (conversation.provider, conversation.title) == ("gemini", "Tides")
    assert not report.skips
    other = "Takeout/Gemini/Conversation History/conversation_9.txt"
    assert read([WORKSPACE], {other: CHAT}, other)[0][0].conversation_id == conversation.conversation_id
    assert reader_for(head_of(MemoryMember({CHAT_FILE: json.dumps(CHAT).encode()}, CHAT_FILE))) is WORKSPACE


def test_any_field_of_a_workspace_chat():
    for path, odd in itertools.product(places(CHAT), ODD):
        if path == ("conversation_turns",) or path[:2] == ("conversation_turns", 4):
            continue
        report = Report(CHAT_FILE)
        value = json.loads(json.dumps(retyped(CHAT, path, odd)))
        conversations = list(WORKSPACE.read_element(value, MemoryMember({}, CHAT_FILE), "", report))
        assert ("user", "last") in visible(conversations[0]), path
