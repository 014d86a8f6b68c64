"""Chats without any id, title or time in a list that is written anew: which one goes on in which.

Such a chat is known by all that it says (`exports.ids.whole_content_id`), so it is another one when it has grown. That
it has is sure only where a file no longer shows the shorter one and shows exactly one new one that says all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from palace_pipeline.exports.ids import BY_CONTENT
from palace_pipeline.ingest.sightings import settle
from palace_pipeline.store.ledger import Key, Ledger


def continue_grown(ledger: Ledger, path: str, before: Set[str]) -> None:
    """Make the grown chats of a file copies of what they were. `before`: the elements that the file had."""
    now = {row[0] for row in ledger.rows("SELECT element FROM file_elements WHERE path = ?", (path,))}
    gone = [
        element
        for element in before - now
        if ledger.one("SELECT 1 FROM file_elements WHERE element = ?", (element,)) is None
    ]
    shorter = _known_by_content(ledger, gone)
    if not shorter:
        return
    longer = {key: ids for key, ids in _known_by_content(ledger, now - before).items() if key not in shorter}
    saying: dict[tuple[str, str], set[Key]] = {}
    for key, ids in longer.items():
        for message_id in ids:
            saying.setdefault((key[0], message_id), set()).add(key)
    for key, ids in shorter.items():
        rarest = min((saying.get((key[0], message_id), set()) for message_id in ids), key=len, default=set[Key]())
        heirs = [heir for heir in rarest if ids <= longer[heir]]
        if len(heirs) == 1:
            ledger.write(
                "UPDATE sightings SET forked_from = ? WHERE provider = ? AND conversation_id = ?", (key[1], *heirs[0])
            )
            settle(ledger, heirs[0])


def _known_by_content(ledger: Ledger, elements: Iterable[str]) -> dict[Key, Set[str]]:
    """The chats that elements made, as far as they are known by their content: their message ids."""
    found: dict[Key, Set[str]] = {}
    for element in elements:
        for row in ledger.rows(
            "SELECT DISTINCT provider, conversation_id FROM element_records WHERE element = ?", (element,)
        ):
            if row["conversation_id"].startswith(BY_CONTENT):
                key = (row["provider"], row["conversation_id"])
                found[key] = ledger.message_hashes(key).keys()
    return found
