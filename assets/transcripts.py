"""Transcripts: merged, then redacted, then shown as pages."""

import dagster as dg

from assets.checks import checked, specs_of
from assets.days import day_asset
from assets.exports import raw_exports
from assets.running import Materialized, findings_chart, result, run_stage
from palace_pipeline.model import MESSAGES
from palace_pipeline.redaction.recipe import ENGINE_RECIPE
from palace_pipeline.resources import PalaceResource
from palace_pipeline.stages.normalize import normalize
from palace_pipeline.stages.redact import redact
from palace_pipeline.transcripts.merge import MERGE_RECIPE


@day_asset(
    deps=[raw_exports],
    group="transcripts",
    kinds={"python", "parquet"},
    recipe=MERGE_RECIPE,
    checks=specs_of("normalized_transcripts"),
    columns=MESSAGES,
    description=(
        "One canonical transcript per conversation, merged from every form in which any export shows it. A re-export "
        "that grew updates it; an older or poorer one never shrinks it. Message rows in `lake/raw` (unredacted, 0700)."
    ),
)
def normalized_transcripts(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Merge the sightings of the days' conversations."""
    home = palace.open()
    span, counts = run_stage(context, home, normalize)
    checks = checked(context, home, "normalized_transcripts", span)
    return result(context, home, "normalized_transcripts", span, counts, checks)


@day_asset(
    deps=[normalized_transcripts],
    group="transcripts",
    kinds={"python", "parquet"},
    recipe=ENGINE_RECIPE,
    checks=specs_of("redacted_transcripts"),
    columns=MESSAGES,
    columns_from={"normalized_transcripts": MESSAGES},
    description=(
        "Secrets and personal data out, a whole conversation at a time; what cannot be processed is withheld. What is "
        "about to be published is scanned again: a conversation with a hit is withheld whole and counted."
    ),
)
def redacted_transcripts(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Redact the days' conversations into `lake/clean`."""
    home = palace.open()
    span, counts = run_stage(context, home, redact)
    checks = checked(context, home, "redacted_transcripts", span)
    masked = {"masked by kind": findings_chart(counts)}
    return result(context, home, "redacted_transcripts", span, counts, checks, masked)
