"""The Word document of a conversation: well formed, the same each time, nothing lost."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC
from pathlib import Path
from xml.etree import ElementTree

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace_pipeline.model import Attachment, Citation, Conversation, Message
from palace_pipeline.publish import docx
from palace_pipeline.publish.links import Links
from palace_pipeline.publish.sealed import building
from palace_pipeline.publish.view import view_of
from tests.publish.conftest import talk

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
PARAGRAPH = ["pStyle", "keepNext", "numPr", "bidi", "spacing", "ind", "jc", "collapsed"]
RUN = ["rStyle", "b", "bCs", "i", "iCs", "strike", "color", "rtl"]


def made(conversation: Conversation, folder: Path) -> dict[str, ElementTree.Element]:
    """The parts of the document."""
    with building(folder / "a.docx", "docx", overwrite=True) as file:
        docx.write(file.stream, view_of(conversation, UTC, most=1_500), Links())
    with zipfile.ZipFile(folder / "a.docx") as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "[Content_Types].xml"
        return {name: ElementTree.fromstring(archive.read(name)) for name in archive.namelist()}


def text_of(body: ElementTree.Element) -> str:
    marks = {
        f"{W}t": lambda one: one.text or "",
        f"{W}br": lambda _: "\n",
        f"{W}tab": lambda _: "\t",
        f"{W}p": lambda _: "\n",
    }
    return "".join(marks[one.tag](one) for one in body.iter() if one.tag in marks)


def ordered(names: list[str], order: list[str]) -> bool:
    """Word refuses a document whose properties stand in another order than the schema has."""
    places = [order.index(name) for name in names]
    return places == sorted(places)


def check(parts: dict[str, ElementTree.Element]) -> None:
    body = parts["word/document.xml"]
    for looks in body.iter(f"{W}pPr"):
        assert ordered([one.tag.rpartition("}")[2] for one in looks], PARAGRAPH)
    for looks in body.iter(f"{W}rPr"):
        assert ordered([one.tag.rpartition("}")[2] for one in looks], RUN)
    known = {one.get("Id") for one in parts["word/_rels/document.xml.rels"]}
    assert {one.get(f"{R}id") for one in body.iter(f"{W}hyperlink")} <= known
    numbers = {one.get(f"{W}numId") for one in parts["word/numbering.xml"].iter(f"{W}num")}
    assert {one.get(f"{W}val") for one in body.iter(f"{W}numId")} <= numbers
    styles = {one.get(f"{W}styleId") for one in parts["word/styles.xml"].iter(f"{W}style")}
    used = {one.get(f"{W}val") for tag in ("pStyle", "rStyle", "tblStyle") for one in body.iter(f"{W}{tag}")}
    assert used <= styles
    for row in body.iter(f"{W}tc"):
        assert row[-1].tag == f"{W}p"


def test_a_whole_document(tmp_path: Path) -> None:
    conversation = talk(
        "why is __init__ called? https://a.example/x",
        "# Head\n\n**bold** [docs](https://b.example/) [bad](javascript:x)\n\n3. three\n4. four\n   - inner\n\n> said\n\n"
        "| A | B |\n|---|--:|\n| 1 | 2 |\n\n```python\nx = 1\ny = 2\n```\n\n---\n\n![p](https://a.example/p.png)",
        "שלום",
    )
    conversation.messages[0].attachment = [Attachment("plan.pdf", None, 5, None, "words of it")]
    conversation.messages[1].citations = [Citation("https://c.example/", "Source C")]
    conversation.messages.insert(1, Message("t", "tool", "x" * 2_000, kind="tool_result", tool_name="search"))
    parts = made(conversation, tmp_path)
    check(parts)
    text = text_of(parts["word/document.xml"])
    for words in (
        "A talk",
        "why is __init__ called?",
        "Head",
        "three",
        "inner",
        "said",
        "x = 1\ny = 2",
        "plan.pdf (5 B)",
    ):
        assert words in text
    for words in (
        "words of it",
        "1. Source C",
        "[Picture: p]",
        "שלום",
        "Tool result: search",
        "500 more characters are in",
    ):
        assert words in text
    addresses = {one.get("Target") for one in parts["word/_rels/document.xml.rels"] if one.get("TargetMode")}
    assert addresses == {"https://a.example/x", "https://b.example/", "https://a.example/p.png", "https://c.example/"}
    starts = [one.get(f"{W}val") for one in parts["word/numbering.xml"].iter(f"{W}startOverride")]
    assert starts[0] == "3"
    assert len(list(parts["word/document.xml"].iter(f"{W}bidi"))) == 1


def test_the_same_bytes_each_time(tmp_path: Path) -> None:
    made(talk("q", "a [x](https://a.example)"), tmp_path)
    first = (tmp_path / "a.docx").read_bytes()
    (tmp_path / "a.docx").unlink()
    made(talk("q", "a [x](https://a.example)"), tmp_path)
    assert (tmp_path / "a.docx").read_bytes() == first
    assert zipfile.ZipFile(io.BytesIO(first)).comment.startswith(b"palace export ")


MARKDOWN = st.text(alphabet=st.sampled_from("#*_`~|-:>[]()!<&\"' \n\t1.ax\x00\x1b\ud800\ufffeא中"), max_size=80)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(MARKDOWN, min_size=2, max_size=3))
def test_whatever_is_said_the_document_is_well_formed(tmp_path: Path, texts: list[str]) -> None:
    check(made(talk(*texts, title=texts[0]), tmp_path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.text(alphabet=st.sampled_from("ab中א <&\n\t\"'*_[]"), min_size=1, max_size=80))
def test_what_was_typed_stands_there_letter_by_letter(tmp_path: Path, text: str) -> None:
    shown = text_of(made(talk(text, "end"), tmp_path)["word/document.xml"])
    assert "".join(text.split()) in "".join(shown.split())
