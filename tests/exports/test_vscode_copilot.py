"""VS Code chats: the log of changes, parts of an answer, questions with what stood beside them."""

import pytest

from palace_pipeline.exports.vscode_copilot import READERS
from palace_pipeline.exports.vscode_log import ChatLog
from tests.exports.codex_lines import lines
from tests.exports.memory_member import read, shown

STORE = "workspaceStorage/0a/chatSessions"
LOG, FILE = f"{STORE}/v1.jsonl", f"{STORE}/v1.json"
TIME = 1773480401000


def request(number, words, *parts, **more):
    return {
        "requestId": f"r{number}",
        "timestamp": TIME + number * 1000,
        "message": {"text": words, "parts": []},
        "variableData": {"variables": []},
        "response": list(parts),
        "modelId": "copilot/m",
        **more,
    }


def chat(*requests, **more):
    return {"version": 3, "sessionId": "v1", "creationDate": TIME, "requests": list(requests), **more}


def log(*entries, path=LOG, files=None):
    return read(list(READERS), {path: lines(*entries), **(files or {})}, path)


def one(*requests, path=FILE, files=None, **more):
    conversations, _ = read(list(READERS), {path: chat(*requests, **more), **(files or {})}, path)
    (conversation,) = conversations
    return conversation


def md(words):
    return {"value": words, "supportThemeIcons": False}


def base(*requests):
    return {"kind": 0, "v": chat(*requests)}


def put(path, value):
    return {"kind": 1, "k": path, "v": value}


def push(path, *values, at=None):
    return {"kind": 2, "k": path, "v": list(values)} | ({} if at is None else {"i": at})


def said(*entries):
    conversations, _ = log(*entries)
    return [(role[0], text) for c in conversations for role, _, text in shown(c)]


# --- the log ---


def test_a_log_is_replayed_and_says_what_the_object_says():
    entries = [
        base(),
        push(["requests"], request(1, "q")),
        push(["requests", 0, "response"], md("a ")),
        push(["requests", 0, "response"], md("a"), md("b"), at=0),
        put(["customTitle"], "题"),
        push(["requests"], request(2, "wrong")),
        push(["requests"], request(2, "right", md("ok")), at=1),
        {"kind": 3, "k": ["initialLocation"]},
    ]
    (replayed,), report = log(*entries)
    plain = one(request(1, "q", md("a"), md("b")), request(2, "right", md("ok")), customTitle="题")
    assert shown(replayed) == shown(plain)
    assert (replayed.title, replayed.messages) == (plain.title, plain.messages)
    assert not report.skips


@pytest.mark.parametrize(
    "entry",
    [
        put(["__proto__", "polluted"], 1),
        put(["constructor", "prototype", "x"], 1),
        put(["requests", 10**9], request(9, "far")),
        put(["requests", 10**9, "message"], {}),
        put(["requests", -1], None),
        put(["requests", 1.5], None),
        put(["requests", True], None),
        put(["requests", "0"], None),
        put([], {}),
        put(["a"] * 1000, 1),
        put("requests", []),
        push(["requests"], request(9, "x"), at=-1),
        push(["requests"], request(9, "x"), at="0"),
        push(["requests", 0, "message"], 1),
        {"kind": 2, "k": ["requests"], "v": "text"},
        {"kind": 9, "k": ["requests"]},
        {"kind": True, "k": ["requests"], "v": []},
        {"kind": 0, "v": None},
        {"kind": None},
    ],
)
def test_changes_that_do_not_fit_change_nothing_and_are_counted(entry):
    (conversation,), report = log(base(request(1, "q", md("a"))), entry, put(["customTitle"], "T"))
    assert [(s.reason, s.expected, s.count) for s in report.skips] == [("change that does not fit", False, 1)]
    assert shown(conversation) == [("user", None, "q"), ("assistant", None, "a")]
    assert conversation.title == "T"


def test_a_cut_beyond_the_end_makes_no_room():
    changes = ChatLog()
    assert changes.apply(base(request(1, "q")))
    assert changes.apply(push(["requests"], request(2, "x"), at=10**9))
    assert changes.state is not None
    assert len(changes.state["requests"]) == 2


def test_a_lost_line_shifts_no_answer_to_another_question():
    entries = [
        base(request(1, "A", md("B"))),
        b'{"kind":2,"k":["requests"],"v":[{"requestId":"r2","mess',
        push(["requests", 1, "response"], md("answer of the lost one")),
        push(["requests"], request(3, "C")),
        push(["requests", 2, "response"], md("D")),
    ]
    assert said(*entries) == [("u", "A"), ("a", "B"), ("a", "answer of the lost one"), ("u", "C"), ("a", "D")]


def test_without_its_first_line_a_log_gives_the_requests_that_stand_alone():
    entries = [
        b'{"kind":0,"v":{"version":3,"sess',
        push(["requests"], request(1, "A", md("B"))),
        push(["requests", 0, "response"], md("of whom?")),
        push(["requests"], request(2, "C", md("D"))),
    ]
    (conversation,), report = log(*entries)
    assert [text for _, _, text in shown(conversation)] == ["A", "B", "C", "D"]
    assert conversation.conversation_id == "v1"
    assert [s.reason for s in report.skips] == ["damaged line", "change that does not fit"]


# --- parts of an answer ---


def answer(*parts, **more):
    return one(request(1, "q", *parts, **more))


def test_parts_join_with_nothing_between_and_references_are_names():
    conversation = answer(
        md("See "),
        {"kind": "inlineReference", "inlineReference": {"fsPath": "/s/潮.py", "path": "/s/潮.py", "scheme": "file"}},
        md(", "),
        {"kind": "inlineReference", "inlineReference": {"uri": {"path": "/s/b.py", "scheme": "file"}, "range": {}}},
        md(", "),
        {"kind": "inlineReference", "inlineReference": {"name": "tide()", "location": {"uri": {"path": "/s/b.py"}}}},
        md(" and "),
        {
            "kind": "inlineReference",
            "inlineReference": {"scheme": "https", "authority": "example.org", "path": "/a", "query": "b=1"},
        },
        {"kind": "undoStop", "id": "x"},
        md("."),
        {"kind": "markdownVuln", "content": md(" End")},
        {"kind": "markdownContent", "content": {"value": "!"}},
    )
    assert shown(conversation)[1][2] == "See `潮.py`, `b.py`, `tide()` and https://example.org/a?b=1. End!"


def tool(number, **more):
    return {
        "kind": "toolInvocationSerialized",
        "toolId": "copilot_readFile",
        "toolCallId": f"t{number}",
        "isConfirmed": {"type": 1},
        "isComplete": True,
        "invocationMessage": {"value": "Reading"},
        "pastTenseMessage": "Read a.py",
        **more,
    }


@pytest.mark.parametrize("confirmed", [True, False, None, {"type": 4, "scope": "workspace"}, 1, "yes"])
def test_a_tool_between_words(confirmed):
    conversation = answer(md("and "), tool(1, isConfirmed=confirmed), md("prints."), tool(2), md("Next"), md("s"))
    assert shown(conversation)[1][2] == "and prints.\n\nNexts"
    tools = [(m.message_id, m.kind, m.tool_name, m.text) for m in conversation.messages if m.role == "tool"]
    assert tools == [
        ("r1/t1", "tool_call", "copilot_readFile", "Read a.py"),
        ("r1/t2", "tool_call", "copilot_readFile", "Read a.py"),
    ]


@pytest.mark.parametrize(
    ("more", "call", "result"),
    [
        ({"resultDetails": {"input": '{"q": "x"}', "output": [{"isText": True, "value": "found"}]}}, "q: x", "found"),
        ({"resultDetails": [{"path": "/a.py"}]}, "", ""),
        ({"toolSpecificData": {"commandLine": {"original": "ls -l"}, "terminalCommandOutput": {"text": "a\n"}}}, "ls -l", "a"),
        ({"toolSpecificData": {"kind": "terminal", "command": "ls"}}, "ls", ""),
        ({"toolSpecificData": {"kind": "subagent", "prompt": "count", "result": "9"}}, "count", "9"),
        ({"toolSpecificData": {"todoList": [{"title": "one"}, {"title": "two"}]}}, "one\ntwo", ""),
    ],
)  # fmt: skip
def test_arguments_and_results_of_tools(more, call, result):
    conversation = answer(tool(1, **more))
    rows = [m for m in conversation.messages if m.role == "tool"]
    assert rows[0].text.removeprefix("Read a.py").strip() == call
    assert [m.text for m in rows[1:]] == ([result] if result else [])


def test_the_models_own_rounds_tell_arguments_results_and_thinking():
    leaf = {"type": 2, "text": "def tide()", "lineBreakBefore": False}
    metadata = {
        "toolCallRounds": [
            {
                "toolCalls": [{"id": "t1", "name": "read", "arguments": '{"path": "a.py"}'}],
                "thinking": {"text": ["h", "m"]},
            },
        ],
        "toolCallResults": {
            "t1": {"content": [{"value": {"node": {"children": [leaf, {"children": [{**leaf, "text": "!"}]}]}}}]},
            "t2": {"content": [{"value": "plain"}]},
        },
        "promptTokens": 100,
        "outputTokens": 9,
    }
    conversation = answer(tool(1), tool(2), md("done"), result={"metadata": metadata})
    assert [(m.role, m.text) for m in conversation.messages[1:]] == [
        ("thinking", "h\nm"),
        ("tool", "Read a.py\n\npath: a.py"),
        ("tool", "def tide()!"),
        ("tool", "Read a.py"),
        ("tool", "plain"),
        ("assistant", "done"),
    ]
    assert (conversation.messages[-1].tokens_in, conversation.messages[-1].tokens_out) == (100, 9)


def test_thinking_in_pieces_edits_questions_and_notices():
    conversation = answer(
        {"kind": "thinking", "value": "first ", "id": "a"},
        {"kind": "thinking", "value": ["and ", "more"], "id": "a"},
        {"kind": "thinking", "value": "", "id": "a"},
        {"kind": "thinking", "value": "other", "id": "b"},
        md("I edit it:"),
        md("\n```\n"),
        {"kind": "codeblockUri", "uri": {"path": "/a.py"}, "isEdit": True},
        {
            "kind": "textEditGroup",
            "uri": {"fsPath": "/a.py"},
            "edits": [[{"text": "x = 1\n"}], [{"text": "y = 2\n"}], []],
        },
        md("\n```\n"),
        md("Done"),
        {"kind": "questionCarousel", "questions": [{"title": "Which?"}], "data": {"0": "left"}},
        {"kind": "warning", "content": {"value": "slow"}},
        {"kind": "progressTaskSerialized", "content": {"value": "Searching"}, "progress": []},
        {"kind": "hologram", "content": {"value": "new words"}},
    )
    assert [(m.role, m.text, m.hidden_reason is not None) for m in conversation.messages[1:]] == [
        ("thinking", "first and more", False),
        ("thinking", "other", False),
        ("assistant", "I edit it:\n\nDone", False),
        ("tool", "/a.py\nx = 1\ny = 2", False),
        ("tool", "Which?", False),
        ("tool", "0: left", False),
        ("system", "slow", True),
        ("system", "new words", True),
    ]


def test_a_growing_answer_keeps_its_ids():
    parts = [md("a"), tool(1), {"kind": "thinking", "value": "x"}, md("b"), tool(2)]
    grown = [m.message_id for m in answer(*parts).messages]
    for length in range(1, len(parts)):
        part = {m.message_id for m in answer(*parts[:length]).messages}
        assert part <= set(grown)
    later = [dict(p, resultDetails={"output": "o"}) if p.get("toolId") else p for p in parts]
    assert set(grown) < {m.message_id for m in answer(*later).messages}


# --- questions ---


def test_what_stood_beside_a_question():
    variables = [
        {"kind": "file", "name": "file:潮.py", "value": {"path": "/s/潮.py", "scheme": "file"}},
        {"kind": "paste", "name": "Pasted", "code": "x = 1", "language": "python"},
        {"kind": "image", "name": "shot.png", "mimeType": "image/png", "value": [137, 80]},
        {"kind": "implicit", "name": "b.py", "value": {"uri": {"path": "/s/b.py"}}, "enabled": True},
        {"kind": "implicit", "name": "off", "value": {"path": "/s/c.py"}, "enabled": False},
        {"kind": "workspace", "name": "ws", "value": "INJECTED"},
        {"kind": "promptFile", "name": "rules", "value": {"path": "/r.md"}, "automaticallyAdded": True},
        {"kind": "toolset", "name": "all"},
        {"value": {"fsPath": "C:\\s\\d.py"}},
        7,
    ]
    conversation = one(request(1, "look", md("ok"), variableData={"variables": variables}))
    files = [(f.name, f.type, f.text, f.size) for f in conversation.messages[0].attachment]
    assert files == [
        ("潮.py", "file", None, None),
        ("Pasted", "paste", "x = 1", None),
        ("shot.png", "image/png", None, 2),
        ("b.py", "implicit", None, None),
        ("d.py", None, None, None),
    ]
    (alone, *_) = one(request(1, "", md("ok"), variableData={"variables": variables[:1]})).messages
    assert (alone.text, alone.kind, alone.visible) == ("", "attachment", True)


def test_older_and_other_forms_of_a_request():
    conversation = one(
        request(1, "", md("A"), message="as text"),
        request(2, "", md("B"), message={"parts": [{"text": "in "}, {"text": "parts"}]}),
        request(3, "taken back", md("C"), shouldBeRemovedOnSend={"requestId": "r3"}),
        request(4, "undone", "D", isHidden=True),
        request(5, "from a timer", md("E"), isSystemInitiated=True),
        request(6, "cut", md("F"), isCanceled=True, result={"errorDetails": {"message": "Canceled"}}),
        request(7, "refused", result={"errorDetails": {"message": "Filtered"}}, response=None),
    )
    assert [text for _, _, text in shown(conversation)] == ["as text", "A", "in parts", "B", "E", "cut", "F", "refused"]
    assert [m.text for m in conversation.messages if not m.branch_active] == ["taken back", "C", "undone", "D"]
    assert [m.text for m in conversation.messages if m.hidden_reason] == ["from a timer", "Canceled", "Filtered"]


def test_models_citations_and_the_folder():
    references = [
        {"reference": {"scheme": "https", "external": "https://x.org/a"}},
        {"reference": {"path": "/a.py"}},
        1,
    ]
    code = [{"value": "https://x.org/b", "license": "MIT"}]
    more = {"contentReferences": references, "codeCitations": code}
    auto = {"modelId": "copilot/auto", "result": {"metadata": {"resolvedModel": "m-9"}}}
    manifest = {"folder": "vscode-remote://ssh-remote%2Bbox/home/%E6%B5%B7"}
    conversation = one(
        request(1, "q", md("a"), **more),
        request(2, "q", md("a"), **auto),
        files={"workspaceStorage/0a/workspace.json": manifest},
    )
    assert [m.model for m in conversation.messages if m.role == "assistant"] == ["copilot/m", "m-9"]
    assert [(c.url, c.title) for c in conversation.messages[1].citations] == [
        ("https://x.org/a", None),
        ("https://x.org/b", "MIT"),
    ]
    assert (conversation.project, conversation.model) == ("/home/海", "m-9")
    assert one(request(1, "q"), files={"workspaceStorage/0a/workspace.json": b"[]"}).project is None


def test_an_exported_chat_has_an_id_of_its_own_content():
    def exported(*requests):
        value = {"responderUsername": "GitHub Copilot", "initialLocation": "panel", "requests": list(requests)}
        (conversation,), _ = read(list(READERS), {"Downloads/chat.json": value}, "Downloads/chat.json")
        return conversation

    first = exported(request(1, "A", md("B")))
    grown = exported(request(1, "A", md("B")), request(2, "C", md("D")))
    assert first.conversation_id == grown.conversation_id
    assert exported(request(3, "X")).conversation_id != first.conversation_id


def test_chats_without_messages_are_counted():
    for value, reason, expected in (
        (chat(), "empty chat", True),
        (chat(None, 7), "not a request", True),
        (chat(request(1, "")), "chat without messages", True),
    ):
        conversations, report = read(list(READERS), {FILE: value}, FILE)
        assert not conversations
        assert (report.skips[0].reason, report.skips[0].expected) == (reason, expected)
    conversations, report = log({"kind": 0, "v": {"sessionId": "v1", "requests": {}}})
    assert not conversations
    assert [s.expected for s in report.skips] == [False]
