"""JSON of any depth: the same values as an ordinary parser where that one can, and more where it cannot."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports.base import Head, Report
from palace_pipeline.exports.deep_json import parse_deep
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.text import parse_json
from tests.exports.memory_member import MemoryMember

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_same_value_as_the_ordinary_parser(value, indent, ascii_only):
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert parse_deep(data) == parse_json(data)


@given(
    st.lists(st.sampled_from(["{", "}", "[", "]", ",", ":", '"a"', '"', "1", "null", " ", "\u00a0"]), max_size=8).map(
        "".join
    )
)
@settings(max_examples=300, deadline=None)
def test_refuses_what_the_ordinary_parser_refuses(text):
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r".*"):
            parse_deep(text.encode())
    else:
        assert parse_deep(text.encode()) == expected


def test_twenty_thousand_levels():
    depth = 20_000
    value = parse_deep(b'{"a":[' * depth + b'"end"' + b"]}" * depth)
    for _ in range(depth):
        value = value["a"][0]
    assert value == "end"


def test_what_stores_do_not_take():
    assert parse_deep(b'["\\ud83d", NaN, 1e999, 123456789012345678901234567890]') == [
        "\ufffd",
        None,
        None,
        123456789012345678901234567890.0,
    ]


def test_the_head_of_a_deep_object_shows_its_keys():
    data = b'{"conversationId":"x","messagesTree":' + b'[{"a":1,"children":' * 3000 + b"[]" + b"}]" * 3000 + b"}"
    head = head_of(MemoryMember({"a.json": data}, "a.json"))
    assert isinstance(head, Head)
    assert head.keys == ["conversationId", "messagesTree"]
    assert Report("a.json").skips == []
