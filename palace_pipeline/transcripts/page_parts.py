"""A page taken apart: front matter, what the program wrote, and what belongs to the user.

Works on pages in any state (edited, torn, with CRLF), since nothing the user wrote may be lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from palace_pipeline.model import short_hash
from palace_pipeline.transcripts import front_matter

MARK = "<!-- palace:"
"""Start of the comment lines; the page's token and a blank follow."""

_PROGRAM_KEYS = frozenset(
    {
        *("type", "provider", "conversation_id", "title", "date", "dated", "started_at", "ended_at", "message_count"),
        *("model", "wing", "rooms", "redactions", "origin", "chat_link", "source_sha256", "palace"),
    }
)
_USER_KEYS = ("tags", "aliases")
_SEAL = re.compile(r"([0-9a-f]{8}) ([0-9a-f]{16})")
_SEAL_LINE = re.compile(r"""^palace: ["']?[0-9a-f]{8} ([0-9a-f]{16})["']?[ \t]*\r?$""", re.MULTILINE)
_FIRST_MARK = re.compile(r"^<!-- palace:([0-9a-f]{8}) ", re.MULTILINE)
_NOTES = re.compile(r"\s*##[ \t]+Notes[ \t]*(?:\r?\n|\Z)", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class UserParts:
    """What on a page belongs to its owner. `notes`: everything below the heading `## Notes`, byte for byte.

    `extra`: further properties of the front matter, as lines of YAML.
    """

    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    notes: str = ""
    extra: str = ""

    @property
    def blank(self) -> bool:
        return not (self.tags or self.aliases or self.notes.strip() or self.extra.strip())


NOBODYS = UserParts()
"""Those of a new page."""


@dataclass(slots=True, frozen=True)
class Takeover:
    """What must be kept when a page is written anew.

    `complete`: `user` is all that the user may have added in the parts that are theirs. `intact`: see `ParsedPage`.
    `key`: whose page it is, as far as that can be read. `seal`: what it was written from (see `seal_of`).
    """

    user: UserParts
    complete: bool
    intact: bool
    key: tuple[str, str] | None
    seal: str | None = None


def seal(body: str, values: Mapping[str, Any]) -> str:
    """Hash of what a person could change outside their parts. `values`: of the front matter, as `front_matter.load` gives
    them, so that other quotes or another order, as note programs write them, are no change."""
    front = {name: values.get(name) or None for name in _PROGRAM_KEYS if name != "palace"}
    return short_hash("2", body, orjson.dumps(front, option=orjson.OPT_SORT_KEYS).decode(), length=16)


def seal_of(page: str) -> str:
    """The seal in the text of a page as `render` makes it. Two pages with the same one say the same."""
    found = _SEAL_LINE.search(page)
    return found[1] if found else ""


def with_seal(page: str, seal: str) -> str:
    """A page that somebody edited, noted as one that knows what stands under this seal; all else byte for byte."""
    return _SEAL_LINE.sub(lambda line: line[0].replace(line[1], seal), page, count=1)


def _first_seal(body: str, values: Mapping[str, Any]) -> str:
    """That of pages of the first recipe, which covered only a part of the front matter."""
    names = ("provider", "conversation_id", "title", "model", "wing")
    return short_hash(body, *(values.get(name) or "" for name in names), *(values.get("rooms") or ()), length=16)


@dataclass(slots=True)
class Opened:
    """A page cut into its parts; None for what could not be found."""

    values: dict[str, Any] | None
    token: str | None
    body: str | None
    user: UserParts
    complete: bool

    @property
    def seal(self) -> str | None:
        """What the page was written from, as its front matter says."""
        found = _SEAL.fullmatch(str((self.values or {}).get("palace")))
        return found[2] if found else None

    @property
    def intact(self) -> bool:
        found = _SEAL.fullmatch(str((self.values or {}).get("palace")))
        if found is None or self.body is None or self.values is None:
            return False
        try:
            return found[2] in (seal(self.body, self.values), _first_seal(self.body, self.values))
        except (AttributeError, TypeError):
            # A property that was a text now holds a list or a mapping.
            return False


def take_over(text: str) -> Takeover:
    """The user's parts of an existing page in whatever state it is; takes what it can find, and says if that is all."""
    opened = open_page(text)
    values = opened.values or {}
    provider, conversation_id = text_of(values, "provider"), text_of(values, "conversation_id")
    key = (provider, conversation_id) if provider and conversation_id else None
    return Takeover(opened.user, opened.complete, opened.intact, key, opened.seal)


def written_by_program(text: str) -> str:
    """A page without what belongs to the user: what a scan for secrets must look at."""
    opened = open_page(text)
    block, start = front_matter.split(text)
    ours = "".join(lines for name, lines in front_matter.entries(block or "") if name in _PROGRAM_KEYS)
    return ours + (text[start:] if opened.body is None else opened.body)


def segments(text: str) -> list[tuple[str, bool]]:
    """A page in any state, cut into pieces: (text, whether the program wrote it). Joined they are the page."""
    block, start = front_matter.split(text.removeprefix("\ufeff"))
    start += text.startswith("\ufeff")
    lines = front_matter.entries(block or "")
    head = text[:start]
    written = "".join(lines for _, lines in lines)
    pieces: list[tuple[str, bool]] = []
    if block and head.count(written) == 1:
        at = head.index(written)
        pieces = [(head[:at], True), *((of, name in _PROGRAM_KEYS) for name, of in lines)]
        pieces.append((head[at + len(written) :], True))
    elif head:
        pieces = [(head, True)]
    token = _FIRST_MARK.search(text, start)
    end = text.find(f"\n{MARK}{token[1]} end -->", start) if token else -1
    return [*pieces, (text[start:end], True), (text[end:], False)] if end >= 0 else [*pieces, (text[start:], True)]


def open_page(text: str) -> Opened:
    """The parts of a page in whatever state it is; never raises."""
    text = text.removeprefix("\ufeff")
    block, start = front_matter.split(text)
    user_values, extra, values, complete = _properties(block)
    sealed = _SEAL.fullmatch(str((values or {}).get("palace")))
    first = sealed or _FIRST_MARK.search(text, start)
    token = first[1] if first else None
    end_mark = f"\n{MARK}{token} end -->"
    end = text.find(end_mark, max(start - 1, 0)) if token else -1
    if end >= 0:
        body = text[start:end].removesuffix("\r").replace("\r\n", "\n")
        rest = text[end + len(end_mark) :]
        rest = rest.removeprefix("\r").removeprefix("\n")
    else:
        # Somebody deleted the end mark, or the page is torn. Behind the last message such a heading is most likely the
        # user's; but it may be a message's, so this is not complete.
        body, complete = None, False
        at = text.rfind("\n## Notes")
        rest = text[at + 1 :] if at >= text.rfind(f"\n{MARK}") >= 0 else ""
    heading = _NOTES.match(rest)
    notes = rest[heading.end() :] if heading else rest if rest.strip() else ""
    return Opened(values, token, body, UserParts(*user_values, notes, extra), complete)


def _properties(
    block: str | None,
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], str, dict[str, Any] | None, bool]:
    """(tags and aliases, further properties as YAML, all values, whether that is all of the user's)."""
    nothing: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    if block is None:
        return nothing, "", None, False
    try:
        values = front_matter.load(block)
    except front_matter.FrontMatterError:
        return nothing, "", None, False
    complete = True
    found: list[tuple[str, ...]] = []
    for name in _USER_KEYS:
        try:
            found.append(front_matter.texts(values.get(name)))
        except front_matter.FrontMatterError:
            found.append(())
            complete = False
    others = {name: value for name, value in values.items() if name not in _PROGRAM_KEYS and name not in _USER_KEYS}
    extra = ""
    if others or "#" in block:
        ours = _PROGRAM_KEYS.union(_USER_KEYS)
        extra = "".join(lines for name, lines in front_matter.entries(block) if name not in ours)
        try:
            same = front_matter.load(extra) == others
        except front_matter.FrontMatterError:
            same = False
        if not same:
            extra, complete = "", False
    return (found[0], found[1]), extra, values, complete


def text_of(values: Mapping[str, Any], name: str) -> str | None:
    """A property that is a text."""
    value = values.get(name)
    return value if isinstance(value, str) else None
