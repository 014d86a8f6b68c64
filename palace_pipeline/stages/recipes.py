"""The recipe of every stage: a version of its code and of the settings that change its result. Light: loads no model."""

from __future__ import annotations

from pathlib import Path

from palace_pipeline.chunking import CHUNK_RECIPE
from palace_pipeline.embedding.convert import NAME
from palace_pipeline.embedding.convert import RECIPE as CONVERSION
from palace_pipeline.model import short_hash
from palace_pipeline.planner import Recipes
from palace_pipeline.redaction.forgotten import Forgotten
from palace_pipeline.redaction.recipe import redaction_recipe
from palace_pipeline.rooms.classifier import ROOMS_RECIPE
from palace_pipeline.settings import EmbeddingSettings, Settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.lexical import RECIPE as LEXICAL
from palace_pipeline.store.vectors import SCHEMA_VERSION as CHROMA
from palace_pipeline.store.warehouse_schema import SCHEMA_VERSION as TABLES
from palace_pipeline.transcripts.merge import MERGE_RECIPE
from palace_pipeline.transcripts.page import PAGE_RECIPE

TABLES_RECIPE = str(TABLES)
VECTORS_RECIPE = f"{CHROMA}.{short_hash(LEXICAL, length=8)}"


def recipes_of(home: Home, forgotten: tuple[Forgotten, ...] | None = None) -> Recipes:
    """What each stage would note now. `forgotten`: what was purged, for those who must not open the ledger themselves."""
    settings = home.settings
    model = model_recipe(settings.embedding)
    return Recipes(
        merge=str(MERGE_RECIPE),
        redaction=redaction_of(home, forgotten),
        chunks=f"{CHUNK_RECIPE}.{model}",
        rooms=f"{ROOMS_RECIPE}.{model}.{_filing(settings)}",
        pages=str(PAGE_RECIPE),
        vectors=f"{VECTORS_RECIPE}.{model}",
        # The local_* columns are in the display zone.
        tables=f"{TABLES_RECIPE}.{settings.zone}",
    )


def redaction_of(home: Home, forgotten: tuple[Forgotten, ...] | None = None) -> str:
    """Version of all that decides what is masked in a home: rules, settings, and what was purged."""
    purged = forgotten_in(home) if forgotten is None else forgotten
    return redaction_recipe(home.settings.redaction, home.key(), purged)


def forgotten_in(home: Home) -> tuple[Forgotten, ...]:
    """Values that were purged from a home, and are masked like the user's own."""
    ledger = Ledger.reading(home.ledger_path)
    if ledger is None:
        return ()
    try:
        return ledger.forgotten()
    finally:
        ledger.close()


def model_recipe(settings: EmbeddingSettings) -> str:
    """Identity of the embedding model without loading it: name and conversion, or a folder's files as they are."""
    if settings.model == NAME:
        return f"{NAME}.{CONVERSION}"
    folder = Path(settings.model).expanduser()
    files = sorted(folder.glob("*")) if folder.is_dir() else []
    return short_hash(settings.model, *(f"{f.name}|{f.stat().st_size}|{f.stat().st_mtime_ns}" for f in files))


def _filing(settings: Settings) -> str:
    rooms = [room.model_dump_json() for room in settings.rooms]
    wings = [wing.model_dump_json() for wing in settings.wings]
    alone = () if settings.default_rooms else ("|", "alone")
    return short_hash(*rooms, "|", *wings, *alone, length=8)
