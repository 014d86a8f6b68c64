"""The array splitter: the elements of a JSON parser for every cut into blocks; whole elements before damage."""

import io
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import splitter
from palace_pipeline.exports.splitter import ArrayCut, split_array, whole_values

SPECIAL = st.sampled_from(['"', "\\", '\\"', "[", "]", "{", "}", ",", ":", "\\\\", "\n", "潮", "\ud83c", "\0", " "])
TEXT = st.one_of(st.text(max_size=8), st.lists(SPECIAL, max_size=8).map("".join))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)


def split(data: bytes, key: str | None = None, block_bytes: int = 1 << 20) -> list[bytes]:
    return [raw for _, raw in split_array(io.BytesIO(data), key, block_bytes)]


def until_cut(data: bytes, key: str | None = None, block_bytes: int = 1 << 20) -> tuple[list[bytes], str]:
    given_before: list[bytes] = []
    try:
        for _, raw in split_array(io.BytesIO(data), key, block_bytes):
            given_before.append(raw)
    except ArrayCut as cut:
        return given_before, str(cut)
    raise AssertionError("no cut was seen")


@given(st.lists(VALUES, max_size=6), st.integers(1, 40), st.booleans(), st.sampled_from([None, 1]))
@settings(max_examples=80, deadline=None)
@example(["\\", '\\"', {"a": "\\\\"}, [[]], {}], 1, True, None)
@example([{"a": "]"}, '"', {"b": '\\"}'}], 3, False, None)
def test_elements_are_those_of_a_json_parser(values, block_bytes, ascii_only, indent):
    text = json.dumps(values, ensure_ascii=ascii_only, indent=indent)
    data = text.encode("utf-8", "surrogatepass")
    found = [json.loads(raw.decode("utf-8", "surrogatepass")) for raw in split(data, None, block_bytes)]
    assert found == values


@given(st.lists(VALUES, max_size=4), st.dictionaries(TEXT, VALUES, max_size=4), VALUES, st.integers(1, 40))
@settings(max_examples=50, deadline=None)
@example([1, {"chats": [2]}], {'"chats": [': "x"}, {"chats": [3]}, 1)
def test_array_under_a_key_wherever_it_stands(values, others, after, block_bytes):
    whole = {**{k: v for k, v in others.items() if k != "chats"}, "nested": {"chats": [0]}, "chats": values, "z": after}
    data = json.dumps(whole).encode()
    assert [json.loads(raw) for raw in split(data, "chats", block_bytes)] == values


@given(st.lists(st.dictionaries(TEXT, VALUES, max_size=3), min_size=1, max_size=5), st.integers(1, 30), st.data())
@settings(max_examples=80, deadline=None)
def test_cut_anywhere_gives_the_whole_elements_before(values, block_bytes, data):
    parts = [json.dumps(value).encode() for value in values]
    whole = b"[" + b", ".join(parts) + b"]"
    at = data.draw(st.integers(1, len(whole) - 1))
    ends, position = [], 1
    for part in parts:
        position += len(part)
        ends.append(position)
        position += 2
    found, why = until_cut(whole[:at], None, block_bytes)
    assert found == [part for part, end in zip(parts, ends, strict=True) if end <= at]
    assert why == "the file ends inside the array"


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 1 << 20])
def test_byte_order_mark_blanks_and_nuls_are_no_elements(block_bytes):
    data = b'\xef\xbb\xbf \0\r\n [\0\0{"a": 1}\0,\n\t{"b": 2} , null\0]\0\0\n'
    assert split(data, None, block_bytes) == [b'{"a": 1}', b'{"b": 2}', b"null"]


@pytest.mark.parametrize("block_bytes", [1, 5, 1 << 20])
def test_garbage_between_elements_costs_only_itself(block_bytes):
    data = b'[{"a":1} oops {"b":2}{"c":3},,{"d":4},]'
    assert split(data, None, block_bytes) == [b'{"a":1}', b"oops", b'{"b":2}', b'{"c":3}', b'{"d":4}']


def test_numbers_count_every_element():
    assert [number for number, _ in split_array(io.BytesIO(b'[1,{"a":2},"x",[3]]'))] == [0, 1, 2, 3]


def test_depth_of_a_hundred_thousand():
    deep = b"[" * 100_000 + b"]" * 100_000
    assert split(b"[" + deep + b',{"after":1}]') == [deep, b'{"after":1}']


@pytest.mark.parametrize("block_bytes", [1, 4, 9, 1 << 20])
def test_arrays_one_behind_the_other_are_one(block_bytes):
    assert split(b'[{"a":1}] \n[{"b":[2]},3][]\0[{"c":"]["}]', None, block_bytes) == [
        *(b'{"a":1}', b'{"b":[2]}', b"3", b'{"c":"]["}'),
    ]
    found, why = until_cut(b'[{"a":1}][{"b":2},{"c":', block_bytes=block_bytes)
    assert (found, why) == ([b'{"a":1}', b'{"b":2}'], "the file ends inside the array")
    assert [number for number, _ in split_array(io.BytesIO(b"[1,2][3]"), None, block_bytes)] == [0, 1, 2]


def test_a_million_arrays_are_no_trap():
    found, why = until_cut(b"[1]" * 300_000)
    assert (len(found), why) == (100, "there is more after the end of the array")


def test_more_after_the_array_is_said():
    found, why = until_cut(b'[{"a":1}] {"b":2}')
    assert (found, why) == ([b'{"a":1}'], "there is more after the end of the array")
    assert until_cut(b"[1] " + b" " * 50 + b"x", block_bytes=4)[1] == "there is more after the end of the array"


@pytest.mark.parametrize(
    ("data", "key", "why"),
    [
        (b'{"a": 1}', None, "does not begin with a JSON array"),
        (b"", None, "does not begin with a JSON array"),
        (b"[1]", "chats", "is no JSON object"),
        (b'{"other": [1], "chats": {"list": [2]}}', "chats", "has no such array"),
        (b'{"text": "\\"chats\\": ["}', "chats", "has no such array"),
    ],
)
def test_no_array_where_one_was_expected(data, key, why):
    found, said = until_cut(data, key)
    assert found == []
    assert why in said


def test_an_element_over_the_limit_is_empty_and_the_next_one_is_whole(monkeypatch):
    monkeypatch.setattr(splitter, "MAX_ELEMENT_BYTES", 100)
    data = b'[{"a":"' + b"x" * 500 + b'"},{"b":1}]'
    assert split(data, None, 16) == [b"", b'{"b":1}']


@pytest.mark.parametrize("block_bytes", [1, 6, 1 << 20])
def test_a_bracket_too_many_ends_only_its_element(block_bytes):
    assert split(b'[{"a":1]},{"b":2},{"c":[3]}]', None, block_bytes) == [b'{"a":1]', b'{"b":2}', b'{"c":[3]}']


def test_brackets_too_many_without_end_are_no_trap():
    found, why = until_cut(b'[{"a":1}' + b"}" * 100_000 + b'{"b":2}]', block_bytes=4096)
    assert (found, why) == ([b'{"a":1}'], "there is more after the end of the array")


def test_rest_of_the_element_in_which_the_file_ends():
    with pytest.raises(ArrayCut) as caught:
        list(split_array(io.BytesIO(b'[{"a":1},{"b":{"c":"x'), None, 4))
    assert caught.value.rest == b'{"b":{"c":"x'


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"id":"a","t":"lost quote}, {"id":"b","t":"x"},{"id" : "c"} ]',
        b'{"id":"a","t":[1,2}, {"id":"b","t":"x"},{"id" : "c"}]',
    ],
)
def test_good_brothers_are_found_in_what_a_lost_mark_swallowed(damaged):
    assert list(whole_values(damaged)) == [b'{"id":"b","t":"x"}', b'{"id" : "c"}']


def test_search_for_good_brothers_is_bounded():
    damaged = b'{"id":' + b'[{"id":' * 2000
    assert list(whole_values(damaged)) == []
    assert list(whole_values(b'{"id":"a, {"id":"b"},{"id":"c"}', budget=1)) == [b'{"id":"b"}']


def test_memory_stays_that_of_an_element():
    """Ten thousand elements: never more of the file is taken than a block beyond the element that is given."""

    class Counting(io.BytesIO):
        taken = 0

        def read(self, size=-1, /):
            piece = super().read(size)
            self.taken += len(piece)
            return piece

    element = b'{"a":"' + b"x" * 90 + b'"}'
    stream = Counting(b"[" + b",".join([element] * 10_000) + b"]")
    for number, _ in split_array(stream, None, 4096):
        assert stream.taken <= (number + 1) * (len(element) + 1) + 2 * 4096
