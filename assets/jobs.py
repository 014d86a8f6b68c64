"""Jobs: what the sensors, the command line and the launchpad start."""

import dagster as dg

from assets.exports import raw_exports
from assets.gaps import look_for_gaps
from assets.palace import conversation_pages, drawer_embeddings, drawers, redacted_chunks
from assets.tables import palace_stats, palace_tables
from assets.transcripts import normalized_transcripts, redacted_transcripts

DAILY = [
    normalized_transcripts,
    redacted_transcripts,
    redacted_chunks,
    drawers,
    conversation_pages,
    drawer_embeddings,
    palace_tables,
]
ASSETS = [raw_exports, *DAILY, palace_stats]

read_exports = dg.define_asset_job(
    "read_exports", selection=[raw_exports], description="Look at the export folders and read what is new or changed."
)
build_days = dg.define_asset_job(
    "build_days",
    selection=[*DAILY, palace_stats],
    description="Everything from transcript to table for a day or a range of days.",
)
refresh_stats = dg.define_asset_job(
    "refresh_stats", selection=[palace_stats], description="Files, skips and views, when no day has work."
)
JOBS = [read_exports, build_days, refresh_stats, look_for_gaps]
