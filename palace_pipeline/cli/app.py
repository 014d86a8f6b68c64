"""All commands of `palace` and what they have in common: the home, errors, exit codes."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from palace_pipeline import __version__
from palace_pipeline.cli.talk import USAGE, UsageError, say

app = typer.Typer(
    name="palace",
    help="Turn AI-chat exports into an archive you own: normalised, redacted, searchable, traceable.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 all done · 1 something was not taken · 2 wrong usage · 3 not built yet",
)

Json = Annotated[bool, typer.Option("--json", help="One JSON value on stdout.")]


def a_day(text: str) -> datetime:
    """A day as it is written on the command line."""
    how = "write year-month-day, for example 2024-05-31"
    if re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", text) is None:
        raise typer.BadParameter(f"{text!r} is no day; {how}")
    year, month, day = map(int, text.split("-"))
    try:
        return datetime(year, month, day)
    except ValueError:
        raise typer.BadParameter(f"there is no day {text!r} in the calendar; {how}") from None


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
    source: Annotated[str, typer.Option("--from", help="lake: indexes and tables; vault: everything.")] = "lake",
    json: Json = False,
) -> None:
    """Make derived stores from scratch, beside the old ones. After a kill run it again: it goes on.

    palace rebuild --from vault
    """
    from palace_pipeline.cli.maintenance import run_rebuild

    raise typer.Exit(run_rebuild(source, as_json=json))


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


# --- finding ----------------------------------------------------------------------------------------------------------


Wing = Annotated[str | None, typer.Option(help="Only this wing (project, channel).")]
Room = Annotated[str | None, typer.Option(help="Only this room.")]
Provider = Annotated[str | None, typer.Option(help="Only this provider.")]
Role = Annotated[
    str | None, typer.Option(help="Only what this role said: user (your own words), assistant (answers), bot.")
]
Since = Annotated[datetime | None, typer.Option(parser=a_day, metavar="YYYY-MM-DD", help="From this day on.")]
Until = Annotated[datetime | None, typer.Option(parser=a_day, metavar="YYYY-MM-DD", help="Up to this day.")]


@app.command(rich_help_panel="Find")
def search(
    query: Annotated[str | None, typer.Argument(help="What to look for, in any language.")] = None,
    wing: Wing = None,
    room: Room = None,
    provider: Provider = None,
    role: Role = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 10,
    json: Json = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Questions on stdin, answers on stdout, a line each.")] = False,
) -> None:
    """Search by words and by meaning. Each hit: score, date, title, page, verbatim quote."""
    from palace_pipeline.cli.find import Filters, run_search

    only = Filters(wing, room, provider, role, since and since.date(), until and until.date())
    raise typer.Exit(run_search(query, only, limit=limit, as_json=json, lines=jsonl))


@app.command(rich_help_panel="Find")
def first(
    query: Annotated[str, typer.Argument(help="A topic, or the whole question, in any language.")],
    wing: Wing = None,
    room: Room = None,
    provider: Provider = None,
    role: Role = None,
    since: Since = None,
    until: Until = None,
    json: Json = False,
) -> None:
    """When was something first discussed? Date, verbatim quote, page, and what was looked through to know it.

    palace first "When did I first discuss PostgreSQL?"
    """
    from palace_pipeline.cli.find import Filters
    from palace_pipeline.cli.trace import run_first

    only = Filters(wing, room, provider, role, since and since.date(), until and until.date())
    raise typer.Exit(run_first(query, only, as_json=json))


@app.command(rich_help_panel="Find")
def timeline(
    query: Annotated[str, typer.Argument(help="A topic, in any language.")],
    wing: Wing = None,
    room: Room = None,
    provider: Provider = None,
    role: Role = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, help="Most conversations; those with most mentions stay.")] = 100,
    json: Json = False,
) -> None:
    """How a topic developed: the conversations that speak of it, oldest first.

    palace timeline PostgreSQL
    """
    from palace_pipeline.cli.find import Filters
    from palace_pipeline.cli.trace import run_timeline

    only = Filters(wing, room, provider, role, since and since.date(), until and until.date())
    raise typer.Exit(run_timeline(query, only, limit=limit, as_json=json))


@app.command(rich_help_panel="Find")
def day(
    date: Annotated[str, typer.Argument(help="A day in your time zone: 2024-05-31, today, yesterday.")],
    provider: Provider = None,
    json: Json = False,
) -> None:
    """One day across all providers: every conversation that has messages of it.

    palace day 2024-05-31
    """
    from palace_pipeline.cli.trace import run_day

    raise typer.Exit(run_day(date, provider=provider, as_json=json))


@app.command(rich_help_panel="Find")
def thread(
    conversation: Annotated[str, typer.Argument(help="provider:id, a page, the beginning of an id, or a drawer's id.")],
    around: Annotated[
        int | None, typer.Option(min=0, help="Only around this message (`message_index` of a hit).", show_default=False)
    ] = None,
    context: Annotated[int, typer.Option(min=0, help="Messages on each side of it.")] = 5,
    everything: Annotated[bool, typer.Option("--all", help="Also tool calls, tool output and thinking.")] = False,
    json: Json = False,
) -> None:
    """One conversation, or what was said around one of its messages.

    palace thread chatgpt:6634f2a1 --around 12
    """
    from palace_pipeline.cli.trace import run_thread

    raise typer.Exit(run_thread(conversation, around=around, context=context, everything=everything, as_json=json))


@app.command(rich_help_panel="Find")
def similar(
    text: Annotated[str | None, typer.Argument(help="A text; from stdin if it is left out.")] = None,
    bar: Annotated[float, typer.Option(min=-1.0, max=1.0, help="How like it, at least.")] = 0.9,
    wing: Wing = None,
    room: Room = None,
    provider: Provider = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 10,
    json: Json = False,
) -> None:
    """Is this text in the archive already? What is nearly the same (0.9 and more), most alike first."""
    from palace_pipeline.cli.find import Filters
    from palace_pipeline.cli.trace import run_similar

    only = Filters(wing, room, provider)
    raise typer.Exit(run_similar(text, only, bar=bar, limit=limit, as_json=json))


rooms_app = typer.Typer(invoke_without_command=True)
app.add_typer(rooms_app, name="rooms", rich_help_panel="Find")


@rooms_app.callback()
def rooms(context: typer.Context, json: Json = False) -> None:
    """The rooms, halls and wings of the archive: how much is in each, and how that changed."""
    if context.invoked_subcommand is not None:
        return
    from palace_pipeline.cli.rooms import run_rooms

    raise typer.Exit(run_rooms(as_json=json))


@rooms_app.command("try")
def rooms_try(
    file: Annotated[Path, typer.Argument(help="A TOML file with [[rooms]] (and [[wings]]) as in palace.toml.")],
    json: Json = False,
) -> None:
    """Show what another set of rooms would do: which drawers would move, and where to. Changes nothing."""
    from palace_pipeline.cli.rooms import run_try

    raise typer.Exit(run_try(file, as_json=json))


@app.command(rich_help_panel="Find")
def stats(json: Json = False) -> None:
    """Trends: messages by month, provider, room and hour, as tables and plots."""
    from palace_pipeline.cli.find import run_stats

    raise typer.Exit(run_stats(as_json=json))


@app.command(rich_help_panel="Find")
def sql(
    query: Annotated[str, typer.Argument(help="A SELECT over palace.duckdb.")],
    json: Json = False,
) -> None:
    """Read-only SQL over the archive's tables and views.

    palace sql "select provider, count(*) from conversations group by all"
    """
    from palace_pipeline.cli.find import run_sql

    raise typer.Exit(run_sql(query, as_json=json))


# --- filters that need no home ----------------------------------------------------------------------------------------


@app.command(rich_help_panel="Without an archive")
def parse(path: Annotated[Path, typer.Argument(help="An export: file, ZIP or folder.")], json: Json = False) -> None:
    """Show how an export is understood. Changes nothing, needs no archive."""
    from palace_pipeline.cli.filters import run_parse

    raise typer.Exit(run_parse(path, as_json=json))


@app.command(rich_help_panel="Without an archive")
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


@app.command(rich_help_panel="Without an archive")
def classify(
    jsonl: Annotated[bool, typer.Option("--jsonl", help="JSON objects with id and text, a line each.")] = False,
) -> None:
    """File texts in rooms and halls: stdin to stdout."""
    from palace_pipeline.cli.filters import run_classify

    raise typer.Exit(run_classify(lines=jsonl))


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
    from palace_pipeline.store.files import DISK_FULL, disk_is_full
    from palace_pipeline.store.quiet import DAMAGED, is_damage

    if isinstance(error, TELLING):
        return 1, str(error)
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
