"""The palace: chunks, drawers, vectors, pages."""

import dagster as dg

from assets.checks import checked, specs_of
from assets.days import day_asset
from assets.running import (
    Materialized,
    by_day,
    conversations_by_day,
    note_run,
    result,
    rooms_chart,
    run_stage,
    shown_counts,
    told,
)
from assets.transcripts import redacted_transcripts
from palace_pipeline.chunking import CHUNK_RECIPE
from palace_pipeline.metadata import page_lineage, page_schema
from palace_pipeline.model import CHUNKS, DRAWERS, MESSAGES, VECTORS
from palace_pipeline.resources import PalaceResource
from palace_pipeline.rooms.classifier import ROOMS_RECIPE
from palace_pipeline.stages.chunk import chunk
from palace_pipeline.stages.drawers import file_drawers
from palace_pipeline.stages.embed import publish_vectors
from palace_pipeline.stages.pages import write_pages
from palace_pipeline.stages.recipes import VECTORS_RECIPE
from palace_pipeline.store.vectors import held_open
from palace_pipeline.transcripts.page import PAGE_RECIPE


@day_asset(
    deps=[redacted_transcripts],
    group="palace",
    kinds={"python", "parquet"},
    recipe=CHUNK_RECIPE,
    checks=specs_of("redacted_chunks"),
    columns=CHUNKS,
    columns_from={"redacted_transcripts": MESSAGES},
    description=(
        "Units for the index: one question with its answer, measured in the embedding model's tokens. A long answer goes "
        "on in further chunks that know their question. Every word is in exactly one chunk."
    ),
)
def redacted_chunks(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Cut the days' conversations."""
    home = palace.open()
    span, counts = run_stage(context, home, chunk)
    return result(context, home, "redacted_chunks", span, counts, checked(context, home, "redacted_chunks", span))


@day_asset(
    deps=[redacted_chunks],
    group="palace",
    kinds={"python", "parquet", "onnx"},
    recipe=ROOMS_RECIPE,
    checks=specs_of("drawers"),
    columns=DRAWERS,
    columns_from={"redacted_chunks": CHUNKS},
    description="Every chunk of talk filed: wing (project, channel), hall (kind of memory), room (topic), with a confidence.",
)
def drawers(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Embed new chunks once and file them."""
    home = palace.open()
    span, counts = run_stage(context, home, file_drawers)
    rooms = {"drawers by room": rooms_chart(home, span)}
    return result(context, home, "drawers", span, counts, checked(context, home, "drawers", span), rooms)


@day_asset(
    deps=[redacted_transcripts, drawers],
    group="palace",
    kinds={"markdown"},
    recipe=PAGE_RECIPE,
    metadata={"dagster/column_schema": page_schema(), "dagster/column_lineage": page_lineage()},
    checks=[
        *specs_of("conversation_pages"),
        dg.AssetCheckSpec(
            "nothing_is_found_again",
            asset="conversation_pages",
            blocking=True,
            description="The pages of this run, read back from disk and scanned: no secret, no personal data.",
        ),
    ],
    description=(
        "One dated Markdown page per conversation, in the user's folder. `tags`, `aliases` and `## Notes` belong to the "
        "user and survive every rewrite. Wing and rooms come from the drawers."
    ),
)
def conversation_pages(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Write the days' pages; an unchanged page is not touched."""
    home = palace.open()
    span, counts = run_stage(context, home, write_pages)
    hits = counts["scan_hits"]
    note_run(context, span, {**by_day(context, conversations_by_day(home, span), "pages"), **shown_counts(counts)})
    return dg.MaterializeResult(
        check_results=[
            *checked(context, home, "conversation_pages", span),
            dg.AssetCheckResult(
                check_name="nothing_is_found_again",
                passed=hits == 0,
                metadata={"pages scanned": counts["written"], "withheld": counts["withheld"], "still shown": hits},
                description=None
                if hits == 0
                else "A published page still shows something that would be masked. Run `palace doctor`; it names the pages.",
            ),
        ],
    )


@day_asset(
    deps=[drawers, conversation_pages],
    group="palace",
    kinds={"chroma", "tantivy", "parquet"},
    recipe=VECTORS_RECIPE,
    columns=VECTORS,
    columns_from={"drawers": DRAWERS, "redacted_chunks": CHUNKS},
    checks=[
        *specs_of("drawer_embeddings"),
        dg.AssetCheckSpec(
            "nothing_is_found_in_the_index",
            asset="drawer_embeddings",
            blocking=True,
            description="Documents and metadata of drawers, sampled, read back from Chroma and scanned: no secret.",
        ),
    ],
    description="Drawers in Chroma (`palace_drawers`, for any client) and in the lexical index. Only what changed is written.",
)
def drawer_embeddings(context: dg.AssetExecutionContext, palace: PalaceResource) -> Materialized:
    """Bring Chroma and the lexical index in line with the drawers."""
    home = palace.open()
    with told(), home.writing(), held_open(home.chroma):
        span, counts = run_stage(context, home, publish_vectors)
        checks = checked(context, home, "drawer_embeddings", span)
    clean = dg.AssetCheckResult(
        check_name="nothing_is_found_in_the_index",
        passed=counts["scan_hits"] == 0,
        metadata={"places": counts["scan_hits"]},
        description=None if counts["scan_hits"] == 0 else "Delete `chroma/` in the palace home, then: palace ingest",
    )
    return result(context, home, "drawer_embeddings", span, counts, [*checks, clean])
