"""Perplexity's official export: a workbook with the sheets `Conversations` and `Memory`.

A row is one question (`TITLE`) and its answer (`OUTPUT_STR`: JSON with `answer`, or plain text); nothing says which
rows were one thread, so each is a conversation. Times have no zone, as text or as date cells.
Shape: https://github.com/NateBJones-Projects/OB1/pull/109,
https://github.com/Superkikim/nexus-ai-chat-importer/issues/66, looked at on 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.perplexity import exchange
from palace_pipeline.exports.perplexity_answer import read_answer
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.exports.text import clean_text
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.exports.workbook import Row, Workbook, open_workbook, serial_time
from palace_pipeline.model import Conversation

_HEADER_ROWS = 20
_NAMES = {
    "uuid": "id", "id": "id", "entry_uuid": "id",
    "created": "created", "created_at": "created",
    "updated": "updated", "updated_at": "updated",
    "title": "question", "query": "question", "query_str": "question", "question": "question",
    "output_str": "answer", "answer": "answer", "output": "answer",
    "model": "model", "display_model": "model",
}  # fmt: skip
_MEMORY = ("memory_key", "memory_value")
_ZONE = re.compile(r"\s+(?:UTC|GMT|Z)$")
_SPACED_OFFSET = re.compile(r"\s+([+-]\d\d):?(\d\d)$")
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,20})?(?:E\+?\d{1,2})?")

Columns = dict[str, int]
Time = tuple[datetime | None, str | None]


class PerplexityWorkbook:
    """Reads the rows of a workbook, one after the other."""

    format = "perplexity-xlsx"
    provider = "perplexity"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/NateBJones-Projects/OB1/pull/109",
        "medium",
        name="Perplexity export (workbook)",
        where="asked for by form or mail: one `.xlsx`",
        since="2025",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """True if a sheet has the column `OUTPUT_STR` and one for the question, the id or the time."""
        return head.shape == "workbook" and any(
            _columns(row) is not None for sheet in head.items for row in sheet["rows"]
        )

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """One conversation per row; sheets without conversations are named."""
        with open_workbook(member) as book:
            for sheet in book.sheets:
                try:
                    yield from _sheet(book, sheet, report)
                except MemberError as error:
                    report.skip(str(error), f"sheet {book.sheets.index(sheet) + 1}", expected=False, unit="file")


READER = PerplexityWorkbook()


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_") if len(name) <= 100 else ""


def _columns(row: Row) -> Columns | None:
    """Column by meaning, if this row is the header of a sheet with conversations."""
    keys = {column: _key(name) for column, name in row.items()}
    if "output_str" not in keys.values():
        return None
    columns: Columns = {}
    for column, key in keys.items():
        if key in _NAMES and (_NAMES[key] not in columns or key == "output_str"):
            columns[_NAMES[key]] = column
    return columns if {"id", "question", "created"} & set(columns) else None


def _sheet(book: Workbook, sheet: str, report: Report) -> Iterator[Conversation]:
    place = f"sheet {book.sheets.index(sheet) + 1}"
    columns: Columns | None = None
    seen = 0
    for number, row in book.rows(sheet):
        seen += 1
        if columns is not None:
            yield from _row(row, columns, f"{place}, row {number}", book, report)
            continue
        columns = _columns(row)
        if columns is not None:
            used = set(columns.values())
            for column, name in row.items():
                if column not in used:
                    report.unknown[f"column:{name}"] += 1
        elif set(_MEMORY) & {_key(name) for name in row.values()}:
            report.skip("Memory sheet: no conversation", place, expected=True, unit="file")
            return
        elif seen == _HEADER_ROWS:
            break
    if seen and columns is None:
        report.skip("sheet of an unknown kind", place, expected=False, unit="file")


def _row(row: Row, columns: Columns, place: str, book: Workbook, report: Report) -> Iterator[Conversation]:
    def cell(name: str) -> str:
        return clean_text(row.get(columns.get(name, -1), ""))

    id, question = cell("id").strip(), cell("question").strip()
    answer = read_answer(cell("answer"))
    created = _time(cell("created"), book)
    messages = exchange(id, question, answer, created, place, Report(report.path), model=cell("model").strip() or None)
    if answer.cut:
        report.skip("answer is cut in the source", place, expected=False)
    if not messages:
        reason = "row without question and answer" if id else "row without id, question and answer"
        report.skip(reason, place, expected=True, unit="conversation")
        return
    conversation_id = id or derive_conversation_id("perplexity", "", messages)
    derive_ids(messages)
    yield Conversation(
        provider="perplexity",
        conversation_id=conversation_id,
        messages=messages,
        title=question or None,
        created_at=created[0],
        updated_at=_time(cell("updated"), book)[0],
        local_created=created[1],
    )


def _time(text: str, book: Workbook) -> Time:
    """(instant, local time) of a cell: text as databases write it, the number of a date cell, or seconds since 1970."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        local: Any = serial_time(float(text), epoch_1904=book.epoch_1904)
        return (None, local) if local is not None else (parse_instant(float(text)), None)
    text = _SPACED_OFFSET.sub(r"\1:\2", _ZONE.sub("Z", text))
    return parse_instant(text), parse_naive(text)
