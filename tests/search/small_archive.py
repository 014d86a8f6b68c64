"""A small archive as the pipeline leaves it, with a stand-in for the embedding model."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from palace_pipeline.model import (
    CHUNKS,
    CONVERSATIONS,
    DRAWERS,
    MESSAGES,
    VECTORS,
    Conversation,
    Message,
    frame,
    message_hash,
)
from palace_pipeline.search.engine import Searcher
from palace_pipeline.settings import Settings
from palace_pipeline.store.lake import Lake, month_of
from palace_pipeline.store.lexical import LexicalIndex, LexicalRow
from palace_pipeline.transcripts.terms import index_terms

TRANSLATIONS = {"灯笼": "lantern", "фонарь": "lantern"}
"""What makes the stand-in multilingual."""


class BagOfTerms:
    name = "bag"
    key = "bag@000000000000"

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        vectors = np.full((len(texts), 384), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for foreign, word in TRANSLATIONS.items():
                text = text.replace(foreign, f" {word} ")
            for term in index_terms(text):
                vectors[row, zlib.crc32(term.encode()) % 384] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_query(self, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        return self.embed_passages([text])[0]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def say(role: Any, text: str, **fields: Any) -> Message:
    return Message(f"{role}-{zlib.crc32(text.encode())}", role, text, **fields)


class Archive:
    """A home as the pipeline leaves it, one exchange a chunk."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.lake = Lake(home / "lake")

    def add(self, conversation: Conversation, *, wing: str = "w", room: str = "general", dated: bool = True) -> None:
        days = [m.created_at.date() for m in conversation.messages if m.created_at]
        days += [date.fromisoformat(m.local_time[:10]) for m in conversation.messages if m.local_time]
        day = min(days, default=date(2024, 1, 31))
        month, keys = month_of(day), [conversation.key]
        head = {"day": day, "provider": conversation.provider, "conversation_id": conversation.conversation_id}
        messages = [
            head
            | {"seq": seq, "message_id": message_hash(m), "role": m.role, "kind": m.kind, "text": m.text}
            | {"branch_active": m.branch_active, "hidden_reason": m.hidden_reason, "speaker": m.speaker}
            | {"created_at": m.created_at, "local_time": m.local_time}
            for seq, m in enumerate(conversation.messages)
        ]
        chunks = list(self._chunks(conversation, head))
        drawers = [row for row in chunks if row["kind"] not in ("tool", "thinking")]
        filed = [{k: v for k, v in row.items() if k in DRAWERS} | {"wing": wing, "room": room} for row in drawers]
        vectors = BagOfTerms().embed_passages([row["text"] for row in drawers])
        embedded = [
            head | {"drawer_id": row["drawer_id"], "text_hash": "", "model": BagOfTerms.key, "vector": vector.tolist()}
            for row, vector in zip(drawers, vectors, strict=True)
        ]
        heads = [head | {"title": conversation.title, "dated": dated}]
        for table, rows, schema in (
            ("conversations", heads, CONVERSATIONS),
            ("messages", messages, MESSAGES),
            ("chunks", chunks, CHUNKS),
            ("drawers", filed, DRAWERS),
            ("vectors", embedded, VECTORS),
        ):
            self.lake.replace(f"clean/{table}", month, keys, frame(rows, schema))
        with LexicalIndex(self.home / "lexical") as index:
            index.upsert(self._lexical(conversation, row, wing, room) for row in chunks)

    def _chunks(self, conversation: Conversation, head: dict[str, Any]) -> Any:
        start = 0
        for seq, m in enumerate(conversation.messages):
            kind = {"tool": "tool", "thinking": "thinking"}.get(m.role, "exchange")
            last = seq + 1 == len(conversation.messages) or conversation.messages[seq + 1].role == "user"
            if kind != "exchange":
                yield self._chunk(head, kind, seq, seq, m.text)
            if last:
                shown = [x.text for x in conversation.messages[start : seq + 1] if x.visible]
                yield self._chunk(head, "exchange", start, seq, "\n\n".join(shown))
                start = seq + 1
            for attachment in m.attachment:
                yield self._chunk(head, "document", seq, seq, attachment.text or "")

    def _chunk(self, head: dict[str, Any], kind: str, first: int, last: int, text: str) -> dict[str, Any]:
        drawer_id = f"{head['conversation_id']}-{kind}-{first}-{zlib.crc32(text.encode())}"
        place = {"kind": kind, "first_seq": first, "last_seq": last, "chunk_index": first}
        return head | place | {"drawer_id": drawer_id, "text": text, "context": "", "tokens": 1}

    def _lexical(self, conversation: Conversation, row: dict[str, Any], wing: str, room: str) -> LexicalRow:
        said = conversation.messages[row["first_seq"] : row["last_seq"] + 1]
        times = [int(f"{m.created_at:%Y%m%d}") for m in said if m.created_at]
        return LexicalRow(
            drawer_id=row["drawer_id"],
            text=row["text"],
            context="",
            title=conversation.title or "",
            provider=conversation.provider,
            conversation_id=conversation.conversation_id,
            wing=wing,
            room=room,
            kind=row["kind"],
            roles=tuple({m.role for m in said}),
            day=int(f"{row['day']:%Y%m%d}"),
            first_day=min(times, default=None),
            last_day=max(times, default=None),
        )

    def searcher(self, zone: str = "UTC") -> Searcher:
        return Searcher(self.home, Settings(home=self.home, display_zone=zone), lambda _: BagOfTerms())
