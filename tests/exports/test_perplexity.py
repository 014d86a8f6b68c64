"""Perplexity threads: both shapes, answers as text, JSON, steps and blocks; damage."""

import json

import pytest

from palace_pipeline.exports.perplexity_answer import read_answer
from palace_pipeline.exports.registry import READERS
from palace_pipeline.model import Citation
from tests.exports.memory_member import read, shown

PAGES = [{"name": "A", "url": "https://example.invalid/a", "snippet": "s"}]


def turn(id, query="q", answer="a", at="2026-03-14T09:26:41.000Z", **more):
    return {"uuid": id, "query": query, "answer": answer, "timestamp": at, "related_queries": ["ZZ"], **more}


def older(*turns, **head):
    return {"metadata": {"thread_id": "t1", "thread_title": "T", "thread_created_at": "2026-03-14T09:00:00Z", **head},
            "conversations": list(turns)}  # fmt: skip


def entry(id, query="q", answer="a", at="2026-03-14T10:00:01.000Z", **more):
    return {"uuid": id, "context_uuid": "t2", "query_str": query, "entry_created_datetime": at, "display_model": "sonar",
            "blocks": [{"intended_usage": "ask_text", "markdown_block": {"answer": answer}}], **more}  # fmt: skip


def newer(*entries, **head):
    return {"status": "success", "thread_metadata": {"title": "N", **head}, "entries": list(entries)}


def one(value, name="thread.json"):
    conversations, report = read(READERS, {name: value}, name)
    assert len(conversations) == 1
    return conversations[0], report


def test_the_older_shape():
    sources = [{"title": "List", "url": "https://example.invalid/list"}]
    conversation, report = one(older(turn("1", "Q", "A.[1]", sources=sources, model="sonar"), turn("2", "", "only")))
    assert shown(conversation) == [("user", None, "Q"), ("assistant", None, "A.[1]"), ("assistant", None, "only")]
    assert [(m.message_id, m.model) for m in conversation.messages] == [
        ("1#question", None),
        ("1", "sonar"),
        ("2", None),
    ]
    assert conversation.messages[1].citations == [Citation("https://example.invalid/list", "List")]
    assert {m.created_at.isoformat() for m in conversation.messages} == {"2026-03-14T09:26:41+00:00"}
    assert (conversation.conversation_id, conversation.title) == ("t1", "T")
    assert conversation.created_at.isoformat() == "2026-03-14T09:00:00+00:00"
    assert not report.skips


def test_the_newer_shape_with_plan_search_and_space():
    plan = {"goals": [{"description": "Look it up"}], "steps": [
        {"step_type": "SEARCH_WEB", "search_web_content": {"queries": [{"query": "fog"}, "horn"]}},
        {"step_type": "SEARCH_RESULTS", "web_results_content": {"web_results": PAGES}},
    ]}  # fmt: skip
    blocks = [
        {"intended_usage": "plan", "plan_block": plan},
        {"intended_usage": "web_results", "web_result_block": {"web_results": PAGES}},
        {"intended_usage": "ask_text_0_markdown", "markdown_block": {"answer": "Loud."}},
        {"intended_usage": "ask_text", "markdown_block": {"chunks": ["Lo", "ud."]}},
        {"intended_usage": "hologram", "x": {}},
        None,
    ]
    conversation, report = one(
        newer(
            entry(
                "e1", blocks=blocks, collection_info={"title": "Sea"}, attachments=["https://example.invalid/f/a.pdf"]
            )
        )
    )
    assert [(m.message_id, m.role, m.kind, m.tool_name, m.text) for m in conversation.messages] == [
        ("e1#question", "user", "text", None, "q"),
        ("e1#plan", "thinking", "thinking", None, "Look it up"),
        ("e1#search", "tool", "tool_call", "web_search", "fog\nhorn"),
        ("e1", "assistant", "text", None, "Loud."),
    ]
    assert conversation.messages[-1].citations == [Citation("https://example.invalid/a", "A")]
    assert [f.name for f in conversation.messages[0].attachment] == ["a.pdf"]
    assert (conversation.conversation_id, conversation.title, conversation.project) == ("t2", "N", "Sea")
    assert report.unknown == {"block:hologram": 1}


def test_pieces_of_an_answer_are_joined_once_each():
    blocks = [
        {"intended_usage": "ask_text_0_markdown", "markdown_block": {"answer": "One."}},
        {"intended_usage": "ask_text_1_markdown", "markdown_block": {"answer": "Two."}},
        {"intended_usage": "ask_text_1_markdown", "markdown_block": {"answer": "Two."}},
    ]
    assert [t for _, _, t in shown(one(newer(entry("e", blocks=blocks)))[0])] == ["q", "One.\n\nTwo."]


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_lists_of_threads_and_of_entries(name):
    def data(values):
        return "\n".join(map(json.dumps, values)) if name.endswith("l") else values

    conversations, _ = read(READERS, {name: data([newer(entry("1")), newer(entry("2", context_uuid="t3"))])}, name)
    assert [c.conversation_id for c in conversations] == ["t2", "t3"]
    conversations, _ = read(READERS, {name: data([entry("2"), entry("3", context_uuid="t3"), entry("1")])}, name)
    assert [(c.conversation_id, len(c.messages)) for c in conversations] == [("t2", 4), ("t3", 2)]


def test_order_by_index_or_time_and_else_as_it_stands():
    late, early = turn("b", "B", "", "2026-03-14T11:00:00Z"), turn("a", "A", "", "2026-03-14T10:00:00Z")
    assert [t for _, _, t in shown(one(older(late, early))[0])] == ["A", "B"]
    assert [t for _, _, t in shown(one(older({**late, "index": 1}, {**early, "index": 2}))[0])] == ["B", "A"]
    assert [t for _, _, t in shown(one(older({**late, "timestamp": None}, early))[0])] == ["B", "A"]


def test_a_naive_time_stays_local():
    conversation, _ = one(newer(entry("e", at="2025-07-26T00:50:10.801065")))
    assert {(m.created_at, m.local_time) for m in conversation.messages} == {(None, "2025-07-26T00:50:10")}


def test_answers_as_json_text_and_steps():
    inner = json.dumps({"answer": "Deep.", "web_results": PAGES, "chunks": ["no"]})
    steps = json.dumps([
        {"step_type": "INITIAL_QUERY", "content": {"query": "q"}},
        {"step_type": "SEARCH_WEB", "content": {"queries": [{"query": "x"}]}},
        {"step_type": "FINAL", "content": {"answer": inner}},
    ])  # fmt: skip
    for value in (inner, steps):
        found = read_answer(value)
        assert (found.text, found.citations, found.cut) == (
            "Deep.",
            [Citation("https://example.invalid/a", "A")],
            False,
        )
    assert read_answer(steps).searches == ["x"]
    assert read_answer('{"answer": null, "chunks": ["a", "b"]}').text == "ab"
    assert read_answer('{"answer": "", "structured_answer": [{"type": "markdown", "text": "s"}]}').text == "s"


@pytest.mark.parametrize(
    "text", ["plain", "{not JSON}", '{"name": "x"}', '{"answer": 42}', "[1, 2]", '["step"]', "[link](x)"]
)
def test_what_is_no_json_of_perplexitys_is_the_answer_itself(text):
    assert read_answer(text).text == text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"answer": "one \\"two\\" th', 'one "two" th'),
        ('{"answer": "one\\nt\\u00e', "one\nt"),
        ('{"answer": "one\\', "one"),
        ('{"web_results": [], "answer": "one 两', "one 两"),
    ],
)
def test_json_that_is_cut_gives_its_answer_as_far_as_it_goes(text, answer):
    assert (read_answer(text).text, read_answer(text).cut) == (answer, True)
    whole = read_answer('{"answer": "all", "web_results": [{"na')
    assert (whole.text, whole.cut) == ("all", False)


def test_damage_costs_only_what_is_damaged():
    data = json.dumps(newer(entry("1", "one"), entry("2", "two"), entry("3", "three")))
    cut = data[: data.index('"three"')]
    conversations, report = read(READERS, {"t.json": cut}, "t.json")
    assert [t for _, _, t in shown(conversations[0])] == ["one", "a", "two", "a"]
    assert conversations[0].title == "N"
    assert [s.expected for s in report.skips] == [False]
    broken = data.replace('"two"', "two")
    conversations, report = read(READERS, {"t.json": broken}, "t.json")
    assert [t for _, _, t in shown(conversations[0])] == ["one", "a", "three", "a"]
    assert [(s.reason, s.expected) for s in report.skips] == [("damaged JSON", False)]


def test_what_is_no_entry_is_counted():
    conversation, report = one(newer(entry("1"), None, 7, entry("2", "", "", blocks=[])))
    assert len(conversation.messages) == 2
    assert sorted((s.reason, s.expected) for s in report.skips) == [
        ("empty message", True), ("not an entry", False), ("not an entry", True),
    ]  # fmt: skip
    conversations, report = read(READERS, {"t.json": older(turn("1", "", ""))}, "t.json")
    assert conversations == []
    assert all(skip.expected for skip in report.skips)
