"""kill -9 at any moment: the next run finishes the work, nothing doubled, nothing lost."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.archive_state import state

KILLS = 10


def palace(home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


@pytest.mark.slow
def test_an_ingest_killed_at_random_moments_ends_as_one_that_was_not(tmp_path: Path, fixtures: Path) -> None:
    sources = [
        str(path)
        for path in sorted((fixtures / "exports").iterdir())
        if path.name[:2] in ("01", "08", "11", "16", "35")
    ]
    quiet = palace(tmp_path / "quiet", "ingest", *sources)
    started = time.monotonic()
    out, err = quiet.communicate(timeout=600)
    took = time.monotonic() - started
    assert quiet.returncode in (0, 1), err[-2000:]
    assert b"failed" not in err
    seed = int(os.environ.get("PALACE_KILL_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}, an undisturbed run took {took:.1f} s")
    rng = random.Random(seed)
    for kill in range(KILLS):
        process = palace(tmp_path / "killed", "ingest", *sources)
        # The longer the archive has grown, the later the interesting moments; every part of the run gets its turn.
        time.sleep(rng.uniform(0.3, took * (kill + 1) / KILLS))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    last = palace(tmp_path / "killed", "ingest", *sources)
    out, err = last.communicate(timeout=600)
    assert last.returncode in (0, 1), err[-2000:]
    assert b"failed" not in err, err[-2000:]
    expected, found = state(tmp_path / "quiet"), state(tmp_path / "killed")
    for store in expected:
        assert found[store] == expected[store], f"{store} differs (seed {seed})"
    assert not list((tmp_path / "killed").rglob(".tmp-*")), out
