"""The versions of the stores of a home, and how a newer one is refused.

Every store carries its own version. `store_versions.json` in the home repeats them all, so that one look (no database
opened, no library loaded) tells whether this Palace knows everything that lies there, before anything is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import orjson

from palace_pipeline.store.files import Told, write_bytes

FILE = "store_versions.json"
LAKE_FILE = "schema_version"


class TooNew(Told):
    """A store was written by a newer Palace. Nothing was changed."""

    @classmethod
    def of(cls, path: Path | str, version: int, known: int) -> Self:
        return cls(
            f"{path} was written by a newer Palace (schema {version}, this one knows {known}). "
            "Nothing was changed; update Palace."
        )


def noted(home: Path) -> dict[str, int]:
    """Name of a store -> its version, as the last Palace that wrote to the home noted them; {} if none did yet."""
    try:
        found = orjson.loads((home / FILE).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return {str(name): int(version) for name, version in found.items()} if isinstance(found, dict) else {}


def refuse_newer(home: Path, known: dict[str, int]) -> None:
    """Raises TooNew if a store of the home has a version that is not known."""
    for name, version in noted(home).items():
        if version > known.get(name, 0):
            raise TooNew.of(f"the {name} of {home}", version, known.get(name, 0))


def note(home: Path, known: dict[str, int]) -> None:
    """Note the versions of all stores; no change, no write."""
    if noted(home) != known:
        write_bytes(home / FILE, orjson.dumps(known, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
