"""`redacted_chunks`: redacted conversations -> question-and-answer units that fit the embedding model."""

from __future__ import annotations

import time
from typing import Any

from palace_pipeline.chunking import chunk_conversation
from palace_pipeline.embedding.model import load_model
from palace_pipeline.model import CHUNKS, Chunk, frame, short_hash
from palace_pipeline.planner import due, split_by_month
from palace_pipeline.stages.common import Counts, Job, Key, batches, key_of, logged
from palace_pipeline.stages.progress import report
from palace_pipeline.transcripts.rows import conversations_of


def chunk(job: Job) -> Counts:
    """Cut what has changed. Returns conversations and chunks."""
    started = time.perf_counter()
    counts: Counts = {"conversations": 0, "chunks": 0}
    lake = job.home.lake
    with job.home.ledger() as ledger:
        work = due(ledger, "chunks", job.span, job.recipes, force=job.force)
        tokenizer = load_model(job.home.settings.embedding) if work else None
        done = 0
        for month, rows in split_by_month(work):
            for part in batches(rows):
                assert tokenizer is not None
                keys = [key_of(row) for row in part]
                clean = conversations_of(
                    lake.read("clean/conversations", [month], keys=keys),
                    lake.read("clean/messages", [month], keys=keys),
                )
                out: list[dict[str, Any]] = []
                identity: dict[Key, str] = {}
                for head, conversation in clean:
                    chunks = chunk_conversation(conversation, tokenizer)
                    out.extend(_row(head, c) for c in chunks)
                    identity[conversation.key] = short_hash(
                        str(head["day"]), *(f"{c.drawer_id}{c.chunk_index}{c.text_hash}" for c in chunks)
                    )
                lake.replace("clean/chunks", month, keys, frame(out, CHUNKS))
                built: list[tuple[Key, str, str | None]] = [
                    (key_of(row), row["made_from"], identity.get(key_of(row), "none")) for row in part
                ]
                ledger.mark_built("chunks", built)
                counts["conversations"] += len(part)
                counts["chunks"] += len(out)
                done += len(part)
                report("cutting", done, len(work))
        return logged(job, ledger, "chunks", started, counts)


def _row(head: dict[str, Any], chunk: Chunk) -> dict[str, Any]:
    return {
        "day": head["day"],
        "provider": head["provider"],
        "conversation_id": head["conversation_id"],
        "drawer_id": chunk.drawer_id,
        "chunk_index": chunk.chunk_index,
        "kind": chunk.kind,
        "first_seq": chunk.first_seq,
        "last_seq": chunk.last_seq,
        "text": chunk.text,
        "context": chunk.context,
        "tokens": chunk.tokens,
        "text_hash": chunk.text_hash,
    }
