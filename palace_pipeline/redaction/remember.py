"""Secrets that one conversation claims, masked in all others: known by keyed hashes only, never by their values.

A value is taken apart into the unbroken pieces that look random; each is known by eight bytes of its hash under the
archive's key. So a key that was pasted after its name in March is masked where it stands bare in another chat of May.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator

from palace_pipeline.redaction.verdicts import looks_random

LEAST = 12
"""Characters of a piece: shorter ones could be guessed, or hit by chance."""
_RUN = re.compile(rf"[A-Za-z0-9_+~\-]{{{LEAST},512}}")


def pieces(text: str) -> Iterator[tuple[int, int]]:
    """Places of the pieces of a text that could be a secret, or a part of one."""
    for found in _RUN.finditer(text):
        run = found[0]
        body = run.strip("-_~+")
        if len(body) >= LEAST and not body.isalpha() and not body.isdigit() and looks_random(body, LEAST):
            start = found.start() + run.index(body)
            yield start, start + len(body)


def hashes(values: Iterable[str], key: bytes) -> set[bytes]:
    """What the pieces of some texts are known by."""
    return {_hash(value[start:end], key) for value in values for start, end in pieces(value)}


def remembered(text: str, known: frozenset[bytes], key: bytes) -> Iterator[tuple[int, int]]:
    """Places of a text that repeat what another conversation claimed."""
    for start, end in pieces(text):
        if _hash(text[start:end], key) in known:
            yield start, end


def _hash(piece: str, key: bytes) -> bytes:
    return hmac.digest(key, piece.encode(), hashlib.sha256)[:8]
