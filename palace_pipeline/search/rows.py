"""Rows of some conversations, read again and again while questions are asked: the parts of month files that were read last
are kept in memory, so that the next question finds its conversations without opening a file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
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
Prepare = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(slots=True, frozen=True, eq=False)
class _Part:
    """One file as it was read. `slices`: first row and count of each conversation (a file is sorted by them)."""

    signature: tuple[int, int, int]
    frame: pl.DataFrame
    slices: dict[Key, tuple[int, int]]

    def of(self, keys: Iterable[Key]) -> list[tuple[Key, pl.DataFrame]]:
        """The rows of those conversations that are in it."""
        return [(key, self.frame.slice(*self.slices[key])) for key in keys if key in self.slices]


_Place = tuple[Path, tuple[str, ...], Prepare | None]


class RowReader:
    """Reads rows of conversations from the lake. Not safe for several threads at once.

    `unread`: what could not be read when it was last looked for, in words, by table and month.
    """

    def __init__(self, lake: Lake, kept_bytes: int = KEPT_BYTES) -> None:
        self.lake = lake
        self.unread: dict[tuple[str, str], str] = {}
        self._kept_bytes = kept_bytes
        self._parts: OrderedDict[_Place, _Part] = OrderedDict()
        self._bytes = 0

    def of(self, table: str, keys: Iterable[tuple[date, Key]], columns: Sequence[str]) -> pl.DataFrame:
        """The rows of some conversations (day and key of each), in the order of months; what is gone is
        left out, and what cannot be read as well: `unread` names it."""
        found = [frame for _, frame in self._found(table, keys, tuple(columns), None)]
        return pl.concat(found) if found else pl.DataFrame(schema={name: LAKE[table][name] for name in columns})

    def by_conversation(
        self, table: str, keys: Iterable[tuple[date, Key]], columns: Sequence[str], prepare: Prepare | None = None
    ) -> dict[Key, pl.DataFrame]:
        """The same, each conversation's rows by themselves in the file's order.

        `prepare` is done once with all rows of a file, not at every question; it may add columns, but keeps the rows.
        """
        out: dict[Key, pl.DataFrame] = {}
        for key, frame in self._found(table, keys, tuple(columns), prepare):
            out[key] = frame if key not in out else pl.concat([out[key], frame])
        return out

    def _found(
        self, table: str, keys: Iterable[tuple[date, Key]], columns: tuple[str, ...], prepare: Prepare | None
    ) -> Iterable[tuple[Key, pl.DataFrame]]:
        by_month: dict[str, list[Key]] = {}
        for day, key in keys:
            by_month.setdefault(month_of(day), []).append(key)
        for month, these in sorted(by_month.items()):
            yield from self._of_month(table, month, these, columns, prepare)

    def _of_month(
        self, table: str, month: str, keys: Sequence[Key], columns: tuple[str, ...], prepare: Prepare | None
    ) -> list[tuple[Key, pl.DataFrame]]:
        for _ in range(_LOOKS):  # a part that is split while it is looked for has become two others
            try:
                paths = self.lake.files(table, month, keys)
                found = [row for path in paths for row in self._part(path, columns, prepare).of(keys)]
                self.unread.pop((table, month), None)
                return found
            except (FileNotFoundError, pl.exceptions.PolarsError, OSError):
                continue
        try:
            read = self.lake.read(table, [month], keys=keys, columns=_with_key(columns))
        except LakeDamaged as error:
            self.unread[table, month] = str(error)
            return []
        self.unread.pop((table, month), None)
        return _part_of(read, columns, prepare, (0, 0, 0)).of(keys)

    def _part(self, path: Path, columns: tuple[str, ...], prepare: Prepare | None) -> _Part:
        status = path.stat()
        signature = (status.st_mtime_ns, status.st_ino, status.st_size)
        place = (path, columns, prepare)
        part = self._parts.get(place)
        if part is None or part.signature != signature:
            self._drop(place)
            part = _part_of(pl.read_parquet(path, columns=_with_key(columns)), columns, prepare, signature)
            self._parts[place] = part
            self._bytes += part.frame.estimated_size()
            while self._bytes > self._kept_bytes and len(self._parts) > 1:
                self._drop(next(iter(self._parts)))
        self._parts.move_to_end(place)
        return part

    def _drop(self, place: _Place) -> None:
        part = self._parts.pop(place, None)
        if part is not None:
            self._bytes -= part.frame.estimated_size()


def _with_key(columns: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*_KEY, *columns]))


def _part_of(
    frame: pl.DataFrame, columns: tuple[str, ...], prepare: Prepare | None, signature: tuple[int, int, int]
) -> _Part:
    runs = frame.select(_KEY).with_row_index("row").group_by(_KEY, maintain_order=True)
    counted = runs.agg(pl.col("row").min().alias("first"), pl.len().alias("count"))
    slices: dict[Key, tuple[int, int]] = {(p, c): (first, count) for p, c, first, count in counted.iter_rows()}
    wanted = frame.select(columns)
    return _Part(signature, wanted if prepare is None else prepare(wanted), slices)
