"""What a ChatGPT message holds: parts, files, sources, and the private-use marks that the web page hides.

Marks, seen in exports since 2024-10: U+E200 kind U+E202 data … U+E201 stands for a citation, an image, a link or a
named thing; U+E203 and U+E204 enclose the words that a citation covers (these words are text, only the marks go):
https://github.com/sanand0/openai-conversations private-unicode-control-characters.md and the samples there. Older
answers point at sources with 【1†source】.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from palace_pipeline.exports.attachments import kind_of_files
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.json_values import words_of
from palace_pipeline.exports.text import clean_text, parse_json
from palace_pipeline.model import Attachment, Citation, Kind

THINKING = ("thoughts", "reasoning_recap")
CONTEXT = ("user_editable_context", "model_editable_context")
RESULTS = ("execution_output", "tether_quote", "tether_browsing_display", "sonic_webpage", "system_error",
           "computer_output", "citable_code_output")  # fmt: skip
_SPOKEN = ("text", "multimodal_text", "code")
_TEXT_KEYS = ("text", "result", "content", "summary", "output_str", "snippet")
_ASSET_SCHEMES = re.compile(r"^(?:sediment|file-service)://")

_SPAN = re.compile(" ?\ue200([^\ue200\ue201\ue202]*)(\ue202?[^\ue200\ue201]*)\ue201")
_LONELY_MARKS = re.compile("[\ue200-\ue204]")
_OLD_MARK = re.compile(
    r" ?【\d+(?::\d+)?†[^】\n]{0,80}】| ?【oaicite:\d+】| ?:contentReference\[oaicite:\d+\]\{index=\d+\}"
)


@dataclass(slots=True)
class Content:
    """The content of one message. `type`: the source's own name; "text" if it gives none."""

    type: str
    text: str
    attachments: list[Attachment] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)


def read_content(value: Any, metadata: dict[str, Any], report: Report) -> Content:
    """Text, files and sources of a message's `content` (an object; a plain text or list in hand-made files)."""
    if isinstance(value, str | list):
        value = {"parts": value if isinstance(value, list) else [value]}
    if not isinstance(value, dict):
        value = {}
    type = value.get("content_type")
    type = type if isinstance(type, str) else "text"
    parts = value.get("parts")
    has_files = bool(metadata.get("attachments") or metadata.get("aggregate_result"))
    if type == "text" and not has_files and isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], str):
        # Words and nothing else, as nearly all messages are.
        return Content(type, clean_text(parts[0]) if parts[0].strip() else "", [], _citations(value, metadata))
    named = _named_files(metadata) if has_files else {}
    pieces: list[str] = []
    files: list[Attachment] = []
    if type in THINKING:
        pieces = list(_thoughts(value))
    elif parts is not None:
        for part in parts if isinstance(parts, list) else [parts] if parts else []:
            _read_part(part, pieces, files, named, report)
    elif type in CONTEXT:
        pieces = [text for text in value.values() if isinstance(text, str) and text != type]
    else:
        if type not in _SPOKEN and type not in RESULTS:
            report.unknown[f"content:{type}"] += 1
        pieces = [value[key] for key in ("title", "url", "name", *_TEXT_KEYS) if isinstance(value.get(key), str)]
    files += named.values()  # those that no part points at
    if has_files:
        files += _results(metadata)
    said = [clean_text(piece) for piece in pieces if piece.strip()]
    text = said[0] if len(said) == 1 else "\n\n".join(said)
    return Content(type, text, files, _citations(value, metadata))


def _thoughts(value: dict[str, Any]) -> Iterator[str]:
    thoughts = value.get("thoughts")
    for thought in thoughts if isinstance(thoughts, list) else []:
        if isinstance(thought, dict):
            yield "\n".join(t for key in ("summary", "content") if isinstance(t := thought.get(key), str) and t)
    if isinstance(recap := value.get("content"), str):
        yield recap


def _read_part(
    part: Any, pieces: list[str], files: list[Attachment], named: dict[str, Attachment], report: Report
) -> None:
    if isinstance(part, str):
        pieces.append(part)
        return
    if not isinstance(part, dict):
        words_of(part, report)
        return
    type = part.get("content_type")
    pointers = list(_pointers(part))
    for pointer, kind in pointers:
        id = _ASSET_SCHEMES.sub("", pointer)
        known = named.pop(id, None)
        size = part.get("size_bytes")
        files.append(known or Attachment(name=id, type=kind, size=size if isinstance(size, int) else None))
    text = part.get("text")
    if isinstance(text, str):
        pieces.append(text)
    elif not pointers:
        report.unknown[f"part:{type}"] += 1
        files.append(Attachment(type=type if isinstance(type, str) else None))


def _pointers(part: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(asset pointer, kind) of a part and of the parts in it."""
    type = str(part.get("content_type") or "")
    pointer = part.get("asset_pointer")
    if isinstance(pointer, str):
        yield pointer, "audio" if "audio" in type else "video" if "video" in type else "image"
    for key in ("audio_asset_pointer", "video_container_asset_pointer"):
        inner = part.get(key)
        if isinstance(inner, dict):
            yield from _pointers({"content_type": key, **inner})
        elif isinstance(inner, str):
            yield inner, key.split("_")[0]


def _named_files(metadata: dict[str, Any]) -> dict[str, Attachment]:
    files: dict[str, Attachment] = {}
    attachments = metadata.get("attachments")
    for number, item in enumerate(attachments if isinstance(attachments, list) else []):
        if not isinstance(item, dict):
            continue
        name, type, size = item.get("name"), item.get("mime_type") or item.get("mimeType"), item.get("size")
        files[str(item.get("id") or f"#{number}")] = Attachment(
            name=clean_text(name) if isinstance(name, str) else None,
            type=type if isinstance(type, str) else None,
            size=size if isinstance(size, int) else None,
        )
    return files


def _results(metadata: dict[str, Any]) -> list[Attachment]:
    """Pictures that code drew."""
    result = metadata.get("aggregate_result")
    messages = result.get("messages") if isinstance(result, dict) else None
    urls = [m.get("image_url") for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []
    return [Attachment(name=_ASSET_SCHEMES.sub("", url), type="image") for url in urls if isinstance(url, str)]


def _citations(value: dict[str, Any], metadata: dict[str, Any]) -> list[Citation]:
    """The sources of an answer, each address once, in order."""
    if not (metadata.get("content_references") or metadata.get("citations") or "url" in value):
        return []
    found: dict[str, Citation] = {}
    for name in ("content_references", "citations"):
        for url, title in _sources(place, 0) if (place := metadata.get(name)) else ():
            found.setdefault(url, Citation(url, title))
    if value.get("content_type") in ("tether_quote", "sonic_webpage") and isinstance(url := value.get("url"), str):
        title = value.get("title")
        found.setdefault(url, Citation(url, title if isinstance(title, str) else None))
    return list(found.values())


def _sources(value: Any, depth: int) -> Iterator[tuple[str, str | None]]:
    if isinstance(value, list) and depth < 6:
        for item in value:
            yield from _sources(item, depth + 1)
    elif isinstance(value, dict) and depth < 6:
        url, title = value.get("url"), value.get("title")
        if isinstance(url, str) and url.startswith(("http://", "https://")):
            yield clean_text(url), clean_text(title) if isinstance(title, str) else None
        for key in ("items", "sources", "supporting_websites", "fallback_items", "metadata"):
            yield from _sources(value.get(key), depth + 1)


def hidden_reason(type: str, metadata: dict[str, Any]) -> str | None:
    """Why the web page shows nothing of a message, or None."""
    if type in CONTEXT:
        return "custom instructions"
    return "hidden in the source" if metadata.get("is_visually_hidden_from_conversation") is True else None


def kind_of(body: Content) -> Kind:
    """The kind of a person's message."""
    return "text" if body.text.strip() or not body.attachments else kind_of_files(body.attachments)


def without_markers(text: str, metadata: dict[str, Any]) -> str:
    """An answer as it is read: citation marks gone, names and link titles of marked things kept."""
    if not text.isascii() and _LONELY_MARKS.search(text):
        text = _LONELY_MARKS.sub("", _SPAN.sub(_shown, text))
    if "【" in text or "oaicite" in text:
        text = _OLD_MARK.sub("", text) if metadata.get("citations") or "oaicite" in text else text
    return text


def _shown(match: re.Match[str]) -> str:
    kind, data = match[1], match[2].lstrip("\ue202")
    before = " " if match[0].startswith(" ") else ""
    if kind == "entity":
        return before + _entity_name(data)
    if kind == "url":
        return before + data.split("\ue202")[0]
    return ""


def _entity_name(data: str) -> str:
    """`["place","Kyoto", …]` -> Kyoto; a bare name stays."""
    try:
        value = parse_json(data)
    except ValueError:
        return data
    names = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    return names[1] if len(names) > 1 else names[0] if names else ""
