"""Every check fails on what it is there for, and the command that it names makes it pass again, and all others with it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from palace_pipeline import rebuild
from palace_pipeline.checks import CHECKS, OF_FILES, Result, examine, whole
from palace_pipeline.checks.exports import of_everything
from palace_pipeline.planner import Range
from palace_pipeline.stages.missing import mark_missing
from palace_pipeline.store.home import Home
from tests.checks.conftest import build
from tests.checks.test_damage import OF_A, again, alter, collection, doubled, drawer, page_of, tables
from tests.ingest.exports_for_tests import chat, export

LATER = 4 * 86_400


def wrong(home: Home, now: float) -> dict[str, Result]:
    """What a look at everything finds, as `palace doctor` does."""
    days = whole(home)
    assert days is not None
    with home.writing():
        found = [*examine(home, days, everything=True), *of_everything(home, now)]
    return {f"{result.asset} {result.name}": result for result in found if not result.passed}


def follow(home: Home, command: str) -> None:
    """Do what a command of the mends does."""
    if match := re.fullmatch(r"palace backfill --from (\S+) --to (\S+)", command):
        again(home, Range(date.fromisoformat(match[1]), date.fromisoformat(match[2])))
    elif command.startswith("palace rebuild --from vault"):
        with home.writing():
            rebuild.from_vault(home, "test")
    elif command == "palace rebuild":
        with home.writing():
            rebuild.from_lake(home, "test")
    elif command.startswith("palace ingest"):
        with home.writing(), home.ledger() as ledger:
            mark_missing(home, ledger)
        build(home, *home.settings.folders)
    else:
        raise AssertionError(f"no command: {command}")


def without_a_drawer_in_chroma(home: Home) -> None:
    client, drawers = collection(home)
    drawers.delete(ids=[drawer(home)])
    client.close()


def lose(home: Home, sql: str) -> None:
    with home.ledger() as ledger:
        ledger.write(sql)


def too_early(home: Home) -> None:
    early = pl.lit(datetime(2024, 5, 1, tzinfo=UTC)).cast(pl.Datetime("us", "UTC"))
    at = pl.when(OF_A & (pl.col("seq") == 2)).then(early).otherwise(pl.col("created_at"))
    alter(home, "raw/messages", lambda rows: rows.with_columns(created_at=at))


DAMAGES: dict[str, Callable[[Home], object]] = {
    "normalized_transcripts schema_holds": lambda home: alter(home, "raw/messages", lambda f: f.drop("speaker")),
    "normalized_transcripts no_message_is_doubled": lambda home: alter(home, "raw/messages", doubled),
    "normalized_transcripts times_are_possible": too_early,
    "redacted_transcripts schema_holds": lambda home: alter(
        home, "clean/messages", lambda f: f.with_columns(pl.col("seq").cast(pl.Int32))
    ),
    "redacted_chunks schema_holds": lambda home: alter(home, "clean/chunks", lambda f: f.drop("context")),
    "redacted_chunks every_word_is_in_one_chunk": lambda home: alter(home, "clean/chunks", lambda f: f.filter(~OF_A)),
    "drawers schema_holds": lambda home: alter(
        home, "clean/drawers", lambda f: f.with_columns(confidence=pl.lit(1.5, pl.Float32))
    ),
    "conversation_pages pages_read_back": lambda home: page_of(home, "a").unlink(),
    "conversation_pages notes_list_every_page": lambda home: shutil.rmtree(home.path / "notes/days"),
    "drawer_embeddings index_holds_every_drawer": without_a_drawer_in_chroma,
    "palace_tables schema_holds": lambda home: tables(home, "ALTER TABLE drawers ALTER tokens TYPE INTEGER"),
    "palace_tables counts_add_up": lambda home: tables(home, "DELETE FROM messages WHERE conversation_id = 'b'"),
    "raw_exports every_file_is_accounted_for": lambda home: lose(
        home, "DELETE FROM element_records WHERE conversation_id = 'a'"
    ),
    "raw_exports sources_are_fresh": lambda home: export(home.path / "inbox/new.json", chat("n", "hello", "there")),
}
TELLS_ONLY = {"normalized_transcripts messages_are_healthy"}
"""What a reader no longer understands has no command that mends it: the check says where to look and what to report."""


def test_every_check_is_broken_once() -> None:
    assert {f"{check.asset} {check.name}" for check in (*CHECKS, *OF_FILES)} == DAMAGES.keys() | TELLS_ONLY


@pytest.mark.parametrize("name", DAMAGES)
def test_what_a_check_names_mends_it(home: Home, name: str, tmp_path: Path) -> None:
    del tmp_path
    now = datetime.now(UTC).timestamp() + LATER
    assert name not in wrong(home, now)
    DAMAGES[name](home)
    found = wrong(home, now)
    assert name in found
    assert found[name].mends, found[name].said
    for _ in range(2):  # as a person does: follow what is said, look again
        for command in found[name].mends if name in found else next(iter(found.values())).mends:
            follow(home, command)
        found = wrong(home, now)
        if not found:
            break
    assert {what: result.said for what, result in found.items()} == {}
