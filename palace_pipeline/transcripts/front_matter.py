"""The YAML block at the head of a page: written by a small dumper with a fixed form, read by PyYAML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import yaml

Value = str | int | bool | date | datetime | Sequence[str] | None

_PLAIN = re.compile(r"[^\W\d_][\w.,/()+@-]*(?: [\w.,/()+@-]+)*")
_NO_TEXT = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_KEY = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#'"\[\]{}&*!|>%@`,?-].*?)\s*:(?:\s|$)""")
_OWN_LINE = re.compile(
    r"(?:([a-z0-9_]+):|  -)(?: (?:"
    r'("(?:[^"\\\x00-\x1f]|\\["\\nrt])*")'
    r"|([^\W\d_][\w.,/()+@-]*(?: [\w.,/()+@-]+)*|[0-9](?:[0-9T:.Z+-]*[0-9Z])?)"
    r"|(\[\])))?"
)
_FENCED = re.compile(r"\s*---[ \t]*\r?\n(.*?\n)?---[ \t]*\r?(?:\n|\Z)", re.DOTALL)
_CLASSES: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FrontMatterError(ValueError):
    """The block is no YAML mapping of names to values."""


class _Loader(_CLASSES):
    """Scalars stay the text that was written (a tag `2024` is no number, `2024-05-03` no object); only null is null."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the name and form are PyYAML's
        first: [("tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"))] for first in ("~", "n", "N", "")
    }


def dump(values: Mapping[str, Value]) -> str:
    """Lines of YAML in the order given. An instant is written as `2024-05-03T14:22:31Z`, None as an empty value."""
    return "".join(f"{name}:{_value(value)}\n" for name, value in values.items())


def _value(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return " " + scalar(value)
    if isinstance(value, bool):
        return " true" if value else " false"
    if isinstance(value, datetime):
        return " " + value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | int):
        return f" {value}"
    return "".join(f"\n  - {scalar(item)}" for item in value) or " []"


def scalar(text: str) -> str:
    """A text as YAML scalar: plain if no reader of YAML 1.1 or 1.2 can take it for anything else, else quoted.

    A lone surrogate, which YAML cannot hold, becomes U+FFFD.
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXT:
        return text
    # JSON strings are YAML strings, except for characters that YAML wants escaped.
    return _ESCAPED.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"


def split(text: str) -> tuple[str | None, int]:
    """(the block without its fences, where the rest begins), or (None, 0) if no whole block stands at the start.

    CRLF in the block becomes LF.
    """
    match = _FENCED.match(text)
    return ((match[1] or "").replace("\r\n", "\n"), match.end()) if match else (None, 0)


def load(block: str) -> dict[str, Any]:
    """The values of a block: text, None, lists and mappings of these. Raises FrontMatterError."""
    own = _load_own(block)
    if own is not None:
        return own
    try:
        value: Any = yaml.load(block, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise FrontMatterError(f"no valid YAML ({type(error).__name__})") from None
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise FrontMatterError("no YAML mapping of names")
    return value


def _load_own(block: str) -> dict[str, Any] | None:
    """What `dump` writes, read ten times as fast as PyYAML can; None for anything that might mean something else."""
    if _ESCAPED.search(block):
        return None
    values: dict[str, Any] = {}
    last = ""
    for line in block.removesuffix("\n").split("\n"):
        match = _OWN_LINE.fullmatch(line)
        if match is None:
            return None
        name, quoted, plain, empty = match.groups()
        if name == "null" or (plain and plain.lower() == "null"):
            return None
        value: Any = json.loads(quoted) if quoted else [] if empty else plain
        if name:
            values[name], last = value, name
        elif not isinstance(value, str) or not last:
            return None
        elif values[last] is None:
            values[last] = [value]
        elif isinstance(values[last], list) and values[last]:
            values[last].append(value)
        else:
            return None
    return values


def entries(block: str) -> list[tuple[str, str]]:
    """The block cut into (name, lines as written); the name of a comment line is ''.

    Good for block-style YAML, which is what people and note programs write; check with `load` what comes out.
    """
    found: list[tuple[str, str]] = []
    for line in block.removesuffix("\n").split("\n"):
        match = _KEY.match(line)
        line += "\n"
        if match:
            found.append((match[1].strip("'\""), line))
        elif line.startswith("#"):
            found.append(("", line))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line)
        elif line.strip():
            found.append(("", line))
    return found


def texts(value: Any) -> tuple[str, ...]:
    """A list property as people write it: a list, one value, or values with commas. Raises FrontMatterError."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part for item in value.split(",") if (part := item.strip()))
    if isinstance(value, list) and all(item is None or isinstance(item, str) for item in value):
        return tuple(item for item in value if item is not None)
    raise FrontMatterError("no list of texts")
