"""What `palace.duckdb` says of a small lake, by hand; incremental publish = full build; nothing stops a run."""

from __future__ import annotations

import stat
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.store.duckfile import attached
from palace_pipeline.store.sql import query, to_json_rows
from palace_pipeline.store.warehouse import PublishResult, publish
from palace_pipeline.store.warehouse_schema import TABLES
from tests.store.lake_builder import Lake, at, conversation, empty, talk, together, write

BERLIN = ZoneInfo("Europe/Berlin")
EXPORT: dict[str, Any] = {
    "path": "inbox/chatgpt.zip",
    "sha256": "0" * 64,
    "provider": "chatgpt",
    "format": "chatgpt-json",
    "first_seen_at": "2024-07-01T10:00:00Z",
    "size": 1234,
    "conversations": 2,
    "messages": 9,
    "skipped": 1,
    "status": "ok",
    "reason": None,
}
SKIP: dict[str, Any] = {
    "path": "inbox/chatgpt.zip",
    "provider": "chatgpt",
    "place": "conversations.json #3",
    "reason": "empty conversation",
    "expected": 1,
    "count": 1,
    "unit": "conversation",
}


def branched() -> Lake:
    """Visible: seq 0, 1, 4, 6. An old branch, a hidden row, a tool row, thinking, and an assistant without a time."""
    first = {"role": "assistant", "text": "用指数退避", "model": "m-1", "tokens_out": 5, "cost": 0.25}
    old = {"role": "assistant", "text": "old answer", "model": "m-2", "tokens_out": 3, "branch_active": False}
    tool = {"role": "tool", "kind": "tool_call", "text": "{}", "tool_name": "search", "cost": 0.5}
    return conversation(
        "chatgpt",
        "a",
        date(2024, 6, 30),
        [
            {"role": "user", "text": "How do I cap retries?", "created_at": at("2024-06-30T22:30:00")},
            {**first, "created_at": at("2024-06-30T22:31:00")},
            {**old, "created_at": at("2024-06-30T22:30:30")},
            {"role": "user", "text": "me", "hidden_reason": "profile", "created_at": at("2024-06-30T22:00:00")},
            {"role": "user", "text": "thanks", "created_at": at("2024-07-01T08:00:00")},
            {**tool, "created_at": at("2024-07-02T08:00:00")},
            {"role": "assistant", "text": "you are welcome", "model": "m-1"},
            {"role": "thinking", "kind": "thinking", "text": "hmm", "created_at": at("2024-07-03T08:00:00")},
        ],
        title="Retries",
        account="me",
        drawers=[
            {"first_seq": 0, "last_seq": 4, "wing": "work", "room": "coding"},
            {"first_seq": 4, "last_seq": 6, "wing": "home", "room": "health"},
            {"first_seq": 6, "last_seq": 6, "wing": "work", "room": "coding"},
            {"first_seq": 1, "last_seq": 5, "wing": "tools", "room": "ops", "kind": "tool"},
        ],
        findings=[
            {"seq": 0, "kind": "email", "fingerprint": "f1"},
            {"seq": 0, "kind": "email", "fingerprint": "f1"},
            {"seq": None, "field": "title", "kind": "phone"},
        ],
    )


def undated() -> Lake:
    return conversation(
        "whatsapp",
        "u",
        date(2024, 7, 1),
        [{"role": "user", "text": "hi", "speaker": "Ann"}, {"role": "bot", "text": "welcome to the group"}],
        dated=False,
    )


def naive() -> Lake:
    return conversation(
        "whatsapp",
        "n",
        date(2024, 7, 2),
        [{"role": "user", "text": "一二三", "local_time": "2024-07-02T23:59:59"}],
    )


def publish_all(home: Path, **changes: Any) -> PublishResult:
    pages = {("chatgpt", "a"): "conversations/a.md"}
    values: dict[str, Any] = {"exports": [EXPORT], "skips": [SKIP], "pages": pages, "zone": BERLIN, **changes}
    return publish(home, values.pop("changed", None), **values)


def rows(home: Path, sql: str, *params: object) -> list[dict[str, Any]]:
    return to_json_rows(*query(home, sql, params))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    write(home, together([branched(), undated(), naive()]))
    result = publish_all(home)
    assert result == PublishResult(
        {"exports": 1, "conversations": 3, "messages": 11, "drawers": 4, "findings": 3, "skips": 1}, full=True
    )
    return home


def test_a_conversation_is_counted_by_what_a_person_sees(built: Path) -> None:
    (row,) = rows(built, "FROM conversations WHERE conversation_id = 'a'")
    assert row == {
        "provider": "chatgpt",
        "conversation_id": "a",
        "title": "Retries",
        "day": "2024-06-30",
        "dated": True,
        "started_at": "2024-06-30T22:30:00Z",
        "ended_at": "2024-07-01T08:00:00Z",
        "message_count": 4,
        "user_messages": 2,
        "assistant_messages": 2,
        "bot_messages": 0,
        "words": 5 + 5 + 1 + 3,
        "tokens_in": None,
        "tokens_out": 8,
        "tokens_cached": None,
        "model": "m-1",
        "cost": 0.75,
        "account": "me",
        "origin": "person",
        "wing": "work",
        "room": "coding",
        "page": "conversations/a.md",
        "findings": 3,
        "status": "ok",
        "drawers": 4,
        "rows": 8,
        "local_started": "2024-07-01T00:30:00",
        "local_ended": "2024-07-01T10:00:00",
        "project": None,
        "forked_from": None,
        "parent_conversation_id": None,
        "source_file": None,
        "source_sha256": None,
    }


def test_no_time_and_no_cost_are_null_and_never_a_number(built: Path) -> None:
    (row,) = rows(built, "FROM conversations WHERE conversation_id = 'u'")
    unknown = ("started_at", "ended_at", "cost", "tokens_in", "tokens_out", "model", "wing", "page", "local_started")
    assert {name: row[name] for name in unknown} == dict.fromkeys(unknown)
    assert (row["dated"], row["message_count"], row["bot_messages"]) == (False, 2, 1)


def test_a_time_without_a_zone_stays_a_local_time(built: Path) -> None:
    wanted = "started_at, local_started, words"
    assert rows(built, f"SELECT {wanted} FROM conversations WHERE conversation_id = 'n'") == [
        {"started_at": None, "local_started": "2024-07-02T23:59:59", "words": 3}
    ]


def test_a_message_knows_its_place_and_what_is_seen(built: Path) -> None:
    found = query(
        built,
        "SELECT seq, visible, opening, room, findings, words FROM messages WHERE conversation_id='a' ORDER BY seq",
    )[1]
    assert found == [
        (0, True, True, "coding", 2, 5),
        (1, True, False, "coding", 0, 5),
        (2, False, False, "coding", 0, 2),
        (3, False, False, "coding", 0, 1),
        (4, True, False, "coding", 0, 1),
        (5, False, False, "health", 0, 0),
        (6, True, False, "health", 0, 3),
        (7, False, False, None, 0, 1),
    ]


def test_the_contracts_columns_come_first_and_in_order(built: Path) -> None:
    contract = {
        "exports": "path, sha256, provider, format, first_seen_at, size, conversations, messages, skipped, "
        "status, reason",
        "messages": "provider, conversation_id, seq, role, kind, branch_active, created_at, words, model, tokens_in, "
        "tokens_out, tool_name, findings",
        "conversations": "provider, conversation_id, title, day, dated, started_at, ended_at, message_count, "
        "user_messages, assistant_messages, words, tokens_in, tokens_out, model, cost, account, origin, wing, page, "
        "findings, status",
        "drawers": "drawer_id, provider, conversation_id, chunk_index, first_seq, last_seq, wing, hall, room, "
        "confidence, tokens, day",
        "findings": "provider, conversation_id, seq, field, kind, rule, layer, length, fingerprint",
        "skips": "path, provider, place, reason, expected, count",
    }
    for table, names in contract.items():
        columns, _ = query(built, f"SELECT * FROM {table} LIMIT 0")
        assert [name for name in columns if name in names.split(", ")] == names.split(", ")
    assert rows(built, "SELECT first_seen_at, size, reason FROM exports") == [
        {"first_seen_at": "2024-07-01T10:00:00Z", "size": 1234, "reason": None}
    ]
    assert rows(built, "SELECT expected, count FROM skips") == [{"expected": True, "count": 1}]
    assert query(built, "SELECT typeof(created_at), typeof(day), typeof(cost) FROM messages LIMIT 1")[1] == [
        ("TIMESTAMP WITH TIME ZONE", "DATE", "DOUBLE")
    ]


def test_everything_has_a_comment(built: Path) -> None:
    for sql in (
        "SELECT table_name FROM duckdb_tables() WHERE comment IS NULL AND NOT internal",
        "SELECT view_name FROM duckdb_views() WHERE comment IS NULL AND NOT internal",
        "SELECT table_name, column_name FROM duckdb_columns() WHERE comment IS NULL AND NOT internal"
        " AND database_name = 'palace'",
    ):
        assert query(built, sql)[1] == []
    assert query(built, "SELECT count(*) FROM duckdb_columns() WHERE comment IS NOT NULL")[1][0][0] > 100


def test_text_stays_in_the_lake_and_is_joined(built: Path) -> None:
    assert query(built, "SELECT seq, text FROM message_text WHERE conversation_id = 'a' AND visible ORDER BY seq")[
        1
    ] == [
        (0, "How do I cap retries?"),
        (1, "用指数退避"),
        (4, "thanks"),
        (6, "you are welcome"),
    ]
    assert query(built, "SELECT text FROM drawer_text WHERE room = 'health'")[1] == [("chunk 1",)]
    assert "用指数退避".encode() not in (built / "palace.duckdb").read_bytes()


def test_the_file_is_the_owners_alone_and_nothing_is_left_beside(built: Path) -> None:
    assert stat.S_IMODE((built / "palace.duckdb").stat().st_mode) == 0o600
    assert sorted(p.name for p in built.iterdir()) == ["lake", "palace.duckdb"]
    assert dict(query(built, "FROM meta")[1])["home"] == str(built)


def test_an_empty_home_gives_an_empty_warehouse(tmp_path: Path) -> None:
    result = publish_all(tmp_path, exports=[], skips=[], pages={})
    assert set(result.counts.values()) == {0}
    assert query(tmp_path, "SELECT count(*) FROM message_text")[1] == [(0,)]
    write(tmp_path, branched())
    publish_all(tmp_path, changed=[("chatgpt", "a", date(2024, 6, 30))])
    assert query(tmp_path, "SELECT count(*) FROM message_text")[1] == [(8,)]


# --- incremental ------------------------------------------------------------------------------------------------------


def snapshot(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    with attached(home) as connection:
        return {
            table: sorted(connection.execute(f"FROM {table}").fetchall(), key=repr)
            for table in (*TABLES, "message_text", "drawer_text", "v_month_by_room")
            if table != "meta"
        }


def test_nothing_new_leaves_the_file_alone(tmp_path: Path) -> None:
    write(tmp_path, branched())
    publish_all(tmp_path)
    before = (tmp_path / "palace.duckdb").stat()
    result = publish_all(tmp_path, changed=[])
    after = (tmp_path / "palace.duckdb").stat()
    assert (result.written, result.full) == (False, False)
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_conversation_that_moves_to_another_day_leaves_no_rows_behind(tmp_path: Path) -> None:
    write(tmp_path, together([branched(), undated()]))
    publish_all(tmp_path)
    moved = conversation("whatsapp", "u", date(2023, 1, 5), talk(at("2023-01-05T10:00:00"), "hi"))
    write(tmp_path, together([branched(), moved]))
    result = publish_all(tmp_path, changed=[("whatsapp", "u", date(2023, 1, 5))], pages={("whatsapp", "u"): "new.md"})
    assert (result.full, result.counts["messages"]) == (False, 9)
    assert query(tmp_path, "SELECT conversation_id, day, page FROM conversations ORDER BY ALL")[1] == [
        ("a", date(2024, 6, 30), "conversations/a.md"),
        ("u", date(2023, 1, 5), "new.md"),
    ]


def test_rows_on_another_day_than_their_conversation_wait(tmp_path: Path) -> None:
    """As after a kill between two tables of the lake: drawers of the old day must not stay in the tables for ever."""
    day, other = date(2024, 6, 30), date(2024, 5, 5)
    stale = {**branched(), "drawers": [{**row, "day": other} for row in branched()["drawers"]]}
    write(tmp_path, stale)
    assert publish_all(tmp_path).counts["drawers"] == 0
    write(tmp_path, branched())
    assert publish_all(tmp_path, changed=[("chatgpt", "a", day)]).counts["drawers"] == 4


def test_exports_and_skips_follow_also_without_new_conversations(tmp_path: Path) -> None:
    write(tmp_path, branched())
    publish_all(tmp_path)
    second = {**EXPORT, "path": "inbox/\udcff.zip", "first_seen_at": datetime(2024, 8, 1, tzinfo=UTC)}
    result = publish_all(tmp_path, changed=[], exports=[EXPORT, second], skips=[])
    assert (result.written, result.full) == (True, False)
    assert (result.counts["exports"], result.counts["skips"]) == (2, 0)
    assert query(tmp_path, "SELECT path FROM exports ORDER BY path")[1] == [("inbox/\\udcff.zip",), (EXPORT["path"],)]


def test_only_the_rows_of_new_paths_are_asked_for(tmp_path: Path) -> None:
    write(tmp_path, branched())
    other = {**EXPORT, "path": "inbox/b.zip"}
    publish_all(tmp_path, exports=[EXPORT, other])
    asked: list[object] = []

    def exports(paths: Any) -> list[dict[str, Any]]:
        asked.append(paths)
        return [{**other, "size": 5}, {**other, "path": "inbox/c.zip"}] if paths is not None else []

    publish_all(tmp_path, changed=[], exports=exports, skips=lambda paths: [], paths=["inbox/b.zip", "inbox/c.zip"])
    assert asked == [{"inbox/b.zip", "inbox/c.zip"}]
    assert query(tmp_path, "SELECT path, size FROM exports ORDER BY path")[1] == [
        ("inbox/b.zip", 5),
        ("inbox/c.zip", 1234),
        ("inbox/chatgpt.zip", 1234),
    ]
    assert query(tmp_path, "SELECT path FROM skips")[1] == [("inbox/chatgpt.zip",)]
    publish_all(tmp_path, changed=[], exports=[EXPORT], skips=[SKIP])
    assert query(tmp_path, "SELECT path FROM exports")[1] == [("inbox/chatgpt.zip",)]


def test_an_unknown_column_is_an_error_and_the_file_stays(tmp_path: Path) -> None:
    write(tmp_path, branched())
    publish_all(tmp_path)
    with pytest.raises(ValueError, match="colour"):
        publish_all(tmp_path, exports=[{**EXPORT, "colour": "red"}])
    assert query(tmp_path, "SELECT count(*) FROM exports")[1] == [(1,)]


days = st.dates(date(2023, 12, 20), date(2024, 2, 10))
edits = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "d"]),
        st.one_of(st.none(), st.tuples(days, st.integers(1, 3), st.sampled_from(["x", "y"]))),
    ),
    max_size=5,
)


def made(conversation_id: str, day: date, length: int, room: str) -> Lake:
    start = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    messages = [{**m, "cost": 0.25, "model": "m"} for m in talk(start, *["词 word"] * length)]
    drawers = [{"first_seq": 0, "last_seq": length - 1, "wing": "w", "room": room}]
    return conversation("codex", conversation_id, day, messages, drawers=drawers, findings=[{"seq": 0, "kind": "k"}])


def check_incremental(home: Path, rounds: list[list[tuple[str, Any]]]) -> None:
    state: dict[str, tuple[date, int, str]] = {"z": (date(2024, 1, 1), 2, "x")}
    write(home, made("z", *state["z"]))
    publish_all(home)
    for batch in rounds:
        before = dict(state)
        for name, value in batch:
            if value is None:
                state.pop(name, None)
            else:
                state[name] = value
        write(home, together(made(name, *value) for name, value in state.items()))
        changed = [("codex", name, state[name][0]) for name in {n for n, _ in batch} if name in state]
        removed = [("codex", name) for name in before if name not in state]
        assert not publish_all(home, changed=changed, removed=removed).full
    incremental = snapshot(home)
    publish_all(home)
    assert incremental == snapshot(home)


everything = given(rounds=st.lists(edits, min_size=1, max_size=3))


@settings(max_examples=3, deadline=None)
@everything
def test_incremental_publishes_equal_a_full_build(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, Any]]]
) -> None:
    check_incremental(tmp_path_factory.mktemp("home"), rounds)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@everything
def test_many_incremental_publishes_equal_a_full_build(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, Any]]]
) -> None:
    check_incremental(tmp_path_factory.mktemp("home"), rounds)


def test_a_large_lake_is_read_in_several_batches_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = date(2023, 1, 1)
    write(tmp_path, together(made(f"c{n}", start + timedelta(days=20 * n), 2, "x") for n in range(12)))
    publish_all(tmp_path)
    at_once = snapshot(tmp_path)
    monkeypatch.setattr("palace_pipeline.store.warehouse._BATCH_BYTES", 1)
    publish_all(tmp_path)
    assert snapshot(tmp_path) == at_once


def test_an_empty_lake_has_no_text(tmp_path: Path) -> None:
    write(tmp_path, empty())
    publish_all(tmp_path)
    assert query(tmp_path, "SELECT count(*) FROM drawer_text")[1] == [(0,)]
