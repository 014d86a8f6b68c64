"""JSON that another program saved as UTF-16 gives what it gives in UTF-8."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.engine import identify, read_member
from palace_pipeline.exports.utf16 import in_utf8, utf16_json
from tests.exports.memory_member import MemoryMember, shown

CHAT = {
    "chat_messages": [
        {"uuid": "m1", "sender": "human", "text": "灯塔 🗼"},
        {"uuid": "m2", "sender": "assistant", "text": "ok"},
    ]
}
SAVED = {
    "utf-16-le with a mark": lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
    "utf-16-be with a mark": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "utf-16-le": lambda text: text.encode("utf-16-le"),
    "utf-16-be": lambda text: text.encode("utf-16-be"),
}


@pytest.mark.parametrize("saved", SAVED.values(), ids=SAVED)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conversations.json", json.dumps([CHAT], ensure_ascii=False)),
        ("chats.jsonl", f"{json.dumps(CHAT, ensure_ascii=False)}\n{json.dumps({**CHAT, 'uuid': 'c2'})}\n"),
    ],
)
def test_it_is_read_like_the_same_in_utf8(saved, name, text):
    def read(data):
        member, report = MemoryMember({name: data}, name), Report(name)
        known = identify(member, report)
        assert known is not None
        return [shown(conversation) for conversation in read_member(member, *known, report)], report.skips

    assert read(saved(text)) == read(text.encode())
    assert read(text.encode())[0][0] == [("user", None, "灯塔 🗼"), ("assistant", None, "ok")]


@given(st.text(), st.integers(1, 9), st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_pieces_may_be_cut_anywhere(text, size, encoding):
    class Slow(io.BytesIO):
        def read(self, _size=-1):
            return super().read(size)

    class Member:
        path, size, near = "a.json", 0, None

        def open(self):
            return Slow(text.encode(encoding))

    with in_utf8(Member(), encoding).open() as stream:
        assert stream.read() == text.removeprefix("\ufeff").encode()


@pytest.mark.parametrize(
    "start", [b"", b"[", b'[{"a"', b"\0\0\0\0[{", b"\0[{", b"\xff\xfeH\0i\0", "你好".encode("utf-16")]
)
def test_other_beginnings_are_left_alone(start):
    assert utf16_json(start) is None
