"""Formats that change: what the ledger, the receipt and the lists say of it, and that no value gets in."""

import json
import re
import secrets
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.exports.drift import NOTHING_UNDERSTOOD
from palace_pipeline.ingest import Ingested, ingest
from palace_pipeline.ingest.by_format import by_format, drifted, unread
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import _UPGRADES, SCHEMA_VERSION, Ledger
from tests.ingest.exports_for_tests import START, chat, export
from tests.ingest.old_ledgers import to_version_6


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def look(home: Home, *paths: Path, dry_run: bool = False) -> Ingested:
    with home.writing():
        return ingest(home, list(paths), batch="test", dry_run=dry_run)


def claude(name: str, *blocks: Any, sender: str = "human", **more: Any) -> dict[str, Any]:
    message = {
        "uuid": f"{name}-0",
        "sender": sender,
        "text": "",
        "content": list(blocks),
        "created_at": "2024-05-03T12:00:00Z",
        "updated_at": "2024-05-03T12:00:00Z",
        "attachments": [],
        "files": [],
    }
    return {
        "uuid": name,
        "name": name,
        "summary": "",
        "account": {"uuid": "me"},
        "created_at": "2024-05-03T12:00:00Z",
        "updated_at": "2024-05-03T12:00:00Z",
        "chat_messages": [message],
        **more,
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_names_never_seen_are_told_with_their_format_and_counted(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    export(
        folder / "claude.json",
        claude("a", text("hi"), {"type": "hologram"}, {"type": "hologram"}, mood="glad"),
        claude("b", text("ho"), {"type": "smell"}),
    )
    export(folder / "chatgpt.json", chat("c", "hello") | {"sparkle": 1})
    found = look(home, folder)
    assert [(d.format, d.files, d.nothing, d.names) for d in found.drift] == [
        ("chatgpt-export", 1, 0, {"key:sparkle": 1}),
        ("claude-ai-export", 1, 0, {"block:hologram": 2, "block:smell": 1, "key:mood": 1}),
    ]
    assert found.as_counts()["drift"][0] == {
        "format": "chatgpt-export",
        "files": 1,
        "nothing": 0,
        "unknown": {"key:sparkle": 1},
    }
    # An unchanged file is as it was, and says so again.
    assert look(home, folder).drift == found.drift
    assert look(home, folder, dry_run=True).drift == found.drift
    assert [d.format for d in look(home, folder / "chatgpt.json").drift] == ["chatgpt-export"]


def test_a_file_that_its_reader_understands_whole_is_no_drift(home: Home, tmp_path: Path) -> None:
    export(tmp_path / "in/a.json", chat("a", "hi", "hello"))
    export(tmp_path / "in/b.json", claude("b", text("hi")))
    assert look(home, tmp_path / "in").drift == []


def test_a_known_format_of_which_nothing_is_understood_is_an_error(home: Home, tmp_path: Path) -> None:
    changed = [chat(name, "hi", "hello") for name in "abcdef"]
    for one in changed:
        for node in one["mapping"].values():
            if node["message"]:
                node["message"]["content"] = {"content_type": "text", "parts": [], "words": "hi"}
    export(tmp_path / "in/chatgpt.json", *changed)
    found = look(home, tmp_path / "in")
    assert [(d.format, d.files, d.nothing) for d in found.drift] == [("chatgpt-export", 1, 1)]
    assert NOTHING_UNDERSTOOD in [skip.reason for skip in found.skips if not skip.expected]
    with home.ledger() as ledger:
        assert [row["status"] for row in ledger.rows("SELECT status FROM files")] == ["quarantined"]
    # It stays one until it is mended, also when its parts are known.
    assert NOTHING_UNDERSTOOD in [skip.reason for skip in look(home, tmp_path / "in").skips]


def test_chats_that_were_never_begun_are_no_drift(home: Home, tmp_path: Path) -> None:
    empty = [claude(name) | {"chat_messages": []} for name in "abc"]
    export(tmp_path / "in/claude.json", *empty)
    found = look(home, tmp_path / "in")
    assert found.drift == []
    assert all(skip.expected for skip in found.skips)


def test_a_cut_file_is_damage_and_no_drift(home: Home, tmp_path: Path) -> None:
    whole = json.dumps([claude("a", text("hi"))])
    (tmp_path / "in").mkdir()
    (tmp_path / "in/claude.json").write_text(whole[: len(whole) // 2])
    found = look(home, tmp_path / "in")
    assert found.conversations["new"] == 0
    assert [d.nothing for d in found.drift] in ([], [0])


def test_what_stands_where_a_name_should_is_kept_nowhere(home: Home, tmp_path: Path) -> None:
    said, token = "the code of the safe is 4711", "gh" + "p_" + secrets.token_hex(18)
    export(
        tmp_path / "in/claude.json",
        claude("a", text("x"), {"type": said}, {"type": token}, **{said: 1, token: 2}),
        claude("b", text("x"), sender=said),
    )
    found = look(home, tmp_path / "in")
    assert found.drift[0].names == {
        "block:(not a name)": 2,
        "key:(not a name)": 2,
        "sender:(not a name)": 1,
    }
    counts = json.dumps(found.as_counts()) + found.drift[0].report() + found.drift[0].in_words()
    assert said not in counts
    assert token not in counts
    with home.ledger() as ledger:
        dump = "\n".join(ledger.db.iterdump())
    assert said not in dump
    assert token not in dump


def test_formats_are_listed_with_what_was_seen_where(home: Home, tmp_path: Path) -> None:
    export(tmp_path / "one/a.json", chat("a", "hi", "hello"), chat("b", "x", start=START + 86_400))
    export(tmp_path / "two/b.json", chat("a", "hi", "hello"), claude("c", text("x")))
    export(tmp_path / "two/c.json", claude("c", text("x"), {"type": "hologram"}))
    (tmp_path / "two/other.json").write_text('{"a": 1}')
    look(home, tmp_path / "one", tmp_path / "two")
    with home.ledger() as ledger:
        seen = {of.format: of for of in by_format(ledger)}
        assert unread(ledger) == {"unknown JSON": [str(tmp_path / "two/other.json")]}
    of = seen["chatgpt-export"]
    assert (of.files, of.conversations, of.messages, of.last_day) == (2, 2, 3, "2024-05-04")
    assert dict(of.folders) == {str(tmp_path / "one"): 1, str(tmp_path / "two"): 1}
    assert of.last_read is not None
    drift = seen["claude-ai-export"].drift
    assert drift is not None
    line = drift.report()
    assert "format=claude-ai-export recipe=" in line
    assert "unknown=[block:hologram 1]" in line
    assert "\n" not in line
    assert str(tmp_path) not in line
    assert (seen["slack-export"].files, seen["slack-export"].drift) == (0, None)


def test_formats_are_listed_without_an_archive() -> None:
    assert len(by_format(None)) > 5
    assert all(of.files == 0 for of in by_format(None))


def test_a_mended_file_takes_its_drift_away(home: Home, tmp_path: Path) -> None:
    export(tmp_path / "in/a.json", claude("a", text("hi"), {"type": "hologram"}))
    look(home, tmp_path / "in")
    export(tmp_path / "in/a.json", claude("a", text("hi there, again")))
    assert look(home, tmp_path / "in").drift == []
    with home.ledger() as ledger:
        assert drifted(ledger) == []


def test_an_old_ledger_is_brought_up_to_date(home: Home, tmp_path: Path) -> None:
    export(tmp_path / "in/a.json", claude("a", text("hi"), {"type": "hologram"}))
    look(home, tmp_path / "in")
    path = home.path / "ledger.sqlite"
    old = sqlite3.connect(path)
    to_version_6(old)
    for table, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", str(_UPGRADES)):
        old.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    old.execute("PRAGMA user_version = 1")
    old.commit()
    old.close()
    copy = Ledger.copy_of(path)
    assert [d.format for d in drifted(copy)] == ["(read before)"]
    copy.close()
    with home.ledger() as ledger:
        assert [d.names for d in drifted(ledger)] == [{"block:hologram": 1}]
        assert ledger.db.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION
