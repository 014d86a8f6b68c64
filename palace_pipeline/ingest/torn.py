"""A file that is torn, and says less than it did: what it gave before stays what it gave."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Row

from palace_pipeline.ingest.gathered import File
from palace_pipeline.model import Conversation, record_identity
from palace_pipeline.store.ledger import Ledger

SAYS_LESS = (
    "the page is torn or in conflict, and lacks what the archive has of it; the archive keeps that until the page is whole, "
    "or somebody has looked (palace conflicts)"
)
SAYS_NOTHING = "a torn page, on which nothing is left"


def why_left(ledger: Ledger, conversation: Conversation) -> str | None:
    """Why a torn page is not taken; None if it is: it lacks nothing that the archive has."""
    known = ledger.message_hashes(conversation.key)
    if known.keys() - record_identity(conversation)[1].keys():
        return SAYS_LESS
    return None if any(row.visible or row.role == "tool" for row in conversation.messages) else SAYS_NOTHING


def leave(ledger: Ledger, file: File, parts: Sequence[Row]) -> None:
    """Put back what the ledger knew of a file that was read: `parts`, its rows of `file_elements`."""
    ledger.write("DELETE FROM file_elements WHERE path = ?", (file.path,))
    ledger.write_many("INSERT INTO file_elements VALUES (?, ?, ?, ?)", map(tuple, parts))
    row = ledger.one("SELECT conversations, messages FROM files WHERE path = ?", (file.path,))
    file.taken, file.messages = (row["conversations"], row["messages"]) if row is not None else (0, 0)
