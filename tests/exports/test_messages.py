from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import messages
from palace_pipeline.exports.base import Head, Report
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.turns import ROLES, is_turn, messages_of
from palace_pipeline.model import Citation, Conversation, Message, from_record, to_record
from tests.exports.memory_member import MemoryMember, export, read, shown

READERS = list(messages.READERS)


def turn(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def all_of(content: Any, path: str = "chat.json") -> list[Conversation]:
    return read(READERS, {path: content}, path)[0]


def one(content: Any, path: str = "chat.json") -> Conversation:
    conversations = all_of(content, path)
    assert len(conversations) == 1
    return conversations[0]


def lines(*values: Any) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def rows(*turns: Any) -> list[Message]:
    return list(messages_of(((str(n), t) for n, t in enumerate(turns)), Report("x")))


TALK = [turn("human", "Welcher Knoten?"), turn("ai", {"text": "Ein Webeleinstek."}), turn("user", ["谢谢 ⚓"])]
SAID = [("user", None, "Welcher Knoten?"), ("assistant", None, "Ein Webeleinstek."), ("user", None, "谢谢 ⚓")]


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (TALK, "chat.json"),
        (lines(*TALK), "chat.jsonl"),
        ({"messages": TALK}, "chat.json"),
        ({"chat_messages": TALK}, "chat.json"),
        ([{"messages": TALK}], "chat.json"),
        ({"conversations": [{"messages": TALK}]}, "chat.json"),
        (lines({"messages": TALK}), "chat.jsonl"),
        ([TALK], "chat.json"),
        ({"conversations": [{"from": t["role"], "value": t["content"]} for t in TALK]}, "chat.json"),
        ([{"conversations": [{"from": t["role"], "value": t["content"]} for t in TALK]}], "chat.json"),
        (json.dumps(TALK, indent=1).encode("utf-8-sig"), "chat.json"),
    ],
)
def test_all_shapes_of_the_same_talk(content: Any, path: str) -> None:
    conversation = one(content, path)
    assert shown(conversation) == SAID
    assert (conversation.provider, conversation.title, conversation.created_at) == ("sharegpt", None, None)
    assert {m.created_at for m in conversation.messages} == {None}


def test_one_message_is_a_conversation_and_an_empty_one_is_none() -> None:
    assert shown(one([turn("user", "only a question")])) == [("user", None, "only a question")]
    conversations, report = read(READERS, {"c.json": [turn("user", ""), turn("assistant", None)]}, "c.json")
    assert conversations == []
    assert [(s.reason, s.expected) for s in report.skips] == [
        ("empty message", True),
        ("empty message", True),
        ("no messages", True),
    ]


def test_ids_titles_and_times_are_kept() -> None:
    conversation = one(
        [{"id": 7, "title": "Knots", "created_at": 1773480400, "model": "m-1", "messages": [
            turn("user", "q", id="a", timestamp="2026-03-14T09:26:40Z"),
            turn("assistant", "a", id="b", timestamp="2026-03-14 10:27:00", model="m-2"),
        ]}]
    )  # fmt: skip
    assert (conversation.conversation_id, conversation.title, conversation.model) == ("7", "Knots", "m-1")
    assert conversation.created_at == datetime(2026, 3, 14, 9, 26, 40, tzinfo=UTC)
    assert [(m.message_id, m.created_at, m.local_time) for m in conversation.messages] == [
        ("a", datetime(2026, 3, 14, 9, 26, 40, tzinfo=UTC), None),
        ("b", None, "2026-03-14T10:27:00"),
    ]


def test_a_chat_without_id_keeps_the_one_it_gets_when_it_grows() -> None:
    grown = one([*TALK, turn("assistant", "gern")])
    assert one(TALK).conversation_id == grown.conversation_id
    assert one([turn("system", "be brief"), *TALK]).conversation_id == grown.conversation_id
    assert one(TALK, "other.json").conversation_id != grown.conversation_id
    assert one({"messages": TALK}).conversation_id == one({"messages": [*TALK, turn("ai", "x")]}).conversation_id


def test_chats_of_a_data_set_that_begin_alike_stay_apart() -> None:
    begin = [turn("system", "same for all"), turn("user", "hi"), turn("assistant", "Hello!")]
    first, second = ({"messages": [*begin, turn("user", question)]} for question in ("a", "b"))
    conversations = all_of(lines(first, second), "set.jsonl")
    assert len({conversation.conversation_id for conversation in conversations}) == 2
    moved = all_of(lines(second, first), "set.jsonl")
    assert {c.conversation_id for c in moved} == {c.conversation_id for c in conversations}


def test_tools_thinking_and_files_stand_beside_the_text() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "see", "arguments": '{"x":1}'}}
    conversation = one(
        [
            turn("developer", "secret prompt"),
            turn("user", [
                {"type": "text", "text": "Look"},
                {"type": "image_url", "image_url": {"url": "https://example.invalid/a%20b.png?sig=1"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
            ]),
            turn("assistant", None, tool_calls=[call], reasoning_content="let me see"),
            turn("tool", "a pier", tool_call_id="c1"),
            turn("assistant", [
                {"type": "thinking", "thinking": "so it is"},
                {"type": "text", "text": "A pier."},
                {"type": "tool_use", "id": "t", "name": "draw", "input": {"y": 2}},
            ]),
        ]
    )  # fmt: skip
    assert [(m.role, m.kind, m.text, m.tool_name) for m in conversation.messages] == [
        ("system", "system", "secret prompt", None),
        ("user", "text", "Look", None),
        ("thinking", "thinking", "let me see", None),
        ("tool", "tool_call", '{"x":1}', "see"),
        ("tool", "tool_result", "a pier", "see"),
        ("thinking", "thinking", "so it is", None),
        ("assistant", "text", "A pier.", None),
        ("tool", "tool_call", '{"y":2}', "draw"),
    ]
    files = conversation.messages[1].attachment
    assert [(f.name, f.type) for f in files] == [("a b.png", "image"), (None, "audio"), (None, "image/png")]
    assert "iVBORw0KGgo" not in repr(conversation)


def test_sharegpt_tools() -> None:
    talk = [("human", "weather?"), ("function_call", '{"name":"w"}'), ("observation", "sunny"), ("gpt", "Sunny.")]
    conversation = one([{"id": "x", "conversations": [{"from": who, "value": what} for who, what in talk]}])
    assert [(m.role, m.kind, m.text) for m in conversation.messages] == [
        ("user", "text", "weather?"),
        ("tool", "tool_call", '{"name":"w"}'),
        ("tool", "tool_result", "sunny"),
        ("assistant", "text", "Sunny."),
    ]


def test_an_image_alone_is_a_message() -> None:
    (row,) = rows(turn("user", [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]))
    assert (row.kind, row.text, len(row.attachment)) == ("attachment", "", 1)


def test_parts_are_joined_by_a_blank_line_and_citations_kept() -> None:
    note = {"type": "url_citation", "url_citation": {"url": "https://example.invalid/s", "title": "S"}}
    (row,) = rows(turn("assistant", ["a", {"type": "output_text", "text": "b\r\nc", "annotations": [note]}, None, ""]))
    assert row.text == "a\n\nb\nc"
    assert row.citations == [Citation("https://example.invalid/s", "S")]


def test_a_turn_of_nobody_known_is_kept_beside_and_reported() -> None:
    conversations, report = read(READERS, {"c.json": [*TALK * 3, turn("critic", "weak")]}, "c.json")
    assert shown(conversations[0]) == SAID * 3
    odd = conversations[0].messages[-1]
    assert (odd.role, odd.speaker, odd.text, odd.visible) == ("system", "critic", "weak", False)
    assert report.unknown == {"role:critic": 1}


def test_an_unknown_block_is_reported_and_its_text_kept() -> None:
    report = Report("x")
    blocks = [{"type": "brand_new", "text": "kept"}, {"type": "other_new", "x": 1}]
    (row,) = messages_of([("0", turn("user", blocks))], report)
    assert row.text == "kept"
    assert report.unknown == {"content type:brand_new": 1, "content type:other_new": 1}


def test_damage_takes_only_its_own_line() -> None:
    text = lines(TALK[0]) + "this line is not JSON\n" + lines(*TALK[1:])
    conversations, report = read(READERS, {"c.jsonl": text}, "c.jsonl")
    assert shown(conversations[0]) == SAID
    assert [(s.reason, s.where, s.expected) for s in report.skips] == [("damaged JSON", "c.jsonl: line 2", False)]


@pytest.mark.parametrize(
    "value",
    [
        {"theme": "dark", "role": "admin", "messages": {"welcome": "hello", "user": "name"}},
        {"role": "admin", "content": "x"},
        [{"role": "admin", "content": "x"}],
        [{"role": "user", "name": "Bob", "email": "b@example.invalid"}],
        [{"from": "Alice", "value": "5"}, {"from": "Bob", "value": "6"}],
        [{"id": 1}],
        [1, 2],
        {"messages": []},
        {"messages": [{"text": "no role"}]},
        {"conversations": [{"from": "Alice", "value": "5"}]},
        [{"type": "message", "user": "U1", "text": "slack"}],
    ],
)
def test_what_is_no_chat_is_not_taken(value: Any) -> None:
    member = MemoryMember(export({"s.json": value}), "s.json")
    head = head_of(member)
    assert not any(reader.detect(head) for reader in READERS)


def test_shapes_that_are_no_json_are_left_to_others() -> None:
    assert not any(reader.detect(Head("a.txt", "text", text="user: hi")) for reader in READERS)


def test_an_empty_conversation_among_others_is_counted() -> None:
    content = [{"id": "a", "conversations": []}, {"id": "b", "conversations": [{"from": "human", "value": "hi"}]}]
    conversations, report = read(READERS, {"c.json": content}, "c.json")
    assert [c.conversation_id for c in conversations] == ["b"]
    assert [(s.reason, s.expected, s.unit) for s in report.skips] == [("no messages", True, "conversation")]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_BLOCK_KEYS = "type text value content parts thinking input name source image_url file tool_use_id annotations refusal"
_TYPES = "text thinking tool_use tool_result image image_url refusal input_audio file output_text brand_new"
_BLOCK = st.dictionaries(st.sampled_from(_BLOCK_KEYS.split()), _JSON | st.sampled_from(_TYPES.split()), max_size=4)
_TURN = st.fixed_dictionaries(
    {"role": st.sampled_from([*ROLES, "critic"]) | _JSON},
    optional={
        "content": _JSON | _BLOCK | st.lists(_BLOCK, max_size=3),
        "tool_calls": _JSON | st.lists(st.fixed_dictionaries({"id": _JSON, "function": _JSON}), max_size=2),
        "timestamp": _JSON,
        "id": _JSON,
        "name": _JSON,
        "model": _JSON,
        "tool_call_id": _JSON,
    },
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_TURN | _JSON, max_size=4))
def test_no_turn_is_odd_enough_to_stop_a_file(odd: list[Any]) -> None:
    found = rows(turn("user", "first"), *odd, turn("user", "last"))
    assert (found[0].text, found[-1].text) == ("first", "last")
    conversation = Conversation("sharegpt", "x", found)
    assert from_record(to_record(conversation)).messages == found


@settings(max_examples=100, deadline=None)
@given(_JSON)
def test_any_value_is_a_turn_or_not(value: Any) -> None:
    assert is_turn(value) in (True, False) if isinstance(value, dict) else True


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(min_size=1, max_size=20)), min_size=1))
def test_what_was_said_comes_back_in_order(talk: list[tuple[str, str]]) -> None:
    from palace_pipeline.exports.text import clean_text

    found = rows(*(turn(role, text) for role, text in talk))
    assert [(m.role, m.text) for m in found] == [(r, clean_text(t).strip()) for r, t in talk if clean_text(t).strip()]
