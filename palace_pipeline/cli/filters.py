"""`palace parse`, `redact`, `classify`: filters that need no archive and make none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, counted, out, out_json, progress
from palace_pipeline.settings import Settings, default_home, load_settings
from palace_pipeline.transcripts.page_labels import called

if TYPE_CHECKING:
    from palace_pipeline.exports.parse import Looked
    from palace_pipeline.redaction.funnel import Funnel
    from palace_pipeline.redaction.report import OfKind

_NAMED = 20
"""Places that were withheld or not read and are named on a terminal."""


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
        asked = (one["text"] for one in conversation["messages"] if one["role"] == "user" and one["text"].strip())
        title = called(conversation["title"], next(asked, ""))
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
    from palace_pipeline.exports.parse import Looked, distinct_conversations
    from palace_pipeline.redaction.report import Masked, Withheld, by_kind, shown_name, what_would_be_masked

    if not path.exists():
        raise UsageError(f"not there: {path}")
    reports: list[Report] = []
    looked, funnel = Looked(), _funnel()
    with progress():
        found = list(what_would_be_masked(distinct_conversations(path, reports, looked), funnel, called))
    masked = [place for place in found if isinstance(place, Masked)]
    withheld = [place for place in found if isinstance(place, Withheld)]
    kinds = by_kind(masked)
    unread = [skip for report in reports for skip in report.skips if not skip.expected]
    not_read = [{"where": shown_name(funnel, skip.where), "reason": skip.reason} for skip in unread]
    if as_json:
        out_json(
            {
                "files": len(looked.files),
                "conversations": looked.conversations,
                "copies": looked.copies,
                "continued": looked.continued,
                "kinds": [
                    {
                        "kind": of.kind,
                        "places": of.places,
                        "conversations": len(of.conversations),
                        "values": len(of.values),
                    }
                    for of in kinds
                ],
                "masked": [asdict(place) for place in masked],
                "withheld": [asdict(place) for place in withheld],
                "not_read": not_read,
            }
        )
        return NOT_TAKEN if unread else 0
    out(_looked_at(looked))
    for of in kinds:
        where = counted(len(of.conversations), "conversation") if of.conversations else "names of files"
        out(f"{of.kind}: {counted(of.places, 'place')} in {where}{_values(of)}")
        for place in of.examples:
            out(f"  {place.conversation}, {place.field}" + ("" if not place.number else f" ({_in_files(place.files)})"))
            out(f"    {place.preview}")
        if of.places > len(of.examples):
            out(f"  … and {of.places - len(of.examples):,} more (--json lists all)")
    for place in withheld[:_NAMED]:
        what = "the whole conversation would be withheld, a second look still finds" if place.whole else "withheld:"
        out(f"{place.conversation}, {place.field} ({_in_files(place.files)}): {what} {place.reason}")
    if len(withheld) > _NAMED:
        out(f"… and {len(withheld) - _NAMED:,} more places withheld (--json lists all)")
    for skip in not_read[:_NAMED]:
        out(f"not looked at: {skip['where']}: {skip['reason']}")
    if len(not_read) > _NAMED:
        out(f"… and {len(not_read) - _NAMED:,} more not looked at (--json lists all)")
    hit = len({place.number for place in masked} - {0})
    if masked:
        out(
            f"{counted(len(masked), 'place')} would be masked, in {hit:,} of {counted(looked.conversations, 'conversation')}. "
            "Nothing was kept or changed."
        )
        out(
            "What is no secret: its exact text in allow, or its kind in allow_rules. What is missing: known_values, "
            "private_patterns, people ([redaction] in palace.toml)."
        )
    else:
        out("nothing would be masked")
    return NOT_TAKEN if unread else 0


def _looked_at(looked: Looked) -> str:
    said = f"{counted(looked.conversations, 'conversation')} in {counted(len(looked.files), 'file')}"
    if looked.copies:
        said += f"; one that is in several files counts once ({counted(looked.copies, 'copy', 'copies')} left out)"
    if looked.continued:
        said += f"; {looked.continued:,} repeated in full by another, left out"
    return said


def _values(of: OfKind) -> str:
    return "" if len(of.values) == of.places else f", {counted(len(of.values), 'different value')}"


def _in_files(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {counted(len(files) - 1, 'more file')}"


def run_classify(*, lines: bool) -> int:
    """`{id, text}` a line in, `{id, room, hall, confidence}` a line out."""
    from palace_pipeline.rooms.classifier import classify_lines

    if not lines:
        raise UsageError("classify reads JSON lines; write: palace classify --jsonl")
    classify_lines(sys.stdin.buffer, sys.stdout.buffer, _settings())
    return 0
