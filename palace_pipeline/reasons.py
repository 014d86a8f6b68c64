"""Why a run is started, in words for the list of runs: how many conversations have work, and what made it."""

from __future__ import annotations

from dataclasses import asdict

from palace_pipeline.planner import EXPECTED, STAGES, Range, Recipes
from palace_pipeline.store.ledger import Ledger

REASON_TAG = "palace/reason"
"""The run tag; the list of runs shows it."""

_RECIPES = {
    "normalized": "merge",
    "redacted": "redaction",
    "chunks": "chunks",
    "drawers": "rooms",
    "pages": "pages",
    "vectors": "vectors",
    "tables": "tables",
}
"""Stage -> field of `Recipes`."""

_CHANGED = {
    "normalized": "under a changed merge",
    "redacted": "under changed redaction",
    "chunks": "under a changed chunker",
    "drawers": "under changed rooms or a changed model",
    "pages": "in a changed page form",
    "vectors": "for a changed index",
    "tables": "for changed tables",
}


def reason_for(ledger: Ledger, recipes: Recipes, span: Range) -> str:
    """What has work in a span, counted by the first stage that has to do something for a conversation.

    A stage that would be built from the same input under another recipe has a changed recipe; one that has never been
    built is new; everything else has another input. Days that only lost a conversation have no count.
    """
    counts: dict[str, int] = {}
    earlier = "1"
    for stage in STAGES:
        stale = f"{stage}_in IS NOT ({EXPECTED[stage]})"
        recipe = f":{_RECIPES[stage]}"
        row = ledger.one(
            f"SELECT sum({stage}_in IS NULL), "
            f"sum({stage}_in IS NOT NULL AND substr({stage}_in, -length({recipe})) IS NOT {recipe}), count(*) "
            f"FROM conversations WHERE day BETWEEN :first AND :last AND {earlier} AND {stale}",
            {**asdict(recipes), "first": span.first.isoformat(), "last": span.last.isoformat()},  # pyright: ignore[reportArgumentType] - named parameters
        )
        new, changed, every = (int(n or 0) for n in row) if row else (0, 0, 0)
        first = stage == "normalized"
        for words, count in (
            ("new" if first else "not finished", new),
            (_CHANGED[stage], changed),
            ("changed at the source" if first else "made of what has changed", every - new - changed),
        ):
            if count:
                counts[words] = counts.get(words, 0) + count
        earlier += f" AND NOT ({stale})"
    told = ", ".join(f"{count:,} {words}" for words, count in counts.items())
    return f"conversations: {told}" if told else "days that lost a conversation"
