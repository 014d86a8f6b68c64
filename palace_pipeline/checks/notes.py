"""The notes of days and rooms list every page."""

from __future__ import annotations

from pathlib import PurePosixPath

import polars as pl

from palace_pipeline.checks.look import Part
from palace_pipeline.checks.result import Check, Found, Problem
from palace_pipeline.model import KEY_SCHEMA
from palace_pipeline.stages.pages import places_of
from palace_pipeline.transcripts.notes import day_note, reference, room_note, targets

_KEY = list(KEY_SCHEMA)


def look_at(part: Part, found: Found) -> None:
    pages = part.settled("pages").filter(~pl.col("gone") & pl.col("page").is_not_null() & (pl.col("page") != ""))
    if pages.is_empty():
        return
    wanted = pages.select(_KEY)
    drawers = part.rows("clean/drawers").join(wanted, on=_KEY, how="semi")
    rooms, _ = places_of(drawers.iter_rows(named=True))
    heads = part.rows("clean/conversations").filter(pl.col("status") != "withheld")
    shown = heads.join(pages.select(*_KEY, "page"), on=_KEY, how="inner", maintain_order="left")
    lists: dict[PurePosixPath, set[str]] = {}
    for row in shown.select(*_KEY, "day", "dated", "page").iter_rows(named=True):
        key = (row["provider"], row["conversation_id"])
        day = row["day"] if row["dated"] else None
        notes = [room_note(room, day) for room in rooms.get(key, ())] + ([day_note(day)] if day is not None else [])
        for note in notes:
            if note not in lists:
                lists[note] = _listed(part, note)
            found.counts["lines"] += 1
            if reference(note, row["page"]) not in lists[note]:
                found.note(
                    [Problem("a page is not listed in the note", str(note), row["day"], key, "palace rebuild", "warn")]
                )


def _listed(part: Part, note: PurePosixPath) -> set[str]:
    try:
        return targets((part.look.home.path / note).read_text("utf-8", errors="replace"))
    except OSError:
        return set()


NOTES = Check(
    name="notes_list_every_page",
    asset="conversation_pages",
    stage="pages",
    description="The note of each day and of each room and month has a line for every page that belongs to it.",
    look_at=look_at,
)
