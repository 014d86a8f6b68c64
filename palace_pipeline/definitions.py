"""The composition root: explicit lists, the resource, the executor. No logic, no I/O."""

from __future__ import annotations

import dagster as dg

from assets.jobs import ASSETS, JOBS
from palace_pipeline.console import console
from palace_pipeline.resources import PalaceResource
from sensors import SENSORS

defs = dg.Definitions(
    assets=ASSETS,
    jobs=JOBS,
    sensors=SENSORS,
    resources={"palace": PalaceResource()},
    # One writer per home: steps take turns anyway, and a process of its own for each would cost seconds.
    executor=dg.in_process_executor,
    loggers={"console": console},
)
