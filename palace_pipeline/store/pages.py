"""Pages as files below the home: found again, written anew, moved with their day, and never at the cost of a word of
the user's."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from palace_pipeline.model import Conversation, page_hash
from palace_pipeline.store.files import make_folder, sync_files, write_bytes
from palace_pipeline.transcripts.page import (
    PageError,
    PageHead,
    Takeover,
    UserParts,
    page_folder,
    page_name,
    parse,
    render,
    take_over,
)
from palace_pipeline.transcripts.page_parts import NOBODYS, seal_of, written_by_program
from palace_pipeline.transcripts.page_path import parse_name

PAGES = "conversations"
_HEAD = "---\ntype: conversation\n"
_STATE = b"---\ntype: conversation\nstatus: conflict\n"
_COPY = re.compile(r".*\.conflict(?:-\d+)?\.md", re.DOTALL)
_COPY_HASH = re.compile(r"conflict|.*ct-\d+", re.DOTALL)
"""What stands in the name of a copy where a page has its hash."""
_HASH = slice(-11, -3)
"""Where the name of a page has its hash: before `.md`."""


@dataclass(slots=True, frozen=True)
class PageWrite:
    """`written`: the file is new or has changed. `moved_from`: its path before its day changed. `edited`: a person changed
    it outside their parts, so it was left as it is; where the archive has something else to say, that was written to
    `conflict`. `generated`: what the program wrote, on the page or beside it, read back from disk ('' if nothing was).
    """

    path: Path
    written: bool
    moved_from: Path | None = None
    edited: bool = False
    conflict: Path | None = None
    generated: str = ""
    tags: tuple[str, ...] = ()
    """The user's."""


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
    _copies: dict[str, dict[str, list[str]]] = field(default_factory=dict[str, dict[str, list[str]]])
    """Provider -> path of a page without its end -> what stands beside it in conflict with it."""
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
            self._note(provider, str(path))

    def copies(self, page: Path, provider: str) -> list[Path]:
        """What stands beside a page in conflict with it, in order of name."""
        self._of(provider)
        found = self._copies[provider].get(_before_conflict(str(page.with_suffix(""))), [])
        return sorted(path for path in map(Path, found) if _is_copy_of(path, page) and path.exists())

    def _of(self, provider: str) -> dict[str, list[str]]:
        if provider not in self._listed:
            self._listed[provider], self._copies[provider] = {}, {}
            for year in _entries(self.root / PAGES / provider):
                with suppress(NotADirectoryError, FileNotFoundError), os.scandir(year) as entries:
                    for entry in entries:
                        self._note(provider, entry.path)
        return self._listed[provider]

    def _note(self, provider: str, path: str) -> None:
        mark = path.rpartition("/")[2][_HASH]
        found = [self._listed[provider].setdefault(mark, [])]
        if _COPY_HASH.fullmatch(mark):
            found.append(self._copies[provider].setdefault(_before_conflict(path), []))
        for paths in found:
            if path not in paths:
                paths.append(path)


@dataclass(slots=True, frozen=True)
class _OldPage:
    path: Path
    data: bytes
    taken: Takeover

    @property
    def in_doubt(self) -> bool:
        """Whether it holds words that writing it anew would lose."""
        return bool(self.data.strip(b"\0\r\n ")) and not (self.taken.complete and self.taken.intact)

    def edited(self, new: str) -> bool:
        """Whether a person changed it. The beginning of the very page that is to be written is one that was cut."""
        return self.in_doubt and not new.encode("utf-8", "replace").startswith(self.data.rstrip(b"\0"))


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
    are taken over. A page that somebody edited elsewhere, or that cannot be read, is never written: if the archive says
    something else by now than when it was written, that goes beside it as `<name>.conflict.md`. A kill leaves the old
    page or the new one, or both; the next call puts that right.
    """
    shared, index = index is not None, index or PageIndex(root)
    old = _old_pages(conversation, head, known_path, index)
    target = _target(root, conversation, head, old, named)
    user = next((page.taken.user for page in old if not page.taken.user.blank), old[0].taken.user if old else NOBODYS)
    text = render(conversation, head, user)
    edited = [page for page in old if page.edited(text)]
    if edited:
        return replace(_beside(conversation, head, old, edited[0], target, index), tags=user.tags)
    data = text.encode("utf-8", "replace")
    only = old[0] if len(old) == 1 and old[0].path == target else None
    if only is not None and (only.data == data or (only.taken.complete and only.taken.seal == seal_of(text))):
        return PageWrite(target, written=False, tags=user.tags)
    conflict: Path | None = None
    for page in old:
        if not (page.taken.user.blank or page.taken.user == user):
            conflict = _keep(page, target)
    # A page that can be made again may wait for the flush of them all, the user's words may not.
    write_bytes(target, data, durable=not (shared and user.blank))
    moved = _give_up(old, target, index, conversation.provider)
    index.add(conversation.provider, target)
    for copy in index.copies(target, conversation.provider):
        if is_state(copy):
            copy.unlink()  # the page itself says it now
    generated = written_by_program(target.read_bytes().decode("utf-8"))
    return PageWrite(target, True, moved, conflict=conflict, generated=generated, tags=user.tags)


def _beside(
    conversation: Conversation,
    head: PageHead,
    old: list[_OldPage],
    mine: _OldPage,
    target: Path,
    index: PageIndex,
) -> PageWrite:
    """Leave an edited page as it is (its name follows its day), and what the archive has to say beside it."""
    state = render(conversation, head)
    if mine.path != target:
        make_folder(target.parent)
        mine.path.rename(target)
        sync_files([target])
        index.add(conversation.provider, target)
    for page in old:
        if page is not mine and page.in_doubt:
            _keep(page, target)
    moved = _give_up(old, target, index, conversation.provider)
    beside = index.copies(target, conversation.provider)
    before = next((copy for copy in beside if is_state(copy)), None)
    if _knows(mine, conversation, head, state):
        if before is not None:
            before.unlink()
        return PageWrite(target, written=False, moved_from=moved, edited=True)
    data = as_conflict(state).encode("utf-8", "replace")
    if before is not None and before.read_bytes() == data:
        return PageWrite(target, written=False, moved_from=moved, edited=True, conflict=before)
    conflict = before or _free_name(target)
    write_bytes(conflict, data)
    index.add(conversation.provider, conflict)
    generated = written_by_program(conflict.read_bytes().decode("utf-8"))
    return PageWrite(target, True, moved, edited=True, conflict=conflict, generated=generated)


def _knows(mine: _OldPage, conversation: Conversation, head: PageHead, state: str) -> bool:
    """Does an edited page know all that the archive has? It does if it was made from that, or says the same (as after
    the archive was made again from it). What cannot be read knows nothing. Where a conversation is filed, what was masked
    on it and which file brought it is nothing new said in it."""
    try:
        have, want = parse(mine.data.decode("utf-8")), parse(state)
    except (PageError, UnicodeDecodeError):
        return False
    said = (have.conversation, have.head.day, have.head.dated) == (want.conversation, head.day, head.dated)
    return said or mine.taken.seal in (seal_of(state), seal_of(render(conversation, have.head)))


def _give_up(old: list[_OldPage], target: Path, index: PageIndex, provider: str) -> Path | None:
    """Remove what stood elsewhere, now that `target` stands, and take along what is in conflict with it; the first of
    these paths."""
    moved = [page.path for page in old if page.path != target]
    for path in moved:
        for copy in index.copies(path, provider):
            new = _free_name(target)
            copy.rename(new)
            index.add(provider, new)
        path.unlink(missing_ok=True)
    return moved[0] if moved else None


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


def copies_of_pages(root: Path, page_of: Mapping[tuple[str, str], str]) -> list[Path]:
    """Files below `conversations/` that somebody made of a page (`… (1).md`, `… - 副本.md`), in order of name: they say which
    conversation they are of, whose page (`page_of`, relative to the home) is another file. Nothing reads them."""
    known = set(page_of.values())
    found: list[Path] = []
    for at, folders, names in os.walk(root / PAGES):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(at, name)
            if not name.endswith(".md") or name.startswith(".") or is_copy(name) or path.is_symlink():
                continue
            if path.relative_to(root).as_posix() in known or (page := _read(path)) is None:
                continue
            if page.taken.key is not None and page_of.get(page.taken.key):
                found.append(path)
    return sorted(found)


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
        return _OldPage(path, data, Takeover(taken.user, complete=False, intact=False, key=taken.key, seal=taken.seal))


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
    for copy in sorted(beside.parent.glob(f"{glob.escape(beside.stem)}.conflict*.md")):
        if copy.read_bytes() == page.data:
            return copy
    copy = _free_name(beside)
    write_bytes(copy, page.data)
    return copy


def _free_name(page: Path) -> Path:
    """A name for something that is in conflict with a page."""
    number = 1
    while (name := page.with_name(f"{page.stem}.conflict{'' if number == 1 else f'-{number}'}.md")).exists():
        number += 1
    return name


def _before_conflict(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name.partition('.conflict')[0]}"


def _is_copy_of(copy: Path, page: Path) -> bool:
    return copy.parent == page.parent and copy.name.startswith(f"{page.stem}.conflict")


def is_state(copy: Path) -> bool:
    """Is this what the archive has to say beside an edited page (and not somebody's own version of a page)?"""
    page = _read(copy)
    return page is not None and page.taken.intact and page.data.startswith(_STATE)


def as_conflict(page: str) -> str:
    """A page as it stands beside one that somebody edited: with `status: conflict` in its front matter."""
    return page.replace(_HEAD, _STATE.decode(), 1)


def _conflicts(path: Path, key: tuple[str, str] | None) -> list[Path]:
    """Copies of conflicts of a page, also under names and in years it had before."""
    name = parse_name(path.name)
    if name is None:
        return []
    copies = path.parent.parent.glob(f"*/*-{name[1]}.conflict*.md")
    return [copy for copy in copies if (page := _read(copy)) is not None and page.taken.key in (key, None)]
