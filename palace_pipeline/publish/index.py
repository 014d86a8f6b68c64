"""The list of what an export holds, as `index.html` or `index.md`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from palace_pipeline.publish.html import document
from palace_pipeline.transcripts.page_tail import no_html, squeezed


@dataclass(slots=True, frozen=True)
class Entry:
    """One exported conversation: its file beside the index, and what a search found in it. `source`: the product, for
    people; '' (as 0 messages) if all that is known is the file."""

    file: str
    title: str
    source: str
    date: str
    messages: int
    language: str
    quotes: tuple[str, ...] = ()


def index_html(title: str, entries: Sequence[Entry]) -> str:
    """The entries in their order, under the months where they come by date."""
    return document(title, "en", _html(title, entries))


def _html(title: str, entries: Sequence[Entry]) -> Iterator[str]:
    yield f'<header>\n<h1 dir="auto">{escape(title)}</h1>\n<p>{_conversations(entries)}</p>\n</header>\n<main>\n'
    months = [entry.date[:7] for entry in entries]
    by_month = months == sorted(months) and len(set(months)) > 1
    month: str | None = None
    for entry in entries:
        if month is None or (by_month and entry.date[:7] != month):
            yield "</ul>\n" if month is not None else ""
            month = entry.date[:7]
            yield f'<h2 class="day">{month or "undated"}</h2>\n' if by_month else ""
            yield '<ul class="index">\n'
        quotes = "".join(f'<q dir="auto">{escape(squeezed(one, 300))}</q>' for one in entry.quotes)
        language = f' lang="{entry.language}"' if entry.language else ""
        link = f'<a href="{escape(quote(entry.file))}" dir="auto">{escape(entry.title)}</a>'
        yield f'<li><time>{entry.date or "undated"}</time><span class="what"{language}>{link}{quotes}</span>'
        facts = " · ".join((escape(entry.source), _counted(entry.messages, "message"))) if entry.source else ""
        yield f"<small>{facts}</small></li>\n"
    yield "</ul>\n</main>\n" if month is not None else "</main>\n"


def index_markdown(title: str, entries: Sequence[Entry]) -> str:
    """The entries in their order, a line each."""
    lines = [f"# {no_html(title)}\n", f"{_conversations(entries)}\n"]
    for entry in entries:
        name = no_html(entry.title).replace("[", "\\[").replace("]", "\\]")
        lines.append(f"- {entry.date or 'undated'} [{name}](<{quote(entry.file)}>)")
        lines += [f"  > {no_html(squeezed(one, 300))}" for one in entry.quotes]
    return "\n".join(lines) + "\n"


def _conversations(entries: Sequence[Entry]) -> str:
    return _counted(len(entries), "conversation")


def _counted(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"
