"""`redacted_chunks`: redacted conversations -> question-and-answer units that fit the embedding model."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from palace_pipeline.chunking import chunk_conversation
from palace_pipeline.embedding.model import load_model
from palace_pipeline.model import CHUNKS, Chunk, frame, short_hash
from palace_pipeline.planner import due, split_by_month
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.stages.common import Counts, Job, Key, batches, key_of, logged
from palace_pipeline.stages.progress import report
from palace_pipeline.stages.withheld import Place, hits, withhold
from palace_pipeline.transcripts.rows import conversations_of

JOINT = 512
"""Characters of a chunk that are looked at behind its context."""


def chunk(job: Job) -> Counts:
    """Cut what has changed. Returns conversations, chunks, and conversations withheld.

    What is put together here (a question with its answer, a piece with its context) is looked at once more.
    """
    started = time.perf_counter()
    counts: Counts = {"conversations": 0, "chunks": 0, "withheld": 0}
    lake = job.home.lake
    with job.home.ledger() as ledger:
        work = due(ledger, "chunks", job.span, job.recipes, force=job.force)
        tokenizer = load_model(job.home.settings.embedding) if work else None
        settings = job.home.settings.redaction
        funnel = Funnel(settings, job.home.key(), forgotten=ledger.forgotten()) if work else None
        done = 0
        for month, rows in split_by_month(work):
            for part in batches(rows):
                assert tokenizer is not None
                assert funnel is not None
                keys = [key_of(row) for row in part]
                clean = list(
                    conversations_of(
                        lake.read("clean/conversations", [month], keys=keys),
                        lake.read("clean/messages", [month], keys=keys),
                    )
                )
                out: list[dict[str, Any]] = []
                identity: dict[Key, str] = {}
                found: dict[Key, list[Place]] = {}
                for head, conversation in clean:
                    chunks = chunk_conversation(conversation, tokenizer)
                    if places := hits(funnel, shown_texts(chunks)):
                        found[conversation.key] = places
                        chunks = []
                    made = [_row(head, c) for c in chunks]
                    out.extend(made)
                    identity[conversation.key] = chunks_identity(
                        head["day"], ((row["drawer_id"], row["chunk_index"], row["text_hash"]) for row in made)
                    )
                lake.replace("clean/chunks", month, keys, frame(out, CHUNKS))
                built: list[tuple[Key, str, str | None]] = [
                    (key_of(row), row["made_from"], identity.get(key_of(row), "none")) for row in part
                ]
                ledger.mark_built("chunks", built)
                withhold(job, ledger, month, clean, found, stage="chunks")
                counts["withheld"] += len(found)
                counts["conversations"] += len(part)
                counts["chunks"] += len(out)
                done += len(part)
                report("cutting", done, len(work))
        return logged(job, ledger, "chunks", started, counts)


def chunks_identity(day: date, chunks: Iterable[tuple[str, int, str]]) -> str:
    """Identity of a conversation's chunks (drawer id, chunk index, text hash) in their order."""
    return short_hash(str(day), *(f"{drawer_id}{index}{text_hash}" for drawer_id, index, text_hash in chunks))


def shown_texts(chunks: Sequence[Chunk]) -> list[tuple[str, str]]:
    """Name and text of what indexes hold of some chunks: the text, alone and behind its context."""
    named: list[tuple[str, str]] = []
    for chunk in chunks:
        name = f"chunk {chunk.chunk_index + 1}"
        named.append((name, chunk.text))
        if chunk.context:
            # Only where they meet is new: both have been looked at as they stand in the conversation.
            named.append((f"{name} (context)", f"{chunk.context}\n\n{_beginning(chunk.text)}"))
    return named


def _beginning(text: str) -> str:
    """At most JOINT characters, up to a blank: half a mask would look like something else."""
    return text if len(text) <= JOINT else text[:JOINT].rsplit(None, 1)[0]


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
