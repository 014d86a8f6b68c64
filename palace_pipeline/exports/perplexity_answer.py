"""An answer of Perplexity as exports hold it: a text, JSON as text, the steps of a search, or blocks of the web page.

JSON as text is `{"answer": …, "web_results": […], "chunks": […]}`, or a list of steps (`step_type`) of which the last
(`FINAL`) holds such a text again. Blocks are told apart by `intended_usage`. Shape: fixtures of
https://github.com/NateBJones-Projects/OB1/pull/109, https://github.com/TGRRRR/perplexport src/types/conversation.ts,
https://github.com/Superkikim/nexus-ai-chat-importer src/providers/perplexity, looked at on 2026-11-29.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from palace_pipeline.exports.attachments import url_file
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.json_values import list_of, name_of, text_of
from palace_pipeline.exports.text import clean_text, parse_json
from palace_pipeline.exports.web_sources import citations_of
from palace_pipeline.model import Attachment, Citation

_PARTS = {"web_results", "chunks", "structured_answer", "extra_web_results", "widget_data"}
_PAGES = ("web_results", "extra_web_results", "sources", "citations")
_CUT = re.compile(r'"answer"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL)
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")
_DEEPEST = 4
_KNOWN_BLOCKS = re.compile(
    r"ask_text.*|(?:pro_search_steps|(?:reasoning_)?plan|web_results|media_items|(?:sources|image|video|maps)_?\w*mode"
    r"|shopping\w*|knowledge_cards?|inline\w*|place\w*|finance\w*|hotels?\w*|products?\w*|diff\w*|preserved\w*"
    r"|answer_(?:tabs|assets)\w*|pending_followups|refinement\w*)"
)

Json = dict[str, Any]


@dataclass(slots=True)
class Answer:
    """`searches`: what was searched for; `thoughts`: what the plan said; `cut`: the text ends too early."""

    text: str = ""
    citations: list[Citation] = field(default_factory=list)
    searches: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    pictures: list[Attachment] = field(default_factory=list)
    cut: bool = False


def read_answer(value: Any, depth: int = 0) -> Answer:
    """The answer in a text or JSON value; text that is no JSON of Perplexity's is the answer itself."""
    if isinstance(value, str):
        start = value.lstrip()[:1]
        if start not in ("{", "[") or depth > _DEEPEST:
            return Answer(clean_text(value))
        try:
            inner = parse_json(value)
        except (ValueError, RecursionError):
            return _cut(value) if start == "{" else Answer(clean_text(value))
        return read_answer(inner, depth + 1) if _is_structured(inner) else Answer(clean_text(value))
    if isinstance(value, dict) and _is_structured(value):
        found = Answer("", citations_of(*(value.get(key) for key in _PAGES)))
        for text in (value.get("answer"), _structured(value.get("structured_answer")), _joined(value.get("chunks"))):
            if isinstance(text, str) and text.strip():
                _merge(found, read_answer(text, depth + 1))
                break
        return found
    if isinstance(value, list) and _is_structured(value):
        found = Answer()
        for step in value:
            if isinstance(step, dict):
                _step(step, found, depth)
        return found
    return Answer()


def _is_structured(value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(value.get("answer", 0), str | None) or len(_PARTS & set(value)) > 1
    return isinstance(value, list) and any(isinstance(step, dict) and "step_type" in step for step in value)


def _cut(value: str) -> Answer:
    """JSON that ends too early, since a cell of a workbook holds 32,767 characters: the answer as far as it goes."""
    match = _CUT.search(value)
    if match is None:
        return Answer(clean_text(value))
    whole = value[match.end() : match.end() + 1] == '"'
    try:
        text = json.loads(f'"{_CUT_ESCAPE.sub("", match[1])}"', strict=False)
    except ValueError:
        text = match[1]
    return Answer(clean_text(text), cut=not whole)


def _structured(value: Any) -> str:
    texts = [text_of(part.get("text")) for part in list_of(value) if isinstance(part, dict)]
    return "\n\n".join(text for text in texts if text.strip())


def _joined(value: Any) -> str:
    return "".join(text_of(chunk) for chunk in list_of(value))


def _merge(into: Answer, more: Answer) -> None:
    into.text = into.text or more.text
    into.citations += [citation for citation in more.citations if citation not in into.citations]
    into.searches += [search for search in more.searches if search not in into.searches]
    into.thoughts += more.thoughts
    into.cut = into.cut or more.cut


def _step(step: Json, found: Answer, depth: int) -> None:
    """A step of a search: its queries, its results, or the answer at its end."""
    for content in (step.get("content"), *(v for k, v in step.items() if k.endswith("_content"))):
        if not isinstance(content, dict):
            continue
        for query in list_of(content.get("queries")):
            text = text_of(query.get("query") if isinstance(query, dict) else query).strip()
            if text and text not in found.searches:
                found.searches.append(text)
        _merge(found, Answer(citations=citations_of(content.get("web_results"))))
        if "answer" in content:
            _merge(found, read_answer(content.get("answer"), depth + 1))


def read_blocks(blocks: Iterable[Any], report: Report) -> Answer:
    """The answer in the blocks of the web page: its text, the pages it cites, what was searched and planned."""
    found = Answer()
    texts: dict[str, list[str]] = {}
    for block in blocks:
        if not isinstance(block, dict):
            if block is not None:
                report.skip("not a block of an answer", expected=False)
            continue
        if not _is_markdown(block.get("markdown_block")):
            report.skip("not a block of an answer", expected=False)
        usage = block.get("intended_usage")
        usage = usage if isinstance(usage, str) else "ask_text"
        if not _KNOWN_BLOCKS.fullmatch(usage):
            report.unknown[f"block:{usage}"] += 1
        for value in block.values():
            if isinstance(value, dict):
                _block(value, usage, found, texts)
    # "ask_text" is the whole answer; "ask_text_0_markdown" and the like are its pieces.
    said = texts.get("ask_text") or [t for usage, found_texts in texts.items() if usage[:8] == "ask_text"
                                     for t in found_texts]  # fmt: skip
    said = said or [text for found_texts in texts.values() for text in found_texts][:1]
    found.text = "\n\n".join(dict.fromkeys(said))
    return found


def _is_markdown(value: Any) -> bool:
    """False for what should hold an answer's text and cannot be read."""
    if not value or not isinstance(value, dict):
        return not value
    known = isinstance(value.get("answer"), str | None) and isinstance(value.get("chunks"), list | None)
    return known and ("answer" in value or "chunks" in value)


def _block(value: Json, usage: str, found: Answer, texts: dict[str, list[str]]) -> None:
    if "answer" in value or "chunks" in value:
        text = text_of(value.get("answer")) or _joined(value.get("chunks"))
        if text.strip():
            texts.setdefault(usage, []).append(text)
    pages = citations_of(value.get("web_results"), value.get("rows"))
    if pages:
        _merge(found, Answer(citations=pages))
    for goal in list_of(value.get("goals")):
        if _is_dict(goal) and (text := text_of(goal.get("description")).strip()) and text not in found.thoughts:
            found.thoughts.append(text)
    for step in list_of(value.get("steps")):
        if isinstance(step, dict):
            _step(step, found, 0)
    for item in list_of(value.get("generated_media_items")):
        if _is_dict(item) and (url := name_of(item.get("image") or item.get("url"))):
            found.pictures.append(url_file(url))


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)
