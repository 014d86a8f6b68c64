"""The optional second opinion: what it reports is confirmed, placed in characters, and its absence is told."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from palace_pipeline.redaction.engine import RuleEngine
from palace_pipeline.redaction.second import Kingfisher, Missing, confirmed
from palace_pipeline.settings import RedactionSettings
from tests.redaction.samples import GITHUB, token

installed = pytest.mark.skipif(importlib.util.find_spec("kingfisher_sdk") is None, reason="extra is not installed")


def test_its_absence_is_told_with_the_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kingfisher_sdk", None)
    with pytest.raises(Missing, match=r"pip install 'palace-pipeline\[kingfisher\]'"):
        RuleEngine(RedactionSettings(kingfisher=True))


@pytest.mark.parametrize(
    "value", ["d" * 40, "your-api-key-goes-right-here", token("[0-9a-f]{40}"), token("[0-9a-f]{64}")]
)
def test_digests_and_placeholders_are_not_confirmed(value: str) -> None:
    assert not confirmed(value)


@installed
@pytest.mark.slow
def test_places_are_in_characters_and_repeats_and_hidden_finds_count() -> None:
    value = token(GITHUB)
    text = f"密钥：{value}，再来一次 {value} \ud800 # kingfisher:ignore"
    places = {(held.start, held.end) for held in Kingfisher().find(text)}
    first = text.index(value)
    assert places >= {(first, first + len(value)), (text.rindex(value), text.rindex(value) + len(value))}
