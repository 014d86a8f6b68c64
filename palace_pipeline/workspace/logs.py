"""`logs/errors.md`: what needs a person's eye, a line each, in the order in which it happened. Never words of a chat."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from palace_pipeline.store.appending import append_lines

ERRORS = Path("logs/errors.md")
_HEAD = "# Errors\n\nWritten by Palace: one line each time something needs a look. Delete lines as you like.\n\n"
_LONGEST = 400


def append_error(home: Path, kind: str, where: Path | str, what: str, *, at: datetime | None = None) -> None:
    """Add a line to `logs/errors.md` of a home: when, what kind (`conflict`, `damaged`, …), which file, what happened.

    `where`: a path, shown relative to the home. `what`: a sentence for people, which must not quote a chat. `at`: an
    instant with its offset (default: now, in UTC). Durable when it returns; raises OSError.
    """
    path = Path(where)
    shown = path.relative_to(home) if path.is_relative_to(home) else path
    time = (at or datetime.now(UTC)).isoformat(timespec="seconds").replace("+00:00", "Z")
    append_lines(
        home / ERRORS, [f"- {time} · {_one_line(kind)} · `{_one_line(str(shown))}` · {_one_line(what)}"], head=_HEAD
    )


def _one_line(text: str) -> str:
    """On one line, and with nothing in it that would end the code span of a path."""
    line = " ".join(text.split()).replace("`", "'")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
