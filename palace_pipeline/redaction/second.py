"""A second opinion on secrets: the rules of Kingfisher (extra `palace-pipeline[kingfisher]`), confirmed by our verdicts.

Facts of kingfisher-secret-scanner 1.5.0 (checked 2026-11-30): offsets count bytes; `Scanner` reports findings it would
not show (`visible` is false), which count as well; `DetectionScanner` would let a text switch it off by a comment.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Protocol, cast

from palace_pipeline.redaction.containers import Held
from palace_pipeline.redaction.verdicts import is_hex, is_placeholder, is_uuid, looks_random, secret_enough


class Missing(ValueError):
    """Kingfisher is asked for in the settings and is not installed."""


class _Finding(Protocol):
    @property
    def rule_id(self) -> str: ...
    @property
    def secret(self) -> str: ...
    @property
    def location(self) -> dict[str, int]: ...


class _Scanner(Protocol):
    def scan(self, data: bytes) -> list[_Finding]: ...


class Kingfisher:
    """Its rules, compiled once (seconds at the first use on a machine; the compiled rules are kept by the package)."""

    def __init__(self) -> None:
        """Raises Missing when the package is not installed."""
        try:
            package = importlib.import_module("kingfisher_sdk")
        except ImportError as error:
            raise Missing(
                "redaction.kingfisher = true needs the package: pip install 'palace-pipeline[kingfisher]'"
            ) from error
        self._scanner = cast(_Scanner, package.Scanner(package.Rules(), base64=False, dedup=False, redact=False))

    def find(self, text: str) -> Iterator[Held]:
        """What it finds in a text and our verdicts confirm, in code points."""
        data = text.encode("utf-8", "surrogatepass")
        narrow = len(data) == len(text)
        for found in self._scanner.scan(data):
            low, high = found.location["start_offset"], found.location["end_offset"]
            at = data.find(found.secret.encode("utf-8", "surrogatepass"), low, high)
            if at >= 0:  # the place covers the context of the rule as well
                low, high = at, at + len(found.secret.encode("utf-8", "surrogatepass"))
            start = low if narrow else len(data[:low].decode("utf-8", "surrogatepass"))
            value = data[low:high].decode("utf-8", "surrogatepass")
            if confirmed(value):
                yield Held(
                    start, start + len(value), "token", "kingfisher-" + re.sub(r"[^a-z0-9]+", "-", found.rule_id)
                )


def confirmed(value: str) -> bool:
    """Could this be a secret at all? Digests, ids, placeholders and words are not."""
    if is_placeholder(value) or (is_uuid(value) or (is_hex(value) and len(value) in (40, 64))):
        return False
    return looks_random(value, 16) or (len(value) >= 20 and secret_enough(value))
