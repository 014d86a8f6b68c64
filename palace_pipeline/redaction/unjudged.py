"""What a text that could not be judged may have claimed: its tokens are masked in the texts beside it.

A value that one message names as a secret is masked in all of a conversation. A message that is withheld names nothing
any more, so whatever it holds that could be a secret counts as one in the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from palace_pipeline.redaction.remember import pieces
from palace_pipeline.redaction.verdicts import word_share

_TOKEN = re.compile(r"[^\s\"'`,;()<>{}\[\]|=:/\\]{6,512}")


def unjudged_tokens(texts: Iterable[str]) -> set[str]:
    """Everything in the texts that could be a secret; linear in their length."""
    return {text[start:end] for text in texts for start, end in _tokens(text)}


def echoes(text: str, tokens: set[str]) -> Iterator[tuple[int, int]]:
    """Places of a text that repeat one of the tokens."""
    for start, end in _tokens(text):
        if text[start:end] in tokens:
            yield start, end


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    yield from pieces(text)
    for found in _TOKEN.finditer(text):
        run = found[0]
        if not any(map(str.isdigit, run)) or run.isdigit() or word_share(run) > 0.7:
            continue
        yield found.span()
        bare = run.rstrip(".!?*_")
        if len(bare) < len(run) and len(bare) >= 6:
            yield found.start(), found.start() + len(bare)
