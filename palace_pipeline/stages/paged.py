"""What is known of conversations from their Markdown pages alone, after `palace rebuild --from pages`."""

from __future__ import annotations

from palace_pipeline.model import Conversation, Finding
from palace_pipeline.redaction.funnel import Funnel, conversation_fields
from palace_pipeline.store.ledger import Key, Ledger, unpack_index

FROM_PAGES = "conversations"
"""`path` of a sighting that was read from a page: the folder of the home, where all others are absolute."""


def only_on_page(ledger: Ledger, key: Key) -> tuple[set[str], bool]:
    """Ids of the messages that a conversation has from its page alone, and whether nothing else shows it at all."""
    live = ledger.rows(
        "SELECT path, message_index FROM sightings WHERE provider = ? AND conversation_id = ? AND superseded = 0", key
    )
    if all(row["path"] != FROM_PAGES for row in live):
        return set(), False
    ids: dict[bool, set[str]] = {True: set(), False: set()}
    for row in live:
        ids[row["path"] == FROM_PAGES].update(unpack_index(row["message_index"]))
    return ids[True] - ids[False], not ids[False]


def masked_before(funnel: Funnel, conversation: Conversation, ids: set[str], whole: bool) -> list[Finding]:
    """What was masked in messages that are known from a page alone (`ids`; `whole`: so is all of the conversation).

    A page holds the masks and nothing else of it: rule and layer are `page`, length and fingerprint are not known.
    """
    if not ids and not whole:
        return []
    found: list[Finding] = []
    for name, text in conversation_fields(conversation):
        parts = name.split(".")
        seq = int(parts[1]) if parts[0] == "messages" else None
        if whole if seq is None else conversation.messages[seq].message_id in ids:
            found += [Finding(name, kind, "page", "page", 0, 0, seq) for kind in funnel.kinds_of_masks(text)]
    return found
