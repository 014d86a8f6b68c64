"""`palace init`, `palace snapshot`: a home before its first ingest, and the history of what people read and edit in it."""

from __future__ import annotations

from palace_pipeline.cli.archive import open_home, open_workspace
from palace_pipeline.cli.talk import counted, out, out_json, say
from palace_pipeline.store.lock import HomeBusy, writer


def run_init(*, git: bool, as_json: bool) -> int:
    """Make the home, or what is missing of it; with `git` a repository that holds only what people read and edit."""
    from palace_pipeline.workspace import git as repository

    home = open_home()
    new = not home.exists
    with home.writing():
        written = repository.begin(home.path) if git else []
    if as_json:
        out_json({"home": str(home.path), "new": new, "git": repository.is_repository(home.path), "written": written})
        return 0
    out(f"{home.path} is {'ready' if new else 'there already; nothing of it was changed'}.")
    if git:
        out(
            f"It is a Git repository ({', '.join(written) or 'its .gitignore is as it should be'}). Next: palace snapshot"
        )
    return 0


def run_snapshot(*, as_json: bool) -> int:
    """Commit the workspace. While somebody writes to the home it is skipped: that is told, and no error."""
    from palace_pipeline.ingest.session_names import ready_pages
    from palace_pipeline.workspace import git as repository
    from palace_pipeline.workspace.shown_since import files_that_show

    home = open_workspace()
    try:
        with writer(home.path, wait_seconds=0):
            ready_pages(home)
            left = files_that_show(home.path, home.key)
            made = repository.snapshot(home.path, but=left)
    except HomeBusy as busy:
        if as_json:
            out_json({"commit": None, "skipped": "the archive is being written"})
        else:
            say(f"Skipped, the next snapshot will hold it: {busy}")
        return 0
    if left:
        say(
            f"Left out: {counted(len(left), 'file')} that still show what a session has shown to be a secret. Run: palace ingest"
        )
    if as_json:
        kinds = {"new": made.new, "changed": made.changed, "removed": made.removed}
        out_json({"commit": made.commit or None, "skipped": None, **{name: dict(of) for name, of in kinds.items()}})
    elif not made.commit:
        out("Nothing has changed since the last snapshot.")
    else:
        files = sum(made.new.values()) + sum(made.changed.values()) + sum(made.removed.values())
        out(f"{made.commit}  {made.message.splitlines()[0]} ({counted(files, 'file')})")
    return 0
