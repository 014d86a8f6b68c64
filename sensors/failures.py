"""Runs that failed: the reason goes to `receipts/`, and to whoever `[alerts]` in `palace.toml` names."""

from datetime import UTC, datetime

import dagster as dg
import orjson

from palace_pipeline.alerts import send
from palace_pipeline.resources import PalaceResource
from palace_pipeline.runs import KILLED
from palace_pipeline.store.files import write_bytes
from palace_pipeline.store.home import Home

NEXT = (
    "What was finished before is kept. It is tried again with growing pauses; at once with `palace ingest`. "
    "`palace doctor` checks the archive."
)

_FROM_OUTSIDE = "This run has been marked as failed from outside the execution context."
"""What Dagster says of a run whose process is gone."""


def told(run: dg.DagsterRun, message: str, failed: list[tuple[str, str]], now: datetime) -> dict[str, object]:
    """What is written and sent: words for people, no chat text (steps pass on texts that were made for people).

    `failed`: step and reason of each step that failed; without any, `message` is what Dagster says of the run.
    """
    return {
        "what": "a run of Palace failed",
        "run": run.run_id,
        "job": run.job_name,
        "at": now.isoformat(timespec="seconds"),
        "days": [run.tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end")],
        "why_started": run.tags.get("palace/reason"),
        "reasons": [f"{step}: {why}" for step, why in failed] or [KILLED if message == _FROM_OUTSIDE else message],
        "next": NEXT,
    }


def reasons_of(events: list[dg.DagsterEvent]) -> list[tuple[str, str]]:
    """Step and reason of steps that failed."""
    out: list[tuple[str, str]] = []
    for event in events:
        data = event.step_failure_data
        own = data.user_failure_data.description if data.user_failure_data else None
        out.append((event.step_key or "?", own or (data.error.cls_name if data.error else None) or "unknown error"))
    return out


def tell(home: Home, context: dg.RunFailureSensorContext) -> None:
    """Write the reason of a failed run to `receipts/` and send it. What cannot be sent is logged; nothing is raised."""
    now = datetime.now(UTC)
    message = context.failure_event.message or "the run failed"
    value = told(context.dagster_run, message, reasons_of(list(context.get_step_failure_events())), now)
    if home.exists:
        name = f"failed-{now:%Y%m%dT%H%M%SZ}-{context.dagster_run.run_id[:8]}.json"
        try:
            write_bytes(home.receipts / name, orjson.dumps(value, option=orjson.OPT_INDENT_2))
        except OSError as error:  # a full disk may be why the run failed; all the more somebody has to be told
            context.log.warning(f"{name} could not be written ({type(error).__name__})")
    for problem in send(home.settings.alerts, value):
        context.log.warning(problem)


@dg.run_failure_sensor(
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=60,
    description="Writes why a run failed to `receipts/`, and calls the command or webhook of `[alerts]` in palace.toml.",
)
def run_failures(context: dg.RunFailureSensorContext, palace: PalaceResource) -> None:
    """Tell people, once for each failed run."""
    tell(palace.open(), context)
