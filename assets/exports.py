"""The way in: files of the export folders -> vault and ledger."""

import time
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from pydantic import Field

from assets.checks import evaluated, specs_of
from assets.days import about
from assets.running import Materialized, batch_of, told
from palace_pipeline.checks.exports import after_reading
from palace_pipeline.console import LACKING
from palace_pipeline.exports.scan import Missing, Seen, has_settled, scan
from palace_pipeline.ingest import ingest
from palace_pipeline.ingest.chosen import these
from palace_pipeline.ingest.session_names import ready_sessions
from palace_pipeline.purge import finish
from palace_pipeline.resources import PalaceResource
from palace_pipeline.stages.names import write_receipt
from palace_pipeline.store.home import Home


class ExportsConfig(dg.Config):
    """`paths`: files or folders to look at (default: the folders of `palace.toml`); `limit`: files to read at most.

    `only`: just these files, which lie in the folders or were taken before; `leave`: all but these. `settled`: files
    that are still being written wait for another run.
    """

    paths: list[str] = Field(default_factory=list[str])
    limit: int | None = None
    only: list[str] = Field(default_factory=list[str])
    leave: list[str] = Field(default_factory=list[str])
    settled: bool = False


def _files(home: Home, config: ExportsConfig) -> list[Seen | Missing]:
    if config.only:
        with home.ledger() as ledger:
            found = list(these(home, ledger, config.only))
    else:
        found = list(scan([Path(p) for p in config.paths] or home.settings.folders, home.path))
    now, left = time.time(), set(config.leave)
    return [
        item
        for item in found
        if isinstance(item, Missing) or (item.path not in left and (has_settled(item, now) or not config.settled))
    ]


@dg.asset(
    group_name="ingest",
    kinds={"python", "sqlite"},
    check_specs=specs_of("raw_exports"),
    **about(
        "raw_exports",
        "Finds new and changed files in the export folders, keeps their bytes in the vault, detects the format and reads "
        "each once as a stream. The ledger then knows every conversation, in every form it was seen, and its day.",
    ),
)
def raw_exports(context: dg.AssetExecutionContext, config: ExportsConfig, palace: PalaceResource) -> Materialized:
    """Read what is new or changed; damaged files are quarantined and counted, they never end the run."""
    home = palace.open()
    with told(), home.writing():
        finish(home, batch_of(context))  # a purge that was killed comes before anything new
        ready_sessions(home)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        scanned = _files(home, config)
        found = ingest(home, batch=batch_of(context), limit=config.limit, found=scanned)
        with home.ledger() as ledger:
            write_receipt(home, ledger, batch_of(context))
            all_read = config.limit is None and not (config.only or config.leave)
            checks = evaluated(
                context,
                home,
                lambda: after_reading(home, ledger, scanned, since=since, all_read=all_read, now=time.time()),
            )
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": found.files["found"],
            **{
                f"{unit} {name}": n
                for unit in ("files", "conversations", "messages")
                for name, n in found.of(unit).items()
            },
            "days with work": len(found.days),
            LACKING: found.lacking() or "nothing",
            "not taken": dg.MetadataValue.md(found.skips_as_markdown()),
        },
        check_results=checks,
    )
