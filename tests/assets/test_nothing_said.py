"""Dagster's whole storage on disk (events, runs, tags, ticks, logs of steps) holds no word of a chat, and no name of a file."""

from pathlib import Path

import dagster as dg
import pytest

from assets.running import BATCH_TAG
from palace_pipeline.definitions import defs
from palace_pipeline.partitions import range_tags
from palace_pipeline.planner import Range
from palace_pipeline.reasons import REASON_TAG, reason_for
from palace_pipeline.resources import PalaceResource
from palace_pipeline.settings import Settings
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.home import Home
from tests.assets.test_definitions import DAY
from tests.ingest.exports_for_tests import chat, export

WORDS = ("zebrafish", "harpsichord", "斑马鱼", "quokka")
"""In a question, an answer, an answer in Chinese, a title."""


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """DAGSTER_HOME after a whole run that worked and one that failed in the middle of a chat."""
    home = tmp_path / "home"
    said = chat("a", "why does the zebrafish sing?", "because of the harpsichord", "为什么斑马鱼", "so")
    export(home / "inbox/a.json", {**said, "title": "About a quokka"})
    folder = tmp_path / "dagster"
    folder.mkdir()
    resources = {"palace": PalaceResource(home=str(home))}
    with dg.DagsterInstance.local_temp(str(folder)) as instance, pytest.MonkeyPatch.context() as patch:
        assert defs.resolve_job_def("read_exports").execute_in_process(instance=instance, resources=resources).success
        archive = Home(Settings(home=home))
        with archive.ledger() as ledger:
            reason = reason_for(ledger, recipes_of(archive), Range(DAY, DAY))
        tags = {**range_tags(Range(DAY, DAY)), BATCH_TAG: "b", REASON_TAG: reason}
        job = defs.resolve_job_def("build_days")
        assert job.execute_in_process(instance=instance, resources=resources, tags=tags).success

        def broken(*arguments: object) -> None:
            raise ValueError(f"the chat said: {' '.join(WORDS)}")

        patch.setattr("palace_pipeline.stages.normalize.merge", broken)
        failed = job.execute_in_process(instance=instance, resources=resources, tags=tags, raise_on_error=False)
        assert not failed.success
    return folder


def test_no_word_of_a_chat_is_in_dagsters_storage(storage: Path) -> None:
    files = [path for path in storage.rglob("*") if path.is_file()]
    content = {path: path.read_bytes() for path in files}
    assert any(b"normalized_transcripts" in data for data in content.values())  # the events are in these files
    for word in WORDS:
        spelled = (word.encode(), word.encode("utf-16-le"), word.encode("unicode_escape"))
        shown = [path.name for path, data in content.items() if any(form in data for form in spelled)]
        assert not shown, f"{word!r} in {shown}"
