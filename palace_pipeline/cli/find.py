"""`palace search`, `stats`, `sql`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from rich.text import Text

from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, console, counted, out, out_json, say, shown, table
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home

if TYPE_CHECKING:
    from palace_pipeline.search.engine import Only


def open_archive() -> Home:
    """The home, if there is one. Raises UsageError."""
    home = Home(load_settings())
    if not home.exists:
        from palace_pipeline.cli.status import nothing_yet

        raise UsageError(nothing_yet(home))
    return home


_LISTED = 30
"""Names that are listed where one was not found."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What hits must be; days in the display zone, inclusive."""

    wing: str | None = None
    room: str | None = None
    provider: str | None = None
    role: str | None = None
    since: date | None = None
    until: date | None = None
    kinds: tuple[str, ...] = ()

    def as_only(self) -> Only:
        """The same for the functions of `search`."""
        only: Only = {"wing": self.wing, "room": self.room, "provider": self.provider, "role": self.role}
        only |= {"since": self.since, "until": self.until}
        return only | {"kinds": self.kinds} if self.kinds else only


def filters_of(
    wing: str | None = None,
    room: str | None = None,
    provider: str | None = None,
    role: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    kinds: Sequence[str] = (),
) -> Filters:
    """The options of a command as filters. Raises UsageError for a kind that there is not."""
    return Filters(wing, room, provider, role, since and since.date(), until and until.date(), check_kinds(kinds))


def check_filters(home: Home, only: Filters) -> None:
    """Raises UsageError if a filter names something that the archive does not have (with what there is), or no day at all."""
    if only.since and only.until and only.since > only.until:
        raise UsageError(f"no day is both from {only.since} on and up to {only.until}: --since is after --until")
    asked = {name: value for name in ("provider", "role", "room", "wing") if (value := getattr(only, name)) is not None}
    if not asked or not home.warehouse.exists():
        return
    from palace_pipeline.store.sql import QueryError, query

    for name, value in asked.items():
        table = "drawers" if name in ("room", "wing") else "messages"
        try:
            _, rows = query(home.path, f"SELECT {name}, count(*) FROM {table} GROUP BY ALL ORDER BY 2 DESC, 1")
        except QueryError:
            return  # the search itself will say what is wrong
        there = [str(row[0]) for row in rows if row[0]]
        if there and value not in there:
            close = get_close_matches(value, there, 1)
            meant = f"; did you mean {close[0]}?" if close else "."
            more = f" and {len(there) - _LISTED} more" if len(there) > _LISTED else ""
            raise UsageError(
                f"nothing in the archive has the {name} {value!r}{meant} There are: {', '.join(there[:_LISTED])}{more}"
            )


_AT_LEAST = 20
"""Hits that are asked for at least where people look."""

KINDS = ("exchange", "people", "document", "tool", "thinking")


def check_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """The kinds of chunks that are asked for; `all` is every kind. Raises UsageError."""
    wrong = [kind for kind in kinds if kind not in (*KINDS, "all")]
    if wrong:
        raise UsageError(f"there is no kind {wrong[0]!r}; there are: {', '.join(KINDS)}, all")
    return KINDS if "all" in kinds else tuple(kinds)


def run_search(
    query: str | None, only: Filters, *, limit: int, as_json: bool, lines: bool, recent: bool = False, context: int = 0
) -> int:
    """Hybrid search. Exit code 0 also when nothing is found: the verdict says so."""
    from palace_pipeline.search.engine import Searcher, search_lines
    from palace_pipeline.search.reading import neighbours, place_of

    home = open_archive()
    check_filters(home, only)
    searcher = Searcher(home.path, home.settings)
    if lines:
        return NOT_TAKEN if search_lines(sys.stdin, sys.stdout, searcher) else 0
    if query is None:
        raise UsageError('what shall be searched for? For example: palace search "database choice"')
    result = searcher.search(
        query,
        # People get one conversation a line: ask for more hits, so that one long talk does not fill the list.
        limit=limit if as_json else max(limit * 4, _AT_LEAST),
        recent=datetime.now(home.settings.zone).date() if recent else None,
        **only.as_only(),
    )
    around = neighbours(searcher, result.hits, context) if context else {}
    if as_json:
        hits = [asdict(hit) | ({"around": around.get(place_of(hit), [])} if context else {}) for hit in result.hits]
        out_json({"query": query, "verdict": result.verdict, "tried": result.tried, "hits": hits})
        return 0
    if result.slips:
        say(f"Not in the archive, read as a word one letter away: {', '.join(result.slips)}")
    if result.verdict != "found":
        # On stdout, above the hits: whoever reads them has to know that they are only the nearest.
        out(("Nothing surely matches; these are nearest. " if result.hits else "Nothing found. ") + result.tried)
    elif result.missing:
        say(f"Not everything could be looked through: {'; '.join(result.missing)}")
    screen = console()
    for found in result.folded()[:limit]:
        best = found.hits[0]
        head = (
            (f"{best.date or 'undated':10}", "cyan"),
            "  ",
            (shown(found.name), "bold"),
            f"  {best.score:.2f}",
        )
        screen.print(Text.assemble(*head))
        before, after = _split(around.get(place_of(best), []), best.seq)
        for line in before:
            screen.print(Text(f"    {line}", "dim"))
        screen.print(marked(best.quote, best.marks))
        for line in after:
            screen.print(Text(f"    {line}", "dim"))
        more = f"  (and {counted(len(found.hits) - 1, 'more message')})" if len(found.hits) > 1 else ""
        screen.print(Text(f"    {found.page}{more}", "dim"))
        if found.alike:
            screen.print(Text(f"    nearly the same: {', '.join(other.page for other in found.alike)}", "dim"))
    return 0


def _split(around: Sequence[dict[str, Any]], seq: int) -> tuple[list[str], list[str]]:
    """Lines for the neighbours before and after a message."""
    lines = [
        (one["seq"], shown(f"{one['speaker'] or one['role']}: {' '.join(one['text'].split())[:160]}")) for one in around
    ]
    return [line for at, line in lines if at < seq], [line for at, line in lines if at > seq]


def marked(quote: str, marks: Sequence[tuple[int, int]]) -> Text:
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

    home = open_archive()
    try:
        value = trends(home.path)
    except NotBuiltError:
        raise UsageError(no_tables(home)) from None
    if as_json:
        out_json(value.rows)
    elif not any(value.rows["providers"]):
        out(no_tables(home))
    else:
        out(value.as_text(min(get_terminal_size().columns, 100)))
    return 0


def no_tables(home: Home) -> str:
    """For commands that look into an archive in which there is nothing."""
    return f"there is nothing in the archive at {home.path} yet; begin with: palace ingest EXPORT"


def run_sql(query: str, *, as_json: bool) -> int:
    """Read-only SQL."""
    from palace_pipeline.store.duckfile import NotBuiltError
    from palace_pipeline.store.sql import QueryError, to_json_rows
    from palace_pipeline.store.sql import query as run

    home = open_archive()
    try:
        columns, rows = run(home.path, query)
    except QueryError as error:
        raise UsageError(str(error)) from error
    except NotBuiltError:
        raise UsageError(no_tables(home)) from None
    found = to_json_rows(columns, rows)
    if as_json:
        out_json(found)
    else:
        table(found)
    return 0
