# ruff: noqa: E501 - tables, one row a line
"""Numbers of persons and their papers: known by the word before them and, where there is one, a check digit.

Schemes as their issuers publish them: Luhn (CA, SE, ZA, IMEI), weighted sums mod 11 (NHS, CPF, BSN, TFN, CN, KR, TR), mod 97 (FR, BE),
mod 10 of PESEL, ISO 7064 MOD 11,10 (DE), Verhoeff (Aadhaar), check letters (ES, IT, SG, FI).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date

from ahocorasick_rs import AhoCorasick, MatchKind

from palace_pipeline.redaction.containers import Held

BEFORE = 44
"""Characters before a number that are looked at for its name."""


def luhn(digits: str) -> bool:
    total = 0
    for index, char in enumerate(reversed(digits)):
        value = int(char) * (2 if index % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _sum(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(c) * w for c, w in zip(digits, weights, strict=False))


def _day(year: str, month: str, day: str) -> bool:
    """A real date; a year of two digits is of this century or the last."""
    try:
        date(int(year) + (1900 if len(year) == 2 else 0), int(month), int(day))
    except ValueError:
        return day == "29" and month == "02"  # 1900 had none, 2000 had
    return True


def _nhs(n: str) -> bool:
    return (11 - _sum(n, (10, 9, 8, 7, 6, 5, 4, 3, 2)) % 11) % 11 == int(n[9])


def _pesel(n: str) -> bool:
    return (-_sum(n, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3))) % 10 == int(n[10])


def _cpf(n: str) -> bool:
    first = _sum(n, tuple(range(10, 1, -1))) * 10 % 11 % 10
    second = _sum(n, tuple(range(11, 1, -1))) * 10 % 11 % 10
    return f"{first}{second}" == n[9:]


def _tfn(n: str) -> bool:
    return _sum(n, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def _bsn(n: str) -> bool:
    return (_sum(n, (9, 8, 7, 6, 5, 4, 3, 2)) - int(n[8])) % 11 == 0


def _nir(n: str) -> bool:
    return n[0] in "123478" and (len(n) == 13 or (97 - int(n[:13]) % 97) == int(n[13:]))


def _belgian(n: str) -> bool:
    return any(97 - int(century + n[:9]) % 97 == int(n[9:]) for century in ("", "2"))


def _german(n: str) -> bool:
    carry = 10
    for char in n[:10]:
        carry = (int(char) + carry) % 10 or 10
        carry = carry * 2 % 11
    return n[0] != "0" and (11 - carry) % 10 == int(n[10])


def _korean(n: str) -> bool:
    return n[6] in "12345678" and _day(n[:2], n[2:4], n[4:6])


def _turkish(n: str) -> bool:
    odd, even = sum(map(int, n[:9:2])), sum(map(int, n[1:8:2]))
    return n[0] != "0" and (odd * 7 - even) % 10 == int(n[9]) and sum(map(int, n[:10])) % 10 == int(n[10])


_TURN = re.findall(
    "[0-9]{10}",
    "0123456789 1234067895 2340178956 3401289567 4012395678 5987604321 6598710432 7659821043 8765932104 9876543210",
)
_SHIFT = re.findall(
    "[0-9]{10}", "0123456789 1576283094 5803796142 8916043527 9453126870 4286573901 2793806415 7046913258"
)


def _aadhaar(n: str) -> bool:
    state = 0
    for index, char in enumerate(reversed(n)):
        state = int(_TURN[state][int(_SHIFT[index % 8][int(char)])])
    return state == 0 and n[0] in "23456789"


def _born(n: str) -> bool:
    """A date of birth first (day first or year first), as in the Nordic countries and South Africa."""
    return _day(n[:2], n[2:4], n[4:6]) or _day(n[4:6], n[2:4], n[:2])


def _luhn_born(n: str) -> bool:
    n = n[2:] if len(n) == 12 else n
    return luhn(n) and _day(n[:2], n[2:4], n[4:6])


def _itin(n: str) -> bool:
    return n[0] == "9"


def _my_number(n: str) -> bool:
    rest = _sum(n, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if rest < 2 else 11 - rest) == int(n[11])


def _any(n: str) -> bool:
    return len(set(n)) > 2


# The names of a number, the counts of digits it may have, and its check.
_NUMBERS: tuple[tuple[str, tuple[int, ...], Callable[[str], bool]], ...] = (
    ("nhs", (10,), _nhs),
    ("pesel", (11,), _pesel),
    ("cpf|cadastro de pessoa", (11,), _cpf),
    ("sin|social insurance", (9,), luhn),
    ("tfn|tax file", (9,), _tfn),
    ("bsn|burgerservicenummer|sofinummer", (9,), _bsn),
    ("nir|sécurité sociale|securite sociale|carte vitale|n° sécu", (13, 15), _nir),
    ("numéro national|numero national|rijksregister|registre national|nrn", (11,), _belgian),
    ("steuer-id|steuerid|steuer-identifikation|steueridentifikation|idnr|steuerliche", (11,), _german),
    ("주민등록|주민번호|rrn|resident registration|외국인등록", (13,), _korean),
    ("tckn|kimlik", (11,), _turkish),
    ("aadhaar|aadhar|uidai|आधार", (12,), _aadhaar),
    ("personnummer|personal identity|samordningsnummer", (10, 12), _luhn_born),
    ("cpr|fødselsnummer|fodselsnummer|personnr|henkilötunnus", (10, 11), _born),
    ("south african id|rsa id|sa id", (13,), luhn),
    ("itin|individual taxpayer", (9,), _itin),
    ("imei", (15,), luhn),
    ("マイナンバー|個人番号|my number", (12,), _my_number),
    ("rodné číslo|rodne cislo|rodné čislo", (9, 10), _any),
    ("cnp|cod numeric personal", (13,), _any),
    ("passport|passeport|reisepass|pasaporte|passaporto|paszport|паспорт|护照|護照|パスポート|여권|旅券", (8, 9, 10), _any),
    ("driver's license|drivers license|driving licence|driver license|driver's licence|führerschein|驾驶证|驾照|運転免許", (7, 8, 9, 10, 12, 18), _any),
)  # fmt: skip
_NAMES = [(name, counts, check) for names, counts, check in _NUMBERS for name in names.split("|")]
_LOOK = AhoCorasick([name for name, _, _ in _NAMES], matchkind=MatchKind.Standard)
_ODD = re.compile("[\ud800-\udfff]")


def numbered(near: str, digits: str) -> bool:
    """Does the text before a run of digits call it the number of a person, and does its check digit agree?"""
    if not 7 <= len(digits) <= 18:
        return False
    low = near[-BEFORE:].lower()
    if not low.isascii():
        low = _ODD.sub("\ufffd", low)
    for index, start, end in _LOOK.find_matches_as_indexes(low, overlapping=True):
        name, counts, check = _NAMES[index]
        if len(digits) not in counts or "\n\n" in low[end:]:
            continue
        alone = not (
            name.isascii() and (low[start - 1 : start].isalpha() or (low[end : end + 1].isalpha() and len(name) < 8))
        )
        if alone and check(digits):
            return True
    return False


def speaks(text: str) -> bool:
    """Is the name of such a number anywhere in a text?"""
    low = text.lower()
    return bool(_LOOK.find_matches_as_indexes(low if low.isascii() else _ODD.sub("\ufffd", low)))


# --- numbers with letters ---------------------------------------------------------------------------------------------


def _spanish(value: str) -> bool:
    value = re.sub("[ -]", "", value.upper())
    body = value[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return body.isdigit() and "TRWAGMYFPDXBNJZSQVHLCKE"[int(body) % 23] == value[-1]


_ITALIAN_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def _italian(value: str) -> bool:
    places = [int(c) if c.isdigit() else ord(c) - 65 for c in value.upper()[:15]]
    total = sum(_ITALIAN_ODD[place] if index % 2 == 0 else place for index, place in enumerate(places))
    return chr(65 + total % 26) == value[15].upper()


def _singaporean(value: str) -> bool:
    value = value.upper()
    total = _sum(value[1:8], (2, 7, 6, 5, 4, 3, 2)) + (4 if value[0] in "TG" else 3 if value[0] == "M" else 0)
    table = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "F": "XWUTRQPNMLK", "G": "XWUTRQPNMLK", "M": "XWUTRQPNJLK"}[
        value[0]
    ]
    return table[10 - total % 11 if value[0] == "M" else total % 11] == value[8]


def _finnish(value: str) -> bool:
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(value[:6] + value[7:10]) % 31] == value[10].upper()


def _sure(value: str) -> bool:
    return sum(c.isdigit() for c in value) >= 5


# Words (as they stand in flat, lower-case text), the shape behind them, its check, and the kind of the mask.
_LETTERED: tuple[tuple[tuple[bytes, ...], bytes, Callable[[str], bool], str], ...] = (
    ((b"national insurance", b"nino", b"ni number", b"ni no"), rb"[a-ceghj-pr-tw-z]{2}[ -]?\d{2}[ -]?\d{2}[ -]?\d{2}[ -]?[a-d]", _sure, "national-id"),
    ((b"dni ", b"dni:", b"dni=", b"nif ", b"nif:", b"nie ", b"nie:", b"documento nacional", b"n.i.f"), rb"[xyz]?[ -]?\d{7,8}[ -]?[a-z]", _spanish, "national-id"),
    ((b"codice fiscale", b"cod. fisc"), rb"[a-z]{6}\d{2}[a-ehlmprst]\d{2}[a-z]\d{3}[a-z]", _italian, "national-id"),
    ((b"nric", b"fin no", b"fin number", b"fin:"), rb"[stfgm]\d{7}[a-z]", _singaporean, "national-id"),
    ((b"hetu", b"henkil\x80tunnus", b"personal identity code", b"henkilotunnus"), rb"\d{6}[-+a-fu-y]\d{3}[0-9a-y]", _finnish, "national-id"),
    ((b"curp",), rb"[a-z]{4}\d{6}[hmx][a-z]{5}[0-9a-z]\d", _sure, "national-id"),
    ((b"pan card", b"pan no", b"pan:", b"pan number"), rb"[a-z]{3}[abcfghljpt][a-z]\d{4}[a-z]", bool, "national-id"),
    ((b"hkid", b"hong kong id"), rb"[a-z]{1,2}\d{6} ?\(?[0-9a]\)?", _sure, "national-id"),
    ((b"sozialversicherung", b"rentenversicherung", b"svnr"), rb"\d{2} ?\d{6} ?[a-z] ?\d{3}", _sure, "national-id"),
    ((b"krankenversicher", b"kvnr", b"versichertennummer"), rb"[a-z]\d{9}", _sure, "national-id"),
    ((b"medicare", b"mbi"), rb"[1-9][ac-hj-km-np-rt-y][0-9ac-hj-km-np-rt-y]\d-?[ac-hj-km-np-rt-y][0-9ac-hj-km-np-rt-y]\d-?[ac-hj-km-np-rt-y]{2}\d{2}", bool, "national-id"),
    ((b"passport", b"passeport", b"reisepass", b"pasaporte", b"passaporto", b"paszport", b"passnummer"), rb"[a-z]{1,3} ?\d{6,8}[a-z]?|[cfghjk-npr-tv-z0-9]{9}", _sure, "passport"),
    ((b"driver's licen", b"drivers licen", b"driving licen", b"driver licen", b"f\x80hrerschein"), rb"[a-z]{1,2}[ -]?\d{6,14}|[a-z9]{5}\d{6}[a-z9]{2}[a-z0-9]{3}", _sure, "national-id"),
)  # fmt: skip
_BEHIND = {
    word: (re.compile(rb"[^\n]{0,28}?(?<![A-Za-z0-9\-/.])(" + shape + rb")(?![A-Za-z0-9])", re.I), check, kind)
    for words, shape, check, kind in _LETTERED
    for word in words
}
WORDS_OF_INTEREST = tuple(_BEHIND)


def papers(data: bytes, word: bytes, at: int) -> Iterator[Held]:
    """The number with letters behind the word of interest at `at`."""
    if at and data[at - 1 : at].isalnum():
        return
    pattern, check, kind = _BEHIND[word]
    found = pattern.match(data, at + len(word), at + len(word) + 60)
    if found and check(found[1].decode()):
        yield Held(found.start(1), found.end(1), kind, kind)


_FOREIGN_PAPER = re.compile(r"[^\n!-~]{0,8}[号码番號碼는은:： ]{0,4}([A-Za-z]{1,2}\d{7,9})(?![A-Za-z0-9])")


def foreign_papers(text: str, end: int) -> Iterator[Held]:
    """The number of a passport behind its name in another script, which ends at `end`."""
    found = _FOREIGN_PAPER.match(text, end, end + 32)
    if found:
        yield Held(found.start(1), found.end(1), "passport", "passport")
