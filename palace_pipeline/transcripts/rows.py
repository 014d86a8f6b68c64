"""Conversations <-> rows of the lake. The rows are the truth; a `Conversation` is what code works on in between."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, cast

import polars as pl

from palace_pipeline.model import (
    CONVERSATIONS,
    MESSAGE_FIELDS,
    MESSAGES,
    Attachment,
    Citation,
    Conversation,
    Message,
    message_values,
)

Key = tuple[str, str]
_Structs = list[dict[str, Any]] | None


def message_rows(conversation: Conversation, day: date) -> list[dict[str, Any]]:
    """Rows of `MESSAGES`; `seq` is the place in `conversation.messages`, from 0."""
    head = {
        "day": day,
        "provider": conversation.provider,
        "conversation_id": conversation.conversation_id,
        "account": conversation.account,
        "source_file": conversation.source_file,
    }
    return [{**head, "seq": seq, **message_values(message)} for seq, message in enumerate(conversation.messages)]


def conversation_row(
    conversation: Conversation, day: date, *, dated: bool, source_sha256: str | None, status: str = "ok"
) -> dict[str, Any]:
    """The row of `CONVERSATIONS`."""
    return {
        "day": day,
        "provider": conversation.provider,
        "conversation_id": conversation.conversation_id,
        "title": conversation.title,
        "dated": dated,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
        "origin": conversation.origin,
        "account": conversation.account,
        "model": conversation.model,
        "project": conversation.project,
        "forked_from": conversation.forked_from,
        "parent_conversation_id": conversation.parent_conversation_id,
        "source_file": conversation.source_file,
        "source_sha256": source_sha256,
        "status": status,
    }


def message_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=MESSAGES, orient="row")


def conversation_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=CONVERSATIONS, orient="row")


def conversations_of(heads: pl.DataFrame, messages: pl.DataFrame) -> Iterator[tuple[dict[str, Any], Conversation]]:
    """(row of `CONVERSATIONS`, conversation with its messages by `seq`) for every head, in the heads' order."""
    by_key: dict[Key, list[Message]] = {}
    columns = messages.sort(["provider", "conversation_id", "seq"]).select(
        "provider", "conversation_id", *MESSAGE_FIELDS
    )
    for provider, conversation_id, *values in columns.iter_rows():
        by_key.setdefault((provider, conversation_id), []).append(_message(values))
    for head in heads.iter_rows(named=True):
        yield (
            head,
            Conversation(
                provider=head["provider"],
                conversation_id=head["conversation_id"],
                messages=by_key.get((head["provider"], head["conversation_id"]), []),
                title=head["title"],
                created_at=head["created_at"],
                updated_at=head["updated_at"],
                origin=head["origin"],
                account=head["account"],
                model=head["model"],
                project=head["project"],
                forked_from=head["forked_from"],
                parent_conversation_id=head["parent_conversation_id"],
                source_file=head["source_file"],
            ),
        )


def _message(values: list[Any]) -> Message:
    """A message from its own columns, in the order of `MESSAGE_FIELDS`."""
    message = Message(*values)
    message.citations = [Citation(**c) for c in cast(_Structs, message.citations) or ()]
    message.attachment = [Attachment(**a) for a in cast(_Structs, message.attachment) or ()]
    return message
