"""The look for gaps as a job: source against archive on the trailing days, in a process of its own."""

import time
from datetime import UTC, datetime

import dagster as dg
import orjson
from pydantic import Field

from assets.running import told
from palace_pipeline.exports.scan import fingerprint
from palace_pipeline.gaps import Look, look, mark, window
from palace_pipeline.resources import PalaceResource

FILES_TO_READ = 100
"""Files that a look names for reading; the next look names more."""


class GapsConfig(dg.Config):
    """`everything`: compare every day (default: the last 30)."""

    everything: bool = Field(default=False)


@dg.op(
    description="Compares source and archive, and marks as due what is missing; `planned_days` then asks for those days."
)
def compare_with_source(context: dg.OpExecutionContext, config: GapsConfig, palace: PalaceResource) -> None:
    """Look, mark, and note what was found. Metadata are counts and days."""
    home = palace.open()
    with told(), home.writing():
        found = look(home, window(home, everything=config.everything))
        with home.ledger() as ledger:
            if mark(home, ledger, found.days.gaps, found.days.damaged):
                # `planned_days` rests while nothing happens: this is how it learns that something has.
                ledger.set_meta("gaps_marked", f"{time.time():.0f}")
            ledger.set_meta("gaps_found", orjson.dumps(note_of(found)).decode())
    days = sorted({gap.day.isoformat() for gap in found.gaps})
    context.add_output_metadata(
        {
            "clean": found.clean,
            "window": f"{found.window.first} to {found.window.last}",
            "conversations compared": found.days.conversations,
            "missing": len(found.missing),
            "days": ", ".join(days[:100]),
            "evicted files": len(found.files.evicted),
            "why not clean": "; ".join(_without_names(found)),
        }
    )


def _without_names(found: Look) -> list[str]:
    """Reasons for Dagster's storage: the names of folders stay in the archive."""
    return ["a folder is not there" if why.endswith(" is not there") else why for why in found.why]


def note_of(found: Look) -> dict[str, object]:
    """What the ledger keeps of the last look; `files`: those outside the watched folders that are to be read, `work`: in
    which state."""
    files = [seen for seen, _ in found.files.untaken if seen.path in found.elsewhere][:FILES_TO_READ]
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "window": [found.window.first.isoformat(), found.window.last.isoformat()],
        "clean": found.clean,
        "missing": len(found.missing),
        "evicted": len(found.files.evicted),
        "files": [seen.path for seen in files],
        "work": fingerprint(files),
    }


@dg.job(
    description="Is every conversation of the source in the archive, whole? What is missing is marked for the planner.",
    tags={"palace/reason": "source against archive"},
)
def look_for_gaps() -> None:
    compare_with_source()
