"""Tokens known by their shape: the rules of rules.toml, and where one of them matches."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from palace_pipeline.redaction import shapes
from palace_pipeline.redaction.recipe import data_text
from palace_pipeline.redaction.verdicts import is_placeholder, secret_enough

ALNUM = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


@dataclass(slots=True, frozen=True)
class Anchor:
    """The fixed part of a token; `after`: a pattern of the characters that follow it at least, to be matched before the rule."""

    text: bytes
    after: bytes


@dataclass(slots=True, frozen=True)
class Rule:
    """A token known by its shape (see rules.toml)."""

    id: str
    kind: str
    shapes: tuple[str, ...]
    anchors: tuple[Anchor, ...]
    regex: re.Pattern[bytes]
    back: int
    gate: str
    context: re.Pattern[bytes] | None
    locate: bool
    bare_start: bool
    never: tuple[str, ...]


@cache
def load_rules() -> tuple[Rule, ...]:
    """The rules of rules.toml; raises ValueError when a rule has no anchor."""
    table = tomllib.loads(data_text("rules.toml"))
    return tuple(_rule(row) for row in table["rules"])


def _rule(row: dict[str, Any]) -> Rule:
    found = tuple(row["shapes"])
    anchors = _anchors(row)
    locate = bool(row.get("locate", False))
    if not locate and not all(len(anchor.text) >= 2 for anchor in anchors):
        raise ValueError(f"rule {row['id']} has no fixed part to look for")
    pattern = row.get("pattern") or "|".join(f"(?:{shapes.regex(shape)})" for shape in found)
    context = row.get("context")
    return Rule(
        id=row["id"],
        kind=row.get("kind", row["id"]),
        shapes=found,
        anchors=() if locate else anchors,
        regex=re.compile(pattern.encode()),
        back=row.get("back", 0),
        gate=row.get("gate", "body"),
        context=re.compile("|".join(context).encode(), re.I) if context else None,
        locate=locate,
        bare_start=all(anchor.text.decode().isalnum() for anchor in anchors),
        never=tuple(row.get("never", ())),
    )


def _anchors(row: dict[str, Any]) -> tuple[Anchor, ...]:
    texts = row.get("anchors") or sorted({p for shape in row["shapes"] for p in shapes.prefixes(shape)})
    return tuple(Anchor(text.encode(), row.get("after", "").encode()) for text in texts)


def starts_here(data: bytes, start: int, bare: bool) -> bool:
    """Is this the left edge of a token? An escaped line break is one; the middle of a base64 run is not."""
    if not start:
        return True
    before = data[start - 1]
    if before == 61 and data[start - 7 : start] == b"sha256=":
        return False
    if before in ALNUM:
        return data[start - 2 : start] in (b"\\n", b"\\r", b"\\t")
    if bare and before in b"+/" and start > 1:
        return data[start - 2] not in ALNUM or (before == 47 and _in_url(data, start))
    return not (bare and before in b"_" and start > 1 and data[start - 2] in ALNUM)


_URL_TAIL = re.compile(rb"://[^\s\"'`<>]*\Z")


def _in_url(data: bytes, start: int) -> bool:
    return _URL_TAIL.search(data, max(0, start - 120), start) is not None


def match(rule: Rule, data: bytes, start: int, end: int) -> tuple[int, int, int] | None:
    """Start and end of the token of a rule whose anchor is data[start:end], and how long its prefix is."""
    if rule.back:
        found = None
        for edge in range(max(0, start - rule.back), start + 1):
            if starts_here(data, edge, False) and (found := rule.regex.match(data, edge)) and found.end() > start:
                break
        if found is None or found.end() <= start:
            return None
    else:
        found = rule.regex.match(data, start)
        if found is None:
            return None
    low, high = found.span("v") if "v" in rule.regex.groupindex and found["v"] is not None else found.span()
    if not in_context(rule, data, low):
        return None
    prefix = end - low if low <= start and not rule.back else 0
    body = body_of(data[low + prefix : high])
    if rule.gate == "body" and not secret_enough(body):
        return None
    if rule.gate == "shape" and is_placeholder(body):
        return None
    return low, high, prefix


def body_of(token: bytes) -> str:
    return token.decode("latin-1")


def in_context(rule: Rule, data: bytes, start: int) -> bool:
    return rule.context is None or rule.context.search(data, max(0, start - 120), start) is not None
