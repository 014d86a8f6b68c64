"""Ids and paths of sessions: `YYYYMMDD-HHMM-<hash7>` in the zone of its `ts`, and where that lies.

Folder and beginning of the file name follow from the id alone; the title behind them is frozen when the page is made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path, PurePath, PurePosixPath

from palace_pipeline.model import short_hash
from palace_pipeline.transcripts.page_path import slug

SESSIONS = "sessions"
TITLE_LENGTH = 20
CONFLICT = ".conflict"
_ID = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)-([0-9a-f]{7})")
_FOLDER = re.compile(r"\d{4}-\d\d-\d\d")
_NAME = re.compile(r"(\d\d)(\d\d)-([0-9a-f]{7})(?:-(.*))?\.md", re.DOTALL)
_OWN_HIDDEN = re.compile(r"\.(?:tmp-|\d{4}-[0-9a-f]{7}\.(?:claims|lock)\Z)")
_COPY = re.compile(rf"{re.escape(CONFLICT)}(?:-\d+)?\.md\Z")


def session_id(ts: datetime, *seed: str) -> str:
    """The id of a session that begins at `ts` (its own offset is its zone); `seed` makes it another one."""
    return (
        f"{ts.year:04}{ts.month:02}{ts.day:02}-{ts.hour:02}{ts.minute:02}-{short_hash(ts.isoformat(), *seed, length=7)}"
    )


def is_id(text: str) -> bool:
    """Whether a text is the id of a session: its day and time must exist."""
    return time_of(text) is not None


def time_of(session: str) -> datetime | None:
    """The minute that an id names, without a zone; None if the text is no id."""
    match = _ID.fullmatch(session)
    if match is None:
        return None
    try:
        return datetime(*map(int, match.groups()[:5]))  # type: ignore[arg-type]
    except ValueError:
        return None


def folder_of(session: str) -> PurePosixPath:
    """The folder of an id below the home. Raises ValueError if it is no id."""
    return PurePosixPath(SESSIONS, _day(session).isoformat())


def prefix_of(session: str) -> str:
    """How the file name of an id begins; a blank title or `-<title>` follows. Raises ValueError if it is no id."""
    _day(session)
    return session[9:]


def title_part(title: str) -> str:
    """What of a title stands in the file name: letters and digits of any script, at most 20 characters."""
    return slug(title)[:TITLE_LENGTH].strip("-")


def path_of(session: str, title: str) -> PurePosixPath:
    """Path of a new session below the home. Raises ValueError if it is no id."""
    return folder_of(session) / f"{prefix_of(session)}-{title_part(title)}.md"


def id_of(path: PurePath | str) -> str | None:
    """The id that a path says (its last folder and its name), or None; the copy of a conflict has none."""
    folder, _, name = str(path).rpartition("/")
    folder = folder.rpartition("/")[2]
    match = _NAME.fullmatch(name)
    if match is None or not _FOLDER.fullmatch(folder) or is_copy(name):
        return None
    found = f"{folder.replace('-', '')}-{match[1]}{match[2]}-{match[3]}"
    return found if is_id(found) else None


def title_in(path: PurePath | str) -> str:
    """The title as the file name has it, '' if it has none."""
    match = _NAME.fullmatch(PurePosixPath(path).name)
    return (match[4] or "") if match else ""


def is_copy(path: PurePath | str) -> bool:
    """Whether a file is one side of a conflict, put beside the page."""
    return _COPY.search(PurePosixPath(path).name) is not None


def page_beside(path: Path) -> Path:
    """The page beside which a copy of a conflict stands; a page itself."""
    return Path(page_of_copy(str(path)))


def page_of_copy(path: str) -> str:
    """The same for the path of a file in an export."""
    return _COPY.sub(".md", path)


def is_folder(path: PurePath | str) -> bool:
    """Whether a folder has the name of one that holds sessions: a day."""
    return _FOLDER.fullmatch(str(path).rpartition("/")[2]) is not None


def pages_in(home: Path) -> list[str]:
    """The pages of all sessions by their paths below a home, in order; no copies, and nothing behind a symbolic link."""
    found = [path.relative_to(home).as_posix() for day in folders_in(home) for path in day.glob("*.md")]
    other = copies(found)
    return sorted(path for path in found if path not in other and id_of(path) is not None)


def folders_in(home: Path) -> list[Path]:
    """The days of all sessions of a home, in order; links are left out."""
    folder = home / SESSIONS
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if is_folder(path) and path.is_dir() and not path.is_symlink())


def is_own_hidden(name: str) -> bool:
    """Whether a name is that of a lock, of hashes of secrets or of a temporary file that Palace keeps beside pages."""
    return _OWN_HIDDEN.match(name) is not None


def claims_path(session: str) -> PurePosixPath:
    """Where below the home what a session showed to be a secret is known by its hashes."""
    return folder_of(session) / f".{prefix_of(session)}.claims"


def claimed_by(claims: Path) -> str:
    """The id of the session to which a hidden file of claims belongs, by its path; '' for any other file."""
    found = f"{claims.parent.name.replace('-', '')}-{claims.name[1:].removesuffix('.claims')}"
    return found if is_id(found) else ""


def files_of(folder: Path, session: str) -> list[Path]:
    """Files of a session in the folder of its day: its page, whatever it is called now, then copies of it that somebody
    else made. No links; nothing if there is no such folder."""
    prefix = prefix_of(session)
    try:
        with os.scandir(folder) as found:
            listed = [one.path for one in found if one.name.startswith(prefix) and one.is_file(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [Path(path) for path in own_first(path for path in listed if id_of(path) == session)]


def own_first(paths: Iterable[str]) -> list[str]:
    """Paths of pages of one id, the page first, then its copies.

    Sync programs and file managers make a copy under a name to which something was added (`… copy.md`, `… (1).md`). So
    the page is the one whose name has the form that Palace gives it, else the one with the shortest name.
    """
    return sorted(paths, key=lambda path: (not _is_own_form(title_in(path)), len(path), path))


def copies(paths: Iterable[str]) -> dict[str, str]:
    """Path of a copy -> path of its page, among the paths of files."""
    by_id: dict[str, list[str]] = {}
    for path in paths:
        if (session := id_of(path)) is not None:
            by_id.setdefault(session, []).append(path)
    return {
        copy: page
        for found in by_id.values()
        if len(found) > 1
        for page, *others in [own_first(found)]
        for copy in others
    }


def _is_own_form(title: str) -> bool:
    return not title or title_part(title) == title


def _day(session: str) -> date:
    time = time_of(session)
    if time is None:
        raise ValueError("no id of a session; it looks like 20261130-0915-1a2b3c4")
    return time.date()
