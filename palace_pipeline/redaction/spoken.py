"""Passwords in sentences and tables: the word stands somewhere on the line, the value somewhere near it or under it.

`names` knows a name and the value right behind it. Here only the shape of a password decides which word of the line
it is, so it must be one that people choose as passwords: letters, digits and signs mixed.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from palace_pipeline.redaction.containers import Held, weak_pair
from palace_pipeline.redaction.names import strength_of
from palace_pipeline.redaction.verdicts import (
    is_placeholder,
    looks_random,
    pair_share,
    password_like,
    password_shaped,
    token_like,
    word_share,
)
from palace_pipeline.redaction.words import WORDS

BEFORE, AFTER = 48, 64
"""Characters of the line that are looked at on each side of the word."""
_CANDIDATE = re.compile(rb"(?<![^\s\"'`(\[\x80:/=>|*,;])[!-~]{8,72}")
_PAIR = re.compile(r"([\w.@+-]{1,40})[:/]([^\s/:]{4,64})")
_ID = re.compile("([A-Za-z]+)[_-][0-9A-Za-z]{16}")
_QUOTES = "\"'`“”"


def passwords_near(data: bytes, at: int, done: int) -> Iterator[Held]:
    """Values shaped like a password on the line of the word at `at`, from `done` on."""
    low = max(0, at - BEFORE, data.rfind(b"\n", max(0, at - BEFORE), at) + 1)
    stop = data.find(b"\n", at, at + AFTER)
    high = stop if stop >= 0 else min(len(data), at + AFTER)
    for found in _CANDIDATE.finditer(data, low, min(len(data), high + 24)):
        if found.start() >= high or found.start() < done:
            continue
        held = _value(data, found.start(), found.end())
        if held is not None:
            yield held


def _value(data: bytes, start: int, end: int) -> Held | None:
    if data[start - 1 : start] == b"/" and data[max(0, start - 13) : start - 1].isalnum():
        return None  # the middle of base64
    while start < end and data[start] in b"\"'`([*<":
        start += 1
    word = data[start:end].decode()
    quote = re.search(r"[\"'`]", word)
    if quote:
        word = word[: quote.start()]
    word = re.sub(r"[.,;:)\]*>]+$", "", word)
    pair = _PAIR.fullmatch(word)
    if pair and password_shaped(pair[2]) and not weak_pair(pair[1], pair[2]):
        start, word = start + pair.start(2), pair[2]
    elif word[-1:] in "!?" and not password_shaped(word):
        word = word[:-1]
    given = data[start - 2 : start].strip(b" \"'`")[-1:] in (b":", b"=")
    if not (password_shaped(word) or (given and _mixed(word))) or is_placeholder(word):
        return None
    named = _ID.match(word)
    if (len(word) > 48 and word.isalnum()) or (named and named[1].lower() in WORDS["id_prefix"]):
        return None  # no one chooses so long a one; an id
    return Held(start, start + len(word), "password", "password-said")


def _mixed(word: str) -> bool:
    """Letters of both cases and a digit, and no word: what may be a password behind a colon."""
    cases = word.upper() != word and word.lower() != word and any(c.isdigit() for c in word)
    return cases and word.isalnum() and 10 <= len(word) <= 32 and word_share(word) < 0.3 and pair_share(word) < 0.5


# --- tables -----------------------------------------------------------------------------------------------------------

MAX_ROWS = 400
_HEADING = re.compile(r"[\w .\-/#\"'*`\u00c0-\uffff]{1,32}")
_RULE_LINE = re.compile(rb"[\s|:+=\-]*")
_VALUES = re.compile(rb"\)\s*VALUES\s*", re.I)


def columns(text: str, data: bytes, at: int) -> Generator[Held, None, int]:
    """Values under a heading that names a credential, in a Markdown, CSV or TSV table or an SQL insert.

    Returns where the rows end that were looked at (0: this is no table).
    """
    start = data.rfind(b"\n", max(0, at - 2000), at) + 1
    stop = data.find(b"\n", at, at + 2000)
    if stop < 0:
        stop = len(data)
    line = data[start:stop].rstrip(b"\r")
    if len(line) > 2000:
        return 0
    paren = line.rfind(b"(", 0, at - start)
    if paren >= 0 and (found := _VALUES.search(data, at, min(len(data), at + 400))):
        yield from _inserted(data, start + paren + 1, at, found)
        return stop
    sign = next((s for s in (b"|", b"\t", b";", b",") if line.count(s) >= (2 if s == b"|" else 1)), b"")
    if not sign:
        return 0
    cells = line.split(sign)
    column = line[: at - start].count(sign)
    headings = text[start : start + len(line)].split(sign.decode())
    # before the first heading may stand what quotes the table
    inner = headings[1:-1] if sign == b"|" else headings[1 if column and len(headings) > 2 else 0 :]
    if (sign != b"|" and line[:1].isspace() and b", " in line) or not all(
        _HEADING.fullmatch(cell.strip()) for cell in inner
    ):
        return 0
    if not all(len(cell.split()) <= 4 for cell in inner):
        return 0
    heading = headings[column].strip(" \"'*`\r")
    strength = strength_of(heading.replace(" ", "_")) if heading.isascii() else "password"
    if strength not in ("password", "strong") or len(heading) > 32:
        return 0
    place = stop + 1
    for _ in range(MAX_ROWS):
        end = data.find(b"\n", place)
        end = len(data) if end < 0 else end
        row = data[place:end].rstrip(b"\r")
        if place >= len(data) or end - place > 4000 or len(_split(row, sign)) != len(cells):
            return place
        if _RULE_LINE.fullmatch(row) is None:
            yield from _cell(place, row, sign, column, strength)
        place = end + 1
    return place


def _cell(place: int, row: bytes, sign: bytes, column: int, strength: str) -> Iterator[Held]:
    parts = _split(row, sign)
    if column >= len(parts):
        return
    low, high = parts[column]
    while low < high and row[low] in b" \t\"'`*":
        low += 1
    while high > low and row[high - 1] in b" \t\"'`*\r":
        high -= 1
    value = row[low:high].decode("latin-1")
    if fits(value, strength):
        yield Held(place + low, place + high, "password" if strength == "password" else "secret", "table-column")


def fits(value: str, strength: str) -> bool:
    """Verdict on a value whose place says that it is a credential."""
    if "\x80" in value or " " in value or weak_pair("", value) or re.match(r"\W?[\w.]+[(=]", value):
        return False
    if strength == "password":
        return password_like(value, quoted=True) or looks_random(value, 8)
    return token_like(value, quoted=True, strong=True)


def _split(row: bytes, sign: bytes) -> list[tuple[int, int]]:
    """The cells of a row; a comma inside double quotes does not part them."""
    out: list[tuple[int, int]] = []
    if sign == b"|" or b'"' not in row:
        place = 0
        for cell in row.split(sign):
            out.append((place, place + len(cell)))
            place += len(cell) + 1
        return out
    low, quoted = 0, False
    for place in range(len(row)):
        if row[place] == 34:
            quoted = not quoted
        elif row[place] == sign[0] and not quoted:
            out.append((low, place))
            low = place + 1
    out.append((low, len(row)))
    return out


def _inserted(data: bytes, first: int, at: int, found: re.Match[bytes]) -> Iterator[Held]:
    names = _split(data[first : found.start()], b",")
    column = next((i for i, (low, high) in enumerate(names) if first + low <= at < first + high), -1)
    if column < 0:
        return
    name = data[first + names[column][0] : first + names[column][1]].strip(b" \"'`[]").decode("latin-1")
    strength = strength_of(name)
    if strength not in ("password", "strong"):
        return
    place = found.end()
    for _ in range(MAX_ROWS):
        opened = re.compile(rb"\s*,?\s*\(").match(data, place)
        closed = data.find(b")", place, place + 4000)
        if opened is None or closed < 0:
            return
        row = data[opened.end() : closed].replace(b'"', b"'")
        low_high = _quoted_cells(row)
        if column < len(low_high):
            low, high = low_high[column]
            value = row[low:high].decode("latin-1")
            if fits(value, strength):
                yield Held(opened.end() + low, opened.end() + high, "password", "table-column")
        place = closed + 1


_CELL = re.compile(rb"\s*(?:[NEn]?'([^']*)'|([^,']*))\s*(?:,|\Z)")


def _quoted_cells(row: bytes) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    place = 0
    while place < len(row) and len(out) < 64:
        found = _CELL.match(row, place)
        if found is None or found.end() == place:
            break
        out.append(found.span(1) if found[1] is not None else found.span(2))
        place = found.end()
    return out
