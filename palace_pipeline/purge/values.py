"""Taking a value out of what the archive knows: records, names and notes, with a mask in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from sqlite3 import Row

import orjson

from palace_pipeline.exports.scan import Seen, scan
from palace_pipeline.ingest.session_names import source_is_called_anew
from palace_pipeline.ingest.sightings import Where, note, settle
from palace_pipeline.model import Conversation, from_record, message_hash, to_record
from palace_pipeline.purge.conversations import Raw, drop_raw, files_of, let_go
from palace_pipeline.purge.probes import Probes
from palace_pipeline.purge.proof import shows
from palace_pipeline.redaction import made
from palace_pipeline.redaction.forgetting import without_forgotten
from palace_pipeline.redaction.forgotten import (
    Forgotten,
    find_in_name,
    forget,
    forget_name,
    forms,
    is_enough,
    masked_name,
    masked_path,
    masked_paths,
)
from palace_pipeline.settings import Settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Key, Ledger, pack_index, unpack_index
from palace_pipeline.store.vault import Vault
from palace_pipeline.transcripts.page_path import slug

_NAMED_BY_PATH = ("files", "skips", "unknown_names", "members", "file_elements")


@dataclass(frozen=True, slots=True)
class Shown:
    """A record that shows the value."""

    key: Key
    record: str
    sighting: Row


@dataclass(frozen=True, slots=True)
class Search:
    """Where a value stands; held in memory until it is gone."""

    forms: list[str]
    names: list[str] = field(default_factory=list[str])
    """The value as names of files write it."""
    shown: list[Shown] = field(default_factory=list[Shown])
    raw: Raw = field(default_factory=Raw)
    files: list[str] = field(default_factory=list[str])
    """Files of the user that it was read from."""
    otherwise: int = 0
    """Conversations in which it also stands in another case of letters."""

    @property
    def keys(self) -> list[Key]:
        return sorted({one.key for one in self.shown})


def search(ledger: Ledger, vault: Vault, value: str) -> Search:
    """Every record, and every raw piece, that shows a value in any of its forms. Raises ValueError if it is too short."""
    forget(value, b"")  # refuses what is too short
    found = Search(forms(value), name_forms(value))
    otherwise: set[Key] = set()
    probes = Probes(found.forms, found.names)
    for row in ledger.rows("SELECT * FROM sightings WHERE superseded != 2 ORDER BY provider, conversation_id, record"):
        record = vault.record(row["record"])
        if _in_another_case(value, record.decode("utf-8", "replace")):
            otherwise.add((row["provider"], row["conversation_id"]))
        if shows(probes, record):
            found.shown.append(Shown((row["provider"], row["conversation_id"]), row["record"], row))
    said = {
        row["element"]
        for one in found.shown
        for row in ledger.rows("SELECT element FROM element_records WHERE record = ?", (one.record,))
    }
    for row in ledger.rows("SELECT element, pieces FROM elements"):
        pieces: list[str] = orjson.loads(row["pieces"])
        if pieces and (row["element"] in said or _in_raw(probes, b"".join(map(vault.piece, pieces)))):
            found.raw.elements.append(row["element"])
    told = {
        (row["path"], row["member"])
        for row in ledger.rows("SELECT path, member, element FROM file_elements")
        if row["element"] in said
    }
    for row in ledger.rows("SELECT path, member, pieces FROM members"):
        # What a record says stands in its bytes, though it may look there like what a product writes: a birthday is a day.
        if (row["path"], row["member"]) in told or any(
            _in_raw(probes, block) for block in _overlapping(vault, orjson.loads(row["pieces"]))
        ):
            found.raw.members.append((row["path"], row["member"]))
    paths = {one.sighting["path"] for one in found.shown} | {path for path, _ in found.raw.members}
    found.files.extend(sorted(paths | set(files_of(ledger, found.raw.elements))))
    return replace(found, otherwise=len(otherwise))


def _in_another_case(value: str, text: str) -> bool:
    return value.lower() != value.upper() and text.lower().count(value.lower()) > text.count(value)


def name_forms(value: str) -> list[str]:
    """How a value stands in names of files (in lower case, and as names are made of titles), nothing if too little of it
    does. Of a long one only the beginning may stand there."""
    found = dict.fromkeys([value.lower(), slug(value)]) if any(map(str.isalnum, value)) else ()
    return list(filter(is_enough, found))


def _in_raw(probes: Probes, data: bytes) -> bool:
    # Bytes of a value that is short are found by its text: what is searched here is text.
    return probes.in_bytes(data, made.raw) or probes.in_text(data.decode("utf-8", "replace"), made.raw)


def _overlapping(vault: Vault, pieces: Sequence[str]) -> Iterator[bytes]:
    tail = b""
    for name in pieces:
        data = vault.piece(name)
        yield tail + data
        tail = data[-(64 << 10) :]


def keyed(found: Search, secret: bytes) -> list[Forgotten]:
    """What the archive keeps of a value."""
    return [
        *(forget(form, secret) for form in found.forms),
        *(forget_name(name, secret) for name in found.names),
    ]


def masked_records(
    found: Search, vault: Vault, known: Sequence[Forgotten], secret: bytes
) -> list[tuple[Shown, Conversation, str]]:
    """The records with masks, put into the vault beside the old ones."""
    out: list[tuple[Shown, Conversation, str]] = []
    for one in found.shown:
        clean = without_forgotten(from_record(vault.record(one.record)), known, secret)
        out.append((one, clean, vault.put_record(to_record(clean))))
    vault.commit()
    return out


def apply(
    ledger: Ledger,
    vault: Vault,
    settings: Settings,
    known: Sequence[Forgotten],
    secret: bytes,
    rewritten: Sequence[tuple[Shown, Conversation, str]],
    raw: Raw | None,
) -> None:
    """Note a purged value, and put what was rewritten in the place of what showed it. Inside the caller's transaction."""
    ledger.forget(known, vault=raw is not None)
    if raw is not None:
        drop_raw(ledger, raw)
    touched: set[Key] = set()
    for one, conversation, record in rewritten:
        if conversation.key != one.key:
            _rename(ledger, vault, settings, one, conversation, record)
        elif record != one.record:
            _replace(ledger, one, conversation, record)
        touched.add(one.key)
    for key in sorted(touched):
        if not ledger.sightings(key):
            let_go(ledger, key)
            continue
        index: dict[str, str] = {}
        for sighting in sorted(ledger.sightings(key), key=lambda s: s["updated_at"] or ""):
            index |= unpack_index(sighting["message_index"])
        ledger.replace_messages(key, index)
        settle(ledger, key)
    for row in ledger.rows("SELECT page FROM conversations WHERE page != ''"):
        if find_in_name(row["page"], known, secret):
            ledger.write("UPDATE conversations SET pages_in = NULL WHERE page = ?", (row["page"],))
    _mask_names(ledger, known, secret)


def _replace(ledger: Ledger, one: Shown, conversation: Conversation, record: str) -> None:
    index = {message.message_id: message_hash(message) for message in conversation.messages}
    ledger.write(
        "UPDATE OR REPLACE sightings SET record = ?, message_index = ? "
        "WHERE provider = ? AND conversation_id = ? AND record = ?",
        (record, pack_index(index), *one.key, one.record),
    )
    ledger.write(
        "UPDATE OR REPLACE element_records SET record = ? WHERE provider = ? AND conversation_id = ? AND record = ?",
        (record, *one.key, one.record),
    )


def _rename(
    ledger: Ledger, vault: Vault, settings: Settings, one: Shown, conversation: Conversation, record: str
) -> None:
    """The value was part of the conversation's own id: it goes on under another, and the old one is let go."""
    row = one.sighting
    where = Where(row["path"], row["member"], row["sha256"], settings.start, date.fromisoformat(row["seen_day"]))
    note(ledger, vault, conversation, where)
    ledger.write(
        "UPDATE OR REPLACE element_records SET conversation_id = ?, record = ? "
        "WHERE provider = ? AND conversation_id = ? AND record = ?",
        (conversation.conversation_id, record, *one.key, one.record),
    )
    ledger.write(
        "DELETE FROM sightings WHERE provider = ? AND conversation_id = ? AND record = ?", (*one.key, one.record)
    )


def _mask_names(ledger: Ledger, known: Sequence[Forgotten], secret: bytes) -> None:
    """Paths, places and counts that show the value. A file that is still called so is known by its masked name from now
    on, as ingest will call it."""

    def clean(text: str) -> str:
        return masked_paths(text, known, secret)

    def of_others(text: str) -> str:
        return masked_paths(text, known, secret, nature=made.said)

    def inside(path: str) -> str:
        return masked_path(path, known, secret)

    def named(text: str) -> str:
        return masked_name(text, known, secret)

    ledger.write("DELETE FROM shown_names")  # they are looked at again
    for row in ledger.rows("SELECT DISTINCT member FROM sightings"):
        if inside(row["member"]) != row["member"]:  # rows of the lake say where they were read
            sql = "SELECT DISTINCT provider, conversation_id FROM sightings WHERE member = ?"
            for key in ledger.rows(sql, (row["member"],)):
                source_is_called_anew(ledger, (key["provider"], key["conversation_id"]))
    for table, column, new_for in (
        *((table, "path", named) for table in (*_NAMED_BY_PATH, "sightings")),
        *(("members", "member", named), ("file_elements", "member", named), ("files", "root", named)),
        *(("skips", "place", named), ("sightings", "member", inside), ("elements", "skips", named)),
        *(("unknown_names", "name", of_others), ("elements", "unknown", of_others), ("stage_log", "counts", clean)),
    ):
        for row in ledger.rows(f"SELECT DISTINCT {column} AS text FROM {table}"):
            text = row["text"].decode() if isinstance(row["text"], bytes) else str(row["text"])
            if (new := new_for(text)) != text:
                value = new.encode() if isinstance(row["text"], bytes) else new
                ledger.write(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {column} = ?", (value, row["text"]))


def called_so(home: Home, ledger: Ledger, found: Search) -> list[str]:
    """The user's own files that are there and whose path shows the value: they keep their names."""
    probes = Probes(found.forms, found.names)
    paths = {str(row["path"]) for row in ledger.rows("SELECT path FROM files")}
    paths |= {seen.path for seen in scan(home.settings.folders, home.path) if isinstance(seen, Seen)}
    return sorted(path for path in paths if probes.in_path(path) and Path(path).exists())
