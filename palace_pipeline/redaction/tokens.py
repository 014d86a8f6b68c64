"""Tokens of vendors nobody told us about: a short prefix and a random rest, or a random run that the words beside it claim.

What a generator made is told from ids and digests by three things: the words of its prefix (`call_` and `msg_` name
ids, `sk_` and `pat_` credentials), how random the rest is, and what is said around it on its line.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

from palace_pipeline.redaction.verdicts import is_hex, is_placeholder, is_uuid, looks_random, pair_share, word_share
from palace_pipeline.redaction.words import WORDS, Marks

_ID_WORDS = WORDS["id_prefix"]
_TOKEN_WORDS = WORDS["token_prefix"]
_PUBLIC_WORDS = WORDS["public_prefix"]
_PREFIXED = re.compile(
    rb"(?=[A-Za-z0-9_\-]*[A-Za-z_\-])(?P<prefix>(?:[A-Z]?[a-z][a-z0-9]{0,15}|[A-Z][A-Z0-9]{1,11})(?:[_-][A-Za-z0-9]{1,9}){0,3})"
    rb"(?P<joint>[_-])(?P<body>[A-Za-z0-9_\-+/]{20,4096})"
)
_PLAIN = re.compile(rb"(?:[A-Za-z]+|\d+)?(?:[_\-/+]+(?:[A-Za-z]+|\d+)?)*\Z")
"""Words and numbers with signs between them: nothing that a generator makes."""
NUMBER = re.compile(
    rb"(?:([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9A-F]{8}-(?:[0-9A-F]{4}-){3}[0-9A-F]{12})|[0-9a-f]+|[0-9A-F]+)\Z"
)
"""A number in hex; group 1: a UUID."""
_KEY_ID = re.compile(
    rb"(?<![0-9A-Za-z/@-])(?:[0-9a-f]{24}|[0-9a-f]{32}|[0-9a-f]{64}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}):\Z",
    re.I,
)
"""The id of a key before its secret: `id:secret`, both in hex."""
DIGEST_SIZES = (32, 40, 48, 64)
_DIGEST_NAME = re.compile(rb"(?:sha\d{1,3}|md5|blake\w{0,3}|h1|digest|integrity|checksum|etag)[=:-][+/_-]*\Z", re.I)
_BASE64_REST = re.compile(rb"[A-Za-z0-9+/_\-]*={0,2}")
_NEXT_PART = re.compile(rb"\.([A-Za-z0-9_\-]{12,512})")
_SEALED = ("AgA", "AgB", "AgC", "AgD")
"""How what is encrypted for a cluster begins: nothing that has to go."""
_FIRST_WORD = re.compile(rb"([A-Za-z]+)[_-]([A-Za-z]*)")
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")
_VERSION = re.compile(r"v\d{1,2}")
_ULID = re.compile("0[0-9][0-9a-hjkmnp-tv-z]{24}", re.I)
"""An id that begins with its time."""
_ENDS = re.compile("[.:|~/]")
_NAMES_SECRET = ("token", "secret", "apikey", "api", "privatekey", "accesskey")
_VOWEL = re.compile("[aeiou]", re.I)
_GLUED = re.compile(rb"[A-Z]{3,6}(?P<body>[0-9a-f]{24,100})(?![A-Za-z0-9])")
_ACCOUNT = re.compile(r"[sb]\.|\d{8,20}[:|~]")
"""What makes a shorter random run its secret: the number of an account, or the kind of a token."""
_HEAD = re.compile(rb"(?:[A-Za-z0-9_\-*]{1,40}[.:|~/]){1,3}\Z")

SAID = Marks("said", "said_weakly", "said_otherwise")
"""Words that speak of credentials or of other things, in small letters."""
_TOKEN, _KEY, _OTHER = range(3)
_SAID_ELSEWHERE = re.compile("|".join(sorted(WORDS["said_elsewhere"])))
GUESSED = frozenset({"prefixed-token", "compound-token", "said-token", "password-said"})
"""Rules whose finds are known by no fixed shape."""
_LINE = 96
"""Characters before a token that are looked at for what is said of it; half as many after it."""


@dataclass(slots=True, frozen=True)
class Token:
    """data[start:end] is a token; `prefix` characters of it are no secret."""

    start: int
    end: int
    rule: str
    prefix: int = 0


def unknown_token(data: bytes, start: int, end: int, said: Said) -> Token | None:
    """The token in the unbroken run data[start:end] (letters, digits, `+/_-`), or None; `said` of the same text."""
    if _PLAIN.match(data, start, end):
        return None
    number = NUMBER.match(data, start, end)
    if number is not None:
        return None if number.lastindex else said_number(data, start, end, said)
    run = data[start:end]
    if not _could_be(run):
        return None
    before = data[start - 1] if start else 32
    if before in b"=:-_+/" and _DIGEST_NAME.search(data, max(0, start - 13), start):
        return None
    found = _PREFIXED.match(run) if before not in b"/=+." or _after_scheme(data, start) else None
    if found is not None:
        token = _prefixed(data, start, found, said)
        if token is not None:
            return token
    glued = _GLUED.match(data, start, end)
    if glued and looks_random(glued["body"].decode()):
        return Token(start, end, "prefixed-token", glued.start("body") - start)
    if before in b".:|~/" or data[end : end + 1] in (b".", b":", b"|", b"~"):
        token = _composite(data, start, end, said)
        if token is not None:
            return token
    named = _FIRST_WORD.match(run)
    if named and named[1].decode().lower() in _ID_WORDS and named[2].decode().lower() not in _TOKEN_WORDS:
        return None
    return _claimed(data, start, end, said)


def said_number(data: bytes, start: int, end: int, said: Said) -> Token | None:
    """The number in hex data[start:end] when it is a token: of a digest's length, and what is said around it calls it one."""
    size = end - start
    if size not in DIGEST_SIZES:
        return None
    if size in (32, 64) and data[start - 1 : start] == b":":
        pair = _KEY_ID.search(data, max(0, start - 66), start)
        if pair is not None:
            return Token(pair.start(), end, "compound-token", start - pair.start())
    return _claimed(data, start, end, said) if said.credential(start, end) else None


_DIGITS = b"0123456789"
_LOWER = bytes(range(97, 123))
_UPPER = bytes(range(65, 91))


def _could_be(run: bytes) -> bool:
    """A cheap look: digits and letters are mixed (or capitals and small letters, behind a prefix), and it is no path."""
    size = len(run)
    digits = size - len(run.translate(None, _DIGITS))
    if digits < 2:
        upper = size - len(run.translate(None, _UPPER)) if b"_" in run or b"-" in run else 0
        return 4 < upper < size - 8 and b"/" not in run
    return digits < size and run.count(b"/") <= 3 + size // 24


def _after_scheme(data: bytes, start: int) -> bool:
    return data[start - 2 : start] in (b"//", b"q=") or data[start - 1 : start] == b"="


def mixed(text: str) -> bool:
    """Are small and capital letters and digits all well mixed in it, and no words?"""
    data = text.encode("ascii", "replace")
    size = len(data)
    digits = size - len(data.translate(None, _DIGITS))
    upper = size - len(data.translate(None, _UPPER))
    lower = size - len(data.translate(None, _LOWER))
    least = max(3, size // 8)
    enough = digits >= max(2, size // 20) or (size >= 22 and pair_share(text) < 0.45)
    return enough and upper >= least and lower >= least and looks_random(text, 16)


def _words(prefix: str) -> list[str]:
    found: list[str] = []
    for part in _NO_WORD.split(prefix.lower()):
        if part and not part.isdigit() and not _VERSION.fullmatch(part):
            found.append(part)
            found.append(part.rstrip("0123456789"))
    return found


def _odd(prefix: str) -> bool:
    """Is this prefix no word of a language: with a digit, in capitals, or with letters that do not go together?"""
    letters = "".join(c for c in prefix if c.isalpha())
    return len(letters) < len(prefix) or prefix.isupper() or not _VOWEL.search(letters) or pair_share(letters) < 0.5


def _prefixed(data: bytes, start: int, found: re.Match[bytes], said: Said) -> Token | None:
    run = found[0].decode()
    cut = 0
    while True:
        cut = min((i for i in (run.find("_", cut), run.find("-", cut)) if i >= 0), default=-1) + 1
        if not 2 <= cut <= 28 or len(run) - cut < 16:
            return None
        prefix, body = run[: cut - 1], run[cut:]
        words = _words(prefix)
        named = bool(words) and (words[-1].endswith(_NAMES_SECRET) or words[-1] in ("sk", "pat"))
        if not words or any(w in _PUBLIC_WORDS or (w in _ID_WORDS and not named) for w in words):
            return None
        if prefix[1:2].islower() and prefix[0].isupper() and pair_share(prefix) < 0.6:
            return None  # base64
        marked = any(w in _TOKEN_WORDS or w.endswith(_NAMES_SECRET) for w in words)
        if _fits(said, start, start + len(run), prefix, run[cut - 1], body, marked):
            break
    if is_placeholder(body):
        return None
    stop = start + len(run)
    if run[cut - 1] == "_" and stop < len(data) and data[stop] in b"+/=":
        rest = _BASE64_REST.match(data, stop)
        stop = rest.end() if rest else stop
    return Token(start, _extended(data, stop), "prefixed-token", cut)


def _extended(data: bytes, stop: int) -> int:
    """The end of a token with the random parts that follow it behind dots."""
    part = _NEXT_PART.match(data, stop)
    while part is not None and _random_part(part[1].decode()):
        stop = part.end()
        part = _NEXT_PART.match(data, stop)
    return stop


def _random_part(text: str) -> bool:
    return looks_random(text, 12) or (len(text) >= 16 and word_share(text) < 0.3 and pair_share(text) < 0.45)


def _fits(said: Said, start: int, end: int, prefix: str, joint: str, body: str, marked: bool) -> bool:
    size = len(body)
    plain = re.sub(r"[-_+/]", "", body)
    if (
        (word_share(body) >= 0.25 and not is_hex(body))
        or len(plain) < 0.85 * size
        or (joint == "-" and ("+" in body or "/" in body))
    ):
        return False
    if is_uuid(body):
        return (joint == "_" and (marked or _odd(prefix))) or (marked and prefix.lower().endswith(_NAMES_SECRET))
    if plain != body and len(prefix) < 3 and size < 40 and not marked and ("_" in body or "-" in body):
        return False  # base64 has a `-` or `_` now and then
    if not marked and _ULID.fullmatch(body):
        return False
    if (
        is_hex(body)
        or (plain == plain.lower() and looks_random(plain, 16))
        or (plain.isupper() and looks_random(plain, 16))
    ):
        if marked:
            return size >= 20
        if size < 24 or (plain != body and not all(map(is_hex, body.split("_")))):
            return False
        if _odd(prefix) and not (joint == "-" and is_hex(body) and size in (40, 64)):
            return size >= 26 or said.credential(start, end)
        least = 32 if is_hex(body) else 26
        return (joint == "_" and size >= least and len(prefix) <= 8 and not said.file(end)) or said.credential(
            start, end
        )
    if not mixed(plain):
        return False
    if marked:
        return size >= 20
    if body.count("_") + body.count("-") > 1 + size // 16:
        return False  # words with lines between them
    return size >= (22 if joint == "_" else 24) or said.credential(start, end)


def _composite(data: bytes, start: int, end: int, said: Said) -> Token | None:
    """`name.random`, `id:random`: several parts, the last of them long and random. The whole is masked."""
    body = data[start:end].rstrip(b"=")
    if len(body) < 24:
        return None
    plain = body.decode()
    if not (mixed(plain.replace("/", "").replace("+", "")) or (is_hex(plain) and said.credential(start, end))):
        return None
    low = max(0, start - 120)
    head = _HEAD.search(data, low, start)
    if head is None or (head.start() and data[head.start() - 1] in b"/.:\\@%"):
        return None
    front = head[0].decode("latin-1")
    if len(body) < 40 and not (
        _ACCOUNT.fullmatch(front) or any(mixed(part) for part in re.split("[.:|~/]", front) if len(part) >= 16)
    ):
        return None
    words = _words(_ENDS.split(front)[0])
    if any(w in _ID_WORDS or w in _PUBLIC_WORDS for w in words) or front.lower().startswith(
        ("http", "file", "h1:", "data:")
    ):
        return None
    if "/" in front and not said.credential(head.start(), end):
        return None
    if said.otherwise(low, start):
        return None
    stop = end + len(data[end : end + 2]) - len(data[end : end + 2].lstrip(b"="))
    return Token(head.start(), _extended(data, stop), "compound-token", len(front))


_PATH = re.compile("[a-z_]{3,}/|.*/[a-z_]{4,}(?:/|$)")


class Said:
    """Where a text speaks of credentials, and where of other things.

    `places`: (index of the key of `SAID`, start, end), in any order.
    """

    __slots__ = ("_data", "_elsewhere", "_marks", "_places", "_text")

    def __init__(self, text: str, data: bytes, places: list[tuple[int, int, int]]) -> None:
        self._text, self._data = text, data
        marks = ((start, SAID.list_of(data, index, start, end)) for index, start, end in places)
        self._marks = sorted((start, kind) for start, kind in marks if kind is not None)
        self._places = [start for start, _ in self._marks]
        self._elsewhere = not text.isascii() and _SAID_ELSEWHERE.search(text) is not None

    @property
    def silent(self) -> bool:
        """Is there no such word at all?"""
        return not self._marks and not self._elsewhere

    def _between(self, low: int, high: int) -> list[tuple[int, int]]:
        return self._marks[bisect_left(self._places, low) : bisect_left(self._places, high)]

    def file(self, end: int) -> bool:
        """Does the name of a file end here (its extension follows)?"""
        return self._data[end : end + 1] == b"." and self._data[end + 1 : end + 2].isalpha()

    def otherwise(self, low: int, high: int) -> bool:
        """Is something other than a credential spoken of between these places?"""
        return any(kind == _OTHER for _, kind in self._between(low, high))

    def credential(self, start: int, end: int, weakly: bool = False) -> bool:
        """Do the words on the line of data[start:end] (or the line before it) call it a credential, and nothing else?"""
        data = self._data
        low = max(0, start - _LINE)
        first = bisect_left(self._places, low)
        if not self._elsewhere and (first == len(self._places) or self._places[first] >= end + _LINE // 2):
            return False
        line = data.rfind(b"\n", low, start)
        if line > low and not data[line + 1 : start].strip(b" \t\"'`>*-|"):
            line = data.rfind(b"\n", low, line)
        low = max(low, line + 1)
        stop = data.find(b"\n", end, end + _LINE // 2)
        high = stop if stop >= 0 else min(len(data), end + _LINE // 2)
        telling = False
        for at, kind in self._between(low, high):
            if kind == _OTHER:
                if at < end + 24:
                    return False
            elif kind == _TOKEN or weakly:
                telling = telling or not start <= at < end
        if telling:
            return True
        return self._elsewhere and _SAID_ELSEWHERE.search(self._text, low, high) is not None


def _claimed(data: bytes, start: int, end: int, said: Said) -> Token | None:
    """A random run without a prefix: only when the line says what it is."""
    if said.silent:
        return None
    while end > start and data[end - 1] in b"-_/+":
        end -= 1
    run = data[start:end].decode()
    size = len(run)
    if size < 20 or size > 512 or "/" in run.strip("/")[:1] or run.count("/") > 2 + size // 20:
        return None
    if (start and data[start - 1] in b"/=.@%$#\\") or data[end : end + 1] in (b"(", b"/", b"@"):
        return None
    if word_share(run) > 0.3 or _PATH.match(run):
        return None
    lines = run.count("_") + run.count("-")
    if is_hex(run):
        strong = False
        if size == 40 and run.isupper():
            return None  # the fingerprint of a key
        if size not in DIGEST_SIZES or not said.credential(start, end):
            return None
    else:
        if lines > 1 + size // 12 and not is_uuid(run[-36:]):
            return None  # words with lines between them
        strong = mixed(run.replace("/", "").replace("+", ""))
        if (not strong and not looks_random(run, 20)) or not said.credential(start, end, weakly=strong):
            return None
    if size > 100 and run.startswith(_SEALED):
        return None
    if is_placeholder(run) or data[start - 4 : start] in (b"ENC(", b"ENC["):
        return None
    return Token(start, end, "said-token")
