"""The logs of a workspace: `logs/errors.md`, what needs a person's eye (never words of a chat), and `logs/tool-calls.md`.

A line each, in the order in which it happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from palace_pipeline.exports.text import without_controls
from palace_pipeline.store.appending import append_chosen, append_lines

ERRORS = Path("logs/errors.md")
_HEAD = "# Errors\n\nWritten by Palace: one line each time something needs a look. Delete lines as you like.\n\n"
TOOL_CALLS = Path("logs/tool-calls.md")
_TOOLS_HEAD = "# Tool calls\n\nA line for each call that an agent noted in a session; the whole of it stands there.\n\n"
_LONGEST = 400


def append_error(
    home: Path, kind: str, where: Path | str, what: str, *, at: datetime | None = None, once: bool = False
) -> None:
    """Add a line to `logs/errors.md` of a home: when, what kind (`conflict`, `damaged`, …), which file, what happened.

    `where`: a path, shown relative to the home. `what`: a sentence for people, which must not quote a chat. `at`: an
    instant with its offset (default: now, in UTC). `once`: not if the same is said there already. Durable when it
    returns; raises OSError.
    """
    path = Path(where)
    shown = path.relative_to(home) if path.is_relative_to(home) else path
    time = (at or datetime.now(UTC)).isoformat(timespec="seconds").replace("+00:00", "Z")
    said = f" · {_one_line(kind)} · `{_one_line(str(shown))}` · {_one_line(what)}"
    known = f"{said}\n".encode("utf-8", "replace")
    append_chosen(home / ERRORS, lambda data: [] if once and known in data else [f"- {time}{said}"], head=_HEAD)


def note_problems(home: Path, page: Path, problems: Iterable[str]) -> None:
    """Say what the reader of a session's page had to guess, once each."""
    for problem in problems:
        append_error(home, "damaged", page, problem, once=True)


def note_copy(home: Path, page: Path, copy: Path) -> None:
    """Say that a session's page has a copy that somebody else made, once."""
    what = f"a copy of {page.name}, which is the page; the copy is not read. Choose with: palace conflicts"
    append_error(home, "conflict", copy, what, once=True)


def log_tool_call(home: Path, session: str, tool: str, text: str, *, at: datetime) -> None:
    """Add a line to `logs/tool-calls.md`: when, in which session, which tool, how the call begins. The caller has
    redacted it. Durable when it returns; raises OSError."""
    words = " · ".join(part for part in (session, _one_line(tool), _one_line(text)) if part)
    append_lines(home / TOOL_CALLS, [f"- {at.isoformat(timespec='seconds')} · {words}"], head=_TOOLS_HEAD)


def _one_line(text: str) -> str:
    """On one line, and with nothing in it that would end the code span of a path."""
    line = " ".join(without_controls(text).split()).replace("`", "'")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
