"""`index.md`: one table of all sessions and imported conversations, which only grows; the last row of an id wins.

The id of a row is in its path: that of a session, or provider and hash of a conversation's page. A row is added only
where it says something new, so that an unchanged archive leaves the file as it is. What is purged or withheld has its
rows taken out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import orjson

from palace_pipeline.model import Conversation, page_hash
from palace_pipeline.store.appending import append_chosen, change_lines
from palace_pipeline.workspace import names
from palace_pipeline.workspace.logs import note_problems
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.session import FRONT, SUMMARY_LENGTH, Session, first_sentence, one_line, summary_of
from palace_pipeline.workspace.writing import assert_own

INDEX = Path("index.md")
HEAD = "# Index\n\n| date | title | tags | summary | path |\n|---|---|---|---|---|\n"
_ROW = re.compile(r"\| (\d{4}-\d\d-\d\d) \| (.*) \| (.*) \| (.*) \| \[page\]\(([^()]+)\) \|")
_CELL = re.compile(r"(?<!\\)((?:\\\\)*) \| ")
_HASH = re.compile(r"-([0-9a-f]{8})\.md\Z")
_HASHES = re.compile(rb"-([0-9a-f]{8})\.md\) \|")
_PATHS = re.compile(rb"^\|.* \| \[page\]\(([^()\n]+)\) \|$", re.MULTILINE)
_LINK, _END = "| [page](", ") |"
_TITLE_LENGTH, _TAGS_LENGTH = 120, 320
_FEW = 16
"""So many rows are looked for from the end of the file; for more the whole file is taken apart once."""


@dataclass(slots=True, frozen=True)
class Row:
    """A row as values. `path` below the home."""

    day: date
    title: str
    tags: tuple[str, ...]
    summary: str
    path: str

    @property
    def key(self) -> str:
        """What the row is about: the id of a session, `provider:hash8` of a conversation, else the path."""
        return key_of(self.path)

    def line(self) -> str:
        """The row as it stands in the file."""
        cells = (
            _cell(self.title, _TITLE_LENGTH),
            _cell(", ".join(self.tags), _TAGS_LENGTH),
            _cell(self.summary, SUMMARY_LENGTH),
        )
        return f"| {self.day.isoformat()} | {' | '.join(cells)} | [page]({self.path}) |"


def key_of(path: str) -> str:
    """The id that a path stands for."""
    session = names.id_of(path)
    if session is not None:
        return session
    parts = path.split("/")
    hashed = _HASH.search(path) if len(parts) == 4 else None
    return f"{parts[1]}:{hashed[1]}" if hashed is not None else path


def page_key(provider: str, conversation_id: str) -> str:
    """The id of an imported conversation in the index: `provider:hash8`."""
    return f"{provider}:{page_hash(provider, conversation_id)}"


def session_row(session: Session, path: str) -> Row:
    """The row of a session."""
    day = names.time_of(session.id)
    assert day is not None
    return Row(day.date(), session.title or names.title_in(path), session.tags, summary_of(session), path)


def conversation_row(conversation: Conversation, day: date, tags: tuple[str, ...], path: str) -> Row:
    """The row of an imported, redacted conversation; its summary is the first sentence of the first question."""
    question = next((m.text for m in conversation.visible_messages() if m.role == "user" and m.text.strip()), "")
    summary = first_sentence(question)
    return Row(
        day, conversation.title or summary or "Untitled", tags, "" if summary == conversation.title else summary, path
    )


def parse_row(line: str) -> Row | None:
    """The values of a row, None for any other line."""
    match = _ROW.fullmatch(line)
    if match is None:
        return None
    cells = _CELL.sub("\\1\n", f"{match[2]} | {match[3]} | {match[4]}").split("\n")
    try:
        day = date.fromisoformat(match[1])
        title, tags, summary = (plain(cell) for cell in cells)
    except ValueError:
        return None
    return Row(day, title, tuple(tag for tag in tags.split(", ") if tag), summary, match[5])


def add_rows(home: Path, rows: Iterable[Row]) -> int:
    """Add the rows that say something else than the last one of their id; returns how many. Durable; raises OSError."""
    wanted = {row.key: row.line() for row in rows}
    if not wanted:
        return 0

    def new(data: bytes) -> list[str]:
        known = _last_lines(data, wanted)
        return [line for key, line in wanted.items() if known.get(key) != line]

    return len(append_chosen(home / INDEX, new, head=HEAD))


def add_missing(home: Path, rows: Iterable[Row]) -> int:
    """Add rows of ids that have none: of sessions that somebody wrote without Palace."""
    found = {row.key: row for row in rows}
    known = _last_lines(_data(home), found) if found else {}
    return add_rows(home, (row for key, row in found.items() if key not in known))


def live_row(home: Path, conversation: Conversation) -> Row | None:
    """The row of a live session from its redacted rows, None if its page is not there any more, or cannot be read. What is
    wrong with the page is noted in `logs/errors.md`."""
    path, day = conversation.source_file or "", names.time_of(conversation.conversation_id)
    front = next((m.text for m in conversation.messages if m.message_id == FRONT), "")
    if day is None or names.id_of(path) != conversation.conversation_id:
        return None
    try:
        data = (home / path).read_bytes()
    except OSError:  # deleted, or not to be read now: whoever reads the folder names it
        return None
    note_problems(home, home / path, parse(data.decode("utf-8", "replace"), path).problems)
    try:
        said = orjson.loads(front)
        tags, summary = tuple(map(str, said["tags"])), str(said["summary"])
    except (ValueError, KeyError, TypeError):
        tags, summary = (), ""
    return Row(day.date(), conversation.title or names.title_in(path), tags, summary, path)


def find(home: Path, wanted: str) -> Row | None:
    """The last row of an id: of a session, or `provider:hash8` of a conversation."""
    line = _last_lines(_data(home), [wanted]).get(wanted)
    return parse_row(line) if line else None


def find_conversation(home: Path, provider: str, conversation_id: str) -> Row | None:
    """The last row of an imported conversation."""
    return find(home, page_key(provider, conversation_id))


def rows(home: Path) -> list[Row]:
    """The last row of every id, in the order of the file. Raises LinkInHome."""
    assert_own(home, INDEX)
    found = _by_key(_data(home))
    return [row for line in found.values() if (row := parse_row(line)) is not None]


def all_rows(home: Path) -> Iterator[Row]:
    """Every row, also those that count no more, in the order of the file."""
    return filter(None, map(parse_row, _data(home).decode("utf-8", "replace").split("\n")))


def keys(home: Path) -> set[str]:
    """The ids that have a row."""
    return {key_of(path.decode("utf-8", "replace")) for path in _PATHS.findall(_data(home))}


def forget_rows(home: Path, keys: Collection[str]) -> int:
    """Take all rows of these ids out (purged, withheld or gone); returns how many there were."""
    if not keys or not (home / INDEX).exists() or not _last_lines(_data(home), keys):
        return 0
    gone = frozenset(keys)
    return change_lines(home / INDEX, lambda line: None if (row := parse_row(line)) and row.key in gone else line)


def change_rows(home: Path, change: Callable[[Row], Row], other: Callable[[str], str]) -> int:
    """Write all rows anew, also those that count no more, where `change` makes another of them: what must not be shown has
    to go. `other`: of lines that are no rows. Returns how many lines changed."""

    def new(line: str) -> str:
        row = parse_row(line)
        if row is None:
            return other(line)
        changed = change(row)
        return line if changed == row else changed.line()

    return change_lines(home / INDEX, new)


def _data(home: Path) -> bytes:
    try:
        return (home / INDEX).read_bytes()
    except FileNotFoundError:
        return b""


def _last_lines(data: bytes, keys: Collection[str]) -> dict[str, str]:
    """Id -> its last line, of those that have one."""
    if len(keys) > _FEW:
        # A first import asks for thousands that are not there: what is there is told by one pass in C.
        there = set(_HASHES.findall(data))
        keys = [key for key in keys if ":" not in key or key.rpartition(":")[2].encode() in there]
    if len(keys) > _FEW:
        found = _by_key(data)
        return {key: found[key] for key in keys if key in found}
    return {key: line for key in keys if (line := _last_line(data, key)) is not None}


def _last_line(data: bytes, key: str) -> str | None:
    """Searched for as bytes: turning a file of a hundred thousand rows into text costs more than the search."""
    if names.is_id(key):
        needle = f"]({names.folder_of(key)}/{names.prefix_of(key)}"
    elif ":" in key:
        needle = f"-{key.rpartition(':')[2]}.md{_END}"
    else:
        needle = f"]({key})"
    at, sought = len(data), needle.encode("utf-8", "replace")
    while (at := data.rfind(sought, 0, at)) >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        line = data[start : end if end >= 0 else len(data)].decode("utf-8", "replace")
        if _key_of_line(line) == key:
            return line
        at = start
    return None


def _by_key(data: bytes) -> dict[str, str]:
    lines = data.decode("utf-8", "replace").split("\n")
    return {key: line for line in lines if (key := _key_of_line(line)) is not None}


def _key_of_line(line: str) -> str | None:
    if not (line.startswith("| ") and line.endswith(_END) and (at := line.rfind(_LINK)) > 0):
        return None
    return key_of(line[at + len(_LINK) : -len(_END)])


def _cell(text: str, length: int) -> str:
    """Text for a cell: nothing in it ends the cell, opens a tag of HTML or a link, or is a tag for Obsidian."""
    return re.sub(r"([\\|<>\[\]]|(?<!\S)#(?=\S))", r"\\\1", one_line(text, length))


def plain(cell: str) -> str:
    """What a cell, or many, says without the backslashes that keep it a cell."""
    return re.sub(r"\\([\\|<>\[\]#])", r"\1", cell)
