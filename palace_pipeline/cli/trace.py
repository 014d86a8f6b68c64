"""`palace first`, `timeline`, `day`, `thread`, `similar`: when something was talked about, and what was said around it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

from rich.text import Text

from palace_pipeline.cli.find import Filters, check_filters, marked, no_tables, open_archive
from palace_pipeline.cli.options import a_day_as_said
from palace_pipeline.cli.talk import UsageError, console, counted, out, out_json, say, shown
from palace_pipeline.model import VISIBLE_ROLES
from palace_pipeline.plots import sparkline

if TYPE_CHECKING:
    from palace_pipeline.search.first import Searched
    from palace_pipeline.search.mentions import How, Mention
    from palace_pipeline.search.reading import Spoken, Talk
    from palace_pipeline.store.home import Home

_SHOWN = 60
"""Messages of a thread that are shown; `--json` has them all."""
_UNDATED_SHOWN = 3
HOW: dict[How, str] = {
    "exact": "in these words",
    "words": "with all of these words",
    "together": "with all of these words in one exchange",
    "beside": "only beside what was said: in a title, the name of who speaks or the question answered",
    "related": "in other forms of these words",
    "meaning": "by meaning only",
}
_BEFORE: dict[How, str] = {
    "exact": "holds these words",
    "words": "holds these words",
    "together": "stands in an exchange that holds these words",
    "beside": "has these words beside it",
    "related": "holds other forms of these words",
    "meaning": "is as near in meaning",
}
_TOPIC = 80
"""Characters of a topic that are said again."""


def run_first(query: str, only: Filters, *, as_json: bool) -> int:
    """The first mention. Exit code 0 also when there is none: the verdict says so."""
    from palace_pipeline.search.engine import Searcher
    from palace_pipeline.search.first import first_mention

    home = open_archive()
    check_filters(home, only)
    found = first_mention(Searcher(home.path, home.settings), query, **only.as_only())
    if as_json:
        out_json(found.as_json())
        return 0
    if found.first is None and _is_empty(home):
        out(no_tables(home))
    elif found.first is None:
        out(f"No mention of {_brief(found.topic)} with a date. {found.tried}")
        if found.searched.missing:
            out("Not everything could be looked through, so there may be one.")
        elif not found.undated and found.searched.messages:
            say(f"The nearest there is: palace search {_brief(found.topic)}")
    else:
        show_mention(found.first)
        out(f"The first mention {HOW[found.first.how]}. {_proof(found.searched, found.first)}")
        if found.verdict == "weak":
            out("No message holds the words; this is only the earliest that is near in meaning.")
    if found.earlier:
        out("\nEarlier, less literally:")
        for one in found.earlier:
            show_mention(one)
    if found.undated:
        out(f"\nWithout a date ({counted(found.undated_in_all, 'message')}), so perhaps earlier:")
        for one in found.undated[:_UNDATED_SHOWN]:
            show_mention(one)
        if (left := found.undated_in_all - _UNDATED_SHOWN) > 0:
            say(f"{counted(left, 'message')} more without a date (--json has {len(found.undated)} of them).")
    return 0


def _is_empty(home: Home) -> bool:
    """Does the archive know of no conversation at all, so that there is nothing to be missed?"""
    from palace_pipeline.store.ledger import Ledger

    ledger = Ledger.reading(home.ledger_path)
    if ledger is None:
        return False
    with closing(ledger):
        return ledger.one("SELECT 1 FROM conversations WHERE status != 'purged' LIMIT 1") is None


def _proof(searched: Searched, first: Mention) -> str:
    """What was looked through before the first mention."""
    if first.when is None:
        return ""
    before = f"none of the {counted(searched.before, 'message')} before that day {_BEFORE[first.how]}"
    if not searched.before:
        before = "no message is of an earlier day"
    whole = _missing(searched.missing)
    undated = f" {counted(searched.undated, 'message')} without a date." if searched.undated else ""
    return (
        f"Looked through {counted(searched.messages, 'message')} of {counted(searched.conversations, 'conversation')} from "
        f"{searched.since} to {searched.until}; {before}.{undated}{whole}"
    )


def _missing(missing: Sequence[str]) -> str:
    return f" Not everything could be looked through: {'; '.join(missing)}" if missing else ""


def _brief(topic: str) -> str:
    return repr(topic if len(topic) <= _TOPIC else f"{topic[:_TOPIC]}…")


def run_timeline(query: str, only: Filters, *, limit: int, as_json: bool) -> int:
    """The conversations that speak of something, oldest first."""
    from palace_pipeline.search.engine import Searcher
    from palace_pipeline.search.timeline import timeline

    home = open_archive()
    check_filters(home, only)
    found = timeline(Searcher(home.path, home.settings), query, limit=limit, **only.as_only())
    if as_json:
        out_json(found.as_json())
        return 0
    if not found.stations and _is_empty(home):
        out(no_tables(home))
        return 0
    if not found.stations:
        out(f"No mention of {_brief(found.topic)}. {found.tried}")
        return 0
    if found.verdict == "weak":
        out("No message holds the words; these are near in meaning.")
    if len(found.months) > 1:
        months = _all_months(min(found.months), max(found.months))
        out(
            f"{months[0]} {sparkline([found.months.get(month, 0) for month in months])} {months[-1]}  mentions by month"
        )
    screen = console()
    for one in found.stations:
        reach = "" if one.first_date == one.last_date else f" to {one.last_date}"
        said = counted(one.mentions, "mention") if one.mentions else "only beside what was said, as in its title"
        screen.print(
            Text.assemble(
                (f"{one.first_date or 'undated'}{reach}", "cyan"),
                "  ",
                (shown(one.name), "bold"),
                (f"  {one.provider}, {said}", "dim"),
            )
        )
        screen.print(marked(one.mention.hit.quote, one.mention.hit.marks))
        screen.print(Text(f"    {one.page}", "dim"))
    if found.missing:
        say(_missing(found.missing).strip())
    if found.left_out:
        say(f"{counted(found.left_out, 'conversation')} with looser or fewer mentions left out (--limit).")
    if found.missing:
        say(_missing(found.missing).strip())
    return 0


def _all_months(first: str, last: str) -> list[str]:
    year, month = map(int, first.split("-"))
    out_months = [first]
    while out_months[-1] < last:
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        out_months.append(f"{year:04d}-{month:02d}")
    return out_months


def run_day(day: str, *, provider: str | None, as_json: bool) -> int:
    """One day in the display zone, across all providers."""
    from palace_pipeline.search.reading import day_view

    home = open_archive()
    check_filters(home, Filters(provider=provider))
    zone = home.settings.zone
    found = day_view(home.path, a_day_as_said(day, datetime.now(zone).date()), zone, provider=provider)
    if as_json:
        out_json(found.as_json())
        return 0
    for trouble in found.unread:
        say(f"not read: {trouble}")
    if not found.conversations:
        out(f"Nothing {'that could be read ' if found.unread else ''}was said on {found.day} ({found.zone}).")
        return 0
    total = sum(found.messages.values())
    out(
        f"{found.day} ({found.zone}): {counted(total, 'message')} in {counted(len(found.conversations), 'conversation')}"
    )
    screen = console()
    for talk in found.conversations:
        clocks = sorted(one.clock for one in talk.messages if one.clock)
        reach = f"{clocks[0]}-{clocks[-1]}" if clocks else "no time"
        count = f"{len(talk.messages)} of {talk.total}" if len(talk.messages) < talk.total else f"{talk.total}"
        screen.print(
            Text.assemble(
                (f"{reach:12}", "cyan"),
                (shown(talk.name), "bold"),
                (f"  {talk.provider}, {count} messages", "dim"),
            )
        )
        screen.print(marked(talk.opening, ()))
        screen.print(Text(f"    {talk.page or f'{talk.provider}:{talk.conversation_id}'}", "dim"))
    return 0


def run_thread(named: str, *, around: int | None, context: int, everything: bool, as_json: bool) -> int:
    """One conversation, or what stands around one of its messages."""
    from palace_pipeline.search.reading import thread
    from palace_pipeline.store.lake import LakeDamaged
    from palace_pipeline.store.named import NotOneError

    home = open_archive()
    try:
        talk = thread(home.path, named, home.settings.zone, around=around, context=context, everything=everything)
    except (NotOneError, LakeDamaged) as error:
        raise UsageError(str(error)) from None
    except IndexError as error:
        raise UsageError(f"--around {around}: {error}") from None
    if as_json:
        out_json(talk.as_json())
        return 0
    out(f"{talk.name}  ({talk.provider}:{talk.conversation_id}, {counted(talk.total, 'message')})")
    if talk.page:
        out(talk.page)
    if talk.instead_of:
        out(f"{talk.instead_of} was resumed in this one, which holds all of it.")
    show_messages(talk, everything=everything)
    return 0


def show_messages(talk: Talk, *, everything: bool) -> None:
    """The messages of a conversation under their days."""
    screen, day = console(), None
    for one in talk.messages[:_SHOWN]:
        if one.date != day:
            day = one.date
            screen.print(Text(f"\n{day or 'no date'}", "cyan"))
        number = "" if one.message_index is None else f"[{one.message_index}]"
        screen.print(Text.assemble((" ".join(filter(None, (number, one.clock, _speaker(one)))), "bold")))
        screen.print(marked(one.text, ()))
    left = len(talk.messages) - _SHOWN
    if left > 0:
        at = next((one.message_index for one in talk.messages[_SHOWN:] if one.message_index is not None), None)
        around = "" if at is None else f"--around {at}, or "
        say(f"{counted(left, 'message')} more: {around}--json for all.")
    elif not everything and not talk.messages:
        say("Nothing that people see; --all shows tools and thinking.")


def _speaker(one: Spoken) -> str:
    name = one.speaker or one.role
    if one.message_index is None and one.role in VISIBLE_ROLES:
        return f"{name} (in another branch, or hidden)"
    return f"{name} ({one.tool_name})" if one.tool_name else name


def run_similar(text: str | None, only: Filters, *, bar: float, limit: int, as_json: bool) -> int:
    """Is this text in the archive already? Exit code 0 either way."""
    from palace_pipeline.search.engine import Searcher
    from palace_pipeline.search.similar import duplicates_of

    home = open_archive()
    check_filters(home, only)
    asked = sys.stdin.read() if text is None or text == "-" else text
    found = duplicates_of(Searcher(home.path, home.settings), asked, bar=bar, limit=limit, **only.as_only())
    if as_json:
        out_json(found.as_json())
        return 0
    if not found.duplicate:
        out(f"Nothing in the archive is as like it as {bar:.2f}. {found.tried}")
    screen = console()
    for one in found.similar:
        screen.print(
            Text.assemble(
                (one.date or "undated", "cyan"),
                "  ",
                (shown(one.name), "bold"),
                f"  {one.similarity:.2f}",
            )
        )
        screen.print(marked(one.quote, ()))
        screen.print(Text(f"    {one.page}", "dim"))
    return 0


def show_mention(mention: Mention) -> None:
    """A mention with its day, quote and page."""
    hit, screen = mention.hit, console()
    said_by = hit.speaker or hit.role
    # A message without a time of its own: nothing but its conversation says when it was written.
    day = hit.date if hit.at or not hit.date else f"{hit.date} (the day its conversation began)"
    screen.print(
        Text.assemble(
            (day or "undated", "cyan"),
            "  ",
            (shown(hit.name), "bold"),
            (f"  {hit.provider}, {shown(said_by)}, {HOW[mention.how]}", "dim"),
        )
    )
    screen.print(marked(hit.quote, hit.marks))
    screen.print(Text(f"    {hit.page}", "dim"))
