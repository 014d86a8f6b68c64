"""What `palace purge` says, and that it works where nothing was ever ingested."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.settings import RedactionSettings
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.memory import facts, set_fact
from tests.cli.conftest import Run, palace

__all__ = ["palace"]


class Piped(io.TextIOWrapper):
    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))


@pytest.fixture
def live(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path / "home")
    workspace._funnel = ((), Funnel(RedactionSettings(), b"k" * 32))
    return workspace


def test_a_value_goes_from_a_home_that_was_never_ingested(
    palace: Run, live: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = live.new("My zebra", input="about the zebra")
    live.append(page.id, "tools", "look at the zebra", who="eye")
    set_fact(live, "animal", "zebra")
    monkeypatch.setattr("sys.stdin", Piped(b"zebra\n"))
    result = palace("purge", "--value-from-stdin", "--yes")
    assert result.code == 0, result.err
    assert _holding(live.home, "zebra") == []
    assert facts(live) == {"animal": "[REDACTED:purged]"}
    # It is known for ever: to those who write now, and to the first ingest.
    live.append(page.id, "input", "the zebra once more")
    set_fact(live, "other", "a zebra")
    copy = live.load(page.id).path
    copy.write_text(copy.read_text() + "\n- [ ] by hand: zebra\n")
    assert palace("ingest").code == 0
    assert palace("doctor").code == 0
    shown = [path for path in _holding(live.home, "zebra") if path != copy.relative_to(live.home).as_posix()]
    assert shown == []


def test_a_value_where_there_is_nothing_is_said_so(palace: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Piped(b"zebra\n"))
    assert palace("purge", "--value-from-stdin", "--yes").code == 2


def test_a_short_session_says_what_was_looked_for(palace: Run, live: Workspace) -> None:
    page = live.new("x", input="alpha")
    assert palace("ingest").code == 0
    result = palace("purge", f"session:{page.id}", "--yes")
    assert result.code == 0, result.err
    assert "it said nothing long enough (16 bytes on a line) to be looked for; its ids were" in result.out
    assert "looked for 0" not in result.out
    again = palace("purge", f"session:{page.id}", "--yes")
    assert "nothing is known any more of what it said, so only its ids could be looked for" in again.out


def test_other_cases_and_places_that_stay_are_told(
    palace: Run, live: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = live.new("x", input="We met Zorkton, and ZORKTON, as usual")
    live.new("y", input="never")
    assert palace("ingest").code == 0
    monkeypatch.setattr("sys.stdin", Piped(b"Zorkton\n"))
    result = palace("purge", "--value-from-stdin", "--yes")
    assert result.code == 0, result.err
    assert "in another case of letters it stands in 1 conversation: in texts only exactly" in result.out
    assert "these say nothing" not in result.out
    assert live.load(page.id).session.sections["input"][0].text == "We met [REDACTED:purged], and ZORKTON, as usual"
    monkeypatch.setattr("sys.stdin", Piped(page.id[:4].encode()))
    result = palace("purge", "--value-from-stdin", "--yes")
    assert result.code == 0, result.err
    assert "it also stands in days, times, ids, hashes or fixed words" in result.out
    assert "in another case" not in result.out


def _holding(home: Path, text: str) -> list[str]:
    return [
        path.relative_to(home).as_posix()
        for path in home.rglob("*")
        if text in path.name or (path.is_file() and text.encode() in path.read_bytes())
    ]
