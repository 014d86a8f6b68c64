"""Conversations known from their Markdown pages alone, and how a page gives way to the exports it was made from.

A page is a sighting like any other, but a poorer one: redacted, without hidden rows and other branches. So as soon as an
export shows a message, what the page says of it takes no part any more; what only the page shows stays, in its place.
"""

from __future__ import annotations

from palace_pipeline.model import Message, from_record, record_identity, record_parts
from palace_pipeline.stages.paged import FROM_PAGES
from palace_pipeline.store.ledger import Key, Ledger, pack_index, unpack_index
from palace_pipeline.store.vault import Vault
from palace_pipeline.transcripts.merge import merge
from palace_pipeline.transcripts.page import NOT_SHOWN


def give_way(ledger: Ledger, vault: Vault, key: Key) -> None:
    """Where exports show a conversation by now, leave of its page only the messages that none of them has.

    Call it before the conversation is settled.
    """
    live = ledger.sightings(key)
    paged = [row for row in live if row["path"] == FROM_PAGES]
    if not paged or len(paged) == len(live):
        return
    others = [from_record(vault.record(row["record"])) for row in live if row["path"] != FROM_PAGES]
    shown = {message.message_id: message for message in merge(others).messages}
    where = "WHERE provider = ? AND conversation_id = ? AND record = ?"
    for row in paged:
        page = from_record(vault.record(row["record"]))
        told = [message for message in page.messages if message.hidden_reason != NOT_SHOWN]
        if all(message.message_id in shown for message in told):
            ledger.write(f"UPDATE sightings SET superseded = 1 {where}", (*key, row["record"]))
            continue
        # Their words stand in its record too, so that what only the page has keeps its place among them.
        page.messages = [_chosen(message, shown) for message in told]
        record, index = record_identity(page)
        if record == row["record"]:
            continue
        vault.put_record_parts(record, record_parts(page))
        vault.note_place(
            record, row["path"], row["member"], row["sha256"], seen=row["seen_day"], first_seen=row["seen_day"]
        )
        ledger.write(
            "INSERT OR REPLACE INTO sightings (provider, conversation_id, record, path, member, sha256, seen_day, earliest, "
            "undated_reason, created, updated_at, messages, message_index, forked_from) "
            "SELECT provider, conversation_id, ?, path, member, sha256, seen_day, earliest, undated_reason, created, "
            f"updated_at, ?, ?, forked_from FROM sightings {where}",
            (record, len(index), pack_index(index), *key, row["record"]),
        )
        ledger.write(f"UPDATE sightings SET superseded = 1 {where}", (*key, row["record"]))
    index = {}
    for row in sorted(ledger.sightings(key), key=lambda row: row["updated_at"] or ""):
        index |= unpack_index(row["message_index"])
    ledger.replace_messages(key, index)


def _chosen(message: Message, shown: dict[str, Message]) -> Message:
    return shown.get(message.message_id, message)
