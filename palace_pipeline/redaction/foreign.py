"""Secrets known by their name in Chinese, Japanese, Korean, Russian and other scripts: 密码是…, パスワード：…, пароль …"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ahocorasick_rs import AhoCorasick, MatchKind

from palace_pipeline.redaction.names import Assigned, Strength, bare_end
from palace_pipeline.redaction.scanning import Runs
from palace_pipeline.redaction.verdicts import WEAK_PASSWORDS, password_like, password_shaped, token_like
from palace_pipeline.redaction.words import WORDS

_FOREIGN_GROUPS: tuple[tuple[Strength, str], ...] = (
    ("password", "foreign_password"), ("strong", "foreign_token"), ("phrase", "foreign_seed"),
    ("paper", "foreign_paper"),
)  # fmt: skip
_FOREIGN: tuple[tuple[str, Strength], ...] = tuple(
    (word.replace("_", " "), strength) for strength, group in _FOREIGN_GROUPS for word in sorted(WORDS[group])
)
_FOREIGN_NAMES = AhoCorasick([word.lower() for word, _ in _FOREIGN], matchkind=MatchKind.LeftmostLongest)
_GAP = 16
"""Characters that may stand between a name and its value: a particle, a colon, quotes."""
_AFTER = re.compile(
    rf"(?P<gap>(?:[^\x21-\x7e\n]|[:=：(（\[*`\"'“「‘|>\-]|\n(?=[ \t]{{0,4}}[!-~]{{8,512}}(?:\n|\Z))|"
    rf"(?<![a-z])(?:is|es|est|ist|jetzt|now|api|lautet|actual)(?![a-z])){{0,{_GAP}}}?)"
    r"(?P<open>[`\"'“「‘(]?)(?P<value>[!-~]{6,512})"
)
_ASCII = Runs(bytes(range(33, 127)), 6)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True, frozen=True)
class ForeignWord:
    """A credential name of the word lists at text[start:end]."""

    start: int
    end: int
    word: str
    strength: Strength


def foreign_words(text: str) -> list[ForeignWord]:
    """Names in Chinese, Japanese, Korean, Russian and others, in order."""
    if text.isascii():
        return []
    low = _SURROGATE.sub("\ufffd", text.lower())
    if len(low) != len(text):  # a letter whose lower case is two: places would not fit
        low = _SURROGATE.sub("\ufffd", text)
    return [
        ForeignWord(start, end, *_FOREIGN[index]) for index, start, end in _FOREIGN_NAMES.find_matches_as_indexes(low)
    ]


def foreign_names(text: str, data: bytes, words: list[ForeignWord] | None = None) -> Iterator[Assigned]:
    """Values after the names of `foreign_words` (looked for when not given): the value is a run of ASCII."""
    words = foreign_words(text) if words is None else words
    if not words:
        return
    runs = iter(_ASCII.spans(data))
    run = next(runs, None)
    for place in words:
        end = place.end
        while run is not None and run[1] < end + 6:
            run = next(runs, None)
        if run is None:
            return
        found = _AFTER.match(text, end) if run[0] <= end + _GAP else None
        if found is None or place.strength == "paper":
            continue
        start, value = found.start("value"), found["value"]
        while value[:1] in "`\"'([:=*|>-":
            value, start = value[1:], start + 1
        if not value:
            continue
        stop = bare_end(data, start, start + len(value), start)
        value = text[start:stop]
        if place.strength == "password":
            fine = password_like(value, quoted=False, prose=True) and value.lower() not in WEAK_PASSWORDS
            fine = fine and (password_shaped(value) or re.match(r"\d[A-Z][a-z]+$|[A-Z][a-z]+\d$", value) is None)
            fine = fine or (
                value.isdigit() and 6 <= len(value) <= 12 and re.search("[:=：是はé]", found["gap"]) is not None
            )
        else:
            fine = token_like(value, quoted=False, strong=True)
        if fine:
            yield Assigned(start, stop, place.strength, place.word)
