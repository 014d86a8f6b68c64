"""`redacted_transcripts`: a whole conversation at a time through the funnel, into `lake/clean`; findings beside it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from palace_pipeline.model import CONVERSATIONS, FINDINGS, MESSAGES, Conversation, frame, short_hash, to_record
from palace_pipeline.planner import due, split_by_month
from palace_pipeline.redaction.funnel import Funnel, Redacted, conversation_fields
from palace_pipeline.redaction.report import place_of
from palace_pipeline.stages.common import Counts, Job, Key, batches, key_of, logged
from palace_pipeline.stages.paged import masked_before, only_on_page
from palace_pipeline.stages.progress import report
from palace_pipeline.stages.withheld import ERROR, Place, emptied, hits, note_redacted
from palace_pipeline.stages.words_gone import masks_in_tables, note_words_gone
from palace_pipeline.transcripts.rows import conversation_row, conversations_of, message_rows


def redact(job: Job) -> Counts:
    """Redact what has changed. Returns conversations, messages, findings (also by kind), withheld fields and chats."""
    started = time.perf_counter()
    counts: Counter[str] = Counter(conversations=0, messages=0, findings=0, withheld_fields=0, withheld_conversations=0)
    lake = job.home.lake
    with job.home.ledger() as ledger:
        work = due(ledger, "redacted", job.span, job.recipes, force=job.force)
        forgotten = ledger.forgotten()
        funnel = Funnel(job.home.settings.redaction, job.home.key(), forgotten=forgotten) if work else None
        remember = job.home.settings.redaction.remember
        done = 0
        for month, rows in split_by_month(work):
            for part in batches(rows):
                assert funnel is not None
                keys = [key_of(row) for row in part]
                before = masks_in_tables(lake.read("clean/findings", [month], keys=keys).iter_rows(named=True))
                heads: list[dict[str, Any]] = []
                messages: list[dict[str, Any]] = []
                findings: list[dict[str, Any]] = []
                outcome: dict[Key, tuple[str, str]] = {}
                withheld: dict[Key, list[Place]] = {}
                secrets: list[tuple[Key, set[bytes], set[bytes]]] = []
                known = ledger.secret_claims() if remember else frozenset[bytes]()
                raw = conversations_of(
                    lake.read("raw/conversations", [month], keys=keys), lake.read("raw/messages", [month], keys=keys)
                )
                for head, conversation in raw:
                    redacted, left, places = judged(funnel, conversation, known, remember=remember)
                    clean, status = redacted.conversation, "partial" if redacted.withheld else "ok"
                    counts["withheld_fields"] += len(redacted.withheld)
                    if places:
                        # Something would still be found: nothing of this conversation is published.
                        clean, status = emptied(conversation), "withheld"
                        counts["withheld_conversations"] += 1
                    withheld[clean.key] = [*((place_of(name), why) for name, why in redacted.withheld), *places]
                    if remember:
                        secrets.append((clean.key, redacted.claims, left))
                    day = head["day"]
                    heads.append(
                        conversation_row(
                            clean, day, dated=head["dated"], source_sha256=head["source_sha256"], status=status
                        )
                    )
                    messages.extend(message_rows(clean, day))
                    earlier = (
                        [] if status == "withheld" else masked_before(funnel, clean, *only_on_page(ledger, clean.key))
                    )
                    for found in (*redacted.findings, *earlier):
                        counts["findings"] += 1
                        counts[f"finding:{found.kind}"] += 1
                        findings.append(
                            {
                                "day": day,
                                "provider": clean.provider,
                                "conversation_id": clean.conversation_id,
                                "seq": found.seq,
                                "field": found.field,
                                "kind": found.kind,
                                "rule": found.rule,
                                "layer": found.layer,
                                "length": found.length or None,
                                "fingerprint": found.fingerprint,
                            }
                        )
                    outcome[clean.key] = (clean_identity(head, status, clean), status)
                lake.replace("clean/messages", month, keys, frame(messages, MESSAGES))
                lake.replace("clean/findings", month, keys, frame(findings, FINDINGS))
                lake.replace("clean/conversations", month, keys, frame(heads, CONVERSATIONS))
                built: list[tuple[Key, str, str | None]] = [
                    (key_of(row), row["made_from"], outcome.get(key_of(row), ("none", "ok"))[0]) for row in part
                ]
                with ledger.transaction():
                    held = {key for key, places in withheld.items() if places}
                    note_words_gone(ledger, before, masks_in_tables(findings), held)
                    ledger.mark_built("redacted", built)
                    note_redacted(ledger, {key: made_from for key, made_from, _ in built}, withheld)
                    if remember:
                        ledger.note_secrets(secrets)
                    ledger.write_many(
                        "UPDATE conversations SET status = ? WHERE provider = ? AND conversation_id = ?",
                        ((status, *key) for key, (_, status) in outcome.items()),
                    )
                counts["conversations"] += len(part)
                counts["messages"] += len(messages)
                done += len(part)
                report("redacting", done, len(work))
        return logged(job, ledger, "redacted", started, dict(counts))


def clean_identity(head: Mapping[str, Any], status: str, clean: Conversation) -> str:
    """Identity of a transcript in `lake/clean`; `head` is its row of `CONVERSATIONS`."""
    return short_hash(
        str(head["day"]), str(head["dated"]), head["source_sha256"] or "", status, to_record(clean).decode()
    )


def judged(
    funnel: Funnel, conversation: Conversation, known: frozenset[bytes], *, remember: bool
) -> tuple[Redacted, set[bytes], list[Place]]:
    """A conversation redacted, keyed hashes of what is left in it, and where a second look still finds something.

    Never raises: where the redactor does, the place is the whole conversation and nothing of it may be used.
    """
    try:
        redacted = funnel.redact_conversation(conversation, known)
        texts = list(conversation_fields(redacted.conversation))
        left = funnel.candidates(text for _, text in texts) if remember else set[bytes]()
    except Exception:  # noqa: BLE001 - fail closed, and the others go on; its words may quote the text
        return Redacted(emptied(conversation)), set(), [("conversation", ERROR)]
    return redacted, left, [(place_of(name), kind) for name, kind in hits(funnel, texts)]
