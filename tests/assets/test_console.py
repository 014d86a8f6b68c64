"""What a run says on the terminal of `palace ui`: begin, end, what failed; nothing else, and no stack."""

from __future__ import annotations

import dagster as dg
import pytest

from palace_pipeline.console import LACKING, TOLD, console
from palace_pipeline.definitions import defs
from palace_pipeline.reasons import REASON_TAG


@dg.asset
def good() -> None:
    """Ends well."""


@dg.asset(check_specs=[dg.AssetCheckSpec("holds", asset="checked")])
def checked() -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Ends well, and its check does not."""
    return dg.MaterializeResult(check_results=[dg.AssetCheckResult(passed=False, description="two rows\nmore")])


@dg.asset
def bad() -> None:
    """Fails."""
    raise ValueError("the chat said: because")


@dg.asset
def lacking() -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Has not taken all there was."""
    return dg.MaterializeResult(metadata={LACKING: "1 of 3 files"})


@dg.asset
def whole() -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Has."""
    return dg.MaterializeResult(metadata={LACKING: "nothing"})


@dg.asset
def told() -> None:
    """Fails, and says why for people."""
    raise dg.Failure("the disk is full: x/y\nsecond line")


def _said(asset: dg.AssetsDefinition, capsys: pytest.CaptureFixture[str], level: str | None = None) -> list[str]:
    """Lines of one run, without time and the id of the run."""
    job = dg.Definitions(
        assets=[asset], jobs=[dg.define_asset_job("work", [asset])], loggers={"console": console}
    ).resolve_job_def("work")
    config = {"loggers": {"console": {"config": {"log_level": level}}}} if level else TOLD
    job.execute_in_process(tags={REASON_TAG: "2 new"}, raise_on_error=False, run_config=config)
    out, err = capsys.readouterr()
    assert out == ""
    return [f"{line[21:25]}{line[34:]}" for line in err.splitlines()]


def test_a_run_says_when_it_begins_and_why_and_when_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(good, capsys) == ["work started: 2 new", "work done"]


def test_what_fails_is_said_in_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(checked, capsys) == ["work started: 2 new", "work: check holds failed: two rows", "work done"]
    assert _said(told, capsys) == ["work started: 2 new", "work: told failed: the disk is full: x/y", "work failed"]


def test_an_error_that_is_not_ours_quotes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(bad, capsys) == ["work started: 2 new", "work: bad failed: ValueError", "work failed"]


def test_what_was_not_taken_is_said_and_only_that(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(lacking, capsys) == [
        "work started: 2 new",
        "work: not taken, though it should have been: 1 of 3 files (palace status names it)",
        "work done",
    ]
    assert _said(whole, capsys) == ["work started: 2 new", "work done"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, dg.DagsterExecutionInterruptedError])
def test_a_run_that_is_told_to_end_has_not_failed(
    interrupt: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    @dg.asset
    def cut() -> None:
        raise interrupt

    assert _said(cut, capsys) == [
        "work started: 2 new",
        "work stopped; what it had finished is kept, and the next run goes on from there",
    ]


def test_commands_run_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(bad, capsys, "CRITICAL") == []


def test_it_is_the_logger_of_the_jobs() -> None:
    assert defs.resolve_job_def("build_days").loggers == {"console": console}
