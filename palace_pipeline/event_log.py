"""Dagster's own databases, written at the pace of a machine: the same files in the same form as Dagster's SQLite storage.

Dagster opens a database anew for each event, compiles its statements again, waits for the disk, and does all of it twice
(in the run's own file and in the index of all runs): 30 ms of CPU for each of the two events that an asset has on a day.
Here a file stays open, events of a range are written in one transaction, and nobody waits for the disk, since the event
log is no part of the archive: after a power cut its last events may be missing, and the next run goes by the ledger.

`dagster.yaml` names `HomeStorage`. A Dagster without Palace can be given the same folder as `storage: sqlite`.
"""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import sqlalchemy as db
from dagster import _check as check
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.events import ASSET_CHECK_EVENTS, ASSET_EVENTS
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable, SqlEventLogStorageTable
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.runs.sqlite import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS, create_db_conn_string
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData, serialize_value
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool, StaticPool

_OPEN_RUNS = 4
"""Files of runs that stay open, beside the index: the webserver looks at many runs one after another."""


_known: dict[str, int] = {}
"""Address of a database -> inode of the file that this process has looked at: made, and of this version."""


def _inode(address: str) -> int:
    try:
        return Path(str(db.make_url(address).database)).stat().st_ino
    except OSError:
        return 0


def _is_known(address: str) -> bool:
    """Whether the file is the one that was looked at; it may have been deleted, or another home be in its place."""
    return address in _known and _known[address] == _inode(address) != 0


def _note_known(address: str) -> None:
    _known[address] = _inode(address)


class _OpenFiles:
    """Engines of the files in use, each with one connection; the index stays, of runs the last few."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.engines: OrderedDict[str, Engine] = OrderedDict()

    def of(self, shard: str, address: str) -> Engine:
        if self.owner != os.getpid():  # a fork must not share SQLite's connections, nor close its parent's
            self.owner, self.engines = os.getpid(), OrderedDict()
        if shard not in self.engines:
            self.engines[shard] = _engine(address)
            runs = [name for name in self.engines if name != INDEX_SHARD_NAME]
            for name in runs[:-_OPEN_RUNS]:
                self.engines.pop(name).dispose()
        self.engines.move_to_end(shard)
        return self.engines[shard]

    def close(self) -> None:
        while self.engines:
            self.engines.popitem()[1].dispose()


class QuickEventLog(SqliteEventLogStorage):
    """Dagster's event log in SQLite files that stay open, several events at a time."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._open = _OpenFiles()
        weakref.finalize(self, self._open.close)
        super().__init__(base_dir, inst_data)

    @contextmanager
    def _connect(self, shard: str) -> Generator[Connection]:
        with self._db_lock:
            address = self.conn_string_for_shard(shard)
            engine = self._open.of(shard, address)
            if shard not in self._initialized_dbs:
                if not _is_known(address):
                    self._initdb(engine)
                    if shard == INDEX_SHARD_NAME:
                        _note_known(address)
                self._initialized_dbs.add(shard)
            with engine.connect() as connection, connection.begin():
                yield connection

    @cached_property
    def _tables(self) -> frozenset[str]:
        # A connection of its own: Dagster asks in the middle of other questions (that of a pool's slots), when the one
        # that stays open is taken and its lock is held.
        address = self.conn_string_for_shard(INDEX_SHARD_NAME)
        engine = db.create_engine(address, poolclass=NullPool, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS})
        with engine.connect() as connection:
            return frozenset(db.inspect(connection).get_table_names())

    def has_table(self, table_name: str) -> bool:
        return table_name in self._tables

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Store events of one run, in order, as `store_event` would one by one; for the kinds that Dagster batches.

        What the index says of an asset as a whole (its last materialisation) is written once, from its last events.
        """
        rows = [self._event_to_row(event) for event in events]
        for run_id in dict.fromkeys(event.run_id for event in events):
            with self.run_connection(run_id) as connection:
                _insert(connection, [row for row in rows if row["run_id"] == run_id])
        known = [(event, row) for event, row in zip(events, rows, strict=True) if event.dagster_event_type in _INDEXED]
        if not known:
            return
        with self.index_transaction() as connection:
            ids = _insert(connection, [row for _, row in known])
            of_assets = [
                (event, number)
                for (event, _), number in zip(known, ids, strict=True)
                if event.dagster_event_type in ASSET_EVENTS
            ]
            tagged = [pair for pair in of_assets if self._tags_for_asset_event(pair[0])]
            self._store_asset_event_tags(connection, [event for event, _ in tagged], [number for _, number in tagged])
            last = {(_asset(event), event.dagster_event_type): (event, number) for event, number in of_assets}
            for event, number in sorted(last.values(), key=lambda pair: pair[1]):
                self._store_asset_event(connection, event, number)
        for (event, _), number in zip(known, ids, strict=True):
            if event.dagster_event_type in ASSET_CHECK_EVENTS:
                self.store_asset_check_event(event, number)

    def _store_asset_check_evaluation_planned(self, event: EventLogEntry, event_id: int | None) -> None:
        """Once, not for each day of the range: a check is evaluated once for all of them, so that a row for a day would
        stay "planned" for ever (14 checks of 2,190 days: 43 MB a run)."""
        planned = check.inst(check.not_none(event.dagster_event).event_specific_data, AssetCheckEvaluationPlanned)
        with self.index_connection() as connection:
            connection.execute(
                AssetCheckExecutionsTable.insert().values(
                    asset_key=planned.asset_key.to_string(),
                    check_name=planned.check_name,
                    run_id=event.run_id,
                    execution_status=AssetCheckExecutionRecordStatus.PLANNED.value,
                    evaluation_event=serialize_value(event),
                    evaluation_event_timestamp=self._event_insert_timestamp(event),
                    evaluation_event_storage_id=event_id,
                )
            )

    def dispose(self) -> None:
        self._open.close()
        super().dispose()


_INDEXED = ASSET_EVENTS | ASSET_CHECK_EVENTS


def _asset(event: EventLogEntry) -> str:
    return check.not_none(check.not_none(event.dagster_event).asset_key).to_string()


def _insert(connection: Connection, rows: Sequence[dict[str, Any]]) -> list[int]:
    """Add rows to the table of events; returns their ids. Nobody else can write in between."""
    connection.execute(SqlEventLogStorageTable.insert(), list(rows))
    last = connection.execute(db.select(db.func.max(SqlEventLogStorageTable.c.id))).scalar_one()
    return list(range(last - len(rows) + 1, last + 1))


def _engine(address: str) -> Engine:
    engine = db.create_engine(
        address,
        poolclass=StaticPool,
        connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
    )

    with engine.connect() as connection:  # the only one that this engine ever makes
        connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
    return engine


class HomeStorage(DagsterSqliteStorage):
    """Dagster's storage in a folder (`base_dir`: DAGSTER_HOME), with the event log above."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        runs = create_db_conn_string(str(Path(base_dir, "history")), "runs")
        schedules = create_db_conn_string(str(Path(base_dir, "schedules")), "schedules")
        if _is_known(runs) and _is_known(schedules):
            # What Dagster's own constructor does, but for its look at the versions of the databases. Every tick of a
            # sensor opens them, and each look costs 20 ms of CPU and leaves objects behind for the life of the process.
            self.base_dir, self._inst_data = base_dir, inst_data
            self._run_storage = SqliteRunStorage(runs)
            self._schedule_storage = SqliteScheduleStorage(schedules)
            DagsterStorage.__init__(self)
        else:
            super().__init__(base_dir, inst_data)
            _note_known(runs)
            _note_known(schedules)
        self._event_log_storage = QuickEventLog(str(Path(base_dir, "history", "runs")))

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Any) -> HomeStorage:
        return cls.from_local(inst_data=inst_data, **config_value)
