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
    known = {row["path"]: row["root"] for row in ledger.rows("SELECT path, root FROM files")}

    def root(path: str) -> str:
        inside = (folder for folder in folders if path.startswith(f"{folder.rstrip('/')}/"))
        return next(inside, known.get(path, str(Path(path).parent)))

    return seen_again((path, root(path)) for path in paths)
