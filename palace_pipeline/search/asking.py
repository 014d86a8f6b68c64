"""The topic of a question that asks for a time: `When did I first talk about X?`, 我什么时候第一次聊到X? (words: asking.toml)."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources


def topic_of(question: str) -> str:
    """What a question asks about; the question itself where it names no time, or nothing else.

    `When did I first discuss the kettle?` -> `the kettle`. What stands in quotes is never taken apart.
    """
    when, frame = _words()
    held = [(found.start(), found.end()) for found in _QUOTED.finditer(question)]
    if not any(_outside(found, held) for found in when.finditer(question)):
        return question
    left = frame.sub(lambda found: " " if _outside(found, held) else found[0], question)
    topic = re.sub(r"\s+", " ", left).strip(" \t¿¡?？!！。.,，、:：了吗呢的")
    return topic if any(character.isalnum() for character in topic) else question


_QUOTED = re.compile(r"\"[^\"]+\"|“[^”]+”|「[^」]+」|«[^»]+»|《[^》]+》|`[^`]+`")


def _outside(found: re.Match[str], held: list[tuple[int, int]]) -> bool:
    return not any(low <= found.start() < high for low, high in held)


@cache
def _words() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of the words that ask for a time, and of all that is no topic."""
    lists = tomllib.loads(resources.files("palace_pipeline.search").joinpath("asking.toml").read_text("utf-8"))
    when, said, filler = ([word.strip() for word in lists[name].split(";")] for name in ("when", "said", "filler"))
    return _any_of(when), _any_of([*when, *said, *filler])


def _any_of(words: list[str]) -> re.Pattern[str]:
    longest_first = sorted(filter(None, words), key=len, reverse=True)
    return re.compile("|".join(_alone(re.escape(word), word) for word in longest_first), re.I)


def _alone(pattern: str, word: str) -> str:
    """Words of scripts with blanks stand alone; in a run of Chinese or Japanese any place will do."""
    return rf"(?<![\w'])(?:{pattern})(?![\w'])" if _SPACED.match(word) else pattern


_SPACED = re.compile(r"[A-Za-zÀ-ɏͰ-ӿ\u0600-\u06ff]")
