"""What the lake gives back has the identity of what was put in, for every format: else a look would find gaps for ever."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.exports.parse import conversations_in
from palace_pipeline.model import CONVERSATIONS, MESSAGES, Conversation, frame
from palace_pipeline.stages.normalize import raw_identity
from palace_pipeline.stages.redact import clean_identity
from palace_pipeline.transcripts.rows import conversation_row, conversations_of, message_rows

FOLDERS = sorted((Path(__file__).parents[1] / "fixtures/exports").iterdir())


def through_the_lake(conversation: Conversation) -> tuple[dict[str, Any], Conversation]:
    day = date(2026, 3, 14)
    row = conversation_row(conversation, day, dated=True, source_sha256="s")
    ((head, back),) = conversations_of(frame([row], CONVERSATIONS), frame(message_rows(conversation, day), MESSAGES))
    return head, back


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_rows_of_a_transcript_give_its_fingerprint_back(folder: Path) -> None:
    for conversation in conversations_in(folder, []):
        head, back = through_the_lake(conversation)
        assert raw_identity("2026-03-14", True, "s", back) == raw_identity("2026-03-14", True, "s", conversation)
        again, clean = through_the_lake(back)
        assert clean_identity(again, "ok", clean) == clean_identity(head, "ok", back)
