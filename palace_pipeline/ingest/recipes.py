"""With which readers, and in which zone, a file was read; and whether that is still what would be done today."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from palace_pipeline.exports.registry import READERS
from palace_pipeline.exports.scan import Known, Missing, Seen, changes
from palace_pipeline.model import short_hash
from palace_pipeline.settings import Settings

RECIPES = {reader.format: str(reader.recipe) for reader in READERS}
ALL_READERS = "*:" + short_hash(*(f"{name}:{recipe}" for name, recipe in sorted(RECIPES.items())))
"""Recipe noted for what no reader could take: it is tried again when any reader changes."""


def recipe_of(formats: Iterable[str], *, whole: bool, zone: object) -> str:
    """What is noted for a file. Not `whole`: something of it was not taken, and any reader may be the one that will."""
    parts = [f"{name}:{RECIPES[name]}" for name in sorted(formats)] + ([] if whole else [ALL_READERS])
    return ",".join(parts) + (f"@{zone}" if zone else "")


def current_in(settings: Settings) -> Callable[[Known], bool]:
    """`is_current` for files of a home with these settings; of a hundred thousand files most have the same answer."""
    zoned = any(source.timezone for source in settings.sources)
    own = {str(folder) for folder in settings.folders}
    zones: dict[str, str | None] = {}
    known_answers: dict[tuple[object, str | None], bool] = {}

    def zone_of(path: str) -> str | None:
        place = path if path in own else path.rpartition("/")[0]
        if place not in zones:
            zone = settings.timezone_of(Path(path))
            zones[place] = str(zone) if zone else None
        return zones[place]

    def current(known: Known) -> bool:
        zone = zone_of(str(known["path"])) if zoned else None
        answer = (known["recipe"], zone)
        if answer not in known_answers:
            known_answers[answer] = is_current(known, zone)
        return known_answers[answer]

    return current


def is_current(known: Known, zone: str | None = None) -> bool:
    """True if the readers that a file was read with, and the zone set for it, are as they were."""
    recipe, _, zoned = str(known["recipe"]).partition("@")
    return zoned == (zone or "") and all(
        part == ALL_READERS or RECIPES.get(part.rpartition(":")[0]) == part.rpartition(":")[2]
        for part in recipe.split(",")
        if part
    )


def needs_reading(found: Iterable[Seen | Missing], known: Mapping[str, Known], settings: Settings) -> bool:
    """True if a file is new or changed, or its reader or zone has changed since it was read."""
    return bool(changes(found, known, current_in(settings)))
