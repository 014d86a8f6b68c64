"""One writer per home, whoever it is."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from palace_pipeline.store.lock import HomeBusy, writer

HOLD = """
import sys, time
from pathlib import Path
from palace_pipeline.store.lock import writer
with writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_process_is_told_who_holds_the_home(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(HomeBusy, match=f"process {holder.pid}"), writer(tmp_path, wait_seconds=0):
        pass


def test_waiting_says_so_once_and_goes_on_when_the_holder_ends(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    said: list[str] = []

    def end(message: str) -> None:
        said.append(message)
        holder.stdin.write("\n")  # pyright: ignore[reportOptionalMemberAccess]
        holder.stdin.flush()  # pyright: ignore[reportOptionalMemberAccess]

    with writer(tmp_path, say=end):
        pass
    assert len(said) == 1
    assert str(holder.pid) in said[0]


def test_a_killed_holder_leaves_nothing_locked(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    with writer(tmp_path, wait_seconds=0):
        pass


def test_the_same_thread_may_enter_again_and_the_lock_is_held_until_the_last_exit(tmp_path: Path) -> None:
    with writer(tmp_path):
        with writer(tmp_path, wait_seconds=0):
            pass
        tried = subprocess.run(
            [sys.executable, "-c", HOLD.replace("sys.argv[1])", "sys.argv[1]), wait_seconds=0"), str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "HomeBusy" in tried.stderr
    assert (tmp_path / ".lock").read_text() == ""


def test_another_thread_of_the_process_waits(tmp_path: Path) -> None:
    order: list[str] = []
    entered = threading.Event()

    def other() -> None:
        entered.set()
        with writer(tmp_path):
            order.append("other")

    with writer(tmp_path):
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait()
        thread.join(0.3)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_the_lock_file_is_the_owners_alone(tmp_path: Path) -> None:
    with writer(tmp_path / "home"):
        assert (tmp_path / "home/.lock").stat().st_mode & 0o777 == 0o600


def test_a_kill_is_remembered_until_somebody_has_tidied_up(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    with writer(tmp_path) as held:  # only looks
        assert held.untidy
    with writer(tmp_path) as held:
        assert held.untidy
        with writer(tmp_path) as inner:
            inner.untidy = False
    with writer(tmp_path) as held:
        assert not held.untidy
    with pytest.raises(RuntimeError, match="ends by an error"), writer(tmp_path):
        raise RuntimeError("ends by an error")
    with writer(tmp_path) as held:
        assert not held.untidy
