"""Tables and statistics in DuckDB."""

import dagster as dg

from assets.checks import checked, specs_of
from assets.days import OWNERS, day_asset
from assets.palace import conversation_pages, drawer_embeddings
from assets.running import Materialized, batch_of, run_stage, told
from palace_pipeline.resources import PalaceResource
from palace_pipeline.stages.names import write_receipt
from palace_pipeline.stages.publish import publish_exports, publish_tables
from palace_pipeline.stages.recipes import TABLES_RECIPE
from palace_pipeline.trends import plots_as_markdown


@day_asset(
    deps=[drawer_embeddings, conversation_pages],
    group="tables",
    kinds={"duckdb"},
    recipe=TABLES_RECIPE,
    checks=specs_of("palace_tables"),
    description=(
        "`palace.duckdb`: conversations, messages, drawers, findings, exports, skips, every column commented. Built beside "
        "and renamed in, so a reader who has the file open keeps what it opened."
    ),
)
def palace_tables(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Publish the days' rows."""
    home = palace.open()
    span, counts = run_stage(context, home, publish_tables)
    return dg.MaterializeResult(
        metadata={"dagster/table_name": "palace", **counts},
        check_results=checked(context, home, "palace_tables", span),
    )


@dg.asset(
    deps=[palace_tables],
    group_name="tables",
    kinds={"duckdb"},
    owners=OWNERS,
    description="Trends as views in `palace.duckdb`: by day, week and month, provider, room, wing and model; hours, streaks, gaps.",
)
def palace_stats(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Bring files, skips and views up to date."""
    home = palace.open()
    with told(), home.writing():
        counts = publish_exports(home, batch_of(context))
        with home.ledger() as ledger:
            write_receipt(home, ledger, batch_of(context))
        plots = plots_as_markdown(home.path)
    return dg.MaterializeResult(metadata={**counts, "trends": dg.MetadataValue.md(plots)})
