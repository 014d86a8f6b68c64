"""Asking again for what failed: ever more seldom, and not for ever. Pure, but for one question to Dagster's records."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg

from assets.jobs import build_days, look_for_gaps, read_exports, refresh_stats
from palace_pipeline import __version__
from palace_pipeline.ingest.recipes import ALL_READERS
from palace_pipeline.model import short_hash

FIRST_RETRY_SECONDS = 60.0
LAST_RETRY_SECONDS = 6 * 3600.0
MOST_ATTEMPTS = 10
"""After some nine hours of trying it is left until the file, the day or the code changes."""
WORK_TAG = "palace/work"
"""Identity of what a run was asked for: the same work again is another attempt."""

CODE = short_hash(__version__, ALL_READERS)
"""The code that tries: what failed under another one is tried as if it never had been."""

IN_FLIGHT = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_OURS = {job.name for job in (read_exports, build_days, refresh_stats, look_for_gaps)}


def pause_after(attempts: int) -> float:
    """Seconds to wait after so many failed attempts."""
    return min(FIRST_RETRY_SECONDS * 2 ** (attempts - 1), LAST_RETRY_SECONDS) if attempts else 0.0


def due(at: float, now: float, attempts: int) -> float:
    """When to try again what was put off until `at` after so many attempts: at once if the clock was set back since."""
    return at if at <= now + pause_after(attempts) else now


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of earlier runs for the same work. `ended`: when the last one did (seconds since 1970), `well`: and
    how."""

    attempts: int = 0
    ended: float = 0.0
    well: bool = False

    @property
    def not_before(self) -> float:
        return self.ended + pause_after(self.attempts)

    @property
    def given_up(self) -> bool:
        return self.attempts >= MOST_ATTEMPTS


def tried(instance: dg.DagsterInstance, work: str) -> Tried:
    """The attempts that Dagster's run records know; a cursor that was reset does not forget them."""
    records = instance.get_run_records(dg.RunsFilter(tags={WORK_TAG: tag_of(work)}), limit=MOST_ATTEMPTS)
    if not records:
        return Tried()
    newest = records[0]
    ended = newest.end_time or newest.create_timestamp.timestamp()
    well = newest.dagster_run.status is dg.DagsterRunStatus.SUCCESS
    # One that ended in the future did so before the clock was set back: there is no telling how long ago.
    return Tried(len(records), ended if ended <= time.time() else 0.0, well)


def asked_for(work: str, attempts: int, tags: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """(run key, tags) of a run. The key holds the attempt: Dagster ignores a key that it has seen, for ever."""
    return f"{tag_of(work)}-{attempts + 1}", {**tags, WORK_TAG: tag_of(work)}


def tag_of(work: str) -> str:
    """The tag of runs for some work: the attempts of other code do not count."""
    return f"{work}-{CODE}"


def under_way(instance: dg.DagsterInstance) -> set[str]:
    """Names of our jobs of which a run is queued or running.

    Runs of the command line do not count: the home's lock keeps them apart from ours.
    """
    runs = instance.get_runs(dg.RunsFilter(statuses=IN_FLIGHT))
    return {run.job_name for run in runs if run.job_name in _OURS and "palace/started_by" not in run.tags}
