"""What `palace doctor` says of what is withheld: which, why, and what a person can do; never what stands there."""

from pathlib import Path

import pytest

from palace_pipeline.doctor import Finding, examine
from palace_pipeline.redaction.engine import RuleEngine
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.redaction.work import WorkLimit
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.withheld import advice, in_words
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import chat, export
from tests.stages.test_withheld import breaking, seeing, status, take


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def notes(home: Home) -> list[Finding]:
    return [finding for finding in examine(home) if finding.what.startswith("chatgpt:")]


def test_a_conversation_that_shows_something_at_the_second_look(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = export(tmp_path / "in/my export.json", chat("bad", "boom is unspeakable", "fine"), chat("good", "hello"))
    with monkeypatch.context() as patched:
        patched.setattr(Funnel, "scan_published", seeing(lambda text: "unspeakable" in text))
        take(home, file)
    (note,) = notes(home)
    assert note.level == "note"
    assert note.what == "chatgpt:bad is withheld as a whole (message 1: a second look still finds test there)"
    assert note.mend == (
        f"look at it with: palace redact --report '{file}'. If it is no secret, add the exact text to allow, or test to "
        "allow_rules; if it is one, add it to known_values ([redaction] in palace.toml). Then: palace ingest"
    )
    assert "unspeakable" not in repr(examine(home))
    # It is no dead end: with an allowed value in the settings it is looked at again.
    redaction = home.settings.redaction.model_copy(update={"allow": ("boom is unspeakable",)})
    changed = Home(home.settings.model_copy(update={"redaction": redaction}))
    take(changed, file)
    assert status(changed, "bad") == "ok"
    assert notes(changed) == []


def test_a_field_that_could_not_be_judged(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = export(tmp_path / "in/a.json", chat("bad", "boom is unspeakable", "fine", "boom again", "yes"))
    with monkeypatch.context() as patched:
        patched.setattr(RuleEngine, "scan", breaking("boom", ValueError()))
        for _ in range(6):  # until it is not tried any more
            take(home, file)
    (note,) = notes(home)
    with home.ledger() as ledger:
        row = ledger.conversation(("chatgpt", "bad"))
    assert row is not None
    assert note.what == (
        f"chatgpt:bad, page {row['page']} is there, but for fields (message 1: the redactor failed at it; "
        "message 3: the redactor failed at it)"
    )
    assert note.mend == "palace backfill --day 2024-05-03 tries it again; if it stays, report it as a bug"


def test_every_reason_has_words_of_its_own(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for reason in ("redactor-error", "work-limit", "too-long", "not-settled", "unreadable"):
        assert reason not in in_words(reason)
        assert "allow_rules" not in advice(reason)
    assert "email to allow_rules" in advice("email")
    monkeypatch.setattr(RuleEngine, "scan", breaking("boom", WorkLimit("spent")))
    take(home, export(tmp_path / "in/a.json", *(chat(f"c{n:02}", "boom", "fine") for n in range(53))))
    found = [finding for finding in examine(home) if "withheld" in finding.what or "fields" in finding.what]
    assert len(notes(home)) == 50
    assert found[-1].what == "and 3 more conversations with something withheld (work-limit 3)"
