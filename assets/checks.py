"""Asset checks from one factory: what `palace_pipeline.checks` finds on a run's days, as Dagster shows it.

They are evaluated in the step of their asset, once for its whole range: a step of their own for each would double what
Dagster costs a small run.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import dagster as dg

from assets.running import batch_of, told
from palace_pipeline.checks import Check, Result, examine, of_asset
from palace_pipeline.planner import Range
from palace_pipeline.stages.names import write_receipt
from palace_pipeline.store.home import Home
from palace_pipeline.store.receipts import CHECKS_STAGE


def specs_of(asset: str) -> list[dg.AssetCheckSpec]:
    """What an asset promises to check."""
    return [
        dg.AssetCheckSpec(check.name, asset=asset, blocking=check.blocking, description=check.description)
        for check in of_asset(asset)
    ]


def checked(context: dg.AssetExecutionContext, home: Home, asset: str, span: Range) -> list[dg.AssetCheckResult]:
    """Evaluate an asset's checks of days over the range of the step."""
    checks: Sequence[Check] = of_asset(asset)
    return evaluated(context, home, lambda: examine(home, span, checks))


def evaluated(
    context: dg.AssetExecutionContext, home: Home, look: Callable[[], list[Result]]
) -> list[dg.AssetCheckResult]:
    """Results of a look as Dagster takes them; what failed, and the time it took, is noted for the receipt."""
    with told(), home.writing():
        started = time.perf_counter()
        results = look()
        failed = [result for result in results if not result.passed]
        with home.ledger() as ledger:
            counts = {"checks": len(results), "failed": [result.told() for result in failed]}
            finished = datetime.now(UTC).isoformat(timespec="seconds")
            ledger.log_stage(batch_of(context), CHECKS_STAGE, finished, time.perf_counter() - started, counts)
            if failed:
                write_receipt(home, ledger, batch_of(context))  # a gate that closes ends the run here
    return [shown(result) for result in results]


def shown(result: Result) -> dg.AssetCheckResult:
    """A result with its figures, its table, and what is wrong where."""
    metadata: dict[str, dg.MetadataValue] = {name: dg.MetadataValue.int(n) for name, n in result.figures.items()}
    if result.rows:
        metadata["by format"] = dg.MetadataValue.md(as_markdown(result.rows))
    if result.problems:
        rows = [
            {"where": problem.where, "what": problem.what, "mend": problem.mend or "a backfill of its day"}
            for problem in result.problems
        ]
        metadata["what is wrong"] = dg.MetadataValue.md(as_markdown(rows))
        metadata["problems"] = dg.MetadataValue.int(result.count)
    return dg.AssetCheckResult(
        check_name=result.name,
        passed=result.passed,
        severity=dg.AssetCheckSeverity.WARN if result.severity == "warn" else dg.AssetCheckSeverity.ERROR,
        description=result.said,
        metadata=metadata,
    )


def as_markdown(rows: Sequence[dict[str, str | int | float]] | Sequence[dict[str, str]]) -> str:
    """Rows with the same keys as a table of Markdown."""
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(str(row[name]).replace('|', '/') for name in names)} |" for row in rows]
    return "\n".join(lines)
