"""How the tests look for leaks: a value, or a contiguous 60% of it."""

from __future__ import annotations

from collections.abc import Iterable

SHARE = 0.6


def pieces(value: str, share: float = SHARE) -> set[str]:
    """Every contiguous piece of a value that has this share of its characters."""
    size = max(1, round(len(value) * share))
    return {value[at : at + size] for at in range(len(value) - size + 1)}


def leaked(text: str, values: Iterable[str]) -> list[int]:
    """Numbers of the values of which a text holds too much (never the values: a failing test is printed)."""
    return [number for number, value in enumerate(values) if any(piece in text for piece in pieces(value))]
