"""The `palace.toml` of a new home, which says all by comments."""

import re
import tomllib
from pathlib import Path

from palace_pipeline.settings import DEFAULT_TOML, Settings

COMMENTED = re.compile(r"^# (?=\[|[a-z_]+ = )", re.MULTILINE)


def test_it_sets_nothing(tmp_path: Path) -> None:
    assert tomllib.loads(DEFAULT_TOML) == {}


def test_all_of_it_may_be_uncommented_as_it_stands(tmp_path: Path) -> None:
    values = tomllib.loads(COMMENTED.sub("", DEFAULT_TOML))
    settings = Settings(home=tmp_path, **values)
    assert {"sources", "display_zone", "redaction", "rooms", "default_rooms", "wings", "alerts"} <= set(values)
    assert [room.name for room in settings.rooms] == ["garden"]
