"""The list of formats for people: the table in `docs/formats.md` is made of what the readers say of themselves.

After a reader has changed: `python -m palace_pipeline.exports.catalogue docs/formats.md`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from palace_pipeline.exports.base import Reader
from palace_pipeline.exports.registry import READERS

BEGIN = "<!-- formats: made by python -m palace_pipeline.exports.catalogue docs/formats.md -->"
END = "<!-- end of formats -->"


def _row(reader: Reader) -> str:
    spec = reader.spec
    where = spec.where.replace("|", "\\|")
    return (
        f"| {spec.name or reader.format} | `{reader.provider}` | {where} | {spec.since or '–'} | {spec.checked} "
        f"| {spec.confidence} |"
    )


def formats_table() -> str:
    """A Markdown table with a line for each format; readers that share a format (two shapes of one log) share a line."""
    lines = ["| format | provider | where a person gets it | since | looked at | sure |", "|---|---|---|---|---|---|"]
    return "\n".join([*lines, *dict.fromkeys(map(_row, READERS))])


def with_table(page: str) -> str:
    """A page with the table between its two marks brought up to date."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{formats_table()}\n\n{END}{after}"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_table(page.read_text("utf-8")), "utf-8")
