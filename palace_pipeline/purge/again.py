"""What a conversation said that was purged before: read from what still holds it, so that the rest of it is found.

The archive knows no word of it any more. Its raw bytes do, if they were left in the vault, and so do the user's own files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from palace_pipeline.exports.base import Member, Report
from palace_pipeline.exports.engine import identify, read_member
from palace_pipeline.exports.parse import conversations_in
from palace_pipeline.ingest.kept import vault_members
from palace_pipeline.ingest.purged import PURGED, mark_of
from palace_pipeline.model import Conversation
from palace_pipeline.redaction.forgetting import tombstone
from palace_pipeline.store.ledger import Key, Ledger
from palace_pipeline.store.vault import Vault


def said_before(
    ledger: Ledger, vault: Vault, keys: Sequence[Key], elements: Collection[str], secret: bytes
) -> list[Conversation]:
    """Conversations that were purged before, as the vault (`elements`: those that made them) or else the user's files
    show them."""
    wanted = set(keys)
    found = [chat for member in _members(ledger, vault, elements) for chat in _read(member) if chat.key in wanted]
    if found:
        return found
    marks = [mark_of(tombstone(*key, secret)) for key in keys]
    return [
        chat for path in files_with(ledger, marks) for chat in conversations_in(Path(path), []) if chat.key in wanted
    ]


def files_with(ledger: Ledger, marks: Sequence[str]) -> list[str]:
    """Files of the user that are there and of which purged conversations were left out, by their marks."""
    rows = ledger.rows("SELECT DISTINCT path, place FROM skips WHERE reason = ? ORDER BY path", (PURGED,))
    paths = {row["path"]: None for row in rows if any(mark in row["place"] for mark in marks)}
    return [path for path in paths if Path(path).exists()]


def _members(ledger: Ledger, vault: Vault, elements: Collection[str]) -> Iterator[Member]:
    """Members of the vault that hold some elements, and of those that are kept by elements nothing else."""
    places: dict[tuple[str, str], None] = {}
    for element in elements:
        for row in ledger.rows("SELECT path, member FROM file_elements WHERE element = ?", (element,)):
            places[row["path"], row["member"]] = None
    for path, name in places:
        for member in vault_members(ledger, vault, path):
            if member.path == name:
                own = [one for one in member.elements if one[1] in elements]
                yield replace(member, elements=own) if member.use in ("array", "lines") else member


def _read(member: Member) -> Iterator[Conversation]:
    report = Report(member.path)
    if (identified := identify(member, report)) is not None:
        yield from read_member(member, *identified, report)
