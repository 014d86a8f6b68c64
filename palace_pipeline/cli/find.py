"""`palace search`, `stats`, `sql`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date

from rich.text import Text

from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, console, out, out_json, shown, table
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home


def _home() -> Home:
    home = Home(load_settings())
    if not home.exists:
        raise UsageError(f"there is no archive at {home.path} yet; begin with: palace ingest EXPORT")
    return home


@dataclass(frozen=True, slots=True)
class Filters:
    """What hits must be; days in the display zone, inclusive."""

    wing: str | None = None
    room: str | None = None
    provider: str | None = None
    role: str | None = None
    since: date | None = None
    until: date | None = None


def run_search(query: str | None, only: Filters, *, limit: int, as_json: bool, lines: bool) -> int:
    """Hybrid search. Exit code 0 also when nothing is found: the verdict says so."""
    from palace_pipeline.search.engine import Searcher, search_lines

    home = _home()
    searcher = Searcher(home.path, home.settings)
    if lines:
        return NOT_TAKEN if search_lines(sys.stdin, sys.stdout, searcher) else 0
    if query is None:
        raise UsageError('what shall be searched for? For example: palace search "database choice"')
    result = searcher.search(
        query,
        # People get one conversation a line: ask for more hits, so that one long talk does not fill the list.
        limit=limit if as_json else limit * 4,
        wing=only.wing,
        room=only.room,
        provider=only.provider,
        role=only.role,
        since=only.since,
        until=only.until,
    )
    if as_json:
        hits = [asdict(hit) for hit in result.hits]
        out_json({"query": query, "verdict": result.verdict, "tried": result.tried, "hits": hits})
        return 0
    if result.verdict != "found":
        # On stdout, above the hits: whoever reads them has to know that they are only the nearest.
        out(("Nothing surely matches; these are nearest. " if result.hits else "Nothing found. ") + result.tried)
    screen = console()
    for found in result.by_conversation()[:limit]:
        best = found.hits[0]
        head = (
            (f"{best.date or 'undated':10}", "cyan"),
            "  ",
            (shown(found.title or "untitled"), "bold"),
            f"  {best.score:.2f}",
        )
        screen.print(Text.assemble(*head))
        screen.print(_marked(best.quote, best.marks))
        more = f"  (+{len(found.hits) - 1} more)" if len(found.hits) > 1 else ""
        screen.print(Text(f"    {found.page}{more}", "dim"))
    return 0


def _marked(quote: str, marks: Sequence[tuple[int, int]]) -> Text:
    """A quote with its matches in bold, indented."""
    # One mark for one character, so that the places of the matches stay where they are.
    text = Text("".join(c if c in "\t\n" or c.isprintable() else "\ufffd" for c in quote))
    for start, end in marks:
        text.stylize("bold yellow", start, end)
    indented = Text()
    for line in text.split("\n"):
        indented.append("    ").append_text(line).append("\n")
    indented.rstrip()
    return indented


def run_stats(*, as_json: bool) -> int:
    """Trends as tables and plots."""
    from shutil import get_terminal_size

    from palace_pipeline.store.duckfile import NotBuiltError
    from palace_pipeline.trends import trends

    home = _home()
    try:
        value = trends(home.path)
    except NotBuiltError as error:
        raise UsageError(str(error)) from error
    if as_json:
        out_json(value.rows)
    else:
        out(value.as_text(min(get_terminal_size().columns, 100)))
    return 0


def run_sql(query: str, *, as_json: bool) -> int:
    """Read-only SQL."""
    from palace_pipeline.store.sql import QueryError, to_json_rows
    from palace_pipeline.store.sql import query as run

    home = _home()
    try:
        columns, rows = run(home.path, query)
    except QueryError as error:
        raise UsageError(str(error)) from error
    found = to_json_rows(columns, rows)
    if as_json:
        out_json(found)
    else:
        table(found)
    return 0
