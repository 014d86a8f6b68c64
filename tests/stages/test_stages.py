"""The stages one after the other on small exports, without Dagster: what each leaves, and that nothing is done twice."""

import json
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.checks import audit
from palace_pipeline.ingest import ingest
from palace_pipeline.planner import Range, plan
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.chunk import chunk
from palace_pipeline.stages.common import Counts, Job
from palace_pipeline.stages.drawers import file_drawers
from palace_pipeline.stages.embed import publish_vectors
from palace_pipeline.stages.missing import mark_missing
from palace_pipeline.stages.normalize import normalize
from palace_pipeline.stages.pages import write_pages
from palace_pipeline.stages.publish import publish_tables
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.redact import redact
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from tests.ingest.exports_for_tests import START, chat, export

STAGES = (normalize, redact, chunk, file_drawers, write_pages, publish_vectors, publish_tables)
EVERYTHING = Range(date(2010, 1, 1), date(2030, 1, 1))
DAY = 86_400


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def take(home: Home, *paths: Path) -> dict[str, Counts]:
    """Ingest and run every stage for the planned ranges; returns the last counts of each stage."""
    counts: dict[str, Counts] = {}
    with home.writing():
        ingest(home, list(paths), batch="test")
        with home.ledger() as ledger:
            spans = plan(ledger, recipes_of(home))
        for span in spans:
            counts |= run(home, span)
    return counts


def run(home: Home, span: Range, *, force: bool = False) -> dict[str, Counts]:
    job = Job(home, span, recipes_of(home), "test", force=force)
    return {stage.__name__: stage(job) for stage in STAGES}


def snapshot(home: Home) -> dict[str, bytes]:
    """Every page and every lake file: name -> bytes."""
    files = [*home.conversations.rglob("*.md"), *home.lake.folder.rglob("*.parquet")]
    return {path.relative_to(home.path).as_posix(): path.read_bytes() for path in sorted(files)}


def planned(home: Home) -> list[Range]:
    with home.ledger() as ledger:
        return plan(ledger, recipes_of(home))


def page_of(home: Home, name: str) -> Path:
    with home.ledger() as ledger:
        row = ledger.conversation(("chatgpt", name))
    assert row is not None
    assert row["page"] is not None
    return home.path / row["page"]


def secret() -> str:
    """Made at run time, so that no literal in the repository looks like one."""
    return "gh" + "p_" + "a1B2c3D4e5F6" * 3


def test_every_stage_agrees_and_a_second_run_has_nothing_to_do(home: Home, tmp_path: Path) -> None:
    file = export(
        tmp_path / "in/a.json",
        chat("a", "why?", "because"),
        chat("b", "数据库怎么选？", "先看读写比例。", start=START + DAY),
    )
    counts = take(home, file)
    assert counts["write_pages"]["pages"] == 2
    assert counts["publish_vectors"]["missing"] == 0
    assert audit(home, EVERYTHING) == {}
    before = snapshot(home)
    assert take(home, file) == {}
    assert snapshot(home) == before


def test_redoing_a_day_by_force_gives_the_same_bytes(home: Home, tmp_path: Path) -> None:
    take(home, export(tmp_path / "in/a.json", chat("a", "why?", "because"), chat("b", "x", "y", start=START + DAY)))
    before = snapshot(home)
    with home.writing():
        counts = run(home, Range(date(2024, 5, 3), date(2024, 5, 3)), force=True)
    assert counts["normalize"]["conversations"] == 1
    assert snapshot(home) == before
    assert audit(home, EVERYTHING) == {}


def test_a_grown_conversation_changes_its_own_page_only(home: Home, tmp_path: Path) -> None:
    file = export(tmp_path / "in/a.json", chat("a", "why?", "because"), chat("b", "x", "y"))
    take(home, file)
    before = page_of(home, "b").stat().st_mtime_ns
    export(file, chat("a", "why?", "because", "and then?", "nothing"), chat("b", "x", "y"))
    counts = take(home, file)
    assert counts["normalize"]["conversations"] == 1
    assert "and then?" in page_of(home, "a").read_text()
    assert page_of(home, "b").stat().st_mtime_ns == before
    assert audit(home, EVERYTHING) == {}


def test_what_many_conversations_lose_is_taken_out_of_each_alone(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"chat-{number}" for number in range(5)]
    take(home, export(tmp_path / "in/a.json", *(chat(name, f"why {name}?") for name in names)))
    original, taken = Ledger.write_many, list[tuple[Any, ...]]()

    def write_many(self: Ledger, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        rows = [tuple(row) for row in rows]
        taken.extend(rows if "DELETE FROM published" in sql else ())
        original(self, sql, rows)

    monkeypatch.setattr(Ledger, "write_many", write_many)
    counts = take(home, export(tmp_path / "in/a.json", *(chat(name, f"why {name}?", "because") for name in names)))
    assert counts["publish_vectors"]["removed"] == 5
    assert sorted(conversation for _, conversation, _ in taken) == names  # and not five times five
    with home.ledger() as ledger:
        left = ledger.rows("SELECT conversation_id FROM published ORDER BY 1")
    assert [row["conversation_id"] for row in left] == names
    assert audit(home, EVERYTHING) == {}


def test_an_older_export_starts_no_work_downstream(home: Home, tmp_path: Path) -> None:
    take(home, export(tmp_path / "in/new.json", chat("a", "why?", "because", "more")))
    before = snapshot(home)
    counts = take(home, export(tmp_path / "in/old.json", chat("a", "why?")))
    assert all(count.get("conversations", 0) == 0 for name, count in counts.items() if name != "normalize")
    assert snapshot(home) == before


def test_a_secret_is_in_no_store_but_vault_and_raw_lake(home: Home, tmp_path: Path) -> None:
    token = secret()
    take(home, export(tmp_path / "in/a.json", chat("a", f"my token is {token}", f"never show {token} to anyone")))
    page = page_of(home, "a").read_text()
    assert "[REDACTED:github-pat]" in page
    for path in home.path.rglob("*"):
        inside = path.relative_to(home.path).as_posix()
        if path.is_file() and not inside.startswith(("vault/", "lake/raw/")):
            assert token.encode() not in path.read_bytes(), inside


def test_what_the_scan_still_finds_is_withheld_whole(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from palace_pipeline.redaction.funnel import Funnel, Leak

    original = Funnel.scan_published

    def scan(self: Funnel, texts: list[str], *rest: Any) -> list[Leak]:
        found = original(self, texts, *rest)
        return found + [Leak(n, 0, 1, "test", "test") for n, text in enumerate(texts) if "poison" in text]

    monkeypatch.setattr(Funnel, "scan_published", scan)
    file = export(tmp_path / "in/a.json", chat("bad", "poison", "x"), chat("good", "hello", "y"))
    counts = take(home, file)
    assert counts["redact"]["withheld_conversations"] == 1
    assert counts["write_pages"]["pages"] == 1
    assert [path for path in home.conversations.rglob("*.md") if "poison" in path.read_text()] == []
    assert audit(home, EVERYTHING) == {}
    assert planned(home) == []


def test_a_better_date_moves_rows_page_and_notes(home: Home, tmp_path: Path) -> None:
    take(home, export(tmp_path / "in/a.json", chat("a", "part two", "yes")))
    page = page_of(home, "a")
    page.write_text(page.read_text().rstrip("\n") + "\nmy own note\n")
    earlier = chat("a", "part two", "yes")
    earlier["mapping"]["a-0"]["message"]["create_time"] = START - 40 * DAY
    earlier["update_time"] = START + 1_000
    take(home, export(tmp_path / "in/b.json", earlier))
    moved = page_of(home, "a")
    assert moved.name.startswith("2024-03-24")
    assert "my own note" in moved.read_text()
    assert not page.exists()
    assert home.lake.read("clean/messages", ["2024-05"]).is_empty()
    assert audit(home, EVERYTHING) == {}
    assert planned(home) == []


def test_a_resumed_copy_replaces_the_session_it_repeats(home: Home, fixtures: Path) -> None:
    folder = fixtures / "exports/15-claude-code-resume-dup"
    first, copy = sorted(folder.glob("*.jsonl"))
    take(home, first)
    assert len(list(home.conversations.rglob("*.md"))) == 1
    take(home, copy)
    pages = list(home.conversations.rglob("*.md"))
    assert len(pages) == 1
    assert "Rain day added." in pages[0].read_text()
    assert audit(home, EVERYTHING) == {}


def test_a_page_is_not_withheld_for_its_own_ids(home: Home, tmp_path: Path) -> None:
    # The seal of this very page begins with two letters and a number that passes an account number's check.
    line = {
        "type": "user",
        "sessionId": "s4-383",
        "uuid": "u4-383",
        "timestamp": "2024-01-05T00:00:00Z",
        "message": {"role": "user", "content": "small session 4 383 hello"},
    }
    (tmp_path / "in").mkdir()
    (tmp_path / "in/s4-383.jsonl").write_text(json.dumps(line) + "\n")
    counts = take(home, tmp_path / "in/s4-383.jsonl")
    assert (counts["write_pages"]["pages"], counts["write_pages"]["withheld"]) == (1, 0)
    assert audit(home, EVERYTHING) == {}


def test_deleted_indexes_and_pages_come_back(home: Home, tmp_path: Path) -> None:
    import shutil

    file = export(tmp_path / "in/a.json", chat("a", "why?", "because"), chat("b", "x", "y"))
    take(home, file)
    page = page_of(home, "b")
    before = page.read_bytes()
    page.unlink()
    shutil.rmtree(home.path / "chroma")
    shutil.rmtree(home.path / "lexical")
    home.warehouse.unlink()
    assert planned(home) == []
    with home.ledger() as ledger:
        assert mark_missing(home, ledger) == 4
    take(home, file)
    assert page.read_bytes() == before
    with home.ledger() as ledger:
        assert mark_missing(home, ledger) == 0
    assert home.warehouse.exists()
    assert audit(home, EVERYTHING) == {}
    from palace_pipeline.store.lexical import open_reader

    reader = open_reader(home.path / "lexical")
    assert reader is not None
    assert reader.count() == 2
