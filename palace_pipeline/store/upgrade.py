"""From an older home to this one: what is changed is copied before, rows are never dropped, a newer home is refused.

The ledger brings itself up to date when it is opened (`store/ledger.py`), and the vault adds its tables; here is what
concerns more than one store, and the lake. What stands in palace.duckdb, Chroma and the lexical index can be made again
from the lake, so an older one is made anew by its own recipe. Every step can be done again after a kill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from palace_pipeline.model import LAKE
from palace_pipeline.store import catalogue, keep, lexical, vault, vectors, versions, warehouse_schema
from palace_pipeline.store import ledger as ledger_module
from palace_pipeline.store.files import make_folder, replacing, write_bytes
from palace_pipeline.store.quiet import soundness

if TYPE_CHECKING:
    from pathlib import Path

    from palace_pipeline.store.home import Home

LAKE_VERSION = 2
"""0: without a version (columns of this one may be missing). 2: a month may lie in parts."""


def known_versions(home_version: int) -> dict[str, int]:
    """The versions of all stores that this Palace writes."""
    return {
        "home": home_version,
        "ledger": ledger_module.SCHEMA_VERSION,
        "vault": vault.SCHEMA_VERSION,
        "lake": LAKE_VERSION,
        "palace.duckdb": warehouse_schema.SCHEMA_VERSION,
        "chroma": vectors.SCHEMA_VERSION,
        "lexical": lexical.SCHEMA_VERSION,
    }


def upgrade(home: Home, home_version: int) -> None:
    """Bring the stores of an existing home up to date; `home_version`: its present one. Needs the write lock.

    Raises what stands in the way (a full disk, damage), and the home is then as it was; opening it again goes on.
    """
    if home_version < 2 and home.ledger_path.exists() and soundness(home.ledger_path) is None:
        with home.ledger() as ledger, home.vault() as kept:
            catalogue.note_everything(ledger, kept)
    if lake_version(home.lake.folder) < LAKE_VERSION:
        add_columns(home.path, home.lake.folder)
        write_bytes(home.lake.folder / versions.LAKE_FILE, f"{LAKE_VERSION}\n".encode())


def lake_version(folder: Path) -> int:
    """The version of a lake. Raises TooNew if this Palace does not know it."""
    file = folder / versions.LAKE_FILE
    version = int(file.read_text(encoding="utf-8").strip() or 0) if file.exists() else 0
    if version > LAKE_VERSION:
        raise versions.TooNew.of(folder, version, LAKE_VERSION)
    return version


def add_columns(home: Path, lake: Path) -> int:
    """Give month files the columns that they lack, null in every row; returns how many were changed (copied before).

    Null until the day is built again: whoever adds a column changes the recipe of its stage too.
    """
    changed = 0
    for table, schema in LAKE.items():
        for path in sorted((lake / table).glob("*.parquet")):
            try:
                has: dict[str, Any] = dict(pl.read_parquet_schema(path))
            except (pl.exceptions.PolarsError, OSError):
                continue  # damaged: `palace doctor` names it and the command that mends it
            missing = [name for name in schema if name not in has]
            if not missing:
                continue
            copy = make_folder(home / keep.FOLDER / "lake" / table) / path.name
            if not copy.exists():
                with replacing(copy) as temporary:
                    temporary.write_bytes(path.read_bytes())
            rows = pl.read_parquet(path).with_columns(pl.lit(None, dtype=schema[name]).alias(name) for name in missing)
            with replacing(path) as temporary:
                rows.select([*schema, *(name for name in has if name not in schema)]).write_parquet(
                    temporary, compression="zstd", compression_level=3, row_group_size=20_000, statistics=True
                )
            changed += 1
    return changed
