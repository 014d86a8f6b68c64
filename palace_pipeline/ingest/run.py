"""One look at the export folders: what is new or changed is read once, as a stream; everything is counted."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from palace_pipeline.exports import names
from palace_pipeline.exports.base import ElementReader, Member, Reader, Report, RowsReader, WholeReader
from palace_pipeline.exports.containers import DiskMember, unfold
from palace_pipeline.exports.databases import is_database
from palace_pipeline.exports.drift import cleaned
from palace_pipeline.exports.engine import Element, identify, note_drift, read_member, read_one
from palace_pipeline.exports.scan import Missing, Seen, is_unchanged, scan
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.ingest.clock import follow_clock
from palace_pipeline.ingest.file_rows import Outcome, leave_quarantine, note_file, quarantine
from palace_pipeline.ingest.gathered import Companions, File, not_there
from palace_pipeline.ingest.grown import continue_grown
from palace_pipeline.ingest.kept import NOTHING_KEPT, Bounded, Kept, VaultMember, elements_in, keep_whole, vault_members
from palace_pipeline.ingest.preview import Preview
from palace_pipeline.ingest.purged import PURGED, REMOVED, KnownFiles, Purged
from palace_pipeline.ingest.recipes import RECIPES, current_in
from palace_pipeline.ingest.rest import ATTEMPTS, CHANGING, Disturbed, hash_and_size, is_as_it_was
from palace_pipeline.ingest.session_names import ready_sessions
from palace_pipeline.ingest.sightings import Where, drop_contained_records, note, put_record_back, retire, settle_noted
from palace_pipeline.ingest.tally import LEFT_BY_LIMIT, Ingested, Tally
from palace_pipeline.ingest.torn import leave, why_left
from palace_pipeline.ingest.zones import localise
from palace_pipeline.model import CURRENT_PROVIDERS, Conversation, Skip, short_hash
from palace_pipeline.stages.progress import report as report_progress
from palace_pipeline.store import catalogue
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.vault import RecordTooLarge, Vault

__all__ = ["Ingested", "Run", "ingest"]


def ingest(
    home: Home,
    paths: Sequence[Path] | None = None,
    *,
    batch: str,
    limit: int | None = None,
    dry_run: bool = False,
    found: Sequence[Seen | Missing] | None = None,
    preview: Preview | None = None,
    known: KnownFiles | None = None,
) -> Ingested:
    """Read what is new or changed below `paths` (default: the configured folders). Needs the write lock.

    `limit`: read at most so many files. `dry_run`: the same counts, and nothing is kept. `found`: a scan that was made
    already, `known`: what the ledger said of files then (the lock was held since). `preview`: of a dry run, filled with
    what it understood. A bad file never ends the run: it is quarantined and counted.
    """
    started = time.perf_counter()
    if found is None:
        if not dry_run:
            ready_sessions(home)
        found = list(scan(paths if paths is not None else home.settings.folders, home.path))
    if dry_run:
        inbox = Missing(str((home.path / "inbox").absolute()))  # the run that follows will make it
        return _dry_run(home, [item for item in found if item != inbox], limit, preview)
    with home.ledger() as ledger, home.vault() as vault:
        run = Run(home, ledger, vault, limit)
        result = run.over(found, known)
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        if run.anything_read:
            ledger.set_meta("exports_read", batch)
        ledger.log_stage(batch, "raw_exports", finished, time.perf_counter() - started, result.as_counts())
        return result


def _dry_run(home: Home, found: Sequence[Seen | Missing], limit: int | None, preview: Preview | None) -> Ingested:
    with ExitStack() as open_ones:
        ledger = open_ones.enter_context(closing(Ledger.copy_of(home.path / "ledger.sqlite")))
        run = Run(home, ledger, None, limit, preview)
        if (home.path / "vault/vault.sqlite").exists():
            run.kept = open_ones.enter_context(closing(Vault(home.path / "vault", reading=True)))
        with ledger.transaction(keep=False):
            result = run.over(found)
            if preview is not None:
                preview.finish(ledger, run.tally)
            return result


class Run:
    """The state of one look: the ledger, the vault (None in a dry run) and the counts."""

    def __init__(
        self, home: Home, ledger: Ledger, vault: Vault | None, limit: int | None, preview: Preview | None = None
    ) -> None:
        self.preview = preview
        self.home, self.ledger, self.vault, self.limit = home, ledger, vault, limit
        self.kept = vault
        """Where members that were kept are read from; in a dry run too, which puts nothing into it."""
        self._is_current = current_in(home.settings)
        self.tally = Tally()
        self.unchanged: list[str] = []
        """Files that need no reading. They are counted all at once: each count goes through all skips that are known."""
        self.purged = Purged.of(home, ledger)
        self._roots: set[Path] | None = None
        vault_folder = home.path / "vault"
        self.scratch = vault_folder if vault_folder.is_dir() else None
        """Where a copy of a database may lie while it is read."""
        self._beside = Companions()
        self.anything_read = False
        """True once the ledger knows more of a file than before."""
        self.anew = False
        """True where known elements are parsed, too: their records may be gone (`read_again`)."""
        self.expected: set[str] | None = None
        """Elements that a member in the vault must give; what differs was read together with a file that is not there."""
        self.today: date = datetime.now(UTC).date()
        self.now = datetime.now(UTC).isoformat(timespec="seconds")

    def over(self, found: Sequence[Seen | Missing], known_files: KnownFiles | None = None) -> Ingested:
        known = known_files.rows if known_files is not None else self.ledger.known_files()
        read = 0
        for number, item in enumerate(found):
            path = self.purged.known_as(item.path)
            row = known.get(path)
            if isinstance(item, Missing):
                self.tally.file("skipped", [not_there(path, row)])
                continue
            self.tally.looked_at.add(path)
            if item.problem:
                self._refuse(item, row)
            elif row is not None and is_unchanged(item, row) and self._is_current(row):
                self.unchanged.append(path)
            elif self.limit is not None and read >= self.limit:
                self.tally.file("skipped", [Skip(LEFT_BY_LIMIT, path, True, unit="file")])
            else:
                read += 1
                self._read_at_rest(item, row)
            report_progress("reading", number + 1, len(found))
        self.tally.unchanged_files(self.ledger, self.unchanged)
        if self.limit is None and self.kept is not None:
            self._again_from_vault(self.tally.looked_at, known, self.kept)
        settle_noted(self.ledger, self.vault)
        if self.vault is not None:
            drop_contained_records(self.ledger, self.vault)
            follow_clock(self.ledger, self.vault, self.home.settings.start, self.today)
        return self.tally.result(self.ledger)

    def _refuse(self, item: Seen, row: Any) -> None:
        assert item.problem is not None
        item = self.purged.file_known_as(item)
        skip = Skip(item.problem or "", item.path, item.expected, unit="file")
        self.tally.file("skipped", [skip])
        if not item.expected and (row is None or row["status"] != "quarantined"):
            note_file(self.ledger, self.home, item, None, Outcome([skip]), self.now)
            self.anything_read = True

    # --- one file -----------------------------------------------------------------------------------------------------

    def _read_at_rest(self, seen: Seen, row: Any) -> None:
        for _ in range(ATTEMPTS):
            self.tally.begin()
            try:
                with self.ledger.transaction():
                    self._read(seen, row)
                    if self.vault is not None:
                        self.vault.commit()
                return
            except Disturbed:
                self.tally.undo()
                if self.vault is not None:
                    self.vault.roll_back()
        self.tally.file("skipped", [Skip(CHANGING, self.purged.known_as(seen.path), False, unit="file")])

    def _read(self, seen: Seen, row: Any) -> None:
        path = Path(seen.path)
        root = self._root_of(path, Path(seen.root))
        # With the folder's own name: README.md of one folder is not README.md of another.
        shown = f"{root.name}/{path.relative_to(root).as_posix()}" if root.name else path.relative_to(root).as_posix()
        shown = shown.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        member = DiskMember(root, path, shown, seen.size, seen.mtime_ns)
        seen = self.purged.file_known_as(seen)
        try:
            before = path.stat()
            own, size = hash_and_size(path)
            beside = self._beside.of(member, str(path))
            sha256 = short_hash(own, beside, length=64) if beside else own
        except (MemberError, OSError) as error:
            reason = str(error) if isinstance(error, MemberError) else f"cannot be read ({error.strerror})"
            skip = Skip(reason, seen.path, False, unit="file")
            self._note_file(seen, None, Outcome([skip]))
            self.tally.file("skipped", [skip])
            return
        if row is not None and row["sha256"] == sha256 and self._is_current(row):
            # Only touched: the same bytes under a new time.
            self.ledger.write(
                "UPDATE files SET size = ?, mtime_ns = ?, inode = ? WHERE path = ?",
                (seen.size, seen.mtime_ns, seen.inode, seen.path),
            )
            self.unchanged.append(seen.path)
            return
        file = File(seen.path, shown, self.purged.told, str(path))
        members = unfold(member, file.report_for, scratch=self.home.path / "vault" if self.vault else None)
        self._read_members(file, members, sha256)
        # A database is read as a copy that SQLite made; a dry run keeps nothing.
        if self.vault is not None and not is_as_it_was(path, before, own, size) and not is_database(member):
            raise Disturbed
        self._finish(seen, file, sha256, row)

    def _root_of(self, path: Path, given: Path) -> Path:
        """The export folder that a file belongs to, however it was reached: a configured one, else the first one known."""
        configured = [folder for folder in self.home.settings.folders if path.is_relative_to(folder.absolute())]
        if configured:
            return max(configured, key=lambda folder: len(folder.parts)).absolute()
        if self._roots is None:
            self._roots = {Path(row["root"]) for row in self.ledger.rows("SELECT DISTINCT root FROM files")}
        self._roots.add(given)
        return min((root for root in self._roots if path.is_relative_to(root)), key=lambda root: len(root.parts))

    def _read_members(self, file: File, members: Iterable[Member], sha256: str) -> None:
        parts = self.ledger.rows("SELECT * FROM file_elements WHERE path = ?", (file.path,))
        before = {part["element"] for part in parts}
        self.ledger.write("DELETE FROM file_elements WHERE path = ?", (file.path,))
        for member in members:
            report = file.report_for(member.path)
            identified = identify(member, report, self.scratch)
            try:
                if identified is None:
                    self._keep_unread(file, member, report)
                else:
                    reader, head = identified
                    file.formats[reader.format] = reader.provider
                    file.read_as[member.path] = reader.format
                    taken = file.taken
                    if reader.layout != "whole":
                        # Of a database its conversations are kept, each as a line, and never the database itself.
                        shape = "lines" if head.shape in ("jsonl", "sqlite") else "array"
                        if head.shape == "object" and head.wrapped is None:
                            shape = "array"
                        file.kept.append(Kept(self.purged.known_as(member.path), shape, 0, "", []))
                        found = elements_in(member, head, report, reader)
                        self._read_elements(file, member, reader, found, sha256, report)
                    else:
                        self._read_whole(file, member, reader, head, sha256, report)
                    if not file.left and note_drift(file.taken - taken, report):
                        file.nothing[reader.format] += 1
            except MemberError as error:
                _tell(report, str(error))
        if file.left:
            leave(self.ledger, file, parts)
        else:
            retire(self.ledger, before, self._current)
            continue_grown(self.ledger, file.path, before)

    def _current(self, format_name: str, recipe: str) -> bool:
        return recipe.partition("@")[0] == RECIPES.get(format_name)

    def _recipe(self, reader: Reader, path: str) -> str:
        """What an element's reading depends on: the reader, and the zone that the user set for naive times."""
        zone = self.home.settings.timezone_of(Path(path))
        return f"{reader.recipe}@{zone}" if zone else str(reader.recipe)

    def _read_elements(
        self,
        file: File,
        member: Member,
        reader: ElementReader | RowsReader,
        elements: Iterator[Element],
        sha256: str,
        report: Report,
    ) -> None:
        recipe = self._recipe(reader, file.place)
        # What lies beside a database is part of its rows already.
        beside = [] if reader.layout == "rows" else [found] if (found := self._beside.of(member, file.place)) else []
        # What the vault gives again keeps its name: a purge may have changed its bytes since.
        names_kept = member.names if isinstance(member, VaultMember) and self.expected is not None else {}
        for element in elements:
            if element.raw is None:
                read_one(element, member, reader, report)
                continue
            digest = hashlib.sha256(element.raw).hexdigest()
            name = names_kept.get(element.index) or short_hash(reader.format, recipe, digest, *beside, length=40)
            if isinstance(member, VaultMember) and element.raw == NOTHING_KEPT:
                report.skip(REMOVED, element.place, expected=True, unit="conversation")
            elif not self._link(file, member, element.index, name, report) and self._as_it_was(name):
                own = Report(report.path)
                found = read_one(element, member, reader, own)
                keeps = self.vault is not None and self.purged.keeps(element.raw, {one.key for one in found})
                pieces = self.vault.put_bytes(element.raw) if self.vault is not None and keeps else []
                index = element.index
                del element  # the conversation's record needs the memory
                self._store(file, member, index, name, reader, pieces, found, own, sha256)
                del found
                report.take(own)

    def _read_whole(
        self, file: File, member: Member, reader: WholeReader, head: Any, sha256: str, report: Report
    ) -> None:
        keeps = self.purged.keeps_member(member, lambda: read_member(member, reader, head, Report(report.path)))
        named = self.purged.known_as(member.path)
        kept = keep_whole(self.ledger, self.vault if keeps else None, file.path, member, "whole", named)
        if kept.cut is not None:
            _tell(report, kept.cut)
        if keeps:
            file.kept.append(kept)
        beside = [found] if (found := self._beside.of(member, file.place)) else []
        recipe = self._recipe(reader, file.place)
        name = short_hash(reader.format, recipe, member.path, kept.sha256, *beside, length=40)
        if not self._link(file, member, 0, name, report) and self._as_it_was(name):
            own = Report(report.path)
            bounded = Bounded(member, kept.size)
            self._store(file, member, 0, name, reader, [], read_member(bounded, reader, head, own), own, sha256)
            report.take(own)

    def _as_it_was(self, element: str) -> bool:
        return self.expected is None or element in self.expected

    def _link(self, file: File, member: Member, position: int, element: str, report: Report) -> bool:
        """True if the element is known: it is noted as part of the file, and nothing is parsed."""
        if self.anew:
            return False
        row = self.ledger.one("SELECT skips, unknown FROM elements WHERE element = ?", (element,))
        if row is None:
            return False
        shown = self.ledger.rows(
            "SELECT r.provider, r.conversation_id, r.record, s.messages, s.superseded FROM element_records r "
            "JOIN sightings s USING (provider, conversation_id, record) WHERE r.element = ?",
            (element,),
        )
        if any(seen["superseded"] and seen["provider"] in CURRENT_PROVIDERS for seen in shown):
            return False  # a note that says again what it said before: its newest state is this one
        self._part_of(file, member, position, element)
        for skip in orjson.loads(row["skips"]):
            report.add(Skip(**skip))
        report.unknown.update(orjson.loads(row["unknown"]))
        for seen in shown:
            file.taken += 1
            file.messages += seen["messages"]
            self.tally.seen((seen["provider"], seen["conversation_id"]), seen["record"])
        return True

    def _store(
        self,
        file: File,
        member: Member,
        position: int,
        element: str,
        reader: Reader,
        pieces: list[str],
        conversations: Iterable[Conversation],
        report: Report,
        sha256: str,
    ) -> None:
        inside = self.purged.clean_name(member.path)
        where = Where(file.path, inside, sha256, self.home.settings.start, self.today)
        zone = self.home.settings.timezone_of(Path(file.place))
        for conversation in conversations:
            named = conversation.key
            conversation = self.purged.clean(conversation)
            if mark := self.purged.hides(named) or self.purged.hides(conversation.key):
                report.skip(PURGED, mark, expected=True, unit="conversation")
                continue
            localise(conversation, zone)
            if conversation.damaged and (reason := why_left(self.ledger, conversation)) is not None:
                report.skip(reason, expected=False, unit="conversation")
                if isinstance(member, DiskMember):  # a page by itself; of a ZIP the others go on
                    file.left = True
                    return
                continue
            try:
                news = note(self.ledger, self.vault, conversation, where, later=not self.anew)
            except RecordTooLarge:
                reason = "conversation of more than a gigabyte (compressed): too large to be kept"
                report.skip(reason, expected=False, unit="conversation")
                continue
            if self.anew and self.vault is not None:
                put_record_back(self.ledger, self.vault, conversation, news.record)
            self.ledger.write(
                "INSERT OR IGNORE INTO element_records VALUES (?, ?, ?, ?)", (element, *conversation.key, news.record)
            )
            file.taken += 1
            file.messages += news.messages
            self.tally.news(conversation.key, news)
            if self.preview is not None:
                self.preview.saw(reader.format, conversation)
        self.ledger.write(
            "INSERT OR REPLACE INTO elements VALUES (?, ?, ?, ?, ?, ?)",
            (
                element,
                reader.format,
                self._recipe(reader, file.place),
                orjson.dumps(pieces),
                orjson.dumps(self.purged.told(report.skips)),
                orjson.dumps(cleaned(report.unknown)),
            ),
        )
        self._part_of(file, member, position, element)

    def _part_of(self, file: File, member: Member, position: int, element: str) -> None:
        self.ledger.write(
            "INSERT OR REPLACE INTO file_elements VALUES (?, ?, ?, ?)",
            (file.path, self.purged.known_as(member.path), position, element),
        )

    def _keep_unread(self, file: File, member: Member, report: Report) -> None:
        """Bytes that no reader takes: assets, side files and damage are kept, account data is not.

        Nor is a database, whole or in pieces: beside chats most hold sign-in tokens, and nobody can say where.
        """
        if names.is_sensitive(member.path) or names.is_database_part(member.path) or is_database(member):
            return
        damaged = any(not skip.expected for skip in report.skips)
        if not self.purged.keeps_member(member, damaged=damaged):
            return
        use = "damaged" if damaged else "asset" if names.is_asset(member.path) else "side"
        named = self.purged.known_as(member.path)
        file.kept.append(keep_whole(self.ledger, self.vault, file.path, member, use, named))

    # --- the file's row -----------------------------------------------------------------------------------------------

    def _finish(self, seen: Seen, file: File, sha256: str, row: Any) -> None:
        if not file.left:  # else the vault keeps what it had as well
            self.ledger.write("DELETE FROM members WHERE path = ?", (file.path,))
            self.ledger.write_many(
                "INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?, ?, ?)",
                ((file.path, k.member, k.use, k.size, k.sha256, orjson.dumps(k.pieces)) for k in file.kept),
            )
        outcome = _outcome(file)
        self._note_file(seen, sha256, outcome)
        if outcome.status in ("quarantined", "skipped"):
            self.tally.file("skipped", outcome.skips)
        else:
            self.tally.file("new" if row is None else "updated", outcome.skips)

    def _note_file(self, seen: Seen, sha256: str | None, outcome: Outcome) -> None:
        note_file(self.ledger, self.home, seen, sha256, outcome, self.now)
        self.anything_read = True
        if self.vault is None:
            return
        catalogue.note_file(self.ledger, self.vault, seen.path)
        if outcome.status == "quarantined":
            quarantine(self.ledger, self.home, seen.path, sha256, outcome.bad, self.now)
        else:
            leave_quarantine(self.home, seen.path)

    # --- readers that changed -----------------------------------------------------------------------------------------

    def _again_from_vault(self, looked_at: set[str], known: dict[str, Any], kept: Vault) -> None:
        """Files that are no longer where they were, and whose reader has changed since: read from the vault."""
        for path, row in known.items():
            if not (path in looked_at or self._is_current(row) or Path(path).exists()):
                self.from_vault(path, row, kept)

    def from_vault(self, path: str, row: Any, kept: Vault) -> None:
        """Read the members of a file out of the vault. What was not taken of it is told anew if a reader has changed."""
        members: list[VaultMember] = vault_members(self.ledger, kept, path)
        file = File(path, members[0].path.split("!/")[0] if members else path, self.purged.told, path)
        with self.ledger.transaction():
            before = self.ledger.rows("SELECT * FROM file_elements WHERE path = ?", (path,))
            self.expected = {part["element"] for part in before} if self._is_current(row) else None
            self._read_members(file, chain(members), row["sha256"] or "")
            if self.expected is not None:
                self.ledger.write_many("INSERT OR IGNORE INTO file_elements VALUES (?, ?, ?, ?)", map(tuple, before))
                self.expected = None
            else:
                was = Seen(path, row["root"], row["size"], row["mtime_ns"], row["mtime_ns"], row["inode"])
                self._note_file(was, row["sha256"], _outcome(file, self._of_other_members(file)))
            if self.vault is not None:
                self.vault.commit()

    def from_disk(self, seen: Seen) -> None:
        """Read a file whose bytes in the vault are lost, as if it were new."""
        self.ledger.write("DELETE FROM members WHERE path = ?", (seen.path,))
        self._read_at_rest(seen, None)

    def _of_other_members(self, file: File) -> list[Skip]:
        """What was not taken of members that are not read again (pictures, side files): it stays as it was told."""
        again = tuple(report.path for report in file.reports.values())
        rows = self.ledger.rows("SELECT place, reason, expected, count, unit FROM skips WHERE path = ?", (file.path,))
        return [
            Skip(row["reason"], row["place"], bool(row["expected"]), row["count"], row["unit"])
            for row in rows
            if not row["place"].startswith(again)
        ]


def _outcome(file: File, more: Sequence[Skip] = ()) -> Outcome:
    return Outcome([*file.skips(), *more], file.formats, file.taken, file.messages, file.unknown())


def _tell(report: Report, reason: str) -> None:
    """Count a file that cannot be read (to its end), once: it is opened more than once."""
    if all(skip.reason != reason for skip in report.skips):
        report.skip(reason, expected=False, unit="file")
