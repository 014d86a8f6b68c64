"""Claude Code logs: damage of every kind, growth, and records of any shape."""

import json

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import text as text_module
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.claude_code import READER
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.model import message_hash, to_record
from tests.exports.claude_code_lines import FILE, SESSION, answer, call, lines, result, user
from tests.exports.memory_member import MemoryMember, read, shown

# --- damage ---


def test_damage_is_counted_with_its_line_and_the_rest_is_read(monkeypatch):
    monkeypatch.setattr(text_module, "MAX_LINE_BYTES", 4096)
    whole = lines(user("u2", "a1", "C"))[:-1]
    data = lines(
        b"\xef\xbb\xbf" + lines(user("u1", None, "A\u2028one\u0085message"))[:-1] + b"\r",
        b"\0" * 100,
        lines(answer("a1", "u1", "bytes: \ud83d".encode("utf-8", "replace").decode()))[:-1] + b"\0" * 64,
        b'["no","record"]',
        b"null",
        b"",
        b'{"type":"user","x":"' + b"y" * 5000 + b'"}',
        whole[:-20],
        b'{"type":"attachment","attachment":{"type":"queued_command","prompt":"cut' + whole,
        b'{"a":' * 100_000,
        {"type": "user", "sessionId": SESSION, "uuid": "x"},
    )
    data += whole[:40]
    conversations, report = read([READER], {FILE: data}, FILE)
    assert [text for _, _, text in shown(conversations[0])] == ["A\u2028one\u0085message", "bytes: ?", "C"]
    places = [(s.reason, s.where.removeprefix(FILE + ": ")) for s in report.skips if not s.expected]
    assert places == [
        ("damaged line", "line 2"),
        ("line is no record", "line 4"),
        ("line is no record", "line 5"),
        ("line too long (more than 128 MiB)", "line 7"),
        ("damaged line", "line 8"),
        ("damaged line", "line 9"),
        ("line too long (more than 128 MiB)", "line 10"),
        ("record without a message", "line 11"),
        ("damaged line", "line 12"),
    ]


def test_lines_nested_beyond_measure_are_damage():
    data = lines(b'{"a":' * 50_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, user("u1", None, "A"))
    (conversation,), report = read([READER], {FILE: data}, FILE)
    assert shown(conversation) == [("user", None, "A")]
    assert [s.where for s in report.skips] == [f"{FILE}: line 1", f"{FILE}: line 2"]


def test_lone_surrogates_and_nul_become_valid_text():
    escaped = json.dumps(user("u1", None, "bytes: \udcb2 and nul: \0.")).encode()
    tool = json.dumps(answer("a1", "u1", [call("t1", text="\ud800", deep={"a": "\ud800"})])).encode()
    (conversation,), _ = read([READER], {FILE: lines(escaped, tool)}, FILE)
    assert [m.text for m in conversation.messages] == [
        "bytes: \ufffd and nul: .",
        'text: \ufffd\ndeep: {"a":"\ufffd"}',
    ]
    orjson.loads(to_record(conversation))


def test_a_file_that_breaks_off_while_it_is_read_gives_what_came_before():
    class Breaking(MemoryMember):
        def open(self):
            stream = super().open()
            readline = stream.readline

            class Half:
                def __enter__(self):
                    return self

                def __exit__(self, *_):
                    return None

                def read(self, size):
                    return stream.read(size)

                def readline(self, size):
                    if stream.tell() > 900:
                        raise MemberError("its compressed data is cut")
                    return readline(size)

            return Half()

    data = lines(*(user(f"u{i}", None if i == 0 else f"u{i - 1}", str(i)) for i in range(20)))
    report = Report(FILE)
    (conversation,) = READER.read(Breaking({FILE: data}, FILE), report)
    assert 0 < len(conversation.messages) < 20
    assert [(s.reason, s.unit) for s in report.skips] == [("its compressed data is cut", "file")]


# --- what always holds ---

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0\r<")
WORDS = st.text(CHARACTERS, min_size=1, max_size=12).filter(lambda s: s.strip() and s.strip()[0] not in "[{")


@st.composite
def chats(draw):
    """(records of a chat without forks, index of the last record of each answer)."""
    records, ends, parent = [], {}, None
    for turn in range(draw(st.integers(1, 5))):
        uuid = f"u{turn}"
        records.append(user(uuid, parent, f"q{turn} " + draw(WORDS)))
        parent = uuid
        for step in range(draw(st.integers(0, 3))):
            kinds = draw(st.lists(st.sampled_from(["thinking", "text", "tool"]), min_size=1, max_size=4))
            for place, kind in enumerate(kinds):
                name = f"{turn}.{step}.{place}"
                block = {
                    "thinking": {"type": "thinking", "thinking": f"t{name} " + draw(WORDS)},
                    "text": {"type": "text", "text": f"a{name} " + draw(WORDS)},
                    "tool": call(f"call{name}", command=draw(WORDS)),
                }[kind]
                records.append(answer(f"a{name}", parent, [block], f"m{turn}.{step}", {"output_tokens": place}))
                parent = f"a{name}"
                if kind == "tool" and draw(st.booleans()):
                    records.append(user(f"r{name}", parent, result(f"call{name}", f"out{name} " + draw(WORDS))))
                    parent = f"r{name}"
            ends[f"m{turn}.{step}"] = len(records)
    return records, ends


def damaged(line, way):
    return {
        "cut": line[: len(line) // 2],
        "nul": b"\0" * 50,
        "junk": b"\xff\xfe" + line[1:],
        "list": b"[1, 2]",
        "glued": line[: len(line) // 3] + line[: len(line) // 2],
        "gone": b"",
    }[way]


def texts_of(record):
    content = record["message"]["content"]
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        yield from (block.get(key) for key in ("text", "thinking", "content") if block.get(key))


@settings(max_examples=80)
@given(chats(), st.dictionaries(st.integers(0, 60), st.sampled_from(["cut", "nul", "junk", "list", "glued", "gone"])))
def test_whatever_lines_are_damaged_the_others_are_all_there_and_nothing_is_made_up(chat, harm):
    records, _ = chat
    written = [json.dumps(record).encode() for record in records]
    broken = [damaged(line, harm[at]) if at in harm else line for at, line in enumerate(written)]
    conversations, report = (
        read([READER], {FILE: b"\n".join(broken) + b"\n"}, FILE)
        if any(at not in harm for at in range(len(records)))
        else ([], Report(FILE))
    )
    rows = [m for c in conversations for m in c.messages]
    everything = "\n".join(text for record in records for text in texts_of(record))
    left = [text for at, record in enumerate(records) if at not in harm for text in texts_of(record)]
    pieces = {piece for m in rows if m.kind != "tool_call" for piece in m.text.split("\n\n")}
    assert all(text in "\n\n".join(m.text for m in rows) for text in left)
    assert all(m.branch_active and m.hidden_reason is None for m in rows)
    assert all(line in everything for piece in pieces for line in piece.split("\n"))
    assert len({m.message_id for m in rows}) == len(rows)
    counted = [s for s in report.skips if not s.expected]
    assert len(counted) == sum(way != "gone" for at, way in harm.items() if at < len(records)) or not conversations


@given(chats(), st.data())
@settings(max_examples=60)
def test_a_log_that_grows_keeps_its_ids_and_its_finished_messages(chat, data):
    records, ends = chat
    written = lines(*records)
    length = data.draw(st.integers(1, len(records)))
    cut = len(lines(*records[:length])) + data.draw(st.integers(0, 30))
    (full,), _ = read([READER], {FILE: written}, FILE)
    (part,), _ = read([READER], {FILE: written[:cut]}, FILE)
    whole = {m.message_id: m for m in full.messages}
    assert full.conversation_id == part.conversation_id
    assert [m.message_id for m in part.messages] == [m.message_id for m in full.messages][: len(part.messages)]
    unfinished = {name.removeprefix("m") for name, end in ends.items() if end > length}
    for message in part.messages:
        if ".".join(message.message_id[1:].split(".")[:2]) not in unfinished:
            assert message_hash(message) == message_hash(whole[message.message_id])


KEYS = ["type", "uuid", "parentUuid", "message", "sessionId", "timestamp", "attachment", "isSidechain", "forkedFrom"]
INNER_KEYS = ["type", "text", "content", "id", "name", "input", "source", "usage", "message", "tool_use_id", "prompt"]
WORDS_OF_THE_FORMAT = ["user", "assistant", "text", "tool_use", "tool_result", "queued_command", "a", "b"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS_OF_THE_FORMAT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER_KEYS), inner, max_size=4),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES), min_size=1, max_size=8))
@settings(max_examples=40)
def test_no_record_is_too_odd(records):
    report = Report(FILE)
    conversations = list(READER.read(MemoryMember({FILE: lines(*records)}, FILE), report))
    for conversation in conversations:
        ids = [m.message_id for m in conversation.messages]
        assert len(ids) == len(set(ids))
        to_record(conversation)
