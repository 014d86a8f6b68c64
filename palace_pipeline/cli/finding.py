"""The commands that find and read: `search`, `first`, `timeline`, `day`, `thread`, `similar`, `rooms`, `stats`, `sql`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palace_pipeline.cli.options import Json, Provider, Role, Room, Since, Until, Wing

finding = typer.Typer()


@finding.command(rich_help_panel="Find")
def search(
    query: Annotated[str | None, typer.Argument(help="What to look for, in any language.")] = None,
    wing: Wing = None,
    room: Room = None,
    provider: Provider = None,
    role: Role = None,
    since: Since = None,
    until: Until = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="exchange, people, document, tool, thinking or all (default: without tool and thinking)."),
    ] = None,
    recent: Annotated[bool, typer.Option("--recent", help="What was said lately first, if it is as near.")] = False,
    context: Annotated[int, typer.Option(min=0, max=50, help="Messages to show on each side of a hit.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 10,
    json: Json = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Questions on stdin, answers on stdout, a line each.")] = False,
) -> None:
    """Search by words and by meaning. Each hit: score, date, title, page, verbatim quote."""
    from palace_pipeline.cli.find import filters_of, run_search

    only = filters_of(wing, room, provider, role, since, until, kind or ())
    raise typer.Exit(run_search(query, only, limit=limit, as_json=json, lines=jsonl, recent=recent, context=context))


@finding.command(rich_help_panel="Find")
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
    from palace_pipeline.cli.find import filters_of
    from palace_pipeline.cli.trace import run_first

    only = filters_of(wing, room, provider, role, since, until)
    raise typer.Exit(run_first(query, only, as_json=json))


@finding.command(rich_help_panel="Find")
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
    from palace_pipeline.cli.find import filters_of
    from palace_pipeline.cli.trace import run_timeline

    only = filters_of(wing, room, provider, role, since, until)
    raise typer.Exit(run_timeline(query, only, limit=limit, as_json=json))


@finding.command(rich_help_panel="Find")
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


@finding.command(rich_help_panel="Find")
def thread(
    conversation: Annotated[str, typer.Argument(help="provider:id, a page, the beginning of an id, or a drawer's id.")],
    around: Annotated[
        int | None, typer.Option(min=0, help="Only around this message (`message_index` of a hit).", show_default=False)
    ] = None,
    context: Annotated[int, typer.Option(min=0, help="Messages on each side of it.")] = 5,
    everything: Annotated[
        bool, typer.Option("--all", help="Also tool calls, tool output, thinking and other branches.")
    ] = False,
    json: Json = False,
) -> None:
    """One conversation, or what was said around one of its messages.

    palace thread chatgpt:6634f2a1 --around 12
    """
    from palace_pipeline.cli.trace import run_thread

    raise typer.Exit(run_thread(conversation, around=around, context=context, everything=everything, as_json=json))


@finding.command(rich_help_panel="Find")
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
    from palace_pipeline.cli.find import filters_of
    from palace_pipeline.cli.trace import run_similar

    only = filters_of(wing, room, provider)
    raise typer.Exit(run_similar(text, only, bar=bar, limit=limit, as_json=json))


rooms_app = typer.Typer(invoke_without_command=True)
finding.add_typer(rooms_app, name="rooms", rich_help_panel="Find")


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


@finding.command(rich_help_panel="Find")
def stats(json: Json = False) -> None:
    """Trends: messages by month, provider, room and hour, as tables and plots."""
    from palace_pipeline.cli.find import run_stats

    raise typer.Exit(run_stats(as_json=json))


@finding.command(rich_help_panel="Find")
def sql(
    query: Annotated[str, typer.Argument(help="A SELECT over palace.duckdb.")],
    json: Json = False,
) -> None:
    """Read-only SQL over the archive's tables and views.

    palace sql "select provider, count(*) from conversations group by all"
    """
    from palace_pipeline.cli.find import run_sql

    raise typer.Exit(run_sql(query, as_json=json))
