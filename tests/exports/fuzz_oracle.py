"""What must hold of any reading of any damaged file, stated without knowing the format."""

from __future__ import annotations

import html
import re
import sqlite3
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote

import zstandard

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.engine import elements_of, identify, read_member, read_one
from palace_pipeline.exports.text import decode
from palace_pipeline.model import ROLES, Conversation, Message, Skip, to_record
from tests.exports.memory_member import MemoryMember
from tests.exports.mutations import Mutant, Shape, shape_of

Files = Mapping[str, bytes]
ORIGINS = {"person", "subagent", "cron", "heartbeat", "tool"}
KINDS = {"text", "tool_call", "tool_result", "thinking", "attachment", "image", "audio", "system", "event"}


@dataclass
class Reading:
    """What came of one file. `numbers`: the element (or line) each conversation came from, where that is known."""

    found: list[Conversation]
    report: Report
    format: str | None = None
    numbers: list[int | None] = field(default_factory=list[int | None])
    shape: Shape | None = None

    @property
    def records(self) -> Counter[bytes]:
        return Counter(to_record(conversation) for conversation in self.found)

    @property
    def rows(self) -> list[Message]:
        return [message for conversation in self.found for message in conversation.messages]

    def said(self) -> Counter[tuple[str, str, str, str]]:
        """What people see, whatever the rows beside it are."""
        return Counter(
            (c.conversation_id, m.role, m.text, str(m.created_at or m.local_time))
            for c in self.found
            for m in c.visible_messages()
        )

    def answer(self) -> tuple[list[bytes], list[Skip], dict[str, int]]:
        """Everything, in its order, in a form that two readings can be compared in."""
        return [to_record(c) for c in self.found], self.report.skips, dict(self.report.unknown)


def read(files: Files, path: str) -> Reading:
    """One member of an export that lies in memory, as the ingest reads it."""
    member, report = MemoryMember(files, path), Report(path)
    known = identify(member, report)
    if known is None:
        return Reading([], report)
    return Reading(list(read_member(member, *known, report)), report, known[0].format)


def read_by_elements(files: Files, path: str) -> Reading:
    """The same, with the number of the element that each conversation came from, and the shape of the file."""
    member, report = MemoryMember(files, path), Report(path)
    known = identify(member, report)
    if known is None:
        return Reading([], report, shape=shape_of(path, files[path]))
    reader, head = known
    by_elements = reader.layout == "elements" and (head.shape != "object" or head.wrapped is not None)
    shape = shape_of(path, files[path], head.wrapped, elements=by_elements)
    reading = Reading([], report, reader.format, shape=shape)
    if reader.layout == "whole":
        reading.found = list(read_member(member, reader, head, report))
        reading.numbers = [None] * len(reading.found)
        return reading
    for element in elements_of(member, head, report):
        found = read_one(element, member, reader, report)
        reading.found += found
        number = int(element.place.removeprefix("line ")) - 1 if head.shape == "jsonl" else element.index
        reading.numbers += [number if by_elements else None] * len(found)
    return reading


# --- laws -------------------------------------------------------------------------------------------------------------


def ill_formed(conversation: Conversation) -> str | None:
    """A value that the stores cannot hold, by the name of its field (never by its content)."""
    to_record(conversation)
    head = {
        **dict.fromkeys(("provider", "conversation_id"), (str,)),
        **dict.fromkeys(("title", "account", "model", "project", "local_created"), (str, type(None))),
        **dict.fromkeys(("forked_from", "parent_conversation_id"), (str, type(None))),
        **dict.fromkeys(("created_at", "updated_at"), (datetime, type(None))),
    }
    for name, types in head.items():
        if not isinstance(getattr(conversation, name), types):
            return name
    if conversation.origin not in ORIGINS or not conversation.conversation_id:
        return "origin or id"
    ids = [message.message_id for message in conversation.messages]
    if len(set(ids)) != len(ids) or not all(ids):
        return "message_id"
    return next((wrong for message in conversation.messages if (wrong := _ill_formed_row(message))), None)


def _ill_formed_row(m: Message) -> str | None:
    texts = {
        name: getattr(m, name) for name in ("speaker", "model", "tool_name", "parent_id", "hidden_reason", "local_time")
    }
    numbers = {name: getattr(m, name) for name in ("tokens_in", "tokens_out", "tokens_cached")}
    times = {name: getattr(m, name) for name in ("created_at", "edited_at")}
    for name, value in texts.items():
        if not isinstance(value, str | None):
            return name
    for name, value in numbers.items():
        if value is not None and (type(value) is not int or not -(2**63) <= value < 2**63):
            return name
    for name, value in times.items():
        if value is not None and (not isinstance(value, datetime) or value.tzinfo is not UTC):
            return name
    if m.cost is not None and not isinstance(m.cost, int | float):
        return "cost"
    if m.role not in ROLES or m.kind not in KINDS or not isinstance(m.branch_active, bool):
        return "role, kind or branch"
    if not isinstance(m.text, str) or "\0" in m.text or "\r" in m.text:
        return "text"
    for citation in m.citations:
        if not isinstance(citation.url, str) or not isinstance(citation.title, str | None):
            return "citation"
    for file in m.attachment:
        if not all(isinstance(value, str | None) for value in (file.name, file.type, file.ref, file.text)):
            return "attachment"
        if file.size is not None and (type(file.size) is not int or not -(2**63) <= file.size < 2**63):
            return "attachment size"
    return None


UNKNOWN_NAME = re.compile(r"[\w .:/@$+<>-]{1,80}(?:\((?:odd|not a) name\))?|\(odd name\)")


def problems(mutant: Mutant, before: Reading, after: Reading, source: str) -> list[str]:
    """Every law that the reading of a mutant breaks. `source`: all the text that the mutant's export holds."""
    found = [f"ill-formed {wrong}" for c in after.found if (wrong := ill_formed(c))]
    if not after.found and mutant.data.strip(b"\0 \t\r\n") and not after.report.skips:
        found.append("nothing taken and nothing said")
    if any(not name or UNKNOWN_NAME.fullmatch(name) is None for name in after.report.unknown):
        found.append("an unknown name that may be a value")
    if missing := words_missing((m.text for m in after.rows if m.visible), source):
        found.append(f"invented {missing} words")
    said = {skip.reason for skip in after.report.skips}
    if "damaged conversation" in said or "damaged file" in said:
        where = next(s.where.rpartition("(")[2] for s in after.report.skips if s.reason.startswith("damaged "))
        found.append(f"a reader raised ({where}")
    found += _changed(mutant, before, after)
    return found


def _changed(mutant: Mutant, before: Reading, after: Reading) -> list[str]:
    if mutant.same == "all" and before.records != after.records and set(before.records) != set(after.records):
        return ["not read as before"]
    if mutant.same == "said" and before.said() != after.said():
        return ["not said as before"]
    if mutant.touched is not None and any(number is not None for number in before.numbers):
        untouched = {
            to_record(c)
            for c, number in zip(before.found, before.numbers, strict=True)
            if number is not None and number not in mutant.touched
        }
        if not untouched <= set(after.records):
            return ["an untouched conversation changed"]
    return []


def silently_lost(mutant: Mutant, before: Reading, after: Reading, was: str, now: str) -> list[str]:
    """Things people saw whose words are all still in the file, and that do not come out now, without a word on it.

    `was`, `now`: all the text of the file before and after. Only for changes of type and depth: a renamed key hides
    what it holds from everybody, and two fields that changed places say something else.
    """
    if not mutant.how.startswith(("retype", "nest", "huge", "element as")) or says_more(before, after):
        return []
    if "(NoneType)" in mutant.how:
        return []  # what was not there before may well come first
    left = "\n".join(text for m in after.rows for text in (m.text, *(file.text or "" for file in m.attachment)))
    gone = {m.text for m in before.rows if m.visible and m.text.strip() and m.text not in left}
    return ["silently lost"] if any(now.count(text) >= was.count(text) > 0 for text in gone) else []


def says_more(before: Reading, after: Reading) -> bool:
    """Does the report name something that it did not name of the original?"""
    was = Counter((s.reason, s.where) for s in before.report.skips for _ in range(s.count))
    now = Counter((s.reason, s.where) for s in after.report.skips for _ in range(s.count))
    return bool(now - was) or bool(after.report.unknown - before.report.unknown)


# --- the text of a file, in every way it may be written -----------------------------------------------------------------

_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_SIMPLE = {"b": " ", "f": " ", "n": "\n", "r": "\n", "t": "\t"}
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^<>]*>")


def words_missing(texts: Iterable[str], source: str) -> int:
    """How many words of `texts` do not stand in the source, not even with markup between their parts."""
    known = set(_WORD.findall(source))
    others = {word for text in texts for word in _WORD.findall(text.replace("\ufffd", " ")) if word not in known}
    if not others:
        return 0
    squeezed = re.sub(r"\W+", "", source)
    return sum(word not in squeezed and not _joined(word, known) for word in others)


def _joined(word: str, known: set[str]) -> bool:
    """Two pieces of a message that stand apart in the file."""
    return any(word[:at] in known and word[at:] in known for at in range(1, len(word)))


def source_text(data: bytes) -> str:
    """All text that a file holds, decoded in each way that its kind of file allows."""
    parts = list(_plain_parts(data))
    forms = list(parts)
    for part in parts:
        once = _unescaped(part)
        forms += [once, _unescaped(once)] if once != part else []
    forms += [unescaped for form in list(forms) if (unescaped := html.unescape(form)) != form]
    forms += [_TAG.sub("", form) for form in list(forms) if "<" in form]
    forms += [unquoted for form in list(forms) if "%" in form and (unquoted := unquote(form)) != form]
    return "\n".join(forms)


def _plain_parts(data: bytes) -> Iterator[str]:
    if data.startswith(b"PK"):
        yield from _zip_parts(data)
    if data.startswith(b"SQLite format 3"):
        yield from _database_parts(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        with suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(data).decode("utf-8", "replace")
    yield data.decode("utf-8", "replace")
    if (text := decode(data)) is not None:
        yield text
    if b"\0" in data:
        yield data.replace(b"\0", b"").decode("utf-8", "replace")


def _zip_parts(data: bytes) -> Iterator[str]:
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            for entry in archive.infolist():
                yield entry.filename
                yield source_text(_as_far_as_it_goes(archive, entry))
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        yield from _parts_without_directory(data)


def _parts_without_directory(data: bytes) -> Iterator[str]:
    """The entries of a ZIP whose end is lost, each found by the header before it."""
    at = data.find(b"PK\x03\x04")
    while at >= 0:
        method, name, extra = (int.from_bytes(data[at + i : at + i + 2], "little") for i in (8, 26, 28))
        body = data[at + 30 + name + extra :]
        content = b"" if method == 8 else body
        inflate = zlib.decompressobj(-15)
        with suppress(zlib.error):
            for start in range(0, len(body) if method == 8 else 0, 16):
                content += inflate.decompress(body[start : start + 16])
        yield source_text(content)
        at = data.find(b"PK\x03\x04", at + 4)


def _as_far_as_it_goes(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """What can be unpacked of an entry; runs of blanks (a bomb is full of them) are one blank."""
    pieces: list[bytes] = []
    # What ends it is the damage of the mutant; the oracle asks only for the words before it.
    with (
        suppress(zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, OSError, EOFError),
        archive.open(entry) as stream,
    ):
        while piece := stream.read(1024):
            pieces.append(piece if piece.strip() else b" ")
    return re.sub(rb" {100,}", b" ", b"".join(pieces))


def _database_parts(data: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.db")
        path.write_bytes(data)
        try:
            with sqlite3.connect(path) as connection:
                connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
                for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    for row in connection.execute(f'SELECT * FROM "{table}"'):
                        yield "\n".join(
                            value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
                            for value in row
                        )
        except (sqlite3.Error, UnicodeDecodeError):
            return


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _SIMPLE.get(m[2], m[2]), text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
