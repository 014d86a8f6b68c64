"""Tokens of one short text without waiting for the whole tokenizer.

Loading a Unigram tokenizer of 250,000 pieces takes the tokenizers package 0.7 s, most of what a search at the command
line has to wait for. Here the pieces go into a plain dictionary (0.2 s), and the best segmentation is searched in
Python, which is fast enough for a question. Normaliser, word splitting and marks stay those of the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from palace_pipeline.embedding.tokens import whole

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LONGEST = 2_000
"""Characters; for longer texts the search in Python takes more time than it saves."""

_UNKNOWN_PENALTY = 10.0
"""An unknown character costs this much more than the rarest piece, as in SentencePiece."""


class QuickTokenizer:
    """The token ids of short texts, equal to those of the package's own tokenizer (see `load_quick`)."""

    def __init__(self, shell: Tokenizer, vocabulary: list[tuple[str, float]], unknown: int) -> None:
        self._shell = shell
        self._ids = {piece: number for number, (piece, _) in enumerate(vocabulary)}
        self._scores = [score for _, score in vocabulary]
        self._unknown = unknown
        self._unknown_score = min(self._scores) - _UNKNOWN_PENALTY
        self._longest = max(map(len, self._ids))

    def ids(self, text: str, max_tokens: int) -> list[int]:
        """As `tokens.model_input`: with begin and end marks, at most `max_tokens`."""
        normalizer, splitter = self._shell.normalizer, self._shell.pre_tokenizer
        text = normalizer.normalize_str(whole(text)) if normalizer else whole(text)
        found = [token for word, _ in splitter.pre_tokenize_str(text) for token in self._word(word)] if text else []
        # The shell knows no pieces: an empty text shows which marks go before and after.
        marks = self._shell.encode("").ids
        middle = len(marks) // 2
        return [*marks[:middle], *found[: max_tokens - len(marks)], *marks[middle:]]

    def _word(self, word: str) -> list[int]:
        """The segmentation with the highest sum of scores; the first found of equal ones, shorter pieces first."""
        size = len(word)
        best: list[tuple[float, int, int] | None] = [None] * (size + 1)
        best[0] = (0.0, 0, 0)
        for start in range(size):
            here = best[start]
            assert here is not None
            single = False
            for end in range(start + 1, min(start + self._longest, size) + 1):
                token = self._ids.get(word[start:end])
                if token is None:
                    continue
                single = single or end == start + 1
                score = here[0] + self._scores[token]
                there = best[end]
                if there is None or score > there[0]:
                    best[end] = (score, start, token)
            if not single:
                score = here[0] + self._unknown_score
                there = best[start + 1]
                if there is None or score > there[0]:
                    best[start + 1] = (score, start, self._unknown)
        tokens: list[int] = []
        end = size
        while end > 0:
            step = best[end]
            assert step is not None
            _, end, token = step
            # Unknown characters in a row are one token.
            if not (token == self._unknown and tokens and tokens[-1] == self._unknown):
                tokens.append(token)
        return tokens[::-1]


def load_quick(file: Path) -> QuickTokenizer | None:
    """The quick form of a `tokenizer.json`, or None if it is not a plain Unigram tokenizer (then use the package's)."""
    from tokenizers import Tokenizer

    value: dict[str, Any] = orjson.loads(file.read_bytes())
    model: dict[str, Any] = value["model"]
    plain = model.get("type") == "Unigram" and model.get("unk_id") is not None and not model.get("byte_fallback")
    if not plain or value.get("added_tokens") or not value.get("pre_tokenizer"):
        return None
    value |= {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["?", 0.0]]}, "padding": None, "truncation": None}
    return QuickTokenizer(Tokenizer.from_str(orjson.dumps(value).decode()), model["vocab"], model["unk_id"])
