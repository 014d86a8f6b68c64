"""Every check holds on a sound archive, and says what is wrong, where, and what mends it, on one that was damaged."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import chromadb
import duckdb
import polars as pl
import pytest
from chromadb.config import Settings as ChromaSettings

from palace_pipeline.checks import CHECKS, Result, examine, whole
from palace_pipeline.checks.exports import accounted, of_everything
from palace_pipeline.planner import Range
from palace_pipeline.stages.common import Job
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.store.home import Home
from tests.checks.conftest import DAY, STAGES, build
from tests.ingest.exports_for_tests import START, chat, export

A = ("chatgpt", "a")
Change = Callable[[pl.DataFrame], pl.DataFrame]
OF_A = (pl.col("provider") == "chatgpt") & (pl.col("conversation_id") == "a")


def results(home: Home, span: Range | None = None) -> dict[str, Result]:
    """Asset and name of every check -> its result."""
    everything = whole(home)
    assert everything is not None
    with home.writing():
        found = examine(home, span or everything, everything=span is None)
    return {f"{result.asset} {result.name}": result for result in found}


def failed(home: Home) -> dict[str, Result]:
    return {name: result for name, result in results(home).items() if not result.passed}


def alter(home: Home, table: str, change: Change, month: str = "2024-05") -> None:
    """Rewrite a month file of the lake."""
    path = home.lake.path(table, month)
    change(pl.read_parquet(path)).write_parquet(path)


def again(home: Home, span: Range) -> None:
    """What `palace backfill` does."""
    with home.writing():
        for stage in STAGES:
            stage(Job(home, span, recipes_of(home), "test", force=True))


def only(found: dict[str, Result], name: str) -> Result:
    assert name in found, found
    return found[name]


def test_a_sound_archive_passes_every_check_and_all_of_them_looked(home: Home) -> None:
    found = results(home)
    assert len(found) == len(CHECKS)
    assert {name: result.said for name, result in found.items() if not result.passed} == {}
    counts = found["palace_tables counts_add_up"].figures
    assert counts["ledger"] == counts["table conversations"] > 5
    assert counts["records"] >= counts["ledger"]
    assert counts["clean/drawers"] == counts["clean/vectors"] == counts["published drawers"] > 5
    assert found["redacted_chunks every_word_is_in_one_chunk"].figures["chunks"] == counts["clean/chunks"]
    assert found["conversation_pages pages_read_back"].figures["pages"] == counts["ledger"]
    assert found["drawer_embeddings index_holds_every_drawer"].figures["read back"] > 5
    assert found["normalized_transcripts messages_are_healthy"].rows
    assert all(result.passed for result in of_everything(home, datetime.now(UTC).timestamp()))


def test_only_the_days_of_the_range_are_looked_at(home: Home) -> None:
    alter(home, "clean/messages", lambda rows: rows.filter(~OF_A))
    elsewhere = results(home, Range(date(2024, 6, 1), date(2024, 6, 30)))
    assert all(result.passed for result in elsewhere.values())
    assert elsewhere["palace_tables counts_add_up"].figures["ledger"] == 1


# --- schema -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "name", "change", "said"),
    [
        ("raw/messages", "normalized_transcripts", lambda f: f.drop("speaker"), "column speaker is missing"),
        (
            "raw/conversations",
            "normalized_transcripts",
            lambda f: f.with_columns(extra=1),
            "extra is not in the schema",
        ),
        (
            "clean/messages",
            "redacted_transcripts",
            lambda f: f.with_columns(pl.col("seq").cast(pl.Int32)),
            "column seq holds Int32 instead of Int64",
        ),
        (
            "clean/messages",
            "redacted_transcripts",
            lambda f: f.with_columns(role=pl.when(OF_A).then(None).otherwise(pl.col("role"))),
            "role is empty (4 rows)",
        ),
        (
            "clean/messages",
            "redacted_transcripts",
            lambda f: f.with_columns(role=pl.when(OF_A).then(pl.lit("narrator")).otherwise(pl.col("role"))),
            "role is none of",
        ),
        (
            "clean/conversations",
            "redacted_transcripts",
            lambda f: pl.concat([f, f.filter(OF_A)]),
            "two rows have the same",
        ),
        ("clean/chunks", "redacted_chunks", lambda f: pl.concat([f, f.filter(OF_A)[:1]]), "the same drawer_id"),
        (
            "clean/drawers",
            "drawers",
            lambda f: f.with_columns(confidence=pl.when(OF_A).then(1.5).otherwise(pl.col("confidence"))),
            "confidence is out of bounds",
        ),
        ("clean/vectors", "drawers", lambda f: pl.concat([f, f.filter(OF_A)[:1]]), "the same drawer_id"),
    ],
)
def test_a_broken_schema_is_told_with_its_table(home: Home, table: str, name: str, change: Change, said: str) -> None:
    alter(home, table, change)
    result = only(failed(home), f"{name} schema_holds")
    assert result.blocking
    assert result.severity == "error"
    assert said in result.said
    assert f"lake/{table}" in result.said
    assert "palace backfill --from 2024-05-0" in result.said


def test_a_torn_file_is_told_by_every_check_that_needs_it(home: Home) -> None:
    home.lake.path("clean/messages", "2024-05").write_bytes(b"PAR1 torn")
    found = failed(home)
    assert "cannot be read" in only(found, "redacted_transcripts schema_holds").said
    assert "palace backfill --from 2024-05-01 --to 2024-05-31" in found["redacted_transcripts schema_holds"].mends[0]
    assert "redacted_chunks every_word_is_in_one_chunk" in found


def tables(home: Home, *statements: str) -> None:
    with duckdb.connect(str(home.warehouse)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_tables_with_other_columns_or_doubled_keys_are_told(home: Home) -> None:
    tables(
        home,
        "ALTER TABLE drawers ALTER tokens TYPE INTEGER",
        "INSERT INTO conversations SELECT * FROM conversations WHERE conversation_id = 'a'",
    )
    said = only(failed(home), "palace_tables schema_holds").said
    assert "palace.duckdb drawers: column tokens holds INTEGER instead of BIGINT" in said
    assert "palace.duckdb conversations, 2024-05-03, chatgpt a: 2 rows of the same key" in said


def test_tables_that_cannot_be_read_are_told(home: Home) -> None:
    home.warehouse.write_bytes(b"no database")
    found = failed(home)
    assert "cannot be read as it should be" in only(found, "palace_tables schema_holds").said
    assert "palace_tables counts_add_up" in found


# --- doubled ----------------------------------------------------------------------------------------------------------


def doubled(rows: pl.DataFrame, **other: pl.Expr) -> pl.DataFrame:
    """The first message of chat a once more, at the end of it."""
    return pl.concat([rows, rows.filter(OF_A)[:1].with_columns(seq=pl.lit(9, pl.Int64), **other)])


def test_a_message_that_stands_twice_closes_the_gate(home: Home) -> None:
    alter(home, "raw/messages", doubled)
    result = only(failed(home), "normalized_transcripts no_message_is_doubled")
    assert result.blocking
    assert result.severity == "error"
    assert "lake/raw/messages, 2024-05-03, chatgpt a: 1 message(s) stand there twice with the same id" in result.said
    assert result.mends == ["palace backfill --from 2024-05-03 --to 2024-05-03"]
    again(home, Range(DAY, DAY))
    assert failed(home) == {}


def test_a_message_under_a_second_id_is_more_than_the_exports_hold(home: Home) -> None:
    alter(home, "raw/messages", lambda rows: doubled(rows, message_id=pl.lit("other")))
    result = only(failed(home), "normalized_transcripts no_message_is_doubled")
    assert result.severity == "error"
    assert "1 more rows than its exports hold messages (4)" in result.said
    assert "say the same at the same instant" in result.said


def test_an_export_that_says_it_twice_only_warns(home: Home, tmp_path: Path) -> None:
    twice = chat("twice", "look here", "yes", start=START + 0.5)
    node = {**twice["mapping"]["twice-0"], "id": "again", "parent": "twice-1", "children": []}
    node["message"] = {**node["message"], "id": "again"}
    twice["mapping"]["again"] = node
    twice["mapping"]["twice-1"]["children"] = ["again"]
    twice["current_node"] = "again"
    build(home, export(tmp_path / "more/conversations.json", twice))
    found = failed(home)
    assert set(found) == {"normalized_transcripts no_message_is_doubled"}
    assert found["normalized_transcripts no_message_is_doubled"].severity == "warn"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE conversations SET superseded_by = 'b' WHERE conversation_id = 'a'", "that is held by another one"),
        ("UPDATE conversations SET status = 'purged' WHERE conversation_id = 'a'", "that was purged"),
        ("DELETE FROM conversations WHERE conversation_id = 'a'", "that the ledger does not know"),
        (
            "UPDATE conversations SET day = '2024-06-12', built_day = '2024-06-12' WHERE conversation_id = 'a'",
            "lie on a day that is not theirs",
        ),
    ],
)
def test_rows_of_a_conversation_that_should_have_none_are_told(home: Home, change: str, said: str) -> None:
    with home.ledger() as ledger:
        ledger.write(change)
    assert said in only(failed(home), "normalized_transcripts no_message_is_doubled").said


def test_what_waits_to_move_to_another_day_is_not_taken_for_damage(home: Home) -> None:
    with home.ledger() as ledger:
        ledger.write(
            "UPDATE conversations SET day = '2024-06-12', input = replace(input, '2024-05-03', '2024-06-12') "
            "WHERE conversation_id = 'a'"
        )
    assert failed(home) == {}


# --- times and quality ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "severity", "said"),
    [
        (datetime.now(UTC) + timedelta(days=30), "warn", "younger than the export"),
        (datetime(1999, 1, 1, tzinfo=UTC), "warn", "from before 2010-01-01"),
        (datetime(2024, 5, 1, tzinfo=UTC), "error", "older than the day of their conversation"),
    ],
)
def test_impossible_times_are_told(home: Home, at: datetime, severity: str, said: str) -> None:
    here = OF_A & (pl.col("seq") == 2)
    time = pl.when(here).then(pl.lit(at).cast(pl.Datetime("us", "UTC"))).otherwise(pl.col("created_at"))
    alter(home, "raw/messages", lambda rows: rows.with_columns(created_at=time))
    result = only(failed(home), "normalized_transcripts times_are_possible")
    assert result.severity == severity
    assert said in result.said
    assert "the first is number 2" in result.said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" ", "100% of the messages of chatgpt (chatgpt-export) are empty"),
        ("x", "too short"),
        ("word " * 7_000, "too long"),
    ],
)
def test_a_format_that_is_read_badly_is_told_with_its_share(home: Home, text: str, said: str) -> None:
    alter(home, "raw/messages", lambda f: f.with_columns(text=pl.when(OF_A).then(pl.lit(text)).otherwise("text")))
    with home.ledger() as ledger:  # only these, so that the share is plain
        ledger.write("DELETE FROM conversations WHERE provider = 'chatgpt' AND conversation_id != 'a'")
    alter(home, "raw/messages", lambda f: f.filter((pl.col("provider") != "chatgpt") | OF_A))
    alter(home, "raw/messages", lambda f: f.filter(pl.col("provider") != "chatgpt"), "2024-06")
    result = only(failed(home), "normalized_transcripts messages_are_healthy")
    assert result.severity == "warn"
    assert not result.blocking
    assert said in result.said
    (row,) = [row for row in result.rows if row["format"] == "chatgpt (chatgpt-export)"]
    assert row["messages"] == 4
    assert row["healthy %"] == 0


# --- words ------------------------------------------------------------------------------------------------------------

EXCHANGE = OF_A & (pl.col("kind") == "exchange")


def swapped(rows: pl.DataFrame) -> pl.DataFrame:
    """The second and the third chunk of chat a have changed places."""
    number = pl.col("chunk_index")
    other = pl.when(number == 1).then(2).when(number == 2).then(1).otherwise(number)
    return rows.with_columns(chunk_index=pl.when(EXCHANGE).then(other).otherwise(number).cast(pl.Int64))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.filter(~(EXCHANGE & (pl.col("chunk_index") == 1))), "words of"),
        (lambda f: pl.concat([f, f.filter(EXCHANGE)[:1].with_columns(chunk_index=pl.lit(99, pl.Int64))]), "words of"),
        (swapped, "not in the order of the transcript"),
        (lambda f: f.with_columns(pl.col("text").str.replace("Sentence 3 ", "Sentence 4 ")), "not the same"),
        (lambda f: f.filter(pl.col("provider") != "slack"), "0 words of"),
    ],
)
def test_lost_doubled_moved_and_changed_words_are_told(home: Home, change: Change, said: str) -> None:
    for month in home.lake.months("clean/chunks"):
        alter(home, "clean/chunks", change, month)
    result = only(failed(home), "redacted_chunks every_word_is_in_one_chunk")
    assert said in result.said
    assert "palace backfill --from" in result.said
    assert "Sentence" not in result.said


# --- pages ------------------------------------------------------------------------------------------------------------


def page_of(home: Home, name: str) -> Path:
    with home.ledger() as ledger:
        row = ledger.conversation(("chatgpt", name))
    assert row is not None
    return home.path / row["page"]


def test_a_page_that_is_gone_or_torn_is_told(home: Home) -> None:
    page_of(home, "a").unlink()
    page = page_of(home, "b")
    page.write_text(page.read_text("utf-8").partition("### ")[0], "utf-8")
    result = only(failed(home), "conversation_pages pages_read_back")
    assert "conversations/chatgpt/2024, 2024-05-03, chatgpt a: the page is not there" in result.said
    assert "chatgpt b: the page cannot be read back" in result.said
    assert "palace ingest" in result.mends


def test_a_page_that_says_something_else_than_its_rows_is_told(home: Home) -> None:
    alter(home, "clean/messages", lambda f: f.with_columns(text=pl.when(OF_A).then(pl.lit("new")).otherwise("text")))
    said = only(failed(home), "conversation_pages pages_read_back").said
    assert "the page reads back to another text of message 1" in said
    assert "pool" not in said


def test_what_the_owner_changed_on_a_page_is_theirs(home: Home) -> None:
    page = page_of(home, "b")
    page.write_text(page.read_text("utf-8").replace("先看", "先想").replace("## Notes\n", "## Notes\nmine\n"), "utf-8")
    result = results(home)["conversation_pages pages_read_back"]
    assert result.passed
    assert result.figures["pages changed by their owner"] == 1


# --- counts -----------------------------------------------------------------------------------------------------------


def test_a_row_a_vector_a_table_row_and_a_record_that_are_lost_are_told(home: Home) -> None:
    alter(home, "clean/messages", lambda f: f.filter(~(OF_A & (pl.col("seq") == 3))))
    alter(home, "clean/vectors", lambda f: f.filter(~OF_A))
    tables(home, "DELETE FROM drawers WHERE conversation_id = 'b'")
    with sqlite3.connect(home.path / "vault/vault.sqlite") as vault, home.ledger() as ledger:
        (record,) = ledger.rows("SELECT record FROM sightings WHERE conversation_id = 'c'")
        vault.execute("DELETE FROM records WHERE hash = ?", (record["record"],))
    problems = [str(p) for p in only(failed(home), "palace_tables counts_add_up").problems]
    assert any(
        "chatgpt a: messages do not add up: ledger messages 4, raw/messages 4, clean/messages" in p for p in problems
    )
    assert any("chatgpt a: drawers do not add up" in p and "clean/vectors 0" in p for p in problems)
    assert any("chatgpt b: drawers do not add up" in p and "table drawers 0" in p for p in problems)
    assert any("vault, 2024-06-12, chatgpt c: a record of it is not in the vault" in p for p in problems)


def test_a_vector_of_an_older_text_does_not_count(home: Home) -> None:
    alter(home, "clean/vectors", lambda f: f.with_columns(text_hash=pl.lit("older")))
    assert "drawers do not add up" in only(failed(home), "palace_tables counts_add_up").said


def test_an_index_of_messages_that_lost_one_is_told(home: Home) -> None:
    with home.ledger() as ledger:
        ledger.write("UPDATE conversations SET messages = 5 WHERE conversation_id = 'a'")
    assert "its records hold 4 messages, the ledger counts 5" in only(failed(home), "palace_tables counts_add_up").said


# --- Chroma -----------------------------------------------------------------------------------------------------------


def collection(home: Home) -> tuple[chromadb.ClientAPI, chromadb.Collection]:
    client = chromadb.PersistentClient(str(home.path / "chroma"), settings=ChromaSettings(anonymized_telemetry=False))
    return client, client.get_collection("palace_drawers", embedding_function=None)


def drawer(home: Home) -> str:
    with home.ledger() as ledger:
        (row,) = ledger.rows("SELECT drawer_id FROM published WHERE conversation_id = 'b'")
    return row["drawer_id"]


@pytest.mark.parametrize("damage", ["missing", "other text", "other vector", "surplus", "on no day"])
def test_what_chroma_lost_changed_or_has_too_many_is_told(home: Home, damage: str) -> None:
    client, drawers = collection(home)
    name = drawer(home)
    vector = [1.0] + [0.0] * 383
    if damage == "missing":
        drawers.delete(ids=[name])
    elif damage == "other text":
        drawers.update(ids=[name], documents=["something else"], embeddings=[vector])
    elif damage == "other vector":
        drawers.update(ids=[name], embeddings=[vector])
    else:
        day = 20240503 if damage == "surplus" else 19700101
        drawers.add(ids=["x"], documents=["x"], embeddings=[vector], metadatas=[{"day": day}])
    client.close()
    result = only(failed(home), "drawer_embeddings index_holds_every_drawer")
    said = {
        "missing": "chroma palace_drawers, 2024-05-03, chatgpt b: 1 drawers are missing",
        "other text": "chatgpt b: 1 drawers have another text or vector than in the lake",
        "other vector": "chatgpt b: 1 drawers have another text or vector than in the lake",
        "surplus": "1 drawers that the lake does not know",
        "on no day": "1 drawers on no day of the calendar",
    }
    assert said[damage] in result.said
    assert result.mends == ["palace rebuild"]


def test_a_chroma_folder_that_is_gone_or_damaged_is_told(home: Home) -> None:
    (home.path / "chroma/chroma.sqlite3").write_bytes(os.urandom(4096))
    assert "could not look" in only(failed(home), "drawer_embeddings index_holds_every_drawer").said
    shutil.rmtree(home.path / "chroma")
    assert "Chroma holds nothing" in only(failed(home), "drawer_embeddings index_holds_every_drawer").said
    assert not (home.path / "chroma/chroma.sqlite3").exists()  # looking makes nothing


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_whose_conversations_are_lost_is_told(home: Home) -> None:
    with home.ledger() as ledger:
        ledger.write("DELETE FROM element_records WHERE conversation_id = 'a'")
        result = accounted(home, ledger)
        assert accounted(home, ledger, since="2100-01-01").figures.get("files", 0) == 0
    assert not result.passed
    assert "gave 3 conversations, and the ledger knows 2 of them" in result.said
    assert "conversations.json" in result.said


def test_new_files_that_stay_outside_and_folders_that_are_gone_warn(home: Home) -> None:
    now = datetime.now(UTC).timestamp()
    export(home.path / "inbox/new.json", chat("new", "hello", "there"))
    assert of_everything(home, now)[1].passed  # it came just now
    late = of_everything(home, now + 4 * 86_400)[1]
    assert late.severity == "warn"
    assert "inbox: 1 new file(s) are not in; the oldest has waited 4 days" in late.said
    shutil.rmtree(home.path / "inbox")
    assert "the source is not there" in of_everything(home, now)[1].said
