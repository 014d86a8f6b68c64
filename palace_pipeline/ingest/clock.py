"""What a clock that was wrong has left: dates that were taken for the future, and days that are."""

from __future__ import annotations

from datetime import date, timedelta

from palace_pipeline.ingest.sightings import FUTURE_DATES, settle
from palace_pipeline.model import from_record
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.vault import Vault
from palace_pipeline.transcripts.day import day_of


def follow_clock(ledger: Ledger, vault: Vault, start: date, today: date) -> int:
    """Bring days in line with a clock that was set right; returns how many conversations were looked at. Needs the write lock.

    Dates that lay in the future when they were read are looked at once a day, as long as there are any. A conversation
    without times that was first seen on a day that is still to come was seen with a clock that ran ahead: it was today.
    """
    with ledger.transaction():
        keys = [*_no_future_any_more(ledger, vault, start, today), *_seen_too_late(ledger, today)]
        for key in keys:
            settle(ledger, key)
    vault.commit()
    return len(keys)


def _no_future_any_more(ledger: Ledger, vault: Vault, start: date, today: date) -> list[tuple[str, str]]:
    looked = ledger.meta(FUTURE_DATES)
    if looked is None or looked == today.isoformat():
        return []
    rows = ledger.rows(
        "SELECT provider, conversation_id, record FROM sightings WHERE undated_reason = 'in the future' "
        "AND superseded != 2"
    )
    left = 0
    for row in rows:
        hint = day_of([from_record(vault.record(row["record"]))], start=start, today=today + timedelta(days=1))
        day = min(hint.day, today).isoformat() if hint.day else None
        left += hint.reason == "in the future"
        ledger.write(
            "UPDATE sightings SET earliest = ?, created = ?, undated_reason = ? "
            "WHERE provider = ? AND conversation_id = ? AND record = ?",
            (day if hint.source == "message" else None, day if hint.source == "created" else None, hint.reason, *row),
        )
    if left:
        ledger.set_meta(FUTURE_DATES, today.isoformat())
    else:
        ledger.write("DELETE FROM meta WHERE name = ?", (FUTURE_DATES,))
    return [(row["provider"], row["conversation_id"]) for row in rows]


def _seen_too_late(ledger: Ledger, today: date) -> list[tuple[str, str]]:
    # A naive time of this morning in Shanghai may lie a day ahead, and so may the clock of another machine.
    latest, now = (today + timedelta(days=1)).isoformat(), today.isoformat()
    rows = ledger.rows("SELECT provider, conversation_id FROM conversations WHERE day > ?", (latest,))
    for row in rows:
        where = "WHERE provider = ? AND conversation_id = ?"
        ledger.write(f"UPDATE conversations SET first_seen_day = min(first_seen_day, ?) {where}", (now, *row))
        ledger.write(f"UPDATE sightings SET seen_day = min(seen_day, ?) {where}", (now, *row))
    return [(row["provider"], row["conversation_id"]) for row in rows]
