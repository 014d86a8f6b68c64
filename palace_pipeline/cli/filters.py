"""`palace parse`, `redact`, `classify`: filters that need no archive and make none."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, out, out_json
from palace_pipeline.settings import Settings, default_home, load_settings

if TYPE_CHECKING:
    from palace_pipeline.redaction.funnel import Funnel

_EXAMPLES = 8
"""Places of one kind that a report shows on a terminal."""


def _settings() -> Settings:
    """The home's settings if there is a home; the defaults otherwise. Makes nothing."""
    return load_settings(default_home())


def run_parse(path: Path, *, as_json: bool) -> int:
    """Exit code 1 if something was not taken that should have been."""
    from palace_pipeline.exports.parse import parse_path

    if not path.exists():
        raise UsageError(f"not there: {path}")
    understood = parse_path(path, _settings())
    bad = any(not skip["expected"] for skip in understood["skipped"])
    if as_json:
        out_json(understood)
        return NOT_TAKEN if bad else 0
    for conversation in understood["conversations"]:
        seen = sum(message["role"] in ("user", "assistant", "bot") for message in conversation["messages"])
        title = conversation["title"] or "untitled"
        messages = f"{seen:5} message{' ' if seen == 1 else 's'}"
        out(f"{conversation['start_date'] or 'undated':10}  {conversation['provider']:12}  {messages}  {title}")
    for skip in understood["skipped"]:
        kind = "left out" if skip["expected"] else "not taken"
        out(f"{kind}: {skip['where']}: {skip['reason']}" + (f" ({skip['count']})" if skip["count"] > 1 else ""))
    return NOT_TAKEN if bad else 0


def _funnel() -> Funnel:
    from palace_pipeline.redaction.funnel import Funnel

    key = default_home() / ".key"
    return Funnel(_settings().redaction, key.read_bytes() if key.exists() else b"no archive, no correlation")


def run_redact(*, lines: bool) -> int:
    """stdin to stdout; exit code 1 if something was withheld."""
    from palace_pipeline.redaction import protocol

    funnel = _funnel()
    source, out = protocol.open_streams()
    with source, out:
        withheld = (protocol.redact_lines if lines else protocol.redact_text)(source, out, funnel)
    return NOT_TAKEN if withheld else 0


def run_redaction_report(path: Path, *, as_json: bool) -> int:
    """What would be masked in a file, ZIP or folder; nothing is kept. Exit code 1 if something could not be looked at."""
    from palace_pipeline.exports.base import Report
    from palace_pipeline.exports.parse import conversations_in
    from palace_pipeline.redaction.report import Withheld, what_would_be_masked

    if not path.exists():
        raise UsageError(f"not there: {path}")
    reports: list[Report] = []
    found = list(what_would_be_masked(conversations_in(path, reports), _funnel()))
    unread = [skip for report in reports for skip in report.skips if not skip.expected]
    if as_json:
        out_json(
            {
                "masked": [asdict(place) for place in found if not isinstance(place, Withheld)],
                "withheld": [asdict(place) for place in found if isinstance(place, Withheld)],
                "not_read": [{"where": skip.where, "reason": skip.reason} for skip in unread],
            }
        )
        return NOT_TAKEN if unread else 0
    kinds: dict[str, list[str]] = {}
    for place in found:
        if isinstance(place, Withheld):
            kinds.setdefault(f"withheld ({place.reason})", []).append(f"{place.conversation}, {place.field}")
        else:
            shown = f"{place.conversation}, {place.field}, {place.length} characters: {place.preview}"
            kinds.setdefault(place.kind, []).append(shown)
    for kind, places in sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0])):
        out(f"{kind}: {len(places)}")
        for shown in places[:_EXAMPLES]:
            out(f"  {shown}")
        if len(places) > _EXAMPLES:
            out(f"  … and {len(places) - _EXAMPLES} more (--json lists all)")
    out(f"{len(found)} places would be masked" if found else "nothing would be masked")
    for skip in unread:
        out(f"not looked at: {skip.where}: {skip.reason}")
    return NOT_TAKEN if unread else 0


def run_classify(*, lines: bool) -> int:
    """`{id, text}` a line in, `{id, room, hall, confidence}` a line out."""
    from palace_pipeline.rooms.classifier import classify_lines

    if not lines:
        raise UsageError("classify reads JSON lines; write: palace classify --jsonl")
    classify_lines(sys.stdin.buffer, sys.stdout.buffer, _settings())
    return 0
