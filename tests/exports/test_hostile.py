"""Exports that are made to break a reader: what they cost is bounded, and what is lost is counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.exports.base import NAMED, Report
from palace_pipeline.exports.parse import conversations_in, parse_path
from palace_pipeline.ingest import ingest
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home


def empty_chats(count: int) -> list[dict[str, object]]:
    return [{"uuid": f"c{number}", "name": "", "chat_messages": []} for number in range(count)]


def test_of_many_alike_the_first_are_named_and_all_are_counted() -> None:
    report = Report("a.json")
    for number in range(NAMED + 5):
        report.skip("empty conversation", f"[{number}]", expected=True, unit="conversation")
        report.skip("damaged JSON", f"[{number}]", expected=False, count=2)
    report.skip("damaged JSON", "the file", expected=False, unit="file")
    assert len(report.skips) == 2 * (NAMED + 1) + 1
    assert report.skips[0].where == "a.json: [0]"
    alike = [skip for skip in report.skips if skip.reason == "empty conversation"]
    assert (alike[-1].where, alike[-1].count) == ("a.json: others", 5)
    assert sum(skip.count for skip in report.skips if skip.unit == "message") == 2 * (NAMED + 5)
    assert sum(skip.count for skip in report.skips if skip.unit == "file") == 1


def test_reports_of_elements_add_up_to_the_report_of_their_file() -> None:
    whole = Report("a.json")
    for number in range(3):
        own = Report("a.json")
        for line in range(NAMED):
            own.skip("damaged JSON", f"{number}.{line}", expected=False)
        own.unknown["type:new"] += 1
        whole.take(own)
    assert len(whole.skips) == NAMED + 1
    assert sum(skip.count for skip in whole.skips) == 3 * NAMED
    assert whole.unknown["type:new"] == 3


def test_a_file_of_empty_chats_fills_no_memory_and_every_look_counts_them(tmp_path: Path) -> None:
    export = tmp_path / "export/conversations.json"
    export.parent.mkdir()
    chats = empty_chats(NAMED + 200)
    chats[7] = {"uuid": "said", "name": "Said", "chat_messages": [{"uuid": "m", "sender": "human", "text": "hello"}]}
    export.write_text(json.dumps(chats))

    parsed = parse_path(export)
    assert [chat["conversation_id"] for chat in parsed["conversations"]] == ["said"]
    assert len(parsed["skipped"]) == NAMED + 1
    assert sum(skip["count"] for skip in parsed["skipped"]) == NAMED + 199

    home = Home(load_settings(tmp_path / "home"))
    home.prepare()
    with home.writing():
        looks = [ingest(home, [export], batch=str(number)).conversations for number in range(2)]
    assert [look["skipped"] for look in looks] == [NAMED + 199, NAMED + 199]
    assert [look["found"] for look in looks] == [NAMED + 200, NAMED + 200]


def at(seconds: int) -> str:
    return f"2026-02-01T10:00:{seconds:02}.000Z"


def chatgpt(words: object) -> tuple[str, Any]:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [words]}}
    node = {"id": "a", "parent": None, "children": [], "message": {"id": "a", **message}}
    return "conversations.json", [{"id": "c", "title": "T", "current_node": "a", "mapping": {"a": node}}]


def claude(words: object) -> tuple[str, Any]:
    said = {"uuid": "a", "sender": "human", "content": [{"type": "text", "text": words}], "attachments": []}
    return "conversations.json", [{"uuid": "c", "name": "T", "chat_messages": [said]}]


def claude_flat(words: object) -> tuple[str, Any]:
    return "conversations.json", [{"uuid": "c", "name": "T", "chat_messages": [{"sender": "human", "text": words}]}]


def copilot(words: object) -> tuple[str, Any]:
    def event(number: int, kind: str, data: dict[str, object]) -> dict[str, object]:
        return {"type": kind, "data": data, "id": f"e{number}", "timestamp": at(number), "parentId": None}

    start = event(0, "session.start", {"sessionId": "c", "version": 1})
    question = event(1, "user.message", {"content": words})
    return "session-state/c/events.jsonl", [start, question, event(2, "assistant.message", {"content": words})]


def openclaw(words: object) -> tuple[str, Any]:
    said = {"role": "assistant", "content": [{"type": "text", "text": words}]}
    message = {"type": "message", "id": "a", "parentId": None, "timestamp": at(1), "message": said}
    return "sessions/c.jsonl", [{"type": "session", "version": 3, "id": "c", "timestamp": at(0)}, message]


def gemini_cli(words: object) -> tuple[str, Any]:
    said = {"id": "a", "timestamp": at(0), "type": "user", "content": [{"text": words}]}
    session = {"sessionId": "c", "projectHash": "h", "startTime": at(0), "lastUpdated": at(0), "messages": [said]}
    return "chats/session-c.json", session


def telegram(words: object) -> tuple[str, Any]:
    said = {"id": 1, "type": "message", "date_unixtime": "1767225600", "from": "A", "file": "a.pdf", "text": [words]}
    return "result.json", {"name": "A", "type": "personal_chat", "id": 5, "messages": [said]}


def discord(words: object) -> tuple[str, Any]:
    file = {"id": "1", "url": "https://cdn.example/a.png", "fileName": "a.png"}
    said = {"id": "1", "type": "Default", "timestamp": at(0), "content": words, "attachments": [file]}
    channel = {"id": "5", "name": "general", "type": "GuildTextChat"}
    return "c.json", {"guild": {"id": "0"}, "channel": channel, "exportedAt": at(0), "messages": [said]}


@pytest.mark.parametrize("odd", [[["words"]], {"new form": "words"}, 12345], ids=["list", "object", "number"])
@pytest.mark.parametrize(
    "format", [chatgpt, claude, claude_flat, copilot, openclaw, gemini_cli, telegram, discord], ids=lambda f: f.__name__
)
def test_words_in_a_form_that_is_no_text_are_counted(
    format: Callable[[object], tuple[str, Any]], odd: object, tmp_path: Path
) -> None:
    """A product that begins to write its words otherwise must not look like one whose people fell silent."""

    def read(words: object) -> tuple[list[str], int]:
        name, content = format(words)
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = name.endswith(".jsonl")
        file.write_text("\n".join(map(json.dumps, content)) if lines else json.dumps(content))
        reports: list[Report] = []
        said = [m.text for chat in conversations_in(tmp_path, reports) for m in chat.visible_messages()]
        lost = sum(skip.count for report in reports for skip in report.skips if not skip.expected)
        return said, lost + sum(sum(report.unknown.values()) for report in reports)

    said, lost = read("words")
    assert "words" in said
    assert not lost
    said, lost = read(odd)
    assert "words" not in said
    assert lost


def test_an_empty_title_is_none(tmp_path: Path) -> None:
    name, content = chatgpt("words")
    content[0]["title"] = ""
    (tmp_path / name).write_text(json.dumps(content))
    assert [chat["title"] for chat in parse_path(tmp_path)["conversations"]] == [None]
