"""Sweeps take what must not be shown, and nothing else: no edit of a person, no page in another encoding, no time, id or status."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from palace_pipeline.checks import examine, whole
from palace_pipeline.model import Conversation, Message
from palace_pipeline.publish.chosen import Only, matching
from palace_pipeline.publish.run import Order, export
from palace_pipeline.purge import find_value, purge_value
from palace_pipeline.redaction.forgetting import without_forgotten
from palace_pipeline.redaction.forgotten import forget, forget_name
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.settings import RedactionSettings
from palace_pipeline.store import files
from palace_pipeline.store.home import Home
from palace_pipeline.workspace import session_conflicts
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.forgetting import mask_again, mask_values
from palace_pipeline.workspace.hiding import Hide, hide_secrets
from palace_pipeline.workspace.memory import facts, set_fact
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.session import Entry
from palace_pipeline.workspace.sweeping import all_sessions, claims_file, sweep
from tests.rebuild.archives import home_at, take

PASSWORD = "Kiwih7r3x9b5Q"


def parse_page(path: Path) -> Iterable[tuple[object, Entry]]:
    return parse(path.read_text(encoding="utf-8"), path).entries()


def by_page(hide: Hide, page: object) -> Hide:
    return replace(hide, page=page)  # type: ignore[arg-type]


def test_the_id_of_a_session_shows_no_value(tmp_path: Path, funnel: Funnel) -> None:
    home: Home = home_at(tmp_path / "home")
    workspace = Workspace(settings=home.settings)
    workspace._funnel = ((), funnel)
    at = datetime(2026, 11, 29, 14, 30, tzinfo=UTC)
    said, other = workspace.new("a", input="my pin is 1430, yes", ts=at), workspace.new("b", input="hello", ts=at)
    take(home, home.path / "sessions")
    with home.writing():
        purge_value(home, find_value(home, "1430"), vault=True, batch="p")
    assert "1430" not in workspace.load(said.id).session.sections["input"][0].text
    assert workspace.load(said.id).session.ts == at
    assert workspace.load(other.id).path == other.path
    assert workspace.load(other.id).session == other.session
    chat = Conversation("session", said.id, [Message("m", "user", "x")])
    assert without_forgotten(chat, [forget("1430", b"k")], b"k") == chat


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_pages_in_any_encoding_keep_their_words(workspace: Workspace, encoding: str) -> None:
    page = workspace.new("烤箱", input=f"烤箱不热了，请看一下温控器，谢谢 {PASSWORD}")
    child = workspace.new("child", parent=page.id)
    page.path.write_bytes(page.path.read_text(encoding="utf-8").encode(encoding))
    workspace.append(child.id, "judgement", f"the password is {PASSWORD}")
    text = page.path.read_text(encoding="utf-8-sig" if encoding == "utf-8-sig" else "utf-8")
    assert "烤箱不热了，请看一下温控器，谢谢 [REDACTED:password]" in text
    assert PASSWORD not in text


def test_a_torn_page_in_another_encoding_is_kept_as_mine(workspace: Workspace) -> None:
    page = workspace.new("烤箱", input="烤箱不热了，请看一下温控器")
    body = page.path.read_text(encoding="utf-8").split("---\n", 2)[2]
    page.path.write_bytes(body.encode("utf-16"))
    ((found, beside),) = session_conflicts.find(workspace.home)
    session_conflicts.keep(workspace.home, found, beside, "mine")
    assert "烤箱不热了，请看一下温控器" in page.path.read_text(encoding="utf-8")
    assert session_conflicts.find(workspace.home) == []


def test_memory_in_another_encoding_is_masked(workspace: Workspace) -> None:
    set_fact(workspace, "烤箱", f"燃气 {PASSWORD}")
    path = workspace.home / "memory/facts.md"
    path.write_bytes(path.read_text(encoding="utf-8").encode("utf-16"))
    sweep(workspace.home, hide_secrets({PASSWORD: "password"}), ())
    assert facts(workspace) == {"烤箱": "燃气 [REDACTED:password]"}


def test_an_edit_during_a_sweep_stays(workspace: Workspace) -> None:
    page = workspace.new("x", input=f"here is {PASSWORD}")
    hide, edits = hide_secrets({PASSWORD: "password"}), ["mine"]

    def page_with_an_edit(text: str, path: Path) -> str:
        if edits:
            path.write_text(text.replace("here is", f"here is {edits.pop()}"), encoding="utf-8")
        return hide.page(text, path)

    sweep(workspace.home, by_page(hide, page_with_an_edit), all_sessions(workspace.home))
    assert workspace.load(page.id).session.sections["input"][0].text == "here is mine [REDACTED:password]"


def test_an_edit_in_place_right_after_the_rename_stays_and_so_does_the_entry(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = workspace.new("x", input="a")
    edits = [page.path.read_text(encoding="utf-8").replace("\na\n", "\na and mine\n")]
    real = files.sync_folder

    def edited(folder: Path) -> None:
        if edits:
            with page.path.open("r+", encoding="utf-8") as stream:  # the same file, as editors that write in place do
                stream.truncate()
                stream.write(edits.pop())
        real(folder)

    monkeypatch.setattr(files, "sync_folder", edited)
    workspace.append(page.id, "judgement", "theirs")
    session = workspace.load(page.id).session
    assert [entry.text for _, entry in session.entries()] == ["a and mine", "theirs"]


def test_a_page_that_is_no_text_stops_nothing_and_is_tried_again(workspace: Workspace) -> None:
    page, broken = workspace.new("x", input=f"here is {PASSWORD}"), workspace.new("y")
    child = workspace.new("child", parent=page.id)
    whole = broken.path.read_bytes()
    broken.path.write_bytes(f'parent: "{page.id}"\n'.encode() + bytes(range(256)) * 9)
    workspace.append(child.id, "judgement", f"the password is {PASSWORD}")
    assert PASSWORD not in page.path.read_text(encoding="utf-8")
    assert broken.path.name in (workspace.home / "logs/errors.md").read_text(encoding="utf-8")
    broken.path.write_bytes(whole.replace(b"parent:\n", f'parent: "{page.id}"\n'.encode()) + PASSWORD.encode())
    workspace.append(child.id, "todo", "go on")
    assert PASSWORD not in broken.path.read_text(encoding="utf-8")
    assert "swept" in claims_file(workspace.home, child.id).read_text(encoding="ascii")


def test_labels_of_links_to_parts_follow_new_rules(workspace: Workspace) -> None:
    page = workspace.new("long", input="PROJ-7731 is what we do. " + "word " * 900)
    for number in range(20):
        workspace.append(page.id, "judgement", f"{number}: " + secrets.token_hex(4) + " other words" * 400)
    assert "> [" in page.path.read_text(encoding="utf-8")
    mask_again(workspace.home, Funnel(RedactionSettings(private_patterns=(r"PROJ-\d{4}",)), b"k" * 32))
    for path in all_sessions(workspace.home):
        assert "PROJ-7731" not in path.read_text(encoding="utf-8")


def test_saving_what_was_loaded_before_its_name_was_masked(workspace: Workspace) -> None:
    page = workspace.new(f"run {PASSWORD}")
    workspace.append(page.id, "judgement", f"the password is {PASSWORD}")
    saved = workspace.save(page)
    assert not [path.name for path in page.path.parent.iterdir() if PASSWORD.lower() in path.name.lower()]
    assert [entry.text for _, entry in workspace.load(page.id).session.entries()] == [
        "the password is [REDACTED:password]"
    ]
    assert saved.path.name.endswith(".conflict.md")


@pytest.mark.parametrize("value", ["open", "2026-11-30T09", "assistant", "judgement", "2026"])
def test_masks_go_into_words_and_never_into_structure(workspace: Workspace, value: str) -> None:
    at = datetime.fromisoformat("2026-11-30T09:15:00+08:00")
    page = workspace.new(f"the {value} thing", input=f"it is {value}", ts=at, role="writer")
    workspace.append(page.id, "judgement", "then", at=at)
    mask_values(workspace.home, [forget(value, b"k"), forget_name(value, b"k")], b"k")
    (path,) = all_sessions(workspace.home)
    assert re.match(r"0915-[0-9a-f]{7}-", path.name)
    session = workspace.load(page.id).session
    assert (session.ts, session.status, session.problems) == (at, "open", ())
    assert [(entry.text, entry.at) for _, entry in session.entries()] == [("it is [REDACTED:purged]", at), ("then", at)]


def test_what_is_purged_by_another_process_is_masked_at_once(tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    workspace = Workspace(settings=home.settings)
    page = workspace.new("x", input="the zebra crossing")
    take(home, home.path / "sessions")
    with home.writing():
        purge_value(home, find_value(home, "zebra"), vault=True, batch="p")
    workspace.append(page.id, "judgement", "a zebra again")
    assert "zebra" not in page.path.read_text(encoding="utf-8")


def test_what_a_person_deletes_is_no_message_any_more(tmp_path: Path, funnel: Funnel) -> None:
    home = home_at(tmp_path / "home")
    workspace = Workspace(settings=home.settings)
    workspace._funnel = ((), funnel)
    page = workspace.new("x", input="one")
    workspace.append(page.id, "judgement", "two")
    take(home, home.path / "sessions")
    text = page.path.read_text(encoding="utf-8")
    page.path.write_text(re.sub(r"### \S+\n\none\n", "", text), encoding="utf-8")
    take(home, home.path / "sessions")
    with home.ledger() as ledger:
        (row,) = ledger.rows("SELECT messages FROM conversations")
    assert row["messages"] == 2  # the front matter's, and what is left
    span = whole(home)
    assert span is not None
    assert [result.name for result in examine(home, span) if not result.passed] == []


def test_no_export_of_what_a_session_has_shown_to_be_a_secret_since(tmp_path: Path, funnel: Funnel) -> None:
    home = home_at(tmp_path / "home")
    workspace = Workspace(settings=home.settings)
    workspace._funnel = ((), funnel)
    page = workspace.new("x", input=f"my word is {PASSWORD} here")
    take(home, home.path / "sessions")
    workspace.append(page.id, "judgement", f"the password is {PASSWORD}")
    chosen = matching(home.path, Only(None, None, None, None, None), home.settings.zone)
    done = export(home, chosen, Order(tmp_path / "out", "md", "all"))
    assert done.files == []
    assert "palace ingest" in done.skipped[0].reason
    take(home, home.path / "sessions")
    done = export(home, chosen, Order(tmp_path / "out", "md", "all"))
    assert "[REDACTED:password]" in (tmp_path / "out" / done.files[0]).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("status: open", f"status: open # it is {PASSWORD}"),
        ("turns: 1", f"turns: {PASSWORD}"),
        ("parent:", f"parent: {PASSWORD}"),
        ("role: assistant", f"role: {'a' * 90} {PASSWORD}"),
        ("status: open", f"status: {PASSWORD}"),
        ("tokens_in:", f"mine: {PASSWORD}\ntokens_in:"),
        ("---\n\n#", f"# a comment, {PASSWORD}\n---\n\n#"),
        ("## 待办", f"## 待办 {PASSWORD}"),
        ("## 待办", f"**{PASSWORD}**\n\n## 待办"),
    ],
)
def test_a_secret_that_the_reader_passes_over_goes_as_well(workspace: Workspace, old: str, new: str) -> None:
    page = workspace.new("x", input="hello")
    text = page.path.read_text(encoding="utf-8")
    assert old in text
    page.path.write_text(text.replace(old, new, 1), encoding="utf-8")
    child = workspace.new("child", parent=page.id)
    workspace.append(child.id, "judgement", f"the password is {PASSWORD}")
    after = page.path.read_text(encoding="utf-8")
    assert PASSWORD not in after
    session = workspace.load(page.id).session
    assert (session.id, session.ts) == (page.id, page.session.ts)
    assert next(entry.text for _, entry in session.entries()) == "hello"


def _edit_after_rename(monkeypatch: pytest.MonkeyPatch, path: Path, edit: Callable[[], object]) -> None:
    """Once, right after a page of the folder was put in its place."""
    edits, real = [edit], files.sync_folder

    def synced(folder: Path) -> None:
        if edits and folder == path.parent and path.exists():
            edits.pop()()
        real(folder)

    monkeypatch.setattr(files, "sync_folder", synced)


def test_a_line_added_in_place_right_after_the_rename_doubles_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = workspace.new("x", input="a")

    def add() -> None:
        with page.path.open("a", encoding="utf-8") as stream:
            stream.write("- [ ] by hand\n")

    _edit_after_rename(monkeypatch, page.path, add)
    workspace.append(page.id, "judgement", "theirs")
    session = workspace.load(page.id).session
    assert [entry.text for _, entry in session.entries()] == ["a", "theirs", "- [ ] by hand"]


def test_parts_stay_when_somebody_writes_in_a_page_that_was_just_split(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = workspace.new("long", input="0: " + "word " * 900)
    count = 1
    while len(all_sessions(workspace.home)) == 1 and count < 40:

        def add() -> None:
            with page.path.open("a", encoding="utf-8") as stream:
                stream.write(" ")

        with monkeypatch.context() as patched:
            _edit_after_rename(patched, page.path, add)
            workspace.append(page.id, "judgement", f"{count}: " + "other words " * 400)
        count += 1
    texts = [entry.text for path in all_sessions(workspace.home) for _, entry in parse_page(path)]
    assert sorted(int(text.split(":")[0]) for text in texts) == list(range(count))


def test_a_page_that_an_editor_has_just_emptied_is_waited_for(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = workspace.new("x", input="a")
    whole_page = page.path.read_bytes()
    page.path.write_bytes(b"")
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            page.path.write_bytes(whole_page)

    monkeypatch.setattr("palace_pipeline.workspace.writing.time.sleep", wait)
    workspace.append(page.id, "judgement", "b")
    assert [entry.text for _, entry in workspace.load(page.id).session.entries()] == ["a", "b"]
    assert len(waited) == 3


def test_copies_of_conflicts_follow_new_rules(workspace: Workspace) -> None:
    page = workspace.new("x", input="about PROJ-7731")
    copy = page.path.with_name(f"{page.path.stem}.conflict.md")
    copy.write_bytes(page.path.read_bytes())
    mask_again(workspace.home, Funnel(RedactionSettings(private_patterns=(r"PROJ-\d{4}",)), b"k" * 32))
    assert "PROJ-7731" not in copy.read_text(encoding="utf-8") + page.path.read_text(encoding="utf-8")
