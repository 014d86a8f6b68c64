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
from palace_pipeline.exports.scan import scan
from palace_pipeline.ingest import ingest
from palace_pipeline.purge import finish
from palace_pipeline.resources import PalaceResource
from palace_pipeline.stages.names import write_receipt


class ExportsConfig(dg.Config):
    """`paths`: files or folders to look at (default: the folders of `palace.toml`); `limit`: files to read at most."""

    paths: list[str] = Field(default_factory=list[str])
    limit: int | None = None


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
        since = datetime.now(UTC).isoformat(timespec="seconds")
        scanned = list(scan([Path(p) for p in config.paths] or home.settings.folders, home.path))
        found = ingest(home, batch=batch_of(context), limit=config.limit, found=scanned)
        with home.ledger() as ledger:
            write_receipt(home, ledger, batch_of(context))
            all_read = config.limit is None
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
            "not taken": dg.MetadataValue.md(found.skips_as_markdown()),
        },
        check_results=checks,
    )
