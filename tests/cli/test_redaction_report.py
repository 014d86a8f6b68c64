"""`palace redact --report` as a person and a program meet it: each conversation once, and readable however much there is."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.ingest.exports_for_tests import chat, export

ADDRESS = "jane.doe" + "@" + "harbour-mail.de"


def addressed(number: int) -> str:
    return f"person{number}" + "@" + "harbour-mail.de"


@pytest.fixture(autouse=True)
def no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALACE_HOME", str(tmp_path / "none"))


def test_a_chat_in_three_files_counts_once(palace: Run, tmp_path: Path) -> None:
    one = chat("one", f"write to {ADDRESS}", "yes")
    grown = chat("one", f"write to {ADDRESS}", "yes", f"or to {addressed(1)}", "ok")
    export(tmp_path / "in/a.json", one, chat("two", "hi", "ho"))
    export(tmp_path / "in/b.json", one)
    export(tmp_path / "in/sub/c.json", grown)
    report = palace("redact", "--report", str(tmp_path / "in"), "--json").json
    assert {name: report[name] for name in ("files", "conversations", "copies", "continued")} == {
        "files": 3,
        "conversations": 2,
        "copies": 2,
        "continued": 0,
    }
    assert report["kinds"] == [{"kind": "email", "places": 2, "conversations": 1, "values": 2}]
    assert [(place["field"], place["files"]) for place in report["masked"]] == [
        ("message 1", ["a.json", "b.json", "sub/c.json"]),
        ("message 3", ["a.json", "b.json", "sub/c.json"]),
    ]
    shown = palace("redact", "--report", str(tmp_path / "in"))
    assert shown.code == 0
    assert shown.out.splitlines() == [
        "2 conversations in 3 files; one that is in several files counts once (2 copies left out)",
        "email: 2 places in 1 conversation",
        "  chatgpt: Chat one, message 1 (a.json and 2 more files)",
        "    write to [REDACTED:email]",
        "  chatgpt: Chat one, message 3 (a.json and 2 more files)",
        "    or to [REDACTED:email]",
        "2 places would be masked, in 1 of 2 conversations. Nothing was kept or changed.",
        "What is no secret: its exact text in allow, or its kind in allow_rules. What is missing: known_values, "
        "private_patterns, people ([redaction] in palace.toml).",
    ]


def test_what_a_resumed_session_repeats_counts_once(palace: Run, tmp_path: Path, fixtures: Path) -> None:
    source = tmp_path / "in"
    shutil.copytree(fixtures / "exports/15-claude-code-resume-dup", source)
    (source / "expected.json").unlink()
    report = palace("redact", "--report", str(source), "--json").json
    parsed = palace("parse", str(source), "--json").json
    assert report["conversations"] == len(parsed["conversations"])
    assert report["continued"] == 1


def test_ten_thousand_places_are_readable_and_complete_in_json(palace: Run, tmp_path: Path) -> None:
    chats = [
        chat(f"c{number:03}", *(f"write to {addressed(number * 100 + n)} soon" for n in range(100)))
        for number in range(100)
    ]
    file = export(tmp_path / "in" / f"of {ADDRESS}.json", *chats)
    shown = palace("redact", "--report", str(file))
    assert len(shown.out.splitlines()) < 30
    assert "email: 10,001 places in 100 conversations" in shown.out
    assert "  … and 9,993 more (--json lists all)" in shown.out
    assert "10,001 places would be masked, in 100 of 100 conversations." in shown.out
    assert shown.out.count("name of a file: of [REDACTED:email].json") == 1
    export(file, *chats[:10])
    everything = palace("redact", "--report", str(file), "--json")
    assert len(everything.json["masked"]) == 1_001
    assert everything.json["kinds"][0]["values"] == 1_001
    for result in (shown, everything):
        assert "harbour-mail" not in result.out + result.err
    assert not (tmp_path / "none").exists()


def test_what_cannot_be_read_is_named_and_the_list_is_cut(palace: Run, tmp_path: Path) -> None:
    export(tmp_path / "in/good.json", chat("one", "hi", "ho"))
    for number in range(25):
        (tmp_path / f"in/broken {addressed(number)}.json").write_text("{")
    result = palace("redact", "--report", str(tmp_path / "in"))
    assert result.code == 1
    assert result.out.count("not looked at: ") == 20
    assert "… and 5 more not looked at (--json lists all)" in result.out
    assert "nothing would be masked" in result.out
    assert "harbour-mail" not in result.out
    assert len(json.loads(palace("redact", "--report", str(tmp_path / "in"), "--json").out)["not_read"]) == 25
