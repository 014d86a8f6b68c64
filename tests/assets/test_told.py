"""Errors as Dagster may show them: what happened, where, and what is next, and never a name that a chat gave."""

import errno
import sqlite3
from pathlib import Path

import pytest

from assets.running import failure


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PALACE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_that_may_not_be_written_is_named_and_no_page_is(home: Path, number: int) -> None:
    page = home / "conversations/chatgpt/2024/my secret plan.md"
    said = str(failure(OSError(number, "no", str(page))).description)
    assert str(home / "conversations") in said
    assert "secret" not in said
    assert "has to be writable" in said
    outside = str(failure(OSError(number, "no", "/elsewhere/my secret plan.md")).description)
    assert "a file in /elsewhere. " in outside
    assert "secret" not in outside


def test_a_database_that_may_not_be_written_is_told_likewise(home: Path) -> None:
    said = str(failure(sqlite3.OperationalError("attempt to write a readonly database")).description)
    assert f"Read-only file system: {home}. " in said


def test_any_other_error_is_its_type_and_place() -> None:
    try:
        raise ValueError("the chat said: because")
    except ValueError as error:
        said = str(failure(error).description)
    assert said.startswith("ValueError at test_told.py:")
    assert "because" not in said


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("sessions/2026-11-30/1430-abcdef1-my-secret-plan.md", "sessions/2026-11-30/1430-abcdef1…"),
        ("memory/entities/jane-secret.md", "memory/entities"),
        ("memory/facts.md", "memory/facts.md"),
    ],
)
def test_a_page_that_people_write_is_named_without_its_title(home: Path, place: str, said: str) -> None:
    told = str(failure(PermissionError(errno.EACCES, "no", str(home / place))).description)
    assert f"{home / said}. What was finished" in told
    assert "This one file" in told
    assert "secret" not in told
