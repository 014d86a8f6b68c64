"""Small exports of every format against their right answers: `parse_path` as a whole."""

import json
import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from palace_pipeline.exports.parse import parse_path
from palace_pipeline.model import ROLES, VISIBLE_ROLES

FIXTURES = Path(__file__).parent.parent / "fixtures" / "exports"
CASES = sorted(path.parent for path in FIXTURES.glob("*/expected.json"))
PROVIDERS = {
    "chatgpt-export": {"chatgpt"},
    "zip-containers": {"chatgpt"},
    "claude-ai-export": {"claude"},
    "claude-ai-api-json": {"claude"},
    "claude-code-jsonl": {"claude-code"},
    "codex-rollout": {"codex"},
    "gemini-cli": {"gemini-cli"},
    "gemini-takeout": {"gemini"},
    "google-ai-studio": {"ai-studio"},
    "sharegpt": {"sharegpt"},
    "grok-export": {"grok"},
    "deepseek-export": {"deepseek"},
    "mistral-lechat": {"mistral"},
    "perplexity-thread": {"perplexity"},
    "perplexity-xlsx": {"perplexity"},
    "vscode-copilot-chat": {"vscode-copilot"},
    "copilot-cli": {"copilot-cli"},
    "openclaw-jsonl": {"openclaw"},
    "hermes-jsonl": {"hermes"},
    "hermes-db": {"hermes"},
    "cursor-vscdb": {"cursor"},
    "grok-cli": {"grok-cli"},
    "continue-session": {"continue"},
    "slack-export": {"slack"},
    "open-webui-export": {"open-webui"},
    "librechat-export": {"librechat"},
    "lm-studio": {"lm-studio"},
    "discord-chat-exporter": {"discord"},
    "telegram-json": {"telegram"},
    "whatsapp-txt": {"whatsapp"},
    "plain-transcript": {"transcript"},
    "markdown-transcript": {"transcript", "markdown"},
    "plain-notes": {"markdown", "text"},
}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def answer(case, expected, folder):
    """What is understood of a copy of the case, under a name that says nothing."""
    root = folder / "export"
    shutil.copytree(case, root, ignore=shutil.ignore_patterns("expected.json"))
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    sources = expected["sources"]
    result = parse_path(root / sources[0] if len(sources) == 1 else root)
    if expected["format"] == "gemini-takeout":
        result["conversations"] = [joined(result["conversations"])]
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    return result


def joined(conversations):
    """Activities as one conversation: their source knows none, so the right answer leaves the grouping open."""
    in_time = sorted(conversations, key=lambda c: c["messages"][0]["timestamp"])
    rows = [message for conversation in in_time for message in conversation["messages"]]
    files = [file for conversation in in_time for file in conversation["attachments"]]
    return {**in_time[0], "conversation_id": None, "messages": rows, "attachments": files}


def visible(conversation):
    return [message for message in conversation["messages"] if message["role"] in VISIBLE_ROLES]


def milliseconds(text):
    return None if text is None else round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def plain(text):
    return re.sub(r" +(?=[.,])", "", text.replace("\ufeff", "").strip())


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


def said_by_agents(expected):
    """What sub-agents said: it may stand in conversations of its own."""
    return {m["text"] for want in expected["conversations"] for a in want.get("subagents", []) for m in a["messages"]}


def counterpart(want, got):
    """The conversation of the answer that is meant: by id, else by what is said in it."""
    said = [plain(message["text"]) for message in want["messages"]]
    for conversation in got:
        if want["conversation_id"] is None and [plain(m["text"]) for m in visible(conversation)] == said:
            return conversation
        if want["conversation_id"] == conversation["conversation_id"]:
            return conversation
    return None


def check_messages(want, got):
    seen = visible(got)
    assert [(m["role"], plain(m["text"])) for m in seen] == [(m["role"], plain(m["text"])) for m in want["messages"]]
    for right, message in zip(want["messages"], seen, strict=True):
        assert milliseconds(message["timestamp"]) == milliseconds(right["timestamp"])
        for key in {"speaker", "local_time"} & set(right):
            assert message[key] == right[key]


def check_beside(want, got):
    """Thinking, tools, files, sources: in rows and lists of their own."""
    thinking = [text for m in got["messages"] if m["role"] == "thinking" for text in texts(m)]
    for thought in want.get("thinking", []):
        assert any(thought["text"].strip() in text for text in thinking)
    calls = [text for m in got["messages"] if m["kind"] == "tool_call" and m["role"] == "tool" for text in texts(m)]
    results = [text for m in got["messages"] if m["kind"] == "tool_result" and m["role"] == "tool" for text in texts(m)]
    for event in want.get("tool_events", []):
        call = event["kind"] == "call"
        for key in ("name", "text") if call else ("text",):
            if event.get(key):
                assert any(event[key].strip() in text for text in (calls if call else results)), event
    names = [file["name"] for file in got["attachments"]]
    for file in want.get("attachments", []):
        assert not file.get("name") or file["name"] in names
        assert not file.get("text") or any(file["text"].strip() in (f["text"] or "") for f in got["attachments"])
    assert len(names) >= len(want.get("attachments", []))
    for citation in want.get("citations", []):
        assert citation["url"] in {c["url"] for m in got["messages"] for c in m["citations"]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_right_answer(case, tmp_path):
    expected = json.loads((case / "expected.json").read_text("utf-8"))
    result = answer(case, expected, tmp_path)
    rest = list(result["conversations"])
    for want in expected["conversations"]:
        got = counterpart(want, rest)
        assert got is not None, want["conversation_id"] or want["title"]
        rest.remove(got)
        titles = {title or None for title in want.get("title_any", [want["title"]])} - {None}
        stems = {Path(source).stem for source in expected["sources"]}
        assert (got["title"] or None) in (titles or {None, *stems, *expected["sources"]})
        assert got["start_date"] == want["start_date"]
        named = {want["provider"]} if "provider" in want else set(want.get("provider_any", []))
        assert got["provider"] in (named or PROVIDERS[expected["format"]])
        check_messages(want, got)
        check_beside(want, got)
        for agent in want.get("subagents", []):
            everything = list(texts(result["conversations"]))
            assert all(message["text"].strip() in everything for message in agent["messages"])
    said = said_by_agents(expected)
    assert all({m["text"] for m in visible(conversation)} <= said for conversation in rest)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_leaks_into_what_people_said(case, tmp_path):
    expected = json.loads((case / "expected.json").read_text("utf-8"))
    forbidden = expected.get("must_not_contain", [])
    agents = said_by_agents(expected)
    for conversation in answer(case, expected, tmp_path)["conversations"]:
        for message in visible(conversation):
            if message["text"] not in agents:
                assert not [mark for mark in forbidden if mark in message["text"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_skip_is_counted_and_the_form_is_kept(case, tmp_path):
    expected = json.loads((case / "expected.json").read_text("utf-8"))
    result = answer(case, expected, tmp_path)
    planted = sum(skip.get("count", 1) for skip in expected.get("skipped", [])) + len(
        expected.get("malformed_lines", [])
    )
    assert sum(skip["count"] for skip in result["skipped"]) >= planted
    assert all(set(skip) == {"reason", "where", "expected", "count"} and skip["where"] for skip in result["skipped"])
    for conversation in result["conversations"]:
        assert set(conversation) == {"provider", "conversation_id", "title", "start_date", "messages", "attachments"}
        for message in conversation["messages"]:
            assert message["role"] in ROLES
            assert message["timestamp"] is None or TIMESTAMP.fullmatch(message["timestamp"])
    assert json.loads(json.dumps(result)) == result
