"""The trend views by hand: local days, what adds up, streaks, silences, growth; and when they are made anew."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from palace_pipeline.store import stats
from palace_pipeline.store.duckfile import NotBuiltError
from palace_pipeline.store.sql import query, to_json_rows
from palace_pipeline.store.stats import VIEWS, create_stats
from palace_pipeline.store.warehouse import publish
from palace_pipeline.trends import trends
from tests.store.lake_builder import Lake, at, conversation, talk, together, write

SHANGHAI = ZoneInfo("Asia/Shanghai")
SKIPS: list[dict[str, Any]] = [
    {"path": "a", "place": "1", "reason": "empty", "expected": True, "count": 2, "unit": "message"},
    {"path": "b", "place": "1", "reason": "empty", "expected": True, "count": 3, "unit": "message"},
    {"path": "b", "place": "2", "reason": "broken line", "expected": False, "count": 1, "unit": "message"},
]


def archive() -> Lake:
    """Local days (Shanghai): 2024-03-30 (Saturday), 03-31, 04-01, 04-05; one chat without a time."""
    in_coding = [{"first_seq": 0, "last_seq": 9, "wing": "work", "room": "coding"}]
    in_health = [{"first_seq": 0, "last_seq": 9, "wing": "home", "room": "health"}]
    call = {"role": "tool", "kind": "tool_call", "tool_name": "grep", "tokens_out": 7}
    answer = {"role": "assistant", "text": "ok", "model": "m", "cost": 0.5, "tokens_out": 4}
    dropped = {"role": "assistant", "text": "dropped", "branch_active": False, "model": "m"}
    long_one = [
        # 15:59 UTC is 23:59 in Shanghai; the answer two minutes later falls on the next local day.
        *talk(at("2024-03-30T15:59:00"), "one two", "three", step=timedelta(minutes=2)),
        {"role": "user", "text": "more", "created_at": at("2024-04-01T01:00:00")},
        {**call, "created_at": at("2024-04-01T01:00:30")},
        {**answer, "created_at": at("2024-04-01T01:01:00")},
        {**dropped, "created_at": at("2024-04-01T01:02:00")},
    ]
    short_one = talk(at("2024-04-05T03:00:00"), "向量", "好")
    return together(
        [
            conversation(
                "codex",
                "long",
                date(2024, 3, 30),
                long_one,
                drawers=in_coding,
                findings=[
                    {"seq": 0, "kind": "email", "fingerprint": "x"},
                    {"seq": 2, "kind": "email", "fingerprint": "x"},
                    {"seq": 2, "kind": "email", "fingerprint": "y"},
                    {"seq": None, "field": "title", "kind": "phone"},
                ],
            ),
            conversation("claude", "short", date(2024, 4, 5), short_one, drawers=in_health),
            conversation(
                "claude",
                "undated",
                date(2024, 5, 5),
                [{"role": "user", "text": "when?"}, {"role": "user", "text": "now"}],
                dated=False,
            ),
        ]
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    write(home, archive())
    publish(home, None, exports=[], skips=SKIPS, pages={}, zone=SHANGHAI)
    return home


def table(home: Path, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in to_json_rows(*query(home, sql))]


def test_days_are_those_of_the_display_zone_and_a_null_day_holds_the_rest(home: Path) -> None:
    wanted = "day, conversations, started, messages, user_messages, assistant_messages, words, tokens_out, cost"
    assert table(home, f"SELECT {wanted} FROM v_day") == [
        ("2024-03-30", 1, 1, 1, 1, 0, 2, None, None),
        ("2024-03-31", 1, 0, 1, 0, 1, 1, None, None),
        ("2024-04-01", 1, 0, 2, 1, 1, 2, 11, 0.5),
        ("2024-04-05", 1, 1, 2, 1, 1, 3, None, None),
        (None, 1, 1, 2, 2, 0, 2, None, None),
    ]


def test_weeks_begin_on_monday(home: Path) -> None:
    assert table(home, "SELECT week, messages FROM v_week") == [("2024-03-25", 2), ("2024-04-01", 4), (None, 2)]


def test_months_by_provider_wing_room_and_model(home: Path) -> None:
    assert table(home, "SELECT month, provider, conversations, messages FROM v_month_by_provider") == [
        ("2024-03-01", "codex", 1, 2),
        ("2024-04-01", "claude", 1, 2),
        ("2024-04-01", "codex", 1, 2),
        (None, "claude", 1, 2),
    ]
    assert table(home, "SELECT month, room, messages FROM v_month_by_room WHERE month = '2024-04-01'") == [
        ("2024-04-01", "coding", 2),
        ("2024-04-01", "health", 2),
    ]
    assert table(home, "SELECT wing, messages FROM v_month_by_wing WHERE month IS NULL") == [(None, 2)]
    assert table(home, "SELECT model, messages, cost FROM v_month_by_model") == [("m", 1, 0.5)]


@pytest.mark.parametrize("view", [view.name for view in VIEWS if "_by_" in view.name and "started" in view.columns])
def test_periods_add_up_to_the_conversations_table(home: Path, view: str) -> None:
    where = "WHERE model IS NOT NULL" if view.endswith("_by_model") else ""
    expected = table(home, f"SELECT count(*) FILTER (visible), count(*) FILTER (opening) FROM messages {where}")
    assert table(home, f"SELECT sum(messages), sum(started) FROM {view}") == expected
    assert table(home, "SELECT sum(message_count), count(*) FROM conversations") == [(8, 3)]


def test_the_calendar_shows_silent_days(home: Path) -> None:
    assert table(home, "FROM v_calendar") == [
        ("2024-03-30", 1, 1),
        ("2024-03-31", 1, 1),
        ("2024-04-01", 2, 1),
        ("2024-04-02", 0, 0),
        ("2024-04-03", 0, 0),
        ("2024-04-04", 0, 0),
        ("2024-04-05", 2, 1),
    ]


def test_streaks_and_silences(home: Path) -> None:
    assert table(home, "FROM v_streaks") == [("2024-03-30", "2024-04-01", 3, 4), ("2024-04-05", "2024-04-05", 1, 2)]
    assert table(home, "FROM v_silences") == [("2024-04-02", "2024-04-04", 3)]


def test_all_hours_of_the_week(home: Path) -> None:
    assert table(home, "SELECT count(*), sum(messages) FROM v_hour_of_week") == [(168, 6)]
    assert table(home, "FROM v_hour_of_week WHERE messages > 0") == [
        (1, 9, 2, 1),
        (5, 11, 2, 1),
        (6, 23, 1, 1),
        (7, 0, 1, 0),
    ]


def test_findings_by_month_and_kind(tmp_path: Path) -> None:
    """Two chats, two months: what comes again in a later month is no new value, whoever shows it."""
    first = [{"seq": 0, "kind": "email", "fingerprint": "x", "layer": layer} for layer in ("pii", "memory")]
    second = [
        {"seq": 0, "kind": "email", "fingerprint": "x"},
        {"seq": 0, "kind": "email", "fingerprint": "y"},
        {"seq": None, "field": "title", "kind": "phone", "fingerprint": "z"},
    ]
    lake = together(
        [
            conversation("codex", "a", date(2024, 3, 1), talk(at("2024-03-01T10:00:00"), "hi"), findings=first),
            conversation("claude", "a", date(2024, 3, 2), talk(at("2024-03-02T10:00:00"), "hi"), findings=first[:1]),
            conversation("claude", "b", date(2024, 5, 1), talk(at("2024-05-01T10:00:00"), "hi"), findings=second),
        ]
    )
    write(tmp_path, lake)
    publish(tmp_path, None, exports=[], skips=[], pages={})
    assert table(tmp_path, "FROM v_findings_by_month_and_kind") == [
        ("2024-03-01", "email", 3, 1, 2, 1),
        ("2024-05-01", "email", 2, 2, 1, 1),
        ("2024-05-01", "phone", 1, 1, 1, 1),
    ]
    shown = trends(tmp_path)
    assert [found["findings"] for found in shown.rows["findings_by_month"]] == [3, 2, 1]
    text = shown.as_text(80)
    assert text[text.index("Masked by month and kind") :].splitlines()[1:] == [
        "      2024-03 to 2024-05",
        "email █ ▆ 5",
        "phone   █ 1",
    ]


def test_findings_over_time(home: Path) -> None:
    assert table(home, "FROM v_findings_by_month") == [
        ("2024-03-01", "email", "patterns", "codex", 1, 1, 1),
        ("2024-03-01", "phone", "patterns", "codex", 1, 0, 1),
        ("2024-04-01", "email", "patterns", "codex", 2, 2, 1),
    ]


def test_topics_grow_or_shrink_by_quarter(home: Path) -> None:
    assert table(home, "FROM v_topic_growth") == [
        ("2024-01-01", "coding", 1, 2, 0, None),
        ("2024-04-01", "coding", 1, 2, 2, 0.0),
        ("2024-04-01", "health", 1, 2, 0, None),
    ]


def test_cost_says_how_much_of_the_answers_it_covers(home: Path) -> None:
    assert table(home, "FROM v_cost_by_month") == [("2024-04-01", "codex", "m", 0.5, 1, 0)]


def test_tools_skips_and_providers(home: Path) -> None:
    assert table(home, "FROM v_tools") == [("grep", "codex", 1, 1, "2024-04-01")]
    assert table(home, "FROM v_skips_by_reason") == [
        ("broken line", False, "message", 1, 1),
        ("empty", True, "message", 5, 2),
    ]
    assert table(home, "FROM v_providers") == [
        ("claude", 2, 4, 5, "2024-04-05", "2024-04-05", 1, 0),
        ("codex", 1, 4, 5, "2024-03-30", "2024-04-01", 0, 4),
    ]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_column_is_described(home: Path, view: stats.View) -> None:
    assert query(home, f"SELECT * FROM {view.name} LIMIT 0")[0] == list(view.columns)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_views_need_no_time_zone_extension(view: stats.View) -> None:
    assert not {"created_at", "started_at", "ended_at"} & set(re.findall(r"\w+", view.sql))


def test_stats_are_made_anew_only_when_their_recipe_is_another(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "palace.duckdb"
    before = file.stat().st_ino
    assert create_stats(home) == [view.name for view in VIEWS]
    assert file.stat().st_ino == before
    fewer = (*VIEWS[1:], stats.View("v_new", "new", {"one": "1"}, "SELECT 1 AS one"))
    with monkeypatch.context() as patch:
        patch.setattr(stats, "VIEWS", fewer)
        assert create_stats(home) == [view.name for view in fewer]
        assert table(home, "FROM v_new") == [(1,)]
        names = {name for (name,) in query(home, "SELECT view_name FROM duckdb_views() WHERE NOT internal")[1]}
        assert VIEWS[0].name not in names
        assert "message_text" in names
        again = file.stat().st_ino
        assert create_stats(home)[-1] == "v_new"
        assert file.stat().st_ino == again
    create_stats(home)
    assert query(home, "SELECT count(*) FROM messages")[1] == [(10,)]
    assert sorted(path.name for path in home.iterdir()) == ["lake", "palace.duckdb"]


def test_without_a_warehouse_there_are_no_stats(tmp_path: Path) -> None:
    with pytest.raises(NotBuiltError):
        create_stats(tmp_path)
    assert list(tmp_path.iterdir()) == []
