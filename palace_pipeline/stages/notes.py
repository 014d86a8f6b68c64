"""All notes of days and rooms brought in line with the pages: for a rebuild, and after somebody deleted or broke some.

The stage that writes pages keeps the notes up to date line by line; this looks at all of them, month by month.
"""

from __future__ import annotations

from palace_pipeline.planner import split_by_month
from palace_pipeline.stages.common import batches, key_of
from palace_pipeline.stages.pages import places_of
from palace_pipeline.store.home import Home
from palace_pipeline.store.notes import bring_in_line, drop_dead_links, months_with_notes
from palace_pipeline.transcripts.notes import UNDATED, Listed, listed
from palace_pipeline.transcripts.rows import conversations_of


def make_notes(home: Home) -> int:
    """Returns how many files changed. Needs the write lock."""
    with home.ledger() as ledger:
        rows = ledger.rows(
            "SELECT provider, conversation_id, day, page, messages FROM conversations "
            "WHERE page IS NOT NULL AND page != '' ORDER BY day, provider, conversation_id"
        )
    count = 0
    seen: set[str] = set()
    undated: list[Listed] = []
    for month, of_month in split_by_month(rows):
        found: list[Listed] = []
        for part in batches(of_month):
            pages = {key_of(row): row["page"] for row in part}
            keys = list(pages)
            rooms, _ = places_of(home.lake.read("clean/drawers", [month], keys=keys).iter_rows(named=True))
            heads = home.lake.read("clean/conversations", [month], keys=keys)
            for head, chat in conversations_of(heads, home.lake.read("clean/messages", [month], keys=keys)):
                if head["status"] != "withheld":
                    found.append(
                        listed(chat, head["day"], rooms.get(chat.key, ()), pages[chat.key], dated=head["dated"])
                    )
        undated += (one for one in found if one.day is None)
        count += bring_in_line(home.path, month, [one for one in found if one.day is not None])
        seen.add(month)
    count += bring_in_line(home.path, UNDATED, undated)
    for month in sorted(months_with_notes(home.path) - seen - {UNDATED}):
        count += bring_in_line(home.path, month, [])
    return count + drop_dead_links(home.path)
