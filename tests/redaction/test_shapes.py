from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.redaction.shapes import draw, parse, prefixes, regex

SHAPES = ["ab[0-9]{4}", r"x\.[A-Za-z0-9_-]{20}", "(one|two)_[a-f0-9]{8}", "[a-z]{2,5}-us[1-2][0-9]"]


@given(st.sampled_from(SHAPES), st.integers())
def test_a_drawn_string_matches_its_own_regex(shape: str, seed: int) -> None:
    assert re.fullmatch(regex(shape), draw(shape, random.Random(seed)))


def test_a_class_at_the_end_takes_all_that_follows() -> None:
    assert re.match(regex("tok_[a-z]{8}"), "tok_" + "b" * 30 + "!").end() == 34


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("ab_[0-9]{4}", ["ab_"]),
        ("(one|two)_[a-f]{8}", ["one_", "two_"]),
        (r"x\.y[0-9]{3}", ["x.y"]),
        ("[a-z]{3}q", [""]),
    ],
)
def test_prefixes(shape: str, expected: list[str]) -> None:
    assert sorted(prefixes(shape)) == sorted(expected)


def test_a_bad_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match="bad shape at 2"):
        parse("ab)")
