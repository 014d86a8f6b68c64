"""The index of an archive: imported conversations get their rows from the pages stage, live sessions from their writer;
and live sessions are a source like any export."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import orjson
import pytest

from palace_pipeline.doctor import examine
from palace_pipeline.rebuild import from_lake, from_pages
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.settings import RedactionSettings
from palace_pipeline.store.home import Home
from palace_pipeline.workspace import index
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.memory import set_fact
from tests.ingest.exports_for_tests import chat, export
from tests.rebuild.archives import home_at, take


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_at(tmp_path / "home")


def _live(home: Home, funnel: Funnel) -> Workspace:
    workspace = Workspace(settings=home.settings)
    workspace._funnel = ((), funnel)
    return workspace


def _rows(home: Home, provider: str) -> list[dict[str, object]]:
    with home.ledger() as ledger:
        months = [row[0] for row in ledger.rows("SELECT DISTINCT substr(day, 1, 7) FROM conversations")]
    frame = home.lake.read("clean/messages", months)
    return [row for row in frame.sort("conversation_id", "seq").iter_rows(named=True) if row["provider"] == provider]


def test_an_imported_conversation_has_a_row_and_an_unchanged_archive_no_new_one(home: Home, tmp_path: Path) -> None:
    source = export(
        tmp_path / "in" / "conversations.json", chat("Oven", "How do I fix the oven? It stays cold.", "So.")
    )
    take(home, source.parent)
    (row,) = index.rows(home.path)
    assert (row.title, row.summary, row.tags) == ("Chat Oven", "How do I fix the oven?", ())
    assert (home.path / row.path).is_file()
    before = (home.path / "index.md").read_bytes()
    take(home, source.parent)
    assert (home.path / "index.md").read_bytes() == before
    export(source, chat("Oven", "How do I fix the oven? It stays cold.", "So.", "And then?"))
    take(home, source.parent)
    assert (home.path / "index.md").read_bytes() == before, "the row says nothing new"


def test_a_live_session_becomes_rows_and_follows_its_page(home: Home, funnel: Funnel) -> None:
    workspace = _live(home, funnel)
    page = workspace.new("修复烤箱", input="烤箱不热了", tags=["烤箱"], model="m")
    workspace.append(page.id, "tools", "measure", who="multimeter")
    workspace.append(page.id, "todo", "- [ ] 买温控器", tokens_in=100, tokens_out=20)
    folder = home.path / "sessions"
    take(home, folder)
    rows = _rows(home, "session")
    assert [(row["role"], row["text"]) for row in rows[1:]] == [
        ("user", "烤箱不热了"),
        ("tool", "measure"),
        ("assistant", "- [ ] 买温控器"),
    ]
    front = orjson.loads(str(rows[0]["text"]))
    assert (front["tags"], front["status"], front["todos_open"]) == (["烤箱"], "open", 1)
    assert (rows[0]["tokens_in"], rows[0]["hidden_reason"]) == (100, "front matter of a session")
    # By hand: an entry is changed, another goes; the rows say what the page says now.
    text = page.path.read_text(encoding="utf-8")
    page.path.write_text(text.replace("- [ ] 买", "- [x] 买").replace("measure\n", "measured\n"), encoding="utf-8")
    take(home, folder)
    rows = _rows(home, "session")
    assert [row["text"] for row in rows[1:]] == ["烤箱不热了", "measured", "- [x] 买温控器"]
    assert orjson.loads(str(rows[0]["text"]))["todos_done"] == 1
    assert len(index.rows(home.path)) == 1, "the page of its rows has no row of its own"


def test_nothing_flows_back_into_a_session(home: Home, funnel: Funnel) -> None:
    workspace = _live(home, funnel)
    page = workspace.new("x", input="hello")
    page.path.write_text(
        page.path.read_text(encoding="utf-8") + "\nmy mail is jane.roe@fastmail.net\n", encoding="utf-8"
    )
    before = page.path.read_bytes()
    take(home, home.path / "sessions")
    assert page.path.read_bytes() == before
    assert any("[REDACTED:email]" in str(row["text"]) for row in _rows(home, "session"))


def test_the_sessions_of_a_home_are_read_without_being_configured(home: Home, funnel: Funnel) -> None:
    assert home.path / "sessions" not in home.settings.folders
    _live(home, funnel).new("x", input="hello")
    assert home.path / "sessions" in home.settings.folders


def test_one_side_of_a_conflict_is_no_session(home: Home, funnel: Funnel) -> None:
    workspace = _live(home, funnel)
    page = workspace.new("x", input="hello")
    page.path.with_name(page.path.name.replace(".md", ".conflict.md")).write_bytes(
        page.path.read_bytes().replace(b"hello", b"other")
    )
    take(home, home.path / "sessions")
    assert [row["text"] for row in _rows(home, "session")][1:] == ["hello"]


def test_stats_show_tags_tokens_and_todos_over_time(home: Home, funnel: Funnel) -> None:
    from palace_pipeline.store.sql import query
    from palace_pipeline.store.stats import create_stats
    from palace_pipeline.trends import trends

    workspace = _live(home, funnel)
    november, december = (
        datetime.fromisoformat("2026-11-10T09:00+00:00"),
        datetime.fromisoformat("2026-11-29T09:00+00:00"),
    )
    one = workspace.new("one", input="a", tags=["烤箱", 'a"b'], ts=november)
    workspace.append(one.id, "todo", "- [ ] x\n- [x] y", tokens_in=100, tokens_out=20, at=november)
    workspace.close(one.id)
    workspace.new("two", input="b", tags=["烤箱"], ts=december)
    take(home, home.path / "sessions")
    create_stats(home.path)
    _, rows = query(
        home.path,
        "SELECT sessions, closed, turns, tokens_in, tokens_out, todos_open, todos_done FROM v_sessions_by_month",
    )
    assert rows == [(2, 1, 2, 100, 20, 1, 1)]
    _, rows = query(home.path, "SELECT tag, sessions FROM v_tags_by_month ORDER BY sessions DESC")
    assert rows[0] == ("烤箱", 2)
    text = trends(home.path).as_text()
    assert "sessions 2 (closed 1) · turns 2 · tokens in 100, out 20 · to-dos done 1 of 2" in text
    assert "烤箱" in text


def test_a_session_of_the_last_hour_of_the_calendar_stops_no_statistics(tmp_path: Path, funnel: Funnel) -> None:
    from palace_pipeline.store.sql import query
    from palace_pipeline.store.stats import create_stats
    from palace_pipeline.trends import plots_as_markdown, trends

    home = home_at(tmp_path / "home")
    home = Home(home.settings.model_copy(update={"display_zone": "Asia/Shanghai"}))
    workspace = _live(home, funnel)
    page = workspace.new("x", input="what is left?", ts=datetime.fromisoformat("9999-12-31T23:30:00+00:00"))
    workspace.append(page.id, "conclusion", "An hour.", at=datetime.fromisoformat("9999-12-31T23:40:00-05:00"))
    workspace.append(page.id, "todo", "- [ ] one", at=datetime.fromisoformat("9999-12-31T12:00:00+00:00"))
    take(home, home.path / "sessions")
    create_stats(home.path)
    assert "9999 Jan" in trends(home.path).as_text()
    assert plots_as_markdown(home.path)
    _, rows = query(home.path, "SELECT local_at FROM messages WHERE visible ORDER BY created_at")
    assert [row[0] and row[0].isoformat() for row in rows] == ["9999-12-31T20:00:00", None, None]


def test_a_session_that_somebody_wrote_without_palace_gets_its_row(home: Home) -> None:
    path = "sessions/2026-11-30/0915-1a2b3c4-by-hand.md"
    page = home.path / path
    page.parent.mkdir(parents=True)
    front = '---\nid: "20261130-0915-1a2b3c4"\nts: 2026-11-30T09:15:00Z\ntags: [oven]\n---\n'
    page.write_text(f"{front}# By hand\n\n## 结论\n\nDone. So.\n", encoding="utf-8")
    take(home, home.path / "sessions")
    (row,) = index.rows(home.path)
    assert (row.title, row.tags, row.summary, row.path) == ("By hand", ("oven",), "Done.", path)
    before = (home.path / "index.md").read_bytes()
    page.write_text(page.read_text(encoding="utf-8").replace("So.", "And so on."), encoding="utf-8")
    take(home, home.path / "sessions")
    assert (home.path / "index.md").read_bytes() == before


def test_a_torn_page_is_taken_and_noted(home: Home, funnel: Funnel) -> None:
    page = _live(home, funnel).new("x", input="hello")
    other = _live(home, funnel).new("y", input="there")
    page.path.write_text("**结论**\n\nsaved\n", encoding="utf-8")
    take(home, home.path / "sessions")
    assert {row["text"] for row in _rows(home, "session") if row["role"] != "system"} == {"saved", "there"}
    log = (home.path / "logs/errors.md").read_text(encoding="utf-8")
    assert page.path.name in log
    assert "front matter is missing" in log
    assert other.path.name not in log


def test_new_rules_mask_what_programs_wrote_before(home: Home, funnel: Funnel) -> None:
    workspace = _live(home, funnel)
    page = workspace.new("About the zebrafish", input="the zebrafish swims", tags=["x"])
    workspace.append(page.id, "tools", "feed zebrafish", who="hand")
    set_fact(workspace, "animal", "zebrafish")
    text = page.path.read_text(encoding="utf-8")
    page.path.write_text(text.replace("## 结论\n", "## 结论\n\nmy zebrafish\n"), encoding="utf-8")
    take(home, home.path / "sessions")
    rules = RedactionSettings(known_values=("zebrafish",))
    stricter = Home(home.settings.model_copy(update={"redaction": rules}))
    take(stricter, home.path / "sessions")
    session = workspace.load(page.id)
    said = [entry.text for _, entry in session.session.entries()]
    assert said[0].startswith("the [REDACTED:")
    assert said[1].startswith("feed [REDACTED:")
    assert said[2] == "my zebrafish", "by hand"
    for path in (*home.path.rglob("*.md"),):
        assert "zebrafish" not in path.name
        assert path == session.path or "zebrafish" not in path.read_text(encoding="utf-8"), path
    (row,) = index.rows(home.path)
    assert (home.path / row.path) == session.path


def _an_archive_with_sessions(home: Home, tmp_path: Path, funnel: Funnel) -> list[index.Row]:
    """Imported conversations, live sessions (one not taken in yet), and the rows that the index has of them."""
    chats = (chat(f"c{number}", f"Question {number}? More.", "So.") for number in range(6))
    source = export(tmp_path / "in" / "conversations.json", *chats)
    workspace = _live(home, funnel)
    workspace.new("taken", input="x", tags=["烤箱"])
    take(home, source.parent, home.path / "sessions")
    workspace.new("后来 | [x]", summary="not taken in yet")
    return sorted(index.rows(home.path), key=lambda row: row.path)


def _shortened(data: bytes) -> bytes:
    return b"".join(data.splitlines(keepends=True)[:8])


@pytest.mark.parametrize("cut", [lambda _: None, lambda _: b"", _shortened, lambda data: data[: len(data) // 2]])
def test_rows_that_were_lost_are_noticed_and_come_back_from_the_pages(
    home: Home, tmp_path: Path, funnel: Funnel, cut: Callable[[bytes], bytes | None]
) -> None:
    rows = _an_archive_with_sessions(home, tmp_path, funnel)
    assert len(rows) == 8
    assert not [one for one in examine(home) if "index.md" in one.what]
    file = home.path / "index.md"
    left = cut(file.read_bytes())
    file.unlink()
    if left is not None:
        file.write_bytes(left)
    (finding,) = [one for one in examine(home) if "index.md" in one.what]
    assert finding.mend is not None
    assert f"lacks rows: {len(rows) - len(index.rows(home.path))} of the pages" in finding.what
    assert "palace ingest" in finding.mend
    take(home, tmp_path / "in")
    assert sorted(index.rows(home.path), key=lambda row: row.path) == rows
    before = file.read_bytes()
    take(home, tmp_path / "in")
    assert file.read_bytes() == before
    assert not [one for one in examine(home) if "index.md" in one.what]


@pytest.mark.parametrize("rebuilt", [from_lake, from_pages])
def test_a_rebuild_writes_them_as_well(
    home: Home, tmp_path: Path, funnel: Funnel, rebuilt: Callable[[Home, str], object]
) -> None:
    rows = _an_archive_with_sessions(home, tmp_path, funnel)
    (home.path / "index.md").unlink()
    with home.writing():
        rebuilt(home, "test")
    assert sorted(index.rows(home.path), key=lambda row: row.path) == rows


def test_a_row_that_is_written_again_shows_no_secret_that_a_hand_has_written(
    home: Home, tmp_path: Path, funnel: Funnel
) -> None:
    _an_archive_with_sessions(home, tmp_path, funnel)
    mail = f"jane.roe@{'fastmail'}.net"
    page = next(path for path in home.path.glob("conversations/*/*/*.md") if "session" not in str(path))
    page.write_text(page.read_text(encoding="utf-8").replace("tags: []", f"tags: [{mail}]"), encoding="utf-8")
    unreadable = next(path for path in home.path.glob("conversations/*/*/*.md") if path != page)
    unreadable.write_text("no page at all", encoding="utf-8")
    (home.path / "index.md").unlink()
    take(home, tmp_path / "in")
    assert len(index.rows(home.path)) == 8
    assert mail not in (home.path / "index.md").read_text(encoding="utf-8")


def test_the_page_of_a_session_says_which_section_an_entry_is_of(home: Home, funnel: Funnel) -> None:
    workspace = _live(home, funnel)
    at = datetime.fromisoformat("2026-11-10T09:00+00:00")
    page = workspace.new("x", input="why?", ts=at)
    workspace.append(page.id, "judgement", "since", at=at.replace(minute=1))
    workspace.append(page.id, "todo", "- [ ] it", who="planner", at=at.replace(minute=2))
    workspace.close(page.id, "So.")
    take(home, home.path / "sessions")
    text = next(home.path.glob("conversations/session/*/*.md")).read_text(encoding="utf-8")
    said = [line.rpartition(":")[2][5:] for line in text.splitlines() if line.startswith("### ")]
    assert said == ["You", "Assistant · Judgement", "planner · To do", "Assistant · Conclusion"]
    with home.writing():
        from_pages(home, "test")  # the headings are for people alone: the rows are what they were
    assert [row["text"] for row in _rows(home, "session")][1:] == ["why?", "since", "- [ ] it", "So."]
