"""What Palace, or a product, writes by itself: days and times, ids, hashes, numbers, keys, fixed words. It says nothing.

A value that is purged may stand there by chance: four digits in a day, `open` in a status, hex in a hash. There it is neither
masked nor found, or the archive would be taken apart for nothing. What people and programs said (texts, titles, tags, names of
files) is never spared. Which places of a text are made so follows from what the text is, its `Nature`; whoever masks and
whoever proves afterwards that nothing is left asks the same one.

Of an id that somebody else gave a part is spared only if the id has the form of what machines make (digits, hex, UUID) and the
value is shorter than SHORT: a person may choose an id (`plans-for-aurelia`), and eight characters meet by chance in one of
billions of such ids, four in each thousandth.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple, get_args

from palace_pipeline.model import PROVIDERS, ROLES, Kind, Origin

SHORT = 8
"""Characters: a shorter value stands in digits and hex by chance."""


class Made(NamedTuple):
    """A place of a text that says nothing. `short`: only of a value shorter than SHORT."""

    start: int
    end: int
    short: bool = False


Nature = Callable[[str], Iterable[Made]]
"""What of a text is made."""


def told(text: str, places: Iterable[tuple[int, int]], nature: Nature) -> list[tuple[int, int]]:
    """The places [start, end) of a value that do not stand in what is made, in their order."""
    found = list(places)
    made = list(nature(text)) if found else []
    if not made:
        return found
    whole = _joined((one.start, one.end) for one in made if not one.short)
    some = _joined((one.start, one.end) for one in made if one.short)
    return [
        place
        for place in found
        if not (
            (_inside(place, whole) and _by_chance(text[slice(*place)]))
            or (place[1] - place[0] < SHORT and _inside(place, some))
        )
    ]


def _by_chance(value: str) -> bool:
    """May a value stand by chance where Palace writes something? A long one only if it is a time, an id or a word of ours
    itself: a secret that looks like the name of a column is one even so."""
    return len(value) < SHORT or _OF_TIMES.fullmatch(value) is not None or value.lower() in words()


_OF_TIMES = re.compile(r"[0-9a-fA-FTZ:.+ -]+")


def between(text: str, nature: Nature, change: Callable[[str], str]) -> str:
    """A text of which all that is not made is changed, piece by piece."""
    parts: list[str] = []
    at = 0
    for start, end in _joined((one.start, one.end) for one in nature(text) if not one.short):
        parts += (change(text[at:start]) if at < start else "", text[start:end])
        at = end
    return "".join([*parts, change(text[at:])]) if at < len(text) else "".join(parts)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def _inside(place: tuple[int, int], spans: list[tuple[int, int]]) -> bool:
    low, high = 0, len(spans)
    while low < high:
        middle = (low + high) // 2
        if spans[middle][1] < place[1]:
            low = middle + 1
        else:
            high = middle
    return low < len(spans) and spans[low][0] <= place[0]


# --- forms ------------------------------------------------------------------------------------------------------------

_ROOM = r"(?:technical|architecture|planning|decisions|problems|general)"
_DAY = r"\d{4}-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])"
_TIME = rf"{_DAY}(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?)?"
_SESSION = r"\d{8}-\d{4}-[0-9a-f]{7}"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_TIMES = re.compile(rf"(?<![0-9A-Za-z])(?:{_TIME}|{_SESSION}|\d{{8}}T\d{{6}}Z-[0-9a-f]{{6}})(?![0-9A-Za-z])")
_MONTH = re.compile(r"(?<![\w-])\d{4}-(?:0\d|1[0-2])(?![\w-])")
_MACHINE = re.compile(rf"(?<![0-9A-Za-z])(?:{_UUID}|[0-9a-f]{{16,}}|[0-9A-F]{{16,}}|\d{{9,}}(?:\.\d+)?)(?![0-9A-Za-z])")
_HASH = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{8,}(?![0-9A-Za-z])|(?<![\w.])\d+\.\d{3,}(?![\w.])")
_KEY = re.compile(r'\\*"((?:\.?dagster/)?[A-Za-z_]\w*(?:/\w+)*)\\*"(?=\s*:)')
_VALUE = re.compile(r'\\*"(?:format|recipe|provider|status|use|unit|role|kind)\\*"\s*:\s*\\*"[^"\\]*')
_NUMBER = re.compile(r"(?<=[:\[,])\s*(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?=\s*[,\]}])")
_OF_CODE = (
    r"(?:[a-z0-9]+(?:_[a-z0-9]+)+|(?:[A-Z][a-z]+){2,}|[A-Z]+(?:_[A-Z]+)+|SUCCE(?:SS|EDED)|FAIL(?:URE|ED)|STARTED|COMPUTE"
    r"|palace_pipeline(?:\.\w+)+|\.?dagster/[\w./-]+)"
)
"""Names in the source of a program, as whole values: `raw_exports`, `AssetMaterialization`, `SUCCESS`."""
_NAME = re.compile(rf'(?<="){_OF_CODE}(?=\\*")|\A{_OF_CODE}\Z')


@cache
def words() -> frozenset[str]:
    """Words that Palace writes as whole values: of its columns, properties and folders."""
    return frozenset(
        (
            *(*PROVIDERS, *ROLES, *get_args(Kind), *get_args(Origin), "exchange", "people", "document"),
            *_ROOM[3:-1].split("|"),
            *("facts", "events", "discoveries", "preferences", "advice"),
            *(
                "ok",
                "partial",
                "withheld",
                "open",
                "closed",
                "conflict",
                "done",
                "skipped",
                "failed",
                "empty",
                "purged",
            ),
            *("thinking", "attachment", "judgement", "conclusion"),
            *("found", "updated", "unchanged", "file", "files", "conversation", "conversations", "message", "messages"),
            *(
                "day",
                "month",
                "year",
                "room",
                "notes",
                "drawers",
                "chunks",
                "pages",
                "vectors",
                "tables",
                "stats",
                "checks",
            ),
            *("redacted", "normalized", "multilingual-e5-small", "whole", "array", "lines", "damaged", "unread"),
            *(
                "sessions",
                "memory",
                "entities",
                "receipts",
                "lake",
                "vault",
                "clean",
                "error",
                "warning",
                "info",
                "input",
                "judgement",
                "tools",
                "conclusion",
                "todo",
                "front",
            ),
        )
    )


@cache
def _quoted_words() -> re.Pattern[str]:
    return re.compile(rf'(?<=")(?:{_any(words())}|(?:{_any(PROVIDERS)}|palace)(?:-[a-z]+)*(?::\w+)?)(?=\\*")')


@cache
def _plain_words() -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z])(?:{_any(words())})(?![A-Za-z])")


def _any(texts: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, texts), key=len, reverse=True))


def _of(text: str, *patterns: re.Pattern[str], short: bool = False) -> Iterator[Made]:
    return (Made(*found.span(), short) for pattern in patterns for found in pattern.finditer(text))


# --- natures ----------------------------------------------------------------------------------------------------------


def said(_text: str) -> Iterator[Made]:
    """What people and programs said: nothing of it is made."""
    return iter(())


def ident(text: str) -> Iterator[Made]:
    """An id, of a conversation or of a message: those of live sessions are made of a time and a hash."""
    if re.fullmatch(_SESSION, text):
        yield Made(0, len(text))
    elif re.fullmatch(rf"{_UUID}|[0-9a-fA-F]{{{SHORT},}}|\d{{{SHORT},}}", text):
        yield Made(0, len(text), short=True)


def message_ident(text: str) -> Iterator[Made]:
    """The id of a message: often made of the time, or the place, at which something was said."""
    yield from ident(text)
    yield from _of(text, _TIMES, _plain_words())
    yield from _of(text, _MACHINE, short=True)


_BEFORE, _BEHIND = r"(?<![^\s/\"'`(])", r"(?![^/\s\"'`)])"
_OF_SESSION = re.compile(
    rf"{_BEFORE}sessions(?=/)(?:/{_DAY}(?:/\.?\d{{4}}-[0-9a-f]{{7}}(?=[-.]|\n\.))?)?|(?<=/)sessions{_BEHIND}"
    r"|\A\.?\d{4}-[0-9a-f]{7}(?=-[^/\n]*\.md\Z)"
)
_OF_PAGE = re.compile(
    rf"({_BEFORE}conversations(?=/)(?:/(?:{_any(PROVIDERS)}){_BEHIND}(?:/\d{{4}}{_BEHIND}(?:/{_DAY}-)?)?)?"
    rf"|(?<=/)conversations{_BEHIND})"
    r"(?:(?<=-)[^\s/\"'`()]*?(-[0-9a-f]{8}(?:\.conflict(?:-\d+)?)?\n?\.md))?"
)
_EXPORTED = re.compile(rf"({_DAY}-)[^/\n]*(-[0-9a-f]{{8}}\.(?:md|html|pdf))")
_OF_NOTE = re.compile(
    rf"(?<![^\s/\"'`(])(?:notes/(?=README\.md|days\b|rooms\b))?(?:README\.md|days(?:/\d{{4}}(?:/{_DAY})?)?(?=/|\.md|\Z)|"
    rf"rooms(?=/)|\.\./\d{{4}}\.md|\d{{4}}/{_DAY}\.md)"
)
_MONTH_NOTE = re.compile(r"(?<=/)(?:\d{4}-\d\d|undated)(?=\.md)")
_ROOM_NOTE = re.compile(rf"(?<=rooms/){_ROOM}(?=[/.])")
_FIXED = re.compile(
    r"\A(?:index|logs/(?:errors|tool-calls)|memory/(?:(?:facts|preferences)(?=\.)|entities(?=/)|(?=.)))"
)


def path(text: str) -> Iterator[Made]:
    """A path, or a text with paths: of a page of ours the folders, the day, the time and the hash are made, never what of
    the name comes of a title. In names that others gave: long ids."""
    yield from _of(text, _OF_SESSION, _OF_NOTE, _MONTH_NOTE, _ROOM_NOTE, _FIXED)
    if (found := _EXPORTED.fullmatch(text)) is not None:
        yield from (Made(*found.span(group)) for group in (1, 2))
    for found in _OF_PAGE.finditer(text):
        yield Made(*found.span(1))
        if found[2] is not None:
            yield Made(*found.span(2))
    if "/" in text or "." in text:  # else a title's words
        yield from _of(text, _MACHINE, short=True)


WORD = re.compile(r"[^\s\"'`<>()\[\]|]+")
"""What could be a path in a text."""
_FILE = re.compile(r"[^.]\.(?:md|json|jsonl|zip|html?|txt)\b")


def is_path(word: str) -> bool:
    """Whether a word of a text looks like a path, or the name of a file."""
    return "/" in word or _FILE.search(word) is not None


def whole_path(text: str) -> Iterator[Made]:
    """A field that may be nothing but the path of a page of ours (of a live session, as `source_file`); else it was said."""
    if _ONE_PATH.fullmatch(text):
        yield from (one for one in path(text) if not one.short)


_ONE_PATH = re.compile(r"(?:[^\n]*/)?(?:sessions/\d{4}-|conversations/[a-z-]+/\d{4}/)[^ \t\n]*(?:\n\.md)?")


def own(text: str) -> Iterator[Made]:
    """A text or a value by a program that repeats no chat (a receipt, a row of the ledger, Dagster's storage)."""
    yield from path(text)
    if text in words():
        yield Made(0, len(text))
    yield from _of(text, _KEY, _VALUE, _NUMBER, _NAME, _quoted_words())
    # Of a path only what is told above: the rest is a title, or the name of somebody's file.
    paths = [found.span() for found in WORD.finditer(text) if is_path(found[0])]
    for made in (*_of(text, _TIMES, _MONTH), *_of(text, _MACHINE, _HASH, short=True)):
        at = bisect_right(paths, (made.start, len(text)))
        if not (at and made.start < paths[at - 1][1]) and not (at < len(paths) and paths[at][0] < made.end):
            yield made


def filed(text: str) -> Iterator[Made]:
    """A wing or a room: one of ours, or a name that somebody gave."""
    if text in words():
        yield Made(0, len(text))


def raw(text: str) -> Iterator[Made]:
    """Raw bytes of an export, as text: what a product writes there looks like what people say, so only what cannot be said."""
    yield from _of(text, _TIMES, _quoted_words())
    yield from _of(text, _MACHINE, short=True)


def stored(text: str) -> Iterator[Made]:
    """The bytes of a database, as text: what stands in its rows is looked at row by row."""
    yield from own(text)
    yield from _of(text, _ANYWHERE)


_ANYWHERE = re.compile(rf"sessions/|conversations/|{_SESSION}|{_TIME}|(?:19|20)\d\d(?:0\d|1[0-2])[0-3]\d")
"""Between bytes of a database there are no ends of words, and a column's least value is cut off."""


_STAMP = re.compile(rf"^- {_TIME}(?: · {_SESSION}(?= · )| · \w+(?= · `))?", re.MULTILINE)
_LOG_HEAD = re.compile(
    r"^(?:# (?:Errors|Tool calls)|Written by Palace: one line each time something needs a look\. Delete lines as you like\."
    r"|A line for each call that an agent noted in a session; the whole of it stands there\.)$",
    re.MULTILINE,
)
_ROW = re.compile(
    rf"^\| {_DAY} \||\| \[page\]\(|^\| date \| title \| tags \| summary \| path \|$|\A# Index$", re.MULTILINE
)


def line(text: str) -> Iterator[Made]:
    """A line of a log, or many: when, in which session, which kind; a row of `index.md`: its day. Paths as in `path`."""
    yield from path(text)
    yield from _of(text, _STAMP, _ROW, _LOG_HEAD)


# --- pages ------------------------------------------------------------------------------------------------------------

_PRODUCT = r"(?:ChatGPT|Claude|Codex|Gemini|Grok|DeepSeek|Mistral|Perplexity|Copilot)"
_SOURCE = rf"(?:{_PRODUCT}|{_any(PROVIDERS)})"
_FRONT = (
    *("type", "provider", "date", "started_at", "ended_at", "message_count", "redactions", "dated"),
    *("origin", "palace", "month", "year"),
)
_SAID_IN_FRONT = ("title", "model", "wing", "rooms", "room", "source_sha256", "tags", "aliases")
_HEAD = re.compile(r"\A---\n.*?(?:^---$|\Z)", re.MULTILINE | re.DOTALL)
_FRONT_LINE = re.compile(
    rf"^(?:(?:{'|'.join(_FRONT)}):(?: .*)?|(?:{'|'.join(_SAID_IN_FRONT)}):|source: {_SOURCE}$"
    r"| *- \"?[0-9a-f]{64}\"?)",
    re.MULTILINE,
)
_GIVEN_LINE = re.compile(r"^(conversation_id:|chat_link:)( .*)", re.MULTILINE)
"""Ids that others gave, or of live sessions."""
_FILED = re.compile(r'^wing: "?([\w-]+)"?$|^room: "?([\w-]+)"?$', re.MULTILINE)
_ROOMS = re.compile(r"^rooms:\n((?: *- .*\n)*)", re.MULTILINE)
_ROOM_WORD = re.compile(rf"(?<=- ){_ROOM}(?=\n)")
_COMMENT = re.compile(r"^<!-- palace(?::[0-9a-f]{8})? (?:list|end|export [0-9a-f]{64}|\{.*\}) -->$", re.MULTILINE)
_LABEL = rf"(?:You|Document|Bot|Assistant|{_PRODUCT})(?: · (?:Judgement|Conclusion|To do))?"
_PART = r"(?:Tool call|Tool result|Thinking|System|Event|Attachment|Image|Audio|Assistant|Tool|User|Bot)"
_HEADING = re.compile(
    rf"^### (?:{_DAY}(?: \d\d:\d\d)?)?(?: · )?(?:{_LABEL}(?=$| · edited$))?(?: · edited$)?", re.MULTILINE
)
_FOLDED = re.compile(rf"^> \[!\w+\]- (?:{_PART}(?=:| ·|$):? ?)?", re.MULTILINE)
_FOLDED_TIME = re.compile(rf"(?<= · ){_DAY}(?: \d\d:\d\d)?(?: · edited)?$", re.MULTILINE)
_BETWEEN = re.compile(rf"^(?:## Notes|# Notes|Sources:|# \d{{4}}(?:-\d\d){{0,2}}|# {_ROOM}(?=,|$))", re.MULTILINE)
_OF_MONTH = re.compile(r"(?<=, )(?:\d{4}-\d\d|undated)$", re.MULTILINE)
_SUMMARY = re.compile(
    rf"^{_SOURCE} · \d+ messages?(?: · times (?:in [\w/+-]+|as written, without a zone))?$", re.MULTILINE
)
_LINK = rf"\[(?:\d{{4}}(?:-\d\d){{0,2}}|{_ROOM})\]\([./\w-]+\.md\)"
_LINKS = re.compile(rf"^(?:[←→] )?{_LINK}(?: · (?:[←→] )?{_LINK}(?: [←→])?)*$", re.MULTILINE)
_LISTED = re.compile(rf"^- (?:{_DAY} )?(?:\d\d:\d\d )?(?=\[)|(?<=\.md\)) · {_SOURCE}$", re.MULTILINE)
_LIST_OF_NOTES = re.compile(rf"^- \[(?:\d{{4}}(?:-\d\d){{0,2}}|undated|room {_ROOM})\]\([./\w-]+\.md\)$", re.MULTILINE)


def page(text: str) -> Iterator[Made]:
    """A page of `conversations/` or of `notes/`, whole or a part: properties and lines that the program writes about what was
    said. What the user put there (tags, own properties, notes) is theirs."""
    head = found.end() if (found := _HEAD.match(text)) else 0
    front = text[:head] if head else text.partition("\n\n# ")[0] if text.startswith("type: ") else ""
    yield from _of(front, _FRONT_LINE)
    for given in _GIVEN_LINE.finditer(front):
        yield Made(*given.span(1))
        yield Made(*given.span(2), short=True)
        yield from (Made(one.start + given.start(2), one.end + given.start(2)) for one in _of(given[2], _TIMES))
    for filed in _FILED.finditer(front):
        if (filed[1] or filed[2]) in words():
            yield Made(*filed.span(1 if filed[1] else 2))
    for rooms in _ROOMS.finditer(front):
        at = rooms.start(1)
        yield from (Made(one.start + at, one.end + at) for one in _of(rooms[1], _ROOM_WORD))
    for comment in _COMMENT.finditer(text):
        at = comment.start()
        yield from (Made(one.start + at, one.end + at, one.short) for one in own(comment[0]))
        yield Made(at, at + len("<!-- palace"))
        yield Made(at, at + comment[0].find(" ", len("<!-- palace")))
        if not comment[0].endswith("} -->"):
            yield Made(*comment.span())
    if front.startswith("---\ntype: room\n"):
        yield from _of(text, _OF_MONTH)
    yield from _of(text, _HEADING, _FOLDED, _FOLDED_TIME, _BETWEEN, _SUMMARY, _LINKS, _LISTED, _LIST_OF_NOTES)
    for link in _TARGET.finditer(text):
        at = link.start(1)
        yield from (Made(one.start + at, one.end + at, one.short) for one in path(link[1]))


_TARGET = re.compile(r"\]\(([^()\s]+\.md)\)")
