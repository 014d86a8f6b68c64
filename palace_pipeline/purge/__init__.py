"""`palace purge`: forgetting a conversation or a value, everywhere and for good, with proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palace_pipeline.purge.conversations import Raw, bury, elements_of, files_of, raw_of
from palace_pipeline.purge.proof import Probes, Proof, prove
from palace_pipeline.purge.rest import Rest, finish, note_rest
from palace_pipeline.purge.targets import PurgeError, probes_of, records_of, resolve, with_continued
from palace_pipeline.purge.values import Search, apply, keyed, masked_records, search
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Key

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
]


@dataclass(frozen=True, slots=True)
class Target:
    """A conversation to be purged, with those that go with it. `files`: of the user, which stay as they are."""

    keys: list[Key]
    messages: int
    files: list[str]
    shared: list[str]
    """Files whose raw bytes stay in the vault, since they hold other conversations too."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value to be purged: where it was found. Holds it in memory; never shown."""

    text: str = field(repr=False)
    found: Search = field(repr=False)

    @property
    def keys(self) -> list[Key]:
        return self.found.keys


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge did. `files`: of the user, that still hold what was purged; `shared`: see `Target`."""

    removed: dict[str, int]
    proof: Proof
    files: list[str]
    shared: list[str]

    @property
    def clean(self) -> bool:
        """True if nothing was found any more."""
        return not self.proof.found

    def as_json(self) -> dict[str, Any]:
        return {
            "removed": self.removed,
            "proof": self.proof.as_json(),
            "your_files": self.files,
            "kept_in_vault": self.shared,
            "clean": self.clean,
        }


def find_conversation(home: Home, named: str, *, vault: bool) -> Target:
    """What purging a conversation concerns; changes nothing. Raises PurgeError if it is not clear which one is meant."""
    with home.ledger() as ledger, home.vault() as kept:
        keys = with_continued(ledger, resolve(ledger, named))
        messages = sum(row["messages"] for key in keys if (row := ledger.conversation(key)) is not None)
        shared = raw_of(ledger, kept, keys, Probes([])).shared if vault else []
        return Target(keys, messages, _there(files_of(ledger, elements_of(ledger, keys))), sorted(set(shared)))


def purge_conversation(home: Home, keys: Sequence[Key], *, vault: bool, batch: str) -> Purged:
    """Purge conversations. Needs the write lock. Done again after a kill it finishes what was begun."""
    with home.ledger() as ledger, home.vault() as kept:
        probes = probes_of(ledger, kept, records_of(ledger, keys))
        raw = raw_of(ledger, kept, keys, Probes(probes)) if vault else None
        files = files_of(ledger, elements_of(ledger, keys))
        kept.commit()
        with ledger.transaction():
            bury(ledger, home.key(), keys, raw)
            note_rest(ledger, Rest(vault, value=False))
    removed = finish(home, batch)
    raw = raw or Raw()
    proof = prove(home, probes, keys, pieces=vault, spared=set(raw.spared))
    return Purged(removed, proof, _there(files), sorted(set(raw.shared)))


def find_value(home: Home, value: str) -> Value:
    """Where a value stands; changes nothing. Raises ValueError if it is too short."""
    with home.ledger() as ledger, home.vault() as kept:
        return Value(value, search(ledger, kept, value))


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
    removed = finish(home, batch)
    removed |= {"rewritten": len(rewritten)}
    proof = prove(home, value.found.forms, (), pieces=vault, called=_called_so(home, value))
    return Purged(removed, proof, _there(value.found.files), [])


def _called_so(home: Home, value: Value) -> list[str]:
    """Files of the user whose own path shows the value: by it the ledger knows them for as long as they are there."""
    probes = Probes(value.found.forms)
    with home.ledger() as ledger:
        paths = [str(row["path"]) for row in ledger.rows("SELECT path FROM files ORDER BY path")]
    return [path for path in paths if probes.in_text(path) and Path(path).exists()]


def _there(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if Path(path).exists()]
