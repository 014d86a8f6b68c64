"""DeepSeek: fragments, branches without a leaf, the shape of early 2025, the web page's own JSON."""

import pytest

from palace_pipeline.exports import deepseek
from palace_pipeline.exports.registry import READERS
from palace_pipeline.model import Citation
from tests.exports.memory_member import read, shown

DAY = "2026-03-14T"
PAGES = [{"url": "https://example.invalid/a", "title": "A", "snippet": "about a"}]


def fragments(*pairs):
    return [{"type": type, **(what if isinstance(what, dict) else {"content": what})} for type, what in pairs]


def node(id, parent, message, children=()):
    return {"id": id, "parent": parent, "children": list(children), "message": message}


def said(time, *pairs, **more):
    return {"files": [], "model": "deepseek-chat", "inserted_at": f"{DAY}{time}+08:00", "fragments": fragments(*pairs),
            **more}  # fmt: skip


def chat(*nodes, **head):
    root = node("root", None, None, ["1"])
    mapping = {n["id"]: n for n in (root, *nodes)}
    times = {"inserted_at": f"{DAY}09:00:00+08:00", "updated_at": f"{DAY}10:00:00.000000+08:00"}
    return {"id": "c1", "title": "雾", **times, "mapping": mapping, **head}


def one(value, readers=READERS):
    conversations, report = read(readers, {"conversations.json": [value]}, "conversations.json")
    assert len(conversations) == 1
    return conversations[0], report


def test_fragments_become_rows_of_their_own():
    conversation, report = one(
        chat(
            node("1", "root", said("09:00:01.635000", ("REQUEST", "why?"))),
            node("2", "1", said("09:00:02", ("THINK", "hm"), ("SEARCH", {"results": PAGES, "queries": [{"query": "fog"}]}),
                                ("RESPONSE", "One."), ("TIP", "careful"), ("RESPONSE", "Two."))),
        )
    )  # fmt: skip
    assert [(m.message_id, m.role, m.kind, m.tool_name, m.text) for m in conversation.messages] == [
        ("1", "user", "text", None, "why?"),
        ("2#0", "thinking", "thinking", None, "hm"),
        ("2#1q", "tool", "tool_call", "search", "fog"),
        ("2#1", "tool", "tool_result", "search", "A\nhttps://example.invalid/a\nabout a"),
        ("2", "assistant", "text", None, "One.\n\nTwo."),
    ]
    assert conversation.messages[-1].citations == [Citation("https://example.invalid/a", "A")]
    assert conversation.messages[0].created_at.isoformat() == "2026-03-14T01:00:01.635000+00:00"
    assert {m.model for m in conversation.messages} == {"deepseek-chat"}
    assert (conversation.title, conversation.conversation_id, conversation.provider) == ("雾", "c1", "deepseek")
    assert conversation.created_at.isoformat() == "2026-03-14T01:00:00+00:00"
    assert [(s.reason, s.expected) for s in report.skips] == [("hint of the web page", True)]
    assert not report.unknown


def test_the_newest_leaf_is_what_the_person_sees_and_an_answer_that_never_came_is_none():
    conversation, report = one(
        chat(
            node("1", "root", said("09:00:01", ("REQUEST", "q"))),
            node("2", "1", said("09:00:02", ("RESPONSE", "old"))),
            node("3", "1", said("09:00:03", ("RESPONSE", "new"))),
            node("4", "3", said("09:00:04", ("REQUEST", "more"))),
            node("5", "1", said("09:00:09", ("RESPONSE", ""))),
        )
    )
    assert [text for _, _, text in shown(conversation)] == ["q", "new", "more"]
    assert [(m.message_id, m.branch_active, m.parent_id) for m in conversation.messages] == [
        ("1", True, None), ("3", True, "1"), ("4", True, "3"), ("2", False, "1"),
    ]  # fmt: skip
    assert [(s.reason, s.expected) for s in report.skips] == [("empty message", True)]


def test_a_question_and_its_answer_in_one_node():
    conversation, _ = one(
        chat(node("1", "root", said("09:00:01", ("REQUEST", "q"), ("THINK", "t"), ("RESPONSE", "a"))))
    )
    assert [(m.message_id, m.role) for m in conversation.messages] == [
        ("1", "user"), ("1#1", "thinking"), ("1#answer", "assistant"),
    ]  # fmt: skip


def test_the_shape_of_early_2025_has_neither_fragments_nor_roles():
    """Question and answer take turns from the root on; what was thought or searched belongs to an answer."""
    early = {"files": [], "search_results": None, "model": "deepseek-chat", "inserted_at": f"{DAY}09:00:01+08:00"}
    conversation, report = one(
        chat(
            node("1", "root", {**early, "content": "q", "reasoning_content": None}),
            node("2", "1", {**early, "content": "a", "reasoning_content": "t", "search_results": PAGES}),
            node("3", "2", {**early, "content": "q2"}),
            node("4", "3", {**early, "content": "a2"}),
        )
    )
    assert shown(conversation) == [
        ("user", None, "q"), ("assistant", None, "a"), ("user", None, "q2"), ("assistant", None, "a2"),
    ]  # fmt: skip
    assert next((m.role, m.text) for m in conversation.messages if not m.visible) == ("thinking", "t")
    assert not report.skips


def test_a_stated_role_counts_more_than_taking_turns():
    conversation, _ = one(
        chat(
            node("1", "root", {"role": "ASSISTANT", "content": "hello", "inserted_at": f"{DAY}09:00:01+08:00"}),
            node("2", "1", {"content": "hi", "inserted_at": f"{DAY}09:00:02+08:00"}),
        )
    )
    assert [role for role, _, _ in shown(conversation)] == ["assistant", "user"]


def web(*messages, **session):
    chat_session = {"id": "c1", "title": "T", "current_message_id": 3, "inserted_at": 1773480370.5, **session}
    return {"code": 0, "msg": "", "data": {"biz_code": 0, "biz_data": {"chat_session": chat_session,
                                                                       "chat_messages": list(messages)}}}  # fmt: skip


@pytest.mark.parametrize("whole", [True, False])
def test_the_web_pages_own_json(whole):
    def message(id, parent, role, **more):
        return {"message_id": id, "parent_id": parent, "role": role, "inserted_at": 1773480370.5 + id, **more}

    value = web(
        message(1, None, "USER", fragments=fragments(("REQUEST", "q"))),
        message(2, 1, "ASSISTANT", content="first", thinking_content="t"),
        message(3, 1, "ASSISTANT", fragments=fragments(("RESPONSE", "second"))),
        message(4, 1, "ASSISTANT", content="third"),
    )
    files = {"chat.json": value if whole else value["data"]["biz_data"]}
    conversations, report = read(READERS, files, "chat.json")
    assert shown(conversations[0]) == [("user", None, "q"), ("assistant", None, "second")]
    assert conversations[0].created_at.isoformat() == "2026-03-14T09:26:10.500000+00:00"
    assert not report.skips


def test_files_with_the_text_that_was_extracted():
    files = [{"id": "f1", "file_name": "plan.pdf", "file_size": 9, "content": "extracted"}, {"id": "f2"}, None, 7]
    conversation, _ = one(chat(node("1", "root", said("09:00:01", ("REQUEST", "see"), files=files)),
                               node("2", "1", said("09:00:02", files=[{"file_name": "only.png"}], role="USER"))))  # fmt: skip
    assert [(f.name, f.size, f.text) for f in conversation.messages[0].attachment] == [
        ("plan.pdf", 9, "extracted"), ("f2", None, None),
    ]  # fmt: skip
    assert (conversation.messages[1].kind, conversation.messages[1].role) == ("attachment", "user")


def test_an_unknown_fragment_is_counted_and_kept_out_of_sight():
    conversation, report = one(
        chat(node("1", "root", said("09:00:01", ("REQUEST", "q"), ("HOLOGRAM", "x"), ("TOOL_OPEN", "page"))))
    )
    assert [(m.role, m.tool_name, m.text) for m in conversation.messages] == [
        ("user", None, "q"), ("tool", "hologram", "x"), ("tool", "tool_open", "page"),
    ]  # fmt: skip
    assert report.unknown == {"fragment:HOLOGRAM": 1}
    assert [(s.reason, s.expected) for s in report.skips] == [("unknown kind of fragment", False)]


def test_empty_and_damaged_conversations_are_counted():
    good = chat(node("1", "root", said("09:00:01", ("REQUEST", "q"))))
    files = {"c.json": [chat(), chat(mapping={}), chat(mapping=[]), None, good]}
    conversations, report = read(READERS, files, "c.json")
    assert len(conversations) == 1
    assert [(s.reason, s.expected) for s in report.skips] == [
        ("no message that a person sees", True),
        ("empty conversation", True),
        ("conversation without messages", False),
        ("null in place of a conversation", True),
    ]


def test_long_chains_and_cycles_end():
    count = 10_000
    chain = [node(str(n), str(n - 1) if n > 1 else "root", {"content": f"m{n}"}) for n in range(1, count + 1)]
    conversation, _ = one(chat(*chain))
    assert len(conversation.visible_messages()) == count
    circle = [node("1", "2", {"content": "a"}), node("2", "1", {"content": "b"})]
    conversation, _ = one(chat(*circle))
    assert {m.text for m in conversation.messages} == {"a", "b"}


def test_only_deepseeks_chats_are_detected():
    chatgpt = {"mapping": {"a": {"id": "a", "message": {"author": {"role": "user"}, "content": {}}}}}
    assert not deepseek._is_chat(chatgpt)
    assert not deepseek._is_chat({"chat_messages": []})
    assert not deepseek._is_chat({"mapping": {}, "create_time": 1})
    assert deepseek._is_chat({"mapping": {"1": {"message": {"fragments": []}}}})
