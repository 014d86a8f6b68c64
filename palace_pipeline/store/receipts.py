"""Receipts: what a batch of work found, did and did not take, as JSON under `receipts/`. Counts and reasons, no content."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from palace_pipeline.store.files import write_bytes
from palace_pipeline.store.ledger import Ledger

CHECKS_STAGE = "checks"
"""Under this name the checks of a run note what they took and what failed."""
NOTHING: dict[str, int] = {"found": 0, "new": 0, "updated": 0, "unchanged": 0, "skipped": 0}


def receipt_of(found: dict[str, Any] | None = None) -> dict[str, Any]:
    """A receipt that only knows what was found (a dry run), or not even that."""
    return {
        "schema_version": 1,
        "files": dict(NOTHING),
        "conversations": dict(NOTHING),
        "messages": dict(NOTHING),
        "skipped": [],
        "drift": [],
        **(found or {}),
        "findings": {},
        "withheld": 0,
        "withheld_fields": 0,
        "withheld_places": [],
        "checks": [],
        "pages": 0,
        "conflicts": 0,
        "drawers": 0,
        "vectors": 0,
        "days": 0,
        "seconds": {},
    }


def compose(ledger: Ledger, batch: str) -> dict[str, Any]:
    """The receipt of a batch (contract of `palace ingest --json`), from what its stages noted."""
    receipt: dict[str, Any] = {**receipt_of(), "batch": batch}
    findings: Counter[str] = Counter()
    for row in ledger.rows("SELECT stage, seconds, counts FROM stage_log WHERE batch = ? ORDER BY rowid", (batch,)):
        counts: dict[str, Any] = orjson.loads(row["counts"])
        stage: str = row["stage"]
        receipt["seconds"][stage] = round(receipt["seconds"].get(stage, 0) + row["seconds"], 3)
        if stage == "raw_exports":
            found = ("files", "conversations", "messages", "skipped", "drift")
            receipt |= {name: counts[name] for name in found if name in counts}
        if stage == CHECKS_STAGE:
            receipt["checks"] += counts["failed"]
            continue
        for name, count in counts.items():
            if name.startswith("finding:"):
                findings[name.removeprefix("finding:")] += count
        receipt["withheld_fields"] += counts.get("withheld_fields", 0)
        receipt["withheld"] += counts.get("withheld_conversations", 0) + counts.get("withheld", 0)
        receipt["pages"] += counts.get("pages", 0) if stage == "pages" else 0
        receipt["conflicts"] += counts.get("conflicts", 0) if stage == "pages" else 0
        receipt["drawers"] += counts.get("drawers", 0) if stage == "drawers" else 0
        receipt["vectors"] += counts.get("vectors", 0) if stage == "drawers" else 0
        receipt["days"] += counts.get("days", 0) if stage == "normalized" else 0
    receipt["withheld_places"] = ledger.withheld()
    receipt["findings"] = dict(sorted(findings.items()))
    return receipt


def keep_receipt(folder: Path, receipt: dict[str, Any]) -> dict[str, Any]:
    """Write a receipt in the place of the last one of its batch; returns it."""
    write_bytes(folder / f"{receipt['batch']}.json", orjson.dumps(receipt, option=orjson.OPT_INDENT_2))
    return receipt


def failed_here(receipt: dict[str, Any]) -> bool:
    """True if something was not taken that should have been, or is withheld, or a check found an error."""
    unsound = any(check["severity"] == "error" for check in receipt["checks"])
    return any(not skip["expected"] for skip in receipt["skipped"]) or bool(receipt["withheld_places"]) or unsound
