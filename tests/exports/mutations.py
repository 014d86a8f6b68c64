"""Damaged, drifted and odd versions of a file, made with a seed: what the fuzz tests feed to the readers.

A mutant knows what it did: which elements or lines it touched, whether everything must be read as before, or which
other bytes must give the same conversations. Whoever reads it can then say what has to be unchanged.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

Same = Literal["nothing", "said", "all"]
"""What must be as in the original: nothing, what people see, or every row."""


@dataclass(frozen=True)
class Mutant:
    """One changed file. `touched`: numbers of the elements or lines that were changed, None for all of them.

    `lost`: the change itself took content away without a trace (a dropped line), so that nobody can count it.
    `same_as`: bytes that must give the same conversations as this mutant.
    """

    how: str
    data: bytes
    touched: frozenset[int] | None = None
    same: Same = "nothing"
    lost: bool = False
    same_as: bytes | None = None


@dataclass(frozen=True)
class Shape:
    """What a file is. `wrapped`: key of the list of conversations in a JSON object; `elements`: read one by one."""

    kind: Literal["json", "jsonl", "text", "sqlite", "zip", "bytes"]
    wrapped: str | None = None
    elements: bool = False


def shape_of(path: str, data: bytes, wrapped: str | None = None, *, elements: bool = False) -> Shape:
    """The shape of a fixture's file, by its content."""
    if data.startswith(b"SQLite format 3"):
        return Shape("sqlite")
    if data.startswith(b"PK"):
        return Shape("zip")
    body = data.removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r\n")
    lines = [line for line in body.split(b"\n") if line.strip()]
    if body[:1] in (b"{", b"["):
        try:
            json.loads(body.decode("utf-8", "surrogatepass"))
        except ValueError:
            if len(lines) > 1 and any(_object(line) is not None for line in lines):
                return Shape("jsonl", elements=elements)
        else:
            single = len(lines) == 1 and ".jsonl" in path
            return Shape("jsonl", elements=elements) if single else Shape("json", wrapped, elements)
    if b"\0" in body or path.endswith((".zst", ".gz")):
        return Shape("bytes")
    return Shape("text")


def mutants(path: str, data: bytes, shape: Shape, rng: random.Random) -> Iterator[Mutant]:
    """Without end: mutants of a file, structure and bytes in turn."""
    from tests.exports import mutation_stores as stores  # which makes mutants of the files inside a ZIP

    makers: dict[str, list[Callable[[str, bytes, Shape, random.Random], Mutant | None]]] = {
        "json": [_json_structure] * 5 + [_bytes] * 2 + [_encoding, _json_addition],
        "jsonl": [_line_structure] * 4 + [_lines] * 3 + [_bytes] * 2 + [_encoding, _json_addition],
        "text": [_text] * 5 + [_bytes] * 2 + [_encoding],
        "sqlite": [stores.cells] * 4 + [stores.tables, _bytes, flip],
        "zip": [stores.inner] * 4 + [_bytes, flip],
        "bytes": [_bytes, flip],
    }
    while True:
        made = rng.choice(makers[shape.kind])(path, data, shape, rng)
        if made is not None and made.data != data:
            yield made


# --- JSON -------------------------------------------------------------------------------------------------------------

Place = tuple[Any, Any]
"""A container and the key or index of a value in it."""

OTHER_TYPES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2.5,
    1e308,
    "",
    "zz",
    [],
    {},
    [None],
    ["zz"],
    [[]],
    {"zz": None},
    [{}],
]


def places(value: Any) -> Iterator[Place]:
    """Every place of a value, outermost first."""
    stack: list[Any] = [value]
    while stack:
        at = stack.pop()
        items = at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ()
        for key, inner in items:
            yield at, key
            if isinstance(inner, dict | list):
                stack.append(inner)


def change(value: Any, rng: random.Random) -> str | None:
    """One structural change in place, anywhere below `value`; says what it was (kinds and keys, no content)."""
    found = list(places(value))
    if not found:
        return None
    holder, key = rng.choice(found)
    return change_at(holder, key, rng)


def change_at(holder: Any, key: Any, rng: random.Random) -> str:
    """One structural change of the value at a place."""
    old = holder[key]
    name = f"{key!r} ({type(old).__name__})" if isinstance(holder, dict) else f"[{key}] ({type(old).__name__})"
    ways = ["drop", "retype", "retype", "retype", "nest", "huge", "twice", "swap"]
    if isinstance(old, str):
        ways += ["cut", "surrogate", "nul", "long", "blank", "wild"]
    way = rng.choice(ways)
    if way == "drop":
        del holder[key]
    elif way == "retype":
        holder[key] = copy.deepcopy(rng.choice([new for new in OTHER_TYPES if type(new) is not type(old)]))
        name += f" as {type(holder[key]).__name__}"
    elif way == "nest":
        depth = rng.choice([1, 2, 30, 900])
        for _ in range(depth):
            old = [old] if rng.random() < 0.5 else {"zz": old}
        holder[key] = old
    elif way == "huge":
        holder[key] = rng.choice(
            [10**18, 2**63, 2**64, -(2**70), 10**400, float("inf"), float("nan"), 1e300, 253402300800]
        )
    elif way == "twice":
        if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(old))
        else:
            holder[f"{key}_zz"] = copy.deepcopy(old)
    elif way == "swap":
        others = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        other = rng.choice(others)
        holder[key], holder[other] = holder[other], holder[key]
    else:
        holder[key] = _odd_text(old, way, rng)
    return f"{way} {name}"


def _odd_text(old: str, way: str, rng: random.Random) -> str:
    at = rng.randrange(len(old) + 1)
    if way == "cut":
        return old[:at]
    if way == "long":
        return old + " zz" * 20_000
    if way == "blank":
        return rng.choice(["", " ", "\n", "\u00a0", "\u200b"])
    pieces = {"nul": ["\0"], "surrogate": ["\ud83d", "\udc00"]}
    return old[:at] + rng.choice(pieces.get(way, _ODD_PIECES)) + old[at:]


_ODD_PIECES = [
    *(
        "\u2028",
        "\u0085",
        "\u202e",
        "\u200b",
        "</",
        "```",
        "\r\n",
        "\r",
        "\x1b[0m",
        "\ue200cite\ue202turn0search3\ue201",
    ),
    *("\ufeff", "[", "](", "{{", "<system-reminder>", "\U0001f3f4"),
]


def load(data: bytes) -> Any:
    """A JSON value, lone surrogates and all; ValueError if it is none."""
    return json.loads(data.removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r\n").decode("utf-8", "surrogateescape"))


def dump(value: Any, rng: random.Random | None = None) -> bytes:
    """JSON as bytes: always ASCII if lone surrogates would need it, else as the dice fall."""
    plain = rng is not None and rng.random() < 0.5
    try:
        return json.dumps(value, ensure_ascii=not plain).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def element_list(value: Any, shape: Shape) -> list[Any] | None:
    """The list whose items are read one by one, if there is one."""
    inner = value.get(shape.wrapped) if isinstance(value, dict) and shape.wrapped else value
    return inner if isinstance(inner, list) and shape.elements else None


def _json_structure(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    value = load(data)
    elements = element_list(value, shape)
    if not elements or rng.random() < 0.1:
        box = [value]
        how = change(box, rng) if rng.random() < 0.1 else change(value, rng)
        return None if how is None or not box else Mutant(how, dump(box[0], rng))
    number = rng.randrange(len(elements))
    if rng.random() < 0.2:
        return _whole_element(value, elements, number, rng)
    how = change(elements[number], rng) if isinstance(elements[number], dict | list) else None
    return None if how is None else Mutant(how, dump(value, rng), frozenset({number}))


def _whole_element(value: Any, elements: list[Any], number: int, rng: random.Random) -> Mutant:
    """Elements dropped, doubled, exchanged, or with something else among them."""
    way = rng.choice(["drop", "twice", "swap", "stranger", "retype"])
    if way == "drop":
        del elements[number]
        return Mutant("drop element", dump(value, rng), frozenset({number}), lost=True)
    if way == "twice":
        elements.insert(rng.randrange(len(elements) + 1), copy.deepcopy(elements[number]))
        return Mutant("element twice", dump(value, rng), frozenset(), "all")
    if way == "swap":
        other = rng.randrange(len(elements))
        elements[number], elements[other] = elements[other], elements[number]
        return Mutant("elements exchanged", dump(value, rng), frozenset(), "all")
    if way == "stranger":
        stranger = copy.deepcopy(rng.choice(OTHER_TYPES))
        elements.insert(rng.randrange(len(elements) + 1), stranger)
        return Mutant(f"a {type(stranger).__name__} among the elements", dump(value, rng), frozenset(), "all")
    elements[number] = copy.deepcopy(rng.choice(OTHER_TYPES))
    return Mutant(f"element as {type(elements[number]).__name__}", dump(value, rng), frozenset({number}))


def _json_addition(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    """A key that nobody knows, somewhere: what people see stays as it is."""
    new = copy.deepcopy(rng.choice(OTHER_TYPES))
    if shape.kind == "jsonl":
        lines = data.split(b"\n")
        whole = [n for n, line in enumerate(lines) if _object(line) is not None]
        if not whole:
            return None
        number = rng.choice(whole)
        value = _object(lines[number])
    else:
        value = load(data)
    objects = [v for v in [value, *(holder[key] for holder, key in places(value))] if isinstance(v, dict)]
    # Not in a table of records by id, and not in what stands for itself (a tool's arguments, a JSON schema).
    known = [v for v in objects if sum(isinstance(inner, dict) for inner in v.values()) * 2 <= len(v)]
    if not known:
        return None
    rng.choice(known)["zz_unknown"] = new
    if shape.kind == "jsonl":
        lines[number] = dump(value)
        return Mutant(f"unknown key ({type(new).__name__})", b"\n".join(lines), frozenset({number}), "said")
    return Mutant(f"unknown key ({type(new).__name__})", dump(value, rng), None, "said")


# --- JSON lines -------------------------------------------------------------------------------------------------------


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = load(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _line_structure(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    lines = data.split(b"\n")
    number = rng.randrange(len(lines))
    value = _object(lines[number])
    how = change(value, rng) if value is not None else None
    if how is None:
        return None
    lines[number] = dump(value, rng)
    return Mutant(how, b"\n".join(lines), frozenset({number}))


GARBAGE = [b"\0" * 64, b"{", b'{"type":', b"\xff\xfe\xfd", b"null", b"[1]", b"7", b'"zz"', b"zz zz", b'{"a":"b"']


def _lines(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    lines = data.split(b"\n")
    full = [number for number, line in enumerate(lines) if line.strip()]
    number = rng.choice(full)
    way = rng.choice(["drop", "twice", "garbage", "garbage", "cut", "between", "joined", "blank", "swap"])
    without = b"\n".join(lines[:number] + lines[number + 1 :])
    changed = list(lines)
    if way == "drop":
        return Mutant("drop line", without, frozenset({number}), lost=True)
    if way == "twice":
        changed.insert(number, lines[number])
        return Mutant("line twice", b"\n".join(changed), frozenset({number}))
    if way == "garbage":
        changed[number] = rng.choice(GARBAGE)
        # Not of the first line: a damaged header says that there was one.
        return Mutant(
            "garbage for a line", b"\n".join(changed), frozenset({number}), same_as=without if number else None
        )
    if way == "cut":
        changed[number] = lines[number][: rng.randrange(1, len(lines[number]))]
        return Mutant("cut line", b"\n".join(changed), frozenset({number}))
    if way == "between":
        changed.insert(number, rng.choice(GARBAGE))
        return Mutant("garbage between lines", b"\n".join(changed), frozenset(), "all")
    if way == "blank":
        changed.insert(number, rng.choice([b"", b"\r", b"   "]))
        return Mutant("blank line", b"\n".join(changed), frozenset(), "all")
    other = rng.choice(full)
    if way == "joined":
        changed[number : number + 2] = [b"".join(lines[number : number + 2])]
        return Mutant("joined lines", b"\n".join(changed), frozenset({number, number + 1}))
    changed[number], changed[other] = lines[other], lines[number]
    return Mutant("lines exchanged", b"\n".join(changed), frozenset({number, other}))


# --- any bytes --------------------------------------------------------------------------------------------------------


def _bytes(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    at = rng.randrange(len(data))
    way = rng.choice(["truncate", "truncate", "flip", "insert", "delete", "invalid", "nul", "span twice"])
    if way == "truncate":
        at = rng.choice([1, 2, at, at, at, len(data) - 1, len(data) - 2])
        return Mutant("truncate", data[: max(at, 0)], _from(data, at, shape))
    if way == "flip":
        return flip(path, data, shape, rng)
    end = min(len(data), at + rng.choice([1, 1, 2, 10, 200]))
    if way == "delete":
        return Mutant("delete bytes", data[:at] + data[end:], _touched(data, at, end, shape))
    piece = {"insert": bytes([rng.randrange(256)]), "invalid": rng.choice([b"\xff", b"\xc3", b"\xed\xa0\x80"])}.get(
        way, b"\0" * rng.choice([1, 50]) if way == "nul" else data[at:end]
    )
    return Mutant(f"{way} bytes", data[:at] + piece + data[at:], _touched(data, at, at + 1, shape))


def flip(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    at = rng.randrange(len(data))
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 4]) if shape.kind in ("sqlite", "zip", "bytes") else 1):
        changed[at] ^= 1 << rng.randrange(8)
    return Mutant("flip a bit", bytes(changed), _touched(data, at, at + 1, shape))


def _touched(data: bytes, start: int, end: int, shape: Shape) -> frozenset[int] | None:
    """Numbers of the elements (or lines) that bytes `start:end` belong to; None if the frame around them is hit."""
    if shape.kind == "jsonl":
        return frozenset(range(data.count(b"\n", 0, start), data.count(b"\n", 0, end) + 1))
    spans = element_spans(data, shape)
    if not spans or start < spans[0][0] or end > spans[-1][1]:
        return None
    return frozenset(number for number, (first, last) in enumerate(spans) if first < end and start < last)


def _from(data: bytes, start: int, shape: Shape) -> frozenset[int] | None:
    if shape.kind == "jsonl":
        return frozenset(range(data.count(b"\n", 0, start), data.count(b"\n") + 1))
    spans = element_spans(data, shape)
    return frozenset(n for n, (_, last) in enumerate(spans) if start < last) if spans and start > spans[0][0] else None


def element_spans(data: bytes, shape: Shape) -> list[tuple[int, int]]:
    """Where the elements of a JSON file stand in its bytes, found by a plain decoder; [] if it is not read by them."""
    if shape.kind != "json" or not shape.elements:
        return []
    text = data.decode("latin-1")
    if shape.wrapped:
        opened = re.search(rf'"{re.escape(shape.wrapped)}"\s*:\s*\[', text)
        at = opened.end() if opened else len(text)
    else:
        at = text.find("[") + 1 if text.lstrip("\xef\xbb\xbf \r\n\t\0").startswith("[") else len(text)
    decoder = json.JSONDecoder(strict=False)
    spans: list[tuple[int, int]] = []
    while (found := re.compile(r"[\s,\0]*").match(text, at)) and found.end() < len(text) and text[found.end()] != "]":
        try:
            _, at = decoder.raw_decode(text, found.end())
        except ValueError:
            return []
        spans.append((found.end(), at))
    return spans


def _encoding(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    """The same file as another program would have saved it."""
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        return None
    way = rng.choice(["crlf", "bom", "utf-16", "utf-16-be", "padding"])
    if way == "crlf":
        return Mutant("CRLF", text.replace("\r\n", "\n").replace("\n", "\r\n").encode(), frozenset(), "all")
    if way == "bom":
        return Mutant("BOM", b"\xef\xbb\xbf" + text.encode(), frozenset(), "all")
    if way == "padding":
        return Mutant("blanks around", b"\n  \n" + text.encode() + b"\n \n", frozenset(), "all")
    mark = b"\xff\xfe" if way == "utf-16" else b"\xfe\xff"
    body = text.encode("utf-16-le" if way == "utf-16" else "utf-16-be")
    return Mutant(f"saved as {way}", mark + body, frozenset(), "all")


# --- text -------------------------------------------------------------------------------------------------------------


def _text(path: str, data: bytes, shape: Shape, rng: random.Random) -> Mutant | None:
    """Lines (of HTML: tags) dropped, doubled, joined, exchanged, cut."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    markup = "<html" in text[:2000].lower() or "<div" in text
    lines = re.split(r"(?<=>)", text) if markup else text.split("\n")
    number, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    way = rng.choice(["drop", "twice", "joined", "swap", "cut", "blank", "odd"])
    if way == "drop":
        del lines[number]
    elif way == "twice":
        lines.insert(number, lines[other])
    elif way == "joined":
        lines[number : number + 2] = [" ".join(lines[number : number + 2])]
    elif way == "swap":
        lines[number], lines[other] = lines[other], lines[number]
    elif way == "blank":
        lines.insert(number, rng.choice(["", " ", "\u00a0", "---", ">", "#", "```"]))
    else:
        lines[number] = _odd_text(lines[number], "cut" if way == "cut" else rng.choice(["wild", "nul", "long"]), rng)
    return Mutant(
        f"{way} line", ("" if markup else "\n").join(lines).encode("utf-8", "replace"), lost=way in ("drop", "cut")
    )
