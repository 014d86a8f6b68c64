"""The word lists of words.toml."""

from __future__ import annotations

import tomllib
from importlib.resources import files


def words_text() -> str:
    return (files("palace_pipeline.redaction") / "words.toml").read_text(encoding="utf-8")


WORDS: dict[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in tomllib.loads(words_text()).items()}
