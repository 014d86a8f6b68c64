"""Two versions of one page side by side: shown to the person, and one of them kept by their choice. Nothing is merged.

A page that somebody edited outside their own parts is never written again by itself; what the archive has to say goes
beside it as `<name>.conflict.md` with `status: conflict`. The same holds for sessions. Files beside a page without that
mark are somebody's own earlier version, kept when the page was written or removed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from palace_pipeline.store.files import Told, write_bytes
from palace_pipeline.store.pages import conflict_copies
from palace_pipeline.transcripts import front_matter
from palace_pipeline.transcripts.page import PageError, parse, render
from palace_pipeline.transcripts.page_parts import MARK, seal_of, segments, take_over, with_seal
from palace_pipeline.workspace import names, session_conflicts

Side = Literal["mine", "archive"]
_STATUS = re.compile(r"^status:[ \t]*[\"']?conflict[\"']?[ \t]*\r?$", re.MULTILINE)


class NotResolved(Told):
    """The choice cannot be carried out; the text says what to do. Nothing was changed."""


@dataclass(slots=True, frozen=True)
class Conflict:
    """`page` and `beside`: the two files (`beside` None: a session's page whose status is conflict, alone). `mine`: which
    of them is the person's. `key`: whose page it is, if one of the two says so."""

    page: Path
    beside: Path | None
    mine: Literal["page", "beside"]
    key: tuple[str, str] | None = None

    @property
    def my_file(self) -> Path:
        return self.page if self.mine == "page" or self.beside is None else self.beside

    @property
    def other_file(self) -> Path | None:
        return self.beside if self.mine == "page" else self.page

    @property
    def of_session(self) -> bool:
        return self.key is not None and self.key[0] == "session" and names.id_of(self.page) == self.key[1]


def find(home: Path) -> list[Conflict]:
    """All conflicts of a home, in order of path."""
    of_sessions = [_of_session(page, beside) for page, beside in session_conflicts.find(home)]
    return [*(_conflict(copy) for copy in sorted(conflict_copies(home))), *of_sessions]


def chosen(conflicts: Iterable[Conflict], home: Path, wanted: str) -> list[Conflict]:
    """Those that a person means: by the path of one of the files, a part of its name, or the conversation's id."""
    found = list(conflicts)
    path = Path(wanted).expanduser()
    there = (path.absolute(), home / path)
    if exact := [c for c in found if c.page in there or c.beside in there]:
        return exact
    by_id = [c for c in found if c.key is not None and wanted in (c.key[1], ":".join(c.key))]
    part = path.name.removesuffix(".md").casefold()
    return by_id or [c for c in found if part in (c.beside or c.page).name.casefold()]


def lines_between(conflict: Conflict) -> list[str]:
    """A unified diff from what the archive says to what the person's file says, lines without their ends.

    What is theirs on any page (tags, own properties, notes: kept in either case) and the program's own lines (comment
    lines, the seal) are left out, unless nothing else differs.
    """
    if conflict.other_file is None:
        return []
    texts = [_text(conflict.other_file), _text(conflict.my_file)]
    other = "beside" if conflict.of_session else "archive"
    of_archive, of_mine = f"{other}: {conflict.other_file.name}", f"mine: {conflict.my_file.name}"
    for lines_of in (str.splitlines,) if conflict.of_session else (_read_by_people, str.splitlines):
        archive, mine = map(lines_of, texts)
        if lines := list(difflib.unified_diff(archive, mine, of_archive, of_mine, lineterm="")):
            return lines
    return []


def _read_by_people(page: str) -> list[str]:
    written = "".join(piece for piece, ours in segments(page) if ours)
    return [line for line in written.splitlines() if not _is_own(line)]


def resolve(conflict: Conflict, keep: Side) -> Path | None:
    """Keep one side; returns the page that is left. Needs the home's write lock, but for a session, which has its own.

    `mine`: the page stays as it is, and from now on counts as knowing what the archive says: it is asked about again
    when that changes. `archive`: the page is what the archive says, with the notes, tags and own properties of mine.
    Of a session the page is `mine`, and what stands beside it `archive`. Raises Told (NotResolved, PageChanged, …).
    """
    if conflict.of_session:
        home = conflict.page.parents[2]  # sessions/<day>/<page>
        session_conflicts.keep(home, conflict.page, conflict.beside, keep)
        return conflict.page
    assert conflict.beside is not None, "only a session's page can be in conflict alone"
    if conflict.mine == "beside":
        return _earlier(conflict.page, conflict.beside, keep)
    state = _text(conflict.beside)
    if keep == "mine":
        _mine(conflict, state)
    else:
        _archive(conflict, state)
    conflict.beside.unlink()
    return conflict.page


def _mine(conflict: Conflict, state: str) -> None:
    if conflict.key is None or not conflict.page.exists():
        return
    text = _text(conflict.page)
    try:
        parse(text)
    except PageError as error:
        raise NotResolved(
            f"{conflict.page.name} cannot be read back ({error}), so it cannot note what you chose. Nothing was changed. "
            "Correct it, or take the other side with: --keep archive"
        ) from None
    write_bytes(conflict.page, with_seal(text, seal_of(state)).encode("utf-8", "surrogateescape"))


def _archive(conflict: Conflict, state: str) -> None:
    old = conflict.page.read_bytes() if conflict.page.exists() else b""
    taken = take_over(old.decode("utf-8", "replace"))
    try:
        parsed = parse(state)
    except PageError as error:
        raise NotResolved(
            f"{conflict.other_file} cannot be read ({error}). Nothing was changed. Delete it; what the archive says comes "
            "with: palace rebuild"
        ) from None
    if old.strip() and not taken.complete:
        # What cannot be read may hold words of theirs: it is kept until they say that it may go.
        write_bytes(_free_name(conflict.page), old)
    write_bytes(conflict.page, render(parsed.whole(), parsed.head, taken.user).encode("utf-8", "replace"))


def _earlier(page: Path, beside: Path, keep: Side) -> Path | None:
    if keep == "archive":
        beside.unlink()
        return page if page.exists() else None
    if not page.exists():
        raise NotResolved(
            f"{beside.name} is your version of a page that is not in the archive (any more), so there is none to "
            "take its place. Nothing was changed. Rename the file to keep it as a note of your own"
        )
    now, mine = _text(page), _text(beside)
    if not take_over(now).intact:
        raise NotResolved(
            f"you changed {page.name} as well. Nothing was changed. Put into it what you want of "
            f"{beside.name}, then delete the latter"
        )
    write_bytes(page, with_seal(mine, seal_of(now)).encode("utf-8", "surrogateescape"))
    beside.unlink()
    return page


# --- files ------------------------------------------------------------------------------------------------------------


def _conflict(copy: Path) -> Conflict:
    page = names.page_beside(copy)
    text = _text(copy)
    block, _ = front_matter.split(text.removeprefix("\ufeff"))
    mine: Literal["page", "beside"] = "page" if block and _STATUS.search(block) else "beside"
    key = take_over(text).key or (take_over(_text(page)).key if page.exists() else None)
    return Conflict(page, copy, mine, key)


def _of_session(page: Path, beside: Path | None) -> Conflict:
    session = names.id_of(page)
    return Conflict(page, beside, "page", ("session", session) if session else None)


def _free_name(page: Path) -> Path:
    number = 2
    while (name := page.with_name(f"{page.stem}.conflict-{number}.md")).exists():
        number += 1
    return name


def _is_own(line: str) -> bool:
    return line.startswith((MARK, "palace: ")) or _STATUS.fullmatch(line) is not None


def _text(path: Path) -> str:
    """What cannot be decoded comes through as it is."""
    return path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
