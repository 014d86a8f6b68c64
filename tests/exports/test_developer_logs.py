"""Logs of developer tools together: any field of any type, cut lines, growth, and no reader takes another's files."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import continue_dev, copilot_cli, hermes, openclaw, vscode_copilot
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.registry import reader_for
from palace_pipeline.model import message_hash, to_record
from tests.exports.memory_member import MemoryMember

FIXTURES = Path(__file__).parent.parent / "fixtures" / "exports"
OURS = {
    "27-vscode-copilot-chat": vscode_copilot.READERS,
    "28-copilot-cli-events": (copilot_cli.READER,),
    "30-openclaw-jsonl": (openclaw.READER,),
    "31-hermes-jsonl": hermes.READERS,
    "45-continue-sessions": (continue_dev.READER,),
}
LOGS = {
    "27-vscode-copilot-chat/workspaceStorage/0a0a/chatSessions/vsc-0002.jsonl": vscode_copilot.READERS[0],
    "28-copilot-cli-events/session-state/cop-0001/events.jsonl": copilot_cli.READER,
    "30-openclaw-jsonl/agents/main/sessions/oc-0001.jsonl": openclaw.READER,
    "31-hermes-jsonl/sessions/20260314_092640_5a3e2ff1.jsonl": hermes.READERS[0],
}
OBJECTS = {
    "27-vscode-copilot-chat/workspaceStorage/0a0a/chatSessions/vsc-0001.json": vscode_copilot.READERS[1],
    "45-continue-sessions/continue/sessions/dddddddd-0000-4000-8000-000000000001.json": continue_dev.READER,
    "45-continue-sessions/continue/sessions/dddddddd-0000-4000-8000-000000000002.json": continue_dev.READER,
}


def whole_lines(path):
    """The records of a log whose lines are not cut."""
    return [json.loads(line) for line in (FIXTURES / path).read_bytes().splitlines() if line.endswith(b"}")]


SNAPSHOT = {
    "session_id": "20260314_092640_aaaa1111",
    "platform": "cli",
    "model": "m",
    "session_start": "2026-03-14T09:26:40",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "assistant", "content": "a", "reasoning": "r", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
        {"role": "tool", "content": "t", "tool_call_id": "c", "timestamp": 1773480401.25, "active": 1, "compacted": 0},
    ],
}
RICH = {
    "requestId": "r",
    "timestamp": 1773480401000,
    "message": {"text": "q", "parts": [{"text": "q"}]},
    "variableData": {"variables": [{"kind": "file", "name": "a", "value": {"uri": {"path": "/a"}}}]},
    "response": [
        {"kind": "thinking", "value": ["x"], "id": "i"},
        {
            "kind": "toolInvocationSerialized",
            "toolId": "f",
            "toolCallId": "c",
            "invocationMessage": {"value": "m"},
            "resultDetails": {"input": "{}", "output": [{"value": "o", "isText": True, "mimeType": "t"}]},
            "toolSpecificData": {"commandLine": {"original": "ls"}, "todoList": [{"title": "t"}]},
        },
        {"kind": "textEditGroup", "uri": {"path": "/a"}, "edits": [[{"text": "x"}]]},
        {"kind": "questionCarousel", "questions": [{"title": "t"}], "data": {"0": "a"}},
        {"kind": "inlineReference", "inlineReference": {"location": {"uri": {"path": "/a", "scheme": "https"}}}},
    ],
    "result": {
        "errorDetails": {"message": "e"},
        "metadata": {
            "toolCallRounds": [{"toolCalls": [{"id": "c", "arguments": "{}"}], "thinking": {"text": "x"}}],
            "toolCallResults": {"c": {"content": [{"value": {"node": {"children": [{"text": "x"}]}}}]}},
            "promptTokens": 1,
        },
    },
    "contentReferences": [{"reference": {"uri": {"scheme": "https", "authority": "x", "path": "/", "query": "q"}}}],
    "codeCitations": [{"value": "https://x", "license": "l"}],
}
SAMPLES = [
    *((whole_lines(path), reader, path) for path, reader in LOGS.items()),
    *(([json.loads((FIXTURES / path).read_bytes())], reader, path) for path, reader in OBJECTS.items()),
    ([SNAPSHOT], hermes.READERS[1], "sessions/session_20260314_092640_aaaa1111.json"),
    ([{"sessionId": "v", "requests": [RICH]}], vscode_copilot.READERS[1], "chatSessions/v.json"),
]
VALUES = st.one_of(
    st.sampled_from([None, True, False, 0, -1, 1e308, 1 << 70, "", "\udeaa\0", "x", "2026-03-14T09:26:40", [], {}]),
    st.sampled_from(
        [[None], [[]], [{}], {"text": 1}, {"value": {"value": {"value": {}}}}, [{"type": []}], {"$date": {}}]
    ),
)


def places(value, at=()):
    """Paths of every value inside a value."""
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*at, key))


def changed(value, path, new):
    """A copy with another value at a path."""
    if not path:
        return new
    result = copy.copy(value)
    result[path[0]] = changed(value[path[0]], path[1:], new)
    return result


def readings(records, reader, path):
    """What a reader makes of records, without the engine that would catch what it raises."""
    report = Report(path)
    if reader.layout == "elements":
        member = MemoryMember({path: b""}, path)
        found = [c for record in records for c in reader.read_element(record, member, "", report)]
    else:
        data = b"\n".join(json.dumps(record).encode() for record in records)
        found = list(reader.read(MemoryMember({path: data}, path), report))
    for conversation in found:
        ids = [message.message_id for message in conversation.messages]
        assert len(ids) == len(set(ids))
        assert all(ids)
        assert to_record(conversation)
    return found, report


def heard(conversations):
    """What was said and what tools gave. (A call is told by two lines: which of them gives its row may change.)"""
    return {(m.message_id, m.text) for c in conversations for m in c.messages if m.kind != "tool_call"}


@settings(max_examples=400)
@given(st.data())
def test_any_field_may_have_any_type(data):
    records, reader, path = data.draw(st.sampled_from(SAMPLES))
    at = data.draw(st.sampled_from([place for place in places(records) if place]))
    new = data.draw(VALUES)
    if reader.layout == "elements" or len(at) > 1:
        readings(changed(records, at, new), reader, path)


@settings(max_examples=120)
@given(st.data())
def test_an_odd_line_takes_no_other_with_it(data):
    records, reader, path = data.draw(st.sampled_from([s for s in SAMPLES if s[1].layout == "whole"][1:]))
    number = data.draw(st.integers(1, len(records) - 1))
    inside = [place for place in places(records[number]) if place]
    broken = data.draw(
        st.one_of(VALUES, st.builds(lambda at, new: changed(records[number], at, new), st.sampled_from(inside), VALUES))
    )
    others = [*records[:number], *records[number + 1 :]]
    before = heard(readings(others, reader, path)[0])
    assert before <= heard(readings([*records[:number], broken, *records[number + 1 :]], reader, path)[0])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path[:12])
def test_a_log_that_grows_keeps_its_rows(path):
    data, reader = (FIXTURES / path).read_bytes(), LOGS[path]

    def rows(content):
        member = MemoryMember({path: content}, path)
        return [m for c in reader.read(member, Report(path)) for m in c.messages]

    whole = rows(data)
    assert [message_hash(m) for m in rows(data)] == [message_hash(m) for m in whole]
    ids = {m.message_id for m in whole}
    for length in range(len(data) // 3, len(data), 97):
        part = rows(data[:length])
        # A question that was taken back later is the only row that a longer log has not.
        assert {m.message_id for m in part} - ids == set()


def members():
    for path in sorted(FIXTURES.rglob("*")):
        if path.is_file() and path.name != "expected.json" and path.suffix in (".json", ".jsonl", ".md", ".txt", ""):
            name = path.relative_to(FIXTURES).as_posix()
            yield name, head_of(MemoryMember({name: path.read_bytes()}, name))


def test_every_file_has_its_reader_and_no_reader_takes_anothers():
    seen: dict[str, set[str]] = {}
    for name, head in members():
        case = name.split("/")[0]
        takers = {r.format for readers in OURS.values() for r in readers if r.detect(head)}
        own = {r.format for r in OURS.get(case, ())}
        assert takers <= own, name
        if takers:
            reader = reader_for(head)
            assert reader is not None
            assert reader.format in takers
            seen.setdefault(case, set()).add(reader.format)
    assert seen.keys() == OURS.keys()


@pytest.mark.parametrize(("records", "reader", "path"), SAMPLES, ids=lambda value: None)
def test_samples_are_detected(records, reader, path):
    data = b"\n".join(json.dumps(record).encode() for record in records)
    assert reader_for(head_of(MemoryMember({path: data}, path))) is reader


def test_a_first_line_of_megabytes_is_no_obstacle():
    tools = [{"name": f"t{n}", "description": "x" * 1000} for n in range(2000)]
    for path, record, reader in (
        ("s/20260314_092640_a.jsonl", {"role": "session_meta", "tools": tools}, hermes.READERS[0]),
        (
            "chatSessions/v.jsonl",
            {"kind": 0, "v": {"version": 3, "sessionId": "v", "requests": tools}},
            vscode_copilot.READERS[0],
        ),
        (
            "session-state/c/events.jsonl",
            {"type": "session.start", "data": {"sessionId": "c", "x": tools}},
            copilot_cli.READER,
        ),
    ):
        data = json.dumps(record).encode() + b"\n"
        assert reader.detect(head_of(MemoryMember({path: data}, path))), path
