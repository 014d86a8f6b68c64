"""Adding sources to `palace.toml`. The file is its owner's: what stands in it stays byte for byte, lines go to its end."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from palace_pipeline.settings import DEFAULT_TOML, Settings, SettingsError
from palace_pipeline.store.files import write_bytes

Wanted = tuple[Path, str]
"""A folder or file of exports, and a word on what it is."""


def source_lines(wanted: Iterable[Wanted]) -> str:
    """The TOML of some sources."""
    return "".join(f"\n# {about}\n[[sources]]\npath = {_quoted(str(path))}\n" for path, about in wanted)


def with_sources(text: str, wanted: Iterable[Wanted], home: Path) -> str:
    """A `palace.toml` with sources added at its end; the same text if there is nothing to add.

    The first source of a file also names the inbox, which is read by default only as long as no source is named.
    Raises SettingsError if the result would not be valid (the sources are written as one inline list); nothing has
    been written then.
    """
    wanted = list(wanted)
    if not wanted:
        return text
    if "sources" not in tomllib.loads(text):
        wanted.insert(0, (Path("inbox"), "The drop folder of the palace home"))
    lines = source_lines(wanted)
    added = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{lines}"
    try:
        Settings(home=home, **tomllib.loads(added))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise SettingsError(
            f"sources cannot be added to {home / 'palace.toml'} as it is written; put these in by hand:\n{lines}"
        ) from error
    return added


def add_sources(home: Path, wanted: Iterable[Wanted]) -> bool:
    """Write sources into a home's `palace.toml`, in one step; True if something was added. Makes file and home."""
    file = home / "palace.toml"
    # A link (settings kept elsewhere) stays one: what it leads to is replaced.
    file = file.resolve() if file.is_symlink() else file
    text = file.read_bytes().decode("utf-8") if file.exists() else DEFAULT_TOML
    added = with_sources(text, wanted, home)
    if added == text:
        return False
    write_bytes(file, added.encode("utf-8"))
    return True


def _quoted(value: str) -> str:
    """A TOML string; JSON's quoting is valid TOML but for the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
