"""The lake: one Parquet file a month and table, rows sorted by day and conversation; replaced whole, by rename.

A stage replaces the rows of some conversations in a month and leaves the others. Readers open the file they find: the old
one or the new one. The ledger, not the lake, says on which day a conversation lies.

A month of many rows lies in parts, so that neither the price of one changed conversation nor the memory that it takes
grows with the month. A file that has become too large is split in two by the next bit of a hash of provider and
conversation id, and these again: `2024-05.parquet`, or `2024-05.0.parquet` and `2024-05.1.parquet`, or ... `.10.` and `.11.`. All
rows of a conversation are in one part. While a file is there, parts of it do not count: they are being made, or were
when a kill came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from palace_pipeline.model import KEY_SCHEMA, LAKE
from palace_pipeline.store.files import Told, make_folder, replacing, sync_folder

Key = tuple[str, str]
_ORDER = ("day", "provider", "conversation_id", "seq", "chunk_index")
_KEY = list(KEY_SCHEMA)
PART_BYTES = 4 << 20
"""Size in memory above which a file of more than one conversation is split."""
_MOST_BITS = 32
_LOOKS = 3
"""Times that a reader looks again where a part was split between its look at the folder and its reading."""


def month_of(day: date) -> str:
    """The name of the month file that a day lies in: `YYYY-MM`."""
    return f"{day:%Y-%m}"


class LakeDamaged(Told):
    """A month file cannot be read; `mend` is the command that makes it again from the vault, and stands in the text."""

    def __init__(self, what: str, mend: str = "palace rebuild --from vault") -> None:
        super().__init__(f"{what}. Its rows are made again from the vault by: {mend}")
        self.what, self.mend = what, mend


def place_of(key: Key) -> str:
    """The hash of a conversation by whose first bits its part is found: 0s and 1s."""
    return (
        f"{int.from_bytes(hashlib.blake2b(chr(0).join(key).encode('utf-8', 'replace'), digest_size=4).digest()):032b}"
    )


class Lake:
    """`lake/` of a home: `<zone>/<table>/<YYYY-MM>.parquet` (or parts of it) for every table of `model.LAKE`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, table: str, month: str, bits: str = "") -> Path:
        """The file of a month, or of its part for conversations whose place begins with `bits`."""
        return self.folder.joinpath(table, f"{month}.{bits}.parquet" if bits else f"{month}.parquet")

    def months(self, table: str) -> list[str]:
        """Months that have a file, in order."""
        found = (self.folder / table).glob("*.parquet")
        return sorted({p.name.split(".")[0] for p in found if not p.name.startswith(".")})

    def files(self, table: str, month: str, keys: Collection[Key] | None = None) -> list[Path]:
        """The files in which the rows of a month lie, in order; with `keys` those that may hold rows of these."""
        parts = self._parts(table, month)
        if keys is not None and parts not in ([], [""]):
            wanted = {_part_of(place_of(key), parts) for key in keys}
            parts = [bits for bits in parts if bits in wanted]
        return [self.path(table, month, bits) for bits in parts]

    def _parts(self, table: str, month: str) -> list[str]:
        """The bits of the parts of a month that count, in order; [""] is the one file."""
        if self.path(table, month).exists():
            return [""]
        found = sorted(path.name.split(".")[1] for path in (self.folder / table).glob(f"{month}.*.parquet"))
        parts: list[str] = []
        for bits in found:  # sorted: a part comes before those that it holds
            if not parts or not bits.startswith(parts[-1]):
                parts.append(bits)
        return parts

    def drop_shadowed(self) -> int:
        """Delete parts that a kill left while they were being made; returns how many. Needs the write lock."""
        count = 0
        for table in LAKE:
            for month in self.months(table):
                count += self._drop_below(table, month, "", keep=set(self.files(table, month)))
        return count

    def _drop_below(self, table: str, month: str, bits: str, keep: Collection[Path] = ()) -> int:
        doomed = [path for path in (self.folder / table).glob(f"{month}.{bits}*.parquet") if path not in keep]
        doomed = [path for path in doomed if path != self.path(table, month, bits)]
        for path in doomed:
            path.unlink()
        return len(doomed)

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
            parts += self._collected(
                lambda month=month: self.files(table, month, keys),
                lambda lazy: lazy if keys is None else lazy.join(_key_frame(keys).lazy(), on=_KEY, how="semi"),
                names,
            )
        return pl.concat(parts) if parts else pl.DataFrame(schema={name: LAKE[table][name] for name in names})

    def _collected(
        self, files: Callable[[], list[Path]], choose: Callable[[pl.LazyFrame], pl.LazyFrame], names: Sequence[str]
    ) -> list[pl.DataFrame]:
        """What is chosen of each file. Raises LakeDamaged."""
        for last in [False] * (_LOOKS - 1) + [True]:
            out: list[pl.DataFrame] = []
            path = self.folder
            try:
                for path in files():
                    out.append(choose(pl.scan_parquet(path, glob=False)).select(names).collect())
                return out
            except (pl.exceptions.PolarsError, OSError) as error:
                if last or path.exists():  # else it has just been split: its parts are there now
                    raise _damaged(path, error) from error
        return []

    def of_days(self, table: str, first: date, last: date, *, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Rows of the days from `first` to `last` (inclusive); of a month file only the parts that hold them are read.

        Raises LakeDamaged for a file that is no Parquet or lacks columns.
        """
        names = list(columns) if columns is not None else list(LAKE[table])
        parts: list[pl.DataFrame] = []
        for month in self.months_of(table, first, last):
            parts += self._collected(
                lambda month=month: self.files(table, month),
                lambda lazy: lazy.filter(pl.col("day").is_between(first, last)),
                names,
            )
        # Files of other types are told by the check of the schema; here they are put side by side all the same.
        none = pl.DataFrame(schema={name: LAKE[table][name] for name in names})
        return pl.concat([none, *parts], how="vertical_relaxed")

    def months_of(self, table: str, first: date, last: date) -> list[str]:
        """Months that have a file and a day from `first` to `last`, in order."""
        return [month for month in self.months(table) if month_of(first) <= month <= month_of(last)]

    def replace(self, table: str, month: str, keys: Collection[Key], rows: pl.DataFrame) -> None:
        """In one month: drop all rows of `keys`, add `rows` (of the table's schema). No change, no write.

        Atomic for each part of the month.
        """
        schema = LAKE[table]
        rows = rows.select(list(schema))
        parts = self._parts(table, month)
        if parts in ([], [""]):
            self._replace_part(table, month, "", keys, rows)
            return
        touched = {key: _part_of(place_of(key), parts) for key in {*keys, *rows.select(_KEY).unique().iter_rows()}}
        part_of = pl.DataFrame([(*key, bits) for key, bits in touched.items()], schema=[*_KEY, "bits"], orient="row")
        placed = rows.join(part_of, on=_KEY, how="left", maintain_order="left")
        for bits in sorted(set(touched.values())):
            own = placed.filter(pl.col("bits") == bits).drop("bits")
            self._replace_part(table, month, bits, [key for key in keys if touched[key] == bits], own)

    def _replace_part(self, table: str, month: str, bits: str, keys: Collection[Key], rows: pl.DataFrame) -> None:
        path = self.path(table, month, bits)
        schema = LAKE[table]
        if path.exists():
            old = self._readable(path, schema)
            kept = old.join(_key_frame(keys), on=_KEY, how="anti")
            if rows.is_empty() and kept.height == old.height:
                return
            new = pl.concat([kept, rows])
        elif rows.is_empty():
            return
        else:
            new = rows
        make_folder(path.parent)
        pieces = list(_split(bits, new))
        split = [own for own, _ in pieces] != [bits]
        if split:
            self._drop_below(table, month, bits)  # of a split that was killed; it may have come out otherwise
        order = [name for name in _ORDER if name in schema]
        for own, piece in pieces:
            with replacing(self.path(table, month, own)) as temporary:
                # Vectors hardly become smaller, and a search that begins reads all of them: lz4 takes two thirds of the time.
                packing: dict[str, Any] = {"compression": "zstd", "compression_level": 3}
                packing = {"compression": "lz4"} if table == "clean/vectors" else packing
                piece.sort(order, maintain_order=True).write_parquet(
                    temporary, row_group_size=20_000, statistics=True, **packing
                )
        if split:
            path.unlink(missing_ok=True)  # from now on its parts count
            sync_folder(path.parent)

    def unreadable(self, months: Iterable[str]) -> list[Path]:
        """Files of some months of which something cannot be read (all of them is)."""
        out: list[Path] = []
        for table, month in ((table, month) for month in months for table in LAKE):
            for path in self.files(table, month):
                try:
                    self._readable(path, LAKE[table])
                except LakeDamaged:
                    out.append(path)
        return out

    def _readable(self, path: Path, schema: dict[str, Any]) -> pl.DataFrame:
        try:
            return pl.read_parquet(path).select([pl.col(name).cast(kind) for name, kind in schema.items()])
        except (pl.exceptions.PolarsError, OSError) as error:
            raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> LakeDamaged:
    name = path.name.split(".")[0]
    year, month = map(int, name.split("-"))
    last = date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
    return LakeDamaged(
        f"{path} cannot be read ({type(error).__name__})", f"palace backfill --from {name}-01 --to {last}"
    )


def _part_of(place: str, parts: Collection[str]) -> str:
    """The part in which a conversation lies, or has to be put: never one that is above another."""
    inner = {bits[:length] for bits in parts for length in range(len(bits))}
    length = 0
    while place[:length] in inner:
        length += 1
    return place[:length]


def _split(bits: str, rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of a part, in as many parts as they need."""
    if rows.estimated_size() <= PART_BYTES or len(bits) == _MOST_BITS:
        yield bits, rows
        return
    keys = list(rows.select(_KEY).unique().iter_rows())
    if len(keys) == 1:
        yield bits, rows
        return
    sides = {key: place_of(key)[len(bits)] for key in keys}
    side_of = pl.DataFrame([(*key, side) for key, side in sides.items()], schema=[*_KEY, "side"], orient="row")
    placed = rows.join(side_of, on=_KEY, how="left", maintain_order="left")
    for side in sorted(set(sides.values())):
        yield from _split(bits + side, placed.filter(pl.col("side") == side).drop("side"))


def _key_frame(keys: Collection[Key]) -> pl.DataFrame:
    return pl.DataFrame(list(keys), schema=KEY_SCHEMA, orient="row")
