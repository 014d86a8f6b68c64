"""Tables and statistics in DuckDB."""

import dagster as dg

from assets.checks import checked, specs_of
from assets.days import about, day_asset
from assets.palace import conversation_pages, drawer_embeddings
from assets.running import (
    Materialized,
    batch_of,
    by_day,
    conversations_by_day,
    note_run,
    run_stage,
    seconds_chart,
    shown_counts,
    told,
)
from palace_pipeline.metadata import views_as_markdown, warehouse_lineage, warehouse_table_schema
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
    metadata={"dagster/column_schema": warehouse_table_schema(), "dagster/column_lineage": warehouse_lineage()},
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
    metadata = {
        "dagster/table_name": "palace",
        **by_day(context, conversations_by_day(home, span), "conversations"),
        **shown_counts(counts),
    }
    note_run(context, span, metadata)
    return dg.MaterializeResult(check_results=checked(context, home, "palace_tables", span))


@dg.asset(
    deps=[palace_tables],
    group_name="tables",
    kinds={"duckdb"},
    metadata={"views": dg.MetadataValue.md(views_as_markdown())},
    **about(
        "palace_stats",
        "Trends as views in `palace.duckdb`: by day, week and month, provider, room, wing and model; hours, streaks, gaps. "
        "Below: the whole archive in pictures (*Show Markdown*).",
    ),
)
def palace_stats(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Bring files, skips and views up to date."""
    home = palace.open()
    with told(), home.writing():
        counts = publish_exports(home, batch_of(context))
        with home.ledger() as ledger:
            write_receipt(home, ledger, batch_of(context))
            seconds = {"seconds by stage": seconds_chart(ledger)}
        pictures = {**plots_as_markdown(home.path), **seconds}
    shown = {name: dg.MetadataValue.md(chart) for name, chart in pictures.items() if chart}
    return dg.MaterializeResult(metadata={**shown, **shown_counts(counts)})
