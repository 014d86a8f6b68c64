"""What a text looks like, whatever its language and topic: code, times, questions, lists. A vector says little of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WEIGHT = 0.05
"""Beside unit vectors: what lies between two texts of them in one direction is about as much."""

_TIME = re.compile(r"\d{1,2}[:h.]\d\d|\d{1,2}\s?(?:点|點|時|시|Uhr)")
_ASKED = re.compile(r"[?？؟]")
_LISTED = re.compile(r"^\s*(?:[-*•]|\d+[.)、])\s", re.MULTILINE)
_CODE_NAME = re.compile(r"\b\w+\(\)|\b\w+[_/]\w+|\w\.\w{2,4}\b")
SIZE = 9


def shapes(texts: Sequence[str]) -> NDArray[np.float32]:
    """float32 [texts, SIZE], each number from 0 to `WEIGHT`. Lines may begin with `> `."""
    if not texts:
        return np.zeros((0, SIZE), np.float32)
    return (np.array([_shape(text) for text in texts]) * WEIGHT).astype(np.float32)


def _shape(text: str) -> list[float]:
    length = max(len(text), 1)
    first = text.lstrip("> \n").partition("\n")[0]
    return [
        min(text.count("`") / 4, 1),
        float("```" in text),
        min(len(_TIME.findall(text)) / 2, 1),
        min(sum(map(str.isdigit, text)) / length * 10, 1),
        float(_ASKED.search(first) is not None),
        min(len(_ASKED.findall(text)) / 2, 1),
        min(len(_LISTED.findall(text)) / 3, 1),
        min(len(_CODE_NAME.findall(text)) / 3, 1),
        min(len(first) / length, 1),
    ]
