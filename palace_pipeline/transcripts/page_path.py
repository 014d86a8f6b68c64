"""Where a page lives: `conversations/<provider>/<YYYY>/YYYY-MM-DD-<slug>-<hash8>.md`."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from pathlib import PurePosixPath

from palace_pipeline.model import page_hash

SLUG_LENGTH = 48
_NAME = re.compile(r"(\d{4}-\d\d-\d\d)-.*-([0-9a-f]{8})\.md", re.DOTALL)


def slug(title: str | None) -> str:
    """Title in NFC and lower case; letters, marks and digits of any script stay, runs of others become one `-`.

    At most 48 characters, `untitled` if nothing stays.
    """
    # Lower case can take NFC apart (İ), so it is composed again.
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", title or "").lower())
    words = "".join(char if _stays(char) else " " for char in text).split()
    return "-".join(words)[:SLUG_LENGTH].strip("-") or "untitled"


def _stays(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] in "LM" or category == "Nd"


def page_name(day: date, title: str | None, provider: str, conversation_id: str) -> str:
    """File name of a new page; 224 bytes at most, so that every file system takes it."""
    return f"{day.isoformat()}-{slug(title)}-{page_hash(provider, conversation_id)}.md"


def page_folder(day: date, provider: str) -> PurePosixPath:
    """Folder of a page below the home."""
    return PurePosixPath("conversations", provider, f"{day.year:04}")


def parse_name(name: str) -> tuple[date, str] | None:
    """(day, hash8) of a page's file name, or None if it is not one (as for the copy of a conflict)."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return date.fromisoformat(match[1]), match[2]
    except ValueError:
        return None
