"""Codex rollouts: two sources for one message, injected text, tools, tokens, forks, titles, older shapes."""

from datetime import UTC, datetime, timedelta

import pytest

from palace_pipeline.exports import codex
from palace_pipeline.exports.base import Head
from palace_pipeline.exports.codex import READER
from palace_pipeline.exports.codex_text import split_user_text
from palace_pipeline.model import to_record
from tests.exports.codex_lines import FILE, ID, START, asks, completed, event, header, item, line, lines, message, says
from tests.exports.memory_member import read, shown


def log(*records, path=FILE, files=None):
    return read([READER], {path: lines(*records), **(files or {})}, path)


def one(*records, **more):
    conversations, _ = log(*records, **more)
    assert len(conversations) == 1
    return conversations[0]


def said(*records):
    return [(role[0], text.strip()) for role, _, text in shown(one(*records))]


def hidden(conversation):
    return [m.text for m in conversation.messages if m.hidden_reason]


# --- two sources, one message ---


@pytest.mark.parametrize(
    "records",
    [
        [asks(1, "问题"), message(1, "user", "问题"), says(2, "答"), message(2, "assistant", "答")],
        [message(1, "user", "问题"), asks(1, "问题"), message(2, "assistant", "答"), says(2, "答")],
        [asks(1, "问题"), says(2, "答")],
        [message(1, "user", "问题"), message(2, "assistant", "答")],
        [asks(1, "问题"), message(2, "assistant", "答")],
        [message(1, "user", "问题"), says(2, "答")],
        [completed(1, "UserMessage", "问题"), message(1, "user", "问题"), completed(2, "AgentMessage", "答")],
        [
            asks(1, "问题\n"),
            message(1, "user", "问题"),
            completed(2, "AgentMessage", "答", phase="commentary"),
            message(2, "assistant", "答"),
        ],
    ],
)
def test_a_message_comes_once_whichever_source_tells_of_it(records):
    assert said(header(), *records) == [("u", "问题"), ("a", "答")]


def test_what_was_really_said_twice_stays_twice():
    turn = [asks(1, "go on"), message(1, "user", "go on"), says(2, "ok"), message(2, "assistant", "ok")]
    assert said(header(), *turn, *turn) == [("u", "go on"), ("a", "ok")] * 2
    assert (
        said(header(), asks(1, "x"), asks(1, "x"), message(1, "user", "x"), message(1, "user", "x")) == [("u", "x")] * 2
    )
    assert said(header(), message(1, "user", "x"), message(2, "user", "x")) == [("u", "x")] * 2


def test_a_log_that_another_version_continued_loses_nothing():
    old = [asks(1, "A"), message(1, "user", "A"), says(2, "B"), message(2, "assistant", "B")]
    new = [message(1000, "user", "B"), message(1001, "assistant", "A")]
    assert said(header(), *old, *new) == [("u", "A"), ("a", "B"), ("u", "B"), ("a", "A")]


def test_a_twin_far_away_in_time_is_another_message():
    assert said(header(), asks(1, "ok"), says(2, "B"), message(5000, "user", "ok")) == [
        ("u", "ok"),
        ("a", "B"),
        ("u", "ok"),
    ]


def test_the_newest_versions_complete_items_with_phases_and_plans():
    conversation = one(
        header(),
        completed(1, "UserMessage", "Count"),
        message(1, "user", "Count"),
        completed(2, "AgentMessage", "Looking.", phase="commentary"),
        message(2, "assistant", "Looking."),
        event(3, "item_completed", item={"type": "Reasoning", "summary_text": ["hm"], "raw_content": []}),
        item(3, "reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="gAAAA"),
        completed(4, "AgentMessage", "Here it is.", phase="final_answer"),
        event(4, "item_completed", item={"type": "Plan", "text": "1. count"}),
        message(
            4,
            "assistant",
            "Here it is.<oai-mem-citation>m1</oai-mem-citation>\n<proposed_plan>\n1. count\n</proposed_plan>",
        ),
        event(5, "item_completed", item={"type": "CommandExecution", "id": "c", "command": ["ls"]}),
    )
    assert [(m.role, m.text) for m in conversation.messages] == [
        ("user", "Count"),
        ("assistant", "Looking."),
        ("thinking", "hm"),
        ("assistant", "Here it is."),
        ("assistant", "1. count"),
    ]


def test_reasoning_is_told_twice_and_kept_once():
    conversation = one(
        header(),
        asks(1, "q"),
        item(2, "reasoning", summary=[{"text": "first"}, {"text": "second"}], content=None, encrypted_content="gAAAA"),
        event(2, "agent_reasoning", text="first"),
        event(2, "agent_reasoning", text="second"),
        event(3, "agent_reasoning", text="only an event"),
    )
    assert [m.text for m in conversation.messages if m.role == "thinking"] == ["first", "second", "only an event"]


# --- what is not the user's ---


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("words", "words"),
        ("<div>my html</div>", "<div>my html</div>"),
        ("write <environment_context> later", "write <environment_context> later"),
        ("<environment_context>\n  <cwd>/x</cwd>\n</environment_context>", ""),
        ("<recommended_plugins>a</recommended_plugins>\n真正的问题", "真正的问题"),
        ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nrules\n</INSTRUCTIONS>\nprompt", "prompt"),
        ("# AGENTS.md instructions for /x\n\nrules without an end mark", ""),
        ("<user_instructions>x</user_instructions><environment_context>y</environment_context>z", "z"),
        ("<permissions instructions>p</permissions instructions>", ""),
        ('<in-app-browser-context source="ui">\nPage\n</in-app-browser-context>\nsmaller', "smaller"),
        ("<turn_aborted>cut before its end", ""),
        ("<external_slack>x</external_slack>", ""),
        ("# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nName it", "Name it"),
        ("# Context from my IDE setup:\n\n## Tabs:\n- a\n## My request for Codex:\nA\n## My request for Codex:\nB",
         "A\n## My request for Codex:\nB"),
        ("## My request for Codex: short", "short"),
        ("```\n## My request for Codex:\nquoted\n```", "```\n## My request for Codex:\nquoted\n```"),
        ("Warning: apply_patch was requested via exec_command. Use the apply_patch tool", ""),
    ],
)  # fmt: skip
def test_injected_text_is_told_from_what_the_user_wrote(text, own):
    assert split_user_text(text)[0].strip() == own


def test_files_that_the_user_mentioned_become_attachments():
    setup = "# Files mentioned by the user:\n\n## shot.png: /tmp/a/shot.png\n\n## 表.xlsx:\nD:\\资料\\表.xlsx\n\n"
    text = setup + "## My request for Codex:\nFix"
    (question,) = one(header(), asks(1, text)).visible_messages()
    assert (question.text, [f.name for f in question.attachment]) == ("Fix", ["shot.png", "表.xlsx"])


def test_injected_items_are_hidden_rows_even_when_their_mark_is_new():
    conversation = one(
        header(base_instructions={"text": "never kept"}),
        message(1, "developer", "<permissions instructions>rules</permissions instructions>"),
        message(
            1,
            "user",
            "# AGENTS.md instructions for /x\n<INSTRUCTIONS>a</INSTRUCTIONS>",
            "<environment_context>b</environment_context>",
        ),
        message(1, "user", "<mark_of_next_year>c</mark_of_next_year>"),
        message(2, "user", "Run it"),
        asks(2, "Run it"),
        says(3, "Done."),
        message(4, "user", "<my_tag>typed by hand, told by no event</my_tag>"),
        line(5, "compacted", message="summary", replacement_history=[{"type": "message"}]),
    )
    assert [text for _, _, text in shown(conversation)] == [
        "Run it",
        "Done.",
        "<my_tag>typed by hand, told by no event</my_tag>",
    ]
    assert len(hidden(conversation)) == 5
    assert b"never kept" not in to_record(conversation)


# --- tools, images, tokens ---


def test_calls_and_their_outputs():
    conversation = one(
        header(),
        line(1, "turn_context", model="gpt-5-codex", turn_id="t1"),
        asks(1, "go"),
        item(2, "function_call", name="exec_command", arguments='{"cmd":"pytest -q\\nls"}', call_id="c1"),
        item(3, "function_call_output", call_id="c1", output='{"output":"3 passed\\n","metadata":{"exit_code":0}}'),
        item(4, "custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2"),
        item(5, "custom_tool_call_output", call_id="c2", output="ok"),
        item(6, "local_shell_call", call_id="c3", action={"type": "exec", "command": ["ls"]}),
        item(7, "function_call_output", call_id="c3", output=[{"type": "input_text", "text": "a.py"}]),
        item(8, "web_search_call", action={"type": "search", "query": "tide"}),
        item(9, "function_call_output", call_id="c9", output='{"output": 1, "own": "JSON"}'),
    )
    assert [(m.message_id, m.kind, m.tool_name, m.text) for m in conversation.messages if m.role == "tool"][:-2] == [
        ("c1", "tool_call", "exec_command", "cmd: pytest -q\nls"),
        ("c1/output", "tool_result", "exec_command", "3 passed\n"),
        ("c2", "tool_call", "apply_patch", "*** Begin Patch"),
        ("c2/output", "tool_result", "apply_patch", "ok"),
        ("c3", "tool_call", "local_shell", 'type: exec\ncommand: ["ls"]'),
        ("c3/output", "tool_result", "local_shell", "a.py"),
    ]
    assert [(m.kind, m.tool_name, m.text) for m in conversation.messages[-2:]] == [
        ("tool_call", "web_search", "type: search\nquery: tide"),
        ("tool_result", None, '{"output": 1, "own": "JSON"}'),
    ]
    assert conversation.model == "gpt-5-codex"


def test_images_are_named_and_never_kept():
    data = "iVBORw0KGgo" * 50
    url = f"data:image/png;base64,{data}"
    conversation = one(
        header(),
        item(1, "message", role="user", content=[
            {"type": "input_text", "text": "<image name=[Image #1]>"}, {"type": "input_image", "image_url": url},
            {"type": "input_text", "text": "</image>"}, {"type": "input_text", "text": "[Image #1] what is it?"},
        ]),
        event(1, "user_message", message="[Image #1] what is it?", images=[url], local_images=["/tmp/shot.png"]),
        event(2, "user_message", message="", local_images=["C:\\pics\\二.png"]),
        item(3, "image_generation_call", id="ig1", revised_prompt="a buoy", result=data),
    )  # fmt: skip
    assert shown(conversation) == [("user", None, "[Image #1] what is it?"), ("user", None, "")]
    assert [[(f.name, f.type) for f in m.attachment] for m in conversation.messages] == [
        [(None, "image/png")],
        [("二.png", "image")],
        [(None, "image/png")],
    ]
    assert data.encode() not in to_record(conversation)


def usage(second, total, last=None):
    def counts(value):
        return value and {"input_tokens": value[0], "cached_input_tokens": value[1], "output_tokens": value[2]}

    return event(
        second, "token_count", info={"total_token_usage": counts(total), "last_token_usage": counts(last or total)}
    )


def test_tokens_are_counted_once_however_often_they_are_told():
    conversation = one(
        header(),
        asks(1, "q"),
        item(2, "function_call", name="f", arguments="{}", call_id="c1"),
        usage(2, (100, 10, 5)),
        usage(2, (100, 10, 5)),
        event(2, "token_count", info=None),
        says(3, "Done."),
        item(3, "function_call", name="g", arguments="{}", call_id="c2"),
        usage(3, (250, 110, 25), last=(150, 100, 20)),
        usage(4, (300, 110, 30), last=(50, 0, 5)),
        says(5, "Bye."),
        usage(5, (310, 110, 31), last=(10, 0, 1)),
    )
    counted = [
        (m.text, m.tokens_in, m.tokens_cached, m.tokens_out) for m in conversation.messages if m.tokens_in is not None
    ]
    assert counted == [("", 100, 10, 5), ("Done.", 150, 100, 20), ("Bye.", 60, 0, 6)]


# --- rolled back, forked, spawned ---


def test_turns_that_were_rolled_back_are_not_active():
    conversation = one(
        header(), asks(1, "A"), says(2, "a"), asks(3, "B"), says(4, "b"),
        message(5, "user", "<new_mark>no turn</new_mark>"), asks(5, "C"),
        event(6, "thread_rolled_back", num_turns=2), asks(7, "D"), says(8, "d"),
        event(9, "thread_rolled_back", num_turns=1), asks(10, "E"),
    )  # fmt: skip
    assert [text for _, _, text in shown(conversation)] == ["A", "a", "E"]
    assert [m.text for m in conversation.messages if not m.branch_active and not m.hidden_reason] == [
        "B",
        "b",
        "C",
        "D",
        "d",
    ]


CHILD = "019f0000-0000-7000-8000-00000000000b"
CHILD_FILE = FILE.replace(ID, CHILD)


def uuid7(second):
    digits = f"{int((START + timedelta(seconds=second)).timestamp() * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-000000000000"


def replay(second, turn_id):
    return [
        header(second, ID),
        line(second, "turn_context", turn_id=turn_id, model="m"),
        asks(second, "Parent question"),
        says(second, "Parent answer"),
        usage(second, (500, 0, 50)),
        event(second, "thread_name_updated", thread_name="Parent"),
    ]


def own(second, turn_id):
    return [
        event(second, "task_started", turn_id=turn_id),
        line(second, "turn_context", turn_id=turn_id, model="m"),
        asks(second, "Fork question"),
        says(second + 1, "Fork answer"),
        usage(second + 1, (600, 0, 60)),
    ]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("old", "new"), [("T1", "T2"), (uuid7(-90), uuid7(31))])
def test_a_fork_shows_its_own_turns_and_keeps_the_copied_ones_out_of_sight(old, new, named):
    more = {"forked_from_id": ID} if named else {}
    conversation = one(header(30, CHILD, **more), *replay(30, old), *own(31, new), path=CHILD_FILE)
    assert (conversation.conversation_id, conversation.forked_from) == (CHILD, ID)
    assert [text for _, _, text in shown(conversation)] == ["Fork question", "Fork answer"]
    assert hidden(conversation) == ["Parent question", "Parent answer"]
    assert [m.tokens_in for m in conversation.messages if m.tokens_in] == [100]
    assert conversation.title is None


def test_a_long_copy_with_late_stamps_is_still_a_copy():
    copied = replay(30.1, uuid7(-90)) + replay(31, uuid7(-80))[1:] + replay(35, uuid7(-70))[1:]
    conversation = one(header(30, CHILD, forked_from_id=ID), *copied, *own(40, uuid7(40)), path=CHILD_FILE)
    assert [text for _, _, text in shown(conversation)] == ["Fork question", "Fork answer"]


@pytest.mark.parametrize("copied", [True, False])
def test_a_spawned_agent_is_linked_to_its_parent(copied):
    source = {"subagent": {"thread_spawn": {"parent_thread_id": ID, "depth": 1}}}
    more = {"forked_from_id": ID} if copied else {}
    lines_of_parent = replay(30, uuid7(-90)) if copied else []
    conversation = one(
        header(30, CHILD, source=source, **more), *lines_of_parent, *own(30.4, uuid7(30.4)), path=CHILD_FILE
    )
    assert (conversation.origin, conversation.parent_conversation_id) == ("subagent", ID)
    assert [text for _, _, text in shown(conversation)] == ["Fork question", "Fork answer"]


def test_a_fork_without_any_time_shows_everything():
    bare = [{**record, "timestamp": None} for record in (*replay(30, "T1"), *own(31, "T2"))]
    first = line(0, "session_meta", id=CHILD, forked_from_id=ID)
    conversation = one({**first, "timestamp": None}, *bare, path=CHILD_FILE)
    assert len(shown(conversation)) == 4


# --- ids, titles, older shapes ---


def test_the_first_header_rules_and_a_damaged_one_is_replaced_by_the_file_name():
    assert one(header(), header(1, CHILD), asks(2, "A")).conversation_id == ID
    assert one(b'{"timestamp":"2026', header(1, CHILD), asks(2, "A")).conversation_id == ID
    assert one(asks(2, "A"), path="rollout.jsonl").conversation_id not in ("", ID)
    assert one(header(), asks(2, "A"), path="renamed.jsonl.zst").conversation_id == ID


def test_the_last_name_of_the_thread_is_its_title():
    names = [event(9, "thread_name_updated", thread_name=name) for name in ("First", "Second")]
    assert one(header(), asks(1, "A"), *names).title == "Second"


@pytest.mark.parametrize(
    ("path", "index"),
    [
        (FILE, "session_index.jsonl"),
        (f".codex/archived_sessions/rollout-{ID}.jsonl", ".codex/session_index.jsonl"),
        (f"rollout-{ID}.jsonl", "session_index.jsonl"),
    ],
)
def test_titles_come_from_the_index_beside_the_sessions(path, index):
    entries = [{"id": CHILD, "thread_name": ID}, {"id": ID, "thread_name": "Old"}, {"id": ID, "thread_name": "潮汐"}]
    files = {index: lines(*entries, b"damaged " + ID.encode())}
    assert one(header(), asks(1, "A"), path=path, files=files).title == "潮汐"


def test_of_the_index_only_the_lines_of_the_session_are_parsed(monkeypatch):
    others = [{"id": f"{number:08}-0000-4000-8000-000000000000", "thread_name": "x"} for number in range(300)]
    files = {"session_index.jsonl": lines(*others, {"id": ID, "thread_name": "Mine"}, *others)}
    parsed: list[bytes] = []
    title_in = codex._title_in
    monkeypatch.setattr(codex, "_title_in", lambda line, id: parsed.append(line) or title_in(line, id))
    assert one(header(), asks(1, "A"), path=f"rollout-{ID}.jsonl", files=files).title == "Mine"
    assert len(parsed) == 1


def test_rollouts_before_the_envelope():
    conversation = one(
        {"id": ID, "timestamp": "2025-05-07T17:24:21.123Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        message(0, "user", "<user_instructions>x</user_instructions>")["payload"],
        message(0, "user", "Question")["payload"],
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": '{"output":"a"}'},
        message(0, "assistant", "Answer")["payload"],
        message(0, "assistant", "Answer")["payload"],
    )  # fmt: skip
    assert shown(conversation) == [
        ("user", None, "Question"),
        ("assistant", None, "Answer"),
        ("assistant", None, "Answer"),
    ]
    assert conversation.created_at == datetime(2025, 5, 7, 17, 24, 21, 123000, UTC)
    assert all(m.created_at is None for m in conversation.messages)


def test_detection_by_shape():
    def knows(*items):
        return READER.detect(Head("x.jsonl", "jsonl", items=list(items)))

    assert knows({"x": 1}, event(1, "task_started"))
    assert knows({"id": ID, "timestamp": "2025-05-07T17:24:21Z", "instructions": "x"})
    assert knows({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]})
    assert not knows({"id": ID, "thread_name": "Title", "updated_at": "2026-03-14T10:00:00Z"})
    assert not knows({"type": "message", "id": "1", "message": {"role": "user", "content": []}})
    assert not knows({"type": "session_meta", "payload": "text"}, {"type": ["x"], "payload": {}, "timestamp": ""})
    assert not READER.detect(Head("x.json", "object", items=[header()], keys=["type"]))


def test_unknown_names_are_counted():
    _, report = log(
        header(), asks(1, "A"), line(2, "brand_new"), event(2, "newer_event"), item(2, "newest_item"),
        event(2, "item_completed"),
        event(2, "item_completed", item={"type": "Hologram"}), message(2, "wizard", "x"),
        item(2, "message", role="user", content=[{"type": "smell"}]),
    )  # fmt: skip
    assert report.unknown == {
        "record type:brand_new": 1, "event type:newer_event": 1, "item type:newest_item": 1, "turn item:(not a name)": 1,
        "turn item:Hologram": 1, "role:wizard": 1, "content type:smell": 1,
    }  # fmt: skip


def test_a_session_without_words_is_no_conversation():
    conversations, report = log(header(), message(1, "user", "<environment_context>x</environment_context>"))
    assert conversations == []
    assert [(s.reason, s.expected) for s in report.skips] == [("session without messages", True)]
