from __future__ import annotations

import html
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import open_webui
from palace_pipeline.exports.base import Report
from palace_pipeline.model import Attachment, Citation, Conversation, Message, to_record
from tests.exports.memory_member import read, shown
from tests.exports.people_damage import ODD, places, retyped

READERS = [open_webui.READER]
FILE = "chat-export-1773480400000.json"
NOW = 1773480400


def said(id: str, parent: str | None, role: str, content: Any, second: int = 0, **more: Any) -> dict[str, Any]:
    stamp = NOW + second
    return {
        "id": id,
        "parentId": parent,
        "childrenIds": [],
        "role": role,
        "content": content,
        "timestamp": stamp,
        **more,
    }


def chat(*messages: dict[str, Any], current: Any = None, id: str = "ow-1", **more: Any) -> dict[str, Any]:
    history = {
        "messages": {m["id"]: m for m in messages},
        "currentId": current or (messages[-1]["id"] if messages else None),
    }
    inner = {
        "id": "",
        "title": "T",
        "models": ["m1"],
        "history": history,
        "messages": [],
        "timestamp": NOW * 1000,
        **more,
    }
    return {"id": id, "user_id": "u", "title": "T", "chat": inner, "created_at": NOW, "updated_at": NOW + 60}


def parse(value: Any) -> tuple[list[Conversation], Report]:
    return read(READERS, {FILE: value}, FILE)


def only(*messages: dict[str, Any], **more: Any) -> Conversation:
    conversations, _ = parse([chat(*messages, **more)])
    assert len(conversations) == 1
    return conversations[0]


def answer(content: Any, **more: Any) -> list[Message]:
    """Rows of an answer."""
    conversation = only(said("u", None, "user", "q"), said("a", "u", "assistant", content, 1, **more))
    return [m for m in conversation.messages if m.message_id.startswith("a")]


def rows(messages: list[Message]) -> list[tuple[str, str, str | None, str]]:
    return [(m.role, m.kind, m.tool_name, m.text) for m in messages]


def test_the_branch_that_was_open_by_parents_only() -> None:
    conversation = only(
        said("u1", None, "user", "q1", 0, childrenIds=["a1", "a2"]),
        said("a1", "u1", "assistant", "one", 1, model="m1"),
        said("a2", "u1", "assistant", "two", 2, model="m2"),
        said("u2", "a1", "user", "q2", 3),
        current="u2",
    )
    assert conversation.key == ("open-webui", "ow-1")
    assert [text for _, _, text in shown(conversation)] == ["q1", "one", "q2"]
    assert [m.text for m in conversation.messages if not m.branch_active] == ["two"]
    assert (conversation.account, conversation.title, conversation.model) == ("u", "T", "m1")
    assert conversation.created_at == datetime(2026, 3, 14, 9, 26, 40, tzinfo=UTC)
    assert conversation.messages[1].created_at == datetime(2026, 3, 14, 9, 26, 41, tzinfo=UTC)


def test_without_a_known_place_it_is_the_newest_leaf_that_says_something() -> None:
    orphan = {"id": "x", "content": "ORPHAN", "timestamp": NOW + 99}
    for current in ("gone", 5, None):
        conversation = only(
            said("u", None, "user", "q"),
            said("a", "u", "assistant", "old", 1),
            said("b", "u", "assistant", "new", 2),
            orphan,
            current=current,
        )
        assert [text for _, _, text in shown(conversation)] == ["q", "new"]
    strangers = [m for m in conversation.messages if m.text == "ORPHAN"]
    assert [(m.role, m.hidden_reason, m.branch_active) for m in strangers] == [("system", "unknown role", False)]


def test_bare_chats_of_old_versions_and_flat_lists() -> None:
    bare = chat(said("u", None, "user", "q"))["chat"]
    [conversation], _ = parse([bare])
    assert conversation.created_at == datetime(2026, 3, 14, 9, 26, 40, tzinfo=UTC)
    flat = {"title": "flat", "models": ["m"], "history": {"messages": {}, "currentId": None}}
    flat["messages"] = [{"id": "1", "role": "user", "content": "q"}, {"id": "2", "role": "assistant", "content": "a"}]
    [conversation], _ = parse([{"id": "x", "user_id": "u", "chat": flat}])
    assert [text for _, _, text in shown(conversation)] == ["q", "a"]
    assert shown(parse(chat(said("u", None, "user", "q")))[0][0]) == [("user", None, "q")]


def test_a_chat_without_an_id_gets_one_that_stays_when_it_grows() -> None:
    first, more = said("u", None, "user", "q"), said("a", "u", "assistant", "x", 1)
    keys = {parse([chat(*messages)["chat"]])[0][0].key for messages in ([first], [first, more])}
    assert len(keys) == 1


def details(kind: str, body: str, **attributes: str) -> str:
    written = "".join(f' {name}="{html.escape(value)}"' for name, value in attributes.items())
    return f'<details type="{kind}" done="true"{written}>\n<summary>Summary</summary>\n{body}\n</details>\n'


CALL = json.dumps(json.dumps({"city": "Brest", "quote": 'a "b" & <c>'}))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            details("reasoning", "&gt; first\n&gt; a &lt; b", duration="3") + "255",
            [("thinking", "thinking", None, "first\na < b"), ("assistant", "text", None, "255")],
        ),
        (
            "Before.\n" + details("tool_calls", "", id="c", name="weather", arguments=CALL, result='"18C"') + "After.",
            [
                ("tool", "tool_call", "weather", 'city: Brest\nquote: a "b" & <c>'),
                ("tool", "tool_result", "weather", "18C"),
                ("assistant", "text", None, "Before.\n\nAfter."),
            ],
        ),
        (
            details("tool_calls", "```json\n{}\n```", name="x") + "Done.",
            [
                ("tool", "tool_call", "x", ""),
                ("tool", "tool_result", "x", "```json\n{}\n```"),
                ("assistant", "text", None, "Done."),
            ],
        ),
        (
            details("code_interpreter", "```python\nprint(1)\n```", output='{"stdout": "1"}') + "One.",
            [
                ("tool", "tool_call", "code_interpreter", "print(1)"),
                ("tool", "tool_result", "code_interpreter", "stdout: 1"),
                ("assistant", "text", None, "One."),
            ],
        ),
        (
            "<think>hm\nhm</think>\n\nYes.",
            [("thinking", "thinking", None, "hm\nhm"), ("assistant", "text", None, "Yes.")],
        ),
        (
            '<details type="reasoning" done="false">\n<summary>Thinking…</summary>\n> cut\n> off',
            [("thinking", "thinking", None, "cut\noff")],
        ),
    ],
)
def test_markup_of_an_answer_is_taken_apart(content: str, expected: list[tuple[str, str, str | None, str]]) -> None:
    assert rows(answer(content)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "<details><summary>Spoiler</summary>secret</details>",
        '```html\n<details type="reasoning">\n<summary>x</summary>\n</details>\n```',
        'Write `<details type="reasoning">` around it.',
    ],
)
def test_other_markup_is_text(text: str) -> None:
    assert rows(answer(text)) == [("assistant", "text", None, text)]


def test_markup_that_a_person_typed_is_what_they_said() -> None:
    typed = details("reasoning", "> plan").strip()
    assert only(said("u", None, "user", typed)).messages[0].text == typed


OUTPUT = [
    {"type": "reasoning", "content": [{"type": "output_text", "text": "think hard"}], "summary": None},
    {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city":"Brest"}'},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "18C"}]},
    {"type": "open_webui:code_interpreter", "id": "k", "code": "print(1)", "output": {"stdout": "1"}},
    {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "x"}},
    {"type": "image_generation_call", "result": "AAAA"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]},
]
STEPS = [
    ("thinking", "thinking", None, "think hard"),
    ("tool", "tool_call", "get_weather", "city: Brest"),
    ("tool", "tool_result", "get_weather", "18C"),
    ("tool", "tool_call", "code_interpreter", "print(1)"),
    ("tool", "tool_result", "code_interpreter", "1"),
    ("tool", "tool_call", "web_search", "type: search\nquery: x"),
]


def test_the_structured_copy_does_not_double_anything() -> None:
    marked = details("reasoning", "&gt; think hard") + details("tool_calls", "18C", name="get_weather") + "Rain."
    for content in (marked, "Rain.", "", None):
        got = answer(content, output=OUTPUT)
        assert rows(got) == [*STEPS, ("assistant", "text", None, "Rain.")]
        assert got[-1].attachment == [Attachment(type="image", size=3)]
    sealed = [{"type": "reasoning", "content": [], "encrypted_content": "x"}, OUTPUT[-1]]
    assert rows(answer(marked, output=sealed))[0] == ("thinking", "thinking", None, "think hard")


def test_files_with_their_extracted_text_and_images_without_their_data() -> None:
    files = [
        {"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="},
        {
            "type": "file",
            "id": "f1",
            "name": "spec.pdf",
            "size": 7,
            "file": {"filename": "spec.pdf", "meta": {"content_type": "application/pdf"}, "data": {"content": "Words"}},
        },
        {"type": "collection", "name": "Handbook"},
    ]
    message = only(said("u", None, "user", "", files=files), said("a", "u", "assistant", "x", 1)).messages[0]
    assert message.attachment == [
        Attachment(type="image/png", size=8),
        Attachment("spec.pdf", "application/pdf", 7, text="Words"),
        Attachment("Handbook", "collection"),
    ]
    assert (message.role, message.kind, message.text) == ("user", "attachment", "")
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    message = only(said("u", None, "user", parts)).messages[0]
    assert (message.text, message.attachment) == ("see", [Attachment(type="image/png", size=3)])


def test_sources_are_cited_once() -> None:
    sources = [
        {
            "source": {"name": "A page", "url": "https://a.example/1"},
            "document": ["x"],
            "metadata": [{"source": "https://a.example/1"}],
        },
        {
            "source": {"name": "search"},
            "document": ["y"],
            "metadata": [{"source": "https://b.example/2", "title": "B"}],
        },
        {"source": {"name": "spec.pdf", "id": "f1"}, "document": ["z"], "metadata": [{"source": "spec.pdf"}]},
    ]
    [row] = answer("See [1]", sources=sources)
    assert row.citations == [Citation("https://a.example/1", "A page"), Citation("https://b.example/2", "search")]


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (
            {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 2}, "cost": 0.25},
            (5, 7, 2, 0.25),
        ),
        ({"prompt_eval_count": 5, "eval_count": 7}, (5, 7, None, None)),
        ({"input_tokens": 5, "output_tokens": 7}, (5, 7, None, None)),
        ({"prompt_tokens": "x", "cost": True}, (None, None, None, None)),
    ],
)
def test_usage(usage: dict[str, Any], counts: tuple[Any, ...]) -> None:
    [row] = answer("x", usage=usage, model="m2")
    assert (row.tokens_in, row.tokens_out, row.tokens_cached, row.cost) == counts
    assert row.model == "m2"


def test_failed_answers_and_system_prompts_are_not_said() -> None:
    assert rows(answer("", error={"content": "boom"})) == [("system", "event", None, "boom")]
    conversation = only(said("u", None, "user", "q"), params={"system": "be brief"})
    assert next((m.text, m.hidden_reason) for m in conversation.messages) == ("be brief", "system prompt")


def test_empty_chats_and_odd_messages_are_counted() -> None:
    value = chat(said("u", None, "user", "q"))
    value["chat"]["history"]["messages"] |= {"n": None, "s": "x", "e": said("e", "u", "assistant", "", 1)}
    conversations, report = parse([chat(id="empty"), value, {"id": "no", "chat": None}])
    assert [c.conversation_id for c in conversations] == ["ow-1"]
    assert sorted((skip.reason, skip.expected) for skip in report.skips) == [
        ("conversation without messages", False),
        ("empty conversation", True),
        ("empty message", True),
        ("not a message", False),
        ("null in place of a message", True),
    ]


def test_ten_thousand_messages_deep_and_cycles() -> None:
    chain = [
        said(f"m{n}", f"m{n - 1}" if n else None, "user" if n % 2 == 0 else "assistant", f"t{n}", n)
        for n in range(10_000)
    ]
    assert len(only(*chain).visible_messages()) == 10_000
    circle = only(said("a", "b", "user", "one"), said("b", "a", "assistant", "two", 1))
    assert {text for _, _, text in shown(circle)} == {"one", "two"}


def test_work_is_linear_in_unclosed_markup() -> None:
    text = '<details type="reasoning">\n' * 20_000
    assert answer(text + "end")[-1].text.endswith("end")


SAMPLE = [
    chat(
        said(
            "u", None, "user", [{"type": "text", "text": "q"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]
        ),
        said(
            "a",
            "u",
            "assistant",
            details("reasoning", "> x") + "y",
            1,
            output=OUTPUT,
            usage={"prompt_tokens": 1},
            sources=[{"source": {"url": "https://a.example"}, "metadata": [{}]}],
            files=[{"type": "file", "file": {"data": {"content": "x"}, "meta": {}}}],
            error=None,
        ),
    ),
    chat(said("u", None, "user", "other"), id="ow-2"),
]


@given(st.sampled_from([place for place in places(SAMPLE) if place[0] == 0 and len(place) > 1]), st.sampled_from(ODD))
@settings(max_examples=120, deadline=None)
def test_a_wrong_type_anywhere_leaves_the_other_chat_unchanged(place: tuple[Any, ...], odd: Any) -> None:
    conversations, report = parse(retyped(SAMPLE, place, odd))
    assert not any(skip.reason == "damaged conversation" for skip in report.skips)
    assert to_record(conversations[-1]) == to_record(parse(SAMPLE)[0][-1])
    for conversation in conversations:
        to_record(conversation)


def test_reading_twice_gives_the_same() -> None:
    assert [to_record(c) for c in parse(SAMPLE)[0]] == [to_record(c) for c in parse(SAMPLE)[0]]
