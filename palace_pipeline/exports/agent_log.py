"""What the logs of coding agents have in common: damaged JSON lines, tool arguments, inline images, odd names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from palace_pipeline.exports.base import Member, Report
from palace_pipeline.exports.drift import NOT_A_NAME
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.exports.text import json_lines, parse_json

Record = dict[str, Any]

_RECORD_START = re.compile(rb'\{"(?:timestamp|type|parentUuid|uuid|sessionId|ordinal|kind|role)"')
_SALVAGE_TRIES = 8
_SIDE_BYTES = 16 * 1024 * 1024


def records(member: Member, report: Report, is_whole: Callable[[Record], bool]) -> Iterator[tuple[int, Record]]:
    """(line number, object) of every JSON line; damaged and odd lines are counted with their number and passed over.

    A process that died while it wrote leaves a cut record with the next one glued to it: those pieces of a bad line
    that are records by themselves (`is_whole`) are given. A file that cannot be read to its end gives what it has.
    """
    number = 0
    try:
        with member.open() as stream:
            for number, line in json_lines(stream):
                try:
                    value = orjson.loads(line)
                except orjson.JSONDecodeError:
                    value = _slowly(line)
                if type(value) is dict:
                    yield number, value
                elif not line:
                    report.skip("line too long (more than 128 MiB)", f"line {number}", expected=False)
                elif value is _NO_JSON:
                    report.skip("damaged line", f"line {number}", expected=False)
                    for piece in _salvaged(line, is_whole):
                        yield number, piece
                else:
                    report.skip("line is no record", f"line {number}", expected=False)
                del line, value  # they may be large, and the next one comes
    except MemberError as error:
        report.skip(str(error), f"after line {number}", expected=False, unit="file")


_NO_JSON = object()


def _slowly(line: bytes) -> object:
    """The value of a line that the strict parser refuses (lone surrogates, NaN), or `_NO_JSON`."""
    try:
        return parse_json(line)
    except (ValueError, RecursionError):
        return _NO_JSON


def _salvaged(line: bytes, is_whole: Callable[[Record], bool]) -> list[Record]:
    starts = [match.start() for match in _RECORD_START.finditer(line) if match.start()]
    for start in starts[-_SALVAGE_TRIES:]:
        pieces = [_slowly(line[:start]), _slowly(line[start:])]
        found = [piece for piece in pieces if isinstance(piece, dict) and is_whole(piece)]
        if found:
            return found
    return []


def count_unknown(report: Report, what: str, name: object) -> None:
    """Note a name that no reader knows for the drift alarm; what does not look like a name is not repeated."""
    report.unknown[f"{what}:{name if isinstance(name, str) else NOT_A_NAME}"] += 1


def cut_blocks(text: str, tag: str) -> tuple[str, list[str]]:
    """(`text` without its `<tag>…</tag>` blocks, what stood in them). An opening without an end is text."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    kept: list[str] = []
    inside: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        kept.append(text[at:start])
        inside.append(text[start + len(opening) : end])
        at = end + len(closing)
    return ("".join(kept) + text[at:], inside) if inside else (text, inside)


def side_file(member: Member, relative: str) -> bytes:
    """The content of a small file beside a log (a session index, a manifest); b"" if there is none to be read.

    What such a file adds (a title, a folder) is not worth a skip, and it is asked for once per session.
    """
    beside = member.near(relative)
    if beside is None:
        return b""
    try:
        with beside.open() as stream:
            data = stream.read(_SIDE_BYTES + 1)
    except MemberError:
        return b""
    return data if len(data) <= _SIDE_BYTES else b""


def side_json(member: Member, relative: str) -> object:
    """The value of a small JSON file beside a log, or None."""
    try:
        return parse_json(side_file(member, relative))
    except (ValueError, RecursionError):
        return None
