"""ChatGPT: paths through trees, what is said to whom, files, sources and marks."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import chatgpt
from tests.exports.memory_member import read, shown


def message(role="user", text="", *, time=None, type="text", recipient="all", parts=None, **more):
    content = {"content_type": type, "parts": parts if parts is not None else [text]}
    content.update(more.pop("content", {}))
    return {"author": {"role": role, "name": more.pop("name", None)}, "create_time": time, "content": content,
            "recipient": recipient, **more}  # fmt: skip


def chat(nodes, current=None, **head):
    """Nodes as (id, parent, message)."""
    children = {id: [] for id, _, _ in nodes}
    for id, parent, _ in nodes:
        children.get(parent, []).append(id)
    mapping = {id: {"id": id, "parent": p, "message": m, "children": children[id]} for id, p, m in nodes}
    return {"title": "T", "mapping": mapping, "current_node": current, "conversation_id": "c1", **head}


def one(value):
    conversations, report = read([chatgpt.READER], {"conversations.json": [value]}, "conversations.json")
    assert len(conversations) == 1
    return conversations[0], report


def line(*messages, **head):
    nodes = [("root", None, None)]
    for number, item in enumerate(messages):
        nodes.append((f"n{number}", nodes[-1][0], item))
    return chat(nodes, nodes[-1][0], **head)


def test_other_branches_are_rows_that_are_not_active():
    value = chat(
        [
            ("root", None, None),
            ("u", "root", message(text="q", time=10)),
            ("a1", "u", message("assistant", "old", time=1_700_000_300)),
            ("a2", "u", message("assistant", "new", time=1_700_000_200)),
        ],
        "a2",
    )
    conversation, _ = one(value)
    assert shown(conversation) == [("user", None, "q"), ("assistant", None, "new")]
    assert [(m.message_id, m.parent_id, m.branch_active) for m in conversation.messages] == [
        ("u", None, True),
        ("a2", "u", True),
        ("a1", "u", False),
    ]


def test_last_child_decides_where_no_time_does():
    value = chat(
        [
            ("root", None, None),
            ("u", "root", message(text="q")),
            ("a1", "u", message("assistant", "first")),
            ("a2", "u", message("assistant", "second")),
            ("u2", "a1", message(text="more")),
        ]
    )
    assert [text for _, _, text in shown(one(value)[0])] == ["q", "second"]


def test_order_of_children_counts_not_that_of_the_mapping():
    value = chat(
        [("a2", "u", message("assistant", "second")), ("a1", "u", message("assistant", "first")),
         ("u", "root", message(text="q")), ("root", None, None)]
    )  # fmt: skip
    value["mapping"]["u"]["children"] = ["a1", "a2"]
    assert [text for _, _, text in shown(one(value)[0])] == ["q", "second"]


def test_parents_may_only_be_named_by_children():
    value = line(message(text="q"), message("assistant", "a"))
    for node in value["mapping"].values():
        del node["parent"]
    assert [text for _, _, text in shown(one(value)[0])] == ["q", "a"]


def test_a_missing_node_in_the_middle_of_a_single_line_is_bridged():
    value = line(message(text="q1", time=1), message("assistant", "a1"), message(text="q2"), message("assistant", "a2"))
    del value["mapping"]["n1"]
    assert [text for _, _, text in shown(one(value)[0])] == ["q1", "q2", "a2"]


def test_a_path_that_shows_nothing_gives_way_to_the_newest_that_does():
    value = chat(
        [
            ("root", None, None),
            ("s", "root", message("system", "")),
            ("u", "root", message(text="q", time=1_700_000_000)),
            ("a", "u", message("assistant", "a", time=1_700_000_001)),
        ],
        "s",
    )
    assert [text for _, _, text in shown(one(value)[0])] == ["q", "a"]


def test_a_chain_of_five_thousand_messages():
    value = line(*[message("user" if n % 2 else "assistant", str(n)) for n in range(5_000)])
    assert [text for _, _, text in shown(one(value)[0])] == [str(n) for n in range(5_000)]


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=12), st.integers(-1, 12))
@settings(max_examples=60, deadline=None)
def test_any_tree_with_cycles_and_holes_ends_and_gives_every_message_once(parents, current):
    nodes = [
        (f"n{n}", f"n{p}", message(text=f"text {n}", time=n if dated else None)) for n, (p, dated) in enumerate(parents)
    ]
    conversation, _ = one(chat(nodes, f"n{current}"))
    assert sorted(m.text for m in conversation.messages) == sorted(f"text {n}" for n in range(len(parents)))
    assert len({m.message_id for m in conversation.messages}) == len(parents)
    if 0 <= current < len(parents):
        assert conversation.visible_messages()[-1].message_id == f"n{current}"


def test_only_what_is_said_to_the_person_is_visible():
    conversation, report = one(
        line(
            message("system", "rules"),
            message("user", type="user_editable_context", content={"user_profile": "baker", "parts": None}),
            message(text="hidden", metadata={"is_visually_hidden_from_conversation": True}),
            message(text="q"),
            message("assistant", type="thoughts", content={"thoughts": [{"summary": "Look", "content": "hm"}]}),
            message("assistant", "thinking aloud", channel="analysis"),
            message("assistant", '{"q": 1}', recipient="web"),
            message("tool", "found", name="web"),
            message("assistant", type="code", content={"text": "print(1)", "parts": None}, recipient="python"),
            message("tool", type="execution_output", content={"text": "1", "parts": None}, name="python"),
            message("critic", "no"),
            message("assistant", "answer", channel="final", metadata={"model_slug": "gpt-x"}),
        )
    )
    assert shown(conversation) == [("user", None, "q"), ("assistant", None, "answer")]
    rows = [(m.role, m.kind, m.tool_name, m.text, m.hidden_reason) for m in conversation.messages]
    assert rows == [
        ("system", "system", None, "rules", "system message"),
        ("user", "text", None, "baker", "custom instructions"),
        ("user", "text", None, "hidden", "hidden in the source"),
        ("user", "text", None, "q", None),
        ("thinking", "thinking", None, "Look\nhm", None),
        ("thinking", "thinking", None, "thinking aloud", None),
        ("tool", "tool_call", "web", '{"q": 1}', None),
        ("tool", "tool_result", "web", "found", None),
        ("tool", "tool_call", "python", "print(1)", None),
        ("tool", "tool_result", "python", "1", None),
        ("system", "system", None, "no", "system message"),
        ("assistant", "text", None, "answer", None),
    ]
    assert conversation.messages[-1].model == "gpt-x"
    assert report.unknown == {"role:critic": 1}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("It is 21 \ue200cite\ue202turn0search3\ue202turn0search8\ue201.", "It is 21."),
        ('In \ue200entity\ue202["place","Kyōto",0]\ue201 now', "In Kyōto now"),
        ("By \ue200entity\ue202Invincible\ue201.", "By Invincible."),
        ("See \ue200url\ue202the list\ue202https://example.invalid/\ue201!", "See the list!"),
        ("\ue200i\ue202turn0image1\ue201Text", "Text"),
        ("\ue203Cited words.\ue204 \ue200cite\ue202turn0news1\ue201 Next", "Cited words. Next"),
        ("broken \ue200cite\ue202turn0", "broken citeturn0"),
        ("a【oaicite:0】b", "ab"),
        ("as he said【4:0†source】.", "as he said【4:0†source】."),
    ],
)
def test_marks_of_the_web_page(text, clean):
    conversation, _ = one(line(message(text="q"), message("assistant", text)))
    assert conversation.messages[-1].text == clean


def test_a_persons_own_marks_stay():
    conversation, _ = one(line(message(text="what is \ue200cite\ue201? 【1†source】")))
    assert conversation.messages[0].text == "what is \ue200cite\ue201? 【1†source】"


def test_sources_old_and_new_each_once():
    references = [
        {"type": "grouped_webpages", "items": [
            {"title": "A", "url": "https://example.invalid/a", "supporting_websites": [{"title": "B", "url": "https://example.invalid/b"}]},
            {"title": "A again", "url": "https://example.invalid/a"}]},
        {"type": "sources_footnote", "sources": [{"title": "B", "url": "https://example.invalid/b"}]},
        {"type": "hidden", "items": None},
    ]  # fmt: skip
    old = [{"start_ix": 1, "metadata": {"title": "C", "url": "https://example.invalid/c"}}, None]
    metadata = {"content_references": references, "citations": old}
    conversation, _ = one(line(message("assistant", "Yes【1†source】.", metadata=metadata)))
    answer = conversation.messages[0]
    assert answer.text == "Yes."
    assert [(c.url[-1], c.title) for c in answer.citations] == [("a", "A"), ("b", "B"), ("c", "C")]


def test_files_by_name_where_there_is_one():
    parts = [
        {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "size_bytes": 5},
        "look",
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-2", "size_bytes": 7},
        {"content_type": "unheard_of"},
    ]
    named = [{"id": "file_1", "name": "map.png", "size": 9, "mime_type": "image/png"}, {"id": "x", "name": "log.txt"}]
    conversation, report = one(line(message(type="multimodal_text", parts=parts, metadata={"attachments": named})))
    row = conversation.messages[0]
    assert (row.text, row.kind) == ("look", "text")
    assert [(f.name, f.type, f.size) for f in row.attachment] == [
        ("map.png", "image/png", 9),
        ("file-2", "image", 7),
        (None, "unheard_of", None),
        ("log.txt", None, None),
    ]
    assert report.unknown == {"part:unheard_of": 1}


def test_a_message_that_is_only_a_picture_is_a_message():
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://f"}
    conversation, _ = one(line(message(type="multimodal_text", parts=[picture]), message("assistant", "nice")))
    assert [(m.text, m.kind) for m in conversation.visible_messages()] == [("", "image"), ("nice", "text")]


def test_speech_is_text():
    parts = [
        {"content_type": "audio_transcription", "text": "When?", "direction": "in"},
        {"content_type": "real_time_user_audio_video_asset_pointer", "audio_asset_pointer":
            {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://a", "size_bytes": 3}},
    ]  # fmt: skip
    conversation, report = one(line(message(type="multimodal_text", parts=parts)))
    row = conversation.messages[0]
    assert (row.text, [(f.name, f.type) for f in row.attachment], report.unknown) == ("When?", [("a", "audio")], {})


def test_times_of_every_kind_and_none_invented():
    conversation, _ = one(
        line(
            message(text="a", time=1773480401.5),
            message(text="b", time=1773480401500),
            message(text="c", time="1773480401.5"),
            message(text="d", time=None),
            message(text="e", time=0),
            message(text="f", time="2026-03-14T10:26:41.5+01:00"),
            message(text="g", time="2026-03-14T09:26:41"),
            create_time=1773480400.25,
            update_time=None,
        )
    )
    moment = datetime(2026, 3, 14, 9, 26, 41, 500_000, tzinfo=UTC)
    assert [m.created_at for m in conversation.messages] == [moment] * 3 + [None, None, moment, None]
    assert conversation.messages[-1].local_time == "2026-03-14T09:26:41"
    assert (conversation.created_at, conversation.updated_at) == (moment.replace(second=40, microsecond=250_000), None)


def test_without_ids_the_same_chat_has_the_same_ones_when_it_grows():
    def bare(*texts):
        value = line(
            *[message("user" if n % 2 == 0 else "assistant", text, time=n + 1.5e9) for n, text in enumerate(texts)]
        )
        del value["conversation_id"]
        return one(value)[0]

    short, long = bare("q", "a"), bare("q", "a", "q2", "a2")
    assert short.conversation_id == long.conversation_id != bare("other", "a").conversation_id
    assert [m.message_id for m in short.messages] == [m.message_id for m in long.messages][:2]


def test_the_same_message_id_twice_is_two_rows():
    value = line(message(text="a", id="same"), message(text="b", id="same"))
    assert [m.message_id for m in one(value)[0].messages] == ["same", "same~2"]


@pytest.mark.parametrize(
    ("value", "reason", "expected"),
    [
        ({"title": "T", "current_node": None, "mapping": {}}, "empty conversation", True),
        ({"title": "T", "mapping": [1]}, "conversation without messages", False),
        (line(message("system", "x"), message("assistant", type="thoughts", content={"thoughts": []})),
         "no message that a person sees", True),
    ],
)  # fmt: skip
def test_what_is_no_conversation_is_named(value, reason, expected):
    conversations, report = read([chatgpt.READER], {"c.json": [line(message(text="q")), value]}, "c.json")
    assert len(conversations) == 1
    assert [(s.reason, s.where, s.expected, s.unit) for s in report.skips] == [
        (reason, "c.json: [1]", expected, "conversation")
    ]


def test_deepseek_is_not_taken_for_chatgpt():
    from palace_pipeline.exports.base import Head

    node = {"id": "1", "parent": "root", "message": {"fragments": [{"type": "REQUEST", "content": "hi"}]}}
    assert not chatgpt.READER.detect(Head("c.json", "array", items=[{"id": "x", "mapping": {"1": node}}]))
    assert not chatgpt.READER.detect(
        Head("c.json", "array", items=[{"id": "x", "inserted_at": "2026", "mapping": {"root": {"message": None}}}])
    )
