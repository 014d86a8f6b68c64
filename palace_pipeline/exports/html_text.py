"""HTML of an export -> the text a person sees: paragraphs, lists, code blocks, tables; links and pictures beside it.

Tokens only, no tree: an answer is a few tags around words, a tree costs memory, and parsers that build one as browsers
do (misnested formatting, foster parents) take quadratic time for hostile input. The standard library's tokenizer
is no better in older Pythons (3.11.7: 24 KB of `<a ` take eight seconds, and `<![<` raises). This one looks at each
character a bounded number of times and takes anything. Emphasis is dropped, since it adds marks to words and no words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import Literal

from palace_pipeline.exports.text import clean_text

Token = tuple[Literal["text", "open", "close"], str, str]
"""(kind, name of the tag in lower case or the text with its references resolved, attributes as they stand)."""


@dataclass(slots=True)
class HtmlText:
    """What HTML shows. `links`: (address, words it stands on); `images`: (source, alternative text)."""

    text: str = ""
    links: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    images: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


_TAG = re.compile(r"<(/?)([A-Za-z][^\s<>/\"'=]*+)((?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+)>")
_EMPHASIS = re.compile(
    r"<(?<![</]<)/?(?:strong|em|span|b|i|u|s|sup|sub|small|mark|font)(?:\s(?:[^<>\"']++|\"[^\"<>]*+\"|'[^'<>]*+')*+)?>"
)
_ROUGH_TAG = re.compile(r"<(/?)([A-Za-z][^\s<>/\"'=]*+)([^>]*+)>")
_LONG_NUMBER = re.compile(r"&#\d{20,};?")
_ATTRIBUTE = re.compile(r"([^\s\"'=<>/]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>]++))")
_BLANKS = re.compile(r"[ \t\n\r\f]+")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang)-([\w+#.-]{1,30})")
_BACKTICKS = re.compile(r"`{3,}")
_UNSEEN = ("script", "style", "template", "noscript", "title", "head")
_END_OF = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _UNSEEN if name != "head"}
_APART = frozenset("p h1 h2 h3 h4 h5 h6 ul ol dl blockquote pre table hr figure".split())  # noqa: SIM905
"""Blocks with an empty line around them."""
BLOCKS = _APART | frozenset(
    """
    div section article header footer main nav aside address form fieldset details summary center li dt dd tr caption
    thead tbody tfoot figcaption body html
    """.split()  # noqa: SIM905
)
"""Tags that begin a new line."""
_STRUCTURE = frozenset("ul ol li blockquote table tr td th".split())  # noqa: SIM905
_MEANT = BLOCKS | _STRUCTURE | {"br", "a", "img", "code"}
_DEEPEST = 20
"""Levels of lists and quotations that are shown as such; a file may nest as many as it has bytes."""


def resolve(text: str) -> str:
    """Character references (`&amp;`, `&#x27;`) as characters."""
    if "&" not in text:
        return text
    # The library converts numbers of any length and refuses those of more than 4,300 digits.
    return unescape(_LONG_NUMBER.sub("\ufffd", text))


def tokens(html: str) -> Iterator[Token]:
    """Texts and tags in order; a `<` that begins no tag is text.

    Comments, declarations, scripts, styles and emphasis are left out: what only changes the look of words is half of all
    tags, and is taken out in one go.
    """
    if "<!" not in html:  # a comment may hold anything
        html = _EMPHASIS.sub("", html)
    at, last = 0, html.rfind(">")
    quotes_hold = comments_end = True
    while (start := html.find("<", at)) >= 0 and start < last:
        if start > at:
            yield "text", resolve(html[at:start]), ""
        match = _TAG.match(html, start) if quotes_hold else None
        if match is not None:
            closing, name, attributes = match.groups()
            at = match.end()
        elif html.startswith(("<!", "<?"), start):
            end = -1
            if comments_end and html.startswith("<!--", start):
                end = html.find("-->", start + 4)
                comments_end = end >= 0
            at = end + 3 if end >= 0 else html.index(">", start) + 1
            continue
        elif (match := _ROUGH_TAG.match(html, start)) is not None:
            closing, name, attributes = match.groups()
            at = match.end()
            # A quote that is never closed: from here on quotes mean nothing, or every tag might look through all of it.
            quotes_hold = quotes_hold and not ('"' in attributes or "'" in attributes)
        else:
            yield "text", "<", ""
            at = start + 1
            continue
        name = name.lower()
        if closing:
            yield "close", name, ""
        elif name in _END_OF:
            end_tag = _END_OF[name].search(html, at)
            at = end_tag.start() if end_tag is not None else len(html)
        else:
            yield "open", name, attributes
    if at < len(html):
        yield "text", resolve(html[at:]), ""


def attributes_of(text: str) -> dict[str, str]:
    """The attributes of an opening tag: lower-case name -> value, references resolved; the first of equal names."""
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        found.setdefault(match[1].lower(), resolve(match[2] or match[3] or match[4] or ""))
    return found


def html_to_text(html: str) -> HtmlText:
    """What a piece of HTML shows; never raises, linear in its length."""
    return render(tokens(html))


def plain_text(found: Iterable[Token]) -> str:
    """The characters of tokens as they stand, with a line break for `<br>` and between blocks; for text a person typed."""
    parts: list[str] = []
    for kind, name, _ in found:
        if kind == "text":
            parts.append(name)
        elif (name == "br" and kind == "open") or (name in BLOCKS and parts and not parts[-1].endswith("\n")):
            parts.append("\n")
    return clean_text("".join(parts)).strip()


def render(found: Iterable[Token]) -> HtmlText:
    """What tokens show."""
    writer = _Writer()
    for kind, name, attributes in found:
        if kind == "text":
            writer.add(name)
        elif name not in _MEANT:  # emphasis, spans, what only programs see
            continue
        elif kind == "open":
            writer.open(name, attributes)
        else:
            writer.close(name)
    return writer.finish()


@dataclass(slots=True)
class _Level:
    """An open list, item, quotation or part of a table. `first`: what its first line begins with, `rest` the others."""

    name: str
    first: str = ""
    rest: str = ""
    number: int | None = None
    cells: int = 0
    heads: bool = False


@dataclass(slots=True)
class _Writer:
    parts: list[str] = field(default_factory=list[str])
    breaks: int = 0
    """Line breaks owed before the next word."""
    blank: bool = False
    levels: list[_Level] = field(default_factory=list[_Level])
    open_names: Counter[str] = field(default_factory=Counter[str])
    cells: int = 0
    code: list[str] | None = None
    language: str = ""
    link: str | None = None
    words: list[str] = field(default_factory=list[str])
    result: HtmlText = field(default_factory=HtmlText)

    # --- words ---

    def add(self, text: str) -> None:
        if self.code is not None:
            self.code.append(text)
            return
        if "\n" in text or "  " in text or "\t" in text or "\r" in text or "\f" in text:
            text = _BLANKS.sub(" ", text)
        if self.link is not None:
            self.words.append(text)
        words = text.strip(" ")
        if not words:
            self.blank = self.blank or bool(text)
            return
        if self.breaks or not self.parts:
            self.begin_line()
        elif (self.blank or text[0] == " ") and not self.parts[-1].endswith(" "):
            self.parts.append(" ")
        self.parts.append(words)
        self.blank = text[-1] == " "

    def write(self, words: str, *, blank: bool) -> None:
        if self.breaks or not self.parts:
            self.begin_line()
        elif (blank or self.blank) and not self.parts[-1].endswith(" "):
            self.parts.append(" ")
        self.parts.append(words)

    def begin_line(self) -> None:
        """The line breaks that are owed, and what the lines of open lists and quotations begin with."""
        shown = self.levels[:_DEEPEST] if self.levels else ()
        if self.parts:
            if self.breaks > 1:
                rest = "".join([level.rest for level in shown if not level.first]).rstrip() if shown else ""
                self.parts.append(f"\n{rest}\n")
            else:
                self.parts.append("\n")
        for level in shown:
            self.parts.append(level.first or level.rest)
            level.first = ""
        self.breaks, self.blank = 0, False

    def owe(self, breaks: int) -> None:
        if self.cells:
            self.blank = True
        else:
            self.breaks, self.blank = max(self.breaks, breaks), False

    # --- tags ---

    def open(self, name: str, attributes: str) -> None:
        if self.code is not None:
            if name == "code" and (language := _LANGUAGE.search(attributes_of(attributes).get("class", ""))):
                self.language = language[1]
            elif name == "br":
                self.code.append("\n")
            return
        if name == "br":
            if self.cells:
                self.blank = True
            else:
                self.breaks, self.blank = min(self.breaks + 1, 2), False
        elif name == "a":
            self.end_link()
            self.link = attributes_of(attributes).get("href", "").strip() or None
        elif name == "img":
            values = attributes_of(attributes)
            self.result.images.append((clean_text(values.get("src", "")), clean_text(values.get("alt", ""))))
        elif name in BLOCKS or name in _STRUCTURE:
            self.open_block(name, attributes)

    def open_block(self, name: str, attributes: str) -> None:
        if name in ("li", "tr", "td", "th"):
            self.end_unclosed(name)
        if name in BLOCKS:
            nested = name in ("ul", "ol") and self.open_names["li"]
            self.owe(2 if name in _APART and not nested else 1)
        if name == "pre":
            self.code, self.language = [], ""
        elif name == "hr":
            self.write("---", blank=False)
            self.owe(2)
        elif name in _STRUCTURE:
            self.push(name, attributes)
        elif name[0] == "h" and name[1:].isdigit() and not self.cells:
            self.write("#" * int(name[1:]), blank=False)
            self.blank = True

    def push(self, name: str, attributes: str) -> None:
        level = _Level(name)
        if name == "ol":
            start = attributes_of(attributes).get("start", "")
            level.number = int(start) if start.isdecimal() and len(start) < 10 else 1
        elif name == "li":
            above = next((level for level in reversed(self.levels) if level.name in ("ol", "ul")), None)
            mark = "- "
            if above is not None and above.number is not None:
                mark, above.number = f"{above.number}. ", above.number + 1
            level.first, level.rest = mark, " " * len(mark)
        elif name == "blockquote":
            level.first = level.rest = "> "
        elif name in ("td", "th"):
            row = next((level for level in reversed(self.levels) if level.name == "tr"), None)
            if row is not None:
                self.write("|" if row.cells == 0 else "", blank=False)
                row.cells, row.heads = row.cells + 1, row.heads or name == "th"
            self.blank = True
            self.cells += 1
        self.levels.append(level)
        self.open_names[name] += 1

    def close(self, name: str) -> None:
        if self.code is not None:
            if name == "pre":
                self.end_code()
            return
        if name == "a":
            self.end_link()
        elif name in _STRUCTURE and self.open_names[name]:
            while self.levels:
                level = self.levels.pop()
                self.open_names[level.name] -= 1
                self.end_level(level)
                if level.name == name:
                    break
        if name in BLOCKS:
            nested = name in ("ul", "ol") and self.open_names["li"]
            self.owe(2 if name in _APART and not nested else 1)

    def end_unclosed(self, name: str) -> None:
        """A new item ends the one before it in the same list, a new cell or row those of the same table."""
        around = ("ul", "ol") if name == "li" else ("table",)
        ends = {"li": ("li",), "tr": ("tr", "td", "th"), "td": ("td", "th"), "th": ("td", "th")}[name]
        for level in reversed(self.levels):
            if level.name in around:
                return
            if level.name in ends:
                self.close(level.name)
                if name != "tr" or level.name == "tr":
                    return

    def end_level(self, level: _Level) -> None:
        if level.name in ("td", "th"):
            self.cells -= 1
            self.blank = True
            self.write("|", blank=True)
            self.blank = False
        elif level.name == "tr" and level.heads and not self.cells:
            self.breaks = max(self.breaks, 1)
            self.write("|" + " --- |" * level.cells, blank=False)
            self.breaks = 1

    def end_link(self) -> None:
        if self.link is not None:
            self.result.links.append((clean_text(self.link), clean_text(" ".join("".join(self.words).split()))))
        self.link = None
        self.words = []

    def end_code(self) -> None:
        code = clean_text("".join(self.code or [])).strip("\n")
        self.code = None
        if not code.strip():
            return
        fence = "`" * max([3, *(len(run) + 1 for run in _BACKTICKS.findall(code))])
        for line in (fence + self.language, *code.split("\n"), fence):
            if self.cells:
                self.write(line, blank=True)
                self.blank = True
                continue
            self.begin_line()
            self.parts.append(line)
            self.breaks = 1
        self.owe(2)

    def finish(self) -> HtmlText:
        if self.code is not None:
            self.end_code()
        self.end_link()
        while self.levels:
            self.end_level(self.levels.pop())
        text = clean_text("".join(self.parts))
        if " \n" in text:
            text = "\n".join([line.rstrip(" ") for line in text.split("\n")])
        self.result.text = text.strip()
        return self.result
