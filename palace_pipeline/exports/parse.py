"""`palace parse`: one file, ZIP or folder -> what was understood, as plain values; nothing is written."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import orjson

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.containers import members_of
from palace_pipeline.exports.engine import identify, note_drift, read_member
from palace_pipeline.exports.times import to_utc
from palace_pipeline.model import Conversation, Message, Skip, record_identity
from palace_pipeline.settings import Settings


def parse_path(path: Path, settings: Settings | None = None) -> dict[str, Any]:
    """The answer of `palace parse PATH --json`. A conversation that several files show is given once.

    Naive times become UTC only if the settings give a zone for their source. Raises FileNotFoundError.
    """
    from palace_pipeline.transcripts.merge import merge, superseded

    reports: list[Report] = []
    sightings: dict[tuple[str, str], list[Conversation]] = {}
    for conversation in conversations_in(path, reports):
        sightings.setdefault(conversation.key, []).append(conversation)
    merged = {key: merge(seen) for key, seen in sightings.items()}
    ids = {key: {message.message_id for message in c.messages} for key, c in merged.items()}
    forks = {key: (c.provider, c.forked_from) for key, c in merged.items() if c.forked_from}
    old = superseded({key: len(found) for key, found in ids.items()}, ids.__getitem__, forks)
    return {
        "conversations": [
            _shown(conversation, _zone(path, conversation, settings))
            for key, conversation in merged.items()
            if key not in old
        ],
        "skipped": _skipped(reports),
    }


def _skipped(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Every skip; files of one folder that nobody wants for one reason (thousands of pictures) together."""
    groups: dict[tuple[str, int, str], list[Skip]] = {}
    for skip in (skip for report in reports for skip in report.skips):
        alone = not skip.expected or skip.unit != "file"
        number, folder = (len(groups), "") if alone else (-1, skip.where.rpartition("/")[0])
        groups.setdefault((skip.reason, number, folder), []).append(skip)
    return [
        {
            "reason": skips[0].reason,
            "where": skips[0].where if len(skips) == 1 else f"{skips[0].where} and {len(skips) - 1} more in its folder",
            "expected": skips[0].expected,
            "count": sum(skip.count for skip in skips),
        }
        for skips in groups.values()
    ]


def conversations_in(path: Path, reports: list[Report]) -> Iterator[Conversation]:
    """Everything that readers find in a file, ZIP or folder, as it stands; what they do not take is added to `reports`."""

    def report_for(member_path: str) -> Report:
        reports.append(Report(member_path))
        return reports[-1]

    for member in members_of(path, report_for):
        report = report_for(member.path)
        if (found := identify(member, report)) is not None:
            taken = 0
            for conversation in read_member(member, *found, report):
                taken += 1
                yield conversation
            note_drift(taken, report)


@dataclass(slots=True)
class Looked:
    """What `distinct_conversations` came across: files with a conversation, copies of one that counted already, and
    conversations that another one repeats in full."""

    files: set[str] = field(default_factory=set[str])
    conversations: int = 0
    copies: int = 0
    continued: int = 0


def distinct_conversations(
    path: Path, reports: list[Report], looked: Looked
) -> Iterator[tuple[Conversation, list[str]]]:
    """Every conversation once, merged from all files that show it, with the paths of their members.

    Reads twice, so that only conversations that come again are held in memory, and of those each form once.
    """
    from palace_pipeline.transcripts.merge import merge, superseded

    times: Counter[tuple[str, str]] = Counter()
    forks: dict[tuple[str, str], tuple[str, str]] = {}
    for conversation in conversations_in(path, []):
        times[conversation.key] += 1
        if conversation.forked_from:
            forks[conversation.key] = (conversation.provider, conversation.forked_from)
    family = {*forks, *forks.values()}
    forms: dict[tuple[str, str], dict[str, Conversation]] = {}
    files: dict[tuple[str, str], dict[str, None]] = {}
    for conversation in conversations_in(path, reports):
        key = conversation.key
        files.setdefault(key, {})[conversation.source_file or ""] = None
        looked.files.add((conversation.source_file or "").partition("!/")[0])
        forms.setdefault(key, {}).setdefault(record_identity(conversation)[0], conversation)
        times[key] -= 1
        if times[key] > 0:
            looked.copies += 1
        elif key not in family:
            looked.conversations += 1
            yield merge(list(forms.pop(key).values())), list(files.pop(key))
    merged = {key: merge(list(found.values())) for key, found in forms.items()}
    ids = {key: {message.message_id for message in one.messages} for key, one in merged.items()}
    old = superseded({key: len(found) for key, found in ids.items()}, ids.__getitem__, forks)
    looked.continued = len(old)
    for key, conversation in merged.items():
        if key not in old:
            looked.conversations += 1
            yield conversation, list(files[key])


def _zone(path: Path, conversation: Conversation, settings: Settings | None) -> tzinfo | None:
    """The zone that the settings give for the file a conversation was read from."""
    if settings is None:
        return None
    root = path if path.is_dir() else path.parent
    return settings.timezone_of(root / (conversation.source_file or "").split("!/")[0])


def _shown(conversation: Conversation, zone: tzinfo | None) -> dict[str, Any]:
    rows = [message for message in conversation.messages if message.branch_active and message.hidden_reason is None]
    return {
        "provider": conversation.provider,
        "conversation_id": conversation.conversation_id,
        "title": conversation.title,
        "start_date": _start_date(conversation, zone),
        "messages": [_message(message, zone) for message in rows],
        "attachments": [{"name": file.name, "text": file.text} for message in rows for file in message.attachment],
    }


def _message(message: Message, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "role": message.role,
        "kind": message.kind,
        "speaker": message.speaker,
        "text": message.text,
        "timestamp": _timestamp(_instant(message, zone)),
        "local_time": message.local_time,
        "tool_name": message.tool_name,
        "citations": [{"url": citation.url, "title": citation.title} for citation in message.citations],
    }


def _instant(message: Message, zone: tzinfo | None) -> datetime | None:
    return message.created_at or to_utc(message.local_time, zone)


def _timestamp(moment: datetime | None) -> str | None:
    """UTC with milliseconds and `Z`."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _start_date(conversation: Conversation, zone: tzinfo | None) -> str | None:
    """UTC date of the first dated visible message (a naive time counts with its own date), else of the source."""
    for message in conversation.visible_messages():
        if (moment := _instant(message, zone)) is not None:
            return moment.astimezone(UTC).date().isoformat()
        if message.local_time is not None:
            return message.local_time[:10]
    if conversation.created_at is not None:
        return conversation.created_at.date().isoformat()
    return conversation.local_created[:10] if conversation.local_created else None


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(parse_path(Path(sys.argv[1])), option=orjson.OPT_APPEND_NEWLINE))
