from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import librechat
from palace_pipeline.exports.base import Report
from palace_pipeline.model import Attachment, Citation, Conversation, to_record
from tests.exports.memory_member import MemoryMember, read, shown
from tests.exports.people_damage import ODD, places, retyped

READERS = [librechat.READER]
FILE = "Knots.json"
ROOT = "00000000-0000-0000-0000-000000000000"


def said(id: str, parent: str | None, text: Any, second: int = 0, *, user: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "messageId": id,
        "conversationId": "lc-1",
        "parentMessageId": parent or ROOT,
        "sender": "User" if user else "Sample-4",
        "isCreatedByUser": user,
        "text": text,
        "createdAt": f"2026-03-14T09:{second // 60:02}:{second % 60:02}.000Z",
        "updatedAt": "2026-03-14T10:40:00.000Z",
        "error": False,
        "unfinished": False,
        **more,
    }


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {
        "conversationId": "lc-1",
        "endpoint": "openAI",
        "title": "Knots",
        "exportAt": "10:40:00 GMT+0100 (Central European Standard Time)",
        "branches": True,
        "recursive": False,
        "messages": list(messages),
        **more,
    }


def parse(value: Any) -> tuple[list[Conversation], Report]:
    return read(READERS, {FILE: value}, FILE)


def only(*messages: Any, **more: Any) -> Conversation:
    conversations, _ = parse(chat(*messages, **more))
    assert len(conversations) == 1
    return conversations[0]


def rows(conversation: Conversation) -> list[tuple[str, str, str | None, str]]:
    return [(m.role, m.kind, m.tool_name, m.text) for m in conversation.messages]


def test_a_list_of_messages() -> None:
    conversation = only(said("1", None, "q"), said("2", "1", "a", 5, user=False, model="m"))
    assert conversation.key == ("librechat", "lc-1")
    assert (conversation.title, conversation.model, conversation.created_at) == ("Knots", "m", None)
    assert shown(conversation) == [("user", None, "q"), ("assistant", None, "a")]
    assert conversation.messages[1].created_at == datetime(2026, 3, 14, 9, 0, 5, tzinfo=UTC)
    assert conversation.messages[1].parent_id == "1"


def test_the_newest_leaf_is_the_branch_people_see() -> None:
    conversation = only(
        said("1", None, "q"),
        said("2", "1", "one", 1, user=False),
        said("3", "1", "two", 2, user=False),
        said("4", "2", "more", 9),
    )
    assert [text for _, _, text in shown(conversation)] == ["q", "one", "more"]
    assert [m.text for m in conversation.messages if not m.branch_active] == ["two"]


def tree(*levels: dict[str, Any]) -> dict[str, Any]:
    inner: list[Any] = []
    for level in reversed(levels):
        inner = [{**level, "children": inner}]
    value = chat(recursive=True, messagesTree=inner)
    del value["messages"]
    return value


def test_nested_messages_with_and_without_their_parents() -> None:
    value = tree(said("1", None, "q"), said("2", "1", "a", 1, user=False), said("3", "2", "more", 2))
    assert [text for _, _, text in shown(parse(value)[0][0])] == ["q", "a", "more"]
    for item in (value["messagesTree"][0], value["messagesTree"][0]["children"][0]):
        del item["parentMessageId"]
    assert [text for _, _, text in shown(parse(value)[0][0])] == ["q", "a", "more"]


def test_a_tree_of_five_thousand_messages() -> None:
    """Deeper than any ordinary JSON parser goes."""
    count = 5000
    opened = b"".join(
        b'{"messageId":"%d","isCreatedByUser":%s,"text":"t%d","createdAt":"2026-03-14T%02d:%02d:%02d.000Z","children":['
        % (n, b"true" if n % 2 == 0 else b"false", n, n // 3600, n // 60 % 60, n % 60)
        for n in range(count)
    )
    data = b'{"conversationId":"lc-9","title":"deep","exportAt":"x","messagesTree":[' + opened + b"]}" * count + b"]}"
    [conversation], report = read(READERS, {FILE: data}, FILE)
    assert [m.text for m in conversation.visible_messages()] == [f"t{n}" for n in range(count)]
    assert report.skips == []


CONTENT = [
    {"type": "think", "think": "hm"},
    {"type": "text", "text": "One."},
    {"type": "text", "text": {"value": "Two.", "annotations": []}},
    {"type": "agent_update", "agent_update": {"agentId": "a", "index": 0}},
    {"type": "tool_call", "tool_call": {"id": "t", "name": "search", "args": '{"q": "x"}', "output": "found"}},
    {
        "type": "tool_call",
        "tool_call": {"type": "function", "function": {"name": "f", "arguments": "{}", "output": "r"}},
    },
    {
        "type": "tool_call",
        "tool_call": {
            "type": "code_interpreter",
            "code_interpreter": {"input": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
        },
    },
    {"type": "image_file", "image_file": {"filename": "a.png", "bytes": 9, "file_id": "f"}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
]


def test_parts_of_an_answer() -> None:
    conversation = only(said("1", None, "q"), said("2", "1", "", 1, user=False, content=CONTENT))
    assert rows(conversation)[1:] == [
        ("thinking", "thinking", None, "hm"),
        ("tool", "tool_call", "search", "q: x"),
        ("tool", "tool_result", "search", "found"),
        ("tool", "tool_call", "f", ""),
        ("tool", "tool_result", "f", "r"),
        ("tool", "tool_call", "code_interpreter", "1+1"),
        ("tool", "tool_result", "code_interpreter", "2"),
        ("assistant", "text", None, "One.\n\nTwo."),
    ]
    assert conversation.messages[-1].attachment == [
        Attachment("a.png", "image", 9),
        Attachment(type="image/png", size=3),
    ]


def test_thinking_in_the_text_of_old_versions() -> None:
    text = ":::thinking\nhm\nhm\n:::\n\nYes."
    assert rows(only(said("1", None, "q"), said("2", "1", text, 1, user=False)))[1:] == [
        ("thinking", "thinking", None, "hm\nhm"),
        ("assistant", "text", None, "Yes."),
    ]
    assert only(said("1", None, text)).messages[0].text == text


def test_files_sources_and_tokens() -> None:
    question = said(
        "1",
        None,
        "see",
        files=[{"filename": "a.pdf", "type": "application/pdf", "bytes": 5, "text": "W"}],
        tokenCount=3,
    )
    sources = [{"type": "web_search", "web_search": {"organic": [{"link": "https://a.example", "title": "A"}]}}]
    conversation = only(question, said("2", "1", "x", 1, user=False, attachments=sources, tokenCount=4))
    first, second = conversation.messages
    assert first.attachment == [Attachment("a.pdf", "application/pdf", 5, text="W")]
    assert second.citations == [Citation("https://a.example", "A")]
    assert (first.tokens_in, second.tokens_out) == (3, 4)


def test_failed_answers_are_not_said() -> None:
    conversation = only(said("1", None, "q"), said("2", "1", "boom", 1, user=False, error=True))
    assert shown(conversation) == [("user", None, "q")]
    assert rows(conversation)[1] == ("system", "event", None, "boom")


def test_a_list_without_parents_or_times_is_one_line() -> None:
    bare = [{"sender": "User", "isCreatedByUser": n % 2 == 0, "text": f"t{n}"} for n in range(4)]
    assert [text for _, _, text in shown(only(*bare))] == ["t0", "t1", "t2", "t3"]


def test_one_message_that_is_no_list() -> None:
    assert shown(parse(chat() | {"messages": said("1", None, "q")})[0][0]) == [("user", None, "q")]


def test_of_a_message_that_stands_twice_the_one_with_content_counts() -> None:
    conversation = only(said("1", None, "q"), said("2", "1", "a", 1, user=False), said("2", "1", "", 1, user=False))
    assert [text for _, _, text in shown(conversation)] == ["q", "a"]


def test_empty_chats_odd_messages_and_unknown_parts_are_counted() -> None:
    assert [(s.reason, s.expected) for s in parse(chat())[1].skips] == [("empty conversation", True)]
    odd = said("3", "1", "", 2, user=False, content=[{"type": "hologram", "x": 1}])
    conversations, report = parse(chat(None, "x", said("1", None, "q"), said("2", "1", "", 1, user=False), odd))
    assert len(conversations) == 1
    assert sorted((skip.reason, skip.expected) for skip in report.skips) == [
        ("empty message", True),
        ("empty message", True),
        ("not a message", False),
        ("null in place of a message", True),
        ("unknown kind of content", False),
    ]
    assert report.unknown == {"content:hologram": 1}


def test_text_of_an_unknown_form_is_said() -> None:
    for odd in (
        {"text": {"x": [["lost"]]}},
        {"content": [{"type": "text", "text": [["lost"]]}]},
        {"content": {"x": 1}},
    ):
        _, report = parse(chat(said("1", None, "q"), {**said("2", "1", "", 1, user=False), **odd}))
        assert any(not skip.expected for skip in report.skips)


def test_cycles_end() -> None:
    conversation = only(said("1", "2", "q"), said("2", "1", "a", 1, user=False))
    assert {text for _, _, text in shown(conversation)} == {"q", "a"}


SAMPLE = chat(
    said("1", None, "q", files=[{"filename": "a"}]),
    said(
        "2",
        "1",
        "",
        1,
        user=False,
        content=CONTENT,
        attachments=[{"web_search": {"organic": [{"link": "https://a.example"}]}}],
    ),
    said("3", "2", "more", 2),
    options={"model": "m"},
)


@given(st.sampled_from([*places(SAMPLE)]), st.sampled_from(ODD))
@settings(max_examples=120, deadline=None)
def test_a_wrong_type_anywhere_is_no_crash(place: tuple[Any, ...], odd: Any) -> None:
    report = Report(FILE)
    member = MemoryMember({FILE: b""}, FILE)
    found = list(librechat.READER.read_element(retyped(SAMPLE, place, odd), member, "", report))
    for conversation in found:
        to_record(conversation)
    if place[:1] == ("messages",) and len(place) > 1 and place[1] != 2:
        assert any(m.text == "more" for c in found for m in c.messages)


def test_reading_twice_gives_the_same() -> None:
    assert to_record(parse(SAMPLE)[0][0]) == to_record(parse(SAMPLE)[0][0])
