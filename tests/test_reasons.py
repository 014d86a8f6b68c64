"""Why a run is started: counted by the first stage that has work for a conversation."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from palace_pipeline.ingest import ingest
from palace_pipeline.planner import EVER, Range
from palace_pipeline.reasons import reason_for
from palace_pipeline.settings import Settings
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import chat, export

STAGES = ("normalized", "redacted", "chunks", "drawers", "pages", "vectors", "tables")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(Settings(home=tmp_path / "home"))
    export(tmp_path / "home/inbox/a.json", chat("a", "why?", "because"), chat("b", "how?", "so"))
    with home.writing():
        ingest(home, None, batch="b")
    return home


def build_all(home: Home, *, chunker: str | None = None) -> None:
    """Note every stage as built from what it would be built from now (by the planner's own words)."""
    from palace_pipeline.planner import EXPECTED

    recipes = recipes_of(home)
    values = {name: chunker if name == "chunks" and chunker else getattr(recipes, name) for name in recipes.__slots__}
    with home.ledger() as ledger, ledger.transaction():
        for stage in STAGES:
            ledger.db.execute(f"UPDATE conversations SET {stage}_in = {EXPECTED[stage]}", values)
            if stage in ("normalized", "redacted", "chunks", "drawers"):
                ledger.db.execute(f"UPDATE conversations SET {stage}_out = 'o'")


def reason(home: Home, span: Range = EVER) -> str:
    with home.ledger() as ledger:
        return reason_for(ledger, recipes_of(home), span)


def test_what_was_never_built_is_new(home: Home) -> None:
    assert reason(home) == "conversations: 2 new"
    assert reason(home, Range(date(2030, 1, 1), date(2030, 1, 2))) == "days that lost a conversation"


def test_a_changed_recipe_is_told_from_a_changed_source(home: Home) -> None:
    build_all(home, chunker="an older one")
    assert reason(home) == "conversations: 2 under a changed chunker"
    build_all(home)
    with home.ledger() as ledger:
        ledger.write("UPDATE conversations SET input = 'other' WHERE conversation_id = 'a'")
        assert reason_for(ledger, recipes_of(home), EVER) == "conversations: 1 changed at the source"
        assert reason_for(ledger, replace(recipes_of(home), redaction="newer"), EVER) == (
            "conversations: 1 changed at the source, 1 under changed redaction"
        )


def test_a_stage_that_was_cut_off_is_not_finished(home: Home) -> None:
    build_all(home)
    with home.ledger() as ledger:
        ledger.write("UPDATE conversations SET tables_in = NULL WHERE conversation_id = 'b'")
    assert reason(home) == "conversations: 1 not finished"
