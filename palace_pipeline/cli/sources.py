"""`palace formats` and `palace discover`: what can be read, what was seen of it, and where more lies."""

from __future__ import annotations

import sqlite3
from typing import Any

from palace_pipeline.cli.talk import out, out_json, say, shown, table
from palace_pipeline.exports.discover import Found, discover, looked_at, this_machine
from palace_pipeline.ingest.by_format import Seen, by_format, folders_in_words, unread
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.settings_file import add_sources, source_lines


def _ledger_of(home: Home) -> Ledger | None:
    return Ledger.reading(home.path / "ledger.sqlite")


# --- formats ----------------------------------------------------------------------------------------------------------


def run_formats(*, as_json: bool) -> int:
    """Every format, what this archive has seen of it, and signs that it has changed. Needs no archive."""
    ledger = _ledger_of(Home(load_settings()))
    try:
        seen = by_format(ledger)
        strangers = unread(ledger) if ledger is not None else {}
    finally:
        if ledger is not None:
            ledger.close()
    if as_json:
        out_json({"formats": [_format_json(of) for of in seen], "unread": strangers})
        return 0
    table([_format_row(of) for of in seen], title="Formats")
    for of in seen:
        if of.files:
            out(f"{of.format}: {folders_in_words(of.folders)}")
    for reason, places in strangers.items():
        out(f"{reason}: {len(places)} file(s) that no reader knows, for example {places[0]}")
    drifts = [of.drift for of in seen if of.drift is not None]
    for drift in drifts:
        out(f"drift: {drift.in_words()}")
    if drifts:
        out(
            "To have a format mended, paste its line into a bug report; it holds names and counts, nothing of your chats:"
        )
        for drift in drifts:
            out(f"  {drift.report()}")
    return 0


def _format_row(of: Seen) -> dict[str, Any]:
    return {
        "format": of.format,
        "provider": of.provider,
        "name": of.name,
        "files": of.files,
        "conversations": of.conversations,
        "messages": of.messages,
        "last read": (of.last_read or "")[:10],
        "drift": "yes" if of.drift is not None else "",
        "since": of.since,
        "looked at": of.checked,
        "sure": of.confidence,
        "where to get it": of.where.replace("`", ""),
    }


def _format_json(of: Seen) -> dict[str, Any]:
    return {
        "format": of.format,
        "provider": of.provider,
        "name": of.name,
        "where": of.where,
        "since": of.since,
        "checked": of.checked,
        "confidence": of.confidence,
        "source": of.source,
        "files": of.files,
        "conversations": of.conversations,
        "messages": of.messages,
        "folders": dict(of.folders.most_common()),
        "last_read": of.last_read,
        "last_day": of.last_day,
        "drift": {**of.drift.as_counts(), "report": of.drift.report()} if of.drift is not None else None,
    }


# --- discover ---------------------------------------------------------------------------------------------------------


def run_discover(*, as_json: bool, write: bool) -> int:
    """Logs and exports in their known places; with `write` they become sources of `palace.toml`."""
    home = Home(load_settings())
    machine = this_machine()
    found = discover(machine, home.settings.folders)
    taken = _taken(home)
    wanted = [
        (place.path, f"{place.product}, added by palace discover")
        for place in found
        if not place.configured and str(place.path) not in taken and _is_text(str(place.path))
    ]
    added = add_sources(home.path, wanted) if write else False
    file = home.path / "palace.toml"
    if as_json:
        out_json(
            {
                "places": [_place_json(place, str(place.path) in taken) for place in found],
                "settings": str(file),
                "added" if write else "would_add": [str(path) for path, _ in wanted],
                "looked_at": looked_at(machine),
            }
        )
        return 0
    if not found:
        out("No agent's logs and no exports were found; palace discover --json says where was looked.")
        return 0
    table([_place_row(place, str(place.path) in taken) for place in found], title="Found")
    if not wanted:
        out(f"Nothing to add: all of it is in {file} or in the archive already.")
    elif added:
        out(f"Added {len(wanted)} source(s) to {file}; now: palace ingest --dry-run")
    else:
        out(f"palace discover --write would add to {file}:")
        out(source_lines(wanted).rstrip())
    return 0


def _taken(home: Home) -> set[str]:
    """Files that the archive has taken already: an export is read once, whether or not it is a source."""
    try:
        if (ledger := _ledger_of(home)) is None:
            return set()
        rows = ledger.rows("SELECT path FROM files WHERE status IN ('done', 'partial')")
        ledger.close()
    except sqlite3.DatabaseError:
        say("The ledger cannot be read, so it is not known what was taken before; see: palace doctor")
        return set()
    return {row["path"] for row in rows}


def _is_text(path: str) -> bool:
    """True for a path that can be written down; bytes that are no UTF-8 have no place in TOML."""
    return not any("\ud800" <= character <= "\udfff" for character in path)


def _place_row(place: Found, taken: bool) -> dict[str, Any]:
    state = "configured" if place.configured else "in the archive" if taken else "new"
    return {
        "what": place.product,
        "kind": place.kind,
        "files": f"{place.files:,}{'+' if place.more else ''}",
        "size": size_in_words(place.size),
        "oldest": str(place.oldest or ""),
        "newest": str(place.newest or ""),
        "state": state,
        "path": shown(str(place.path)),
    }


def _place_json(place: Found, taken: bool) -> dict[str, Any]:
    return {
        "kind": place.kind,
        "product": place.product,
        "provider": place.provider or None,
        "path": str(place.path),
        "files": place.files,
        "more": place.more,
        "bytes": place.size,
        "oldest": place.oldest.isoformat() if place.oldest else None,
        "newest": place.newest.isoformat() if place.newest else None,
        "configured": place.configured,
        "taken": taken,
    }


def size_in_words(size: int) -> str:
    """Bytes as people read them: `12 B`, `3.4 MB`."""
    amount = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
