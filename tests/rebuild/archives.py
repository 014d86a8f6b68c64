"""Archives to break and to mend: made by the library's own stages from small exports, without Dagster."""

import shutil
from pathlib import Path

from palace_pipeline.ingest import ingest
from palace_pipeline.planner import plan
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.chunk import chunk
from palace_pipeline.stages.common import Job
from palace_pipeline.stages.drawers import file_drawers
from palace_pipeline.stages.embed import publish_vectors
from palace_pipeline.stages.missing import mark_missing
from palace_pipeline.stages.normalize import normalize
from palace_pipeline.stages.pages import write_pages
from palace_pipeline.stages.publish import publish_tables
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.redact import redact
from palace_pipeline.store.home import Home
from tests.archive_state import state

STAGES = (normalize, redact, chunk, file_drawers, write_pages, publish_vectors, publish_tables)


def home_at(path: Path) -> Home:
    return Home(load_settings(path))


def take(home: Home, *paths: Path) -> None:
    """What `palace ingest` does: read, plan, build."""
    with home.writing():
        ingest(home, list(paths), batch="test")
        with home.ledger() as ledger:
            mark_missing(home, ledger)
        for _ in range(2):
            with home.ledger() as ledger:
                spans = plan(ledger, recipes_of(home))
            for span in spans:
                for stage in STAGES:
                    stage(Job(home, span, recipes_of(home), "test"))


def copied(home: Home, to: Path) -> Home:
    """A copy of an archive that may be broken."""
    shutil.copytree(home.path, to)
    return home_at(to)


def assert_same(found: Path, expected: Path) -> None:
    """Two archives hold the same, store by store and field by field."""
    have, want = state(found), state(expected)
    for store, content in want.items():
        assert have[store] == content, f"{store} differs"
