"""What will be done again because rules or code have changed, and not because there is anything new: for people, beforehand."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from palace_pipeline.exports.scan import Known
from palace_pipeline.ingest.recipes import RECIPES, current_in
from palace_pipeline.planner import EXPECTED, Recipes
from palace_pipeline.settings import Settings
from palace_pipeline.store.ledger import Ledger

_DONE_AGAIN = {
    "normalized": ("merge", "merged again", "how copies of a conversation are put together"),
    "redacted": ("redaction", "redacted again", "rules or settings of redaction"),
    "chunks": ("chunks", "cut again", "the chunker or the embedding model"),
    "drawers": ("rooms", "filed again", "rooms, wings or the embedding model"),
    "pages": ("pages", "written again as pages", "the form of pages"),
    "vectors": ("vectors", "indexed again", "the indexes or the embedding model"),
    "tables": ("tables", "put into the tables again", "the tables or the display zone"),
}
"""Stage -> name in JSON, what happens to its days, and what has changed then."""


@dataclass(frozen=True, slots=True)
class Again:
    """Work that is done again. `days`, `conversations`: at most so many, for what is read again may be as it was.

    `files`: those that are read again, and `formats` whose reader has changed since.
    """

    what: str
    days: int
    conversations: int
    said: str
    files: int = 0
    formats: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        value = asdict(self)
        del value["what"]
        return value if self.files else {name: value[name] for name in ("days", "conversations", "said")}


def done_again(ledger: Ledger, recipes: Recipes, settings: Settings) -> list[Again]:
    """What a run would do again now, in the order of the flow; what it leads to further on is not counted once more."""
    found = [of_readers] if (of_readers := _read_again(ledger, settings)) is not None else []
    for stage, (name, happens, changed) in _DONE_AGAIN.items():
        before = EXPECTED[stage].rpartition(" || :")[0]
        row = ledger.one(
            "SELECT count(DISTINCT day) AS days, count(*) AS conversations FROM conversations "
            "WHERE superseded_by IS NULL AND status != 'purged' "
            f"AND {stage}_in IS NOT ({EXPECTED[stage]}) AND substr({stage}_in, 1, length({before})) = {before}",
            asdict(recipes),  # pyright: ignore[reportArgumentType] - named parameters
        )
        if row is not None and row["days"]:
            said = f"{_of(row['days'], row['conversations'])} will be {happens}: {changed} changed"
            found.append(Again(name, row["days"], row["conversations"], said))
    return found


def _read_again(ledger: Ledger, settings: Settings) -> Again | None:
    is_current = current_in(settings)
    files = [row for row in ledger.known_files().values() if not is_current(row)]
    if not files:
        return None
    outdated = [
        (row["format"], row["recipe"])
        for row in ledger.rows("SELECT DISTINCT format, recipe FROM elements")
        if row["recipe"].partition("@")[0] != RECIPES.get(row["format"])
    ]
    held: set[tuple[str, str, str]] = set()
    for pair in outdated:
        rows = ledger.rows(
            "SELECT DISTINCT c.day, c.provider, c.conversation_id FROM elements e JOIN element_records r USING (element) "
            "JOIN conversations c USING (provider, conversation_id) WHERE e.format = ? AND e.recipe = ?",
            pair,
        )
        held.update((row[0], row[1], row[2]) for row in rows)
    formats = tuple(sorted({name for row in files for name in _changed(row)}))
    days = len({day for day, _, _ in held})
    named = f"readers changed ({', '.join(formats)})" if formats else "readers, or the zone of their folder, changed"
    said = f"{len(files):,} file{'' if len(files) == 1 else 's'} will be read again, with at most {_of(days, len(held))}: {named}"
    return Again("reader", days, len(held), said, len(files), formats)


def _changed(row: Known) -> list[str]:
    """The formats of a file whose readers have changed since it was read."""
    recipe = str(row["recipe"]).partition("@")[0]
    parts = [part.rpartition(":") for part in recipe.split(",") if part]
    return [name for name, _, version in parts if name != "*" and RECIPES.get(name) != version]


def _of(days: int, conversations: int) -> str:
    return f"{days:,} day{'' if days == 1 else 's'} ({conversations:,} conversation{'' if conversations == 1 else 's'})"
