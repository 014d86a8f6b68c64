"""`palace purge`: forgetting a conversation or a value, everywhere and for good, with proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palace_pipeline.ingest.purged import mark_of
from palace_pipeline.purge.again import files_with, said_before
from palace_pipeline.purge.conversations import Raw, bury, elements_of, files_of, marked_elements, raw_of
from palace_pipeline.purge.probes import Probes
from palace_pipeline.purge.proof import Proof, plain_parent, prove
from palace_pipeline.purge.rest import Rest, finish, note_rest
from palace_pipeline.purge.targets import (
    LEAST_ID,
    PurgeError,
    buried,
    conversations_of,
    records_of,
    resolve,
    said_by,
    with_continued,
    with_parts,
)
from palace_pipeline.purge.values import Search, apply, called_so, keyed, masked_records, search
from palace_pipeline.redaction.forgetting import tombstone
from palace_pipeline.redaction.forgotten import KIND, MASK, places_in_name, with_mask
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Key
from palace_pipeline.workspace.hiding import hide_secrets
from palace_pipeline.workspace.names import folder_of, is_id
from palace_pipeline.workspace.sweeping import all_sessions, page_of, sweep

__all__ = [
    "PurgeError",
    "Purged",
    "Target",
    "Value",
    "find_conversation",
    "find_value",
    "finish",
    "purge_conversation",
    "purge_value",
    "shown_paths",
]


@dataclass(frozen=True, slots=True)
class Target:
    """A conversation to be purged, with those that go with it. `files`: of the user, which stay as they are.

    `before`: it was purged before; what is left of it is looked for again.
    """

    keys: list[Key]
    messages: int
    files: list[str]
    shared: list[str]
    """Files whose raw bytes stay in the vault, since they hold other conversations too."""
    before: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """A value to be purged: where it was found. Holds it in memory; never shown."""

    text: str = field(repr=False)
    found: Search = field(repr=False)
    called: list[str] = field(repr=False)
    """Files of the user whose own path shows it: they are called so outside of Palace, and stay so."""

    @property
    def keys(self) -> list[Key]:
        return self.found.keys


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge did. `files`: of the user, that still hold what was purged (a value in their paths is masked);
    `shared`: see `Target`; `called`: folders with files of the user whose own name shows the value."""

    removed: dict[str, int]
    proof: Proof
    files: list[str]
    shared: list[str]
    called: list[str] = field(default_factory=list[str])
    otherwise: int = 0
    """Conversations in which a value stood in another case of letters too: there it is left as it is."""
    short: bool = False
    """What a conversation said is known, and none of it is long enough to be looked for."""

    @property
    def clean(self) -> bool:
        """True if nothing was found any more, and everything could be looked at."""
        return not self.proof.found and not self.proof.unread

    def as_json(self) -> dict[str, Any]:
        return {
            "removed": self.removed,
            "proof": self.proof.as_json(),
            "your_files": self.files,
            "called_so": self.called,
            "kept_in_vault": self.shared,
            "in_another_case": self.otherwise,
            "clean": self.clean,
        }


def find_conversation(home: Home, named: str, *, vault: bool) -> Target:
    """What purging a conversation concerns; changes nothing. Raises PurgeError if it is not clear which one is meant."""
    with home.ledger() as ledger, home.vault() as kept:
        secret = home.key()
        try:
            keys = with_continued(ledger, resolve(ledger, named))
        except PurgeError:
            if (key := buried(ledger, secret, named)) is None:
                raise
            return Target([key], 0, files_with(ledger, [mark_of(tombstone(*key, secret))]), [], before=True)
        keys = with_parts(ledger, kept, keys)
        messages = sum(row["messages"] for key in keys if (row := ledger.conversation(key)) is not None)
        shared = raw_of(ledger, kept, keys, Probes([]), Probes([])).shared if vault else []
        theirs = [path for path in _there(files_of(ledger, elements_of(ledger, keys))) if not _of_workspace(home, path)]
        return Target(keys, messages, theirs, sorted(set(shared)))


def purge_conversation(home: Home, keys: Sequence[Key], *, vault: bool, batch: str) -> Purged:
    """Purge conversations, or sweep once more what is left of some that were. Needs the write lock.

    Done again after a kill it finishes what was begun.
    """
    secret = home.key()
    graves = [tombstone(*key, secret) for key in keys]
    with home.ledger() as ledger, home.vault() as kept:
        marked = marked_elements(ledger, graves)
        records = records_of(ledger, keys)
        chats = conversations_of(kept, records) if records else said_before(ledger, kept, keys, marked, secret)
        said = said_by(ledger, kept, chats, records)
        ids = [*said.ids, *(name for _, name in keys if len(name) >= LEAST_ID)]
        texts = [*said.probes, *said.more]
        raw = raw_of(ledger, kept, keys, Probes(texts), Probes([*texts, *ids]), marked) if vault else None
        files = {*files_of(ledger, elements_of(ledger, keys)), *files_with(ledger, [mark_of(one) for one in graves])}
        kept.commit()
        with ledger.transaction():
            bury(ledger, secret, keys, raw, ids)
            note_rest(ledger, Rest(vault, value=False))
    removed = finish(home, batch)
    raw = raw or Raw()
    proof = prove(home, said.probes, keys, pieces=vault, spared=set(raw.spared))
    for provider, name in keys:
        if provider == "session" and is_id(name) and (page := page_of(home.path / folder_of(name), name)) is not None:
            proof.found.append(f"files: {page.relative_to(home.path)} (it could not be deleted)")
    short = bool(records) and not said.probes
    return Purged(removed, proof, _there(sorted({*files, *raw.files})), sorted(set(raw.shared)), short=short)


def find_value(home: Home, value: str) -> Value:
    """Where a value stands; changes nothing. Raises ValueError if it is too short."""
    with home.ledger() as ledger, home.vault() as kept:
        found = search(ledger, kept, value)
        found.files[:] = [path for path in found.files if not _of_workspace(home, path)]
        called = [path for path in called_so(home, ledger, found) if not _of_workspace(home, path)]
        return Value(value, found, called)


def purge_value(home: Home, value: Value, *, vault: bool, batch: str) -> Purged:
    """Purge a value. Needs the write lock, held since `find_value`."""
    secret = home.key()
    with home.ledger() as ledger, home.vault() as kept:
        known = keyed(value.found, secret)
        rewritten = masked_records(value.found, kept, [*ledger.forgotten(), *known], secret)
        with ledger.transaction():
            apply(ledger, kept, home.settings, known, secret, rewritten, value.found.raw if vault else None)
            note_rest(ledger, Rest(vault, value=True))
            kept.commit()
    # Here the value is known, so that its beginning goes as well where a name or a line was cut off in it.
    sweep(home.path, hide_secrets({value.text: KIND}), all_sessions(home.path))
    removed = finish(home, batch)
    removed |= {"rewritten": len(rewritten)}
    proof = prove(home, value.found.forms, (), pieces=vault, names=value.found.names)
    probes = Probes(value.found.forms, value.found.names)
    folders = sorted({plain_parent(path, probes) for path in value.called})
    files = shown_paths(value, _there(value.found.files))
    return Purged(removed, proof, files, [], folders, value.found.otherwise)


def shown_paths(value: Value, paths: Sequence[str]) -> list[str]:
    """Paths as they may be shown: the value that is purged is masked in them."""
    out: list[str] = []
    for path in paths:
        for form in sorted(value.found.forms, key=len, reverse=True):
            path = path.replace(form, MASK)
        out.append(with_mask(path, sorted(places_in_name(path, value.found.names)), MASK))
    return out


def _of_workspace(home: Home, path: str) -> bool:
    """Whether a file is the page of a live session, which goes with the conversation."""
    return Path(path).is_relative_to(home.path / "sessions")


def _there(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if Path(path).exists()]
