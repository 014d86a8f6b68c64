"""What stands at the door: symbolic links inside the home are followed by nothing that writes or shows, and control characters
(which make a log binary for grep, and write to the terminal of who reads it) do not come in."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.text import without_controls
from palace_pipeline.redaction.forgotten import forget
from palace_pipeline.workspace import index
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.context import assemble
from palace_pipeline.workspace.forgetting import mask_values
from palace_pipeline.workspace.logs import append_error
from palace_pipeline.workspace.memory import facts, preferences, set_entity, set_fact
from palace_pipeline.workspace.writing import LinkInHome
from tests.cli.conftest import Run

ESCAPE = "\x1b[31mred\x1b[0m"
TEXT = f"a\0b {ESCAPE}\x07\x08 tab\there\x9b1m\x7f"
CLEAN = "ab red tab\there"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (TEXT, CLEAN),
        ("\x1b]0;title of the window\x07said", "said"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("one\vtwo\fthree\x85four\r\nfive\rsix", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("\x1b(Bok \x1b", "ok "),
        ("长\x1b[1m文 🙂\u2028\u202e", "长文 🙂\u2028\u202e"),
        ("array[31m] stays", "array[31m] stays"),
    ],
)
def test_what_stays_of_a_text(text: str, clean: str) -> None:
    assert without_controls(text) == clean


@given(st.text(st.sampled_from("\0\x1b[]m;0189\x07\x9b\x85\x0b \t\na长\\"), max_size=60))
def test_no_control_character_stays_however_they_are_nested(text: str) -> None:
    clean = without_controls(text)
    assert _CONTROL.search(clean) is None
    assert without_controls(clean) == clean
    if "\x1b" not in text and "\x9b" not in text:
        assert clean.count("长") == text.count("长")


def test_no_control_character_comes_into_pages_logs_and_memory(workspace: Workspace) -> None:
    page = workspace.new(TEXT, input=TEXT, role=TEXT, tags=[TEXT, "x\x1by"], model=TEXT, summary=TEXT)
    workspace.append(page.id, "tools", TEXT, who=TEXT, tags=["\0t"])
    workspace.close(page.id, TEXT, summary=TEXT)
    set_fact(workspace, TEXT, TEXT)
    set_entity(workspace, TEXT, TEXT, TEXT)
    append_error(workspace.home, "damaged", workspace.home / f"sessions/{ESCAPE}.md", TEXT)
    session = workspace.load(page.id).session
    assert session.sections["input"][0].text == CLEAN
    assert session.sections["tools"][0].who == "ab red tab here"
    assert session.title == session.summary == session.model == "ab red tab here"
    assert facts(workspace) == {"ab red tab here": "ab red tab here"}
    for path in workspace.home.rglob("*.md"):
        assert _CONTROL.search(path.read_text() + path.name) is None, path.name


def test_a_secret_that_a_control_character_breaks_is_seen(workspace: Workspace) -> None:
    token = f"ghp_{secrets.token_hex(18)}"
    page = workspace.new("x", input=f"{token[:12]}\0{token[12:]} and {token[:20]}\x1b[0m{token[20:]}")
    assert token not in page.path.read_text()
    assert "[REDACTED:" in page.path.read_text()


# --- links ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "facts.md").write_text("- of: another place\n")
    return folder


def test_a_day_that_is_a_link_is_not_written_to(workspace: Workspace, elsewhere: Path) -> None:
    page = workspace.new("x", input="hello")
    day, begin = page.path.parent, page.session.ts
    day.rename(elsewhere / day.name)
    day.symlink_to(elsewhere / day.name)
    before = {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()}
    for write in (
        lambda: workspace.append(page.id, "input", "more"),
        lambda: workspace.new("another", ts=begin),
        lambda: workspace.load(page.id),
    ):
        with pytest.raises(LinkInHome, match=rf"sessions/{day.name} in .* is a symbolic link.*Nothing was changed"):
            write()
    assert list(workspace.sessions()) == []
    assert f"`sessions/{day.name}` · a symbolic link" in (workspace.home / "logs/errors.md").read_text()
    assert mask_values(workspace.home, [forget("hello", b"k")], b"k").changed == 0
    assert {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["sessions", "logs", "index.md", "logs/tool-calls.md"])
def test_what_a_writer_adds_to_may_be_no_link(workspace: Workspace, elsewhere: Path, name: str) -> None:
    page = workspace.new("x", input="hello")
    workspace.append(page.id, "tools", "look")
    path = workspace.home / name
    path.rename(elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)
    before = {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()}
    with pytest.raises(LinkInHome, match=name.partition("/")[0]):
        workspace.append(page.id, "tools", "look again")
    with pytest.raises(LinkInHome):
        workspace.new("y")
    assert {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()} == before


def test_a_page_that_is_a_link_is_named(workspace: Workspace, elsewhere: Path) -> None:
    page = workspace.new("x", input="hello")
    page.path.rename(elsewhere / "page.md")
    page.path.symlink_to(elsewhere / "page.md")
    with pytest.raises(LinkInHome, match=re.escape(page.path.name)):
        workspace.load(page.id)


@pytest.mark.parametrize("name", ["memory", "memory/facts.md", "memory/entities"])
def test_memory_is_neither_read_nor_written_behind_a_link(workspace: Workspace, elsewhere: Path, name: str) -> None:
    path = workspace.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(elsewhere / "facts.md" if name.endswith(".md") else elsewhere)
    with pytest.raises(LinkInHome, match=f"{name} in "):
        set_fact(workspace, "a", "b") if name != "memory/entities" else set_entity(workspace, "Oven", "a", "b")
    with pytest.raises(LinkInHome, match=f"{name} in "):
        assemble(workspace, "hello")
    assert path.is_symlink()
    assert (elsewhere / "facts.md").read_text() == "- of: another place\n"
    assert [found.name for found in elsewhere.iterdir()] == ["facts.md"]
    if name == "memory/facts.md":
        assert preferences(workspace) == {}


def test_an_index_behind_a_link_gives_no_references(workspace: Workspace, elsewhere: Path) -> None:
    workspace.new("x", input="hello")
    (workspace.home / index.INDEX).rename(elsewhere / "index.md")
    (workspace.home / index.INDEX).symlink_to(elsewhere / "index.md")
    with pytest.raises(LinkInHome, match=r"index\.md in"):
        assemble(workspace, "hello", shares=(15, 25, 20, 40))


def test_the_home_itself_may_be_a_link(tmp_path: Path, palace: Run) -> None:
    (tmp_path / "real").mkdir()
    home = tmp_path / "palace"
    home.symlink_to(tmp_path / "real")
    done = palace("memory", "set", "oven", "gas", home=home)
    assert done.code == 0, done.err
    assert (tmp_path / "real/memory/facts.md").read_text().endswith("- oven: gas\n")


def test_a_command_says_which_link_and_what_to_do(tmp_path: Path, palace: Run, elsewhere: Path) -> None:
    home = tmp_path / "palace"
    (home / "memory").mkdir(parents=True)
    (home / "memory/facts.md").symlink_to(elsewhere / "facts.md")
    done = palace("memory", "show", home=home)
    assert done.code == 1
    assert "memory/facts.md" in done.out + done.err
    assert "symbolic link" in done.out + done.err
    assert "another place" not in done.out + done.err
