"""A workspace for tests. The rules of redaction are built once: that takes half a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.settings import RedactionSettings, Settings
from palace_pipeline.store.home import Home
from palace_pipeline.workspace.api import Workspace
from tests.cli.conftest import palace
from tests.rebuild.archives import home_at

__all__ = ["funnel", "home", "live", "palace", "workspace"]


@pytest.fixture(scope="session")
def funnel() -> Funnel:
    return Funnel(RedactionSettings(), b"k" * 32)


@pytest.fixture
def workspace(tmp_path: Path, funnel: Funnel) -> Workspace:
    made = Workspace(settings=Settings(home=tmp_path / "home", display_zone="Asia/Shanghai"))
    made._funnel = ((), funnel)
    return made


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An archive that stages may be run on."""
    return home_at(tmp_path / "home")


@pytest.fixture
def live(home: Home, funnel: Funnel) -> Workspace:
    """Its workspace."""
    workspace = Workspace(settings=home.settings)
    workspace._funnel = ((), funnel)
    return workspace
