"""What `palace ingest --dry-run` shows beside the counts: what is new, and how a few of each format were understood."""

from __future__ import annotations

import os
from typing import Any

from palace_pipeline.cli.talk import counted, out
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Key

MOST = 10
"""Conversations of a format that are listed as new, and as updated; `--json` has all."""


def funnel_of(home: Home) -> Funnel:
    """Redaction as the home has it; a home that does not exist yet gets none of its files made."""
    key = home.path / ".key"
    return Funnel(home.settings.redaction, key.read_bytes() if key.exists() else os.urandom(32))


def known_titles(home: Home) -> dict[Key, str | None]:
    """The titles that the archive has, as they were published: the ledger holds none."""
    if not home.warehouse.exists():
        return {}
    from palace_pipeline.store.duckfile import NotBuiltError
    from palace_pipeline.store.sql import QueryError, query

    try:
        _, rows = query(home.path, "SELECT provider, conversation_id, title FROM conversations")
    except (NotBuiltError, QueryError):
        return {}  # a list without some titles is better than none
    return {(row[0], row[1]): row[2] for row in rows}


def show_preview(preview: dict[str, Any]) -> None:
    """The pick list and the samples for people."""
    for of in preview["formats"]:
        mine = [c for c in preview["conversations"] if c["format"] == of["format"]]
        out(f"\n{of['format'] or 'other'}: {of['new']} new, {of['updated']} updated, {of['unchanged']} unchanged")
        for outcome in ("new", "updated"):
            chosen = [c for c in mine if c["outcome"] == outcome]
            for conversation in chosen[:MOST]:
                out(f"  {outcome:9}{_days(conversation):25}{_messages(conversation):24}{conversation['name']}")
            if len(chosen) > MOST:
                out(f"  and {len(chosen) - MOST} more {outcome}; --json lists all")
        if of["samples"]:
            out("  understood like this, for example:")
        for sample in of["samples"]:
            out(f"    {_days(sample)}  {sample['name']}")
            out(f"      {_who(sample)}")
            if sample["first_words"]:
                out(f"      “{sample['first_words']}”")


def _days(item: dict[str, Any]) -> str:
    first, last = item["first_day"], item["last_day"]
    return "undated" if first is None else first if first == last else f"{first} to {last}"


def _messages(conversation: dict[str, Any]) -> str:
    count = counted(conversation["messages"], "message")
    if conversation["outcome"] != "updated":
        return count
    parts = [f"{conversation[key]} {name}" for key, name in (("new_messages", "new"), ("updated_messages", "changed"))]
    return f"{conversation['messages']} ({', '.join(part for part in parts if not part.startswith('0 '))})"


def _who(sample: dict[str, Any]) -> str:
    roles = ", ".join(f"{count} {role}" for role, count in sample["roles"].items())
    speakers = f"; speakers: {', '.join(sample['speakers'])}" if sample["speakers"] else ""
    files = f"; {counted(sample['attachments'], 'attachment')}" if sample["attachments"] else ""
    return f"{counted(sample['messages'], 'message')} that people see; rows: {roles}{speakers}{files}"
