"""`palace session new|append|close|show`, `palace memory set|show`, `palace context`: the workspace for agents in a shell.

Texts come as an argument or on stdin, never both; answers are an id and a path, or JSON.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palace_pipeline.cli.options import Json
from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, out, out_json, say

if TYPE_CHECKING:
    from palace_pipeline.workspace.api import Page, Workspace

session_app = typer.Typer(no_args_is_help=True, help="Sessions as Markdown pages, for agents and scripts.")
memory_app = typer.Typer(no_args_is_help=True, help="Facts, preferences and what is known of people and things.")
workspace_app = typer.Typer()
workspace_app.add_typer(session_app, name="session", rich_help_panel="Workspace")
workspace_app.add_typer(memory_app, name="memory", rich_help_panel="Workspace")

DASHES = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
"""A text may begin with a dash, as every to-do does. Such a word is taken apart letter by letter, so there is no `-h` here."""

Id = Annotated[str, typer.Argument(help="Id of the session, as `new` printed it.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; again for more, at most five.")]
Text = Annotated[str | None, typer.Argument(help="The text; without it stdin is read.", show_default=False)]
Entity = Annotated[str | None, typer.Option(help="Of this person, place or thing.")]
_NOBODYS = "a preference is nobody's: leave --entity out"
_NAMED = 10
"""Entries left out of a part of a context that are named on a terminal."""
Summary = Annotated[str | None, typer.Option(help="At most 80 characters; else the conclusion's first sentence.")]


@session_app.command("new", context_settings=DASHES)
def new(
    title: Annotated[str, typer.Argument(help="Title; 20 characters of it stand in the file name for ever.")],
    text: Annotated[str | None, typer.Option("--input", help="First entry of the input; - reads stdin.")] = None,
    role: Annotated[str, typer.Option(help="Who writes: assistant, planner, reviewer, …")] = "assistant",
    parent: Annotated[str | None, typer.Option(help="Id of the session this one belongs to.")] = None,
    tag: Tags = None,
    model: Annotated[str | None, typer.Option(help="The model that works in it.")] = None,
    summary: Summary = None,
    json: Json = False,
) -> None:
    """Begin a session; prints its id and path.

    palace session new "Fix the oven" --tag repair --input "It stays cold."
    """
    said = sys.stdin.read() if text == "-" else text or ""
    page = _workspace().new(
        title, input=said, role=role, parent=parent, tags=tag or (), model=model, summary=summary or ""
    )
    _told(page, json)


@session_app.command("append", context_settings=DASHES)
def append(
    session: Id,
    section: Annotated[str, typer.Argument(help="input, judgement, tools, conclusion or todo; or a heading's name.")],
    text: Text = None,
    who: Annotated[str | None, typer.Option(help="Who says it, or the tool's name.")] = None,
    at: Annotated[str | None, typer.Option(help="When, with its offset (default: now).")] = None,
    tag: Tags = None,
    model: Annotated[str | None, typer.Option(help="The model that works in it.")] = None,
    summary: Summary = None,
    tokens_in: Annotated[int, typer.Option(min=0, help="Tokens to add to those read.")] = 0,
    tokens_out: Annotated[int, typer.Option(min=0, help="Tokens to add to those written.")] = 0,
    json: Json = False,
) -> None:
    """Add an entry to a section of a session; a closed one is open again.

    palace session append 20261130-0915-1a2b3c4 todo "- [ ] buy a thermostat"
    """
    said = _said(text)
    if not said.strip() and not (tag or model or summary or tokens_in or tokens_out):
        raise UsageError("an empty text adds nothing; nothing was changed")
    page = _workspace().append(
        session,
        section,
        said,
        who=who,
        at=_instant(at),
        tags=tag or (),
        model=model,
        summary=summary,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
    )
    _told(page, json)


@session_app.command("close", context_settings=DASHES)
def close(
    session: Id,
    text: Annotated[
        str | None, typer.Argument(help="The conclusion; - reads stdin; without it none is added.", show_default=False)
    ] = None,
    summary: Summary = None,
    json: Json = False,
) -> None:
    """Close a session, with its conclusion."""
    _told(_workspace().close(session, sys.stdin.read() if text == "-" else text or "", summary=summary), json)


@session_app.command("show")
def show(
    session: Annotated[str | None, typer.Argument(help="Id (default: list the last ones).", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to list.")] = 20,
    json: Json = False,
) -> None:
    """Show a session, or list the last ones."""
    workspace = _workspace()
    if session is not None:
        page = workspace.load(session)
        if json:
            out_json(_shown(page, workspace.home))
        else:
            from palace_pipeline.workspace.session import render

            out(render(page.session).rstrip("\n"))
        return
    pages, unread = workspace.youngest(limit)
    if json:
        out_json([_listed(page, workspace.home) for page in pages])
    for page in pages if not json else ():
        listed = _listed(page, workspace.home)
        out("\t".join(str(listed[name] or "") for name in ("id", "status", "title", "summary")).rstrip("\t"))
    for path, why in unread:
        say(f"not read: {path}: {why}")
    if unread:
        raise typer.Exit(NOT_TAKEN)


@memory_app.command("set", context_settings=DASHES)
def set_memory(
    key: Annotated[str, typer.Argument(help="What it is about.")],
    value: Text = None,
    preference: Annotated[
        bool, typer.Option("--preference", help="How something is wanted, rather than what is.")
    ] = False,
    entity: Entity = None,
    json: Json = False,
) -> None:
    """Write a fact, or overwrite it.

    palace memory set "oven" "gas, bought 2019"
    """
    from palace_pipeline.workspace import memory

    workspace, said = _workspace(), _said(value)
    if preference and entity:
        raise UsageError(_NOBODYS)
    if not said.strip():
        raise UsageError("no value, and nothing was changed; what is to go is taken out with: palace memory remove KEY")
    file = memory.PREFERENCES if preference else memory.FACTS
    try:
        if entity is not None:
            file = memory.set_entity(workspace, entity, key, said).relative_to(workspace.home)
        else:
            (memory.set_preference if preference else memory.set_fact)(workspace, key, said)
    except ValueError as error:
        raise UsageError(f"{error}; write a word before its value") from None
    if json:
        out_json({"path": file.as_posix()})
    else:
        out(str(workspace.home / file))


@memory_app.command("remove")
def remove_memory(
    key: Annotated[str, typer.Argument(help="What it is about.")],
    preference: Annotated[bool, typer.Option("--preference", help="A preference, no fact.")] = False,
    entity: Entity = None,
    json: Json = False,
) -> None:
    """Take a fact out. What else stands in its file stays; a Git history of the home keeps it.

    palace memory remove "oven"
    """
    from palace_pipeline.workspace import memory

    if preference and entity:
        raise UsageError(_NOBODYS)
    workspace = _workspace()
    file = memory.remove(workspace, key, preference=preference, entity=entity)
    if file is None:
        raise UsageError(f"there is nothing about {key!r}; see what there is with: palace memory show")
    if json:
        out_json({"path": file.as_posix()})
    else:
        out(str(workspace.home / file))


@memory_app.command("show")
def show_memory(json: Json = False) -> None:
    """All facts and preferences, and the names of what has a page."""
    from palace_pipeline.workspace import memory

    workspace = _workspace()
    facts, preferences = memory.facts(workspace), memory.preferences(workspace)
    known = {
        path.relative_to(workspace.home).as_posix(): list(called) for path, called, _ in memory.entities(workspace)
    }
    if json:
        out_json({"facts": facts, "preferences": preferences, "entities": known})
        return
    for name, found in (("fact", facts), ("preference", preferences)):
        for key, value in found.items():
            out(f"{name}\t{key}\t{value}")
    for path, called in known.items():
        out(f"entity\t{', '.join(called)}\t{path}")


@workspace_app.command("context", context_settings=DASHES, rich_help_panel="Workspace")
def context(
    text: Text = None,
    session: Annotated[str | None, typer.Option(help="The session that goes on.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="The whole budget.")] = 8000,
    shares: Annotated[
        str, typer.Option(help="Percent for facts, recent sessions, references to older ones, session and input.")
    ] = "15/25/0/60",
    exact: Annotated[
        bool, typer.Option("--exact", help="Count with the embedding model's tokenizer instead of an estimate.")
    ] = False,
    json: Json = False,
) -> None:
    """What a model needs to know for an input: facts, recent sessions, this one, the input, within a budget of tokens.

    palace context "What about the oven?" --session 20261130-0915-1a2b3c4
    """
    from palace_pipeline.workspace.context import assemble, estimated_tokens

    workspace = _workspace()
    count, counted = estimated_tokens, "estimate"
    if exact:
        from palace_pipeline.embedding.model import load_model

        model = load_model(workspace.settings.embedding)
        count, counted = model.count_tokens, model.name
    try:
        found = assemble(
            workspace, _said(text), session=session, tokens=tokens, shares=_shares(shares), count=count, counted=counted
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    if json:
        parts = [{name: value for name, value in asdict(part).items() if name != "lines"} for part in found.parts]
        out_json(
            {"text": found.text, "tokens": found.tokens, "budget": found.budget, "counted": counted, "parts": parts}
        )
        return
    out(found.text.rstrip("\n"))
    say(f"{found.tokens:,} of {found.budget:,} tokens ({counted})")
    for part in found.parts:
        for one in part.left_out[:_NAMED]:
            say(f"left out of {part.name}: {one['what']} ({one['tokens']:,} tokens)")
        if more := part.left_out[_NAMED:]:
            tokens = sum(int(one["tokens"]) for one in more)
            say(f"left out of {part.name}: {len(more):,} more ({tokens:,} tokens; --json names them all)")


def _workspace() -> Workspace:
    from palace_pipeline.workspace.api import Workspace

    return Workspace()


def _said(text: str | None) -> str:
    if text is not None and text != "-":
        return text
    if sys.stdin.isatty():
        raise UsageError("no text: give it as an argument, or on stdin")
    return sys.stdin.read()


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--at {text!r} is no time; write 2026-11-30T09:15:00+08:00") from None
    if time.tzinfo is None:
        raise UsageError(f"--at {text!r} has no offset; write 2026-11-30T09:15:00+08:00")
    return time


def _shares(text: str) -> tuple[int, int, int, int]:
    try:
        facts, recent, references, said = (int(part) for part in text.split("/"))
    except ValueError:
        raise UsageError(f"--shares {text!r}: write four numbers, as in 15/25/0/60") from None
    return facts, recent, references, said


def _told(page: Page, as_json: bool) -> None:
    """What was written. Exit code 1: somebody else changed the page, so it stands beside it."""
    from palace_pipeline.workspace import names

    if names.is_copy(page.path):
        say("Somebody else changed the page at the same moment; theirs stays, and yours is in:")
    if as_json:
        out_json({"id": page.id, "path": str(page.path), "status": page.session.status})
    else:
        out(f"{page.id}\t{page.path}")
    if names.is_copy(page.path):
        raise typer.Exit(NOT_TAKEN)
    if page.session.status == "conflict":
        say(f"Its status stays conflict until somebody has looked at it: palace conflicts {page.id} --keep mine")


def _listed(page: Page, home: Path) -> dict[str, Any]:
    from palace_pipeline.workspace.session import summary_of, todos

    session = page.session
    return {
        "id": session.id,
        "ts": session.ts.isoformat() if session.ts else None,
        "title": session.title,
        "status": session.status,
        "tags": list(session.tags),
        "summary": summary_of(session),
        "todos": todos(session)[0],
        "path": page.path.relative_to(home).as_posix(),
    }


def _shown(page: Page, home: Path) -> dict[str, Any]:
    session = page.session
    return {
        **_listed(page, home),
        "role": session.role,
        "parent": session.parent,
        "model": session.model,
        "turns": session.turns,
        "tokens_in": session.tokens_in,
        "tokens_out": session.tokens_out,
        "intro": session.intro,
        "problems": list(session.problems),
        "sections": {
            section: [
                {"text": entry.text, "at": entry.at.isoformat() if entry.at else None, "who": entry.who}
                for entry in entries
            ]
            for section, entries in session.sections.items()
        },
    }
