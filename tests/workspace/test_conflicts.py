"""A page that somebody edited and an archive that went on: both sides are shown, and one is kept by choice."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.cli.archive import show_receipt
from palace_pipeline.doctor import examine
from palace_pipeline.purge import purge_conversation
from palace_pipeline.store.home import Home
from palace_pipeline.store.receipts import compose
from palace_pipeline.transcripts.page import parse
from palace_pipeline.transcripts.page_parts import segments
from palace_pipeline.workspace.conflicts import NotResolved, find, lines_between, resolve
from tests.cli.conftest import Run
from tests.ingest.exports_for_tests import START, chat, export
from tests.rebuild.archives import home_at, take
from tests.transcripts.test_page import OWN

LATER = START + 86_400


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An archive with one page that was edited before its conversation grew, and one that nobody touched."""
    home = home_at(tmp_path / "home")
    source = tmp_path / "exports/a.json"
    take(home, export(source, chat("a", "how?", "so"), chat("b", "what?", "that")))
    page = page_of(home)
    text = page.read_text(encoding="utf-8")
    text = text.replace("tags: []", "tags: [mine]").replace("\nhow?\n", "\nhow? I wonder\n")
    page.write_text(text + "\nMy notes.\n", encoding="utf-8")
    take(home, export(source, chat("a", "how?", "so", "thanks", updated=LATER), chat("b", "what?", "that")))
    return home


def page_of(home: Home, conversation_id: str = "a") -> Path:
    return next(home.conversations.rglob(f"*-chat-{conversation_id}-*[0-9a-f].md"))


def grow(home: Home, *more: str) -> None:
    texts = ("how?", "so", "thanks", *more)
    take(home, export(home.path.parent / "exports/a.json", chat("a", *texts, updated=LATER + len(more))))


def test_the_page_stays_and_the_new_state_goes_beside_it_with_a_line_in_the_log(home: Home) -> None:
    page = page_of(home)
    assert "how? I wonder" in page.read_text(encoding="utf-8")
    assert "thanks" not in page.read_text(encoding="utf-8")
    (conflict,) = find(home.path)
    assert (conflict.page, conflict.mine, conflict.key) == (page, "page", ("chatgpt", "a"))
    assert conflict.beside is not None
    assert "\nstatus: conflict\n" in conflict.beside.read_text(encoding="utf-8")
    (line,) = [line for line in (home.path / "logs/errors.md").read_text().splitlines() if " · conflict · " in line]
    assert f"`{page.relative_to(home.path)}`" in line
    assert "palace conflicts" in line
    shown = lines_between(conflict)
    assert "+how? I wonder" in shown
    assert "-thanks" in shown
    assert not any(line[1:].strip() in ("- mine", "My notes.", "tags: []") for line in shown if line[0] in "+-")
    assert not any(line[1:].startswith(("<!-- palace:", "palace:", "status:")) for line in shown)


def test_the_receipt_says_that_it_came_up(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with home.ledger() as ledger:
        receipt = compose(ledger, "test")
    assert receipt["conflicts"] == 1
    show_receipt(receipt, home, dry_run=False)
    said = "of 1 page that you changed the archive has something new to say: it stands beside; see: palace conflicts"
    assert said in capsys.readouterr().out


def test_both_sides_are_listed_for_people_and_for_programs(home: Home, palace: Run) -> None:
    result = palace("conflicts")
    name = page_of(home).relative_to(home.path).as_posix()
    assert result.code == 1
    assert f"mine     {name}" in result.out
    assert "  +how? I wonder" in result.out
    result = palace("conflicts", "--json")
    (found,) = result.json["conflicts"]
    assert (result.code, found["page"], found["conversation_id"]) == (1, name, "a")
    assert "+how? I wonder" in found["diff"]


def test_keeping_mine_leaves_the_page_and_ends_it_until_the_archive_changes(home: Home, palace: Run) -> None:
    page = page_of(home)
    before = page.read_text(encoding="utf-8")
    assert palace("conflicts", "a", "--keep", "mine").code == 0
    after = page.read_text(encoding="utf-8")
    changed = [one for one in zip(before.splitlines(), after.splitlines(), strict=True) if one[0] != one[1]]
    assert all(line.startswith("palace: ") for pair in changed for line in pair)
    assert find(home.path) == []
    with home.ledger() as ledger:
        ledger.write("UPDATE conversations SET pages_in = NULL")
    take(home, home.path.parent / "exports")
    assert find(home.path) == []
    grow(home, "welcome")
    assert len(find(home.path)) == 1
    assert page.read_text(encoding="utf-8") == after


def test_keeping_the_archive_writes_the_page_with_the_users_parts(home: Home, palace: Run) -> None:
    code = palace("conflicts", page_of(home).name, "--keep", "archive").code
    parsed = parse(page_of(home).read_text(encoding="utf-8"))
    assert (code, parsed.intact, find(home.path)) == (0, True, [])
    assert [message.text for message in parsed.conversation.messages] == ["how?", "so", "thanks"]
    assert (parsed.user.tags, parsed.user.notes, parsed.user.extra) == (("mine",), "\nMy notes.\n", "")
    grow(home, "welcome")
    assert "welcome" in page_of(home).read_text(encoding="utf-8")
    assert find(home.path) == []


def test_wrong_use_changes_nothing(home: Home, palace: Run) -> None:
    before = {path: path.read_bytes() for path in home.conversations.rglob("*.md")}
    for arguments in (["a", "--keep", "both"], ["--keep", "mine"], ["nobody", "--keep", "mine"]):
        assert palace("conflicts", *arguments).code == 2
    assert {path: path.read_bytes() for path in home.conversations.rglob("*.md")} == before


def test_a_page_that_cannot_be_read_is_not_kept_but_may_be_written_anew(home: Home) -> None:
    page = page_of(home)
    page.write_text(page.read_text(encoding="utf-8").replace(" end -->", ""), encoding="utf-8")
    (conflict,) = find(home.path)
    with pytest.raises(NotResolved, match="keep archive"):
        resolve(conflict, "mine")
    resolve(conflict, "archive")
    assert parse(page.read_text(encoding="utf-8")).user.notes == "\nMy notes.\n"
    (kept,) = find(home.path)
    assert kept.beside is not None
    assert (kept.mine, "I wonder" in kept.beside.read_text(encoding="utf-8")) == ("beside", True)
    resolve(kept, "archive")
    assert find(home.path) == []


def test_a_version_of_mine_that_was_kept_beside_can_take_the_pages_place(home: Home) -> None:
    """Earlier versions of the program, and the removal of a page, keep the edited page beside the written one."""
    (conflict,) = find(home.path)
    page, mine = conflict.page, conflict.page.read_bytes()
    assert conflict.beside is not None
    resolve(conflict, "archive")
    conflict.beside.write_bytes(mine)
    (kept,) = find(home.path)
    assert kept.mine == "beside"
    assert "+how? I wonder" in lines_between(kept)
    resolve(kept, "mine")
    assert "how? I wonder" in page.read_text(encoding="utf-8")
    with home.ledger() as ledger:
        ledger.write("UPDATE conversations SET pages_in = NULL")
    take(home, home.path.parent / "exports")
    assert find(home.path) == []


def test_doctor_says_what_waits_and_is_content_otherwise(home: Home) -> None:
    found = examine(home)
    assert [finding.what for finding in found if finding.level == "wrong"] == []
    (note,) = [finding for finding in found if finding.mend == "palace conflicts"]
    assert (note.level, note.what) == ("note", "1 page(s) that you changed, and of which the archive has something new")
    resolve(find(home.path)[0], "mine")
    assert not [finding for finding in examine(home) if finding.mend == "palace conflicts"]


def test_purging_removes_both_sides_with_proof(home: Home) -> None:
    with home.writing():
        proof = purge_conversation(home, [("chatgpt", "a")], vault=True, batch="test")
    assert proof is not None
    assert not [path for path in home.conversations.rglob("*.md") if "chat-a" in path.name]


def test_a_secret_that_stands_on_an_edited_page_is_masked_there_and_nothing_else_is_changed(home: Home) -> None:
    key = "ghp_" + "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=36))
    page = page_of(home)
    text = page.read_text(encoding="utf-8").replace("I wonder", f"I wonder about {key}")
    page.write_text(f"{text}\n{key} in my notes\n", encoding="utf-8")
    grow(home, "welcome")
    after = page.read_text(encoding="utf-8")
    body, notes = after.split("## Notes")
    assert key not in body
    assert key in notes
    assert "I wonder about [REDACTED:" in body
    assert after.count(key) == 1


@given(
    st.integers(0, len(OWN)), st.integers(0, len(OWN)), st.sampled_from(["", "x", "---\n", "\r\n", "\ufeff", "\n\n"])
)
def test_a_page_in_any_state_is_the_sum_of_its_pieces(start: int, end: int, text: str) -> None:
    damaged = OWN[:start] + text + OWN[end:]
    assert "".join(piece for piece, _ in segments(damaged)) == damaged
