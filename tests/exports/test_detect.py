"""Shapes: what the beginning of a member tells, whatever stands before, after or inside it."""

import json
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports.detect import HEAD_BYTES, completed, head_of
from tests.exports.memory_member import MemoryMember

CHAT = {"title": "T", "mapping": {"a": {"message": None}}}
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6), st.sampled_from(['"', "\\", "[", "}"])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=15,
)


def head(data, path="x.json"):
    return head_of(MemoryMember({path: data if isinstance(data, bytes) else json.dumps(data).encode()}, path))


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n\n  ", b"\0\0", b"\xef\xbb\xbf\r\n\0"])
def test_an_array_after_marks_and_blanks(start):
    found = head(start + json.dumps([None, None, CHAT, 5]).encode())
    assert (found.shape, found.items, found.keys) == ("array", [CHAT, 5], ["title", "mapping"])


def test_an_object_and_a_list_wrapped_in_one():
    assert (head(CHAT).shape, head(CHAT).items, head(CHAT).wrapped) == ("object", [CHAT], None)
    found = head({"v": 1, "conversations": [None, CHAT]})
    assert (found.shape, found.items, found.keys, found.wrapped) == (
        "object",
        [CHAT],
        ["v", "conversations"],
        "conversations",
    )


@pytest.mark.parametrize("turn", [{"from": "human", "value": "x"}, {"role": "user", "content": "x"}])
def test_a_list_of_turns_is_no_list_of_conversations(turn):
    value = {"id": "1", "conversations": [turn]}
    assert (head(value).wrapped, head(value).items) == (None, [value])


def test_a_cut_array_still_gives_its_first_elements():
    data = json.dumps([CHAT, {"title": "long " * 50}]).encode()
    assert head(data[:-40]).items == [CHAT]
    assert head(data[:40]).items == [{"title": "T", "mapping": {"a": {}}}]


def test_elements_and_objects_larger_than_the_head_show_their_first_keys():
    large = {"title": "T", "mapping": {"a": {"message": {"author": {"role": "user"}, "x": "y" * 2 * HEAD_BYTES}}}}
    shown = {"title": "T", "mapping": {"a": {"message": {"author": {"role": "user"}}}}}
    assert head([large, CHAT]).items == [shown]
    assert head(large).items == [shown]
    assert head({"conversations": [large]}).items == [shown]
    assert head({"conversations": [large]}).wrapped == "conversations"


def test_blanks_before_the_first_element_are_read_past():
    assert head(b"[" + b" " * 3 * HEAD_BYTES + b'{"a": 1}]').items == [{"a": 1}]
    empty = head(b"[" + b" " * 3 * HEAD_BYTES + b"]")
    assert (empty.shape, empty.items) == ("array", [])


def test_lines_behind_a_long_one():
    lines = [{"type": "snapshot", "data": "x" * 200_000}, {"type": "user", "message": {}}]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    for path in ("s.jsonl", "s.json", "noending"):
        found = head(data, path)
        assert (found.shape, [item["type"] for item in found.items]) == ("jsonl", ["snapshot", "user"])


def test_lines_between_damaged_ones():
    data = b'{"cut": \n\0\0\0\nnull\n{"type": "user"}\nnot json\n'
    assert head(data, "s.jsonl").items == [{"type": "user"}]


def test_one_line_is_an_object_unless_the_name_says_lines():
    assert head({"type": "user"}).shape == "object"
    assert head({"type": "user"}, "s.jsonl").shape == "jsonl"
    assert head({"type": "user"}, "s.jsonl.zst").shape == "jsonl"


@pytest.mark.parametrize(
    "text",
    [
        "[link](http://example.invalid) and more",
        "[ ] todo\n[x] done",
        "[1] a footnote",
        "{hello} is a placeholder",
        '{"a": 1} is how JSON looks',
        '[{"a": 1}] is a list',
        '{"a": 1}\nis what the server says\nand this is prose\n',
        "> quoted",
        "日记",
    ],
)
def test_notes_that_begin_like_json_are_text(text):
    found = head(text.encode(), "note.md")
    assert (found.shape, found.text) == ("text", text)


@pytest.mark.parametrize("path", ["export.txt", "export", "export.md"])
def test_json_is_json_under_any_name_even_cut(path):
    assert head([CHAT, CHAT], path).shape == "array"
    assert head(CHAT, path).shape == "object"
    assert head(json.dumps([CHAT, CHAT]).encode()[:-9], path).items == [CHAT]


def test_other_shapes(tmp_path):
    with sqlite3.connect(tmp_path / "x.db") as base:
        base.execute("create table t (a)")
    assert head((tmp_path / "x.db").read_bytes(), "state.vscdb").shape == "sqlite"
    assert head(b"", "a.json").shape == "empty"
    assert head(b"\xef\xbb\xbf \n\0\n", "a.json").shape == "empty"
    assert head(bytes(range(256)) * 10, "file-abc").shape == "binary"
    assert head("﻿Grüße".encode("utf-16"), "a.txt").text.endswith("Grüße")
    assert head("Grüße\n".encode("latin-1"), "a.txt").text == "Grüße\n"


def test_half_a_million_open_brackets_are_no_trap():
    found = head(b"[" * 500_000)
    assert (found.shape, found.items) == ("array", [])


@given(VALUES.filter(lambda value: isinstance(value, dict | list)), st.data())
@settings(max_examples=150, deadline=None)
def test_any_beginning_of_json_can_be_completed(value, data):
    whole = json.dumps(value).encode()
    assert json.loads(completed(whole)) == value
    part = json.loads(completed(whole[: data.draw(st.integers(1, len(whole)))]))
    assert type(part) is type(value)
    if isinstance(value, dict):
        assert list(part) == list(value)[: len(part)]
    else:
        assert part[:-1] == value[: len(part)][:-1]
