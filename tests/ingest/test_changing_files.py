"""Files that somebody writes to while they are read: taken as they are in the end, or not at all, never half of each."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from palace_pipeline.ingest import ingest, rest, run
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from tests.archive_state import _ledger, _vault
from tests.ingest.exports_for_tests import START, chat, export


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def during_reading(monkeypatch: pytest.MonkeyPatch, change: Callable[[int], None]) -> None:
    """Call `change` with the number of the attempt, when the file was hashed and some of it was read."""
    original = run.Run._read_members
    attempts = 0

    def disturbed(self: run.Run, *arguments: object) -> None:
        nonlocal attempts
        original(self, *arguments)  # type: ignore[arg-type]
        attempts += 1
        change(attempts)

    monkeypatch.setattr(run.Run, "_read_members", disturbed)


def look(home: Home, *paths: Path) -> run.Ingested:
    with home.writing():
        return ingest(home, list(paths), batch="test")


def known(home: Home) -> dict[str, int]:
    with home.ledger() as ledger:
        return {row[0]: row[1] for row in ledger.rows("SELECT conversation_id, messages FROM conversations")}


OLD = [chat("a", "old question", "old answer"), chat("gone", "only in the old one", "yes")]
NEW = [chat("a", "new question", "new answer", "more", start=START + 1), chat("b", "only in the new one", "yes")]


def test_a_file_that_is_replaced_while_it_is_read_is_taken_as_it_is_then(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = export(tmp_path / "a.json", *OLD)

    def replace_once(attempt: int) -> None:
        if attempt == 1:
            export(tmp_path / "a.json", *NEW)

    during_reading(monkeypatch, replace_once)
    found = look(home, source)
    assert found.files == {"found": 1, "new": 1, "updated": 0, "unchanged": 0, "skipped": 0}
    assert found.conversations["new"] == 2
    assert found.messages["new"] == 5
    assert known(home) == {"a": 3, "b": 2}
    monkeypatch.undo()
    look(home, source)
    other = Home(load_settings(tmp_path / "other"))
    look(other, source)
    assert _ledger(home) == _ledger(other)
    assert _vault(home) == _vault(other)


def test_a_file_that_never_comes_to_rest_is_named_and_read_at_a_later_look(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = export(tmp_path / "a.json", *OLD)
    during_reading(monkeypatch, lambda attempt: source.write_text(" " * attempt + json.dumps(OLD)) and None)
    found = look(home, source)
    assert [(skip.reason, skip.expected) for skip in found.skips] == [(rest.CHANGING, False)]
    assert found.files["skipped"] == 1
    assert found.conversations["found"] == 0
    assert known(home) == {}
    monkeypatch.undo()
    assert look(home, source).conversations["new"] == 2


def test_a_log_that_grows_while_it_is_read_is_taken_up_to_where_it_was(
    home: Home, tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = next((fixtures / "exports").glob("11-*/**/*.jsonl"))
    log = tmp_path / "projects" / "p" / original.name
    log.parent.mkdir(parents=True)
    lines = original.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-2]))

    def grow(_attempt: int) -> None:
        with log.open("a") as stream:
            stream.writelines(lines[-2:])

    during_reading(monkeypatch, grow)
    assert look(home, log).files["new"] == 1
    monkeypatch.undo()
    look(home, log)
    other = Home(load_settings(tmp_path / "other"))
    look(other, log)
    assert known(home) == known(other)


def test_a_file_that_is_deleted_while_it_is_read_is_kept_as_it_was(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = export(tmp_path / "a.json", *OLD)
    during_reading(monkeypatch, lambda _attempt: source.unlink(missing_ok=True))
    assert look(home, source).files["new"] == 1
    assert known(home) == {"a": 2, "gone": 2}
