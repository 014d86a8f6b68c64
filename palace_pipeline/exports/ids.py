"""Ids for what the source gave none: made of content that stays the same when the conversation grows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from palace_pipeline.model import Message, hash_input, short_hash


def derive_ids(messages: Sequence[Message]) -> None:
    """Give every message without an id (`""`) one, and make doubled ids unique, in place.

    The id is a hash of role, kind, speaker, time and text, and of how often that came before. So the same message of a
    longer export has the same id, and two equal messages of one conversation have two.
    """
    seen: dict[str, int] = {}
    beginnings: dict[tuple[str, str, str | None], bytes] = {}
    for message in messages:
        base = message.message_id or _content_hash(message, beginnings)
        count = seen[base] = seen.get(base, 0) + 1
        if count == 1:
            message.message_id = base
            continue
        while (own := f"{base}~{count}") in seen:  # an id of the source's that looks like one of these
            count += 1
        seen[base], seen[own] = count, 1
        message.message_id = own


def _content_hash(message: Message, beginnings: dict[tuple[str, str, str | None], bytes]) -> str:
    """`short_hash` of role, kind, speaker, time and text. `beginnings`: what is hashed before the text of messages
    without a time, which is the same for most of them; a data set has millions."""
    key = (message.role, message.kind, message.speaker)
    time = message.created_at.isoformat() if message.created_at else message.local_time or ""
    if time:
        beginning = hash_input(message.role, message.kind, message.speaker or "", time)
    elif (beginning := beginnings.get(key)) is None:
        beginning = beginnings[key] = hash_input(message.role, message.kind, message.speaker or "", "")
    text = message.text.encode("utf-8", "surrogatepass")
    return sha256(b"%b%d:%b" % (beginning, len(text), text)).hexdigest()[:16]


BY_CONTENT = "content-"
"""Begins the id of a conversation that is known by all that it says, and so gets another id when it grows."""


def whole_content_id(name: str, messages: Sequence[Message]) -> str:
    """Id of one of many conversations without id, title and time: made of all that it says.

    Its beginning would not do: "hi" begins a good part of a data set, and two conversations must not become one.
    """
    return BY_CONTENT + short_hash(name, *(f"{m.role}:{m.text}" for m in messages))


def derive_conversation_id(provider: str, chat_name: str, messages: Sequence[Message]) -> str:
    """Id of a conversation whose source has none: sha256(provider, chat name, first dated instant, first message)[:16]."""
    first_time = next((m.created_at or m.local_time or "" for m in messages if m.created_at or m.local_time), "")
    instant = first_time.isoformat() if isinstance(first_time, datetime) else first_time
    first_text = messages[0].text if messages else ""
    return short_hash(provider, chat_name, instant, first_text)
