"""Cursor's databases: both generations of storage, what is beside the words, what is never read, what damage costs."""

import copy
import json
import secrets
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.containers import members_of
from palace_pipeline.exports.cursor import READER
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.model import to_record
from tests.exports.memory_member import shown
from tests.exports.read_database import lines_of, read, reasons, rows
from tests.exports.sqlite_files import cursor, database

FIXTURES = Path(__file__).parent.parent / "fixtures" / "exports"
A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
DAY_MS = 1_773_480_400_000  # 2026-03-14T09:26:40Z


def chat(chat_id, *bubbles, **more):
    """Rows of one chat of the present shape."""
    named = [{"bubbleId": f"b{n}", **bubble} for n, bubble in enumerate(bubbles)]
    head = {
        "_v": 10,
        "composerId": chat_id,
        "createdAt": DAY_MS,
        "fullConversationHeadersOnly": [{"bubbleId": b["bubbleId"], "type": b.get("type")} for b in named],
        **more,
    }
    return {f"composerData:{chat_id}": head, **{f"bubbleId:{chat_id}:{b['bubbleId']}": b for b in named}}


def user(text, **more):
    return {"type": 1, "text": text, **more}


def answer(text, **more):
    return {"type": 2, "text": text, **more}


def one(tmp_path, store, items=None, *more):
    found, report = read(cursor(tmp_path / "state.vscdb", store, items, *more))
    assert len(found) == 1, reasons(report)
    return found[0], report


def test_words_thoughts_and_tools_in_the_order_of_the_list(tmp_path):
    tool = {"name": "read_file", "rawArgs": '{"path": "a.py"}', "result": '{"contents": "x"}', "status": "completed"}
    found, report = one(
        tmp_path,
        chat(
            A,
            user("Lies a.py ⚓"),
            answer("", thinking={"text": "first look", "signature": "s"}),
            answer(
                "I read it.", createdAt="2026-03-14T09:26:45.000Z", tokenCount={"inputTokens": 7, "outputTokens": 3}
            ),
            answer("", toolFormerData=tool, createdAt="2026-03-14T09:26:50.000Z"),
            answer("完成。", createdAt="2026-03-14T09:27:30.000Z"),
            name="  Reading  ",
            modelConfig={"modelName": "some-model"},
            workspaceIdentifier={"id": "x", "uri": {"fsPath": "/home/a/dev/tide"}},
        ),
    )
    assert rows(found) == [
        ("user", "text", None, "Lies a.py ⚓"),
        ("thinking", "thinking", None, "first look"),
        ("assistant", "text", None, "I read it."),
        ("tool", "tool_call", "read_file", "path: a.py"),
        ("tool", "tool_result", "read_file", '{"contents": "x"}'),
        ("assistant", "text", None, "完成。"),
    ]
    assert (found.conversation_id, found.title, found.model) == (A, "Reading", "some-model")
    assert found.project == "/home/a/dev/tide"
    assert found.created_at.isoformat() == "2026-03-14T09:26:40+00:00"
    assert [m.created_at and m.created_at.isoformat()[11:19] for m in found.visible_messages()] == [
        *(None, "09:26:45", "09:27:30")
    ]
    assert (found.visible_messages()[1].tokens_in, found.visible_messages()[1].tokens_out) == (7, 3)
    assert not report.skips


def test_row_order_and_key_order_do_not_matter(tmp_path):
    bubbles = [user("one"), answer("two"), user("three"), answer("four")]
    store = chat(A, *bubbles)
    turned = dict(reversed(store.items()))
    turned[f"composerData:{A}"]["fullConversationHeadersOnly"].reverse()
    found, _ = one(tmp_path, turned)
    assert [m.text for m in found.visible_messages()] == ["four", "three", "two", "one"]


def test_times_of_the_list_stand_in_for_missing_ones_and_nothing_is_made_up(tmp_path):
    store = chat(A, user("a"), answer("b", createdAt="2026-03-14T10:00:00"), user("c", createdAt="rubbish"))
    store[f"composerData:{A}"]["fullConversationHeadersOnly"][0]["createdAt"] = "2026-03-14T09:00:00.000Z"
    found, _ = one(tmp_path, store)
    assert [(m.created_at and m.created_at.hour, m.local_time) for m in found.messages] == [
        *((9, None), (None, "2026-03-14T10:00:00"), (None, None))
    ]


def test_models_are_those_that_were_asked(tmp_path):
    store = chat(
        A,
        user("a", modelInfo={"modelName": "m-1"}),
        answer("b"),
        user("c", modelInfo={"modelName": "default"}),
        answer("d"),
        answer("e", modelInfo={"modelName": "m-2"}),
        modelConfig={"modelName": "default"},
    )
    found, _ = one(tmp_path, store)
    assert [m.model for m in found.messages] == [None, "m-1", None, None, "m-2"]
    assert found.model == "m-1"


def test_what_is_missing_deleted_or_left_over_is_counted(tmp_path):
    store = {
        **chat(A, user("hi"), answer("hello"), answer("gone"), answer("")),
        **chat(B),
        "composerData:deleted": None,
        "composerData:broken": "{not json",
        "bubbleId:deleted:b0": user("of a deleted chat"),
        "bubbleId:unknown:b0": user("of no chat"),
        "bubbleId:unknown:b1": user("of no chat"),
        "composerData:": {"composerId": ""},
        "bubbleId:": user("?"),
    }
    store[f"bubbleId:{A}:b2"] = None
    store[f"bubbleId:{A}:b9"] = "rubbish"
    found, report = one(tmp_path, store)
    assert shown(found) == [("user", None, "hi"), ("assistant", None, "hello")]
    assert reasons(report) == {
        "message that Cursor lists and no longer has": (1, True),
        "damaged message": (1, False),
        "message without content": (1, True),
        "chat without messages": (1, True),
        "chat that was deleted": (1, True),
        "damaged chat": (1, False),
        "message of a chat that was deleted": (2, True),
    }


def test_messages_behind_which_the_chat_went_back_stay_on_another_branch(tmp_path):
    store = chat(A, user("ask"), answer("right"), user("wrong way"), answer("wrong answer"))
    store[f"composerData:{A}"]["fullConversationHeadersOnly"] = [
        {"bubbleId": "b0"},
        {"bubbleId": "b1"},
        {"bubbleId": 7},
    ]
    found, _ = one(tmp_path, store)
    assert [(m.text, m.branch_active) for m in found.messages] == [
        *(("ask", True), ("right", True), ("wrong way", False), ("wrong answer", False))
    ]


def test_a_chat_that_lost_its_list_is_read_by_time(tmp_path):
    store = chat(A, user("second", createdAt="2026-03-14T09:02:00Z"), answer("third", createdAt="2026-03-14T09:03:00Z"))
    store[f"bubbleId:{A}:b7"] = user("first", createdAt="2026-03-14T09:01:00Z")
    store[f"composerData:{A}"]["fullConversationHeadersOnly"] = {"odd": 1}
    found, _ = one(tmp_path, store)
    assert [m.text for m in found.visible_messages()] == ["first", "second", "third"]


def test_older_shapes_hold_the_messages_in_the_chat(tmp_path):
    inline = {"composerId": A, "conversation": [user("old ask", bubbleId="x"), answer("old answer", bubbleId="y")]}
    mapped = {
        "composerId": B,
        "fullConversationHeadersOnly": ["m1", "m2"],
        "conversationMap": {"m2": answer("mapped answer"), "m1": user("mapped ask")},
    }
    found, _ = read(
        cursor(tmp_path / "state.vscdb", {f"composerData:{A}": inline, f"composerData:{B}": json.dumps(mapped)})
    )
    assert {c.conversation_id: [m.text for m in c.visible_messages()] for c in found} == {
        A: ["old ask", "old answer"],
        B: ["mapped ask", "mapped answer"],
    }


def test_chats_of_before_2024_are_read_by_two_keys_and_no_other(tmp_path):
    secret = secrets.token_hex(16)
    tabs = {
        "tabs": [
            {
                "tabId": "tab-1",
                "chatTitle": "Legacy",
                "lastSendTime": DAY_MS,
                "bubbles": [
                    {"type": "user", "initText": json.dumps(lexical("how do", " I retry?"))},
                    {"type": "ai", "rawText": "Back off.", "modelType": "gpt-4"},
                ],
            },
            {"bubbles": [{"type": "user", "text": "no id"}]},
        ]
    }
    composers = {
        "allComposers": [
            {"composerId": A, "name": "In the workspace", "conversation": [user("w ask"), answer("w answer")]},
            {"composerId": B, "name": "only an index entry"},
        ]
    }
    path = cursor(
        tmp_path / "workspaceStorage" / "x" / "state.vscdb",
        {},
        {
            "workbench.panel.aichat.view.aichat.chatdata": tabs,
            "composer.composerData": json.dumps(composers),
            "composer.composerData2": {"allComposers": [{"composerId": B, "conversation": [user(secret)]}]},
            "cursorAuth/accessToken": secret,
            "aiService.prompts": [{"text": secret}],
        },
    )
    (path.parent / "workspace.json").write_text('{"folder": "file:///home/a/my%20project"}')
    found, _ = read(path)
    assert [(c.title, [m.text for m in c.visible_messages()]) for c in found] == [
        ("Legacy", ["how do I retry?", "Back off."]),
        (None, ["no id"]),
        ("In the workspace", ["w ask", "w answer"]),
    ]
    assert [c.conversation_id for c in found][::2] == ["tab-1", A]
    assert found[0].messages[1].model == "gpt-4"
    assert {c.project for c in found} == {"/home/a/my project"}
    assert secret.encode() not in lines_of(path)


def lexical(*texts):
    spans = [{"type": "text", "text": text} for text in texts]
    return {"root": {"children": [{"type": "paragraph", "children": spans}, {"type": "paragraph", "children": []}]}}


def test_an_editor_without_chats_is_no_damage(tmp_path):
    found, report = read(cursor(tmp_path / "state.vscdb", {}, {"cursorAuth/accessToken": "x"}))
    assert found == []
    assert reasons(report) == {"editor state without chats": (1, True)}
    assert lines_of(tmp_path / "state.vscdb") == b""


def test_secrets_and_copies_beside_the_chats_are_not_kept(tmp_path):
    secret = secrets.token_hex(16)
    store = {
        **chat(
            A,
            user(
                "hi", attachedCodeChunks=[{"lines": [secret]}], gitDiffs=[secret], richText=json.dumps(lexical(secret))
            ),
            answer("hello", toolFormerData={"name": "x", "additionalData": {"k": secret}}),
            blobEncryptionKey=secret,
            speculativeSummarizationEncryptionKey=secret,
            originalFileStates={"a": secret},
            text=secret,
        ),
        "agentKv:blob:1": {"role": "user", "content": secret},
        f"checkpointId:{A}:1": {"files": [secret]},
        "bubbleIdX:1": {"text": secret},
    }
    path = cursor(tmp_path / "state.vscdb", store, {"cursorAuth/refreshToken": secret})
    found, _ = read(path)
    assert len(found) == 1
    assert secret.encode() not in lines_of(path)


def test_sub_agents_are_kept_apart(tmp_path):
    store = {
        **chat(A, user("a"), answer("b")),
        **chat(B, user("look"), answer("found"), subagentInfo={"parentComposerId": A}),
        **chat("task-1", user("t"), answer("u")),
        **chat("listed", user("l"), answer("m")),
        **chat("best", user("n"), answer("o"), isBestOfNSubcomposer=True, subagentInfo={"parentComposerId": A}),
    }
    heads = (
        "CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, isSubagent INTEGER, value TEXT)",
        """INSERT INTO composerHeaders VALUES ('listed', 1, '{"name": "Named in the list"}'), (NULL, 1, NULL)""",
    )
    found, _ = read(cursor(tmp_path / "state.vscdb", store, None, *heads))
    assert {c.conversation_id: (c.origin, c.parent_conversation_id, c.title) for c in found} == {
        A: ("person", None, None),
        B: ("subagent", A, None),
        "task-1": ("subagent", None, None),
        "listed": ("subagent", None, "Named in the list"),
        "best": ("person", None, None),
    }


def test_an_answer_that_is_being_written_waits(tmp_path):
    store = chat(A, user("ask"), answer("the beginning of"), generatingBubbleIds=["b1", 7])
    found, report = one(tmp_path, store)
    assert shown(found) == [("user", None, "ask")]
    assert reasons(report) == {"answer that is still being written": (1, True)}


def test_files_sources_and_what_the_program_shows(tmp_path):
    context = {
        "fileSelections": [{"uri": {"fsPath": "/dev/a b.py"}}, {"uri": {"path": "/dev/a b.py"}}],
        "selections": [{"uri": {"path": "/dev/c.py"}, "text": "x = 1"}],
        "terminalSelections": [{"text": "$ make"}],
        "folderSelections": [{"relativePath": "src/lib/"}],
        "selectedImages": [{"path": "/tmp/shot.png", "uuid": "u"}],
    }
    store = chat(
        A,
        user("see", context=context),
        user("", images=[{"uuid": "u"}]),
        answer("so", webReferences=[{"title": "T", "url": "https://example.org/a"}, {"url": "https://example.org/a"}]),
        answer("notice", isDisplayOnly=True),
        answer("", codeBlocks=[{"content": "print(1)", "languageId": "python"}]),
        {"type": 9, "text": "of an unknown kind"},
        answer("", errorDetails={"message": "x"}),
    )
    found, report = one(tmp_path, store)
    first, second, third, code = found.visible_messages()
    assert [(f.name, f.type, f.text) for f in first.attachment] == [
        ("shot.png", "image", None),
        ("a b.py", "file", None),
        ("c.py", "file", "x = 1"),
        ("lib", "folder", None),
        (None, "terminal", "$ make"),
    ]
    assert (second.kind, second.text, second.attachment[0].type) == ("attachment", "", "image")
    assert [(c.url, c.title) for c in third.citations] == [("https://example.org/a", "T")]
    assert code.text == "```python\nprint(1)\n```"
    hidden = {m.text: (m.role, m.hidden_reason) for m in found.messages if m.hidden_reason}
    assert hidden == {
        "notice": ("assistant", "shown by the program only"),
        "of an unknown kind": ("system", "unknown role"),
    }
    assert dict(report.unknown) == {"bubble type:9": 1}


def test_equal_messages_keep_apart_and_ids_do_not_depend_on_what_follows(tmp_path):
    short, _ = one(tmp_path / "1", chat(A, user("go on"), answer("ok"), user("go on")))
    long, _ = one(tmp_path / "2", chat(A, user("go on"), answer("ok"), user("go on"), answer("ok"), user("bye")))
    ids = [m.message_id for m in long.messages]
    assert len(set(ids)) == 5
    assert ids[:3] == [m.message_id for m in short.messages]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    store = {**chat(A, user("a"), answer("b")), **chat(B, user("c"), answer("d"))}
    first = cursor(tmp_path / "1" / "state.vscdb", store)
    second = cursor(tmp_path / "2" / "state.vscdb", dict(reversed(store.items())), {"other": "x"})
    assert sorted(lines_of(first).split(b"\n")) == sorted(lines_of(second).split(b"\n"))


def test_a_hostile_database_is_refused_with_a_reason(tmp_path):
    path = database(
        tmp_path / "state.vscdb",
        "CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)",
        "CREATE VIEW cursorDiskKV AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT 'composerData:' || x AS key, x AS value FROM n",
    )
    found, report = read(path)
    assert found == []
    assert reasons(report) == {"editor state without chats": (1, True)}
    odd = database(
        tmp_path / "odd" / "state.vscdb", "CREATE TABLE cursorDiskKV (key TEXT PRIMARY KEY, value) WITHOUT ROWID"
    )
    assert reasons(read(odd)[1]) == {"tables of this database have an unknown shape": (1, False)}
    other = database(tmp_path / "other" / "state.vscdb", "CREATE TABLE cursorDiskKV (name TEXT, text TEXT)")
    assert reasons(read(other)[1]) == {"editor state without chats": (1, True)}


SAMPLE = {
    **chat(
        A,
        user(
            "ask", context={"fileSelections": [{"uri": {"path": "/a"}}]}, images=[{"path": "i.png"}], createdAt=DAY_MS
        ),
        answer(
            "answer",
            thinking={"text": "t"},
            toolFormerData={"name": "n", "rawArgs": "{}", "result": "r"},
            webReferences=[{"url": "u", "title": "t"}],
            tokenCount={"inputTokens": 1},
            modelInfo={"modelName": "m"},
            richText=json.dumps(lexical("x")),
        ),
        answer("", codeBlocks=[{"content": "c", "languageId": "l"}]),
        name="N",
        conversation=[user("inline", bubbleId="i")],
        conversationMap={"m": answer("mapped")},
        subagentInfo={"parentComposerId": "p"},
        modelConfig={"modelName": "m"},
        generatingBubbleIds=["g"],
    ),
    **chat(B, user("untouched"), answer("as it was")),
}
ODD = [None, True, -1, 1.5, 10**30, "", "text", "\ud800", [], [[]], {}, {"a": []}, [None, 1, {"type": 1}], "[" * 500]


def places(value, path=()):
    """Every place in a value where something can be put."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


PLACES = [path for path in places(SAMPLE) if B not in str(path[0])]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD)), min_size=1, max_size=4))
def test_any_type_anywhere_costs_at_most_its_chat(tmp_path, changes):
    store = copy.deepcopy(SAMPLE)
    for path, value in changes:
        at = store
        for key in path[:-1]:
            if not isinstance(at, dict | list) or (isinstance(at, list) and not isinstance(key, int)):
                break
            at = at.get(key) if isinstance(at, dict) else at[key] if key < len(at) else None
        if isinstance(at, dict) or (isinstance(at, list) and isinstance(path[-1], int) and path[-1] < len(at)):
            at[path[-1]] = copy.deepcopy(value)
    clean = {key: value.encode("utf-8", "replace") if isinstance(value, str) else value for key, value in store.items()}
    (tmp_path / "state.vscdb").unlink(missing_ok=True)
    found, _ = read(cursor(tmp_path / "state.vscdb", clean))
    untouched = next(c for c in found if c.conversation_id == B)
    assert shown(untouched) == [("user", None, "untouched"), ("assistant", None, "as it was")]
    said = {"ask", "answer", "inline", "mapped", "x", "text", "[" * 500, "\ufffd", ""}
    for conversation in found:
        to_record(conversation)
        if conversation is not untouched:
            assert {m.text for m in conversation.visible_messages() if "```" not in m.text} <= said


def test_only_its_own_files_are_taken_for_it():
    mine = set()
    for one_member in members_of(FIXTURES, Report):
        try:
            head = head_of(one_member)
        except MemberError:
            continue
        if READER.detect(head):
            mine.add(one_member.path.split("/")[0])
    assert mine == {"29-cursor-vscdb"}
