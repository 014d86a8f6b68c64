"""What keeps a small change cheap in a large archive: the ledger's rows of messages, what is settled later, changed files."""

from __future__ import annotations

import itertools
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace_pipeline.ingest import Ingested, ingest, run
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import SCHEMA_VERSION, Ledger, unpack_index
from tests.ingest.exports_for_tests import chat, export
from tests.ingest.old_ledgers import to_version_6


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def look(home: Home, *paths: Path) -> Ingested:
    with home.writing():
        return ingest(home, list(paths), batch="test")


def slack(folder: Path, days: int, said: str = "said") -> Path:
    """A Slack export: one channel, a file a day."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "users.json").write_text(json.dumps([{"id": "U1", "name": "ada", "profile": {}}]))
    (folder / "channels.json").write_text(json.dumps([{"id": "C1", "name": "general", "members": ["U1"]}]))
    (folder / "general").mkdir(exist_ok=True)
    for day in range(days):
        messages = [
            {
                "type": "message",
                "user": "U1",
                "text": f"{said} {day} {at}",
                "ts": f"{1714730000 + 86400 * day + at}.000100",
            }
            for at in range(2)
        ]
        name = f"2024-{5 + day // 28:02}-{1 + day % 28:02}.json"
        (folder / "general" / name).write_text(json.dumps(messages))
    return folder


def content(ledger: Ledger) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables."""
    tables = [row["name"] for row in ledger.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return {name: sorted(map(tuple, ledger.rows(f"SELECT * FROM {name}")), key=repr) for name in tables}


def test_a_ledger_of_version_6_keeps_every_row(home: Home, tmp_path: Path) -> None:
    look(
        home,
        slack(tmp_path / "in/slack", 3),
        export(tmp_path / "in/a.json", chat("a", "why?", "because"), chat("b", "x")),
    )
    with home.ledger() as ledger:
        before = content(ledger)
    assert len(before["conversation_messages"]) == 9
    with sqlite3.connect(home.ledger_path) as old:
        to_version_6(old)
    with home.ledger() as ledger:
        after = content(ledger)
        assert ledger.one("PRAGMA user_version")[0] == SCHEMA_VERSION  # pyright: ignore[reportOptionalSubscript]
        assert [row["name"] for row in ledger.rows("PRAGMA table_info(conversations)")][-1] == "tables_in"
    assert after == before
    assert look(home, tmp_path / "in").conversations["unchanged"] == 3


def test_the_schema_is_the_same_whether_new_or_brought_up_to_date(home: Home, tmp_path: Path) -> None:
    look(home, export(tmp_path / "in/a.json", chat("a", "why?")))

    def schema() -> set[tuple[str, str, str]]:
        with sqlite3.connect(home.ledger_path) as db:
            rows = db.execute("SELECT type, name, tbl_name FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'")
            columns = db.execute("SELECT m.name, p.name, p.type FROM sqlite_master m, pragma_table_info(m.name) p")
            return {*rows.fetchall(), *columns.fetchall()}

    new = schema()
    with sqlite3.connect(home.ledger_path) as old:
        to_version_6(old)
    assert schema() != new
    Ledger(home.ledger_path).close()
    assert schema() == new


def settled(home: Home) -> list[dict[str, Any]]:
    with home.ledger() as ledger:
        rows = ledger.rows(
            "SELECT provider, conversation_id, day, dated, input, messages, superseded_by FROM conversations"
        )
        found = [dict(row) for row in rows]
        for row in found:
            key = (row["provider"], row["conversation_id"])
            row["ids"] = ledger.message_hashes(key)
            union: dict[str, str] = {}
            for sighting in sorted(ledger.sightings(key), key=lambda s: s["updated_at"] or ""):
                union |= unpack_index(sighting["message_index"])
            assert row["ids"] == union
            assert row["messages"] == len(union)
        assert ledger.rows("SELECT * FROM unsettled") == []
    return sorted(found, key=repr)


def test_a_kill_before_a_channel_is_settled_loses_nothing(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = slack(tmp_path / "in/slack", 6)
    original = run.settle_noted

    def killed(_ledger: Ledger, _vault: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "settle_noted", killed)
    with pytest.raises(KeyboardInterrupt):
        look(home, folder)
    monkeypatch.setattr(run, "settle_noted", original)
    with home.ledger() as ledger:
        assert len(ledger.rows("SELECT * FROM unsettled")) == 1
    again = look(home, folder)
    assert again.files["new"] == 0
    other = Home(load_settings(tmp_path / "other"))
    look(other, folder)
    assert settled(home) == settled(other)
    assert settled(home)[0]["messages"] == 12


FEW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(st.permutations(range(5)), st.sets(st.integers(1, 4), max_size=3))
def test_day_files_in_any_order_and_number_give_one_ledger(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], cuts: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    whole, growing = slack(folder / "whole/slack", 5), slack(folder / "growing/slack", 0)
    files = sorted((whole / "general").iterdir())
    one, other = (Home(load_settings(folder / name)) for name in ("one", "other"))
    look(one, whole)
    for first, last in itertools.pairwise([0, *sorted(cuts), 5]):
        for at in order[first:last]:
            (growing / "general" / files[at].name).write_bytes(files[at].read_bytes())
        look(other, growing)
    assert settled(one) == settled(other)


def test_reading_a_channel_asks_for_no_more_rows_than_it_has_files(home: Home, tmp_path: Path) -> None:
    """Rows read grow with the files, not with their square."""

    def rows_read(days: int) -> int:
        other = Home(load_settings(tmp_path / f"home-{days}"))
        folder = slack(tmp_path / f"in-{days}/slack", days)
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        with other.writing():
            original = Ledger.__init__

            def watched(self: Ledger, path: Path | None) -> None:
                original(self, path)
                self.db.set_progress_handler(count, 100)

            Ledger.__init__ = watched  # type: ignore[method-assign]
            try:
                ingest(other, [folder], batch="test")
            finally:
                Ledger.__init__ = original  # type: ignore[method-assign]
        return steps

    few, many = rows_read(20), rows_read(80)
    assert many < 6 * few


def test_only_files_that_changed_wait_for_the_tables(home: Home, tmp_path: Path) -> None:
    export(tmp_path / "in/a.json", chat("a", "why?"))
    export(tmp_path / "in/b.json", chat("b", "why?"))
    (tmp_path / "in/c.json").write_text("{}")
    look(home, tmp_path / "in")
    with home.ledger() as ledger:
        assert {Path(row["path"]).name for row in ledger.rows("SELECT path FROM unpublished")} == {
            "a.json",
            "b.json",
            "c.json",
        }
        ledger.write("DELETE FROM unpublished")
    export(tmp_path / "in/b.json", chat("b", "why?", "because"))
    look(home, tmp_path / "in")
    with home.ledger() as ledger:
        assert [Path(row["path"]).name for row in ledger.rows("SELECT path FROM unpublished")] == ["b.json"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shows=st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), min_size=1, max_size=5),
    asked=st.sets(st.integers(0, 4), min_size=1),
    grown=st.integers(0, 4),
)
def test_what_unread_files_show_is_counted_once_whichever_files_are_looked_at(
    tmp_path_factory: pytest.TempPathFactory, shows: list[set[str]], asked: set[int], grown: int
) -> None:
    folder = tmp_path_factory.mktemp("counted")
    home = Home(load_settings(folder / "home"))
    files = [
        export(folder / f"in/{number}.json", *(chat(name, f"{name} asks", "and hears") for name in sorted(names)))
        for number, names in enumerate(shows)
    ]
    look(home, *files)
    asked = {number % len(files) for number in asked}
    grown %= len(files)
    export(files[grown], *(chat(name, f"{name} asks", "and hears") for name in sorted(shows[grown])), chat("new", "hi"))
    found = look(home, *(files[number] for number in sorted(asked)))
    shown = set[str]().union(*(shows[number] for number in asked))
    new = int(grown in asked)
    wanted = {"found": len(shown) + new, "new": new, "updated": 0, "unchanged": len(shown), "skipped": 0}
    assert found.conversations == wanted
    assert found.messages["unchanged"] == 2 * len(shown)
    assert found.files["unchanged"] == len(asked) - new


def test_what_no_file_shows_any_more_is_not_counted(home: Home, tmp_path: Path) -> None:
    chats = {name: chat(name, f"{name} asks", "and hears") for name in "abcd"}
    one, two = tmp_path / "in/1.json", tmp_path / "in/2.json"
    export(one, chats["a"], chats["b"], chats["c"])
    export(two, chats["c"], chats["d"])
    look(home, one, two)
    export(one, chats["a"])
    assert look(home, one, two).conversations["found"] == 3  # b stands nowhere now, c in the other file
    again = look(home, one, two)
    assert (again.conversations["unchanged"], again.messages["unchanged"]) == (3, 6)
    assert look(home, one).conversations["unchanged"] == 1
    assert look(home, two).conversations["unchanged"] == 2
