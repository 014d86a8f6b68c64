"""The word lists of words.toml."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files


def words_text() -> str:
    return (files("palace_pipeline.redaction") / "words.toml").read_text(encoding="utf-8")


WORDS: dict[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in tomllib.loads(words_text()).items()}


def any_word(name: str) -> re.Pattern[str]:
    """A pattern for the words of a list: `_` is a blank; words of ASCII letters must stand alone, others need not."""
    parts: list[str] = []
    for word in sorted(WORDS[name], key=len, reverse=True):
        plain = re.escape(word.replace("_", " "))
        parts.append(rf"(?<![A-Za-z]){plain}(?![A-Za-z])" if word.isascii() else plain)
    return re.compile("|".join(parts), re.I)
