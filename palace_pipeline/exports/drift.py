"""Has a format changed? Judged from what a reading left behind; pure, and names only: nothing of a chat gets in here.

The names that readers count (`type:hologram`, `key:chat_messages.mood`) come out of foreign files: where a type should
stand there may be a password or a sentence. So a name is kept only if it looks like something a programmer called a
field, and of a "type" that takes dozens of values in one file none is kept: those are data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from palace_pipeline.model import Skip

NOT_A_NAME = "(not a name)"
NOTHING_UNDERSTOOD = "known format, but nothing in it was understood: it may have changed (see: palace formats)"

MAX_NAME = 60
MANY_NAMES = 40
"""So many names of one kind in one file are values, whatever they look like."""
BLANK_MANY = 5
"""So many messages without a word, and none with: the words stand somewhere else now."""
SAMPLED = 20
"""Records that are looked at on each level."""

_IDENTIFIER = re.compile(r"[A-Za-z_$@][\w.:/<>$-]{0,199}|\d{1,3}", re.ASCII)
_KEY = re.compile(r"([a-z][a-z _-]{0,29}):(.*)", re.ASCII | re.DOTALL)
_LONGEST = 300
_PIECES = re.compile(r"[^A-Za-z0-9]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_DATE = re.compile(r"(?:19|20)\d{4}(?:\d\d)?")
_DAMAGE = re.compile(r"damaged (?:JSON|line)|too (?:large|long)|line too long|day file of a Slack export whose")
"""Reasons that speak of a file's bytes or of what is missing beside it, not of its format."""
_BLANK = re.compile(r"empty message|blank|without content|no messages?\b|no visible|that a person sees")


def name(value: object) -> str:
    """A name of a type, role or key as it may be kept: at most 60 characters, or `(not a name)`."""
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value):
        return NOT_A_NAME
    from palace_pipeline.redaction.verdicts import looks_random  # loads word lists: only if there is something to judge

    return value[:MAX_NAME] if all(map(_plain, _PIECES.split(value))) and not looks_random(value, 12) else NOT_A_NAME


def _plain(piece: str) -> bool:
    """True for a word, words in camel case, a short number or a date; False for what a generator made."""
    numbers = re.findall(r"\d+", piece)
    from palace_pipeline.redaction.verdicts import looks_random, word_share

    letters = "".join(character for character in piece if character.isalpha())
    if len(numbers) > 2 or any(len(number) > 4 and not _DATE.fullmatch(number) for number in numbers):
        return False
    humps = _HUMP.findall(piece)
    if len(humps) > 3 and len(letters) < 3.5 * len(humps):
        return False  # words in camel case are longer than that
    return len(letters) < 10 or (word_share(letters) >= 0.5 and not looks_random(piece, 10))


def clean_key(key: str) -> str:
    """`kind:name` of a count that a reader made, with a name that may be kept."""
    return _clean_key(key[:_LONGEST])  # a megabyte that stands where a type should is not remembered


@lru_cache(4096)
def _clean_key(key: str) -> str:
    found = _KEY.fullmatch(key)
    return f"{found[1]}:{name(found[2])}" if found is not None else NOT_A_NAME


def cleaned(unknown: Mapping[str, int]) -> dict[str, int]:
    """The counts of a reading under names that may be kept; none is lost."""
    counts = Counter[str]()
    for key, count in unknown.items():
        counts[clean_key(key)] += count
    kinds = Counter(key.partition(":")[0] for key in counts)
    out = Counter[str]()
    for key, count in counts.items():
        kind = key.partition(":")[0]
        out[f"{kind}:{NOT_A_NAME}" if kinds[kind] > MANY_NAMES else key] += count
    return dict(sorted(out.items()))


def understood_nothing(taken: int, skips: Iterable[Skip], unknown: Mapping[str, int]) -> bool:
    """True if a member surely of a format gave no conversation, and neither damage nor emptiness explains it.

    A chat that was never begun is usual; a file of which nobody says why it is empty, or whose messages are all blank,
    is not. What is wrong with bytes (cut, encrypted, too large) is named as that and is no drift.
    """
    if taken:
        return False
    skips = list(skips)
    if unknown or not skips:
        return True
    if any(not skip.expected for skip in skips):
        return any(not skip.expected and _of_shape(skip) for skip in skips)
    return sum(skip.count for skip in skips if _BLANK.search(skip.reason)) >= BLANK_MANY


def _of_shape(skip: Skip) -> bool:
    if skip.unit == "file":
        return skip.reason == "damaged file"  # the reader itself failed on it
    return not _DAMAGE.search(skip.reason)


def unknown_keys(items: Iterable[Any], known: Mapping[str, frozenset[str]]) -> Counter[str]:
    """Keys of the first records that a reader has never heard of, with the number of records that have them.

    `known`: for each level the keys that the format is known to have. A level is a path of keys from an element, `*`
    stands for every value of a list or an object, "" for the element itself: `{"": …, "mapping.*.message": …}`. Only
    what detection has parsed anyway is looked at, so it costs next to nothing.
    """
    counts = Counter[str]()
    items = list(items)[:SAMPLED]
    for path, keys in known.items():
        level = ".".join(part for part in path.split(".") if part and part != "*")
        for record in _at(items, path):
            for key in record:
                if key not in keys:
                    shown = name(key)
                    counts[f"key:{level}.{shown}" if level and shown != NOT_A_NAME else f"key:{shown}"] += 1
    return counts


def _at(items: Iterable[Any], path: str) -> Iterator[dict[str, Any]]:
    """The objects at a path below the items, a few of each."""
    found = list(items)
    for part in path.split(".") if path else ():
        inner: list[Any] = []
        for value in found:
            if part == "*":
                inner += (
                    (list(value.values()) if isinstance(value, dict) else value)[:SAMPLED]
                    if isinstance(value, dict | list)
                    else []
                )
            elif isinstance(value, dict) and part in value:
                inner.append(value[part])
        found = inner[: SAMPLED * SAMPLED]
    yield from (value for value in found if isinstance(value, dict))
