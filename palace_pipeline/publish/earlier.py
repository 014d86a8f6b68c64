"""What lies in the folder of an export from exports before it: the new index names it too, or its links would be lost."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote

from palace_pipeline.publish.index import Entry
from palace_pipeline.publish.sealed import Kind, seal_of

_KINDS: dict[Kind, tuple[str, ...]] = {"html": (".html", ".docx", ".pdf"), "md": (".md",)}
"""Files that an index lists: `index.html` those of three kinds."""
_HTML = re.compile(
    r'^<li><time>([^<>]*)</time><span class="what"(?: lang="([\w-]*)")?><a href="([^"<>]*)" dir="auto">([^<>]*)</a>'
    r'((?:<q dir="auto">[^<>]*</q>)*)</span><small>(?:([^<>]*?) · ([\d,]+)(?: messages?)?)?</small></li>$',
    re.MULTILINE,
)
_QUOTE = re.compile("<q[^>]*>([^<>]*)</q>")
_MD = re.compile(r"^- (undated|\d{4}-\d\d-\d\d) \[(.*)\]\(<([^<>]*)>\)\n((?:  > .*\n)*)", re.MULTILINE)
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)-(.+)-[0-9a-f]{8}")


def earlier(folder: Path, index: str, kind: Kind, besides: Collection[str]) -> list[Entry]:
    """Files of earlier exports in `folder`: what its index says of those that are still there, and by their names those that
    no index lists, if an export wrote them. `kind`: of the index; `besides`: names that are not looked for."""
    path = folder / index
    known: dict[str, Entry] = {}
    if path.is_file() and not path.is_symlink() and seal_of(path) is not None:
        text = path.read_text("utf-8", errors="replace")
        known = {entry.file: entry for entry in (_in_markdown if kind == "md" else _in_html)(text)}
    there = (one for one in sorted(folder.iterdir()) if one.name.endswith(_KINDS[kind]) and one.name != index)
    files = [one for one in there if one.name not in besides and one.is_file() and not one.is_symlink()]
    return [known.get(one.name) or _by_name(one.name) for one in files if one.name in known or seal_of(one) is not None]


def _in_html(text: str) -> Iterator[Entry]:
    for match in _HTML.finditer(text):
        date, language, link, title, quotes, source, messages = match.groups()
        yield Entry(
            file=unquote(unescape(link)),
            title=unescape(title),
            source=unescape(source or ""),
            date=_date(date),
            messages=int((messages or "0").replace(",", "")),
            language=language or "",
            quotes=tuple(map(unescape, _QUOTE.findall(quotes))),
        )


def _in_markdown(text: str) -> Iterator[Entry]:
    for match in _MD.finditer(text):
        date, title, link, quotes = match.groups()
        yield Entry(
            file=unquote(link),
            title=re.sub(r"\\([\[\]<])", r"\1", title),
            source="",
            date=_date(date),
            messages=0,
            language="",
            quotes=tuple(line[4:].replace("\\<", "<") for line in quotes.splitlines()),
        )


def _by_name(file: str) -> Entry:
    stem = file.rpartition(".")[0]
    match = _DAY.fullmatch(stem)
    title = match[2].replace("-", " ") if match else stem
    return Entry(file, title, source="", date=match[1] if match else "", messages=0, language="")


def _date(shown: str) -> str:
    return "" if shown == "undated" else shown
