"""The levers of `benchmarks/ablation.py` still take out what they say, so that its table is about this search."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.search.small_archive import Archive

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from ablation import LEVERS


@pytest.mark.parametrize("name", LEVERS)
def test_a_part_can_be_taken_out(archive: Archive, name: str) -> None:
    with LEVERS[name]():
        result = archive.searcher().search("the copper lantern")
    assert result.hits
    assert (result.hits[0].dense is None) == (name == "vectors")
    assert any("lexical index" in trouble for trouble in result.missing) is False


def test_what_a_part_does_is_seen(archive: Archive) -> None:
    scores = {}
    for name, lever in LEVERS.items():
        with lever():
            scores[name] = archive.searcher().search("Does Nora know the copper latnern?").hits[0].score
    whole = scores.pop("all parts")
    changed = {name for name, score in scores.items() if score != whole}
    assert changed >= {"vectors", "words", "words of the chunk", "words of the message", "words of the conversation"}
    assert changed >= {"the user's words first", "slips of the pen read as meant"}
