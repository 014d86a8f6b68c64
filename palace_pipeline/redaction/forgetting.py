"""What purging means for a conversation that is read: known by its tombstone, or shown without the purged values."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import replace

from palace_pipeline.model import Conversation
from palace_pipeline.redaction import made
from palace_pipeline.redaction.forgotten import Forgotten, find, masked, masked_path
from palace_pipeline.redaction.funnel import conversation_fields, with_fields

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"\\/bfnrt]))")
_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def tombstone(provider: str, conversation_id: str, key: bytes) -> bytes:
    """What a purged conversation is known by, under the archive's key."""
    named = f"tombstone:{provider}\0{conversation_id}".encode("utf-8", "surrogatepass")
    return hmac.digest(key, named, hashlib.sha256)[:16]


def part_mark(name: str, key: bytes) -> bytes:
    """What a part of a purged conversation is known by: an id that stands in it, under the archive's key."""
    return hmac.digest(key, b"part:" + name.encode("utf-8", "surrogatepass"), hashlib.sha256)[:16]


def without_forgotten(conversation: Conversation, values: Sequence[Forgotten], key: bytes) -> Conversation:
    """The conversation with a mask for every purged value, in its texts and in ids of conversations. Ids of messages stay.

    What is a name, or made of one (the title of a document is that of its file), also loses the form that names have.
    """
    texts = dict(conversation_fields(conversation))
    clean = {
        name: (masked_path if is_name(name) else masked)(
            text, values, key, nature=made.path if name == "source_file" else made.said
        )
        for name, text in texts.items()
    }
    if clean != texts:
        conversation = with_fields(conversation, clean)
    named = {name: _clean_id(conversation.provider, getattr(conversation, name), values, key) for name in _IDS}
    if any(value != getattr(conversation, name) for name, value in named.items()):
        conversation = replace(conversation, **named)
    return conversation


def is_name(field: str) -> bool:
    """Whether a field of a conversation holds a name: its title, project or source, the name of an attachment."""
    return field in ("title", "project", "source_file") or (".attachment." in field and field.endswith(".name"))


_IDS = ("conversation_id", "forked_from", "parent_conversation_id")


def _clean_id(provider: str, name: str | None, values: Sequence[Forgotten], key: bytes) -> str | None:
    if provider == "session":  # made of a time and a hash, never of what was said
        return name
    if name is None or (clean := masked(name, values, key, KIND_IN_NAMES, made.ident)) == name:
        return name
    # Two ids that differ in the value alone stay two.
    return f"{clean}-{tombstone(provider, name, key).hex()[:8]}"


KIND_IN_NAMES = "REDACTED-purged"
"""The mask where brackets would mean something: ids, tags."""


def shows(data: bytes, values: Sequence[Forgotten], key: bytes) -> bool:
    """Does raw data hold a purged value, as it stands or with the escapes of JSON undone once or twice?"""
    text = _decoded(data)
    for _ in range(3):
        if made.told(text, find(text, values, key), made.raw):
            return True
        if "\\" not in text:
            return False
        text = _paired(_ESCAPE.sub(_unescaped, text))
    return False


def _decoded(data: bytes) -> str:
    if data[:4096].count(0) * 3 > len(data[:4096]):
        return data.decode("utf-16-be" if data[:1] == b"\0" else "utf-16-le", "replace")
    return data.decode("utf-8", "replace")


def _paired(text: str) -> str:
    """Characters that were escaped as two halves, put together."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _CONTROL.get(found[2], found[2])
