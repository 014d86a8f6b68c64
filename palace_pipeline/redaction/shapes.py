"""Token shapes: one small pattern language that is both a regular expression and a recipe for drawing examples.

A shape holds literals (`\\.` for a dot), classes `[A-Za-z0-9_-]`, alternatives `(a|b)` and counts `{n}`, `{m,n}`. It is
a valid regular expression as it stands, so a rule needs no second pattern, and no token ever stands in the source.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

MAX_REPEAT = 4096
"""Open-ended tails stop here: every match is bounded, so work is linear in the number of anchors."""

_ATOM = re.compile(
    r"(?:\\(?P<escaped>.)|\[(?P<chars>[^\]]+)\]|\((?P<choices>[^()]*)\)|(?P<literal>[^\\\[\](){}]))"
    r"(?:\{(?P<low>\d+)(?:,(?P<high>\d+))?\})?",
    re.S,
)


@dataclass(frozen=True, slots=True)
class Atom:
    """One part of a shape: what it may be (`options`) and how often; `kind` is literal, chars or choices."""

    kind: str
    source: str
    options: tuple[str, ...]
    low: int
    high: int


def parse(shape: str) -> list[Atom]:
    """The atoms of a shape; raises ValueError at the first character that is not part of the language."""
    atoms: list[Atom] = []
    position = 0
    while position < len(shape):
        found = _ATOM.match(shape, position)
        if found is None:
            raise ValueError(f"bad shape at {position}: {shape!r}")
        position = found.end()
        low = int(found["low"] or 1)
        high = int(found["high"] or low)
        if found["chars"]:
            atoms.append(Atom("chars", f"[{found['chars']}]", tuple(expand(found["chars"])), low, high))
        elif found["choices"] is not None:
            choices = tuple(found["choices"].replace("\\", "").split("|"))
            atoms.append(Atom("choices", f"(?:{found['choices']})", choices, low, high))
        else:
            literal = found["escaped"] or found["literal"]
            atoms.append(Atom("literal", re.escape(literal), (literal,), low, high))
    return atoms


def expand(chars: str) -> str:
    """The characters of a class body: `a-f0` -> `abcdef0`."""
    out: list[str] = []
    index = 0
    while index < len(chars):
        if index + 2 < len(chars) and chars[index + 1] == "-":
            out += [chr(code) for code in range(ord(chars[index]), ord(chars[index + 2]) + 1)]
            index += 3
        else:
            out.append(chars[index])
            index += 1
    return "".join(out)


def regex(shape: str) -> str:
    """The regular expression of a shape. Lengths are minimums: a class at the end takes all that follows of it."""
    atoms = parse(shape)
    out: list[str] = []
    for index, atom in enumerate(atoms):
        last = index == len(atoms) - 1
        if last and atom.kind == "chars" and atom.low > 4:
            out.append(f"{atom.source}{{{atom.low},{max(MAX_REPEAT, atom.high)}}}")
        elif (atom.low, atom.high) == (1, 1):
            out.append(atom.source)
        else:
            out.append(f"{atom.source}{{{atom.low},{atom.high}}}")
    return "".join(out)


def prefixes(shape: str) -> list[str]:
    """The fixed beginnings of a shape (several when it starts with alternatives); [''] when there is none."""
    out = [""]
    for atom in parse(shape):
        if atom.kind == "chars" or (atom.low, atom.high) != (1, 1):
            break
        out = [head + option for head in out for option in atom.options]
        if len(out) > 1 and atom.kind == "literal" and len(out[0]) >= 8:
            break
    return out


def draw(shape: str, source: random.Random) -> str:
    """A string of this shape (for tests and measurements; not for keys)."""
    out: list[str] = []
    for atom in parse(shape):
        out += [source.choice(atom.options) for _ in range(source.randint(atom.low, atom.high))]
    return "".join(out)
