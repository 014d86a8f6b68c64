"""Transcripts: merged, then redacted, then shown as pages."""

import dagster as dg

from assets.exports import OWNERS, raw_exports
from assets.running import Materialized, result, run_stage
from palace_pipeline.metadata import lineage, table_schema
from palace_pipeline.model import MESSAGES
from palace_pipeline.partitions import DAYS, SINGLE_RUN
from palace_pipeline.redaction.recipe import ENGINE_RECIPE
from palace_pipeline.resources import PalaceResource
from palace_pipeline.stages.normalize import normalize
from palace_pipeline.stages.redact import redact
from palace_pipeline.transcripts.merge import MERGE_RECIPE


@dg.asset(
    deps=[raw_exports],
    partitions_def=DAYS,
    backfill_policy=SINGLE_RUN,
    group_name="transcripts",
    kinds={"python", "parquet"},
    owners=OWNERS,
    code_version=MERGE_RECIPE,
    metadata={"dagster/column_schema": table_schema(MESSAGES)},
    description=(
        "One canonical transcript per conversation, merged from every form in which any export shows it. A re-export "
        "that grew updates it; an older or poorer one never shrinks it. Message rows in `lake/raw` (unredacted, 0700)."
    ),
)
def normalized_transcripts(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Merge the sightings of the days' conversations."""
    home = palace.open()
    span, counts = run_stage(context, home, normalize)
    return result(context, home, "normalized_transcripts", span, counts)


@dg.asset(
    deps=[normalized_transcripts],
    partitions_def=DAYS,
    backfill_policy=SINGLE_RUN,
    group_name="transcripts",
    kinds={"python", "parquet"},
    owners=OWNERS,
    code_version=ENGINE_RECIPE,
    metadata={
        "dagster/column_schema": table_schema(MESSAGES),
        "dagster/column_lineage": lineage(MESSAGES, {"normalized_transcripts": MESSAGES}),
    },
    description=(
        "Secrets and personal data out, a whole conversation at a time; what cannot be processed is withheld. What is "
        "about to be published is scanned again: a conversation with a hit is withheld whole and counted."
    ),
)
def redacted_transcripts(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Redact the days' conversations into `lake/clean`."""
    home = palace.open()
    span, counts = run_stage(context, home, redact)
    return result(context, home, "redacted_transcripts", span, counts)
