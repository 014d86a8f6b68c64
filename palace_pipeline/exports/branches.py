"""Rows of messages that form a tree -> one list: the branch that a person sees first, then the others."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from palace_pipeline.exports.tree import Node, active_path
from palace_pipeline.model import Message


def in_order(
    nodes: Mapping[str, Node],
    rows: Mapping[str, Sequence[Message]],
    leaf: str | None,
    path: Sequence[str] | None = None,
) -> list[Message]:
    """All rows; `branch_active` and `parent_id` are set in place.

    `rows`: those of each node, what was said last (before it the thinking and the tools that led to it). If nobody
    says anything on the path to `leaf`, it is the path to the newest message that is to be seen (without times the last).
    `path`: what a source without a tree shows, in order; None where `leaf` and the tree tell it.
    """
    path = active_path(nodes, leaf) if path is None else path
    if not any(row.visible for id in path for row in rows.get(id, ())):
        seen = [
            (node.time is not None, node.time or 0, number, id)
            for number, (id, node) in enumerate(nodes.items())
            if _shows(rows.get(id, ()))
        ]
        if seen:
            path = active_path(nodes, max(seen)[3])
    active = set(path)
    above = kept_above(nodes, {id for id, here in rows.items() if here})
    messages: list[Message] = []
    for id in [*path, *(id for id in rows if id not in active)]:
        if not (here := rows.get(id)):
            continue
        parent = above[id]
        parent_id = None if parent is None else rows[parent][-1].message_id or None
        for row in here:
            row.branch_active, row.parent_id = id in active, parent_id
        messages += here
    return messages


def _shows(rows: Sequence[Message]) -> bool:
    return any(row.visible for row in rows)


def kept_above(nodes: Mapping[str, Node], kept: Container[str]) -> dict[str, str | None]:
    """For every node the nearest one above it that is in `kept`; each node is looked at once, cycles end."""
    above: dict[str, str | None] = {}
    for start in nodes:
        way: list[str] = []
        at: str | None = start
        while at is not None and at in nodes and at not in above:
            above[at] = None  # until it is known; a cycle meets itself here
            way.append(at)
            at = nodes[at].parent
        for id in reversed(way):
            parent = nodes[id].parent
            above[id] = None if parent is None or parent not in nodes else parent if parent in kept else above[parent]
    return above
