from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import lm_studio
from palace_pipeline.exports.base import Report
from palace_pipeline.model import Attachment, Conversation, to_record
from tests.exports.memory_member import MemoryMember, read, shown
from tests.exports.people_damage import ODD, places, retyped

READERS = [lm_studio.READER]
FILE = "conversations/Boats/1773480400000.conversation.json"


def asked(text: str, **more: Any) -> dict[str, Any]:
    version = {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": text}], **more}
    return {"versions": [version], "currentlySelected": 0}


def block(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "contentBlock", "stepIdentifier": "s", "content": [{"type": "text", "text": text}], **more}


def version(*steps: Any, **more: Any) -> dict[str, Any]:
    sender = {"senderName": "local-model"}
    return {"type": "multiStep", "role": "assistant", "senderInfo": sender, "steps": list(steps), **more}


def answered(*versions: Any, selected: Any = 0) -> dict[str, Any]:
    return {"versions": list(versions), "currentlySelected": selected}


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {
        "name": "Rigging",
        "pinned": False,
        "createdAt": 1773480400000,
        "tokenCount": 42,
        "systemPrompt": "",
        "usePerChatPredictionConfig": True,
        "messages": list(messages),
        **more,
    }


def parse(value: Any, path: str = FILE) -> tuple[list[Conversation], Report]:
    return read(READERS, {path: value}, path)


def only(*messages: Any, **more: Any) -> Conversation:
    conversations, _ = parse(chat(*messages, **more))
    assert len(conversations) == 1
    return conversations[0]


def rows(conversation: Conversation) -> list[tuple[str, str, str | None, str]]:
    return [(m.role, m.kind, m.tool_name, m.text) for m in conversation.messages]


def test_a_chat_is_called_by_its_file_and_filed_by_its_folder() -> None:
    conversation = only(asked("q"), answered(version(block("a"))))
    assert conversation.key == ("lm-studio", "1773480400000")
    assert (conversation.title, conversation.project, conversation.model) == ("Rigging", "Boats", "local-model")
    assert conversation.created_at == datetime(2026, 3, 14, 9, 26, 40, tzinfo=UTC)
    assert all(m.created_at is None and m.local_time is None for m in conversation.messages)
    [plain], _ = parse(chat(asked("q")), "conversations/1.conversation.json")
    assert (plain.conversation_id, plain.project) == ("1", None)


def test_files_that_are_called_by_no_time() -> None:
    keys = {parse(chat(*m), "conversation.json")[0][0].key for m in ([asked("q")], [asked("q"), asked("r")])}
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("selected", "seen"), [(0, "one"), (1, "two"), (7, "two"), (-1, "two"), (None, "two"), ("0", "two")]
)
def test_the_selected_version_is_seen_and_the_others_are_kept(selected: Any, seen: str) -> None:
    conversation = only(asked("q"), answered(version(block("one")), version(block("two")), selected=selected))
    assert [text for _, _, text in shown(conversation)] == ["q", seen]
    assert sorted(m.text for m in conversation.messages) == ["one", "q", "two"]


def test_steps_of_an_answer() -> None:
    conversation = only(
        asked("q"),
        answered(
            version(
                block("hm", style={"type": "thinking", "ended": True}, prefix="<think>", suffix="</think>"),
                {"type": "debugInfoBlock", "debugInfo": "DEBUG"},
                {
                    "type": "contentBlock",
                    "content": [
                        {"type": "toolCallRequest", "callId": 7, "name": "weather", "parameters": {"city": "Brest"}}
                    ],
                },
                {"type": "toolStatus", "callId": 7, "statusState": {"status": {"type": "toolCallSucceeded"}}},
                {
                    "type": "contentBlock",
                    "role": "tool",
                    "content": [{"type": "toolCallResult", "callId": 7, "content": '[{"type":"text","text":"18C"}]'}],
                },
                {
                    "type": "toolStatus",
                    "callId": 7,
                    "statusState": {"status": {"type": "toolCallFailed", "error": "no net"}},
                },
                {
                    "type": "citationBlock",
                    "citedText": "words",
                    "source": {"fileName": "a.pdf", "absoluteFilePath": "/x/a.pdf"},
                },
                block(
                    "Rain.",
                    genInfo={"identifier": "m-7b", "stats": {"promptTokensCount": 5, "predictedTokensCount": 3}},
                ),
                block("Take a coat."),
            )
        ),
    )
    assert rows(conversation)[1:] == [
        ("thinking", "thinking", None, "hm"),
        ("tool", "tool_call", "weather", "city: Brest"),
        ("tool", "tool_result", "weather", '[{"type":"text","text":"18C"}]'),
        ("tool", "tool_result", "weather", "no net"),
        ("assistant", "text", None, "Rain.\n\nTake a coat."),
    ]
    last = conversation.messages[-1]
    assert (last.model, last.tokens_in, last.tokens_out) == ("m-7b", 5, 3)
    assert last.attachment == [Attachment("a.pdf", "citation", text="words")]


def test_calls_as_the_public_types_have_them() -> None:
    call = {
        "type": "toolCallRequest",
        "toolCallRequest": {"id": "c", "type": "function", "name": "f", "arguments": {"a": 1}},
    }
    result = {"type": "toolCallResult", "content": "r", "toolCallId": "c"}
    conversation = only(
        asked("q"),
        answered(
            version(
                {"type": "contentBlock", "content": [call]},
                {"type": "contentBlock", "role": "tool", "content": [result]},
            )
        ),
    )
    assert rows(conversation)[1:] == [("tool", "tool_call", "f", "a: 1"), ("tool", "tool_result", "f", "r")]


def test_files_and_thinking_in_tags() -> None:
    file = {
        "type": "file",
        "name": "map.pdf",
        "fileIdentifier": "1 - 2.pdf",
        "fileType": "application/pdf",
        "sizeBytes": 9,
    }
    conversation = only(
        asked("", content=[{"type": "text", "text": "see"}, file]),
        answered({"type": "singleStep", "role": "assistant", "content": "<think>hm</think>\n\nYes."}),
    )
    assert conversation.messages[0].attachment == [Attachment("map.pdf", "application/pdf", 9)]
    assert rows(conversation)[1:] == [("thinking", "thinking", None, "hm"), ("assistant", "text", None, "Yes.")]


def test_system_prompts_and_drafts_are_not_said() -> None:
    config = {"fields": [{"key": "llm.prediction.systemPrompt", "value": "OWN"}]}
    for more, prompt in (
        ({"systemPrompt": "PLAIN"}, "PLAIN"),
        ({"systemPrompt": "x", "perChatPredictionConfig": config}, "OWN"),
    ):
        conversation = only(asked("q"), clientInput="DRAFT", **more)
        assert next((m.role, m.text, m.hidden_reason) for m in conversation.messages) == (
            "system",
            prompt,
            "system prompt",
        )
        assert shown(conversation) == [("user", None, "q")]


def test_empty_chats_odd_messages_and_unknown_steps_are_counted() -> None:
    conversations, report = parse(chat())
    assert (conversations, [(s.reason, s.expected) for s in report.skips]) == ([], [("empty conversation", True)])
    conversations, report = parse(
        chat(
            None, "x", {"versions": []}, asked("q"), answered(version({"type": "hologram"}, None, 5, block("a")), None)
        )
    )
    assert [text for _, _, text in shown(conversations[0])] == ["q", "a"]
    assert sorted((skip.reason, skip.expected) for skip in report.skips) == [
        ("message without versions", False),
        ("message without versions", True),
        ("not a step of a message", False),
        ("not a step of a message", True),
        ("not a version of a message", True),
        ("null in place of a message", True),
        ("unknown kind of step", False),
    ]
    assert report.unknown == {"step:hologram": 1}


def test_a_grown_chat_keeps_the_ids_of_its_messages() -> None:
    short, grown = only(asked("q"), asked("q")), only(asked("q"), asked("q"), asked("r"))
    assert [m.message_id for m in grown.messages][:2] == [m.message_id for m in short.messages]


SAMPLE = chat(
    asked("q"),
    answered(
        version(
            block("hm", style={"type": "thinking"}),
            {"type": "toolStatus", "callId": 1, "statusState": {"status": {"type": "toolCallFailed"}}},
        ),
        version(
            {
                "type": "contentBlock",
                "content": [{"type": "toolCallRequest", "name": "f", "callId": 1}],
                "genInfo": {"stats": {"promptTokensCount": 1}},
            }
        ),
        selected=1,
    ),
    asked("more"),
    perChatPredictionConfig={"fields": [{"key": "llm.prediction.systemPrompt", "value": "x"}]},
    lastUsedModel={"identifier": "m"},
)


@given(st.sampled_from([*places(SAMPLE)]), st.sampled_from(ODD))
@settings(max_examples=120, deadline=None)
def test_a_wrong_type_anywhere_is_no_crash(place: tuple[Any, ...], odd: Any) -> None:
    report = Report(FILE)
    found = list(
        lm_studio.READER.read_element(retyped(SAMPLE, place, odd), MemoryMember({FILE: b""}, FILE), "", report)
    )
    for conversation in found:
        to_record(conversation)
    if place != ("messages",) and place[:2] != ("messages", 2):
        assert ("user", None, "more") in shown(found[0])
