"""The lake: one Parquet file a month and table, rows sorted by day and conversation; replaced whole, by rename.

A stage replaces the rows of some conversations in a month and leaves the others. Readers open the file they find: the old
one or the new one. The ledger, not the lake, says on which day a conversation lies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from palace_pipeline.model import LAKE
from palace_pipeline.store.files import Told, make_folder, replacing

Key = tuple[str, str]
_ORDER = ("day", "provider", "conversation_id", "seq", "chunk_index")


def month_of(day: date) -> str:
    """The name of the month file that a day lies in: `YYYY-MM`."""
    return f"{day:%Y-%m}"


class LakeDamaged(Told):
    """A month file cannot be read; `mend` is the command that makes it again from the vault, and stands in the text."""

    def __init__(self, what: str, mend: str = "palace rebuild --from vault") -> None:
        super().__init__(f"{what}. Its rows are made again from the vault by: {mend}")
        self.what, self.mend = what, mend


class Lake:
    """`lake/` of a home: `<zone>/<table>/<YYYY-MM>.parquet` for every table of `model.LAKE`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, table: str, month: str) -> Path:
        return self.folder / table / f"{month}.parquet"

    def months(self, table: str) -> list[str]:
        """Months that have a file, in order."""
        return sorted(p.stem for p in (self.folder / table).glob("*.parquet") if not p.name.startswith("."))

    def read(
        self,
        table: str,
        months: Iterable[str],
        *,
        keys: Collection[Key] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        """Rows of some months (of some conversations only, if `keys` is given), in the files' order.

        Raises LakeDamaged for a file that is no Parquet or lacks columns.
        """
        names = list(columns) if columns is not None else list(LAKE[table])
        parts: list[pl.DataFrame] = []
        for month in months:
            path = self.path(table, month)
            if not path.exists():
                continue
            try:
                lazy = pl.scan_parquet(path)
                if keys is not None:
                    lazy = lazy.join(_key_frame(keys).lazy(), on=["provider", "conversation_id"], how="semi")
                parts.append(lazy.select(names).collect())
            except (pl.exceptions.PolarsError, OSError) as error:
                raise _damaged(path, error) from error
        return pl.concat(parts) if parts else pl.DataFrame(schema={name: LAKE[table][name] for name in names})

    def of_days(self, table: str, first: date, last: date, *, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Rows of the days from `first` to `last` (inclusive); of a month file only the parts that hold them are read.

        Raises LakeDamaged for a file that is no Parquet or lacks columns.
        """
        names = list(columns) if columns is not None else list(LAKE[table])
        parts: list[pl.DataFrame] = []
        for month in self.months_of(table, first, last):
            path = self.path(table, month)
            try:
                lazy = pl.scan_parquet(path, glob=False).filter(pl.col("day").is_between(first, last))
                parts.append(lazy.select(names).collect())
            except (pl.exceptions.PolarsError, OSError) as error:
                raise _damaged(path, error) from error
        # Files of other types are told by the check of the schema; here they are put side by side all the same.
        none = pl.DataFrame(schema={name: LAKE[table][name] for name in names})
        return pl.concat([none, *parts], how="vertical_relaxed")

    def months_of(self, table: str, first: date, last: date) -> list[str]:
        """Months that have a file and a day from `first` to `last`, in order."""
        return [month for month in self.months(table) if month_of(first) <= month <= month_of(last)]

    def replace(self, table: str, month: str, keys: Collection[Key], rows: pl.DataFrame) -> None:
        """In one month: drop all rows of `keys`, add `rows` (of the table's schema). Atomic; no change, no write."""
        path = self.path(table, month)
        schema = LAKE[table]
        rows = rows.select(list(schema))
        if path.exists():
            old = self._readable(path, schema)
            kept = old.join(_key_frame(keys), on=["provider", "conversation_id"], how="anti")
            if rows.is_empty() and kept.height == old.height:
                return
            new = pl.concat([kept, rows])
        elif rows.is_empty():
            return
        else:
            new = rows
        make_folder(path.parent)
        order = [name for name in _ORDER if name in schema]
        with replacing(path) as temporary:
            new.sort(order, maintain_order=True).write_parquet(
                temporary, compression="zstd", compression_level=3, row_group_size=20_000, statistics=True
            )

    def unreadable(self, months: Iterable[str]) -> list[Path]:
        """Files of some months of which something cannot be read (all of them is)."""
        out: list[Path] = []
        for table, month in ((table, month) for month in months for table in LAKE):
            try:
                self.read(table, [month])
            except LakeDamaged:
                out.append(self.path(table, month))
        return out

    def _readable(self, path: Path, schema: dict[str, Any]) -> pl.DataFrame:
        try:
            return pl.read_parquet(path).select([pl.col(name).cast(kind) for name, kind in schema.items()])
        except (pl.exceptions.PolarsError, OSError) as error:
            raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> LakeDamaged:
    year, month = map(int, path.stem.split("-"))
    last = date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
    return LakeDamaged(
        f"{path} cannot be read ({type(error).__name__})", f"palace backfill --from {path.stem}-01 --to {last}"
    )


def _key_frame(keys: Collection[Key]) -> pl.DataFrame:
    return pl.DataFrame(list(keys), schema={"provider": pl.String, "conversation_id": pl.String}, orient="row")
