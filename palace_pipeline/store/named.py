"""Which conversation a person means: `provider:id`, the path of a page, or the unique beginning of an id."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from sqlite3 import Row

from palace_pipeline.model import page_hash
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.transcripts.page_path import parse_name

SHOWN = 10
"""Names that are listed where more than one is meant."""


class NotOneError(ValueError):
    """No conversation is called so, or more than one; the text says which."""


def named_conversation(ledger: Ledger, named: str) -> Row:
    """The ledger's row of the conversation that is meant. Raises NotOneError."""
    rows = ledger.rows(
        "SELECT provider, conversation_id, day, page, superseded_by, status FROM conversations ORDER BY 1, 2"
    )
    found = _exact(rows, named) or _by_page(rows, named) or _by_beginning(rows, named)
    if not found:
        raise NotOneError(f"no conversation of the archive is called {named!r} (see: palace sql 'from conversations')")
    if len(found) > 1:
        names = ", ".join(f"{row['provider']}:{row['conversation_id']}" for row in found[:SHOWN])
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise NotOneError(f"{named!r} is the beginning of {len(found)} conversations: {names}{more}")
    return found[0]


def resumed_in(ledger: Ledger, row: Row) -> Row:
    """The ledger's row of the conversation in which one was resumed, which repeats all of it, and so on; the row itself if it
    was not."""
    seen: set[str] = set()
    while (heir := row["superseded_by"]) and heir not in seen:
        seen.add(heir)
        found = ledger.conversation((row["provider"], heir))
        if found is None:
            return row
        row = found
    return row


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
