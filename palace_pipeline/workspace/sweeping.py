"""Taking what must not be shown any more out of all that the workspace holds: pages of sessions and their names, memory,
index, logs.

What is masked, and where, is a `Hide` (see `hiding`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from palace_pipeline.exports.text import decode
from palace_pipeline.store.appending import change_lines
from palace_pipeline.store.files import Told
from palace_pipeline.transcripts.page_path import slug
from palace_pipeline.workspace import index, memory, names
from palace_pipeline.workspace.hiding import Hide, hide_claims, hide_secrets
from palace_pipeline.workspace.index import Row
from palace_pipeline.workspace.locks import locked
from palace_pipeline.workspace.logs import ERRORS, TOOL_CALLS, append_error
from palace_pipeline.workspace.masking import (
    Claim,
    add_claims,
    claims_of,
    note_swept,
)
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.writing import (
    PageChanged,
    free_name,
    is_fresh,
    is_half,
    plain_file,
    put_page,
    read_page,
    remove_own_leftovers,
)

LOGS = (ERRORS, TOOL_CALLS)
_TRIES = 4
_PARENT = re.compile(r"^[\"']?(?:parent|父会话)\b[^\n]{0,80}?(\d{8}-\d{4}-[0-9a-f]{7})".encode(), re.MULTILINE | re.I)
_COPY = re.compile(r"\.conflict(?:-\d+)?\.md\Z")


@dataclass(slots=True, frozen=True)
class Swept:
    """`changed`: how many files. `left`: files that could not be read, written or locked; they are named in the log."""

    changed: int
    left: tuple[Path, ...] = ()


def sweep(home: Path, hide: Hide, sessions: Iterable[Path]) -> Swept:
    """Mask in these pages of sessions, and in all of memory, index and logs.

    A file whose name shows it is named anew, and so it is called in index, logs and links from then on. Pages are taken
    under their own locks, one at a time: the caller holds none. One that somebody changes at the same time is looked at
    again; one that cannot be had stops no other.
    """
    changed, renamed, pages = 0, dict[str, str](), list[Path]()
    left: list[Path] = []
    listed = list(dict.fromkeys(sessions))
    # The pages first: their names are theirs, also where a copy of a sync program would sort before them.
    copies = {copy for copy in listed if names.is_copy(copy)} | set(map(Path, names.copies(map(str, listed))))
    for path in sorted(listed, key=lambda path: (path in copies, path)):
        with _going_on(home, path, left):
            now, differs = _session(home, path, hide, renamed)
            changed += differs
            pages.append(now)
            if now != path:
                renamed[path.stem] = now.stem
    for path in files(home / memory.MEMORY, "**/*.md"):
        with _going_on(home, path, left):
            now, differs = _memory(home, path, hide)
            changed += differs
            if now != path:  # with its folder: the name alone may be a word
                renamed[path.relative_to(home).as_posix()] = now.relative_to(home).as_posix()
    for path in pages if renamed else ():
        with _going_on(home, path, left):
            _links(home, path, renamed)
    if renamed or _may(home / index.INDEX, lambda text: hide.may(index.plain(text))):
        changed += index.change_rows(home, lambda row: _row(home, row, hide, renamed), hide.line) > 0
    for log in LOGS:
        if renamed or _may(home / log, hide.may):
            changed += change_lines(home / log, lambda line: _named_anew(hide.line(line), renamed)) > 0
    return Swept(changed, tuple(left))


def pages_of_rows(home: Path, hide: Hide) -> Iterator[Path]:
    """Pages of sessions of which a row of the index shows what is masked: their next row would say it again."""
    if not _may(home / index.INDEX, lambda text: hide.may(index.plain(text))):
        return
    for row in index.all_rows(home):
        session, part = names.id_of(row.path), names.title_in(row.path)
        if session is not None and (hide.row(row) != row or hide.name(part) != part):
            page = page_of(home / names.folder_of(session), session)
            if page is not None:
                yield page


@contextmanager
def _going_on(home: Path, path: Path, left: list[Path]) -> Generator[None]:
    """What cannot be read, written or locked is put off: named in the log, and added to `left`."""
    try:
        yield
    except (OSError, Told) as error:
        left.append(path)
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        what = "what must not be shown any more may still stand in it; the next palace ingest or append tries again"
        append_error(home, "waiting", path, f"{what} ({why})", once=True)


def _may(path: Path, may: Callable[[str], bool]) -> bool:
    return path.exists() and may(path.read_bytes().decode("utf-8", "replace"))


def follow_claims(home: Path, session: str, key: bytes, secrets: Mapping[str, str], *, unfinished: bool) -> None:
    """Mask what the entries of a session showed to be secrets in all that was said before: its pages and those that hang
    together with it, memory, index, logs. `secrets`: those that are known, shown just now; `unfinished`: earlier ones too,
    by their hashes. The caller holds no lock of a page."""
    own = claims_file(home, session)
    claims = claims_of(own)[0]
    if not (home / memory.MEMORY).is_symlink():
        add_claims(home / memory.CLAIMS, claims)
    pages = family(home, session)
    left: tuple[Path, ...] = ()
    if secrets:
        hide = hide_secrets(secrets)
        left += sweep(home, hide, [*pages, *pages_of_rows(home, hide)]).left
        pages = family(home, session) if unfinished else pages
    if unfinished:
        hide = hide_claims(claims, key)
        left += sweep(home, hide, [*pages, *pages_of_rows(home, hide)]).left
    for other in {found for path in pages if (found := names.id_of(path)) is not None} - {session}:
        # They are of one conversation: what one of them says later is masked as well.
        inherit_claims(claims_file(home, other), own, done=True)
    if not left:
        note_swept(own, len(claims))


def mask_put_back(
    home: Path, key: Callable[[], bytes], pages: Sequence[Path], purged: Hide | None, rules: Callable[[], Hide] | None
) -> int:
    """Mask what an editor, or a sync program, has put back into these pages of sessions, or into memory, though it was
    shown to be a secret, or purged; in the pages also what the rules find. Returns in how many files. `key`, `rules`: asked
    for if they are needed."""
    _inherit_from_relatives(home, pages)
    kept = files(home / memory.MEMORY, "**/*.md")
    asked: list[tuple[Hide, list[Path], list[Path]]] = []
    for path in pages:
        session = names.id_of(names.page_beside(path))
        own = claims_file(home, session) if session is not None else None
        if own is not None and plain_file(own) and (claims := claims_of(own)[0]):
            asked.append((hide_claims(claims, key()), [path], [path]))
    if kept and plain_file(home / memory.CLAIMS) and (claims := claims_of(home / memory.CLAIMS)[0]):
        asked.append((hide_claims(claims, key()), [], kept))
    if purged is not None:
        asked.append((purged, list(pages), [*pages, *kept]))
    if pages and rules is not None:
        asked.append((rules(), list(pages), list(pages)))
    found = 0
    for hide, listed, looked_at in asked:
        if any(_shows(hide, path) for path in looked_at):
            found += sweep(home, hide, listed).changed
    return found


def _inherit_from_relatives(home: Path, pages: Sequence[Path]) -> None:
    """A page that was away while one of its conversation showed a secret knows of it from now on."""
    if not pages or next((home / names.SESSIONS).glob("*/.*.claims"), None) is None:
        return
    _, related = _relations(home)
    waiting = {found for path in pages if (found := names.id_of(names.page_beside(path))) is not None}
    while waiting:
        relatives = _related_to(waiting.pop(), related)
        claims = {claim for one in relatives for claim in claims_of(claims_file(home, one))[0]}
        for session in relatives if len(relatives) > 1 and claims else ():
            _know(claims_file(home, session), claims, swept=True)
        waiting -= relatives


def _shows(hide: Hide, path: Path) -> bool:
    """Would anything be masked in a page, or in a file of memory?"""
    if not hide.may(text := _text_now(path)):
        return False
    change = hide.page(text, path) if names.id_of(names.page_beside(path)) is not None else hide.memory(text)
    return change != text or hide.name(path.stem) != path.stem


def _text_now(path: Path) -> str:
    """The text of a file, '' if nobody can read it now."""
    with suppress(OSError):
        return decode(path.read_bytes()) or ""
    return ""


def inherit_claims(own: Path, other: Path, *, done: bool = False) -> None:
    """What one page of a conversation showed to be a secret is known to another as well. `done`: it was masked there, even
    if it does not say so yet."""
    claims, unfinished = claims_of(other)
    _know(own, set(claims), swept=done or not unfinished)


def _know(own: Path, claims: set[Claim], *, swept: bool) -> None:
    """Add claims to those of a session. `swept`: they were masked there already, or are about to be."""
    known, unfinished = claims_of(own)
    if not claims.difference(known):
        return
    add_claims(own, claims)
    if swept and not unfinished:
        note_swept(own, len(claims_of(own)[0]))


def finish_claims(home: Path, key: Callable[[], bytes]) -> int:
    """Do what writers that were killed had still to do; returns of how many sessions. `key`: asked for if it is needed."""
    done = 0
    for path in sorted((home / names.SESSIONS).glob("*/.*.claims")):
        session = names.claimed_by(path)
        if session and plain_file(path) and claims_of(path)[1]:
            follow_claims(home, session, key(), {}, unfinished=True)
            done += 1
    return done


def claims_file(home: Path, session: str) -> Path:
    """Where what a session showed is known by its hashes."""
    return home / names.claims_path(session)


def files(folder: Path, pattern: str) -> list[Path]:
    """Files below a folder that are Palace's own: no links, no folders."""
    found = [] if folder.is_symlink() else sorted(folder.glob(pattern))
    return [path for path in found if plain_file(path) and not path.parent.is_symlink()]


def all_sessions(home: Path) -> list[Path]:
    """Pages of all sessions, with copies of conflicts."""
    return files(home / names.SESSIONS, "*/*.md")


def family(home: Path, session: str) -> list[Path]:
    """Pages of a session and of all that hang together with it by `parent`: its parts, who began it, whom it began; copies
    of conflicts too."""
    pages, related = _relations(home)
    return [path for one in sorted(_related_to(session, related)) for path in pages.get(one, ())]


def _relations(home: Path) -> tuple[dict[str, list[Path]], dict[str, set[str]]]:
    """(id -> its pages, id -> ids that it names as its parent, or that name it)."""
    pages = dict[str, list[Path]]()
    related = dict[str, set[str]]()
    for path in all_sessions(home):
        own, head = names.id_of(path) or names.id_of(names.page_beside(path)), b""
        if own is None:
            continue
        pages.setdefault(own, []).append(path)
        with suppress(OSError), _now(path).open("rb") as stream:  # one that cannot be read has no family that is known
            head = stream.read(4096)
        front = head[: end if (end := head.find(b"\n---", 4)) > 0 else None]
        for parent in {found.decode() for found in _PARENT.findall(front)} - {own}:
            related.setdefault(own, set()).add(parent)
            related.setdefault(parent, set()).add(own)
    return pages, related


def _related_to(session: str, related: Mapping[str, set[str]]) -> set[str]:
    found, waiting = {session}, [session]
    while waiting:
        more = related.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found


def name_anew(home: Path, old: Path, new: Path) -> None:
    """A page got another name, since its old one showed what is masked now: it must not stand in the logs either."""
    for log in LOGS:
        change_lines(home / log, lambda line: line.replace(old.stem, new.stem))


# --- one file ---------------------------------------------------------------------------------------------------------


def _session(home: Path, path: Path, hide: Hide, renamed: Mapping[str, str]) -> tuple[Path, bool]:
    """(where the page lies now, whether anything changed). `renamed`: pages that were named anew before their copies."""
    session = names.id_of(path)
    with locked(path.parent, names.prefix_of(session) if session else path.stem, hand_on=True) as lock:
        if lock.after_kill:
            remove_own_leftovers(path.parent, names.prefix_of(session) if session else path.name)
        listed, path = path, _now(path)
        if not plain_file(path):
            return listed, False  # deleted meanwhile
        stem = names.page_beside(path).stem
        part = names.title_in(path) if session else stem
        old, new = _rewritten(home, path, lambda text: hide.page(text, path) if hide.may(text) else text)
        if new == old and hide.name(part) == part and stem not in renamed and not hide.may(old):
            return path, False
        if session is None:
            named = path.with_name(renamed.get(stem, hide.name(stem)) + path.name[len(stem) :])
        else:
            title = parse(new, path).title
            if hide.name(part) == part and parse(old, path).title == title:
                return path, new != old
            part = names.title_part(hide.name(names.title_part(title)))
            named = path.with_name(f"{names.prefix_of(session)}-{part}.md")
        if named == path or (named.exists() and session is None):
            return path, new != old
        if named.exists():
            named = free_name(named)  # a sync program's copy of that page
        path.rename(named)
        return named, True


def _memory(home: Path, path: Path, hide: Hide) -> tuple[Path, bool]:
    """The same for a file of memory; that of an entity is called as its heading."""
    with locked(path.parent, path.stem) as lock:
        if lock.after_kill:
            remove_own_leftovers(path.parent, path.name)
        if not plain_file(path):
            return path, False
        old, new = _rewritten(home, path, hide.memory)
        title = memory.title_of(new)
        if path.parent.name != memory.ENTITIES.name or (
            hide.name(path.stem) == path.stem and title == memory.title_of(old)
        ):
            return path, new != old
        stem = slug(hide.name(memory.file_name(title or path.stem).removesuffix(".md")))
        named, number = path.with_name(f"{stem}.md"), 1
        while named.exists() and named != path:
            number += 1
            named = path.with_name(f"{stem}-{number}.md")
        if named == path:
            return path, new != old
        path.rename(named)
        return named, True


def page_of(folder: Path, session: str) -> Path | None:
    """The page of a session in the folder of its day, whatever it is called now."""
    return next(iter(names.files_of(folder, session)), None)


def _now(path: Path) -> Path:
    """Where a page lies that another sweep may have named anew since it was listed."""
    session = names.id_of(path)
    return path if session is None or path.exists() else page_of(path.parent, session) or path


def _links(home: Path, path: Path, renamed: Mapping[str, str]) -> None:
    """Links to pages that have another name now."""
    session = names.id_of(path)
    if session is None:
        return
    with locked(path.parent, names.prefix_of(session), hand_on=True):
        path = _now(path)
        if plain_file(path):
            _rewritten(home, path, lambda text: _named_anew(text, renamed))


def _rewritten(home: Path, path: Path, change: Callable[[str], str]) -> tuple[str, str]:
    """A file's text before and after a change, which is written if there is one. If somebody else writes the file in
    between, it is read and changed again; after `_TRIES` times PageChanged is raised. Raises NoText and OSError."""
    for attempt in range(_TRIES):
        data, seen = read_page(path, wait=True)
        if is_half(data) and is_fresh(seen):
            raise PageChanged(f"{path.relative_to(home)} is half there: somebody is writing it. Nothing was changed")
        old = decode(data)
        if old is None:
            raise NoText(f"{path.relative_to(home)} is no text in any encoding that Palace knows; it was left as it is")
        if (new := change(old)) == old:
            return old, old
        written = new.encode("utf-8", "replace")
        try:
            put_page(home, path, written, seen=seen, same=written.__eq__, keep_half=False)
        except PageChanged:
            if attempt == _TRIES - 1:
                raise
        else:
            return old, new
    raise AssertionError("the last try raises or writes")


class NoText(Told):
    """A file of the workspace holds what is no text."""


def _row(home: Path, row: Row, hide: Hide, renamed: Mapping[str, str]) -> Row:
    path = _named_anew(row.path, renamed)
    if hide.name(path) != path and not (home / path).exists():
        session, (folder, _, name) = names.id_of(path), path.rpartition("/")
        now = page_of(home / folder, session) if session is not None else None
        path = f"{folder}/{now.name if now is not None else hide.name(name)}"
    return replace(hide.row(row), path=path)


def _named_anew(text: str, renamed: Mapping[str, str]) -> str:
    for old, new in renamed.items():
        text = text.replace(old, new)
    return text
