"""From the pages to the ledger: what a folder of Markdown says becomes sightings, like those of exports.

A page is noted under the id, the day and the numbers of messages that it shows, so that everything made of it (rows,
drawers with their ids, tables) is what it was. Conversations that the ledger knows already keep their sources: an
export knows more than its page. What was purged stays so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from palace_pipeline.ingest.purged import PURGED, Purged
from palace_pipeline.ingest.sightings import Where, note
from palace_pipeline.model import PROVIDERS, Skip
from palace_pipeline.stages.paged import FROM_PAGES
from palace_pipeline.stages.progress import report
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Key, Ledger
from palace_pipeline.store.pages import is_copy
from palace_pipeline.store.vault import RecordTooLarge, Vault
from palace_pipeline.transcripts.page import PageError, ParsedPage, parse
from palace_pipeline.transcripts.page_path import parse_name
from palace_pipeline.workspace.logs import append_error

AT_ONCE = 200
"""Pages noted in one transaction."""
NO_PAGE = "a note of your own, no page of a conversation"
DAMAGED = "damaged"
"""Kind of a line in `logs/errors.md`."""


@dataclass(slots=True)
class Taken:
    """What became of the pages: `pages` noted, `known` before (from exports, or by a rebuild that was killed), `edited`
    by hand since they were written, `skips` what was not taken. Paths are relative to the home."""

    pages: int = 0
    known: int = 0
    edited: list[str] = field(default_factory=list[str])
    skips: list[Skip] = field(default_factory=list[Skip])


def any_pages(home: Home) -> bool:
    """Is there a file that could be a page?"""
    return next(_files(home.conversations), None) is not None


def take_pages(home: Home) -> Taken:
    """Note every page below `conversations/`. Needs the write lock; may be killed and called again.

    Nothing is written to the pages. What cannot be read is left as it is, counted, and named in `logs/errors.md`.
    """
    taken = Taken()
    paths = sorted(_files(home.conversations), key=_rank)
    with home.ledger() as ledger, home.vault() as vault:
        purged = Purged.of(home, ledger)
        seen: dict[Key, str] = {}
        for first in range(0, len(paths), AT_ONCE):
            with ledger.transaction():
                for path in paths[first : first + AT_ONCE]:
                    _take(home, ledger, vault, purged, path, seen, taken)
                vault.commit()  # never after the ledger
            report("pages read", min(first + AT_ONCE, len(paths)), len(paths))
    for skip in taken.skips:
        if not skip.expected:
            append_error(home.path, DAMAGED, skip.where, f"{skip.reason}; the page was left as it is")
    return taken


def _take(
    home: Home, ledger: Ledger, vault: Vault, purged: Purged, path: Path, seen: dict[Key, str], taken: Taken
) -> None:
    place = path.relative_to(home.path).as_posix()
    text = ""
    try:
        text = path.read_bytes().decode("utf-8")
        parsed = parse(text)
    except UnicodeDecodeError:
        taken.skips.append(Skip("the page is no UTF-8", place, False, unit="conversation"))
        return
    except OSError as error:
        taken.skips.append(Skip(f"the page cannot be read ({error.strerror})", place, False, unit="conversation"))
        return
    except PageError as error:
        own = parse_name(path.name) is None and "\ntype: conversation" not in text[:1000]
        reason = NO_PAGE if own else f"the page cannot be read: {error}"
        taken.skips.append(Skip(reason, place, own, unit="file" if own else "conversation"))
        return
    key = parsed.conversation.key
    if (reason := _refused(parsed, purged, home, place, seen)) is not None:
        taken.skips.append(reason)
        return
    seen[key] = place
    if parsed.problems:
        reason = "a comment line cannot be read, so its message is not known"
        taken.skips.append(Skip(reason, place, False, len(parsed.problems)))
    if not parsed.intact:
        taken.edited.append(place)
    if ledger.conversation(key) is not None:
        taken.known += 1
        return
    conversation = purged.clean(parsed.whole())
    where = Where(
        FROM_PAGES,
        conversation.source_file or "",
        (parsed.head.source_sha256 or ("",))[0],
        home.settings.start,
        parsed.head.day,
        parsed.head.dated,
    )
    try:
        note(ledger, vault, conversation, where)
    except RecordTooLarge:
        reason = "conversation of more than a gigabyte (compressed): too large to be kept"
        taken.skips.append(Skip(reason, place, False, unit="conversation"))
        return
    ledger.write("UPDATE conversations SET page = ? WHERE provider = ? AND conversation_id = ?", (place, *key))
    taken.pages += 1


def _refused(parsed: ParsedPage, purged: Purged, home: Home, place: str, seen: dict[Key, str]) -> Skip | None:
    """Why a page that could be read is not taken; None if it is."""
    key = parsed.conversation.key
    if purged.hides(key) is not None:
        return Skip(PURGED, place, True, unit="conversation")
    if key in seen:
        return Skip("another page of the same conversation was taken", place, False, unit="conversation")
    if not parsed.conversation.messages and not parsed.head.source_sha256:
        return Skip("a page without messages, which keeps your notes", place, True, unit="file")
    if key[0] not in PROVIDERS:
        return Skip("provider of the page is not known", place, False, unit="conversation")
    if not home.settings.start <= parsed.head.day <= datetime.now(UTC).date():
        return Skip("the page's date is before the start or in the future", place, False, unit="conversation")
    return None


def _rank(path: Path) -> tuple[bool, int, Path]:
    """Which page of a conversation is taken: the one under a name of its own (a copy, `… (1).md`, may be older), and the
    longest of those."""
    return parse_name(path.name) is None, -path.lstat().st_size, path


def _files(folder: Path) -> Iterator[Path]:
    """Markdown files below a folder, without copies of conflicts and what lies in hidden folders."""
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            path = Path(at, name)
            if name.endswith(".md") and not name.startswith(".") and not is_copy(name) and not path.is_symlink():
                yield path
