"""How the command line talks: results on stdout, words on stderr, progress only on a terminal, errors in one line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from rich.console import Console

    from palace_pipeline.stages.progress import Listener

NOT_TAKEN = 1
USAGE = 2
NOT_BUILT_YET = 3


class UsageError(Exception):
    """The command cannot be meant like this; the text says what to write instead. Exit code 2."""


_CONTROL = {code: f"\\x{code:02x}" for code in [*range(32), *range(127, 160)] if chr(code) not in "\t\n"}


def shown(text: str) -> str:
    """Text that a terminal only shows: control characters of file names and chats become visible and do nothing."""
    return text.translate(_CONTROL)


def counted(number: int, what: str, many: str | None = None) -> str:
    """`1 message`, `1,200 messages`; `what` in the singular, `many` where an s is not enough."""
    return f"{number:,} {what if number == 1 else many or f'{what}s'}"


def out(text: str) -> None:
    """A line of the result."""
    sys.stdout.write(shown(text) + "\n")


def say(text: str) -> None:
    """A line for the person, not for the next program."""
    sys.stderr.write(shown(text) + "\n")


def out_json(value: Any) -> None:
    r"""One JSON value on stdout, UTF-8; lone surrogates as `\uXXXX`."""
    try:
        data = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z, default=str)
    except (TypeError, ValueError):
        import json

        text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
        data = "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text).encode()
    sys.stdout.flush()
    sys.stdout.buffer.write(data + b"\n")


def console(*, stderr: bool = False) -> Console:
    """A rich console that obeys NO_COLOR and pipes."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def table(rows: Sequence[Mapping[str, Any]], *, title: str | None = None) -> None:
    """Rows as a table on a terminal, as tab-separated lines when piped."""
    if not rows:
        say("Nothing to show.")
        return
    columns = list(rows[0])
    if not sys.stdout.isatty():
        out("\t".join(columns))
        for row in rows:
            out("\t".join(_cell(row[name]) for name in columns))
        return
    from rich import box
    from rich.table import Table

    drawn = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for name in columns:
        numeric = all(isinstance(row[name], int | float) for row in rows if row[name] is not None)
        drawn.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(_cell(row[name]) for name in columns))
    console().print(drawn)


def _cell(value: Any) -> str:
    return "" if value is None else shown(str(value).replace("\t", " ").replace("\n", " "))


EVERY = 10.0
"""Seconds that long work takes at least before it says (again) where it is, if there is no terminal."""


def in_lines(clock: Callable[[], float] = time.monotonic) -> Listener:
    """A listener that says how far long work is: a line on stderr, no more than one in EVERY seconds."""
    last = clock()

    def tell(what: str, done: int, of: int) -> None:
        nonlocal last
        if (now := clock()) - last >= EVERY:
            last = now
            say(f"{what}: {done:,} of {of:,}")

    return tell


@contextmanager
def progress() -> Generator[None]:
    """How far long work is: bars on a terminal, a line now and then elsewhere."""
    from palace_pipeline.stages.progress import listening

    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        with listening(in_lines()):
            yield
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of, visible=done < of)

        with listening(show):
            yield
