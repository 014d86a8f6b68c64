"""`palace rebuild --from pages`: Markdown alone gives rows, drawers, search and tables again, as far as pages hold them."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import string
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline import gaps, rebuild
from palace_pipeline.doctor import examine
from palace_pipeline.purge import purge_conversation
from palace_pipeline.rebuild import pages as of_pages
from palace_pipeline.search.engine import Searcher
from palace_pipeline.store.home import Home
from palace_pipeline.store.pages import page_paths
from tests.archive_state import state
from tests.ingest.exports_for_tests import START, chat, export
from tests.rebuild.archives import home_at, take
from tests.rebuild.pages_hold import assert_held, everything, tables_of

FIXTURES = Path(__file__).parent.parent / "fixtures/exports"
FORMATS = ("01", "02", "08", "11", "16", "21", "35")
DAY = 86_400


def token(seed: int) -> str:
    """Looks like a key of a code host; made here so that none stands in the repository."""
    return "ghp_" + "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=36))


def with_hidden(made: dict[str, Any], text: str) -> dict[str, Any]:
    """A chat whose first message is one that the source never shows."""
    node = next(iter(made["mapping"]["root"]["children"]))
    hidden = json.loads(json.dumps(made["mapping"][node]))
    hidden |= {"id": "hidden", "children": [node]}
    hidden["message"]["id"] = "hidden"
    hidden["message"]["content"]["parts"] = [text]
    hidden["message"]["metadata"] = {"is_visually_hidden_from_conversation": True}
    made["mapping"] |= {"hidden": hidden}
    made["mapping"]["root"]["children"] = ["hidden"]
    made["mapping"][node]["parent"] = "hidden"
    return made


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports of several kinds, with secrets in what is shown and in what is hidden, a document, an undated chat."""
    folder = tmp_path_factory.mktemp("sources")
    for path in sorted(FIXTURES.iterdir()):
        if path.name[:2] in FORMATS:
            shutil.copytree(path / "input" if (path / "input").is_dir() else path, folder / path.name)
    secret = with_hidden(chat("s", f"my key is {token(1)}", f"keep {token(1)} safe, and {token(2)}"), f"old {token(3)}")
    export(folder / "monthly/a.json", chat("a", "first question", "first answer"), secret)
    export(folder / "undated.json", chat("u", "when was this?", "nobody knows", start=None))
    (folder / "notes").mkdir()
    (folder / "notes/plan.md").write_text("# A plan\n\nApples first, then pears.\n")
    return folder


@pytest.fixture(scope="module")
def archive(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = home_at(tmp_path_factory.mktemp("archive") / "home")
    take(home, sources)
    page = page_of(home, "a")
    page.write_text(page.read_text().replace("tags: []", "tags: [fruit]\nrating: 5") + "\nMy own words.\n")
    return home


@pytest.fixture
def moved(archive: Home, tmp_path: Path) -> Home:
    """An empty home with a copy of the pages."""
    return with_pages_of(archive, tmp_path / "elsewhere")


def with_pages_of(home: Home, path: Path) -> Home:
    shutil.copytree(home.conversations, path / "conversations")
    return home_at(path)


def rebuilt(home: Home) -> rebuild.Taken:
    with home.writing():
        taken, _ = rebuild.from_pages(home, "test")
    return taken


def page_of(home: Home, conversation_id: str) -> Path:
    with home.ledger() as ledger:
        row = ledger.one("SELECT page FROM conversations WHERE conversation_id = ?", (conversation_id,))
    assert row is not None
    return home.path / row["page"]


def texts_of(home: Home, conversation_id: str) -> list[str]:
    rows = home.lake.read("clean/messages", home.lake.months("clean/messages"), keys=[("chatgpt", conversation_id)])
    return rows.sort("seq")["text"].to_list()


def test_a_copy_of_the_pages_gives_the_archive_again(archive: Home, moved: Home) -> None:
    taken = rebuilt(moved)
    assert (taken.pages, taken.known, taken.edited, taken.skips) == (len(list(page_paths(archive.path))), 0, [], [])
    assert_held(moved.path, archive.path)


@pytest.mark.slow
def test_every_sample_export_goes_through_pages_and_back(tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    take(home, FIXTURES)
    other = with_pages_of(home, tmp_path / "other")
    taken = rebuilt(other)
    assert taken.pages > 150
    assert not taken.skips
    assert_held(other.path, home.path)


def test_masked_places_are_counted_as_they_stand_on_the_page(moved: Home) -> None:
    rebuilt(moved)
    found = [row for row in everything(moved.path)["table findings"] if row["conversation_id"] == "s"]
    assert [(row["seq"], row["field"], row["rule"]) for row in found] == [
        (1, "messages.1.text", "page"),
        (2, "messages.2.text", "page"),
        (2, "messages.2.text", "page"),
    ]
    for path in moved.path.rglob("*"):
        if path.is_file():
            assert not any(token(seed).encode() in path.read_bytes() for seed in (1, 2, 3)), path


def test_a_rebuilt_home_is_in_use_at_once(archive: Home, moved: Home) -> None:
    rebuilt(moved)
    assert [finding.what for finding in examine(moved) if finding.level == "wrong"] == []
    assert gaps.look(moved, gaps.window(moved, everything=True)).missing == []
    for query in ("first question", "apples and pears", "sourdough"):
        answers = [Searcher(home.path, home.settings).search(query) for home in (archive, moved)]
        assert [vars_of(hit) for hit in answers[0].hits] == [vars_of(hit) for hit in answers[1].hits]
        assert answers[0].verdict == answers[1].verdict
    assert rebuilt(moved).pages == 0
    assert_held(moved.path, archive.path)


def vars_of(hit: Any) -> dict[str, Any]:
    return {name: getattr(hit, name) for name in hit.__slots__} if hasattr(hit, "__slots__") else vars(hit)


def test_the_exports_take_the_place_of_the_pages_when_they_come(archive: Home, moved: Home, sources: Path) -> None:
    rebuilt(moved)
    take(moved, sources)
    found, expected = everything(moved.path), everything(archive.path)
    times = {"first_seen_at"}
    for store, content in expected.items():
        if store.startswith("table exports"):
            found[store] = [{k: v for k, v in row.items() if k not in times} for row in found[store]]
            content = [{k: v for k, v in row.items() if k not in times} for row in content]
        if "findings" in store:
            found[store], content = without_fingerprint(found[store]), without_fingerprint(content)
        assert found[store] == content, store
    live = state(moved.path)["ledger"]
    assert not any("conversations" in row for row in live)
    assert [finding.what for finding in examine(moved) if finding.level == "wrong"] == []
    take(moved, sources)
    assert everything(moved.path)["lake raw/messages"] == expected["lake raw/messages"]


def without_fingerprint(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """They are keyed by the home."""
    return sorted(({k: v for k, v in row.items() if k != "fingerprint"} for row in rows), key=repr)


def test_what_only_the_page_has_stays_in_its_place(tmp_path: Path) -> None:
    """The export that is still there is an older one, without the last messages; later a newer one without a middle."""
    new = with_hidden(chat("c", "one", "two", "three", "four"), "context")
    home = home_at(tmp_path / "home")
    take(home, export(tmp_path / "new/a.json", new))
    other = with_pages_of(home, tmp_path / "other")
    rebuilt(other)
    old = with_hidden(chat("c", "one", "two"), "context")
    take(other, export(tmp_path / "old/a.json", old))
    assert texts_of(other, "c") == ["context", "one", "two", "three", "four"]
    with other.ledger() as ledger:
        assert [row["messages"] for row in ledger.rows("SELECT messages FROM conversations")] == [5]
    later = chat("c", "one", "two", "three", "four", "five", updated=START + DAY)
    for left_out in ("c-1", "c-2"):
        parent = later["mapping"].pop(left_out)["parent"]
        for node in later["mapping"].values():
            node["parent"] = parent if node["parent"] == left_out else node["parent"]
            node["children"] = ["c-3"] if node["children"] == [left_out] else node["children"]
    take(other, export(tmp_path / "later/a.json", later))
    assert texts_of(other, "c") == ["context", "one", "two", "three", "four", "five"]
    take(other, tmp_path / "new")
    with other.ledger() as ledger:
        assert ledger.rows("SELECT path FROM sightings WHERE path = 'conversations' AND superseded = 0") == []
    assert texts_of(other, "c") == ["context", "one", "two", "three", "four", "five"]


@pytest.mark.slow
def test_a_rebuild_from_the_vault_knows_what_came_from_pages(archive: Home, moved: Home) -> None:
    rebuilt(moved)
    with moved.writing():
        recovered, _ = rebuild.from_vault(moved, "test")
    assert (recovered.said, recovered.lost) == ([], [])
    assert_held(moved.path, archive.path)
    for path in moved.path.glob("ledger.sqlite*"):
        path.unlink()
    with moved.writing():
        rebuild.from_vault(moved, "test")
    assert_held(moved.path, archive.path)


# --- damage and other pages -------------------------------------------------------------------------------------------


def test_damaged_pages_cost_nothing_but_themselves(archive: Home, moved: Home) -> None:
    paths = sorted(page_paths(moved.path))
    torn, binary, headless, one_line = paths[0], paths[1], paths[2], paths[3]
    torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])
    binary.write_bytes(b"\xff\xfe\x00" + bytes(range(256)))
    headless.write_text(headless.read_text().partition("\n---\n")[2])
    text = one_line.read_text()
    one_line.write_text(text.replace(' {"role"', ' {"role', 1))
    (moved.conversations / "my own note.md").write_text("# Not a page\n")
    shutil.copy(paths[4], paths[4].with_name(f"2020-01-01-again-{paths[4].name[-11:]}"))
    before = {path: path.read_bytes() for path in moved.conversations.rglob("*.md")}
    taken = rebuilt(moved)
    assert taken.pages == len(paths) - 3
    lost = {skip.where: skip for skip in taken.skips if not skip.expected}
    named = [path.relative_to(moved.path).as_posix() for path in (torn, binary, headless, one_line)]
    assert set(named) < set(lost)
    assert len(lost) == 5
    assert lost[named[3]].reason == "a comment line cannot be read, so its message is not known"
    assert [skip.where for skip in taken.skips if skip.expected] == ["conversations/my own note.md"]
    log = (moved.path / "logs/errors.md").read_text()
    assert all(f"`{name}`" in log for name in lost)
    for path in (torn, binary, headless, one_line):
        assert path.read_bytes() == before[path]
    whole, left = (tables_of(home)["conversations"] for home in (archive, moved))
    assert len(left) == len(whole) - 3


def test_an_edited_page_is_in_no_conflict_with_what_was_made_from_it(tmp_path: Path) -> None:
    """Other words are filed in other rooms, and what they must not show is masked: that comes from the page itself."""
    home = home_at(tmp_path / "home")
    take(home, export(tmp_path / "a.json", chat("a", "hello", "hello to you"), chat("b", "hi", "hi to you")))
    moved = with_pages_of(home, tmp_path / "elsewhere")
    decided, told = (moved.path / page_of(home, key).relative_to(home.path) for key in ("a", "b"))
    decided.write_text(
        decided.read_text().replace("\nhello to you", "\nWe decided to use a queue, after we chose it", 1)
    )
    told.write_text(told.read_text().replace("\nhi to you", f"\nhi, the key is {token(1)}", 1))
    before = decided.read_text()
    taken = rebuilt(moved)
    assert len(taken.edited) == 2
    rooms = [row["room"] for row in everything(moved.path)["table drawers"] if row["conversation_id"] == "a"]
    assert rooms != ["general"]
    assert [path.name for path in moved.conversations.rglob("*.conflict*.md")] == []
    assert decided.read_text() == before
    assert told.read_text().count(token(1)) == 0


@pytest.mark.parametrize("name", ["{} (1).md", "{} - 副本.md", "{} copy.md", "Kopie von {}.md", "2019-01-01-old-{}.md"])
def test_an_older_copy_beside_a_page_takes_nothing_from_it(tmp_path: Path, name: str) -> None:
    home = home_at(tmp_path / "home")
    export(home.path / "inbox/a.json", chat("a", "why?", "because"))
    take(home, home.path / "inbox")
    (old,) = page_paths(home.path)
    copy = old.with_name(name.format(old.stem[-8:] if name.startswith("2019") else old.stem))
    data = old.read_bytes()
    export(home.path / "inbox/b.json", chat("a", "why?", "because", "and then?", "nothing more"))
    take(home, home.path / "inbox")
    (page,) = page_paths(home.path)
    moved = with_pages_of(home, tmp_path / "elsewhere")
    (there, beside) = (moved.path / path.relative_to(home.path) for path in (page, copy))
    beside.write_bytes(data)
    before = there.read_bytes()
    taken = rebuilt(moved)
    assert texts_of(moved, "a") == ["why?", "because", "and then?", "nothing more"]
    assert there.read_bytes() == before
    assert beside.read_bytes() == data
    assert [skip.where for skip in taken.skips] == [beside.relative_to(moved.path).as_posix()]


def test_what_was_purged_does_not_come_back_with_its_page(archive: Home, moved: Home) -> None:
    rebuilt(moved)
    page = page_of(moved, "a")
    kept = page.read_bytes()
    with moved.writing():
        purge_conversation(moved, [("chatgpt", "a")], vault=True, batch="test")
    assert not page.exists()
    page.write_bytes(kept)
    taken = rebuilt(moved)
    assert [(skip.reason, skip.expected) for skip in taken.skips] == [("purged by you", True)]
    assert "a" not in {row["conversation_id"] for row in everything(moved.path)["table conversations"]}


def test_a_page_that_keeps_only_notes_is_no_conversation(tmp_path: Path) -> None:
    from palace_pipeline.store.pages import remove_page

    home = home_at(tmp_path / "home")
    take(home, export(tmp_path / "a.json", chat("a", "question", "answer"), chat("b", "other", "one")))
    page = page_of(home, "a")
    page.write_text(page.read_text() + "\nMy own words.\n")
    remove_page(page)
    other = with_pages_of(home, tmp_path / "other")
    taken = rebuilt(other)
    assert (taken.pages, [skip.reason for skip in taken.skips]) == (
        1,
        ["a page without messages, which keeps your notes"],
    )


def test_conversations_the_archive_knows_from_exports_stay_as_they_are(archive: Home, tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    shutil.copytree(archive.path, home.path)
    before = everything(home.path)
    taken = rebuilt(home)
    assert (taken.pages, taken.known) == (0, len(list(page_paths(home.path))))
    assert everything(home.path) == before


def test_a_rebuild_that_was_killed_goes_on(archive: Home, moved: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_pages, "AT_ONCE", 4)
    original, count = of_pages.note, [0]

    def killed(*arguments: Any, **more: Any) -> Any:
        count[0] += 1
        if count[0] == 10:
            raise KeyboardInterrupt
        return original(*arguments, **more)

    monkeypatch.setattr(of_pages, "note", killed)
    with moved.writing(), pytest.raises(KeyboardInterrupt):
        rebuild.from_pages(moved, "test")
    with moved.ledger() as ledger:
        noted = len(ledger.rows("SELECT * FROM conversations"))
    assert noted == 8
    with moved.writing():
        assert rebuild.finish(moved, "test")
    assert_held(moved.path, archive.path)


@pytest.mark.slow
def test_kill_9_at_any_moment_and_the_same_command_again(archive: Home, tmp_path: Path) -> None:
    rng = random.Random(9)
    for number in range(3):
        home = with_pages_of(archive, tmp_path / str(number))
        command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home.path), "rebuild", "--from", "pages"]
        for _ in range(4):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
            time.sleep(rng.uniform(0.5, 8))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        assert_held(home.path, archive.path)
