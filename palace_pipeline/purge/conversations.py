"""Taking conversations out of the ledger: one transaction, after which every stage lets them go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from sqlite3 import Row

import orjson

from palace_pipeline.ingest.purged import PURGED, mark_of
from palace_pipeline.model import Skip
from palace_pipeline.purge.probes import Probes
from palace_pipeline.redaction.forgetting import part_mark, tombstone
from palace_pipeline.store.ledger import Key, Ledger
from palace_pipeline.store.vault import Vault

OF_CHATS = ("whole", "array", "lines")
"""Uses of members that readers read; the others are kept unread."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Raw bytes to take out of the vault, and those that stay because they hold other conversations as well."""

    elements: list[str] = field(default_factory=list[str])
    members: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    shared: list[str] = field(default_factory=list[str])
    """Files (paths) that hold them together with others."""
    spared: list[str] = field(default_factory=list[str])
    """Pieces of the vault that stay for that reason."""
    files: list[str] = field(default_factory=list[str])
    """Files (paths) that hold any of it."""


def elements_of(ledger: Ledger, keys: Iterable[Key]) -> dict[str, list[Key]]:
    """Element -> those of `keys` that it shows."""
    out: dict[str, list[Key]] = {}
    for key in keys:
        for row in ledger.rows(
            "SELECT DISTINCT element FROM element_records WHERE provider = ? AND conversation_id = ?", key
        ):
            out.setdefault(row["element"], []).append(key)
    return out


def files_of(ledger: Ledger, elements: Iterable[str]) -> list[str]:
    """Paths of the files that hold some elements."""
    paths = {
        row["path"]
        for element in elements
        for row in ledger.rows("SELECT path FROM file_elements WHERE element = ?", (element,))
    }
    return sorted(paths)


def marked_elements(ledger: Ledger, graves: Iterable[bytes]) -> set[str]:
    """Elements of which conversations were left out that were purged before (by their tombstones)."""
    marks = [mark_of(grave).encode() for grave in graves]
    if not marks:
        return set()
    rows = ledger.rows("SELECT element, skips FROM elements WHERE instr(skips, ?)", (PURGED.encode(),))
    return {row["element"] for row in rows if any(mark in row["skips"] for mark in marks)}


def raw_of(
    ledger: Ledger, vault: Vault, keys: Sequence[Key], said: Probes, marks: Probes, before: Collection[str] = ()
) -> Raw:
    """The raw bytes that conversations are made of, and all others that show them.

    Those others are unread members (attachments, side files), and elements that a cut or a lost bracket left without a
    conversation, or with one beside a part of another. `said`: what only these conversations say; `marks`: that, and
    their ids. `before`: elements of conversations that were purged before.
    """
    doomed, raw = set(keys), Raw()
    own = {*elements_of(ledger, keys), *before}
    for row in ledger.rows("SELECT element, pieces FROM elements ORDER BY element"):
        element, pieces = str(row["element"]), _names(row["pieces"])
        shown = ledger.rows("SELECT provider, conversation_id FROM element_records WHERE element = ?", (element,))
        others = [key for shows in shown if (key := (shows["provider"], shows["conversation_id"])) not in doomed]
        members = _whole_members(ledger, element)
        if element not in own:
            probes = said if others else marks
            held = [pieces, *(_names(member["pieces"]) for member in members)]
            if not any(probes.in_blocks(vault.piece(name) for name in names) for names in held):
                continue
        raw.files.extend(files_of(ledger, [element]))
        if not others:
            raw.elements.append(element)
            raw.members.extend((member["path"], member["member"]) for member in members)
        else:
            raw.shared.extend(files_of(ledger, [element]))
            raw.spared.extend(pieces)
            raw.spared.extend(name for member in members for name in _names(member["pieces"]))
    for row in ledger.rows("SELECT path, member, use, pieces FROM members"):
        probes = marks if row["use"] == "damaged" else said
        if row["use"] not in OF_CHATS and probes.in_blocks(vault.piece(name) for name in _names(row["pieces"])):
            raw.members.append((row["path"], row["member"]))
            raw.files.append(row["path"])
    return raw


def _names(pieces: bytes) -> list[str]:
    return orjson.loads(pieces)


def _whole_members(ledger: Ledger, element: str) -> list[Row]:
    return ledger.rows(
        "SELECT DISTINCT m.path, m.member, m.pieces FROM file_elements f JOIN members m USING (path, member) "
        "WHERE f.element = ? AND m.use = 'whole'",
        (element,),
    )


def bury(ledger: Ledger, secret: bytes, keys: Sequence[Key], raw: Raw | None, ids: Iterable[str] = ()) -> None:
    """Forget conversations, in one transaction with whatever the caller notes. `raw`: bytes to take from the vault too.

    `ids`: of them and of their messages. By these a part of one is known that comes later, in a file that is cut.
    """
    with ledger.transaction():
        ledger.bury([tombstone(*key, secret) for key in keys], vault=raw is not None)
        if raw is not None:
            ledger.bury([part_mark(one, secret) for one in ids], vault=True)
        for element, shown in elements_of(ledger, keys).items():
            _tell(ledger, secret, element, shown)
        if raw is not None:
            drop_raw(ledger, raw)
        for key in keys:
            let_go(ledger, key)


def drop_raw(ledger: Ledger, raw: Raw) -> None:
    """Nothing refers to these bytes any more; the vault is swept later."""
    ledger.write_many("UPDATE elements SET pieces = ? WHERE element = ?", ((b"[]", one) for one in raw.elements))
    ledger.write_many("DELETE FROM members WHERE path = ? AND member = ?", raw.members)


def let_go(ledger: Ledger, key: Key) -> None:
    """Take all that a conversation was made of; what was built of it goes with the stages, which are due now."""
    for table in ("element_records", "sightings", "secret_candidates", "withheld", "unsettled"):
        ledger.write(f"DELETE FROM {table} WHERE provider = ? AND conversation_id = ?", key)
    ledger.write(
        "UPDATE conversations SET status = 'purged', input = 'purged', superseded_by = NULL, forked_from = NULL, "
        "undated_reason = NULL WHERE provider = ? AND conversation_id = ?",
        key,
    )
    ledger.replace_messages(key, {})


def _tell(ledger: Ledger, secret: bytes, element: str, keys: Sequence[Key]) -> None:
    """What is read of an element, and of the files that hold it, from now on: the same as if it were read anew."""
    row = ledger.one("SELECT skips FROM elements WHERE element = ?", (element,))
    skips: list[dict[str, object]] = orjson.loads(row["skips"]) if row is not None else []
    places = ledger.rows("SELECT path, member FROM file_elements WHERE element = ?", (element,))
    for key in keys:
        shown = ledger.one(
            "SELECT sum(s.messages) AS messages FROM element_records r JOIN sightings s "
            "USING (provider, conversation_id, record) WHERE r.element = ? AND provider = ? AND conversation_id = ?",
            (element, *key),
        )
        mark = mark_of(tombstone(*key, secret))
        for number, place in enumerate(places):
            skip = Skip(PURGED, f"{place['path']}: {mark}", True, unit="conversation")
            if number == 0:
                skips.append(asdict(skip))
            _tell_file(ledger, place["path"], skip, (shown["messages"] if shown else None) or 0)
    ledger.write("UPDATE elements SET skips = ? WHERE element = ?", (orjson.dumps(skips), element))


def _tell_file(ledger: Ledger, path: str, skip: Skip, messages: int) -> None:
    file = ledger.one("SELECT provider FROM files WHERE path = ?", (path,))
    ledger.write(
        "INSERT INTO skips VALUES (?, ?, ?, ?, ?, ?, ?)",
        (path, file["provider"] if file else None, skip.where, skip.reason, 1, skip.count, skip.unit),
    )
    ledger.write(
        "UPDATE files SET conversations = max(conversations - 1, 0), messages = max(messages - ?, 0), "
        "skipped = skipped + 1 WHERE path = ?",
        (messages, path),
    )
    ledger.write(
        "UPDATE files SET status = 'skipped', reason = ? WHERE path = ? AND conversations = 0 AND status = 'done'",
        (PURGED, path),
    )
