"""The tree splitter: the values of a JSON parser for every cut into blocks and every choice; damage costs its value."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import splitter
from palace_pipeline.exports.splitter import ArrayCut
from palace_pipeline.exports.tree_splitter import JsonPath, split_tree

SPECIAL = st.sampled_from(['"', "\\", '\\"', "[", "]", "{", "}", ",", ":", "\\\\", "\n", "潮", "\ud83c", "\0", " "])
TEXT = st.one_of(st.text(max_size=6), st.lists(SPECIAL, max_size=6).map("".join))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=16,
)
ROOTS = st.one_of(st.lists(VALUES, max_size=5), st.dictionaries(TEXT, VALUES, max_size=5))


def leaves(value: Any, depth: int, path: JsonPath = ()) -> list[tuple[JsonPath, Any]]:
    """What the splitter must give when it enters everything above `depth` and takes what begins there."""
    if not isinstance(value, dict | list) or len(path) + 1 == depth:
        return [(path, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [leaf for key, inner in items for leaf in leaves(inner, depth, (*path, key))]


def split(data: bytes, depth: int, block_bytes: int = 1 << 20) -> list[tuple[JsonPath, Any]]:
    found = split_tree(io.BytesIO(data), lambda path: "take" if len(path) + 1 == depth else "enter", depth, block_bytes)
    return [(f.path, json.loads(f.raw.decode("utf-8", "surrogatepass"))) for f in found if not f.entered]


def cleaned(value: Any) -> Any:
    """Keys as the splitter gives them: a lone surrogate becomes a replacement mark."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


@given(ROOTS, st.integers(2, 4), st.integers(1, 40), st.sampled_from([None, 1]))
@settings(max_examples=150, deadline=None)
@example({"a": {'"b": [': [1, {"c": "]"}]}}, 4, 1, None)
def test_values_are_those_of_a_json_parser(value, depth, block_bytes, indent):
    value = cleaned(value)
    assert split(json.dumps(value, indent=indent).encode(), depth, block_bytes) == leaves(value, depth)


CHATS = {
    "about": "x [ {",
    "personal_information": {"phone": "secret"},
    "chats": {
        "about": "y",
        "list": [
            {"name": "A", "id": 1, "messages": [{"id": 1, "t": ["a", {"b": "]"}]}, {"id": 2}], "after": True},
            {"name": "B", "messages": []},
            None,
            {"name": "C", "messages": [{"id": 3}]},
        ],
    },
    "left_chats": {"list": []},
}


def choose(path: JsonPath) -> Any:
    if len(path) == 1:
        return "enter" if path[0] in ("chats", "left_chats") else "skip"
    return "take" if len(path) == 5 else "enter"


def chats(data: bytes, block_bytes: int = 1 << 20) -> list[tuple[JsonPath, bytes]]:
    return [(f.path, f.raw) for f in split_tree(io.BytesIO(data), choose, 6, block_bytes)]


@pytest.mark.parametrize("block_bytes", [1, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 1])
def test_what_is_passed_over_is_not_given_and_containers_are_named_as_they_begin(block_bytes, indent):
    got = chats(json.dumps(CHATS, indent=indent).encode(), block_bytes)
    paths = [path for path, _ in got]
    assert ("personal_information", "phone") not in paths
    assert not any(b"secret" in raw for _, raw in got)
    assert paths[:6] == [(), ("about",), ("chats",), ("chats", "about"), ("chats", "list"), ("chats", "list", 0)]
    messages = [(path[2], json.loads(raw)["id"]) for path, raw in got if len(path) == 5]
    assert messages == [(0, 1), (0, 2), (3, 3)]
    assert (("chats", "list", 0, "after"), b"true") in got
    assert (("chats", "list", 2), b"null") in got


@given(st.data(), st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_cut_anywhere_gives_the_whole_values_before(data, block_bytes):
    whole = json.dumps(CHATS).encode()
    at = data.draw(st.integers(1, len(whole) - 1))
    everything = chats(whole)
    got: list[tuple[JsonPath, bytes]] = []
    why = ""
    try:
        for found in split_tree(io.BytesIO(whole[:at]), choose, 6, block_bytes):
            got.append((found.path, found.raw))
    except ArrayCut as cut:
        why = str(cut)
    assert why == "the file ends inside"
    assert got == everything[: len(got)]
    assert sum(whole[:at].count(mark) for mark in (b'{"id": 2}', b'{"id": 3}')) == sum(
        raw in (b'{"id": 2}', b'{"id": 3}') for _, raw in got
    )


@pytest.mark.parametrize("block_bytes", [1, 5, 1 << 20])
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b'{"id": 2}', b'{"id": 2'),  # a message without its end
        (b'{"id": 2}', b'{"id": [2}'),
        (b'{"id": 2}', b'{"id": 2}}'),
        (b'"after": true}', b'"after": true'),  # a chat without its end
        (b'[{"id": 3}]}]}', b'[{"id": 3}]]}'),
    ],
)
def test_a_bracket_too_many_or_too_few_costs_the_value_it_stands_in(good, bad, block_bytes):
    data = json.dumps(CHATS).encode()
    assert data.count(good) == 1
    got = [(path[2], raw) for path, raw in chats(data.replace(good, bad), block_bytes) if len(path) == 5]
    assert got[0] == (0, b'{"id": 1, "t": ["a", {"b": "]"}]}')
    assert got[-1][1] == b'{"id": 3}'


def test_brackets_that_never_fit_end_the_walk():
    with pytest.raises(ArrayCut, match="do not fit"):
        chats(b'{"chats": {"list": [' + b"}" * 5000 + b"]}}", 512)


def test_more_after_the_end_and_no_json():
    with pytest.raises(ArrayCut, match="after the end"):
        chats(b'{"a": 1} {"b": 2}')
    for data in (b"", b"  hello"):
        with pytest.raises(ArrayCut, match="no JSON"):
            chats(data)


def test_a_value_over_the_limit_is_empty_and_the_next_one_is_whole(monkeypatch):
    monkeypatch.setattr(splitter, "MAX_ELEMENT_BYTES", 100)
    data = b'{"chats": {"list": [{"messages": [{"t": "' + b"x" * 500 + b'"}, {"id": 2}]}]}}'
    assert [raw for path, raw in chats(data, 16) if len(path) == 5] == [b"", b'{"id": 2}']


def test_ten_thousand_small_chats_in_linear_work():
    many = {"chats": {"list": [{"id": n, "messages": [{"id": 1}]} for n in range(10_000)]}}
    got = chats(json.dumps(many).encode())
    assert sum(len(path) == 5 for path, _ in got) == 10_000
