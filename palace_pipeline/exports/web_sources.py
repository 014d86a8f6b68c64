"""Web pages that an answer rests on, wherever an export nests them -> citations, and the same as text to read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palace_pipeline.exports.text import clean_text
from palace_pipeline.model import Citation

_URLS = ("url", "link", "URL")
_TITLES = ("title", "name", "metadata_title", "site_name", "source")
_WORDS = ("snippet", "preview", "description", "summary")
_DEEPEST = 12


def citations_of(*places: Any) -> list[Citation]:
    """The web addresses in nested lists and objects, each once, in the order in which they stand."""
    found: dict[str, Citation] = {}
    for url, page in _pages(places):
        if url not in found:
            found[url] = Citation(url, _first(page, _TITLES))
    return list(found.values())


def pages_text(*places: Any) -> str:
    """Title, address and summary of each page: what a search gave back, as a tool's result reads."""
    pages: dict[str, None] = {}
    for url, page in _pages(places):
        words = (_first(page, _TITLES), url, _first(page, _WORDS))
        pages["\n".join([text for text in words if text is not None])] = None
    return "\n\n".join(pages)


def _pages(places: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(address, page) of each object that has a web address, in order and without recursion."""
    stack: list[tuple[Any, int]] = [(place, 0) for place in reversed(places) if place]
    while stack:
        value, depth = stack.pop()
        if isinstance(value, dict):
            url = _first(value, _URLS)
            if url is not None and url.startswith(("http://", "https://")):
                yield url, value
            value = value.values()
        elif not isinstance(value, list):
            continue
        if depth < _DEEPEST:
            inner = [(item, depth + 1) for item in value if isinstance(item, dict | list)]
            if inner:
                stack += inner[::-1]


def _first(page: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        text = page.get(key)
        if isinstance(text, str) and (clean := clean_text(text).strip()):
            return clean
    return None
