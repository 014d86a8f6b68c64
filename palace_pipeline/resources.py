"""The palace home as a Dagster resource. Nothing is opened before a step asks for it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from palace_pipeline.settings import default_home, load_settings
from palace_pipeline.store.alive import alive, marks_of
from palace_pipeline.store.home import Home


class PalaceResource(dg.ConfigurableResource["PalaceResource"]):
    """`home`: folder of the archive; empty: `PALACE_HOME`, else `~/palace`."""

    home: str = ""

    def open(self) -> Home:
        """The home with its settings as they are now (a changed `palace.toml` counts from the next step on)."""
        return Home(load_settings(self.folder()))

    def folder(self) -> Path:
        """Where the home lies; nothing is read."""
        return (Path(self.home) if self.home else default_home()).expanduser().absolute()

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Generator[PalaceResource]:
        """A run is marked as alive while its resources are open; a sensor has no run."""
        run = context.run
        if run is None:
            yield self
            return
        with alive(marks_of(self.folder()), run.run_id):
            yield self
