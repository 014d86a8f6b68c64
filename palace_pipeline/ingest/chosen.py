"""Single files to look at again: found below the same root as before, so that what they are read with is the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from palace_pipeline.exports.scan import Missing, Seen, seen_again
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger


def these(home: Home, ledger: Ledger, paths: Iterable[str]) -> Iterator[Seen | Missing]:
    """The files as they are now. The root of each: the configured folder that holds it, else that of the last time it was
    taken, else its own folder."""
    folders = [str(folder.absolute()) for folder in home.settings.folders]

    def root(path: str) -> str:
        inside = (folder for folder in folders if path.startswith(f"{folder.rstrip('/')}/"))
        if (folder := next(inside, None)) is not None:
            return folder
        known = ledger.one("SELECT root FROM files WHERE path = ?", (path,))
        return str(known["root"]) if known is not None else str(Path(path).parent)

    return seen_again([(path, root(path)) for path in paths])
