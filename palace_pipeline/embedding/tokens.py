"""Text -> tokens of the embedding model: counting, offsets and model input, without the model itself.

`tokenizer_of` writes the tokenizer of multilingual-e5-small (a Unigram tokenizer over SentencePiece pieces) from the
weight file; any other model folder brings its own `tokenizer.json`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palace_pipeline.embedding.words import Words

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from palace_pipeline.embedding.source import E5File

_DROPPED = "[\u0001-\u0008\u000b\u000e-\u001f\u007f\u008f\u009f]"
_SPACES = "[\u0009\u000a\u000c\u000d\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"
_WAVE, _STAND_IN = "\uff5e", "\U0010fffd"
"""NFKC would make a tilde of the fullwidth wave, which the model's own normaliser keeps."""

_SLICE = 8_192
"""Characters tokenized at once: an `Encoding` takes some 200 bytes a token, and the normaliser's time grows with the
square of what it replaces, so a 5 MB message must go in slices."""

_LONE = re.compile("[\ud800-\udfff]")
"""The tokenizer takes no lone surrogates, which a question typed in an old terminal may hold."""

_BLANKS = re.compile("[\t\n\f\r\u200b-\u200f\u2028\u2029\ufeff]")
"""They count as spaces. Done before counting, one character for one: the normaliser would do the same, but is slow at it."""

_CHARACTERS_PER_TOKEN = 40
"""No real text has more, so that what follows `40 * max_tokens` characters is never seen by the model anyway."""


def tokenizer_of(file: E5File) -> Tokenizer:
    """The tokenizer that goes with the weights; token counts equal those of the package's own engine.

    The normaliser does what SentencePiece's `nmt_nfkc` map does. Plain NFKC would cost up to .07 of cosine on texts
    with zero-width characters, byte order marks or control characters.
    """
    from tokenizers import Tokenizer, decoders, processors
    from tokenizers.models import Unigram

    tokenizer = Tokenizer(Unigram(list(zip(file.pieces, file.scores, strict=True)), unk_id=file.unknown))
    _split_as_own(tokenizer)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", file.bos), ("</s>", file.eos)]
    )
    return tokenizer


def _split_as_own(tokenizer: Tokenizer) -> None:
    """Give a tokenizer the normaliser and the splitting of the default model."""
    from tokenizers import Regex, normalizers, pre_tokenizers

    replace = normalizers.Replace
    steps = [
        replace(Regex(_DROPPED), ""),
        replace(Regex(_SPACES), " "),
        replace(_WAVE, _STAND_IN),
        normalizers.NFKC(),
        replace(_STAND_IN, _WAVE),
        # Not \s+: U+0085 is a piece of its own.
        replace(Regex(" +"), " "),
    ]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")


def words_of(tokenizer: Tokenizer) -> Words:
    """What `token_offsets` needs of a tokenizer; it learns words, so keep it as long as the tokenizer."""
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram

    own = Tokenizer(Unigram())
    _split_as_own(own)
    return Words(tokenizer, own)


def read_tokenizer(file: Path) -> Tokenizer:
    """The tokenizer of a `tokenizer.json`, with whatever padding and truncation it brings switched off."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def whole(text: str) -> str:
    """The text without lone surrogates, of the same length."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)


def model_input(tokenizer: Tokenizer, text: str, max_tokens: int) -> list[int]:
    """Token ids with the model's begin and end marks, at most `max_tokens`; what is longer loses its end."""
    encoding = tokenizer.encode(whole(text[: _CHARACTERS_PER_TOKEN * max_tokens]), add_special_tokens=False)
    encoding.truncate(max_tokens - tokenizer.num_special_tokens_to_add(is_pair=False))
    return tokenizer.post_process(encoding).ids


def token_offsets(words: Words, text: str) -> NDArray[np.int64]:
    """Start and end (code points) of every token of `text`, begin and end marks not counted: int64 [tokens, 2].

    Linear in the length of the text. A long text is read in slices that end before a space where there is one, so that
    its tokens are the same.
    """
    text = _BLANKS.sub(" ", whole(text))
    if len(text) <= _SLICE:
        return words.offsets(text) if text else np.zeros((0, 2), np.int64)
    parts: list[NDArray[np.int64]] = []
    start = 0
    while start < len(text):
        end = _slice_end(text, start)
        parts.append(words.offsets(text[start:end]) + start)
        start = end
    return np.concatenate(parts)


def _slice_end(text: str, start: int) -> int:
    end = start + _SLICE
    if end >= len(text):
        return len(text)
    at = text.rfind(" ", start, end)
    # Before all of a run of spaces: one at the end would be a token of its own.
    word_end = start + len(text[start : max(at, start)].rstrip(" "))
    return word_end if word_end > start else end
