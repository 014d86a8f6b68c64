"""`palace doctor`: looks at every store and says in plain words what is wrong and which command mends it. Changes nothing."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Literal

from palace_pipeline.checks import Result, whole
from palace_pipeline.checks import examine as check_days
from palace_pipeline.checks.exports import of_everything
from palace_pipeline.failing import failing, newest_reason
from palace_pipeline.ingest.by_format import drifted
from palace_pipeline.ingest.changed import done_again
from palace_pipeline.model import LAKE
from palace_pipeline.planner import Range, stale_days
from palace_pipeline.stages.indexed import without_row
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.withheld import advice, in_words
from palace_pipeline.store.files import TEMPORARY_PREFIX
from palace_pipeline.store.home import SCHEMA_VERSION, Home
from palace_pipeline.store.keep import FOLDER, kept
from palace_pipeline.store.lake import LakeDamaged
from palace_pipeline.store.ledger import LedgerDamaged
from palace_pipeline.store.lock import HomeBusy, writer
from palace_pipeline.store.pages import copies_of_pages
from palace_pipeline.store.quiet import soundness
from palace_pipeline.store.salvage import ledger_damage, vault_damage
from palace_pipeline.workspace import conflicts

_NAMED = 50
"""Conversations that are named one by one."""
_PLACES = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `mend`: the command or act that puts it right."""

    level: Literal["ok", "note", "wrong"]
    what: str
    mend: str | None = None


def examine(home: Home, days: Range | None = None) -> list[Finding]:
    """All findings, worst last. `days`: those whose contents are checked (None: all of them)."""
    findings = [*_version(home), *_permissions(home), *_databases(home), *_key(home)]
    checks = (_lake, _tables, _unfinished, _conflicts, _kept)
    if not any(finding.level == "wrong" and finding.what.startswith(("the ledger", "the key")) for finding in findings):
        # Without the ledger nobody knows what should be there; without the key, by which recipe it was made.
        checks += (_copies, _indexes, _rows, _waiting, _failing, _withheld, _quarantine, _drift)
        findings += (finding for check in checks for finding in check(home))
        findings += _contents(home, days)
    else:
        findings += (finding for check in checks for finding in check(home))
    order = {"ok": 0, "note": 1, "wrong": 2}
    return sorted(findings, key=lambda finding: order[finding.level])


def _version(home: Home) -> Iterator[Finding]:
    version = home.version()
    if version == SCHEMA_VERSION:
        yield Finding("ok", f"home {home.path}, schema {version}")
    elif version is None:
        yield Finding("note", f"{home.path / 'schema_version'} is not there", "the next palace ingest writes it again")
    else:
        what = f"the home has schema {version}, this Palace writes {SCHEMA_VERSION}; nothing is lost by the change"
        yield Finding("note", what, "the next palace ingest brings it up to date")


def _permissions(home: Home) -> Iterator[Finding]:
    open_ones = [
        path
        for path in (home.path / "vault", home.path / "lake/raw", home.path / ".key", home.path / "ledger.sqlite")
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    for path in open_ones:
        mode = "700" if path.is_dir() else "600"
        yield Finding("wrong", f"{path} can be read by other users", f"chmod {mode} '{path}'")
    if not open_ones:
        yield Finding("ok", "vault, raw lake, key and ledger are the owner's alone")
    left = [path for path in home.path.rglob(f"{TEMPORARY_PREFIX}*") if path.is_file()]
    if left:
        yield Finding("note", f"{len(left)} temporary file(s) of a killed run", "the next palace ingest removes them")


def _databases(home: Home) -> Iterator[Finding]:
    """Ledger and vault, to the last page and piece."""
    vault_there = (home.path / "vault/vault.sqlite").exists()
    ledger_wrong = ledger_damage(home.ledger_path)
    if ledger_wrong is None:
        yield Finding("ok", "the ledger is sound")
    else:
        mend = "palace rebuild --from vault" if vault_there else "palace restore BACKUP, or palace ingest your exports"
        yield Finding("wrong", f"the ledger ({home.ledger_path}) {ledger_wrong}", mend)
    vault_wrong = vault_damage(home.path / "vault")
    if vault_wrong is None:
        yield Finding("ok", "the vault is sound: every piece and record is what its name says")
    elif vault_there or ledger_wrong is None:
        yield Finding(
            "wrong",
            f"the vault ({home.path / 'vault'}) {vault_wrong}",
            "palace rebuild --from vault: what is lost is read again from the export files that are still there; "
            "or palace restore BACKUP",
        )


def _key(home: Home) -> Iterator[Finding]:
    if not (home.path / ".key").exists():
        yield Finding(
            "wrong",
            f"the key ({home.path / '.key'}) is not there: values that were purged are not known again when an export "
            "still holds them",
            "palace ingest, which makes a new one and redacts everything again; if you have purged values, put back the "
            ".key of a backup instead",
        )


def _lake(home: Home) -> Iterator[Finding]:
    broken = 0
    for table in LAKE:
        for month in home.lake.months(table):
            try:
                home.lake.read(table, [month])
            except LakeDamaged as error:
                broken += 1
                yield Finding("wrong", error.what, error.mend)
    if home.ledger_path.exists() and not home.lake.months("raw/messages") and _built_before(home):
        yield Finding("wrong", f"the lake ({home.lake.folder}) is not there", "palace rebuild --from vault")
    elif not broken:
        yield Finding("ok", "every month file of the lake can be read")


def _built_before(home: Home) -> bool:
    with suppress(sqlite3.DatabaseError, LedgerDamaged), home.ledger() as ledger:  # damage is told elsewhere
        return ledger.one("SELECT 1 FROM conversations WHERE normalized_out != 'none' LIMIT 1") is not None
    return False


def _tables(home: Home) -> Iterator[Finding]:
    from palace_pipeline.store.duckfile import read_through
    from palace_pipeline.store.sql import query

    if not home.warehouse.exists():
        if any(home.lake.months("clean/messages")):
            yield Finding("wrong", f"{home.warehouse} is not there", "palace rebuild")
        return
    try:
        count = query(home.path, "SELECT count(*) FROM conversations")[1][0][0]
        read_through(home.path)
    except Exception as error:  # noqa: BLE001 - whatever DuckDB says of a damaged file, it cannot be used
        yield Finding("wrong", f"{home.warehouse} cannot be read ({type(error).__name__})", "palace rebuild")
        return
    yield Finding("ok", f"palace.duckdb holds {count:,} conversations")


def _indexes(home: Home) -> Iterator[Finding]:
    with home.ledger() as ledger:
        row = ledger.one("SELECT count(*) AS n FROM published WHERE hash IS NOT NULL")
        published = int(row["n"]) if row else 0
    if published == 0:
        return
    if (wrong := soundness(home.path / "chroma/chroma.sqlite3")) is not None:
        yield Finding("wrong", f"the Chroma collection ({home.path / 'chroma'}) {wrong}", "palace rebuild")
    from palace_pipeline.store.lexical import StaleIndexError, open_reader

    try:
        reader = open_reader(home.path / "lexical")
    except StaleIndexError as error:
        if os.access(home.path / "lexical", os.W_OK):
            yield Finding("wrong", str(error), "palace rebuild")
        else:
            yield Finding("note", "the lexical index is read-only here: search goes by meaning alone")
        return
    lexical = reader.count() if reader is not None else 0
    if lexical != published:
        yield Finding("wrong", f"the lexical index holds {lexical:,} of {published:,} chunks", "palace rebuild")
    else:
        yield Finding("ok", f"the lexical index holds {lexical:,} chunks")


def _rows(home: Home) -> Iterator[Finding]:
    with home.ledger() as ledger:
        missing = without_row(home, ledger)
    if missing:
        what = f"{home.path / 'index.md'} lacks rows: {len(missing):,} of the pages and sessions that are there"
        yield Finding("note", what, "the next palace ingest adds their rows")


def _unfinished(home: Home) -> Iterator[Finding]:
    if (home.path / ".rebuild").exists():
        yield Finding("note", "a rebuild from the vault was interrupted", "palace rebuild --from vault goes on with it")
    if (home.path / ".restore/swap.json").exists():
        yield Finding("note", "a restore was interrupted when all was ready", "the next palace ingest finishes it")


def _conflicts(home: Home) -> Iterator[Finding]:
    found = Counter(one.of_session for one in conflicts.find(home.path))
    for of_session, what in (
        (False, "page(s) that you changed, and of which the archive has something new"),
        (True, "session(s) that somebody has to look at: a second version or a copy, or front matter that was torn"),
    ):
        if found[of_session]:
            yield Finding("note", f"{found[of_session]:,} {what}", "palace conflicts")


def _copies(home: Home) -> Iterator[Finding]:
    with home.ledger() as ledger:
        rows = ledger.rows("SELECT provider, conversation_id, page FROM conversations WHERE page != ''")
    found = copies_of_pages(home.path, {(row["provider"], row["conversation_id"]): row["page"] for row in rows})
    if not found:
        return
    named = ", ".join(path.relative_to(home.path).as_posix() for path in found[:_PLACES])
    more = f" and {len(found) - _PLACES:,} more" if len(found) > _PLACES else ""
    what = f"{len(found):,} file(s) are copies of pages, which nothing reads: {named}{more}"
    yield Finding("note", what, "look whether they hold anything of yours, then delete them")


def _kept(home: Home) -> Iterator[Finding]:
    if found := kept(home.path):
        size = sum(path.stat().st_size for path in (home.path / FOLDER).rglob("*") if path.is_file())
        yield Finding(
            "note",
            f"{len(found)} thing(s) from before an upgrade or a repair are kept in {FOLDER}/ ({size / 1e6:,.1f} MB)",
            f"delete {home.path / FOLDER} when all is well",
        )


def _contents(home: Home, days: Range | None) -> Iterator[Finding]:
    """The checks that every run makes of its days, of some days or of all."""
    everything = whole(home)
    span = days or everything
    if everything is None or span is None:
        return
    try:
        # Between two stages of a run an archive looks broken, and Chroma takes one process at a time.
        with writer(home.path, wait_seconds=0):
            results = check_days(home, span, everything=span == everything)
    except OSError as error:
        yield Finding("note", f"the contents were not checked: the archive is read-only here ({error.strerror})")
        return
    except HomeBusy:
        yield Finding("note", "the contents were not checked: a run is writing", "palace doctor, when it has finished")
        return
    yield from map(_of_check, [*results, *of_everything(home, time.time())])


def _of_check(result: Result) -> Finding:
    name = f"{result.asset}, {result.name.replace('_', ' ')}"
    if result.passed:
        figures = ", ".join(f"{figure} {count:,}" for figure, count in result.figures.items())
        return Finding("ok", f"{name} ({figures})" if figures else name)
    level = "note" if result.severity == "warn" else "wrong"
    # What could not be looked at is told with its store, or only making it anew shows what it was.
    mends = [mend if mend != "palace doctor" else "palace rebuild" for mend in result.mends]
    return Finding(level, f"{name}: {result.what}", " · ".join(dict.fromkeys(mends)) or None)


def days_of(text: str, today: date | None = None) -> Range:
    """The days of `--days`: `30` (the last thirty), `2024-05-03`, or `2024-05-01..2024-05-31`. Raises ValueError."""
    today = today or datetime.now(UTC).date()
    if re.fullmatch(r"[0-9]{1,5}", text):
        return Range(today - timedelta(days=max(int(text), 1) - 1), today)
    first, _, last = text.partition("..")
    span = Range(date.fromisoformat(first), date.fromisoformat(last or first))
    if span.last < span.first:
        raise ValueError("the last day lies before the first")
    return span


def _waiting(home: Home) -> Iterator[Finding]:
    with home.ledger() as ledger:
        recipes = recipes_of(home)
        days = stale_days(ledger, recipes)
        again = done_again(ledger, recipes, home.settings)
    if days:
        yield Finding("note", f"{len(days)} day(s) have work", "palace ingest")
    for one in again:
        yield Finding("note", one.said, "palace ingest")


def _failing(home: Home) -> Iterator[Finding]:
    with home.ledger() as ledger:
        found = failing(home, ledger)
    reason = newest_reason(home) if found else None
    why = f" (the newest reason: {reason})" if reason is not None else ""
    for one in found[:_NAMED]:
        mend = "palace ingest tries at once; a file that cannot be read at all: mend it or move it away"
        yield Finding("note" if one.again_at is not None else "wrong", f"{one.said}{why}", mend)
    if len(found) > _NAMED:
        yield Finding("wrong", f"and {len(found) - _NAMED} more that failed", "palace status --json names them all")


def _withheld(home: Home) -> Iterator[Finding]:
    with home.ledger() as ledger:
        rows = ledger.withheld()
        for row in rows[:_NAMED]:
            key = (row["provider"], row["conversation_id"])
            known = ledger.conversation(key)
            page = f", page {known['page']}" if known is not None and known["page"] else ""
            seen = ledger.one(
                "SELECT path FROM sightings WHERE provider = ? AND conversation_id = ? ORDER BY superseded, path", key
            )
            file = shlex.quote(seen["path"]) if seen is not None else "EXPORT"
            what = "is withheld as a whole" if row["what"] == "conversation" else "is there, but for fields"
            said = [f"{place['place']}: {in_words(place['kind'])}" for place in row["places"][:_PLACES]]
            if len(row["places"]) > _PLACES:
                said.append(f"and {len(row['places']) - _PLACES} more places")
            day = known["day"] if known is not None else "DAY"
            mends = dict.fromkeys(
                advice(place["kind"]).replace("EXPORT", file).replace("DAY", day) for place in row["places"]
            )
            yield Finding("note", f"{key[0]}:{key[1]}{page} {what} ({'; '.join(said)})", " · ".join(mends))
    if len(rows) > _NAMED:
        kinds = Counter(place["kind"] for row in rows[_NAMED:] for place in row["places"])
        said = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        yield Finding("note", f"and {len(rows) - _NAMED} more conversations with something withheld ({said})", None)


def _quarantine(home: Home) -> Iterator[Finding]:
    with home.ledger() as ledger:
        rows = ledger.rows("SELECT path, reason FROM files WHERE status IN ('quarantined', 'partial') ORDER BY path")
    for row in rows[:50]:
        there = os.path.lexists(row["path"])
        mend = (
            "mend or replace the file; it is read again then"
            if there
            else "it is not there now; if you moved it away, nothing is to be done"
        )
        yield Finding("note", f"{Path(row['path'])}: {row['reason']}", mend)
    if len(rows) > 50:
        yield Finding("note", f"and {len(rows) - 50} more files with something not taken", "palace sql 'from skips'")


def _drift(home: Home) -> Iterator[Finding]:
    with home.ledger() as ledger:
        found = drifted(ledger)
    for drift in found:
        yield Finding(
            "note",
            f"a format seems to have changed: {drift.in_words()}",
            "update Palace; if it stays, report the line that palace formats shows",
        )
