"""Claude.ai: blocks, branches, files, and the many chats that hold nothing."""

import pytest

from palace_pipeline.exports import claude
from palace_pipeline.model import Citation
from tests.exports.memory_member import read, shown

ROOT = "00000000-0000-4000-8000-000000000000"
PLACEHOLDER = "```\nThis block is not supported on your current device yet.\n```"


def message(id, sender="human", text="", blocks=None, **more):
    return {"uuid": id, "sender": sender, "text": text, "content": blocks or [], "attachments": [], "files": [], **more}


def chat(*messages, **head):
    return {
        "uuid": "c1",
        "name": "T",
        "created_at": "2026-03-14T09:00:00.000000Z",
        "chat_messages": list(messages),
        **head,
    }


def one(value):
    conversations, report = read([claude.READER], {"conversations.json": [value]}, "conversations.json")
    assert len(conversations) == 1
    return conversations[0], report


def block(type, **more):
    return {"type": type, "start_timestamp": None, **more}


def test_blocks_in_rows_of_their_own_before_the_answer():
    conversation, report = one(
        chat(
            message("q", text="hi"),
            message(
                "a",
                "assistant",
                f"One.\n\n{PLACEHOLDER}\n\nTwo.",
                [
                    block("thinking", thinking="hm"),
                    block("text", text="One."),
                    block("tool_use", name="web_search", input={"query": "潮", "n": 3}),
                    block("tool_result", name="web_search", content=[
                        {"type": "text", "text": "found"}, {"type": "image"},
                        {"type": "knowledge", "title": "K", "url": "u"}]),
                    block("text", text=None),
                    block("text", text="Two."),
                    block("token_budget"),
                ],
            ),
        )
    )  # fmt: skip
    assert shown(conversation) == [("user", None, "hi"), ("assistant", None, "One.\n\nTwo.")]
    assert [(m.message_id, m.role, m.kind, m.tool_name, m.text) for m in conversation.messages[1:]] == [
        ("a#0", "thinking", "thinking", None, "hm"),
        ("a#2", "tool", "tool_call", "web_search", '{"query":"潮","n":3}'),
        ("a#3", "tool", "tool_result", "web_search", "found\n\nK\nu"),
        ("a", "assistant", "text", None, "One.\n\nTwo."),
    ]
    assert (report.skips, report.unknown) == ([], {})


def test_flat_text_is_the_fallback_without_placeholders():
    conversation, _ = one(
        chat(
            message("q", text="old"),
            message("a", "assistant", f"Yes.\n\n{PLACEHOLDER}", [block("tool_use", name="x", input={})]),
        )
    )
    assert shown(conversation) == [("user", None, "old"), ("assistant", None, "Yes.")]


def test_a_block_of_an_unknown_kind_is_counted():
    conversation, report = one(
        chat(message("q", text="hi"), message("a", "assistant", "", [block("hologram"), block("text", text="x")]))
    )
    assert shown(conversation)[-1] == ("assistant", None, "x")
    assert report.unknown == {"block:hologram": 1}
    assert [(s.reason, s.where, s.expected) for s in report.skips] == [
        ("unknown kind of content block", "conversations.json: [0] message 1, block 0", False)
    ]


def test_files_and_pasted_text():
    paste = {"file_name": "paste.txt", "file_size": 9, "file_type": "txt", "extracted_content": "long log"}
    conversation, _ = one(
        chat(
            message(
                "1", text="see", attachments=[paste], files=[{"file_name": "a.png"}], files_v2=[{"file_name": "a.png"}]
            ),
            message("2", attachments=[paste]),
            message("3", files=[{"file_name": "b.png"}]),
        )
    )
    rows = [(m.text, m.kind, [(f.name, f.text) for f in m.attachment]) for m in conversation.visible_messages()]
    assert rows == [
        ("see", "text", [("paste.txt", "long log"), ("a.png", None)]),
        ("long log", "text", [("paste.txt", None)]),
        ("", "attachment", [("b.png", None)]),
    ]


def test_the_leaf_decides_in_a_tree():
    tree = [
        message("q", text="q", parent_message_uuid=ROOT, created_at="2026-03-14T09:00:00+00:00"),
        message("a1", "assistant", "one", parent_message_uuid="q", created_at="2026-03-14T09:00:09+00:00"),
        message("a2", "assistant", "two", parent_message_uuid="q", created_at="2026-03-14T09:00:05+00:00"),
    ]
    first, _ = one(chat(*tree, current_leaf_message_uuid="a2"))
    assert [text for _, _, text in shown(first)] == ["q", "two"]
    assert [(m.message_id, m.parent_id, m.branch_active) for m in first.messages] == [
        ("q", None, True),
        ("a2", "q", True),
        ("a1", "q", False),
    ]
    assert [text for _, _, text in shown(one(chat(*tree, current_leaf_message_uuid="gone"))[0])] == ["q", "one"]


def test_an_array_without_branches_keeps_its_order_whatever_the_times():
    same = {"created_at": "2026-03-14T09:00:00Z"}
    conversation, _ = one(
        chat(message("z", text="1", **same), message("a", "assistant", "2", **same), message("m", text="3", **same))
    )
    assert [text for _, _, text in shown(conversation)] == ["1", "2", "3"]


def test_sources_of_an_answer():
    citations = [
        {"title": "A", "url": "https://example.invalid/a"},
        {"details": {"type": "web_search_citation", "url": "https://example.invalid/b"}},
        {"sources": [{"title": "C", "url": "https://example.invalid/c"}]},
        None,
    ]
    conversation, _ = one(chat(message("a", "assistant", blocks=[block("text", text="x", citations=citations)] * 2)))
    assert conversation.messages[0].citations == [
        Citation("https://example.invalid/a", "A"),
        Citation("https://example.invalid/b", None),
        Citation("https://example.invalid/c", "C"),
    ]


def test_only_chat_messages_are_required():
    """Hand-made and converted files: roles, plain texts, lists of texts, an object with a text."""
    turns = [
        {"role": "user", "content": "q"},
        {"role": "ai", "content": ["a", {"type": "text", "text": "b"}]},
        {"role": "human", "content": {"text": "c"}},
        {"role": "robot", "content": "?"},
        None,
        "x",
    ]
    conversation, report = one({"chat_messages": turns})
    assert shown(conversation) == [("user", None, "q"), ("assistant", None, "a\n\nb"), ("user", None, "c")]
    assert (conversation.title, len(conversation.conversation_id)) == (None, 16)
    assert report.unknown == {"sender:robot": 1}
    assert [(s.where, s.expected) for s in report.skips] == [
        ("conversations.json: [0] message 4", True),
        ("conversations.json: [0] message 5", False),
    ]


def test_head_of_a_conversation():
    head = {
        "account": {"uuid": "acc"},
        "project": {"name": "Harbour"},
        "model": "claude-x",
        "updated_at": "2026-03-15T00:00:00Z",
    }
    conversation, _ = one(chat(message("q", text="hi"), **head))
    assert (conversation.account, conversation.project, conversation.model) == ("acc", "Harbour", "claude-x")
    assert conversation.updated_at.isoformat() == "2026-03-15T00:00:00+00:00"


@pytest.mark.parametrize("messages", [[], [message("e", text="  ")], [message("e", blocks=[block("text", text="")])]])
def test_empty_chats_are_expected_skips(messages):
    files = {"c.json": [chat(*messages), chat(message("q", text="hi"))]}
    conversations, report = read([claude.READER], files, "c.json")
    assert len(conversations) == 1
    assert all(skip.expected for skip in report.skips)
    assert [s.where for s in report.skips if s.unit == "conversation"] == ["c.json: [0]"]


def test_lone_surrogates_in_tool_input():
    tool = b'{"type":"tool_use","name":"t","input":{"k\\ud83d":"v\\ud83d","n":1e400}}'
    turn = b'{"uuid":"a","sender":"assistant","content":[' + tool + b',{"type":"text","text":"x"}]}'
    data = b'[{"uuid":"c","chat_messages":[' + turn + b"]}]"
    conversations, _ = read([claude.READER], {"c.json": data}, "c.json")
    assert conversations[0].messages[0].text.startswith('{"k\ufffd":"v\ufffd"')


def test_a_message_that_stands_there_twice_is_said_once():
    question, answer = message("q", text="hi"), message("a", "assistant", "Hello.")
    conversation, report = one(chat(question, question, answer))
    assert shown(conversation) == [("user", None, "hi"), ("assistant", None, "Hello.")]
    assert [(skip.reason, skip.expected) for skip in report.skips] == [("the same message twice", True)]


@pytest.mark.parametrize("later_first", [False, True])
def test_of_two_states_of_a_message_the_newer_one_is_seen_in_the_first_ones_place(later_first):
    old = message("q", text="hi", updated_at="2026-03-14T09:00:00Z")
    new = message("q", text="hi there", updated_at="2026-03-14T09:30:00Z")
    states = (new, old) if later_first else (old, new)
    conversation, _ = one(chat(states[0], message("a", "assistant", "Hello."), states[1]))
    assert shown(conversation) == [("user", None, "hi there"), ("assistant", None, "Hello.")]
    assert [(m.text, m.message_id) for m in conversation.messages if not m.branch_active] == [("hi", "q~2")]


@pytest.mark.parametrize("id", [True, {"a": "words"}, ["words"], 1.5, None])
def test_what_is_no_id_does_not_become_one(id):
    conversation, _ = one(chat(message("q", text="hi"), uuid=id))
    assert len(conversation.conversation_id) == 16
    assert "words" not in conversation.conversation_id


def test_the_parent_of_a_row_is_the_nearest_message_that_says_something():
    said = [
        message("q", text="hi", parent_message_uuid=ROOT),
        message("blank", "assistant", "", parent_message_uuid="q"),
        message("again", text="are you there?", parent_message_uuid="blank"),
    ]
    conversation, _ = one(chat(*said, current_leaf_message_uuid="again"))
    assert [(m.message_id, m.parent_id) for m in conversation.messages] == [("q", None), ("again", "q")]
