"""Values that the user had purged: found again wherever they come back, though the archive keeps only what proves them.

Of a value stay its length, a rolling hash and a proof, both keyed. The rolling hash finds every window of a text that
could be the value, in time linear in the text; the proof (an HMAC) decides.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHORTEST = 4
"""Characters: a shorter value would tear holes into ordinary words."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A purged value as the archive knows it. `length` in code points."""

    length: int
    rolling: int
    proof: bytes


def forget(value: str, key: bytes) -> Forgotten:
    """What is kept of a value under the archive's key. Raises ValueError if it is too short to be looked for."""
    if len(value) < SHORTEST:
        raise ValueError(f"a value to be forgotten needs at least {SHORTEST} characters")
    codes = _codes(value)
    with np.errstate(over="ignore"):
        rolling = np.uint64((codes * _powers(len(codes), key)).sum())
    return Forgotten(len(value), int(rolling), _proof(value, key))


def find(text: str, values: Iterable[Forgotten], key: bytes) -> Iterator[tuple[int, int]]:
    """Places [start, end) of forgotten values in a text, by length and place; they may overlap.

    A window that starts at i has the sum of code * base**j over its places j; divided by base**i (a shift of the
    equation, since all is modulo 2**64) that is the value's own sum.
    """
    groups: dict[int, list[Forgotten]] = {}
    for value in values:
        if value.length <= len(text):
            groups.setdefault(value.length, []).append(value)
    if not groups:
        return
    codes = _codes(text)
    powers = _powers(len(codes), key)
    with np.errstate(over="ignore"):
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(codes * powers, dtype=np.uint64)])
        for length, group in sorted(groups.items()):
            windows = sums[length:] - sums[:-length]
            for value in group:
                places = np.flatnonzero(windows == np.uint64(value.rolling) * powers[: len(windows)])
                for start in places.tolist():
                    if hmac.compare_digest(_proof(text[start : start + length], key), value.proof):
                        yield start, start + length


def _codes(text: str) -> NDArray[np.uint64]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)


def _powers(count: int, key: bytes) -> NDArray[np.uint64]:
    """base**0 … base**(count-1) modulo 2**64; the base is odd, and secret with the key."""
    base = np.uint64(int.from_bytes(hmac.digest(key, b"rolling", hashlib.sha256)[:8], "little") | 1)
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    with np.errstate(over="ignore"):
        return np.cumprod(factors, dtype=np.uint64)


def _proof(value: str, key: bytes) -> bytes:
    return hmac.digest(key, b"forgotten:" + value.encode("utf-8", "surrogatepass"), hashlib.sha256)[:16]
