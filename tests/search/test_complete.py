"""What `first` and `timeline` claim to have looked through: nothing may be missing without being told."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, date

import pytest

from palace_pipeline.model import CHUNKS, VECTORS, Conversation, frame
from palace_pipeline.search.complete import NO_LEDGER, pieces_of
from palace_pipeline.search.first import first_mention
from palace_pipeline.search.reading import day_view
from palace_pipeline.search.timeline import timeline
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.lexical import LexicalIndex, LexicalRow
from tests.search.small_archive import Archive, at, say

KNOWN = (
    ("chatgpt", "lamps", "2024-03-01", "x"),
    ("claude", "竞业", "2023-05-05", "x"),
    ("claude-code", "agent", "2024-05-05", "x"),
)


def note(archive: Archive, *rows: tuple[str, str, str, str | None]) -> None:
    """Rows of the ledger: provider, conversation, day, and what its chunks were made from."""
    ledger = Ledger(archive.home / "ledger.sqlite")
    with ledger.transaction():
        ledger.write_many(
            "INSERT INTO conversations (provider, conversation_id, day, dated, first_seen_day, input, messages, chunks_out)"
            " VALUES (?, ?, ?, 1, '2026-01-01', '', 4, ?)",
            rows,
        )
    ledger.close()


@pytest.mark.parametrize("table", ["chunks", "messages", "conversations"])
def test_a_month_file_that_is_gone_is_told(archive: Archive, table: str) -> None:
    note(archive, *KNOWN, ("chatgpt", "empty", "2024-01-01", "none"))
    assert first_mention(archive.searcher(), "lantern").searched.complete
    for path in archive.lake.files(f"clean/{table}", "2024-03"):
        path.unlink()
    found, line = first_mention(archive.searcher(), "lantern"), timeline(archive.searcher(), "lantern")
    assert not found.searched.complete
    gone = "1 conversation is gone from the lake (palace gaps --all --heal makes it again)"
    assert found.searched.missing == line.missing == (gone,)
    assert gone in found.tried
    assert gone in line.tried
    assert first_mention(archive.searcher(), "lantern", provider="claude").searched.complete


def test_a_search_tells_of_months_that_are_gone(archive: Archive) -> None:
    note(archive, *KNOWN, ("chatgpt", "new", "2020-01-01", None), ("chatgpt", "empty", "2020-01-01", "none"))
    searcher = archive.searcher()
    assert searcher.search("lantern").missing == ()
    for path in archive.lake.files("clean/messages", "2024-03"):
        path.unlink()
    for path in archive.lake.files("clean/chunks", "2023-05"):
        path.unlink()
    told = "2 conversations are gone from the lake (palace gaps --all --heal makes it again): 2023-05, 2024-03"
    result = searcher.search("lantern")
    assert result.missing == (told,)
    assert told in result.tried


def test_without_a_ledger_nothing_is_complete(archive: Archive) -> None:
    note(archive, *KNOWN)
    (archive.home / "ledger.sqlite").unlink()
    found = first_mention(archive.searcher(), "lantern")
    assert found.first is not None
    assert found.searched.missing == (NO_LEDGER,)
    assert day_view(archive.home, date(2024, 3, 1), UTC).unread == (NO_LEDGER,)


def test_what_redaction_withholds_is_told(archive: Archive) -> None:
    note(archive, *KNOWN, ("claude", "held", "2024-06-01", "none"))
    with closing(Ledger(archive.home / "ledger.sqlite")) as ledger, ledger.transaction():
        ledger.write_many("INSERT INTO withheld VALUES (?, ?, '', 1, '[]')", [("chatgpt", "lamps"), ("claude", "held")])
    (told,) = first_mention(archive.searcher(), "lantern").searched.missing
    assert told.startswith("2 conversations are withheld in whole or in part")
    (told,) = first_mention(archive.searcher(), "lantern", provider="claude").searched.missing
    assert told.startswith("1 conversation is withheld in whole or in part")
    assert day_view(archive.home, date(2024, 1, 1), UTC).unread == ()


def test_a_day_whose_month_file_is_gone_is_told(archive: Archive) -> None:
    note(archive, *KNOWN)
    for path in archive.lake.files("clean/messages", "2024-03"):
        path.unlink()
    assert day_view(archive.home, date(2024, 2, 28), UTC).unread == ()
    assert day_view(archive.home, date(2024, 7, 9), UTC, provider="claude").unread == ()
    # it began in March and goes on
    (told,) = day_view(archive.home, date(2024, 7, 9), UTC).unread
    assert told.startswith("1 conversation is gone from the lake")


def test_what_a_run_has_not_built_yet_is_told(archive: Archive) -> None:
    note(archive, *KNOWN, ("chatgpt", "new", "2020-01-01", None), ("chatgpt", "newer", "2020-01-01", None))
    (told,) = first_mention(archive.searcher(), "lantern").searched.missing
    assert told.startswith("2 conversations are not built yet")


def test_an_index_of_as_many_other_chunks_is_told(archive: Archive) -> None:
    searcher = archive.searcher()
    chunks = searcher.corpus().chunks
    other = LexicalRow("other", "lantern", "", "", "chatgpt", "gone", "w", "general", "exchange", ("user",), 20240301)
    lamps = [row["drawer_id"] for row in chunks.iter_rows(named=True) if row["conversation_id"] == "lamps"]
    with LexicalIndex(archive.home / "lexical") as index:
        index.delete(lamps[:1])
        index.upsert([other, replace(other, drawer_id="another")])
    left = chunks.filter(chunks["kind"] == "exchange").height
    assert first_mention(archive.searcher(), "kettle").searched.missing == (
        f"the lexical index lacks 1 of {left} chunks",
    )


def test_the_words_of_a_long_message_may_stand_in_two_of_its_pieces(archive: Archive) -> None:
    text = "The bassoon came first. And the piccolo came last."
    said = [
        say("user", "Who marched?", created_at=at("2020-01-01T08:00:00")),
        say("assistant", text, created_at=at("2020-01-01T08:01:00")),
    ]
    archive.add(Conversation("chatgpt", "band", said, title="Band"))
    lake, keys = archive.lake, [("chatgpt", "band")]
    (whole,) = lake.read("clean/chunks", ["2020-01"], keys=keys).rows(named=True)
    pieces = [
        whole | {"drawer_id": "one", "text": f"Who marched?\n\n{text[:23]}"},
        whole | {"drawer_id": "two", "first_seq": 1, "text": text[24:]},
    ]
    lake.replace("clean/chunks", "2020-01", keys, frame(pieces, CHUNKS))
    lake.replace("clean/vectors", "2020-01", keys, frame([], VECTORS))
    roles = ("user", "assistant")
    rows = [
        LexicalRow(name, said, "", "Band", "chatgpt", "band", "w", "general", "exchange", roles, 20200101)
        for name, said in ((str(row["drawer_id"]), str(row["text"])) for row in pieces)
    ]
    with LexicalIndex(archive.home / "lexical") as index:
        index.delete([whole["drawer_id"]])
        index.upsert(rows)
    for query, how, seq in (
        ("bassoon piccolo", "words", 1),
        ("piccolo bassoon came", "words", 1),
        ("bassoons piccolo marched", "together", 1),
        ("bassoonist piccolo", "related", 1),
    ):
        found = first_mention(archive.searcher(), query)
        assert found.first is not None, query
        assert (found.first.hit.conversation_id, found.first.how, found.first.hit.seq) == ("band", how, seq)
        assert [one.mentions for one in timeline(archive.searcher(), query).stations] == [1]


def test_pieces_share_a_message_and_sections_stand_alone(archive: Archive) -> None:
    def row(drawer_id: str, conversation: str, kind: str, first: int, last: int) -> dict[str, object]:
        place: dict[str, object] = {
            "provider": "p",
            "conversation_id": conversation,
            "first_seq": first,
            "last_seq": last,
        }
        return place | {"drawer_id": drawer_id, "day": date(2020, 1, 1), "kind": kind}

    rows = [
        row("a2", "a", "exchange", 1, 1),
        row("b1", "b", "exchange", 0, 1),
        row("a1", "a", "exchange", 0, 1),
        row("a3", "a", "exchange", 1, 1),
        row("a4", "a", "exchange", 2, 3),
        row("at", "a", "tool", 1, 1),
        row("d1", "a", "document", 1, 1),
        row("d2", "a", "document", 1, 1),
    ]
    pieces = dict(zip([str(one["drawer_id"]) for one in rows], pieces_of(frame(rows, CHUNKS)).to_list(), strict=True))
    assert pieces["a1"] == pieces["a2"] == pieces["a3"]
    alone = [pieces[name] for name in ("a1", "a4", "b1", "at", "d1", "d2")]
    assert len(set(alone)) == len(alone)


def test_all_that_bears_no_date_is_counted_and_looked_at(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palace_pipeline.search.first._AT_ONCE", 2)
    monkeypatch.setattr("palace_pipeline.search.first.UNDATED", 3)
    for number in range(7):
        archive.add(Conversation("markdown", f"n{number}", [say("user", f"A zither, {number}.")]), dated=False)
    found = first_mention(archive.searcher(), "zither")
    assert (found.first, len(found.undated), found.undated_in_all) == (None, 3, 7)
    assert found.as_json()["undated_in_all"] == 7


def test_without_vectors_a_timeline_that_is_cut_reaches_over_all_the_time(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palace_pipeline.search.timeline.MOST_CHUNKS", 3)
    for number in range(1, 7):
        said = [say("user", f"A tuba, number {number}.", created_at=at(f"2020-0{number}-01T08:00:00"))]
        archive.add(Conversation("chatgpt", f"tuba{number}", said, title="Tuba"))
        archive.lake.replace("clean/vectors", f"2020-0{number}", [("chatgpt", f"tuba{number}")], frame([], VECTORS))
    found = timeline(archive.searcher(), "tuba")
    assert [one.conversation_id for one in found.stations] == ["tuba1", "tuba3", "tuba5"]
    assert "only 3 of 6 chunks were read, spread over all the time" in found.missing


def test_of_a_timeline_that_is_cut_the_words_stay_before_other_forms(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palace_pipeline.search.timeline.MOST_CHUNKS", 1)
    # A short text of another form is nearer in meaning than a long one of the word itself.
    for name, text in (("long", f"A nova tromba, {'and much else ' * 20}."), ("short", "nova trombaist")):
        said = [say("user", text, created_at=at("2020-01-01T08:00:00"))]
        archive.add(Conversation("chatgpt", name, said, title=""))
    found = timeline(archive.searcher(), "nova tromba")
    assert [one.conversation_id for one in found.stations] == ["long"]
