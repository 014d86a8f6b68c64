"""`palace rebuild`, `backup`, `restore`: the commands one hopes not to need."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palace_pipeline.cli.archive import finish_purge, new_batch, open_home
from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, out, out_json, progress, say
from palace_pipeline.settings import default_home
from palace_pipeline.stages.names import write_receipt
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import LedgerDamaged

if TYPE_CHECKING:
    from palace_pipeline.backup import Backup

SOURCES = ("lake", "vault", "pages")


def run_rebuild(source: str, *, as_json: bool) -> int:
    """Make stores anew. Exit code 1: something could not be made again."""
    if source not in SOURCES:
        raise UsageError(f"--from is one of {', '.join(SOURCES)}")
    home = open_home(must_exist=source != "pages")
    from palace_pipeline import rebuild

    if source == "pages":
        return _from_pages(home, as_json=as_json)
    batch = new_batch()
    with home.writing(), progress():
        _finish_purge(home, batch)
        said: list[str] = []
        lost: list[tuple[str, str]] = []
        if source == "vault":
            recovered, made = rebuild.from_vault(home, batch)
            said, lost = recovered.said, recovered.lost
        else:
            made = rebuild.from_lake(home, batch)
        with home.ledger() as ledger:
            write_receipt(home, ledger, batch)
    if as_json:
        ids = [f"{provider}:{conversation_id}" for provider, conversation_id in lost]
        out_json({"from": source, "made": made, "recovered": said, "lost": ids})
    else:
        for line in said:
            out(f"note  {line}")
        for provider, conversation_id in lost[:50]:
            out(f"lost  {provider}:{conversation_id} (its page stays)")
        out(
            f"Made anew from the {source}: {made.get('drawers', 0):,} drawers, {made.get('chunks', 0):,} chunks in the "
            f"lexical index, {made.get('conversations_rows', 0):,} conversations in palace.duckdb."
        )
    return NOT_TAKEN if lost else 0


def _from_pages(home: Home, *, as_json: bool) -> int:
    from palace_pipeline import rebuild

    if not home.exists and not rebuild.any_pages(home):
        raise UsageError(f"no page in {home.conversations}: copy the folder conversations/ of an archive there first")
    batch = new_batch()
    with home.writing(), progress():
        _finish_purge(home, batch)
        taken, made = rebuild.from_pages(home, batch)
        with home.ledger() as ledger:
            write_receipt(home, ledger, batch)
    left = [skip for skip in taken.skips if not skip.expected]
    if as_json:
        skipped = [{**asdict(skip)} for skip in taken.skips]
        pages = {"taken": taken.pages, "known": taken.known, "edited": taken.edited}
        out_json({"from": "pages", "made": made, "pages": pages, "skipped": skipped})
        return NOT_TAKEN if left else 0
    for skip in left[:50]:
        out(f"not taken: {skip.where}: {skip.reason}" + (f" ({skip.count})" if skip.count > 1 else ""))
    if len(left) > 50:
        out(f"and {len(left) - 50:,} more, all in logs/errors.md")
    for reason, count in sorted(Counter(skip.reason for skip in taken.skips if skip.expected).items()):
        out(f"left out as expected: {reason} ({count:,})")
    for place in taken.edited[:20]:
        out(f"changed by hand, taken as it is: {place}")
    if len(taken.edited) > 20:
        out(f"and {len(taken.edited) - 20:,} more that were changed by hand")
    if taken.known:
        out(
            f"{taken.known:,} page(s) are of conversations that the archive knows from exports; these were left as they are."
        )
    out(
        f"Made anew from {taken.pages:,} pages: {made.get('drawers', 0):,} drawers, {made.get('chunks', 0):,} chunks in the "
        f"lexical index, {made.get('conversations_rows', 0):,} conversations in palace.duckdb."
    )
    return NOT_TAKEN if left else 0


def _finish_purge(home: Home, batch: str) -> None:
    try:
        finish_purge(home, batch)
    except LedgerDamaged:
        say("The ledger cannot be read; what was purged is known from the vault.")


def run_backup(target: Path | None, *, as_json: bool) -> int:
    """Write an archive to one file."""
    from palace_pipeline.backup import make_backup

    home = open_home(must_exist=True)
    with home.writing(), progress():
        backup = make_backup(home, target)
    size = backup.path.stat().st_size
    if as_json:
        out_json(
            {
                "file": str(backup.path),
                "bytes": size,
                "made_at": backup.made_at,
                "conversations": backup.conversations,
                "members": len(backup.members),
                "left_out": backup.left_out,
            }
        )
        return 0
    for name in backup.left_out:
        out(f"left out: {name} (no regular file, or a name that is no UTF-8)")
    out(f"{backup.path}: {backup.conversations:,} conversations, {size / 1e6:,.1f} MB, read back and compared.")
    out("It holds the raw exports as they were read, secrets in them included: keep it as you keep those.")
    return 0


def run_restore(source: Path, *, verify: bool, force: bool, as_json: bool) -> int:
    """Look at a backup, or make the home what it holds. Exit code 1: something in it is not as it should be."""
    from palace_pipeline import backup

    if verify:
        with progress():
            found, wrong = backup.verify(source)
        value: dict[str, Any] = {**_about(found), "wrong": wrong}
        if as_json:
            out_json(value)
        else:
            for line in wrong:
                out(f"wrong {line}")
            out(
                f"{found.path} of {found.made_at}: {found.conversations:,} conversations, {len(found.members):,} parts, "
                + (f"{len(wrong)} of them damaged; take an older backup." if wrong else "all as they were put in.")
            )
        return NOT_TAKEN if wrong else 0
    home = default_home().absolute()
    with progress():
        found = backup.restore(home, source, new_batch(), force=force)
    if as_json:
        out_json({**_about(found), "home": str(home)})
    else:
        out(f"{home} is what it was on {found.made_at}: {found.conversations:,} conversations. See: palace doctor")
    return 0


def _about(found: Backup) -> dict[str, Any]:
    return {
        "file": str(found.path),
        "made_at": found.made_at,
        "palace": found.palace,
        "stores": found.stores,
        "conversations": found.conversations,
        "members": len(found.members),
        "bytes": found.size,
    }
