"""Workbooks for tests, written part by part, so that they can be odd."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
HEADER = ["UUID", "CREATED", "UPDATED", "TITLE", "OUTPUT_STR"]


def inline(text: str | float | None) -> str:
    if text is None:
        return "<c/>"
    if isinstance(text, int | float):
        return f"<c><v>{text!r}</v></c>"
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'


def sheet(rows: Sequence[Sequence[str | float | None]]) -> str:
    return sheet_xml("".join(f"<row>{''.join(map(inline, row))}</row>" for row in rows))


def sheet_xml(rows: str) -> str:
    return f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'


def workbook(sheets: Mapping[str, str], strings: str | None = None, *, properties: str = "", **parts: str) -> bytes:
    """`sheets`: name -> XML of the sheet; `strings`: what stands inside of `<sst>`; `parts` replace others by name."""
    names = list(sheets)
    listed = "".join(f'<sheet name="{escape(n)}" sheetId="{i}" r:id="r{i}"/>' for i, n in enumerate(names))
    related = "".join(
        f'<Relationship Id="r{i}" Type="{RELS}/worksheet" Target="worksheets/s{i}.xml"/>' for i in range(len(names))
    )
    shared = f'<Relationship Id="s" Type="{RELS}/sharedStrings" Target="/xl/strings.xml"/>'
    files = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r" Type="{RELS}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELS}">{properties}<sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{related}{shared}</Relationships>',
        **{f"xl/worksheets/s{i}.xml": xml for i, xml in enumerate(sheets.values())},
    }
    if strings is not None:
        files["xl/strings.xml"] = f'<sst xmlns="{MAIN}">{strings}</sst>'
    files |= parts
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()
