"""Days made again through Dagster's own command line: exactly those days, with the same result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from palace_pipeline.runner import DAILY_KEYS
from palace_pipeline.settings import environment, load_settings
from palace_pipeline.store.home import Home
from tests.archive_state import state
from tests.cli.conftest import Run, palace  # noqa: F401 - a fixture
from tests.ingest.exports_for_tests import START, chat, export


@pytest.mark.slow
def test_materialize_with_a_partition_range_redoes_those_days_and_no_others(palace: Run, tmp_path: Path) -> None:  # noqa: F811
    file = export(
        tmp_path / "in/a.json",
        *(chat(name, "why?", f"because {name}", start=START + 86_400 * n) for n, name in enumerate("abcd")),
    )
    assert palace("ingest", str(file)).code == 0
    home = Home(load_settings(tmp_path / "home"))
    before = state(home.path)
    select = ",".join(key.to_user_string() for key in DAILY_KEYS)
    for days in (["--partition-range", "2024-05-04...2024-05-05"], ["--partition", "2024-05-06"]):
        command = ["asset", "materialize", "-m", "palace_pipeline.definitions", "--select", select, *days]
        done = subprocess.run(
            [sys.executable, "-m", "dagster", *command],
            env={**os.environ, **environment(home.settings)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    assert state(home.path) == before
    with home.ledger() as ledger:
        rows = ledger.rows("SELECT counts FROM stage_log WHERE stage = 'normalized' ORDER BY rowid")
    assert ['"conversations":2' in row["counts"] for row in rows[-2:]] == [True, False]
    assert '"conversations":1' in rows[-1]["counts"]
