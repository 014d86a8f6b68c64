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
    for page in _pages(places):
        url = _first(page, _URLS)
        if url is not None and url not in found:
            found[url] = Citation(url, _first(page, _TITLES))
    return list(found.values())


def pages_text(*places: Any) -> str:
    """Title, address and summary of each page: what a search gave back, as a tool's result reads."""
    pages = [
        "\n".join(words for keys in (_TITLES, _URLS, _WORDS) if (words := _first(page, keys)) is not None)
        for page in _pages(places)
    ]
    return "\n\n".join(dict.fromkeys(pages))


def _pages(places: Any) -> Iterator[dict[str, Any]]:
    stack: list[tuple[Any, int]] = [(places, 0)]
    while stack:
        value, depth = stack.pop()
        inner: list[Any] = []
        if isinstance(value, dict):
            if (_first(value, _URLS) or "").startswith(("http://", "https://")):
                yield value
            inner = list(value.values())
        elif isinstance(value, list | tuple):
            inner = list(value)
        if depth < _DEEPEST:
            stack += [(item, depth + 1) for item in reversed(inner) if isinstance(item, dict | list)]


def _first(page: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    value = next((text for key in keys if isinstance(text := page.get(key), str) and text.strip()), None)
    return clean_text(value).strip() if value is not None else None
