"""Exports that are made to break a reader: what they cost is bounded, and what is lost is counted."""

from __future__ import annotations

import json
from pathlib import Path

from palace_pipeline.exports.base import NAMED, Report
from palace_pipeline.exports.parse import parse_path
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
