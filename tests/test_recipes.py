"""A changed reader, merge, redaction, chunker, room set or model marks what it concerns, and nothing else."""

from datetime import date
from pathlib import Path

import pytest

from palace_pipeline.embedding.convert import NAME
from palace_pipeline.exports.scan import changes, scan
from palace_pipeline.ingest import ingest
from palace_pipeline.ingest import recipes as reader_recipes
from palace_pipeline.ingest.recipes import current_in
from palace_pipeline.planner import EVER, STAGES, due, plan, stale_days
from palace_pipeline.settings import load_settings
from palace_pipeline.stages import recipes as stage_recipes
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import START, chat, export
from tests.stages.test_stages import take

DAYS = [date(2024, 5, 3), date(2024, 7, 22)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of two formats and two days; tests leave it as it is."""
    folder = tmp_path_factory.mktemp("recipes")
    export(folder / "home/inbox/a.json", chat("a", "why?", "because"))
    (folder / "home/inbox/chat.jsonl").write_text(
        '{"role": "user", "content": "hi", "timestamp": "2024-07-22T10:00:00Z"}\n'
        '{"role": "assistant", "content": "hello", "timestamp": "2024-07-22T10:01:00Z"}\n'
    )
    take(Home(load_settings(folder / "home")), folder / "home/inbox")
    return folder / "home"


def marked(path: Path) -> dict[str, list[date]]:
    """Stage -> days that it has work for at once (what follows from a different result is seen when it is there)."""
    home = Home(load_settings(path))
    with home.ledger() as ledger:
        recipes = recipes_of(home)
        found = {
            stage: sorted({date.fromisoformat(row["day"]) for row in due(ledger, stage, EVER, recipes)})
            for stage in STAGES
        }
        assert stale_days(ledger, recipes) == sorted(set().union(*found.values()))
    return {stage: days for stage, days in found.items() if days}


def test_nothing_is_marked_while_nothing_changes(built: Path) -> None:
    assert marked(built) == {}


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("MERGE_RECIPE", ["normalized"]),
        ("CHUNK_RECIPE", ["chunks"]),
        ("ROOMS_RECIPE", ["drawers"]),
        ("PAGE_RECIPE", ["pages"]),
        ("VECTORS_RECIPE", ["vectors"]),
        ("TABLES_RECIPE", ["tables"]),
        ("CONVERSION", ["chunks", "drawers", "vectors"]),  # the model: it cuts, files and is searched by
    ],
)
def test_changed_code_marks_its_own_stage(
    built: Path, monkeypatch: pytest.MonkeyPatch, name: str, stages: list[str]
) -> None:
    monkeypatch.setattr(stage_recipes, name, "another")
    assert marked(built) == dict.fromkeys(stages, DAYS)


@pytest.mark.parametrize(
    ("settings", "stages"),
    [
        ("[redaction]\nprivate_patterns = ['PROJ-\\d{4}']\n", ["redacted"]),
        ("[[rooms]]\nname = 'kitchen'\ndescription = 'cooking'\n", ["drawers"]),
        ("default_rooms = false\n", ["drawers"]),
        ("[[wings]]\nmatch = 'x'\nname = 'y'\n", ["drawers"]),
        ("display_zone = 'Asia/Shanghai'\n", ["tables"]),
        ("color = 'never'\n", []),
        ("[alerts]\ncommand = ['true']\n", []),
    ],
)
def test_changed_settings_mark_the_stage_whose_result_they_change(
    built: Path, settings: str, stages: list[str]
) -> None:
    file = built / "palace.toml"
    before = file.read_bytes()
    file.write_text(settings, encoding="utf-8")
    try:
        assert marked(built) == dict.fromkeys(stages, DAYS)
    finally:
        file.write_bytes(before)


def test_a_changed_reader_marks_the_files_that_it_read_and_no_day_as_long_as_it_says_the_same(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(load_settings(built))
    with home.ledger() as ledger:
        (row,) = ledger.rows("SELECT format FROM files WHERE path LIKE '%/a.json'")
        monkeypatch.setitem(reader_recipes.RECIPES, row["format"], "another")
        found = changes(scan(home.settings.folders, home.path), ledger.known_files(), current_in(home.settings))
        assert [Path(seen.path).name for seen in found] == ["a.json"]
    with home.writing():
        result = ingest(home, batch="again")
    assert result.conversations["unchanged"] == 2
    assert marked(built) == {}


def test_a_reader_that_says_something_else_marks_the_days_of_what_it_read(tmp_path: Path) -> None:
    home = Home(load_settings(tmp_path / "home"))
    file = export(
        tmp_path / "home/inbox/a.json", chat("a", "why?", "because"), chat("b", "x", "y", start=START + 86_400 * 40)
    )
    take(home, file)
    export(file, chat("a", "why?", "because"), chat("b", "x", "y", "z", start=START + 86_400 * 40))
    with home.writing():
        ingest(home, batch="again")
    with home.ledger() as ledger:
        (span,) = plan(ledger, recipes_of(home))
    assert (span.first, span.last) == (date(2024, 6, 12), date(2024, 6, 12))


def test_the_model_of_the_settings_is_part_of_what_it_makes(built: Path) -> None:
    assert NAME in recipes_of(Home(load_settings(built))).vectors
