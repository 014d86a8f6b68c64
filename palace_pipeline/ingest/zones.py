"""Naive times become instants only if the user says in which zone their source writes them."""

from __future__ import annotations

from datetime import tzinfo

from palace_pipeline.exports.times import to_utc
from palace_pipeline.model import Conversation


def localise(conversation: Conversation, zone: tzinfo | None) -> None:
    """Fill `created_at` from `local_time` by the source's zone, in place; without a zone nothing changes."""
    if zone is None:
        return
    for message in conversation.messages:
        if message.created_at is None:
            message.created_at = to_utc(message.local_time, zone)
    if conversation.created_at is None:
        conversation.created_at = to_utc(conversation.local_created, zone)
