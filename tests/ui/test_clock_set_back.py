"""The clock is set back while `palace ui` runs: its daemon is started again, once."""

import subprocess
import sys
import time

from palace_pipeline.cli.ui import SET_BACK_SECONDS, watch


def test_a_clock_that_was_set_back_is_noticed_once_and_small_steps_are_not() -> None:
    steps = iter([0.0, 0.0, 1.0 - SET_BACK_SECONDS, 0.0, -1.0 - SET_BACK_SECONDS, 3600.0])
    ahead, noticed = [0.0], list[float]()

    def clock() -> float:
        ahead[0] += next(steps, 0.0)
        return time.monotonic() + ahead[0]

    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:

        def set_back() -> None:
            noticed.append(ahead[0])
            child.kill()
            child.wait()

        assert watch({"daemon": child}, "http://127.0.0.1:1", set_back, clock) == 1
    finally:
        child.kill()
        child.wait()
    assert noticed == [-2 * SET_BACK_SECONDS]
