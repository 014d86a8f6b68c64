"""Run a Python module as `python -m` does, but never longer than the process that started it.

`python service.py DESCRIPTOR MODULE ARGUMENT…`: the descriptor is the reading end of a pipe whose other end only the
parent holds. When it closes, however the parent ended, this process ends itself and all that it has started. Dagster's
own services do not: after a kill of `dagster dev` its webserver and its daemon go on by themselves.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

GRACE_SECONDS = 10.0


def end_with_parent(descriptor: int) -> None:
    """Wait until the parent is gone, then end the own process group: politely first."""
    while os.read(descriptor, 1):
        pass
    os.killpg(os.getpgrp(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    """Start the watch and become the module."""
    # A parent that ignores them (what a script starts by `&` ignores SIGINT) hands that down, and Dagster takes for SIGTERM
    # whatever SIGINT has: nothing here could be asked to end politely.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    descriptor, module, *arguments = sys.argv[1:]
    threading.Thread(target=end_with_parent, args=(int(descriptor),), daemon=True).start()
    sys.argv = [module, *arguments]
    # This file's folder, put there because it was started by its path, is no place to import from. Something has to stand
    # there: Dagster removes the first entry when it loads the definitions, which would be one of the user's PYTHONPATH.
    sys.path[0] = sys.prefix
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
