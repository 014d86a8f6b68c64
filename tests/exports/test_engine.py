"""The engine: one odd record never stops a file, nothing is left out in silence, content is never quoted."""

import io
import json
import sqlite3

import pytest

from palace_pipeline.exports import engine
from palace_pipeline.exports.base import Report, SpecTarget
from palace_pipeline.exports.engine import elements_of, identify, read_member, read_one
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.model import Conversation, Message
from tests.exports.memory_member import MemoryMember


def a_database():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE things (name TEXT)")
    return connection.serialize()


class Echo:
    """A reader for tests: every object with an `id` is a conversation, `boom` makes it raise."""

    format, provider, recipe, layout = "echo", "chatgpt", 1, "elements"
    spec = SpecTarget("2026-11-29", "test", "high")

    def detect(self, head):
        return any(isinstance(item, dict) and "id" in item for item in head.items)

    def read_element(self, value, member, place, report):
        yield Conversation("chatgpt", str(value["id"]), [Message("m", "user", "hello")])
        if "boom" in value:
            raise KeyError(value["boom"])

    def read(self, member, report):
        yield Conversation("chatgpt", "first", [])
        raise RuntimeError("secret words of the file")


class Whole(Echo):
    layout = "whole"


def member(data, path="chats.json"):
    return MemoryMember({path: data if isinstance(data, bytes) else json.dumps(data).encode()}, path)


def read(data, path="chats.json", reader=None):
    reader = reader or Echo()
    one = member(data, path)
    report = Report(path)
    head = engine.head_of(one)
    return [c.conversation_id for c in read_member(one, reader, head, report)], report


def skips(report):
    return [(skip.reason, skip.where, skip.expected, skip.unit) for skip in report.skips]


def test_odd_elements_cost_only_themselves_and_are_named_by_place():
    found, report = read([{"id": 1}, None, "text", {"id": 2, "boom": "secret"}, {"no": "id"}, {"id": 3}])
    assert found == ["1", "2", "3"]
    assert skips(report) == [
        ("null in place of a conversation", "chats.json: [1]", True, "conversation"),
        ("not a conversation", "chats.json: [2]", False, "conversation"),
        ("damaged conversation", "chats.json: [3] (KeyError)", False, "conversation"),
        ("damaged conversation", "chats.json: [4] (KeyError)", False, "conversation"),
    ]
    assert "secret" not in repr(report)


def test_elements_of_a_wrapped_list_lines_and_a_single_object():
    assert read({"x": 1, "conversations": [{"id": 1}, {"id": 2}]})[0] == ["1", "2"]
    assert read(b'{"id": 1}\n\n{"id": 2}\r\noops\n{"id": 3}', "a.jsonl")[0] == ["1", "2", "3"]
    assert read({"id": 1})[0] == ["1"]
    report = read(b'{"id": 1}\noops\n', "a.jsonl")[1]
    assert skips(report) == [("damaged JSON", "a.jsonl: line 2", False, "conversation")]


def test_a_cut_array_gives_what_is_whole_and_says_so():
    found, report = read(json.dumps([{"id": 1}, {"id": 2}, {"id": 3, "x": "y"}]).encode()[:-9])
    assert found == ["1", "2"]
    assert [skip.reason for skip in report.skips] == [
        "damaged JSON",
        "cut or damaged: the file ends inside the array",
    ]
    assert report.skips[0].where == "chats.json: [2]"


@pytest.mark.parametrize("damaged", [b'{"id": 2, "x": "lost}', b'{"id": 2, "x": [1}', b'{"id": 2, "x": 1]}'])
def test_good_conversations_behind_a_damaged_one_are_found(damaged):
    found, report = read(b'[{"id": 1}, ' + damaged + b', {"id": 3}, {"id": 4}]')
    assert found == ["1", "3", "4"]
    assert "damaged JSON" in {skip.reason for skip in report.skips}


def test_parts_of_a_damaged_conversation_are_no_conversations():
    class Chats(Echo):
        def detect(self, head):
            return any("chat" in item for item in head.items)

    damaged = b'{"id": 1, "chat": [{"id": "part"}, {"id": "part 2"}'
    found, _ = read(b'[{"id": 0, "chat": []}, ' + damaged, reader=Chats())
    assert found == ["0"]


def test_raw_elements_are_the_same_bytes_for_the_same_conversation():
    one = member(b'[ {"id":  1} ,\n{"id": 2}]')
    report = Report("chats.json")
    elements = list(elements_of(one, engine.head_of(one), report))
    assert [(e.index, e.raw, e.place) for e in elements] == [(0, b'{"id":  1}', "[0]"), (1, b'{"id": 2}', "[1]")]
    assert [c.source_file for c in read_one(elements[1], one, Echo(), report)] == ["chats.json"]


def test_escapes_that_strict_parsers_refuse_are_read():
    found, report = read(b'[{"id": "a \\ud83d"}, {"id": NaN}]')
    assert (len(found), report.skips) == (2, [])


def test_an_element_that_is_too_large_is_named(monkeypatch):
    monkeypatch.setattr("palace_pipeline.exports.splitter.MAX_ELEMENT_BYTES", 50)
    monkeypatch.setattr(engine, "MAX_ELEMENT_BYTES", 50)
    found, report = read([{"id": 1}, {"id": 2, "x": "y" * 100}, {"id": 3}])
    assert found == ["1", "3"]
    assert skips(report) == [("too large to be read", "chats.json: [1]", False, "conversation")]
    assert skips(read({"id": 1, "x": "y" * 100})[1]) == [("too large to be read", "chats.json", False, "conversation")]


def test_depth_that_no_parser_takes_is_damage_and_not_a_crash():
    deep = b"[" * 100_000 + b"]" * 100_000
    found, report = read(b'[{"id": 1},' + deep + b',{"id": 2}]')
    assert found == ["1", "2"]
    assert [skip.reason for skip in report.skips] == ["damaged JSON"]


def test_a_reader_of_whole_files_that_fails_keeps_what_it_gave():
    found, report = read([{"id": 1}], reader=Whole())
    assert found == ["first"]
    assert skips(report) == [("damaged file", "chats.json: (RuntimeError)", False, "file")]


def test_a_member_that_cannot_be_read_to_its_end_is_named():
    class Cut(io.RawIOBase):
        left = b'[{"id": 1}, {"id'

        def read(self, size=-1, /):
            if not self.left:
                raise MemberError("its compressed data is cut")
            piece, self.left = self.left, b""
            return piece

    class Stream(MemoryMember):
        def open(self):
            return Cut()

    one = Stream({"chats.json": b""}, "chats.json")
    report = Report("chats.json")
    head = engine.head_of(member([{"id": 1}]))
    assert [c.conversation_id for c in read_member(one, Echo(), head, report)] == ["1"]
    assert skips(report) == [("its compressed data is cut", "chats.json", False, "file")]


@pytest.mark.parametrize(
    ("path", "data", "reason", "expected"),
    [
        ("users.json", b"[{}]", "account, sign-in or billing data: not read", True),
        ("picture.png", b"\x89PNG", "asset beside the chats", True),
        ("file-abc", b"\x89PNG\r\n\x1a\n\0\0\0\0", "asset beside the chats", True),
        ("file-abc", bytes(range(200)), "binary file of an unknown kind", False),
        ("message_feedback.json", b'[{"rating": "up"}]', "side file without chats", True),
        ("projects/p1.json", b'{"docs": []}', "side file without chats", True),
        ("chat.html", b"<html>", "side file without chats", True),
        ("page.html", b"<html>", "text of an unknown kind", False),
        ("empty.json", b"[]", "empty JSON list", True),
        ("settings.json", b'{"theme": "dark", "messages": {"a": "b"}}', "unknown JSON", False),
        ("lines.jsonl", b'{"level": "info"}\n{"level": "warn"}\n', "unknown JSON", False),
        ("broken.json", b"<!doctype html>", "damaged JSON", False),
        ("wide.json", "[{}]".encode("utf-16"), "unknown JSON", False),
        ("nothing.json", b"", "empty file", False),
        ("nothing.md", b" \n", "empty file", True),
        ("backup.tar.gz", b"\x1f\x8b", "this kind of archive is not opened, unpack it first", False),
        ("other.db", b"SQLite format 3\0" + bytes(100), "damaged database", False),
        ("other.db", a_database(), "unknown SQLite database", False),
        ("state.db-wal", b"7\x7f\x06\x82" + bytes(40), "part of the database beside it", True),
    ],
)
def test_what_is_not_read_has_a_reason(path, data, reason, expected):
    report = Report(path)
    assert identify(member(data, path), report) is None
    assert skips(report) == [(reason, path, expected, "file")]


def test_known_shapes_are_identified_and_side_files_only_by_content():
    chat = {"uuid": "1", "chat_messages": [{"sender": "human", "text": "hi"}]}
    reader, head = identify(member([chat], "memories.json"), Report())
    assert (reader.format, head.shape) == ("claude-ai-export", "array")
