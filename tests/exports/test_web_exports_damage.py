"""Any value of any field may be anything: DeepSeek, Grok, Le Chat, Perplexity. No exception, and nothing else is lost."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.registry import READERS, reader_named
from palace_pipeline.model import from_record, to_record
from tests.exports.memory_member import MemoryMember, export, read

FIXTURES = Path(__file__).parent.parent / "fixtures" / "exports"
OURS = ("deepseek-export", "grok-export", "mistral-lechat", "perplexity-thread", "perplexity-xlsx")


def load(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text("utf-8"))


def renamed(value: Any) -> Any:
    """The same with other ids: the conversation beside the damaged one."""
    text = json.dumps(value)
    for id in ("74ae7ef3-", "grok-0001", "chat-0001", "pplx-1", "pplx-2"):
        text = text.replace(id, f"other-{id}")
    return json.loads(text)


def samples() -> dict[str, tuple[Any, Any]]:
    """Format -> (a conversation to damage, one beside it) in the shape in which both stand in one list."""
    deepseek = load("24-deepseek-export/conversations.json")[0]
    early = {
        "files": [],
        "content": "q",
        "reasoning_content": "t",
        "search_results": [{"url": "https://example.invalid"}],
    }
    deepseek["mapping"]["9"] = {"id": "9", "parent": "5", "children": [], "message": early}
    path = next((FIXTURES / "23-grok-export").rglob("prod-grok-backend.json"))
    grok = json.loads(path.read_text("utf-8"))["conversations"][0]
    grok["responses"][2]["response"] |= {
        "steps": [{"tagged_text": {"header": "h", "tool_usage_card": "<xai:tool_usage_card>x</xai:tool_usage_card>"}}],
        "card_attachments_json": [
            '{"id":"a","url":"https://example.invalid/a"}',
            {"image_chunk": {"imageUrl": "x.png"}},
        ],
        "agent_thinking_traces": [{"thinking_trace": "t"}],
        "cited_web_search_results": [{"url": "https://example.invalid/b", "title": "b"}],
        "generated_image_urls": ["https://example.invalid/c.png"],
    }
    newer = load("26-perplexity-thread/thread-entries.json")
    newer["entries"][0] |= {
        "sources": [{"url": "https://example.invalid", "title": "t"}],
        "collection_info": {"title": "S"},
    }
    older = load("26-perplexity-thread/thread-legacy.json")
    return {
        "deepseek": (deepseek, renamed(deepseek)),
        "grok": (grok, renamed(grok)),
        "perplexity newer": (newer, renamed(older)),
        "perplexity older": (older, renamed(newer)),
        "mistral": (
            load("25-mistral-lechat/chat-chat-0001.json"),
            renamed(load("25-mistral-lechat/chat-chat-0001.json")),
        ),
    }


SAMPLES = samples()
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8),
    st.sampled_from(["\ud800", "\0", "{}", '{"answer": "', [], {}, [None], [[]], {"a": {}}, {"url": 1}, 1e300, -1, "9" * 400,
                     {"$date": {"$numberLong": "x"}}, {"type": "text"}, [{"type": []}], {"text": ["x"]}]),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def at(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = at(value[path[0]], path[1:], new)
    return value


def conversations_of(kind: str, damaged: Any, beside: Any) -> tuple[dict[Any, Any], Any]:
    values = (
        [*(damaged if isinstance(damaged, list) else [damaged]), *beside] if kind == "mistral" else [damaged, beside]
    )
    found, report = read(READERS, {"export.json": json.dumps(values)}, "export.json")
    return {c.conversation_id: c for c in found}, report


@pytest.mark.parametrize("kind", SAMPLES)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_wrong_type_anywhere_costs_at_most_what_it_stands_in(kind, data):
    sample, beside = SAMPLES[kind]
    paths = places(sample)
    broken = sample
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths))
        try:
            broken = at(broken, path, data.draw(ODD))
        except (KeyError, IndexError, TypeError):
            continue  # the place went with the damage before
    clean, _ = conversations_of(kind, None, beside)
    found, report = conversations_of(kind, broken, beside)
    for id, conversation in clean.items():
        assert to_record(found[id]) == to_record(conversation)
    assert not [skip for skip in report.skips if skip.reason in ("damaged conversation", "damaged file")]
    for conversation in found.values():
        assert from_record(to_record(conversation)).conversation_id == conversation.conversation_id
        ids = [message.message_id for message in conversation.messages]
        assert len(set(ids)) == len(ids)
        assert conversation.visible_messages()
    assert conversations_of(kind, broken, beside)[0].keys() == found.keys()


@pytest.mark.parametrize("name", sorted({str(p.relative_to(FIXTURES)) for p in FIXTURES.rglob("*") if p.is_file()}))
def test_no_other_formats_files_are_taken_for_ours(name):
    if name.endswith((".zip", "expected.json")):
        return
    files = export({name: (FIXTURES / name).read_bytes()})
    head = head_of(MemoryMember(files, name))
    claims = {format for format in OURS if (reader := reader_named(format)) is not None and reader.detect(head)}
    folder = {"23": "grok-export", "24": "deepseek-export", "25": "mistral-lechat", "26": "perplexity-thread",
              "46": "perplexity-xlsx"}.get(name[:2])  # fmt: skip
    chats = ("prod-grok-backend.json", "conversations.json", "chat-chat-0001.json", "thread-", ".xlsx")
    assert claims == ({folder} if folder and any(part in name for part in chats) else set())
