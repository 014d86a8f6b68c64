"""A conversation as a Word document, written as the XML that the format is (ECMA-376, WordprocessingML).

python-docx (MIT) was weighed and left: what a chat needs most, it does not have (links, text from right to left, lists that start
anew, headings that are folded), so most of this XML would be written by hand all the same, and it keeps the whole document in
memory. pandoc is a large program of its own under the GPL. This writes paragraph by paragraph, and the same bytes each time.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from palace_pipeline.publish.docx_parts import FIXED_PARTS, core_part, numbering_part, relations_part
from palace_pipeline.publish.docx_text import Writer, paragraph, run
from palace_pipeline.publish.html import fenced
from palace_pipeline.publish.links import Links, bare_links
from palace_pipeline.publish.markdown import tokens_of
from palace_pipeline.publish.sealed import seal_size
from palace_pipeline.publish.view import Part, View, file_line
from palace_pipeline.transcripts.page_tail import squeezed

_EPOCH = (1980, 1, 1, 0, 0, 0)
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<w:document '
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:w15="http://schemas.microsoft.com/office/word/2012/wordml" mc:Ignorable="w15"><w:body>'
)
_END = (
    '<w:sectPr><w:footerReference w:type="default" r:id="rIdFooter"/><w:pgSz w:w="11906" w:h="16838"/>'
    '<w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" w:header="567" w:footer="567" w:gutter="0"/>'
    "</w:sectPr></w:body></w:document>"
)


def write(stream: BinaryIO, view: View, links: Links) -> None:
    """Write the document; its end is left open for a seal (`sealed.building`), which is the comment of the ZIP."""
    writer = Writer(links)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**FIXED_PARTS, "docProps/core.xml": core_part(view.title, view.language)}.items():
            archive.writestr(_member(name), _clean(text))
        with archive.open(_member("word/document.xml"), "w") as body:
            for piece in _document(view, writer):
                body.write(_clean(piece).encode())
        # What the document was found to use is known only now.
        archive.writestr(_member("word/numbering.xml"), numbering_part(writer.lists))
        archive.writestr(_member("word/_rels/document.xml.rels"), _clean(relations_part(writer.addresses)))
        archive.comment = b" " * seal_size("docx")
    stream.flush()
    stream.seek(-seal_size("docx"), 2)
    stream.truncate()


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _clean(xml: str) -> str:
    """Without the characters that no XML may hold."""
    return _FORBIDDEN.sub("\ufffd", xml)


def _document(view: View, writer: Writer) -> Iterator[str]:
    yield _HEAD
    yield paragraph(run(view.title), style="Title", text=view.title)
    first, last = view.dates
    dates = first if first == last else f"{first} to {last}"
    yield paragraph(run(" · ".join(filter(None, (dates, view.summary)))), style="Subtitle")
    day = ""
    for part in view.parts:
        if isinstance(part, tuple):
            for one in part:
                yield from _folded(one, writer)
            continue
        if part.day and part.day != day:
            day = part.day
            if first != last:
                yield paragraph(run(day), style="Day")
        heading = " · ".join(filter(None, (part.name, part.time or part.day, "edited" if part.edited else "")))
        yield paragraph(run(heading), style="Heading2", text=heading)
        yield from _text(part, writer)
        yield from _beside(part, writer)
    yield _END


def _folded(part: Part, writer: Writer) -> Iterator[str]:
    """A heading that Word shows folded; what is below it stays small and grey elsewhere."""
    heading = " · ".join(filter(None, (part.name, part.time)))
    yield paragraph(run(heading), style="Heading4", text=heading, folded=True)
    yield from writer.code(part.text.strip("\n"), "") if part.text.strip() else ()
    if part.cut:
        yield paragraph(run(f"{part.cut:,} more characters are in the archive."), style="Beside")
    yield from _beside(part, writer)


def _text(part: Part, writer: Writer) -> Iterator[str]:
    if not part.text.strip():
        return
    tokens = None if part.as_written else tokens_of(part.text, writer.links, wrapped=part.wrapped)
    if tokens is not None:
        yield from writer.blocks(tokens)
        return
    for language, piece in fenced(part.text):
        if language is not None:
            yield from writer.code(piece, language)
            continue
        for line in piece.split("\n"):
            yield paragraph(_with_links(line, writer), style="Written", text=line)


def _with_links(line: str, writer: Writer) -> str:
    pieces: Iterable[str] = (
        writer.link(writer.links.of(piece), run(piece, style="Hyperlink")) if address else run(piece)
        for piece, address in bare_links(line)
    )
    return "".join(pieces)


def _beside(part: Part, writer: Writer) -> Iterator[str]:
    for file in part.files:
        yield paragraph(run(f"File: {file_line(file)}"), style="Beside", text=file_line(file))
        if (file.text or "").strip():
            yield from writer.code((file.text or "")[:20_000], "")
    for number, source in enumerate(part.sources, start=1):
        name = squeezed(source.title or "", 200) or squeezed(source.url, 500)
        address = writer.links.of(source.url)
        yield paragraph(
            run(f"{number}. ") + writer.link(address, run(name, style="Hyperlink" if address else "")),
            style="Beside",
            text=name,
        )
