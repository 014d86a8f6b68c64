"""Rows of some conversations, read again and again while questions are asked: the parts of month files that were read last
are kept in memory, so that the next question finds its conversations without opening a file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from palace_pipeline.model import LAKE
from palace_pipeline.store.lake import Key, Lake, LakeDamaged, month_of

KEPT_BYTES = 256 << 20
"""Most bytes of rows that are kept."""
_KEY = ["provider", "conversation_id"]
_LOOKS = 3


@dataclass(slots=True, frozen=True, eq=False)
class _Part:
    """One file as it was read. `slices`: first row and count of each conversation (a file is sorted by them)."""

    signature: tuple[int, int, int]
    frame: pl.DataFrame
    slices: dict[Key, tuple[int, int]]


class RowReader:
    """Reads rows of conversations from the lake. Not safe for several threads at once.

    `unread`: what could not be read when it was last looked for, in words, by table and month.
    """

    def __init__(self, lake: Lake, kept_bytes: int = KEPT_BYTES) -> None:
        self.lake = lake
        self.unread: dict[tuple[str, str], str] = {}
        self._kept_bytes = kept_bytes
        self._parts: OrderedDict[tuple[Path, tuple[str, ...]], _Part] = OrderedDict()
        self._bytes = 0

    def of(self, table: str, keys: Iterable[tuple[date, Key]], columns: Sequence[str]) -> pl.DataFrame:
        """The rows of some conversations (day and key of each), in the order of months; what is gone is
        left out, and what cannot be read as well: `unread` names it."""
        by_month: dict[str, list[Key]] = {}
        for day, key in keys:
            by_month.setdefault(month_of(day), []).append(key)
        found: list[pl.DataFrame] = []
        for month, these in sorted(by_month.items()):
            found += self._of_month(table, month, these, tuple(columns))
        return pl.concat(found) if found else pl.DataFrame(schema={name: LAKE[table][name] for name in columns})

    def _of_month(self, table: str, month: str, keys: Sequence[Key], columns: tuple[str, ...]) -> list[pl.DataFrame]:
        for _ in range(_LOOKS):  # a part that is split while it is looked for has become two others
            found: list[pl.DataFrame] = []
            try:
                for path in self.lake.files(table, month, keys):
                    part = self._part(path, columns)
                    found += [part.frame.slice(*part.slices[key]) for key in keys if key in part.slices]
                self.unread.pop((table, month), None)
                return found
            except (FileNotFoundError, pl.exceptions.PolarsError, OSError):
                continue
        try:
            found = [self.lake.read(table, [month], keys=keys, columns=columns)]
        except LakeDamaged as error:
            self.unread[table, month] = str(error)
            return []
        self.unread.pop((table, month), None)
        return found

    def _part(self, path: Path, columns: tuple[str, ...]) -> _Part:
        status = path.stat()
        signature = (status.st_mtime_ns, status.st_ino, status.st_size)
        place = (path, columns)
        part = self._parts.get(place)
        if part is None or part.signature != signature:
            self._drop(place)
            part = _read(path, columns, signature)
            self._parts[place] = part
            self._bytes += part.frame.estimated_size()
            while self._bytes > self._kept_bytes and len(self._parts) > 1:
                self._drop(next(iter(self._parts)))
        self._parts.move_to_end(place)
        return part

    def _drop(self, place: tuple[Path, tuple[str, ...]]) -> None:
        part = self._parts.pop(place, None)
        if part is not None:
            self._bytes -= part.frame.estimated_size()


def _read(path: Path, columns: tuple[str, ...], signature: tuple[int, int, int]) -> _Part:
    frame = pl.read_parquet(path, columns=list(dict.fromkeys([*_KEY, *columns])))
    runs = frame.select(_KEY).with_row_index("row").group_by(_KEY, maintain_order=True)
    counted = runs.agg(pl.col("row").min().alias("first"), pl.len().alias("count"))
    slices: dict[Key, tuple[int, int]] = {(p, c): (first, count) for p, c, first, count in counted.iter_rows()}
    return _Part(signature, frame.select(columns), slices)
