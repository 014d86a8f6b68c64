"""What the ledger and the quarantine say of a file after it was looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from palace_pipeline.exports.scan import Seen
from palace_pipeline.ingest.recipes import recipe_of
from palace_pipeline.model import Skip, short_hash
from palace_pipeline.store.files import write_bytes
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Outcome:
    """What reading a file gave. `formats`: format -> provider; `unknown`: (format, name, count), for the drift alarm."""

    skips: Sequence[Skip]
    formats: Mapping[str, str] = field(default_factory=dict[str, str])
    conversations: int = 0
    messages: int = 0
    unknown: Sequence[tuple[str, str, int]] = ()

    @property
    def bad(self) -> list[Skip]:
        """What should have been taken and was not."""
        return [skip for skip in self.skips if not skip.expected]

    @property
    def status(self) -> str:
        """done, partial (some of it was not taken), skipped (nothing in it is wanted), quarantined (nothing was taken)."""
        if self.conversations:
            return "partial" if self.bad else "done"
        return "quarantined" if self.bad else "skipped"


def note_file(ledger: Ledger, home: Home, seen: Seen, sha256: str | None, outcome: Outcome, now: str) -> None:
    """Bring a file's row, its skips and its unknown names up to date; `now` is ISO time in UTC."""
    status, used = outcome.status, sorted(outcome.formats)
    recipe = recipe_of(
        used if status in ("done", "partial") else (),
        whole=status == "done",
        zone=home.settings.timezone_of(Path(seen.path)),
    )
    reason = (outcome.bad or outcome.skips)[0].reason if outcome.skips and status != "done" else None
    provider = ",".join(sorted(set(outcome.formats.values()))) or None
    ledger.write(
        "INSERT INTO files (path, root, size, mtime_ns, inode, sha256, status, reason, provider, format, recipe, "
        "first_seen_at, read_at, conversations, messages, skipped) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
        "ON CONFLICT (path) DO UPDATE SET root=excluded.root, size=excluded.size, mtime_ns=excluded.mtime_ns, "
        "inode=excluded.inode, sha256=excluded.sha256, status=excluded.status, reason=excluded.reason, "
        "provider=excluded.provider, format=excluded.format, recipe=excluded.recipe, read_at=excluded.read_at, "
        "conversations=excluded.conversations, messages=excluded.messages, skipped=excluded.skipped, "
        "attempts=files.attempts + 1",
        (
            seen.path,
            seen.root,
            seen.size,
            seen.mtime_ns,
            seen.inode,
            sha256,
            status,
            reason,
            provider,
            ",".join(used) or None,
            recipe,
            now,
            now,
            outcome.conversations,
            outcome.messages,
            sum(skip.count for skip in outcome.skips),
        ),
    )
    ledger.replace_skips(seen.path, provider, outcome.skips, outcome.unknown)


def quarantine(ledger: Ledger, home: Home, path: str, sha256: str | None, skips: Sequence[Skip], now: str) -> None:
    """Say in `quarantine/` why nothing of a file was taken, and where its bytes are kept."""
    entry = {
        "path": path,
        "sha256": sha256,
        "quarantined_at": now,
        "reasons": [{"reason": skip.reason, "where": skip.where} for skip in skips],
        "vault": [m["member"] for m in ledger.rows("SELECT member FROM members WHERE path = ?", (path,))],
        "next": "tried again when the file or a reader changes",
    }
    write_bytes(quarantine_file(home, path), orjson.dumps(entry, option=orjson.OPT_INDENT_2))


def leave_quarantine(home: Home, path: str) -> None:
    """Something of the file was taken, or nothing in it is wanted."""
    quarantine_file(home, path).unlink(missing_ok=True)


def quarantine_file(home: Home, path: str) -> Path:
    """Where the quarantine note of a file lies, by the name that the ledger knows the file by."""
    return home.quarantine / f"{short_hash(path)}.json"
