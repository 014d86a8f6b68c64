"""The palace home: where everything of one archive lies, made at the first ingest and by nothing else."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

from palace_pipeline.settings import DEFAULT_TOML, Settings
from palace_pipeline.store.alive import marks_of
from palace_pipeline.store.files import Told, make_folder, remove_leftovers, sync_folder, write_bytes
from palace_pipeline.store.lake import Lake
from palace_pipeline.store.ledger import Ledger, LedgerDamaged
from palace_pipeline.store.lock import writer
from palace_pipeline.store.swap import finish_swaps
from palace_pipeline.store.vault import Vault
from palace_pipeline.store.versions import TooNew, note, refuse_newer

SCHEMA_VERSION = 2
"""2: the vault has a catalogue, the stores have versions."""
_FOLDERS = (
    *("inbox", "conversations", "chroma", "lexical", "lake/clean", "lake/raw", "vault", "quarantine"),
    *("receipts", "dagster"),
)
_DAGSTER_YAML = """\
# Written by Palace. One writer at a time, nothing sent anywhere.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 1
  pools:
    granularity: run
    default_limit: 1
run_monitoring:
  enabled: true
  free_slots_after_run_end_seconds: 60
sensors:
  use_threads: false
storage:
  custom:
    module: palace_pipeline.event_log
    class: HomeStorage
    config:
      base_dir:
        env: DAGSTER_HOME
"""
_OLD_DAGSTER_YAML = (
    """\
# Written by Palace. One writer at a time, nothing sent anywhere.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 1
  pools:
    granularity: run
    default_limit: 1
run_monitoring:
  enabled: true
  free_slots_after_run_end_seconds: 60
sensors:
  use_threads: false
""",
    """\
# Written by Palace. One writer at a time, nothing sent anywhere.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 1
run_monitoring:
  enabled: true
sensors:
  use_threads: false
""",
)
"""What earlier versions wrote: replaced as long as nobody has changed it."""
_WORKSPACE_YAML = """\
# Written by Palace: what `palace ui` loads.
load_from:
  - python_module:
      module_name: palace_pipeline.definitions
      location_name: palace_pipeline
"""


MADE_ON = date(2026, 11, 1)
"""No clock is right that says an earlier day."""


class ClockWrong(Told):
    """What is noted now would have a wrong day for ever; nothing was changed."""


class HomeTooNew(TooNew):
    """The home was written by a newer Palace; nothing was changed."""


class Home:
    """Paths and stores of one palace home. Making the object touches nothing."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.path = settings.home
        self.lake = Lake(self.path / "lake")
        self.ledger_path = self.path / "ledger.sqlite"

    @property
    def exists(self) -> bool:
        """True if there is an archive. Raises HomeTooNew, also for those who only read: its form is not known here."""
        return self.version() is not None or self.ledger_path.exists()

    @property
    def has_workspace(self) -> bool:
        """True if agents or people write sessions or memory here, be there an archive or not."""
        return any((self.path / name).is_dir() for name in ("sessions", "memory"))

    @property
    def chroma(self) -> Path:
        """The folder of the Chroma collection that is being kept up: while one of a new model is made, its folder beside
        `chroma`, which stays as it is for others until the new one is whole."""
        return self.chroma_next if self.chroma_next.is_dir() else self.path / "chroma"

    @property
    def chroma_next(self) -> Path:
        return self.path / "chroma-next"

    @property
    def conversations(self) -> Path:
        return self.path / "conversations"

    @property
    def receipts(self) -> Path:
        return self.path / "receipts"

    @property
    def quarantine(self) -> Path:
        return self.path / "quarantine"

    @property
    def dagster(self) -> Path:
        """DAGSTER_HOME of this archive."""
        return self.path / "dagster"

    @property
    def alive(self) -> Path:
        """Marks of the runs that are going on (`store.alive`)."""
        return marks_of(self.path)

    @property
    def warehouse(self) -> Path:
        return self.path / "palace.duckdb"

    def prepare(self, *, tidy: bool = True) -> None:
        """Make the home, or what is missing of it, bring an older one up to date, and (`tidy`) clear what a killed run left.

        Needs the write lock. Raises TooNew if a newer Palace wrote to it.
        """
        from palace_pipeline.store.upgrade import known_versions, upgrade

        marker = self.path / "schema_version"
        version = self.version()
        known = known_versions(SCHEMA_VERSION)
        refuse_newer(self.path, known)
        finish_swaps(self.path)
        for name in _FOLDERS:
            make_folder(self.path / name)
        for name in ("lake/raw", "vault"):
            (self.path / name).chmod(0o700)
        if not (self.path / "palace.toml").exists():
            write_bytes(self.path / "palace.toml", DEFAULT_TOML.encode())
        for name, text in (("dagster.yaml", _DAGSTER_YAML), ("workspace.yaml", _WORKSPACE_YAML)):
            file = self.dagster / name
            if not file.exists() or file.read_text(encoding="utf-8") in _OLD_DAGSTER_YAML:
                write_bytes(file, text.encode())
        self.key()
        upgrade(self, SCHEMA_VERSION if version is None else version)
        if version != SCHEMA_VERSION:
            write_bytes(marker, f"{SCHEMA_VERSION}\n".encode())
        note(self.path, known)
        # The others hold a file for every page and receipt: they are gone through only after a kill.
        for name in ("vault", "conversations", "lake", "receipts", "quarantine") if tidy else ("vault",):
            remove_leftovers(self.path / name)
        if tidy:
            self.lake.drop_shadowed()
            remove_leftovers(self.path, below=False)
            remove_leftovers(self.dagster, below=False)
            remove_leftovers(self.path / "lexical", below=False, prefix=".tmp")  # Tantivy's own
            for key in self.path.glob(".key-*"):
                key.unlink()

    def version(self) -> int | None:
        """The version of the home, None if it is not made yet, or the file that says it is lost.

        Raises HomeTooNew if this Palace does not know it.
        """
        marker = self.path / "schema_version"
        if not marker.exists() or not (said := marker.read_bytes().strip()).isdigit():
            return None
        version = int(said)
        if version > SCHEMA_VERSION:
            raise HomeTooNew.of(self.path, version, SCHEMA_VERSION)
        return version

    def key(self) -> bytes:
        """The home's HMAC key (32 bytes, made once); keyed hashes of one archive mean nothing in another."""
        path = self.path / ".key"
        if not path.exists():
            make_folder(self.path)
            temporary = path.with_name(f".key-{secrets.token_hex(4)}")
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(secrets.token_bytes(32))
                stream.flush()
                os.fsync(stream.fileno())
            try:
                os.link(temporary, path)  # unlike a rename it never replaces a key that is already there
            except FileExistsError:
                return path.read_bytes()
            finally:
                temporary.unlink()
            sync_folder(self.path)
        return path.read_bytes()

    @contextmanager
    def writing(self, *, wait_seconds: float | None = None) -> Generator[None]:
        """Hold the write lock; the home is made or tidied if need be."""
        if (today := datetime.now(UTC).date()) < MADE_ON:
            raise ClockWrong(
                f"the clock of this machine says {today}, a day before this Palace was made. Nothing was changed: what "
                "is read now would get wrong days. Set the clock, then run it again"
            )
        with writer(self.path, wait_seconds=wait_seconds) as held:
            self.prepare(tidy=held.untidy)
            held.untidy = False
            yield

    @contextmanager
    def ledger(self) -> Generator[Ledger]:
        """The ledger. Raises LedgerDamaged also where it is gone: a new one would be that of another archive."""
        if self._ledger_is_lost():
            raise LedgerDamaged.of(self.ledger_path, "is not there" if not self.ledger_path.exists() else "is empty")
        ledger = Ledger(self.ledger_path)
        try:
            yield ledger
        finally:
            ledger.close()

    def _ledger_is_lost(self) -> bool:
        # The ledger is always made before the vault. A log beside an empty file is one that is being made.
        made = self.ledger_path.exists() and (
            self.ledger_path.stat().st_size or self.ledger_path.with_name(f"{self.ledger_path.name}-wal").exists()
        )
        return not made and (self.path / "vault/vault.sqlite").exists()

    @contextmanager
    def vault(self) -> Generator[Vault]:
        vault = Vault(self.path / "vault")
        try:
            yield vault
        finally:
            vault.close()
