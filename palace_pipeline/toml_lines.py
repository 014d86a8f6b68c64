"""On which line of a TOML file a key stands: for errors that name the place."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HEADER = re.compile(r"^\s*(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
_PART = re.compile(r"[\w-]+|\"[^\"]*\"|'[^']*'")

Place = tuple[str | int, ...]


def line_of(text: str, place: Sequence[str | int]) -> int | None:
    """The line (from 1) that says most about a place, such as `("rooms", 1, "name")`: that of the key itself, or of
    the nearest table around it. A file that is no TOML, or lines inside multi-line texts, may give a line beside it.
    """
    wanted = tuple(place)
    table: Place = ()
    seen: dict[Place, int] = {}
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            names = _names(header[2])
            table = _below(names[:-1], seen) + names[-1:]
            if header[1] == "[[":
                seen[table] = seen.get(table, -1) + 1
                table += (seen[table],)
            here = table
        elif key := _KEY.match(line):
            here = table + _names(key[1])
        else:
            continue
        # A table without a key of its own (`[[rooms]]` for `rooms`) is better than nothing.
        near = len(here) if here == wanted[: len(here)] else 0 if here[: len(wanted)] == wanted else -1
        if near >= 0 and (best is None or near > best[0]):
            best = (near, number)
    return best[1] if best else None


def _names(dotted: str) -> Place:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _below(names: Place, seen: dict[Place, int]) -> Place:
    """The place of a table's parents: those that are lists stand for their last element."""
    place: Place = ()
    for name in names:
        place += (name,)
        if place in seen:
            place += (seen[place],)
    return place
