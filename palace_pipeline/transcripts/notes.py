"""Notes that tie the pages together: one a day, one for each month of a room, and the lists of these.

    notes/README.md                   years and rooms
    notes/days/2024.md                the days of a year
    notes/days/2024/2024-05-03.md     the conversations of a day (UTC, as the pages have it), by time
    notes/rooms/planning.md           the months of a room
    notes/rooms/planning/2024-05.md   its conversations of that month; undated.md: those without a date

A page refers only to notes whose place follows from its own rows, so a neighbour that comes or goes changes no page. Of a note
only the list between two comments is the program's: it is changed line by line, a line for each target, and what else stands in
the file is the user's, byte for byte. Links are relative and plain Markdown, so that Obsidian, GitHub and any editor follow them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath

from palace_pipeline.model import VISIBLE_ROLES, Conversation, short_hash
from palace_pipeline.transcripts import front_matter
from palace_pipeline.transcripts.page_labels import PRODUCTS, name_of, shown_rows
from palace_pipeline.transcripts.page_path import slug

NOTES = PurePosixPath("notes")
START = NOTES / "README.md"
UNDATED = "undated"
"""The name of a room's note for what has no date, where others are named by their month."""
_DAYS, _ROOMS = NOTES / "days", NOTES / "rooms"
_LIST, _END = "<!-- palace list -->", "<!-- palace end -->"
_REGION = re.compile(rf"^{_LIST}[ \t]*\r?\n(.*?)^{_END}[ \t]*(?:\r?\n|\Z)", re.MULTILINE | re.DOTALL)
_NOTES_HEADING = re.compile(r"^## Notes[ \t]*\r?$", re.MULTILINE)
_OURS = re.compile(r"- .*\]\(([^()\s]+)\)[^()]*")
_PROPERTIES = {"type", "date", "year", "month", "room", "tags", "aliases"}
_ACTS = re.compile(r"[\\\[\]*`<#|$~^]|(?<![^\W_])_|_(?![^\W_])|%%|==")


@dataclass(slots=True, frozen=True)
class Listed:
    """A conversation as notes list it. `page`: its path below the home. `day` is None without a date; `time`: `HH:MM` of the first
    message in UTC (or as written, without a zone), '' if it is not known or of another day."""

    page: str
    day: date | None
    time: str
    title: str
    product: str
    rooms: tuple[str, ...]

    @property
    def notes(self) -> list[PurePosixPath]:
        """The notes that have a line for it."""
        of_rooms = [room_note(room, self.day) for room in self.rooms]
        return of_rooms if self.day is None else [day_note(self.day), *of_rooms]

    def line(self, note: PurePosixPath) -> str:
        """Its line in one of them."""
        day = self.day.isoformat() if self.day is not None and note.parts[1] == "rooms" else ""
        when = " ".join(part for part in (day, self.time) if part)
        return f"- {when}{' ' if when else ''}[{in_link(self.title)}]({reference(note, self.page)}) · {self.product}"


def listed(conversation: Conversation, day: date, rooms: Sequence[str], page: str, *, dated: bool) -> Listed:
    """What notes say of a redacted conversation."""
    rows = shown_rows(conversation)
    visible = [row for row in rows if row.role in VISIBLE_ROLES]
    first = min((row.created_at.isoformat() for row in visible if row.created_at), default="")
    first = first or min((row.local_time for row in visible if row.local_time), default="")
    return Listed(
        page=page,
        day=day if dated else None,
        time=first[11:16] if first[:10] == day.isoformat() else "",
        title=name_of(conversation, rows),
        product=PRODUCTS.get(conversation.provider, conversation.provider),
        rooms=tuple(rooms),
    )


# --- places -----------------------------------------------------------------------------------------------------------


def day_note(day: date) -> PurePosixPath:
    """The note of a day."""
    return _DAYS / f"{day.year:04}" / f"{day.isoformat()}.md"


def year_note(year: int) -> PurePosixPath:
    """The list of a year's days."""
    return _DAYS / f"{year:04}.md"


def room_note(room: str, day: date | None) -> PurePosixPath:
    """The note of a room for the month of a day, or for what has no date."""
    return _ROOMS / _folder(room) / f"{UNDATED if day is None else f'{day:%Y-%m}'}.md"


def room_start(room: str) -> PurePosixPath:
    """The list of a room's months."""
    return _ROOMS / f"{_folder(room)}.md"


def _folder(room: str) -> str:
    """A name that differs from those of other rooms on every file system, also where capitals make no difference."""
    plain = slug(room)
    return plain if plain == room else f"{plain}-{short_hash(room, length=4)}"


def reference(note: PurePosixPath | str, target: PurePosixPath | str) -> str:
    """The relative link from one file of the home to another. Names of pages and notes hold nothing that needs escaping."""
    here, there = str(note).split("/")[:-1], str(target).split("/")
    same = next((at for at, (one, other) in enumerate(zip(here, there, strict=False)) if one != other), len(here))
    return "/".join([".."] * (len(here) - same) + there[same:])


def in_link(text: str) -> str:
    """Text of a link in which nothing acts: no markup, no HTML, no tag of Obsidian's."""
    return _ACTS.sub(lambda match: "".join(f"\\{char}" for char in match[0]), text)


def page_links(day: date, rooms: Sequence[str], *, dated: bool) -> str:
    """The line of a page that leads to its notes; '' if there are none."""
    page = PurePosixPath("conversations", "p", f"{day.year:04}", "p.md")
    parts = [f"[{day.isoformat()}]({reference(page, day_note(day))})"] if dated else []
    parts += [f"[{in_link(room)}]({reference(page, room_note(room, day if dated else None))})" for room in rooms]
    return " · ".join(parts)


# --- the notes themselves ---------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class Head:
    """What a new note begins with: its properties and its heading."""

    properties: Mapping[str, front_matter.Value]
    heading: str


def head_of(note: PurePosixPath, rooms: Mapping[str, str]) -> Head:
    """The head of a note by its place. `rooms`: names of rooms by the name of their folder."""
    kind, name = note.parts[-2:]
    stem = name.removesuffix(".md")
    if note == START:
        return Head({"type": "notes"}, "Notes")
    if kind == "days":
        return Head({"type": "year", "year": stem}, stem)
    if note.parts[1] == "days":
        return Head({"type": "day", "date": date.fromisoformat(stem)}, stem)
    if kind == "rooms":
        room = rooms.get(stem, stem)
        return Head({"type": "room", "room": room}, in_link(room))
    room = rooms.get(kind, kind)
    return Head({"type": "room", "room": room, "month": stem}, f"{in_link(room)}, {stem}")


def new_note(head: Head) -> str:
    """A note whose list is empty."""
    values = {**head.properties, "tags": (), "aliases": ()}
    return f"---\n{front_matter.dump(values)}---\n\n# {head.heading}\n\n{_LIST}\n{_END}\n\n## Notes\n"


@dataclass(slots=True)
class Change:
    """What becomes of the list of a note: targets whose lines go, and lines by target that come or replace others."""

    drop: set[str]
    add: dict[str, str]


def changed(text: str, change: Change, around: str | None = None) -> str:
    """A note with its list changed. `around`: the line above the list, with links to what lies around the note; None leaves it.

    Lines are in order of their text. What a person wrote between them stays, below. Without the two comments the list is put
    before the heading `## Notes`, or at the end.
    """
    region = _REGION.search(text)
    parts = _parts(region[1] if region is not None else "")
    lines = {target: line for target, line in parts.lines.items() if target not in change.drop} | change.add
    above = parts.around if around is None else around
    inner = [*([above, ""] if above else []), *sorted(lines.values()), *parts.theirs]
    block = "".join(f"{line}\n" for line in (_LIST, *inner, _END))
    if region is not None:
        return text[: region.start()] + block + text[region.end() :]
    heading = _NOTES_HEADING.search(text)
    at = len(text) if heading is None else heading.start()
    before = text[:at].rstrip("\n")
    return f"{before}\n\n{block}{'' if heading is None else chr(10)}{text[at:]}".lstrip("\n")


@dataclass(slots=True, frozen=True)
class _Parts:
    """A list taken apart: the line above it, its lines by target, what else somebody put between them."""

    around: str
    lines: dict[str, str]
    theirs: list[str]


def _parts(region: str) -> _Parts:
    lines: dict[str, str] = {}
    theirs: list[str] = []
    around = ""
    for number, line in enumerate(region.split("\n")):
        line = line.rstrip("\r")
        match = _OURS.fullmatch(line)
        if match is not None:
            lines[match[1]] = line
        elif number == 0 and line.startswith("["):
            around = line
        elif line:
            theirs.append(line)
    return _Parts(around, lines, theirs)


def targets(text: str) -> set[str]:
    """The targets of a note's list."""
    region = _REGION.search(text)
    return set() if region is None else set(_parts(region[1]).lines)


def is_blank(text: str) -> bool:
    """Has a note neither a line nor anything of the user's?"""
    region = _REGION.search(text)
    block, start = front_matter.split(text)
    if region is None or block is None or (parts := _parts(region[1])).lines or parts.theirs:
        return False
    try:
        values = front_matter.load(block)
    except front_matter.FrontMatterError:
        return False
    if any(values.get(name) for name in ("tags", "aliases")) or values.keys() - _PROPERTIES:
        return False
    rest = [line for line in (text[start : region.start()] + text[region.end() :]).splitlines() if line.strip()]
    return len(rest) == 2 and rest[0].startswith("# ") and rest[1].strip() == "## Notes"


def around_day(day: date, before: date | None, after: date | None) -> str:
    """The line of a day's note that leads to the days around it and to its year."""
    note = day_note(day)
    parts = [f"[{day.year:04}]({reference(note, year_note(day.year))})"]
    if before is not None:
        parts.insert(0, f"[← {before.isoformat()}]({reference(note, day_note(before))})")
    if after is not None:
        parts.append(f"[{after.isoformat()} →]({reference(note, day_note(after))})")
    return " · ".join(parts)


def changes_of(gone: Collection[tuple[PurePosixPath, str]], coming: Iterable[Listed]) -> dict[PurePosixPath, Change]:
    """What becomes of each note: `gone` are notes and pages whose lines go, `coming` the conversations to list."""
    found: dict[PurePosixPath, Change] = {}
    for note, page in gone:
        found.setdefault(note, Change(set(), {})).drop.add(reference(note, page))
    for one in coming:
        for note in one.notes:
            found.setdefault(note, Change(set(), {})).add[reference(note, one.page)] = one.line(note)
    return found
