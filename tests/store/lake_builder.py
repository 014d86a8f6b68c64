"""A small clean lake written by hand, for the tests of what reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from palace_pipeline.model import CHUNKS, CONVERSATIONS, DRAWERS, FINDINGS, MESSAGES, frame

SCHEMAS = {
    "conversations": CONVERSATIONS,
    "messages": MESSAGES,
    "findings": FINDINGS,
    "drawers": DRAWERS,
    "chunks": CHUNKS,
}
Lake = dict[str, list[dict[str, Any]]]


def empty() -> Lake:
    return {table: [] for table in SCHEMAS}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def conversation(
    provider: str,
    conversation_id: str,
    day: date,
    messages: Sequence[dict[str, Any]],
    *,
    drawers: Sequence[dict[str, Any]] = (),
    findings: Sequence[dict[str, Any]] = (),
    **head: Any,
) -> Lake:
    """The rows of one conversation; `seq`, `chunk_index` and ids are filled in."""
    key = {"day": day, "provider": provider, "conversation_id": conversation_id}
    lake = empty()
    lake["conversations"] = [{**key, "dated": True, "origin": "person", "status": "ok", **head}]
    lake["messages"] = [
        {**key, "message_id": f"m{seq}", "seq": seq, "branch_active": True, "kind": "text", "text": "", **message}
        for seq, message in enumerate(messages)
    ]
    for index, drawer in enumerate(drawers):
        row = {
            "drawer_id": f"{conversation_id}-{index}",
            "chunk_index": index,
            "kind": "exchange",
            "first_seq": 0,
            "last_seq": 0,
            "tokens": 10,
            **drawer,
        }
        lake["drawers"].append({**key, "hall": "facts", "confidence": 0.5, **row})
        lake["chunks"].append(
            {**key, **{k: v for k, v in row.items() if k in CHUNKS}, "text": f"chunk {index}", "context": ""}
        )
    lake["findings"] = [
        {**key, "field": "text", "rule": "r", "layer": "patterns", "length": 5, "fingerprint": "", **finding}
        for finding in findings
    ]
    return lake


def together(lakes: Iterable[Lake]) -> Lake:
    whole = empty()
    for lake in lakes:
        for table, rows in lake.items():
            whole[table] += rows
    return whole


def write(home: Path, lake: Lake) -> None:
    """Make the clean lake of a home hold exactly these rows."""
    for table, schema in SCHEMAS.items():
        folder = home / "lake" / "clean" / table
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.parquet"):
            old.unlink()
        rows = sorted(lake[table], key=lambda row: (row["day"], row["provider"], row["conversation_id"]))
        for month in sorted({f"{row['day']:%Y-%m}" for row in rows}):
            own = [row for row in rows if f"{row['day']:%Y-%m}" == month]
            frame(own, schema).write_parquet(folder / f"{month}.parquet", compression="zstd")


def talk(start: datetime, *texts: str, step: timedelta = timedelta(minutes=1)) -> list[dict[str, Any]]:
    """User and assistant in turn."""
    roles = ("user", "assistant")
    return [
        {"role": roles[number % 2], "text": text, "created_at": start + number * step}
        for number, text in enumerate(texts)
    ]
