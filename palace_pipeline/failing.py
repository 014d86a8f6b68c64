"""What watching could not do: files and days whose runs fail, noted by the sensors for `palace status` and `palace doctor`.

A note may be old, since it is written at the sensors' looks alone: `failing` leaves out what has been done meanwhile. It
lies beside Dagster's records, which know the attempts, and goes away with them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from palace_pipeline.exports.scan import Seen, changes, identity
from palace_pipeline.ingest.chosen import these
from palace_pipeline.ingest.purged import KnownFiles
from palace_pipeline.ingest.recipes import current_in
from palace_pipeline.planner import Range, plan, work_of
from palace_pipeline.stages.publish import exports_waiting
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.files import write_bytes
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger

What = Literal["file", "days", "statistics"]


@dataclass(frozen=True, slots=True)
class Failing:
    """Work whose runs have failed. `name`: the file's path, or first and last day; `work`: its identity.

    `again_at`: when it is tried again (seconds since 1970), None: not until it changes.
    """

    what: What
    name: str
    work: str
    attempts: int
    again_at: float | None

    def as_json(self) -> dict[str, Any]:
        again = None if self.again_at is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.again_at))
        return {"what": self.what, "name": self.name, "attempts": self.attempts, "again_at": again}

    @property
    def said(self) -> str:
        """In words, for one line."""
        what = {"file": f"reading {self.name}", "days": f"making {self.name}", "statistics": "the statistics"}[
            self.what
        ]
        failed = f"{what} failed {'once' if self.attempts == 1 else f'{self.attempts} times'}"
        if self.again_at is None:
            return f"{failed} and is left until something changes"
        if self.again_at <= time.time():
            return f"{failed}; palace ui tries again"
        return (
            f"{failed}; palace ui tries again at {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime(self.again_at))}"
        )


def days_name(span: Range) -> str:
    """How a range of days is named."""
    return f"{span.first}" if span.first == span.last else f"{span.first} to {span.last}"


def note_failing(home: Home, sensor: str, found: Sequence[Failing]) -> None:
    """Replace what a sensor has noted; nothing is written where nothing has changed."""
    if list(found) == noted(home, sensor):
        return
    if found:
        write_bytes(_note(home, sensor), orjson.dumps([asdict(one) for one in found]), durable=False)
    else:
        _note(home, sensor).unlink(missing_ok=True)


def noted(home: Home, sensor: str) -> list[Failing]:
    """What a sensor noted last; a note that cannot be read is none, the next look writes it anew."""
    return _read(_note(home, sensor))


def failing(home: Home, ledger: Ledger) -> list[Failing]:
    """What fails as far as the sensors know, without what has been done or changed since."""
    notes = [one for path in sorted(home.dagster.glob("failing-*.json")) for one in _read(path)]
    return list(_still(home, ledger, notes)) if notes else []


def newest_reason(home: Home) -> Path | None:
    """The newest receipt of a run that failed."""
    return max(home.receipts.glob("failed-*.json"), default=None, key=lambda path: path.name)


def _note(home: Home, sensor: str) -> Path:
    return home.dagster / f"failing-{sensor}.json"


def _read(path: Path) -> list[Failing]:
    try:
        return [Failing(**one) for one in orjson.loads(path.read_bytes())]
    except (OSError, orjson.JSONDecodeError, TypeError):
        return []


def _still(home: Home, ledger: Ledger, notes: Iterable[Failing]) -> Iterator[Failing]:
    notes = list(notes)
    files = {one.name for one in notes if one.what == "file"}
    fresh = set[str]()
    if files:
        found = [item for item in these(home, ledger, sorted(files)) if isinstance(item, Seen)]
        fresh = {identity(seen) for seen in changes(found, KnownFiles(home, ledger), current_in(home.settings))}
    days = set[str]()
    if any(one.what == "days" for one in notes):
        recipes = recipes_of(home)
        days = {work_of(ledger, span, recipes) for span in plan(ledger, recipes)}
    for one in notes:
        work = fresh if one.what == "file" else days
        if one.work in work or (one.what == "statistics" and exports_waiting(ledger)):
            yield one
