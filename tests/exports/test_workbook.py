"""Workbooks: what cells say, and that no workbook, however made, takes more than its share."""

import io
import zipfile

import pytest

from palace_pipeline.exports import workbook as books
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.exports.workbook import open_workbook, serial_time
from tests.exports.memory_member import MemoryMember
from tests.exports.xlsx import MAIN, sheet, sheet_xml, workbook


def member(data):
    return MemoryMember({"b.xlsx": data}, "b.xlsx")


def rows_of(data, name="S"):
    with open_workbook(member(data)) as book:
        return list(book.rows(name))


def test_every_kind_of_cell():
    cells = (
        '<row r="3"><c r="A3" t="s"><v>1</v></c><c r="C3" t="inlineStr"><is><r><t>a</t></r><r><t>b</t></r>'
        "<rPh><t>phonetic</t></rPh></is></c><c t=\"str\"><f>SUM(A1)</f><v>=x</v></c><c><v>46096.5</v></c>"
        '<c t="e"><v>#N/A</v></c><c t="b"><v>1</v></c><c t="s"><v>99</v></c><c t="s"><v>x</v></c>'
        '<c r="AB3" t="inlineStr"><is><t>line_x000D_\nend _x005F_x0041_</t></is></c></row><row/><row><c><v>7</v></c></row>'
    )  # fmt: skip
    strings = "<si><t>zero</t></si><si><r><t>on</t></r><r><t>e 一</t></r><rPh><t>no</t></rPh></si>"
    assert rows_of(workbook({"S": sheet_xml(cells)}, strings)) == [
        (3, {0: "one 一", 2: "ab", 3: "=x", 4: "46096.5", 6: "1", 27: "line\r\nend _x0041_"}),
        (5, {0: "7"}),
    ]


def test_prefixes_and_utf16_make_no_difference():
    xml = (
        f'<?xml version="1.0" encoding="UTF-16"?><x:worksheet xmlns:x="{MAIN}"><x:sheetData><x:row><x:c t="inlineStr">'
        "<x:is><x:t>雾</x:t></x:is></x:c></x:row></x:sheetData></x:worksheet>"
    )
    data = io.BytesIO(workbook({"S": "<x/>"}))
    out = io.BytesIO()
    with zipfile.ZipFile(data) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, xml.encode("utf-16") if name.endswith("s0.xml") else old.read(name))
    assert rows_of(out.getvalue()) == [(1, {0: "雾"})]


@pytest.mark.parametrize(
    ("number", "old", "local"),
    [
        (46096.3935300926, False, "2026-03-15T09:26:41"),  # 15 March 2026 is day 46096; 0.39353009 d = 09:26:41.000
        (46096.3935300926 - 1462, True, "2026-03-15T09:26:41"),
        (46096, False, "2026-03-15T00:00:00"),
        (32873.9, False, None),
        (1773480370, False, None),
    ],
)
def test_date_cells(number, old, local):
    assert serial_time(number, epoch_1904=old) == local


def test_what_is_no_workbook():
    for data in (b"PK\x03\x04 xl/ broken", workbook({"S": "<x/>"})[:-60]):
        with pytest.raises(MemberError, match="damaged workbook"):
            rows_of(data)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    with pytest.raises(MemberError, match="not a workbook"):
        rows_of(out.getvalue())


def test_rows_before_the_damage_are_given():
    xml = sheet([["a"], ["b"]])
    good = []
    with open_workbook(member(workbook({"S": xml[: xml.index("b</t>")]}))) as book, pytest.raises(MemberError):
        good.extend(book.rows("S"))
    assert good == [(1, {0: "a"})]


def bombs():
    yield "last cell of the last row", sheet_xml('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'), None, None
    yield "cell beyond the last", sheet_xml('<row><c r="ZZZ1"><v>1</v></c></row>'), None, "more columns"
    yield "row without an end", sheet_xml("<row>" + "<c/>" * 200_000 + "</row>"), None, "more columns"
    yield "more rows than there can be", sheet_xml("<row/>" * (books.MAX_ROWS + 1)), None, "more rows"
    yield "deep nesting", sheet_xml("<a>" * 1000), None, "nested too deeply"
    laughs = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>' + sheet_xml("<row><c><v>&b;</v></c></row>")
    yield "entities", laughs, None, "document type"
    outside = '<!DOCTYPE x SYSTEM "file:///etc/passwd">' + sheet_xml("<row/>")
    yield "external document type", outside, None, "document type"
    yield "an attribute that never ends", sheet_xml('<row r="' + "1" * 6_000_000), None, "tag without an end"
    once = "<si><t>" + "x" * 100_000 + "</t></si>"
    many = sheet_xml('<row><c t="s"><v>0</v></c></row>' * 20_000)
    yield "one long string shown everywhere", many, once, "times its size"


@pytest.mark.parametrize(("xml", "strings", "reason"), [b[1:] for b in bombs()], ids=[b[0] for b in bombs()])
def test_hostile_workbooks_are_refused(xml, strings, reason):
    data = workbook({"S": xml}, strings)
    if reason is None:
        assert rows_of(data) == []  # so far to the right nothing is of use
        return
    with open_workbook(member(data)) as book, pytest.raises(MemberError, match=reason):
        for _ in book.rows("S"):
            pass


def test_limits_of_text(monkeypatch):
    monkeypatch.setattr(books, "MAX_CELL", 1000)
    with pytest.raises(MemberError, match="one cell"):
        rows_of(workbook({"S": sheet([["x" * 1001]])}))
    monkeypatch.setattr(books, "MAX_ROW", 1500)
    with pytest.raises(MemberError, match="one row"):
        rows_of(workbook({"S": sheet([["x" * 800, "y" * 800]])}))
    monkeypatch.setattr(books, "MAX_STRING_BYTES", 1000)
    with pytest.raises(MemberError, match="shared text"):
        rows_of(workbook({"S": sheet_xml('<row><c t="s"><v>0</v></c></row>')}, f"<si><t>{'x' * 1001}</t></si>"))
    monkeypatch.setattr(books, "MAX_STRINGS", 3)
    with pytest.raises(MemberError, match="too many strings"):
        rows_of(workbook({"S": sheet_xml('<row><c t="s"><v>0</v></c></row>')}, "<si/>" * 4))


def test_a_part_that_unfolds_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr(books, "_LIMITS", books.Limits(ratio=10, ratio_from=1 << 20))
    with pytest.raises(MemberError, match="times its size"):
        rows_of(workbook({"S": sheet_xml(" " * (2 << 20))}))


def test_one_inside_an_archive_is_limited(monkeypatch):
    class Stream(io.BytesIO):
        def seekable(self):
            return False

    class Entry(MemoryMember):
        def open(self):
            return Stream(self.files[self.path])

    data = workbook({"S": sheet([["a"]])})
    with open_workbook(Entry({"b.xlsx": data}, "b.xlsx")) as book:
        assert list(book.rows("S")) == [(1, {0: "a"})]
    monkeypatch.setattr(books, "MAX_PACKED", 100)
    with pytest.raises(MemberError, match="too large"), open_workbook(Entry({"b.xlsx": data}, "b.xlsx")):
        pass


def test_links_to_the_outside_are_no_sheets():
    related = (
        '<Relationships><Relationship Id="r0" Type="x/worksheet" TargetMode="External" Target="../../secret.xml"/>'
        '<Relationship Id="r1" Type="x/worksheet" Target="../../../etc/passwd"/></Relationships>'
    )
    with open_workbook(member(workbook({"S": "<x/>"}, **{"xl/_rels/workbook.xml.rels": related}))) as book:
        assert book.sheets == []
