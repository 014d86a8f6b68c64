"""Each public bug report of `bug_cases.toml` is tried: on a fixture, or on what a test in here makes."""

from __future__ import annotations

import base64
import io
import json
import struct
import tracemalloc
import unicodedata
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from palace_pipeline.exports import text as text_module
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.engine import identify, read_member
from palace_pipeline.exports.parse import parse_path
from palace_pipeline.exports.splitter import split_array
from palace_pipeline.model import Conversation
from palace_pipeline.transcripts.page_path import page_folder, page_name
from tests.exports import claude_code_lines as cc
from tests.exports import codex_lines as codex
from tests.exports.bug_cases import DOCUMENT, FIXTURES, BugCase, functions_of, rendered, table
from tests.exports.memory_member import MemoryMember, export, shown
from tests.ingest.exports_for_tests import chat

CASES = table()
Found = tuple[list[Conversation], Report]


def read(content: Any, path: str, **beside: Any) -> Found:
    """A file as the ingest reads it, and what its reader said."""
    files = export({path: content, **{name.replace("__", "/"): value for name, value in beside.items()}})
    member, report = MemoryMember(files, path), Report(path)
    known = identify(member, report)
    return (list(read_member(member, *known, report)) if known else []), report


def texts(found: Found) -> list[str]:
    """What people see of all conversations, in order."""
    return [text for conversation in found[0] for _, _, text in shown(conversation)]


def reasons(found: Found) -> list[str]:
    return [skip.reason for skip in found[1].skips]


def fixture(number: str, path: str) -> bytes:
    folder = next(FIXTURES.glob(f"{number}*-*"))
    return (folder / path).read_bytes()


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_document_is_the_table() -> None:
    assert DOCUMENT.read_text("utf-8") == rendered(), "python -m tests.exports.bug_cases"


def test_every_report_is_there_once() -> None:
    assert [case.id for case in CASES] == [f"B{number:03}" for number in range(1, 142)]
    assert all(case.url.startswith("https://github.com/") and case.wrong and case.right for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_report_is_tried(case: BugCase) -> None:
    """By fixtures that are there (`test_fixtures.py` compares their right answers) or by tests that are there."""
    assert case.fixtures or case.tests
    assert len(case.folders()) >= len(case.fixtures)
    assert all((folder / "expected.json").exists() for folder in case.folders())
    for file, name in case.places():
        assert name in functions_of(file) if name else functions_of(file)


def test_nothing_is_tried_for_nobody() -> None:
    named = {name for case in CASES for file, name in case.places() if file.endswith("test_bug_cases.py")}
    tried = functions_of("tests/exports/test_bug_cases.py")
    own = {"test_the_document_is_the_table", "test_nothing_is_tried_for_nobody"}
    assert named == {name for name in tried - own if not name.startswith("test_every_report")}


# --- ChatGPT and Claude.ai --------------------------------------------------------------------------------------------


def test_a_known_format_that_gives_nothing_is_an_error() -> None:
    titles = [{"title": f"Chat {n}", "create_time": 1.0, "mapping": {"a": {"id": "a", "message": 7}}} for n in range(3)]
    found = read(titles, "conversations.json")
    assert not found[0]
    assert any(not skip.expected for skip in found[1].skips)


def test_chains_of_ten_thousand_nodes() -> None:
    nodes = {
        f"n{i}": {
            "id": f"n{i}",
            "parent": f"n{i - 1}" if i else None,
            "children": [f"n{i + 1}"],
            "message": {
                "id": f"n{i}",
                "author": {"role": "user" if i % 2 == 0 else "assistant"},
                "content": {"content_type": "text", "parts": [f"text {i}"]},
            },
        }
        for i in range(10_000)
    }
    found = read([{"id": "c", "mapping": nodes, "current_node": "n9999"}], "conversations.json")
    assert texts(found) == [f"text {i}" for i in range(10_000)]
    records = [cc.user("u0", None, "text 0")]
    records += [(cc.user if i % 2 == 0 else cc.answer)(f"u{i}", f"u{i - 1}", f"text {i}") for i in range(1, 10_000)]
    assert texts(read(cc.lines(*records), cc.FILE)) == [f"text {i}" for i in range(10_000)]


class Generated(io.RawIOBase):
    """A stream of pieces that are made when they are read; counts what was taken."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left, self.taken = pieces, b"", 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left and (piece := next(self._pieces, None)) is not None:
            self._left = piece
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        self.taken += count
        return count


class GeneratedMember:
    """A member too large to lie anywhere: made piece by piece each time it is opened."""

    size = 0

    def __init__(self, path: str, make: Any) -> None:
        self.path, self._make = path, make

    def open(self) -> BinaryIO:
        return io.BufferedReader(Generated(self._make()), 1 << 16)

    def near(self, relative: str) -> None:
        return None


def one_line(chats: int, letters: int) -> Iterator[bytes]:
    yield b"["
    for number in range(chats):
        yield (b", " if number else b"") + json.dumps(chat(f"c{number}", "x" * letters, "ok")).encode()
    yield b"]"


def streamed(member: GeneratedMember) -> tuple[int, int]:
    """(conversations, peak bytes of Python objects) of reading a member one conversation at a time."""
    report = Report(member.path)
    known = identify(member, report)
    assert known is not None
    tracemalloc.start()
    count = sum(1 for _ in read_member(member, *known, report))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not report.skips
    return count, peak


def test_a_long_line_is_read_in_pieces() -> None:
    count, peak = streamed(GeneratedMember("conversations.json", lambda: one_line(600, 50_000)))
    assert count == 600
    assert peak < 16 * 2**20  # of 30 MB


@pytest.mark.slow
def test_a_hundred_megabytes_on_one_line() -> None:
    count, peak = streamed(GeneratedMember("conversations.json", lambda: one_line(20_000, 6_000)))
    assert count == 20_000
    assert peak < 16 * 2**20


def test_blocks_may_end_anywhere() -> None:
    values = [{"a": 'quote " and \\ and 🍞 and [ {'}, {"b": ["\u2028", "漢字"]}, 7, {"c": {}}]
    for ascii_only in (True, False):
        data = json.dumps(values, ensure_ascii=ascii_only).encode()
        for size in range(1, 24):
            split = [json.loads(raw) for _, raw in split_array(io.BytesIO(data), None, size)]
            assert split == values


def test_a_claude_chat_needs_only_its_messages() -> None:
    bare = [{"chat_messages": [{"sender": "human", "text": "hi"}, {"sender": "assistant", "text": "hello"}]}]
    found, again = read(bare, "conversations.json"), read(bare, "elsewhere.json")
    assert texts(found) == ["hi", "hello"]
    assert found[0][0].conversation_id == again[0][0].conversation_id != ""


# --- agents -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_separators_in_a_text_are_text(mark: str) -> None:
    assert texts(read(cc.lines(cc.user("u1", None, f"a{mark}b")), cc.FILE)) == [f"a{mark}b"]


def test_copies_without_a_parent_do_not_tear_the_tree() -> None:
    said = [cc.user("u1", None, "one"), cc.answer("a1", "u1", "two"), cc.user("u2", "a1", "three")]
    copies = [{**record, "parentUuid": None} for record in said]
    for records in (said + copies, copies + said, [said[0], copies[0], said[1], copies[1], said[2]]):
        assert texts(read(cc.lines(*records), cc.FILE)) == ["one", "two", "three"]


@pytest.mark.parametrize(
    "parents",
    [("u1", "u1"), ("u2", "u1"), ("u2", "u2"), ("nobody", "u2")],
    ids=["itself", "each other", "last", "lost"],
)
def test_circles_of_parents_end(parents: tuple[str, str]) -> None:
    found = read(cc.lines(cc.user("u1", parents[0], "one"), cc.answer("u2", parents[1], "two")), cc.FILE)
    assert sorted(texts(found)) == ["one", "two"]


def test_picture_lines_leave_no_data() -> None:
    data = base64.b64encode(bytes(300_000)).decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    found = read(cc.lines(cc.user("u1", None, [{"type": "text", "text": "look"}, picture])), cc.FILE)
    assert texts(found) == ["look"]
    (row,) = found[0][0].messages
    assert [file.type for file in row.attachment] == ["image/png"]
    assert data[:80] not in repr(found[0])


def test_a_long_log_is_read_line_by_line() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 1_000_000}}

    def lines() -> Iterator[bytes]:
        for number in range(30):
            parent = f"u{number - 1}" if number else None
            yield cc.lines(cc.user(f"u{number}", parent, [{"type": "text", "text": f"look {number}"}, picture]))

    count, peak = streamed(GeneratedMember(cc.FILE, lines))
    assert count == 1
    assert peak < 16 * 2**20  # of 30 MB


def test_a_line_that_does_not_end_is_read_past(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "MAX_LINE_BYTES", 10_000)
    endless = cc.lines(cc.user("u2", "u1", "x" * 50_000)).rstrip(b"\n")
    found = read(
        cc.lines(cc.user("u1", None, "one")) + endless + b"\n" + cc.lines(cc.answer("a1", "u1", "two")), cc.FILE
    )
    assert texts(found) == ["one", "two"]
    assert len(reasons(found)) == 1


def test_a_tool_result_of_two_megabytes() -> None:
    calls = cc.answer("a1", "u1", [cc.call("t1", command="cat")])
    records = [cc.user("u1", None, "go"), calls, cc.user("u2", "a1", cc.result("t1", "y" * 2_000_000))]
    found = read(cc.lines(*records, cc.answer("a2", "u2", "done")), cc.FILE)
    assert texts(found) == ["go", "done"]
    assert [len(m.text) for m in found[0][0].messages if m.kind == "tool_result"] == [2_000_000]


def test_a_rollout_of_response_items_only() -> None:
    records = [codex.header(), codex.message(1, "user", "ask"), codex.message(2, "assistant", "answer")]
    assert texts(read(codex.lines(*records), codex.FILE)) == ["ask", "answer"]


def test_an_envelope_before_a_prompt() -> None:
    envelope = "<recommended_plugins>\n- one\n</recommended_plugins>\nReal prompt"
    found = read(codex.lines(codex.header(), codex.message(1, "user", envelope), codex.says(2, "ok")), codex.FILE)
    assert texts(found) == ["Real prompt", "ok"]


def test_instructions_without_their_end() -> None:
    injected = "# AGENTS.md instructions for /home/sample\n\nnever say this"
    records = [codex.header(), codex.message(1, "user", injected), codex.message(2, "user", "ask"), codex.says(3, "ok")]
    found = read(codex.lines(*records), codex.FILE)
    assert texts(found) == ["ask", "ok"]
    assert found[0][0].title != injected


def test_a_picture_in_a_rollout() -> None:
    data = "data:image/png;base64," + base64.b64encode(bytes(90_000)).decode()
    content = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": data}]
    records = [codex.header(), codex.item(1, "message", role="user", content=content), codex.says(2, "seen")]
    found = read(codex.lines(*records), codex.FILE)
    assert texts(found) == ["look", "seen"]
    assert len(found[0][0].messages[0].attachment) == 1
    assert data[40:120] not in repr(found[0])


def test_texts_can_always_be_written() -> None:
    lone = "\\udeaa"
    log = cc.lines(cc.user("u1", None, "x")).replace(b'"x"', f'"half {lone} pair"'.encode())
    found = read(log, cc.FILE)
    assert texts(found)[0].encode() == "half \ufffd pair".encode()


def test_a_stub_beside_good_sessions(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(cc.lines(cc.user("u1", None, "hi"), cc.answer("a1", "u1", "hello")))
    (tmp_path / "stub.jsonl").write_text('{"type":"turn_ended"}\n')
    answer = parse_path(tmp_path)
    assert [m["text"] for c in answer["conversations"] for m in c["messages"]] == ["hi", "hello"]
    assert any("stub.jsonl" in skip["where"] for skip in answer["skipped"])


# --- chat programs ----------------------------------------------------------------------------------------------------


def test_lines_of_messages_without_parents() -> None:
    lines = [
        {"object": "thread.message", "role": role, "content": [{"type": "text", "text": {"value": said}}]}
        for role, said in [("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four")]
    ]
    found = read("\n".join(map(json.dumps, lines)), "threads/t1/messages.jsonl")
    assert [[text for _, _, text in shown(c)] for c in found[0]] == [["one", "two", "three", "four"]]


def test_a_file_in_a_tools_output() -> None:
    output = {"type": "function_call_output", "call_id": "t", "output": [{"type": "input_file", "filename": "a.pdf"}]}
    turns = [
        {"role": "user", "content": "read it"},
        {"role": "assistant", "content": [output, {"type": "text", "text": "ok"}]},
    ]
    found = read({"messages": turns}, "chat.json")
    assert texts(found) == ["read it", "ok"]
    assert "a.pdf" in [file.name for m in found[0][0].messages for file in m.attachment]


# --- people's chats ---------------------------------------------------------------------------------------------------

USERS = [{"id": "U1", "name": "ines", "profile": {"display_name": "Inès"}}]


def slack(record: dict[str, Any]) -> list[tuple[str, str | None, str]]:
    first = {"type": "message", "user": "U1", "text": "hi", "ts": "1773480400.000100"}
    channels = [{"id": "C1", "name": "harbour"}]
    records = [first, {"type": "message", "ts": "1773480500.000100", **record}]
    found = read(records, "harbour/2026-03-14.json", **{"channels.json": channels, "users.json": USERS})
    said = [m for c in found[0] for m in shown(c)]
    assert said[0] == ("user", "Inès", "hi")
    return said[1:] or [("skipped", None, reason) for reason in reasons(found)]


@pytest.mark.parametrize(
    ("record", "right"),
    [
        ({"subtype": "slackbot_response", "user": "USLACKBOT", "text": "Lunch!"}, ("bot", None, "Lunch!")),
        ({"subtype": "message_changed", "message": {"user": "U1", "text": "new"}}, ("user", "Inès", "new")),
        ({"user": "U1", "text": "reply", "thread_ts": "1000000000.000100"}, ("user", "Inès", "reply")),
        ({"user": "U1", "text": "file", "files": [{"id": "F", "mode": "tombstone"}]}, ("user", "Inès", "file")),
        ({}, ("skipped", None, "empty message")),
    ],
    ids=["automatic reply", "changed without user", "reply without root", "file without type", "no text"],
)
def test_slack_records_of_every_odd_kind(record: dict[str, Any], right: tuple[str, str | None, str]) -> None:
    (got,) = slack(record)
    assert (got[0], got[2]) == (right[0], right[2])
    assert right[1] is None or got[1] == right[1]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("name", ["日本語チャンネル", "général", "канал", "موضوع"])
def test_channels_of_any_script(name: str, form: str, tmp_path: Path) -> None:
    folder = unicodedata.normalize(form, name)  # pyright: ignore[reportArgumentType]
    (tmp_path / folder).mkdir()
    message = {"type": "message", "user": "U1", "text": "hi", "ts": "1773480400.000100"}
    (tmp_path / folder / "2026-03-14.json").write_text(json.dumps([message]))
    (tmp_path / "channels.json").write_text(json.dumps([{"id": "C7", "name": unicodedata.normalize("NFC", name)}]))
    (tmp_path / "users.json").write_text(json.dumps(USERS))
    (conversation,) = parse_path(tmp_path)["conversations"]
    assert conversation["conversation_id"] == "C7"
    assert unicodedata.normalize("NFC", conversation["title"]) == name


def test_a_cut_discord_export() -> None:
    whole = json.loads(fixture("36", "Harbour - Text - general [300].json"))
    data = json.dumps(whole).encode()
    third = data.index(json.dumps(whole["messages"][2]).encode()) + len(json.dumps(whole["messages"][2]))
    found = read(data[: third + 40], "Harbour - Text - general [300].json")
    assert texts(found)[:2] == ["Who sails today? ⛵", "Wind 12 kn NE"]
    assert any(not skip.expected for skip in found[1].skips)


@pytest.mark.parametrize(
    "lines",
    [
        ["2023-12-20, 5:46 p.m. - Sam: 👋", "2023-12-20, 5:47 p.m. - Kim: hi"],
        ["[05.08.23, 5:52:02 PM] Sam: 👋", "[05.08.23, 5:53:02 PM] Kim: hi"],
        ["20/6/2017 8:28 p.\u00a0m. - Sam: 👋", "20/6/2017 8:29 p.\u00a0m. - Kim: hi"],
        ["20.06.17, 20:28 - Sam: 👋", "20.06.17, 20:29 - Kim: hi"],
        ["6/20/17, 8:28\u202fPM - Sam: 👋", "6/20/17, 8:29\u202fPM - Kim: hi"],
    ],
)
def test_whatsapp_lines_of_other_phones(lines: list[str]) -> None:
    found = read("\n".join(lines) + "\n", "WhatsApp Chat with Sam.txt")
    assert [m for c in found[0] for m in shown(c)] == [("user", "Sam", "👋"), ("user", "Kim", "hi")]
    assert all(m.local_time and m.created_at is None for m in found[0][0].messages)


def test_whatsapp_dates_that_can_be_read_two_ways() -> None:
    unsure = read("03/04/26, 10:00 - Sam: a\n03/04/26, 10:01 - Kim: b\n", "WhatsApp Chat with Sam.txt")
    assert texts(unsure) == ["a", "b"]
    assert reasons(unsure)
    sure = read("03/04/26, 10:00 - Sam: a\n15/04/26, 10:01 - Kim: b\n", "WhatsApp Chat with Sam.txt")
    assert [(m.local_time or "")[:10] for m in sure[0][0].messages] == ["2026-04-03", "2026-04-15"]


# --- names and containers ---------------------------------------------------------------------------------------------


def pages(*named: tuple[str, str | None]) -> list[str]:
    day = date(2026, 3, 14)
    return [str(page_folder(day, "chatgpt") / page_name(day, title, "chatgpt", id)) for id, title in named]


def test_pages_of_alike_chats_have_names_of_their_own() -> None:
    alike = pages(("12345678-1111", "New chat"), ("12345678-2222", "New chat"), ("a", ""), ("b", None), ("c", "???"))
    assert len(set(alike)) == 5
    assert all("untitled" in path for path in alike[2:])


@pytest.mark.parametrize("letter", ["🍞", "漢", "👩‍👩‍👧‍👦", "é", "ﷺ"])
def test_a_title_of_three_hundred_emoji(letter: str) -> None:
    (path,) = pages(("a", letter * 300))
    assert all(len(part.encode()) <= 255 for part in Path(path).parts)


def zipped(path: Path, *entries: tuple[str, bytes], flag: bool = True) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data)
    if not flag:
        # Without the mark for UTF-8 (bit 11), as many programs write names that are UTF-8 all the same.
        data = path.read_bytes()
        for head, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            place = data.find(head)
            while place >= 0:
                bits = struct.unpack_from("<H", data, place + at)[0] & ~0x800
                data = data[: place + at] + struct.pack("<H", bits) + data[place + at + 2 :]
                place = data.find(head, place + 1)
        path.write_bytes(data)
    return path


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("name", ["général/a.json", "narrow\u202fspace.json", "チャット.json"])
def test_names_in_a_zip_with_and_without_the_mark(name: str, flag: bool, tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", (name, b"?"), flag=flag)
    (skip,) = parse_path(path)["skipped"]
    assert skip["where"] == f"a.zip!/{name}"


def test_a_zip_beyond_its_limits_is_named(tmp_path: Path) -> None:
    good = json.dumps([chat("a", "hi", "hello")]).encode()
    data = bytearray(zipped(tmp_path / "a.zip", ("conversations.json", good)).read_bytes())
    place = data.find(b"PK\x01\x02")
    struct.pack_into("<I", data, place + 42, 0xFFFFFFFF)
    (tmp_path / "a.zip").write_bytes(data)
    (tmp_path / "b.json").write_bytes(good)
    answer = parse_path(tmp_path)
    assert [c["conversation_id"] for c in answer["conversations"]] == ["a"]
    assert any(skip["where"].startswith("a.zip") and not skip["expected"] for skip in answer["skipped"])


@pytest.mark.parametrize(
    "name",
    [
        "C:\\windows\\evil.json",
        "C:evil.json",
        "\\\\server\\evil.json",
        "//server/evil.json",
        "/etc/evil.json",
        "../evil.json",
    ],
)
def test_names_that_lead_out_of_a_zip(name: str, tmp_path: Path) -> None:
    chats = json.dumps([chat("a", "hi", "hello")]).encode()
    answer = parse_path(zipped(tmp_path / "a.zip", (name, chats), ("x" * 5000 + ".json", chats)))
    assert answer["conversations"] == []
    assert [skip["reason"] for skip in answer["skipped"]] == ["unsafe name in a ZIP"] * 2


def test_every_report_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure itself: a table with a test that does not exist is refused."""
    case = BugCase("B999", "x", "https://github.com/x", "w", "r", tests=["test_that_is_not_there"])
    with pytest.raises(AssertionError):
        test_every_report_is_tried(case)
