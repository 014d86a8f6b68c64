"""What every asset by days has in common, said once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dagster as dg

from palace_pipeline.metadata import lineage, table_schema
from palace_pipeline.partitions import DAYS, SINGLE_RUN

OWNERS = ["team:palace"]


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
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """An asset of daily partitions whose backfills are one run. The recipe is its code version.

    `columns`: the schema of the table it makes; `columns_from`: the schemas of the assets that its columns come from.
    """
    metadata: dict[str, Any] = {}
    if columns is not None:
        metadata["dagster/column_schema"] = table_schema(columns)
        if columns_from is not None:
            metadata["dagster/column_lineage"] = lineage(columns, columns_from)
    return dg.asset(
        deps=deps,
        partitions_def=DAYS,
        backfill_policy=SINGLE_RUN,
        group_name=group,
        kinds=kinds,
        owners=OWNERS,
        code_version=recipe,
        metadata=metadata,
        check_specs=checks,
        description=description,
    )
