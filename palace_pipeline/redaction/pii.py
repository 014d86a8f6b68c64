"""Structured personal data: e-mail, phone, cards, IBAN, US SSN, CN resident id, public IP addresses, wallets.

Candidates are located by RE2 in `flat` text and confirmed by context and check digits; what surrounds a run of digits
is looked at before its checksum, since one number in ten passes Luhn.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from palace_pipeline.redaction.identity import BEFORE, luhn, numbered, speaks
from palace_pipeline.redaction.scanning import Program
from palace_pipeline.redaction.words import WORDS, Finder, any_word


@dataclass(slots=True, frozen=True)
class Personal:
    """A place that holds personal data of `kind`; `sure` is False when only its context says so."""

    start: int
    end: int
    kind: str
    sure: bool = True


# --- e-mail -----------------------------------------------------------------------------------------------------------

_LOCAL = re.compile(rb"[A-Za-z0-9](?:[A-Za-z0-9._%+'\-]{0,62}[A-Za-z0-9_+\-])?\Z|[A-Za-z0-9]\Z")
_DOMAIN = re.compile(rb"@((?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.){1,8}([A-Za-z]{2,24}))(?![A-Za-z0-9])")
_WIDE_DOMAIN = re.compile(r"@((?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,4}([^\W\d_]{2,12}))(?![^\W_])")
_WIDE_LOCAL = re.compile(r"(?:[^\W_][\w.+-]{0,30})?[^\W_]\Z")
_QUOTED_LOCAL = re.compile(rb"\\?\"[A-Za-z0-9][^\"\\\n]{0,60}\\?\"\Z")
_NOT_TLD = frozenset(word.encode() for word in WORDS["not_tld"])
_PUBLIC_LOCAL = re.compile(
    rb"(?:no-?reply|do-?not-?reply|git|root|postmaster|mailer-daemon|hg|svn)\Z|.*\+?noreply\Z|\d+\+\w+\Z", re.I
)
_EXAMPLE_DOMAIN = re.compile(
    rb"(?:.*\.)?(?:example\.(?:com|org|net|edu|\w{2,3})|users\.noreply\.github\.com|email\.com|domain\.(?:com|tld)|yourdomain\.com|company\.com|noreply\.\S+)\Z",
    re.I,
)


def email_at(data: bytes, at: int, text: str = "") -> Personal | None:
    """The e-mail address whose `@` stands at `at` (of `text`, for names and domains beyond ASCII)."""
    domain = _DOMAIN.match(data, at)
    if text and (data[at - 1 : at] in (b"\x80", b'"') or (domain is None and b"\x80" in data[at + 1 : at + 64])):
        return _unusual(data, at, text)
    if domain is not None and domain[2].lower() in _NOT_TLD:
        # A file that is named by an address: `jane@host.org.json`.
        domain = _DOMAIN.fullmatch(data, at, domain.start(2) - 1)
    if domain is None or domain[2].lower() in _NOT_TLD:
        return None
    local = _LOCAL.search(data, max(0, at - 64), at)
    if local is None:
        return None
    start = local.start()
    before = data[max(0, start - 160) : start]
    if before[-1:] in b"@/:" and before[-1:] and re.search(rb"://[^\s/?#]*\Z", before):
        return None  # the user part of a URL
    if data[domain.end() : domain.end() + 1] == b":" and local[0] == b"git":
        return None
    if _PUBLIC_LOCAL.match(local[0]) and not (b"+" in local[0] and not local[0][:1].isdigit()):
        return None
    if _EXAMPLE_DOMAIN.match(domain[1]):
        return None
    return Personal(start, domain.end(), "email")


def _unusual(data: bytes, at: int, text: str) -> Personal | None:
    """An address with letters beyond ASCII beside its `@`, or with a name in quotes before it."""
    domain = _WIDE_DOMAIN.match(text, at)
    if domain is None or domain[2].lower().encode() in _NOT_TLD:
        return None
    if data[at - 1] == 34:
        quoted = _QUOTED_LOCAL.search(data, max(0, at - 66), at)
        return Personal(quoted.start(), domain.end(), "email") if quoted else None
    local = _WIDE_LOCAL.search(text[max(0, at - 32) : at])
    if local is None or (domain[1].isascii() and len(local[0]) > 16):
        return None
    return Personal(max(0, at - 32) + local.start(), domain.end(), "email")


_AT_WORD = Program(rb"(?i) ?[\[({<] ?at ?[\])}>] ?| at [a-z0-9\-]{1,63} dot ")
_SPELLED_LOCAL = re.compile(rb"[a-z0-9](?:[a-z0-9._%+\-]| ?[\[({<] ?dot ?[\])}>] ?){0,63}\Z", re.I)
_SPELLED_DOMAIN = re.compile(
    rb"(?:[a-z0-9\-]{1,63}(?: ?[\[({<] ?dot ?[\])}>] ?| ?\. ?| dot )){1,4}[a-z]{2,24}(?![a-z0-9])", re.I
)
_SAID_DOMAIN = re.compile(
    rb"(?:[a-z0-9\-]{1,63} dot ){1,3}(?:com|org|net|io|dev|edu|gov|co|ai|app|me|info|[a-z]{2})(?![a-z0-9])", re.I
)


def spelled_emails(data: bytes) -> Iterator[Personal]:
    """Addresses with `(at)` and `(dot)`, and `name at host dot com`."""
    for spans in _AT_WORD.spans(data):
        at, end = spans[0]
        bracketed = data[end - 1 : end] != b" " or data[at : at + 4].lower() != b" at "
        stop = end if bracketed else at + 4
        domain = (_SPELLED_DOMAIN if bracketed else _SAID_DOMAIN).match(data, stop)
        if domain is None:
            continue
        local = _SPELLED_LOCAL.search(data, max(0, at - 80), at)
        if local and not (local.start() and data[local.start() - 1 : local.start()].isalnum()):
            yield Personal(local.start(), domain.end(), "email", sure=False)


# --- runs of digits ---------------------------------------------------------------------------------------------------

_SIGN = rb"(?:[ ]?[().\-/][ ]?| {1,2}|\) ?|\x80)"
_BETWEEN = _SIGN + rb"?[(]?"
"""What may stand between two digits of a number."""


def _number_pattern() -> bytes:
    """Runs of seven to thirty-two digits that are not just a date as data writes it (`2026-01-12T…`): in logs and JSON nearly
    every run is one."""
    digit = _BETWEEN + rb"\d"
    parted = rb"(?:" + _SIGN + rb"[(]?|[(])"
    """Between two digits that do stand apart."""
    unlike = rb"(?:[ ][().\-/][ ]?[(]?|[().\-/][ ][(]?|[()][(]?|[.\-/][(]| {1,2}[(]?|\) ?[(]?|\x80[(]?|[(])"
    """The same, but none of the signs alone that stand in a date."""

    def more(least: int) -> bytes:
        return b"(?:%s){%d,%d}" % (digit, least, 31 - 6 + least)

    year, month = rb"(?:19|20)", rb"(?:0[1-9]|1[0-2])"
    return b"|".join(
        (
            rb"(?:[03-9]" + digit + rb"|1" + _BETWEEN + rb"[0-8]|2" + _BETWEEN + rb"[1-9])" + more(5),
            rb"(?:1" + parted + rb"9|2" + parted + rb"0)" + more(5),
            year + parted + rb"\d" + more(4),
            year + rb"\d" + parted + rb"\d" + more(3),
            year + rb"\d\d(?:\d|" + unlike + rb"\d)" + more(2),
            year + rb"\d\d[\-/.]\d" + parted + rb"\d" + more(1),
            year + rb"\d\d[\-/.](?:\d\d\d|(?:00|1[3-9]|[2-9]\d)" + digit + rb"|" + month + unlike + rb"\d)" + more(0),
            year
            + rb"\d\d[\-/.]"
            + month
            + rb"[\-/.](?:[4-9]|[0-3]"
            + parted
            + rb"\d|[0-3]\d"
            + digit
            + rb")"
            + more(0),
        )
    )


_RUN = Program(rb"(?:^|[^A-Za-z0-9_.$@&#%])[+(]{0,2}(?:" + _number_pattern() + rb")[Xx]?")
_GOES_ON = re.compile(rb"\d" + _BETWEEN + rb"\Z")
"""Digits that those behind them are a part of."""
_GLUED = re.compile(rb"[A-Za-z0-9_.$@&#%][+(]{1,2}\Z")
_JOINTS = b" ().-/\x80"
"""What `_GOES_ON` ends with."""
_PLUS = 43
_HEAD = re.compile(rb"[+(]{0,2}\d")
_near_phone = Finder("phone_words")
_PHONE_AFTER = re.compile(r"[\s|-]*\(?(?:office|fax|mobile|cell|home|work|phone|tel|desk|direct)\b", re.I)
_near_card = Finder("card_words")
_of_phones = Finder("phone_words", "phone_words_after")
_BY_SHAPE = re.compile(rb"\(?\+|\(?\d{3}\D|1[ .\-]?\(?\d{3}\D|\d{9}(?!\d)|00")
"""What is judged where nothing speaks of phones: with a country's code, in the groups of the US, as long as an SSN."""
_SSN_WORDS = re.compile(r"\bssn\b|social security|\bss#|tax(?:payer)? id", re.I)
_NOT_NUMBER = re.compile(rf"(?:{any_word('number_words').pattern}|no\.?|#|№)[\s:=#.]*$", re.I)
_DATE = re.compile(
    rb"(?:19|20)\d\d[-/. ](?:0?[1-9]|1[0-2])[-/. ](?:0?[1-9]|[12]\d|3[01])(?!\d)"
    rb"|(?:0?[1-9]|[12]\d|3[01])[-/.](?:0?[1-9]|1[0-2])[-/.](?:19|20)\d\d(?!\d)"
)
_GLUE_BEFORE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.$@&#%")
_GLUE_AFTER = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_@%")
_CARD = re.compile(rb"\d{4}([ .\x80-]?)\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}|\d{12,19}")
_NO_PHONE = re.compile(
    rb"\d{1,3}(?: \d{3})+ ?- ?\d{1,3}(?: \d{3})+|\d+\.\d+|\d{13,}|\d{1,6}|(?:19|20)\d\d ?[-/] ?(?:19|20)\d\d"
)
_US = re.compile(rb"(?:\+?1[ .\-]?)?(?:\(([2-9]\d{2})\)[ .\-]?|([2-9]\d{2})([ .\-]))([2-9]\d{2})[ .\-](\d{4})")
_SSN = re.compile(rb"(\d{3})([ \-])(\d{2})\2(\d{4})")


_EXTENSION_OF = re.compile(rb" ?(?:x|X|ext\.?) ?\d{0,6}\Z")


def issuer(digits: str) -> bool:
    """Is this the number range of a card issuer, with a length that issuer uses?"""
    size = len(digits)
    head2, head4 = int(digits[:2]), int(digits[:4])
    if digits[0] == "4":
        return size in (13, 16, 19)
    if 51 <= head2 <= 55 or 2221 <= head4 <= 2720:
        return size == 16
    if 2200 <= head4 <= 2204:
        return 16 <= size <= 19
    if head2 in (34, 37):
        return size == 15
    if head2 in (36, 38, 39) or 300 <= int(digits[:3]) <= 305:
        return size in (14, 16, 19)
    if head2 in (60, 62, 64, 65, 81, 35):
        return 16 <= size <= 19
    return head2 in (50, 56, 57, 58, 63, 67, 69, 61, 66, 68) and 12 <= size <= 19


def cn_resident_id(text: str) -> bool:
    """Region, real date, ISO 7064 MOD 11-2."""
    if not re.fullmatch(r"[1-8][1-7]\d{4}(?:19|20)\d{9}[\dXx]", text):
        return False
    try:
        date(int(text[6:10]), int(text[10:12]), int(text[12:14]))
    except ValueError:
        return False
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return "10X98765432"[sum(int(c) * w for c, w in zip(text, weights, strict=False)) % 11] == text[-1].upper()


_NO_DIGITS = bytes(set(range(256)) - set(range(48, 58)))
_ISO_DATE = re.compile(rb"(?:19|20)\d\d[-/.](?:0[1-9]|1[0-2])[-/.][0-3]\d")
_EXTENSION = re.compile(rb"(?: ?(?:x|ext\.?) ?)?\d{1,6}(?![A-Za-z0-9_])|(?<=[xX])\d{1,6}(?![A-Za-z0-9_])")


def numbers(text: str, data: bytes) -> Iterator[Personal]:
    """Cards, ids, SSNs and phones among the digit runs of a text."""
    size = len(data)
    spoken: bool | None = None
    last = -8
    for spans in _RUN.spans(data):
        start, end = spans[0]
        if start or _HEAD.match(data) is None:
            start += 1  # behind the character that parts it from what stands before
        before = data[start - 1] if start else 32
        after = data[end] if end < size else 32
        apart, last = start - last > 3 and _PLUS not in data[start : start + 2], end
        if before in b"+(" and _GLUED.search(data, max(0, start - 3), start):
            continue
        if apart and before in _JOINTS and _GOES_ON.search(data, max(0, start - 5), start):
            continue
        if end - start < 13 and _ISO_DATE.match(data, start):
            continue
        if after in _GLUE_AFTER:
            extension = _EXTENSION.match(data, end)
            if extension is None:
                continue
            end, after = extension.end(), 32
        # 12ab-4567…, item/4567…, 4567-ab: a part of an identifier
        if before in b"-/" and start > 1 and data[start - 2] in _GLUE_BEFORE:
            continue
        glued = after == 45 and end + 1 < size and data[end + 1] in _GLUE_BEFORE
        if glued and _PHONE_AFTER.match(text[end : end + 12]) is None:
            continue
        if after == 46 and end + 1 < size and 48 <= data[end + 1] < 58:
            continue
        if end - start <= 11 and _BY_SHAPE.match(data, start) is None:
            if spoken is None:
                spoken = _of_phones(text) or speaks(text)
            if not spoken:
                continue
        found = _number(text, data, start, end)
        if found is not None:
            yield found


def _number(text: str, data: bytes, start: int, end: int) -> Personal | None:
    run = data[start:end]
    digits = run.translate(None, _NO_DIGITS).decode()
    count = len(digits)
    if run[:1].isdigit() and b"(" not in run:
        if count in (17, 18) and run.isalnum() and cn_resident_id(run.decode()):
            return Personal(start, end, "cn-resident-id")
        if 12 <= count <= 19 and _CARD.fullmatch(run) and luhn(digits) and len(set(digits)) > 1:
            near = text[max(0, start - 40) : start]
            if count >= 14 and issuer(digits) and not _NOT_NUMBER.search(near[-16:]):
                return Personal(start, end, "credit-card")
            if _near_card(near):
                return Personal(start, end, "credit-card", sure=False)
        ssn = _SSN.fullmatch(run)
        if ssn and ssn[1] not in (b"000", b"666") and ssn[1][:1] != b"9" and ssn[3] != b"00" and ssn[4] != b"0000":
            near = text[max(0, start - 48) : start]
            if ssn[2] == b"-" or _SSN_WORDS.search(near):
                return Personal(start, end, "us-ssn")
        if count == 9 and run.isdigit() and _SSN_WORDS.search(text[max(0, start - 32) : start]):
            return Personal(start, end, "us-ssn")
        if count >= 8 and run[-1:].isdigit() and numbered(text[max(0, start - BEFORE) : start], digits):
            return Personal(start, end, "national-id")
    if not 7 <= count <= 15 and not run.startswith(b"00"):
        return None
    return _phone(text, start, run)


def _phone(text: str, start: int, run: bytes) -> Personal | None:
    end = start + len(run.rstrip(b" (.-/"))
    run = _EXTENSION_OF.sub(b"", run).rstrip(b" (.-/")
    if run.startswith((b"+", b"(+")):
        if re.fullmatch(rb"\+\d{1,9}\.\d+", run):
            return None  # a signed decimal
        national = run.replace(b"(0)", b"").translate(None, _NO_DIGITS).decode()
        return Personal(start, end, "phone") if 7 <= len(national) <= 16 and _possible(national) else None
    if run.startswith(b"00") and len(run) > len(run.translate(None, b" .-/")) and b"00" not in run[2:4]:
        national = run[2:].replace(b"(0)", b"").translate(None, _NO_DIGITS).decode()
        if 9 <= len(national) <= 14 and _possible(national):
            return Personal(start, end, "phone")
    us = _US.fullmatch(run)
    if us and (us[1] or us[3]):
        return Personal(start, end, "phone")
    if _DATE.search(run) or _NO_PHONE.fullmatch(run):
        return None
    near = text[max(0, start - 40) : start]
    cut = max(near.rfind("\n\n"), near.rfind("。"))
    near = near[cut + 1 :]
    spoken = _near_phone(near) or _PHONE_AFTER.match(text[end : end + 12])
    if not spoken or _NOT_NUMBER.search(near[-16:]):
        return None
    return Personal(start, end, "phone", sure=False)


@lru_cache(1024)
def _possible(digits: str) -> bool:
    """Is this number, written with `+`, possible in its country? The library is loaded at the first candidate."""
    import phonenumbers

    try:
        number = phonenumbers.parse("+" + digits, None)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_possible_number(number)


# --- IBAN -------------------------------------------------------------------------------------------------------------

_IBAN_LENGTHS = {
    country: size
    for size, countries in {
        15: "NO", 16: "BE", 18: "DK FO FI GL NL FK", 19: "MK SI SD", 20: "AT BA EE KZ LT LU XK MN", 21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ TL OM SO", 24: "AD CZ ES MD PK RO SA SE SK TN VG DZ",
        25: "PT ST LY", 26: "IS TR", 27: "FR GR IT MC MR SM BI DJ", 28: "AL AZ BY CY DO GT HU LB PL SV NI",
        29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip


def iban(data: bytes, start: int, end: int) -> Personal | None:
    """The IBAN in data[start:end], with the length of its country and a right check number. What parts it from the text
    before it may be its first character."""
    if not data[start : start + 1].isalpha():
        start += 1
    wanted = _IBAN_LENGTHS.get(data[start : start + 2].decode().upper())
    if wanted is None:
        return None
    compact = ""
    for place in range(start, min(end, len(data))):
        if data[place] not in b" -":
            compact += chr(data[place])
        if len(compact) == wanted:
            number = "".join(str(int(c, 36)) for c in compact[4:] + compact[:4])
            if int(number) % 97 == 1 and not data[place + 1 : place + 2].isalnum():
                return Personal(start, place + 1, "iban")
            return None
    return None


# --- addresses --------------------------------------------------------------------------------------------------------

_COUNTRIES = "|".join(sorted(_IBAN_LENGTHS)).encode()
_IBANS = Program(rb"(?i)(?:^|[^a-z0-9])(?:" + _COUNTRIES + rb")\d{2}(?:[ \-]?[a-z0-9]{4}){2,7}(?:[ \-]?[a-z0-9]{1,4})?")
_IPV4 = Program(
    rb"(?:^|[^A-Za-z0-9._\-])(?:::[fF]{4}:)?(?:[1-9]|1[1-9]|[2-9]\d|1[013-9]\d|12[0-689]|[2-9]\d\d)\.\d{1,3}\.\d{1,3}\.\d{1,3}"
)
"""With what parts it from the text before; not those of one's own network (10.…), which logs are full of."""
_IPV6 = Program(
    rb"[23][0-9a-fA-F]{3}:(?:[0-9a-fA-F]{0,4}:){1,6}[0-9a-fA-F]{0,4}|"
    rb"(?:[0-9a-fA-F]{3,4}:){4,7}(?:[0-9a-fA-F]{1,4}:){0,3}[0-9a-fA-F]{1,4}"
)
_NAME_ENDS = tuple(bytes([code]) for code in range(128) if chr(code).isalnum() or chr(code) in ".-_")
_PRIVATE_RANGES = (b"10.", b"127.", b"192.168.", b"0.", b"169.254.", b"255.")
_WELL_KNOWN = WORDS["well_known_ip"]  # fmt: skip
_VERSION_BEFORE = re.compile(
    rb"(?:version|ver|release|oid|build|v|chrome|firefox|safari|edge|edg|opr|==|>=|<=|~=|\^|rev|update|upgrade(?: to)?)"
    rb"[\s:/=\"'v]*\Z",
    re.I,
)
_VERSION_NEAR = re.compile(
    rb"version|upgrad|updat|downgrad|section|\brfc|releas|\bspec|chapter|\bbump|\broll|\bv8\b|openssl|\bnpm\b|driver|"
    rb"firmware|patch|\bdll\b|assembly|nuget|setup|package|install",
    re.I,
)


def _ipv4(data: bytes, first: int, end: int) -> Personal | None:
    if first or (not data[:1].isdigit() and data[:2] != b"::"):
        first += 1
    start = max(first, data.rfind(b":", first, end) + 1)
    if data.startswith(_PRIVATE_RANGES, start):
        return None
    before, after = data[max(0, first - 1) : first], data[end : end + 2]
    if before.isalnum() or before in (b".", b"-", b"_") or after[:1].isalnum() or after[:1] == b"_":
        return None
    if after[:1] in (b".", b"-") and after[1:2].isalnum():
        return None
    if (
        before == b":"
        and data[max(0, first - 7) : first].lower() == b"::ffff:"
        and data[first - 8 : first - 7] in _NAME_ENDS
    ):
        return None  # the end of a longer address
    address = data[start:end].decode()
    if address in _WELL_KNOWN or not _public(address) or _VERSION_BEFORE.search(data, max(0, start - 24), start):
        return None
    if int(address[: address.index(".")]) < 32 and _VERSION_NEAR.search(data, max(0, start - 48), start):
        return None
    return Personal(first, end, "ip-address")


def _ipv6(data: bytes, start: int, end: int) -> Personal | None:
    before, after = data[max(0, start - 1) : start], data[end : end + 1]
    if before == b":" and data[start - 2 : start - 1].translate(None, b"0123456789abcdefABCDEF:"):
        before = b" "  # a label's colon
    if before.isalnum() or before in (b":", b".", b"-", b"_") or after.isalnum() or after in (b":", b"_"):
        return None
    if data[start:end].count(b":") >= 3 or b"::" in data[start:end]:
        address = data[start:end].decode()
        if _public(address) and not address.startswith(("2001:4860:4860", "2606:4700:4700")):
            return Personal(start, end, "ip-address")
    return None


@lru_cache(4096)
def _public(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return found.is_global and not found.is_multicast and not str(found).endswith((".0.0", ".0.0.0"))


# --- wallets ----------------------------------------------------------------------------------------------------------

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


_IN_BASE58 = re.compile(f"[{_BASE58}]+").fullmatch


def base58_check(text: str) -> str | None:
    """The kind of a Base58Check string with a right checksum: an address or a private key (WIF); else None."""
    if not 26 <= len(text) <= 52 or text[0] not in "13KL5T9c" or not _IN_BASE58(text):
        return None
    number = 0
    for char in text:
        number = number * 58 + _BASE58.index(char)
    raw = number.to_bytes(40, "big").lstrip(b"\0")
    raw = b"\0" * (len(text) - len(text.lstrip("1"))) + raw
    if len(raw) < 5 or hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] != raw[-4:]:
        return None
    return "wallet-key" if len(raw) >= 37 else "crypto-address"


# --- all of them ------------------------------------------------------------------------------------------------------

_AT, _DIGITS, _SIX, _FOUR, _IBAN = range(5)
SIGNS = (
    rb"(?i)[\[({<] ?at| dot ",
    rb"[0-9](?:[ ().\-/\x80]{0,3}[0-9]){6}",
    rb"[0-9a-fA-F]{3}:[0-9a-fA-F]{0,4}:[0-9a-fA-F:]",
    rb"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]",
    rb"(?i)(?:^|[^a-z0-9])(?:" + _COUNTRIES + rb")[0-9]{2}[ \-]?[a-z0-9]{4}",
)
"""What a text has in it when there can be personal data (but e-mail, which is found by its `@`)."""


_LOCATED = ((_IBAN, _IBANS, iban), (_FOUR, _IPV4, _ipv4), (_SIX, _IPV6, _ipv6))
"""What is located by a pattern, and who judges it."""


def personal(text: str, data: bytes, seen: Collection[int]) -> Iterator[Personal]:
    """Everything but e-mail, in a text in which these of the `SIGNS` were seen: not versions, OIDs, private or documentation
    addresses, nor well-known resolvers."""
    if _AT in seen:
        yield from spelled_emails(data)
    if _DIGITS in seen:
        yield from numbers(text, data)
    for sign, program, judge in _LOCATED:
        for spans in program.spans(data) if sign in seen else ():
            found = judge(data, *spans[0])
            if found is not None:
                yield found
