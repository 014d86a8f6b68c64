"""Small steps in any order end in the archive that one step makes: with months in parts, tables brought up to date by
changed rows and files, and pages looked for folder by folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace_pipeline.ingest import ingest
from palace_pipeline.planner import plan
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.common import Job
from palace_pipeline.stages.missing import mark_missing
from palace_pipeline.stages.publish import publish_exports
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store import lake as lake_module
from palace_pipeline.store.home import Home
from tests.archive_state import state
from tests.ingest.exports_for_tests import START, chat, export
from tests.stages.test_stages import STAGES

DAY = 86_400
OF_HISTORY = ("ledger", "vault")
"""What also depends on which files were seen when."""


def take(home: Home, folder: Path) -> None:
    """What `palace ingest` does, without Dagster."""
    with home.writing():
        ingest(home, [folder], batch="test")
        with home.ledger() as ledger:
            mark_missing(home, ledger)
            spans = plan(ledger, recipes_of(home))
        for span in spans:
            job = Job(home, span, recipes_of(home), "test")
            for stage in STAGES:
                stage(job)
        publish_exports(home, "test")
        with home.ledger() as ledger:
            assert plan(ledger, recipes_of(home)) == []


def write(folder: Path, texts: dict[str, list[str]]) -> None:
    """A file for each chat; days lie apart by their names."""
    for name, said in texts.items():
        if said:
            day = START + DAY * 20 * (ord(name) - ord("a"))
            export(folder / f"{name} of ada@example.com.json", chat(name, *said, start=day))


steps = st.lists(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["short", "a longer answer " * 20])), max_size=3),
    min_size=1,
    max_size=4,
)


def check(folder: Path, done: list[list[tuple[str, str]]], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lake_module, "PART_BYTES", size)
        stepwise = Home(load_settings(folder / "stepwise"))
        texts: dict[str, list[str]] = {name: ["first"] for name in "ab"}
        write(folder / "in", texts)
        take(stepwise, folder / "in")
        for number, said in enumerate(done):
            for name, text in said:
                texts.setdefault(name, []).append(f"{number} {text}")
            write(folder / "in", texts)
            if number == 1:
                for page in list(stepwise.conversations.rglob("*.md"))[:1]:
                    page.unlink()
            take(stepwise, folder / "in")
    once = Home(load_settings(folder / "once"))
    once.path.mkdir()
    shutil.copy(stepwise.path / ".key", once.path / ".key")  # hashes of findings are keyed
    take(once, folder / "in")
    found, wanted = state(stepwise.path), state(once.path)
    for store in wanted:
        if store not in OF_HISTORY:
            assert found[store] == wanted[store], store
    before = found["tables"]
    with stepwise.writing():
        publish_exports(stepwise, "test", anew=True)
    assert state(stepwise.path)["tables"] == before


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.sampled_from([2_000, 4 << 20]))
def test_steps_end_in_what_one_step_makes(
    tmp_path_factory: pytest.TempPathFactory, done: list[list[tuple[str, str]]], size: int
) -> None:
    check(tmp_path_factory.mktemp("steps"), done, size)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.sampled_from([1_000, 2_000, 5_000]))
def test_many_steps_end_in_what_one_step_makes(
    tmp_path_factory: pytest.TempPathFactory, done: list[list[tuple[str, str]]], size: int
) -> None:
    check(tmp_path_factory.mktemp("steps"), done, size)


def test_a_page_deleted_in_a_folder_that_was_looked_at_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palace_pipeline.stages.missing._SETTLED_NS", 0)
    home = Home(load_settings(tmp_path / "home"))
    write(tmp_path / "in", {"a": ["x"], "b": ["y"]})
    take(home, tmp_path / "in")
    with home.writing(), home.ledger() as ledger:
        assert mark_missing(home, ledger) == 0
        noted = ledger.meta("page_folders")
        assert noted is not None
        assert "conversations/chatgpt" in noted
        page = next(home.conversations.rglob("*.md"))
        page.unlink()
        assert mark_missing(home, ledger) == 1
        assert ledger.meta("page_folders") == "{}"
        assert len(plan(ledger, recipes_of(home))) == 1
    take(home, tmp_path / "in")
    assert page.exists()


def test_an_unchanged_folder_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palace_pipeline.stages.missing._SETTLED_NS", 0)
    home = Home(load_settings(tmp_path / "home"))
    write(tmp_path / "in", {"a": ["x"], "b": ["y"]})
    take(home, tmp_path / "in")
    with home.writing(), home.ledger() as ledger:
        mark_missing(home, ledger)
        monkeypatch.setattr("palace_pipeline.stages.missing._names", lambda _folder: pytest.fail("was read"))
        assert mark_missing(home, ledger) == 0
