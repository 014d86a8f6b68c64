"""`palace gaps`, `backfill`: days that lack something, and days that are made again."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any

from palace_pipeline.cli.archive import ROUNDS, finish_purge, new_batch, open_home
from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, out, out_json, progress, say
from palace_pipeline.planner import Range, ranges, stale_days
from palace_pipeline.settings import environment
from palace_pipeline.stages.names import write_receipt
from palace_pipeline.stages.publish import exports_waiting
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.withheld import try_again
from palace_pipeline.store.home import Home
from palace_pipeline.store.lock import HomeBusy

if TYPE_CHECKING:
    from palace_pipeline.gaps import Look

SHOWN = 100
"""Lines of a kind that people are shown; `--json` has them all."""
PATHS_A_RUN = 500
"""Files that are named in the configuration of one run, which Dagster keeps."""


def run_gaps(*, heal: bool, everything: bool, as_json: bool) -> int:
    """Source against archive. Exit code 0: nothing missing, and nothing that keeps this from being said; else 1."""
    from palace_pipeline.gaps import look, window

    home = open_home(must_exist=True)
    healed: dict[str, Any] = {}
    failures: list[str] = []
    if heal:
        with home.writing(), progress():
            first = look(home, window(home, everything=everything))
            healed = _heal(home, first, failures)
            last = look(home, window(home, everything=everything))
    else:
        with _lock_if_free(home) as busy, progress():
            last = look(home, window(home, everything=everything), busy=busy)
    if as_json:
        out_json(last.as_json() | ({"healed": healed, "failures": failures} if heal else {}))
    else:
        _show(last, healed)
    for failure in failures:
        say(f"failed: {failure}")
    return 0 if last.clean and not failures else NOT_TAKEN


@contextmanager
def _lock_if_free(home: Home) -> Generator[bool]:
    """Hold the write lock, so that nothing changes during a look; yields True if somebody else has it. Never waits."""
    with ExitStack() as stack:
        try:
            stack.enter_context(home.writing(wait_seconds=0))
            busy = False
        except HomeBusy:
            busy = True
        yield busy


def _heal(home: Home, found: Look, failures: list[str]) -> dict[str, Any]:
    """Read the files that were not taken, mark what was lost, and run exactly those days; returns what was asked for."""
    from palace_pipeline.gaps import mark

    batch = new_batch()
    finish_purge(home, batch)
    os.environ.update(environment(home.settings))  # before Dagster is loaded: the first partition is in it
    with home.ledger() as ledger:
        before = set(stale_days(ledger, recipes_of(home)))
        marks = mark(home, ledger, found.days.gaps, found.days.damaged)
        try_again(ledger)
    files = [seen.path for seen, _ in found.files.untaken]
    if files or found.files.again:
        from palace_pipeline import runner

        for paths in _parts(files) if files else [[]]:
            try:
                runner.read_exports(home, [], batch, only=paths)
            except runner.RunFailed as error:
                failures.append(str(error))
    wanted = {gap.day for gap in found.gaps} | set(found.left)
    asked: list[Range] = []
    for _ in range(ROUNDS):
        with home.ledger() as ledger:
            stale = set(stale_days(ledger, recipes_of(home)))
        spans = ranges((stale - before) | (stale & wanted))
        if not spans or failures:
            break
        asked += spans
        _build(home, spans, batch, failures, force=False)
    with home.ledger() as ledger:
        if exports_waiting(ledger) and not failures:
            from palace_pipeline import runner

            runner.refresh_stats(home, batch)
        if asked or files:
            write_receipt(home, ledger, batch)
    return {
        "files": len(files) + len(found.files.again),
        "lost": marks,
        "ranges": [[span.first.isoformat(), span.last.isoformat()] for span in asked],
    }


def _parts(paths: Sequence[str]) -> Iterator[list[str]]:
    for at in range(0, len(paths), PATHS_A_RUN):
        yield list(paths[at : at + PATHS_A_RUN])


def _build(home: Home, spans: Sequence[Range], batch: str, failures: list[str], *, force: bool) -> None:
    from palace_pipeline import runner

    for number, span in enumerate(spans):
        try:
            runner.build_days(home, span, batch, force=force, last=number == len(spans) - 1)
        except runner.RunFailed as error:
            failures.append(f"days {span.first} to {span.last}: {error}")


def _show(look: Look, healed: dict[str, Any]) -> None:
    value = look.as_json()
    first, last = value["window"]
    if healed:
        spans = ", ".join(a if a == b else f"{a} to {b}" for a, b in healed["ranges"]) or "none"
        out(f"healed: {healed['files']} file(s) read, days made again: {spans}")
    lines = [
        f"missing: {row['day'] or '(day not known)'} {row['provider'] or ''} {row['conversation_id'] or row.get('path', '')}: "
        f"{row['reason']}"
        for row in value["missing"]
    ]
    lines_of = {
        "missing": lines,
        "failed": [f"not taken: {row['path']}: {row['reason']}" for row in value["failed"]],
        "evicted": [
            f"gone from the source, kept here: {row['path']} ({row['conversations']} conversation(s), "
            f"{row['only_in_archive']} of them nowhere else)"
            for row in value["evicted"]
        ],
    }
    for found in lines_of.values():
        for line in found[:SHOWN]:
            out(line)
        if len(found) > SHOWN:
            out(f"… and {len(found) - SHOWN} more (all of them: palace gaps --json)")
    for why in value["why"]:
        out(f"not clean: {why}")
    compared = f"{value['compared']:,} conversation(s) of {first} to {last} compared"
    if value["clean"]:
        out(f"no gaps: {compared}, twice" if healed else f"nothing is missing: {compared}")
    elif healed:
        out(f"still not clean after healing ({compared}); palace doctor checks the archive")
    elif value["missing"]:
        out(f"{len(value['missing'])} missing ({compared}); mend it with: palace gaps --heal")
    else:
        out(f"nothing is missing as far as could be seen ({compared})")


# --- backfill ---------------------------------------------------------------------------------------------------------


def days_of(first: date | None, last: date | None, days: Iterable[date]) -> list[Range]:
    """What a backfill is asked for, as contiguous ranges without any day between. Raises UsageError."""
    wanted = set(days)
    if (first is None) != (last is None):
        raise UsageError("--from and --to go together (one day: --day DATE)")
    if first is not None and last is not None:
        if last < first:
            raise UsageError("--to lies before --from")
        wanted.update(Range(first, last).days())
    if not wanted:
        raise UsageError("which days? write --from DATE --to DATE, or --day DATE (as often as you like)")
    return ranges(wanted, gap=1)


def run_backfill(first: date | None, last: date | None, days: Sequence[date], *, as_json: bool) -> int:
    """Make days again from the vault. Days that no conversation lies on are empty and cost nothing."""
    asked = days_of(first, last, days)
    home = open_home(must_exist=True)
    os.environ.update(environment(home.settings))
    batch, failures = new_batch(), list[str]()
    with home.writing(), progress():
        with home.ledger() as ledger:
            filled = {date.fromisoformat(row["day"]) for row in ledger.rows("SELECT DISTINCT day FROM conversations")}
        wanted = sorted(day for day in filled if any(day in span for span in asked))
        # A day that nobody asked for is not redone, even where it lies between two that were.
        others = sorted(filled - set(wanted))
        _build(home, _apart(ranges(wanted), others), batch, failures, force=True)
        with home.ledger() as ledger:
            receipt = write_receipt(home, ledger, batch)
    if as_json:
        out_json(receipt)
    else:
        out(
            f"{receipt['days']} of {len(wanted)} day(s) made again, {receipt['pages']} pages, {receipt['drawers']} drawers."
        )
    for failure in failures:
        say(f"failed: {failure}")
    return NOT_TAKEN if failures else 0


def _apart(spans: Iterable[Range], others: Sequence[date]) -> list[Range]:
    """The ranges, cut wherever one of the `others` lies inside."""
    out_spans: list[Range] = []
    for span in spans:
        first = span.first
        for day in (day for day in others if day in span):
            out_spans.append(Range(first, day - date.resolution))
            first = day + date.resolution
        out_spans.append(Range(first, span.last))
    return [span for span in out_spans if span.first <= span.last]
