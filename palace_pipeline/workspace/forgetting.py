"""What a purge takes out of the workspace: pages of live sessions, rows of the index, lines of the logs, values in all of
them. The caller holds the home's write lock; pages of sessions are taken under their own locks as well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from palace_pipeline.exports.text import decode
from palace_pipeline.model import page_hash
from palace_pipeline.redaction.forgotten import MASK, Forgotten
from palace_pipeline.store.appending import change_lines
from palace_pipeline.workspace import index, names
from palace_pipeline.workspace.hiding import hide_by_rules, hide_values
from palace_pipeline.workspace.locks import locked
from palace_pipeline.workspace.logs import append_error
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.session import PART
from palace_pipeline.workspace.sweeping import LOGS, Swept, all_sessions, sweep

if TYPE_CHECKING:
    from palace_pipeline.redaction.funnel import Funnel


@dataclass(frozen=True, slots=True)
class Gone:
    """`pages`: how many live pages of sessions were deleted. `left`: files that could not be read or deleted."""

    pages: int = 0
    left: tuple[Path, ...] = ()


def parts_of(home: Path, sessions: set[str]) -> tuple[list[str], list[Path]]:
    """Ids of the pages to which earlier topics of long sessions were moved, of all of these in one pass; and pages that
    could not be read, of which nobody can say."""
    found: list[str] = []
    left: list[Path] = []
    for path in all_sessions(home) if sessions else ():
        part = names.id_of(path)
        if part is None or part in sessions:
            continue
        try:
            text = decode(path.read_bytes()) or ""
        except OSError:
            left.append(path)
            continue
        if not sessions & set(_IDS.findall(text)):
            continue
        page = parse(text, path)
        if page.role == PART and page.parent in sessions:
            found.append(part)
    return found, left


_IDS = re.compile(r"\d{8}-\d{4}-[0-9a-f]{7}")


def forget_conversations(home: Path, keys: Iterable[tuple[str, str]]) -> Gone:
    """Delete the live pages of sessions with their parts, and copies of conflicts, and all rows and lines about these
    conversations. A page that cannot be read or deleted stops no other: it is named in `logs/errors.md`."""
    gone, marks, pages = set[str](), list[str](), 0
    named = list(keys)
    parts, left = parts_of(home, {name for provider, name in named if provider == "session" and names.is_id(name)})
    named += [("session", part) for part in parts]
    for provider, conversation_id in dict.fromkeys(named):
        gone.add(index.page_key(provider, conversation_id))
        marks.append(f"-{page_hash(provider, conversation_id)}.")
        if provider == "session" and names.is_id(conversation_id):
            gone.add(conversation_id)
            marks += [conversation_id, f"{names.folder_of(conversation_id)}/{names.prefix_of(conversation_id)}"]
            try:
                pages += _delete_session(home, conversation_id)
            except OSError as error:
                left.append(Path(str(error.filename)) if error.filename else home / names.folder_of(conversation_id))
    index.forget_rows(home, gone)
    for log in LOGS:
        change_lines(home / log, lambda line: None if any(mark in line for mark in marks) else line)
    for path in left:
        what = (
            "a purge could not read or delete it; it may still show what was purged. Make it readable, then purge again"
        )
        append_error(home, "waiting", path, what, once=True)
    return Gone(pages, tuple(left))


def _delete_session(home: Path, session: str) -> int:
    folder, prefix = home / names.folder_of(session), names.prefix_of(session)
    if not folder.is_dir():
        return 0
    with locked(folder, prefix):
        pages = [path for path in folder.iterdir() if path.name.startswith((prefix, f".{prefix}.claims"))]
        for path in pages:
            path.unlink()
    return sum(path.suffix == ".md" for path in pages)


def mask_values(home: Path, values: Sequence[Forgotten], key: bytes, *, pages: bool = True) -> Swept:
    """Mask purged values in pages of sessions (unless not `pages`), memory, index and logs, in names of files too."""
    return sweep(home, hide_values(values, key, MASK), all_sessions(home) if pages else ())


def mask_again(home: Path, funnel: Funnel) -> Swept:
    """After a change of the rules: mask what they find now in what programs wrote (entries with a time, titles, summaries,
    facts, names of entities, calls of tools, rows of the index). Words by hand stay as they are."""
    titles = {row.title for row in index.all_rows(home) if names.id_of(row.path) is not None}
    return sweep(home, hide_by_rules(funnel, titles), all_sessions(home))
