"""A home whose ledger and lake are made beside the old ones; everything else is that of the real one."""

from __future__ import annotations

from pathlib import Path

from palace_pipeline.store.home import Home
from palace_pipeline.store.lake import Lake


class StagedHome(Home):
    """Stages that run on it leave the ledger and the lake of the real home alone."""

    def __init__(self, home: Home, folder: Path) -> None:
        super().__init__(home.settings)
        self.lake = Lake(folder / "lake")
        self.ledger_path = folder / "ledger.sqlite"
