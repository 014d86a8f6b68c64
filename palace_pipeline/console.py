"""What runs say on the terminal of `palace ui`: a line when one begins and why, one when it ends, and what went wrong.

Dagster's own logger prints each of some hundred events of a run there, and the stack of an error; the UI has all of that.
"""

from __future__ import annotations

import logging
import sys

import dagster as dg
from dagster._core.events import RunFailureReason

from palace_pipeline.reasons import REASON_TAG

_SAYS = {
    dg.DagsterEventType.RUN_START: "started",
    dg.DagsterEventType.RUN_SUCCESS: "done",
    dg.DagsterEventType.RUN_CANCELED: "stopped",
    dg.DagsterEventType.RUN_FAILURE: "failed",
}


LACKING = "not taken that should have been"
"""Metadata of what was read: how much was not taken, in words, or `nothing`."""
_INTERRUPTS = ("KeyboardInterrupt", "DagsterExecutionInterruptedError")
_CUT_OFF = "stopped; what it had finished is kept, and the next run goes on from there"

TOLD = {"loggers": {"console": {"config": {"log_level": "DEBUG"}}}}
"""Run configuration of whatever is not started by a command: without a logger's name Dagster takes its own."""


class Lines(logging.Handler):
    """Prints the lines to stderr, with the time of this machine's zone."""

    def emit(self, record: logging.LogRecord) -> None:
        if (line := line_of(record)) is not None:
            time = logging.Formatter().formatTime(record, "%Y-%m-%d %H:%M:%S")
            print(f"{time}  {line}", file=sys.stderr, flush=True)


def line_of(record: logging.LogRecord) -> str | None:
    """What is said of one record, None if nothing is."""
    meta = getattr(record, "dagster_meta", None)
    if meta is None:
        return record.getMessage()
    run = f"{meta['job_name']} {(meta['run_id'] or '')[:8]}"
    event: dg.DagsterEvent | None = meta["dagster_event"]
    if event is None:
        return f"{run}: {meta['orig_message']}"
    if event.event_type == dg.DagsterEventType.RUN_FAILURE and _cut_off(event):
        return f"{run} {_CUT_OFF}"
    if event.event_type == dg.DagsterEventType.ASSET_MATERIALIZATION:
        lacking = event.step_materialization_data.materialization.metadata.get(LACKING)
        if lacking is None or lacking.value == "nothing":
            return None
        return f"{run}: not taken, though it should have been: {lacking.value} (palace status names it)"
    if (said := _SAYS.get(event.event_type)) is not None:
        why = (meta["job_tags"] or {}).get(REASON_TAG) if event.event_type == dg.DagsterEventType.RUN_START else None
        return f"{run} {said}" + (f": {why}" if why else "")
    if event.event_type == dg.DagsterEventType.STEP_FAILURE:
        error = event.step_failure_data.error
        if error is not None and error.cls_name in _INTERRUPTS:
            return None  # the run says that it was stopped
        cause = error.cause if error is not None and error.cause is not None else error
        if cause is None:
            return f"{run}: {event.step_key} failed"
        # A `Failure` says what our own code means people to read; any other error may quote a chat.
        said = _first_line(cause.message).partition("Failure: ")[2] if cause.cls_name == "Failure" else cause.cls_name
        return f"{run}: {event.step_key} failed: {said}"
    if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        check = event.asset_check_evaluation_data
        return (
            None if check.passed else f"{run}: check {check.check_name} failed: {_first_line(check.description or '')}"
        )
    return None


def _cut_off(event: dg.DagsterEvent) -> bool:
    """Was the run ended from outside, as by a UI that stops, and not by what it did?"""
    return event.job_failure_data.failure_reason == RunFailureReason.UNEXPECTED_TERMINATION


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


@dg.logger(
    config_schema={"log_level": dg.Field(str, is_required=False, default_value="DEBUG")},
    description="A line when a run begins and when it ends, and what failed. log_level CRITICAL: nothing.",
)
def console(context: dg.InitLoggerContext) -> logging.Logger:
    """The logger of runs. Not registered with `logging`: each run gets its own."""
    # Begin and end of a run come at level DEBUG: a threshold above it leaves failures.
    logger = logging.Logger("palace", getattr(logging, context.logger_config["log_level"]))
    logger.addHandler(Lines())
    return logger
