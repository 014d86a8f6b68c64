"""All commands of `palace` and what they have in common: the home, errors, exit codes."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from palace_pipeline import __version__
from palace_pipeline.cli.export import exporting
from palace_pipeline.cli.finding import finding
from palace_pipeline.cli.options import Json, a_day
from palace_pipeline.cli.session import workspace_app
from palace_pipeline.cli.talk import USAGE, UsageError, say

app = typer.Typer(
    name="palace",
    help="Turn AI-chat exports into an archive you own: normalised, redacted, searchable, traceable.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 all done · 1 something was not taken · 2 wrong usage · 3 not built yet",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"palace {__version__}")
        raise typer.Exit


@app.callback()
def _common(  # pyright: ignore[reportUnusedFunction]
    home: Annotated[
        Path | None, typer.Option(help="The palace home (default: PALACE_HOME, else ~/palace).", show_default=False)
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    del home, version  # `main` has taken --home out already; it stands here for --help


# --- the main job -----------------------------------------------------------------------------------------------------


@app.command(rich_help_panel="Archive")
def ingest(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files or folders (default: the folders of palace.toml).")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be taken and how it is understood; keep nothing.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Read at most so many new files.")] = None,
    json: Json = False,
) -> None:
    """Read exports, and bring pages, rooms, search and tables up to date. Prints a receipt.

    palace ingest ~/Downloads/chatgpt-export.zip ~/.claude/projects
    """
    from palace_pipeline.cli.archive import run_ingest

    raise typer.Exit(run_ingest(paths or [], dry_run=dry_run, limit=limit, as_json=json))


@app.command(rich_help_panel="Archive")
def backfill(
    first: Annotated[
        datetime | None, typer.Option("--from", parser=a_day, metavar="YYYY-MM-DD", help="First day (UTC).")
    ] = None,
    last: Annotated[
        datetime | None, typer.Option("--to", parser=a_day, metavar="YYYY-MM-DD", help="Last day (UTC).")
    ] = None,
    day: Annotated[
        list[datetime] | None,
        typer.Option("--day", parser=a_day, metavar="YYYY-MM-DD", help="A day (UTC); more than once for more."),
    ] = None,
    json: Json = False,
) -> None:
    """Make the same days again from the vault, with the same result.

    palace backfill --from 2024-05-01 --to 2024-05-31
    """
    from palace_pipeline.cli.days import run_backfill

    days = [one.date() for one in day or []]
    raise typer.Exit(run_backfill(first and first.date(), last and last.date(), days, as_json=json))


@app.command(rich_help_panel="Archive")
def gaps(
    heal: Annotated[bool, typer.Option("--heal", help="Take and make again what is missing, then look again.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Compare every day (default: the last 30).")] = False,
    json: Json = False,
) -> None:
    """Source against archive: what is in the export folders and not, or not whole, in the archive. Exit code 1: gaps.

    palace gaps --heal
    """
    from palace_pipeline.cli.days import run_gaps

    raise typer.Exit(run_gaps(heal=heal, everything=everything, as_json=json))


@app.command(rich_help_panel="Archive")
def discover(
    json: Json = False,
    write: Annotated[bool, typer.Option("--write", help="Make what is found sources of palace.toml.")] = False,
) -> None:
    """Find agents' logs and exports by their known places and names. Opens none of them.

    palace discover --write
    """
    from palace_pipeline.cli.sources import run_discover

    raise typer.Exit(run_discover(as_json=json, write=write))


@app.command(rich_help_panel="Archive")
def formats(json: Json = False) -> None:
    """Which formats can be read, where to get them, what was seen of each, and which seem to have changed."""
    from palace_pipeline.cli.sources import run_formats

    raise typer.Exit(run_formats(as_json=json))


@app.command(rich_help_panel="Archive")
def status(json: Json = False) -> None:
    """What is there: files, conversations, days, what waits, what was not taken."""
    from palace_pipeline.cli.status import run_status

    raise typer.Exit(run_status(as_json=json))


@app.command(rich_help_panel="Archive")
def doctor(
    days: Annotated[
        str | None,
        typer.Option(help="Check the contents of these days only: 30 (the last), 2024-05-03, 2024-05-01..2024-05-31."),
    ] = None,
    json: Json = False,
) -> None:
    """Check everything; says for each finding which command mends it.

    palace doctor --days 30
    """
    from palace_pipeline.cli.archive import run_doctor

    raise typer.Exit(run_doctor(days, as_json=json))


@app.command(rich_help_panel="Archive")
def purge(
    conversation: Annotated[
        str | None, typer.Argument(help="provider:id, a page, or the beginning of an id.", show_default=False)
    ] = None,
    value_from_stdin: Annotated[
        bool, typer.Option("--value-from-stdin", help="Forget a value instead; it is read from stdin.")
    ] = False,
    vault: Annotated[bool, typer.Option("--vault", help="Also remove the raw bytes from the vault.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Forget a conversation or a value everywhere, with proof; it is not taken in again. Cannot be undone.

    palace purge chatgpt:6634f2a1 --vault
    """
    from palace_pipeline.cli.purge import run_purge

    raise typer.Exit(run_purge(conversation, from_stdin=value_from_stdin, vault=vault, yes=yes, as_json=json))


@app.command(rich_help_panel="Archive")
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 3000,
) -> None:
    """Dagster's web UI and daemon on this home, bound to 127.0.0.1. Watches the export folders; stops with Ctrl-C."""
    from palace_pipeline.cli.ui import run_ui

    raise typer.Exit(run_ui(port))


@app.command(rich_help_panel="Archive")
def rebuild(
    source: Annotated[
        str,
        typer.Option("--from", help="lake: indexes and tables; vault: everything; pages: from Markdown alone."),
    ] = "lake",
    json: Json = False,
) -> None:
    """Make derived stores from scratch, beside the old ones. After a kill run it again: it goes on.

    palace rebuild --from vault
    """
    from palace_pipeline.cli.maintenance import run_rebuild

    raise typer.Exit(run_rebuild(source, as_json=json))


@app.command(rich_help_panel="Archive")
def init(
    git: Annotated[bool, typer.Option("--git", help="Keep a history of pages and sessions with Git.")] = False,
    json: Json = False,
) -> None:
    """Make an archive's folder before its first ingest; may be called again."""
    from palace_pipeline.cli.snapshot import run_init

    raise typer.Exit(run_init(git=git, as_json=json))


@app.command(rich_help_panel="Archive")
def snapshot(json: Json = False) -> None:
    """Commit what has changed on pages, sessions and notes. Never pushes; skipped while the archive is written to."""
    from palace_pipeline.cli.snapshot import run_snapshot

    raise typer.Exit(run_snapshot(as_json=json))


@app.command(rich_help_panel="Archive")
def conflicts(
    page: Annotated[
        str | None, typer.Argument(help="Path, part of a name, or conversation id.", show_default=False)
    ] = None,
    keep: Annotated[str | None, typer.Option(help="mine: your page stays; archive: it is written anew.")] = None,
    json: Json = False,
) -> None:
    """Pages that you edited and of which the archive has something new: both sides, and your choice.

    palace conflicts 2024-05-03-plans --keep mine
    """
    from palace_pipeline.cli.conflicts import run_conflicts

    raise typer.Exit(run_conflicts(page, keep, as_json=json))


@app.command(rich_help_panel="Archive")
def backup(
    target: Annotated[
        Path | None, typer.Argument(help="File, or folder (default: the current one).", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Write the archive to one file: what cannot be made again, and the lake. It holds the raw exports."""
    from palace_pipeline.cli.maintenance import run_backup

    raise typer.Exit(run_backup(target, as_json=json))


@app.command(rich_help_panel="Archive")
def restore(
    source: Annotated[Path, typer.Argument(help="A backup, or a folder with backups (the newest).")],
    verify: Annotated[bool, typer.Option("--verify", help="Only look whether all of it is as it was.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Move an archive that is there out of the way.")] = False,
    json: Json = False,
) -> None:
    """Make the home what a backup holds; all of it is compared with its manifest before anything is put in place."""
    from palace_pipeline.cli.maintenance import run_restore

    raise typer.Exit(run_restore(source, verify=verify, force=force, as_json=json))


app.add_typer(finding)
app.add_typer(exporting)
app.add_typer(workspace_app)


# --- filters that need no home ----------------------------------------------------------------------------------------

filters = typer.Typer()


@filters.command(rich_help_panel="Without an archive")
def parse(path: Annotated[Path, typer.Argument(help="An export: file, ZIP or folder.")], json: Json = False) -> None:
    """Show how an export is understood. Changes nothing, needs no archive."""
    from palace_pipeline.cli.filters import run_parse

    raise typer.Exit(run_parse(path, as_json=json))


@filters.command(rich_help_panel="Without an archive")
def redact(
    jsonl: Annotated[bool, typer.Option("--jsonl", help="JSON objects, a line each.")] = False,
    report: Annotated[
        Path | None, typer.Option(help="Only show what would be masked in a file, ZIP or folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Mask secrets and personal data: stdin to stdout; or show what would be masked."""
    from palace_pipeline.cli.filters import run_redact, run_redaction_report

    raise typer.Exit(run_redact(lines=jsonl) if report is None else run_redaction_report(report, as_json=json))


@filters.command(rich_help_panel="Without an archive")
def classify(
    jsonl: Annotated[bool, typer.Option("--jsonl", help="JSON objects with id and text, a line each.")] = False,
) -> None:
    """File texts in rooms and halls: stdin to stdout."""
    from palace_pipeline.cli.filters import run_classify

    raise typer.Exit(run_classify(lines=jsonl))


app.add_typer(filters)  # after `finding`: help lists them in this order


# --- start ------------------------------------------------------------------------------------------------------------


def take_home(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """`--home DIR` may stand before or after the command: (the other arguments, the last home given)."""
    rest: list[str] = []
    home: str | None = None
    pending = list(arguments)
    while pending:
        item = pending.pop(0)
        if item == "--":
            return [*rest, item, *pending], home
        if item == "--home":
            if not pending:
                raise UsageError("--home needs a folder")
            home = pending.pop(0)
        elif item.startswith("--home="):
            home = item.removeprefix("--home=")
        else:
            rest.append(item)
    return rest, home


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `palace`. An error that is made for people ends as one line; others too, with `--debug` in full."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    given = [item for item in given if item != "--debug"]
    os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
    os.umask(0o077)  # what Dagster, Chroma and others write below the home is the owner's alone
    try:
        rest, home = take_home(given)
        if home is not None:
            os.environ["PALACE_HOME"] = str(Path(home).expanduser().absolute())
        app(args=rest, prog_name="palace")
    except (SystemExit, KeyboardInterrupt):
        raise
    except BrokenPipeError:
        # The reader of a pipe has enough; Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if debug:
            raise
        code, text = explain(error)
        say(f"palace: {text}")
        sys.exit(code)


def explain(error: Exception) -> tuple[int, str]:
    """(exit code, one line) for an error. Errors of our own say it themselves; others may quote data, so only their
    type is told."""
    from palace_pipeline.settings import SettingsError, default_home

    if isinstance(error, UsageError | SettingsError):
        return USAGE, str(error)
    from palace_pipeline.cli.archive import TELLING
    from palace_pipeline.store.files import DISK_FULL, Told, disk_is_full
    from palace_pipeline.store.quiet import DAMAGED, is_damage

    if isinstance(error, TELLING):
        return USAGE if isinstance(error, Told) and error.usage else 1, str(error)
    if isinstance(error, sqlite3.Error) and is_damage(error):
        return 1, DAMAGED
    if disk_is_full(error, default_home()):
        return 1, DISK_FULL
    if isinstance(error, OSError) and error.filename is not None:
        return 1, f"{error.filename}: {error.strerror}. What was finished before is kept; run the command again."
    return 1, (
        f"unexpected {type(error).__name__}. What was finished before is kept. Run it again with --debug to see where "
        "(the text may quote your data: look before you share it)."
    )
