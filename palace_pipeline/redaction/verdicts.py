"""Is this string a secret, or does it only stand where one could? Entropy, placeholders, words.

Everything in here is a pure function of a short string (callers bound its length).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache

from palace_pipeline.redaction.words import WORDS

# The 190 letter pairs that make up 90% of English words and identifiers; random letters hit one of them in 28%.
_COMMON_PAIRS = frozenset(group[0] + second for group in WORDS["common_pairs"] for second in group[1:])
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)")

# Words that stand for a secret in examples. Allowed by exact value or as the whole of a dashed phrase, never as a part
# of something random.
_PLACEHOLDER_WORDS = WORDS["placeholder"]
WEAK_PASSWORDS = WORDS["weak_password"]
_CODE_WORDS = WORDS["code"]
EXAMPLES = _CODE_WORDS | _PLACEHOLDER_WORDS | WEAK_PASSWORDS | WORDS["name_password"] | WORDS["name_strong"]
_MASKED = re.compile(r"([xX?_#-])\1{3,}|(.)\2{5,}|\.{3}|…|\*{3}|•{3}|(?:[xX][-_]?){6,}", re.S)
_REPEATED = re.compile(r"(.)\1\1|…|[xX][-_]?[xX][-_]?[xX]", re.S)
"""What is in everything that `_MASKED` finds; half as dear to look for."""
_LONG_RUN = re.compile(r"(.)\1{5,}|\.{3}|…|\*{4}|•{3}", re.S)
_CODE_START = re.compile(
    r"\$[A-Za-z_]\w*(?:$|[/.:\[>-])|\$[{(]|\$\{\{|%\w+%|\{\{|<%|<[\w /\\'\"_.-]*>?$|"
    r"process\.env|os\.(?:environ|getenv)|env\.|ENV\[|"
    r"secrets?\.[A-Za-z_]|vars?\.[A-Za-z_]|import\.meta|System\.getenv|getenv|self\.|this\.|\[(?:REDACTED|WITHHELD)|"
    r"data\.|local\.|module\.|config\.|settings\.|options\.|params\.|args\.|vault:|arn:|ref\+|op://|!(?:Ref|Sub|GetAtt|ImportValue|vault|secret|env|reference|Join)\b|[&@][a-z_.]+$|"
    r"base64:$|\\[$]"
)
_REGEX = re.compile(r"^[\w.:]+\(\)$|\[\^?(?:A-Z|a-z|0-9|\\w)|[\])]\{\d+,?\d*\}|\(\?[:=!P]")
_CALL = re.compile(r"[A-Za-z_][\w.:>-]*[(\[]")
_IDENTIFIER = re.compile(r"[A-Za-z_$]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*[;,]?")
_PATH = re.compile(r"(?:~|\.{1,2})?/(?:[\w.@+-]+/)+[\w.@+-]*$|[A-Za-z]:\\|(?:[\w.-]+/){2,}[\w-]+\.\w{1,5}$|file:")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,15}://")
_VERSION_OR_DATE = re.compile(r"v?\d+(?:[.\-/:T ]\d+){1,7}(?:Z|[a-z]\w{0,8})?$|\d{1,14}$|[\d.,:/-]*[.,:/-][\d.,:/-]*$")


_DIGITS = b"0123456789"
_UPPER = bytes(range(65, 91))
_LOWER = bytes(range(97, 123))
_NO_ALNUM = bytes(set(range(256)) - set(_DIGITS + _UPPER + _LOWER))
_KINDS = bytes.maketrans(_DIGITS + _UPPER + _LOWER, b"0" * 10 + b"A" * 26 + b"a" * 26)


_N_LOG_N = [0.0, *(count * math.log2(count) for count in range(1, 257))]


def _n_log_n(count: int) -> float:
    return _N_LOG_N[count] if count <= 256 else count * math.log2(count)


def entropy(text: str) -> float:
    """Shannon entropy in bits per character with the Miller-Madow correction for short strings."""
    if not text:
        return 0.0
    total = len(text)
    counts = list(map(text.count, dict.fromkeys(text))) if total <= 128 else list(Counter(text).values())
    plain = math.log2(total) - sum(map(_N_LOG_N.__getitem__ if total <= 256 else _n_log_n, counts)) / total
    return plain + (len(counts) - 1) / (2 * total * math.log(2))


def pair_share(letters: str) -> float:
    """Share of neighbouring letters that are common pairs of English: about 0.9 in words, 0.28 in random letters."""
    low = letters.lower()
    if len(low) < 2:
        return 1.0
    return sum(map(_COMMON_PAIRS.__contains__, map(str.__add__, low, low[1:]))) / (len(low) - 1)


@lru_cache(4096)
def word_share(text: str) -> float:
    """Share of the string that is made of word-like letter pieces (camelCase and snake_case are cut into words)."""
    if not text:
        return 0.0
    covered = 0
    for piece in _PIECE.findall(text):
        size = len(piece)
        least = (
            0.65 if size >= 6 else 0.75 if size == 5 else 1.0
        )  # two of three pairs are common by chance in one of five
        if (size >= 4 or (size == 3 and len(text) < 24)) and pair_share(piece) >= least:
            covered += size
    return covered / len(text)


def is_hex(text: str) -> bool:
    return _HEX.fullmatch(text) is not None


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def looks_random(text: str, least: int = 10) -> bool:
    """True for what a generator made: enough characters, mixed, no words, high entropy for its length.

    Digits alone, words, identifiers and dates are not random; lower-case hex is when it is long enough.
    """
    return len(text) >= least and _random(text)


@lru_cache(8192)
def _random(text: str) -> bool:
    data = text.encode("ascii", "replace")
    size = len(data)
    core = data.translate(None, _NO_ALNUM)
    digits = size - len(data.translate(None, _DIGITS))
    letters = len(core) - digits
    if not letters:
        return False
    words = word_share(text)
    if words >= 0.5:
        return False
    distinct = len(set(data))
    if distinct < min(8, size // 2 + 1):
        return False
    if _REPEATED.search(text) and (_MASKED if size < 24 else _LONG_RUN).search(text):
        return False
    bits = entropy(text)
    if is_hex(text):
        return digits >= 2 and bits >= (2.6 if size < 24 else 3.0)
    if len(core) < size * 0.7:
        return False
    upper = size - len(data.translate(None, _UPPER))
    if bits < min(3.9, 1.0 + 0.5 * math.log2(size) * 1.1):
        return False
    if digits:
        kinds = core.translate(_KINDS)
        changes = kinds.count(b"0a") + kinds.count(b"a0") + kinds.count(b"0A") + kinds.count(b"A0")
        return changes >= 2 and digits >= max(1, size // 24) and (words < 0.35 or changes >= 5)
    if upper and upper < letters:
        kinds = core.translate(_KINDS)
        turns = kinds.count(b"aA") + kinds.count(b"Aa")
        return words < 0.3 and (turns >= size * 0.28 or (size >= 16 and pair_share(core.decode()) < 0.4))
    return size >= 16 and pair_share(core.decode()) < 0.45


_NO_WORD = re.compile("[^a-z0-9]+")


@lru_cache(8192)
def is_placeholder(value: str) -> bool:
    """True for what stands in examples in the place of a secret: `<key>`, `${VAR}`, `your-key-here`, `xxxx`, masks."""
    if not value or _CODE_START.match(value) or "${" in value or "{{" in value or "](" in value:
        return True
    if ("(" in value or "[" in value or "]" in value or ")" in value) and _REGEX.search(value):
        return True
    low = value.lower()
    if "[redacted" in low or "[withheld" in low:
        return True
    if low.endswith(("example", "examplekey", "_here", "-here")):
        return True
    if len(set(value)) <= 3 and not value.isdigit():
        return True
    if (
        _REPEATED.search(value)
        and _MASKED.search(value)
        and (len(value) < 24 or word_share(_MASKED.sub("", value)) > 0.5 or len(_MASKED.sub("", value)) < 14)
    ):
        return True
    words = [w for w in _NO_WORD.split(low) if w]
    return bool(words) and all(w in _PLACEHOLDER_WORDS or len(w) == 1 or set(w) == {"x"} for w in words)


def is_code(value: str) -> bool:
    """True for an unquoted value that is an expression: a call, a dotted name, a keyword, a path, a URL."""
    low = value.lower().rstrip(";,")
    return (
        low in _CODE_WORDS
        or low.partition(";")[0].partition(",")[0] in _CODE_WORDS
        or _CALL.match(value) is not None
        or (_IDENTIFIER.fullmatch(value) is not None and _is_name(value))
    )


_ODD_CASE = re.compile("[a-z][A-Z]{2,}[a-z]")
_KIND_TURN = re.compile("(?<=[a-z])[A-Z0-9]|(?<=[0-9])[A-Za-z]|(?<=[A-Z])[0-9]|(?<=[A-Z]{2})[a-z]")


def _is_name(identifier: str) -> bool:
    if len(identifier) >= 16 and len(_KIND_TURN.findall(identifier)) >= 0.3 * len(identifier):
        return False  # no one names things so
    odd = len(_ODD_CASE.findall(identifier))
    if odd and word_share(identifier) < (0.34 if odd == 1 else 0.6):
        return False
    if word_share(identifier) > 0.5:
        return True
    return (
        not any(c.isdigit() for c in identifier) and not looks_random(identifier, 8) and pair_share(identifier) >= 0.4
    )


def is_reference(value: str) -> bool:
    """True for what only points somewhere: a path, a URL without credentials, a date, a version, a plain number."""
    return (
        _URL.match(value) is not None or _PATH.match(value) is not None or _VERSION_OR_DATE.fullmatch(value) is not None
    )


_DIGIT = re.compile("[0-9]")
_LETTER = re.compile("[^\\W\\d_]")
_SYMBOL = re.compile(r"[^\w\-. /:,]")
"""A sign that words, names, paths and lists do not have."""
_BLANK = re.compile("[ \t\n]")
_LISTED = re.compile(r"[(){}\[\]].*[,:;=(){}]")
_TIME = re.compile(r"1[5-9]\d{11,17}")
_BRACKET = re.compile(r"[()\[\]{}<>]")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


_CACHE_KEY = re.compile(r"(?:[A-Za-z][\w.]*[-_:/])+(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})")
_SIGN = re.compile(r"[^\w\s]")


def dense(value: str) -> bool:
    """Letters, digits and many different signs without a word: a generator's, and no expression."""
    return len(value) >= 32 and len(set(_SIGN.findall(value))) >= 5 and word_share(value) < 0.2 and entropy(value) >= 4


_PART = r"(?:[a-z]*\d{0,4}[a-z]?|[A-Z]+\d{0,4}|[a-z]?[A-Z][a-z]+)"
_SNAKE = re.compile(rf"_*{_PART}(?:_+{_PART}){{1,8}}")


def _snake(value: str) -> bool:
    """Is this a name in code: short parts with lines between them, one of them a word?"""
    if "_" not in value or _SNAKE.fullmatch(value) is None:
        return False
    parts = [part for part in value.split("_") if part]
    return max(map(len, parts)) <= 12 and any(len(p) >= 3 and p.isalpha() and pair_share(p) >= 0.5 for p in parts)


@lru_cache(8192)
def token_like(value: str, *, quoted: bool, strong: bool) -> bool:
    """Verdict on the value of a `key`, `token` or `secret` name. `strong`: the name can hardly mean anything else."""
    if len(value) < (8 if strong else 16) or is_placeholder(value):
        return False
    if is_reference(value) and not (strong and "://" not in value and looks_random(value.replace("/", ""), 32)):
        return False
    if _BLANK.search(value):
        return False
    if not quoted and ((is_code(value) and ("(" in value or not looks_random(value, 16))) or _snake(value)):
        return False
    if _DOTTED.fullmatch(value) and word_share(value) > 0.25:
        return False
    if quoted and _LISTED.search(value) and not dense(value):
        return False
    if not strong and _CACHE_KEY.fullmatch(value):
        return False
    if is_uuid(value):
        return strong
    if value.isdigit():
        return strong and len(value) >= 15 and not _TIME.fullmatch(value)
    if looks_random(value, 10 if strong else 16):
        return strong or not is_hex(value) or len(value) >= 32
    if not strong:
        return False
    mixed = _DIGIT.search(value) and _LETTER.search(value) and word_share(value) < 0.6 and entropy(value) >= 2.5
    if len(value) >= 24 and mixed and entropy(value) >= 3.8 and not is_code(value):
        return True
    return bool(mixed) and len(value) >= 10 and not _BRACKET.search(value)


_APP_PASSWORD = re.compile("[a-z]{4}(?: [a-z]{4}){3}")
"""Four groups of four letters, as mail providers make them for programs."""


_ADDRESS = re.compile("0x[0-9a-fA-F]{1,8}")
_WORD_AND_NUMBER = re.compile(r"[A-Za-z]+(?:\d+|\d{4,}[A-Za-z]+)")
_BEGUN_CALL = re.compile(r"[\w.]+\(")
_OPTION = re.compile(r"--?[a-z]+(?:-[a-z]+)+(?:=|$)")
_NO_VALUE = re.compile(r"[a-z_]+(?:\|[a-z_]+(?::[\w,]+)?)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_NUMBERS = re.compile(r"[\d.,:/-]+[./:-][\d.,:/-]*")
_SIGNED_WORD = re.compile(r"[\W_]*([A-Za-z]+)[\W_]{0,2}")
_HUMP = re.compile("[a-z][A-Z]")


@lru_cache(8192)
def password_like(value: str, *, quoted: bool, prose: bool = False) -> bool:
    """Verdict on the value of a password name: six characters with a digit or a symbol, or random letters."""
    size = len(value)
    if size < (4 if quoted else 6) or size > 256 or is_placeholder(value) or value.lower() in WEAK_PASSWORDS:
        return False
    if _URL.match(value) or _PATH.match(value) or _ADDRESS.fullmatch(value):
        return False
    if not quoted:
        plain = _WORD_AND_NUMBER.fullmatch(value) and _DIGIT.split(value, maxsplit=1)[0].lower() not in EXAMPLES
        if (is_code(value) and not plain) or _BEGUN_CALL.match(value) or _OPTION.match(value):
            return False
    if _NO_VALUE.fullmatch(value):
        return False  # validation rules, names of variables
    if _DOTTED.fullmatch(value) and word_share(value) >= 0.5:
        return False
    digit = _DIGIT.search(value) is not None
    symbol = _SYMBOL.search(value) is not None
    if " " in value:
        made = _APP_PASSWORD.fullmatch(value) is not None and pair_share(value.replace(" ", "")) < 0.6
        return quoted and ((digit and symbol and size <= 64) or made)
    letters = _LETTER.search(value) is not None
    odd = size >= 8 and _ODD_CASE.search(value) is not None and word_share(value) < 0.34
    if prose:
        return (
            (digit and letters)
            or (symbol and (digit or letters) and value[-1:] not in "?!")
            or looks_random(value)
            or odd
        )
    if digit and letters:
        return not _VERSION_OR_DATE.fullmatch(value)
    if digit:
        return quoted and size >= 6 and not _NUMBERS.fullmatch(value)
    if symbol:
        word = _SIGNED_WORD.fullmatch(value)
        return letters and (
            word is None or (len(word[1]) >= 8 and word_share(value) < 0.3 and pair_share(word[1]) < 0.5)
        )
    if size < 8 or not letters:
        return False
    humps = len(_HUMP.findall(value))
    return odd or pair_share(value) < 0.45 or looks_random(value, 8) or (humps >= 2 and word_share(value) < 0.5)


_SIGNS = frozenset("!@#$%^&*?")
_GENERATED = re.compile(r"[\w+=~-]+")
_NO_PASSWORD = re.compile(
    r"\?\w+=|[()\[\]{}<>\"'`\\,;|]|://|^\w+=|@\d+\.|@[\w.-]+\.[a-z]{2,}$|^[a-z.]+@[a-z]+\d*$|&\w+=|%[0-9A-F]{2}|^[@$%-]|^[\w-]*[:/].*[/:]|^#\w+$|^[A-Za-z]+#\d+$|"
    r"^[\d.,%$€+-]+$|^\$?[\d.]+[a-zA-Z]{0,3}[!?]?$|\.\w{2,4}$"
)


@lru_cache(4096)
def password_shaped(value: str) -> bool:
    """Is this word of a line one that people (or generators) make for a password? Strict: nothing else says so."""
    size = len(value)
    if not 8 <= size <= 64 or _NO_PASSWORD.search(value) or is_placeholder(value):
        return False
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if not digits or letters < 3 or "..." in value:
        return False
    if re.search(r"@v?\d+(?:\.|$)|[*?][.\-]|[.\-/]\*", value) or (
        re.search("[-./]", value) and word_share(value) > 0.35
    ):
        return False  # versions, patterns of files, identifiers
    inner = sum(c in _SIGNS for c in value[1:-1])
    if inner or (value[-1] in "!#$*@" and digits >= 2 and letters >= 4):
        return not re.search(r"[a-z]\+\+|\*\*", value)
    if not value.isalnum() and (size > 32 or not _GENERATED.fullmatch(value)):
        return False
    mixed = any(c.isupper() for c in value) and any(c.islower() for c in value)
    if size < 10 or not mixed or word_share(value) >= 0.3:
        return False
    return looks_random(value, 10) if digits >= 2 else pair_share(re.sub("[^A-Za-z]", "", value)) < 0.4


_DIGIT_INSIDE = re.compile(r"[a-z]\d+[A-Z]|[A-Z]\d+[a-z]")
_BETWEEN = re.compile(r"(?<=[A-Za-z])\d{1,2}(?=[A-Za-z])")


@lru_cache(4096)
def secret_enough(body: str) -> bool:
    """Verdict on the variable part of a vendor token: anything but a placeholder, a word phrase or a pattern."""
    if len(set(body)) < min(6, max(3, len(body) // 3)):
        return False
    if is_placeholder(body) and not looks_random(body, 16):
        return False
    if entropy(body) < (2.2 if len(body) < 20 else 2.7):
        return False
    share = word_share(body)
    if share < 0.65 or (share < 0.8 and sum(c.isdigit() for c in body) >= len(body) / 6):
        return True
    # Letters that go together by chance: who writes words puts no digits between capital and small ones, nor again and again,
    # and does not change between capitals and small letters in the middle of them.
    if share >= 0.9:
        return False
    if _DIGIT_INSIDE.search(body) is not None or len(_BETWEEN.findall(body)) > 1:
        return True
    return body.isalpha() and _ODD_CASE.search(body) is not None
