"""What is looked for in one pass is what is found by looking for it alone."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.redaction import names, pii, telling, views
from palace_pipeline.redaction.scanning import Literals, Program, Runs, Signs

PATTERNS = (*pii.SIGNS, *views.SIGNS)
SIGNS, ALONE = Signs(PATTERNS), [Program(pattern) for pattern in PATTERNS]
STRINGS = (*telling.TELLING, *names.STEMS)
LITERALS = Literals(STRINGS)
RUNS = Runs(b"abc0", 5)
SEEDS = [
    "12.34.5",
    "+1 (0)",
    "GB82 WEST",
    "2a02::1:",
    " dot ",
    "[at]",
    "\\n",
    "\\u0041",
    "%41",
    '" + "',
    "join(",
    "0x41, ",
    "a b c ",
]
TEXTS = st.lists(
    st.one_of(st.sampled_from(SEEDS), st.text(alphabet=st.characters(max_codepoint=128), max_size=20)), max_size=20
)


@given(TEXTS)
def test_signs_are_seen_together_as_each_alone(parts: list[str]) -> None:
    data = "".join(parts).encode("latin-1")
    assert set(SIGNS.seen(data)) == {index for index, alone in enumerate(ALONE) if alone.found(data)}


def test_signs_do_not_depend_on_the_length_of_what_stands_before() -> None:
    for sign in SEEDS:
        alone = set(SIGNS.seen(sign.encode()))
        assert alone <= set(SIGNS.seen(b"\n" * 3_000_000 + sign.encode()))


@given(st.lists(st.one_of(st.sampled_from(STRINGS), st.binary(max_size=3)), max_size=12))
def test_every_place_of_every_string_is_told(parts: list[bytes]) -> None:
    data = b"".join(parts)
    expected = {
        (index, at, at + len(string))
        for index, string in enumerate(STRINGS)
        for at in range(len(data))
        if data.startswith(string, at)
    }
    assert set(LITERALS.places(data)) == expected
    ends = [end for _, _, end in LITERALS.places(data)]
    assert ends == sorted(ends)


@given(st.text(alphabet="abc0 x\x80").map(lambda text: text.encode("latin-1")))
def test_runs_are_those_of_the_pattern(data: bytes) -> None:
    assert list(RUNS.spans(data)) == [found.span() for found in re.finditer(rb"[abc0]{5,}", data)]
