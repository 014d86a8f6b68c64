"""`palace conflicts`: pages that you edited and of which the archive has something new, sessions that somebody has to look
at, both sides, and your choice."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palace_pipeline.cli.archive import open_workspace
from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, counted, out, out_json
from palace_pipeline.store.home import Home

if TYPE_CHECKING:
    from palace_pipeline.workspace.conflicts import Conflict

SIDES = ("mine", "archive")
_LINES = 40
"""Lines of a diff that are shown of each conflict where there are several."""


def run_conflicts(wanted: str | None, keep: str | None, *, as_json: bool) -> int:
    """Show conflicts (all, or those that are `wanted`), or keep one side of one. Exit code 1 if any are left."""
    from palace_pipeline.workspace import conflicts

    if keep is not None and keep not in SIDES:
        raise UsageError(f"--keep is one of {', '.join(SIDES)}")
    if keep is not None and wanted is None:
        raise UsageError("say which one: palace conflicts PAGE --keep mine (or archive)")
    home = open_workspace()
    found = conflicts.find(home.path)
    meant = found if wanted is None else conflicts.chosen(found, home.path, wanted)
    if wanted is not None and not meant:
        raise UsageError(f"no conflict of {wanted!r}. See them all with: palace conflicts")
    if keep is None:
        return _show(home, meant, as_json=as_json)
    if len(meant) > 1:
        names = ", ".join(_place(home, one.beside or one.page) for one in meant[:5])
        raise UsageError(f"{wanted!r} means several: {names}. Name one file")
    (one,) = meant
    with nullcontext() if one.of_session else home.writing():  # a session has a lock of its own
        page = conflicts.resolve(one, "mine" if keep == "mine" else "archive")
        left = len(conflicts.find(home.path))
    if as_json:
        out_json({"kept": keep, "page": _place(home, page) if page else None, "left": left})
    elif page is None:
        out(f"{_place(home, one.beside or one.page)} was deleted.")
    else:
        out(f"{_place(home, page)} {_what_it_is(one, keep)}. {counted(left, 'conflict')} left.")
    return NOT_TAKEN if left else 0


def _what_it_is(one: Conflict, keep: str) -> str:
    """What the page that is left is now."""
    if keep == "mine":
        return "stays as it is" if one.of_session else "stays as you wrote it"
    if one.of_session:
        return f"is what {one.beside.name if one.beside else 'it'} said; what it said before is gone"
    return "is what the archive says, with your notes and tags"


def _show(home: Home, found: list[Conflict], *, as_json: bool) -> int:
    from palace_pipeline.workspace.conflicts import lines_between

    if as_json:
        out_json({"conflicts": [_as_json(home, one, lines_between(one)) for one in found]})
        return NOT_TAKEN if found else 0
    for one in found:
        out(f"mine     {_place(home, one.my_file)}")
        if one.other_file is not None:
            out(f"archive  {_place(home, one.other_file)}{' (stands beside it)' if one.of_session else ''}")
        else:
            out("  its status is conflict: something on it had to be guessed. Look at it, then: --keep mine")
        lines = lines_between(one)
        few = lines if len(found) == 1 else lines[:_LINES]
        for line in few:
            out(f"  {line}")
        if len(lines) > len(few):
            out(f"  … {counted(len(lines) - len(few), 'line')} more: palace conflicts {one.page.name}")
        out("")
    if found:
        out(f"{counted(len(found), 'conflict')}. Keep one side with: palace conflicts PAGE --keep mine (or archive)")
    else:
        out("No conflicts.")
    return NOT_TAKEN if found else 0


def _as_json(home: Home, one: Conflict, lines: list[str]) -> dict[str, Any]:
    provider, conversation_id = one.key or (None, None)
    return {
        "page": _place(home, one.page),
        "conflict": _place(home, one.beside) if one.beside else None,
        "mine": _place(home, one.my_file),
        "archive": _place(home, one.other_file) if one.other_file else None,
        "provider": provider,
        "conversation_id": conversation_id,
        "diff": lines,
    }


def _place(home: Home, path: Path) -> str:
    return path.relative_to(home.path).as_posix()
