"""Other ways to read the same text: invisible characters dropped, look-alikes folded, escapes decoded, joints closed.

A view is made only where the text calls for it, and maps every place back to the characters it was made from.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache

from palace_pipeline.redaction.scanning import Program
from palace_pipeline.redaction.spelled import SPELLED_SIGNS, spelled
from palace_pipeline.redaction.verdicts import pair_share, word_share
from palace_pipeline.redaction.view import Builder, View

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
_LOOKALIKES = (
    dict(
        zip(
            "аеорсхкѕуіјԁԛԝһпвтмнԍґАЕОРСХКІЅТВМНЈУЅԌԚԜᏀᎪΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρτυχιкκϲϳɑɡıȷӏⅼѵаᴀᴄᴏᴢ",
            "aeopcxksyijdqwhnbtmhgrAEOPCXKISTBMHJYSGQWGAABEZHIKMNOPTYXovptuxikkcjagijllvaAcoz",
            strict=True,
        )
    )
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\uff0d\ufe63", "-")
    | {"\uff3f": "_"}
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
    rb"\x1b[\[\]]|[A-Za-z0-9+/_=:.~\-]\\{1,4}[/_\-.+=~*:@!#$%&]|\\{1,4}(?:[uxU]\{?[0-9a-fA-F]{2}|[01][0-7]{2})|%[2-7][0-9A-Fa-f]|"
    rb"%0[AaDd]|</(?:code|b|strong|em|kbd|mark|span|tt|i|u)>|<wbr|[=:/@_0-9]\*\*[A-Za-z0-9]|[A-Za-z0-9_\-]{4}(?:\*|\*\*|\x60)[A-Za-z0-9_\-]{4}|"
    rb"&#[xX]?[0-9a-fA-F]{2,6};|&[a-zA-Z]{2,8};|=(?:3[DdA]|5F|2D|2E)|(?:=[2-7][0-9A-F]){3}|\\{2,4}[\"nrt]|"
    rb"[A-Za-z0-9_\-][\x00-\x08\x0b\x0c\x0e-\x1a][A-Za-z0-9_\-]|"
    rb"(?:\\(?:0000)?[2-7][0-9a-fA-F] ?){3}|\\(?:0000)?[2-7][0-9a-fA-F] [A-Za-z0-9_\-.]{12}"
)
_ESCAPES = Program(_ESCAPE)
_DECODE = (
    r"(?P<style>(?:\\(?:0000)?[2-7][0-9a-fA-F](?:\s|(?=[^0-9a-fA-F]))){3,}|\\(?:0000)?[2-7][0-9a-fA-F] (?=[A-Za-z0-9_\-.]{12}))"
    r"|(?P<ansi>\x1b\[[0-?]{0,32}[ -/]{0,4}[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\))"
    r"|(?P<unicode>\\{1,4}(?:[ux]\{(?P<braced>[0-9a-fA-F]{1,6})\}|u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2})"
    r"|U(?P<eight>00[01][0-9a-fA-F]{5})|(?P<octal>[01][0-7]{2})))"
    r"|(?P<control>\\{1,4}[nrt](?![A-Za-z]:))|(?P<plain>\\{1,4}(?P<char>[\"'/_\-.+=~*:@!#$%&()\[\]{}<>|`?]))"
    r"|(?P<percent>%[0-7][0-9A-Fa-f])|(?P<bytes>(?:%[89A-Fa-f][0-9A-Fa-f]){2,12})"
    r"|(?P<markup></?(?:code|b|strong|em|kbd|mark|span|tt|i|u)(?: [^<>]{0,80})?>|<wbr ?/?>|\*\*"
    r"|(?<=[A-Za-z0-9_\-])[*`](?=[A-Za-z0-9_\-])"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a]+)"
    r"|(?P<entity>&(?:[a-zA-Z]{2,8}|#\d{2,7}|#[xX][0-9a-fA-F]{2,6});)|(?P<printable>(?:=[2-7][0-9A-F]){3,}|=(?:3D|5F|2D|2E))"
)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}


_HEX_KINDS = ("unicode", "braced", "four", "two", "eight", "octal")


@lru_cache(256)
def _decoder(folded: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What everything to decode starts with, and its pattern. `folded`: characters of the text that stand for others.

    Runs of other characters are passed over by the first, ten times as fast as the many branches of the second. Runs of
    invisible characters, and of those that stand for one other, are decoded at once: places in them stay in step.
    """
    first = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1b\\%<*`&={re.escape(folded)}]")
    sizes = {size: re.escape("".join(c for c in folded if min(len(fold(c)), 2) == size)) for size in range(3)}
    branches = [f"[{characters}]{'' if size == 2 else '+'}" for size, characters in sizes.items() if characters]
    return first, re.compile(_DECODE + (f"|(?P<fold>{'|'.join(branches)})" if branches else ""))


def _decoded(found: re.Match[str]) -> str:
    kind = found.lastgroup or ""
    if kind == "fold":
        return "".join(map(fold, found[0]))
    if kind in _HEX_KINDS:
        code = int(found["octal"], 8) if found["octal"] else int(next(filter(None, found.group(*_HEX_KINDS[1:]))), 16)
        return chr(code) if code < 0x110000 else found[0]
    if kind == "style":
        return bytes.fromhex("".join(part.strip()[-2:] for part in found[0].split("\\")[1:])).decode("ascii", "replace")
    if kind == "printable":
        return bytes.fromhex(found[0].replace("=", "")).decode("ascii", "replace")
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


_SPOKEN = ("control", "entity", "markup")
"""What text is full of and hides nothing."""
_DROPPED = re.compile(r"\*\*|[*`\x00-\x1a]+")


def normalised(text: str, data: bytes, *, apart: bool = False) -> View | None:
    """The text with variants folded and escapes decoded, around the places that need it; None when nothing does.

    A star, a backtick or a control character between two letters is dropped; with `apart` it parts them.
    """
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
            elif plain.isalnum() or plain in "-_":
                lookalike.append(char)
        folded = "".join(strange)
        if telling or lookalike:
            trigger = _trigger("".join(telling), "".join(lookalike))
            places += [found.span() for found in trigger.finditer(text)]
            places.sort()
    if not places:
        return None
    first, pattern = _decoder(folded)
    builder = Builder("normalised")
    for low, high in regions(places, len(text)):
        position = low
        for sign in first.finditer(text, low, high):
            found = pattern.match(text, sign.start(), high) if sign.start() >= position else None
            if found is None:
                continue
            builder.add(text[position : found.start()], position, found.start() - position)
            plain = _decoded(found)
            if plain == "" and found.lastgroup == "markup" and _DROPPED.fullmatch(found[0]):
                inside = (
                    text[found.start() - 1 : found.start()].isalnum() and text[found.end() : found.end() + 1].isalnum()
                )
                builder.view.glued = builder.view.glued or inside
                plain = " " if apart and inside else ""
            elif found.lastgroup not in _SPOKEN and found[0][-1:] not in "\"'\\`":
                builder.view.changed = True
            builder.add(plain, found.start(), found.end() - found.start())
            position = found.end()
        builder.add(text[position:high], position, high - position)
        builder.add("\n", high, 0)
    return builder.done()


# --- joined view ------------------------------------------------------------------------------------------------------

_TOKEN = rb"[A-Za-z0-9+/_=.~!@#$%^&*:\-]"
_QUOTE = rb"\\{0,3}[\"'`]"
_NEWLINE = rb"(?:[ \t]{0,4}\\?\r?\n)?[ \t]{0,40}"
_LITERALS = (
    rb"(?:"
    + _QUOTE + _NEWLINE + rb"(?:[+.&]|\.\.|\|\||<>|\+\+|~)?" + _NEWLINE + rb"(?:[+.&~]|\.\.)?[ \t]{0,4}[frbuNE]?" + _QUOTE
    + rb"|\{\d?\}" + _QUOTE + rb"\.format\(" + _QUOTE + rb"|%s" + _QUOTE + rb" ?[%,] ?\(?" + _QUOTE + rb"|\$\{" + _QUOTE
    + rb"|" + _QUOTE + rb";?[ \t]{0,4}\r?\n[ \t]{0,24}[\w$.]{1,32}[ \t]{0,4}"
    + rb"(?:\+=|\.=|=[ \t]?[\w$.]{1,32}[ \t]?[+.])[ \t]{0,4}" + _QUOTE
    + rb")"
)  # fmt: skip
_STAMP = (
    rb"(?:(?:\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d[.,\dZ+:]{0,12}\]?"
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.\-]{1,32} [\w./\-]{1,32}(?:\[\d{1,7}\])?:) (?:[\[<]?[A-Za-z]{4,8}[\]>]?:? )?"
    rb"|[\w.\-]{2,24} {1,12}\| )?"
)
"""What a log puts before each line."""
_LINE_FRONT = rb"[ \t]{0,24}" + _STAMP + rb"(?:[>|+#*\x80] ?|// ?|\d{1,6}[\t:|] ?){0,3}[ \t]{0,24}"
_WRAP = rb"(?:(?:[ \t]{0,4}[\\=|\x60\x80]?\r?\n|<br ?/?>)" + _LINE_FRONT + rb"|\\{1,3}r?\\{0,3}n|\t)"
_CUT_LITERAL = Program(rb"(" + _TOKEN + _LITERALS + rb")" + _TOKEN)
"""The last character may be the first before the next cut: pieces of one character are pieces as well."""
_LINE_END = rb"[A-Za-z0-9+/_=.~:\-$]{10}" + _WRAP + rb"[A-Za-z0-9+/_=.~\-]"
_CUT_LINE = Program(_LINE_END)
_BARE_JOINTS = (b'""', b"''", b"``")
_LAST_RUN = re.compile(rb"[A-Za-z0-9+/_.~=:\-$]*")
_TAB_REST = re.compile(rb"[A-Za-z0-9+/_=~\-]{6,512}")
_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123))
_FILE_NAME = re.compile(rb"[\w\-]{1,60}\.[a-z]{1,5}")
_UNBROKEN = re.compile(rb"[A-Za-z0-9+/_=.~:\-$]{10,100}")


_ESCAPED, _LITERAL, _LIST, _SPELLED = range(4)
SIGNS = (
    _ESCAPE,
    _TOKEN + rb"{2}" + _LITERALS + _TOKEN,
    rb"(?:join|concat|CONCAT|implode)\(",
    *SPELLED_SIGNS,
)
"""What a text has in it that has to be read in another way (text that is not ASCII is always looked at)."""


def called_for(text: str, data: bytes, seen: Collection[int]) -> bool:
    """Can there be any view of a text in which these of the `SIGNS` are?"""
    return bool(seen) or not text.isascii() or _broken(data)


def views_of(
    text: str, data: bytes, seen: Collection[int] = range(len(SIGNS)), closed: Callable[[int, int], bool] | None = None
) -> Iterator[View]:
    """The views a text calls for, in which these of the `SIGNS` may be. `closed`: see `joined`."""
    if _ESCAPED in seen or not text.isascii():
        view = normalised(text, data)
        if view is not None and view.text != text:
            yield view
            if view.glued and view.changed and (other := normalised(text, data, apart=True)):
                yield other
    view = joined(text, data, seen, closed=closed)
    if view is not None and view.text != text:
        yield view
        if view.glued and (other := joined(text, data, seen, apart=True, closed=closed)):
            yield other
    kinds = [sign - _SPELLED for sign in seen if sign >= _SPELLED]
    if kinds:
        yield from spelled(text, data, kinds)


_JOINING = (b"join(", b"concat(", b"CONCAT(", b"implode(")
_COMMA = re.compile(_QUOTE + rb"[ \t]{0,4},\s{0,24}" + _QUOTE)
REACH = 1000
"""Characters of a list of literals that are looked at on each side of the call that joins them."""


def _listed(data: bytes) -> list[tuple[int, int]]:
    """Commas between literals that a call puts together."""
    found: set[tuple[int, int]] = set()
    for word in _JOINING:
        at, seen = data.find(word), 0
        while at >= 0:
            low = max(seen, at - REACH)
            seen = min(len(data), at + REACH)
            found.update(comma.span() for comma in _COMMA.finditer(data, low, seen))
            at = data.find(word, seen)
    return sorted(found)


def joined(
    text: str,
    data: bytes,
    seen: Collection[int] = range(len(SIGNS)),
    *,
    apart: bool = False,
    closed: Callable[[int, int], bool] | None = None,
) -> View | None:
    """The text with wrapped lines and joined literals closed up; None when nothing looks like a cut token.

    `closed` tells of the break of a line at text[start:end] that no token goes over.

    Two quotes side by side join literals in some languages, and in most stand between two texts: `apart` leaves them.
    """
    joints: list[tuple[int, int]] = []
    if _LITERAL in seen:
        joints += ((spans[0][0] + 1, spans[0][1] - 1) for spans in _CUT_LITERAL.spans(data, resume=1))
    if _LIST in seen:
        joints += _listed(data)
    bare = {joint for joint in joints if data[slice(*joint)] in _BARE_JOINTS}
    if apart:
        joints = [joint for joint in joints if joint not in bare]
    literals = set(joints)
    last = 0
    for spans in _CUT_LINE.spans(data) if _broken(data) else ():
        start, end = spans[0][0] + 10, spans[0][1] - 1
        if data[start] == 9 and not _random_after(data, end):
            continue
        # the next line of a block that has been cut before, or a line that ends like the first part of a token
        chained = last and _UNBROKEN.fullmatch(data, last, start) is not None
        if (
            (chained or not (_plain_end(data[start - 10 : start]) or _file_ends(data, start)))
            and not (closed is not None and closed(start, end))
            and (chained or _cut_like(data[max(0, start - 64) : start]))
        ):
            joints.append((start, end))
            last = end
    if not joints:
        return None
    joints.sort()
    builder = Builder("joined")
    builder.view.glued = bool(bare) and not apart
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


def _broken(data: bytes) -> bool:
    """Is there anything that breaks lines?"""
    return b"\n" in data or b"\\" in data or b"\t" in data or b"<br" in data


def _random_after(data: bytes, at: int) -> bool:
    """May a token go on here behind a tab? Columns of words and numbers, and names of files, do not."""
    found = _TAB_REST.match(data, at)
    run = found[0] if found else b""
    letters = len(run) - len(run.translate(None, _LETTERS))
    odd = letters < len(run) or run[1:] != run[1:].lower()
    return bool(letters) and odd and run.count(b"/") < 2 and word_share(run.decode()) < 0.3


def _plain_end(tail: bytes) -> bool:
    """Are these ten characters the end of a word, number, path or label? Then a look at the whole run is spared."""
    if (
        tail[-1] == 58
        or (not tail.translate(None, b"0123456789.:-/") and tail.count(b".") > 1)
        or _file_or_number(tail)
    ):
        return True
    core = tail.translate(None, b"._-/=~+:")
    return len(core) > 6 and core.isalpha() and pair_share(core.decode()) >= 0.65


def _file_ends(data: bytes, end: int) -> bool:
    """Is this the end of a path to a file?"""
    dot = data.rfind(b".", end - 6, end)
    slash = data.rfind(b"/", max(0, end - 64), dot) if dot > 0 else -1
    return slash >= 0 and _FILE_NAME.fullmatch(data, slash + 1, end) is not None


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


_NO_HEX = re.compile("[^0-9a-fA-F]")


def decoded_hex(body: str) -> str | None:
    """The text under a number in hex of 32 digits or more, or None when there is none."""
    if len(body) < 32 or len(body) % 2 or _NO_HEX.search(body, 0, 2 * MAX_DECODED):
        return None
    if len(body) > 64 and _printable(bytes.fromhex(body[:64])) is None:
        return None
    return _printable(bytes.fromhex(body[: 2 * MAX_DECODED]))


def decoded_base64(run: str) -> str | None:
    """The text under a run of base64 (either alphabet) or hex, or None when there is none."""
    body = run.rstrip("=")
    if body[:2] in ("0x", "0X"):
        body = body[2:]
    if (plain := decoded_hex(body)) is not None:
        return plain
    body = body.replace("-", "+").replace("_", "/")
    if body.count("A", 0, 96) * 5 >= min(len(body), 96) and (wide := _wide(_b64(body[: MAX_DECODED * 4 // 3]))):
        return wide
    if len(body) >= 32 and _BASE32.fullmatch(body) and (plain := _printable(_b32(body[:MAX_DECODED]))):
        return plain
    if _printable(_b64(body[:64]), partial=True) is None:
        return None
    return _printable(_b64(body[: MAX_DECODED * 4 // 3]), partial=True)


_BASE32 = re.compile("[A-Z2-7]+")


def _b32(body: str) -> bytes:
    usable = body[: len(body) - (len(body) % 8 in (1, 3, 6))]
    try:
        return base64.b32decode(usable + "=" * (-len(usable) % 8))
    except (binascii.Error, ValueError):
        return b""


def _wide(data: bytes) -> str | None:
    """The text under UTF-16 of mostly ASCII characters, which has a zero in every second place."""
    pairs = len(data) // 2
    if pairs < 12 or data.count(0) < 0.8 * pairs or any(data[1:32:2]):
        return None
    return _printable(data[: 2 * pairs].decode("utf-16-le", "replace").encode())


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
    return text if odd == 0 or (odd == text.count("\0") and odd * 8 <= len(text)) else None
