"""What an archive has seen of each format, and where a format seems to have changed. Reads the ledger only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palace_pipeline import __version__
from palace_pipeline.exports.drift import clean_key
from palace_pipeline.exports.registry import READERS
from palace_pipeline.store.ledger import Ledger

NOTHING = "(nothing understood)"
"""Stands among the unknown names of a file for each member of a known format of which nothing was understood."""
UNREAD = ("unknown JSON", "unknown SQLite database", "text of an unknown kind", "binary file of an unknown kind")
"""Reasons of files that no reader knows."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Signs that a format has changed. `files`: those that show them; `nothing`: members of which nothing was
    understood; `names`: types, roles and keys that the reader has never heard of, with their counts, never a value."""

    format: str
    files: int
    nothing: int
    names: dict[str, int]

    def as_counts(self) -> dict[str, Any]:
        return {"format": self.format, "files": self.files, "nothing": self.nothing, "unknown": self.names}

    def report(self) -> str:
        """One line to paste into a bug report: no path, no value."""
        reader = next((reader for reader in READERS if reader.format == self.format), None)
        looked_at = f" recipe={reader.recipe} looked-at={reader.spec.checked}" if reader is not None else ""
        names = ", ".join(f"{name} {count}" for name, count in self.names.items())
        return (
            f"palace {__version__} drift format={self.format}{looked_at} files={self.files} nothing={self.nothing} "
            f"unknown=[{names}]"
        )

    def in_words(self) -> str:
        """For receipts and `palace doctor`; long lists are cut, `palace formats` has them whole."""
        said: list[str] = []
        if self.nothing:
            said.append(f"nothing understood in {self.nothing} place(s)")
        if self.names:
            first = [f"{name} ({count})" for name, count in list(self.names.items())[:5]]
            more = f" and {len(self.names) - 5} more" if len(self.names) > 5 else ""
            said.append(f"{len(self.names)} name(s) never seen: {', '.join(first)}{more}")
        return f"{self.format}: {'; '.join(said)} (in {self.files} file(s))"


@dataclass(slots=True)
class Seen:
    """A format and what the archive has of it. `folders`: those that were looked through, with their files; `last_read`
    an instant in UTC, `last_day` the day of the newest conversation."""

    format: str
    provider: str
    name: str
    where: str
    since: str
    checked: str
    confidence: str
    source: str
    files: int = 0
    conversations: int = 0
    messages: int = 0
    folders: Counter[str] = field(default_factory=Counter[str])
    last_read: str | None = None
    last_day: str | None = None
    drift: Drift | None = None


def drifted(ledger: Ledger, paths: Container[str] | None = None) -> list[Drift]:
    """The drift of the files that were looked at (None: of all that were ever read), by format."""
    files: dict[str, set[str]] = {}
    counts: dict[str, Counter[str]] = {}
    for row in ledger.rows("SELECT path, format, name, count FROM unknown_names ORDER BY format, name"):
        if paths is None or row["path"] in paths:
            # Files that were read before formats were noted.
            name = row["format"] or "(read before)"
            files.setdefault(name, set()).add(row["path"])
            shown = NOTHING if row["name"] == NOTHING else clean_key(row["name"])
            counts.setdefault(name, Counter())[shown] += row["count"]
    return [
        Drift(name, len(files[name]), found.pop(NOTHING, 0), dict(sorted(found.items(), key=lambda x: (-x[1], x[0]))))
        for name, found in sorted(counts.items())
    ]


def by_format(ledger: Ledger | None) -> list[Seen]:
    """Every format that can be read, in the order in which readers are asked, with what the ledger knows of it."""
    seen = {
        reader.format: Seen(
            reader.format,
            reader.provider,
            reader.spec.name or reader.format,
            reader.spec.where,
            reader.spec.since,
            reader.spec.checked,
            reader.spec.confidence,
            reader.spec.source,
        )
        for reader in READERS
    }
    if ledger is None:
        return list(seen.values())
    for row in ledger.rows(
        "SELECT path, root, format, read_at FROM files WHERE format IS NOT NULL ORDER BY root, path"
    ):
        for name in row["format"].split(","):
            if (of := seen.get(name)) is not None:
                of.files += 1
                of.folders[row["root"]] += 1
                of.last_read = max(of.last_read or "", row["read_at"])
    for row in ledger.rows(
        "SELECT k.format, count(*) AS conversations, sum(c.messages) AS messages, "
        "max(CASE WHEN c.dated = 1 THEN c.day END) AS last_day FROM "
        "(SELECT DISTINCT e.format, r.provider, r.conversation_id FROM elements e JOIN element_records r USING (element)) k "
        "JOIN conversations c USING (provider, conversation_id) "
        "WHERE c.superseded_by IS NULL AND c.status != 'purged' GROUP BY k.format"
    ):
        if (of := seen.get(row["format"])) is not None:
            of.conversations, of.messages, of.last_day = row["conversations"], row["messages"], row["last_day"]
    for drift in drifted(ledger):
        if (of := seen.get(drift.format)) is not None:
            of.drift = drift
    return list(seen.values())


def unread(ledger: Ledger) -> dict[str, list[str]]:
    """Files that no reader knows, by reason; a format that changed beyond recognition stands here."""
    marks = ",".join("?" * len(UNREAD))
    found: dict[str, list[str]] = {}
    for row in ledger.rows(f"SELECT DISTINCT reason, place FROM skips WHERE reason IN ({marks}) ORDER BY 1, 2", UNREAD):
        found.setdefault(row["reason"], []).append(row["place"])
    return found


def folders_in_words(folders: Counter[str], most: int = 3) -> str:
    """The folders with most files, home folder shortened."""
    home = str(Path.home())
    shown = [
        f"{'~' + path.removeprefix(home) if path.startswith(home + '/') else path} ({count})"
        for path, count in folders.most_common(most)
    ]
    return ", ".join(shown) + (f" and {len(folders) - most} more" if len(folders) > most else "")
