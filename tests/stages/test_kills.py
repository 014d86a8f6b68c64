"""kill -9 at any moment of any command: the next run finishes the work, nothing doubled, nothing lost."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archive_state import state

ROUNDS = {"ingest": (3, 20), "backfill": (1, 10), "rebuild": (1, 10), "rebuild --from vault": (2, 10)}
"""Command -> (archives, kills of each): a hundred together with `backup` and `restore`."""
FORMATS = ("01", "08", "11", "16", "35")


def palace(home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def finished(home: Path, *arguments: str) -> float:
    """Run to the end; returns the seconds it took."""
    started = time.monotonic()
    process = palace(home, *arguments)
    out, err = process.communicate(timeout=900)
    assert process.returncode in (0, 1), err[-2000:]
    assert b"failed" not in err, err[-2000:]
    assert b"Traceback" not in err, err[-2000:]
    del out
    return time.monotonic() - started


def killed(rng: random.Random, latest: float, home: Path, *arguments: str) -> bool:
    """Run and kill at a random moment; False if it had ended by itself."""
    process = palace(home, *arguments)
    time.sleep(rng.uniform(0.2, latest))
    alive = process.poll() is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return alive


@pytest.fixture(scope="module")
def sources(fixtures_of_module: Path) -> list[str]:
    return [str(path) for path in sorted((fixtures_of_module / "exports").iterdir()) if path.name[:2] in FORMATS]


@pytest.fixture(scope="module")
def fixtures_of_module() -> Path:
    return Path(__file__).parent.parent / "fixtures"


@pytest.fixture(scope="module")
def quiet(sources: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """An archive that nobody disturbed, and the seconds it took."""
    home = tmp_path_factory.mktemp("quiet") / "home"
    return home, finished(home, "ingest", *sources)


@pytest.fixture(scope="module")
def rng() -> Iterator[random.Random]:
    seed = int(os.environ.get("PALACE_KILL_SEED", random.SystemRandom().randrange(10**6)))
    print(f"PALACE_KILL_SEED={seed}")
    yield random.Random(seed)
    print(f"PALACE_KILL_SEED={seed}")


def assert_same(found: Path, expected: Path) -> None:
    have, want = state(found), state(expected)
    for store in want:
        assert have[store] == want[store], f"{store} differs"
    assert not list(found.rglob(".tmp-*"))
    assert not (found / ".rebuild").exists()


@pytest.mark.slow
@pytest.mark.parametrize("archive", range(ROUNDS["ingest"][0]))
def test_an_ingest_killed_at_random_moments_ends_as_one_that_was_not(
    archive: int, quiet: tuple[Path, float], sources: list[str], rng: random.Random, tmp_path: Path
) -> None:
    expected, took = quiet
    kills = ROUNDS["ingest"][1]
    alive = 0
    for kill in range(kills):
        # The longer the archive has grown, the later the interesting moments; every part of the run gets its turn.
        alive += killed(rng, max(0.4, took * (kill + 1) / kills), tmp_path / "home", "ingest", *sources)
    finished(tmp_path / "home", "ingest", *sources)
    assert alive > 0, archive
    assert_same(tmp_path / "home", expected)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["backfill", "rebuild", "rebuild --from vault"])
@pytest.mark.parametrize("mend", ["the same", "ingest"])
def test_a_repair_killed_at_random_moments_can_be_finished_by_itself_or_by_the_next_ingest(
    command: str, mend: str, quiet: tuple[Path, float], sources: list[str], rng: random.Random, tmp_path: Path
) -> None:
    expected, _ = quiet
    home = tmp_path / "home"
    shutil.copytree(expected, home)
    words = command.split() + (["--from", "2010-01-01", "--to", "2030-01-01"] if command == "backfill" else [])
    took = finished(home, *words)
    for _ in range(ROUNDS[command][0] * ROUNDS[command][1] // 2):
        killed(rng, took, home, *words)
    if mend == "ingest":
        finished(home, "ingest", *sources)
        # What was begun beside the archive is not in it; it goes on, or is left, without harm.
        shutil.rmtree(home / ".rebuild", ignore_errors=True)
    else:
        finished(home, *words)
    assert_same(home, expected)


@pytest.mark.slow
def test_backups_and_restores_that_were_killed_leave_nothing_half(
    quiet: tuple[Path, float], sources: list[str], rng: random.Random, tmp_path: Path
) -> None:
    expected, _ = quiet
    backups, home = tmp_path / "backups", tmp_path / "home"
    backups.mkdir()
    shutil.copytree(expected, tmp_path / "source")
    took = finished(tmp_path / "source", "backup", str(backups / "timed.zip"))
    for _ in range(6):
        killed(rng, took, tmp_path / "source", "backup", str(backups))
    finished(tmp_path / "source", "backup", str(backups))
    assert not list(backups.glob(".tmp-*"))
    for path in backups.iterdir():
        finished(home, "restore", str(path), "--verify")
    took = finished(tmp_path / "timed", "restore", str(backups))
    for _ in range(4):
        if killed(rng, took, home, "restore", str(backups)) and (home / "ledger.sqlite").exists():
            break  # it is in place; the rest is made by the next command
    if not (home / "ledger.sqlite").exists():
        finished(home, "restore", str(backups))
    finished(home, "ingest", *sources)
    assert_same(home, expected)
    assert not (home / ".restore").exists()
