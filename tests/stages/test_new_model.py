"""Another embedding model: the old vectors serve until the new ones are whole, and no store ever mixes the two."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from palace_pipeline.checks import examine
from palace_pipeline.planner import Range, plan
from palace_pipeline.search.engine import Searcher
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.common import Job
from palace_pipeline.stages.missing import mark_missing
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.home import Home
from palace_pipeline.store.vectors import reading
from tests.embedding.own_model import make_folder
from tests.ingest.exports_for_tests import START, chat, export
from tests.rebuild.archives import STAGES, home_at, take

FIRST, SECOND = (Range(date(2024, month, 1), date(2024, month, 28)) for month in (5, 6))
EVER = Range(date(2010, 1, 1), date(2030, 1, 1))


@pytest.fixture
def changed(tmp_path: Path) -> Home:
    """An archive of two months, whose settings now ask for another model."""
    home = home_at(tmp_path / "home")
    take(home, export(tmp_path / "in/a.json", chat("a", "why lanterns?", "because")))
    take(home, export(tmp_path / "in/b.json", chat("b", "which kettle?", "copper", start=START + 31 * 86_400)))
    model = make_folder(tmp_path / "model")
    (home.path / "palace.toml").write_text(f'[embedding]\nmodel = "{model}"\n', encoding="utf-8")
    return Home(load_settings(home.path))


def build(home: Home, span: Range) -> None:
    for stage in STAGES:
        stage(Job(home, span, recipes_of(home), "test"))


def models(folder: Path) -> tuple[str, int]:
    """What made a collection, and how many drawers it holds."""
    with reading(folder) as reader:
        assert reader is not None
        count = reader.count()
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as tables:
        (name,) = tables.execute("SELECT str_value FROM collection_metadata WHERE key = 'model'").fetchone()
    return name, count


def test_the_old_side_serves_until_the_new_one_is_whole(changed: Home) -> None:
    with changed.writing():
        build(changed, FIRST)
        assert models(changed.path / "chroma") == ("multilingual-e5-small", 2)
        assert models(changed.chroma_next) == ("tiny", 1)
        assert set(changed.lake.read("clean/vectors", ["2024-05"])["model"].str.split("@").list.first()) == {"tiny"}
        result = Searcher(changed.path, changed.settings).search("kettle")
        assert {hit.conversation_id for hit in result.hits} == {"a", "b"}
        assert all(hit.dense is not None for hit in result.hits)  # each by the model that made its vector
        assert "not by meaning" not in result.tried
        build(changed, SECOND)
    assert not changed.chroma_next.exists()
    assert models(changed.path / "chroma") == ("tiny", 2)
    assert all(one.passed for one in examine(changed, EVER))


def test_who_was_killed_before_the_new_side_took_its_place_finishes(
    changed: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with changed.writing():
        build(changed, FIRST)
        with monkeypatch.context() as patch:
            patch.setattr("palace_pipeline.stages.embed.take_place", _killed)
            with pytest.raises(KeyboardInterrupt):
                build(changed, SECOND)
        assert models(changed.path / "chroma")[0] == "multilingual-e5-small"
        with changed.ledger() as ledger:
            mark_missing(changed, ledger)
            spans = plan(ledger, recipes_of(changed))
        for span in spans:
            build(changed, span)
    assert not changed.chroma_next.exists()
    assert models(changed.path / "chroma") == ("tiny", 2)


def _killed(*_: Path) -> None:
    raise KeyboardInterrupt


def test_back_to_the_old_model_before_the_new_one_was_whole(changed: Home) -> None:
    with changed.writing():
        build(changed, FIRST)
        (changed.path / "palace.toml").write_text("", encoding="utf-8")
        home = Home(load_settings(changed.path))
        build(home, EVER)
    assert not home.chroma_next.exists()
    assert models(home.path / "chroma") == ("multilingual-e5-small", 2)
    assert all(one.passed for one in examine(home, EVER))
