"""Text of messages as paragraphs, runs, lists and tables of WordprocessingML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from markdown_it.token import Token

from palace_pipeline.publish.code import coloured
from palace_pipeline.publish.links import Links
from palace_pipeline.publish.view import MANY_COLUMNS, runs_left

COLOURS = {"k": "A3307A", "s": "1A6B2F", "m": "8A4B00", "c": "68707A", "f": "5A3EA8", "x": "B42318", "i": "1A6B2F"}
_DEEPEST_LIST = 8
_COMPLEX = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")


def run(
    text: str, *, bold: bool = False, italic: bool = False, struck: bool = False, style: str = "", colour: str = ""
) -> str:
    """A run of characters; tabs and line ends become Word's own."""
    if not text:
        return ""
    looks = "".join(
        [
            f"<w:rStyle w:val={quoteattr(style)}/>" if style else "",
            "<w:b/><w:bCs/>" if bold else "",
            "<w:i/><w:iCs/>" if italic else "",
            "<w:strike/>" if struck else "",
            f'<w:color w:val="{colour}"/>' if colour else "",
            "<w:rtl/>" if _COMPLEX.search(text) and runs_left(text) else "",
        ]
    )
    inner = "".join(_characters(text))
    return f"<w:r>{f'<w:rPr>{looks}</w:rPr>' if looks else ''}{inner}</w:r>"


def _characters(text: str) -> Iterator[str]:
    for piece in re.split("([\t\n])", text):
        if piece == "\t":
            yield "<w:tab/>"
        elif piece == "\n":
            yield "<w:br/>"
        elif piece:
            yield f'<w:t xml:space="preserve">{escape(piece)}</w:t>'


def paragraph(
    runs: str,
    *,
    style: str = "",
    text: str = "",
    folded: bool = False,
    list_id: int = 0,
    level: int = 0,
    right: bool = False,
) -> str:
    """A paragraph of finished runs. `text` decides its direction; `folded`: Word hides what is below this heading."""
    looks = "".join(
        [
            f'<w:pStyle w:val="{style}"/>' if style else "",
            f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>' if list_id else "",
            "<w:bidi/>" if text and runs_left(text) else "",
            '<w:jc w:val="right"/>' if right else "",
            "<w15:collapsed/>" if folded else "",
        ]
    )
    return f"<w:p>{f'<w:pPr>{looks}</w:pPr>' if looks else ''}{runs}</w:p>"


@dataclass(slots=True)
class _Frame:
    """A list or quotation that is open. `waiting`: the next paragraph is the first of an item, and has its mark."""

    list_id: int
    waiting: bool = False


@dataclass(slots=True)
class Writer:
    """Writes blocks, and notes what other parts of the file must say: addresses of links, and lists (ordered from which number,
    None for bullets) by their id from 1."""

    links: Links
    addresses: dict[str, str] = field(default_factory=dict[str, str])
    lists: list[int | None] = field(default_factory=list["int | None"])

    def link(self, address: str | None, runs: str) -> str:
        """Runs that lead to an address, if there is one."""
        if address is None or not runs:
            return runs
        name = self.addresses.setdefault(address, f"rIdLink{len(self.addresses) + 1}")
        return f'<w:hyperlink r:id="{name}" w:history="1">{runs}</w:hyperlink>'

    def code(self, code: str, language: str) -> Iterator[str]:
        """Code as one paragraph a line: Word pages them well, and each can be copied."""
        line: list[str] = []
        for name, piece in coloured(code, language):
            first, *others = piece.split("\n")
            line.append(run(first, colour=COLOURS.get(name, "")))
            for other in others:
                yield paragraph("".join(line), style="Code")
                line = [run(other, colour=COLOURS.get(name, ""))]
        yield paragraph("".join(line), style="Code")

    def blocks(self, tokens: list[Token]) -> Iterator[str]:
        """The blocks of a message's Markdown."""
        frames: list[_Frame] = []
        quotes = 0
        style, at = "", 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token.type == "heading_open":
                style = f"Heading{min(6, int(token.tag[1:]) + 2)}"
            elif token.type == "heading_close":
                style = ""
            elif token.type in ("bullet_list_open", "ordered_list_open"):
                self.lists.append(int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None)
                frames.append(_Frame(len(self.lists)))
            elif token.type in ("bullet_list_close", "ordered_list_close"):
                frames.pop()
            elif token.type == "list_item_open":
                frames[-1].waiting = True
            elif token.type == "blockquote_open":
                quotes += 1
            elif token.type == "blockquote_close":
                quotes -= 1
            elif token.type == "inline":
                yield self._paragraph(token, style or ("Quote" if quotes else ""), frames)
            elif token.type in ("fence", "code_block"):
                yield from self.code(token.content.removesuffix("\n"), token.info)
            elif token.type == "hr":
                yield paragraph("", style="Rule")
            elif token.type == "table_open":
                end = next(i for i in range(at, len(tokens)) if tokens[i].type == "table_close")
                yield self._table(tokens[at:end])
                at = end + 1

    def _paragraph(self, token: Token, style: str, frames: list[_Frame]) -> str:
        frame = frames[-1] if frames else None
        first = frame is not None and frame.waiting
        list_id = 0
        if frame is not None:
            list_id, frame.waiting = frame.list_id if first else 0, False
            style = style or ("ListParagraph" if first else "ListMore")
        level = min(len(frames) - 1, _DEEPEST_LIST)
        return paragraph(
            self.inline(token.children or []), style=style, text=token.content, list_id=list_id, level=level
        )

    def _table(self, tokens: list[Token]) -> str:
        rows: list[list[str]] = []
        style = "FineCell" if sum(token.type == "th_open" for token in tokens) > MANY_COLUMNS else "Cell"
        head = True
        heads = 0
        right = False
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
                heads += head
            elif token.type == "thead_close":
                head = False
            elif token.type in ("th_open", "td_open"):
                right = str(token.attrs.get("style", "")).endswith("right")
            elif token.type == "inline" and rows:
                inner = self.inline(token.children or [], bold=head)
                rows[-1].append(paragraph(inner, style=style, text=token.content, right=right))
        columns = max(map(len, rows), default=1) or 1
        width = 9_600 // columns
        grid = "".join(f'<w:gridCol w:w="{width}"/>' for _ in range(columns))
        body = "".join(
            f"<w:tr>{'<w:trPr><w:tblHeader/></w:trPr>' if number < heads else ''}"
            + "".join(f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/></w:tcPr>{cell}</w:tc>' for cell in cells)
            + "</w:tr>"
            for number, cells in enumerate(rows)
        )
        mirrored = (
            "<w:bidiVisual/>" if runs_left(next((one.content for one in tokens if one.type == "inline"), "")) else ""
        )
        looks = f'<w:tblPr><w:tblStyle w:val="Grid"/>{mirrored}<w:tblW w:w="0" w:type="auto"/></w:tblPr>'
        return f"<w:tbl>{looks}<w:tblGrid>{grid}</w:tblGrid>{body}</w:tbl>{paragraph('', style='Cell')}"

    def inline(self, children: list[Token], *, bold: bool = False) -> str:
        """The runs of a paragraph."""
        out: list[str] = []
        inside: list[str] = []
        address: str | None = None
        linked = False
        depth = {"strong": int(bold), "em": 0, "s": 0}
        for token in children:
            stem, _, end = token.type.rpartition("_")
            target = inside if linked else out
            if token.type == "link_open":
                linked, inside, address = True, [], str(token.attrs["href"]) if token.attrs.get("href") else None
            elif token.type == "link_close":
                linked = False
                out.append(self.link(address, "".join(inside)))
            elif stem in depth:
                depth[stem] += 1 if end == "open" else -1
            elif token.type == "hardbreak":
                target.append("<w:r><w:br/></w:r>")
            elif token.type == "softbreak":
                target.append(run(" "))
            elif token.type in ("code_inline", "formula"):
                target.append(run(token.content, style="CodeInline"))
            elif token.type == "image":
                name = f"[Picture: {token.content}]" if token.content else "[Picture]"
                goes = str(token.attrs["href"]) if token.attrs.get("href") and not linked else None
                target.append(self.link(goes, run(name, style="Hyperlink" if goes else "")))
            else:
                style = "Hyperlink" if linked and address else ""
                bolder, slanted, struck = depth["strong"] > 0, depth["em"] > 0, depth["s"] > 0
                target.append(run(token.content, bold=bolder, italic=slanted, struck=struck, style=style))
        return "".join(out)
