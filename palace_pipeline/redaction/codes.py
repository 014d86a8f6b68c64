"""Short codes that only their name makes secret: PINs and card codes, recovery codes, setup keys, seed phrases, keys in JWK
and PuTTY files, the password of a Wi-Fi code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from palace_pipeline.redaction.containers import Held
from palace_pipeline.redaction.verdicts import looks_random, word_share

_PIN = re.compile(
    rb"(?:pin|passcode|cv[vc]2?|csc|otp|sms code|verification code|security code|access code)(?![a-z])"
    rb"[ \t]?(?:code|number|nummer)?(?: for [a-z ]{2,24}?)?[ \t\"'`*]{0,3}(?:is|=>|=|:|ist|lautet|est|es|\x80)?[ \t\"'`*:]{0,3}"
    rb"(\d{3,8})(?![\w.:%/-]|[ \t]?(?:px|ms|pins?\b))",
    re.I,
)
_CODE = re.compile(
    rb"[\s>*\-|,\d.)\x80]{0,8}?((?:[a-z0-9]{4,6}[- ][a-z0-9]{4,6}(?:-[a-z0-9]{4,6}){0,3}|\d{8,10}|[a-z0-9]{8,12}))(?=[\s,|]|\Z)",
    re.I,
)
_WORDS = re.compile(
    rb"(?:[\s\"'`:=\x80(]|is\b|\d{1,2}[.)])*((?:[a-z]{3,8}(?:[ ,]{1,2}|\r?\n|[ \n]+\d{1,2}[.)] ?)){11,23}[a-z]{3,8})(?![a-z])"
)
_GROUPS = re.compile(
    rb"[^\n]{0,24}?(?<![A-Za-z0-9])((?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{2,4}|"
    rb"(?:[A-Z2-7]{4}[ -]){3,15}[A-Z2-7]{2,4}|[A-Z2-7]{16,64})(?![A-Za-z0-9])"
)
_JWK = re.compile(rb"\\{0,3}\"(?:d|p|q|dp|dq|qi|k)\\{0,3}\"\s{0,4}:\s{0,4}\\{0,3}\"([A-Za-z0-9_\-]{20,4096})\\{0,3}\"")
_PUTTY = re.compile(rb"private-lines: ?\d+\s+((?:[A-Za-z0-9+/=]{16,80}\s{0,2}){1,200})", re.I)
_MAC = re.compile(rb"private-mac: ?([0-9a-f]{40,64})", re.I)
_WIFI = re.compile(rb"wifi:[^\n]{0,120}?;?p:((?:\\.|[^;\n\\]){4,80});", re.I)
_MIGRATION = re.compile(rb"otpauth-migration://offline\?data=([A-Za-z0-9%+/=_\-]{16,4096})", re.I)
MAX_CODES = 32

_RECOVERY = (b"recovery code", b"backup code", b"scratch code", b"recovery-code", b"backup-code", b"one-time code")
_SETUP = (b"setup key", b"totp", b"two-factor", b"2fa", b"authenticator", b"mfa secret", b"mfa key")
_SEEDS = (b"seed phrase", b"mnemonic", b"recovery phrase", b"seed words", b"secret phrase", b"backup phrase")
_PINS = (b"pin", b"passcode", b"cvv", b"cvc", b"verification code", b"security code", b"access code")
WORDS_OF_INTEREST = (
    *_RECOVERY, *_SETUP, *_SEEDS, *_PINS, b'"kty', b"private-lines", b"private-mac", b"wifi:", b"otpauth-migration",
)  # fmt: skip


def codes(data: bytes, word: bytes, at: int) -> Iterator[Held]:
    """Codes that the word of interest at `at` makes secret."""
    end = at + len(word)
    if word in _PINS:
        if at and data[at - 1 : at].isalnum():
            return
        found = _PIN.match(data, at, min(len(data), at + 80))
        if found and (len(found[1]) >= 4 or word[:2] == b"cv"):
            yield Held(found.start(1), found.end(1), "secret", "pin")
    elif word in _RECOVERY:
        yield from _lines_of_codes(data, end)
    elif word in _SEEDS:
        yield from seed_phrase(data, end)
    elif word in _SETUP:
        found = _GROUPS.match(data, end, min(len(data), end + 120))
        if found and any(48 <= c < 58 for c in found[1]):
            yield Held(found.start(1), found.end(1), "secret", "setup-key")
    elif word == b'"kty':
        for found in _JWK.finditer(data, max(0, at - 3000), min(len(data), at + 6000)):
            if looks_random(found[1][:128].decode(), 20):
                yield Held(found.start(1), found.end(1), "private-key", "jwk")
    else:
        pattern = {b"wifi:": _WIFI, b"otpauth-migration": _MIGRATION, b"private-mac": _MAC}.get(word, _PUTTY)
        found = pattern.match(data, at, min(len(data), at + 16000))
        if found:
            yield Held(
                found.start(1),
                found.start(1) + len(found[1].rstrip()),
                "secret" if word != b"private-lines" else "private-key",
                "code",
            )


def _lines_of_codes(data: bytes, place: int) -> Iterator[Held]:
    """The codes that follow the words: each must hold a digit, or look random."""
    line = re.compile(rb"s?[^\n]{0,40}?(?:[:\x80]|\r?\n)").match(data, place)
    place = line.end() if line else place
    for _ in range(MAX_CODES):
        found = _CODE.match(data, place)
        if found is None:
            return
        code = found[1].decode()
        if not any(c.isdigit() for c in code) and word_share(code) > 0.3:
            return
        yield Held(found.start(1), found.end(1), "secret", "recovery-code")
        place = found.end()


def seed_phrase(data: bytes, place: int) -> Iterator[Held]:
    """Twelve to twenty-four short words right behind the name of a seed phrase."""
    found = _WORDS.match(data, place, min(len(data), place + 400))
    if found:
        yield Held(found.start(1), found.end(1), "seed-phrase", "seed-words")
