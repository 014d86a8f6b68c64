"""What rooms and halls are: definitions (`defaults.toml`) and labelled examples (`examples.jsonl`), as shipped."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from palace_pipeline.model import short_hash
from palace_pipeline.settings import Room

Axis = Literal["room", "hall"]
FALLBACK: Mapping[Axis, str] = {"room": "general", "hall": "facts"}
"""What a text is filed under that speaks for nothing."""


@dataclass(slots=True, frozen=True)
class Example:
    """A labelled text. Lines that begin with `> ` are the user's. `share`: how much each label of an axis is right."""

    lang: str
    text: str
    share: Mapping[Axis, Mapping[str, float]]


@cache
def definitions(axis: Axis) -> tuple[Room, ...]:
    """The default rooms, or the halls, in a fixed order."""
    tables: dict[str, dict[str, Any]] = tomllib.loads(_read("defaults.toml"))[f"{axis}s"]
    return tuple(Room(name=name, **table) for name, table in tables.items())


@cache
def examples() -> tuple[Example, ...]:
    """All examples that are shipped; each is labelled with a room, a hall, or both."""
    return tuple(_example(json.loads(line)) for line in _read("examples.jsonl").splitlines())


@cache
def data_hash() -> str:
    """Identity of definitions and examples."""
    return short_hash(_read("defaults.toml"), _read("examples.jsonl"), length=8)


def as_chunk(text: str) -> str:
    """A text with `> ` marks in the form that chunks of the archive have: messages with a blank line between."""
    out: list[str] = []
    before: bool | None = None
    for line in text.split("\n"):
        asked = line.startswith("> ") or line == ">"
        if before is not None and asked != before:
            out.append("")
        out.append(line[2:] if asked else line)
        before = asked
    return "\n".join(out)


def _example(row: dict[str, Any]) -> Example:
    shares: dict[Axis, dict[str, float]] = {}
    axes: tuple[Axis, ...] = ("room", "hall")
    for axis in axes:
        if label := row.get(axis):
            also: list[str] = row.get(f"also_{axis}s", [])
            # A second right label counts, but less than the first.
            shares[axis] = {label: 0.7 if also else 1.0} | {other: 0.3 / len(also) for other in also}
    return Example(row["lang"], row["text"], shares)


def _read(name: str) -> str:
    return resources.files("palace_pipeline.rooms").joinpath(name).read_text(encoding="utf-8")
