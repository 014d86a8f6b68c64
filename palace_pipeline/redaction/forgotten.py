"""Values that the user had purged: found again wherever they come back, though the archive keeps only what proves them.

Of a value stay its length, a rolling hash and a proof, both keyed. The rolling hash finds every window of a text that
could be the value, in time linear in the text; the proof (an HMAC) decides.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import urllib.parse
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from palace_pipeline.redaction import made
from palace_pipeline.redaction.made import WORD, Nature, is_path, told

SHORTEST = 4
"""Letters: a shorter value would tear holes into ordinary words. A wide character (Chinese, Japanese, Korean) counts as
two: most Chinese names have two or three."""
SHORTEST_ENCODED = 8
"""Characters of base64: shorter ones come by chance in long runs of it."""
LEAST_ANYWHERE = 12
"""Characters of the form in names of a value of letters only, from which it counts inside a longer word as well."""
BLOCK = 1 << 20
"""Characters looked at once: a place costs some 40 bytes while it is looked at."""
KIND = "purged"
MASK = f"[REDACTED:{KIND}]"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A purged value as the archive knows it. `length` in code points."""

    length: int
    rolling: int
    proof: bytes


def forget(value: str, key: bytes) -> Forgotten:
    """What is kept of a value under the archive's key. Raises ValueError if it is too short to be looked for."""
    if not is_enough(value):
        raise ValueError(TOO_SHORT)
    codes = _codes(value)
    with np.errstate(over="ignore"):
        rolling = np.uint64((codes * _powers(len(codes), key)).sum())
    return Forgotten(len(value), int(rolling), _proof(value, key))


def find(text: str, values: Iterable[Forgotten], key: bytes) -> Iterator[tuple[int, int]]:
    """Places [start, end) of forgotten values in a text, by length and place (block by block); they may overlap.

    A window that starts at i has the sum of code * base**j over its places j; divided by base**i (a shift of the
    equation, since all is modulo 2**64) that is the value's own sum.
    """
    groups: dict[int, list[Forgotten]] = {}
    for value in values:
        if value.length <= len(text):
            groups.setdefault(value.length, []).append(value)
    if not groups:
        return
    reach = max(groups) - 1
    for at in range(0, len(text), BLOCK):
        for start, end in _in_block(text[at : at + BLOCK + reach], groups, key):
            if start < BLOCK:  # what begins later is the next block's
                yield at + start, at + end


def _in_block(text: str, groups: dict[int, list[Forgotten]], key: bytes) -> Iterator[tuple[int, int]]:
    codes = _codes(text)
    powers = _powers(len(codes), key)
    with np.errstate(over="ignore"):
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(codes * powers, dtype=np.uint64)])
    for length, group in sorted(groups.items()):
        with np.errstate(over="ignore"):
            windows = sums[length:] - sums[:-length]
        for value in group:
            with np.errstate(over="ignore"):
                places = np.flatnonzero(windows == np.uint64(value.rolling) * powers[: len(windows)])
            for start in places.tolist():
                if hmac.compare_digest(_proof(text[start : start + length], key), value.proof):
                    yield start, start + length


def masked(text: str, values: Iterable[Forgotten], key: bytes, mask: str = MASK, nature: Nature = made.said) -> str:
    """The text with `mask` in the place of every forgotten value. `nature`: where in it a value says nothing."""
    return with_mask(text, told(text, sorted(find(text, values, key)), nature), mask)


def forget_name(name: str, key: bytes) -> Forgotten:
    """What is kept of the form that a value has in names of files (in lower case, see `page_path.slug`): it is looked for
    in names only. Raises ValueError if it is too short."""
    return forget(name.lower(), _name_key(key))


def find_in_name(
    text: str, values: Collection[Forgotten], key: bytes, nature: Nature = made.path
) -> list[tuple[int, int]]:
    """Places of forgotten values in a path, or in a text that is nothing but one, in order: as they are, and in the form
    that they have in names. A short one of letters only counts as a whole word: `anna` is not in `hannah`."""
    lower = lower_in_place(text)
    named = (place for place in find(lower, values, _name_key(key)) if _is_whole(lower, *place))
    return told(text, sorted([*find(text, values, key), *named]), nature)


def is_in(text: str, values: Collection[Forgotten], key: bytes) -> bool:
    """Whether a value may stand in a text, or in a path in it: a look at the whole that spares one at every line."""
    if next(find(text, values, key), None) is not None:
        return True
    return next(find(lower_in_place(text), values, _name_key(key)), None) is not None


def lower_in_place(text: str) -> str:
    """A text in lower case in which every character stands where it stood."""
    if len(low := text.lower()) == len(text):  # none grows shorter
        return low
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)


def places_in_name(text: str, names: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Places of a path in which one of these forms (in lower case) stands. By the same rule as `find_in_name`, for values
    that are known."""
    lower = lower_in_place(text)
    found: list[tuple[int, int]] = []
    for name in names:
        at = lower.find(name)
        while at >= 0:
            if _is_whole(lower, at, at + len(name)):
                found.append((at, at + len(name)))
            at = lower.find(name, at + 1)
    yield from told(text, found, made.path)


def _is_whole(text: str, start: int, end: int) -> bool:
    if end - start >= LEAST_ANYWHERE or not text[start:end].isalpha() or not text[start:end].isascii():
        return True
    return not (text[:start][-1:].isalnum() or text[end : end + 1].isalnum())


def masked_path(
    path: str, values: Collection[Forgotten], key: bytes, mask: str = MASK, nature: Nature = made.path
) -> str:
    """A path (or, with another nature, a title) with `mask` for every value that it shows, also as names of files write them."""
    return with_mask(path, find_in_name(path, values, key, nature), mask)


def masked_paths(
    text: str, values: Collection[Forgotten], key: bytes, mask: str = MASK, nature: Nature = made.own
) -> str:
    """A text of the program's own with `mask` for every value: anywhere as it is, in paths as in `masked_path`."""
    text = masked(text, values, key, mask, nature)
    return WORD.sub(lambda word: masked_path(word[0], values, key, mask) if is_path(word[0]) else word[0], text)


def with_mask(text: str, places: Iterable[tuple[int, int]], mask: str) -> str:
    """A text with `mask` in these places, which come in order; places that overlap get one."""
    parts: list[str] = []
    at = 0
    for start, end in places:
        if start >= at:
            parts += (text[at:start], mask)
        at = max(at, end)
    return "".join([*parts, text[at:]]) if parts else text


def masked_name(text: str, values: Collection[Forgotten], key: bytes, nature: Nature = made.path) -> str:
    """The same for the name of a file: `[REDACTED:purged:3fa9c1]`, with a keyed hash of what stood there.

    So two names stay two, and a name that shows two values becomes the same whichever was purged first.
    """
    parts: list[str] = []
    at = end = 0
    for start, stop in [*find_in_name(text, values, key, nature), (len(text), len(text))]:
        if end > at and start >= end:
            said = text[at:end].encode("utf-8", "surrogatepass")
            parts.append(f"{MASK[:-1]}:{hmac.digest(key, b'name:' + said, hashlib.sha256).hex()[:6]}]")
            at = end
        if start >= end:
            parts.append(text[at:start])
            at = start
        end = max(end, stop)
    return "".join(parts)


HASHED = re.compile(re.escape(MASK[:-1]) + r":[0-9a-f]{6}\]")
"""What `masked_name` writes: people are shown `MASK` in its place."""


def forms(value: str) -> list[str]:
    """A value and the ways in which data writes it: escaped for JSON, in a URL, in base64 (its inner characters).

    Without those that are too short to be told from chance.
    """
    escaped = json.dumps(value)[1:-1]
    quoted = urllib.parse.quote(value, safe="", errors="surrogatepass")
    found = [value, escaped, json.dumps(value, ensure_ascii=False)[1:-1], escaped.replace("/", "\\/")]
    found += [quoted, re.sub("%..", lambda two: two[0].lower(), quoted), quoted.replace("%20", "+")]
    data = value.encode("utf-8", "surrogatepass")
    for lead in range(3):
        # The first and last characters also depend on what stands beside the value.
        inner = base64.b64encode(b"\0" * lead + data).rstrip(b"=")[(0, 2, 3)[lead] : ((lead + len(data)) * 8) // 6]
        if len(inner) >= SHORTEST_ENCODED:
            found += [inner.decode(), inner.decode().replace("+", "-").replace("/", "_")]
    return list(dict.fromkeys(filter(is_enough, found)))


def is_enough(value: str) -> bool:
    """Is a value long enough to be looked for?"""
    return len(value) >= SHORTEST or sum(1 + (east_asian_width(one) in "WF") for one in value) >= SHORTEST


TOO_SHORT = (
    f"a value needs at least {SHORTEST} letters, or {SHORTEST // 2} Chinese, Japanese or Korean characters: a shorter one would "
    "tear holes into words"
)


def _codes(text: str) -> NDArray[np.uint64]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)


def _powers(count: int, key: bytes) -> NDArray[np.uint64]:
    """base**0 … base**(count-1) modulo 2**64; the base is odd, and secret with the key."""
    return _all_powers(1 << count.bit_length(), key)[:count]


@lru_cache(4)
def _all_powers(count: int, key: bytes) -> NDArray[np.uint64]:
    base = np.uint64(int.from_bytes(hmac.digest(key, b"rolling", hashlib.sha256)[:8], "little") | 1)
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    with np.errstate(over="ignore"):
        return np.cumprod(factors, dtype=np.uint64)


@lru_cache(4)
def _name_key(key: bytes) -> bytes:
    """Another key, so that what is looked for in names is found in no text."""
    return hmac.digest(key, b"names", hashlib.sha256)


def _proof(value: str, key: bytes) -> bytes:
    return hmac.digest(key, b"forgotten:" + value.encode("utf-8", "surrogatepass"), hashlib.sha256)[:16]
