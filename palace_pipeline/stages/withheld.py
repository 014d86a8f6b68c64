"""Conversations of which something may not be published: taken out of every later store, named, and tried again.

A field that could not be judged is withheld alone (status `partial`). Where a second look at what is about to be
published still finds something, the whole conversation is (`withheld`). Both are named by place and kind, never by what
stands there, and tried again in later runs, a few times only: the same code finds the same in the same text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from palace_pipeline.model import CHUNKS, CONVERSATIONS, DRAWERS, MESSAGES, VECTORS, Conversation, frame
from palace_pipeline.planner import EXPECTED, Recipes
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.redaction.made import Nature, whole_path
from palace_pipeline.stages.common import Job, Key
from palace_pipeline.stages.words_gone import note_words_gone
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.transcripts.rows import conversation_row

Place = tuple[str, str]
"""Where (a field, a page, a chunk) and what: the kind of what was found, or the reason why it could not be judged."""

ATTEMPTS = 2
"""Runs that try the same text with the same rules."""
ATTEMPTS_AFTER_ERROR = 4
"""The same where the redactor raised: memory may have been short, a disk full."""
ERROR = "redactor-error"
MOST_PLACES = 50
"""Places named of one conversation."""


_WHY = {
    ERROR: ("the redactor failed at it", "palace backfill --day DAY tries it again; if it stays, report it as a bug"),
    "work-limit": (
        "it takes more work than is allowed",
        "shorten the text at its source and export it again, or live without this field: the rest is in the archive",
    ),
    "too-long": (
        "it is longer than 64 million characters",
        "shorten the text at its source and export it again, or live without this field: the rest is in the archive",
    ),
    "not-settled": (
        "what is masked in it shows something new each time",
        "name what it is in known_values or private_patterns of [redaction] in palace.toml, then: palace ingest",
    ),
    "unreadable": ("it could not be looked at once more", "palace backfill --day DAY tries it again"),
}


def in_words(kind: str) -> str:
    """Why a place is withheld. `kind`: as the ledger has it, a reason or what was found there."""
    return _WHY[kind][0] if kind in _WHY else f"a second look still finds {kind} there"


def advice(kind: str) -> str:
    """What a person can do about it. EXPORT stands for the file that it was read from, DAY for the conversation's."""
    if kind in _WHY:
        return _WHY[kind][1]
    return (
        f"look at it with: palace redact --report EXPORT. If it is no secret, add the exact text to allow, or {kind} to "
        "allow_rules; if it is one, add it to known_values ([redaction] in palace.toml). Then: palace ingest"
    )


def hits(funnel: Funnel, named: Sequence[tuple[str, str]], nature: Nature = whole_path) -> list[Place]:
    """What a second look finds in texts (name, text) that are about to be published, by name and kind. Never raises:
    a text that cannot be looked at is a hit. `nature`: where in them a purged value says nothing."""
    places: dict[str, str] = {}
    for name, text in named:
        places.setdefault(text, name)
    try:
        leaks = funnel.scan_published(list(places), nature)
    except Exception:  # noqa: BLE001 - fail closed, whatever it was; its words may quote the text
        return [("conversation", ERROR)]
    names = list(places.values())
    return list(dict.fromkeys((names[leak.index], leak.kind) for leak in leaks))


def note_redacted(ledger: Ledger, made_from: Mapping[Key, str], found: Mapping[Key, Sequence[Place]]) -> None:
    """Note what redaction withheld of some conversations (all of `made_from`), and that it was tried once more."""
    for key, source in made_from.items():
        row = ledger.one("SELECT made_from, attempts FROM withheld WHERE provider = ? AND conversation_id = ?", key)
        before = row["attempts"] if row is not None and row["made_from"] == source else 0
        if found.get(key) or before:
            # Also where nothing was found this time: a later stage may yet, and it has to know how often it was tried.
            _write(ledger, key, source, before + 1, found.get(key, ()))
        elif row is not None:
            ledger.write("DELETE FROM withheld WHERE provider = ? AND conversation_id = ?", key)


def _write(ledger: Ledger, key: Key, made_from: str, attempts: int, places: Iterable[Place]) -> None:
    said = orjson.dumps(list(dict.fromkeys(places))[:MOST_PLACES]).decode()
    ledger.write("INSERT OR REPLACE INTO withheld VALUES (?, ?, ?, ?, ?)", (*key, made_from, attempts, said))


def try_again(ledger: Ledger) -> int:
    """Mark as due what was withheld and may still be tried; returns how many conversations. Call it once before planning."""
    with ledger.transaction():
        ledger.write("DELETE FROM withheld WHERE places = '[]'")
        ledger.write(
            "UPDATE conversations SET redacted_in = NULL WHERE (provider, conversation_id, redacted_in) IN "
            "(SELECT provider, conversation_id, made_from FROM withheld "
            "WHERE attempts < CASE WHEN instr(places, ?) THEN ? ELSE ? END)",
            (f'"{ERROR}"', ATTEMPTS_AFTER_ERROR, ATTEMPTS),
        )
        row = ledger.one("SELECT changes() AS n")
    return int(row["n"]) if row else 0


def emptied(conversation: Conversation) -> Conversation:
    """A conversation of which nothing is published but that it exists, and when."""
    return Conversation(
        provider=conversation.provider,
        conversation_id=conversation.conversation_id,
        messages=[],
        title="[WITHHELD:scan]",
        created_at=conversation.created_at,
        updated_at=conversation.updated_at,
        origin=conversation.origin,
    )


def withhold(
    job: Job,
    ledger: Ledger,
    month: str,
    heads: Collection[tuple[dict[str, Any], Conversation]],
    found: Mapping[Key, Sequence[Place]],
    *,
    stage: str,
) -> None:
    """Take whole conversations of a month back, in which a stage after redaction found something.

    Their rows leave the clean lake; what comes after (pages, indexes, tables) is due and loses them in the same run.
    `heads`: the row and the conversation of each in `found`. Call it after the `stage` has noted its own work, in which
    it left them out.
    """
    if not found:
        return
    keys = list(found)
    rows = [
        conversation_row(
            emptied(conversation),
            head["day"],
            dated=head["dated"],
            source_sha256=head["source_sha256"],
            status="withheld",
        )
        for head, conversation in heads
        if conversation.key in found
    ]
    lake = job.home.lake
    lake.replace("clean/conversations", month, keys, frame(rows, CONVERSATIONS))
    for table, schema in (
        *(("clean/messages", MESSAGES), ("clean/chunks", CHUNKS), ("clean/drawers", DRAWERS)),
        ("clean/vectors", VECTORS),
    ):
        lake.replace(table, month, keys, frame([], schema))
    with ledger.transaction():
        for key, places in found.items():
            row = ledger.one(
                "SELECT c.redacted_in, w.made_from, w.attempts FROM conversations c "
                "LEFT JOIN withheld w USING (provider, conversation_id) WHERE provider = ? AND conversation_id = ?",
                key,
            )
            if row is None or row["redacted_in"] is None:
                continue
            note_words_gone(ledger, {}, {}, [key])
            same = row["made_from"] == row["redacted_in"]
            _write(ledger, key, row["redacted_in"], row["attempts"] if same else 1, places)
            _mark_empty(ledger, key, job.recipes, stage)


def _mark_empty(ledger: Ledger, key: Key, recipes: Recipes, stage: str) -> None:
    """The lake's tables are as they would be if each stage had been told that there is nothing."""
    where = "WHERE provider = :provider AND conversation_id = :id"
    values: dict[str, Any] = {**asdict(recipes), "provider": key[0], "id": key[1]}
    for change in (
        "redacted_out = 'withheld', status = 'withheld'",
        f"chunks_in = {EXPECTED['chunks']}, chunks_out = 'none'",
        f"drawers_in = {EXPECTED['drawers']}, drawers_out = 'none'",
        *([f"pages_in = {EXPECTED['pages']}"] if stage == "pages" else []),
    ):
        ledger.write(f"UPDATE conversations SET {change} {where}", values)  # pyright: ignore[reportArgumentType]
