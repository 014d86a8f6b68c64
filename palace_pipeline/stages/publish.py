"""`palace_tables`: what people query in DuckDB, from the lake and the ledger."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from sqlite3 import Row
from typing import Any

import orjson

from palace_pipeline.planner import EVER, due
from palace_pipeline.stages.common import Counts, Job, Key, day_of, gone, key_of, logged
from palace_pipeline.stages.names import ShownNames, with_shown_names
from palace_pipeline.stages.recipes import redaction_of
from palace_pipeline.stages.words_gone import tables_are_new, words_are_gone
from palace_pipeline.store import stats, warehouse
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger

_RULES = "tables_redaction"
"""In the ledger's `meta`: the rules that the tables were last brought in line with."""
_NAMES = "tables_names"
"""In the ledger's `meta`: the rules by which the names of files in the tables are shown."""


def publish_tables(job: Job) -> Counts:
    """Bring `palace.duckdb` up to date for what has changed on the job's days. Returns rows per table.

    With the last day that has work the file is built anew if the rules have changed since, or if words that it showed
    have been masked: they stay in a file that goes on. Readers find the old file until the new one is complete.
    """
    started = time.perf_counter()
    home = job.home
    with home.ledger() as ledger:
        work = due(ledger, "tables", job.span, job.recipes, force=job.force)
        rules = ledger.meta(_RULES)
        done = (rules != job.recipes.redaction or words_are_gone(ledger)) and _nothing_else(ledger, job, work)
        anew = done and (words_are_gone(ledger) or rules not in (None, job.recipes.redaction))
        files = ChangedFiles(home, ledger)
        result = warehouse.publish(
            home.path,
            changed=None if anew else [(*key_of(row), day_of(row)) for row in work if not gone(row)],
            removed=[key_of(row) for row in work if gone(row)],
            **files.rows(),
            pages=PagesOf(ledger),
            zone=home.settings.zone,
        )
        built: list[tuple[Key, str, str | None]] = [(key_of(row), row["made_from"], None) for row in work]
        with ledger.transaction():
            ledger.mark_built("tables", built)
            if done:
                ledger.set_meta(_RULES, job.recipes.redaction)
                tables_are_new(ledger)
        note_published(home, ledger)
        rows = {f"{table}_rows": count for table, count in result.counts.items()}
        return logged(job, ledger, "tables", started, {"conversations": len(work), "anew": int(anew), **rows})


def _nothing_else(ledger: Ledger, job: Job, work: Iterable[Row]) -> bool:
    """True if no other conversation than these waits for the tables."""
    waiting = {key_of(row) for row in due(ledger, "tables", EVER, job.recipes)}
    return waiting <= {key_of(row) for row in work}


def publish_anew(job: Job) -> Counts:
    """Build `palace.duckdb` whole from lake and ledger, whatever the old one is; it takes its place. Returns rows by table."""
    started = time.perf_counter()
    with job.home.ledger() as ledger:
        work = due(ledger, "tables", EVER, job.recipes, force=True)
        result = _anew(job.home, ledger)
        ledger.mark_built("tables", [(key_of(row), row["made_from"], None) for row in work])
        ledger.set_meta(_RULES, job.recipes.redaction)
        tables_are_new(ledger)
        note_published(job.home, ledger)
        rows = {f"{table}_rows": count for table, count in result.counts.items()}
        return logged(job, ledger, "tables", started, {"conversations": len(work), **rows})


def _anew(home: Home, ledger: Ledger) -> warehouse.PublishResult:
    return warehouse.publish(
        home.path,
        changed=None,
        **ChangedFiles(home, ledger).rows(),
        pages=PagesOf(ledger),
        zone=home.settings.zone,
    )


def publish_exports(home: Home, batch: str, *, anew: bool = False) -> Counts:
    """Bring the tables `exports` and `skips`, and the views, up to date. Returns the number of views.

    For looks that found files but no conversation that is new or changed: no day has work then. `anew`: the whole file is
    built anew, as it is where words that it showed have been masked while other days still have work.
    """
    started = time.perf_counter()
    with home.ledger() as ledger:
        anew = anew or words_are_gone(ledger)
        warehouse.publish(
            home.path,
            changed=None if anew else [],
            **ChangedFiles(home, ledger).rows(),
            pages=PagesOf(ledger),
            zone=home.settings.zone,
        )
        tables_are_new(ledger)
        note_published(home, ledger)
        counts: Counts = {"views": len(stats.create_stats(home.path))}
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        ledger.log_stage(batch, "stats", finished, time.perf_counter() - started, dict(counts))
        return counts


def note_published(home: Home, ledger: Ledger) -> None:
    """What was read up to now is in the tables."""
    with ledger.transaction():
        ledger.set_meta("exports_published", ledger.meta("exports_read") or "")
        ledger.set_meta(_NAMES, redaction_of(home))
        ledger.write("DELETE FROM unpublished")


def exports_waiting(ledger: Ledger) -> bool:
    """True if files were read whose rows are not in the tables yet."""
    return (ledger.meta("exports_read") or "") != (ledger.meta("exports_published") or "")


class PagesOf(Mapping[Key, str]):
    """Page paths (relative to the home) of every conversation, looked up in the ledger when asked for."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __getitem__(self, key: Key) -> str:
        row = self._ledger.one("SELECT page FROM conversations WHERE provider = ? AND conversation_id = ?", key)
        if row is None or row["page"] is None:
            raise KeyError(key)
        return row["page"]

    def __iter__(self) -> Iterator[Key]:
        for row in self._ledger.rows("SELECT provider, conversation_id FROM conversations WHERE page IS NOT NULL"):
            yield key_of(row)

    def __len__(self) -> int:
        row = self._ledger.one("SELECT count(*) AS n FROM conversations WHERE page IS NOT NULL")
        return row["n"] if row else 0


class ChangedFiles:
    """The rows of `exports` and `skips`: those of files that have changed since the last publish, or all.

    All, where the rules of redaction have changed since, by which the names of files are shown.
    """

    def __init__(self, home: Home, ledger: Ledger) -> None:
        self._home, self._ledger = home, ledger
        self._paths: set[str] | None = None
        self._shown: set[str] | None = None
        if ledger.meta(_NAMES) == redaction_of(home):
            self._paths = {row["path"] for row in ledger.rows("SELECT path FROM unpublished")}
            if self._paths:
                names = ShownNames(home, ledger)
                self._shown = set(names.of(self._paths).values())
                self._paths |= names.sharing(self._shown)  # rows are replaced by the names that are shown
            else:
                self._shown = set()

    def rows(self) -> warehouse.FileRows:
        """What `warehouse.publish` has to be told of files."""
        return {
            "exports": lambda of: export_rows(self._home, self._ledger, None if of is None else self._paths),
            "skips": lambda of: skip_rows(self._home, self._ledger, None if of is None else self._paths),
            "paths": self._shown,
        }


def export_rows(home: Home, ledger: Ledger, paths: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Rows of the table `exports` (of some files, or all); names of files as they may be shown."""
    where, values = _of_paths(paths)
    rows = ledger.rows(
        "SELECT path, sha256, provider, format, first_seen_at, size, conversations, messages, skipped, status, reason "
        f"FROM files {where} ORDER BY path",
        values,
    )
    return _shown(home, ledger, rows, ("path",))


def skip_rows(home: Home, ledger: Ledger, paths: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Rows of the table `skips` (of some files, or all); names of files as they may be shown."""
    where, values = _of_paths(paths)
    rows = ledger.rows(
        f"SELECT path, provider, place, reason, expected, unit, sum(count) AS count FROM skips {where} "
        "GROUP BY path, provider, place, reason, expected, unit ORDER BY path, place, reason",
        values,
    )
    return [{**row, "expected": bool(row["expected"])} for row in _shown(home, ledger, rows, ("path", "place"))]


def _of_paths(paths: Collection[str] | None) -> tuple[str, tuple[str, ...]]:
    if paths is None:
        return "", ()
    return "WHERE path IN (SELECT value FROM json_each(?))", (orjson.dumps(sorted(paths)).decode(),)


def _shown(home: Home, ledger: Ledger, rows: Iterable[Row], columns: Sequence[str]) -> list[dict[str, Any]]:
    out = [dict(row) for row in rows]
    with_shown_names(home, ledger, out, columns)
    return out
