"""Bytes -> clean text: decoding, lines of JSONL, and what a message's text may hold."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from palace_pipeline.exports.old_encodings import decode_old

MAX_LINE_BYTES = 128 * 1024 * 1024
"""A longer JSONL line is skipped and counted; 80 MB lines (inline images) are real."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ODD_ESCAPE = re.compile(r"(\\\\)|\\x([0-9A-Fa-f]{2})")
"""Telegram writes control characters as `\\x1F`, which JSON does not know."""


def clean_text(text: str) -> str:
    """CRLF to LF, NUL dropped, lone surrogates to U+FFFD; everything else (CJK, marks, U+2028) stays."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "")
    if text.isascii():
        return text
    try:
        text.encode()  # several times as fast as searching for what hardly ever occurs
    except UnicodeEncodeError:
        return _LONE_SURROGATE.sub("\ufffd", text)
    return text


_LINE_END = re.compile(r"[\v\f\x85]")
_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-~])?|\x9b[0-?]*[ -/]*[@-~]"
)
"""Codes for a terminal (ECMA-48): colours, cursor, titles of windows, links."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """`clean_text` of a text that a program hands in to be kept: no control characters but line ends (all become LF) and
    tabs. Codes for a terminal go whole, since their rest would stand there as `[31m`."""
    text = clean_text(text)
    if _CONTROL.search(text) is None and _LINE_END.search(text) is None:
        return text  # nearly always
    return _CONTROL.sub("", _TERMINAL.sub("", _LINE_END.sub("\n", text)))


def decode(data: bytes) -> str | None:
    """Text of a file by its byte order mark, else as UTF-8, else (if it looks like text) as `decode_old` guesses.

    None for binary. UTF-16 without a mark is recognised by its NULs. The result may still need `clean_text`.
    """
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    sample = data[:4096]
    if sample.count(0) > len(sample) // 5:
        for encoding, at in (("utf-16-le", 1), ("utf-16-be", 0)):
            if sample[at::2].count(0) > len(sample) // 4 and sample[1 - at :: 2].count(0) == 0:
                return data.decode(encoding, "replace")
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end >= len(data) - 3 and error.reason == "unexpected end of data":
            return data[: error.start].decode("utf-8")
        control = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in sample)
        if control > len(sample) // 50:
            return None
        text = data.decode("utf-8", "replace")
        broken = text.count("\ufffd")
        # A few broken bytes in UTF-8 must not turn the whole file into rubbish.
        return text if sum(character > "\x7f" for character in text) > 3 * broken else decode_old(data)


def json_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    r"""(line number from 1, line without its end) of JSONL: split at `\n` only, NULs, `\r`, BOM and blanks stripped.

    Blank lines are left out. A line of nothing but NULs (a crash leaves such blocks) comes as b"\0", which no parser
    takes, so it is counted as damage. A line over `MAX_LINE_BYTES` comes as b"" (the caller counts it); its rest is
    read past.
    """
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            while (rest := stream.readline(1 << 20)) and not rest.endswith(b"\n"):
                pass
            yield number, b""
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        nuls = b"\0" in line
        line = line.strip(b"\0 \t\r\n")
        if line:
            yield number, line
            line = b""  # a line of 80 MB must not be kept while the next one comes
        elif nuls:
            yield number, b"\0"


def parse_json(data: bytes | str) -> object:
    """A JSON value; text with escaped lone surrogates (which strict parsers refuse) comes with U+FFFD instead.

    Raises ValueError if it is no JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        import json

        # The slow parser takes lone surrogates, NaN and numbers of any length; the stores take none of them.
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        try:
            try:
                return _storable(json.loads(text, strict=False))
            except ValueError:
                if "\\x" not in text:
                    raise
            text = _ODD_ESCAPE.sub(lambda match: match[1] or f"\\u00{match[2]}", text)
            return _storable(json.loads(text, strict=False))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _storable(value: Any) -> Any:
    """The same value with U+FFFD for lone surrogates, None for NaN and infinity, floats for numbers over 64 bits."""
    if isinstance(value, str):
        return value if value.isascii() else _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return float(value) if abs(value) < 1 << 1000 else None
    return value
