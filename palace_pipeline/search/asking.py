"""The topic of a question that asks for a time: `When did I first talk about X?`, 我什么时候第一次聊到X? (words: asking.toml)."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources


def topic_of(question: str) -> str:
    """What a question asks about; the question itself where it names no time, or nothing else.

    `When did I first discuss the kettle?` -> `the kettle`. What stands in quotes, and the `whole` words, are never taken
    apart.
    """
    when, frame, whole = _words()
    held = [(found.start(), found.end()) for kept in (_QUOTED, whole) for found in kept.finditer(question)]
    if not any(_outside(found, held) for found in when.finditer(question)):
        return question
    left = frame.sub(lambda found: " " if _outside(found, held) else found[0], question)
    topic = re.sub(r"\s+", " ", left).strip(" \t¿¡?？!！。.,，、:：了吗呢的")
    return topic if any(character.isalnum() for character in topic) else question


_QUOTED = re.compile(r"\"[^\"]+\"|“[^”]+”|「[^」]+」|«[^»]+»|《[^》]+》|`[^`]+`")


def _outside(found: re.Match[str], held: list[tuple[int, int]]) -> bool:
    return not any(low <= found.start() < high for low, high in held)


@cache
def _words() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of the words that ask for a time, of all that is no topic, and of what only looks like it."""
    lists = tomllib.loads(resources.files("palace_pipeline.search").joinpath("asking.toml").read_text("utf-8"))
    names = ("when", "said", "filler", "whole")
    when, said, filler, whole = ([word.strip() for word in lists[name].split(";")] for name in names)
    return _any_of(when), _any_of([*when, *said, *filler]), _any_of(whole)


def _any_of(words: list[str]) -> re.Pattern[str]:
    longest_first = sorted(filter(None, words), key=len, reverse=True)
    return re.compile("|".join(_alone(re.escape(word), word) for word in longest_first), re.I)


def _alone(pattern: str, word: str) -> str:
    """Words of scripts with blanks stand alone (scikit-learn is no learning); in a run of Chinese or Japanese any place will do."""
    return rf"(?<![\w'])(?<!\w-)(?:{pattern})(?!-?[\w'])" if _SPACED.match(word) else pattern


_SPACED = re.compile(r"[A-Za-zÀ-ɏͰ-ӿ\u0600-\u06ff]")
