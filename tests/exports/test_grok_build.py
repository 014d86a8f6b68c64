"""Grok Build: typed and injected lines, times of the log beside, what a compression or a rewind cut, damage."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.engine import identify
from palace_pipeline.exports.grok_build import READER
from palace_pipeline.exports.grok_updates import read_log
from palace_pipeline.exports.registry import READERS
from palace_pipeline.model import to_record
from tests.exports.memory_member import MemoryMember, export, read, shown
from tests.exports.read_database import reasons, rows

SESSION = "019f75d0-0000-7000-8000-000000000001"
FOLDER = f"sessions/%2Fdev%2Ftide/{SESSION}"
NOON = 1_773_489_600_000  # 2026-03-14T12:00:00Z


def typed(text, index=0, **more):
    return {
        "type": "user",
        "content": [{"type": "text", "text": f"<user_query>\n{text}\n</user_query>"}],
        "prompt_index": index,
        **more,
    }


def injected(text, why="system_reminder"):
    return {"type": "user", "content": [{"type": "text", "text": text}], "synthetic_reason": why}


def answer(text, *calls, **more):
    called = [{"id": f"call-{name}", "name": name, "arguments": "{}"} for name in calls]
    return {
        "type": "assistant",
        "content": text,
        "model_id": "m-1",
        **({"tool_calls": called} if called else {}),
        **more,
    }


def update(kind, text="", at=0, prompt=None, **more):
    meta = {"agentTimestampMs": NOON + at * 1000} if at is not None else {}
    inner = {"sessionUpdate": kind, "content": {"type": "text", "text": text}, **more}
    if prompt is not None:
        inner["_meta"] = {"promptIndex": prompt}
    return {
        "timestamp": 0,
        "method": "session/update",
        "params": {"sessionId": SESSION, "update": inner, "_meta": meta},
    }


def lines(*records):
    return "".join((r if isinstance(r, str) else json.dumps(r, ensure_ascii=False)) + "\n" for r in records)


def session(*records, log=None, summary=None, folder=FOLDER):
    files = {f"{folder}/chat_history.jsonl": lines(*records)}
    if log is not None:
        files[f"{folder}/updates.jsonl"] = log if isinstance(log, str | bytes) else lines(*log)
    if summary is not None:
        files[f"{folder}/summary.json"] = summary
    found, report = read(READERS, files, f"{folder}/chat_history.jsonl")
    return found, report


def one(*records, **options):
    found, report = session(*records, **options)
    assert len(found) == 1, reasons(report)
    return found[0], report


def times(conversation):
    return [m.created_at and m.created_at.strftime("%M:%S") for m in conversation.visible_messages()]


def test_what_was_typed_thought_called_and_put_there(tmp_path):
    reasoning = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "first"}, {"text": "second"}],
        "encrypted_content": "zz",
    }
    found, report = one(
        {"type": "system", "content": "rules"},
        injected("<user_info>me</user_info>", "user_info"),
        typed("Fix it 🛟"),
        reasoning,
        {"type": "reasoning", "summary": [], "encrypted_content": "only for the machine"},
        answer("I look.", "read_file"),
        {"type": "tool_result", "tool_call_id": "call-read_file", "content": "class"},
        {"type": "backend_tool_call", "kind": "web_search", "content": "q"},
        {"type": "user", "content": "plain", "prompt_index": 1, "synthetic_reason": "human"},
        {"type": "user", "content": [{"type": "text", "text": "<agents_md>x</agents_md>"}]},
        {"type": "user", "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "prompt_index": 2},
        answer("Done. 完了"),
        summary={
            "info": {"id": SESSION, "cwd": "/dev/tide"},
            "created_at": "2026-03-14T11:59:00.123456Z",
            "generated_title": "Fixing",
            "current_model_id": "m-2",
        },
    )
    assert rows(found) == [
        ("user", "text", None, "Fix it 🛟"),
        ("thinking", "thinking", None, "first\n\nsecond"),
        ("assistant", "text", None, "I look."),
        ("tool", "tool_call", "read_file", "{}"),
        ("tool", "tool_result", "read_file", "class"),
        ("tool", "tool_call", "web_search", "q"),
        ("user", "text", None, "plain"),
        ("user", "image", None, ""),
        ("assistant", "text", None, "Done. 完了"),
    ]
    assert {m.text: m.hidden_reason for m in found.messages if m.hidden_reason} == {
        "rules": "instructions",
        "<user_info>me</user_info>": "user_info",
        "<agents_md>x</agents_md>": "context",
    }
    assert (found.conversation_id, found.title, found.project, found.model) == (SESSION, "Fixing", "/dev/tide", "m-2")
    assert found.created_at.isoformat() == "2026-03-14T11:59:00.123456+00:00"
    assert {m.created_at for m in found.messages} == {None}
    assert [m.model for m in found.messages if m.role == "assistant"] == ["m-1", "m-1"]
    assert not report.skips
    assert not report.unknown


def test_times_are_those_of_exactly_the_same_words_in_order(tmp_path):
    log = [
        update("user_message_chunk", "<user_query>go on</user_query>", 1, 0),
        update("agent_thought_chunk", "hm", 2),
        update("agent_message_chunk", "First ", 3),
        update("agent_message_chunk", "answer.", 4),
        update("tool_call", at=5, title='"sessionUpdate": "agent_message_chunk"'),
        update("agent_message_chunk", "Second answer.", 6),
        update("user_message_chunk", "go on", 7, 1),
        update("agent_message_chunk", "First answer.", None),
    ]
    log[0]["params"]["update"]["content"]["text"] = "go on"
    found, _ = one(
        typed("go on"), answer("First answer."), answer("Second  answer."), answer("Not in the log."), typed("go on", 1),
        answer("First answer."), log=log,
    )  # fmt: skip
    assert times(found) == ["00:01", "00:03", "00:06", None, "00:07", None]


def test_a_log_without_better_times_gives_its_seconds_and_never_1970(tmp_path):
    record = update("agent_message_chunk", "a", None)
    later = {**update("agent_message_chunk", "b", None), "timestamp": NOON // 1000 + 5}
    bare = {
        "sessionId": SESSION,
        "update": update("agent_message_chunk", "c", 9)["params"]["update"],
        "_meta": {"agentTimestampMs": NOON},
    }
    found, _ = one(answer("a"), answer("b"), answer("c"), log=[record, update("plan"), later, update("plan"), bare])
    assert times(found) == [None, "00:05", "00:00"]


def test_what_a_compression_cut_from_the_chat_comes_from_the_log(tmp_path):
    log = [
        update("user_message_chunk", "old question", 1, 0),
        update("agent_message_chunk", "old answer", 2),
        update("user_message_chunk", "kept question", 3, 1),
        update("agent_message_chunk", "kept answer", 4),
        update("compaction_checkpoint", at=5),
        update("user_message_chunk", "new question", 6, 2),
        update("agent_message_chunk", "new but said otherwise", 7),
    ]
    chat = (
        {"type": "system", "content": "rules"},
        injected("summary of what was", "compaction"),
        typed("kept question", 1),
        answer("kept answer"),
        typed("new question", 2),
        answer("new answer"),
    )
    found, _ = one(*chat, log=log)
    assert [m.text for m in found.visible_messages()] == [
        *("old question", "old answer", "kept question", "kept answer", "new question", "new answer")
    ]
    assert times(found) == ["00:01", "00:02", "00:03", "00:04", "00:06", None]
    before, _ = one(typed("old question"), answer("old answer"), typed("kept question", 1), answer("kept answer"))
    assert {m.message_id for m in before.messages} <= {m.message_id for m in found.messages}
    without, _ = one(
        *chat, log=[record for record in log if record["params"]["update"]["sessionUpdate"] != "compaction_checkpoint"]
    )
    assert next(m.text for m in without.visible_messages()) == "kept question"


def test_what_was_rewound_or_put_there_by_the_program_gives_no_time_and_no_message(tmp_path):
    log = [
        update("user_message_chunk", "good", 1, 0),
        update("agent_message_chunk", "yes", 2),
        update("user_message_chunk", "bad", 3, 1),
        update("agent_message_chunk", "yes", 4),
        update("rewind_marker", at=5, target_prompt_index=1),
        update("compaction_checkpoint", at=5),
        update("user_message_chunk", "better", 6, 1),
        update("agent_message_chunk", "yes", 7),
    ]
    hidden = update("user_message_chunk", "put there", 8)
    hidden["params"]["_meta"]["hideFromScrollback"] = True
    found, _ = one(
        typed("good"),
        answer("yes"),
        typed("better", 1),
        answer("yes"),
        log=[*log, hidden, update("compaction_checkpoint")],
    )
    assert [m.text for m in found.visible_messages()] == ["good", "yes", "better", "yes"]
    assert times(found) == ["00:01", "00:02", "00:06", "00:07"]


def test_a_log_of_any_size_is_streamed_and_only_words_are_parsed(monkeypatch):
    from palace_pipeline.exports import grok_updates

    parsed = []
    original = grok_updates.parse_json
    monkeypatch.setattr(grok_updates, "parse_json", lambda line: (parsed.append(len(line)), original(line))[1])
    big = lines(update("tool_call_update", at=1, rawOutput="x" * 100_000))
    data = (big * 50 + lines(update("agent_message_chunk", "word", 2)) + big).encode()
    log = read_log(MemoryMember({"u.jsonl": data}, "u.jsonl"), Report("u"))
    assert [said.text for said in log.said] == ["word"]
    assert len(parsed) == 1
    assert parsed[0] < 1000


@pytest.mark.parametrize(
    "log", [b"", b"\0\0\0", b"{not json}\n" * 3, b'{"params": {"update": 7}}\n', b"[]\n\xff\xfe\n"]
)
def test_a_damaged_log_costs_times_and_nothing_else(log):
    found, _ = one(typed("a"), answer("b"), log=log)
    assert shown(found) == [("user", None, "a"), ("assistant", None, "b")]


def test_a_cut_line_in_the_log_is_counted():
    log = (
        lines(update("agent_message_chunk", "b", 1))
        + '{"params": {"update": {"sessionUpdate": "agent_message_chunk", "con'
    )
    found, report = one(typed("a"), answer("b"), log=log)
    assert times(found) == [None, "00:01"]
    assert reasons(report) == {"damaged line in the log beside it": (1, False)}


@pytest.mark.parametrize(
    ("kind", "origin", "parent", "fork"),
    [
        (None, "person", None, None),
        ("fork", "person", None, "p"),
        ("subagent", "subagent", "p", None),
        ("subagent_resume", "subagent", "p", None),
        ("worktree", "person", None, None),
        (7, "person", None, None),
    ],
)
def test_whose_session_it_is(kind, origin, parent, fork):
    found, _ = one(typed("a"), answer("b"), summary={"session_kind": kind, "parent_session_id": "p"})
    assert (found.origin, found.parent_conversation_id, found.forked_from) == (origin, parent, fork)
    assert found.conversation_id == SESSION


def test_without_a_summary_the_folder_names_the_session_and_without_both_its_content_does():
    assert one(typed("a"), summary="{damaged")[0].conversation_id == SESSION
    first, second = one(typed("a"), folder="x")[0], one(typed("a"), answer("b"), folder="x")[0]
    assert first.conversation_id == second.conversation_id != one(typed("b"), folder="x")[0].conversation_id


def test_tool_rows_alone_are_no_conversation_and_damage_is_counted():
    found, report = session(
        {"type": "system", "content": "s"},
        answer("", "bash"),
        {"type": "tool_result", "tool_call_id": "call-bash", "content": "x"},
    )
    assert found == []
    assert reasons(report) == {"session without messages": (1, True)}
    found, report = one(
        typed("a"),
        '{"type":"assistant","content":"cut',
        "7",
        answer("b"),
        {"type": "novel", "content": "new"},
        answer(""),
    )
    assert shown(found) == [("user", None, "a"), ("assistant", None, "b")]
    assert reasons(report) == {
        "damaged line": (1, False),
        "line is no record": (1, False),
        "message without content": (1, True),
    }
    assert dict(report.unknown) == {"record type:novel": 1}
    assert [m.text for m in found.messages if m.hidden_reason == "unknown record"] == ["new"]


def test_a_log_whose_chat_is_gone_is_named():
    log = {f"{FOLDER}/updates.jsonl": lines(update("agent_message_chunk", "x", 1)).encode()}
    for files, expected in ((log, False), ({**log, f"{FOLDER}/chat_history.jsonl": b"{}"}, True)):
        report = Report("x")
        assert identify(MemoryMember(files, f"{FOLDER}/updates.jsonl"), report) is None
        assert [skip.expected for skip in report.skips] == [expected]


SAMPLE = [
    {"type": "system", "content": "s"},
    {
        **typed("ask"),
        "content": [{"type": "text", "text": "ask"}, {"type": "image", "data": "A", "mimeType": "image/png"}],
    },
    {"type": "reasoning", "summary": [{"text": "t"}]},
    answer("tell", "tool"),
    {"type": "tool_result", "tool_call_id": "call-tool", "content": "r"},
]
SUMMARY = {
    "info": {"id": SESSION, "cwd": "/x"},
    "created_at": "2026-03-14T09:00:00Z",
    "generated_title": "T",
    "session_kind": "fork",
    "parent_session_id": "p",
}
ODD = [None, True, -1, 10**30, "", "text", "\ud800", [], [[]], {}, {"text": 1}, [None, 1, {"type": 1}]]


def places(value, path=()):
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from([p for p in places(SAMPLE) if len(p) > 1]),
    st.sampled_from(ODD),
    st.sampled_from(list(places(SUMMARY))),
    st.sampled_from(ODD),
    st.sampled_from(list(places(update("agent_message_chunk", "tell", 1, 0)))),
    st.sampled_from(ODD),
)
def test_any_type_anywhere_costs_at_most_its_line(place, value, beside, other, logged, third):
    def changed(sample, path, new):
        whole = json.loads(json.dumps(sample))
        at = whole
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = new
        return whole

    records = changed(SAMPLE, place, value)
    log = changed(update("agent_message_chunk", "tell", 1, 0), logged, third)
    encoded = [json.dumps(record) for record in records]
    found, _ = one(*encoded, json.dumps(typed("untouched")), json.dumps(answer("last")), summary=changed(SUMMARY, beside, other),
                   log=json.dumps(log) + "\n")  # fmt: skip
    assert shown(found)[-2:] == [("user", None, "untouched"), ("assistant", None, "last")]
    to_record(found)


def test_only_its_own_shape_is_taken_for_it():
    def detected(*records, name="chat_history.jsonl"):
        return READER.detect(head_of(MemoryMember(export({name: lines(*records)}), name)))

    assert detected(typed("a"))
    assert detected({"type": "system", "content": "x"}, answer("a"))
    assert detected({"type": "user", "content": []}, typed("a"), name="other.jsonl")
    assert not detected({"type": "user", "message": {"content": "x"}, "parentUuid": None})
    assert not detected(
        {"type": "message", "role": "user", "content": []},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
    )
    assert not detected({"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "tool_calls": []})
