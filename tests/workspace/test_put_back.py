"""What was masked and comes back, by an editor, a sync program or a kill, is masked again; pages that others are at stay theirs."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path

import pytest

from palace_pipeline.ingest.session_names import ready_sessions
from palace_pipeline.model import page_hash
from palace_pipeline.purge import find_value, purge_value
from palace_pipeline.store.home import Home
from palace_pipeline.workspace import git, index, session_conflicts
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.context import assemble
from palace_pipeline.workspace.logs import append_error
from palace_pipeline.workspace.memory import CLAIMS, FACTS, facts, set_fact
from palace_pipeline.workspace.sweeping import claims_file
from palace_pipeline.workspace.writing import LinkInHome, PageChanged
from tests.archive_texts import stored_texts
from tests.cli.conftest import Run
from tests.rebuild.archives import home_at, take

PASSWORD = "Kiwih7r3x9b5Q"


def _put_back(live: Workspace) -> str:
    """A session whose page an editor has saved as it was before a secret was masked in it; its id."""
    page = live.new("login", input=f"use {PASSWORD} there")
    before = page.path.read_bytes()
    live.append(page.id, "judgement", f"the password is {PASSWORD}")
    assert PASSWORD not in page.path.read_text(encoding="utf-8")
    page.path.write_bytes(before)
    return page.id


def test_a_secret_that_an_editor_puts_back_is_masked_by_the_next_append(live: Workspace) -> None:
    session = _put_back(live)
    live.append(session, "todo", "- [ ] go on")
    assert live.load(session).session.sections["input"][0].text == "use [REDACTED:password] there"


def test_a_secret_that_an_editor_puts_back_is_never_published(home: Home, live: Workspace) -> None:
    session = _put_back(live)
    set_fact(live, "host", f"the password is {PASSWORD}")
    (home.path / FACTS).write_text(f"# Facts\n\n- host: {PASSWORD}\n", encoding="utf-8")
    take(home, home.path / "sessions")
    assert PASSWORD not in live.path_of(session).read_text(encoding="utf-8")
    assert PASSWORD not in (home.path / FACTS).read_text(encoding="utf-8")
    assert not [place for place, text in stored_texts(home.path) if PASSWORD in text]


def test_what_is_put_back_into_memory_is_neither_shown_nor_kept(live: Workspace) -> None:
    set_fact(live, "host", f"the password is {PASSWORD}")
    path = live.home / FACTS
    path.write_text(f"# Facts\n\n- host: {PASSWORD}\n- {PASSWORD}: a key\n", encoding="utf-8")
    assert facts(live) == {"host": "[REDACTED:password]", "REDACTED-password": "a key"}
    assert PASSWORD not in assemble(live, "hello").text
    set_fact(live, "oven", "gas")
    assert PASSWORD not in path.read_text(encoding="utf-8")


def test_the_context_shows_nothing_that_was_put_back(live: Workspace) -> None:
    session = _put_back(live)
    said = assemble(live, "hello", session=session).text
    assert "use [REDACTED:password] there" in said
    other = live.new("other")
    assert PASSWORD not in assemble(live, "hello", session=other.id).text


def test_the_title_of_another_session_goes_with_its_row(live: Workspace) -> None:
    other = live.new(f"about {PASSWORD}", input=f"see {PASSWORD}")
    live.append(live.new("login").id, "judgement", f"the password is {PASSWORD}")
    live.close(other.id, "Done.")
    assert PASSWORD not in (live.home / "index.md").read_text(encoding="utf-8")
    assert live.load(other.id).session.title == "about [REDACTED:password]"
    assert PASSWORD.lower() not in live.path_of(other.id).name.lower()


def test_a_killed_sweep_leaves_no_old_name_in_logs_and_rows(live: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    page = live.new(f"run {PASSWORD}")
    append_error(live.home, "conflict", page.path, "changed")
    with monkeypatch.context() as killed:
        killed.setattr("palace_pipeline.workspace.sweeping._links", _killed)
        with pytest.raises(KeyboardInterrupt):
            live.append(page.id, "judgement", f"the password is {PASSWORD}")
    live.append(page.id, "todo", "go on")
    for file in ("logs/errors.md", "index.md"):
        assert PASSWORD.lower() not in (live.home / file).read_text(encoding="utf-8").lower()
    row = index.find(live.home, page.id)
    assert row is not None
    assert row.path == live.path_of(page.id).relative_to(live.home).as_posix()


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_file_is_called_by_its_first_title_and_new_rules_know_it(home: Home, live: Workspace) -> None:
    page = live.new("case PROJ-7731", input="hello")
    text = page.path.read_text(encoding="utf-8").replace("# case PROJ-7731", "# my own heading")
    page.path.write_text(text, encoding="utf-8")
    take(home, home.path / "sessions")
    assert "proj-7731" in page.path.name
    (home.path / "palace.toml").write_text("[redaction]\nprivate_patterns = ['PROJ-\\d{4}']\n")
    anew = home_at(home.path)
    take(anew, home.path / "sessions")
    assert live.path_of(page.id).name.endswith("-my-own-heading.md")
    assert not [place for place, said in stored_texts(home.path) if "proj-7731" in said.lower() and "toml" not in place]


def test_a_process_that_lives_long_sees_new_rules(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "home")
    page = workspace.new("x", input="PROJ-7731")
    (tmp_path / "home/palace.toml").write_text("[redaction]\nprivate_patterns = ['PROJ-\\d{4}']\n")
    workspace.append(page.id, "judgement", "about PROJ-7732")
    assert "PROJ-7732" not in page.path.read_text(encoding="utf-8")


def test_a_page_that_could_not_be_read_when_rules_changed_is_masked_by_the_next_ingest(
    home: Home, live: Workspace
) -> None:
    page = live.new("x", input="about PROJ-7731")
    take(home, home.path / "sessions")
    whole = page.path.read_bytes()
    (home.path / "palace.toml").write_text("[redaction]\nprivate_patterns = ['PROJ-\\d{4}']\n")
    page.path.write_bytes(bytes(range(256)))
    anew = home_at(home.path)
    take(anew, home.path / "sessions")
    page.path.write_bytes(whole)
    with anew.writing():
        ready_sessions(anew)
    assert "PROJ-7731" not in page.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("left", [b"", b"---\nid: x\nts:"])
def test_an_editor_that_is_slow_loses_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, left: bytes
) -> None:
    """It has emptied the page, or written the beginning, and goes on when the entry of a program stands there."""
    monkeypatch.setattr("palace_pipeline.workspace.writing.time.sleep", lambda _: None)
    page = workspace.new("x", input="a")
    edited = page.path.read_bytes().replace(b"\na\n", b"\na and mine\n")
    with page.path.open("r+b", buffering=0) as editor:
        editor.truncate()
        editor.write(left)
        workspace.append(page.id, "judgement", "theirs")
        editor.seek(0)
        editor.write(edited)
    assert [entry.text for _, entry in workspace.load(page.id).session.entries()][-1] == "theirs"
    ((found, beside),) = session_conflicts.find(workspace.home)
    assert found == page.path
    assert beside is not None
    assert beside.read_bytes() == edited
    assert beside.name in (workspace.home / "logs/errors.md").read_text(encoding="utf-8")


def test_memory_that_is_being_written_is_not_written_over(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palace_pipeline.workspace.writing.time.sleep", lambda _: None)
    set_fact(workspace, "oven", "gas")
    (workspace.home / FACTS).write_bytes(b"")
    with pytest.raises(PageChanged, match="is writing it"):
        set_fact(workspace, "oven", "electric")
    assert (workspace.home / FACTS).read_bytes() == b""


def test_a_copy_that_changes_while_the_other_side_is_kept_stays(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = workspace.new("x", input="a")
    copy = page.path.with_name(f"{page.path.stem} (1).md")
    copy.write_bytes(page.path.read_bytes())
    real = index.add_rows

    def synced(*given: object) -> int:
        copy.write_bytes(page.path.read_bytes() + b"newer\n")
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(index, "add_rows", synced)
    session_conflicts.keep(workspace.home, page.path, copy, "mine")
    assert copy.read_bytes().endswith(b"newer\n")


def test_a_snapshot_keeps_nothing_that_a_session_has_shown_since(home: Home, live: Workspace, palace: Run) -> None:
    page, other = live.new(f"login {PASSWORD}", input="a"), live.new("other", input="b")
    take(home, home.path / "sessions")
    live.append(page.id, "judgement", f"the password is {PASSWORD}")
    assert palace("--home", home.path, "init", "--git").code == 0
    done = palace("--home", home.path, "snapshot")
    assert done.code == 0
    assert "palace ingest" in done.err
    assert not [
        data for data in git.objects(home.path) if PASSWORD.encode() in data or PASSWORD.lower().encode() in data
    ]
    shown = {
        name for data in git.objects(home.path) for name in re.findall(rb"[0-9-]+\w+-[a-z-]+[0-9a-f]{8}\.md", data)
    }
    assert any(name.endswith(f"{page_hash('session', other.id)}.md".encode()) for name in shown)
    take(home, home.path / "sessions")
    done = palace("--home", home.path, "snapshot")
    assert "palace ingest" not in done.err
    assert not [
        data for data in git.objects(home.path) if PASSWORD.encode() in data or PASSWORD.lower().encode() in data
    ]


def test_a_short_secret_is_masked_where_it_stands_alone_and_in_no_longer_word(live: Workspace) -> None:
    page = live.new("x", input="first test12345, xhunter2")
    (live.home / FACTS).parent.mkdir(exist_ok=True)
    (live.home / FACTS).write_text("# Facts\n\n- a: Berlin20245 and Berlin2024!\n", encoding="utf-8")
    live.append(
        page.id, "judgement", "the password is test1234, or the password is Berlin2024, or the password is hunter2"
    )
    live.append(page.id, "judgement", "then Berlin2024 and Berlin20246")
    assert facts(live) == {"a": "Berlin20245 and [REDACTED:password]!"}
    entries = [entry.text for _, entry in live.load(page.id).session.entries()]
    assert entries[0] == "first test12345, xhunter2"
    assert entries[2] == "then [REDACTED:password] and Berlin20246"
    assert all(word not in entries[1] for word in ("test1234", "Berlin2024", "hunter2"))


def test_what_was_purged_and_is_put_back_is_neither_shown_nor_kept(home: Home, live: Workspace) -> None:
    value = "Aurelia Vance"
    page = live.new("x", input=f"about {value}")
    before = page.path.read_bytes()
    set_fact(live, "friend", value)
    facts_before = (live.home / FACTS).read_bytes()
    with home.writing():
        purge_value(home, find_value(home, value), vault=True, batch="p")
    live.path_of(page.id).write_bytes(before + f"\nby hand {value}\n".encode())
    (live.home / FACTS).write_bytes(facts_before)
    assert facts(live) == {"friend": "[REDACTED:purged]"}
    assert value not in assemble(live, "hello", session=page.id).text
    with home.writing():
        ready_sessions(home)
    assert value not in live.path_of(page.id).read_text(encoding="utf-8")
    assert value not in (live.home / FACTS).read_text(encoding="utf-8")


def test_what_new_rules_masked_and_is_put_back_is_masked_again(home: Home, live: Workspace) -> None:
    page = live.new("x", input="about PROJ-7731")
    before = page.path.read_bytes()
    (home.path / "palace.toml").write_text("[redaction]\nprivate_patterns = ['PROJ-\\d{4}']\n")
    anew = home_at(home.path)
    take(anew, home.path / "sessions")
    assert "PROJ-7731" not in page.path.read_text(encoding="utf-8")
    page.path.write_bytes(before + b"\nby hand PROJ-7731\n")
    take(anew, home.path / "sessions")
    text = page.path.read_text(encoding="utf-8")
    assert "about [REDACTED:private-pattern]" in text
    assert "by hand PROJ-7731" in text  # a person's own words stay theirs


def test_settings_that_are_being_saved_write_nothing_unmasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palace_pipeline.workspace.writing.time.sleep", lambda _: None)
    settings = tmp_path / "home/palace.toml"
    settings.parent.mkdir()
    settings.write_text("[redaction]\nprivate_patterns = ['PROJ-\\d{4}']\n")
    workspace = Workspace(tmp_path / "home")
    page = workspace.new("x", input="PROJ-7731")
    settings.write_bytes(b"")
    with pytest.raises(PageChanged, match="is writing it"):
        workspace.append(page.id, "judgement", "about PROJ-7732")
    assert "PROJ-77" not in page.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "line",
    [
        "swept",
        "swept x",
        "password 0 1 " + "00" * 16,
        "password 12 -7 " + "00" * 16,
        f"password 12 {1 << 64} " + "00" * 16,
    ],
)
def test_damaged_claims_stop_nothing(home: Home, live: Workspace, line: str) -> None:
    session = _put_back(live)
    for own in (claims_file(home.path, session), home.path / CLAIMS):
        with own.open("a") as stream:
            stream.write(f"{line}\n\xff\n")
    live.append(session, "todo", "- [ ] go on")
    set_fact(live, "oven", "gas")
    with home.writing():
        ready_sessions(home)
    assert PASSWORD not in live.path_of(session).read_text(encoding="utf-8")


def test_a_page_that_was_away_while_its_child_showed_a_secret(home: Home, live: Workspace) -> None:
    page = live.new("x", input=f"use {PASSWORD} there")
    child = live.new("child", parent=page.id)
    data = page.path.read_bytes()
    page.path.unlink()
    live.append(child.id, "judgement", f"the password is {PASSWORD}")
    page.path.write_bytes(data)
    take(home, home.path / "sessions")
    assert PASSWORD not in live.path_of(page.id).read_text(encoding="utf-8")
    assert not [place for place, text in stored_texts(home.path) if PASSWORD in text]


@pytest.mark.parametrize("name", ["claims", "memory/.claims", "memory/facts.md", "index.md"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_no_pipe_is_waited_for_and_no_link_is_followed(live: Workspace, name: str, kind: str) -> None:
    set_fact(live, "oven", "gas")
    page = live.new("x", input="a")
    path = claims_file(live.home, page.id) if name == "claims" else live.home / name
    path.unlink(missing_ok=True)
    outside = live.home.parent / "outside"
    outside.write_bytes(b"theirs")
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(outside)
    of_memory = name == "memory/facts.md"
    write = partial(set_fact, live, "oven") if of_memory else partial(live.append, page.id, "judgement")
    with pytest.raises(LinkInHome, match=name.rpartition("/")[2]):
        write(f"the password is {PASSWORD}")
    assert outside.read_bytes() == b"theirs"


def test_a_snapshot_begins_no_archive_and_commits_nothing_put_back(live: Workspace, palace: Run) -> None:
    session = _put_back(live)
    assert palace("--home", live.home, "init", "--git").code == 0
    ledger = live.home / "ledger.sqlite"
    was = ledger.exists()
    assert palace("--home", live.home, "snapshot").code == 0
    assert ledger.exists() == was
    assert PASSWORD not in live.path_of(session).read_text(encoding="utf-8")
    assert not [data for data in git.objects(live.home) if PASSWORD.encode() in data]
