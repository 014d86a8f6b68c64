"""What the archive has of a session outlives a torn page; sides of a conflict are no conversations."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from palace_pipeline.checks import audit
from palace_pipeline.exports.scan import Seen, scan
from palace_pipeline.ingest.torn import SAYS_LESS, SAYS_NOTHING
from palace_pipeline.rebuild import from_vault
from palace_pipeline.store.home import Home
from palace_pipeline.workspace import session_conflicts
from palace_pipeline.workspace.api import Workspace
from tests.archive_texts import stored_texts
from tests.rebuild.archives import take
from tests.stages.test_stages import EVERYTHING

_TORN = {
    "front matter": lambda text: text[: text.index("model:")],
    "no front matter": lambda text: text[text.index("# Fix") : text.index("the thermostat")],
    "cut in a line": lambda text: text[: text.index("thermostat")],
}


def _session(home: Home, live: Workspace) -> Path:
    page = live.new("Fix the oven", input="It stays cold.")
    live.append(page.id, "judgement", "Perhaps the thermostat.")
    live.close(page.id, "Replace it.")
    take(home, home.path / "sessions")
    return page.path


def _shown(home: Home) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (home.path / "conversations").rglob("*.md"))


def _skips(home: Home) -> list[str]:
    with home.ledger() as ledger:
        return [row["reason"] for row in ledger.rows("SELECT reason FROM skips WHERE expected = 0")]


@pytest.mark.parametrize("how", _TORN)
def test_a_torn_page_takes_nothing_from_the_archive(home: Home, live: Workspace, how: str) -> None:
    path = _session(home, live)
    whole = path.read_text(encoding="utf-8")
    path.write_text(_TORN[how](whole), encoding="utf-8")
    take(home, home.path / "sessions")
    assert "Replace it." in _shown(home)
    assert _skips(home) == [SAYS_LESS]
    assert audit(home, EVERYTHING) == {}
    path.write_text(whole.replace("It stays cold.", "It stays cold and dark."), encoding="utf-8")
    take(home, home.path / "sessions")
    assert "It stays cold and dark." in _shown(home)
    assert _skips(home) == []
    assert audit(home, EVERYTHING) == {}


@pytest.mark.parametrize("how", _TORN)
def test_nor_does_it_once_the_archive_is_made_anew_from_raw_bytes(home: Home, live: Workspace, how: str) -> None:
    path = _session(home, live)
    path.write_text(_TORN[how](path.read_text(encoding="utf-8")), encoding="utf-8")
    take(home, home.path / "sessions")
    with home.writing():
        from_vault(home, "test")
    take(home, home.path / "sessions")
    assert "Replace it." in _shown(home)


def test_a_torn_page_that_says_nothing_is_named(home: Home, live: Workspace) -> None:
    page = live.new("Fix the oven", input="It stays cold.")
    page.path.write_text("---\nid: x\n", encoding="utf-8")
    take(home, home.path / "sessions")
    assert SAYS_NOTHING in _skips(home)
    with home.ledger() as ledger:
        assert ledger.rows("SELECT * FROM conversations") == []


def test_a_torn_page_that_was_never_read_is_taken_as_it_is(home: Home, live: Workspace) -> None:
    page = live.new("Fix the oven", input="It stays cold.")
    page.path.write_text(page.path.read_text(encoding="utf-8").split("---\n", 2)[2], encoding="utf-8")
    take(home, home.path / "sessions")
    assert "It stays cold." in _shown(home)


def test_what_a_person_deletes_is_gone_once_the_conflict_is_ended(home: Home, live: Workspace) -> None:
    path = _session(home, live)
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text[: text.index("### ", text.index("## 结论"))].split("---\n", 2)[2] + "\n## 待办\n", encoding="utf-8"
    )
    take(home, home.path / "sessions")
    assert "Replace it." in _shown(home)
    session_conflicts.keep(home.path, path, None, "mine")
    take(home, home.path / "sessions")
    assert "Replace it." not in _shown(home)
    assert "Perhaps the thermostat." in _shown(home)


@pytest.mark.parametrize("name", [".conflict.md", ".conflict-2.md"])
@pytest.mark.parametrize("text", ["", "---\nid: x\nts:", "# Fix\n\nwords of a side\n"])
def test_a_side_of_a_conflict_is_no_conversation(home: Home, live: Workspace, name: str, text: str) -> None:
    path = _session(home, live)
    path.with_name(path.stem + name).write_text(text, encoding="utf-8")
    take(home, home.path / "sessions")
    assert not [
        place for place, said in stored_texts(home.path) if "words of a side" in said and "sessions/" not in place
    ]
    with home.ledger() as ledger:
        assert [row["provider"] for row in ledger.rows("SELECT provider FROM conversations")] == ["session"]


def test_what_palace_keeps_hidden_beside_pages_is_no_file_of_an_export(home: Home, live: Workspace) -> None:
    path = _session(home, live)
    for name in (".1200-abcdef1.claims", ".1200-abcdef1.lock", ".tmp-12345678-x.md", ".DS_Store"):
        path.with_name(name).write_bytes(b"x")
    found = [item for item in scan([home.path / "sessions"], home.path) if isinstance(item, Seen)]
    assert sorted(Path(item.path).name for item in found) == sorted([".DS_Store", path.name])


def test_a_torn_page_in_a_zip_takes_no_other_with_it(home: Home, live: Workspace, tmp_path: Path) -> None:
    path = _session(home, live)
    whole, other = path.read_text(encoding="utf-8"), live.new("Other", input="Something else.")
    pages = {path: _TORN["cut in a line"](whole), other.path: other.path.read_text(encoding="utf-8")}
    with zipfile.ZipFile(tmp_path / "copy.zip", "w") as copy:
        for page, text in pages.items():
            copy.writestr(page.relative_to(home.path).as_posix(), text)
    take(home, tmp_path / "copy.zip")
    assert SAYS_LESS in _skips(home)
    assert "Replace it." in _shown(home)
    assert "Something else." in _shown(home)
    assert audit(home, EVERYTHING) == {}
