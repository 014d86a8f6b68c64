"""The Markdown of a message as tokens, in which nothing can run and nothing is loaded: what every form of export shows.

CommonMark with tables and strikethrough by markdown-it-py (MIT; rich brings it). HTML in a text is text. Formulas stay as
they were written. Bare addresses are links.
"""

from __future__ import annotations

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from palace_pipeline.publish.links import Links, bare_links, picture_in

_MOST = 200_000
"""Characters of a message above which it is shown as it was written: no reader misses the headings of such a text."""
_DEEPEST = 100
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_BOX = re.compile(r"\[([ xX])\](?=\s)")
_FORMULA_ENDS = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    parser.enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.validateLink = _any_address  # pyright: ignore[reportAttributeAccessIssue]
    return parser


def _any_address(url: str) -> bool:
    """Every address becomes a link at first, and `Links` decides what stays; else it would stand there as raw Markdown."""
    del url
    return True


def _formula(state: StateInline, silent: bool) -> bool:
    r"""`\( … \)`, `\[ … \]` and `$$ … $$` are kept from being read as Markdown."""
    opening = state.src[state.pos : state.pos + 2]
    closing = _FORMULA_ENDS.get(opening)
    if closing is None:
        return False
    end = state.src.find(closing, state.pos + 2, min(state.posMax, state.pos + 4_000))
    if end <= state.pos + 2:
        return False
    if not silent:
        token = state.push("formula", "code", 0)
        token.content = state.src[state.pos : end + 2]
    state.pos = end + 2
    return True


def tokens_of(text: str, links: Links, *, wrapped: bool = False) -> list[Token] | None:
    """The tokens of a text; None if it is to be shown as it was written, because it is too large or nested too deeply.

    `wrapped`: a single line end is where an editor broke the line, as in documents; in chats it is meant.

    What stands in them beside those of markdown-it: `formula`; `link_open` with an `href` only where it leads somewhere;
    `image` with a `src` only where it brings its own data, else with an `href` if it lies on the web.
    """
    if len(text) > _MOST:
        return None
    try:
        tokens = _parser().parse(text)
    except RecursionError:
        return None
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        return None  # the parser leaves out what lies deeper
    previous = ""
    for token in tokens:
        if token.type == "inline" and token.children is not None:
            token.children = _settled(token.children, links)
            for child in token.children:
                if child.type == "softbreak" and not wrapped:
                    child.type = "hardbreak"
            if previous == "list_item_open":
                _tick(token.children)
        if token.type != "paragraph_open":
            previous = token.type
    return tokens


def _settled(children: list[Token], links: Links) -> list[Token]:
    out: list[Token] = []
    inside = 0
    for token in children:
        if token.type == "link_open":
            inside += 1
            _lead(token, links.of(str(token.attrs.get("href", ""))))
        elif token.type == "link_close":
            inside -= 1
        elif token.type == "image":
            source = str(token.attrs.get("src", ""))
            token.content = "".join(child.content for child in token.children or ()) or token.content
            picture = picture_in(source)
            token.attrs = {"src": picture} if picture else {}
            if picture is None and not inside:
                _lead(token, links.of(source))
        elif token.type == "text":
            out += _words(token.content, links, linked=inside > 0)
            continue
        out.append(token)
    return out


def _lead(token: Token, address: str | None) -> None:
    token.attrs = {} if address is None else {"href": address}


def _words(text: str, links: Links, *, linked: bool) -> list[Token]:
    """A text with line breaks for `<br>`, which models put into tables, and links for bare addresses."""
    out: list[Token] = []
    for number, line in enumerate(_BREAK.split(text)):
        if number:
            out.append(Token("hardbreak", "br", 0))
        for piece, is_address in [(line, False)] if linked else bare_links(line):
            address = links.of(piece) if is_address else None
            word = Token("text", "", 0, content=piece)
            if address is None:
                out.append(word)
            else:
                out += [Token("link_open", "a", 1, attrs={"href": address}), word, Token("link_close", "a", -1)]
    return out


def _tick(children: list[Token]) -> None:
    """`[x]` at the start of a list's item is a box."""
    first = children[0] if children else None
    if first is not None and first.type == "text" and (match := _BOX.match(first.content)):
        first.content = ("☐" if match[1] == " " else "☑") + first.content[match.end() :]
