"""JSON as exports hold it: what strict parsers refuse is read, and what comes out can be stored."""

import orjson
import pytest

from palace_pipeline.exports.text import parse_json


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a\\ud83d": ["x\\udcb2 y"], "pair": "\\ud83c\\udf5e"}', {"a\ufffd": ["x\ufffd y"], "pair": "🍞"}),
        (b'[NaN, -Infinity, 1e400, 1.5]', [None, None, None, 1.5]),
        (b'["\\ud83d", 123456789012345678901234567890, 9223372036854775807]', ["\ufffd", 1.2345678901234568e29, 2**63 - 1]),
        (b'["raw\nnewline", "bad \xff byte"]', ["raw\nnewline", "bad \ufffd byte"]),
    ],
)  # fmt: skip
def test_what_strict_parsers_refuse(data, value):
    assert parse_json(data) == value
    assert orjson.loads(orjson.dumps(parse_json(data))) == value


@pytest.mark.parametrize("data", [b"", b"{", b"[1,]", b"nope", b'{"a": 1} more', b"[" * 5000 + b"]" * 5000])
def test_what_is_no_json(data):
    with pytest.raises(ValueError):
        parse_json(data)
