"""What disturbs a machine and not the files: folders that cannot be written, a full disk, a clock that jumps, a run that is
cancelled. It is said in one plain line, and the next run makes the archive what an undisturbed one made."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ingest.exports_for_tests import START, chat, export
from tests.rebuild.archives import assert_same

pytestmark = pytest.mark.slow
CLOCK = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long ahead(void) { const char *text = getenv("CLOCK_AHEAD"); return text ? atol(text) : 0; }
int clock_gettime(clockid_t id, struct timespec *at) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, at);
  if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) at->tv_sec += ahead();
  return result;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now; clock_gettime(CLOCK_REALTIME, &now); (void)zone;
  at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000; return 0;
}
time_t time(time_t *at) {
  struct timespec now; clock_gettime(CLOCK_REALTIME, &now); if (at) *at = now.tv_sec; return now.tv_sec;
}
"""
"""A clock that runs ahead (or behind) for one process and its children; the machine's own is left alone."""


def palace(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    chats = [chat(f"c{n}", f"question {n}", "answer " * (n + 2), start=START + n * 86_400 * 20) for n in range(12)]
    export(folder / "conversations.json", *chats)
    return folder


@pytest.fixture(scope="module")
def quiet(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive that nobody disturbed."""
    home = tmp_path_factory.mktemp("quiet") / "home"
    done = palace(home, "ingest", str(sources))
    assert done.returncode == 0, done.stderr
    return home


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that can be made small or read-only."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("mounting a file system needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", str(folder)], check=False).returncode:
        pytest.skip("this system does not let us mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


@pytest.mark.parametrize("before", ["nothing", "an archive"])
def test_a_folder_that_cannot_be_written(before: str, small: Path, quiet: Path, sources: Path) -> None:
    home = small / "home"
    if before == "an archive":
        shutil.copytree(quiet, home)
    remount(small, "ro")
    for command in (["ingest", str(sources)], ["rebuild"], ["rebuild", "--from", "vault"], ["backup", str(small)]):
        failed = palace(home, *command)
        assert failed.returncode in (1, 2), command
        assert "Traceback" not in failed.stderr
        if before == "an archive" or command[0] == "ingest":
            assert "read-only" in failed.stderr.lower(), (command, failed.stderr)
    if before == "an archive":
        assert palace(home, "status").returncode == 0
        assert palace(home, "search", "question").returncode == 0
    remount(small, "rw")
    done = palace(home, "ingest", str(sources))
    assert done.returncode == 0, done.stderr
    assert_same(home, quiet)


@pytest.mark.parametrize("command", ["rebuild", "rebuild --from vault", "restore"])
@pytest.mark.parametrize("room", [1, 2, 4])
def test_a_disk_that_is_full_while_stores_are_made_anew(
    command: str, room: int, small: Path, quiet: Path, sources: Path, tmp_path: Path
) -> None:
    home = small / "home"
    words = command.split()
    if command == "restore":
        assert palace(quiet, "backup", str(tmp_path / "backup.zip")).returncode == 0
        words.append(str(tmp_path / "backup.zip"))
        remount(small, f"size={room}m")
    else:
        shutil.copytree(quiet, home)
        used = shutil.disk_usage(small).used
        remount(small, f"size={used + room * 300_000}")
    full = palace(home, *words)
    if full.returncode:
        assert "disk is full" in full.stderr.lower() or "no space" in full.stderr.lower(), full.stderr
        assert "Traceback" not in full.stderr
        if command != "restore":
            searched = palace(home, "search", "question 3")
            assert searched.returncode == 0, searched.stderr  # what was there is there
    remount(small, "size=300m")
    assert palace(home, *words, *(["--force"] if command == "restore" else [])).returncode == 0
    assert_same(home, quiet)


def test_a_backup_on_a_full_disk_leaves_none(small: Path, quiet: Path) -> None:
    remount(small, "size=64k")
    full = palace(quiet, "backup", str(small))
    assert full.returncode == 1
    assert "disk is full" in full.stderr.lower(), full.stderr
    assert list(small.iterdir()) == []


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("clock")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("setting the clock of one process needs a C compiler and Linux")
    (folder / "clock.c").write_text(CLOCK)
    library = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, folder / "clock.c", "-ldl"], check=True)
    return str(library)


def seconds_to(year: int) -> int:
    return int(time.mktime((year, 6, 1, 12, 0, 0, 0, 0, 0)) - time.time())


def test_a_clock_in_1970_is_named_and_nothing_is_changed(
    clock: str, sources: Path, quiet: Path, tmp_path: Path
) -> None:
    ahead = {"LD_PRELOAD": clock, "CLOCK_AHEAD": str(seconds_to(1971))}
    for command in ("ingest", "rebuild", "backup"):
        home = tmp_path / command
        shutil.copytree(quiet, home)
        refused = palace(home, command, *([str(sources)] if command == "ingest" else []), **ahead)
        assert refused.returncode == 1
        assert "the clock of this machine says 1971" in refused.stderr
        assert_same(home, quiet)


@pytest.mark.parametrize("years", [[2099], [2099, 2098], [2031, 2030, 2099]])
def test_a_clock_that_jumps_ahead_and_back(
    clock: str, years: list[int], sources: Path, quiet: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for year in years:
        done = palace(home, "ingest", str(sources), LD_PRELOAD=clock, CLOCK_AHEAD=str(seconds_to(year)))
        assert done.returncode == 0, done.stderr
    done = palace(home, "ingest", str(sources))
    assert done.returncode == 0, done.stderr
    assert_same(home, quiet)


@pytest.mark.parametrize("after", [2.0, 4.0, 6.0])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_cancelled(after: float, how: signal.Signals, sources: Path, quiet: Path, tmp_path: Path) -> None:
    """What Dagster does to the process of a run when somebody cancels it in the UI: an interrupt, then the end."""
    home = tmp_path / "home"
    assert palace(home, "ingest", "--limit", "1", str(sources / "none"), "--dry-run").returncode in (0, 2)
    command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), "ingest", str(sources)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(after)
    os.killpg(process.pid, how)
    process.communicate(timeout=120)
    done = palace(home, "ingest", str(sources))
    assert done.returncode == 0, done.stderr
    assert "Waiting" not in done.stderr
    assert_same(home, quiet)


def test_a_dagster_run_of_its_own_process_that_is_cancelled(sources: Path, quiet: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert palace(home, "ingest", str(sources)).returncode == 0
    variables = {**os.environ, "PALACE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}
    ranged = '{"dagster/asset_partition_range_start": "2024-05-03", "dagster/asset_partition_range_end": "2024-12-31"}'
    for after in (3.0, 5.0, 7.0):
        command = [
            sys.executable,
            "-m",
            "dagster",
            "job",
            "execute",
            "-m",
            "palace_pipeline.definitions",
            "-j",
            "build_days",
        ]
        process = subprocess.Popen(
            [*command, "--tags", ranged], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    done = palace(home, "ingest", str(sources))
    assert done.returncode == 0, done.stderr
    assert_same(home, quiet)
