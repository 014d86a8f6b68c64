"""From the lake on: indexes and tables made anew, each beside the old one and put in its place when it is whole."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from palace_pipeline.planner import EVER, stale_days
from palace_pipeline.rebuild.pages import take_pages
from palace_pipeline.stages.chunk import chunk
from palace_pipeline.stages.common import Counts, Job
from palace_pipeline.stages.drawers import file_drawers
from palace_pipeline.stages.embed import make_indexes_anew
from palace_pipeline.stages.indexed import complete_index
from palace_pipeline.stages.normalize import normalize
from palace_pipeline.stages.notes import make_notes
from palace_pipeline.stages.pages import write_pages
from palace_pipeline.stages.publish import publish_anew, publish_tables
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.redact import redact
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger

UNFINISHED = "rebuilding"
"""Name in the ledger's `meta` of what a rebuild has still to make."""
STEPS = ("indexes", "tables")
PAGES = "pages"
"""The step before: pages are read into the ledger."""
TO_DRAWERS: tuple[Callable[[Job], Counts], ...] = (normalize, redact, chunk, file_drawers)
ROUNDS = 3
"""What is learned while the last chats are redacted may concern the first ones: look again, but not for ever."""


def note_left(ledger: Ledger, *, pages: bool = False) -> None:
    """From now on every step is left to do (reading the `pages`, too), whatever happens to this process."""
    ledger.set_meta(UNFINISHED, orjson.dumps((PAGES, *STEPS) if pages else STEPS).decode())


def finish(home: Home, batch: str) -> bool:
    """Do what a rebuild that was killed has left to do; whether there was anything. Needs the write lock."""
    with home.ledger() as ledger:
        left = ledger.meta(UNFINISHED)
    if left is None:
        return False
    if PAGES in orjson.loads(left):
        take_pages(home)
        with home.ledger() as ledger:
            note_left(ledger)
    derive(home, batch)
    return True


def derive(home: Home, batch: str) -> dict[str, int]:
    """Do the steps that are left, after whatever the planner has waiting before them. Returns rows by store."""
    recipes = recipes_of(home)
    job = Job(home, EVER, recipes, batch)
    made: dict[str, int] = {}
    build(home, batch, (*TO_DRAWERS, write_pages))
    made["notes"] = make_notes(home)
    with home.ledger() as ledger:
        complete_index(home, ledger)
        left: list[str] = orjson.loads(ledger.meta(UNFINISHED) or b"[]")
        if "indexes" in left:
            made |= make_indexes_anew(home, ledger, recipes)
            ledger.set_meta(UNFINISHED, orjson.dumps([step for step in left if step != "indexes"]).decode())
    if "tables" in left:
        made |= publish_anew(job)
    else:
        publish_tables(job)
    with home.ledger() as ledger:
        ledger.write("DELETE FROM meta WHERE name = ?", (UNFINISHED,))
    return made


def build(home: Home, batch: str, stages: tuple[Callable[[Job], Counts], ...]) -> None:
    """Run stages over all days until none of them finds work."""
    recipes = recipes_of(home)
    for _ in range(ROUNDS):
        counts = [stage(Job(home, EVER, recipes, batch)) for stage in stages]
        with home.ledger() as ledger:
            if not any(found.get("conversations") for found in counts) or not stale_days(ledger, recipes):
                return
