"""Places of tokens, word by word: a word behind a blank has the same tokens wherever it stands, so each is tokenized once.

That holds for tokenizers which split at blanks before anything else and whose normaliser changes a character at a time:
the default model's own, and the plain forms of others (`stand_alone`). Everything else, and a slice in which a word turns
into blanks or nothing, goes through the package as a whole. What comes out is the same, to the last offset.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import orjson
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_LONGEST = 32
"""Characters of a word that is kept: longer ones (a clause in Chinese, a hash) seldom come again."""
_MOST = 60_000
"""Words that are kept, some 15 MB."""
_BLANKS = {"Whitespace", "WhitespaceSplit", "BertPreTokenizer"}
_ONE_BY_ONE = {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "BertNormalizer"}

Places = tuple[int, ...]
"""Start and end of each token of a word, one behind the other, counted from the word's first character."""


class Words:
    """Offsets of the tokens of slices of text, for one tokenizer. It may serve several threads."""

    def __init__(self, tokenizer: Tokenizer, own: Tokenizer) -> None:
        """`own`: a tokenizer with the normaliser and the splitting of the default model."""
        self._tokenizer = tokenizer
        self._apart = stand_alone(tokenizer, own)
        self._added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        self._odd = set[str]()
        self._behind: dict[str, Places] = {}
        self._first: dict[str, Places] = {}
        self._last: Places = ()
        if self._apart:
            self._last = self._encoded(" ", 1)

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Start and end (code points) of every token, int64 [tokens, 2]. Of all blanks the text has only spaces."""
        found = self._by_words(text) if self._apart and not any(token in text for token in self._added) else None
        return found if found is not None else encoded(self._tokenizer, text)

    def _by_words(self, text: str) -> NDArray[np.int64] | None:
        words = text.split(" ")
        behind: list[Places | None] = [*map(self._behind.get, words)]
        if words[0]:
            behind[0] = self._first.get(words[0])
        if None in behind:
            new = {at: word for at, word in enumerate(words) if behind[at] is None}
            if sum(len(word) for word in new.values() if len(word) > _LONGEST) * 4 > len(text):
                return None  # quicker in one go
            for at, word in new.items():
                behind[at] = self._look(word, first=at == 0 and bool(word))
                if behind[at] is None:
                    return None
        places = [place or () for place in behind]
        if not words[-1]:
            places[-1] = self._last
        sizes = np.fromiter(map(len, words), np.int64, len(words)) + 1
        counts = np.fromiter(map(len, places), np.int64, len(words))
        flat = np.fromiter(chain.from_iterable(places), np.int64, int(counts.sum()))
        flat += np.repeat(np.cumsum(sizes) - sizes, counts)
        return flat.reshape(-1, 2)

    def _look(self, word: str, *, first: bool) -> Places | None:
        """The tokens of a word that is not known yet; None if it is more, or less, than a word."""
        kept = self._first if first else self._behind
        if word in kept:
            return kept[word]
        if not word:
            return kept.setdefault("", ())
        if word in self._odd or not self._is_word(word):
            if len(word) <= _LONGEST and len(self._odd) < _MOST:
                self._odd.add(word)
            return None
        places = self._encoded(word, 0) if first else self._encoded(f" {word}", 1)
        if len(word) <= _LONGEST:
            if len(kept) >= _MOST:
                kept.clear()
            kept[word] = places
        return places

    def _is_word(self, word: str) -> bool:
        """Whether it stays in one piece when it is normalised, with something in it."""
        if word.isascii() and word.isprintable():
            return True
        normalizer = self._tokenizer.normalizer
        text = normalizer.normalize_str(word) if normalizer else word
        return bool(text) and not any(character.isspace() for character in text)

    def _encoded(self, text: str, before: int) -> Places:
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return tuple(place - before for place in chain.from_iterable(offsets))


def encoded(tokenizer: Tokenizer, text: str) -> NDArray[np.int64]:
    """Start and end of every token of a text that the package tokenizes as a whole, int64 [tokens, 2]."""
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    return np.fromiter(chain.from_iterable(offsets), np.int64, 2 * len(offsets)).reshape(-1, 2)


def stand_alone(tokenizer: Tokenizer, own: Tokenizer) -> bool:
    """Whether the words of a text can be tokenized one by one."""
    if any(token.normalized for token in tokenizer.get_added_tokens_decoder().values()):
        return False
    if _state(tokenizer.pre_tokenizer) == _state(own.pre_tokenizer):
        # Signs of blanks are kept as tokens here, so what becomes of several in a row has to be known.
        return _state(tokenizer.normalizer) == _state(own.normalizer)
    splits = orjson.loads(_state(tokenizer.pre_tokenizer)).get("type")
    normalizer = tokenizer.normalizer
    return splits in _BLANKS and (normalizer is None or orjson.loads(_state(normalizer)).get("type") in _ONE_BY_ONE)


def _state(part: object) -> bytes:
    return part.__getstate__() if part is not None else b"{}"  # pyright: ignore
