"""What a reader of one export format gets and gives: members in, conversations and skips out.

A *member* is one file of an export: a file on disk, an entry of a ZIP, or a copy in the vault. A reader looks at one
member at a time; what stands beside it (Slack's `users.json`, a session index) is reached through `Member.near`.
A reader never writes, never logs content, and never lets one odd record end a file: it counts a skip and goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol

from palace_pipeline.exports.drift import clean_key
from palace_pipeline.model import Conversation, Skip, Unit

if TYPE_CHECKING:
    import sqlite3

    from palace_pipeline.exports.databases import Database


class Member(Protocol):
    """One file of an export."""

    @property
    def path(self) -> str:
        """POSIX path below the export's root (inside a ZIP: `outer.zip!/folder/name.json`)."""
        ...

    @property
    def size(self) -> int:
        """Bytes, as far as known before reading (a ZIP's directory may lie: limits count the bytes really read)."""
        ...

    def open(self) -> BinaryIO:
        """The member's own bytes from the start; `.zst` and `.gz` are already decompressed."""
        ...

    def near(self, relative: str) -> Member | None:
        """Another member of the same export by path relative to this one's folder, or None. Never leaves the root."""
        ...


class Names(Counter[str]):
    """Counts by `kind:name`; the kind is the reader's word, the name comes out of a file.

    Whatever stands where a file should name a type may as well be what somebody said: it must not reach a report, so
    what does not look like a name is counted as `(not a name)` (see `drift.name`).
    """

    def __setitem__(self, key: str, count: int) -> None:
        super().__setitem__(clean_key(key), count)

    def __missing__(self, key: str) -> int:
        return self.get(clean_key(key), 0)


NAMED = 1000
"""Skips of one kind that a report names one by one; a file of a million empty chats must not fill the memory."""


@dataclass(slots=True)
class Report:
    """What a reading did not take. One per file; `where` of every skip starts with the member's path.

    All are counted. Of one reason the first `NAMED` are named, and one more stands for the rest.
    """

    path: str = ""
    skips: list[Skip] = field(default_factory=list[Skip])
    unknown: Counter[str] = field(default_factory=Names)
    """Names (never values) of record types, content types and roles that no reader knows: the drift alarm."""
    _alike: dict[tuple[str, bool, Unit], tuple[int, int]] = field(
        default_factory=dict[tuple[str, bool, "Unit"], tuple[int, int]], repr=False, compare=False
    )
    """Kind of skip -> how many there were, and which of `skips` stands for those that are not named."""

    def skip(self, reason: str, place: str = "", *, expected: bool, count: int = 1, unit: Unit = "message") -> None:
        """Count something not taken. `place`: e.g. `line 12`, `conversations[3]`, a message id; never content."""
        where = f"{self.path}: {place}" if place else self.path
        self.add(Skip(reason, where, expected, count, unit))

    def add(self, skip: Skip) -> None:
        """Count a skip that another reading of the same file has made."""
        kind = (skip.reason, skip.expected, skip.unit)
        number, rest = self._alike.get(kind, (0, -1))
        if number < NAMED:
            self.skips.append(skip)
        elif number == NAMED:
            rest = len(self.skips)
            self.skips.append(replace(skip, where=f"{self.path}: others"))
        else:
            self.skips[rest] = replace(self.skips[rest], count=self.skips[rest].count + skip.count)
        self._alike[kind] = (number + 1, rest)

    def take(self, other: Report) -> None:
        """Count what another reading of the same file (one element of it) did not take, too."""
        for skip in other.skips:
            self.add(skip)
        self.unknown += other.unknown


@dataclass(frozen=True, slots=True)
class SpecTarget:
    """Where a reader's picture of its format comes from, and when that was last looked at.

    `name`, `where` and `since` are for people: `palace formats` and the table in `docs/formats.md` are made of them.
    """

    checked: str
    """ISO date."""
    source: str
    confidence: Literal["high", "medium", "low"]
    name: str = ""
    """What people call the format (`ChatGPT export`); without it the reader's `format` stands there."""
    where: str = ""
    """Where a person gets such a file, in one short line; Markdown's backticks for paths."""
    since: str = ""
    """Year or year and month in which the shape was first seen; "" if nobody can say."""


Utf16 = Literal["utf-16-le", "utf-16-be"]


@dataclass(slots=True)
class Head:
    """The beginning of a member, as much of it as detection needs. Made by `exports.detect.head_of`.

    `shape`: what the bytes are. `items`: the first few non-null values of a JSON array, of JSONL lines, or the one
    object itself (objects of any size: only as much as fits is parsed, see `head_of`). `keys`: top-level keys of a
    JSON object in order. `text`: decoded beginning, for text formats. `wrapped`: key under which a JSON object holds
    the list of conversations (`conversations`, `chats`…), then `items` are that list's first values. Of a workbook
    `items` are its sheets, `{"sheet": name, "rows": [{column: text}, …]}` with their first rows.
    `encoding`: set for JSON in UTF-16, which is read as UTF-8 (`exports.utf16`). Of an SQLite database `keys` are the
    names of its tables, and `database` is the open database itself.
    """

    path: str
    shape: Literal["array", "object", "jsonl", "text", "sqlite", "workbook", "empty", "binary"]
    items: list[Any] = field(default_factory=list[Any])
    keys: list[str] = field(default_factory=list[str])
    text: str = ""
    wrapped: str | None = None
    encoding: Utf16 | None = None
    database: Database | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """File name without folders."""
        return self.path.rsplit("/", 1)[-1]


class _Format(Protocol):
    """What every reader says of its format."""

    format: str
    provider: str
    recipe: int
    """Raise it when the reader's output changes: files are then read again from the vault."""
    spec: SpecTarget

    def detect(self, head: Head) -> bool:
        """True if the member is surely of this format, judged by shape and never by file name alone."""
        ...

    # A reader may also have `known_keys: Mapping[str, frozenset[str]]`, see `exports.drift.unknown_keys`.


class ElementReader(_Format, Protocol):
    """Reads a JSON array (or an object that wraps one, JSON lines, a single object) of values that stand alone.

    The engine splits the member and calls `read_element` for each; an element whose bytes are known is not parsed
    again, so a monthly re-export costs little more than its new chats.
    """

    layout: Literal["elements"]

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """The conversations of one parsed element; `place` (`[12]`) names it in skips."""
        ...


class WholeReader(_Format, Protocol):
    """Reads a member whose records belong together, such as a log; it streams the member by itself."""

    layout: Literal["whole"]

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The conversations of a whole member."""
        ...


class RowsReader(_Format, Protocol):
    """Reads an SQLite database conversation by conversation.

    `elements` gives each conversation's own rows as one JSON object (`databases.kept_row`), and only what belongs to
    chats: a database may hold sign-in tokens beside them. The vault keeps these lines and never the database, an
    unchanged conversation is not parsed again, and `detect` takes both: the tables of a database (`head.keys`), and
    lines that were kept of one (`databases.holds_rows`).
    """

    layout: Literal["rows"]

    def elements(self, connection: sqlite3.Connection, report: Report) -> Iterator[tuple[str, bytes]]:
        """(place, JSON) of each conversation; the same rows give the same bytes. Errors of SQLite may come through."""
        ...

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """The conversations of one parsed element, as for `ElementReader`."""
        ...


Reader = ElementReader | WholeReader | RowsReader
"""One export format. Register an instance in `exports.registry.READERS`."""
