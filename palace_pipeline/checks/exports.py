"""Checks of the way in: every file read is accounted for, and no source has files that do not get in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from palace_pipeline.checks.look import Part
from palace_pipeline.checks.result import Check, Found, Problem, Result
from palace_pipeline.exports.scan import Known, Missing, Seen, changes, scan
from palace_pipeline.ingest.recipes import current_in
from palace_pipeline.stages.names import ShownNames
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger

FRESH_DAYS = 3
"""A new file that is not in after so many days is an alarm: whatever should watch its folder does not."""


def _nothing(_part: Part, _found: Found) -> None:
    """These are not about days."""


ACCOUNTED = Check(
    name="every_file_is_accounted_for",
    asset="raw_exports",
    stage="normalized",
    description="Of each file that was read, the conversations it gave are in the ledger, or there is a reason why not.",
    look_at=_nothing,
)
FRESH = Check(
    name="sources_are_fresh",
    asset="raw_exports",
    stage="normalized",
    description=f"No source is missing, and none has new files that are still not in after {FRESH_DAYS} days.",
    look_at=_nothing,
)


def accounted(home: Home, ledger: Ledger, since: str | None = None) -> Result:
    """Files (read at or after `since`, an ISO instant in UTC as the ledger has it; None: all) against their conversations."""
    found = Found()
    rows = ledger.rows(
        "SELECT path, status, reason, conversations, skipped, ("
        "  SELECT count(*) FROM (SELECT DISTINCT r.provider, r.conversation_id FROM file_elements e "
        "  CROSS JOIN element_records r ON r.element = e.element "
        "  JOIN conversations c ON c.provider = r.provider AND c.conversation_id = r.conversation_id "
        "  WHERE e.path = f.path)) AS known FROM files f WHERE read_at >= ? ORDER BY path",
        (since or "",),
    )
    wrong: list[tuple[str, str]] = []
    for row in rows:
        found.counts["files"] += 1
        found.counts[f"files {row['status']}"] += 1
        found.counts["conversations"] += row["known"]
        found.counts["not taken, with a reason"] += row["skipped"]
        if row["status"] in ("done", "partial") and row["known"] < row["conversations"]:
            what = f"gave {row['conversations']:,} conversations, and the ledger knows {row['known']:,} of them"
            wrong.append((row["path"], what))
        elif row["status"] not in ("done", "partial") and not row["reason"]:
            wrong.append((row["path"], "gave nothing, and there is no reason why"))
    shown = ShownNames(home, ledger).of([path for path, _ in wrong]) if wrong else {}
    found.note(Problem(what, shown[path], mend=_READ_AGAIN) for path, what in wrong)
    return ACCOUNTED.result(found)


_READ_AGAIN = "palace rebuild --from vault"


def fresh(
    found_files: Iterable[Seen | Missing],
    known: Mapping[str, Known],
    is_current: Callable[[Known], bool],
    now: float,
    days: int = FRESH_DAYS,
) -> Result:
    """Sources (folders by name, files only counted) that are not there, or hold files that came `days` ago and are not in.

    Pure: `found_files` is a scan, `known` and `is_current` what the ledger has read, `now` seconds since 1970.
    """
    files = list(found_files)
    found = Found()
    gone = [item for item in files if isinstance(item, Missing)]
    late: dict[str, list[float]] = {}
    for seen in changes(files, known, is_current):
        found.counts["files not in yet"] += 1
        age = (now - seen.ctime_ns / 1e9) / 86_400
        if age >= days:
            late.setdefault(seen.root, []).append(age)
    found.counts["files"] += len(files) - len(gone)
    found.note(
        Problem(
            "the source is not there", item.path, mend="put it back, or take it out of palace.toml", severity="warn"
        )
        for item in gone
    )
    found.note(
        Problem(
            f"{len(ages):,} new file(s) are not in; the oldest has waited {max(ages):.0f} days",
            root,
            mend="palace ingest (and see that palace ui, or your timer, is running)",
            severity="warn",
        )
        for root, ages in sorted(late.items())
    )
    return FRESH.result(found)


def after_reading(
    home: Home, ledger: Ledger, scanned: Sequence[Seen | Missing], *, since: str, all_read: bool, now: float
) -> list[Result]:
    """The checks of `raw_exports` after a look at the folders, of what it read. `all_read`: nothing was left for the next
    look (no limit), so nothing that was scanned can be waiting, and the known files need not be gone through again."""
    left = [item for item in scanned if isinstance(item, Missing)] if all_read else scanned
    known = {} if all_read else ledger.known_files()
    return [accounted(home, ledger, since), fresh(left, known, current_in(home.settings), now)]


def of_everything(home: Home, now: float) -> list[Result]:
    """The same of all files ever read, and of the configured folders as they are now. Changes nothing."""
    with home.ledger() as ledger:
        scanned = list(scan(home.settings.folders, home.path))
        return [
            accounted(home, ledger),
            fresh(scanned, ledger.known_files(), current_in(home.settings), now),
        ]
