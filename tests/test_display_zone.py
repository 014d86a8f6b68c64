"""The zone in which dates are read: the setting, else the system's by name, else today's offset."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from palace_pipeline.settings import Settings


def test_the_setting_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert Settings(home=Path("/x"), display_zone="Europe/Berlin").zone == ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("value", ["Europe/Berlin", ":Europe/Berlin"])
def test_the_systems_zone_knows_summer_and_winter(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TZ", value)
    zone = Settings(home=Path("/x")).zone
    offsets = [datetime(2024, month, 1, tzinfo=UTC).astimezone(zone).utcoffset() for month in (1, 7)]
    assert offsets == [timedelta(hours=1), timedelta(hours=2)]


def test_without_tz_the_name_is_that_of_the_systems_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr("os.path.realpath", lambda path: "/var/db/timezone/zoneinfo/America/New_York")
    assert Settings(home=Path("/x")).zone == ZoneInfo("America/New_York")


def test_a_rule_without_a_name_gives_the_present_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XYZ-5:30")
        time.tzset()
        zone = Settings(home=Path("/x")).zone
    time.tzset()
    assert datetime(2024, 1, 1, tzinfo=zone).utcoffset() == timedelta(hours=5, minutes=30)
