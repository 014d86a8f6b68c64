"""Which conversation is meant, what goes with it, and what it shows: the pieces of its texts that are looked for after."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ahocorasick_rs import BytesAhoCorasick

from palace_pipeline.model import PROVIDERS, Conversation, from_record
from palace_pipeline.redaction.forgetting import tombstone
from palace_pipeline.redaction.funnel import conversation_fields
from palace_pipeline.store.ledger import Key, Ledger
from palace_pipeline.store.named import NotOneError, named_conversation
from palace_pipeline.store.vault import Vault

MOST_PROBES = 24
"""Pieces of one record that are looked for."""
LEAST_ID = 16
"""Characters: shorter ids (`12`, `main`) stand in other chats as well."""
LEAST_BYTES = 16
"""Of a piece of text that is looked for: a shorter one stands elsewhere by chance."""
_LONGEST = 80
_PIECE = re.compile(r"[^\x00-\x1f\x7f\"\\<>&%\ud800-\udfff]{4,}")
"""What every store writes as it is: no quotes, backslashes, line ends."""


class PurgeError(ValueError):
    """What was asked for cannot be meant; the text says why and what to do."""


def resolve(ledger: Ledger, named: str) -> Key:
    """The conversation that is meant by `provider:conversation_id`, a page's path, or the unique beginning of an id.

    Raises PurgeError if there is none, more than one, or if it was continued in another that repeats all of it.
    """
    try:
        row = named_conversation(ledger, named)
    except NotOneError as error:
        raise PurgeError(str(error)) from None
    if row["superseded_by"] and row["status"] != "purged":
        heir = f"{row['provider']}:{row['superseded_by']}"
        raise PurgeError(f"it was continued in {heir}, which repeats all of it; purge that one")
    return (row["provider"], row["conversation_id"])


def with_continued(ledger: Ledger, key: Key) -> list[Key]:
    """The conversation, and those that were resumed in it and that it repeats in full."""
    rows = ledger.rows(
        "SELECT conversation_id FROM conversations WHERE provider = ? AND superseded_by = ? ORDER BY 1", key
    )
    return [key, *((key[0], row["conversation_id"]) for row in rows if row["conversation_id"] != key[1])]


def with_parts(ledger: Ledger, vault: Vault, keys: Sequence[Key]) -> list[Key]:
    """The conversations, and the parts of those that are long sessions: pages of their own, each a conversation too. By the
    archive, not by the pages, which somebody may have deleted."""
    roots = {name for provider, name in keys if provider == "session"}
    if not roots:
        return list(keys)
    rows = ledger.rows("SELECT conversation_id FROM conversations WHERE provider = 'session' ORDER BY 1")
    others = [("session", row["conversation_id"]) for row in rows if ("session", row["conversation_id"]) not in keys]
    return [
        *keys,
        *(
            key
            for key in others
            if any(is_part(one, roots) for one in conversations_of(vault, records_of(ledger, [key])))
        ),
    ]


def is_part(conversation: Conversation, roots: Collection[str]) -> bool:
    """Whether a session is a part of one of some sessions (one that a session began is told by its origin)."""
    return conversation.parent_conversation_id in roots and conversation.origin == "person"


def buried(ledger: Ledger, secret: bytes, named: str) -> Key | None:
    """The conversation that was purged before, named by its whole id (with or without the provider), else None."""
    graves = ledger.tombstones()
    provider, _, name = named.partition(":")
    keys = [(provider, name), *((one, named) for one in sorted(PROVIDERS))]
    return next((key for key in keys if tombstone(*key, secret) in graves), None) if graves else None


def conversations_of(vault: Vault, records: Iterable[str]) -> Iterator[Conversation]:
    """Conversations as some records have them."""
    return (from_record(vault.record(record)) for record in sorted(records))


def records_of(ledger: Ledger, keys: Iterable[Key]) -> set[str]:
    """Names of all records of some conversations that the vault has."""
    return {
        row["record"]
        for key in keys
        for row in ledger.rows(
            "SELECT record FROM sightings WHERE provider = ? AND conversation_id = ? AND superseded != 2", key
        )
    }


@dataclass(frozen=True, slots=True)
class Said:
    """What some conversations say and no other does; kept in memory only. `probes` prove afterwards that nothing is left;
    with `more` texts, and the `ids` of the conversations and their messages, parts of them are found in raw bytes."""

    probes: list[str] = field(default_factory=list[str])
    more: list[str] = field(default_factory=list[str])
    ids: list[str] = field(default_factory=list[str])


def said_by(ledger: Ledger, vault: Vault, conversations: Iterable[Conversation], records: Collection[str]) -> Said:
    """What conversations say. `records`: their own, in which it may stand."""
    probes: list[str] = []
    more: list[str] = []
    ids: list[str] = []
    for conversation in conversations:
        fields = conversation_fields(conversation)
        texts = [_pieces(text) for name, text in fields if not name.endswith(".hidden_reason")]  # which readers say
        pieces = sorted({piece for found in texts for piece in found}, key=lambda piece: (-len(piece), piece))
        # Some from everywhere rather than all of one long text.
        probes += pieces[:: max(1, len(pieces) // (MOST_PROBES))][:MOST_PROBES]
        # A part that was cut off may be the first or the last one: something of every text.
        more += [found[0] for found in texts if found]
        ids += [conversation.conversation_id, *(message.message_id for message in conversation.messages)]
    ids = [name for name in dict.fromkeys(ids) if len(name) >= LEAST_ID]
    everything = list(dict.fromkeys([*probes, *more, *ids]))
    if not everything:
        return Said()
    automaton = BytesAhoCorasick([piece.encode() for piece in everything])
    shared: set[str] = set()
    for record, data in vault.every("records"):
        if record not in records:
            found = {index for index, _, _ in automaton.find_matches_as_indexes(data, overlapping=True)}
            shared.update(everything[index] for index in found)
    # What the user's own files are called is known to the ledger for as long as they are called so.
    named = "SELECT path FROM files UNION SELECT member FROM members UNION SELECT member FROM file_elements"
    paths = "\n".join(row["path"] for row in ledger.rows(f"{named} UNION SELECT place FROM skips"))
    in_paths = {
        everything[index] for index, _, _ in automaton.find_matches_as_indexes(paths.encode(), overlapping=True)
    }
    return Said(
        [piece for piece in dict.fromkeys(probes) if piece not in shared and piece not in in_paths],
        [piece for piece in dict.fromkeys(more) if piece not in shared],
        [name for name in ids if name not in shared],
    )


def _pieces(text: str) -> list[str]:
    found: list[str] = []
    for run in _PIECE.finditer(text):
        piece = run[0].strip()[:_LONGEST].rstrip()
        if len(piece.encode()) >= LEAST_BYTES:
            found.append(piece)
    return found[:MOST_PROBES]
