"""Faults in redaction and hits of the second look, stage by stage: nothing is published, the rest goes on, and what was
withheld is named and tried again, but not for ever."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.checks import audit
from palace_pipeline.ingest import ingest
from palace_pipeline.planner import Range, plan
from palace_pipeline.redaction.engine import RuleEngine
from palace_pipeline.redaction.funnel import Funnel, Leak
from palace_pipeline.redaction.hits import Span
from palace_pipeline.redaction.work import WorkLimit
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.common import Counts, Job
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.withheld import ATTEMPTS, ATTEMPTS_AFTER_ERROR, try_again
from palace_pipeline.store.home import Home
from palace_pipeline.store.receipts import compose
from tests.archive_texts import stored_texts
from tests.ingest.exports_for_tests import chat, export
from tests.stages.test_stages import EVERYTHING, STAGES, page_of, secret


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def take(home: Home, *paths: Path) -> list[dict[str, Counts]]:
    """Ingest and build once as `palace ingest` does; returns the counts of every range that was run."""
    counts: list[dict[str, Counts]] = []
    with home.writing():
        ingest(home, list(paths), batch="test")
        with home.ledger() as ledger:
            try_again(ledger)
        for _ in range(3):
            with home.ledger() as ledger:
                spans = plan(ledger, recipes_of(home))
            counts += [build(home, span) for span in spans]
    return counts


def build(home: Home, span: Range) -> dict[str, Counts]:
    job = Job(home, span, recipes_of(home), "test")
    return {stage.__name__: stage(job) for stage in STAGES}


def status(home: Home, name: str) -> str:
    with home.ledger() as ledger:
        row = ledger.conversation(("chatgpt", name))
    assert row is not None
    return row["status"]


def places(home: Home) -> list[tuple[str, str, str]]:
    with home.ledger() as ledger:
        return [
            (held["conversation_id"], place["place"], place["kind"])
            for held in ledger.withheld()
            for place in held["places"]
        ]


def breaking(word: str, error: Exception) -> Callable[..., list[list[Span]]]:
    """`RuleEngine.scan`, but a text with this word in it raises."""
    original = RuleEngine.scan

    def scan(self: RuleEngine, fields: Sequence[str]) -> list[list[Span]]:
        if any(word in text for text in fields):
            raise error
        return original(self, fields)

    return scan


def seeing(flagged: Callable[[str], bool]) -> Callable[..., list[Leak]]:
    """`Funnel.scan_published`, but certain texts are a hit."""
    original = Funnel.scan_published

    def scan(self: Funnel, texts: Sequence[str], *rest: Any) -> list[Leak]:
        return [
            *original(self, texts, *rest),
            *(Leak(n, 0, 1, "test", "t") for n, text in enumerate(texts) if flagged(text)),
        ]

    return scan


def in_some_store(home: Home, word: str) -> list[str]:
    # Chroma's log of writes is emptied later.
    return [place for place, text in stored_texts(home.path) if word in text and "embeddings_queue" not in place]


@pytest.mark.parametrize(
    ("error", "reason", "attempts"),
    [(WorkLimit("spent"), "work-limit", ATTEMPTS), (ValueError("boom"), "redactor-error", ATTEMPTS_AFTER_ERROR)],
)
def test_a_field_that_cannot_be_judged_is_withheld_and_tried_again_a_few_times(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str, attempts: int
) -> None:
    file = export(tmp_path / "in/a.json", chat("bad", "boom is unspeakable", "quite fine"), chat("good", "hello", "y"))
    with monkeypatch.context() as broken:
        broken.setattr(RuleEngine, "scan", breaking("boom", error))
        runs = [len(take(home, file)) for _ in range(attempts + 2)]
        assert runs == [1] * attempts + [0, 0]
        assert (status(home, "bad"), status(home, "good")) == ("partial", "ok")
        assert places(home) == [("bad", "message 1", reason)]
        assert f"[WITHHELD:{reason}]" in page_of(home, "bad").read_text()
        assert in_some_store(home, "unspeakable") == []
        assert in_some_store(home, "quite fine")
        assert audit(home, EVERYTHING) == {}
    assert take(home, file) == []  # it gave up until text or rules change
    grown = export(tmp_path / "in/b.json", chat("bad", "boom is unspeakable", "quite fine", "more", "yes"))
    take(home, grown)
    assert (status(home, "bad"), places(home)) == ("ok", [])
    assert "boom is unspeakable" in page_of(home, "bad").read_text()


def test_what_failed_once_is_whole_after_the_next_run(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = export(tmp_path / "in/a.json", chat("bad", "boom", "quite fine"))
    with monkeypatch.context() as broken:
        broken.setattr(RuleEngine, "scan", breaking("boom", MemoryError()))
        take(home, file)
    assert status(home, "bad") == "partial"
    take(home, file)
    assert (status(home, "bad"), places(home)) == ("ok", [])
    assert "boom" in page_of(home, "bad").read_text()
    assert take(home, file) == []
    assert audit(home, EVERYTHING) == {}


@pytest.mark.parametrize("name", ["redact_conversation", "scan_published"])
def test_an_error_around_the_scan_withholds_the_conversation_and_never_ends_the_run(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    original: Any = getattr(Funnel, name)

    def broken(self: Funnel, given: Any, *rest: Any) -> Any:
        if "unspeakable" in repr(given):
            raise RuntimeError("unspeakable")
        return original(self, given, *rest)

    monkeypatch.setattr(Funnel, name, broken)
    file = export(tmp_path / "in/a.json", chat("bad", "unspeakable", "x"), chat("good", "hello", "y"))
    (counts, *_) = take(home, file)
    assert counts["redact"]["withheld_conversations"] == 1
    assert (status(home, "bad"), status(home, "good")) == ("withheld", "ok")
    assert places(home) == [("bad", "conversation", "redactor-error")]
    assert in_some_store(home, "unspeakable") == []
    assert audit(home, EVERYTHING) == {}


def test_a_hit_in_what_a_chunk_joins_withholds_the_conversation_everywhere_in_the_same_run(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Funnel,
        "scan_published",
        seeing(lambda text: "left half" in text and "right half" in text and text[0] not in "#C"),
    )
    file = export(tmp_path / "in/a.json", chat("bad", "left half", "right half"), chat("good", "hello", "y"))
    (counts, *more) = take(home, file)
    assert more == []
    assert counts["chunk"]["withheld"] == 1
    assert (status(home, "bad"), status(home, "good")) == ("withheld", "ok")
    assert places(home) == [("bad", "chunk 1", "test")]
    assert in_some_store(home, "half") == []
    assert audit(home, EVERYTHING) == {}
    assert [len(take(home, file)) for _ in range(ATTEMPTS)] == [1] * (ATTEMPTS - 1) + [0]
    with home.ledger() as ledger:
        receipt = compose(ledger, "test")
    assert receipt["withheld_places"] == [
        {
            "provider": "chatgpt",
            "conversation_id": "bad",
            "what": "conversation",
            "places": [{"place": "chunk 1", "kind": "test"}],
        }
    ]


def test_a_hit_on_a_page_withholds_the_conversation_everywhere_also_what_was_published_before(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = export(tmp_path / "in/a.json", chat("bad", "some question", "some answer"), chat("good", "hello", "y"))
    take(home, file)
    page = page_of(home, "bad")
    assert in_some_store(home, "some answer")
    with monkeypatch.context() as strict:
        strict.setattr(Funnel, "scan_published", seeing(lambda text: text.startswith("# ") and "late" in text))
        grown = export(tmp_path / "in/b.json", chat("bad", "some question", "some answer", "too late", "for all"))
        (counts, *more) = take(home, grown)
        assert more == []
        assert counts["write_pages"]["withheld"] == 1
        assert not page.exists()
        assert listed_in_notes(home) == ["Chat good"]
        assert status(home, "bad") == "withheld"
        assert places(home) == [("bad", "page", "test")]
        assert in_some_store(home, "some answer") == []
        assert in_some_store(home, "too late") == []
        assert audit(home, EVERYTHING) == {}
    take(home, grown)
    assert (status(home, "bad"), places(home)) == ("ok", [])
    assert page_of(home, "bad").exists()
    assert listed_in_notes(home) == ["Chat bad", "Chat good"]
    assert audit(home, EVERYTHING) == {}


def listed_in_notes(home: Home) -> list[str]:
    """Titles in the notes of days and rooms."""
    texts = [path.read_text("utf-8") for path in (home.path / "notes").rglob("*.md")]
    return sorted({title for text in texts for title in re.findall(r"\[(Chat \w+)\]", text)})


def test_a_page_that_a_killed_run_left_is_looked_at_too(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = export(tmp_path / "in/a.json", chat("bad", "some question", "poison"))
    take(home, file)
    page = page_of(home, "bad")
    with home.ledger() as ledger:
        ledger.write("UPDATE conversations SET pages_in = NULL")
    monkeypatch.setattr(Funnel, "scan_published", seeing(lambda text: text.startswith("# ") and "poison" in text))
    take(home, file)
    assert not page.exists()
    assert in_some_store(home, "poison") == []


def test_what_an_index_still_shows_after_all_is_counted(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from palace_pipeline.store.vectors import VectorStore

    file = export(tmp_path / "in/a.json", chat("bad", "some question", "some answer"))
    (counts, *_) = take(home, file)
    assert counts["publish_vectors"]["scan_hits"] == 0
    original = VectorStore.shown
    monkeypatch.setattr(VectorStore, "shown", lambda self, ids: [*original(self, ids), ("title in Chroma", secret())])
    with home.ledger() as ledger:
        ledger.write("UPDATE conversations SET vectors_in = NULL")
    (counts, *_) = take(home, file)
    assert counts["publish_vectors"]["scan_hits"] == 1


def test_a_hit_in_the_name_that_a_page_would_get_withholds_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Funnel, "scan_published", seeing(lambda text: text == "chat-bad"))
    take(home, export(tmp_path / "in/a.json", chat("bad", "x", "y"), chat("good", "x", "y")))
    assert places(home) == [("bad", "page name", "test")]
    assert len(list(home.conversations.rglob("*.md"))) == 1
