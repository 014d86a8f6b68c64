"""One conversation as one record shows it -> the ledger: a sighting, the conversation's day, what is new of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from sqlite3 import Row

from palace_pipeline.ingest.paged import give_way
from palace_pipeline.model import (
    CURRENT_PROVIDERS,
    Conversation,
    from_record,
    record_identity,
    record_parts,
    to_record,
)
from palace_pipeline.stages.words_gone import note_old_words
from palace_pipeline.store.ledger import Key, Ledger, input_fingerprint, pack_index, unpack_index
from palace_pipeline.store.vault import Vault
from palace_pipeline.transcripts.day import DayHint, day_of
from palace_pipeline.transcripts.merge import family, merge, superseded

FUTURE_DATES = "future_dates"
"""In the ledger's `meta`: the last day on which dates were seen that had not come yet (`ingest.clock`)."""


@dataclass(frozen=True, slots=True)
class Where:
    """The place a record was read from, and when: `today` is the UTC date of the run, `start` the first day.

    `dated`: of a page, which says itself whether `today`, its day, is the day of its first message (True) or that on
    which an undated conversation was first seen (False).
    """

    path: str
    member: str
    sha256: str
    start: date
    today: date
    dated: bool | None = None


@dataclass(frozen=True, slots=True)
class News:
    """What a record brought: the record's name, its messages, and how many of them are new or changed."""

    record: str
    messages: int
    new_conversation: bool
    new: int
    updated: int

    @property
    def anything(self) -> bool:
        return self.new_conversation or self.new > 0 or self.updated > 0


def note(ledger: Ledger, vault: Vault | None, conversation: Conversation, where: Where, *, later: bool = False) -> News:
    """Keep a record and note the sighting; without a vault (dry run) only the ledger learns of it.

    `later`: the conversation's day and input are brought in line by `settle_noted`, once for all its sightings.
    Raises RecordTooLarge for a conversation that cannot be kept; then nothing is noted.
    """
    record, index = record_identity(conversation)
    key = conversation.key
    known = ledger.one(
        "SELECT messages, superseded FROM sightings WHERE provider = ? AND conversation_id = ? AND record = ?",
        (*key, record),
    )
    if known is not None and not (known["superseded"] and conversation.provider in CURRENT_PROVIDERS):
        return News(record, known["messages"], False, 0, 0)
    if vault is not None:
        vault.put_record_parts(record, record_parts(conversation))
    row = ledger.conversation(key)
    before = ledger.message_hashes(key, index) if row is not None else {}
    newest = ledger.one(
        "SELECT updated_at FROM sightings WHERE provider = ? AND conversation_id = ? ORDER BY updated_at DESC LIMIT 1",
        key,
    )
    updated_at = _updated_at(conversation)
    stale = newest is not None and (updated_at or "") < (newest["updated_at"] or "")
    added = index.keys() - before.keys()
    # An older export shows messages as they were: they differ, but nothing is updated by them.
    changed = set() if stale else {name for name in index.keys() & before.keys() if index[name] != before[name]}
    hint = _day(conversation, where)
    day = min(hint.day, where.today) if hint.day else None
    ledger.write(
        "INSERT OR REPLACE INTO sightings (provider, conversation_id, record, path, member, sha256, seen_day, earliest, "
        "undated_reason, created, updated_at, messages, message_index, forked_from) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *key,
            record,
            where.path,
            where.member,
            where.sha256,
            where.today.isoformat(),
            day.isoformat() if day and hint.source == "message" else None,
            hint.reason,
            day.isoformat() if day and hint.source == "created" else None,
            updated_at,
            len(index),
            pack_index(index),
            conversation.forked_from,
        ),
    )
    if hint.reason == "in the future":
        ledger.set_meta(FUTURE_DATES, where.today.isoformat())
    if vault is not None:
        vault.note_place(
            record,
            where.path,
            where.member,
            where.sha256,
            seen=where.today.isoformat(),
            first_seen=row["first_seen_day"] if row is not None else where.today.isoformat(),
        )
    if row is None:
        ledger.write(
            "INSERT INTO conversations (provider, conversation_id, day, dated, first_seen_day, input, messages) "
            "VALUES (?, ?, ?, 0, ?, '', ?)",
            (*key, where.today.isoformat(), where.today.isoformat(), len(index)),
        )
    elif added:
        ledger.write(
            "UPDATE conversations SET messages = messages + ? WHERE provider = ? AND conversation_id = ?",
            (len(added), *key),
        )
    ledger.note_messages(key, {name: index[name] for name in added | changed})
    if conversation.provider in CURRENT_PROVIDERS:
        # A document or session has no history of its own: what its file says now is what it says.
        if (
            conversation.provider == "session"
            and vault is not None
            and _masks_more(ledger, vault, conversation, record)
        ):
            note_old_words(ledger)
        ledger.write(
            "UPDATE sightings SET superseded = max(superseded, 1) WHERE provider = ? AND conversation_id = ? "
            "AND record != ?",
            (*key, record),
        )
        ledger.replace_messages(key, index)  # what was deleted from the file is no message any more
    elif vault is not None:
        disjoint = bool(index) and len(added) == len(index)
        _set_aside_contained(ledger, vault, key, record, conversation, index, disjoint=disjoint)
    if later and row is not None:
        ledger.write("INSERT OR IGNORE INTO unsettled VALUES (?, ?)", key)
    else:
        if vault is not None and row is not None:
            give_way(ledger, vault, key)
        settle(ledger, key)  # a new one at once: without its day it must not be seen by the planner
    return News(record, len(index), row is None, len(added), len(changed))


def _masks_more(ledger: Ledger, vault: Vault, conversation: Conversation, record: str) -> bool:
    """Whether a live session masks something that it showed when it was last read."""
    before = ledger.rows(
        "SELECT record FROM sightings WHERE provider = ? AND conversation_id = ? AND superseded = 0 AND record != ?",
        (*conversation.key, record),
    )
    shown = [vault.record(row["record"]).count(b"REDACTED") for row in before]
    return bool(shown) and to_record(conversation).count(b"REDACTED") > min(shown)


def _day(conversation: Conversation, where: Where) -> DayHint:
    if where.dated is not None:
        return DayHint(where.today, None, "message") if where.dated else DayHint(None, "no time")
    # A naive time of this morning in Shanghai is tomorrow in UTC: it counts as today rather than as no time at all.
    return day_of([conversation], start=where.start, today=where.today + timedelta(days=1))


def put_record_back(ledger: Ledger, vault: Vault, conversation: Conversation, record: str) -> None:
    """Into a vault that lost it; not what was dropped because a longer record holds it."""
    seen = ledger.one(
        "SELECT superseded, path, member, sha256, seen_day, first_seen_day FROM sightings "
        "JOIN conversations USING (provider, conversation_id) "
        "WHERE provider = ? AND conversation_id = ? AND record = ?",
        (*conversation.key, record),
    )
    if seen is None or seen["superseded"] == 2 or not vault.lacks("records", [record]):
        return
    vault.put_record_parts(record, record_parts(conversation))
    vault.note_place(
        record,
        seen["path"],
        seen["member"],
        seen["sha256"],
        seen=seen["seen_day"],
        first_seen=seen["first_seen_day"],
    )


def _updated_at(conversation: Conversation) -> str | None:
    times = [m.created_at for m in conversation.messages if m.created_at is not None]
    at: datetime | None = conversation.updated_at or (max(times) if times else None)
    return at.astimezone(UTC).isoformat() if at else None


def _set_aside_contained(
    ledger: Ledger,
    vault: Vault,
    key: Key,
    record: str,
    conversation: Conversation,
    index: dict[str, str],
    *,
    disjoint: bool,
) -> None:
    """Set aside records that another one holds whole (a log that grew), so that a live session does not pile up.

    The test is the merge itself: if one record alone gives the same transcript, the other adds nothing. It may be the
    new one (an older export that came later), so what stays does not depend on the order; of two that say the same in
    different bytes the greater hash stays. `disjoint`: all messages are new, so only a record without any can be held
    in it; a channel of a thousand day files must not look at all of them for each.
    """
    alone: bytes | None = None
    for old in ledger.sightings(key, empty=disjoint):
        known = unpack_index(old["message_index"])
        if old["record"] == record or not (known.items() <= index.items() or index.items() <= known.items()):
            continue
        if alone is None:
            alone = to_record(merge([conversation]))
        other = from_record(vault.record(old["record"]))
        both = to_record(merge([conversation, other]))
        old_alone = to_record(merge([other]))
        if both == alone and (both != old_alone or record > old["record"]):
            aside = old["record"]
        elif both == old_alone:
            aside = record
        else:
            continue
        ledger.write(
            "UPDATE sightings SET superseded = 1 WHERE provider = ? AND conversation_id = ? AND record = ?",
            (*key, aside),
        )
        if aside == record:
            return


def drop_contained_records(ledger: Ledger, vault: Vault) -> None:
    """Delete the records that were set aside; what they were read from stays in the vault.

    Only after the ledger has committed: a kill must never leave it pointing at a record that is gone.
    """
    rows = ledger.rows("SELECT record FROM sightings WHERE superseded = 1")
    vault.drop_records(row["record"] for row in rows)
    vault.commit()
    ledger.write("UPDATE sightings SET superseded = 2 WHERE superseded = 1")


def retire(ledger: Ledger, elements: Iterable[str], is_current: Callable[[str, str], bool]) -> None:
    """Take back what an outdated reader made of elements that have been read anew: its records no longer count.

    `elements`: those that a file had before it was read again. One that another file still shows, or whose reader is as
    it was (the export simply no longer has it), stays: nothing that was once said goes away.
    """
    for element in elements:
        row = ledger.one("SELECT format, recipe FROM elements WHERE element = ?", (element,))
        if row is None or is_current(row["format"], row["recipe"]):
            continue
        if ledger.one("SELECT 1 FROM file_elements WHERE element = ?", (element,)) is not None:
            continue
        made = ledger.rows(
            "SELECT provider, conversation_id, record FROM element_records WHERE element = ?", (element,)
        )
        ledger.write("DELETE FROM element_records WHERE element = ?", (element,))
        ledger.write("DELETE FROM elements WHERE element = ?", (element,))
        for seen in made:
            _take_back((seen["provider"], seen["conversation_id"]), seen["record"], ledger)


def _take_back(key: Key, record: str, ledger: Ledger) -> None:
    supported = ledger.one(
        "SELECT 1 FROM element_records WHERE provider = ? AND conversation_id = ? AND record = ?", (*key, record)
    )
    others = [sighting for sighting in ledger.sightings(key) if sighting["record"] != record]
    if supported is not None or not others:
        return  # without another record the conversation would be lost with it
    ledger.write("DELETE FROM sightings WHERE provider = ? AND conversation_id = ? AND record = ?", (*key, record))
    index: dict[str, str] = {}
    for sighting in sorted(others, key=lambda s: s["updated_at"] or ""):
        index |= unpack_index(sighting["message_index"])
    ledger.replace_messages(key, index)
    settle(ledger, key)


def settle_noted(ledger: Ledger, vault: Vault | None) -> None:
    """Bring in line what was noted to be settled later, also what a kill has left. Without a vault (a dry run) pages
    do not give way."""
    with ledger.transaction():
        for row in ledger.rows("SELECT provider, conversation_id FROM unsettled ORDER BY 1, 2"):
            key = (row["provider"], row["conversation_id"])
            if vault is not None:
                give_way(ledger, vault, key)
            settle(ledger, key)
        ledger.write("DELETE FROM unsettled")
        if vault is not None:
            vault.commit()  # never after the ledger


def settle(ledger: Ledger, key: Key) -> None:
    """Bring a conversation's day, input and fork relations in line with its sightings."""
    row = ledger.conversation(key)
    if row is None:
        return
    seen = ledger.rows(
        "SELECT record, earliest, created, undated_reason, forked_from, superseded FROM sightings "
        "WHERE provider = ? AND conversation_id = ?",
        key,
    )
    earliest = min((s["earliest"] for s in seen if s["earliest"]), default=None)
    created = min((s["created"] for s in seen if s["created"]), default=None)
    day = earliest or created or row["first_seen_day"]
    dated = bool(earliest or created)
    reason = (
        None if dated else next((s["undated_reason"] for s in seen if s["undated_reason"]), "no time in the source")
    )
    # Greatest, as in the merge; what a ledger of an older version noted of the conversation itself stays.
    forked_from = max((s["forked_from"] for s in seen if s["forked_from"]), default=row["forked_from"])
    if row["built_day"] is not None and row["built_day"] != day:
        ledger.write("INSERT OR IGNORE INTO left_days VALUES (?)", (row["built_day"],))
    ledger.write(
        "UPDATE conversations SET day = ?, dated = ?, undated_reason = ?, forked_from = ? "
        "WHERE provider = ? AND conversation_id = ?",
        (day, int(dated), reason, forked_from, *key),
    )
    _set_input(ledger, key, day, dated, [s["record"] for s in seen if not s["superseded"]], row["superseded_by"])
    _relate(ledger, key)


def _set_input(ledger: Ledger, key: Key, day: str, dated: bool, live: list[str], superseded_by: str | None) -> None:
    value = f"superseded:{superseded_by}" if superseded_by else f"{day}:{int(dated)}:{input_fingerprint(live)}"
    ledger.write("UPDATE conversations SET input = ? WHERE provider = ? AND conversation_id = ?", (value, *key))


def _relate(ledger: Ledger, key: Key) -> None:
    """Which of a conversation and the copies of it have no transcript of their own, by the one rule for that."""

    @cache
    def head(at: Key) -> Row | None:
        return ledger.one(f"SELECT {_HEAD} FROM conversations WHERE provider = ? AND conversation_id = ?", at)

    def parent_of(at: Key) -> Key | None:
        row = head(at)
        return (at[0], row["forked_from"]) if row is not None and row["forked_from"] else None

    def copies_of(at: Key) -> list[Key]:
        rows = ledger.rows("SELECT conversation_id FROM conversations WHERE provider = ? AND forked_from = ?", at)
        return [(at[0], row["conversation_id"]) for row in rows]

    @cache
    def ids_of(at: Key) -> Set[str]:
        return ledger.message_hashes(at).keys()

    rows = {at: row for at in family(key, parent_of, copies_of) if (row := head(at)) is not None}
    heirs = superseded(
        {at: row["messages"] for at, row in rows.items()},
        ids_of,
        {at: (at[0], row["forked_from"]) for at, row in rows.items() if row["forked_from"]},
    )
    for at, row in rows.items():
        heir = heirs[at][1] if at in heirs else None
        if heir != row["superseded_by"]:
            ledger.write(
                "UPDATE conversations SET superseded_by = ? WHERE provider = ? AND conversation_id = ?", (heir, *at)
            )
            live = [s["record"] for s in ledger.sightings(at)]
            _set_input(ledger, at, row["day"], bool(row["dated"]), live, heir)


_HEAD = "day, dated, messages, forked_from, superseded_by"
