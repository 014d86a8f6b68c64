"""Hermes' database: which rows were said, what comes beside them, whose sessions they are, whatever columns there are."""

import json
import secrets
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.containers import members_of
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.hermes_db import READER
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.model import to_record
from tests.exports.memory_member import shown
from tests.exports.read_database import lines_of, read, reasons, rows
from tests.exports.sqlite_files import database, with_log

FIXTURES = Path(__file__).parent.parent / "fixtures" / "exports"
START = 1_773_480_400.25
SESSIONS = (
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, display_name TEXT, model TEXT, model_config TEXT, "
    "system_prompt TEXT, parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT, cwd TEXT, title TEXT, "
    "input_tokens INT, output_tokens INT, cache_read_tokens INT, estimated_cost_usd REAL, actual_cost_usd REAL, "
    "billing_base_url TEXT)"
)
MESSAGES = (
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, "
    "tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, reasoning TEXT, token_count INT, "
    "_compressed_summary INT DEFAULT 0, active INT DEFAULT 1, compacted INT DEFAULT 0, display_kind TEXT)"
)


def put(table, **values):
    names = ", ".join(values)
    return (f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", tuple(values.values()))


def session(name, **values):
    return put("sessions", **{"id": name, "source": "cli", "started_at": START, **values})


def said(name, role, content, at, **values):
    return put("messages", session_id=name, role=role, content=content, timestamp=START + at, **values)


def store(path, *statements):
    return database(path, SESSIONS, MESSAGES, *statements)


def by_id(found):
    return {c.conversation_id: c for c in found}


def test_a_session_with_tools_thoughts_pictures_and_the_order_of_times(tmp_path):
    calls = [{"id": "c1", "function": {"name": "look", "arguments": '{"q": "rope"}'}}]
    blocks = [
        {"type": "text", "text": "What is this? 🪢"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    path = store(
        tmp_path / "state.db",
        session("s1", title="Rope", model="m-1", cwd="/dev/tide", display_name="other"),
        said("s1", "assistant", "late row, early time", 5),
        said("s1", "user", "How much?", 1),
        said("s1", "assistant", "", 2, tool_calls=json.dumps(calls), reasoning="think"),
        said("s1", "tool", "120 m", 3, tool_call_id="c1"),
        said("s1", "user", "\0json:" + json.dumps(blocks), 6),
        said("s1", "assistant", '[{"type": "text", "text": "A bowline."}]', 7),
    )
    [found], report = read(path)
    assert rows(found) == [
        ("user", "text", None, "How much?"),
        ("thinking", "thinking", None, "think"),
        ("tool", "tool_call", "look", "q: rope"),
        ("tool", "tool_result", "look", "120 m"),
        ("assistant", "text", None, "late row, early time"),
        ("user", "text", None, "What is this? 🪢"),
        ("assistant", "text", None, "A bowline."),
    ]
    assert (found.title, found.model, found.project, found.origin) == ("Rope", "m-1", "/dev/tide", "person")
    assert found.created_at.isoformat() == "2026-03-14T09:26:40.250000+00:00"
    assert found.messages[0].created_at.isoformat() == "2026-03-14T09:26:41.250000+00:00"
    assert [f.type for m in found.messages for f in m.attachment] == ["image/png"]
    assert not report.skips


def test_rewound_rows_are_another_branch_and_injected_ones_are_hidden(tmp_path):
    path = store(
        tmp_path / "state.db",
        session("s1"),
        said("s1", "user", "kept", 1, active=0, compacted=1),
        said("s1", "user", "summary", 2, _compressed_summary=1),
        said("s1", "user", "rewound", 3, active=0),
        said("s1", "user", "scaffold", 4, display_kind="hidden"),
        said("s1", "assistant", "answer", 5),
        said("s1", "user", "kept", 1),
        said("s1", "system", "rules", 6),
    )
    [found], report = read(path)
    assert shown(found) == [("user", None, "kept"), ("assistant", None, "answer")]
    assert {m.text for m in found.messages if not m.branch_active} == {"rewound"}
    assert {m.text for m in found.messages if m.hidden_reason} == {"summary", "scaffold", "rules"}
    assert reasons(report) == {"message copied by a compression": (1, True)}


def test_whose_session_it_is(tmp_path):
    path = store(
        tmp_path / "state.db",
        *(session(name, source=source) for name, source in [("p", "telegram"), ("c", "cron"), ("t", "tool")]),
        session("cron_9_x"),
        session("sub", source="subagent", parent_session_id="p"),
        session("ended", end_reason="compression"),
        session("goes-on", parent_session_id="ended"),
        session("branch", parent_session_id="p", model_config='{"_branched_from": "p", "api_key": "k"}'),
        session("delegate", parent_session_id="p", model_config='{"_delegate_from": "p"}'),
        session("reset", parent_session_id="p", model_config='{"_reset_from": "p"}'),
        session("child", parent_session_id="p", model_config="{odd"),
        session("orphan", parent_session_id="gone"),
        *(
            said(name, "user", f"in {name}", 1)
            for name in [
                "p",
                "c",
                "t",
                "cron_9_x",
                "sub",
                "ended",
                "goes-on",
                "branch",
                "delegate",
                "reset",
                "child",
                "orphan",
            ]
        ),
    )
    found, _ = read(path)
    assert {c.conversation_id: (c.origin, c.parent_conversation_id, c.forked_from) for c in found} == {
        "p": ("person", None, None),
        "c": ("cron", None, None),
        "t": ("tool", None, None),
        "cron_9_x": ("cron", None, None),
        "sub": ("subagent", "p", None),
        "ended": ("person", None, None),
        "goes-on": ("person", None, "ended"),
        "branch": ("person", None, "p"),
        "delegate": ("subagent", "p", None),
        "reset": ("person", None, None),
        "child": ("subagent", "p", None),
        "orphan": ("person", None, None),
    }


def test_sums_of_a_session_stand_at_its_last_answer(tmp_path):
    path = store(
        tmp_path / "state.db",
        session("s1", input_tokens=100, output_tokens=20, cache_read_tokens=5, estimated_cost_usd=0.5, model="m"),
        said("s1", "user", "q", 1),
        said("s1", "assistant", "a", 2),
        said("s1", "user", "q2", 3),
        said("s1", "assistant", "a2", 4),
        session("s2", input_tokens=1, output_tokens=20, actual_cost_usd=0.25, estimated_cost_usd=9, model="m"),
        said("s2", "assistant", "a", 2, token_count=7),
        session("s3", actual_cost_usd=0),
        said("s3", "assistant", "a", 2),
    )
    found = by_id(read(path)[0])

    def use(name):
        return [(m.tokens_in, m.tokens_out, m.tokens_cached, m.cost) for m in found[name].messages]

    nothing = (None, None, None, None)
    assert use("s1") == [nothing, nothing, nothing, (100, 20, 5, 0.5)]
    assert use("s2") == [(1, 7, None, 0.25)]
    assert use("s3") == [nothing]


def test_old_and_new_columns_are_read_as_they_are_there(tmp_path):
    path = database(
        tmp_path / "state.db",
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, started_at REAL)",
        "CREATE TABLE messages (session_id TEXT, role TEXT, content TEXT, brand_new BLOB)",
        "INSERT INTO sessions VALUES ('s1', 1773480400)",
        "INSERT INTO messages VALUES ('s1', 'user', 'no times', x'00'), ('s1', 'assistant', 'at all', NULL)",
    )
    [found], _ = read(path)
    assert shown(found) == [("user", None, "no times"), ("assistant", None, "at all")]
    assert {m.created_at for m in found.messages} == {None}


def test_messages_without_their_session_and_sessions_without_messages(tmp_path):
    path = store(
        tmp_path / "state.db",
        said("lost", "user", "still here", 1),
        said(None, "user", "of nobody", 1),
        session("empty"),
        session("tools"),
        said("tools", "tool", "x", 1),
    )
    found, report = read(path)
    assert {c.conversation_id: shown(c) for c in found} == {"lost": [("user", None, "still here")]}
    assert reasons(report) == {"session without messages": (2, True), "message without a session": (1, False)}


def test_settings_of_the_model_and_servers_are_not_kept(tmp_path):
    secret = secrets.token_hex(16)
    path = store(
        tmp_path / "state.db",
        session("s1", model_config=json.dumps({"api_key": secret}), billing_base_url=secret, system_prompt=secret),
        said("s1", "user", "hi", 1),
        "CREATE TABLE gateway_routing (entry_json TEXT)",
        put("gateway_routing", entry_json=secret),
    )
    assert len(read(path)[0]) == 1
    assert secret.encode() not in lines_of(path)


def test_messages_that_are_only_in_the_log_and_profiles(tmp_path):
    path = with_log(
        tmp_path / "profiles" / "work" / "state.db",
        [SESSIONS, MESSAGES, session("s1"), said("s1", "user", "old", 1)],
        [said("s1", "assistant", "new", 2)],
    )
    [found], _ = read(path)
    assert [m.text for m in found.messages] == ["old", "new"]


def test_the_same_session_in_a_file_and_in_the_database_has_the_same_messages(tmp_path):
    from palace_pipeline.exports.hermes import READERS
    from tests.exports.memory_member import read as read_file

    log = [
        {"role": "session_meta", "model": "m", "timestamp": "2026-03-14T10:26:40"},
        {"role": "user", "content": "go", "timestamp": "2026-03-14T10:26:41"},
        {"role": "assistant", "content": "gone", "timestamp": "2026-03-14T10:26:42"},
    ]
    name = "20260314_092640_aaaa1111"
    path = store(tmp_path / "state.db", session(name), said(name, "user", "go", 1), said(name, "assistant", "gone", 2))
    [here], _ = read(path)
    [there], _ = read_file(list(READERS), {f"{name}.jsonl": "\n".join(map(json.dumps, log))}, f"{name}.jsonl")
    assert here.key == there.key
    assert [m.message_id for m in here.messages] == [m.message_id for m in there.messages]


ODD = [None, "", "text", b"\xff\x00", 0, -1, 2.5, 1e300, "\0json:{", "[1", '[{"type": 1}]', '{"a": ' * 300, "9" * 400]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(["source", "model", "model_config", "parent_session_id", "started_at", "title",
                                     "input_tokens", "actual_cost_usd", "cwd"]), st.sampled_from(ODD), max_size=4),
    st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "timestamp", "reasoning", "active", "token_count",
                                     "display_kind", "session_id"]), st.sampled_from(ODD), min_size=1, max_size=4),
)  # fmt: skip
def test_any_type_in_any_column_costs_at_most_its_message(tmp_path, of_session, of_message):
    (tmp_path / "state.db").unlink(missing_ok=True)
    values = {"session_id": "s1", "role": "user", "content": "x", "timestamp": START + 1, **of_message}
    path = store(
        tmp_path / "state.db",
        session("s1", **of_session) if "source" not in of_session else put("sessions", id="s1", **of_session),
        put("messages", **values),
        said("s1", "assistant", "beside it", 2),
        session("s2"),
        said("s2", "user", "untouched", 1),
    )
    found = by_id(read(path)[0])
    assert shown(found["s2"]) == [("user", None, "untouched")]
    assert "beside it" in [m.text for m in found["s1"].visible_messages()]
    for conversation in found.values():
        to_record(conversation)


@pytest.mark.parametrize(
    "tables",
    [
        (
            "CREATE TABLE sessions (id TEXT, name TEXT)",
            "CREATE TABLE messages (session_id TEXT, role TEXT, content_json TEXT)",
        ),
        (
            "CREATE TABLE sessions (id TEXT, started_at REAL)",
            "CREATE VIEW messages AS SELECT id AS session_id FROM sessions",
        ),
        ("CREATE TABLE sessions (id TEXT, started_at REAL)",),
    ],
)
def test_databases_of_others_with_the_same_names_are_not_taken(tmp_path, tables):
    found, report = read(database(tmp_path / "state.db", *tables))
    assert found == []
    assert reasons(report) == {"unknown SQLite database": (1, False)}


def test_only_its_own_files_are_taken_for_it():
    mine = set()
    for one in members_of(FIXTURES, Report):
        try:
            head = head_of(one)
        except MemberError:
            continue
        if READER.detect(head):
            mine.add(one.path.split("/")[0])
    assert mine == {"47a-hermes-state-db"}
