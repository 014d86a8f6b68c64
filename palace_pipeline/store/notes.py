"""The notes of a home as files (`transcripts/notes.py`): brought in line with the pages that were written or went away.

What is to be done follows from the files that are there, so the price of a changed page does not depend on the archive: the note of
its day and the notes of its month are looked at, and written where a line differs. Needs the write lock.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path, PurePosixPath

from palace_pipeline.store.files import sync_files, write_bytes
from palace_pipeline.transcripts.notes import (
    NOTES,
    START,
    UNDATED,
    Change,
    Listed,
    around_day,
    changed,
    changes_of,
    day_note,
    head_of,
    in_link,
    is_blank,
    new_note,
    reference,
    room_start,
    targets,
)
from palace_pipeline.transcripts.page_path import parse_name

_FEW = 16
_MONTH = re.compile(r"\d{4}-\d\d|undated")


@dataclass(slots=True)
class _Written:
    """What was done to the files: notes that are new, those that are gone, and all that must be made durable."""

    made: set[PurePosixPath] = field(default_factory=set[PurePosixPath])
    gone: set[PurePosixPath] = field(default_factory=set[PurePosixPath])
    paths: list[Path] = field(default_factory=list[Path])


def update_notes(home: Path, left: Iterable[str], coming: Sequence[Listed]) -> int:
    """List conversations, and take lines away. `left`: paths (below the home) that pages had before, or have no more; `coming`: all
    conversations whose pages were looked at. Returns how many files changed; an unchanged archive changes none."""
    rooms = {room_start(room).stem: room for one in coming for room in one.rooms}
    done = _Written()
    for note, change in sorted(changes_of(list(_lines_of(home, left)), coming).items()):
        _change(home, note, change, rooms, done)
    _link_up(home, rooms, done)
    sync_files(done.paths)
    return len(done.paths) + len(done.gone)


def bring_in_line(home: Path, month: str, expected: Sequence[Listed]) -> int:
    """Make all notes of a month (`YYYY-MM`, or `undated`) list just these conversations, and the lists above lead to them. Returns
    how many files changed."""
    rooms = {room_start(room).stem: room for one in expected for room in one.rooms}
    changes = changes_of((), expected)
    done = _Written()
    for note in _notes_of(home, month):
        change = changes.setdefault(note, Change(set(), {}))
        change.drop |= targets(_read(home / note) or "") - change.add.keys()
    for note, change in sorted(changes.items()):
        _change(home, note, change, rooms, done)
    # The lists above may have lost them, or be lost themselves.
    done.made |= changes.keys() - done.gone
    done.made |= {above for note in done.made if (above := _of_days_and_months(note)) is not None}
    _link_up(home, rooms, done)
    sync_files(done.paths)
    return len(set(done.paths)) + len(done.gone)


def drop_dead_links(home: Path) -> int:
    """Take out of the lists of years, rooms and their start what leads to notes that are not there. Returns how many files
    changed."""
    done = _Written()
    for pattern in ("days/*.md", "rooms/*.md", START.name):
        for path in sorted((home / NOTES).glob(pattern)):
            dead = {target for target in targets(_read(path) or "") if not (path.parent / target).exists()}
            if dead:
                _change(home, PurePosixPath(path.relative_to(home).as_posix()), Change(dead, {}), {}, done)
    sync_files(done.paths)
    return len(done.paths) + len(done.gone)


def months_with_notes(home: Path) -> set[str]:
    """The months of which there are notes, and `undated`."""
    folder = home / NOTES
    of_days = {path.stem[:7] for path in folder.glob("days/*/*.md")}
    return {month for month in of_days | {path.stem for path in folder.glob("rooms/*/*.md")} if _MONTH.fullmatch(month)}


def _notes_of(home: Path, month: str) -> list[PurePosixPath]:
    found = [*home.glob(f"{NOTES}/days/*/{month}-??.md"), *home.glob(f"{NOTES}/rooms/*/{month}.md")]
    return [note for path in found if _is_note(note := PurePosixPath(path.relative_to(home).as_posix()))]


def _is_note(note: PurePosixPath) -> bool:
    """Not some file of the user's beside the notes."""
    return note.parts[1] == "rooms" or _day_of(note) is not None


def _lines_of(home: Path, pages: Iterable[str]) -> Iterator[tuple[PurePosixPath, str]]:
    """The notes in which pages may stand, by the day in their names."""
    folders: list[str] | None = None
    in_day: dict[date, set[str]] = {}
    for page in pages:
        name = parse_name(PurePosixPath(page).name)
        if name is None:
            continue
        day = name[0]
        folders = _folders(home) if folders is None else folders
        if day not in in_day:
            in_day[day] = targets(_read(home / day_note(day)) or "")
        dated = reference(day_note(day), page) in in_day[day]
        if dated:
            yield day_note(day), page
        for folder in folders:
            yield NOTES / "rooms" / folder / f"{f'{day:%Y-%m}' if dated else UNDATED}.md", page


def _folders(home: Path) -> list[str]:
    folder = home / NOTES / "rooms"
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir()) if folder.is_dir() else []


def _change(
    home: Path, note: PurePosixPath, change: Change, rooms: dict[str, str], done: _Written, around: str | None = None
) -> None:
    """Change the list of one note; the file is made if there is something to list, and goes when nothing is left on it."""
    path = home / note
    old = _read(path)
    if (old is None and not change.add) or (old is not None and around is None and _says_so(old, change)):
        return
    new = changed(new_note(head_of(note, rooms)) if old is None else old, change, around)
    if is_blank(new):
        path.unlink(missing_ok=True)
        done.gone.add(note)
    elif new != old:
        write_bytes(path, new.encode("utf-8", "surrogateescape"), durable=False)
        done.paths.append(path)
        if old is None:
            done.made.add(note)


def _says_so(text: str, change: Change) -> bool:
    """Is a small change made already? Told without taking a long list apart, for a conversation that only grew."""
    if len(change.add) + len(change.drop) > _FEW:
        return False
    gone = (target for target in change.drop if target not in change.add)
    return all(f"\n{line}\n" in text for line in change.add.values()) and not any(
        f"]({target})" in text for target in gone
    )


def _link_up(home: Path, rooms: dict[str, str], done: _Written) -> None:
    """Bring the lists of notes in line with the notes that came and went: years and their days, rooms and their months."""
    for level in (_of_days_and_months, _of_years_and_rooms):
        changes: dict[PurePosixPath, Change] = {}
        for note in sorted(done.made | done.gone):
            above = level(note)
            if above is None:
                continue
            change = changes.setdefault(above, Change(set(), {}))
            if note in done.gone:
                change.drop.add(reference(above, note))
            else:
                change.add[reference(above, note)] = f"- [{_name(note, rooms)}]({reference(above, note)})"
        for above, change in sorted(changes.items()):
            _change(home, above, change, rooms, done)
    came_or_went = {day for note in done.made | done.gone if (day := _day_of(note)) is not None}
    if came_or_went:
        known = _Days(home)
        beside = {one for other in came_or_went for one in known.around(other) if one is not None}
        for day in sorted(came_or_went | beside):
            if known.has(day):
                _change(home, day_note(day), Change(set(), {}), rooms, done, around_day(day, *known.around(day)))


def _of_days_and_months(note: PurePosixPath) -> PurePosixPath | None:
    if len(note.parts) != 4:
        return None
    return note.parent.with_suffix(".md")


def _of_years_and_rooms(note: PurePosixPath) -> PurePosixPath | None:
    return START if len(note.parts) == 3 else None


def _name(note: PurePosixPath, rooms: dict[str, str]) -> str:
    stem = note.stem
    if len(note.parts) == 3 and note.parts[1] == "rooms":
        return f"room {in_link(rooms.get(stem, stem))}"
    return stem


def _day_of(note: PurePosixPath) -> date | None:
    if len(note.parts) != 4 or note.parts[1] != "days":
        return None
    return _a_day(note.stem)


def _a_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


class _Days:
    """The days that have a note; each year's folder is listed once."""

    def __init__(self, home: Path) -> None:
        self._folder = home / NOTES / "days"
        found = os.scandir(self._folder) if self._folder.is_dir() else ()
        self._years = sorted(int(entry.name) for entry in found if entry.is_dir() and entry.name.isdigit())
        self._days: dict[int, list[date]] = {}

    def has(self, day: date) -> bool:
        return day in self._of(day.year)

    def around(self, day: date) -> tuple[date | None, date | None]:
        """The days with a note before and after a day; it need not have one itself."""
        days = self._of(day.year)
        before = days[at - 1] if (at := bisect_left(days, day)) else None
        after = days[at] if (at := bisect_right(days, day)) < len(days) else None
        if before is None:
            earlier = (self._of(year) for year in reversed(self._years) if year < day.year)
            before = next((found[-1] for found in earlier if found), None)
        if after is None:
            later = (self._of(year) for year in self._years if year > day.year)
            after = next((found[0] for found in later if found), None)
        return before, after

    def _of(self, year: int) -> list[date]:
        if year not in self._days:
            folder = self._folder / f"{year:04}"
            names = [entry.name.removesuffix(".md") for entry in os.scandir(folder)] if folder.is_dir() else []
            self._days[year] = sorted(day for name in names if (day := _a_day(name)) is not None)
        return self._days[year]


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
