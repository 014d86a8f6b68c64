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
    rb"(?=[A-Za-z0-9_\-]*[A-Za-z_\-])(?P<prefix>(?:[a-z][a-z0-9]{0,15}|[A-Z][A-Z0-9]{1,11})(?:[_-][A-Za-z0-9]{1,9}){0,3})"
    rb"(?P<joint>[_-])(?P<body>[A-Za-z0-9_\-+/]{20,4096})"
)
_PLAIN = re.compile(rb"(?:[A-Za-z]+|\d+)?(?:[_\-/+]+(?:[A-Za-z]+|\d+)?)*\Z")
"""Words and numbers with signs between them: nothing that a generator makes."""
_ID = re.compile(rb"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z|[0-9a-f]+\Z|[0-9A-F]+\Z")
_DIGEST_SIZES = (32, 40, 48, 64)
_BASE64_REST = re.compile(rb"[A-Za-z0-9+/_\-]*={0,2}")
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")
_VOWEL = re.compile("[aeiou]", re.I)
_GLUED = re.compile(rb"[A-Z]{3,6}(?P<body>[0-9a-f]{24,100})(?![A-Za-z0-9])")
_HEAD = re.compile(rb"(?:[A-Za-z0-9_\-*]{1,40}[.:|~/]){1,3}\Z")

_SAID = Marks("said", "said_weakly", "said_otherwise")
_TOKEN, _KEY, _OTHER = range(3)
_SAID_ELSEWHERE = re.compile("|".join(sorted(WORDS["said_elsewhere"])))
GUESSED = frozenset({"prefixed-token", "compound-token", "said-token"})
"""Rules of this module: their tokens are known by no fixed shape."""
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
    if _ID.match(data, start, end):
        return _claimed(data, start, end, said) if end - start in _DIGEST_SIZES else None
    run = data[start:end]
    if not _could_be(run):
        return None
    before = data[start - 1] if start else 32
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
    return _claimed(data, start, end, said)


_DIGITS = b"0123456789"
_LOWER = bytes(range(97, 123))
_UPPER = bytes(range(65, 91))


def _could_be(run: bytes) -> bool:
    """A cheap look: digits and letters are mixed, and it is no path."""
    digits = len(run) - len(run.translate(None, _DIGITS))
    return 2 <= digits < len(run) and run.count(b"/") <= 3 + len(run) // 24


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
    return digits >= max(2, size // 20) and upper >= least and lower >= least and looks_random(text, 16)


def _words(prefix: str) -> list[str]:
    found: list[str] = []
    for part in _NO_WORD.split(prefix.lower()):
        if part and not part.isdigit():
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
        if not words or any(w in _ID_WORDS or w in _PUBLIC_WORDS for w in words):
            return None
        marked = any(w in _TOKEN_WORDS for w in words)
        if _fits(said, start, start + len(run), prefix, run[cut - 1], body, marked):
            break
    if is_placeholder(body):
        return None
    stop = start + len(run)
    if run[cut - 1] == "_" and stop < len(data) and data[stop] in b"+/=":
        rest = _BASE64_REST.match(data, stop)
        stop = rest.end() if rest else stop
    return Token(start, stop, "prefixed-token", cut)


def _fits(said: Said, start: int, end: int, prefix: str, joint: str, body: str, marked: bool) -> bool:
    size = len(body)
    plain = re.sub(r"[-_+/]", "", body)
    if word_share(body) > 0.25 or len(plain) < 0.85 * size or (joint == "-" and ("+" in body or "/" in body)):
        return False
    if is_uuid(body):
        return joint == "_" and (marked or _odd(prefix))
    if plain != body and len(prefix) < 3 and not marked:
        return False  # the middle of a base64 run has a `-` or `_` now and then
    if (
        is_hex(body)
        or (plain == plain.lower() and looks_random(plain, 16))
        or (plain.isupper() and looks_random(plain, 16))
    ):
        if marked:
            return size >= 20
        return size >= 24 and plain == body and ((_odd(prefix) and size >= 26) or said.credential(start, end))
    if not mixed(plain):
        return False
    if marked:
        return size >= 20
    return size >= 28 or said.credential(start, end)


def _composite(data: bytes, start: int, end: int, said: Said) -> Token | None:
    """`name.random`, `id:random`: several parts, the last of them long and random. The whole is masked."""
    body = data[start:end].rstrip(b"=")
    if len(body) < 40:
        return None
    plain = body.decode()
    if not (mixed(plain.replace("/", "").replace("+", "")) or (is_hex(plain) and said.credential(start, end))):
        return None
    low = max(0, start - 120)
    head = _HEAD.search(data, low, start)
    if head is None or (head.start() and data[head.start() - 1] in b"/.:\\@%"):
        return None
    front = head[0].decode("latin-1")
    words = _words(front)
    if any(w in _ID_WORDS or w in _PUBLIC_WORDS for w in words) or front.lower().startswith(
        ("http", "file", "h1:", "data:")
    ):
        return None
    if "/" in front and not said.credential(head.start(), end):
        return None
    if said.otherwise(low, start):
        return None
    stop = end + len(data[end : end + 2]) - len(data[end : end + 2].lstrip(b"="))
    return Token(head.start(), stop, "compound-token", len(front))


_PATH = re.compile("[a-z_]{3,}/|.*/[a-z_]{4,}(?:/|$)")


class Said:
    """Where a text speaks of credentials, and where of other things; looked for at the first question."""

    __slots__ = ("_data", "_marks", "_places", "_text")

    def __init__(self, text: str, data: bytes) -> None:
        self._text, self._data = text, data
        self._marks: list[tuple[int, int]] | None = None
        self._places: list[int] = []

    def _between(self, low: int, high: int) -> list[tuple[int, int]]:
        if self._marks is None:
            self._marks = sorted((at, kind) for kind, at in _SAID.find(self._data))
            self._places = [at for at, _ in self._marks]
        if not self._marks:
            return []
        return self._marks[bisect_left(self._places, low) : bisect_left(self._places, high)]

    def otherwise(self, low: int, high: int) -> bool:
        """Is something other than a credential spoken of between these places?"""
        return any(kind == _OTHER for _, kind in self._between(low, high))

    def credential(self, start: int, end: int, weakly: bool = False) -> bool:
        """Do the words on the line of data[start:end] (or the line before it) call it a credential, and nothing else?"""
        data = self._data
        low = max(0, start - _LINE)
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
        return b"\x80" in data[low:high] and _SAID_ELSEWHERE.search(self._text, low, high) is not None


def _claimed(data: bytes, start: int, end: int, said: Said) -> Token | None:
    """A random run without a prefix: only when the line says what it is."""
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
    if is_hex(run):
        strong = False
        if size not in _DIGEST_SIZES or not said.credential(start, end):
            return None
    else:
        strong = mixed(run.replace("/", "").replace("+", ""))
        if (not strong and not looks_random(run, 20)) or not said.credential(start, end, weakly=strong):
            return None
    if is_placeholder(run):
        return None
    return Token(start, end, "said-token")
