"""Whether something that the tables showed has been masked since: then `palace.duckdb` has to be built anew.

DuckDB keeps what was deleted in free blocks, and the beginnings of the least and greatest words of a column in its
statistics. What is only added, or was masked from the start, is no reason to build a large file again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from palace_pipeline.stages.common import Key
from palace_pipeline.store.ledger import Ledger

_NOTED = "words_gone"
"""Name in the ledger's `meta`."""
_OF_CONVERSATION = ("title", "account", "model", "project", "source_file")
_OF_MESSAGE = ("speaker", "model", "tool_name", "hidden_reason")
Masks = dict[Key, set[tuple[str, str]]]
"""Conversation -> columns of the tables with keyed hashes of what is masked in them."""


def masks_in_tables(findings: Iterable[Mapping[str, Any]]) -> Masks:
    """Of rows of `findings`, those in fields that the tables show."""
    masks: Masks = {}
    for row in findings:
        parts = row["field"].split(".")
        if (len(parts) == 1 and parts[0] in _OF_CONVERSATION) or (len(parts) == 3 and parts[2] in _OF_MESSAGE):
            key = (row["provider"], row["conversation_id"])
            masks.setdefault(key, set()).add((parts[-1], row["fingerprint"]))
    return masks


def note_words_gone(ledger: Ledger, before: Masks, now: Masks, held: Collection[Key] = ()) -> None:
    """Compare what was masked in some conversations with what is now. `held`: those of which something is withheld."""
    changed = {*held, *(key for key, masks in now.items() if not masks <= before.get(key, set()))}
    sql = "SELECT 1 FROM conversations WHERE provider = ? AND conversation_id = ? AND tables_in IS NOT NULL"
    if any(ledger.one(sql, key) is not None for key in changed):
        ledger.set_meta(_NOTED, "1")


OLD_WORDS = "indexes_hold_old_words"
"""Name in the ledger's `meta`: something in the indexes was masked since, and they have to be made anew."""


def note_old_words(ledger: Ledger) -> None:
    """Something that was published is not shown any more by its own source: tables and indexes are to be made anew."""
    ledger.set_meta(_NOTED, "1")
    ledger.set_meta(OLD_WORDS, "yes")


def words_are_gone(ledger: Ledger) -> bool:
    """True if the tables have to be built anew."""
    return ledger.meta(_NOTED) is not None


def tables_are_new(ledger: Ledger) -> None:
    """They were built anew."""
    ledger.write("DELETE FROM meta WHERE name = ?", (_NOTED,))
