"""The words of a text, as the lexical index and its queries both see them.

Any script, one analysis: text is taken in compatibility form (NFKC) with traditional Chinese characters folded to
simplified ones. Runs of scripts that set no blanks between words (Chinese, Japanese, Korean syllables, Thai and its
neighbours) become overlapping pairs of characters. Other words are lower-cased, freed of Latin accents and stemmed by
their script (Snowball: English for Latin, Russian for Cyrillic, Greek, Arabic). What is joined by `_ - . / : @ '` or by
camel case (identifiers, paths, versions, dates) counts whole and in its parts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

ANALYSIS_VERSION = 1
"""Raised with every change that makes other terms of the same text: an index of another version has to be rebuilt."""

LONGEST_TERM = 80
"""Longer 'words' (base64, URLs with their query) are only found by their parts."""

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HANGUL = "\uac00-\ud7a3\u1100-\u11ff\u3131-\u318e"
_THAI_AND_NEIGHBOURS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_PAIRED = _HAN + _KANA + _HANGUL + _THAI_AND_NEIGHBOURS
# Python's \w knows letters and digits only; marks belong to words too (accents, points of Hebrew and Arabic, Indic).
_MARKS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0dff"
_WORD = rf"(?:[^\W{_PAIRED}]|[{_MARKS}])+"
_TOKEN = re.compile(
    rf"(?P<grouped>(?<![\w.,])\d{{1,3}}(?:,\d{{3}})+(?![\d,]))"
    rf"|(?P<paired>[{_PAIRED}]+)"
    rf"|(?P<word>{_WORD}(?:[._\-/:@'’\\]{{1,3}}{_WORD})*(?:\+\+|#(?!\w))?)"
)
_PART = re.compile(_WORD)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
_CAMEL_BORDER = re.compile(r"[a-z\d][A-Z]|[A-Z]{2}[a-z]")
_SINGLE = re.compile(rf"[{_PAIRED}]")
_PHRASE_LANGUAGES = ("zh", "ja", "ko", "th")
PARTICLE_WEIGHT = 0.2
LEAST_RELATED, MOST_RELATED = 5, 40
_LEAST_MISSPELT = 6
"""Letters of a word that may have related forms."""
# What follows a base character and may be composed with it: looked at together, so that places in the text stay known.
_CLUSTER = re.compile(r"(?s).[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u1160-\u11ff\u3099\u309a\uff9e\uff9f]*")


@dataclass(slots=True, frozen=True)
class Term:
    """A term and where it stands: code points of the text as it was given, `end` exclusive."""

    text: str
    start: int
    end: int


@dataclass(slots=True, frozen=True)
class QueryTerms:
    """What to look for: `weights` of the terms (1 for content, less for form words beside content), and `characters`
    of a paired script that stand alone in the query, which no pair can find."""

    weights: dict[str, float]
    characters: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.weights or self.characters)


def terms(text: str) -> Generator[Term]:
    """The terms of a text in their order; a compound first, then its parts."""
    plain, places = _normalise(text)
    for match in _TOKEN.finditer(plain):
        for term, start, end in _terms_of(match):
            if places is None:
                yield Term(term, start, end)
            else:
                # A place inside one character of the source (¼ -> 1/4) stands for all of it.
                yield Term(term, places[start][0], places[end - 1][1])


def index_terms(text: str) -> list[str]:
    """The terms of a text without their places, for an index."""
    found: list[str] = []
    for grouped, run, word in _TOKEN.findall(_plain(text)):
        if word:
            found += _word_terms(word)
        elif run:
            found += [run[place : place + 2] for place in range(len(run) - 1)] or [run]
        else:
            found.append(grouped.replace(",", ""))
    return found


def paired_characters(text: str) -> set[str]:
    """The single characters of paired scripts in a text: what a query of one character is looked up in."""
    if text.isascii():
        return set()
    return set(_SINGLE.findall(_plain(text)))


def query_terms(query: str) -> QueryTerms:
    """What a query asks for. Form words ('how much', 什么, いつ) are left out, unless there is nothing else."""
    forms = _form_words()
    plain = _plain(query)
    everything: dict[str, float] = {}
    content: dict[str, float] = {}
    alone: dict[str, None] = {}
    for match in _TOKEN.finditer(plain):
        found = [term for term, _, _ in _terms_of(match)]
        everything |= dict.fromkeys(found, 1.0)
        if run := match["paired"]:
            for piece in forms.phrases.split(run):
                pairs = [piece[place : place + 2] for place in range(len(piece) - 1)]
                content |= {pair: forms.weight(pair) for pair in pairs}
                if len(piece) == 1 and piece not in forms.particles:
                    alone[piece] = None
        else:
            content |= {term: 1.0 for term in found if term not in forms.words}
    if alone or any(weight == 1.0 for weight in content.values()):
        return QueryTerms(content, tuple(alone))
    singles = tuple(term for term in everything if _SINGLE.fullmatch(term))
    return QueryTerms({term: 1.0 for term in everything if term not in singles}, singles)


Groups = tuple[tuple[str, ...], ...]


def asked_groups(query: str) -> Groups:
    """What has to stand in a text that speaks of all of the query: of each group at least one term (or character).

    A word is a group; a compound counts whole or by its parts. In a run without blanks each character is a group of the
    pairs that it is in: so the pair on the border of two words need not stand in the text (迁移数据库 speaks of
    数据库迁移). Form words do not count, unless there is nothing else.
    """
    forms = _form_words()
    plain = _plain(query)
    content: dict[tuple[str, ...], None] = {}
    everything: dict[tuple[str, ...], None] = {}
    for match in _TOKEN.finditer(plain):
        if run := match["paired"]:
            everything |= dict.fromkeys((character,) for character in run)
            for piece in forms.phrases.split(run):
                content |= dict.fromkeys(_of_characters(piece, forms.particles))
        else:
            found = [term for term, _, _ in _terms_of(match)]
            whole, *pieces = found
            # `C++` is not `C`, but postgresql is PostgreSQL
            parts = [(piece, whole) for piece in pieces] if len(pieces) > 1 else [(whole,)]
            everything |= dict.fromkeys(parts)
            content |= dict.fromkeys(part for part in parts if forms.words.isdisjoint(part))
    return tuple(content or everything)


def _of_characters(piece: str, particles: frozenset[str]) -> Generator[tuple[str, ...]]:
    for place, character in enumerate(piece):
        if character in particles:
            continue
        pairs = (piece[at : at + 2] for at in (place - 1, place) if 0 <= at < len(piece) - 1)
        # A pair with a particle in it mostly stands on the border of two words.
        yield tuple(pair for pair in pairs if particles.isdisjoint(pair)) or (character,)


def plain_form(text: str) -> str:
    """Text as it is compared word for word: compatibility form, simplified characters, case folded, blanks as one."""
    plain = _plain(text)
    # Word by word: whether a word keeps its accents must not depend on the words beside it.
    return " ".join(_fold(plain).split() if plain.isascii() else map(_fold, plain.split()))


def written_traditionally(text: str) -> bool:
    """Are there Chinese characters in it that only the traditional script has?"""
    return not _only_traditional().isdisjoint(text)


@cache
def _only_traditional() -> frozenset[str]:
    return frozenset(map(chr, _simplified())) - frozenset(_simplified().values())


def bare_phrase(query: str) -> str:
    """The query as it stands, in `plain_form`, without the form words and signs around it (the kettle? -> kettle)."""
    forms = _form_words()
    plain = _plain(query)
    held = [match for match in _TOKEN.finditer(plain) if match["paired"] or _fold(match[0]) not in forms.words]
    return plain_form(plain[held[0].start() : held[-1].end()] if held else plain)


def related(asked: str, term: str) -> bool:
    """Is this term another form of the one that was asked for: a longer or shorter word of its beginning (postgres,
    postgresql), or one letter away (a slip of the pen)? Short terms have no other forms."""
    if not (LEAST_RELATED <= len(asked) <= MOST_RELATED and len(term) >= LEAST_RELATED) or not (
        asked.isalpha() and term.isalpha()
    ):
        return False
    short, long = sorted((asked, term), key=len)
    if long.startswith(short):
        return len(short) >= 0.6 * len(long)
    return (
        len(short) >= _LEAST_MISSPELT
        and len(long) - len(short) <= 1
        and asked[0] == term[0]
        and _one_apart(short, long)
    )


def _one_apart(short: str, long: str) -> bool:
    """One letter more, or another, or two that changed places."""
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at + 1 : at + 2] + short[at : at + 1]
    return short[at + 1 :] == long[at + 1 :] or (swapped == long[at : at + 2] and short[at + 2 :] == long[at + 2 :])


_LATIN = "abcdefghijklmnopqrstuvwxyz"
_LATIN_OTHER = "æœøłđðþı"
"""Letters of their own; the others lose their accents (`plain_form`)."""
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґ"
_GREEK = "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώ"


def one_letter_away(term: str) -> Iterator[str]:
    """The words into which one slip of the pen turns a word (in `plain_form`): a letter left out, added or changed, or two in
    the wrong order; never the first letter. Words of fewer than six letters have none: each is a word of its own."""
    if not (_LEAST_MISSPELT <= len(term) <= MOST_RELATED and term.isalpha()):
        return
    alphabet = next((one for one in (_CYRILLIC, _GREEK) if term[0] in one), _LATIN)
    if alphabet is _LATIN and not term.isascii():
        alphabet += _LATIN_OTHER
    for at in range(1, len(term)):
        yield term[:at] + term[at + 1 :]
        if at + 1 < len(term) and term[at] != term[at + 1]:
            yield term[:at] + term[at + 1] + term[at] + term[at + 2 :]
        for letter in alphabet:
            if letter != term[at]:
                yield term[:at] + letter + term[at + 1 :]
    for at in range(1, len(term) + 1):
        for letter in alphabet:
            yield term[:at] + letter + term[at:]


@dataclass(slots=True, frozen=True)
class _FormWords:
    words: frozenset[str]
    phrases: re.Pattern[str]
    particles: frozenset[str]

    def weight(self, pair: str) -> float:
        """A pair with a particle in it mostly stands on the border of two words."""
        return PARTICLE_WEIGHT if not self.particles.isdisjoint(pair) else 1.0


@cache
def _form_words() -> _FormWords:
    source = resources.files("palace_pipeline.transcripts").joinpath("form_words.txt").read_text(encoding="utf-8")
    lists = dict(line.split(":", 1) for line in source.splitlines() if not line.startswith("#"))
    particles = frozenset(lists.pop("particles").strip())
    phrases = sorted((w for key in _PHRASE_LANGUAGES for w in lists.pop(key).split()), key=len, reverse=True)
    words = {term for line in lists.values() for word in line.split() for term in index_terms(word)}
    return _FormWords(frozenset(words), re.compile("|".join(map(re.escape, phrases))), particles)


def _terms_of(match: re.Match[str]) -> Generator[tuple[str, int, int]]:
    start = match.start()
    if match["grouped"]:
        yield match["grouped"].replace(",", ""), start, match.end()
    elif run := match["paired"]:
        if len(run) == 1:
            yield run, start, start + 1
        for place in range(len(run) - 1):
            yield run[place : place + 2], start + place, start + place + 2
    else:
        yield from _words(match["word"], start)


def _words(whole: str, start: int) -> Generator[tuple[str, int, int]]:
    parts = [
        (piece, start + part.start() + offset)
        for part in _PART.finditer(whole)
        for piece, offset in _pieces(part.group())
    ]
    if len(parts) == 1 and parts[0][0] == whole:
        yield _stem(whole), start, start + len(whole)
        return
    if len(whole) <= LONGEST_TERM:
        compound = _PART.fullmatch(whole) is None or "_" in whole
        yield (_fold(whole) if compound else _stem(whole)), start, start + len(whole)
    for piece, place in parts:
        if len(piece) <= LONGEST_TERM:
            yield _stem(piece), place, place + len(piece)


@lru_cache(maxsize=50_000)
def _word_terms(whole: str) -> tuple[str, ...]:
    """The terms of a word by themselves; nine words of ten in code and logs were there before."""
    return tuple(term for term, _, _ in _words(whole, 0))


def _pieces(word: str) -> Generator[tuple[str, int]]:
    """snake_case and camelCase taken apart, each piece with its place in the word."""
    place = 0
    for part in word.split("_"):
        if part.isascii() and _CAMEL_BORDER.search(part):
            for piece in _CAMEL.finditer(part):
                yield piece.group(), place + piece.start()
        elif part:
            yield part, place
        place += len(part) + 1


def _plain(text: str) -> str:
    """What `_normalise` gives, without the places: ten times as fast for text that is not in this form."""
    return text if text.isascii() else _in_simplified(unicodedata.normalize("NFKC", text))


def _normalise(text: str) -> tuple[str, list[tuple[int, int]] | None]:
    """Text in compatibility form with simplified characters, and for each character of it the span in `text` that it
    comes from (None: the same place)."""
    if text.isascii():
        return text, None
    if unicodedata.is_normalized("NFKC", text):
        return _in_simplified(text), None
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    for cluster in _CLUSTER.finditer(text):
        piece = unicodedata.normalize("NFKC", cluster.group())
        pieces.append(piece)
        places.extend([cluster.span()] * len(piece))
    return _in_simplified("".join(pieces)), places


def _in_simplified(text: str) -> str:
    """Traditional characters as simplified ones. `str.translate` would look at every character, and most texts have none."""
    table = _simplified()
    return _any_traditional().sub(lambda found: table[ord(found[0])], text)


@cache
def _any_traditional() -> re.Pattern[str]:
    return re.compile("[" + "".join(map(re.escape, map(chr, _simplified()))) + "]")


@cache
def _simplified() -> dict[int, str]:
    source = resources.files("palace_pipeline.transcripts").joinpath("traditional.txt").read_text(encoding="utf-8")
    pairs = [pair for line in source.splitlines() if not line.startswith("#") for pair in line.split()]
    return {ord(traditional): simplified for traditional, simplified in pairs}


def _fold(word: str) -> str:
    """Case and, in Latin letters, accents away. Cyrillic й is a letter of its own and stays; ё is written е by most."""
    word = word.casefold().replace("ё", "е").replace("’", "'")
    if word.isascii() or not any("\u00c0" <= c <= "\u024f" or "\u0300" <= c <= "\u036f" or c > "\u1e00" for c in word):
        return word
    bare = "".join(c for c in unicodedata.normalize("NFD", word) if not "\u0300" <= c <= "\u036f" or c == "\u0306")
    return unicodedata.normalize("NFC", bare)


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    folded = _fold(word)
    if len(folded) < 3 or not folded[0].isalpha():
        return folded
    for language, first, last in (
        ("english", "a", "z"),
        ("russian", "\u0400", "\u04ff"),
        ("greek", "\u0370", "\u03ff"),
        ("arabic", "\u0600", "\u06ff"),
    ):
        if all(first <= character <= last for character in folded):
            return _stemmer(language).analyze(folded)[0]
    return folded


@cache
def _stemmer(language: str) -> TextAnalyzer:
    import tantivy

    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stemmer(language)).build()
