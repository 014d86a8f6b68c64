"""What was masked after it had been published leaves no trace in the bytes of `palace.duckdb`, and nobody finds it missing."""

from datetime import date
from pathlib import Path

import pytest

from palace_pipeline.planner import Range
from palace_pipeline.purge import find_conversation, purge_conversation
from palace_pipeline.settings import load_settings
from palace_pipeline.stages import publish
from palace_pipeline.stages.publish import publish_exports
from palace_pipeline.store import warehouse
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import START, chat, export
from tests.stages.test_stages import DAY, run, take

WORD = "zq7Kfw2Lm" + "9xRt4Vb8"
"""Greatest of all titles, so that the statistics of the column hold its beginning."""
OTHER = "zz8 ordinary words of another title"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def titled(name: str, title: str, *texts: str, start: float = START) -> dict[str, object]:
    return chat(name, *texts, start=start) | {"title": title}


def stands_in(home: Home, word: str) -> bool:
    data = home.warehouse.read_bytes()
    return word.encode() in data or word[:8].encode() in data


class Builds:
    """Counts full and other builds, and whether the file was there all the time."""

    def __init__(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = self.partly = 0
        original = warehouse.publish

        def counting(*args: object, **kwargs: object) -> object:
            assert home.warehouse.exists()
            result = original(*args, **kwargs)  # pyright: ignore[reportArgumentType]
            self.full += result.full
            self.partly += result.written and not result.full
            return result

        monkeypatch.setattr(publish.warehouse, "publish", counting)


def test_a_title_that_is_masked_when_its_chat_goes_on(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = export(tmp_path / "in/a.json", titled("a", WORD, "what is this", "no idea"), titled("b", "x", "hi", "ho"))
    take(home, file)
    assert stands_in(home, WORD)
    builds = Builds(home, monkeypatch)
    export(file, titled("a", WORD, "what is this", "no idea", f"my password: {WORD}"), titled("b", "x", "hi", "ho"))
    take(home, file)
    assert not stands_in(home, WORD)
    assert (builds.full, builds.partly) == (1, 0)
    # What was masked before is no reason to build again.
    export(file, titled("a", WORD, "what is this", "no idea", f"my password: {WORD}", "oh"), titled("b", "x", "hi"))
    take(home, file)
    assert (builds.full, builds.partly) == (1, 1)


def test_with_remember_a_claim_of_another_day(home: Home, tmp_path: Path) -> None:
    settings = home.settings.model_copy(
        update={"redaction": home.settings.redaction.model_copy(update={"remember": True})}
    )
    home = Home(settings)
    take(home, export(tmp_path / "in/a.json", titled("a", WORD, "what is this", "no idea")))
    assert stands_in(home, WORD)
    take(home, export(tmp_path / "in/b.json", titled("b", "b", f"the api key is {WORD}", "ok", start=START + 20 * DAY)))
    take(home)
    assert not stands_in(home, WORD)


def test_a_backfill_of_some_days_after_a_new_rule(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = titled("a", WORD, "what is this", "no idea")
    take(home, export(tmp_path / "in/a.json", first, titled("b", OTHER, "hi", "ho", start=START + 40 * DAY)))
    redaction = home.settings.redaction.model_copy(update={"private_patterns": [WORD, OTHER]})
    home = Home(home.settings.model_copy(update={"redaction": redaction}))
    with home.writing():
        run(home, Range(date(2024, 5, 3), date(2024, 5, 3)), force=True)
        publish_exports(home, "test")
    assert not stands_in(home, WORD)
    assert stands_in(home, OTHER)  # its day has still to be done
    builds = Builds(home, monkeypatch)
    take(home)
    assert not stands_in(home, OTHER)
    assert builds.full == 1


def test_a_purge_builds_it_anew_in_its_place(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take(home, export(tmp_path / "in/a.json", titled("a", WORD, "what is this", "no idea"), titled("b", "x", "hi")))
    assert stands_in(home, WORD)
    builds = Builds(home, monkeypatch)
    with home.writing():
        target = find_conversation(home, "a", vault=True)
        assert purge_conversation(home, target.keys, vault=True, batch="purge").clean
    assert not stands_in(home, WORD)
    assert builds.full == 1


def test_a_chat_that_grows_is_published_as_before(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = export(tmp_path / "in/a.json", titled("a", OTHER, "hi", f"my password: {WORD}"))
    take(home, file)
    builds = Builds(home, monkeypatch)
    export(file, titled("a", OTHER, "hi", f"my password: {WORD}", f"and another password: {WORD[::-1]}"))
    take(home, file)
    assert (builds.full, builds.partly) == (0, 1)
