"""Source against archive, as values: which conversations lack something, which files were not taken, which are gone.

Pure: whoever calls it has looked. A day with nothing at the source has no conversation to compare, so it is empty and
no gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import date, datetime

from palace_pipeline.exports.scan import Known, Missing, Seen, is_unchanged

Key = tuple[str, str]

PLACES = {
    "raw": ("normalized", "transcript (lake/raw)"),
    "clean": ("redacted", "redacted transcript (lake/clean)"),
    "findings": ("redacted", "findings (lake/clean)"),
    "chunks": ("chunks", "chunks (lake/clean)"),
    "drawers": ("drawers", "drawers (lake/clean)"),
    "vectors": ("drawers", "vectors (lake/clean)"),
    "page": ("pages", "page"),
    "chroma": ("vectors", "drawers in Chroma"),
    "lexical": ("vectors", "chunks in the lexical index"),
    "table conversations": ("tables", "row in palace.duckdb"),
    "table messages": ("tables", "messages in palace.duckdb"),
    "table drawers": ("tables", "drawers in palace.duckdb"),
    "table findings": ("tables", "findings in palace.duckdb"),
}
"""Where a conversation has to lie, in the order of the flow: place -> (stage that puts it there, its name for people)."""

STAGE_WORDS = {
    "normalized": "transcript",
    "redacted": "redacted transcript",
    "chunks": "chunks",
    "drawers": "drawers",
    "pages": "page",
    "vectors": "indexes",
    "tables": "tables",
}


@dataclass(frozen=True, slots=True)
class Held:
    """What a place holds of a conversation, or should: None where that is not known and not compared.

    `last`: the latest instant (UTC); `fingerprint`: identity of the content.
    """

    count: int | None = None
    last: datetime | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """A conversation of the source. `waiting`: stages that the planner has work for (stage -> reason); their places are
    not compared, since they are to be made anyway. `places`: what should be where."""

    day: date
    key: Key
    waiting: Mapping[str, str] = field(default_factory=dict[str, str])
    places: Mapping[str, Held] = field(default_factory=dict[str, Held])


@dataclass(frozen=True, slots=True)
class Gap:
    """A conversation that lacks something. `stages`: those that have to do their work again; none for what was not taken."""

    day: date
    key: Key
    reason: str
    stages: frozenset[str] = frozenset()


def missing(expected: Iterable[Expected], archive: Mapping[str, Mapping[Key, Held]]) -> list[Gap]:
    """Every conversation that is not where it should be, by day; one line for each, with all its reasons.

    `archive`: place -> what lies there. A place that is not named in `archive` was not looked at.
    """
    gaps: list[Gap] = []
    for chat in expected:
        reasons = [f"{STAGE_WORDS[stage]}: {why}" for stage, why in chat.waiting.items()]
        stages = set[str]()
        for place, (stage, name) in PLACES.items():
            wanted = chat.places.get(place)
            if wanted is None or place not in archive or stage in chat.waiting:
                continue
            if (why := differs(wanted, archive[place].get(chat.key, Held(0)))) is not None:
                reasons.append(f"{name}: {why}")
                stages.add(stage)
        if reasons:
            gaps.append(Gap(chat.day, chat.key, "; ".join(reasons), frozenset(stages)))
    return sorted(gaps, key=lambda gap: (gap.day, gap.key))


def differs(wanted: Held, found: Held) -> str | None:
    """Why what was found is not what is wanted, in words; None if it is. What either does not know is no difference."""
    if wanted.count is not None and found.count is not None and wanted.count != found.count:
        if not found.count:
            return "not there" if wanted.count == 1 else f"none of {wanted.count} there"
        return (
            f"{found.count} of {wanted.count} there" if found.count < wanted.count else "more there than belongs there"
        )
    if wanted.last is not None and found.count and wanted.last != found.last:
        return "its last instant is another one"
    if wanted.fingerprint is not None and found.fingerprint is not None and wanted.fingerprint != found.fingerprint:
        return "its content is not what was written"
    return None


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Evicted:
    """A file that was taken and is gone (or moved away); the archive keeps what it held."""

    path: str
    provider: str | None
    conversations: int
    messages: int


@dataclass(slots=True)
class Files:
    """What a look at the files of the source leads to."""

    untaken: list[tuple[Seen, str]] = field(default_factory=list[tuple[Seen, str]])
    """Files to read, and why."""
    again: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Files that are gone and are to be read again from the vault, and why."""
    failed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Files of which something was not taken that should have been, or that cannot be read, and why."""
    absent: list[str] = field(default_factory=list[str])
    """Folders of the settings that are not there: nothing can be said of what should lie in them."""
    evicted: list[Evicted] = field(default_factory=list[Evicted])


TAKEN = ("done", "partial")
FAILED = ("quarantined", "partial")


def compare_files(
    found: Iterable[Seen | Missing],
    known: Mapping[str, Known],
    is_current: Callable[[Known], bool],
    folders: Set[str] = frozenset(),
    named: Callable[[str], str] = lambda path: path,
) -> Files:
    """Files of the source against what the ledger knows of them.

    `found`: the configured `folders` and every other path that the ledger knows; `named`: the name that the ledger has
    for a path (it may show a purged value). A file that lies under another name
    with the same content was moved, not evicted.
    """
    out = Files()
    here: set[str] = set()
    for item in found:
        if isinstance(item, Missing):
            if named(item.path) not in known and item.path in folders:
                out.absent.append(item.path)
            continue
        here.add(named(item.path))
        row = known.get(named(item.path))
        if item.problem is not None:
            if not item.expected:
                out.failed.append((item.path, item.problem))
        elif row is None:
            out.untaken.append((item, "not taken yet"))
        elif not is_unchanged(item, row):
            out.untaken.append((item, "has changed since it was read"))
        elif not is_current(row):
            out.untaken.append((item, "read by an older reader, or with another time zone"))
        elif row["status"] in FAILED:
            out.failed.append((item.path, str(row["reason"] or "something of it was not taken")))
    contents = {row["sha256"] for path, row in known.items() if path in here and row["sha256"] is not None}
    unseen = tuple(f"{path.rstrip('/')}/" for path in out.absent)
    for path, row in known.items():
        if path in here or row["status"] not in TAKEN:
            continue
        if not is_current(row):
            out.again.append((path, "read by an older reader; it is gone and is read again from the vault"))
        if unseen and path.startswith(unseen):
            continue
        if row["sha256"] not in contents:
            provider = row["provider"]
            out.evicted.append(
                Evicted(path, str(provider) if provider else None, _int(row["conversations"]), _int(row["messages"]))
            )
    return out


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def unclean(files: Files, withheld: int, limited: bool, busy: bool) -> list[str]:
    """Why a look that found nothing missing still says nothing for sure, in words; empty if it does.

    `withheld`: conversations of the window of which something is withheld; `limited`: the last ingest left files
    (`--limit`); `busy`: another process was writing meanwhile.
    """
    why: list[str] = []
    if files.untaken:
        why.append(f"{len(files.untaken)} file(s) are not taken in their present state")
    if files.again:
        why.append(f"{len(files.again)} file(s) are to be read again from the vault")
    if files.failed:
        why.append(f"{len(files.failed)} file(s) could not be read, or not to their end")
    why += [f"{path} is not there" for path in files.absent]
    if withheld:
        why.append(f"{withheld} conversation(s) are withheld, or have fields that are")
    if limited:
        why.append("the last ingest left files for the next one (--limit)")
    if busy:
        why.append("another process is writing to the archive; look again when it has finished")
    return why
