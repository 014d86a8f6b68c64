"""What every asset has in common, said once: its place in the flow, and what a stranger is told about days."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import dagster as dg

from palace_pipeline.metadata import lineage, table_schema
from palace_pipeline.partitions import DAYS, SINGLE_RUN

OWNERS = ["team:palace"]
POOL = "palace_home"
"""One run writes at a time. The home's lock enforces it; the pool lets the next run wait in the queue, where it is seen,
rather than in a process that waits for the lock."""


@dataclass(frozen=True, slots=True)
class Step:
    """A place in the flow: its number, what it leaves in the palace home, whether that is `raw`, `redacted` or `none` of
    the chats' text."""

    number: int
    leaves: str
    text: str


FLOW = {
    "raw_exports": Step(1, "vault/, ledger.sqlite", "raw"),
    "normalized_transcripts": Step(2, "lake/raw/messages/", "raw"),
    "redacted_transcripts": Step(3, "lake/clean/messages/, lake/clean/findings/", "redacted"),
    "redacted_chunks": Step(4, "lake/clean/chunks/", "redacted"),
    "drawers": Step(5, "lake/clean/drawers/, lake/clean/vectors/", "redacted"),
    "conversation_pages": Step(6, "conversations/<provider>/<year>/*.md", "redacted"),
    "drawer_embeddings": Step(7, "chroma/, lexical/", "redacted"),
    "palace_tables": Step(8, "palace.duckdb", "none"),
    "palace_stats": Step(9, "palace.duckdb (views)", "none"),
}
_TEXT = {
    "raw": "holds chat text as it was exported: the owner's alone",
    "redacted": "holds redacted text only",
    "none": "holds counts and times, no text",
}
_DAYS = (
    "**Days** are UTC days; a conversation belongs to the day of its first message. A day without conversations stays "
    "*missing*: nothing is wrong with it, and the share of filled partitions says nothing. What has work is built by "
    "itself (sensor `planned_days`); *Materialize* makes the days that you pick again, from the vault, with the same result."
)


class About(TypedDict):
    """The arguments of `dg.asset` that `about` gives."""

    description: str
    owners: list[str]
    tags: dict[str, str]
    pool: str


def about(name: str, description: str, *, by_day: bool = False) -> About:
    """Arguments of `dg.asset` that tell what the asset `name` is, where it stands, and what it leaves."""
    step = FLOW[name]
    # Lists and the graph show the first words alone, and lists are in the order of the alphabet.
    place = f"Step {step.number} of {len(FLOW)}. {description}"
    leaves = f"**Leaves** `{step.leaves}` in the palace home ({_TEXT[step.text]})."
    return {
        "description": "\n\n".join([place, leaves, *([_DAYS] if by_day else [])]),
        "owners": OWNERS,
        "tags": {"palace/step": str(step.number), "palace/text": step.text},
        "pool": POOL,
    }


def day_asset(
    *,
    group: str,
    kinds: set[str],
    recipe: str,
    description: str,
    deps: Sequence[dg.AssetsDefinition],
    columns: Mapping[str, Any] | None = None,
    columns_from: Mapping[str, Mapping[str, Any]] | None = None,
    checks: Sequence[dg.AssetCheckSpec] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """An asset of daily partitions whose backfills are one run. The recipe is its code version.

    `columns`: the schema of the table it makes; `columns_from`: the schemas of the assets that its columns come from.
    """
    shown: dict[str, Any] = dict(metadata or {})
    if columns is not None:
        shown["dagster/column_schema"] = table_schema(columns)
        if columns_from is not None:
            shown["dagster/column_lineage"] = lineage(columns, columns_from)

    def define(function: Callable[..., Any]) -> dg.AssetsDefinition:
        return dg.asset(
            deps=deps,
            partitions_def=DAYS,
            backfill_policy=SINGLE_RUN,
            group_name=group,
            kinds=kinds,
            code_version=recipe,
            metadata=shown,
            check_specs=checks,
            **about(function.__name__, description, by_day=True),
        )(function)

    return define
