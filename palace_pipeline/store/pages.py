"""Pages as files below the home: found again, written anew, moved with their day, and never at the cost of a word of
the user's."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from palace_pipeline.model import Conversation, page_hash
from palace_pipeline.store.files import sync_files, write_bytes
from palace_pipeline.transcripts.page import PageHead, Takeover, UserParts, page_folder, page_name, render, take_over
from palace_pipeline.transcripts.page_parts import NOBODYS, written_by_program
from palace_pipeline.transcripts.page_path import parse_name

PAGES = "conversations"
_COPY = re.compile(r".*\.conflict(?:-\d+)?\.md", re.DOTALL)
_HASH = slice(-11, -3)
"""Where the name of a page has its hash: before `.md`."""


@dataclass(slots=True, frozen=True)
class PageWrite:
    """`written`: the file is new or has changed. `moved_from`: its path before its day changed. `conflict`: a copy of
    the page as it was, because it held changes of the user's outside their parts. `generated`: what the program wrote
    on it, read back from disk ('' if nothing was written).
    """

    path: Path
    written: bool
    moved_from: Path | None = None
    conflict: Path | None = None
    generated: str = ""


@dataclass(slots=True, frozen=True)
class PageRemoval:
    """`user`: what the user had put on the page. `kept`: the page without messages that still holds it. `conflict`: a
    copy of the whole page, because they had changed it outside their parts.
    """

    removed: bool
    user: UserParts = NOBODYS
    kept: Path | None = None
    conflict: Path | None = None


@dataclass(slots=True)
class PageIndex:
    """Pages below a home by the hash in their names; each provider's folder is listed once, at its first use.

    Pages written through one index are durable when `sync` has returned (those with parts of the user's at once).
    """

    root: Path
    _listed: dict[str, dict[str, list[str]]] = field(default_factory=dict[str, dict[str, list[str]]])
    """Provider -> what stands in a name where its hash would stand -> paths: texts, of which there may be 100,000."""
    _written: list[Path] = field(default_factory=list[Path])

    def find(self, provider: str, conversation_id: str) -> list[Path]:
        """Paths that may be this conversation's page (two conversations can share a hash), in order of name."""
        found = sorted(map(Path, self._of(provider).get(page_hash(provider, conversation_id), [])))
        return [path for path in found if parse_name(path.name) and path.exists()]

    def sync(self) -> None:
        """Make all pages written so far survive a power cut; call it before noting them as built."""
        sync_files(self._written)
        self._written.clear()

    def add(self, provider: str, path: Path) -> None:
        """Note a page that was written."""
        self._written.append(path)
        if provider in self._listed:
            paths = self._of(provider).setdefault(path.name[_HASH], [])
            if str(path) not in paths:
                paths.append(str(path))

    def _of(self, provider: str) -> dict[str, list[str]]:
        if provider not in self._listed:
            found: dict[str, list[str]] = {}
            for year in _entries(self.root / PAGES / provider):
                with suppress(NotADirectoryError, FileNotFoundError), os.scandir(year) as entries:
                    for entry in entries:
                        found.setdefault(entry.name[_HASH], []).append(entry.path)
            self._listed[provider] = found
        return self._listed[provider]


@dataclass(slots=True, frozen=True)
class _OldPage:
    path: Path
    data: bytes
    taken: Takeover

    @property
    def in_doubt(self) -> bool:
        """Whether it holds words that writing it anew would lose."""
        return bool(self.data.strip(b"\0\r\n ")) and not (self.taken.complete and self.taken.intact)


def page_paths(root: Path, provider: str | None = None) -> Iterator[Path]:
    """Paths of all pages (of one provider), in no order; copies of conflicts and other files are left out."""
    folder = root / PAGES
    providers = [folder / provider] if provider else [p for p in _entries(folder) if p.is_dir()]
    for of_provider in providers:
        for year in _entries(of_provider):
            if year.is_dir():
                yield from (path for path in _entries(year) if parse_name(path.name))


def write_page(
    root: Path,
    conversation: Conversation,
    head: PageHead,
    *,
    known_path: Path | None = None,
    index: PageIndex | None = None,
    named: str | None = None,
) -> PageWrite:
    """Write the page of a redacted conversation below the home `root`; an unchanged page is not touched.

    The page there is found by `known_path` (from the ledger) or by the hash in its name. For many pages hand in one
    `index`, and call its `sync` at the end. A page keeps its name when the title changes, and gets a new one when the
    day does, or when it is to be `named` by this title because its name may show what is masked now. The user's parts
    are taken over; if not all of them can be read, or the rest was edited, the old file stays beside it as
    `<name>.conflict.md`. A kill leaves the old page or the new one, or both; the next call puts that right.
    """
    shared, index = index is not None, index or PageIndex(root)
    old = _old_pages(conversation, head, known_path, index)
    target = _target(root, conversation, head, old, named)
    user = next((page.taken.user for page in old if not page.taken.user.blank), old[0].taken.user if old else NOBODYS)
    data = render(conversation, head, user).encode("utf-8", "replace")
    if len(old) == 1 and old[0].path == target and old[0].data == data:
        return PageWrite(target, written=False)
    conflict: Path | None = None
    for page in old:
        if page.in_doubt or not (page.taken.user.blank or page.taken.user == user):
            conflict = _keep(page, target)
    # A page that can be made again may wait for the flush of them all, the user's words may not.
    write_bytes(target, data, durable=not (shared and user.blank))
    index.add(conversation.provider, target)
    moved = [page.path for page in old if page.path != target]
    for path in moved:
        if named is not None:
            _move_copies(path, target)
        path.unlink()
    generated = written_by_program(target.read_bytes().decode("utf-8"))
    return PageWrite(target, True, moved[0] if moved else None, conflict, generated)


def remove_page(path: Path, *, forget: bool = False) -> PageRemoval:
    """Take a page away, without its user losing anything in silence.

    If they had put something on it, a page without messages and title stays and holds that, and a later `write_page`
    takes it over. A page that was edited elsewhere, or cannot be read, stays whole as `<name>.conflict.md`.
    `forget` (for purging) leaves nothing: neither of these, nor the copies of earlier conflicts.
    """
    old = _read(path)
    if old is None:
        return PageRemoval(removed=False)
    user, key, name = old.taken.user, old.taken.key, parse_name(path.name)
    if forget:
        for copy in _conflicts(path, key):
            copy.unlink()
        path.unlink()
        return PageRemoval(True, user)
    conflict = _keep(old, path) if old.in_doubt else None
    kept: Path | None = None
    if not user.blank and key is not None and name is not None:
        kept = path.with_name(page_name(name[0], None, *key))
        bare = render(Conversation(*key, messages=[]), PageHead(name[0]), user)
        write_bytes(kept, bare.encode("utf-8", "replace"))
    if kept != path:
        path.unlink()
    return PageRemoval(True, user, kept, conflict)


def forget_page(root: Path, provider: str, conversation_id: str) -> list[Path]:
    """Delete every page of a conversation and every copy of a conflict, under whatever names; returns their paths."""
    gone: list[Path] = []
    for path in sorted(root.glob(f"{PAGES}/{glob.escape(provider)}/*/*-{page_hash(provider, conversation_id)}*.md")):
        page = _read(path)
        if page is not None and page.taken.key in ((provider, conversation_id), None):
            path.unlink()
            gone.append(path)
    return gone


def is_copy(name: str) -> bool:
    """Is this the file name of a copy that stands beside a page?"""
    return _COPY.fullmatch(name) is not None


def conflict_copies(root: Path) -> list[Path]:
    """Copies of pages that held changes of the user's, in order of name."""
    return sorted(root.glob(f"{PAGES}/*/*/*.conflict*.md"))


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            return [Path(entry.path) for entry in found]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read(path: Path) -> _OldPage | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return _OldPage(path, data, take_over(data.decode("utf-8")))
    except UnicodeDecodeError:
        taken = take_over(data.decode("utf-8", "replace"))
        return _OldPage(path, data, Takeover(taken.user, complete=False, intact=False, key=taken.key))


def _old_pages(conversation: Conversation, head: PageHead, known_path: Path | None, index: PageIndex) -> list[_OldPage]:
    """The conversation's page as it stands: the known one first, then what a kill or a sync program left beside it."""
    known = _read(index.root / known_path) if known_path is not None else None
    if known is not None and known.taken.key in (conversation.key, None):
        if _in_place(known.path, index.root, conversation, head):
            return [known]
        found = [known]
    else:
        found = []
    beside = [_read(path) for path in index.find(*conversation.key) if not found or path != found[0].path]
    return found + [page for page in beside if page is not None and page.taken.key in (conversation.key, None)]


def _in_place(path: Path, root: Path, conversation: Conversation, head: PageHead) -> bool:
    name = parse_name(path.name)
    return (
        name is not None and name[0] == head.day and path.parent == root / page_folder(head.day, conversation.provider)
    )


def _target(
    root: Path, conversation: Conversation, head: PageHead, old: list[_OldPage], named: str | None = None
) -> Path:
    for page in old if named is None else ():
        if _in_place(page.path, root, conversation, head):
            return page.path
    folder = root / page_folder(head.day, conversation.provider)
    title = conversation.title if named is None else named
    target = folder / page_name(head.day, title, *conversation.key)
    attempt = 1
    while (other := _read(target)) is not None and other.taken.key not in (conversation.key, None):
        # Another conversation of this day with the same title and the same eight digits.
        attempt += 1
        target = folder / page_name(head.day, f"{attempt} {title or ''}", *conversation.key)
    return target


def _keep(page: _OldPage, beside: Path) -> Path:
    """Copy a page beside its successor, unless such a copy is there."""
    number = 1
    while True:
        copy = beside.with_name(f"{beside.stem}.conflict{'' if number == 1 else f'-{number}'}.md")
        if not copy.exists():
            write_bytes(copy, page.data)
            return copy
        if copy.read_bytes() == page.data:
            return copy
        number += 1


def _move_copies(page: Path, target: Path) -> None:
    """Copies of conflicts get the new name of their page, when the old one shows what is masked now."""
    for copy in sorted(page.parent.glob(f"{glob.escape(page.stem)}.conflict*.md")):
        number = 1
        while (new := target.with_name(f"{target.stem}.conflict{'' if number == 1 else f'-{number}'}.md")).exists():
            number += 1
        copy.rename(new)


def _conflicts(path: Path, key: tuple[str, str] | None) -> list[Path]:
    """Copies of conflicts of a page, also under names and in years it had before."""
    name = parse_name(path.name)
    if name is None:
        return []
    copies = path.parent.parent.glob(f"*/*-{name[1]}.conflict*.md")
    return [copy for copy in copies if (page := _read(copy)) is not None and page.taken.key in (key, None)]
