"""Which conversation is meant, what goes with it, and what it shows: the pieces of its texts that are looked for after."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from sqlite3 import Row

from ahocorasick_rs import BytesAhoCorasick

from palace_pipeline.model import from_record, page_hash
from palace_pipeline.redaction.funnel import conversation_fields
from palace_pipeline.store.ledger import Key, Ledger
from palace_pipeline.store.vault import Vault
from palace_pipeline.transcripts.page_path import parse_name

SHOWN = 10
MOST_PROBES = 24
"""Pieces of one record that are looked for."""
_LEAST_BYTES = 16
_LONGEST = 80
_PIECE = re.compile(r"[^\x00-\x1f\x7f\"\\<>&%\ud800-\udfff]{4,}")
"""What every store writes as it is: no quotes, backslashes, line ends."""


class PurgeError(ValueError):
    """What was asked for cannot be meant; the text says why and what to do."""


def resolve(ledger: Ledger, named: str) -> Key:
    """The conversation that is meant by `provider:conversation_id`, a page's path, or the unique beginning of an id.

    Raises PurgeError if there is none, more than one, or if it was continued in another that repeats all of it.
    """
    rows = ledger.rows("SELECT provider, conversation_id, page, superseded_by, status FROM conversations ORDER BY 1, 2")
    found = _exact(rows, named) or _by_page(rows, named) or _by_beginning(rows, named)
    if not found:
        raise PurgeError(f"no conversation of the archive is called {named!r} (see: palace sql 'from conversations')")
    if len(found) > 1:
        names = ", ".join(f"{row['provider']}:{row['conversation_id']}" for row in found[:SHOWN])
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise PurgeError(f"{named!r} is the beginning of {len(found)} conversations: {names}{more}")
    row = found[0]
    if row["superseded_by"] and row["status"] != "purged":
        heir = f"{row['provider']}:{row['superseded_by']}"
        raise PurgeError(f"it was continued in {heir}, which repeats all of it; purge that one")
    return (row["provider"], row["conversation_id"])


def _exact(rows: Sequence[Row], named: str) -> list[Row]:
    return [row for row in rows if f"{row['provider']}:{row['conversation_id']}" == named]


def _by_page(rows: Sequence[Row], named: str) -> list[Row]:
    name = parse_name(Path(named).name)
    if name is None:
        return []
    alike = [row for row in rows if page_hash(row["provider"], row["conversation_id"]) == name[1]]
    known = [row for row in alike if row["page"] and Path(row["page"]).name == Path(named).name]
    return known or alike


def _by_beginning(rows: Sequence[Row], named: str) -> list[Row]:
    whole = [row for row in rows if row["conversation_id"] == named]
    return whole or [
        row
        for row in rows
        if named
        and (
            row["conversation_id"].startswith(named) or f"{row['provider']}:{row['conversation_id']}".startswith(named)
        )
    ]


def with_continued(ledger: Ledger, key: Key) -> list[Key]:
    """The conversation, and those that were resumed in it and that it repeats in full."""
    rows = ledger.rows(
        "SELECT conversation_id FROM conversations WHERE provider = ? AND superseded_by = ? ORDER BY 1", key
    )
    return [key, *((key[0], row["conversation_id"]) for row in rows if row["conversation_id"] != key[1])]


def records_of(ledger: Ledger, keys: Iterable[Key]) -> set[str]:
    """Names of all records of some conversations that the vault has."""
    return {
        row["record"]
        for key in keys
        for row in ledger.rows(
            "SELECT record FROM sightings WHERE provider = ? AND conversation_id = ? AND superseded != 2", key
        )
    }


def probes_of(ledger: Ledger, vault: Vault, records: set[str]) -> list[str]:
    """Pieces of the texts of some conversations that no other conversation has.

    They are what proves afterwards that nothing is left, and are kept in memory only.
    """
    chosen: list[str] = []
    for record in sorted(records):
        texts = (text for _, text in conversation_fields(from_record(vault.record(record))))
        pieces = sorted({piece for text in texts for piece in _pieces(text)}, key=lambda piece: (-len(piece), piece))
        # Some from everywhere rather than all of one long text.
        chosen += pieces[:: max(1, len(pieces) // (MOST_PROBES))][:MOST_PROBES]
    if not chosen:
        return []
    automaton = BytesAhoCorasick([piece.encode() for piece in chosen])
    shared: set[int] = set()
    for record, data in vault.every("records"):
        if record not in records:
            shared.update(index for index, _, _ in automaton.find_matches_as_indexes(data, overlapping=True))
    # What the user's own files are called is known to the ledger for as long as they are called so.
    named = "SELECT path FROM files UNION SELECT member FROM members UNION SELECT member FROM file_elements"
    paths = "\n".join(row["path"] for row in ledger.rows(f"{named} UNION SELECT place FROM skips"))
    shared.update(index for index, _, _ in automaton.find_matches_as_indexes(paths.encode(), overlapping=True))
    return list(dict.fromkeys(piece for index, piece in enumerate(chosen) if index not in shared))


def _pieces(text: str) -> list[str]:
    found: list[str] = []
    for run in _PIECE.finditer(text):
        piece = run[0].strip()[:_LONGEST].rstrip()
        if len(piece.encode()) >= _LEAST_BYTES:
            found.append(piece)
    return found[:MOST_PROBES]
