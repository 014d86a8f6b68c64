"""`palace ingest`, `status`, `doctor`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from palace_pipeline.cli.preview import funnel_of, known_titles, show_preview
from palace_pipeline.cli.status import again_in, how_to_begin, nothing_yet, show_again
from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, counted, out, out_json, progress, say, table
from palace_pipeline.exports.scan import Missing, scan
from palace_pipeline.ingest import ingest, needs_reading
from palace_pipeline.ingest.by_format import Drift
from palace_pipeline.ingest.changed import Again
from palace_pipeline.ingest.preview import Preview
from palace_pipeline.ingest.purged import KnownFiles, Purged
from palace_pipeline.ingest.session_names import ready_sessions
from palace_pipeline.planner import Range, plan
from palace_pipeline.settings import environment, load_settings
from palace_pipeline.stages.missing import mark_missing
from palace_pipeline.stages.names import write_receipt
from palace_pipeline.stages.progress import report
from palace_pipeline.stages.publish import exports_waiting
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.withheld import try_again
from palace_pipeline.store.alive import dead_runs
from palace_pipeline.store.files import Told
from palace_pipeline.store.home import Home
from palace_pipeline.store.lake import LakeDamaged
from palace_pipeline.store.lock import HomeBusy
from palace_pipeline.store.receipts import compose, failed_here, receipt_of

TELLING = (Told, HomeBusy, LakeDamaged)
"""Errors whose own words are made for people."""

_LOADING = "starting Dagster"

ROUNDS = 3
"""Building may show more work (an index that was gone makes all days due): look again, but not for ever."""


def open_home(*, must_exist: bool = False) -> Home:
    """The home that is meant, with its settings. Raises UsageError if there is none and there has to be one."""
    home = Home(load_settings())
    if must_exist and not home.exists:
        raise UsageError(nothing_yet(home))
    return home


def open_workspace() -> Home:
    """The home, if it is an archive or holds sessions or memory. Raises UsageError."""
    home = open_home()
    return home if home.has_workspace else open_home(must_exist=True)


def new_batch() -> str:
    """Name of a piece of work, for receipts: its time and a random end."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def run_ingest(paths: Sequence[Path], *, dry_run: bool, limit: int | None, as_json: bool) -> int:
    """The main job. Exit code 0: all done; 1: something was not taken."""
    home = open_home()
    missing = [str(path) for path in paths if not path.exists() and not path.is_symlink()]
    if missing:
        raise UsageError(f"not there: {', '.join(missing)}")
    if dry_run:
        preview = Preview()
        with progress():
            found = ingest(home, paths or None, batch="dry-run", limit=limit, dry_run=True, preview=preview)
        receipt = receipt_of(found.as_counts()) | {"preview": preview.shown(funnel_of(home), known_titles(home))}
        again = again_in(home)
        receipt["again"] = {one.what: one.as_json() for one in again}
        failures: list[str] = []
    else:
        again = list[Again]()
        with home.writing(), progress():
            receipt, failures = main_job(home, paths, limit)
    if as_json:
        out_json(receipt)
    else:
        show_receipt(receipt, home, dry_run=dry_run)
        if dry_run:
            show_preview(receipt["preview"])
            show_again(again)
        if not receipt["files"]["found"]:
            for line in how_to_begin(home):
                say(line)
    for failure in failures:
        say(f"failed: {failure}")
    return NOT_TAKEN if failures or failed_here(receipt) else 0


def main_job(home: Home, paths: Sequence[Path], limit: int | None) -> tuple[dict[str, Any], list[str]]:
    """Read, plan, build; returns the receipt and what failed. Starts no run when there is nothing to do."""
    batch, failures = new_batch(), list[str]()
    finish_purge(home, batch)
    finish_rebuild(home, batch)
    clear_killed(home)
    ready_sessions(home)
    os.environ.update(environment(home.settings))  # before Dagster is loaded: the first partition is in it
    found = list(scan(paths or home.settings.folders, home.path))
    with home.ledger() as ledger:
        known = KnownFiles(home, ledger)
        reading = needs_reading(found, known, home.settings)
        # The paths that a run is started with stay in Dagster's storage.
        purged = Purged.of(home, ledger)
        named = any(purged.known_as(str(path.absolute())) != str(path.absolute()) for path in paths)
    if reading and not named:
        runner = _dagster()
        report("reading", 0, 1)
        try:
            runner.read_exports(home, [str(path.absolute()) for path in paths], batch, limit)
        except runner.RunFailed as error:
            failures.append(str(error))
        report("reading", 1, 1)
    else:
        ingest(home, paths or None, batch=batch, limit=limit, found=found, known=known)
    build(home, batch, failures)
    with home.ledger() as ledger:
        waiting = exports_waiting(ledger) and not failures
    if waiting:
        from palace_pipeline import runner

        runner.refresh_stats(home, batch)
    with home.ledger() as ledger:
        return write_receipt(home, ledger, batch), failures


def _dagster() -> ModuleType:
    """`runner`, which runs its jobs. Loading it is the longest wait of a small ingest, so it says what it does."""
    report(_LOADING, 0, 1)
    from palace_pipeline import runner

    report(_LOADING, 1, 1)
    return runner


def clear_killed(home: Home) -> None:
    """Runs that were killed count as running in the UI until somebody says otherwise. Costs nothing if there is none."""
    if dead_runs(home.alive):
        from palace_pipeline import runner

        runner.clear_dead_runs(home)


def finish_rebuild(home: Home, batch: str) -> None:
    """What a rebuild that was killed has left to do: until then the indexes may hold what the ledger does not know."""
    with home.ledger() as ledger:
        unfinished = ledger.meta("rebuilding") is not None
    if unfinished:
        from palace_pipeline.rebuild import finish

        finish(home, batch)


def finish_purge(home: Home, batch: str) -> bool:
    """What a purge that was killed has left to do comes before anything else; whether there was anything."""
    with home.ledger() as ledger:
        unfinished = any(ledger.meta(name) is not None for name in ("purging", "purge_put_off"))
    if unfinished:
        from palace_pipeline.purge import finish

        finish(home, batch)
    return unfinished


def build(home: Home, batch: str, failures: list[str]) -> None:
    """Run the planner's ranges until nothing is left; a range that fails does not keep the others from being built."""
    with home.ledger() as ledger:
        mark_missing(home, ledger)
        try_again(ledger)
    for _ in range(ROUNDS):
        with home.ledger() as ledger:
            spans = plan(ledger, recipes_of(home))
        if not spans or failures:
            return
        runner = _dagster()
        for number, span in enumerate(spans):
            report("parts built", number, len(spans))
            try:
                runner.build_days(home, span, batch, last=number == len(spans) - 1)
            except runner.RunFailed as error:
                failures.append(f"days {span.first} to {span.last}: {error}")
        report("parts built", len(spans), len(spans))


def show_receipt(receipt: dict[str, Any], home: Home, *, dry_run: bool) -> None:
    """A receipt for people: sums, what was masked, what was not taken."""
    table(
        [
            {"": unit, **{k: f"{v:,}" for k, v in receipt[unit].items()}}
            for unit in ("files", "conversations", "messages")
        ],
        title="Would be taken" if dry_run else "Receipt",
    )
    if not dry_run:
        masked = sum(receipt["findings"].values())
        out(
            " · ".join(counted(receipt[f"{one}s"], one) for one in ("day", "page", "drawer", "vector"))
            + f" · {counted(masked, 'place')} masked · {sum(receipt['seconds'].values()):.1f} s of work"
        )
    if new := receipt["conflicts"]:
        out(
            f"of {counted(new, 'page')} that you changed the archive has something new to say: it stands beside; "
            "see: palace conflicts"
        )
    for held in receipt["withheld_places"]:
        places = ", ".join(f"{place['place']}: {place['kind']}" for place in held["places"][:5])
        out(f"withheld {held['what']}: {held['provider']}:{held['conversation_id']} ({places})")
    if receipt["withheld_places"]:
        out("palace doctor says what can be done about what is withheld")
    expected: dict[str, int] = {}
    for skip in receipt["skipped"]:
        if skip["expected"]:
            expected[skip["reason"]] = expected.get(skip["reason"], 0) + skip["count"]
        else:
            out(f"not taken: {skip['where']}: {skip['reason']}" + (f" ({skip['count']})" if skip["count"] > 1 else ""))
    if left := [f"{reason} ({count})" for reason, count in sorted(expected.items()) if count]:
        out(f"left out as expected: {', '.join(left)}")
    for reason in sorted(reason for reason, count in expected.items() if not count):
        out(f"note: {reason}")
    for drift in receipt["drift"]:
        found = Drift(drift["format"], drift["files"], drift["nothing"], drift["unknown"])
        out(f"drift: {found.in_words()}; see: palace formats")
    for check in receipt["checks"]:
        out(f"check failed: {check['asset']}, {check['check'].replace('_', ' ')}: {check['what']}")
    if not dry_run:
        out(f"archive: {home.path}")


def run_doctor(days: str | None, *, as_json: bool) -> int:
    """Checks of everything, or of the contents of some days only. Exit code 1 if something is wrong."""
    from palace_pipeline.doctor import days_of, examine

    try:
        span = days_of(days) if days is not None else None
    except ValueError as error:
        raise UsageError(
            "--days is a number of days, a day, or two of them: 30, 2024-05-03, 2024-05-01..2024-05-31"
        ) from error
    home = open_home(must_exist=True)
    findings = examine(home, span)
    if as_json:
        out_json({"findings": [{"level": f.level, "what": f.what, "mend": f.mend} for f in findings]})
    else:
        for finding in findings:
            out(f"{finding.level:5} {finding.what}" + (f"\n      {finding.mend}" if finding.mend else ""))
    return NOT_TAKEN if any(f.level == "wrong" for f in findings) else 0


__all__ = ["Missing", "Range", "compose", "run_doctor", "run_ingest"]
