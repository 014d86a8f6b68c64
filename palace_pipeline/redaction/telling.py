"""Where telling words stand in a text, and what is secret beside them: one automaton for headers, commands, codes,
sentences and tables, in any language of the word lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

from palace_pipeline.redaction import codes, containers, identity, spoken
from palace_pipeline.redaction.containers import Held
from palace_pipeline.redaction.foreign import ForeignWord
from palace_pipeline.redaction.words import WORDS

_SAID = frozenset(word.replace("_", " ").encode() for word in WORDS["said_password"])
_COLUMNS = frozenset({b"token", b"secret", b"api key", b"api_key", b"apikey", b"access key"})
_CODES = frozenset(codes.WORDS_OF_INTEREST)
_HELD = frozenset(containers.WORDS_OF_INTEREST)
_PAPERS = frozenset(identity.WORDS_OF_INTEREST)
TELLING = tuple(sorted(_SAID | _COLUMNS | _CODES | _HELD | _PAPERS))
_WEAK = (b"pass ", b"pass:", b"pass,", b"login", b"send ")
"""Words that mean other things as well: what is beside them must have a sign that passwords have."""
_ARCHIVER = b"7z "
"""In many a time (`10:07Z `)."""
_SIGN = re.compile(rb"[!@#$%^&*?]")
_SEEDS = frozenset(WORDS["foreign_seed"])


def told(text: str, data: bytes, places: list[tuple[int, int, int]], foreign: list[ForeignWord]) -> Iterator[Held]:
    """Secrets beside telling words of `data` (flat) and beside the names in other scripts.

    `places`: (index in `TELLING`, start, end) of each word, in order.
    """
    held: list[tuple[bytes, int]] = []
    near = column = 0
    tables = _Tables()
    for index, start, end in places:
        word = TELLING[index]
        if word in _HELD and not (word == _ARCHIVER and data[start - 1 : start].isalnum()):
            held.append((word, start))
        if word in _CODES:
            yield from codes.codes(data, word, start)
        if word in _PAPERS:
            yield from identity.papers(data, word, start)
        if (
            word in _SAID
            and start >= near
            and (len(word) > 4 or not word[-1:].isalpha() or not data[end : end + 1].isalpha())
        ):
            for found in spoken.passwords_near(data, start, near):
                if word not in _WEAK or _SIGN.search(data, found.start, found.end):
                    yield found
            near = start + spoken.AFTER
        if (word in _SAID or word in _COLUMNS) and start >= column and tables.wanted(data, start, end):
            tables.end = yield from spoken.columns(text, data, start)
            column = end
    if held:
        yield from containers.spoken_secrets(data, held)
    near = 0
    tables = _Tables()
    for found in foreign:
        if found.word in _SEEDS:
            yield from codes.seed_phrase(data, found.end)
        elif found.strength == "paper":
            yield from identity.foreign_papers(text, found.end)
        elif found.strength == "password":
            if found.start >= near:
                yield from spoken.passwords_near(data, found.start, near)
                near = found.end + spoken.AFTER
            if tables.wanted(data, found.start, found.end):
                tables.end = yield from spoken.columns(text, data, found.start)


MAX_COLUMNS = 8


class _Tables:
    """Which words may head a column of a table: not those in the rows that were looked at, nor too many of one line."""

    __slots__ = ("end", "heading", "left")

    def __init__(self) -> None:
        self.heading = self.end = self.left = 0

    def wanted(self, data: bytes, start: int, end: int) -> bool:
        if self.heading <= start < self.end or not _in_table(data, start, end):
            return False
        if start >= self.heading:
            line = data.find(b"\n", end, end + 2000)
            self.heading, self.left = line if line >= 0 else end + 2000, MAX_COLUMNS
        self.left -= 1
        return self.left >= 0


def _in_table(data: bytes, start: int, end: int) -> bool:
    """A cheap look: does a separator of cells follow the word (or its rest) or stand before it?"""
    after = data[end : end + 24].lstrip(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_ \"'`)*\x80")[:1]
    if after not in (b"", b"|", b",", b";", b"\t", b"\n", b"\r"):
        return False
    line = data.rfind(b"\n", max(0, start - 400), start)
    head = data[max(line, start - 400, 0) : start]
    return after in (b"|", b",", b";", b"\t") or b"," in head or b"|" in head or b"\t" in head or b";" in head
