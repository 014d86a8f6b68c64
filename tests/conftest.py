"""Shared by all tests: the fixtures folder, and a machine's settings kept out."""

from pathlib import Path

import pytest
from hypothesis import settings

# Not a measure of speed: how long an example takes depends on what else the machine does.
settings.register_profile("palace", deadline=None)
settings.load_profile("palace")


@pytest.fixture
def fixtures() -> Path:
    """Small exports with their right answers."""
    return Path(__file__).parent / "fixtures"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("PALACE_HOME", "DAGSTER_HOME", "PALACE_START"):
        monkeypatch.delenv(name, raising=False)
    # A test that forgets its home must not find the person's.
    monkeypatch.setenv("PALACE_HOME", str(tmp_path_factory.getbasetemp() / "no-home"))
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
