"""What the archive still says though a live session has shown it to be a secret since it was read: the next ingest masks it.
Until then nothing of that may leave the home, by an export or into the history of Git."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from palace_pipeline.model import page_hash
from palace_pipeline.transcripts.notes import NOTES
from palace_pipeline.workspace import names
from palace_pipeline.workspace.masking import Claim, claims_of, shows_anywhere
from palace_pipeline.workspace.sweeping import claims_file, files

_PAGES = "conversations/session"


def shows_since(home: Path, key: Callable[[], bytes], session: str, *texts: str) -> bool:
    """Has a live session shown something of these texts to be a secret? `key`: the home's, asked for if it is needed."""
    claims = claims_of(claims_file(home, session))[0] if names.is_id(session) else []
    return bool(claims) and any(shows_anywhere(text, claims, key()) for text in texts)


def files_that_show(home: Path, key: Callable[[], bytes]) -> list[str]:
    """Paths below the home of pages of the archive, and of notes that list them, that show what a live session has shown to
    be a secret since."""
    claims = sorted((home / names.SESSIONS).glob("*/.*.claims"))
    if not claims:
        return []
    pages = {path.stem.rpartition("-")[2]: path for path in files(home / _PAGES, "**/*.md")}
    found, known = list[Path](), list[Claim]()
    for own in claims:
        session = names.claimed_by(own)
        page = pages.get(page_hash("session", session))
        if page is not None and shows_since(home, key, session, page.name, _text(page)):
            found.append(page)
            known += claims_of(own)[0]
    if known:
        found += [note for note in files(home / NOTES, "**/*.md") if shows_anywhere(_text(note), known, key())]
    return [path.relative_to(home).as_posix() for path in found]


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")
