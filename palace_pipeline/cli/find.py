"""`palace search`, `stats`, `sql`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import date
from typing import Any

from palace_pipeline.cli.talk import UsageError, console, out, out_json, say, table
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home


def _home() -> Home:
    home = Home(load_settings())
    if not home.exists:
        raise UsageError(f"there is no archive at {home.path} yet; begin with: palace ingest EXPORT")
    return home


def run_search(
    query: str | None, filters: dict[str, Any], days: dict[str, date | None], *, limit: int, as_json: bool, lines: bool
) -> int:
    """Hybrid search. Exit code 0 also when nothing is found: the verdict says so."""
    from palace_pipeline.search.engine import Searcher

    home = _home()
    searcher = Searcher(home.path, home.settings)
    if lines:
        from palace_pipeline.search.engine import search_lines

        search_lines(sys.stdin, sys.stdout, searcher)
        return 0
    if query is None:
        raise UsageError('what shall be searched for? For example: palace search "database choice"')
    result = searcher.search(query, limit=limit, **filters, **days)
    if as_json:
        out_json({"query": query, "verdict": result.verdict, "hits": [asdict(hit) for hit in result.hits]})
        return 0
    if not result.hits:
        say(result.tried or "Nothing found.")
        return 0
    if result.verdict != "found":
        say("Nothing that surely matches; nearest:")
    from rich.text import Text

    shown = console()
    for hit in result.hits:
        shown.print(
            Text.assemble(
                (f"{hit.date or 'undated':10}", "cyan"), "  ", (hit.title or "untitled", "bold"), f"  {hit.score:.2f}"
            )
        )
        shown.print(Text("    " + hit.quote.replace("\n", "\n    ")))
        shown.print(Text(f"    {hit.page}", "dim"))
    return 0


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
