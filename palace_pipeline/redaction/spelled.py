"""Texts that are spelled out: character by character, in small groups, as lists of codes, as a hex dump."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from palace_pipeline.redaction.scanning import Program
from palace_pipeline.redaction.view import Builder, View

SPELLED_SIGNS = (
    rb"(?:[!-~] ){12}",
    rb"(?:['\"][!-~]['\"], ?){8}",
    rb"(?:\d{2,3}, ?){12}",
    rb"(?:0x[0-9a-fA-F]{2}[, ]{1,2}){8}",
    rb"(?:[0-9a-fA-F]{2}[ :]){12}",
    rb"(?:[A-Za-z0-9_+/\-]{4} ){4}",
    rb"[0-9a-fA-F]{4,8}:?[ \t]{1,4}(?:[0-9a-fA-F]{2,4}[ \t]{1,2}){4}",
)
"""What a spelled text begins like."""
LEAST = 16
_QUOTES = 1
_DIGIT = re.compile(rb"[0-9]")


def _letter(piece: str) -> str:
    return piece


def _quoted(piece: str) -> str:
    return piece[1]


def _decimal(piece: str) -> str:
    return chr(int(piece)) if 32 <= int(piece) < 127 else ""


def _hex(piece: str) -> str:
    code = int(piece[-2:], 16)
    return chr(code) if 32 <= code < 127 else ""


# How a text is spelled: its run, one piece of it, and what a piece stands for.
_KINDS: tuple[tuple[Program, re.Pattern[str], Callable[[str], str]], ...] = (
    (Program(rb"(?:[!-~] ){12}(?:[!-~] )*[!-~]"), re.compile("[!-~]"), _letter),
    (
        Program(rb"(?:['\"][!-~]['\"],\s{0,8}){8}(?:['\"][!-~]['\"],\s{0,8})*['\"][!-~]['\"]"),
        re.compile("['\"][!-~]['\"]"),
        _quoted,
    ),
    (Program(rb"(?:\d{2,3},\s{0,8}){12}(?:\d{2,3},\s{0,8})*\d{2,3}"), re.compile(r"\d{2,3}"), _decimal),
    (
        Program(rb"(?:0x[0-9a-fA-F]{2}[,\s]{1,8}){8}(?:0x[0-9a-fA-F]{2}[,\s]{1,8})*0x[0-9a-fA-F]{2}"),
        re.compile("0x[0-9a-fA-F]{2}"),
        _hex,
    ),
    (Program(rb"(?:[0-9a-fA-F]{2}[ :]){12}(?:[0-9a-fA-F]{2}[ :])*[0-9a-fA-F]{2}"), re.compile("[0-9a-fA-F]{2}"), _hex),
    (
        Program(rb"(?:[A-Za-z0-9_+/\-]{4} ){4}(?:[A-Za-z0-9_+/\-]{4} )*[A-Za-z0-9_+/\-]{1,4}={0,2}"),
        re.compile("[!-~]{1,6}"),
        _letter,
    ),
)
_DUMP_LINE = re.compile(
    r"^(?:[^\n]{0,40}?[ \t>:=])?(?:0x)?[0-9a-fA-F]{4,8}:?[ \t]{1,4}((?:[0-9a-fA-F]{2}){1,8}"
    r"(?:[ \t]{1,2}(?:[0-9a-fA-F]{2}){1,8}){0,15})(?=[ \t]|$)",
    re.M,
)
_DUMPS = Program(rb"[0-9a-fA-F]{4,8}:?[ \t]{1,4}(?:[0-9a-fA-F]{2,4}[ \t]{1,2}){4}")
_BYTE = re.compile("[0-9a-fA-F]{2}")


def spelled(text: str, data: bytes, kinds: Iterable[int] = range(len(SPELLED_SIGNS))) -> Iterator[View]:
    """One view for each way of spelling that the text uses, of those whose `SPELLED_SIGNS` were seen, where what it says is
    printable."""
    digits = _DIGIT.search(data) is not None
    for kind in sorted(kinds):
        if not digits and kind != _QUOTES:
            continue  # nothing printable is spelled in letters alone
        if kind == len(_KINDS):
            yield from _dumped(text, data)
            continue
        program, piece, meaning = _KINDS[kind]
        builder: Builder | None = None
        for spans in program.spans(data):
            start, end = spans[0]
            if meaning is _letter and _DIGIT.search(data, start, end) is None:
                continue
            builder = builder or Builder("spelled")
            before, mark = builder.length, len(builder.parts)
            for found in piece.finditer(text, start, end):
                builder.add(meaning(found[0]), found.start(), found.end() - found.start())
            if builder.length - before < LEAST:
                builder.cut(mark, before)
            else:
                builder.add("\n", end, 0)
        if builder is not None and builder.length:
            yield builder.done()


def _dumped(text: str, data: bytes) -> Iterator[View]:
    """What a hex dump says."""
    if not _DUMPS.found(data):
        return
    builder = Builder("spelled")
    last = -1
    for line in _DUMP_LINE.finditer(text):
        if last >= 0 and line.start() - last > 2:
            builder.add("\n", line.start(), 0)
        for found in _BYTE.finditer(text, line.start(1), line.end(1)):
            builder.add(_hex(found[0]), found.start(), 2)
        last = text.find("\n", line.end())
    if builder.length >= LEAST:
        yield builder.done()
