"""Checks in Dagster: evaluated once a run over its range; a gate that closes stops the run before anything is published."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from palace_pipeline.checks import CHECKS, OF_FILES
from palace_pipeline.definitions import defs
from palace_pipeline.partitions import range_tags
from palace_pipeline.planner import Range
from palace_pipeline.resources import PalaceResource
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.receipts import compose
from palace_pipeline.transcripts.rows import message_rows
from tests.ingest.exports_for_tests import START, chat, export

DAY = date(2024, 5, 3)
ELSEWHERE = {"nothing_is_found_again", "nothing_is_found_in_the_index"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    days = [chat(f"c{n}", "why?", "because", start=START + n * 86_400 + 0.5) for n in range(3)]
    export(tmp_path / "home/inbox/a.json", *days)
    return Home(load_settings(tmp_path / "home"))


@pytest.fixture
def instance(tmp_path: Path):
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as made:
        yield made


def run(home: Home, instance: dg.DagsterInstance, job: str, span: Range | None = None) -> dg.ExecuteInProcessResult:
    return defs.resolve_job_def(job).execute_in_process(
        instance=instance,
        resources={"palace": PalaceResource(home=str(home.path))},
        tags={**(range_tags(span) if span else {}), "palace/receipt": "test"},
        raise_on_error=False,
    )


def receipt(home: Home) -> dict[str, Any]:
    with home.ledger() as ledger:
        return compose(ledger, "test")


def test_each_check_is_evaluated_once_for_a_range_of_days(home: Home, instance: dg.DagsterInstance) -> None:
    read = run(home, instance, "read_exports")
    assert {(e.asset_key.to_user_string(), e.check_name) for e in read.get_asset_check_evaluations()} == {
        (check.asset, check.name) for check in OF_FILES
    }
    built = run(home, instance, "build_days", Range(DAY, DAY + timedelta(days=2)))
    assert built.success
    found = [e for e in built.get_asset_check_evaluations() if e.check_name not in ELSEWHERE]
    assert sorted((e.asset_key.to_user_string(), e.check_name) for e in found) == sorted(
        (check.asset, check.name) for check in CHECKS
    )
    assert all(e.passed and e.partition is None for e in found)
    assert receipt(home)["checks"] == []
    assert receipt(home)["seconds"]["checks"] > 0
    for record in instance.all_logs(built.run_id):
        assert "because" not in str(record), record.dagster_event_type


def test_a_gate_that_closes_stops_the_run_before_anything_is_published(
    home: Home, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(home, instance, "read_exports").success

    def doubled(*given: Any) -> list[dict[str, Any]]:
        rows = message_rows(*given)
        return [*rows, {**rows[0], "seq": len(rows)}]

    monkeypatch.setattr("palace_pipeline.stages.normalize.message_rows", doubled)
    stopped = run(home, instance, "build_days", Range(DAY, DAY))
    assert not stopped.success
    closed = [e for e in stopped.get_asset_check_evaluations() if not e.passed]
    assert [e.check_name for e in closed] == ["no_message_is_doubled"]
    assert "chatgpt c0: 1 message(s) stand there twice" in (closed[0].description or "")
    assert not list(home.conversations.rglob("*.md"))
    assert not home.warehouse.exists()
    (failed,) = receipt(home)["checks"]
    assert failed["asset"] == "normalized_transcripts"
    assert "palace backfill --from 2024-05-03 --to 2024-05-03" in failed["what"]
    monkeypatch.undo()
    assert run(home, instance, "build_days", Range(DAY, DAY)).success
    assert len(list(home.conversations.rglob("*.md"))) == 1


def test_the_command_line_says_which_gate_closed_and_why(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from palace_pipeline import runner

    def without_roles(*given: Any) -> list[dict[str, Any]]:
        return [{**row, "role": "narrator"} for row in message_rows(*given)]

    with home.writing():
        runner.read_exports(home, [], "test")
        monkeypatch.setattr("palace_pipeline.stages.normalize.message_rows", without_roles)
        with pytest.raises(runner.RunFailed) as failure:
            runner.build_days(home, Range(DAY, DAY), "test")
    assert "normalized_transcripts, schema holds: lake/raw/messages, 2024-05-03, chatgpt c0: role is none of" in str(
        failure.value
    )


def test_a_check_that_only_warns_stops_nothing(
    home: Home, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(home, instance, "read_exports").success
    monkeypatch.setattr("palace_pipeline.checks.messages.FEW", 1)
    monkeypatch.setattr("palace_pipeline.checks.messages.TOO_LONG", 5)
    built = run(home, instance, "build_days", Range(DAY, DAY))
    assert built.success
    (warned,) = [e for e in built.get_asset_check_evaluations() if not e.passed]
    assert (warned.check_name, warned.severity) == ("messages_are_healthy", dg.AssetCheckSeverity.WARN)
    assert "| format | messages |" in str(warned.metadata["by format"].value)
    assert [check["severity"] for check in receipt(home)["checks"]] == ["warn"]
