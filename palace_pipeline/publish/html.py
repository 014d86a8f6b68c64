"""One conversation, or the list of those of an export, as an HTML file that needs nothing beside itself.

Nothing of a message can run and nothing is loaded from the network: texts are escaped, Markdown comes from tokens (HTML in it is
text), addresses are settled by `links`, and a content security policy forbids scripts, frames, forms and everything remote all
the same. There is no script and no `style` attribute in it.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from importlib import resources

from markdown_it.token import Token

from palace_pipeline.model import Attachment
from palace_pipeline.publish.code import coloured
from palace_pipeline.publish.links import Links, bare_links
from palace_pipeline.publish.markdown import tokens_of
from palace_pipeline.publish.view import MANY_COLUMNS, Part, View, contents_of, file_line, runs_left
from palace_pipeline.transcripts.page_tail import squeezed

_SIMPLE = {
    "paragraph": "p",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "em": "em",
    "strong": "strong",
    "s": "s",
}
_LINES = frozenset({"paragraph", "list_item"})
_AROUND = frozenset({"blockquote", "bullet_list", "ordered_list", "table"})
"""What has other blocks inside: `dir="auto"` would leave those out that have a direction of their own."""
_LINK = 'rel="noopener noreferrer nofollow"'


def page(view: View, links: Links, *, unfold: bool = False) -> str:
    """The page of a conversation. `unfold`: for paper, where nothing can be opened."""
    out = [
        f'<header>\n<h1 dir="auto">{escape(view.title)}</h1>\n<p>{escape(_facts(view))}</p>\n</header>\n',
        *_contents(view, unfold=unfold),
        "<main>\n",
        *_main(view, links, unfold=unfold),
        "</main>\n",
    ]
    return document(view.title, view.language, out)


def document(title: str, language: str, body: Iterable[str]) -> str:
    """A whole HTML document; `body` is HTML already."""
    css, digest = _style()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    return "".join(
        [
            f'<!DOCTYPE html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f"<title>{escape(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n",
            *body,
            "</body>\n</html>\n",
        ]
    )


@cache
def _style() -> tuple[str, str]:
    """The style sheet and its hash for the policy."""
    css = "\n" + resources.files("palace_pipeline.publish").joinpath("page.css").read_text(encoding="utf-8")
    return css, base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()


def _facts(view: View) -> str:
    first, last = view.dates
    dates = "" if not first else first if first == last else f"{first} to {last}"
    return " · ".join(part for part in (dates, view.summary) if part)


def _contents(view: View, *, unfold: bool) -> Iterator[str]:
    lines = contents_of(view)
    if not lines:
        return
    yield f"<nav>\n<details{' open' if unfold or len(lines) <= 12 else ''}>\n<summary>Contents</summary>\n<ol>\n"
    for line, number in lines:
        yield f'<li><a href="#m{number}" dir="auto">{escape(line)}</a></li>\n'
    yield "</ol>\n</details>\n</nav>\n"


def _main(view: View, links: Links, *, unfold: bool) -> Iterator[str]:
    day = ""
    for part in view.parts:
        if isinstance(part, tuple):
            yield from _run(part, links, unfold=unfold)
            continue
        if part.day and part.day != day:
            day = part.day
            if view.dates[0] != view.dates[1]:
                yield f'<h2 class="day">{day}</h2>\n'
        yield from _said(part, links)


def _said(part: Part, links: Links) -> Iterator[str]:
    side = "user" if part.role == "user" else "other"
    language = f' lang="{part.language}"' if part.language else ""
    yield f'<article class="said {side}" id="m{part.number}"{language}>\n<p class="by"><b dir="auto">{escape(part.name)}</b>'
    if part.time or part.day:
        moment = f'<time datetime="{escape(part.instant)}">{part.time or part.day}</time>'
        yield f' <a class="at" href="#m{part.number}">{moment}</a>'
    yield f"{' <span>edited</span>' if part.edited else ''}</p>\n"
    if part.text.strip():
        yield f'<div class="text">\n{text_html(part, links)}</div>\n'
    yield from _beside(part, links)
    yield "</article>\n"


def _run(parts: tuple[Part, ...], links: Links, *, unfold: bool) -> Iterator[str]:
    """What is folded between two messages: by itself, or several as one line that says what they are."""
    if len(parts) > 2 and not unfold:
        kinds = Counter(part.name for part in parts)
        most = ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in kinds.most_common(4))
        more = ", …" if len(kinds) > 4 else ""
        yield f'<details class="folded">\n<summary dir="auto">{len(parts)} steps: {escape(most)}{more}</summary>\n'
    for part in parts:
        yield f'<details class="folded {part.role}"{" open" if unfold else ""}>\n<summary dir="auto">{escape(part.name)}'
        yield (
            f' <time datetime="{escape(part.instant)}">{part.time}</time></summary>\n' if part.time else "</summary>\n"
        )
        if part.text.strip():
            yield f'<div class="text">\n{text_html(part, links)}</div>\n'
        if part.cut:
            yield f'<p class="note">{part.cut:,} more characters are in the archive.</p>\n'
        yield from _beside(part, links)
        yield "</details>\n"
    if len(parts) > 2 and not unfold:
        yield "</details>\n"


def _beside(part: Part, links: Links) -> Iterator[str]:
    """The files and sources of a message."""
    if part.files:
        yield '<div class="files"><ul>\n'
        yield from (f"<li>{_file(file)}</li>\n" for file in part.files)
        yield "</ul></div>\n"
    if part.sources:
        yield '<div class="files">Sources<ol>\n'
        for source in part.sources:
            name = escape(squeezed(source.title or "", 200) or source.url)
            yield f'<li dir="auto">{_link(links.of(source.url), name)}</li>\n'
        yield "</ol></div>\n"


def _file(file: Attachment) -> str:
    line = f'<span class="picture" dir="auto">File: {escape(file_line(file))}</span>'
    if not (file.text or "").strip():
        return line
    return f'<details class="folded"><summary>{line}</summary><pre dir="auto">{escape(file.text or "")}</pre></details>'


def _link(address: str | None, inner: str) -> str:
    return inner if address is None else f'<a href="{escape(address)}" {_LINK}>{inner}</a>'


# --- text -------------------------------------------------------------------------------------------------------------


def text_html(part: Part, links: Links) -> str:
    """The text of a row as HTML."""
    if part.role == "tool":
        return f'<pre dir="auto">{escape(part.text)}</pre>\n'
    tokens = None if part.as_written else tokens_of(part.text, links, wrapped=part.wrapped)
    return "".join(_written(part.text, links) if tokens is None else _blocks(tokens))


def _written(text: str, links: Links) -> Iterator[str]:
    """A text as it was typed, but for its fenced code."""
    for language, piece in fenced(text):
        if language is not None:
            yield _code(piece, language)
        elif piece.strip():
            words = [_link(links.of(one), escape(one)) if link else escape(one) for one, link in bare_links(piece)]
            yield f'<p class="written" dir="auto">{"".join(words)}</p>\n'


def fenced(text: str) -> Iterator[tuple[str | None, str]]:
    """A text in pieces: (language, code) for what stands in fences, (None, text) for the rest."""
    if "```" not in text:
        yield None, text
        return
    lines: list[str] = []
    language: str | None = None
    for line in text.split("\n"):
        mark = line.strip()
        if language is None and mark.startswith("```") and "`" not in mark[3:]:
            yield None, "\n".join(lines).strip("\n")
            lines, language = [], mark[3:].strip()
        elif language is not None and mark == "```":
            yield language, "\n".join(lines)
            lines, language = [], None
        else:
            lines.append(line)
    yield language, "\n".join(lines) if language is not None else "\n".join(lines).strip("\n")


def _code(code: str, language: str) -> str:
    pieces = (
        f'<span class="{name}">{escape(text)}</span>' if name else escape(text)
        for name, text in coloured(code, language)
    )
    return f'<pre dir="ltr"><code>{"".join(pieces)}</code></pre>\n'


def _blocks(tokens: list[Token]) -> Iterator[str]:
    for at, token in enumerate(tokens):
        kind = token.type
        stem, _, end = kind.rpartition("_")
        if kind == "inline":
            yield from _inline(token.children or [])
        elif kind in ("fence", "code_block"):
            yield _code(token.content.removesuffix("\n"), token.info)
        elif kind == "hr":
            yield "<hr>\n"
        elif stem == "paragraph" and token.hidden:
            continue
        elif stem == "heading":
            level = min(6, int(token.tag[1:]) + 2)
            yield f'<h{level} dir="auto">' if end == "open" else f"</h{level}>\n"
        elif stem == "table":
            yield _table(tokens, at) if end == "open" else "</table></div>\n"
        elif stem in ("th", "td"):
            yield _cell(token, stem) if end == "open" else f"</{stem}>"
        elif stem in _SIMPLE:
            direction = _direction(tokens, at) if stem in _AROUND else ' dir="auto"' if stem in _LINES else ""
            yield _tag(token, stem, direction) if end == "open" else f"</{_SIMPLE[stem]}>\n"
        else:
            yield escape(token.content)


def _direction(tokens: list[Token], at: int) -> str:
    """The direction of the first words in what is opened at a place."""
    first = next((token.content for token in tokens[at:] if token.type == "inline"), "")
    return ' dir="rtl"' if runs_left(first) else ' dir="ltr"'


def _table(tokens: list[Token], at: int) -> str:
    columns = 0
    for token in tokens[at:]:
        columns += token.type == "th_open"
        if token.type == "thead_close":
            break
    wide = ' class="wide"' if columns > MANY_COLUMNS else ""
    return f'<div class="table"{_direction(tokens, at)}><table{wide}>\n'


def _tag(token: Token, stem: str, direction: str) -> str:
    start = token.attrs.get("start")
    first = f' start="{int(start)}"' if start is not None else ""
    return f"<{_SIMPLE[stem]}{direction}{first}>"


def _cell(token: Token, name: str) -> str:
    aligned = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return (
        f'<{name} dir="auto" class="{aligned}">' if aligned in ("left", "right", "center") else f'<{name} dir="auto">'
    )


def _inline(children: list[Token]) -> Iterator[str]:
    for token in children:
        kind = token.type
        stem, _, end = kind.rpartition("_")
        address = token.attrs.get("href")
        if kind in ("code_inline", "formula"):
            yield f"<code>{escape(token.content)}</code>"
        elif kind == "softbreak":
            yield "\n"
        elif kind == "hardbreak":
            yield "<br>\n"
        elif kind == "link_open":
            yield f'<a href="{escape(str(address))}" {_LINK}>' if address else "<a>"
        elif kind == "link_close":
            yield "</a>"
        elif kind == "image":
            yield _picture(token)
        elif stem in _SIMPLE:
            yield f"<{_SIMPLE[stem]}>" if end == "open" else f"</{_SIMPLE[stem]}>"
        else:
            yield escape(token.content)


def _picture(token: Token) -> str:
    name, source, address = escape(token.content), token.attrs.get("src"), token.attrs.get("href")
    if source:
        return f'<img src="{escape(str(source))}" alt="{name}">'
    inner = _link(str(address) if address else None, name or "on the web")
    return f'<span class="picture">Picture{": " if name else ""}{inner}</span>'
