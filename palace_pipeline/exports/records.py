"""The records of a JSON array, or of JSON lines, one after the other; a damaged one is counted and passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from palace_pipeline.exports.base import Member, Report
from palace_pipeline.exports.splitter import ArrayCut, split_array, whole_values
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.exports.text import json_lines, parse_json

_BEGINNING = 65536
_SMALL = 2 * 1024 * 1024
_SPACE = b"\xef\xbb\xbf \t\r\n\0"


def opens_with(member: Member) -> bytes:
    """The first byte that is no blank (`[`, `{`); `b""` if the beginning is blank."""
    with member.open() as stream:
        return stream.read(_BEGINNING).lstrip(_SPACE)[:1]


def records_of(
    member: Member, report: Report, key: str | None = None, is_record: Callable[[Any], bool] | None = None
) -> Iterator[tuple[str, Any]]:
    """(place, value) of each record: of an array, of the array under `key` of an object, or else of JSON lines.

    `is_record`: what a record of this format surely looks like; then those that a lost quote or bracket swallowed are
    found again.
    """
    is_array = key is None and opens_with(member) == b"["
    if is_array and (values := _small_array(member)) is not None:
        yield from ((f"[{index}]", value) for index, value in enumerate(values))
        return
    with member.open() as stream:
        if key is not None or is_array:
            raw = ((f"{key or ''}[{index}]", data) for index, data in split_array(stream, key))
        else:
            raw = ((f"line {number}", data) for number, data in json_lines(stream))
        place = ""
        try:
            for place, data in raw:
                try:
                    yield place, parse_json(data)
                except (ValueError, RecursionError):
                    report.skip("damaged JSON" if data else "too large to be read", place, expected=False)
                    yield from ((place, value) for value in salvaged(data, is_record))
        except MemberError as error:
            report.skip(str(error), f"after {place}" if place else "", expected=False, unit="file")
        except ArrayCut as cut:
            report.skip(f"cut or damaged: {cut}", expected=False, unit="file")
            yield from ((place, value) for value in salvaged(cut.rest, is_record))


def _small_array(member: Member) -> list[Any] | None:
    """The values of an array that is small and sound, at once; else None. That is several times as fast."""
    with member.open() as stream:
        data = stream.read(_SMALL + 1)
    if len(data) > _SMALL:
        return None
    try:
        value = orjson.loads(data.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n\0"))
    except orjson.JSONDecodeError:
        return None  # element by element it comes out what is wrong
    return value if isinstance(value, list) else None


def salvaged(damaged: bytes, is_record: Callable[[Any], bool] | None) -> Iterator[Any]:
    """The whole records inside a damaged piece."""
    if is_record is None:
        return
    for piece in whole_values(damaged):
        value = parse_json(piece)
        if is_record(value):
            yield value
