"""Trees of messages: which path is the active one, and that no shape of a tree costs the square of its size."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from palace_pipeline.exports.branches import in_order
from palace_pipeline.exports.tree import Node, newest_leaf
from palace_pipeline.model import Message


class Counted(dict[str, Node]):
    """Nodes that count how often one is looked at."""

    looks = 0

    def __getitem__(self, key: str) -> Node:
        self.looks += 1
        return super().__getitem__(key)


def looks_for_the_leaf(nodes: Mapping[str, Node]) -> int:
    counted = Counted(nodes)
    newest_leaf(counted)
    return counted.looks


def test_a_cycle_in_which_nobody_says_anything_is_gone_round_once():
    def work(size: int) -> int:
        return looks_for_the_leaf({str(n): Node(str(n), str((n + 1) % size), says=False) for n in range(size)})

    assert work(400) < 2.5 * work(200)


def test_words_above_a_silent_end_are_found_past_ends_without_any():
    nodes = {
        "words": Node("words", None),
        "below": Node("below", "words", says=False),
        "silent": Node("silent", None, says=False),
        "end": Node("end", "silent", says=False),
    }
    assert newest_leaf(nodes) == "below"


def said(text: str, **values: Any) -> list[Message]:
    return [Message("", "user", text, **values)]


def active(nodes: dict[str, Node], leaf: str | None) -> list[str]:
    rows = {id: said(id, hidden_reason="hidden" if id == "stray" else None) for id in nodes}
    return [row.text for row in in_order(nodes, rows, leaf) if row.branch_active]


def test_a_path_that_shows_nothing_gives_way_to_the_newest_message_with_all_before_it():
    times = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]
    for first, second in ((None, None), times, (times[0], times[0])):
        nodes = {
            "stray": Node("stray", None),
            "question": Node("question", None, first),
            "answer": Node("answer", "question", second),
        }
        assert active(nodes, "stray") == ["question", "answer"]
