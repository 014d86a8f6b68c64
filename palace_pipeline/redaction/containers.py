"""Secrets known by what holds them: key blocks, URLs with a password, request headers, cookies, command lines."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass

from palace_pipeline.redaction.verdicts import (
    WEAK_PASSWORDS,
    is_hex,
    is_placeholder,
    is_uuid,
    looks_random,
    pair_share,
    password_like,
    password_shaped,
    word_share,
)


@dataclass(slots=True, frozen=True)
class Held:
    """data[start:end] is secret because of its surroundings; `rule` names them."""

    start: int
    end: int
    kind: str
    rule: str


# --- private key blocks -----------------------------------------------------------------------------------------------

MAX_BLOCK = 64 * 1024
_BEGIN = re.compile(rb"-{3,5} ?BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{3,5}")
_END = re.compile(rb"-{3,5} ?END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{3,5}")
_STATIC_BEGIN = re.compile(rb"-{3,5}BEGIN (?:OpenVPN Static key V1|DH PARAMETERS-NONE)-{3,5}")
_PUTTY = re.compile(rb"PuTTY-User-Key-File-\d")
_BREAK = re.compile(rb"(?:\\{1,4}r)?\\{1,4}n|\r?\n|\r")
_JUNK = re.compile(rb"[ \t>|+*#\"'`,.\x80-]*(?:\d{1,6}[\t:|.)\x80 ]+)?[ \t>|+*\"'`]*")
_BODY = re.compile(rb"[A-Za-z0-9+/=]{8,}")
_HEADER = re.compile(rb"(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash|MessageID|X-[A-Za-z-]+): ?")


def private_keys(data: bytes, start: int) -> Held | None:
    """The key block that begins at `start`: to its END, or to the last line that looks like base64 when END is cut.

    Quotes, line numbers, diff and quote marks, indentation and literal `\\n` may stand between.
    """
    begin = _BEGIN.match(data, start) or _STATIC_BEGIN.match(data, start)
    if begin is None:
        return None
    limit = min(len(data), start + MAX_BLOCK)
    other = data.find(b"-----BEGIN", begin.end(), limit)
    limit = limit if other < 0 else other
    end = _END.search(data, begin.end(), limit)
    if end:
        body = data[begin.end() : end.start()]
        if sum(len(run) for run in re.findall(rb"[A-Za-z0-9+/]{16,}", body)) >= 32:
            return Held(start, end.end(), "private-key", "key-block")
    last = _body_end(data, begin.end(), limit)
    return Held(start, last, "private-key", "key-block-cut") if last else None


def _body_end(data: bytes, position: int, limit: int) -> int | None:
    last: int | None = None
    blank = 0
    first = True
    while position < limit:
        gap = _BREAK.search(data, position, min(limit, position + 4096))
        stop = gap.start() if gap else min(limit, position + 4096)
        junk = _JUNK.match(data, position, stop)
        body = _BODY.match(data, junk.end() if junk else position, stop)
        if body and data[body.end() : stop].strip(b" \t\"'`,+\\;") == b"" and _block_like(body[0]):
            last, blank = body.end(), 0
        elif _HEADER.match(data, junk.end() if junk else position, stop):
            blank = 0
        elif not data[position:stop].strip(b" \t>|+\"'`,\\") or first:
            blank += 1
        else:
            if body and first is False and last is not None and body.end() - body.start() >= 40:
                last = body.end()
            break
        if blank > 2 or gap is None:
            break
        first = False
        position = gap.end()
    return last


def _block_like(line: bytes) -> bool:
    return len(line) >= 40 or line.endswith(b"=") or (len(line) >= 8 and word_share(line.decode()) < 0.5)


# --- URLs -------------------------------------------------------------------------------------------------------------

_USERINFO = re.compile(rb"://([^\s:/@\"'`<>?#\x80]{0,256}):([^\s\"'`<>\x80]{1,512})")
_AUTHORITY = re.compile(rb"[^/\s?#]*(?:/[^@\s/]{0,64}(?=@))?")
_USER_ONLY = re.compile(rb"://([A-Za-z0-9_\-.~%]{20,512})@")
_SECRET_PARAM = re.compile(
    rb"[?&;](sig|signature|x-amz-signature|x-goog-signature|x-amz-credential|x-amz-security-token|code|token|"
    rb"ticket|auth|key|appid|hash|sign|st|secret|jwt|assertion|sid|sessionid|policy|hmac|hdnea|password|pwd|pass)="
    rb"([A-Za-z0-9%_\-.~+/=]{12,4096})",
    re.I,
)
_SECRET_PATH = re.compile(
    rb"/(?:hooks?|webhooks?|incoming|key|token|secret|apikey|api-key|reset|invite|magic|unsubscribe|confirm|verify|callback|"
    rb"s|share)/(?:[A-Za-z0-9]{1,12}/)?([A-Za-z0-9_\-]{20,512})(?=[/?#&]|[^\w./-]|[.,]?\s|\Z)",
    re.I,
)
MAX_URL = 4096
_URL_STOP = re.compile(rb"[\s\"'`<>\x80]")


def url_credentials(data: bytes, at: int) -> Iterator[Held]:
    """The password of the URL whose `://` stands at `at`, or the token that stands as its user."""
    found = _USERINFO.match(data, at)
    if found:
        authority = _AUTHORITY.match(found[2])
        rest = authority[0] if authority else b""
        cut = rest.rfind(b"@")
        if cut > 0 and re.match(rb"@[A-Za-z0-9\[\-_.${<%]", rest[cut:] + b" "):
            user, word = found[1].decode("ascii", "replace"), rest[:cut].decode("ascii", "replace")
            if not weak_pair(user, word):
                yield Held(found.start(2), found.start(2) + cut, "url-password", "url-userinfo")
    else:
        alone = _USER_ONLY.match(data, at)
        if alone and looks_random(alone[1].decode(), 20):
            yield Held(alone.start(1), alone.end(1), "url-token", "url-user")


def url_end(data: bytes, at: int) -> int:
    """Where the unbroken text around a URL ends; nested URLs lie inside it."""
    end = min(len(data), at + MAX_URL)
    stop = _URL_STOP.search(data, at, end)
    return stop.start() if stop else end


def url_parameters(data: bytes, at: int, end: int) -> Iterator[Held]:
    """Signatures and tokens among the parameters of a URL."""
    for param in _SECRET_PARAM.finditer(data, at, end):
        value = param[2].decode()
        plain = re.sub(r"%[0-9A-Fa-f]{2}", "", value)
        if param[1].lower() == b"appid" and not (len(value) == 32 and is_hex(value)):
            continue  # the number of an app is public
        if looks_random(plain, 16) and not is_placeholder(value):
            yield Held(param.start(2), param.end(2), "url-signature", "url-parameter")


def url_paths(data: bytes, at: int, end: int) -> Iterator[Held]:
    """Random parts of a path behind a word like `hooks` or `token`."""
    for part in _SECRET_PATH.finditer(data, at, end):
        value = part[1].decode()
        if (
            looks_random(value, 20)
            and not is_uuid(value)
            and not (is_hex(value) and part[0][1:3].lower() in (b"s/", b"sh"))
        ):
            yield Held(part.start(1), part.end(1), "url-token", "url-path")


def weak_pair(user: str, word: str) -> bool:
    """True when the password of a URL or login is an example, a variable, or the well-known default."""
    low = word.lower()
    return (
        is_placeholder(word)
        or low in WEAK_PASSWORDS
        or low.rsplit(":", 1)[-1] in WEAK_PASSWORDS
        or (low == user.lower() and word.isalpha())
        or set(word) <= set("*x.•-_")
        or word.startswith(("$", "%", "{", "<", ":"))
        or re.fullmatch(r"\d{1,5}", word) is not None
    )


# --- headers, cookies, command lines ----------------------------------------------------------------------------------

_BEARER = re.compile(rb"(?:bearer|token|apikey|ssws|splunk)[ :]{1,2}[\"'`]?([A-Za-z0-9._~+/\-]{12,4096}={0,2})", re.I)
_BASIC = re.compile(rb"basic[ :]{1,2}[\"'`]?([A-Za-z0-9+/_\-]{8,1024}={0,2})", re.I)
_COOKIE = re.compile(
    rb"(?:set-)?cookie\\{0,3}[\"']?[ \t]{0,2}[:=][ \t]{0,2}\\{0,3}[\"']?([^\r\n\"'\\\x80]{8,8192})", re.I
)
_PAIR = re.compile(rb"([A-Za-z0-9_.\-]{1,64})=([^;\s,]{8,4096})")
_LOGIN = re.compile(
    rb"(?:-[a-z]{0,6}u|--user|--proxy-user|--creds|https? -a)[ =]?"
    rb"\\{0,2}[\"']?([A-Za-z0-9_.@\\%+-]{0,64}):([^\s\"'`\\\x80]{4,128})",
    re.I,
)
_SHORT_FLAG = re.compile(
    rb"[a-z0-9_ -]{2,16}\b[^\r\n|;&]{0,120}? (?:-p|-P|-a|-w|/p:)[ =]?[\"']?([^\s\"'`\x80\-][^\s\"'`\x80]{3,128})", re.I
)
_SNMP = re.compile(rb" -[AX] ?[\"']?([^\s\"'`\x80\-][^\s\"'`\x80]{7,63})")
_STORED = re.compile(
    rb" (?:--(?:value|secret-string)[ =]|-u [\w.@-]{1,64},)[\"']?([^\s\"'`\x80\-{][^\s\"'`\x80]{5,511})"
)
_RESPONSE = re.compile(rb"(?:response|signature)=\\{0,2}\"?([0-9a-f]{32,128})", re.I)
_PASSWORD_FILE = re.compile(rb":\d{4}:(?:[\w.-]{1,63}|\*):([\w.-]{1,63}):([^\s\"'`\\\x80]{4,128})")
_LAST_WORD = re.compile(
    rb"[a-z0-9_ >-]{2,16}\b[^\r\n|;&]{0,160}[ \t][\"']?([^\s\"'`\x80\-][^\s\"'`\x80]{5,128})[\"'}]{0,4}[ \t]*(?=\r?\n|\Z|[|;&`])",
    re.I,
)
_TWO_QUOTED = re.compile(
    rb"[a-z]{2,24}[ =]{0,3}\(?\(?[^\n\"'()]{0,40}\(?[\"']([^\"'\n]{1,64})[\"'][ \t]*,[ \t]*(?:Some\()?"
    rb"[\"']([^\"'\n]{4,128})[\"'][ \t]*[),]",
    re.I,
)
_ORACLE = re.compile(rb"jdbc:oracle:[a-z]{2,8}:([\w.$#-]{1,64})/([^\s\"'`@\x80]{4,128})@", re.I)
_PIPED = re.compile(
    rb"(?:echo|printf)(?: -n| -e)?[ \t]+[\"']([^\"'\n]{4,128})[\"'][ \t]*\|[^\n]{0,60}(?:passw|secret|login|token|stdin)",
    re.I,
)
_REQUIRED = re.compile(rb"(?:requirepass|masterauth|auth-pass)[ =:]+[\"']?([^\s\"'`;\x80]{4,128})", re.I)
_SECURE = re.compile(rb"convertto-securestring\b[^\r\n|\"']{0,40}[\"']([^\"'\r\n\x80]{4,128})[\"']", re.I)
_MANIFEST_ENTRY = re.compile(
    rb"(?:\r?\n|\\{1,3}n)[ \t\-]{1,12}[\"']?[\w.\-]{1,64}[\"']?:[ \t]*[\"']?([!-~]{4,4096}?)[\"']?"
    rb",?[ \t]*(?=\r?\n|\\{1,3}n|[ \"]|\Z)"
)
_MANIFEST_DATA = re.compile(rb"(?:\n|\\{1,3}n)[ \t]{0,8}[\"']?(?:data|stringData)[\"']?:", re.I)
MANIFEST = 8000
"""Characters of a manifest that are looked at."""
_COMMANDS = (
    b"mysql",
    b"mariadb",
    b"sshpass",
    b"docker login",
    b"podman login",
    b"redis-cli",
    b"ldapsearch",
    b"htpasswd",
    b"smbclient",
    b"mongodump",
    b"mongosh",
    b"az login",
    b"sqlcmd",
    b"7z ",
    b"unzip ",
    b"psexec",
    b"unrar ",
    b"zip -p",
    b"xfreerdp",
    b"wfreerdp",
    b"rdesktop",
)
_SNMPS = (b"snmpwalk", b"snmpget", b"snmpset", b"snmptrap", b"snmpbulk")
_SIGNED = (b"digest username", b"aws4-hmac-sha256 cred")
_STORES = (b"keyvault secret set", b"put-parameter", b"create-secret", b"put-secret", b"lftp ")
_LAST = (
    b"net use",
    b"> auth ",
    b"htpasswd -",
    b"mc alias set",
    b"mc config host add",
    b"rocommunity",
    b"rwcommunity",
    b"enable password",
    b"smbpasswd",
)
_PAIRS = (b"auth=", b"auth(", b"getconnection(", b"credential(", b"credentials(", b".login(", b".connect(")
_ECHOED = (b"echo ", b"printf ")  # fmt: skip
_SHORT_LOGINS = tuple(
    b"-" + more + b"u" + sign
    for more in (b"", *b"s k i v l n ss sk ks sl fs fss fssl ssl".split())
    for sign in (b" ", b'"', b"'")
)
_LOGINS = (*_SHORT_LOGINS, b"--user", b"--proxy-user", b"--creds", b"http -a ", b"https -a ")
_MANIFESTS = (b"kind: secret", b'kind: "secret', b'"kind":"secret', b'"kind": "secret')
WORDS_OF_INTEREST = (
    b"bearer", b"basic", b"cookie", *_LOGINS, *_COMMANDS, *_MANIFESTS, *_LAST, *_PAIRS, *_ECHOED, *_SNMPS, *_SIGNED, *_STORES,
    b"jdbc:oracle:",
    b":5432:", b":6432:", b":5433:", b"requirepass", b"masterauth", b"auth-pass", b"convertto-securestring",
)  # fmt: skip
"""What `spoken_secrets` wants to be called with: where these words stand in the lower-cased text."""


def spoken_secrets(data: bytes, words: list[tuple[bytes, int]]) -> Iterator[Held]:
    """Secrets beside a telling word: request headers, command lines, server settings, cluster manifests."""
    done = manifest = cookie = last = 0
    several: dict[re.Pattern[bytes], int] = {}
    for word, at in words:
        if word in (b"bearer", b"basic", b"cookie"):
            if (at and data[at - 1 : at].isalnum()) or (word == b"cookie" and at < cookie):
                continue
            if word == b"cookie":
                found = _COOKIE.match(data, at)
                cookie = found.end() if found else at
            yield from header_secrets(data, at, word)
        elif word in _LOGINS:
            yield from _login(data, at)
        elif word.startswith(b":"):
            found = _PASSWORD_FILE.match(data, at)
            if found and not weak_pair(_ascii(found[1]), _ascii(found[2])):
                yield Held(found.start(2), found.end(2), "password", "password-file")
        elif word in _MANIFESTS:
            if at >= manifest:
                manifest = at + MANIFEST
                yield from _manifest(data, at)
        elif word in _SNMPS or word in _SIGNED or word in _STORES:
            pattern = _SNMP if word in _SNMPS else _STORED if word in _STORES else _RESPONSE
            if at >= several.get(pattern, 0):  # a stretch is looked at once
                several[pattern] = _stretch(data, at)
                yield from _several(data, at, several[pattern], pattern)
        elif word in _LAST:
            if at >= last:
                last = _stretch(data, at)
                yield from _told(data, at, word)
        elif word in _PAIRS or word in _ECHOED or word == b"jdbc:oracle:":
            yield from _told(data, at, word)
        elif at >= done:  # a command line: looked at once, up to its end
            done = at + 160
            for pattern in (_SHORT_FLAG,) if word in _COMMANDS else (_REQUIRED, _SECURE):
                found = pattern.match(data, at, at + 400)
                if found and _option(_ascii(found[1])):
                    yield Held(found.start(1), found.end(1), "password", "password-option")


def _stretch(data: bytes, at: int) -> int:
    """Where the line of a command ends, or what is looked at of it."""
    stop = data.find(b"\n", at, at + 600)
    return stop if stop >= 0 else min(len(data), at + 600)


def _several(data: bytes, at: int, end: int, pattern: re.Pattern[bytes]) -> Iterator[Held]:
    """The passwords of an SNMP command, a value to be stored, the answer in a signed header."""
    for found in pattern.finditer(data, at, end):
        if pattern is _RESPONSE:
            yield Held(found.start(1), found.end(1), "url-signature", "signed-header")
        elif _option(_ascii(found[1])):
            yield Held(found.start(1), found.end(1), "password", "password-option")


def _told(data: bytes, at: int, word: bytes) -> Iterator[Held]:
    """The last word of a command, the second of two literals, what is piped into a command for secrets."""
    pattern = _LAST_WORD if word in _LAST else _TWO_QUOTED if word in _PAIRS else _PIPED if word in _ECHOED else _ORACLE
    start = at
    while start and data[start - 1 : start].isalpha() and at - start < 16:
        start -= 1
    found = pattern.match(data, start if word in _PAIRS else at, min(len(data), at + 400))
    if found is None:
        return
    value = _ascii(found[found.lastindex or 0])
    user = _ascii(found[1]) if found.lastindex == 2 else ""
    if weak_pair(user, value) or value.startswith(("http", "/")) or "\\" in value:
        return
    if (
        password_shaped(value)
        or looks_random(value, 12)
        or (word not in _PAIRS and password_like(value, quoted=True) and _option(value))
    ):
        yield Held(*found.span(found.lastindex or 0), "password", "password-told")


def _login(data: bytes, at: int) -> Iterator[Held]:
    if at and data[at - 1] not in b" \t\"'`\n":
        return
    found = _LOGIN.match(data, at)
    if found is None:
        return
    user, word = _ascii(found[1]), _ascii(found[2])
    if not user and not (password_shaped(word) or looks_random(word, 12)):
        return
    if not weak_pair(user, word) and not word.startswith("//"):
        yield Held(found.start(2), found.end(2), "password", "login-option")


def _option(word: str) -> bool:
    odd = any(c.isdigit() or not c.isalnum() for c in word)
    odd = odd or (word_share(word) < 0.5 and pair_share(word) < 0.6)
    return odd and not weak_pair("", word) and not re.match(r"[\d.]+:?\d*$|[./~]", word)


def _plain_entry(value: bytes) -> bool:
    word = _ascii(value)
    return (password_like(word, quoted=True) or looks_random(word, 12)) and not weak_pair("", word)


def _manifest(data: bytes, at: int) -> Iterator[Held]:
    """The base64 values of a Kubernetes Secret: its `data` may stand before or after its `kind`."""
    low, high = max(0, at - MANIFEST // 2), min(len(data), at + MANIFEST)
    for block in _MANIFEST_DATA.finditer(data, low, high):
        entry = _MANIFEST_ENTRY.match(data, block.end(), high)
        while entry is not None:
            plain = b"stringData" in block[0] and _plain_entry(entry[1])
            if plain or (not is_placeholder(_ascii(entry[1])) and base64_text(entry[1])):
                yield Held(entry.start(1), entry.end(1), "secret", "cluster-secret")
            entry = _MANIFEST_ENTRY.match(data, entry.end(), high)


def base64_text(blob: bytes) -> bool:
    """Is this base64 of something printable?"""
    try:
        plain = base64.b64decode(blob.rstrip(b"=") + b"=" * (-len(blob.rstrip(b"=")) % 4), validate=True)
        return all(c.isprintable() or c.isspace() for c in plain.decode("utf-8"))
    except (binascii.Error, ValueError):
        return False


def header_secrets(data: bytes, at: int, word: bytes) -> Iterator[Held]:
    """Credentials of a request header whose scheme or name (`word`, lower case) stands at `at`."""
    if word == b"basic":
        found = _BASIC.match(data, at)
        if found and not found[1].isalpha() and _pair_in_base64(found[1]):
            yield Held(found.start(1), found.end(1), "basic-auth", "basic-header")
    elif word == b"cookie":
        found = _COOKIE.match(data, at)
        if found:
            for pair in _PAIR.finditer(data, found.start(1), found.end(1)):
                value = re.sub(r"%[0-9A-Fa-f]{2}", "", pair[2].decode("ascii", "replace"))
                if looks_random(value, 16) and not is_placeholder(value):
                    yield Held(pair.start(2), pair.end(2), "session-cookie", "cookie-header")
    else:
        found = _BEARER.match(data, at)
        if found:
            value = found[1].decode()
            if looks_random(value, 16 if word == b"bearer" else 20) and not is_placeholder(value):
                yield Held(found.start(1), found.end(1), "bearer-token", "bearer-header")


def _pair_in_base64(blob: bytes) -> bool:
    """Does this base64 hold `user:password`?"""
    try:
        plain = base64.b64decode(blob.rstrip(b"=") + b"=" * (-len(blob.rstrip(b"=")) % 4), altchars=None)
    except (binascii.Error, ValueError):
        return False
    return b":" in plain and len(plain) >= 5 and all(byte >= 32 for byte in plain)


def _ascii(data: bytes) -> str:
    return data.decode("ascii", "replace")
