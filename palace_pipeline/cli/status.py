"""`palace status`, and what is said where there is nothing yet or where work will be done again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from palace_pipeline.cli.talk import UsageError, counted, out, out_json
from palace_pipeline.failing import failing, newest_reason
from palace_pipeline.ingest.changed import Again, done_again
from palace_pipeline.planner import stale_days
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger

FAILING_SHOWN = 5

_FILES = {
    "done": "taken",
    "partial": "taken in part",
    "skipped": "without a chat",
    "quarantined": "that could not be read",
}
"""What the states of files mean."""


def nothing_yet(home: Home) -> str:
    """For commands that need an archive where there is none."""
    if home.has_workspace:
        return f"what lies in {home.path} is not taken into the archive yet; that does: palace ingest"
    return (
        f"there is no archive at {home.path} yet; begin with: palace ingest EXPORT (palace discover finds agents' logs and "
        f"exports; what lies in {', '.join(map(str, home.settings.folders))} is taken by palace ingest without a path)"
    )


def how_to_begin(home: Home) -> list[str]:
    """What a person can do to fill an archive."""
    folders = ", ".join(str(folder) for folder in home.settings.folders)
    return [
        "name an export (a file, a ZIP or a folder): palace ingest EXPORT",
        f"or put exports into {folders}, then: palace ingest",
        "palace discover finds agents' logs, and exports in the downloads folder",
    ]


def again_in(home: Home) -> list[Again]:
    """What the next run would do again because rules have changed; leaves no trace in the home."""
    if not home.exists:
        return []
    with closing(Ledger.copy_of(home.ledger_path)) as ledger:
        return done_again(ledger, recipes_of(home, ledger.forgotten()), home.settings)


def show_again(again: Sequence[Again]) -> None:
    """One line, where there is anything to say."""
    if again:
        out("again, since something has changed here: " + "; ".join(one.said for one in again))


def run_status(*, as_json: bool) -> int:
    """Counts from the ledger; opens nothing else."""
    home = Home(load_settings())
    if not home.exists:
        raise UsageError(nothing_yet(home))
    with home.ledger() as ledger:
        recipes = recipes_of(home)
        again = done_again(ledger, recipes, home.settings)
        failed = failing(home, ledger)
        value = _counts(home, ledger) | {
            "days_with_work": len(stale_days(ledger, recipes)),
            "again": {one.what: one.as_json() for one in again},
            "failing": [one.as_json() for one in failed],
        }
    if as_json:
        out_json(value)
    else:
        _show(home, value, again)
        _show_failing(home, [one.said for one in failed])
    return 0


def _show_failing(home: Home, failed: Sequence[str]) -> None:
    for said in failed[:FAILING_SHOWN]:
        out(said)
    if len(failed) > FAILING_SHOWN:
        out(f"and {len(failed) - FAILING_SHOWN} more that failed; see: palace doctor")
    if failed and (reason := newest_reason(home)) is not None:
        out(f"the newest reason: {reason}")


def _counts(home: Home, ledger: Ledger) -> dict[str, Any]:
    def count(sql: str) -> int:
        row = ledger.one(sql)
        return int(row[0] or 0) if row else 0

    def by(sql: str) -> dict[str, int]:
        return {row[0]: row[1] for row in ledger.rows(sql)}

    live = "FROM conversations WHERE superseded_by IS NULL AND status != 'purged'"
    # One pass over the conversations: each costs 0.04 CPU s at a hundred thousand.
    found = ledger.rows(
        "SELECT provider, count(*) AS conversations, sum(messages) AS messages, sum(dated = 0) AS undated, "
        "sum(status = 'withheld') AS withheld, sum(status = 'partial') AS in_part, "
        "min(day) FILTER (WHERE dated = 1) AS first_day, max(day) FILTER (WHERE dated = 1) AS last_day "
        f"{live} GROUP BY provider ORDER BY conversations DESC, provider"
    )

    def summed(column: str) -> int:
        return sum(row[column] or 0 for row in found)

    return {
        "home": str(home.path),
        "files": by("SELECT status, count(*) FROM files GROUP BY status"),
        "conversations": summed("conversations"),
        "messages": summed("messages"),
        "providers": {row["provider"]: row["conversations"] for row in found},
        "first_day": min((row["first_day"] for row in found if row["first_day"]), default=None),
        "last_day": max((row["last_day"] for row in found if row["last_day"]), default=None),
        "days": count(f"SELECT count(DISTINCT day) {live}"),
        "undated": summed("undated"),
        "withheld": summed("withheld"),
        "withheld_in_part": summed("in_part"),
        "chunks_published": count("SELECT count(*) FROM published"),
        "not_taken": count("SELECT sum(count) FROM skips WHERE expected = 0"),
        "not_taken_by_unit": by("SELECT unit, sum(count) FROM skips WHERE expected = 0 GROUP BY unit ORDER BY unit"),
    }


def _show(home: Home, value: dict[str, Any], again: Sequence[Again]) -> None:
    out(value["home"])
    files: dict[str, int] = value["files"]
    if files:
        parts = [f"{files[state]:,} {words}" for state, words in _FILES.items() if files.get(state)]
        out(f"{counted(sum(files.values()), 'file')} read: {', '.join(parts)}")
    if not value["conversations"]:
        out("no conversation in the archive yet")
        for line in how_to_begin(home):
            out(line)
    else:
        dated = f", {value['first_day']} to {value['last_day']}" if value["first_day"] else ""
        out(f"{counted(value['conversations'], 'conversation')} on {counted(value['days'], 'day')}{dated}")
        out(f"{counted(value['messages'], 'message')}, those of tools and thinking included")
        out("from " + ", ".join(f"{name} {n:,}" for name, n in value["providers"].items()))
    if value["undated"]:
        out(
            f"{counted(value['undated'], 'conversation')} without a time: on the day on which its export was first seen"
        )
    held = [f"{counted(value['withheld'], 'conversation')} withheld"] if value["withheld"] else []
    held += [f"fields of {counted(value['withheld_in_part'], 'conversation')}"] if value["withheld_in_part"] else []
    if held:
        out(f"{', '.join(held)}{'' if value['withheld'] else ' withheld'}; see: palace doctor")
    if value["not_taken"]:
        units = ", ".join(counted(n, unit) for unit, n in value["not_taken_by_unit"].items())
        out(f"not taken, though it should have been: {units}; see: palace doctor")
    waiting = value["days_with_work"]
    if value["conversations"] and not waiting:
        out("every day is up to date")
    elif waiting:
        out(f"{counted(waiting, 'day')} with work; run: palace ingest")
    show_again(again)
