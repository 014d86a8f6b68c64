"""Continue sessions: both nestings, what is not a person's words, the index."""

from palace_pipeline.exports.continue_dev import READER
from tests.exports.memory_member import read, shown

ID = "dddddddd-0000-4000-8000-000000000001"
FILE = f"sessions/{ID}.json"


def item(role, content, **beside):
    return {"message": {"role": role, "content": content}, "contextItems": [], **beside}


def session(*history, files=None, **more):
    value = {"sessionId": ID, "title": "T", "workspaceDirectory": "", "history": list(history), **more}
    return read([READER], {FILE: value, **(files or {})}, FILE)


def one(*history, **more):
    (conversation,) = session(*history, **more)[0]
    return conversation


def test_both_nestings_say_the_same():
    nested = one(item("system", "s"), item("user", "问"), item("assistant", [{"type": "text", "text": "答"}]))
    flat = one(
        {"role": "system", "content": "s"}, {"role": "user", "content": "问"}, {"role": "assistant", "content": "答"}
    )
    assert shown(nested) == shown(flat) == [("user", None, "问"), ("assistant", None, "答")]
    assert [m.message_id for m in nested.messages] == [m.message_id for m in flat.messages]


def test_only_the_message_is_a_persons_words():
    context = {
        "name": "a.py",
        "content": "CONTEXT",
        "uri": {"value": "file:///x/a.py"},
        "id": {"providerTitle": "file"},
    }
    conversation = one(
        item(
            "user",
            [{"type": "text", "text": "fix"}, {"type": "imageUrl", "imageUrl": {"url": "data:image/png;base64,aGk="}}],
            contextItems=[context, {"name": "secret", "content": "H", "hidden": True}],
            editorState={"content": [{"text": "EDITOR"}]},
        ),
        item("assistant", "done", promptLogs=[{"prompt": "PROMPT", "modelTitle": "m2"}]),
        item("user", "ok", conversationSummary="SUMMARY", appliedRules=[{"rule": "RULE"}]),
    )
    assert shown(conversation) == [("user", None, "fix"), ("assistant", None, "done"), ("user", None, "ok")]
    question, answer = conversation.messages[:2]
    assert [(f.name, f.text, f.type) for f in question.attachment] == [
        (None, None, "image/png"),
        ("a.py", "CONTEXT", "file"),
    ]
    assert answer.model == "m2"
    assert [m.text for m in conversation.messages if m.hidden_reason] == ["SUMMARY"]


def test_thinking_comes_once_whether_beside_the_answer_or_before_it():
    reasoning = {"active": False, "text": "why", "startAt": 1, "endAt": 2}
    conversation = one(
        item("user", "q"),
        item("thinking", "why", reasoning=reasoning),
        item("assistant", "a", reasoning=reasoning),
        item("user", "q2"),
        item("assistant", "a2", reasoning=reasoning),
    )
    assert [m.role for m in conversation.messages] == ["user", "thinking", "assistant", "user", "thinking", "assistant"]


def test_calls_and_results_with_and_without_a_message_of_the_tool():
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
    state = {"toolCallId": "c1", "toolCall": call, "status": "done", "output": [{"name": "a", "content": "text"}]}
    asks = item("assistant", "", toolCallStates=[state])
    asks["message"]["toolCalls"] = [call]
    answers = {"message": {"role": "tool", "content": "text", "toolCallId": "c1"}}
    for history in ((item("user", "q"), asks, answers), (item("user", "q"), asks)):
        tools = [(m.kind, m.tool_name, m.text) for m in one(*history).messages if m.role == "tool"]
        assert tools == [("tool_call", "read", "path: a.py"), ("tool_result", "read", "text")]
    del asks["message"]["toolCalls"]
    assert [m.kind for m in one(item("user", "q"), asks).messages if m.role == "tool"] == ["tool_call", "tool_result"]


def test_the_index_gives_the_day_and_the_folder():
    index = [
        {"sessionId": "other", "title": ID, "dateCreated": "1500000000000"},
        {"session_id": ID, "title": "old kind", "date_created": "1500000000"},
        {
            "sessionId": ID,
            "title": "with a } brace",
            "dateCreated": "1773480400000",
            "workspaceDirectory": "file:///c%3A/%E6%B5%B7",
        },
    ]
    conversation = one(item("user", "q"), files={"sessions/sessions.json": index}, title="")
    assert conversation.created_at is not None
    assert conversation.created_at.isoformat() == "2026-03-14T09:26:40+00:00"
    assert (conversation.title, conversation.project) == ("with a } brace", "c:/海")
    assert one(item("user", "q"), files={"sessions/sessions.json": b"[{"}).created_at is None
    assert (
        one(item("user", "q"), files={"sessions/sessions.json": b'[{"sessionId": "' + ID.encode() + b'"'}).title == "T"
    )


def test_sessions_without_messages_are_expected_skips():
    for history, reason in (((), "empty history"), ((item("system", "s"),), "session without messages")):
        conversations, report = session(*history)
        assert not conversations
        assert [(s.reason, s.expected, s.unit) for s in report.skips] == [(reason, True, "conversation")]


def test_odd_items_are_counted_and_the_others_stay():
    odd = [None, 7, [], "x", {"message": None}, {"message": {"role": ["user"], "content": {}}}, item("wizard", "w")]
    (conversation,), report = session(item("user", "q"), *odd, item("assistant", "a"))
    assert shown(conversation) == [("user", None, "q"), ("assistant", None, "a")]
    assert sum(s.count for s in report.skips if not s.expected) == 3
    assert sum(report.unknown.values()) >= 1
    assert [m.text for m in conversation.messages if m.hidden_reason] == ["w"]
