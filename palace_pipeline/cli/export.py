"""`palace export`: conversations as files for other people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from palace_pipeline.cli.options import Json, Provider, Room, Since, Until, Wing, a_day_as_said
from palace_pipeline.cli.talk import NOT_BUILT_YET, NOT_TAKEN, UsageError, counted, out, out_json, progress, say

if TYPE_CHECKING:
    from palace_pipeline.publish.chosen import Chosen, Only
    from palace_pipeline.publish.sealed import Kind
    from palace_pipeline.store.home import Home

exporting = typer.Typer()
_NAMED = 20
"""Skips that are named on a terminal."""


@exporting.command(rich_help_panel="Find")
def export(
    folder: Annotated[Path, typer.Argument(help="Where the files go; made if it is not there.")],
    conversations: Annotated[
        list[str] | None,
        typer.Argument(
            help="provider:id, a page, or the beginning of an id; more than one for more.", show_default=False
        ),
    ] = None,
    to: Annotated[Literal["html", "docx", "pdf", "md"], typer.Option("--to", help="The form of the files.")] = "html",
    search: Annotated[str | None, typer.Option(help="The conversations that a search finds, best first.")] = None,
    day: Annotated[
        str | None, typer.Option(metavar="DAY", help="Those with messages of this day: 2024-05-31, today, yesterday.")
    ] = None,
    room: Room = None,
    wing: Wing = None,
    provider: Provider = None,
    since: Since = None,
    until: Until = None,
    everything: Annotated[bool, typer.Option("--all", help="All conversations of the archive.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Most conversations of --search.")] = 20,
    talk_only: Annotated[
        bool, typer.Option("--talk-only", help="Without tool calls, tool output and thinking.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Also replace files there that no export wrote, or that were changed.")
    ] = False,
    json: Json = False,
) -> None:
    """Write conversations as HTML, Word, PDF or Markdown files into a folder. Only redacted text leaves the archive.

    palace export --to html ~/for-anna chatgpt:6634f2a1
    palace export --to pdf ~/for-anna --search "garden plan" --since 2024-01-01
    """
    asked = Asked(
        conversations=tuple(conversations or ()),
        search=search,
        day=day,
        room=room,
        wing=wing,
        provider=provider,
        since=since and since.date(),
        until=until and until.date(),
        everything=everything,
        limit=limit,
    )
    raise typer.Exit(run_export(folder, to, asked, folded=not talk_only, overwrite=overwrite, as_json=json))


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be exported, as it was said."""

    conversations: tuple[str, ...] = ()
    search: str | None = None
    day: str | None = None
    room: str | None = None
    wing: str | None = None
    provider: str | None = None
    since: date | None = None
    until: date | None = None
    everything: bool = False
    limit: int = 20

    @property
    def filtered(self) -> bool:
        return any((self.day, self.room, self.wing, self.provider, self.since, self.until))


def run_export(folder: Path, to: Kind, asked: Asked, *, folded: bool, overwrite: bool, as_json: bool) -> int:
    """Exit code 1 if something was left out that had been asked for, 3 if what prints PDF files is not installed."""
    from palace_pipeline.cli.find import open_archive
    from palace_pipeline.publish.browser import NoBrowser, find_browser
    from palace_pipeline.publish.run import Order, export

    home = open_archive()
    target = _target(home, folder)
    if to == "pdf":
        try:
            find_browser()
        except NoBrowser as error:
            say(f"palace: {error}")
            return NOT_BUILT_YET
    chosen, title = _choose(home, asked)
    with progress():
        done = export(home, chosen, Order(target, to, title, folded=folded, overwrite=overwrite))
    bad = any(not skip.expected for skip in done.skipped)
    if as_json:
        out_json(
            {
                "folder": str(target),
                "to": to,
                "conversations": len(chosen),
                "messages": done.messages,
                "written": done.counts["written"],
                "unchanged": done.counts["unchanged"],
                "index": done.index,
                "earlier": done.earlier,
                "files": done.files,
                "skipped": [asdict(skip) for skip in done.skipped],
            }
        )
        return NOT_TAKEN if bad else 0
    if not chosen:
        nearest = f" The nearest there is: palace search {asked.search!r}" if asked.search else ""
        out(f"No conversation is like that, so nothing was written.{nearest}")
    else:
        same = f", {done.counts['unchanged']:,} unchanged" if done.counts["unchanged"] else ""
        out(f"{counted(done.counts['written'], 'file')} written{same}: {target / (done.index or '')}")
        if done.earlier:
            out(f"The index lists {counted(done.earlier, 'file')} of earlier exports as well.")
    for skip in done.skipped[:_NAMED]:
        out(f"left out: {skip.where}: {skip.reason}")
    if len(done.skipped) > _NAMED:
        out(f"left out: {len(done.skipped) - _NAMED:,} more (--json names them all)")
    return NOT_TAKEN if bad else 0


def _target(home: Home, folder: Path) -> Path:
    """The folder as an absolute path. Raises UsageError where an export would be taken for a part of the archive."""
    target = folder.expanduser().absolute()
    if target.exists() and not target.is_dir():
        raise UsageError(f"{folder} is a file; name a folder")
    if ":" in folder.name and not target.exists() and folder.parent == Path():
        raise UsageError(f"{folder} looks like a conversation; the folder comes first: palace export FOLDER {folder}")
    real = target.resolve()
    folders = [(place, "an export folder that Palace reads") for place in home.settings.folders]
    for taken, what in ((home.path, "the archive"), *folders):
        if real.is_relative_to(taken.resolve()):
            raise UsageError(f"{folder} lies in {what} ({taken}); choose a folder outside of it")
    return target


def _choose(home: Home, asked: Asked) -> tuple[Sequence[Chosen], str]:
    """The conversations that are meant, and what the list of them is called. Raises UsageError."""
    from palace_pipeline.cli.find import Filters, check_filters
    from palace_pipeline.publish.chosen import Only, matching, named, searched
    from palace_pipeline.search.engine import Searcher
    from palace_pipeline.store.lake import LakeDamaged
    from palace_pipeline.store.named import NotOneError

    if asked.conversations:
        if asked.search or asked.filtered or asked.everything:
            raise UsageError("name conversations, or say which are meant by --search, --day, --room …, not both")
        try:
            with home.ledger() as ledger:
                return named(ledger, asked.conversations), "Conversations"
        except NotOneError as error:
            raise UsageError(str(error)) from None
    if not (asked.search or asked.filtered or asked.everything):
        raise UsageError(
            "say what to export: a conversation (palace export FOLDER chatgpt:6634f2a1), --search, --day, --room, --wing, "
            "--provider, --since, --until, or --all"
        )
    since, until = asked.since, asked.until
    if asked.day is not None:
        if since or until:
            raise UsageError("--day is one day; use --since and --until for more, not both")
        since = until = a_day_as_said(asked.day, datetime.now(home.settings.zone).date())
    check_filters(home, Filters(asked.wing, asked.room, asked.provider, None, since, until))
    only = Only(asked.provider, asked.room, asked.wing, since, until)
    try:
        if asked.search:
            chosen = searched(Searcher(home.path, home.settings), asked.search, only, asked.limit)
        else:
            chosen = matching(home.path, only, home.settings.zone)
    except LakeDamaged as error:
        raise UsageError(str(error)) from None
    return chosen, _title(asked.search, only)


def _title(search: str | None, only: Only) -> str:
    days = f"{only.since or ''} to {only.until or ''}".strip() if only.since != only.until else str(only.since or "")
    parts = [f"“{search}”" if search else "", only.room or "", only.wing or "", only.provider or "", days.strip()]
    return " · ".join(part for part in parts if part and part != "to") or "Conversations"
