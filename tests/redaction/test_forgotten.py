from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.redaction.forgotten import SHORTEST, find, forget

KEY = b"key of a test"
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)
VALUES = st.text(st.characters(codec=None, exclude_categories=()), min_size=SHORTEST, max_size=40)


def places(text: str, value: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    at = text.find(value)
    while at >= 0:
        found.append((at, at + len(value)))
        at = text.find(value, at + 1)
    return found


@given(ANY_TEXT, VALUES, ANY_TEXT, ANY_TEXT)
def test_every_place_is_found_and_no_other(before: str, value: str, between: str, after: str) -> None:
    text = before + value + between + value + after
    assert list(find(text, [forget(value, KEY)], KEY)) == places(text, value)


@given(st.text("ab", max_size=60), st.lists(st.text("ab", min_size=4, max_size=7), min_size=1, max_size=4, unique=True))
def test_several_values_of_several_lengths(text: str, values: list[str]) -> None:
    found = list(find(text, [forget(value, KEY) for value in values], KEY))
    assert sorted(found) == sorted(place for value in values for place in places(text, value))


def test_another_key_knows_nothing() -> None:
    assert list(find("the villa Aurelia", [forget("Aurelia", KEY)], b"other")) == []
    kept = forget("Aurelia", KEY)
    assert kept != forget("Aurelia", b"other")
    assert b"Aurelia" not in kept.proof


def test_a_value_that_is_too_short_is_refused() -> None:
    for value in ("abc", "李", "a雷", "…—"):
        with pytest.raises(ValueError, match="at least 4"):
            forget(value, KEY)
    assert forget("李雷", KEY).length == 2
