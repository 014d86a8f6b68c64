"""From the vault to the lake: ledger and lake made anew in `.rebuild/`, then put in the place of the old ones together."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from pathlib import Path

import orjson
import polars as pl

from palace_pipeline.exports import names
from palace_pipeline.exports.scan import Seen, is_unchanged, scan
from palace_pipeline.ingest.again import read_again, read_from_disk
from palace_pipeline.ingest.sightings import Where, note, settle, settle_noted
from palace_pipeline.model import CONVERSATIONS, MESSAGES, from_record, to_record
from palace_pipeline.rebuild.derived import TO_DRAWERS, build, note_left
from palace_pipeline.rebuild.staged import StagedHome
from palace_pipeline.stages.paged import FROM_PAGES
from palace_pipeline.stages.progress import report
from palace_pipeline.store import catalogue
from palace_pipeline.store.files import make_folder, replacing, write_bytes
from palace_pipeline.store.home import Home
from palace_pipeline.store.lake import LakeDamaged
from palace_pipeline.store.ledger import Key, Ledger
from palace_pipeline.store.salvage import ledger_damage, salvage, vault_damage
from palace_pipeline.store.swap import swap_in
from palace_pipeline.store.upgrade import LAKE_VERSION
from palace_pipeline.store.vault import Vault
from palace_pipeline.transcripts.day import day_of
from palace_pipeline.transcripts.rows import conversations_of

_FOLDER = ".rebuild"
_READ = "rebuild_read"
"""Table of the ledger in the making: files that have been read, for whoever goes on after a kill."""
_RESET = (
    "built_day = NULL, status = CASE status WHEN 'purged' THEN 'purged' ELSE 'ok' END, normalized_in = NULL, "
    "normalized_out = NULL, redacted_in = NULL, redacted_out = NULL, chunks_in = NULL, chunks_out = NULL, "
    "drawers_in = NULL, drawers_out = NULL, pages_in = NULL, vectors_in = NULL, tables_in = NULL"
)
_LIVE = "SELECT provider, conversation_id, record, path, member, sha256, seen_day FROM sightings WHERE superseded != 2"


@dataclass(slots=True)
class Recovered:
    """What was not as it should be, in words, and what became of it. Empty for an archive that was sound."""

    said: list[str] = field(default_factory=list[str])
    lost: list[Key] = field(default_factory=list[Key])
    """Conversations of which nothing is left to read; their pages stay as they are."""

    def say(self, text: str) -> None:
        self.said.append(text)


def make_foundation(home: Home, batch: str) -> Recovered:
    """Make ledger and lake anew; the ledger then says that pages, indexes and tables are to be made, too."""
    recovered = Recovered()
    folder = home.path / _FOLDER
    _mend_vault(home, folder, recovered)
    staged = StagedHome(home, folder)
    _begin_ledger(home, staged, recovered)
    with staged.ledger() as ledger, home.vault() as vault:
        _read_everything(staged, ledger, vault, recovered)
        _account_for_records(home, ledger, vault, recovered)
        vault.commit()
    _take_vectors_along(home, staged)
    build(staged, batch, TO_DRAWERS)
    with staged.ledger() as ledger, home.vault() as vault:
        catalogue.note_everything(ledger, vault)
        vault.commit()
        note_left(ledger)
        ledger.write(f"DROP TABLE IF EXISTS {_READ}")
        ledger.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    write_bytes(staged.lake.folder / "schema_version", f"{LAKE_VERSION}\n".encode())
    swap_in(home.path, folder, ["ledger.sqlite", "lake"])
    return recovered


# --- the vault --------------------------------------------------------------------------------------------------------


def _mend_vault(home: Home, folder: Path, recovered: Recovered) -> None:
    """Replace a damaged vault by what can be read of it; the damaged one is kept."""
    wrong = vault_damage(home.path / "vault")
    if wrong is None:
        return
    if not (home.path / "vault/vault.sqlite").exists():
        recovered.say("the vault was not there: a new one is filled from the export files that are still there")
        Vault(home.path / "vault").close()
        return
    beside = folder / "vault"
    if beside.exists():
        shutil.rmtree(beside)  # half done when it was killed
    make_folder(beside)
    done = salvage(home.path / "vault", beside)
    recovered.say(
        f"the vault {wrong}: {done.kept['pieces']:,} pieces and {done.kept['records']:,} records of it could be read; "
        "the damaged file is kept in before-upgrades/"
    )
    swap_in(home.path, folder, ["vault/vault.sqlite"], keep_old=["vault/vault.sqlite"])


# --- the ledger -------------------------------------------------------------------------------------------------------


def _begin_ledger(home: Home, staged: StagedHome, recovered: Recovered) -> None:
    """A ledger that knows all sources and nothing that was built: from the old one, or from the vault's catalogue."""
    wrong = ledger_damage(home.ledger_path)
    if wrong is not None:
        recovered.say(
            f"the ledger {wrong}: it was made again from the vault. Not known any more: which earlier forms of a "
            "conversation a later one holds, the raw bytes of earlier versions of a file by name, receipts of past runs. "
            "palace ingest reads again what of your exports is not known any more"
        )
    if staged.ledger_path.exists():
        with closing(Ledger(staged.ledger_path)) as begun:
            if begun.meta("rebuild_begun") is not None:
                return  # by a rebuild that was killed
        shutil.rmtree(staged.ledger_path.parent)
    make_folder(staged.ledger_path.parent)
    if wrong is None:
        staged.ledger_path.touch(mode=0o600)
        with (
            closing(sqlite3.connect(home.ledger_path, timeout=60)) as old,
            closing(sqlite3.connect(staged.ledger_path)) as new,
        ):
            old.backup(new)
    with closing(Ledger(staged.ledger_path)) as ledger, ledger.transaction():
        if wrong is None:
            ledger.write(f"UPDATE conversations SET {_RESET}")
            # They may lie in the old indexes: should a run come before those are made anew, it has to know.
            ledger.write("UPDATE published SET hash = NULL")
            ledger.write("DELETE FROM withheld")
        else:
            with home.vault() as vault:
                catalogue.put_back(ledger, vault)
        ledger.write(f"CREATE TABLE IF NOT EXISTS {_READ} (path TEXT PRIMARY KEY)")
        ledger.set_meta("rebuild_begun", "from the ledger" if wrong is None else "from the vault")


def _read_everything(staged: StagedHome, ledger: Ledger, vault: Vault, recovered: Recovered) -> None:
    """Every file out of the vault, or, where its bytes are lost there, from where it was."""
    if ledger.meta("rebuild_begun") == "from the vault":
        _note_records(staged, ledger, vault)
    done = {row["path"] for row in ledger.rows(f"SELECT path FROM {_READ}")}
    known = ledger.known_files()
    waiting = [path for path in known if path not in done]
    torn = {path for path in waiting if vault.lacks("pieces", _pieces_of(ledger, path))}
    # What is read together with files that are never kept (lists of people) can only be read where it lies.
    wanted = torn | {path for path in waiting if names.companions(path)}
    there = _on_disk({path: known[path]["root"] for path in wanted})
    from_disk = [there[path] for path in sorted(there) if path in torn or is_unchanged(there[path], known[path])]
    apart = torn | {seen.path for seen in from_disk}
    again = read_again(staged, ledger, vault, (path for path in waiting if path not in apart))
    for number, path in enumerate(chain(again, read_from_disk(staged, ledger, vault, from_disk))):
        ledger.write(f"INSERT OR IGNORE INTO {_READ} VALUES (?)", (path,))
        report("reading", number + 1, len(waiting))
    settle_noted(ledger, vault)
    if torn:
        read = torn & there.keys()
        recovered.say(f"{len(read)} file(s) were read again from where they lie, since the vault had lost their bytes")
        gone = sorted(torn - read)
        recovered.said += [f"raw bytes are lost, and the file is not there any more: {path}" for path in gone]


def _on_disk(wanted: dict[str, str]) -> dict[str, Seen]:
    """Files (path -> root) as they lie there now."""
    # What a file is read together with is only seen from its root on; a file that was named itself has its folder as root.
    below = {root for path, root in wanted.items() if Path(root) != Path(path).parent and names.companions(path)}
    alone = [Path(path) for path, root in wanted.items() if root not in below]
    found = scan([*map(Path, sorted(below)), *alone])
    return {
        seen.path: replace(seen, root=wanted[seen.path])
        for seen in found
        if isinstance(seen, Seen) and not seen.problem and seen.path in wanted
    }


def _pieces_of(ledger: Ledger, path: str) -> set[str]:
    rows = ledger.rows("SELECT pieces FROM members WHERE path = ?", (path,)) + ledger.rows(
        "SELECT e.pieces FROM file_elements f JOIN elements e USING (element) WHERE f.path = ?", (path,)
    )
    return {name for row in rows for name in orjson.loads(row["pieces"])}


def _note_records(staged: StagedHome, ledger: Ledger, vault: Vault) -> None:
    """Records as they were seen, into a ledger that knows none: where and when is noted beside them in the vault."""
    start = staged.settings.start
    rows = vault.rows(
        "SELECT r.hash, p.path, p.member, p.sha256, w.seen, w.first_seen FROM records r "
        "LEFT JOIN record_places w ON w.record = r.hash LEFT JOIN places p ON p.id = w.place "
        "ORDER BY w.seen, p.id, r.hash"
    )
    first: dict[Key, str] = {}
    with ledger.transaction():
        for number, (record, path, member, sha256, seen, first_seen) in enumerate(rows):
            conversation = from_record(vault.record(record))
            today = date.fromisoformat(seen) if seen else date.today()
            dated = day_of([conversation], start, today).dated if path == FROM_PAGES else None
            note(ledger, vault, conversation, Where(path or "", member or "", sha256 or "", start, today, dated))
            if first_seen is not None:
                first[conversation.key] = min(first.get(conversation.key, first_seen), first_seen)
            report("records", number + 1, len(rows))
        for key, day in first.items():
            ledger.write(
                "UPDATE conversations SET first_seen_day = ? WHERE provider = ? AND conversation_id = ?", (day, *key)
            )
            settle(ledger, key)


def _account_for_records(home: Home, ledger: Ledger, vault: Vault, recovered: Recovered) -> None:
    """Sightings whose record is lost, in the vault and in the files: what the old lake has takes its place."""
    rows = ledger.rows(_LIVE)
    lost = vault.lacks("records", (row["record"] for row in rows))
    if not lost:
        return
    touched: dict[Key, dict[str, str]] = {}
    with ledger.transaction():
        for row in rows:
            if row["record"] in lost:
                key = (row["provider"], row["conversation_id"])
                touched[key] = dict(zip(row.keys(), row, strict=True))
                ledger.write(
                    "DELETE FROM sightings WHERE provider = ? AND conversation_id = ? AND record = ?",
                    (*key, row["record"]),
                )
        from_old_lake = _from_lake(home, ledger, vault, touched)
        for key in touched:
            if ledger.sightings(key):
                settle(ledger, key)
                continue
            recovered.lost.append(key)
            ledger.write("DELETE FROM conversations WHERE provider = ? AND conversation_id = ?", key)
    recovered.say(
        f"{len(lost):,} record(s) were lost; {from_old_lake} conversation(s) were taken from the lake as they were last "
        f"built, {len(recovered.lost)} have nothing left but their pages, which stay"
    )


def _from_lake(home: Home, ledger: Ledger, vault: Vault, wanted: dict[Key, dict[str, str]]) -> int:
    """Transcripts of the old lake as records of their own; returns how many."""
    found = 0
    for month in home.lake.months("raw/conversations"):
        try:
            heads = home.lake.read("raw/conversations", [month], keys=list(wanted))
            messages = home.lake.read("raw/messages", [month], keys=list(wanted)).select(list(MESSAGES))
        except LakeDamaged:
            continue
        for head, conversation in conversations_of(heads.select(list(CONVERSATIONS)), messages):
            seen = wanted[conversation.key]
            where = Where(
                seen["path"],
                conversation.source_file or seen["member"],
                head["source_sha256"] or seen["sha256"],
                home.settings.start,
                date.fromisoformat(seen["seen_day"]),
            )
            note(ledger, vault, from_record(to_record(conversation)), where)
            found += 1
    return found


# --- the lake ---------------------------------------------------------------------------------------------------------


def _take_vectors_along(home: Home, staged: StagedHome) -> None:
    """Vectors of the old lake, for conversations that are still in that month: the same text has the same vector."""
    with staged.ledger() as ledger:
        rows = ledger.rows("SELECT provider, conversation_id, day FROM conversations")
    keys: dict[str, list[Key]] = {}
    for row in rows:
        keys.setdefault(row["day"][:7], []).append((row["provider"], row["conversation_id"]))
    for month in home.lake.months("clean/vectors"):
        target = staged.lake.path("clean/vectors", month)
        if target.exists() or month not in keys:
            continue
        try:
            known = home.lake.read("clean/vectors", [month], keys=keys[month])
        except LakeDamaged:
            continue  # they are made again
        _write(target, known)


def _write(target: Path, rows: pl.DataFrame) -> None:
    make_folder(target.parent)
    with replacing(target) as temporary:
        rows.write_parquet(temporary, compression="zstd", compression_level=3)
