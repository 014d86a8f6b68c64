"""The parts of a Word document that are the same for every conversation, and those that only list things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_RELATED = ("styles", "numbering", "settings")

_TYPES = (
    f'{_XML}<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{_TYPE}.document.main+xml"/>'
    + "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{_TYPE}.{name}+xml"/>' for name in (*_RELATED, "footer")
    )
    + '<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
    "</Types>"
)
_ROOT = (
    f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="word/document.xml"/>'
    f'<Relationship Id="rId2" Type="{_PACKAGE}/relationships/metadata/core-properties" Target="docProps/core.xml"/>'
    "</Relationships>"
)
_SETTINGS = (
    f'{_XML}<w:settings {_W}><w:zoom w:percent="100"/><w:defaultTabStop w:val="720"/><w:compat>'
    '<w:compatSetting w:name="compatibilityMode" w:uri="http://schemas.microsoft.com/office/word" w:val="15"/>'
    "</w:compat></w:settings>"
)
_FOOTER = (
    f'{_XML}<w:ftr {_W}><w:p><w:pPr><w:pStyle w:val="Footer"/></w:pPr>'
    '<w:fldSimple w:instr=" PAGE "><w:r><w:t>1</w:t></w:r></w:fldSimple></w:p></w:ftr>'
)


def _style(
    name: str, shown: str, paragraph: str = "", run: str = "", based: str = "Normal", kind: str = "paragraph"
) -> str:
    return (
        f'<w:style w:type="{kind}" w:styleId="{name}"><w:name w:val="{shown}"/>'
        + (f'<w:basedOn w:val="{based}"/>' if based else "")
        + "<w:qFormat/>"
        + (f"<w:pPr>{paragraph}</w:pPr>" if paragraph else "")
        + (f"<w:rPr>{run}</w:rPr>" if run else "")
        + "</w:style>"
    )


def _sizes(half_points: int) -> str:
    return f'<w:sz w:val="{half_points}"/><w:szCs w:val="{half_points}"/>'


def _heading(level: int, half_points: int, before: int, colour: str = "1F2328") -> str:
    looks = (
        f'<w:keepNext/><w:keepLines/><w:spacing w:before="{before}" w:after="80"/><w:outlineLvl w:val="{level - 1}"/>'
    )
    return _style(
        f"Heading{level}", f"heading {level}", looks, f'<w:b/><w:bCs/><w:color w:val="{colour}"/>{_sizes(half_points)}'
    )


_MONO = '<w:rFonts w:ascii="Consolas" w:hAnsi="Consolas" w:eastAsia="Microsoft YaHei" w:cs="Courier New"/>'
_GREY = '<w:color w:val="5B6470"/>'
_SHADE = '<w:shd w:val="clear" w:color="auto" w:fill="F5F7F9"/>'
_EDGES = "".join(
    f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="BFC5CC"/>'
    for side in ("top", "left", "bottom", "right", "insideH", "insideV")
)
_INSIDE = '<w:left w:w="60" w:type="dxa"/><w:right w:w="60" w:type="dxa"/>'
_TIGHT = '<w:spacing w:after="120" w:line="240" w:lineRule="auto"/><w:contextualSpacing/>'
_CELL = '<w:spacing w:before="20" w:after="20" w:line="240" w:lineRule="auto"/>'
_STYLES = (
    f"{_XML}<w:styles {_W}><w:docDefaults><w:rPrDefault><w:rPr>"
    '<w:rFonts w:ascii="Calibri" w:hAnsi="Calibri" w:eastAsia="Microsoft YaHei" w:cs="Arial"/>'
    f'{_sizes(21)}</w:rPr></w:rPrDefault><w:pPrDefault><w:pPr><w:spacing w:after="120" w:line="276" w:lineRule="auto"/>'
    "</w:pPr></w:pPrDefault></w:docDefaults>"
    '<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/><w:qFormat/></w:style>'
    + _style("Title", "Title", '<w:spacing w:after="60"/>', f"<w:b/><w:bCs/>{_sizes(36)}")
    + _style("Subtitle", "Subtitle", '<w:spacing w:after="360"/>', _GREY + _sizes(19))
    + _heading(2, 22, 320)
    + _heading(3, 26, 240)
    + _heading(4, 22, 160, "5B6470")
    + _heading(5, 21, 160)
    + _heading(6, 21, 160)
    + _style("Day", "Day", '<w:spacing w:before="360" w:after="120"/><w:jc w:val="center"/>', _GREY + _sizes(19))
    + _style("Written", "As written", '<w:spacing w:after="120"/><w:contextualSpacing/>')
    + _style("Beside", "Beside", '<w:spacing w:after="40"/>', _GREY + _sizes(19))
    + _style("Code", "Code", _SHADE + _TIGHT, _MONO + _sizes(18))
    + _style("Quote", "Quote", '<w:ind w:left="480"/>', f"<w:i/><w:iCs/>{_GREY}")
    + _style("ListParagraph", "List Paragraph", '<w:spacing w:after="60"/>')
    + _style("ListMore", "List Continue", '<w:spacing w:after="60"/><w:ind w:left="480"/>')
    + _style("Cell", "Cell", _CELL, _sizes(19))
    + _style("FineCell", "Fine cell", _CELL, _sizes(11))
    + _style("Rule", "Rule", '<w:pBdr><w:bottom w:val="single" w:sz="6" w:space="1" w:color="BFC5CC"/></w:pBdr>')
    + _style("Footer", "footer", '<w:jc w:val="center"/>', _GREY + _sizes(18))
    + _style("CodeInline", "Code inline", "", f"{_MONO}{_sizes(19)}{_SHADE}", based="", kind="character")
    + _style("Hyperlink", "Hyperlink", "", '<w:color w:val="0A5CC2"/><w:u w:val="single"/>', based="", kind="character")
    + '<w:style w:type="table" w:styleId="Grid"><w:name w:val="Table Grid"/><w:tblPr><w:tblBorders>'
    f"{_EDGES}</w:tblBorders><w:tblCellMar>{_INSIDE}</w:tblCellMar></w:tblPr></w:style></w:styles>"
)
FIXED_PARTS: Mapping[str, str] = {
    "[Content_Types].xml": _TYPES,
    "_rels/.rels": _ROOT,
    "word/styles.xml": _STYLES,
    "word/settings.xml": _SETTINGS,
    "word/footer.xml": _FOOTER,
}


def core_part(title: str, language: str) -> str:
    """The title as a property of the file. No author and no time: an export says nothing of who made it, and when."""
    return (
        f'{_XML}<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{escape(title)}</dc:title><dc:language>{escape(language)}</dc:language></cp:coreProperties>"
    )


def relations_part(addresses: Mapping[str, str]) -> str:
    """What the document refers to: its other parts, and the addresses of its links by their names."""
    own = "".join(
        f'<Relationship Id="rId{name.title()}" Type="{_OFFICE}/{name}" Target="{name}.xml"/>'
        for name in (*_RELATED, "footer")
    )
    links = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/hyperlink" Target={quoteattr(address)} TargetMode="External"/>'
        for address, name in addresses.items()
    )
    return f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{own}{links}</Relationships>'


def numbering_part(lists: Sequence[int | None]) -> str:
    """Bullets (1) and numbers (2), and for every list of the document which of them it has and where it starts."""
    bullets = "".join(_level(level, "bullet", "•◦▪"[level % 3]) for level in range(9))
    numbers = "".join(_level(level, "decimal", f"%{level + 1}.") for level in range(9))
    used = "".join(
        f'<w:num w:numId="{number}"><w:abstractNumId w:val="{1 if start is None else 2}"/>'
        + ("" if start is None else "".join(_restart(level, start) for level in range(9)))
        + "</w:num>"
        for number, start in enumerate(lists, start=1)
    )
    kinds = "".join(
        f'<w:abstractNum w:abstractNumId="{number}"><w:multiLevelType w:val="hybridMultilevel"/>{levels}</w:abstractNum>'
        for number, levels in ((1, bullets), (2, numbers))
    )
    return f"{_XML}<w:numbering {_W}>{kinds}{used}</w:numbering>"


def _level(level: int, form: str, text: str) -> str:
    return (
        f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/>'
        f'<w:lvlJc w:val="left"/><w:pPr><w:ind w:left="{480 * (level + 1)}" w:hanging="360"/></w:pPr></w:lvl>'
    )


def _restart(level: int, start: int) -> str:
    return f'<w:lvlOverride w:ilvl="{level}"><w:startOverride w:val="{min(start, 32_000)}"/></w:lvlOverride>'
