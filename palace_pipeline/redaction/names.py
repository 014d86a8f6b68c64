"""Secrets known by the name beside them: `DB_PASSWORD=…`, `"api_key": "…"`, `--token …`, "my key is …", 密码是….

The name decides how much the value has to look like a secret: a password may be short, a plain `key` must be random.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from palace_pipeline.redaction.scanning import Program
from palace_pipeline.redaction.verdicts import (
    WEAK_PASSWORDS,
    dense,
    is_hex,
    is_placeholder,
    is_uuid,
    looks_random,
    password_like,
    password_shaped,
    token_like,
    word_share,
)
from palace_pipeline.redaction.words import WORDS

Strength = Literal["password", "strong", "weak", "phrase", "paper"]


@dataclass(slots=True, frozen=True)
class Assigned:
    """A value that a name claims to be secret: data[start:end]."""

    start: int
    end: int
    strength: Strength
    name: str


def _one_of(before: str, *words: str) -> list[bytes]:
    return [(sign + word).encode() for sign in before for word in words]


STEMS: tuple[bytes, ...] = (
    *b"""key token secret passw passphrase passcode pwd credential auth bearer cookie session psk mnemonic license licence _sas
    webhook salt identified contrasena passwort kennwort senha wachtwoord parola clave mdp schluessel geheimnis jeton secreto
    chave cle_ zugangscode seedphrase recoveryphrase motdepasse""".split(),
    b"contrase\x80a", b"schl\x80ssel", b"mot depasse", b"motde passe", b"mot de passe",
    *_one_of("_-.", "dsn"), *_one_of("_-. \"'>/", "pass"), *_one_of("_-. \"'>", "pw"),
    *_one_of("_-. \"'", "pat"), *_one_of("_-.", "sk"), *_one_of("\n\t,;{(&?", "pass"),
    *(owner + sign + b"phrase" for owner in (b"seed", b"recovery") for sign in (b" ", b"_", b"-")),
    *(
        owner + word
        for owner in b"root bind store key db admin become smtp user trust wifi".split()
        for word in (b"pass", b"pw")
    ),
)  # fmt: skip
"""What a credential name has in it, in small letters."""
_REST = (
    rb"(?i)(?:(?<=identified) +(?:with [a-z_0-9]{3,40} +)?by)?([a-z0-9_.\-]{0,32}+)(?:\\{0,3}[\"'\x60]|[\])}*_]){0,5}+"
)
"""The rest of a name, and what closes it."""
_VALUE_OF = rb"(?:value|default|val|content)\\{0,3}[\"']?\s{0,3}[:=>]"
_VALUES = Program(rb"(?i)" + _VALUE_OF)
_AFTER_PAIR = re.compile(
    _REST + rb"((?:[ \t]{0,4}[,;{][^{}<>\n]{0,40}?)?[ \t]{0,4}[,;{]?\s{0,24}\\{0,3}[\"']?" + _VALUE_OF + rb"\s{0,3})"
)
"""`key, value: …`: the name and its value are two members."""
_PAIR_REACH = 160
_AFTER_STEM = re.compile(
    _REST + rb"(?:"
    rb"((?:[ \t]\([^()\n]{1,24}\))?[ \t]{0,12}(?::=|=>|->|==|[:=|>~])[ \t]{0,4}|</key>\s{0,24}<string>)"
    rb"|([ \t]{0,4}(?:,|\(|\|\||\?\?)[ \t]{0,4})[NE]?\\{0,3}[\"'\x60]"
    rb"|([ \t]{1,8}(?:for [a-z0-9_.\- ]{1,32} )?(?:is|are|was|were|to|as|equals|es|ist|est|lautet|\x80|"
    rb"(?:should|must|will) be|(?:changed|set|reset) to)"
    rb"(?: now| set to| currently| jetzt|:)?[ \t]{1,4})"
    rb"|([ \t]{1,8})[\"'\x60(\x80]{0,3}[!-~]{6}"
    rb"|([ \t]?\x80{1,4}[ \t]?)"
    rb"|(\r?\n(?:\r?\n)?)[ \t]{0,8}[!-~]{8}"
    rb")"
)
_NAME_RUN = re.compile(rb"[A-Za-z0-9_.\-]*")
_LONGEST_REST = 40
"""Characters of a name's rest, of signs that close it, and the `-` of an arrow."""
_SIGN, _COMMA, _PROSE, _SPACE, _OTHER, _BREAK = range(2, 8)
_PAIR = 0
_NAME_BACKWARDS = re.compile(rb"[A-Za-z0-9_.\-$]{0,48}")
_WORD_BEFORE = re.compile(rb"[ \-]([A-Za-z]{2,24})(?![A-Za-z0-9_])")
_COMMAND_BEFORE = re.compile(
    rb"(?:^|[\s;&|])(?:ENV|ARG|setx|set|export|define|secrets? set|config[: ]set|configure set|variable set|let|const|var|put)"
    rb"[ \t]+(?:[\w.-]{1,32}[ \t]+)?(?:[\w.\-]{1,32}/){0,6}\Z",
    re.I,
)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_PASSWORDS = WORDS["name_password"]
_STRONG = WORDS["name_strong"]
_WEAK = WORDS["name_weak"]
_KEY_QUALIFIERS = WORDS["key_qualifier"]
_NOT_AFTER = WORDS["not_after"]
_NO_CHOICE = WORDS["no_choice"] | WORDS["code"]
_NOT_BEFORE = WORDS["not_before"]
_NOT_BEFORE_PASSWORD = WORDS["not_before_password"]
_RESOURCE = re.compile(rb"arn:[\w\-]+:[^\s\"']{0,80}:\Z")
_CALLED = re.compile(rb"[ \t]{1,8}\(")
_TYPE_NAME = re.compile(r"[A-Z][A-Za-z]*\d{0,6}(?:[A-Z][a-z]+){1,4}(?:\||$)")
_SEALED = re.compile("Ag[A-D][A-Za-z0-9+/]{100}")


@lru_cache(4096)
def strength_of(name: str, phrase: str = "") -> Strength | None:
    """What a name says about its value: password, strong (a secret, surely), weak (perhaps), or None.

    `phrase` is the word before a name of two words ("api" of "api key").
    """
    words = [w.lower() for w in _CAMEL.findall(name)]
    if phrase and (phrase.lower() in _KEY_QUALIFIERS or phrase.lower() in _NOT_BEFORE):
        words = [phrase.lower(), *words]
    found: Strength | None = None
    place = -1
    for index, word in enumerate(words):
        strength = _word_strength(word, words[index - 1] if index else "")
        if strength:
            found, place = strength, index
    rest = words[place + 1 :]
    if (
        found is None
        or any(w in _NOT_AFTER for w in rest)
        or (words[place] in ("pass", "pw") and rest and rest[0].isalpha())
    ):
        return None
    before = words[place - 1] if place else ""
    never = _NOT_BEFORE_PASSWORD if found == "password" else _NOT_BEFORE
    if before in never and not (before == "hash" and words[place] == "secret"):
        return None
    return found


def _word_strength(word: str, before: str) -> Strength | None:
    if word in _PASSWORDS or word.endswith(("password", "passwd", "passphrase", "contrase")):
        return "password"
    if word in ("mnemonic", "phrase"):
        return "phrase"
    if word in _STRONG or (len(word) > 6 and word.endswith(("token", "secret", "apikey"))):
        return "strong"
    if word in ("key", "keys"):
        return "strong" if before in _KEY_QUALIFIERS else "weak"
    if word.endswith("key") and any(word[:-3].endswith(q) for q in _KEY_QUALIFIERS if len(q) > 2):
        return "strong"
    if word in _WEAK:
        return "weak"
    if (
        word.endswith(("pass", "pwd"))
        and len(word) <= 14
        and word not in ("bypass", "compass", "encompass", "trespass")
    ):
        return "password"
    return None


_TYPE = re.compile(
    rb"[ \t]*(?:(?:Optional\[)?(?:&'?\w* ?)?(?:str|string|String|bytes|SecretStr|Text|text|varchar\(\d+\)|const char ?\*)\]?"
    rb"(?: ?\| ?(?:None|null|undefined))?[ \t]*=[ \t]*)"
)
_WRAPPER = re.compile(
    rb"(?:new [A-Z]\w{2,30}|SecretStr|Secret|String|str|bytes|Buffer\.from|Some|Token|ApiKey|pydantic\.SecretStr|"
    rb"[A-Z]\w{0,24}(?:Credential|Credentials|Key|Token|Secret))\((?=\\{0,3}[\"'\x60])|[rbfuNE](?=[\"'])"
)
_SETS = (b"=", b":=", b"+=")
_LEAD = re.compile(rb"[\[(]?[ \t]*(?:\\?\r?\n[ \t]*)?(?=[\"'\x60])")
"""A literal that stands in brackets or on the next line."""
_OPEN = re.compile(rb"[ \t]{0,12}(?:<!\[CDATA\[)?((?:\\{0,3}[\"'\x60]){1,3}|\*{1,2}[ \t]?\x60?)?")
_QUOTED = {
    b'"': re.compile(rb"[^\"\n\r\x80]{1,1024}?(?=\\{0,3}\")"),
    b"'": re.compile(rb"[^'\n\r\x80]{1,1024}?(?=\\{0,3}')"),
    b"`": re.compile(rb"[^\x60\n\r]{1,1024}?(?=\x60)"),
    b"*": re.compile(rb"[^*\n\r (]{1,256}?(?=\*)"),
}
_OPTION = re.compile(rb"-{1,2}(?:body|value|data|text|secret-string|from-literal|v|b)[ =]")
_BARE = re.compile(rb"[!-~]{1,1024}")
_LINE_START = re.compile(rb"(?:^|\n|\\n|[+\-] ?|export[ ]+|ENV[ ]+|set[ ]+|-e[ ]+)\Z")
_BARE_END = re.compile(
    rb"[\"'\x60<>]|\\{1,4}[nrt\"]|[,;](?=[\w\-]+[=:]|[\"' ]|\Z)|\)(?=[,;.)\s\"]|\Z)|[}\]]+[,;]?\Z|[,;]\Z"
)
_ANOTHER = re.compile(rb"[./]?[A-Za-z_][A-Za-z_.\-]{2,40}[=:](?=[^=:\s]{1,400}[=:])")
"""Not a value but the next assignment, which is looked at on its own."""
_ENV_END = re.compile(rb"[\"'\x60]|\\{1,4}[nrt]|[;,]\Z|&&")
_CLOSED = re.compile(rb"\)(?![A-Za-z0-9])")
_TRAILING = b".,;:!?)]}*|"
_NEXT_LINE = re.compile(
    rb"(?:[ \t]*[|>][+\-]?\d?)?[ \t]*\r?\n(?:[ \t]*\r?\n)?[ \t>]{0,12}(?:\x60{3}\w{0,12}\r?\n)?[ \t]{0,12}"
    rb"[\"'\x60]?([!-~]{8,512}?)[\"'\x60]?[ \t]*(?:\r?\n|\Z)"
)
_ELEMENT = re.compile(rb"[ \t]*\r?\n\s{0,40}([!-;=?-~]{6,4096})\s{0,40}</")
"""The text of an element that has lines of its own."""
_BLOCK = re.compile(rb"[ \t]*[|>][+\-]?\d?[ \t]*\r?\n")
_SCHEME = re.compile(rb"(?:bearer|basic|token|digest|apikey|api-key|negotiate|splunk|key|ssws)[ :]+(?=\S)", re.I)


_LED = re.compile(rb"[ \t]*(?:&'?)?[A-Za-z][\w.\-]*+[ \t(\[\]:\"'\x60\\|*=?]")
"""How a type, a call and a scheme begin: by a word and a sign or blank."""
_SLASH = 47
_PAT = 4
"""Characters of the stem `pat` with the sign before it."""
_SHORT = 64
_LONG_VALUES = 20_000


@dataclass(slots=True)
class _Long:
    """Characters beyond the first `_SHORT` of values without quotes that may still be looked at: names may stand so thick
    that each is in the values of hundreds before it."""

    left: int


def assigned(data: bytes, stems: list[tuple[int, int]]) -> Iterator[Assigned]:
    """Values that stand beside a credential name and look like one, in `flat` text.

    `stems`: (start, end) of each of the `STEMS` in it, in order of their starts.
    """
    done = run_end = 0
    long = _Long(_LONG_VALUES + len(data) // 2)
    values: list[int] | None = None
    for name_start, stem_end in stems:
        if name_start < done:
            continue
        if stem_end > run_end and (run := _NAME_RUN.match(data, stem_end)):
            run_end = run.end()
        if run_end - stem_end > _LONGEST_REST:
            continue  # the rest of the name is too long, and its end is looked for once in a run of names
        if data[name_start] == _SLASH and name_start and data[name_start - 1] not in b" \t\r\n\"'":
            continue  # no option of a command
        if stem_end - name_start == _PAT and data[stem_end : stem_end + 1].islower() and data[stem_end - 3] in b"pP":
            continue  # path, pattern, patch
        found = _AFTER_STEM.match(data, stem_end)
        operator = (found.lastindex or 0) if found else 0
        low, high = found.span(operator) if found else (0, 0)
        if operator != _SIGN:
            if values is None:
                values = [spans[0][0] for spans in _VALUES.spans(data)]
            near = bisect_left(values, stem_end) if values else 0
            pair = (
                _AFTER_PAIR.match(data, stem_end)
                if values[near : near + 1] and values[near] - stem_end < _PAIR_REACH
                else None
            )
            if pair is not None:
                found, operator = pair, _PAIR
                low, high = pair.span(2)
        if found is None:
            continue
        done = name_end = found.end(1)
        while data[name_start] in b"_-. \"'>/\n\t,;{(&?":
            name_start += 1
        before = _NAME_BACKWARDS.match(data[max(0, name_start - 48) : name_start][::-1])
        left = name_start - (before.end() if before else 0)
        name = data[left:name_end].decode("ascii", "replace").replace("\ufffd", "n")
        phrase = ""
        if left == name_start:
            said = _WORD_BEFORE.match(data[max(0, left - 32) : left][::-1])
            phrase = said[1][::-1].decode() if said else ""
        lead = name.lower()
        if data[left - 1 : left] == b":" and _RESOURCE.search(data, max(0, left - 100), left):
            continue
        if lead == "identified" and b"by" not in data[stem_end:low].lower():
            continue
        strength = (
            "password" if lead.startswith("identified") else strength_of(name.rstrip(".-_").replace(" ", ""), phrase)
        )
        if lead.endswith("authorization") and strength == "weak":
            strength = "strong"
        if strength is None:
            continue
        if operator == _BREAK:
            line = data[data.rfind(b"\n", 0, left) + 1 : left] if left else b""
            got = _on_next_line(data, low, name, strength) if _alone(line) else None
            if got is not None:
                yield got
            continue
        place = low if operator == _SPACE else high
        sign = data[low:high].strip()
        got = _value(data, place, left, name, strength, operator, sign, long)
        if got is not None:
            yield got


_CODE_IN = re.compile(
    r",\.[a-z]|[,;][A-Za-z_$][\w$]{0,40}[.=(\[]\w|\)[.;,]\w|=>|\|\||&&|\?\?|;(?:let|var|const|return|for|if|case)\b|\w\(\w*[,)]|\w\[\w|[{}]\w*[),;]"
)
"""Minified code and expressions, in what stands behind a name without quotes."""


def _alone(line: bytes) -> bool:
    """Does a name behind this beginning of a line have the line to itself (or is it the name of a part of a form)?"""
    return not line.strip(b" \t#>*-") or line.endswith(b'name="')


def _value(
    data: bytes, place: int, left: int, name: str, strength: Strength, operator: int, sign: bytes, long: _Long
) -> Assigned | None:
    if _LED.match(data, place) and (kind := _TYPE.match(data, place)):
        place = kind.end()
    while data[place : place + 1] in (b" ", b"\t", b"\x80", b"("):
        place += 1
    if sign in _SETS and (lead := _LEAD.match(data, place)):
        place = lead.end()
    led = _LED.match(data, place)
    if led and (wrapper := _WRAPPER.match(data, place)):
        place = wrapper.end()
    scheme = _SCHEME.match(data, place) if led else None
    if scheme:
        place = scheme.end()
    option = _OPTION.match(data, place) if operator == _SPACE else None
    if option:
        place = option.end()
    opened = _OPEN.match(data, place)
    quote = opened[1].rstrip()[-1:] if opened and opened[1] else b""
    start = opened.end() if opened else place
    if quote and not scheme:
        scheme = _SCHEME.match(data, start)
        if scheme:
            start = scheme.end()
    body = _QUOTED[quote].match(data, start) if quote else None
    quoted = body is not None
    if body is None and sign == b":" and not quote and _BLOCK.match(data, place):
        return _on_next_line(data, place, name, strength)
    if body is None:
        body = _BARE.match(data, start, start + (1024 if long.left > 0 else _SHORT))
        if body is not None:
            long.left -= max(0, body.end() - start - _SHORT)
        if body is not None and _ANOTHER.match(data, start):
            return None
    if body is None:
        tag = sign == b">" and data[left - 1 : left] == b"<"
        if tag and (inside := _ELEMENT.match(data, place)):
            value = inside[1].decode("ascii", "replace")
            fine = _judge(value, strength, True, False, False)
            return Assigned(inside.start(1), inside.end(1), strength, name) if fine else None
        if (sign == b":" or tag) and not quote:
            return _on_next_line(data, place, name, strength)
        return None
    if quoted:
        end = body.end()
    elif sign == b"=" and data[start - 1] == 61 and _LINE_START.search(data, max(0, left - 8), left):
        end = _line_end(data, start, body.end())
    else:
        end = bare_end(data, start, body.end(), left)
    if sign == b">" and data[left - 1 : left] == b"<" and data[end : end + 2] != b"</":
        return None
    value = data[start:end].decode("ascii", "replace")
    if _SEALED.match(value) or value == name or (not quoted and _coded(data, end, value, strength)):
        return None
    if not value or (sign == b"==" and not quoted) or (not quoted and value[0] in "[{"):
        return None
    if strength == "weak" and re.match(r"[A-Za-z_][\w.-]*=[^=]", value):
        return None  # a cookie's own name: its value is looked at as a pair
    called = sign in (b"(", b"||", b"??")
    if called:
        return Assigned(start, end, strength, name) if quoted and _called(name, sign, value, strength) else None
    if operator == _COMMA and (
        data[left - 1] not in b"\"'`" or (re.search(r"[\[\]<>]|^[\w.-]+:\d", value) and not dense(value))
    ):
        return None
    if not quoted and _CODE_IN.search(value):
        return None
    if name.lower() == "pass" and sign in (b":", b"") and not password_shaped(value) and data[left - 1 : left] != b"/":
        return None  # the result of a test
    if operator == _SPACE and not _spaced_ok(data, left, name, value, strength, quoted):
        return None
    prose = operator in (_PROSE, _OTHER) or (operator == _SPACE and not quoted)
    digest = name.lower() in ("key", "auth", "session", "salt")
    fine = _judge(value, strength, quoted, prose, digest)
    if not fine and strength == "password" and operator in (_SIGN, _OTHER, _PROSE):
        fine = value.isdigit() and 6 <= len(value) <= 12 and not is_placeholder(value) and value not in WEAK_PASSWORDS
        if not fine and sign == b"=" and not quoted and name.isupper():
            fine = bool(_LINE_START.search(data, max(0, left - 8), left)) and _chosen(value)
    return Assigned(start, end, strength, name) if fine else None


_CHOSEN = re.compile("[a-z]{6,24}")


def _chosen(value: str) -> bool:
    """A word that someone chose for a password: small letters, and none that stands for a password elsewhere."""
    if _CHOSEN.fullmatch(value) is None or value in WEAK_PASSWORDS or is_placeholder(value):
        return False
    return value not in _NO_CHOICE and strength_of(value) is None


def _coded(data: bytes, end: int, value: str, strength: Strength) -> bool:
    """Is a value without quotes the name of a function that is called, or of a type?"""
    parts = value.split("_")
    snake = len(parts) > 2 and value.islower() and max(map(len, parts)) <= 8
    if len(parts) > 1 and (snake or not looks_random(value, 12)) and _CALLED.match(data, end):
        return True
    return strength != "password" and word_share(value) > 0.35 and _TYPE_NAME.match(value) is not None


_SETTER = re.compile(
    r"(?:set|with|put|add|use|new)?_?(?:[a-z]{0,12}_?)?(?:password|passwd|passphrase|pwd|secret|token|key)s?", re.I
)


def _called(name: str, sign: bytes, value: str, strength: Strength) -> bool:
    """`setPassword("…")`, `env.KEY || "…"`: the value must be beyond doubt."""
    if sign == b"(" and not _SETTER.fullmatch(name.rsplit(".", 1)[-1]):
        return False
    if strength == "password":
        return password_shaped(value) or looks_random(value, 8)
    return strength == "strong" and looks_random(value, 16)


def _line_end(data: bytes, start: int, end: int) -> int:
    """The end of a value in an env file, where it may hold any sign: only blanks and escaped breaks end it."""
    cut = _ENV_END.search(data, start, end)
    return cut.start() if cut else end


def bare_end(data: bytes, start: int, end: int, left: int) -> int:
    value = data[start:end]
    if b"&" in value and data[left - 1 : left] in (b"?", b"&", b";"):
        value = value[: value.index(b"&")]
    cut = _BARE_END.search(value)
    if cut:
        value = value[: cut.start()]
    if b"(" not in value and (closed := _CLOSED.search(value)):
        value = value[: closed.start()]
    stripped = value if data[start + len(value) : start + len(value) + 2] == b"</" else value.rstrip(_TRAILING)
    return start + len(stripped)


def _judge(value: str, strength: Strength, quoted: bool, prose: bool, digest: bool) -> bool:
    """`digest`: the name is so plain that a value of a digest's length is one."""
    if strength == "password":
        return password_like(value, quoted=quoted, prose=prose)
    if strength == "phrase":
        words = value.split()
        return quoted and len(words) >= 12 and all(w.isalpha() and w.islower() for w in words)
    if strength == "weak" and digest and is_hex(value) and len(value) in (32, 40, 64, 128):
        return False
    return token_like(value, quoted=quoted, strong=strength == "strong")


def _spaced_ok(data: bytes, left: int, name: str, value: str, strength: Strength, quoted: bool) -> bool:
    """A name, a blank and a value: only after `--`, in quotes, in a .netrc line, or when the value is random."""
    if strength == "weak":
        return not is_hex(value) and looks_random(value, 24)
    if len(value) == 40 and is_hex(value) and value.isupper():
        return False  # the fingerprint of a key
    if data[max(0, left - 2) : left] == b"--" or name.startswith("-"):
        return True
    if _COMMAND_BEFORE.search(data, max(0, left - 48), left) or data[left + len(name) : left + len(name) + 1] == b"\t":
        return True
    if name.lower() in ("pass", "pw", "pat"):
        return False
    if quoted and strength == "password":
        return any(c.isdigit() or not c.isalnum() for c in value) or (len(value) >= 8 and word_share(value) < 0.5)
    if strength == "password" and re.search(
        rb"\b(?:login|machine|user|host)\s+\S+\s*\Z", data[max(0, left - 80) : left]
    ):
        return True
    column = data[left + len(name) : left + len(name) + 2] == b"  "
    if column and strength == "password" and not quoted:
        rest = data[data.find(value.encode(), left + len(name)) + len(value) :][:1]
        return rest in (b"", b"\n", b"\r") and not data[data.rfind(b"\n", 0, left) + 1 : left].strip(b" \t>+|")
    return (column and strength == "strong" and is_uuid(value)) or looks_random(value, 16)


def _on_next_line(data: bytes, place: int, name: str, strength: Strength) -> Assigned | None:
    """`API key:` alone on its line, the value alone on the next (also fenced): it must look random by itself."""
    found = _NEXT_LINE.match(data, place)
    if found is None:
        return None
    value = found[1].decode("ascii", "replace")
    if strength == "password":
        odd = any(not c.isalnum() and c not in "_-.," for c in value) or data[found.start(1) - 1] in b" \t"
        fine = (
            password_like(value, quoted=False)
            and not re.search(r"[=:({\[/]", value)
            and any(c.isdigit() for c in value)
            and odd
        ) or looks_random(value, 12)
    else:
        fine = strength == "strong" and (looks_random(value, 16) or is_uuid(value))
    if not fine or "=" in value.rstrip("=") or is_placeholder(value):
        return None
    return Assigned(found.start(1), found.end(1), strength, name)
