"""`palace rebuild`: what it makes is what an undisturbed run made, from whatever was left."""

import shutil
from pathlib import Path

import pytest

from palace_pipeline import rebuild
from palace_pipeline.purge import purge_conversation
from palace_pipeline.store.home import Home
from tests.archive_state import state
from tests.ingest.exports_for_tests import START, chat, export
from tests.rebuild.archives import assert_same, copied, home_at, take

FORMATS = ("01", "08", "11", "16", "21", "35")
DAY = 86_400


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports of several kinds, two of which are later written anew: a chat grew, another is gone from its export."""
    folder = tmp_path_factory.mktemp("sources")
    for path in sorted((Path(__file__).parent.parent / "fixtures/exports").iterdir()):
        if path.name[:2] in FORMATS:
            shutil.copytree(path / "input" if (path / "input").is_dir() else path, folder / path.name)
    (folder / "notes").mkdir()
    (folder / "notes/plan.md").write_text("# A plan\n\nApples first, then pears.\n")
    export(folder / "monthly/a.json", chat("a", "first question", "first answer"), chat("gone", "am I kept?", "yes"))
    export(folder / "undated.json", chat("u", "when was this?", "nobody knows", start=None))
    (folder / "broken.json").write_text('[{"mapping": ')
    return folder


@pytest.fixture(scope="module")
def archive(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = home_at(tmp_path_factory.mktemp("archive") / "home")
    take(home, sources)
    (sources / "notes/plan.md").write_text("# A plan\n\nPears first, then apples.\n")
    export(
        sources / "monthly/a.json",
        chat("a", "first question", "first answer", "and then?", "more", updated=START + DAY),
        chat("b", "another one", "indeed", start=START + 40 * DAY),
    )
    take(home, sources)
    return home


@pytest.fixture
def broken(archive: Home, tmp_path: Path) -> Home:
    return copied(archive, tmp_path / "home")


def test_from_the_lake_gives_the_same_indexes_and_tables(archive: Home, broken: Home) -> None:
    for name in ("chroma", "lexical"):
        shutil.rmtree(broken.path / name)
    broken.warehouse.write_bytes(broken.warehouse.read_bytes()[:5000])
    with broken.writing():
        rebuild.from_lake(broken, "test")
    assert_same(broken.path, archive.path)


def test_from_the_vault_gives_the_same_archive(archive: Home, broken: Home) -> None:
    page = next((broken.path / "conversations").rglob("*.md"))
    page.write_text(page.read_text() + "\nMy own words.\n")
    with broken.writing():
        recovered, made = rebuild.from_vault(broken, "test")
    assert recovered.said == []
    assert recovered.lost == []
    assert made["drawers"] > 10
    assert "My own words." in page.read_text()
    found, expected = state(broken.path), state(archive.path)
    name = page.relative_to(broken.path).as_posix()
    assert found["pages"].pop(name).startswith(expected["pages"].pop(name).rstrip())
    for store, content in expected.items():
        assert found[store] == content, store
    assert not (broken.path / ".rebuild").exists()


def test_a_lost_ledger_is_made_again_from_the_vault(archive: Home, broken: Home) -> None:
    for path in broken.path.glob("ledger.sqlite*"):
        path.unlink()
    with broken.writing():
        recovered, _ = rebuild.from_vault(broken, "test")
    assert len(recovered.said) == 1
    assert "made again from the vault" in recovered.said[0]
    assert_same(broken.path, archive.path)


def test_what_was_purged_does_not_come_back_with_a_lost_ledger(tmp_path: Path) -> None:
    """Its raw bytes stay in the vault without --vault; that it was purged is known there, too."""
    source = export(tmp_path / "a.json", chat("a", "to be kept", "yes"), chat("p", "to be forgotten", "indeed"))
    home = home_at(tmp_path / "home")
    take(home, source)
    with home.writing():
        purge_conversation(home, [("chatgpt", "p")], vault=False, batch="test")
    for path in home.path.glob("ledger.sqlite*"):
        path.unlink()
    with home.writing():
        rebuild.from_vault(home, "test")
    take(home, source)
    found = state(home.path)
    assert len(found["pages"]) == 1
    assert not any("to be forgotten" in text for text in found["pages"].values())
    assert {row[1] for row in found["tables"]["conversations"] if isinstance(row, tuple)} == {"a"}


def test_chats_whose_bytes_and_files_are_lost_are_taken_from_the_lake(tmp_path: Path) -> None:
    source = export(tmp_path / "gone.json", chat("l", "only here", "and there"), chat("m", "me too", "yes"))
    home = home_at(tmp_path / "home")
    take(home, source)
    expected = state(home.path)
    source.unlink()
    (home.path / "vault/vault.sqlite").unlink()
    with home.writing():
        recovered, _ = rebuild.from_vault(home, "test")
    assert recovered.lost == []
    assert any(str(source) in line for line in recovered.said)
    found = state(home.path)
    for store in ("pages", "lake raw/messages", "lake clean/messages", "chroma", "lexical"):
        assert found[store] == expected[store], store
