"""Sessions as agents and scripts write them: one call, one whole step on disk."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.settings import RedactionSettings, Settings
from palace_pipeline.workspace import index, memory, names
from palace_pipeline.workspace.api import NoSession, NotSaid, Workspace
from palace_pipeline.workspace.forgetting import mask_again
from palace_pipeline.workspace.session import Entry
from tests.workspace.pages_for_tests import TS

ROOT = Path(__file__).parents[2]


def _told(workspace: Workspace) -> str:
    log = workspace.home / "logs/errors.md"
    return log.read_text(encoding="utf-8") if log.exists() else ""


def test_a_session_from_begin_to_end(workspace: Workspace) -> None:
    page = workspace.new("修复烤箱的温控器", input="烤箱不热了", tags=["烤箱", "#repair"], model="m", ts=TS)
    assert page.path == workspace.home / names.path_of(page.id, "修复烤箱的温控器")
    assert page.id.startswith("20261130-0915-")
    workspace.append(page.id, "tools", "measure 230 V", who="multimeter", at=TS + timedelta(minutes=1))
    workspace.append(page.id, "我的判断", "温控器坏了", tokens_in=100, tokens_out=20)
    workspace.append(page.id, "TODO", "- [ ] 买一个", tokens_out=5)
    workspace.close(page.id, "换掉温控器。然后测试。")
    session = workspace.load(page.id).session
    assert (session.status, session.turns, session.tokens_in, session.tokens_out) == ("closed", 1, 100, 25)
    assert (session.tags, session.summary, session.ts) == (("烤箱", "repair"), "换掉温控器。", TS)
    assert session.sections["tools"] == [Entry("measure 230 V", TS + timedelta(minutes=1), "multimeter")]
    row = index.find(workspace.home, page.id)
    assert row is not None
    assert (row.title, row.summary, row.tags) == ("修复烤箱的温控器", "换掉温控器。", ("烤箱", "repair"))
    assert _told(workspace) == ""


def test_what_is_written_is_the_owners_alone_and_nothing_is_left_beside_it(workspace: Workspace) -> None:
    page = workspace.new("x", input="y")
    files = [path for path in workspace.home.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in workspace.home.rglob("*") if path.is_dir()} == {0o700}
    assert [path.name for path in page.path.parent.iterdir()] == [page.path.name]


def test_the_time_is_that_of_the_display_zone(workspace: Workspace) -> None:
    ts = workspace.new("x").session.ts
    assert ts is not None
    assert ts.utcoffset() == timedelta(hours=8)


def test_a_row_is_added_to_the_index_only_when_it_says_something_new(workspace: Workspace) -> None:
    page = workspace.new("x")
    before = (workspace.home / "index.md").read_bytes()
    workspace.append(page.id, "input", "more")
    assert (workspace.home / "index.md").read_bytes() == before
    workspace.append(page.id, "input", summary="new")
    assert len((workspace.home / "index.md").read_bytes()) > len(before)


def test_the_title_is_frozen_and_a_session_is_found_by_its_prefix(workspace: Workspace) -> None:
    page = workspace.new("x")
    renamed = page.path.with_name(page.path.name.replace("-x.md", "-用户改名.md"))
    page.path.rename(renamed)
    assert workspace.append(page.id, "input", "more").path == renamed


def test_a_closed_session_is_open_again_when_something_is_added(workspace: Workspace) -> None:
    page = workspace.new("x")
    workspace.close(page.id)
    assert workspace.append(page.id, "input", "one more").session.status == "open"


def test_what_does_not_exist_is_said_in_words(workspace: Workspace) -> None:
    with pytest.raises(NoSession, match="there is no session"):
        workspace.load("20261130-0915-1a2b3c4")
    with pytest.raises(NotSaid, match="looks like 2026"):
        workspace.load("../../etc/passwd")
    with pytest.raises(NoSession):
        workspace.new("x", parent="20261130-0915-1a2b3c4")
    page = workspace.new("x")
    with pytest.raises(NotSaid, match="judgement"):
        workspace.append(page.id, "nothing", "x")
    with pytest.raises(NotSaid, match="at most 5"):
        workspace.append(page.id, "input", tags=list("abcdef"))
    with pytest.raises(NotSaid, match="offset"):
        workspace.new("x", ts=datetime(2026, 11, 30))


def test_english_headings_by_setting_and_pages_in_the_other_language_go_on_in_theirs(
    tmp_path: Path, funnel: Funnel
) -> None:
    english = Workspace(settings=Settings.model_validate({"home": tmp_path, "workspace": {"language": "en"}}))
    chinese = Workspace(settings=Settings(home=tmp_path))
    english._funnel = chinese._funnel = ((), funnel)
    page = english.new("x")
    chinese.append(page.id, "conclusion", "Done.")
    text = page.path.read_text(encoding="utf-8")
    assert "## Conclusion\n" in text
    assert "## 结论" not in text


# --- hand edits --------------------------------------------------------------------------------------------------------


def test_words_of_a_person_stay_when_a_program_goes_on(workspace: Workspace) -> None:
    page = workspace.new("x", input="a")
    text = page.path.read_text(encoding="utf-8")
    page.path.write_text(
        text.replace("## 结论\n", "## 结论\n\nMine, by hand.\n").replace("role:", "mood: good\nrole:"), encoding="utf-8"
    )
    workspace.append(page.id, "conclusion", "The program's.")
    session = workspace.load(page.id).session
    assert [entry.text for entry in session.sections["conclusion"]] == ["Mine, by hand.", "The program's."]
    assert session.extra == "mood: good\n"


def test_a_page_that_somebody_changed_is_not_replaced_by_what_was_read_before(workspace: Workspace) -> None:
    page = workspace.load(workspace.new("x", input="a").id)
    page.path.write_text(page.path.read_text(encoding="utf-8") + "\nmine\n", encoding="utf-8")
    theirs = page.path.read_bytes()
    written = workspace.save(replace(page, session=replace(page.session, summary="other")))
    assert written.path.name == page.path.name.replace(".md", ".conflict.md")
    assert "status: conflict" in written.path.read_text(encoding="utf-8")
    assert page.path.read_bytes() == theirs
    assert "conflict" in _told(workspace)
    assert workspace.load(page.id).path == page.path


def test_a_page_changed_while_it_is_written_is_read_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = workspace.new("x", input="a")
    real, edits = workspace._masked, iter(["\nby hand\n"])

    def meanwhile(*given: object) -> object:
        for edit in edits:
            page.path.write_text(page.path.read_text(encoding="utf-8") + edit, encoding="utf-8")
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(workspace, "_masked", meanwhile)
    workspace.append(page.id, "conclusion", "Done.")
    session = workspace.load(page.id).session
    assert [entry.text for _, entry in session.entries()] == ["a", "Done.", "by hand"]
    assert _told(workspace) == ""


def test_torn_pages_are_noted_once_and_do_not_stop_the_others(workspace: Workspace) -> None:
    page, other = workspace.new("x", input="a"), workspace.new("y")
    page.path.write_text("## 结论\n\nno front matter\n", encoding="utf-8")
    for _ in range(2):
        assert workspace.load(page.id).session.status == "conflict"
    assert _told(workspace).count("front matter is missing") == 1
    assert workspace.load(other.id).session.status == "open"


def test_an_unreadable_result_leaves_the_page_as_it_was(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from palace_pipeline.workspace import writing

    page = workspace.new("x", input="a")
    before = page.path.read_bytes()
    real = writing._write
    monkeypatch.setattr(writing, "_write", lambda path, data: real(path, data[:-20]))
    with pytest.raises(writing.NotWritten, match="the page before it is in its place"):
        workspace.append(page.id, "conclusion", "Done.")
    assert page.path.read_bytes() == before
    assert [path.name for path in page.path.parent.iterdir()] == [page.path.name]


def test_a_page_in_another_encoding_loses_nothing(workspace: Workspace) -> None:
    page = workspace.new("x", input="烤箱不热了，请看一下温控器")
    page.path.write_bytes(page.path.read_text(encoding="utf-8").encode("utf-16"))
    workspace.append(page.id, "conclusion", "好了")
    assert "烤箱不热了，请看一下温控器" in page.path.read_text(encoding="utf-8")


def test_what_cannot_be_said_makes_nothing(workspace: Workspace) -> None:
    with pytest.raises(NotSaid):
        workspace.append("nonsense", "todo", "x")
    with pytest.raises(NoSession):
        workspace.append("20261130-0915-1a2b3c4", "todo", "x")
    assert not (workspace.home / "sessions").exists()
    page = workspace.new("x")
    with pytest.raises(NotSaid, match="offset"):
        workspace.append(page.id, "todo", "x", at=datetime(2026, 11, 30))


# --- locks -------------------------------------------------------------------------------------------------------------


def test_a_lock_of_a_dead_process_is_taken_away(workspace: Workspace) -> None:
    page = workspace.new("x")
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    lock = page.path.parent / f".{names.prefix_of(page.id)}.lock"
    host = os.uname().nodename
    lock.write_text(
        f'{{"pid": {int(dead.stdout)}, "host": "{host}", "until": "2999-01-01T00:00:00+00:00", "token": "x"}}'
    )
    workspace.append(page.id, "input", "more")
    assert not lock.exists()


def test_an_expired_lock_is_taken_away_and_one_that_holds_is_not(workspace: Workspace) -> None:
    from palace_pipeline.workspace.locks import PageBusy, locked

    page = workspace.new("x")
    prefix = names.prefix_of(page.id)
    lock = page.path.parent / f".{prefix}.lock"
    lock.write_text('{"pid": 1, "host": "elsewhere", "until": "2999-01-01T00:00:00+00:00", "token": "x"}')
    with pytest.raises(PageBusy, match="elsewhere"), locked(page.path.parent, prefix, wait_seconds=0):
        pass
    assert lock.exists()
    lock.write_text('{"pid": 1, "host": "elsewhere", "until": "2001-01-01T00:00:00+00:00", "token": "x"}')
    workspace.append(page.id, "input", "more")
    assert not lock.exists()


def test_a_lock_holds_no_longer_than_its_file_is_old_whatever_it_says(workspace: Workspace) -> None:
    from palace_pipeline.workspace.locks import LOCK_SECONDS, PageBusy, locked

    page = workspace.new("x")
    prefix = names.prefix_of(page.id)
    lock = page.path.parent / f".{prefix}.lock"
    lock.write_text('{"pid": 1, "host": "elsewhere", "until": "2099-01-01T00:00:00+00:00", "token": "x"}')
    with pytest.raises(PageBusy) as told, locked(page.path.parent, prefix, wait_seconds=0):
        pass
    assert f"{lock} is held by process 1 on elsewhere" in str(told.value)
    assert "delete that file" in str(told.value)
    old = time.time() - LOCK_SECONDS - 1
    os.utime(lock, (old, old))
    workspace.append(page.id, "input", "more")
    assert not lock.exists()


def test_who_lost_the_lock_writes_nothing(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from palace_pipeline.workspace.locks import LockLost

    page = workspace.new("x", input="a")
    before, real = page.path.read_bytes(), workspace._masked

    def taken_over(*given: object) -> object:
        lock = page.path.parent / f".{names.prefix_of(page.id)}.lock"
        lock.write_text('{"pid": 1, "host": "elsewhere", "until": "2999-01-01T00:00:00+00:00", "token": "other"}')
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(workspace, "_masked", taken_over)
    with pytest.raises(LockLost):
        workspace.append(page.id, "conclusion", "Done.")
    assert page.path.read_bytes() == before


# --- redaction ---------------------------------------------------------------------------------------------------------


def _secret() -> str:
    return "Zq7" + secrets.token_hex(9) + "!k"


def test_nothing_an_agent_says_is_written_with_a_secret(workspace: Workspace) -> None:
    secret = _secret()
    said = f"my password is {secret} ok"
    page = workspace.new(said, input=said, summary=said, tags=[f"token={secret}"], model=said, role=said)
    workspace.append(page.id, "tools", said, who=said)
    workspace.append(page.id, "conclusion", said, summary=said, tags=["x"])
    for path in workspace.home.rglob("*"):
        assert secret not in str(path)
        assert not path.is_file() or secret.encode() not in path.read_bytes()


def test_a_session_that_is_saved_whole_is_redacted_whole(workspace: Workspace) -> None:
    secret = _secret()
    said = f"my password is {secret} ok"
    page = workspace.load(workspace.new("x", input="a").id)
    entry = Entry(said, TS, said)
    changed = replace(
        page.session,
        title=said,
        role=said,
        model=said,
        tags=(f"token={secret}",),
        summary=said,
        intro=said,
        extra=f"mood: {said}\n",
        sections={**page.session.sections, "tools": [entry]},
    )
    written = workspace.save(replace(page, session=changed))
    assert secret not in written.path.read_text(encoding="utf-8")
    assert "mood: " in written.path.read_text(encoding="utf-8")


def test_a_secret_is_known_in_the_whole_session(workspace: Workspace, funnel: Funnel) -> None:
    secret = _secret()
    page = workspace.new("x", input="hello")
    workspace.append(page.id, "judgement", f"the strange word {secret.swapcase()} stands alone")
    workspace.append(page.id, "input", f"the password is {secret}")
    again = Workspace(settings=workspace.settings)  # another process knows it by its hash
    again._funnel = ((), funnel)
    again.append(page.id, "conclusion", f"so {secret} it is")
    text = page.path.read_text(encoding="utf-8")
    assert secret not in text
    assert "so [REDACTED:password] it is" in text
    assert all(secret.encode() not in path.read_bytes() for path in workspace.home.rglob("*") if path.is_file())


def test_what_is_no_page_of_its_own_stops_nothing(workspace: Workspace, funnel: Funnel) -> None:
    page = workspace.new("x", input="hello", ts=TS)
    folder = page.path.parent
    (folder / "0900-aaaaaaa-folder.md").mkdir()
    (folder / "0901-aaaaaaa-gone.md").symlink_to(folder / "nowhere.md")
    os.mkfifo(folder / "0902-aaaaaaa-pipe.md")
    entities = workspace.home / "memory/entities"
    (entities / "folder.md").mkdir(parents=True)
    (entities / "gone.md").symlink_to("nowhere")
    assert list(workspace.sessions()) == [page.path]
    assert list(memory.entities(workspace)) == []
    assert mask_again(workspace.home, funnel).changed == 0


def test_a_secret_that_shows_itself_later_goes_from_the_entries_before(workspace: Workspace) -> None:
    value = f"hunter{secrets.randbelow(10)}xQ{secrets.randbelow(10)}kk"
    page = workspace.new("x", input=f"say {value} to enter", tags=[value], role=f"keeper of {value}", model=value)
    workspace.append(page.id, "tools", "look", who=f"sh {value}")
    assert page.path.read_text(encoding="utf-8").count(value) == 5
    workspace.append(page.id, "judgement", f"my password is {value}")
    text = page.path.read_text(encoding="utf-8")
    assert value not in text
    assert "to enter" in text


def test_without_redaction_nothing_is_written(tmp_path: Path) -> None:
    workspace = Workspace(
        settings=Settings(home=tmp_path, redaction=RedactionSettings(env_files=(tmp_path / "no.env",)))
    )
    with pytest.raises(ValueError):
        workspace.new("x", input="y")
    assert not list(tmp_path.rglob("*.md"))


# --- many writers ------------------------------------------------------------------------------------------------------


def _run(*arguments: str, seconds: int) -> None:
    command = [sys.executable, "-m", "tests.workspace.writers", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_twenty_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    _run("together", str(tmp_path / "home"), "20", "6", seconds=120)


def test_kills_tear_nothing_and_lose_nothing(tmp_path: Path) -> None:
    _run("killed", str(tmp_path / "home"), "15", "7", seconds=120)


@pytest.mark.slow
def test_a_thousand_kills(tmp_path: Path) -> None:
    _run("killed", str(tmp_path / "home"), "1000", "20261130", seconds=1200)


# --- what a session says of itself ---------------------------------------------------------------------------------------


def test_the_summary_is_that_of_the_last_conclusion_unless_the_writer_gave_one(workspace: Workspace) -> None:
    page = workspace.new("x", input="y")
    workspace.close(page.id, "Buy it. Soon.")
    workspace.append(page.id, "input", "no")
    assert workspace.close(page.id, "We changed our mind. Wait.").session.summary == "We changed our mind."
    row = index.find(workspace.home, page.id)
    assert row is not None
    assert row.summary == "We changed our mind."
    workspace.close(page.id, "Third.", summary="All of it")
    assert workspace.close(page.id, "Fourth.").session.summary == "All of it"


def test_only_a_text_opens_a_closed_session(workspace: Workspace) -> None:
    page = workspace.new("x", input="y")
    workspace.close(page.id, "Done.")
    assert workspace.append(page.id, "todo", " ", tokens_in=5).session.status == "closed"
    assert workspace.append(page.id, "todo", "- [ ] z").session.status == "open"
