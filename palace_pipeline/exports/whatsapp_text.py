"""The text of one WhatsApp message: what was said, what was sent with it, or what WhatsApp wrote in its place.

iOS writes U+200E before whatever is its own (notices, `image omitted`, `<attached: …>`), Android writes angle brackets
(`<Media omitted>`) and `(file attached)`; the words differ by language, see `whatsapp_words`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from palace_pipeline.exports.whatsapp_lines import LRM, MARKS
from palace_pipeline.exports.whatsapp_words import (
    is_english,
    is_location,
    media_kind,
    says_attached,
    says_call,
    says_deleted,
    says_edited,
    says_live_location,
    says_waiting,
)
from palace_pipeline.model import Attachment, Kind

_NOTICE = "notice of WhatsApp"
_LONGEST_OWN = 160
_IN_ANGLES = re.compile(r"<([^<>\n]{3,80})>")
_EDITED_END = re.compile(r"\s*(\u200e?)<([^<>\n]{3,60})>\s*\Z")
_FILE_END = re.compile(r"\s*(\u200e?)<([^<>:：\n]{2,30}?) ?[:：] ?([^<>\n]+\.\w{1,8})>\s*\Z")
_FILE_LINE = re.compile(r"(\u200e?)\s*([^\n]{1,200}?\.\w{1,8}) \(([^()\n]{2,40})\)")
_OWN_NAME = re.compile(r"(?:IMG|VID|AUD|PTT|DOC|STK|GIF|PHOTO|VIDEO)-\d{8}-WA\d+\.|\d{8}-[A-Z]+-", re.ASCII)
_FILE_NAME = re.compile(r"[^\n/\\]{1,200}\.\w{1,8}")
_POLL = re.compile(r"\u200e?[^\s:：\u200e][^:：\n]{0,24}[:：]")
_OPTION = re.compile(r"[^:：\n]{1,24}[:：] ?(.*?)(?: ?\(\u200e?\d+[^()]*\))?")
_KINDS: dict[str, tuple[str, ...]] = {
    "image": ("jpg", "jpeg", "png", "webp", "heic", "gif"),
    "video": ("mp4", "mov", "3gp", "mkv", "avi"),
    "audio": ("opus", "ogg", "m4a", "mp3", "aac", "amr", "wav"),
    "contact": ("vcf",),
}


@dataclass(slots=True)
class Said:
    """What a message says. `notice`: why it is no message of a person; `placeholder`: WhatsApp's own words were seen."""

    text: str
    kind: Kind = "text"
    files: list[Attachment] = field(default_factory=list[Attachment])
    notice: str | None = None
    placeholder: bool = False


def speaks_english(text: str) -> bool:
    return "omitted" in text and is_english(text.strip(MARKS + " \n"))


def read_body(raw: str, *, marked: bool = True) -> Said:
    """The text behind the speaker's name, all its lines. `marked`: U+200E at its start tells WhatsApp's own words."""
    if len(raw) > _LONGEST_OWN and LRM not in raw and "<" not in raw and "(" not in raw:
        return Said(raw.strip())  # most of a chat's text; WhatsApp's own words are short or marked
    text, edited = _without_edited(raw.strip()) if ">" in raw else (raw.strip(), False)
    own = text.startswith(LRM)
    bare = text.strip(MARKS + " \n")
    if not bare:
        return Said("", notice="empty message")
    if bare == "null":
        return Said("", "attachment", [Attachment(type="view once")], placeholder=True)
    if says_deleted(bare):
        return Said("", notice="deleted message", placeholder=True)
    if says_call(bare) and (own or not marked):
        return Said("", notice="call", placeholder=True)
    if says_waiting(bare):
        return Said("", notice="message that had not arrived", placeholder=True)
    if says_live_location(bare):
        return _with_files("", [Attachment(type="location")])
    found = _attached(text) or _left_out(text, own=own)
    if found is not None:
        return found
    if own and marked and not is_location(bare) and not bare.startswith("@"):
        return _poll(text) or Said("", notice=_NOTICE, placeholder=True)
    return Said(text.lstrip(MARKS).strip() if own else text, placeholder=edited or own)


def _without_edited(text: str) -> tuple[str, bool]:
    match = _EDITED_END.search(text, max(0, len(text) - 80))
    if match is None or not match.start() or not says_edited(match[2]):
        return text, False
    return text[: match.start()].rstrip(LRM + " "), True


def _with_files(text: str, files: list[Attachment]) -> Said:
    kinds = {file.type for file in files}
    kind: Kind = "image" if kinds <= {"image", "sticker"} else "audio" if kinds == {"audio"} else "attachment"
    return Said(text.strip(), kind, files, placeholder=True)


def _attached(text: str) -> Said | None:
    """A file that was exported: `<attached: 00000012-PHOTO-….jpg>` at the end, or `IMG-….jpg (file attached)` first."""
    match = _FILE_END.search(text, max(0, len(text) - 400)) if text.endswith(">") else None
    if match is not None and (match[1] or _OWN_NAME.match(match[3]) or says_attached(match[2])):
        caption = text[: match.start()]
        if " • " in caption and LRM in caption:
            caption = ""  # `report.pdf • 3 pages`, which iOS writes before a document
        return _with_files(_unmarked(caption), [_file(match[3])])
    first, _, rest = text.partition("\n")
    match = _FILE_LINE.fullmatch(first.rstrip()) if first.rstrip().endswith(")") else None
    if match is not None and (says_attached(match[3]) or (match[1] and _OWN_NAME.match(match[2]))):
        name = match[2].strip(MARKS)
        return _with_files("" if rest.strip() == name else _unmarked(rest), [_file(name)])
    return None


def _left_out(text: str, *, own: bool) -> Said | None:
    """Media that were not exported: `<Media omitted>` (what follows is its name or caption), `image omitted`."""
    first, _, rest = text.strip(MARKS + " ").partition("\n")
    angles = _IN_ANGLES.fullmatch(first.strip(MARKS + " ")) if "<" in first else None
    if angles is not None and (kind := media_kind(angles[1])) is not None:
        name = rest.strip()
        if name and _FILE_NAME.fullmatch(name):
            return _with_files("", [_file(name)])
        return _with_files(_unmarked(rest), [Attachment(type=kind)])
    before, mark, phrase = text.rpartition(LRM)
    if not mark:
        before, phrase = "", text
        if not own and "omitted" not in text:
            return None
    kind = None if "\n" in phrase.strip() else media_kind(phrase.strip(MARKS + " "))
    if kind is None or (kind == "media" and not is_english(f"<{phrase.strip()}>")):
        return None
    if not mark and not own and not is_english(f"<{phrase.strip()}>"):
        return None  # somebody may say such words
    if " • " in before:
        return _with_files("", [Attachment(_unmarked(before.partition(" • ")[0]), kind)])
    return _with_files(_unmarked(before), [Attachment(type=kind)])


def _unmarked(text: str) -> str:
    return text.strip(MARKS + " \n")


def _file(name: str) -> Attachment:
    ending = name.rpartition(".")[2].casefold()
    if name.startswith("STK-") or "-STICKER-" in name:
        return Attachment(name, "sticker")
    return Attachment(name, next((kind for kind, endings in _KINDS.items() if ending in endings), "document"))


def _poll(text: str) -> Said | None:
    """A poll or an event: a word and a colon, then the question and the answers line by line."""
    first, _, rest = text.partition("\n")
    if not rest.strip() or not _POLL.fullmatch(first.strip(" ")):
        return None
    lines: list[str] = []
    for line in rest.split("\n"):
        option = _OPTION.fullmatch(line.lstrip(MARKS)) if line.startswith(LRM) else None
        lines.append(f"- {option[1]}" if option and option[1] else _unmarked(line))
    return Said("\n".join(line for line in lines if line.strip()), placeholder=True)
