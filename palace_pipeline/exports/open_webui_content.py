"""What one message of Open WebUI holds: its text with `<details>` blocks, its structured `output`, files and sources.

Facts: https://github.com/open-webui/open-webui `backend/open_webui/utils/middleware.py` (how blocks are written as
`<details type="reasoning|tool_calls|code_interpreter">` with escaped attributes, and `output` items in the manner of
OpenAI's responses), checked 2026-11-29. Only answers are taken apart: markup that a person typed is what they said.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from palace_pipeline.exports.agent_log import cut_blocks
from palace_pipeline.exports.attachments import inline_file, url_file
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.json_values import arguments_text, count_of, dict_of, list_of, name_of, text_of
from palace_pipeline.exports.plaintext import fenced_lines
from palace_pipeline.exports.text import parse_json
from palace_pipeline.exports.web_sources import citations_of
from palace_pipeline.model import Attachment, Citation

_OPENING = re.compile(r"<details((?:\s+[\w:-]+(?:=(?:\"[^\"]*\"|'[^']*'))?)*)\s*>")
_ATTRIBUTE = re.compile(r"([\w:-]+)=(?:\"([^\"]*)\"|'([^']*)')")
_SUMMARY = re.compile(r"\s*<summary>.*?</summary>[ \t]*\n?", re.DOTALL)
_MARK = re.compile(r"<(/?)details\b", re.IGNORECASE)
_QUOTE = re.compile(r"(?:>|&gt;) ?")
_BLOCKS = ("reasoning", "tool_calls", "code_interpreter")
_THINK_TAGS = ("think", "thinking", "reason", "reasoning", "thought", "Thought", "|begin_of_thought|")
_DEEPEST = 12

Step = tuple[Literal["thinking", "call", "result"], str | None, str]
"""Thinking, a tool call or its result: kind, name of the tool, text."""


@dataclass(slots=True)
class Parts:
    """What a message holds, taken apart."""

    text: list[str] = field(default_factory=list[str])
    steps: list[Step] = field(default_factory=list[Step])
    files: list[Attachment] = field(default_factory=list[Attachment])
    citations: list[Citation] = field(default_factory=list[Citation])
    names: dict[str, str] = field(default_factory=dict[str, str])
    """Names of tools by the id of their call."""

    def has(self, *kinds: str) -> bool:
        return any(kind in kinds and (text.strip() or name) for kind, name, text in self.steps)


def read_parts(message: dict[str, Any], report: Report, *, answer: bool) -> Parts:
    """Text, thinking, tools, files and sources of a message.

    An answer says its steps twice: as markup in `content` and as items in `output`. Of thinking and of tools the
    items count where there are any, else the markup; the text is that of `content`, which people see.
    """
    shown, items = Parts(), Parts()
    _take_content(message.get("content"), shown, 0, report)
    if answer:
        shown.text, steps = _without_details(shown.text)
        shown.steps += steps
        for item in list_of(message.get("output")):
            _take_item(item, items, report)
    merged: Parts = Parts(text=shown.text or items.text, files=shown.files + items.files, citations=items.citations)
    thoughts = items if items.has("thinking") else shown
    tools = items if items.has("call", "result") else shown
    if thoughts is tools:
        merged.steps = thoughts.steps
    else:
        merged.steps = [step for step in thoughts.steps if step[0] == "thinking"]
        merged.steps += [step for step in tools.steps if step[0] != "thinking"]
    merged.files += _files(message.get("files"))
    found = citations_of(message.get("sources"), message.get("citations"), _web_files(message.get("files")))
    merged.citations += [citation for citation in found if citation.url not in {c.url for c in merged.citations}]
    merged.citations += [
        c for c in _bare_sources(message.get("sources")) if c.url not in {x.url for x in merged.citations}
    ]
    return merged


def _take_content(content: Any, parts: Parts, depth: int, report: Report) -> None:
    """A text, or a list of parts in the manner of OpenAI."""
    if isinstance(content, str):
        if content.strip():
            parts.text.append(text_of(content))
    elif isinstance(content, list | dict) and depth >= _DEEPEST:
        report.skip("content nested too deeply", expected=False)
    elif isinstance(content, list):
        for item in content:
            _take_content(item, parts, depth + 1, report)
    elif isinstance(content, dict):
        kind = content.get("type")
        if kind in ("image_url", "input_image", "image"):
            address = content.get("image_url", content.get("url"))
            parts.files.append(url_file(address.get("url") if isinstance(address, dict) else address))
        elif kind in ("file", "input_file", "input_audio", "video_url"):
            parts.files.append(Attachment(name_of(content.get("name") or content.get("filename")), str(kind)))
        else:
            if isinstance(kind, str) and kind not in ("text", "input_text", "output_text", "refusal"):
                report.unknown[f"content:{kind}"] += 1
            _take_content(content.get("text", content.get("refusal", content.get("content"))), parts, depth + 1, report)
            for note in list_of(content.get("annotations")):
                parts.citations += citations_of(note)


# --- markup in the text -----------------------------------------------------------------------------------------------


def _without_details(texts: list[str]) -> tuple[list[str], list[Step]]:
    kept: list[str] = []
    steps: list[Step] = []
    for text in texts:
        pieces = _outside(text, steps) if "<details" in text else [text]
        rest = "\n\n".join(piece.strip("\n") for piece in pieces if piece.strip())
        rest = _without_tags(rest, steps)
        if rest.strip():
            kept.append(rest.strip("\n"))
    return kept, steps


def _outside(text: str, steps: list[Step]) -> Iterator[str]:
    """The text outside the blocks that Open WebUI writes; what they hold goes to `steps`."""
    fenced = fenced_lines(text.split("\n"))
    ends = _ends(text)
    at = line = start = counted = 0
    while (at := text.find("<details", at)) >= 0:
        line += text.count("\n", counted, at)
        counted = at
        match = None if fenced[line] or text[at - 1 : at] == "`" else _OPENING.match(text, at)
        attributes = _attributes(match[1]) if match else {}
        block = _block(text, match.end(), ends.get(at)) if match and attributes.get("type") in _BLOCKS else None
        if block is None:
            at += 1
            continue
        yield text[start:at]
        start = at = block[0]
        steps += _steps(attributes, block[1])
    yield text[start:]


def _attributes(written: str) -> dict[str, str]:
    return {name: html.unescape(double or single) for name, double, single in _ATTRIBUTE.findall(written)}


def _ends(text: str) -> dict[int, re.Match[str]]:
    """The closing tag of each opening one, by where that begins."""
    open_ones: list[int] = []
    ends: dict[int, re.Match[str]] = {}
    for mark in _MARK.finditer(text):
        if not mark[1]:
            open_ones.append(mark.start())
        elif open_ones:
            ends[open_ones.pop()] = mark
    return ends


def _block(text: str, start: int, closing: re.Match[str] | None) -> tuple[int, str] | None:
    """(where a block ends, what stands in it). One that nothing closes holds the quoted lines that follow, or is none."""
    if closing is not None:
        end = text.find(">", closing.end())
        return (len(text) if end < 0 else end + 1), text[start : closing.start()]
    summary = _SUMMARY.match(text, start)
    at = summary.end() if summary else start
    while at < len(text) and (text[at] == "\n" or _QUOTE.match(text, at)):
        end = text.find("\n", at)
        at = len(text) if end < 0 else end + 1
    return (at, text[start:at]) if text[start:at].strip() else None


def _steps(attributes: dict[str, str], body: str) -> Iterator[Step]:
    body = _SUMMARY.sub("", body, count=1).strip("\n")
    if attributes["type"] == "reasoning":
        lines = [_QUOTE.sub("", line, count=1) for line in body.split("\n")]
        yield "thinking", None, html.unescape("\n".join(lines)).strip()
        return
    if attributes["type"] == "code_interpreter":
        yield "call", "code_interpreter", _unfenced(body)
        if output := _decoded(attributes.get("output", attributes.get("result", ""))):
            yield "result", "code_interpreter", output
        return
    name = attributes.get("name") or None
    yield "call", name, _decoded(attributes.get("arguments", ""))
    result = _decoded(attributes.get("result", "")) or html.unescape(body).strip()
    if result:
        yield "result", name, result


def _unfenced(body: str) -> str:
    lines = body.strip().split("\n")
    return "\n".join(lines[1:-1]) if len(lines) > 2 and lines[0].startswith("```") and lines[-1] == "```" else body


def _decoded(value: str) -> str:
    """An attribute's value: JSON, often a JSON text inside a JSON string."""
    inner: Any = value
    for _ in range(2):
        if not isinstance(inner, str):
            break
        try:
            inner = parse_json(inner)
        except (ValueError, RecursionError):
            break
    return arguments_text(inner) if inner is not None else ""


def _without_tags(text: str, steps: list[Step]) -> str:
    """Thinking that stands at the start of an answer in the model's own tags, which nobody has taken apart."""
    start = text.lstrip()
    for tag in _THINK_TAGS:
        if start.startswith(f"<{tag}>") and f"</{tag}>" in start:
            head, mark, tail = start.partition(f"</{tag}>")
            _, inside = cut_blocks(head + mark, tag)
            for thought in inside:
                steps.append(("thinking", None, thought.strip()))
            return tail
    return text


# --- structured output ------------------------------------------------------------------------------------------------


def _take_item(item: Any, parts: Parts, report: Report) -> None:
    """One item of `output`."""
    if not isinstance(item, dict):
        return
    kind = item.get("type")
    match kind:
        case "message":
            _take_content(item.get("content"), parts, 0, report)
        case "reasoning":
            thought = _plain(item.get("content"), parts) or _plain(item.get("summary"), parts)
            if thought:
                parts.steps.append(("thinking", None, thought))
        case "image_generation_call":
            result = item.get("result")
            if isinstance(result, str):
                far = result.startswith(("http:", "https:", "data:", "/"))
                parts.files.append(url_file(result) if far else inline_file("image", result))
        case str() if kind.endswith("_call_output") or kind == "tool_result":
            name = _called(item.get("call_id"), parts) or name_of(item.get("name"))
            parts.steps.append(("result", name, _plain(item.get("output", item.get("content")), parts)))
        case str() if kind.endswith(("_call", "code_interpreter")):
            _take_call(item, kind, parts)
        case _:
            report.unknown[f"output:{kind}"] += 1
            if text := _plain(item.get("content", item.get("text")), parts):
                parts.steps.append(("result", name_of(kind), text))


def _take_call(item: dict[str, Any], kind: str, parts: Parts) -> None:
    """A tool's call; tools of the model's own house say call and result in one item."""
    name = name_of(item.get("name")) or kind.rpartition(":")[2].removesuffix("_call")
    keys = ("arguments", "input", "code", "action", "queries", "query")
    arguments = next((item[key] for key in keys if item.get(key) not in (None, "")), None)
    parts.steps.append(("call", name, _decoded(arguments) if isinstance(arguments, str) else arguments_text(arguments)))
    if call_id := name_of(item.get("call_id") or item.get("id")):
        parts.names[call_id] = name
    result = next((item[key] for key in ("output", "outputs", "results") if item.get(key) not in (None, "", [])), None)
    if result is not None:
        parts.steps.append(("result", name, _plain(result, parts) or arguments_text(result)))


def _called(call_id: Any, parts: Parts) -> str | None:
    return parts.names.get(call_id) if isinstance(call_id, str) else None


def _plain(value: Any, parts: Parts) -> str:
    """The texts of a list of parts; images among them are files."""
    texts: list[str] = []
    stack = [value]
    steps = 0
    while stack and steps < 100_000:
        steps += 1
        inner = stack.pop()
        if isinstance(inner, str):
            texts.append(text_of(inner))
        elif isinstance(inner, list):
            stack += inner[::-1]
        elif isinstance(inner, dict):
            if inner.get("type") in ("input_image", "image_url", "image"):
                address = inner.get("image_url", inner.get("url"))
                parts.files.append(url_file(address.get("url") if isinstance(address, dict) else address))
            elif isinstance(inner.get("text"), str | list):
                stack.append(inner["text"])
            elif inner.get("stdout") or inner.get("stderr") or inner.get("result"):
                stack += [inner.get(key) for key in ("result", "stderr", "stdout") if isinstance(inner.get(key), str)]
            else:
                texts.append(arguments_text(inner))
    return "\n\n".join(text for text in texts if text.strip()).strip()


# --- files and sources ------------------------------------------------------------------------------------------------


def _files(value: Any) -> list[Attachment]:
    """Files of a message with the text that was extracted from them; pages of a web search are sources, not files."""
    found: list[Attachment] = []
    for item in list_of(value):
        if not isinstance(item, dict) or _is_web(item):
            continue
        inner = dict_of(item.get("file"))
        meta, data = dict_of(inner.get("meta")), dict_of(inner.get("data"))
        if item.get("type") == "image" and not inner:
            image = url_file(item.get("url"))
            image.name = name_of(item.get("name")) or image.name
            found.append(image)
            continue
        names = (item.get("name"), inner.get("filename"), meta.get("name"), item.get("title"), item.get("id"))
        kinds = (item.get("content_type"), meta.get("content_type"), item.get("type"))
        sizes = (item.get("size"), meta.get("size"))
        text = data.get("content") or item.get("content")
        found.append(
            Attachment(
                next((name for value in names if (name := name_of(value))), None),
                next((kind for value in kinds if (kind := name_of(value))), None),
                next((size for value in sizes if (size := count_of(value))), None),
                text=text_of(text) or None,
            )
        )
    return found


def _is_web(item: dict[str, Any]) -> bool:
    return item.get("type") in ("web_search", "web_search_results") or isinstance(item.get("urls"), list)


def _web_files(value: Any) -> list[Any]:
    pages: list[Any] = []
    for item in list_of(value):
        if isinstance(item, dict) and _is_web(item):
            pages += [{"url": url} for url in list_of(item.get("urls"))] + list_of(item.get("docs"))
    return pages


def _bare_sources(value: Any) -> Iterator[Citation]:
    """Sources whose address stands only in their metadata (`{"source": "https://…"}`), or is their name."""
    for item in list_of(value):
        if not isinstance(item, dict):
            continue
        source = dict_of(item.get("source"))
        title = name_of(source.get("name"))
        for place in (*list_of(item.get("metadata")), source):
            if isinstance(place, dict):
                for key in ("source", "url", "name", "id"):
                    address = name_of(place.get(key))
                    if address is not None and address.startswith(("http://", "https://")):
                        yield Citation(address, title if title != address else None)
                        break
