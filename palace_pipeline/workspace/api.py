"""The workspace for agents and scripts: `Workspace("~/palace").new("Fix the oven")`.

Each call is whole by itself: it takes the page's lock, reads the page as it is now, does one thing and puts the page in
its place, so any number of processes may write at once. What is said is redacted first; if that cannot be done, nothing
is written.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from palace_pipeline.exports.text import decode
from palace_pipeline.settings import Settings, load_settings
from palace_pipeline.store.files import Told, make_folder
from palace_pipeline.transcripts import front_matter
from palace_pipeline.workspace import index, memory, names
from palace_pipeline.workspace.front import as_lines, as_tag, clean_tags
from palace_pipeline.workspace.locks import Lock, PageBusy, locked
from palace_pipeline.workspace.logs import ERRORS, TOOL_CALLS, append_error, log_tool_call, note_copy, note_problems
from palace_pipeline.workspace.reading import SessionError, parse
from palace_pipeline.workspace.sections import SECTIONS, Section, named
from palace_pipeline.workspace.session import (
    MOST_TAGS,
    PART,
    SUMMARY_LENGTH,
    Entry,
    Session,
    added,
    as_entry,
    body_size,
    given_summary,
    one_line,
    render,
    status_after,
    summary_of,
)
from palace_pipeline.workspace.split import MOST_BYTES, Tree, split
from palace_pipeline.workspace.writing import (
    Fingerprint,
    PageChanged,
    PageChangedSince,
    assert_own,
    assert_whole,
    file_state,
    fingerprint,
    plain_file,
    put_page,
    read_page,
    remove_own_leftovers,
)

if TYPE_CHECKING:
    from palace_pipeline.redaction.forgotten import Forgotten
    from palace_pipeline.redaction.funnel import Funnel
    from palace_pipeline.workspace.masking import Said

_TRIES = 4


class NoSession(Told):
    """There is no session of this id."""

    usage = True


class NotSaid(Told):
    """What was to be written is no session, section or tag; the text says what to write instead."""

    usage = True


class NotText(Told):
    """A page holds what is no text in any encoding that Palace knows; it was left as it is."""


@dataclass(slots=True, frozen=True)
class Page:
    """A session where it lies, and what its file was when it was read."""

    path: Path
    session: Session
    seen: Fingerprint | None

    @property
    def id(self) -> str:
        return self.session.id


class Workspace:
    """The workspace of a palace home (default: `PALACE_HOME`, else `~/palace`). Making the object touches nothing.

    Errors: `store.files.Told` with words for people (no such session, page busy, page changed), OSError, and
    `settings.SettingsError`. Times are those of `settings.zone`, with their offset.
    """

    def __init__(self, home: Path | str | None = None, settings: Settings | None = None) -> None:
        self.settings = settings or load_settings(Path(home) if home is not None else None)
        self.home = self.settings.home
        self._read_settings = None if settings is not None else file_state(self.home / "palace.toml")
        self._funnel: tuple[tuple[Forgotten, ...], Funnel] | None = None

    # --- sessions

    def new(
        self,
        title: str,
        *,
        input: str = "",
        role: str = "assistant",
        parent: str | None = None,
        tags: Sequence[str] = (),
        model: str | None = None,
        summary: str = "",
        ts: datetime | None = None,
    ) -> Page:
        """Begin a session; `input` is its first entry. `ts`: with an offset (default: now)."""
        begin = (ts or self.now()).replace(microsecond=0)
        if begin.tzinfo is None:
            raise NotSaid("a session's time needs its offset, as in 2026-11-30T09:15:00+08:00")
        if parent is not None:
            self.path_of(parent)
        session = Session(
            names.session_id(begin, secrets.token_hex(8)), begin, language=self.settings.workspace.language
        )
        with self._locked(session.id) as lock:
            looked_at, _ = self._masked(
                replace(session, parent=parent),
                {"title": title, "input": input, "role": role, "model": model or "", "summary": summary}
                | {f"tag {number}": tag for number, tag in enumerate(_few(tags))},
            )
            said = looked_at.texts
            session = replace(
                session,
                title=one_line(said["title"], 200),
                role=one_line(said["role"], 80) or "assistant",
                parent=parent,
                tags=clean_tags(text for name, text in said.items() if name.startswith("tag ")),
                model=one_line(said["model"], 80) or None,
                summary=one_line(said["summary"], SUMMARY_LENGTH),
            )
            if said["input"].strip():
                session.sections["input"].append(as_entry(said["input"], begin))
                session.turns = 1
            path = self.home / names.path_of(session.id, session.title)
            page = self._put(Page(path, session, None), lock)
            # Under the lock: if a kill comes before it, the next writer finds the lock and looks whether the row is there.
            index.add_rows(self.home, [self._row(page)])
        return self._followed(page, looked_at)

    def append(
        self,
        session: str,
        section: str,
        text: str = "",
        *,
        who: str | None = None,
        at: datetime | None = None,
        tags: Sequence[str] = (),
        model: str | None = None,
        summary: str | None = None,
        tokens_in: int = 0,
        tokens_out: int = 0,
        close: bool = False,
    ) -> Page:
        """Add an entry to a section (`input`, `judgement`, `tools`, `conclusion`, `todo`, or a heading's name).

        `who`: the speaker, or the tool's name. `at`: with an offset (default: now). Tags come to those that are there,
        `tokens_*` are added up; a text opens a closed session again, unless `close`.
        """
        where = section_named(section)
        time = at or self.now().replace(microsecond=0)
        if time.tzinfo is None:
            raise NotSaid("the time of an entry needs its offset, as in 2026-11-30T09:15:00+08:00")
        self.path_of(session)
        written: Entry | None = None
        with self._locked(session) as lock:
            for attempt in range(_TRIES):
                old = self.load(session)
                fields = {"text": text, "who": who or "", "model": model or "", "summary": summary or ""}
                fields |= {f"tag {number}": tag for number, tag in enumerate(_few([*old.session.tags, *tags]))}
                looked_at, kept = self._masked(old.session, fields)
                said = looked_at.texts
                if written is not None and written in old.session.sections[where]:
                    page = old  # it was put in its place, and somebody has written in the page at once
                    break
                grown = replace(
                    kept,
                    tags=clean_tags(value for name, value in said.items() if name.startswith("tag ")),
                    model=one_line(said["model"], 80) or kept.model,
                    summary=one_line(said["summary"], SUMMARY_LENGTH) or given_summary(kept),
                    tokens_in=added(kept.tokens_in, tokens_in),
                    tokens_out=added(kept.tokens_out, tokens_out),
                    status=status_after(kept.status, close=close, more=bool(said["text"].strip())),
                    sections={name: list(entries) for name, entries in kept.sections.items()},
                )
                if said["text"].strip():
                    grown.sections[where].append(as_entry(said["text"], time, said["who"]))
                    grown.turns += where == "input"
                grown.summary = summary_of(grown)
                try:
                    page = self._put(Page(old.path, grown, old.seen), lock, last=attempt == _TRIES - 1)
                    break
                except PageChanged as changed:
                    if isinstance(changed, PageChangedSince) and said["text"].strip():
                        written = grown.sections[where][-1]
                    continue  # by a person, or a program without a lock: once more, with what stands there now
            else:
                raise AssertionError("the last try raises or writes")
            if where == "tools" and said["text"].strip():
                log_tool_call(self.home, session, said["who"], said["text"], at=time)
            before, now = self._row(old), self._row(page)
            if page.path == old.path and (before != now or lock.after_kill):
                index.add_rows(self.home, [now])
        return self._followed(page, looked_at)

    def close(self, session: str, conclusion: str = "", *, summary: str | None = None) -> Page:
        """Close a session, with its conclusion if there is one to add."""
        return self.append(session, "conclusion", conclusion, summary=summary, close=True)

    def save(self, page: Page) -> Page:
        """Write a session that was changed as a whole, redacted. If the page is not any more what was read, it stays, and
        the session goes beside it as `.conflict.md`: look at the path that comes back."""
        session = page.session
        fields = {"title": session.title, "summary": session.summary, "intro": session.intro, "role": session.role}
        fields |= {"model": session.model or "", **{f"tag {n}": tag for n, tag in enumerate(_few(session.tags))}}
        fields |= {f"entry {number}": entry.text for number, (_, entry) in enumerate(session.entries())}
        fields |= {f"who {number}": entry.who or "" for number, (_, entry) in enumerate(session.entries())}
        fields |= {f"extra {name}": str(value) for name, value in front_matter.load(session.extra).items()}
        with self._locked(session.id) as lock:
            looked_at, _ = self._masked(Session(session.id, session.ts), fields)
            said = looked_at.texts
            numbers = iter(range(len(fields)))
            hidden = {name: said[f"extra {name}"] for name in front_matter.load(session.extra)}
            clean = replace(
                session,
                title=one_line(said["title"], 200),
                role=one_line(said["role"], 80) or "assistant",
                model=one_line(said["model"], 80) or None,
                tags=clean_tags(value for name, value in said.items() if name.startswith("tag ")),
                extra=as_lines(hidden)
                if any(fields[f"extra {name}"] != hidden[name] for name in hidden)
                else session.extra,
                summary=one_line(said["summary"], SUMMARY_LENGTH),
                intro=said["intro"],
                sections={
                    name: [
                        as_entry(said[f"entry {(n := next(numbers))}"], entry.at, said[f"who {n}"])
                        for entry in session.sections[name]
                    ]
                    for name in SECTIONS
                },
            )
            with suppress(NoSession):  # not there any more: made again where it was
                page = replace(page, path=self.path_of(session.id))  # named anew if its name showed a secret
            written = self._put(replace(page, session=clean), lock)
        if written.path == page.path:
            index.add_rows(self.home, [self._row(written)])
        return self._followed(written, looked_at)

    def load(self, session: str) -> Page:
        """A session as it stands in its file. What its reader had to guess is noted in `logs/errors.md`, once, and so are
        copies of the file that a sync program made."""
        path, data, seen = self._read(session)
        text = decode(data)
        if text is None:
            raise NotText(f"{path} cannot be read as text; save it as UTF-8")
        read = parse(text, path, self.settings.workspace.language)
        note_problems(self.home, path, read.problems)
        return Page(path, read, seen)

    def _read(self, session: str) -> tuple[Path, bytes, Fingerprint]:
        for _ in range(_TRIES):
            path, *others = self._paths_of(session)
            for copy in others:
                note_copy(self.home, path, copy)
            with suppress(FileNotFoundError):  # named anew by another process just now
                return path, *read_page(path, wait=True)
        raise NoSession(f"the page of {session} is gone while it is read; try again")

    def path_of(self, session: str) -> Path:
        """Where a session lies, by its id. Raises NoSession."""
        return self._paths_of(session)[0]

    def _paths_of(self, session: str) -> list[Path]:
        """Its page, then copies of it that somebody else made."""
        try:
            folder, prefix = self.home / names.folder_of(session), names.prefix_of(session)
        except ValueError as error:
            raise NotSaid(f"{session!r} is {error}") from None
        assert_own(self.home, folder)
        found = names.files_of(folder, session)
        if not found:
            assert_own(self.home, *(path for path in _entries(folder) if path.name.startswith(prefix)))
            raise NoSession(f"there is no session {session} in {self.home / names.SESSIONS}")
        return found

    def sessions(self) -> Iterable[Path]:
        """Paths of all sessions, youngest first; those that a clock which was ahead has dated come last, or they would be
        the recent ones for years. A day that is a symbolic link is not followed, and noted in the log."""
        assert_own(self.home, Path(names.SESSIONS))
        tomorrow = (self.now() + timedelta(days=1)).date().isoformat()
        for folder in sorted(_entries(self.home / names.SESSIONS), key=lambda folder: folder.name > tomorrow):
            if folder.is_symlink():
                append_error(
                    self.home, "damaged", folder, "a symbolic link, not followed; put the folder here", once=True
                )
                continue
            found = [path for path in _entries(folder) if names.id_of(path) is not None and plain_file(path)]
            copies = names.copies(map(str, found))
            yield from (path for path in found if str(path) not in copies)

    def youngest(self, most: int, *, but: str | None = None) -> tuple[list[Page], list[tuple[str, str]]]:
        """The last sessions, at most so many, without the one of the id `but`; and those that could not be read: (path
        below the home, why)."""
        pages, unread = list[Page](), list[tuple[str, str]]()
        for path in self.sessions():
            session = names.id_of(path)
            if len(pages) == most:
                break
            if session is None or session == but:
                continue
            try:
                pages.append(self.load(session))
            except (Told, OSError) as error:
                why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                unread.append((path.relative_to(self.home).as_posix(), why))
        return pages, unread

    def artifacts(self) -> Path:
        """Today's folder for files that agents make, made if need be. Palace neither reads nor redacts what lies there."""
        folder = self.home / "artifacts" / self.now().date().isoformat()
        assert_own(self.home, folder)
        return make_folder(folder)

    def now(self) -> datetime:
        """The time in the zone in which people read dates."""
        return datetime.now(self.settings.zone)

    # --- inside

    @cached_property
    def key(self) -> bytes:
        """The home's key for keyed hashes."""
        from palace_pipeline.store.home import Home

        make_folder(self.home)
        return Home(self.settings).key()

    @property
    def funnel(self) -> Funnel:
        """The redaction of this home as it is now: somebody may change its rules, or purge from it, while agents write."""
        from palace_pipeline.redaction.funnel import Funnel

        if self._read_settings not in (None, now := file_state(self.home / "palace.toml")):
            assert_whole(self.home / "palace.toml")
            self.settings, self._read_settings, self._funnel = load_settings(self.home), now, None
        forgotten = self.forgotten
        if self._funnel is None or self._funnel[0] != forgotten:
            self._funnel = (forgotten, Funnel(self.settings.redaction, self.key, forgotten=forgotten))
        return self._funnel[1]

    @property
    def forgotten(self) -> tuple[Forgotten, ...]:
        """What was purged from this home, by its hashes."""
        from palace_pipeline.store.home import Home

        home = Home(self.settings)
        if not home.exists:
            return ()
        with home.ledger() as ledger:
            return ledger.forgotten()

    def _masked(self, session: Session, texts: dict[str, str]) -> tuple[Said, Session]:
        from palace_pipeline.workspace.masking import masked
        from palace_pipeline.workspace.sweeping import claims_file, inherit_claims

        own = claims_file(self.home, session.id)
        if session.parent is not None and not own.exists():
            inherit_claims(own, claims_file(self.home, session.parent))
        return masked(self.funnel, self.key, texts, session, own)

    def _followed(self, page: Page, said: Said) -> Page:
        """What was shown now to be a secret goes from all that was said before; returns the page as it is then. Without
        the lock of the page: others of its conversation are taken under theirs."""
        if not said.secrets and not said.unfinished:
            return page
        from palace_pipeline.workspace.sweeping import follow_claims

        try:
            follow_claims(self.home, page.id, self.key, said.secrets, unfinished=said.unfinished)
        except PageBusy as busy:  # what was said is written: to say it again would double it
            what = (
                "what it shows to be a secret still stands in older places; the next append or palace ingest masks it"
            )
            append_error(self.home, "waiting", page.path, f"{what} ({busy})")
        return page if names.is_copy(page.path) else self.load(page.id)

    def _locked(self, session: str) -> AbstractContextManager[Lock]:
        """The lock of a session. Before anything is written: all that a writer adds to must be the home's own."""
        hidden = (Path(names.claims_path(session)), memory.CLAIMS)
        assert_own(self.home, self.home / names.folder_of(session), *hidden, index.INDEX, ERRORS, TOOL_CALLS)
        return locked(self.home / names.folder_of(session), names.prefix_of(session))

    def _row(self, page: Page) -> index.Row:
        return index.session_row(page.session, page.path.relative_to(self.home).as_posix())

    def _put(self, page: Page, lock: Lock, *, last: bool = True) -> Page:
        if lock.after_kill:
            remove_own_leftovers(page.path.parent, names.prefix_of(page.id))
        tree = split(page.session) if body_size(page.session) > MOST_BYTES else Tree(page.session, ())
        parts = [self._put_part(part) for part in tree.parts]
        root = Page(page.path, tree.root, page.seen)
        try:
            path = self._write(root, lock, last=last)
        except PageChangedSince:
            raise  # the page with links to the parts may be in its place
        except BaseException:
            for part in parts:
                if part.seen is None:  # made just now: its words are still on the page
                    part.path.unlink()
            raise
        if lock.after_kill:
            self._drop_unlinked(root)
        index.add_rows(self.home, map(self._row, parts))
        return Page(path, tree.root, None)

    def _put_part(self, part: Session) -> Page:
        """A part's page; one of the same id is what a writer that was killed had made of the same entries."""
        path = self.home / names.path_of(part.id, part.title)
        assert_own(self.home, path)
        page = Page(path, part, fingerprint(path))
        self._write(page, None)
        return page

    def _drop_unlinked(self, root: Page) -> None:
        """Delete parts that a killed writer had made of entries that are still on the page."""
        days = {entry.at.date().isoformat() for _, entry in root.session.entries() if entry.at is not None}
        for day in days:
            for path in _entries(self.home / names.SESSIONS / day):
                if names.id_of(path) is None or path.name in root.session.intro:
                    continue
                found = parse(path.read_bytes().decode("utf-8", "replace"), path)
                if found.parent == root.id and found.role == PART:
                    path.unlink()
                    index.forget_rows(self.home, [found.id])

    def _write(self, page: Page, lock: Lock | None, *, last: bool = True) -> Path:
        data = render(page.session).encode("utf-8", "replace")

        def same(read: bytes) -> bool:
            try:
                again = parse(read.decode("utf-8"), page.path)
            except (SessionError, UnicodeDecodeError):
                return False
            return read == data and again.id == page.id and again.sections == page.session.sections

        def as_conflict() -> bytes:
            return render(replace(page.session, status="conflict")).encode("utf-8", "replace")

        return put_page(
            self.home, page.path, data, seen=page.seen, same=same, lock=lock, as_conflict=as_conflict if last else None
        )


def section_named(text: str) -> Section:
    """The section that a word means: its key, or any name a heading of it may have. Raises NotSaid."""
    if text in SECTIONS:
        return text
    found = named(text)
    if found is None or found[1]:
        raise NotSaid(f"{text!r} is no section; there are: {', '.join(SECTIONS)}")
    return found[0]


def _few(tags: Sequence[str]) -> list[str]:
    unique = list(dict.fromkeys(tag for text in tags if (tag := as_tag(text))))
    if len(unique) > MOST_TAGS:
        raise NotSaid(f"a session has at most {MOST_TAGS} tags; these are {len(unique)}")
    return unique


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir(), reverse=True)
    except (FileNotFoundError, NotADirectoryError):
        return []
