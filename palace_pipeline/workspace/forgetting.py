"""What a purge takes out of the workspace: pages of live sessions, rows of the index, lines of the logs, values in all of
them. The caller holds the home's write lock; pages of sessions are taken under their own locks as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from palace_pipeline.model import page_hash
from palace_pipeline.redaction.forgotten import Forgotten
from palace_pipeline.redaction.forgotten import masked as without
from palace_pipeline.store.appending import change_lines
from palace_pipeline.store.files import write_bytes
from palace_pipeline.workspace import index, names
from palace_pipeline.workspace.locks import locked
from palace_pipeline.workspace.logs import ERRORS, TOOL_CALLS
from palace_pipeline.workspace.masking import texts_of, with_texts
from palace_pipeline.workspace.memory import MEMORY
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.session import PART, render
from palace_pipeline.workspace.writing import plain_file

if TYPE_CHECKING:
    from palace_pipeline.redaction.funnel import Funnel

_LOGS = (ERRORS, TOOL_CALLS)


def _files(folder: Path, pattern: str) -> list[Path]:
    return [path for path in sorted(folder.glob(pattern)) if plain_file(path)]


def parts_of(home: Path, session: str) -> list[str]:
    """Ids of the pages to which earlier topics of a long session were moved."""
    found: list[str] = []
    for path in _files(home / names.SESSIONS, "*/*.md"):
        part = names.id_of(path)
        if part is None or part == session or session.encode() not in (data := path.read_bytes()):
            continue
        page = parse(data.decode("utf-8", "replace"), path)
        if page.role == PART and page.parent == session:
            found.append(part)
    return found


def forget_conversations(home: Path, keys: Iterable[tuple[str, str]]) -> int:
    """Delete the live pages of sessions, with copies of conflicts, and all rows and lines about these conversations;
    returns how many pages went."""
    gone, marks, pages = set[str](), list[str](), 0
    named = list(keys)
    named += [
        ("session", part)
        for provider, conversation_id in named
        if provider == "session" and names.is_id(conversation_id)
        for part in parts_of(home, conversation_id)
    ]
    for provider, conversation_id in dict.fromkeys(named):
        gone.add(index.page_key(provider, conversation_id))
        marks.append(f"-{page_hash(provider, conversation_id)}.")
        if provider == "session" and names.is_id(conversation_id):
            gone.add(conversation_id)
            marks += [conversation_id, f"{names.folder_of(conversation_id)}/{names.prefix_of(conversation_id)}"]
            pages += _delete_session(home, conversation_id)
    index.forget_rows(home, gone)
    for log in _LOGS:
        change_lines(home / log, lambda line: None if any(mark in line for mark in marks) else line)
    return pages


def _delete_session(home: Path, session: str) -> int:
    folder, prefix = home / names.folder_of(session), names.prefix_of(session)
    if not folder.is_dir():
        return 0
    with locked(folder, prefix):
        pages = [path for path in folder.iterdir() if path.name.startswith((prefix, f".{prefix}.claims"))]
        for path in pages:
            path.unlink()
    return sum(path.suffix == ".md" for path in pages)


def mask_values(home: Path, values: Sequence[Forgotten], key: bytes) -> int:
    """Mask purged values in pages of sessions, memory, index and logs, in names of files too; returns how many changed."""

    def clean(text: str) -> str:
        return without(text, values, key)

    changed = sum(_mask_session(home, path, clean) for path in _files(home / names.SESSIONS, "*/*.md"))
    for path in _files(home / MEMORY, "**/*.md"):
        changed += _mask_file(path, clean)
    for name in (index.INDEX, *_LOGS):
        changed += change_lines(home / name, clean) > 0
    return changed


def mask_again(home: Path, funnel: Funnel) -> int:
    """After a change of the rules: mask what they find now in what programs wrote (entries with a time, titles, summaries,
    facts, calls of tools, rows of the index); returns how many files changed. Words by hand stay as they are."""
    changed = sum(_session_again(home, path, funnel) for path in _files(home / names.SESSIONS, "*/*.md"))

    def line(text: str) -> str:
        return funnel.redact_fields({"line": text}).texts["line"] if text.startswith("- ") else text

    for path in _files(home / MEMORY, "**/*.md"):
        changed += _mask_file(path, lambda text: "\n".join(map(line, text.split("\n"))))
    changed += change_lines(home / TOOL_CALLS, line) > 0
    return changed + (index.clean_rows(home, funnel) > 0)


def _session_again(home: Path, path: Path, funnel: Funnel) -> bool:
    session_id = names.id_of(path)
    if session_id is None:
        return False
    with locked(path.parent, names.prefix_of(session_id)):
        session = parse(path.read_bytes().decode("utf-8", "replace"), path)
        clean = funnel.redact_fields({f"{n}": text for n, text in enumerate(texts_of(session))}).texts
        new = with_texts(session, (clean[f"{n}"] for n in range(len(clean))))
        sections = {
            section: [
                old if old.at is None else entry for old, entry in zip(entries, new.sections[section], strict=True)
            ]
            for section, entries in session.sections.items()
        }
        new = replace(new, intro=session.intro, sections=sections)  # by hand
        if new == session:
            return False
        write_bytes(path, render(new).encode("utf-8", "replace"))
        if new.title == session.title:
            return True
        named = home / names.path_of(session_id, new.title)
        path.rename(named)
    name_anew(home, path, named)
    index.forget_rows(home, [session_id])
    index.add_rows(home, [index.session_row(new, named.relative_to(home).as_posix())])
    return True


def _mask_session(home: Path, path: Path, clean: Callable[[str], str]) -> bool:
    """A page whose title or name shows a value is named anew, and gets a new row."""
    session = names.id_of(path)
    with locked(path.parent, names.prefix_of(session) if session else path.stem):
        title = parse(path.read_bytes().decode("utf-8", "replace"), path).title if session else ""
        changed = _mask_file(path, clean)
        if session and title != clean(title):
            named = home / names.path_of(session, clean(title))
        else:
            named = path.with_name(clean(path.name).replace("[REDACTED:", "").replace("]", ""))
        if named == path or named.exists():
            return changed
        path.rename(named)
    name_anew(home, path, named)
    if session and (row := index.find(home, session)) is not None:
        index.forget_rows(home, [session])
        shown = named.relative_to(home).as_posix()
        index.add_rows(home, [index.Row(row.day, clean(row.title), row.tags, clean(row.summary), shown)])
    return True


def name_anew(home: Path, old: Path, new: Path) -> None:
    """A page got another name, since its old one showed what is masked now: it must not stand in the logs either."""
    for log in _LOGS:
        change_lines(home / log, lambda line: line.replace(old.stem, new.stem))


def _mask_file(path: Path, clean: Callable[[str], str]) -> bool:
    text = path.read_bytes().decode("utf-8", "replace")
    if (masked := clean(text)) == text:
        return False
    write_bytes(path, masked.encode("utf-8", "replace"))
    return True
