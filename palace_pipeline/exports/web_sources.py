"""Web pages that an answer rests on, wherever an export nests them -> citations, and the same as text to read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from palace_pipeline.exports.text import clean_text
from palace_pipeline.model import Citation

_URLS = ("url", "link", "URL")
_TITLES = ("title", "name", "metadata_title", "site_name", "source")
_WORDS = ("snippet", "preview", "description", "summary")
_DEEPEST = 12


class Page(NamedTuple):
    url: str
    title: str | None
    words: str | None
    """What a search shows of it."""


def pages_of(*places: Any) -> list[Page]:
    """The web pages in nested lists and objects, each address once, in the order in which they stand."""
    found: dict[str, Page] = {}
    stack: list[tuple[Any, int]] = [(place, 0) for place in reversed(places) if place]
    while stack:
        value, depth = stack.pop()
        if isinstance(value, dict):
            url = _first(value, _URLS)
            if url is not None and url not in found and url.startswith(("http://", "https://")):
                found[url] = Page(url, _first(value, _TITLES), _first(value, _WORDS))
            value = value.values()
        elif not isinstance(value, list):
            continue
        if depth < _DEEPEST:
            inner = [(item, depth + 1) for item in value if isinstance(item, dict | list)]
            if inner:
                stack += inner[::-1]
    return list(found.values())


def citations(pages: Iterable[Page]) -> list[Citation]:
    return [Citation(page.url, page.title) for page in pages]


def citations_of(*places: Any) -> list[Citation]:
    """The web pages in nested lists and objects as citations."""
    return citations(pages_of(*places))


def pages_text(pages: Iterable[Page]) -> str:
    """Title, address and summary of each page: what a search gave back, as a tool's result reads."""
    return "\n\n".join(["\n".join([text for text in (p.title, p.url, p.words) if text is not None]) for p in pages])


def _first(page: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        text = page.get(key)
        if isinstance(text, str) and (clean := clean_text(text).strip()):
            return clean
    return None
