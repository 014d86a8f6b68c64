"""What is purged is gone from the workspace as well: pages of sessions, rows, lines of logs, values in all of them."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from palace_pipeline.backup import make_backup, restore
from palace_pipeline.purge import find_conversation, find_value, purge_conversation, purge_value
from palace_pipeline.store.home import Home
from palace_pipeline.workspace import index
from palace_pipeline.workspace.api import NoSession, Workspace
from palace_pipeline.workspace.logs import append_error
from palace_pipeline.workspace.memory import facts, set_fact
from tests.cli.conftest import Run
from tests.ingest.exports_for_tests import chat, export
from tests.rebuild.archives import take


def _holding(home: Home, text: str) -> list[str]:
    return [
        str(path.relative_to(home.path))
        for path in home.path.rglob("*")
        if text in str(path) or (path.is_file() and text.encode() in path.read_bytes())
    ]


def test_a_purged_session_leaves_nothing(home: Home, live: Workspace) -> None:
    word = f"zebra{secrets.token_hex(4)}"
    page, other = live.new(word, input=f"about the {word}"), live.new("other", input="something else")
    live.append(page.id, "tools", f"look at the {word}", who="eye")
    append_error(home.path, "conflict", page.path, "changed")
    take(home, home.path / "sessions")
    with home.writing():
        target = find_conversation(home, page.id, vault=True)
        assert target.files == []
        purged = purge_conversation(home, target.keys, vault=True, batch="p")
    assert purged.clean
    assert _holding(home, word) == []
    with pytest.raises(NoSession):
        live.load(page.id)
    assert [row.title for row in index.rows(home.path)] == ["other"]
    assert live.load(other.id).session.title == "other"


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_purged_session_that_was_split_leaves_none_of_its_parts(home: Home, live: Workspace, by_hand: bool) -> None:
    """Also where somebody has deleted the pages of the parts before."""
    word = f"zebra{secrets.token_hex(4)}"
    root = live.new("long", input=f"about the {word}").id
    for number in range(40):
        topic = f"{word} stripes and {number // 20} herds " * 60
        live.append(root, "input", topic)
    other = live.new("other", input="apples", parent=root).id  # begun by it, but no part of it
    pages = [path for path in live.sessions() if path not in (live.load(root).path, live.load(other).path)]
    assert pages
    take(home, home.path / "sessions")
    for page in pages if by_hand else ():
        page.unlink()
    with home.writing():
        target = find_conversation(home, root, vault=True)
        assert ("session", other) not in target.keys
        purged = purge_conversation(home, target.keys, vault=True, batch="p")
    assert purged.clean
    assert _holding(home, word) == []


def test_a_purged_chat_has_no_row_any_more(home: Home, tmp_path: Path) -> None:
    source = export(tmp_path / "in" / "conversations.json", chat("Oven", "one", "two"), chat("Pear", "three", "four"))
    take(home, source)
    with home.writing():
        target = find_conversation(home, "Oven", vault=False)
        purge_conversation(home, target.keys, vault=False, batch="p")
    assert [row.title for row in index.rows(home.path)] == ["Chat Pear"]


def test_a_purged_value_goes_from_sessions_memory_index_and_logs(home: Home, live: Workspace) -> None:
    word = f"zebra{secrets.token_hex(4)}"
    page = live.new(f"My {word}", input=f"about the {word}")
    live.append(page.id, "tools", f"look at the {word}", who="eye")
    set_fact(live, "animal", word)
    take(home, home.path / "sessions")
    with home.writing():
        purged = purge_value(home, find_value(home, word), vault=True, batch="p")
    assert purged.clean, purged.proof.found
    assert _holding(home, word) == []
    assert live.load(page.id).session.sections["input"][0].text == "about the [REDACTED:purged]"
    assert facts(live) == {"animal": "[REDACTED:purged]"}
    row = index.find(home.path, page.id)
    assert row is not None
    assert (home.path / row.path).is_file()


def test_a_backup_holds_the_workspace(home: Home, live: Workspace, tmp_path: Path) -> None:
    page = live.new("x", input="hello")
    set_fact(live, "a", "b")
    take(home, home.path / "sessions")
    with home.writing():
        backup = make_backup(home, tmp_path)
    restored = tmp_path / "restored"
    restore(restored, backup.path, "r")
    for name in (page.path.relative_to(home.path), "index.md", "memory/facts.md"):
        assert (restored / name).read_bytes() == (home.path / name).read_bytes()


def test_a_session_that_no_archive_has_read_yet_can_be_purged(workspace: Workspace, palace: Run) -> None:
    page, other = workspace.new("x", input="the zebra"), workspace.new("y", input="hello")
    workspace.append(page.id, "tools", "look at the zebra", who="eye")
    home = ("--home", str(workspace.home))
    assert palace(*home, "purge", f"session:{page.id}").code == 2  # nobody to ask
    result = palace(*home, "purge", f"session:{page.id}", "--yes")
    assert (result.code, result.out) == (0, "removed: 1 pages\n")
    assert not [path for path in workspace.home.rglob("*") if path.is_file() and b"zebra" in path.read_bytes()]
    assert workspace.load(other.id).session.title == "y"
    assert palace(*home, "purge", f"session:{page.id}", "--yes").code == 2
    result = palace(*home, "purge", other.id, "--yes", "--json")
    assert json.loads(result.out) == {"removed": {"pages": 1}, "clean": True}
