"""Values of foreign JSON -> what a reader wants of them. Whatever type stands in a place, nothing here raises."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.text import clean_text, parse_json


def text_of(value: object) -> str:
    """A string cleaned, or "" for anything else."""
    return clean_text(value) if isinstance(value, str) else ""


def words_of(value: object, report: Report, place: str = "") -> str:
    """What stands where a product writes what was said, cleaned. Anything there but a text or nothing is counted."""
    if value and not isinstance(value, str):
        report.skip("content of an unknown shape", place, expected=False)
    return text_of(value)


def name_of(value: object) -> str | None:
    """A string that is not empty, cleaned and without outer blanks, or None."""
    return clean_text(value).strip() or None if isinstance(value, str) else None


def id_of(value: object) -> str:
    """A text or a whole number as an id, cleaned and without outer blanks; "" for anything else."""
    if isinstance(value, str):
        return clean_text(value).strip()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def count_of(value: object) -> int:
    """A number of tokens; anything that is none counts 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48 else 0


def list_of(value: object) -> list[Any]:
    """A list, or an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def dict_of(value: object) -> dict[str, Any]:
    """An object, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def dicts_of(value: object) -> list[dict[str, Any]]:
    """The objects in a list; of anything else none."""
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def arguments_text(value: object) -> str:
    """The arguments of a tool call to read: `name: value` lines, so that text keeps its lines; other values as JSON."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return "\n".join(f"{clean_text(str(name))}: {_argument(inner)}" for name, inner in value.items())
    return "" if value is None else _as_json(value)


def _argument(value: object) -> str:
    return clean_text(_without_bytes(value)) if isinstance(value, str) else _as_json(value)


def json_text(value: object) -> str:
    """A value nobody has a better form for, as JSON; "" for none. Bytes in it (pictures, signatures) are left out."""
    return "" if value is None else _as_json(value)


_BYTES = re.compile(
    r"(?:data:[\w.+/\-]{1,80};base64,)?(?=[A-Za-z0-9+/_\-]*\d)(?=[A-Za-z0-9+/_\-]*[A-Z])[A-Za-z0-9+/_\-]{256,}={0,2}"
)


def _without_bytes(value: Any) -> Any:
    """The same value with a note in place of strings that are bytes in base64: nobody's words, kept in the vault."""
    if isinstance(value, str):
        return f"({len(value)} characters of base64)" if len(value) > 255 and _BYTES.fullmatch(value) else value
    if isinstance(value, list):
        return [_without_bytes(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _without_bytes(inner) for name, inner in value.items()}
    return value


def _as_json(value: object) -> str:
    try:
        value = _without_bytes(value)
    except RecursionError:
        return "(nested too deeply)"
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # lone surrogates, numbers of more than 64 bits, more than 254 levels
        try:
            return clean_text(json.dumps(value, ensure_ascii=False))
        except RecursionError:
            return "(nested too deeply)"


def unpacked(value: object) -> object:
    """The arguments of a call, which are often JSON in a string."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            inner = parse_json(value)
        except (ValueError, RecursionError):
            return value
        return inner if isinstance(inner, dict | list) else value
    return value
