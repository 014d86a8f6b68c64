"""A small real archive, built once, and a copy of it for every test that damages one."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from palace_pipeline.ingest import ingest
from palace_pipeline.planner import Range, plan
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.chunk import chunk
from palace_pipeline.stages.common import Job
from palace_pipeline.stages.drawers import file_drawers
from palace_pipeline.stages.embed import publish_vectors
from palace_pipeline.stages.normalize import normalize
from palace_pipeline.stages.pages import write_pages
from palace_pipeline.stages.publish import publish_tables
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.redact import redact
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import START, chat, export

STAGES = (normalize, redact, chunk, file_drawers, write_pages, publish_vectors, publish_tables)
DAY = date(2024, 5, 3)
SECOND = 1.25
"""Real products write parts of seconds; whole minutes are taken for times of a coarse clock."""


def build(home: Home, *paths: Path) -> list[Range]:
    """Ingest and build what has work."""
    with home.writing():
        ingest(home, list(paths), batch="test")
        with home.ledger() as ledger:
            spans = plan(ledger, recipes_of(home))
        for span in spans:
            for stage in STAGES:
                stage(Job(home, span, recipes_of(home), "test"))
    return spans


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive as it should be: questions and answers, Chinese, a long answer, people, a document, a table of tools."""
    folder = tmp_path_factory.mktemp("sound")
    fixtures = Path(__file__).parents[1] / "fixtures/exports"
    long = " ".join(f"Sentence {n} says a little more about pools, {n % 7} of them at least." for n in range(400))
    export(
        folder / "in/conversations.json",
        chat("a", "why does the pool close?", long, "and the second one?", "It waits.", start=START + SECOND),
        chat("b", "数据库怎么选？", "先看读写比例，再看团队熟悉什么。", start=START + 60 + SECOND),
        chat("c", "another day", "another answer", start=START + 40 * 86_400 + SECOND),
    )
    (folder / "in/note.md").write_text("# Plan\n\nFirst apples.\n\n## Then\n\nThen pears.\n", encoding="utf-8")
    home = Home(load_settings(folder / "home"))
    people = [path for path in sorted(fixtures.iterdir()) if path.name[:2] in ("11", "35", "36")]
    build(home, folder / "in", *people)
    return folder


@pytest.fixture
def home(sound: Path, tmp_path: Path) -> Home:
    """A copy of the sound archive."""
    shutil.copytree(sound / "home", tmp_path / "home")
    return Home(load_settings(tmp_path / "home"))
