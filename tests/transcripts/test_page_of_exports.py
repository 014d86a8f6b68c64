"""What the readers make of the sample exports goes through a page unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.containers import members_of
from palace_pipeline.exports.engine import identify, read_member
from palace_pipeline.model import Conversation
from palace_pipeline.transcripts.merge import merge
from palace_pipeline.transcripts.page import PageHead, parse, render

EXPORTS = Path(__file__).parent.parent / "fixtures" / "exports"
FOLDERS = sorted(path for path in EXPORTS.iterdir() if path.is_dir())


def conversations(folder: Path) -> Iterator[Conversation]:
    sightings: dict[tuple[str, str], list[Conversation]] = {}
    for member in members_of(folder, Report):
        if member.path.endswith("expected.json"):
            continue
        report = Report(member.path)
        if (found := identify(member, report)) is not None:
            for conversation in read_member(member, *found, report):
                sightings.setdefault(conversation.key, []).append(conversation)
    return (merge(seen) for seen in sightings.values())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_round_trip(folder: Path) -> None:
    count = 0
    for chat in conversations(folder):
        page = render(chat, PageHead(date(2024, 5, 3)))
        parsed = parse(page)
        rows = [m for m in chat.messages if m.branch_active and m.hidden_reason is None]
        facts = ("message_id", "role", "kind", "speaker", "text", "created_at", "local_time", "edited_at", "tool_name")
        facts += ("model", "tokens_in", "tokens_out", "tokens_cached", "cost", "citations", "attachment")
        for before, after in zip(rows, parsed.conversation.messages, strict=True):
            assert [getattr(after, name) for name in facts] == [getattr(before, name) for name in facts]
            assert not before.visible or before.text in page
        assert (parsed.intact, parsed.conversation.title) == (True, chat.title)
        assert len(parsed.whole().messages) == len(chat.messages)
        assert render(parsed.whole(), parsed.head, parsed.user) == page
        count += 1
    assert count > 0
