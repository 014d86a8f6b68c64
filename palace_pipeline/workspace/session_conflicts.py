"""Conflicts of sessions: a copy beside a page, be it Palace's own (`.conflict.md`) or that of a sync program, and pages
with status conflict. One side is kept by choice; nothing is merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from palace_pipeline.exports.text import decode
from palace_pipeline.store.files import Told
from palace_pipeline.workspace import front, index, names
from palace_pipeline.workspace.locks import locked
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.session import Session, Status, render
from palace_pipeline.workspace.writing import plain_file, put_page, read_page

Pair = tuple[Path, Path | None]
"""A session's page, and what stands beside it; None: nothing does, but its status is conflict."""


class NothingBeside(Told):
    """There is no other side that could be kept. Nothing was changed."""


class StillWrong(Told):
    """What would be kept is no page without a conflict. Nothing was changed."""


def find(home: Path) -> list[Pair]:
    """All conflicts of sessions, in order of path. A page that cannot be read is left out."""
    return [pair for day in names.folders_in(home) for pair in _in_folder(day)]


def _in_folder(folder: Path) -> Iterator[Pair]:
    files = {str(path) for path in folder.glob("*.md") if plain_file(path)}
    copies = {copy: str(names.page_beside(Path(copy))) for copy in files if names.is_copy(copy)} | names.copies(files)
    asked = set(copies.values())
    for path in sorted(files):
        if path in copies:
            if names.id_of(copies[path]) is not None:
                yield Path(copies[path]), Path(path)
        elif path not in asked and names.id_of(path) is not None and _status(Path(path)) == "conflict":
            yield Path(path), None


def _status(path: Path) -> Status | None:
    try:
        return _read(path, path).status
    except (OSError, StillWrong):
        return None


def keep(home: Path, page: Path, beside: Path | None, side: Literal["mine", "archive"]) -> None:
    """Keep the page (`mine`) or what stands beside it (`archive`), which then is gone; the status is again what it was
    before the conflict, as far as one of them says it, else open. Raises NothingBeside, what `put_page` raises, OSError."""
    session = names.id_of(page)
    assert session is not None, "only sessions have such conflicts"
    if side == "archive" and beside is None:
        raise NothingBeside(
            f"nothing stands beside {page.name}: its status is conflict since something on it had to be guessed. Nothing "
            "was changed. Correct the page if need be, then: --keep mine"
        )
    with locked(page.parent, names.prefix_of(session)) as lock:
        seen = read_page(page)[1] if page.exists() else None
        there = read_page(beside)[1] if beside is not None else None
        kept = _read(beside if side == "archive" and beside is not None else page, page)
        if side == "archive" or kept.status == "conflict":
            status = next((s for s in map(_said, (page, beside)) if s in ("open", "closed")), "open")
            kept = replace(kept, status=status)
            data = render(kept).encode("utf-8", "replace")
            if problems := parse(data.decode(), page).problems:
                raise StillWrong(f"{page.name}: {problems[0]}. Nothing was changed. Correct it, then do this again")
            put_page(home, page, data, seen=seen, same=data.__eq__, lock=lock)
        index.add_rows(home, [index.session_row(kept, page.relative_to(home).as_posix())])
        if beside is not None and there == read_page(beside)[1]:
            beside.unlink()  # what a sync program has put there meanwhile is another conflict


def _read(file: Path, page: Path) -> Session:
    return parse(_text(file), page)


def _text(file: Path) -> str:
    text = decode(file.read_bytes())
    if text is None:
        raise StillWrong(f"{file.name} is no text in any encoding that Palace knows. Nothing was changed.")
    return text


def _said(file: Path | None) -> Status | None:
    """The status that a page says, whatever had to be guessed besides."""
    if file is None or not file.exists():
        return None
    text = _text(file).removeprefix("\ufeff").replace("\r\n", "\n")
    return front.status_in(front.open_front(text)[0])
