"""What Dagster shows of a table: columns with their meaning, where they come from, how many rows. Never a row itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from palace_pipeline.model import CHUNKS, CONVERSATIONS, DRAWERS, FINDINGS, LAKE, MESSAGES, VECTORS
from palace_pipeline.store import warehouse_schema
from palace_pipeline.store.stats import VIEWS

DESCRIPTIONS: dict[str, str] = {
    "day": "UTC day of the conversation's earliest dated message; its partition",
    "provider": "where the conversation was held",
    "conversation_id": "id given by the source, or made of content that does not change when it grows",
    "message_id": "id given by the source, or made of the message's own content",
    "seq": "place in the conversation, from 0, all rows counted",
    "parent_id": "message_id that this message answers",
    "branch_active": "false for an edited question or a regenerated answer that is no longer shown",
    "role": "user, assistant, bot, tool, system or thinking",
    "kind": "text, tool_call, tool_result, thinking, attachment, image, audio, system or event",
    "speaker": "name of the person, in chats of people",
    "text": "what was said",
    "created_at": "instant in UTC, null if the source has none",
    "local_time": "time without a zone, as the source wrote it",
    "edited_at": "instant of the last edit in UTC",
    "updated_at": "instant of the source's last change in UTC",
    "model": "model that answered",
    "tokens_in": "tokens the model read",
    "tokens_out": "tokens the model wrote",
    "tokens_cached": "tokens the model took from its cache",
    "cost": "US dollars, null if unknown",
    "tool_name": "tool that was called or that answered",
    "citations": "sources that an answer points at",
    "attachment": "files beside the message",
    "account": "account of the export",
    "source_file": "export member that the conversation was read from",
    "source_sha256": "sha256 of the export file that shows the conversation as it is",
    "hidden_reason": "why the source does not show the message",
    "title": "title given by the source",
    "dated": "false if no time is known: the day is then that of the first sight",
    "origin": "person, subagent, cron, heartbeat or tool",
    "project": "working folder, channel or the like",
    "forked_from": "conversation that this one repeats at its start",
    "parent_conversation_id": "session that started this sub-agent",
    "status": "ok, partial (a field was withheld) or withheld",
    "field": "field in which something was masked",
    "rule": "rule that found it",
    "layer": "layer of the redactor",
    "length": "characters masked",
    "fingerprint": "keyed hash of the value",
    "drawer_id": "id made of the conversation and the text",
    "chunk_index": "place among the conversation's chunks",
    "first_seq": "first message of the chunk",
    "last_seq": "last message of the chunk",
    "context": "question that a continued answer is embedded with",
    "tokens": "length in the embedding model's tokens",
    "text_hash": "identity of what is embedded",
    "wing": "project, channel or provider",
    "hall": "facts, events, discoveries, preferences or advice",
    "room": "what the chunk is about",
    "confidence": "how sure the filing is, 0 to 1",
    "vector": "embedding, unit length",
}


def table_schema(columns: Mapping[str, Any]) -> dg.TableSchema:
    """A schema of the lake as Dagster shows it; every column has a description (KeyError if one is missing)."""
    return dg.TableSchema(
        [
            dg.TableColumn(
                name, type=str(kind()) if isinstance(kind, type) else str(kind), description=DESCRIPTIONS[name]
            )
            for name, kind in columns.items()
        ]
    )


def lineage(columns: Mapping[str, Any], sources: Mapping[str, Mapping[str, Any]]) -> dg.TableColumnLineage:
    """Columns that are handed on under their own name, from the assets that have them."""
    deps = {name: [_column(asset, name) for asset, schema in sources.items() if name in schema] for name in columns}
    return dg.TableColumnLineage({name: found for name, found in deps.items() if found})


TABLES: dict[str, dict[str, Any]] = {
    "normalized_transcripts": MESSAGES,
    "redacted_transcripts": MESSAGES,
    "redacted_chunks": CHUNKS,
    "drawers": DRAWERS,
    "drawer_embeddings": VECTORS,
}
"""Asset -> schema of the table it leaves in the lake."""

FILES = {
    "normalized_transcripts": "raw/messages",
    "redacted_transcripts": "clean/messages",
    "redacted_chunks": "clean/chunks",
    "drawers": "clean/drawers",
    "drawer_embeddings": "clean/vectors",
}


PAGE: dict[str, tuple[str, str]] = {
    "type": ("text", "always `conversation`"),
    "provider": ("text", "where the conversation was held"),
    "conversation_id": ("text", "id given by the source, or made of content that does not change when it grows"),
    "title": ("text", "title given by the source, redacted"),
    "date": ("date", "UTC day of the earliest dated message; the page's partition"),
    "started_at": ("instant", "first dated message, UTC"),
    "ended_at": ("instant", "last dated message, UTC"),
    "message_count": ("number", "visible messages"),
    "model": ("text", "model that answered most"),
    "wing": ("text", "project, channel or provider that its drawers are filed under"),
    "rooms": ("list", "what its drawers are about, most frequent first"),
    "redactions": ("number", "places that were masked"),
    "source_sha256": ("list", "sha256 of the exports that show the conversation"),
    "tags": ("list", "the user's: never touched"),
    "aliases": ("list", "the user's: never touched"),
}
"""What stands at the head of a page: its properties with type and meaning."""


def page_schema() -> dg.TableSchema:
    """The head of a page as Dagster shows it."""
    return dg.TableSchema([dg.TableColumn(name, kind, about) for name, (kind, about) in PAGE.items()])


def page_lineage() -> dg.TableColumnLineage:
    """Where the properties of a page come from."""
    from_messages = {"date": "day", **{name: name for name in ("provider", "conversation_id", "model")}}
    from_messages |= {"started_at": "created_at", "ended_at": "created_at"}
    deps = {name: [_column("redacted_transcripts", column)] for name, column in from_messages.items()}
    deps |= {"wing": [_column("drawers", "wing")], "rooms": [_column("drawers", "room")]}
    return dg.TableColumnLineage(deps)


def warehouse_table_schema() -> dg.TableSchema:
    """All tables of `palace.duckdb` in one schema, columns as `table.column` with the comment that DuckDB shows."""
    columns = [
        dg.TableColumn(f"{table}.{name}", kind, about)
        for table, definition in warehouse_schema.TABLES.items()
        for name, kind, about in definition.columns
    ]
    return dg.TableSchema(columns)


def warehouse_lineage() -> dg.TableColumnLineage:
    """Columns of `palace.duckdb` that are handed on under their own name."""
    sources = {
        "conversations": ("redacted_transcripts", MESSAGES),
        "messages": ("redacted_transcripts", MESSAGES),
        "drawers": ("drawers", DRAWERS),
    }
    return dg.TableColumnLineage(
        {
            f"{table}.{name}": [_column(asset, name)]
            for table, (asset, schema) in sources.items()
            for name, _, _ in warehouse_schema.TABLES[table].columns
            if name in schema
        }
    )


def views_as_markdown() -> str:
    """The views of the statistics and what each shows. As a schema their columns would fill the page of their asset."""
    lines = ["| view | shows |", "|---|---|", *(f"| `{view.name}` | {view.comment} |" for view in VIEWS)]
    return "\n".join(lines)


def _column(asset: str, name: str) -> dg.TableColumnDep:
    return dg.TableColumnDep(asset_key=dg.AssetKey(asset), column_name=name)


def rows_per_day(frame: pl.DataFrame) -> dict[str, int]:
    """Rows by day (ISO) of a frame with a `day` column."""
    counts = frame.group_by("day").len()
    return {day.isoformat(): count for day, count in counts.iter_rows()}


__all__ = [
    "CONVERSATIONS",
    "DESCRIPTIONS",
    "FILES",
    "FINDINGS",
    "LAKE",
    "TABLES",
    "lineage",
    "page_lineage",
    "page_schema",
    "rows_per_day",
    "table_schema",
    "views_as_markdown",
    "warehouse_lineage",
    "warehouse_table_schema",
]
