"""A conversation as Markdown for other people: what its page in the archive says, without what only the archive needs.

Texts stand as they were written. What is folded is a `<details>` block, which GitHub and most viewers fold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from palace_pipeline.model import DOCUMENT_PROVIDERS
from palace_pipeline.publish.links import Links
from palace_pipeline.publish.view import Part, View, file_line
from palace_pipeline.transcripts.front_matter import Value, dump
from palace_pipeline.transcripts.page_labels import SOURCES
from palace_pipeline.transcripts.page_tail import closing_lines, no_html, squeezed

_SPECIAL = re.compile(r"([\[\]\\*_`])")


def markdown(view: View, links: Links) -> str:
    """The whole text, with front matter: title, date, source."""
    facts: dict[str, Value] = {
        "title": view.title,
        "date": view.dates[0] or None,
        "source": SOURCES.get(view.provider, view.provider),
    }
    out = [f"---\n{dump(facts)}---\n\n# {no_html(view.title)}\n\n{view.summary}\n"]
    for part in view.parts:
        if isinstance(part, tuple):
            for one in part:
                out += _folded(one, links)
        else:
            out += _said(part, view.provider, links)
    return "".join(out)


def _said(part: Part, provider: str, links: Links) -> Iterator[str]:
    heading = " · ".join(filter(None, (f"{part.day} {part.time}".strip(), part.name, "edited" if part.edited else "")))
    if provider not in DOCUMENT_PROVIDERS:
        yield f"\n### {no_html(heading)}\n"
    if part.text.strip():
        yield "\n" + "\n".join([part.text.strip("\n"), *closing_lines(part.text)]) + "\n"
    yield from _beside(part, links)


def _folded(part: Part, links: Links) -> Iterator[str]:
    heading = " · ".join(filter(None, (part.name, part.time)))
    longest = max(map(len, re.findall("`{3,}", part.text)), default=2)
    fence = "`" * (longest + 1)
    yield f"\n<details>\n<summary>{_text(heading)}</summary>\n"
    if part.text.strip():
        yield f"\n{fence}\n{part.text.strip(chr(10))}\n{fence}\n"
    if part.cut:
        yield f"\n{part.cut:,} more characters are in the archive.\n"
    yield from _beside(part, links)
    yield "\n</details>\n"


def _beside(part: Part, links: Links) -> Iterator[str]:
    if part.files:
        yield "\n" + "".join(f"- File: {no_html(file_line(file))}\n" for file in part.files)
    for file in part.files:
        if (file.text or "").strip():
            fence = "`" * (max(map(len, re.findall("`{3,}", file.text or "")), default=2) + 1)
            yield f"\n<details>\n<summary>{_text(file_line(file))}</summary>\n\n{fence}\n{file.text}\n{fence}\n\n</details>\n"
    if part.sources:
        yield "\nSources:\n\n"
        for source in part.sources:
            address = links.of(source.url)
            name = _SPECIAL.sub(r"\\\1", no_html(squeezed(source.title or "", 200) or squeezed(source.url, 500)))
            yield f"- {name}\n" if address is None else f"- [{name}](<{address}>)\n"


def _text(line: str) -> str:
    """A line inside an HTML element."""
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
