"""Damage for tests of single readers: a valid sample with one value of another type, and what must stay the same."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (None, True, 0, -1, 1e300, 1 << 70, "", "x\0\ud800", [], [None], {}, {"a": [1]}, [["x"]])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value but the root."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(inner, (*path, key))


def retyped(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """A copy with another value at one place."""
    new = copy.deepcopy(value)
    holder = new
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = copy.deepcopy(odd)
    return new


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()
