"""Members in, conversations out: chooses the reader, splits the file, and lets no odd record stop it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palace_pipeline.exports import names
from palace_pipeline.exports.base import ElementReader, Head, Member, Reader, Report, RowsReader
from palace_pipeline.exports.databases import Database, why
from palace_pipeline.exports.deep_json import parse_deep
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.drift import NOTHING_UNDERSTOOD, understood_nothing, unknown_keys
from palace_pipeline.exports.registry import reader_for
from palace_pipeline.exports.splitter import MAX_ELEMENT_BYTES, ArrayCut, split_array, whole_values
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.exports.text import json_lines, parse_json
from palace_pipeline.exports.utf16 import in_utf8
from palace_pipeline.model import Conversation


@dataclass(frozen=True, slots=True)
class Element:
    """One value of a member that is read by elements. `raw` is None if it is too large to be taken."""

    index: int
    raw: bytes | None
    place: str


def identify(member: Member, report: Report, scratch: Path | None = None) -> tuple[Reader, Head] | None:
    """The reader of a member and its head, or None when there is nothing to read; then the report says why.

    An empty file is damage, except an empty note. JSON that no reader knows is never read as prose. `scratch`: where a
    copy of a database may lie while it is read (default: the system's folder for temporary files).
    """
    path = member.path
    if names.is_sensitive(path):
        report.skip("account, sign-in or billing data: not read", expected=True, unit="file")
        return None
    if names.is_beside_database(path):
        report.skip("part of the database beside it", expected=True, unit="file")
        return None
    if names.is_sidecar(path):
        alone = path.endswith("/updates.jsonl") and member.near("chat_history.jsonl") is None
        reason = "log of a session whose chat is not beside it" if alone else "side file without chats"
        report.skip(reason, expected=not alone, unit="file")
        return None
    if names.is_asset(path):
        report.skip("asset beside the chats", expected=True, unit="file")
        return None
    if names.is_unread_archive(path):
        report.skip("this kind of archive is not opened, unpack it first", expected=False, unit="file")
        return None
    try:
        head = head_of(member, scratch)
        reader = reader_for(head) if head.shape != "empty" else None
        if reader is not None:
            known: Mapping[str, frozenset[str]] = getattr(reader, "known_keys", {})
            report.unknown.update(unknown_keys(head.items, known))
            return reader, head
        reason, expected = _why_unread(member, head)
    except MemberError as error:
        reason, expected = str(error), False
    report.skip(reason, expected=expected, unit="file")
    return None


def note_drift(taken: int, report: Report) -> bool:
    """True, and a skip that says so, if a member of a known format gave no conversation for no good reason."""
    if not understood_nothing(taken, report.skips, report.unknown):
        return False
    report.skip(NOTHING_UNDERSTOOD, expected=False, unit="file")
    return True


def _is_empty_list(member: Member) -> bool:
    """True if a JSON list holds nothing or nulls; else its elements are there and cannot be read."""
    with member.open() as stream:
        data = stream.read(1 << 16)
    return (
        b"".join(data.removeprefix(b"\xef\xbb\xbf").split()).replace(b"null", b"").strip(b"\0").replace(b",", b"")
        == b"[]"
    )


def _why_unread(member: Member, head: Head) -> tuple[str, bool]:
    path = head.path
    if head.shape == "empty":
        with member.open() as stream:
            if b"\0" in stream.read(1 << 16):
                return "nothing but NULs, as a crash leaves them", False
        return "empty file", path.lower().endswith((".md", ".txt"))
    if names.is_side_file(path):
        return "side file without chats", True
    if head.shape == "workbook":
        return "asset beside the chats", True
    if head.shape == "binary":
        with member.open() as stream:
            asset = names.is_asset(path, stream.read(16))
        return ("asset beside the chats", True) if asset else ("binary file of an unknown kind", False)
    if head.shape == "array" and not head.items:
        return ("empty JSON list", True) if _is_empty_list(in_utf8(member, head.encoding)) else ("damaged JSON", False)
    if head.shape == "text" and path.lower().endswith((".json", ".jsonl")):
        return "damaged JSON", False
    if head.shape == "text":
        return "text of an unknown kind", False
    return ("unknown SQLite database" if head.shape == "sqlite" else "unknown JSON"), False


def elements_of(
    member: Member, head: Head, report: Report, reader: ElementReader | RowsReader | None = None
) -> Iterator[Element]:
    """The raw elements of a member, in order. What cannot be taken is counted in `report`.

    Of an array that is cut the last element comes too, as far as it goes: `read_one` then says that it is damaged.
    `reader` is needed for a database, whose elements it makes.
    """
    if head.database is not None and reader is not None and reader.layout == "rows":
        yield from _elements_in(head.database, reader, report)
        return
    count = 0

    # By functions, whose results nothing in here keeps: an element may take much of the memory.
    def from_line(found: tuple[int, bytes]) -> Element:
        return Element(found[0], found[1] or None, f"line {found[0]}")

    def from_array(found: tuple[int, bytes]) -> Element:
        nonlocal count
        count = found[0] + 1
        return Element(found[0], found[1] or None, f"{head.wrapped or ''}[{found[0]}]")

    try:
        with in_utf8(member, head.encoding).open() as stream:
            if head.shape == "jsonl":
                yield from map(from_line, json_lines(stream))
            elif head.shape == "object" and head.wrapped is None:
                raw = stream.read(MAX_ELEMENT_BYTES + 1)
                yield Element(0, raw if len(raw) <= MAX_ELEMENT_BYTES else None, "")
            else:
                yield from map(from_array, split_array(stream, head.wrapped))
    except ArrayCut as cut:
        if cut.rest:
            yield Element(count, cut.rest, f"{head.wrapped or ''}[{count}]")
        report.skip(f"cut or damaged: {cut}", expected=False, unit="file")
    except MemberError as error:
        report.skip(str(error), expected=False, unit="file")


def _elements_in(database: Database, reader: RowsReader, report: Report) -> Iterator[Element]:
    """The conversations of a database; what a damaged one gives before the damage is taken."""
    try:
        for index, (place, raw) in enumerate(reader.elements(database.connection, report)):
            yield Element(index, raw if len(raw) <= MAX_ELEMENT_BYTES else None, place)
        database.check()
    except sqlite3.Error as error:
        report.skip(why(error), expected=False, unit="file")
    except MemberError as error:
        report.skip(str(error), expected=False, unit="file")


def read_one(
    element: Element, member: Member, reader: ElementReader | RowsReader, report: Report
) -> list[Conversation]:
    """The conversations of one element; one that is odd is a skip and never an exception."""
    place = element.place
    if element.raw is None:
        report.skip("too large to be read", place, expected=False, unit="conversation")
        return []
    raw = element.raw.removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r\n")
    try:
        return _read_value(_parsed(raw), place, member, reader, report)
    except ValueError:
        report.skip("damaged JSON", place, expected=False, unit="conversation")
    # What follows a lost quote or bracket was taken for a part of this element: find the good ones again.
    values = (parse_json(piece) for piece in whole_values(raw))
    known = (value for value in values if reader.detect(Head(member.path, "array", items=[value])))
    return [found for value in known for found in _read_value(value, place, member, reader, report)]


def _parsed(raw: bytes) -> Any:
    """The value of an element. An object that ordinary parsers find too deep is a tree of messages."""
    try:
        return parse_json(raw)
    except ValueError as error:
        if isinstance(error.__cause__, RecursionError) and raw.startswith(b"{"):
            return parse_deep(raw)
        raise


def _read_value(
    value: Any, place: str, member: Member, reader: ElementReader | RowsReader, report: Report
) -> list[Conversation]:
    if value is None:
        report.skip("null in place of a conversation", place, expected=True, unit="conversation")
        return []
    if not isinstance(value, dict | list):
        report.skip("not a conversation", place, expected=False, unit="conversation")
        return []
    found: list[Conversation] = []
    try:
        for conversation in reader.read_element(value, member, place, report):
            conversation.source_file = member.path
            found.append(conversation)
    except Exception as error:  # noqa: BLE001 - an odd record must not take the others with it
        where = f"{place} ({type(error).__name__})".strip()
        report.skip("damaged conversation", where, expected=False, unit="conversation")
    return found


def read_member(member: Member, reader: Reader, head: Head, report: Report) -> Iterator[Conversation]:
    """All conversations of a member, whatever its reader's layout."""
    if reader.layout != "whole":
        for element in elements_of(member, head, report, reader):
            found = read_one(element, member, reader, report)
            del element
            yield from found
            del found
        return
    try:
        for conversation in reader.read(in_utf8(member, head.encoding), report):
            conversation.source_file = member.path
            yield conversation
    except MemberError as error:
        report.skip(str(error), expected=False, unit="file")
    except Exception as error:  # noqa: BLE001 - one damaged file must not take the others with it
        report.skip("damaged file", f"({type(error).__name__})", expected=False, unit="file")
