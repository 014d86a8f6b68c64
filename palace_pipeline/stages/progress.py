"""Where long work says how far it is. The command line listens; a run of the daemon has nobody who does."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

Listener = Callable[[str, int, int], None]
"""(what, done, of)"""

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Generator[None]:
    """Call `listener` for every report of this process during the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def report(what: str, done: int, of: int) -> None:
    """Say how far a piece of work is: `done` of `of` units."""
    for listener in _listeners:
        listener(what, done, of)
