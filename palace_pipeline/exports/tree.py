"""Messages that form a tree -> the path that a person sees. For every format that keeps edits and regenerations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from palace_pipeline.exports.json_values import id_of, list_of

Turn = Literal["", "prompt", "answer", "result"]
"""What a record of an agent's log is to the conversation; "" for bookkeeping and hidden text."""


@dataclass(slots=True)
class Node:
    """A message (or a placeholder without one) in a tree; `children` in the source's order, as far as it has them."""

    id: str
    parent: str | None
    time: datetime | None = None
    says: bool = True
    """False for a node without a message."""


def linked(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, str | None]:
    """The parent of each node of a `mapping`, by id, brothers in the order in which they were written.

    That is the order of their parent's `children`; a node without a `parent` of its own has it from there as well.
    """
    named: dict[str, str] = {}
    rank: dict[str, int] = {}
    for id, node in nodes.items():
        for number, child in enumerate(list_of(node.get("children"))):
            child_id = child if type(child) is str and child in nodes else id_of(child)
            if child_id and child_id not in named:
                named[child_id] = id
                if number:
                    rank[child_id] = number
    ordered = sorted(nodes, key=lambda id: rank.get(id, 0)) if rank else nodes
    found: dict[str, str | None] = {}
    for id in ordered:
        if "parent" not in nodes[id]:
            found[id] = named.get(id)
            continue
        parent = nodes[id]["parent"]
        is_known = type(parent) is str and bool(parent) and parent in nodes
        found[id] = parent if parent is None or is_known else id_of(parent) or None
    return found


def active_path(nodes: Mapping[str, Node], leaf: str | None) -> list[str]:
    """Ids from the first message to `leaf`; without a known leaf to the one that `newest_leaf` finds.

    Terminates on cycles (each node once). A parent that is missing from the file ends the path; if what then remains
    before it is a single line of messages that begins at a true root, that line is its beginning.
    """
    end = leaf if leaf in nodes else newest_leaf(nodes)
    path = list(_up(nodes, end))
    if path and (missing := nodes[path[-1]].parent) is not None and missing not in nodes:
        path += _line_before(nodes, set(path))
    return path[::-1]


def _up(nodes: Mapping[str, Node], start: str | None) -> Iterator[str]:
    seen: set[str] = set()
    at = start
    while at is not None and at in nodes and at not in seen:
        seen.add(at)
        yield at
        at = nodes[at].parent


def newest_leaf(nodes: Mapping[str, Node]) -> str | None:
    """The leaf with the latest time; without any time the last child of the last child, from the last root that says
    something. None only for an empty tree."""
    children = children_of(nodes)
    leaves = [id for id in nodes if not children.get(id)] or list(nodes)  # a cycle has no leaf
    times: dict[str, datetime | None] = {}
    dated = [(time, number, id) for number, id in enumerate(leaves) if (time := _time(nodes, id, times)) is not None]
    if dated:
        return max(dated, key=lambda item: item[:2])[2]
    ends = [_last_end(children, root) for root in nodes if nodes[root].parent not in nodes]
    ends = ends or leaves
    silent = set[str]()
    return next((id for id in reversed(ends) if _follows_words(nodes, id, silent)), ends[-1] if ends else None)


def _follows_words(nodes: Mapping[str, Node], id: str, silent: set[str]) -> bool:
    """Does a node say something, or one above it? `silent`: nodes that were asked before and for which neither is so."""
    for at in _up(nodes, id):
        if nodes[at].says:
            return True
        if at in silent:
            return False
        silent.add(at)
    return False


def _time(nodes: Mapping[str, Node], id: str, known: dict[str, datetime | None]) -> datetime | None:
    """The time of a leaf: its own, or (for one without) that of the nearest message above it.

    `known`: what was found for others, so that a thousand leaves at the end of one long line do not cost its square.
    """
    passed: list[str] = []
    time = None
    for at in _up(nodes, id):
        if (time := nodes[at].time or known.get(at)) is not None or at in known:
            break
        passed.append(at)
    known.update(dict.fromkeys(passed, time))
    return time


def _last_end(children: Mapping[str, Sequence[str]], root: str) -> str:
    seen: set[str] = set()
    while root not in seen and children.get(root):
        seen.add(root)
        root = children[root][-1]
    return root


def children_of(nodes: Mapping[str, Node]) -> dict[str, list[str]]:
    """Children by parent, in the order in which the nodes stand in the file."""
    children: dict[str, list[str]] = {}
    for node in nodes.values():
        if node.parent is not None and node.parent in nodes:
            children.setdefault(node.parent, []).append(node.id)
    return children


def _line_before(nodes: Mapping[str, Node], taken: set[str]) -> list[str]:
    """From its end up to its root: the only line of messages that begins at a true root and lies outside `taken`."""
    children = children_of(nodes)
    roots = [id for id, node in nodes.items() if node.parent is None and id not in taken]
    lines = [line for line in (_single_line(children, root) for root in roots) if any(nodes[x].says for x in line)]
    return lines[0][::-1] if len(lines) == 1 else []


def _single_line(children: Mapping[str, Sequence[str]], root: str) -> list[str]:
    line = {root: None}
    at = root
    while len(below := children.get(at, [])) == 1 and below[0] not in line:
        at = below[0]
        line[at] = None
    return list(line) if not below else []


def left_behind(turns: Sequence[Turn], answers: Sequence[Any], ups: Sequence[int]) -> list[bool]:
    """Which records of an agent's log lie on a branch that was rewound.

    `ups`: the parent of each record as an index smaller than its own, -1 at the start. Ordinary work forks such a tree
    too (parallel tools, hooks, messages that another process adds), so being off the path of the last record says
    nothing. A branch was left only where one place has two questions, or one question two answers (`answers`: what
    tells them apart): then the one that was followed last is active.
    """
    last = list(range(len(ups)))
    for at in range(len(ups) - 1, 0, -1):
        if ups[at] >= 0 and last[at] > last[ups[at]]:
            last[ups[at]] = last[at]
    anchors: list[int] = []
    forks: dict[tuple[Any, ...], dict[Any, list[int]]] = {}
    for at, (turn, up) in enumerate(zip(turns, ups, strict=True)):
        anchors.append(up if up < 0 or turns[up] else anchors[up])
        if turn == "prompt":
            forks.setdefault(("prompt", anchors[at]), {})[at] = [at]
        elif turn == "answer" and up >= 0 and turns[up] == "prompt":
            forks.setdefault(("answer", up), {}).setdefault(answers[at], []).append(at)
    left = [False] * len(ups)
    for ways in forks.values():
        if len(ways) > 1:
            followed = max(ways.values(), key=lambda way: max(last[at] for at in way))
            for way in ways.values():
                for at in way:
                    left[at] = way is not followed
    for at, up in enumerate(ups):
        left[at] = left[at] or (up >= 0 and left[up])
    return left
