"""Reading anew what is known already, for a rebuild: records that are gone are put back, nothing else changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from palace_pipeline.exports.scan import Seen
from palace_pipeline.ingest.run import Run
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.vault import Vault


def read_again(home: Home, ledger: Ledger, vault: Vault, paths: Iterable[str]) -> Iterator[str]:
    """Files out of the vault; their pieces must all be there (`Vault.lacks`). Needs the write lock. Yields each when done."""
    run = Run(home, ledger, vault, None)
    run.anew = True
    known = ledger.known_files()
    for path in paths:
        run.from_vault(path, known[path], vault)
        yield path


def read_from_disk(home: Home, ledger: Ledger, vault: Vault, found: Iterable[Seen]) -> Iterator[str]:
    """The same from the files themselves, for those whose bytes in the vault are lost."""
    run = Run(home, ledger, vault, None)
    run.anew = True
    for seen in found:
        run.from_disk(seen)
        yield seen.path
