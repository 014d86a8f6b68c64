"""`normalized_transcripts`: all sightings of a conversation -> one canonical transcript in `lake/raw`."""

from __future__ import annotations

import time
from dataclasses import fields
from datetime import date
from sqlite3 import Row

from palace_pipeline.model import CONVERSATIONS, LAKE, MESSAGES, Conversation, frame, from_record, short_hash, to_record
from palace_pipeline.planner import clear_left_days, due, split_by_month
from palace_pipeline.stages.common import Counts, Job, Key, batches, day_of, gone, key_of, logged
from palace_pipeline.stages.progress import report
from palace_pipeline.store.keep import set_aside
from palace_pipeline.store.lake import Lake, month_of
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.vault import Vault
from palace_pipeline.transcripts.merge import merge
from palace_pipeline.transcripts.rows import conversation_row, message_rows


def normalize(job: Job) -> Counts:
    """Merge what has changed on the job's days. Returns conversations, messages and moved conversations."""
    started = time.perf_counter()
    counts: Counts = {"conversations": 0, "messages": 0, "days": 0, "moved": 0}
    with job.home.ledger() as ledger, job.home.vault() as vault:
        work = due(ledger, "normalized", job.span, job.recipes, force=job.force)
        counts["days"] = len({row["day"] for row in work})
        if job.force:
            _set_damage_aside(job, ledger)
        done = 0
        for month, rows in split_by_month(work):
            for part in batches(rows):
                counts["moved"] += _leave_old_months(job.home.lake, month, part)
                built: list[tuple[Key, str, str | None]] = []
                heads, messages = [], []
                for row in part:
                    if gone(row):
                        built.append((key_of(row), row["made_from"], "none"))
                        continue
                    conversation, sha256 = canonical(ledger, vault, row)
                    day = day_of(row)
                    heads.append(conversation_row(conversation, day, dated=bool(row["dated"]), source_sha256=sha256))
                    messages.extend(message_rows(conversation, day))
                    out = raw_identity(row["day"], bool(row["dated"]), sha256, conversation)
                    built.append((key_of(row), row["made_from"], out))
                keys = [key_of(row) for row in part]
                job.home.lake.replace("raw/messages", month, keys, frame(messages, MESSAGES))
                job.home.lake.replace("raw/conversations", month, keys, frame(heads, CONVERSATIONS))
                ledger.mark_built("normalized", built, ["built_day = day"])
                counts["conversations"] += len(part)
                counts["messages"] += len(messages)
                done += len(part)
                report("merging", done, len(work))
        clear_left_days(ledger, job.span)
        return logged(job, ledger, "normalized", started, counts)


def raw_identity(day: str, dated: bool, source_sha256: str, conversation: Conversation) -> str:
    """Identity of a transcript in `lake/raw`: what the ledger notes, and what a look at the lake makes of its rows."""
    kept = Conversation(**{name: getattr(conversation, name) for name in _KEPT})
    return short_hash(day, str(int(dated)), source_sha256, to_record(kept).decode())


_KEPT = ["messages", *(field.name for field in fields(Conversation) if field.name in CONVERSATIONS)]
"""What the lake keeps of a conversation; the rest (how its messages were put in order) has had its effect by then."""


def _set_damage_aside(job: Job, ledger: Ledger) -> None:
    """A backfill of all conversations of a month writes its files from nothing: those that cannot be read may go."""
    days = [row["day"] for row in ledger.rows("SELECT DISTINCT day FROM conversations ORDER BY day")]
    first, last = job.span.first.isoformat(), job.span.last.isoformat()
    inside = {day[:7] for day in days if first <= day <= last}
    whole = inside - {day[:7] for day in days if not first <= day <= last}
    for path in job.home.lake.unreadable(sorted(whole)):
        set_aside(job.home.path, path)


def canonical(ledger: Ledger, vault: Vault, row: Row) -> tuple[Conversation, str]:
    """The merged transcript of a conversation, and the sha256 of the file that its newest sighting came from."""
    sightings = ledger.sightings(key_of(row))
    records = [from_record(vault.record(s["record"]), _source_name(s)) for s in sightings]
    newest = max(sightings, key=lambda s: (s["updated_at"] or "", s["record"]))
    conversation = merge(records)
    conversation.source_file = _source_name(newest)
    return conversation, newest["sha256"]


def _source_name(sighting: Row) -> str:
    # Not the absolute path: pages and tables must not depend on whose machine they were made on.
    return sighting["member"]


def _leave_old_months(lake: Lake, month: str, rows: list[Row]) -> int:
    """Conversations whose better date lies in another month: their old rows go, in every table."""
    moved: dict[str, list[Key]] = {}
    for row in rows:
        if row["built_day"] is not None and (old := month_of(date.fromisoformat(row["built_day"]))) != month:
            moved.setdefault(old, []).append(key_of(row))
    for old, keys in moved.items():
        for table, schema in LAKE.items():
            lake.replace(table, old, keys, frame([], schema))
    return sum(map(len, moved.values()))
