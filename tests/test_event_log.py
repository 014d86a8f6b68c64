"""Dagster's own storage and the quick one leave the same databases."""

import atexit
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

DAYS = dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-03-01")
QUICK = {"storage": {"custom": {"module": "palace_pipeline.event_log", "class": "HomeStorage"}}}


def of_days(name: str, *deps: dg.AssetsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        name=name,
        deps=deps,
        partitions_def=DAYS,
        backfill_policy=dg.BackfillPolicy.single_run(),
        check_specs=[dg.AssetCheckSpec("fine", asset=name)],
    )
    def made(context: dg.AssetExecutionContext):
        for day in context.partition_keys[::3]:
            context.add_asset_metadata({"rows": len(day)}, partition_key=day)
        return dg.MaterializeResult(metadata={"all": 1}, check_results=[dg.AssetCheckResult(passed=name != "second")])

    return made


FIRST = of_days("first")
SECOND = of_days("second", FIRST)


@dg.asset
def fails() -> None:
    raise RuntimeError("meant to")


def home_of(folder: Path, quick: bool, monkeypatch: pytest.MonkeyPatch, batch: str) -> Path:
    """A DAGSTER_HOME in which a range, one day of it again, and a run that fails have been executed."""
    folder.mkdir()
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", batch)
    overrides: Any = None
    if quick:
        config = {"base_dir": str(folder)}
        overrides = {"storage": {"custom": {**QUICK["storage"]["custom"], "config": config}}}
    ref = InstanceRef.from_dir(str(folder), overrides=overrides)
    with dg.DagsterInstance.from_ref(ref) as instance:
        for first, last in (("2024-01-03", "2024-02-20"), ("2024-01-05", "2024-01-05")):
            tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
            assert dg.materialize([FIRST, SECOND], instance=instance, tags=tags).success
        assert not dg.materialize([fails], instance=instance, raise_on_error=False).success
    return folder


def content(folder: Path) -> dict[str, Any]:
    """What the files say, but for times, and for the names of runs."""
    runs: dict[str, int] = {}
    out: dict[str, Any] = {}
    index = folder / "history/runs/index.db"
    with sqlite3.connect(index) as db:
        for (run,) in db.execute("SELECT run_id FROM event_logs ORDER BY id"):
            runs.setdefault(run, len(runs))
        wanted = {
            "event_logs": "run_id, dagster_event_type, asset_key, partition, step_key",
            "asset_keys": "last_run_id, asset_key, json_extract(last_materialization, '$.storage_id'), "
            "json_extract(last_materialization, '$.event_log_entry.dagster_event.event_specific_data.materialization"
            ".partition'), wipe_timestamp, last_materialization_timestamp IS NULL",
            "asset_event_tags": "asset_key, key, value IS NULL, event_id",
            "asset_check_executions": "run_id, asset_key, check_name, partition, execution_status, "
            "evaluation_event_storage_id, materialization_event_storage_id",
        }
        for table, columns in wanted.items():
            rows = db.execute(
                f"SELECT {columns} FROM {table} ORDER BY {'asset_key' if table == 'asset_keys' else 'id'}"
            )
            out[table] = [tuple(runs.get(value, value) for value in row) for row in rows]
    # Dagster plans a check on every day of a range, whose rows nobody ever changes; ours once.
    evaluated = [row for row in out["asset_check_executions"] if row[4] != "PLANNED"]
    out["asset_check_executions"] = sorted(evaluated, key=repr)
    for run, number in runs.items():
        file = index.with_name(f"{run}.db")
        if file.exists():
            with sqlite3.connect(file) as db:
                rows = db.execute(
                    "SELECT dagster_event_type, asset_key, partition, step_key FROM event_logs ORDER BY id"
                )
                out[f"run {number}"] = rows.fetchall()
    return out


@pytest.mark.parametrize("batch", ["0", "7", "2000"])
def test_the_quick_log_says_what_dagsters_own_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: str) -> None:
    own = content(home_of(tmp_path / "own", False, monkeypatch, "0"))
    quick = content(home_of(tmp_path / "quick", True, monkeypatch, batch))
    assert len(own["event_logs"]) > 200
    assert quick == own


def test_a_check_of_a_range_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home_of(tmp_path / "quick", True, monkeypatch, "2000")
    with sqlite3.connect(folder / "history/runs/index.db") as db:
        rows = db.execute("SELECT asset_key, partition, execution_status FROM asset_check_executions").fetchall()
    assert sorted(rows) == [
        *2 * [('["first"]', None, "SUCCEEDED")],
        *2 * [('["second"]', None, "FAILED")],
    ]
    with dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(folder))) as instance:
        key = dg.AssetCheckKey(dg.AssetKey("second"), "fine")
        (last,) = instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
        assert last.status == AssetCheckExecutionRecordStatus.FAILED


def test_dagsters_own_storage_goes_on_with_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home_of(tmp_path / "quick", True, monkeypatch, "2000")
    with dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(folder))) as instance:
        assert len(instance.get_materialized_partitions(dg.AssetKey("second"))) == 49
        event = instance.get_latest_materialization_event(dg.AssetKey("first"))
        assert event is not None
        assert event.asset_materialization is not None
        assert event.asset_materialization.partition == "2024-01-05"
        assert dg.materialize([FIRST, SECOND], instance=instance, partition_key="2024-02-21").success


def test_the_slots_of_a_pool_can_be_asked_for_first_of_all(tmp_path: Path) -> None:
    """Dagster looks whether a table is there while it holds the connection: that must not wait for itself."""
    from palace_pipeline.event_log import QuickEventLog

    log, found = QuickEventLog(str(tmp_path)), list[int]()
    log.set_concurrency_slots("pool", 1)
    fresh = QuickEventLog(str(tmp_path))
    asking = threading.Thread(target=lambda: found.append(fresh.get_concurrency_info("pool").slot_count), daemon=True)
    asking.start()
    asking.join(60)
    assert found == [1]


def opened(folder: Path) -> dg.DagsterInstance:
    custom = {**QUICK["storage"]["custom"], "config": {"base_dir": str(folder)}}
    return dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(folder), overrides={"storage": {"custom": custom}}))


def asked(folder: Path) -> int:
    """Open the storage as a tick of a sensor does; returns how many runs it has."""
    with opened(folder) as instance:
        instance.get_latest_materialization_event(dg.AssetKey("first"))
        return len(instance.get_runs())


def test_opening_the_storage_again_and_again_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "dagster"
    folder.mkdir()

    def exits() -> int:
        return atexit._ncallbacks()

    assert asked(folder) == 0
    before = exits()
    assert [asked(folder) for _ in range(5)] == [0] * 5
    assert exits() == before  # where the look at the versions of the databases leaves objects


def test_a_storage_that_was_deleted_while_the_process_goes_on_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "dagster"
    folder.mkdir()
    job = dg.Definitions(assets=[fails]).resolve_implicit_global_asset_job_def()
    with opened(folder) as instance:
        instance.create_run_for_job(job)
    assert asked(folder) == 1
    shutil.rmtree(folder / "history")
    assert [asked(folder), asked(folder)] == [0, 0]
    with opened(folder) as instance:
        instance.create_run_for_job(job)
    assert asked(folder) == 1
