"""The definitions as Dagster sees them: every asset, job, sensor and check, and what a stranger is told about them."""

import time
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

import assets
import sensors
from palace_pipeline.definitions import defs
from palace_pipeline.metadata import DESCRIPTIONS, TABLES, lineage, table_schema
from palace_pipeline.model import LAKE
from palace_pipeline.partitions import DAYS, range_tags
from palace_pipeline.planner import Range
from palace_pipeline.resources import PalaceResource
from sensors.days import planned_days
from sensors.exports import export_folders
from tests.ingest.exports_for_tests import chat, export

DAY = date(2024, 5, 3)
ROOT = Path(__file__).parents[2]


def test_the_graph_is_the_documented_one() -> None:
    graph = defs.resolve_asset_graph()
    parents = {
        key.to_user_string(): sorted(p.to_user_string() for p in graph.get(key).parent_keys)
        for key in graph.get_all_asset_keys()
    }
    assert parents == {
        "raw_exports": [],
        "normalized_transcripts": ["raw_exports"],
        "redacted_transcripts": ["normalized_transcripts"],
        "redacted_chunks": ["redacted_transcripts"],
        "drawers": ["redacted_chunks"],
        "conversation_pages": ["drawers", "redacted_transcripts"],
        "drawer_embeddings": ["conversation_pages", "drawers"],
        "palace_tables": ["conversation_pages", "drawer_embeddings"],
        "palace_stats": ["palace_tables"],
    }


def test_jobs_sensors_and_checks() -> None:
    names = {job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__")}
    assert names == {"read_exports", "build_days", "refresh_stats", "look_for_gaps"}
    assert {s.name for s in defs.sensors or []} == {"export_folders", "planned_days", "gaps", "run_failures"}
    checks = {key.name for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {
        *("every_file_is_accounted_for", "sources_are_fresh", "schema_holds", "no_message_is_doubled"),
        *("times_are_possible", "messages_are_healthy", "every_word_is_in_one_chunk", "pages_read_back"),
        *(
            "notes_list_every_page",
            "index_holds_every_drawer",
            "counts_add_up",
            "nothing_is_found_again",
            "nothing_is_found_in_the_index",
        ),
    }


def test_every_asset_explains_itself_and_all_daily_ones_share_one_calendar() -> None:
    for spec in defs.resolve_all_asset_specs():
        name = spec.key.to_user_string()
        assert spec.description, name
        assert len(spec.description) > 60, name
        assert spec.kinds, name
        assert spec.owners, name
        assert spec.group_name in {"ingest", "transcripts", "palace", "tables"}
        assert spec.partitions_def in (None, DAYS), name
    daily = [s.key.to_user_string() for s in defs.resolve_all_asset_specs() if s.partitions_def is not None]
    assert len(daily) == 7


def test_every_column_has_a_description_and_lineage_names_real_columns() -> None:
    for schema in LAKE.values():
        assert set(schema) <= set(DESCRIPTIONS)
    for schema in TABLES.values():
        assert [column.name for column in table_schema(schema).columns] == list(schema)
    found = lineage(TABLES["redacted_chunks"], {"redacted_transcripts": TABLES["redacted_transcripts"]})
    assert set(found.deps_by_column) >= {"day", "provider", "conversation_id", "text"}
    assert "tokens" not in found.deps_by_column


def test_the_generic_package_names_are_this_projects() -> None:
    # `assets` and `sensors` are names that another folder on the path may carry.
    assert Path(assets.__file__ or "").is_relative_to(ROOT)
    assert Path(sensors.__file__ or "").is_relative_to(ROOT)


def test_partitions_reach_from_the_start_to_today() -> None:
    keys = DAYS.get_partition_keys()
    assert keys[0] == "2010-01-01"
    assert keys[-1] == time.strftime("%Y-%m-%d", time.gmtime())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def instance(tmp_path: Path):
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as made:
        yield made


def tick(sensor: dg.SensorDefinition, instance: dg.DagsterInstance, home: Path) -> dg.SensorResult | dg.SkipReason:
    with dg.build_sensor_context(instance=instance, resources={"palace": PalaceResource(home=str(home))}) as context:
        found = sensor(context)
    assert isinstance(found, dg.SensorResult | dg.SkipReason)
    return found


def test_a_dropped_file_leads_through_both_sensors_to_a_built_day(
    home: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(tick(export_folders, instance, home), dg.SkipReason)  # no folder yet: a reason, no error
    export(home / "inbox/a.json", chat("a", "why?", "because"))
    assert "still being written" in str(tick(export_folders, instance, home))
    monkeypatch.setattr("palace_pipeline.exports.scan.SETTLE_SECONDS", -1.0)
    asked = tick(export_folders, instance, home)
    assert isinstance(asked, dg.SensorResult)
    assert len(asked.run_requests or []) == 1
    resources = {"palace": PalaceResource(home=str(home))}
    read = defs.resolve_job_def("read_exports").execute_in_process(instance=instance, resources=resources)
    assert read.success
    assert "nothing new" in str(tick(export_folders, instance, home))
    planned = tick(planned_days, instance, home)
    assert isinstance(planned, dg.SensorResult)
    (request,) = planned.run_requests or []
    assert request.tags["dagster/asset_partition_range_start"] == "2024-05-03"
    built = defs.resolve_job_def("build_days").execute_in_process(
        instance=instance, resources=resources, tags=request.tags
    )
    assert built.success
    assert "up to date" in str(tick(planned_days, instance, home))
    assert len(list((home / "conversations").rglob("*.md"))) == 1
    _nothing_said(instance)


def _nothing_said(instance: dg.DagsterInstance) -> None:
    """Dagster's events hold counts, schemas and names, never what was said."""
    for run in instance.get_runs():
        for record in instance.all_logs(run.run_id):
            assert "because" not in str(record), record.dagster_event_type


def test_a_failing_step_tells_its_place_and_not_its_data(
    home: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(home / "inbox/a.json", chat("a", "why?", "because"))
    resources = {"palace": PalaceResource(home=str(home))}
    assert defs.resolve_job_def("read_exports").execute_in_process(instance=instance, resources=resources).success

    def broken(*_: object) -> None:
        raise ValueError("the chat said: because")

    monkeypatch.setattr("palace_pipeline.stages.normalize.merge", broken)
    run = defs.resolve_job_def("build_days").execute_in_process(
        instance=instance,
        resources=resources,
        tags=range_tags(Range(DAY, DAY)),
        raise_on_error=False,
    )
    assert not run.success
    (failed,) = [event for event in run.all_events if event.is_step_failure]
    told = failed.step_failure_data.user_failure_data
    assert told is not None
    assert "ValueError at " in (told.description or "")
    _nothing_said(instance)
