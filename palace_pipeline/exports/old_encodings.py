"""Which encoding a text without Unicode has: the usual ones of East Asia and of Russian, else that of Western Europe.

Notes saved by older Chinese, Japanese and Korean editors are still about. Taken for Latin-1 they would become rubbish
that nobody notices. The judgement needs no tables: in running text of such an encoding nearly all characters come from
the blocks of the frequent ones, and bytes of any other encoding fall into these blocks only by chance.
"""

from __future__ import annotations

import re

_SAMPLE = 65536
_SURE = 0.8
_KOREAN = 0.98
_HIGH = re.compile(rb"[\x80-\xff]")
_WORD = re.compile(rb"[\xc0-\xff]+")

# Two bytes of a frequent character or of punctuation: GB 2312 level 1, Big5 level 1, KS X 1001 Hangul.
_FREQUENT: dict[str, re.Pattern[bytes]] = {
    "gb18030": re.compile(rb"[\xa1-\xa3\xb0-\xd7][\xa1-\xfe]"),
    "big5hkscs": re.compile(rb"[\xa1-\xa3\xa4-\xc6][\x40-\x7e\xa1-\xfe]"),
    "euc-kr": re.compile(rb"[\xa1-\xa3\xb0-\xc8][\xa1-\xfe]"),
}
_PAIR: dict[str, re.Pattern[bytes]] = {
    "gb18030": re.compile(rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[0-9][\x81-\xfe][0-9])"),
    "big5hkscs": re.compile(rb"[\x81-\xfe][\x40-\x7e\xa1-\xfe]"),
    "euc-kr": re.compile(rb"[\xa1-\xfe][\xa1-\xfe]"),
}
# Japanese shows itself by its syllables, which are a good part of every text.
_SYLLABLES: dict[str, re.Pattern[bytes]] = {
    "cp932": re.compile(rb"\x82[\x9f-\xf1]|\x83[\x40-\x96]"),
    "euc-jp": re.compile(rb"[\xa4\xa5][\xa1-\xf6]"),
}
_CHARACTER: dict[str, re.Pattern[bytes]] = {
    "cp932": re.compile(rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\xa1-\xdf]"),
    "euc-jp": re.compile(rb"\x8f?[\x8e\xa1-\xfe][\xa1-\xfe]"),
}
_SYLLABLES_AT_LEAST = 0.3


def decode_old(data: bytes) -> str:
    """Text that is neither UTF-8 nor UTF-16. Never fails: what fits nothing is Latin-1."""
    sample = data[:_SAMPLE]
    if likely := (*_candidates(sample), *_cyrillic(sample)):
        return data.decode(likely[0], "replace")  # the sample fits; what is broken behind it is one character
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:  # five bytes that code page 1252 leaves out
        return data.decode("latin-1")


def _candidates(sample: bytes) -> list[str]:
    """East Asian encodings that the sample surely has, the likeliest first."""
    if len(_HIGH.findall(sample)) < 4:
        return []
    japanese = [
        encoding
        for encoding, syllable in _SYLLABLES.items()
        if _fits(encoding, sample)
        and len(syllable.findall(sample)) >= _SYLLABLES_AT_LEAST * max(1, len(_CHARACTER[encoding].findall(sample)))
    ]
    if japanese:
        return japanese
    shares = {
        encoding: _share(encoding, pair.findall(sample)) for encoding, pair in _PAIR.items() if _fits(encoding, sample)
    }
    likely = sorted((encoding for encoding in shares if shares[encoding] >= _SURE), key=lambda e: -shares[e])
    return ["euc-kr", *likely] if shares.get("euc-kr", 0) > _KOREAN and _spaced(sample) else likely


def _spaced(sample: bytes) -> bool:
    """Korean has blanks between its words. Its syllables lie where Chinese has frequent characters, so this decides."""
    return sample.count(b" ") * 8 >= len(_PAIR["euc-kr"].findall(sample))


def _cyrillic(sample: bytes) -> tuple[str, ...]:
    """Whole words without ASCII are no Western European text; where small letters lie tells the two encodings apart."""
    words = _WORD.findall(sample)
    letters = b"".join(words)
    if len(letters) < max(8, 3 * len(words)):
        return ()
    return ("cp1251",) if sum(byte >= 0xE0 for byte in letters) * 2 > len(letters) else ("koi8-r",)


def _share(encoding: str, characters: list[bytes]) -> float:
    """The share of frequent characters among all that are no ASCII."""
    frequent = _FREQUENT[encoding]
    return sum(frequent.fullmatch(pair) is not None for pair in characters) / len(characters) if characters else 0.0


def _fits(encoding: str, sample: bytes) -> bool:
    for end in range(4):  # the sample may end inside a character
        try:
            sample[: len(sample) - end].decode(encoding)
        except UnicodeDecodeError:
            continue
        return True
    return False
