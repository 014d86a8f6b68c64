"""What `palace doctor` says of files beside the pages that nothing reads."""

from pathlib import Path

import pytest

from palace_pipeline.doctor import examine
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.pages import page_paths, remove_page
from tests.ingest.exports_for_tests import chat, export
from tests.rebuild.archives import take


def said(home: Home) -> list[str]:
    return [finding.what for finding in examine(home) if "copies of pages" in finding.what]


@pytest.mark.parametrize("name", ["{} (1).md", "{} - 副本.md", "Kopie von {}.md", "2019-01-01-old-{}.md"])
def test_a_copy_of_a_page_is_named(tmp_path: Path, name: str) -> None:
    home = Home(load_settings(tmp_path / "home"))
    take(home, export(tmp_path / "a.json", chat("a", "why?", "because"), chat("b", "who?", "you")))
    pages = sorted(page_paths(home.path))
    bare = pages[1].read_text() + "my own words\n"
    pages[1].write_text(bare)
    (home.conversations / "a note of my own.md").write_text("# Mine\n")
    pages[0].with_name(f"{pages[0].stem}.conflict.md").write_bytes(pages[0].read_bytes())
    assert said(home) == []
    copy = pages[0].with_name(name.format(pages[0].stem[-8:] if name.startswith("2019") else pages[0].stem))
    copy.write_bytes(pages[0].read_bytes())
    (line,) = said(home)
    assert line == f"1 file(s) are copies of pages, which nothing reads: {copy.relative_to(home.path).as_posix()}"


def test_a_page_that_keeps_only_notes_is_no_copy(tmp_path: Path) -> None:
    home = Home(load_settings(tmp_path / "home"))
    take(home, export(tmp_path / "a.json", chat("a", "why?", "because")))
    (page,) = page_paths(home.path)
    page.write_text(page.read_text() + "my own words\n")
    assert remove_page(page).kept is not None
    with home.ledger() as ledger, ledger.transaction():
        ledger.write("UPDATE conversations SET page = NULL")
    assert said(home) == []
