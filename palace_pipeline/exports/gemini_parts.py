"""Content of Google's generative API (`parts`) as the Gemini CLI and AI Studio store it: text, thoughts, files, calls.

A content is a text, a part, or a list of both. Facts: https://ai.google.dev/api/caching#Part and the `PartListUnion` of
the CLI's `@google/genai`, checked 2026-11-29.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from palace_pipeline.exports.agent_log import count_unknown
from palace_pipeline.exports.attachments import inline_file, url_file
from palace_pipeline.exports.base import Member, Report
from palace_pipeline.exports.detect import completed
from palace_pipeline.exports.json_values import arguments_text, list_of, name_of, text_of, words_of
from palace_pipeline.exports.splitter import ArrayCut, split_array, whole_values
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.exports.text import parse_json
from palace_pipeline.model import Attachment

_QUIET = frozenset({"videoMetadata", "thoughtSignature", "mediaResolution", "partMetadata", "toolCall", "toolResponse"})


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call (`is_result` False) or what came of it. `id` is the product's, "" without one."""

    name: str | None
    id: str
    text: str
    is_result: bool
    files: tuple[Attachment, ...] = ()


@dataclass(slots=True)
class Parts:
    """A content, sorted. `texts` in order; texts of one message are joined with nothing between."""

    texts: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    files: list[Attachment] = field(default_factory=list[Attachment])
    calls: list[Call] = field(default_factory=list[Call])

    @property
    def text(self) -> str:
        return "".join(self.texts)


def split_parts(content: object, report: Report) -> Parts:
    """Sorts a content; what is no part is passed over, an unknown kind of part is counted by its name."""
    found = Parts()
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            found.texts.append(text_of(part))
        elif isinstance(part, dict):
            _take(part, found, report)
    return found


def _take(part: Mapping[str, Any], found: Parts, report: Report) -> None:
    known = False
    text = part.get("text")
    words_of(text, report)
    if isinstance(text, str):
        if len(part) == 1:
            found.texts.append(text_of(text))
            return
        # A thought is marked `true`; the CLI also stores the thought's own text there.
        (found.thoughts if part.get("thought") else found.texts).append(text_of(text))
        known = True
    elif isinstance(thought := part.get("thought"), str):
        found.thoughts.append(text_of(thought))
        known = True
    for key in ("inlineData", "inline_data"):
        if isinstance(data := part.get(key), dict):
            media = data.get("mimeType", data.get("mime_type"))
            found.files.append(inline_file(media, data.get("data"), data.get("displayName")))
            known = True
    for key in ("fileData", "file_data"):
        if isinstance(data := part.get(key), dict):
            file = url_file(data.get("fileUri", data.get("file_uri")))
            media = name_of(data.get("mimeType", data.get("mime_type")))
            found.files.append(Attachment(name_of(data.get("displayName")) or file.name, media or "file"))
            known = True
    for call in _calls(part):
        found.calls.append(call)
        known = True
    if not known:
        for key in part:
            if key not in _QUIET and key not in ("text", "thought"):
                count_unknown(report, "content type", key)
                return


def _calls(part: Mapping[str, Any]) -> Iterator[Call]:
    if isinstance(call := part.get("functionCall"), dict):
        yield Call(name_of(call.get("name")), name_of(call.get("id")) or "", arguments_text(call.get("args")), False)
    if isinstance(result := part.get("functionResponse"), dict):
        text, files = result_text(result.get("response"))
        files += [file for inner in list_of(result.get("parts")) for file in _file(inner)]
        yield Call(name_of(result.get("name")), name_of(result.get("id")) or "", text, True, tuple(files))
    if isinstance(code := part.get("executableCode"), dict):
        yield Call("code execution", "", text_of(code.get("code")), False)
    if isinstance(outcome := part.get("codeExecutionResult"), dict):
        yield Call("code execution", "", text_of(outcome.get("output")), True)


def result_text(response: object) -> tuple[str, list[Attachment]]:
    """The text of a tool's response, and files in it: its output or error where it has one, else all of it."""
    if isinstance(response, dict):
        for key in ("output", "error", "content", "result"):
            if isinstance(text := response.get(key), str):
                return text_of(text), []
        inner = response.get("content", response.get("output"))
        if isinstance(inner, list):
            blocks = [block for block in inner if isinstance(block, dict)]
            texts = [text_of(block.get("text")) for block in blocks]
            return "\n\n".join(filter(None, texts)), [file for block in blocks for file in _file(block)]
    return arguments_text(response), []


def _file(block: object) -> Iterator[Attachment]:
    if isinstance(block, dict):
        data = block.get("inlineData")
        if isinstance(data, dict):
            yield inline_file(data.get("mimeType"), data.get("data"), data.get("displayName"))
        elif block.get("type") in ("image", "audio"):
            yield inline_file(block.get("mimeType"), block.get("data"))


def bytes_of(member: Member, report: Report, limit: int) -> bytes:
    """A member's bytes; of one that cannot be read to its end what could be read, of one over `limit` nothing."""
    pieces: list[bytes] = []
    size = 0
    try:
        with member.open() as stream:
            while piece := stream.read(1 << 20):
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    report.skip("too large to be read", expected=False, unit="file")
                    return b""
    except MemberError as error:
        report.skip(str(error), expected=False, unit="file")
    return b"".join(pieces)


def salvaged(data: bytes, key: str, mark: str, report: Report) -> dict[str, Any]:
    """An object that does not parse: what stands before the list under `key`, and the whole values of that list.

    `mark`: a key that each of them has, and nothing inside of them.
    """
    report.skip("cut or damaged JSON: what is whole in it is kept", expected=False, unit="file")
    match = re.search(rb'"%b"\s*:\s*(?=\[)' % key.encode(), data)
    try:
        head = parse_json(completed(data[: match.start()] if match is not None else data))
    except ValueError:
        head = None
    found: dict[str, Any] = head if isinstance(head, dict) else {}
    if match is None:
        return found
    values: list[Any] = []

    def take(raw: bytes, index: int) -> None:
        try:
            values.append(parse_json(raw))
        except ValueError:
            report.skip("damaged JSON", f"{key}[{index}]", expected=False)
            # What follows a lost quote or bracket was taken for a part of this value: find the good ones again.
            found_again = (parse_json(piece) for piece in whole_values(raw))
            values.extend(value for value in found_again if isinstance(value, dict) and mark in value)

    count = 0
    try:
        for index, raw in split_array(io.BytesIO(data[match.end() :])):
            count = index + 1
            take(raw, index)
    except ArrayCut as cut:  # counted above; behind the list stands the end of the object
        if cut.rest:
            take(cut.rest, count)
    found[key] = values
    return found
