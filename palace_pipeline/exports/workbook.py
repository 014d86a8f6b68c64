"""Workbooks (`.xlsx`) as rows of text, in little memory and with limits on everything that a file can say.

An own small reader on the standard library's expat, because neither library at hand can be limited from outside
(tried on 2026-11-29): python-calamine 0.9.1 aborts the whole process on a workbook of 5 kB whose last cell is
XFD1048576, openpyxl 3.1.5 builds a tree of each row, and 80 kB can hold a row of millions of cells. Only what a list
of texts needs is read: names of sheets, shared and inline strings, numbers. Document types (and with them entities)
are refused; what parts unfold to, and the text that cells show, is counted and limited.
Shape: ECMA-376 part 1, 18.2 to 18.4.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from array import array
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import BinaryIO
from xml.parsers import expat

from palace_pipeline.exports.base import Member
from palace_pipeline.exports.streams import Budget, Limits, MemberError

MAX_COLUMNS, MAX_ROWS, MAX_SHEETS = 1 << 14, 1 << 20, 1000
"""What a sheet can have; the number of sheets is not limited by the format."""
MAX_PACKED = 128 * 1024 * 1024
"""A larger workbook is read only if it lies on the disk by itself: one inside a ZIP must be held in memory."""
MAX_CELL = 16 * 1024 * 1024
MAX_ROW = 64 * 1024 * 1024
MAX_STRINGS, MAX_STRING_BYTES = 1 << 23, 256 * 1024 * 1024
_LIMITS = Limits(member=8 * 1024**3, total=16 * 1024**3, ratio=250, ratio_from=128 * 1024 * 1024)
_MAX_DEPTH, _MAX_TOKEN, _BLOCK = 64, 4 * 1024 * 1024, 1 << 16
_USED_COLUMNS = 1024
_DAMAGED = "damaged workbook"

_CELL = re.compile(r"\$?([A-Z]{1,3})\$?\d{1,7}")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_TEXT_TYPES = ("s", "inlineStr", "str")

Row = dict[int, str]
"""Column (from 0) -> text; blank cells are left out."""
Start = Callable[[str, dict[str, str]], None]


class NotAWorkbookError(MemberError):
    """A ZIP with other parts: a text document, slides, anything."""


def looks_like_workbook(start: bytes) -> bool:
    """True if the beginning of a ZIP speaks of a workbook's parts; to be asked before it is opened as one."""
    return start.startswith(b"PK\x03\x04") and (b"[Content_Types].xml" in start or b"xl/" in start)


@contextmanager
def open_workbook(member: Member) -> Generator[Workbook]:
    """The workbook of a member. Raises MemberError if it is none, or damaged; reading its rows does too."""
    with member.open() as stream:
        source: BinaryIO = stream
        if not stream.seekable():
            data = stream.read(MAX_PACKED + 1)
            if len(data) > MAX_PACKED:
                raise MemberError("this workbook is too large to be read inside an archive, unpack it first")
            source = io.BytesIO(data)
        with _reading():
            archive = zipfile.ZipFile(source)
            packed = sum(entry.compress_size for entry in archive.infolist())
            book = Workbook(archive, Budget(packed, _LIMITS))
        yield book


@contextmanager
def _reading() -> Generator[None]:
    """What archives and XML raise comes as MemberError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise MemberError(_DAMAGED) from error
    except expat.ExpatError as error:
        raise MemberError(_DAMAGED) from error


class Workbook:
    """Names of sheets, and their rows one after the other."""

    def __init__(self, archive: zipfile.ZipFile, budget: Budget) -> None:
        self._archive, self._budget = archive, budget
        self._parts = {name.casefold(): name for name in archive.namelist()}
        self._strings: _Strings | None = None
        self._strings_part: str | None = None
        self._shown = 0
        self.epoch_1904 = False
        """True if dates count from 1904 (old workbooks of Macs)."""
        self._sheets = self._read_sheets()

    @property
    def sheets(self) -> list[str]:
        return list(self._sheets)

    def rows(self, sheet: str) -> Iterator[tuple[int, Row]]:
        """(row number from 1, cells) of each row that is not blank. Raises MemberError after the last good row."""
        part = self._sheets[sheet]
        rows = _Rows(self._string)
        with _reading():
            for _ in self._parse(part, rows.start, rows.end, rows.text):
                for number, row in rows.done:
                    self._shown += sum(len(text) for text in row.values())
                    self._budget.note("text of all cells", self._shown)
                    yield number, row
                rows.done.clear()

    def _string(self, index: int) -> str:
        if self._strings is None:
            self._strings = _Strings()
            if self._strings_part is not None:
                strings = self._strings
                for _ in self._parse(self._strings_part, strings.start, strings.end, strings.text):
                    pass
        return self._strings[index]

    def _read_sheets(self) -> dict[str, str]:
        main = next((t for _, kind, t in self._relations("") if kind == "officeDocument"), "xl/workbook.xml")
        if main.casefold() not in self._parts:
            raise NotAWorkbookError("not a workbook")
        targets: dict[str, str] = {}
        for id, kind, target in self._relations(main):
            if kind == "sharedStrings":
                self._strings_part = target
            elif kind == "worksheet":
                targets[id] = target
        sheets: dict[str, str] = {}

        def start(name: str, values: dict[str, str]) -> None:
            if name == "workbookPr":
                self.epoch_1904 = values.get("date1904") in ("1", "true")
            elif name == "sheet":
                id = next((value for key, value in values.items() if key.rpartition(":")[2] == "id"), "")
                if id in targets and targets[id].casefold() in self._parts:
                    sheets.setdefault(values.get("name", ""), targets[id])
                if len(sheets) > MAX_SHEETS:
                    raise MemberError(f"a workbook with more than {MAX_SHEETS} sheets")

        for _ in self._parse(main, start):
            pass
        return sheets

    def _relations(self, part: str) -> list[tuple[str, str, str]]:
        """(id, kind, part) of everything that a part refers to inside the workbook."""
        folder, name = posixpath.split(part)
        path = posixpath.join(folder, "_rels", f"{name}.rels")
        found: list[tuple[str, str, str]] = []

        def start(name: str, values: dict[str, str]) -> None:
            if name == "Relationship" and values.get("TargetMode") != "External" and len(found) < 10 * MAX_SHEETS:
                target = posixpath.normpath(posixpath.join("/", folder, values.get("Target", ""))).lstrip("/")
                found.append((values.get("Id", ""), values.get("Type", "").rpartition("/")[2], target))

        if path.casefold() in self._parts:
            for _ in self._parse(path, start):
                pass
        return found

    def _parse(
        self,
        part: str,
        start: Start,
        end: Callable[[str], None] | None = None,
        text: Callable[[str], None] | None = None,
    ) -> Iterator[None]:
        """Walks a part; yields after each block. Names of elements come without their prefix."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        depth = 0

        def opened(name: str, values: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            if depth > _MAX_DEPTH:
                raise MemberError(f"{_DAMAGED}: nested too deeply")
            start(name.rpartition(":")[2], values)

        def closed(name: str) -> None:
            nonlocal depth
            depth -= 1
            if end is not None:
                end(name.rpartition(":")[2])

        def refuse(*_: object) -> None:
            raise MemberError("a workbook with a document type or entities is not read")

        parser.StartElementHandler, parser.EndElementHandler = opened, closed
        parser.CharacterDataHandler = text
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
        position = 0
        with self._archive.open(self._parts[part.casefold()]) as stream:
            while block := stream.read(_BLOCK):
                position += len(block)
                self._budget.note(part, position)
                parser.Parse(block, False)
                if position - parser.CurrentByteIndex > _MAX_TOKEN:
                    raise MemberError(f"{_DAMAGED}: a tag without an end")
                yield
            parser.Parse(b"", True)
            yield


def first_rows(member: Member, count: int) -> list[tuple[str, list[Row]]]:
    """(name, first rows that are not blank) of each sheet, for detection; a sheet that is damaged there has none."""
    with open_workbook(member) as book:
        found: list[tuple[str, list[Row]]] = []
        for sheet in book.sheets:
            rows: list[Row] = []
            with suppress(MemberError):
                rows += [row for _, row in islice(book.rows(sheet), count)]
            found.append((sheet, rows))
        return found


class _Strings:
    """Shared strings, kept as one run of UTF-8: a list of Python strings would take several times as much."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends = array("Q")
        self._taking = self._phonetic = False
        self._inside = False

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self._ends):
            return ""
        begin = self._ends[index - 1] if index else 0
        return self._data[begin : self._ends[index]].decode("utf-8", "replace")

    def start(self, name: str, _: dict[str, str]) -> None:
        if name == "si":
            self._inside = True
        elif name == "rPh":
            self._phonetic = True
        elif name == "t":
            self._taking = self._inside and not self._phonetic

    def end(self, name: str) -> None:
        if name == "t":
            self._taking = False
        elif name == "rPh":
            self._phonetic = False
        elif name == "si":
            self._inside = False
            self._ends.append(len(self._data))
            if len(self._ends) > MAX_STRINGS:
                raise MemberError("a workbook with too many strings")

    def text(self, text: str) -> None:
        if self._taking:
            self._data += text.encode("utf-8", "replace")
            if len(self._data) > MAX_STRING_BYTES:
                raise MemberError("a workbook with too much shared text")


class _Rows:
    """Puts rows together from the elements of a sheet; finished ones lie in `done`."""

    def __init__(self, string: Callable[[int], str]) -> None:
        self.done: list[tuple[int, Row]] = []
        self._string = string
        self._number = self._count = 0
        self._column = -1
        self._row: Row = {}
        self._size = 0
        self._type = ""
        self._parts: list[str] = []
        self._length = 0
        self._in_cell = self._taking = self._phonetic = False

    def start(self, name: str, values: dict[str, str]) -> None:
        if name == "c":
            match = _CELL.fullmatch(values.get("r", ""))
            self._column = _column(match[1]) if match else self._column + 1
            if self._column >= MAX_COLUMNS:
                raise MemberError("a sheet with more columns than a sheet can have")
            self._type = values.get("t", "n")
            self._parts, self._length, self._in_cell = [], 0, self._column < _USED_COLUMNS
        elif name == "row":
            self._count += 1
            if self._count > MAX_ROWS:
                raise MemberError("a sheet with more rows than a sheet can have")
            number = values.get("r", "")
            self._number = int(number) if number.isdecimal() and len(number) < 8 else self._number + 1
            self._row, self._size, self._column = {}, 0, -1
        elif name in ("v", "t"):
            self._taking = self._in_cell and not self._phonetic
        elif name == "rPh":
            self._phonetic = True

    def end(self, name: str) -> None:
        if name in ("v", "t"):
            self._taking = False
        elif name == "rPh":
            self._phonetic = False
        elif name == "c":
            if self._in_cell and (text := self._value()).strip():
                self._row[self._column] = text
                self._size += len(text)
                if self._size > MAX_ROW:
                    raise MemberError("a sheet with too much text in one row")
            self._in_cell = False
        elif name == "row" and self._row:
            self.done.append((self._number, self._row))
            self._row = {}

    def text(self, text: str) -> None:
        if self._taking:
            self._parts.append(text)
            self._length += len(text)
            if self._length > MAX_CELL:
                raise MemberError("a sheet with too much text in one cell")

    def _value(self) -> str:
        text = "".join(self._parts)
        if self._type == "s":
            number = text.strip()
            text = self._string(int(number)) if number.isdecimal() and len(number) < 10 else ""
        elif self._type == "e":
            return ""
        if self._type in _TEXT_TYPES and "_x" in text:
            text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
        return text


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def serial_time(number: float, *, epoch_1904: bool) -> str | None:
    """The local time of a date cell (days since 1899-12-30, or 1904-01-01) to the second; None outside 1990…2200."""
    days = number + 1462 if epoch_1904 else number
    if not 32874 <= days < 109575:
        return None
    moment = datetime(1899, 12, 30) + timedelta(milliseconds=round(days * 86_400_000))
    return moment.isoformat(timespec="seconds")
