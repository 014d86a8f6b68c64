"""Sessions of which there are two versions, or that somebody has to look at: found, shown, and resolved by choice."""

from __future__ import annotations

import secrets
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.scan import SESSION_COPY, Seen, scan
from palace_pipeline.workspace import index, names
from palace_pipeline.workspace.api import Page, Workspace
from palace_pipeline.workspace.conflicts import find, lines_between, resolve
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.session import render
from palace_pipeline.workspace.session_conflicts import NothingBeside
from tests.cli.conftest import Run
from tests.workspace.pages_for_tests import TS

COPIES = ("{} copy.md", "{} (1).md", "{} (conflicted copy 2026-11-30).md", "{}.sync-conflict-20261130-101500-ABCDEFG.md",
          "{}-DESKTOP.md", "{} 2.md", "{}-copy.md", "{}~1.md", "{} - Copy.md", "{} (Fallkopia).md")  # fmt: skip


def _log(workspace: Workspace) -> str:
    return (workspace.home / "logs/errors.md").read_text(encoding="utf-8")


def _copy(page: Page, form: str = COPIES[0]) -> Path:
    copy = page.path.with_name(form.format(page.path.stem))
    shutil.copy(page.path, copy)
    return copy


@pytest.mark.parametrize("form", COPIES)
@pytest.mark.parametrize("title", ["s", "修复烤箱", ""])
def test_a_copy_that_a_sync_program_made_takes_no_session_over(workspace: Workspace, title: str, form: str) -> None:
    page = workspace.new(title, input="x")
    copy = _copy(page, form)
    before = copy.read_bytes()
    written = workspace.append(page.id, "todo", "- [ ] y")
    assert (written.path, copy.read_bytes()) == (page.path, before)
    workspace.append(page.id, "todo", "- [ ] z")
    assert list(workspace.sessions()) == [page.path]
    (line,) = [line for line in _log(workspace).splitlines() if " · conflict · " in line]
    assert copy.name in line
    assert "palace conflicts" in line
    (conflict,) = find(workspace.home)
    assert (conflict.page, conflict.beside, conflict.mine) == (page.path, copy, "page")
    assert conflict.key == ("session", page.id)
    assert "+- [ ] y" in lines_between(conflict)
    found = {item.path: item for item in scan([workspace.home / "sessions"], workspace.home) if isinstance(item, Seen)}
    assert found[str(page.path)].problem is None
    assert (found[str(copy)].problem, found[str(copy)].expected) == (SESSION_COPY, True)
    named = list(scan([copy, page.path], workspace.home))
    assert [item.problem for item in named if isinstance(item, Seen)] == [SESSION_COPY, None]


def test_a_page_that_a_person_named_is_the_page_as_long_as_it_is_alone(workspace: Workspace) -> None:
    page = workspace.new("s", input="x")
    named = page.path.rename(page.path.with_name(f"{page.path.name[:12]}-My Oven (1).md"))
    assert workspace.append(page.id, "todo", "- [ ] y").path == named
    assert find(workspace.home) == []


@given(st.text(max_size=60))
def test_the_name_of_a_new_page_has_palaces_own_form(title: str) -> None:
    page = str(names.path_of("20261130-0915-1a2b3c4", title))
    assert names.own_first([page.replace(".md", " a.md"), page, page.replace(".md", "A.md")])[0] == page
    assert names.copies([page]) == {}


@pytest.mark.parametrize("keep", ["mine", "archive"])
def test_a_copy_is_resolved_by_choice(workspace: Workspace, palace: Run, keep: str) -> None:
    page = workspace.new("s", input="x")
    workspace.close(page.id, "Done.")
    copy = _copy(page)
    copy.write_text(copy.read_text(encoding="utf-8").replace("# s\n", "# The other\n"), encoding="utf-8")
    done = palace("conflicts", copy.name, "--keep", keep)
    assert done.code == 0
    assert "notes and tags" not in done.out
    assert ("is what" in done.out) == (keep == "archive")
    assert (copy.exists(), find(workspace.home)) == (False, [])
    session = workspace.load(page.id).session
    assert (session.title, session.status) == ("The other" if keep == "archive" else "s", "closed")
    row = index.find(workspace.home, page.id)
    assert row is not None
    assert row.title == session.title


@pytest.mark.parametrize("keep", ["mine", "archive"])
def test_sessions_that_two_wrote_at_once_are_resolved_the_same_way(
    workspace: Workspace, palace: Run, keep: str
) -> None:
    page = workspace.new("s", input="x")
    workspace.close(page.id, "Done.")
    read = workspace.load(page.id)
    page.path.write_text(page.path.read_text(encoding="utf-8").replace("Done.", "Done by hand."), encoding="utf-8")
    beside = workspace.save(replace(read, session=replace(read.session, title="Changed")))
    assert names.is_copy(beside.path)
    shown = palace("conflicts")  # in a home without any archive
    assert (shown.code, beside.path.name in shown.out) == (1, True)
    (listed,) = palace("conflicts", "--json").json["conflicts"]
    assert (listed["provider"], listed["conversation_id"]) == ("session", page.id)
    assert palace("conflicts", page.id, "--keep", keep).code == 0
    session = workspace.load(page.id).session
    texts = [entry.text for entry in session.sections["conclusion"]]
    assert (session.title, texts) == (("Changed", ["Done."]) if keep == "archive" else ("s", ["Done by hand."]))
    assert session.status == "closed"
    row = index.find(workspace.home, page.id)
    assert row is not None
    assert (row.title, row.summary) == (session.title, "Done." if keep == "archive" else "Done by hand.")


@pytest.mark.parametrize(
    ("status", "closing", "after"), [("open", True, "open"), ("closed", False, "closed"), ("open", False, "open")]
)
def test_a_status_of_conflict_is_listed_and_can_be_cleared(
    workspace: Workspace, palace: Run, status: str, closing: bool, after: str
) -> None:
    page = workspace.new("s", input="x", tags=["a"])
    text = page.path.read_text(encoding="utf-8").replace("status: open", f"status: {status}")
    page.path.write_text(text.replace("tags:\n  - a", 'tags: [a, "b'), encoding="utf-8")
    if closing:
        closed = palace("session", "close", page.id, "Done.")
        assert (closed.code, f"palace conflicts {page.id}" in closed.err) == (0, True)
    shown = palace("conflicts")
    assert (shown.code, page.path.name in shown.out) == (1, True)
    (listed,) = palace("conflicts", "--json").json["conflicts"]
    assert (listed["conflict"], listed["archive"], listed["diff"]) == (None, None, [])
    before = page.path.read_bytes()
    refused = palace("conflicts", page.id, "--keep", "archive")
    assert (refused.code, "nothing stands beside" in refused.err) == (1, True)
    assert page.path.read_bytes() == before
    assert palace("conflicts", page.id, "--keep", "mine").code == 0
    read = parse(page.path.read_text(encoding="utf-8"), page.path)
    assert (read.status, read.problems, find(workspace.home)) == (after, (), [])
    assert palace("session", "close", page.id).code == 0
    assert workspace.load(page.id).session.status == "closed"


def test_a_conflict_of_one_session_hides_none_of_another(workspace: Workspace) -> None:
    torn, fine = workspace.new("torn", input="x", ts=TS), workspace.new("fine", input="y", ts=TS)
    torn.path.write_text("words alone", encoding="utf-8")
    copy = _copy(fine)
    assert [(one.page, one.beside) for one in find(workspace.home)] == sorted(
        [(torn.path, None), (fine.path, copy)], key=lambda pair: str(pair[1] or pair[0])
    )
    with pytest.raises(NothingBeside):
        resolve(next(one for one in find(workspace.home) if one.page == torn.path), "archive")
    assert torn.path.read_text(encoding="utf-8") == "words alone"


def test_a_page_that_was_only_a_copy_of_a_conflict_becomes_the_page(workspace: Workspace) -> None:
    page = workspace.new("s", input="x")
    beside = page.path.with_name(f"{page.path.stem}.conflict.md")
    beside.write_text(render(replace(page.session, status="conflict")), encoding="utf-8")
    page.path.unlink()
    (conflict,) = find(workspace.home)
    resolve(conflict, "archive")
    assert (beside.exists(), workspace.load(page.id).session.status) == (False, "open")


def test_marks_of_a_merge_have_to_go_before_a_conflict_is_cleared(workspace: Workspace, palace: Run) -> None:
    page = workspace.new("s", input="ours")
    text = page.path.read_text(encoding="utf-8").replace("\n### ", "\n<<<<<<< HEAD\n### ")
    page.path.write_text(text, encoding="utf-8")
    assert workspace.append(page.id, "todo", "- [ ] y").session.status == "conflict"
    before = page.path.read_bytes()
    refused = palace("conflicts", page.id, "--keep", "mine")
    assert (refused.code, "marks of Git" in refused.err) == (1, True)
    assert page.path.read_bytes() == before
    page.path.write_bytes(before.replace(b"<<<<<<< HEAD\n", b""))
    assert palace("conflicts", page.id, "--keep", "mine").code == 0
    assert workspace.load(page.id).session.status == "open"


def test_a_copy_whose_name_shows_a_secret_leaves_the_page_its_name(workspace: Workspace) -> None:
    value = f"Kiwi{secrets.randbelow(10**8):08}Q"
    page = workspace.new(f"run {value}", input="x")
    copy = _copy(page)
    shown = workspace.append(page.id, "judgement", f"the password is {value}")
    beside = shown.path.with_name(f"{shown.path.stem}.conflict.md")
    assert sorted(shown.path.parent.glob("*.md")) == sorted([shown.path, beside])
    assert not copy.exists()
    assert "the password is" in shown.path.read_text(encoding="utf-8")
    held = [file for file in workspace.home.rglob("*") if value.lower() in file.name.lower()]
    held += [file for file in workspace.home.rglob("*.md") if value in file.read_text(encoding="utf-8")]
    assert held == []
    (conflict,) = find(workspace.home)
    assert (conflict.page, conflict.beside) == (shown.path, beside)
