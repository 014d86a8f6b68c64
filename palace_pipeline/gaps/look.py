"""One look at source and archive: the files of the source, the conversations of some days, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from palace_pipeline.exports.scan import Known, Seen, identity, scan, seen_again
from palace_pipeline.exports.streams import MemberError
from palace_pipeline.failing import failing
from palace_pipeline.gaps.compare import Evicted, Files, Gap, Key, compare_files, unclean
from palace_pipeline.gaps.sides import Days, look_at_days
from palace_pipeline.ingest import ingest
from palace_pipeline.ingest.gathered import hash_of_file
from palace_pipeline.ingest.preview import Preview
from palace_pipeline.ingest.purged import Purged
from palace_pipeline.ingest.recipes import current_in
from palace_pipeline.ingest.tally import LEFT_BY_LIMIT, Tally
from palace_pipeline.planner import Range
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger

WINDOW_DAYS = 30
"""Agents delete their logs after some weeks: what is older than this was compared many times before."""


def window(home: Home, *, everything: bool, today: date | None = None) -> Range:
    """The days (UTC) of a look: the trailing ones up to today, or all."""
    last = today or datetime.now(UTC).date()
    return Range(home.settings.start if everything else last - timedelta(days=WINDOW_DAYS - 1), last)


@dataclass(slots=True)
class Look:
    """What a look found. `left`: days that lost a conversation to another day and are to be shown anew; `only_here`: of
    each evicted file, the conversations that no other file of the source shows any more; `elsewhere`: paths outside the
    configured folders."""

    window: Range
    files: Files
    days: Days
    news: list[Gap] = field(default_factory=list[Gap])
    left: list[date] = field(default_factory=list[date])
    only_here: dict[str, int] = field(default_factory=dict[str, int])
    elsewhere: set[str] = field(default_factory=set[str])
    limited: bool = False
    busy: bool = False

    @property
    def gaps(self) -> list[Gap]:
        """Conversations of the window that lack something, by day: what was not taken, then what was lost."""
        taken: dict[Key, Gap] = {gap.key: gap for gap in self.news if gap.day in self.window}
        for gap in self.days.gaps:
            news = taken.get(gap.key)
            taken[gap.key] = gap if news is None else Gap(gap.day, gap.key, f"{news.reason}; {gap.reason}", gap.stages)
        return sorted(taken.values(), key=lambda gap: (gap.day, gap.key))

    @property
    def why(self) -> list[str]:
        """Why the look is not clean although nothing is missing, if so."""
        return unclean(self.files, self.days.withheld, self.limited, self.busy)

    @property
    def missing(self) -> list[dict[str, Any]]:
        """The contract's `missing`. A file that was not taken and of which no conversation can be named stands for
        itself, without a day."""
        rows: list[dict[str, Any]] = [
            {"day": gap.day.isoformat(), "provider": gap.key[0], "conversation_id": gap.key[1], "reason": gap.reason}
            for gap in self.gaps
        ]
        nameless = {"provider": None, "conversation_id": None}
        rows += (
            {"day": day.isoformat(), **nameless, "reason": "it lost a conversation to another day"} for day in self.left
        )
        if not any(gap.day in self.window for gap in self.news):
            rows += ({"day": None, **nameless, "reason": why, "path": seen.path} for seen, why in self.files.untaken)
        rows += ({"day": None, **nameless, "reason": why, "path": path} for path, why in self.files.again)
        return rows

    @property
    def clean(self) -> bool:
        """True if source and archive agree, and nothing keeps this from being said."""
        return not self.missing and not self.why

    def as_json(self) -> dict[str, Any]:
        return {
            "window": [self.window.first.isoformat(), self.window.last.isoformat()],
            "missing": self.missing,
            "evicted": [self._evicted(one) for one in self.files.evicted],
            "failed": [{"path": path, "reason": why} for path, why in self.files.failed],
            "why": self.why,
            "compared": self.days.conversations,
            "clean": self.clean,
        }

    def _evicted(self, one: Evicted) -> dict[str, Any]:
        return {
            "path": one.path,
            "provider": one.provider,
            "conversations": one.conversations,
            "messages": one.messages,
            "only_in_archive": self.only_here.get(one.path, 0),
        }


def look(home: Home, span: Range, *, busy: bool = False) -> Look:
    """Compare source and archive on some days. Changes nothing. `busy`: another process is writing just now."""
    with home.ledger() as ledger:
        known = known_files(ledger)
        folders = {str(folder.absolute()) for folder in home.settings.folders}
        others = dict(elsewhere(known.values(), folders))
        found = [*scan(home.settings.folders, home.path), *seen_again(others.items())]
        current = current_in(home.settings)
        named = Purged.of(home, ledger).known_as
        files = compare_files(found, known, current, folders, named)
        files.untaken = [
            (seen, why) for seen, why in files.untaken if not only_touched(seen, known.get(named(seen.path)), current)
        ]
        # What ends every run that reads it would end this one, too.
        ending = {one.work for one in failing(home, ledger) if one.what == "file"}
        files.untaken = [
            (seen, f"{why}: reading it fails" if identity(seen) in ending else why) for seen, why in files.untaken
        ]
        days = look_at_days(home, ledger, span, recipes_of(home), indexes=not busy)
        left = ledger.rows("SELECT day FROM left_days WHERE day BETWEEN ? AND ? ORDER BY day", _iso(span))
        return Look(
            window=span,
            files=files,
            days=days,
            news=not_taken(home, [seen for seen, _ in files.untaken if identity(seen) not in ending]),
            left=[date.fromisoformat(row["day"]) for row in left],
            only_here=only_in_archive(ledger, {one.path for one in files.evicted}),
            elsewhere=set(others),
            limited=_limited(ledger),
            busy=busy,
        )


def _iso(span: Range) -> tuple[str, str]:
    return span.first.isoformat(), span.last.isoformat()


def known_files(ledger: Ledger) -> dict[str, Known]:
    """Every file that was ever looked at, as the ledger remembers it."""
    rows = ledger.rows(
        "SELECT path, root, size, mtime_ns, inode, sha256, status, recipe, reason, provider, conversations, messages "
        "FROM files"
    )
    return {row["path"]: row for row in rows}


def elsewhere(known: Iterable[Known], folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(path, root) of the files that lie outside the configured folders: they were named once, by hand."""
    inside = tuple(folders)
    below = tuple(f"{folder.rstrip('/')}/" for folder in inside)
    for row in known:
        path = str(row["path"])
        if path not in inside and not path.startswith(below):
            yield path, str(row["root"])


def only_touched(seen: Seen, row: Known | None, is_current: Callable[[Known], bool]) -> bool:
    """True if a file has the bytes that were read of it, under another time or inode (it was copied back)."""
    if row is None or row["sha256"] is None or row["size"] != seen.size or not is_current(row):
        return False
    try:
        return hash_of_file(Path(seen.path)) == row["sha256"]
    except (MemberError, OSError):
        return False  # reading it will say why


def _limited(ledger: Ledger) -> bool:
    row = ledger.one("SELECT counts FROM stage_log WHERE stage = 'raw_exports' ORDER BY rowid DESC LIMIT 1")
    skipped: list[dict[str, Any]] = orjson.loads(row["counts"]).get("skipped", []) if row is not None else []
    return any(skip.get("reason") == LEFT_BY_LIMIT for skip in skipped)


class _News(Preview):
    """Which conversations a dry run finds to be new or changed, and on which day."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps: list[Gap] = []

    def saw(self, format_name: str, conversation: object) -> None:
        del format_name, conversation  # nothing is shown, only counted

    def finish(self, ledger: Ledger, tally: Tally) -> None:
        for key, chat in tally.chats.items():
            row = ledger.conversation(key)
            if row is None or row["superseded_by"] or row["status"] == "purged" or chat.outcome == "unchanged":
                continue
            parts = [f"{count} {what}" for count, what in ((chat.new, "new"), (chat.updated, "changed")) if count]
            said = f": {' and '.join(parts)} message(s)" if parts else ""
            words = "not taken yet" if chat.outcome == "new" else "not taken yet in its present state"
            self.gaps.append(Gap(date.fromisoformat(row["day"]), key, words + said))


def not_taken(home: Home, files: list[Seen]) -> list[Gap]:
    """The conversations that reading these files would bring or change: a dry run, which keeps nothing."""
    if not files:
        return []
    news = _News()
    ingest(home, batch="gaps", dry_run=True, found=files, preview=news)
    return news.gaps


def only_in_archive(ledger: Ledger, gone: set[str]) -> dict[str, int]:
    """Of each path, how many of its conversations no other file shows."""
    if not gone:
        return {}
    shown: dict[Key, set[str]] = {}
    for row in ledger.rows(
        "SELECT DISTINCT f.path, r.provider, r.conversation_id FROM file_elements f JOIN element_records r USING (element)"
    ):
        shown.setdefault((row["provider"], row["conversation_id"]), set()).add(row["path"])
    counts: dict[str, int] = {}
    for paths in shown.values():
        if paths <= gone:
            for path in paths:
                counts[path] = counts.get(path, 0) + 1
    return counts
