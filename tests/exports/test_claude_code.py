"""Claude Code logs: one message for many lines, branches, injected text, queued prompts."""

import pytest

from palace_pipeline.exports.claude_code_blocks import split_injected
from tests.exports.claude_code_lines import SESSION, answer, call, log, one, result, said, stamp, user
from tests.exports.memory_member import shown

# --- one message for many lines ---


def test_an_answer_over_several_lines_is_one_message_with_every_block_once():
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000}
    conversation = one(
        user("u1", None, "Fix it"),
        answer(
            "a1",
            "u1",
            [{"type": "thinking", "thinking": "look", "signature": "c2ln"}],
            "m",
            {**usage, "output_tokens": 1},
        ),
        answer("a2", "a1", "Reading.", "m", {**usage, "output_tokens": 9}),
        answer("a3", "a2", "Reading.", "m", {**usage, "output_tokens": 9}),
        answer("a4", "a3", [call("t1", "Read", file_path="/a.py", limit=3)], "m", {**usage, "output_tokens": 40}),
        user("r1", "a4", result("t1", "x = 1")),
        answer("a5", "r1", "Done.", "n"),
    )
    assert [(m.role, m.kind, m.text, m.tool_name) for m in conversation.messages] == [
        ("user", "text", "Fix it", None),
        ("thinking", "thinking", "look", None),
        ("assistant", "text", "Reading.", None),
        ("tool", "tool_call", "file_path: /a.py\nlimit: 3", "Read"),
        ("tool", "tool_result", "x = 1", "Read"),
        ("assistant", "text", "Done.", None),
    ]
    assert [m.message_id for m in conversation.messages] == ["u1", "a1", "a2", "a4", "r1", "a5"]
    assert [m.parent_id for m in conversation.messages] == [None, "u1", "a1", "a2", "a4", "r1"]
    counted = [(m.tokens_in, m.tokens_out, m.tokens_cached) for m in conversation.messages if m.tokens_in is not None]
    assert counted == [(1103, 40, 1000)]  # once for the answer, by its last line
    assert conversation.model == "claude-sample-4"
    assert conversation.project == "/home/sample"


def test_snapshots_that_repeat_all_blocks_so_far_are_one_message():
    thinking = {"type": "thinking", "thinking": "hm"}
    words = [{"type": "text", "text": text} for text in ("I will", "I will read.", "And then?")]
    conversation = one(
        user("u1", None, "q"),
        answer("a1", "u1", [thinking], "m"),
        answer("a2", "a1", [thinking, words[0]], "m"),
        answer("a3", "a2", [thinking, words[1], call("t1", command="ls")], "m"),
        user("r1", "a3", result("t1", "a.py")),
        answer("a4", "r1", [thinking, words[1], call("t1", command="ls -la"), words[2]], "m"),
        answer("a5", "a4", [thinking, words[1], call("t1", command="ls -la"), words[2]], "m"),
    )
    assert shown(conversation) == [("user", None, "q"), ("assistant", None, "I will read.\n\nAnd then?")]
    assert [m.text for m in conversation.messages if m.kind == "tool_call"] == ["command: ls -la"]
    assert sum(m.role == "thinking" for m in conversation.messages) == 1


def test_a_resumed_copy_holds_all_ids_of_the_original_and_says_where_it_comes_from():
    first = [user("u1", None, "Plan"), answer("a1", "u1", "Ready.")]
    copy_id = SESSION[:-1] + "2"
    origin = {"sessionId": SESSION, "messageUuid": "u1"}
    copied = [{**record, "sessionId": copy_id, "forkedFrom": origin} for record in first]
    again = [{**record, "sessionId": copy_id, "parentUuid": None} for record in first]
    more = {**user("u2", "a1", "Go on"), "sessionId": copy_id}
    (old,), _ = log(*first)
    (new,), report = log(*copied, *again, more, path=f"projects/x/{copy_id}.jsonl")
    assert new.conversation_id == copy_id
    assert new.forked_from == SESSION
    assert {m.message_id for m in old.messages} < {m.message_id for m in new.messages}
    assert [text for _, _, text in shown(new)] == ["Plan", "Ready.", "Go on"]
    assert [(s.reason, s.count, s.expected) for s in report.skips] == [("record written twice", 2, True)]


def test_a_copy_that_kept_the_old_session_id_in_its_records_is_linked_too():
    copy_id = SESSION[:-1] + "3"
    records = [user("u1", None, "Plan"), {**user("u2", "u1", "Go on"), "sessionId": copy_id}]
    (conversation,), _ = log(*records, path=f"{copy_id}.jsonl")
    assert (conversation.conversation_id, conversation.forked_from) == (copy_id, SESSION)


# --- branches ---


def rewound(*tail):
    return [
        user("u1", None, "Draft"),
        answer("a1", "u1", "One."),
        user("u2x", "a1", "Longer"),
        answer("a2x", "u2x", "Long."),
        user("u2", "a1", "Shorter"),
        answer("a2", "u2", "Short."),
        *tail,
    ]


def test_a_rewound_branch_is_kept_but_not_active():
    conversation = one(*rewound())
    assert [text for _, _, text in shown(conversation)] == ["Draft", "One.", "Shorter", "Short."]
    assert [m.text for m in conversation.messages if not m.branch_active] == ["Longer", "Long."]


def test_the_branch_that_was_written_to_last_is_the_active_one():
    assert said(*rewound(user("u3", "a2x", "Back to the long one"))) == [
        "Draft",
        "One.",
        "Longer",
        "Long.",
        "Back to the long one",
    ]


def test_going_back_to_the_first_question_leaves_the_first_one_behind():
    records = [
        user("u1", None, "Typo"),
        answer("a1", "u1", "What?"),
        user("v1", None, "No typo"),
        answer("b1", "v1", "I see."),
        user("v2", "b1", "More"),
    ]
    assert said(*records) == ["No typo", "I see.", "More"]


def test_records_that_never_name_a_parent_are_one_line():
    records = [user("u1", None, "A"), answer("a1", None, "B"), user("u2", None, "C"), answer("a2", None, "D")]
    assert said(*records) == ["A", "B", "C", "D"]


def test_two_answers_to_one_question_leave_the_last():
    records = [
        user("u1", None, "q"),
        answer("a1", "u1", "broken off"),
        answer("b1", "u1", "whole"),
        user("u2", "b1", "thanks"),
    ]
    assert said(*records) == ["q", "whole", "thanks"]


def test_parallel_tools_and_hooks_fork_the_tree_without_a_rewind():
    progress = {"type": "progress", "parentUuid": "a1", "uuid": "p1", "sessionId": SESSION, "timestamp": stamp(9)}
    records = [
        user("u1", None, "Do both"),
        answer("a1", "u1", [call("t1")], "m"),
        answer("a2", "a1", [call("t2")], "m"),
        progress,
        user("r1", "a1", result("t1", "one")),
        user("r2", "a2", result("t2", "two")),
        answer("a3", "r2", "Both done."),
        user("u2", "p1", "Next"),
        answer("a4", "u2", "Yes."),
    ]
    conversation = one(*records)
    assert all(m.branch_active for m in conversation.messages)
    assert [text for _, _, text in shown(conversation)] == ["Do both", "Both done.", "Next", "Yes."]


def test_a_parent_that_was_never_written_is_bridged_by_the_order_of_the_file():
    assert said(
        user("u1", None, "A"), answer("a1", "u1", "B"), user("u2", "gone", "C"), answer("a2", "u2", "D")
    ) == list("ABCD")


@pytest.mark.parametrize("parents", [("u2", "u1"), ("u1", "u2"), ("u2", "u2"), ("u1", "u1")])
def test_circles_of_parents_end(parents):
    first, second = parents
    assert said(user("u1", first, "A"), answer("u2", second, "B"), user("u3", "u2", "C")) == ["A", "B", "C"]


def test_a_child_that_was_written_before_its_parent_keeps_both():
    hook = {"type": "attachment", "attachment": {"type": "hook_success"}, "parentUuid": "a1", "uuid": "h1"}
    records = [user("u1", None, "A"), hook, answer("a1", "u1", "B"), user("u2", "h1", "C")]
    assert said(*records) == ["A", "B", "C"]


def test_chains_of_ten_thousand_records_are_walked_without_recursion():
    records = [user("n0", None, "0")]
    records += [(answer if i % 2 else user)(f"n{i}", f"n{i - 1}", str(i)) for i in range(1, 10_000)]
    assert said(*records) == [str(i) for i in range(10_000)]


def test_a_compaction_is_crossed_and_its_summary_is_hidden():
    boundary = {
        "type": "system", "subtype": "compact_boundary", "parentUuid": None, "logicalParentUuid": "a2",
        "uuid": "cb", "sessionId": SESSION, "content": "Conversation compacted", "timestamp": stamp(20),
    }  # fmt: skip
    summary = user("cs", "cb", "The user asked for a draft", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    conversation = one(*rewound(boundary, summary, user("u3", "cs", "翻译成韩语"), answer("a3", "u3", "번역했습니다.")))
    assert [text for _, _, text in shown(conversation)] == [
        "Draft",
        "One.",
        "Shorter",
        "Short.",
        "翻译成韩语",
        "번역했습니다.",
    ]
    assert [(m.text, m.hidden_reason) for m in conversation.messages if m.hidden_reason] == [
        ("The user asked for a draft", "compact summary")
    ]


def test_a_compaction_goes_on_where_it_says_and_not_where_the_file_stood():
    boundary = {"type": "system", "parentUuid": None, "logicalParentUuid": "a1", "uuid": "cb", "sessionId": SESSION}
    records = [user("u1", None, "A"), answer("a1", "u1", "B"), user("u2x", "a1", "rewound"), answer("a2x", "u2x", "x")]
    assert said(*records, boundary, user("u2", "cb", "C")) == ["A", "B", "C"]


def test_a_copy_that_lost_its_parent_does_not_start_a_chat_of_its_own():
    records = [user("u1", None, "A"), answer("a1", "u1", "B"), user("u2", "a1", "C")]
    orphan, u2 = {**records[2], "parentUuid": None}, records[2]
    assert said(*records[:2], orphan, u2, user("u3", "u2", "D")) == ["A", "B", "C", "D"]
    assert said(*records[:2], u2, orphan, user("u3", "u2", "D")) == ["A", "B", "C", "D"]


def test_answers_that_both_follow_one_tool_result_are_no_rewind():
    records = [
        user("u1", None, "Go"),
        answer("a1", "u1", [call("t1")], "m"),
        user("r1", "a1", result("t1", "one")),
        answer("a2", "r1", "Half.", "n"),
        answer("a3", "r1", "Whole.", "o"),
    ]
    assert said(*records) == ["Go", "Half.", "Whole."]


# --- what is not a person's ---


@pytest.mark.parametrize(
    ("text", "own", "reasons"),
    [
        ("just words", "just words", []),
        ("use <b>bold</b> here", "use <b>bold</b> here", []),
        ("what does <system-reminder> mean?", "what does <system-reminder> mean?", []),
        ("问题\n<system-reminder>\ntodo\n</system-reminder>", "问题", ["system-reminder"]),
        ("a\n<system-reminder>x</system-reminder>\nb", "a\n\nb", ["system-reminder"]),
        ("a\n<system-reminder>\nnever closed", "a\n<system-reminder>\nnever closed", []),
        ("<ide_opened_file>a.py</ide_opened_file>\nfix this", "fix this", ["ide_opened_file"]),
        ("<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
         "", ["command-name", "command-message", "command-args"]),
        ("<local-command-stdout>out", "", ["local-command-stdout"]),
        ("<bash-input>ls</bash-input>", "", ["bash-input"]),
        ("<task-notification>\n<task-id>b1</task-id>\n</task-notification>\nRead the file", "", ["task notification"]),
        ("[Request interrupted by user for tool use]", "", ["interruption notice"]),
        ("Caveat: The messages below were generated by the user while running local commands.", "", ["local command"]),
        ("This session is being continued from a previous conversation.", "", ["compact summary"]),
    ],
)  # fmt: skip
def test_injected_text_is_told_from_what_a_person_wrote(text, own, reasons):
    visible, injected = split_injected(text)
    assert visible.strip() == own
    assert [reason for reason, _ in injected] == reasons


def test_splitting_takes_time_in_proportion_to_the_text():
    text = "<system-reminder>\n" * 50_000 + "words"
    assert split_injected("x\n" + text)[0].endswith("words")


def test_hidden_text_stays_as_hidden_rows_beside_the_words():
    conversation = one(
        user("m0", None, "<local-command-caveat>caveat</local-command-caveat>", isMeta=True),
        user("u1", "m0", "Fix\n<system-reminder>\nempty list\n</system-reminder>"),
        user("n1", "u1", "from another agent", origin={"kind": "peer"}),
        answer("e1", "n1", "API Error: 529 overloaded", isApiErrorMessage=True),
        answer("a1", "e1", "Fixed."),
        answer("a2", "a1", "(no content)"),
    )
    assert shown(conversation) == [("user", None, "Fix"), ("assistant", None, "Fixed.")]
    assert [(m.message_id, m.text, m.hidden_reason) for m in conversation.messages if m.hidden_reason] == [
        ("m0", "caveat", "injected context"),
        ("u1/1", "empty list", "system-reminder"),
        ("n1", "from another agent", "from a program: peer"),
        ("e1", "API Error: 529 overloaded", "error or notice of the program"),
    ]


def test_a_session_of_nothing_but_local_commands_is_no_conversation():
    conversations, report = log(user("u1", None, "<command-name>/cost</command-name>"))
    assert conversations == []
    assert [(s.reason, s.expected, s.unit) for s in report.skips] == [
        ("session without messages", True, "conversation")
    ]


# --- prompts typed while the model works ---


def queued(prompt, uuid=None, **more):
    record = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt, **more}}
    return {**record, "sessionId": SESSION, "timestamp": stamp(30), **({"uuid": uuid} if uuid else {})}


def operation(name, content, **more):
    return {
        "type": "queue-operation",
        "operation": name,
        "content": content,
        "sessionId": SESSION,
        "timestamp": stamp(29),
        **more,
    }


def test_a_queued_prompt_stands_where_it_was_written():
    picture = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "text", "text": "图"},
    ]
    records = [
        user("u1", None, "A"),
        queued("B", commandMode="prompt"),
        operation("enqueue", "B"),
        answer("a1", "u1", "C"),
        queued(picture, uuid="q2"),
        queued("<task-notification>done</task-notification>", commandMode="task-notification"),
        queued("from a peer", origin={"kind": "peer"}),
        answer("a2", "q2", "D"),
    ]
    conversation = one(*records)
    assert [text for _, _, text in shown(conversation)] == ["A", "B", "C", "图", "D"]
    assert [len(m.attachment) for m in conversation.visible_messages()] == [0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    "records",
    [
        [operation("enqueue", "B"), operation("remove", "B", reason="absorbed_mid_turn"), queued("B")],
        [operation("enqueue", "B"), queued("B"), operation("remove", "B", reason="absorbed_mid_turn")],
        [operation("enqueue", "B"), operation("remove", "B", reason="absorbed_mid_turn")],
        [queued("B")],
    ],
)
def test_an_absorbed_prompt_comes_once_whatever_tells_of_it(records):
    assert said(user("u1", None, "A"), *records, answer("a1", "u1", "C")) == ["A", "B", "C"]


def test_a_prompt_that_was_taken_back_from_the_queue_was_never_said():
    assert said(user("u1", None, "A"), operation("enqueue", "B"), operation("remove", "B")) == ["A"]
