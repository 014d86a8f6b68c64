"""What a Grok response holds beside its plain text: thinking, tools, sources, pictures, and marks inside the text.

`<grok:render …>` stands in an answer for a citation or a picture, whose details are JSON texts in
`card_attachments_json`; `<xai:tool_usage_card>` is a tool call; `<xaiArtifact>` encloses a document that was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from palace_pipeline.exports.attachments import url_file
from palace_pipeline.exports.json_values import arguments_text, list_of, name_of, text_of
from palace_pipeline.exports.text import clean_text, parse_json
from palace_pipeline.exports.web_sources import citations_of
from palace_pipeline.model import Attachment, Citation, Kind

_ARTIFACT = re.compile(r"<xaiArtifact(?:\s[^<>]{0,2000})?>\n?|</xaiArtifact>", re.IGNORECASE)
_TOOL_NAME = re.compile(r"<xai:tool_name>\s*([^<]{1,200}?)\s*</xai:tool_name>")
_PICTURE_KEYS = ("imageUrl", "image_url", "original")

Json = dict[str, Any]
Side = tuple[str, Kind, str | None]
"""(text, kind, tool) of a row beside the answer."""


def without_markup(text: str) -> tuple[str, list[Side]]:
    """An answer as it is read, and the tool calls that stood in it."""
    if "<" not in text:
        return text, []
    before = text
    text, cards = _cut(text, "xai:tool_usage_card")
    text, _ = _cut(text, "grok:render")
    text = _ARTIFACT.sub("", text)
    return (text.strip() if text != before else text), [_tool_call(card) for card in cards]


def side_texts(response: Json) -> list[Side]:
    """Thinking and tool calls, each text once: `thinking_trace`, those of other agents, the steps."""
    rows: dict[Side, None] = {}
    texts = [response.get("thinking_trace")]
    for trace in list_of(response.get("agent_thinking_traces")):
        texts.append(trace.get("thinking_trace") if isinstance(trace, dict) else trace)
    for step in list_of(response.get("steps")):
        texts += _step_texts(step)
    for text in texts:
        thought, cards = _cut(text_of(text), "xai:tool_usage_card")
        if thought.strip():
            rows[(thought.strip("\n"), "thinking", None)] = None
        for card in cards:
            rows[_tool_call(card)] = None
    return list(rows)


def _step_texts(step: Any) -> Iterator[str]:
    tagged = step.get("tagged_text") if isinstance(step, dict) else None
    parts = tagged if isinstance(tagged, dict) else {"text": step.get("text") if isinstance(step, dict) else step}
    said: list[str] = []
    for key, value in parts.items():
        texts = [text_of(item) for item in (value if isinstance(value, list) else [value])]
        if key == "tool_usage_card":
            yield from texts
        else:
            said += [text for text in texts if text.strip()]
    yield "\n".join(said)


def _tool_call(card: str) -> Side:
    name = _TOOL_NAME.search(card)
    _, arguments = _cut(card, "xai:tool_args")
    text = arguments[0] if arguments else ""
    start, end = text.find("<![CDATA["), text.rfind("]]>")
    text = text[start + len("<![CDATA[") : end] if 0 <= start < end else _inside(text)
    try:
        value = parse_json(text)
    except (ValueError, RecursionError):
        value = text
    return arguments_text(value), "tool_call", name[1] if name else None


def _inside(element: str) -> str:
    return element.partition(">")[2].rpartition("</")[0] if element else ""


def _cut(text: str, tag: str) -> tuple[str, list[str]]:
    """(`text` without its `<tag …>…</tag>` elements, these elements). An opening without an end is text."""
    opening, closing = f"<{tag}", f"</{tag}>"
    kept: list[str] = []
    found: list[str] = []
    at = look = 0
    while (start := text.find(opening, look)) >= 0:
        look = start + len(opening)
        if text[look : look + 1] not in (">", " ", "\t", "\n", "/"):
            continue
        if (end := text.find(closing, look)) < 0:
            break
        kept.append(text[at:start])
        found.append(text[start : end + len(closing)])
        at = look = end + len(closing)
    return ("".join(kept) + text[at:], found) if found else (text, found)


def cards_of(response: Json) -> list[Json]:
    """The cards of an answer; they come as JSON texts, as objects, or all in one text."""
    cards: list[Json] = []
    stack: list[Any] = [response.get("card_attachments_json")]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            try:
                value = parse_json(value)
            except (ValueError, RecursionError):
                continue
        if isinstance(value, list):
            stack += reversed(value)
        elif isinstance(value, dict):
            inner = value.get("cards")
            if isinstance(inner, list):
                stack += reversed(inner)
            else:
                cards.append(value)
    return cards


def citations(response: Json, cards: list[Json]) -> list[Citation]:
    """What the answer cites, then what its cards link to, then what was found for it."""
    links = [{k: v for k, v in card.items() if not isinstance(v, dict | list)} for card in cards if not _picture(card)]
    steps = [step for step in list_of(response.get("steps")) if isinstance(step, dict)]
    return citations_of(response.get("cited_web_search_results"), links, response.get("web_search_results"), steps)


def pictures(response: Json, cards: list[Json]) -> list[Attachment]:
    """Pictures that were made or found for an answer, by the last part of their address."""
    urls = [url for url in list_of(response.get("generated_image_urls")) if isinstance(url, str)]
    urls += [url for card in cards if (url := _picture(card)) is not None]
    return [url_file(clean_text(url)) for url in dict.fromkeys(urls)]


def _picture(card: Json) -> str | None:
    """The address of the picture that a card shows; of one that is still being made there is none."""
    for holder in (card.get("image_chunk"), card.get("image"), card):
        if isinstance(holder, dict):
            for key in _PICTURE_KEYS:
                if (url := name_of(holder.get(key))) is not None:
                    return url
    return None
