"""Grok: both generations, branches, thinking and tools, sources, files, marks inside answers."""

import json

import pytest

from palace_pipeline.exports import grok
from palace_pipeline.exports.registry import READERS
from palace_pipeline.model import Citation
from tests.exports.memory_member import read, shown

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)


def response(id, sender="human", message="", parent="", at=0, **more):
    return {
        "response": {
            "_id": id,
            "sender": sender,
            "message": message,
            "create_time": {"$date": {"$numberLong": str(1773480400250 + at * 1000)}},
            "parent_response_id": parent,
            "model": "",
            **more,
        },
        "share_link": None,
    }


def chat(*responses, **head):
    return {"conversation": {"id": "g1", "title": "T", "create_time": "2026-03-14T09:26:39.177720Z",
                             "leaf_response_id": None, **head}, "responses": list(responses)}  # fmt: skip


def backend(*chats, **beside):
    return {"conversations": list(chats), "projects": [], "tasks": [], **beside}


def one(value, files=None, path="ttl/30d/x/prod-grok-backend.json"):
    conversations, report = read(READERS, {path: backend(value), **(files or {})}, path)
    assert len(conversations) == 1
    return conversations[0], report


def test_both_generations_of_ids_and_times():
    old = {
        "conversation": {"conversation_id": "old", "create_time": "2025-06-21T19:28:21.177720Z", "title": ""},
        "responses": [
            {"response": {"response_id": "o1", "message": "q", "sender": "human", "create_time": "2025-06-21T19:28:21.194663Z"}},
            {"response": {"response_id": "o2", "message": "a", "sender": "ASSISTANT", "parent_response_id": "o1",
                          "create_time": {"$date": "2025-06-21T19:28:25Z"}}},
        ],
    }  # fmt: skip
    new = chat(response({"$oid": "n1"}, message="q"), response("n2", "grok-3", "a", "n1", 1, model="grok-4"))
    conversations, report = read(READERS, {"b.json": backend(old, new)}, "b.json")
    assert [(c.conversation_id, c.title) for c in conversations] == [("old", None), ("g1", "T")]
    assert [[(m.message_id, m.role, m.parent_id) for m in c.messages] for c in conversations] == [
        [("o1", "user", None), ("o2", "assistant", "o1")],
        [("n1", "user", None), ("n2", "assistant", "n1")],
    ]
    assert [m.created_at.isoformat() for m in conversations[0].messages] == [
        "2025-06-21T19:28:21.194663+00:00", "2025-06-21T19:28:25+00:00",
    ]  # fmt: skip
    assert conversations[1].messages[0].created_at.isoformat() == "2026-03-14T09:26:40.250000+00:00"
    assert [m.model for m in conversations[1].messages] == [None, "grok-4"]
    assert not report.skips
    assert not report.unknown


TREE = (
    response("q", message="q"),
    response("a1", "assistant", "one", "q", 1),
    response("a2", "ASSISTANT", "two", "q", 2),
    response("draft", message="", parent="a2", at=9),
)


@pytest.mark.parametrize(("leaf", "text"), [("a1", "one"), ("a2", "two"), (None, "two"), ("not in the export", "two")])
def test_the_leaf_decides_and_without_a_usable_one_the_newest_answer(leaf, text):
    conversation, report = one(chat(*TREE, leaf_response_id=leaf))
    assert [t for _, _, t in shown(conversation)] == ["q", text]
    assert len(conversation.messages) == 3
    assert [s.reason for s in report.skips] == ["empty message"]


def test_without_links_the_times_give_the_order():
    def loose(*args, **more):
        item = response(*args, **more)
        del item["response"]["parent_response_id"]
        return item

    swapped = chat(loose("2", "assistant", "b", at=2), loose("1", "human", "a", at=1), loose("3", "human", "c", at=3))
    assert [t for _, _, t in shown(one(swapped)[0])] == ["a", "b", "c"]
    swapped["responses"][1]["response"]["create_time"] = None
    assert [t for _, _, t in shown(one(swapped)[0])] == ["b", "a", "c"]


def test_thinking_and_tools_stand_before_the_answer():
    card = ("<xai:tool_usage_card><xai:tool_usage_card_id>1</xai:tool_usage_card_id><xai:tool_name>web_search</xai:tool_name>"
            '<xai:tool_args><![CDATA[{"query":"潮"}]]></xai:tool_args></xai:tool_usage_card>')  # fmt: skip
    steps = [
        {"tagged_text": {"header": "Looking", "summary": ["I look."], "tool_usage_card": card}, "text": ["ignored"]},
        {"text": "plain"},
        None,
    ]
    conversation, report = one(
        chat(
            response("q", message="q"),
            response("a", "assistant", "It is.", "q", 1, thinking_trace=f"Hm.\n{card}\nSo.",
                     agent_thinking_traces=[{"thinking_trace": "other"}, "third"], steps=steps),
        )
    )  # fmt: skip
    assert [(m.message_id, m.role, m.kind, m.tool_name, m.text) for m in conversation.messages] == [
        ("q", "user", "text", None, "q"),
        ("a#0", "thinking", "thinking", None, "Hm.\n\nSo."),
        ("a#1", "tool", "tool_call", "web_search", "query: 潮"),
        ("a#2", "thinking", "thinking", None, "other"),
        ("a#3", "thinking", "thinking", None, "third"),
        ("a#4", "thinking", "thinking", None, "Looking\nI look."),
        ("a#5", "thinking", "thinking", None, "plain"),
        ("a", "assistant", "text", None, "It is."),
    ]
    assert not report.skips


def test_marks_inside_an_answer_are_no_text_but_a_person_may_write_them():
    mark = '<grok:render card_id="c1" card_type="citation_card"><argument name="citation_id">1</argument></grok:render>'
    document = '<xaiArtifact artifact_id="d" title="Plan" contentType="text/markdown">\n# Plan\n</xaiArtifact>'
    text = f"Yes.{mark} More.\n\n{document}\nDone. <grok:render open"
    cards = ['{"id":"c1","url":"https://example.invalid/c","title":"C"}', "not JSON",
             json.dumps({"id": "p", "image_chunk": {"imageUrl": "users/x/generated/fog.jpg"}})]  # fmt: skip
    conversation, _ = one(
        chat(response("q", message=text), response("a", "assistant", text, "q", 1, card_attachments_json=cards))
    )
    asked, answered = conversation.visible_messages()
    assert asked.text == text
    assert answered.text == "Yes. More.\n\n# Plan\n\nDone. <grok:render open"
    assert answered.citations == [Citation("https://example.invalid/c", "C")]
    assert [(f.name, f.type) for f in answered.attachment] == [("fog.jpg", "image")]


def test_sources_of_an_answer_cited_ones_first():
    pages = [{"url": f"https://example.invalid/{n}", "title": str(n), "preview": "p"} for n in range(3)]
    conversation, _ = one(
        chat(
            response("q", message="q", web_search_results=pages),
            response("a", "assistant", "a", "q", 1, web_search_results=pages, cited_web_search_results=[pages[2]],
                     steps=[{"web_search_results": [{"url": "https://example.invalid/s"}]}]),
        )
    )  # fmt: skip
    assert [c.url[-1] for c in conversation.messages[-1].citations] == ["2", "0", "1", "s"]
    assert conversation.messages[0].citations == []


def test_files_lie_beside_the_chats_at_any_depth():
    folder = "ttl/30d/x/prod-mc-asset-server"
    conversation, report = one(
        chat(
            response(
                "q", message="see", file_attachments=["f-1", "gone", {"id": "f-2", "file_name": "b.pdf"}, None, 7.5]
            ),
            response("p", message="", parent="q", at=1, file_attachments=["f-1"]),
            response("a", "assistant", "", "p", 2, generated_image_urls=["https://example.invalid/i/moon.jpg?x=1"]),
        ),
        {f"{folder}/f-1/content": PNG, f"{folder}/f-2/content": b"%PDF-1.7"},
    )
    assert [[(f.name, f.type, f.size) for f in m.attachment] for m in conversation.messages] == [
        [("f-1", "image/png", len(PNG)), ("gone", None, None), ("b.pdf", "application/pdf", 8)],
        [("f-1", "image/png", len(PNG))],
        [("moon.jpg", "image", None)],
    ]
    assert [m.kind for m in conversation.messages] == ["text", "image", "image"]
    assert not report.skips


def test_odd_ids_never_leave_the_folder():
    secret = {"ttl/30d/x/prod-mc-auth-mgmt-api.json": b"secret"}
    conversation, _ = one(chat(response("q", message="q", file_attachments=["../prod-mc-auth-mgmt-api.json#"])), secret)
    assert conversation.messages[0].attachment[0].size is None


def test_who_nobody_knows_is_counted_and_hidden():
    conversation, report = one(chat(response("q", message="q"), response("x", "moderator", "psst", "q", 1)))
    assert [t for _, _, t in shown(conversation)] == ["q"]
    assert conversation.messages[1].hidden_reason == "unknown sender"
    assert report.unknown == {"sender:moderator": 1}


def test_what_is_no_message_is_counted():
    conversation, report = one(
        chat(None, 7, {"response": None}, {"response": "x"}, response("q", message="q"), response("q", message="q"),
             response("e", "assistant", None, "q", 1, error="failed"), response("l", "human", ["x"], "q", 2))
    )  # fmt: skip
    assert [t for _, _, t in shown(conversation)] == ["q"]
    assert [(s.reason, s.expected) for s in report.skips] == [
        ("not a message", True),
        ("not a message", False),
        ("not a message", False),
        ("not a message", False),
        ("the same message twice", True),
        ("answer that failed in the source", True),
        ("message that is no text", False),
        ("empty message", True),
    ]


def test_a_conversation_that_a_schedule_began_is_set_apart():
    assert one(chat(response("q", message="q"), task_result_id="t1"))[0].origin == "cron"
    assert one(chat(response("q", message="q"), task_result_id=None))[0].origin == "person"


def test_other_wrappings():
    value = chat(response("q", message="q"))
    late = {"media_posts": [{"id": "m"}], "projects": [], "conversations": [value]}
    for files in ({"x.json": [value]}, {"x.json": value}, {"x.jsonl": json.dumps(value)}, {"x.json": late}):
        conversations, _ = read(READERS, files, next(iter(files)))
        assert [c.conversation_id for c in conversations] == ["g1"]
    conversations, report = read(READERS, {"x.json": backend()}, "x.json")
    assert conversations == []
    assert [(s.reason, s.expected) for s in report.skips] == [("no conversations", True)]


def test_a_long_chain_and_a_cycle():
    chain = [response(str(n), "human", f"m{n}", str(n - 1) if n else "", n) for n in range(10_000)]
    assert len(one(chat(*chain))[0].visible_messages()) == 10_000
    circle = chat(response("1", message="a", parent="2"), response("2", "assistant", "b", "1"))
    assert {m.text for m in one(circle)[0].messages} == {"a", "b"}


def test_ids_are_derived_from_content_and_stay():
    def nameless(*more):
        value = chat(response("", message="q"), response("", "assistant", "a", at=1), *more, id=None)
        return one(value)[0]

    first, grown = nameless(), nameless(response("", message="r", at=2))
    assert first.conversation_id == grown.conversation_id
    assert [m.message_id for m in first.messages] == [m.message_id for m in grown.messages][:2]
    assert len({m.message_id for m in grown.messages}) == 3


def test_only_groks_files_are_detected():
    assert not grok._is_chat({"conversation": [{"from": "human", "value": "x"}]})
    assert not grok._is_chat({"conversation": {"id": 1}})
    for value in ({"projects": [], "tasks": []}, {"conversations": []}):
        assert not any(r.format == "grok-export" for r in READERS if _detects(r, value))


def _detects(reader, value):
    from palace_pipeline.exports.detect import head_of
    from tests.exports.memory_member import MemoryMember, export

    return reader.detect(head_of(MemoryMember(export({"x.json": value}), "x.json")))
