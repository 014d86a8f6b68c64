"""Other ways to read the same text: invisible characters dropped, look-alikes folded, escapes decoded, joints closed.

A view is made only where the text calls for it, and maps every place back to the characters it was made from.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from palace_pipeline.redaction.scanning import Program
from palace_pipeline.redaction.verdicts import pair_share, word_share

_SWAP_OUT = bytes.maketrans(b"?\x7f", b"\x80?")
_PUNCTUATION = (("：", ":"), ("＝", "="), ("“", '"'), ("”", '"'), ("‘", "'"), ("’", "'"), ("「", '"'), ("」", '"'))
REGION = 700
"""Characters looked at on each side of what calls for a view: longer than any token but the longest."""
MAX_DECODED = 1 << 20


def flat(text: str) -> bytes:
    """One byte a code point: ASCII as it is, everything else 0x80, so that byte offsets are character offsets.

    Full-width colons and typographic quotes count as the ASCII ones. Lone surrogates are like any other character.
    """
    if text.isascii():
        return text.encode("ascii")
    for wide, narrow in _PUNCTUATION:
        if wide in text:
            text = text.replace(wide, narrow)
    return text.replace("?", "\x7f").encode("ascii", "replace").translate(_SWAP_OUT)


@dataclass(slots=True)
class View:
    """A derived text. Piece i starts at `starts[i]` in the view and stands for source[origins[i]:origins[i]+lengths[i]];
    a verbatim piece has the same length on both sides."""

    text: str
    kind: str
    starts: list[int] = field(default_factory=list[int])
    origins: list[int] = field(default_factory=list[int])
    lengths: list[int] = field(default_factory=list[int])
    sizes: list[int] = field(default_factory=list[int])
    firm: set[int] = field(default_factory=set[int])
    """Places in the view where the source itself says that two parts belong together (joined literals)."""

    def source(self, start: int, end: int) -> tuple[int, int]:
        """The span of the source that view[start:end] was made from."""
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, end - 1) - 1
        return self._place(first, start, False), self._place(last, end - 1, True)

    def _place(self, piece: int, position: int, after: bool) -> int:
        origin, length = self.origins[piece], self.lengths[piece]
        if length == self.sizes[piece]:
            return origin + position - self.starts[piece] + (1 if after else 0)
        return origin + (length if after else 0)

    def cuts(self, start: int, end: int) -> list[int]:
        """Places inside view[start:end] where the source was cut and put together."""
        first = bisect_right(self.starts, start)
        last = bisect_right(self.starts, end - 1)
        return [
            self.starts[i]
            for i in range(first, last)
            if self.origins[i] != self.origins[i - 1] + self.lengths[i - 1] or self.lengths[i] != self.sizes[i]
        ]


class _Builder:
    def __init__(self, kind: str) -> None:
        self.parts: list[str] = []
        self.view = View("", kind)
        self.length = 0

    def add(self, text: str, origin: int, length: int) -> None:
        if text:
            self.view.starts.append(self.length)
            self.view.origins.append(origin)
            self.view.lengths.append(length)
            self.view.sizes.append(len(text))
            self.parts.append(text)
            self.length += len(text)

    def done(self) -> View:
        self.view.text = "".join(self.parts)
        return self.view


def regions(places: list[tuple[int, int]], length: int, reach: int = REGION) -> list[tuple[int, int]]:
    """Stretches around the places, merged where they touch."""
    out: list[tuple[int, int]] = []
    for start, end in places:
        low, high = max(0, start - reach), min(length, end + reach)
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return out


# --- normalised view --------------------------------------------------------------------------------------------------

# Letters that look like ASCII ones but do not decompose to them (Cyrillic, Greek, a few Latin and Armenian).
_LOOKALIKES = dict(
    zip(
        "аеорсхкѕуіјԁԛԝһпвтмнԍґАЕОРСХКІЅТВМНЈУЅԌԚԜᏀᎪΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρτυχιкκϲϳɑɡıȷӏⅼѵаᴀᴄᴏᴢ",
        "aeopcxksyijdqwhnbtmhgrAEOPCXKISTBMHJYSGQWGAABEZHIKMNOPTYXovptuxikkcjagijllvaAcoz",
        strict=True,
    )
)


_UNUSUAL = re.compile("[^\x00-\x7f\u4e00-\u9fff\u3041-\u3096\u30a1-\u30fa\uac00-\ud7a3]")
"""Outside ASCII, Han, kana and Hangul, whose characters stand for themselves."""
_PLAIN: set[str] = set()
"""Other characters known to stand for themselves; grows with what is read (there are a million at most)."""


@lru_cache(8192)
def fold(char: str) -> str:
    """What a character is in plain sight: '' for the invisible and for combining marks, the ASCII form of a variant."""
    category = unicodedata.category(char)
    if category in ("Cf", "Mn", "Me") or 0xFE00 <= ord(char) <= 0xFE0F or char in "\u115f\u1160\u3164\uffa0":
        return ""
    if char in _LOOKALIKES:
        return _LOOKALIKES[char]
    plain = unicodedata.normalize("NFKD", char)
    if plain != char and len(plain) <= 4:
        kept = "".join(c for c in plain if unicodedata.category(c) not in ("Mn", "Cf"))
        if kept.isascii():
            return kept
        if len(kept) == 1 and kept in _LOOKALIKES:
            return _LOOKALIKES[kept]
    return char


_ESCAPE = (
    rb"\x1b[\[\]]|[A-Za-z0-9+/_=:.~\-]\\{1,4}[/_\-.+=~*:@!#$%&]|\\{1,4}[ux][0-9a-fA-F]{2}|%[2-7][0-9A-Fa-f]|%0[AaDd]|"
    rb"</(?:code|b|strong|em|kbd|mark|span|tt|i|u)>|[=:/@]\*\*[A-Za-z0-9]|&#[xX]?[0-9a-fA-F]{2,5};|&(?:amp|quot|lt|gt|apos);|=3[DdA]|\\{2,4}[\"nrt]"
)
_ESCAPES = Program(_ESCAPE)
_DECODE = (
    r"(?P<ansi>\x1b\[[0-?]{0,32}[ -/]{0,4}[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\))"
    r"|(?P<unicode>\\{1,4}u\{?(?P<code>[0-9a-fA-F]{4})\}?)|(?P<hex>\\{1,4}x(?P<code2>[0-9a-fA-F]{2}))"
    r"|(?P<control>\\{1,4}[nrt](?![A-Za-z]:))|(?P<plain>\\{1,4}(?P<char>[\"'/_\-.+=~*:@!#$%&()\[\]{}<>|`?]))"
    r"|(?P<percent>%[0-7][0-9A-Fa-f])|(?P<bytes>(?:%[89A-Fa-f][0-9A-Fa-f]){2,12})"
    r"|(?P<markup></?(?:code|b|strong|em|kbd|mark|span|tt|i|u)(?: [^<>]{0,80})?>|\*\*)"
    r"|(?P<entity>&(?:amp|quot|lt|gt|apos|#\d{2,6}|#[xX][0-9a-fA-F]{2,5});)"
)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}


@lru_cache(256)
def _decoder(folded: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What everything to decode starts with, and its pattern. `folded`: characters of the text that stand for others.

    Runs of other characters are passed over by the first, ten times as fast as the many branches of the second. Runs of
    invisible characters, and of those that stand for one other, are decoded at once: places in them stay in step.
    """
    first = re.compile(rf"[\x1b\\%<*&{re.escape(folded)}]")
    sizes = {size: re.escape("".join(c for c in folded if min(len(fold(c)), 2) == size)) for size in range(3)}
    branches = [f"[{characters}]{'' if size == 2 else '+'}" for size, characters in sizes.items() if characters]
    return first, re.compile(_DECODE + (f"|(?P<fold>{'|'.join(branches)})" if branches else ""))


def _decoded(found: re.Match[str]) -> str:
    kind = found.lastgroup or ""
    if kind == "fold":
        return "".join(map(fold, found[0]))
    if kind in ("unicode", "code"):
        return chr(int(found["code"], 16))
    if kind in ("hex", "code2"):
        return chr(int(found["code2"], 16))
    if kind == "control":
        return _CONTROL[found[0][-1]]
    if kind in ("plain", "char"):
        return found["char"]
    if kind == "percent":
        return chr(int(found[0][1:], 16))
    if kind == "bytes":
        return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace")
    if kind == "entity":
        return html.unescape(found[0])
    return ""


@lru_cache(256)
def _trigger(telling: str, lookalike: str) -> re.Pattern[str]:
    parts = [f"[{re.escape(telling)}]+"] if telling else []
    if lookalike:
        group = f"[{re.escape(lookalike)}]"
        parts.append(rf"[A-Za-z0-9][_\-.:/=]?{group}|{group}{{1,3}}[_\-.:/=]?[A-Za-z0-9]")
    return re.compile("|".join(parts))


def normalised(text: str, data: bytes) -> View | None:
    """The text with variants folded and escapes decoded, around the places that need it; None when nothing does."""
    places = [spans[0] for spans in _ESCAPES.spans(data)]
    folded = ""
    if not text.isascii():
        telling: list[str] = []
        lookalike: list[str] = []
        strange: list[str] = []
        for char in sorted(set(_UNUSUAL.findall(text)) - _PLAIN):
            plain = fold(char)
            if plain == char:
                _PLAIN.add(char)
                continue
            strange.append(char)
            if plain == "" or (plain.isalnum() and char not in _LOOKALIKES):
                telling.append(char)
            elif plain.isalnum():
                lookalike.append(char)
        folded = "".join(strange)
        if telling or lookalike:
            trigger = _trigger("".join(telling), "".join(lookalike))
            places += [found.span() for found in trigger.finditer(text)]
            places.sort()
    if not places:
        return None
    first, pattern = _decoder(folded)
    builder = _Builder("normalised")
    for low, high in regions(places, len(text)):
        position = low
        for sign in first.finditer(text, low, high):
            found = pattern.match(text, sign.start(), high) if sign.start() >= position else None
            if found is None:
                continue
            builder.add(text[position : found.start()], position, found.start() - position)
            builder.add(_decoded(found), found.start(), found.end() - found.start())
            position = found.end()
        builder.add(text[position:high], position, high - position)
        builder.add("\n", high, 0)
    return builder.done()


# --- joined view ------------------------------------------------------------------------------------------------------

_TOKEN = rb"[A-Za-z0-9+/_=.~!@#$%^&*:\-]"
_QUOTE = rb"\\{0,3}[\"'`]"
_NEWLINE = rb"(?:[ \t]{0,4}\\?\r?\n)?[ \t]{0,40}"
_LITERALS = (
    _QUOTE + _NEWLINE + rb"(?:[+.&]|\.\.|\|\||<>|\+\+)?" + _NEWLINE + rb"(?:[+.&]|\.\.)?[ \t]{0,4}[frbu]?" + _QUOTE
)
_WRAP = rb"(?:[ \t]{0,4}[\\=]?\r?\n[ \t]{0,24}(?:[>|+#*] ?|// ?|\d{1,6}[\t:|] ?)?[ \t]{0,24}|\\{1,3}r?\\{0,3}n)"
_CUT_LITERAL = Program(_TOKEN + rb"{4}" + _LITERALS + _TOKEN)
_LINE_END = rb"[A-Za-z0-9+/_=.~:\-]{10}" + _WRAP + rb"[A-Za-z0-9+/_=.~\-]"
_CUT_LINE = Program(_LINE_END)
_LAST_RUN = re.compile(rb"[A-Za-z0-9+/_.~=:\-]*")
_ANY = Program(_ESCAPE + rb"|" + _TOKEN + rb"{4}" + _LITERALS + _TOKEN + rb"|" + _LINE_END)


_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123))
_FILE_NAME = re.compile(rb"[\w\-]{1,60}\.[a-z]{1,5}")
_UNBROKEN = re.compile(rb"[A-Za-z0-9+/_=.~:\-]{10,100}")


def views_of(text: str, data: bytes) -> Iterator[View]:
    """The views a text calls for; one cheap look decides for plain text that there are none."""
    telling = _ANY.found(data)
    if telling or not text.isascii():
        view = normalised(text, data)
        if view is not None and view.text != text:
            yield view
    if telling:
        view = joined(text, data)
        if view is not None and view.text != text:
            yield view


def joined(text: str, data: bytes) -> View | None:
    """The text with wrapped lines and joined literals closed up; None when nothing looks like a cut token."""
    joints = [(spans[0][0] + 4, spans[0][1] - 1) for spans in _CUT_LITERAL.spans(data)]
    literals = set(joints)
    last = 0
    for spans in _CUT_LINE.spans(data):
        start, end = spans[0][0] + 10, spans[0][1] - 1
        # the next line of a block that has been cut before, or a line that ends like the first part of a token
        if (last and _UNBROKEN.fullmatch(data, last, start)) or (
            not _plain_end(data[start - 10 : start]) and _cut_like(data[max(0, start - 64) : start])
        ):
            joints.append((start, end))
            last = end
    if not joints:
        return None
    joints.sort()
    builder = _Builder("joined")
    index = 0
    for low, high in regions(joints, len(text), 400):
        position = low
        while index < len(joints) and joints[index][1] <= high:
            start, end = joints[index]
            if start >= position:
                builder.add(text[position:start], position, start - position)
                position = end
                if (start, end) in literals:
                    builder.view.firm.add(builder.length)
            index += 1
        builder.add(text[position:high], position, high - position)
        builder.add("\n", high, 0)
    return builder.done()


@lru_cache(65536)
def _plain_end(tail: bytes) -> bool:
    """Are these ten characters the end of a word, number, path or label? Then a look at the whole run is spared."""
    if tail[-1] == 58 or _file_or_number(tail):
        return True
    if tail.count(b".") > 1 and not tail.translate(None, b"0123456789.:-/"):
        return True
    core = tail.translate(None, b"._-/=~+:")
    return len(core) > 6 and core.isalpha() and pair_share(core.decode()) >= 0.65


def _file_or_number(run: bytes) -> bool:
    """Does a path end here in a number (of an issue) or in the name of a file?"""
    last = run[run.rfind(b"/") + 1 :]
    return len(last) < len(run) and (
        (last.isdigit() and len(last) > 2) or (b"." in last and _FILE_NAME.fullmatch(last) is not None)
    )


def _cut_like(before: bytes) -> bool:
    """May this end in the first part of a token? Ten characters that are no word, path or number."""
    found = _LAST_RUN.match(before[::-1])
    run = found[0][::-1].strip(b"=") if found else b""
    if len(run) < 10 or run[-1:] == b":" or (run[-1:] == b"." and not any(48 <= c < 58 for c in run)):
        return False
    if run.isalpha() and run[1:].islower():
        return len(run) >= 12 and pair_share(run.decode()) < 0.45
    if _file_or_number(run):
        return False
    if len(run) - len(run.translate(None, _LETTERS)) < 3 or not run[run.rfind(b"=") + 1 :].translate(
        None, b"0123456789.:-/"
    ):
        return False  # a number, a time, an address after its name
    return any(word_share(run[-size:].decode()) < 0.5 for size in (12, 16, 24))


# --- encoded runs -----------------------------------------------------------------------------------------------------


def decoded_base64(run: str) -> str | None:
    """The text under a run of base64 (either alphabet) or hex, or None when there is none."""
    body = run.rstrip("=")
    if len(body) >= 32 and len(body) % 2 == 0:
        try:
            plain = _printable(bytes.fromhex(body[:64] if len(body) > 64 else body))
            if plain is not None:
                return _printable(bytes.fromhex(body[: 2 * MAX_DECODED]))
        except ValueError:
            pass  # not hex: base64 is tried next
    body = body.replace("-", "+").replace("_", "/")
    if _printable(_b64(body[:64]), partial=True) is None:
        return None
    return _printable(_b64(body[: MAX_DECODED * 4 // 3]), partial=True)


def _b64(body: str) -> bytes:
    usable = body if len(body) % 4 != 1 else body[:-1]
    try:
        return base64.b64decode(usable + "=" * (-len(usable) % 4))
    except (binascii.Error, ValueError):
        return b""


def _printable(data: bytes, partial: bool = False) -> str | None:
    if len(data) < 12:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not partial or error.start < len(data) - 4:
            return None
        text = data[: error.start].decode("utf-8")
    odd = sum(not c.isprintable() and c not in "\n\r\t" for c in text)
    return text if odd == 0 else None
