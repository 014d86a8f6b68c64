"""The palace home as a Dagster resource. Nothing is opened before a step asks for it."""

from __future__ import annotations

import dagster as dg

from palace_pipeline.settings import default_home, load_settings
from palace_pipeline.store.home import Home


class PalaceResource(dg.ConfigurableResource[Home]):
    """`home`: folder of the archive; empty: `PALACE_HOME`, else `~/palace`."""

    home: str = ""

    def open(self) -> Home:
        """The home with its settings as they are now (a changed `palace.toml` counts from the next step on)."""
        from pathlib import Path

        return Home(load_settings(Path(self.home) if self.home else default_home()))
