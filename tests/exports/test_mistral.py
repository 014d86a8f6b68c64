"""Le Chat: messages in no order, chunks, tools, versions, files in a folder beside the chat."""

import json

from palace_pipeline.exports import mistral
from palace_pipeline.exports.names import is_asset
from palace_pipeline.exports.registry import READERS
from palace_pipeline.model import Citation
from tests.exports.memory_member import read, shown


def message(id, role="user", content="", at=0, chat="c1", **more):
    return {"id": id, "version": 0, "chatId": chat, "content": content, "contentChunks": None, "role": role,
            "createdAt": f"2026-03-14T09:00:{at:02d}.236Z", "canvas": [], "quotes": [], "files": [], **more}  # fmt: skip


def chunk(type, **more):
    return {"type": type, **more}


def one(*messages, files=None, path="chat-c1.json"):
    conversations, report = read(READERS, {path: list(messages), **(files or {})}, path)
    assert len(conversations) == 1
    return conversations[0], report


def test_times_give_the_order_and_there_is_no_title():
    conversation, report = one(
        message("3", content="c", at=3), message("x", content="undated", createdAt=None), message("1", content="a", at=1),
        message("2", "assistant", "b", at=2),
    )  # fmt: skip
    assert shown(conversation) == [
        ("user", None, "a"), ("assistant", None, "b"), ("user", None, "c"), ("user", None, "undated"),
    ]  # fmt: skip
    assert (conversation.provider, conversation.conversation_id, conversation.title) == ("mistral", "c1", None)
    assert conversation.messages[0].created_at.isoformat() == "2026-03-14T09:00:01.236000+00:00"
    assert conversation.messages[-1].created_at is None
    assert not report.skips


def test_chunks_are_one_text_and_tools_stand_beside_it():
    result = json.dumps([{"url": "https://example.invalid/a", "title": "A"}])
    conversation, report = one(
        message("q", content="q"),
        message("a", "assistant", "", 1, contentChunks=[
            chunk("thinking", thinking=[chunk("text", text="hm")]),
            chunk("tool_call", name="web_search", publicArguments='{"q":"phare"}', publicResult=result),
            chunk("text", text="En Bretagne, "),
            chunk("reference", referenceIds=[1], references=[{"url": "https://example.invalid/b", "title": "B"}]),
            chunk("text", text="surtout."),
            chunk("image_url", imageUrl={"url": "https://example.invalid/i/phare.png?s=1"}),
            chunk("custom_element", name="weather", text="sun"),
        ]),
    )  # fmt: skip
    assert [(m.message_id, m.role, m.kind, m.tool_name, m.text) for m in conversation.messages[1:]] == [
        ("a#0", "thinking", "thinking", None, "hm"),
        ("a#1", "tool", "tool_call", "web_search", '{"q":"phare"}'),
        ("a#2", "tool", "tool_result", "web_search", result),
        ("a#3", "tool", "tool_result", "custom_element", "name: weather\ntext: sun"),
        ("a", "assistant", "text", None, "En Bretagne, surtout."),
    ]
    answer = conversation.messages[-1]
    assert answer.citations == [
        Citation("https://example.invalid/a", "A"), Citation("https://example.invalid/b", "B"),
    ]  # fmt: skip
    assert [(f.name, f.type) for f in answer.attachment] == [("phare.png", "image")]
    assert (report.skips, dict(report.unknown)) == ([], {})


def test_content_is_taken_where_no_chunk_has_text():
    conversation, _ = one(
        message("1", content="q"),
        message("2", "assistant", "both", 1, contentChunks=[chunk("text", text="both")]),
        message("3", "assistant", "only here", 2, contentChunks=[chunk("tool_call", name="t", publicArguments=None)]),
    )
    assert [text for _, _, text in shown(conversation)] == ["q", "both", "only here"]
    assert [m.tool_name for m in conversation.messages if m.role == "tool"] == ["t"]


def test_an_unknown_chunk_is_counted():
    conversation, report = one(
        message("a", "assistant", "x", contentChunks=[chunk("hologram", text="psst"), None, 7, "y"])
    )
    assert [text for _, _, text in shown(conversation)] == ["y"]
    assert report.unknown == {"chunk:hologram": 1}
    assert [(s.reason, s.where, s.expected) for s in report.skips] == [
        ("unknown kind of chunk", "chat-c1.json: [0], chunk 0", False),
        ("not a piece of a message", "chat-c1.json: [0], chunk 1", True),
        ("not a piece of a message", "chat-c1.json: [0], chunk 2", False),
    ]


def test_the_last_version_of_a_message_is_seen():
    conversation, _ = one(
        message("q", content="q"),
        message("a", "assistant", "second", 1, version=1),
        message("a", "assistant", "first", 1),
    )
    assert [text for _, _, text in shown(conversation)] == ["q", "second"]
    assert sorted(m.message_id for m in conversation.messages) == ["a", "a~2", "q"]


def test_files_canvas_and_quotes():
    conversation, _ = one(
        message("q", files=[{"type": "image", "name": "carte.png"}, {"type": "text", "name": "gone.md"}, None, "bare.txt"],
                quotes=[{"text": "as you said"}], canvas=[{"title": "Plan", "content": "# Plan"}]),
        message("p", content="x", at=1),
        files={"chat-c1-files/carte.png": b"12345"},
    )  # fmt: skip
    assert [(f.name, f.type, f.size, f.text) for f in conversation.messages[0].attachment] == [
        ("carte.png", "image", 5, None),
        ("gone.md", "text", None, None),
        ("bare.txt", None, None, None),
        ("Plan", "canvas", None, "# Plan"),
        (None, "quote", None, "as you said"),
    ]
    assert conversation.messages[0].kind == "attachment"
    assert is_asset("export/chat-c1-files/notes.md")
    assert not is_asset("export/chat-c1.json")


def test_several_chats_in_one_file_and_missing_ids():
    conversations, report = read(
        READERS,
        {
            "all.json": [
                message("1", content="a", chat="x"),
                message("2", content="b", chat="y"),
                message("3", chat="z"),
            ]
        },
        "all.json",
    )
    assert [(c.conversation_id, len(c.messages)) for c in conversations] == [("x", 1), ("y", 1)]
    assert [s.reason for s in report.skips] == ["empty message"]
    nameless, _ = one(message("", content="a"), message("", content="a"), message("", content="b", at=1))
    assert len({m.message_id for m in nameless.messages}) == 3


def test_who_nobody_knows_is_hidden():
    conversation, report = one(
        message("1", content="a"), message("2", "critic", "b", 1), message("3", "system", "c", 2)
    )
    assert [text for _, _, text in shown(conversation)] == ["a"]
    assert [(m.role, m.hidden_reason) for m in conversation.messages[1:]] == [
        ("system", "unknown role"),
        ("system", None),
    ]
    assert report.unknown == {"role:critic": 1}


def test_a_cut_file_gives_what_stands_before_the_cut():
    data = json.dumps([message("1", content="a"), message("2", "assistant", "b", 1), message("3", content="c", at=2)])
    conversations, report = read(READERS, {"chat-c1.json": data[: data.index('"3"')]}, "chat-c1.json")
    assert [text for _, _, text in shown(conversations[0])] == ["a", "b"]
    assert [s.expected for s in report.skips] == [False]


def test_plain_turns_are_not_le_chats():
    assert not mistral._is_message({"role": "user", "content": "x"})
    assert not mistral._is_message({"chatId": "c", "role": "user", "content": "x"})
    assert mistral._is_message(message("1"))
