"""Search over a small archive, with a stand-in for the embedding model that knows two words of each language."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.embedding.convert import EmbeddingError
from palace_pipeline.model import (
    Attachment,
    Conversation,
)
from palace_pipeline.search.engine import Searcher, SearchResult, search_lines
from palace_pipeline.search.reading import neighbours, place_of
from palace_pipeline.settings import Settings
from palace_pipeline.store.ledger import Ledger
from tests.search.small_archive import Archive, BagOfTerms, at, say


def places(result: SearchResult) -> list[tuple[str, int | None]]:
    return [(hit.conversation_id, hit.message_index) for hit in result.hits]


def test_each_message_is_a_hit_of_its_own(archive: Archive) -> None:
    result = archive.searcher().search("copper lantern")
    assert places(result)[0] == ("lamps", 1)
    assert ("lamps", 0) in places(result)
    assert result.verdict == "found"
    hit = result.hits[0]
    assert hit.quote == "The copper lantern from Fennel & Daughters, 48 euro."
    assert [hit.quote[start:end] for start, end in hit.marks] == ["copper", "lantern"]
    assert (hit.provider, hit.title, hit.wing, hit.room, hit.role) == (
        "chatgpt",
        "Terrace",
        "house",
        "general",
        "assistant",
    )
    assert (hit.date, hit.at, hit.seq) == ("2024-03-01", "2024-03-01T22:31:00Z", 1)
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
    assert len(set(places(result))) == len(result.hits)


def test_visible_messages_are_counted_from_zero(archive: Archive) -> None:
    result = archive.searcher().search("rpt_slot")
    assert {hit.message_index: (hit.seq, hit.quote) for hit in result.hits if hit.conversation_id == "agent"} == {
        0: (1, "raise rpt_slot to 12"),
        1: (5, "rpt_slot is 12 now."),
    }


def test_tools_and_thinking_are_found_on_request_only(archive: Archive) -> None:
    searcher = archive.searcher()
    assert all("saffron" not in hit.quote for hit in searcher.search("saffron").hits)
    hits = searcher.search("saffron", kinds=("tool", "thinking")).hits
    assert {(hit.role, hit.message_index) for hit in hits} == {("tool", None), ("thinking", None)}
    assert {hit.wing for hit in hits} == {None}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("竞业", ("竞业", 0)),
        ("协议写明", ("竞业", 1)),
        ("補償", ("竞业", 1)),
        ("rpt_slot", ("agent", 0)),
        ("灯笼", ("lamps", 0)),
        ("фонарь", ("lamps", 0)),
        ("Fennel", ("lamps", 1)),
    ],
)
def test_words_of_any_script_and_meaning_across_languages(archive: Archive, query: str, expected: Any) -> None:
    assert places(archive.searcher().search(query))[0] == expected


@pytest.mark.parametrize("query", ["", "  ", "?!。", "—", "\ud800"])
def test_a_question_without_words_finds_nothing(archive: Archive, query: str) -> None:
    result = archive.searcher().search(query)
    assert (result.verdict, result.hits) == ("none", [])
    assert result.tried


def test_it_is_said_that_tools_and_thinking_are_left_out(archive: Archive) -> None:
    searcher = archive.searcher()
    assert searcher.search("lantern").tried == "Searched 5 of 7 chunks (without tool output and thinking)."
    assert searcher.search("lantern", kinds=()).tried == "Searched 7 chunks."
    assert searcher.search("saffron", kinds=("tool",)).tried == "Searched 1 of 7 chunks."


@pytest.mark.parametrize("query", ["what is the", "什么", "的", "a" * 5000, "(((AND OR NOT:*", "写" * 900])
def test_odd_questions_do_not_crash(archive: Archive, query: str) -> None:
    assert archive.searcher().search(query).verdict in ("found", "weak", "none")


def test_what_was_never_said_is_not_found(archive: Archive) -> None:
    assert archive.searcher().search("quarterly submarine insurance").verdict == "none"


def test_filters(archive: Archive) -> None:
    searcher = archive.searcher()
    everything = "lantern kettle 协议 rpt_slot"
    assert {hit.provider for hit in searcher.search(everything).hits} == {"chatgpt", "claude", "claude-code"}
    assert {hit.provider for hit in searcher.search(everything, provider="claude").hits} == {"claude"}
    assert {hit.conversation_id for hit in searcher.search(everything, wing="house").hits} == {"lamps"}
    assert {hit.conversation_id for hit in searcher.search(everything, room="decisions").hits} == {"竞业"}
    assert {hit.role for hit in searcher.search(everything, role="user").hits} == {"user"}
    assert searcher.search(everything, wing="nowhere").hits == []
    assert len(searcher.search(everything, limit=2).hits) == 2


def test_days_are_those_of_the_message_in_the_display_zone(archive: Archive) -> None:
    query = "lantern kettle"
    berlin, tokyo = archive.searcher("Europe/Berlin"), archive.searcher("Asia/Tokyo")
    # 22:30 UTC is still the 1st in Berlin and already the 2nd in Tokyo; the kettle came up four months later.
    assert {hit.date for hit in berlin.search(query, until=date(2024, 3, 1)).hits} >= {"2024-03-01"}
    assert {hit.conversation_id for hit in berlin.search(query, since=date(2024, 3, 2)).hits} >= {"lamps"}
    assert {hit.message_index for hit in berlin.search(query, since=date(2024, 7, 1)).hits} == {2, 3}
    assert berlin.search(query, since=date(2024, 3, 2), until=date(2024, 3, 2)).hits == []
    assert {hit.date for hit in tokyo.search(query, since=date(2024, 3, 2), until=date(2024, 3, 2)).hits} == {
        "2024-03-02"
    }


def test_naive_and_missing_times(archive: Archive) -> None:
    naive = [say("user", "saucer, naive", local_time="2022-08-01T23:30:00"), say("user", "saucer without a time")]
    archive.add(Conversation("whatsapp", "naive", naive), dated=True)
    archive.add(Conversation("text", "undated", [say("user", "saucer in an undated note")]), dated=False)
    searcher = archive.searcher("Asia/Tokyo")
    dates = {hit.quote: (hit.date, hit.at) for hit in searcher.search("saucer").hits if "saucer" in hit.quote}
    assert dates == {
        "saucer, naive": ("2022-08-01", "2022-08-01T23:30:00"),
        "saucer without a time": ("2022-08-01", None),
        "saucer in an undated note": (None, None),
    }
    found = searcher.search("saucer", since=date(2022, 8, 1), until=date(2022, 8, 1)).hits
    assert {hit.quote for hit in found} == {"saucer, naive", "saucer without a time"}
    assert "saucer in an undated note" not in {
        hit.quote for hit in searcher.search("saucer", since=date(2010, 1, 1)).hits
    }


def test_an_attachment_is_quoted_for_its_own_text(archive: Archive) -> None:
    letter = Attachment(name="letter.pdf", text="The saucer is to be returned by Tuesday.")
    archive.add(Conversation("claude", "post", [say("user", "see the letter", attachment=[letter])]))
    hit = archive.searcher().search("saucer returned").hits[0]
    assert (hit.conversation_id, hit.message_index) == ("post", 0)
    assert hit.quote == "The saucer is to be returned by Tuesday."


def test_hits_grouped_for_people(archive: Archive) -> None:
    result = archive.searcher().search("lantern kettle 协议")
    groups = result.by_conversation()
    assert [hit for group in groups for hit in group.hits] != []
    assert sum(len(group.hits) for group in groups) == len(result.hits)
    assert len({group.conversation_id for group in groups}) == len(groups)
    best = [group.hits[0].score for group in groups]
    assert best == sorted(best, reverse=True)


def test_what_says_nearly_the_same_is_folded_for_people_only(archive: Archive) -> None:
    for name, text in (("copy", "Which lantern did we buy for the terrace?"), ("other", "A lantern in the fog.")):
        archive.add(Conversation("claude", name, [say("user", text, created_at=at("2024-04-01T08:00:00"))], title=name))
    result = archive.searcher().search("lantern terrace")
    assert {found.conversation_id for found in result.by_conversation()} >= {"lamps", "copy", "other"}
    folded = {found.conversation_id: [other.conversation_id for other in found.alike] for found in result.folded()}
    assert sorted([*folded, *(name for names in folded.values() for name in names)]) == sorted(
        found.conversation_id for found in result.by_conversation()
    )
    assert folded.get("lamps") == ["copy"] or folded.get("copy") == ["lamps"]
    assert folded["other"] == []


def test_what_was_said_lately_comes_first_on_request(archive: Archive) -> None:
    for name, when in (("old", "2020-01-01T08:00:00"), ("new", "2024-05-01T08:00:00")):
        text = "The zither is out of tune." if name == "old" else "The zither, out of tune."
        archive.add(Conversation("claude", name, [say("user", text, created_at=at(when))], title="Zither"))
    recent = archive.searcher().search("zither tune", recent=date(2024, 5, 2)).hits
    assert [hit.conversation_id for hit in recent[:2]] == ["new", "old"]
    long_after = archive.searcher().search("zither tune", recent=date(2044, 5, 2)).hits
    plain = archive.searcher().search("zither tune").hits
    assert [hit.conversation_id for hit in long_after] == [hit.conversation_id for hit in plain]


def test_who_is_named_in_a_question_is_heard_first(archive: Archive) -> None:
    chat = [
        say("user", "A picture of the harbour.", speaker=name, created_at=at(f"2024-06-0{day}T08:00:00"))
        for day, name in ((1, "Marta"), (2, "Jonas"))
    ]
    for place, message in enumerate(chat):
        archive.add(Conversation("whatsapp", f"chat{place}", [message], title="Chat"))
    for name in ("Marta", "Jonas"):
        hits = archive.searcher().search(f"Which picture did {name} paint of the harbour?").hits
        assert hits[0].speaker == name


def test_the_messages_around_a_hit(archive: Archive) -> None:
    searcher = archive.searcher()
    hit = next(hit for hit in searcher.search("kettle").hits if hit.message_index == 2)
    around = neighbours(searcher, [hit], 1)[place_of(hit)]
    assert [one["message_index"] for one in around] == [1, 3]
    assert around[1]["text"] == "The kettle was a present."


def test_the_page_is_the_ledgers(archive: Archive) -> None:
    page = "conversations/chatgpt/2024/2024-03-01-terrace-00000000.md"
    ledger = Ledger(archive.home / "ledger.sqlite")
    ledger.write(
        "INSERT INTO conversations (provider, conversation_id, day, dated, first_seen_day, input, messages,"
        " page) VALUES ('chatgpt', 'lamps', '2024-03-01', 1, '2024-03-01', '', 4, ?)",
        (page,),
    )
    ledger.close()
    hits = archive.searcher().search("lantern 协议").hits
    assert {hit.page for hit in hits if hit.conversation_id == "lamps"} == {page}
    assert {hit.page for hit in hits if hit.conversation_id != "lamps"} == {""}


# --- what is missing, damaged or changing -----------------------------------------------------------------------------


def test_an_empty_archive_says_so(tmp_path: Path) -> None:
    result = Archive(tmp_path).searcher().search("lantern")
    assert (result.verdict, result.hits) == ("none", [])
    assert "nothing" in result.tried
    assert list(tmp_path.iterdir()) == []  # looking makes nothing


def test_without_vectors_words_remain(archive: Archive) -> None:
    for path in (archive.home / "lake/clean/vectors").iterdir():
        path.unlink()
    searcher = Searcher(archive.home, Settings(home=archive.home), lambda _: pytest.fail("no model is needed"))
    result = searcher.search("copper lantern")
    assert places(result)[0] == ("lamps", 1)
    assert result.hits[0].dense is None
    assert "not by meaning" in result.tried


def test_without_an_index_meaning_remains(archive: Archive) -> None:
    (archive.home / "lexical" / "recipe").write_text("another")
    result = archive.searcher().search("灯笼")
    assert places(result)[0][0] == "lamps"
    assert "not by words" in result.tried


def test_without_a_model_or_with_another_words_remain(archive: Archive) -> None:
    def broken(_: Any) -> Any:
        raise EmbeddingError("no wheel for this system")

    class Other(BagOfTerms):
        key = "other@000000000000"

    settings = Settings(home=archive.home)
    for load, why in ((broken, "no wheel"), (lambda _: Other(), "another model")):
        result = Searcher(archive.home, settings, load).search("copper lantern")
        assert places(result)[0] == ("lamps", 1)
        assert why in result.tried


def test_rows_without_a_partner_are_left_out(archive: Archive) -> None:
    (archive.home / "lake/clean/messages/2023-05.parquet").unlink()
    (archive.home / "lake/clean/drawers/2024-03.parquet").unlink()
    result = archive.searcher().search("竞业 lantern")
    assert {hit.conversation_id for hit in result.hits} >= {"lamps"}
    assert "竞业" not in {hit.conversation_id for hit in result.hits}


def test_a_damaged_month_is_named_and_costs_only_itself(archive: Archive) -> None:
    (archive.home / "lake/clean/chunks/2023-05.parquet").write_bytes(b"PAR1 broken")
    result = archive.searcher().search("竞业 lantern")
    assert {hit.conversation_id for hit in result.hits} >= {"lamps"}
    assert "2023-05" in result.tried


def test_changes_are_seen_without_a_restart(archive: Archive) -> None:
    searcher = archive.searcher()
    assert searcher.search("saucer").verdict == "none"
    archive.add(
        Conversation("claude", "new", [say("user", "the saucer arrived", created_at=at("2024-03-02T09:00:00"))])
    )
    assert places(searcher.search("saucer"))[0] == ("new", 0)
    assert places(searcher.search("copper lantern"))[0] == ("lamps", 1)


# --- lines ------------------------------------------------------------------------------------------------------------


def test_the_line_protocol(archive: Archive) -> None:
    lines = [
        '{"id": "q1", "query": "copper lantern", "limit": 1}',
        "",
        "{broken secret",
        '{"id": 3}',
        '{"id": 4, "query": "竞业"}',
    ]
    lines += ['{"id": 5, "query": "x", "limit": 0}', '{"id": 6, "query": "x", "limit": true}']
    out = io.StringIO()
    assert search_lines(lines, out, archive.searcher()) == 4
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [answer["id"] for answer in answers] == ["q1", None, 3, 4, 5, 6]
    [hit] = answers[0]["hits"]
    wanted = {"provider", "conversation_id", "message_index", "score", "date", "page", "quote"}
    assert wanted <= set(hit)
    assert (hit["conversation_id"], hit["message_index"], answers[0]["verdict"]) == ("lamps", 1, "found")
    assert answers[3]["hits"][0]["quote"] == "竞业协议里写了几个月？"
    assert "secret" not in out.getvalue()


def test_a_hit_is_plain_data(archive: Archive) -> None:
    hit = archive.searcher().search("lantern").hits[0]
    assert json.loads(json.dumps(hit.as_json()))["seq"] == hit.seq
    assert replace(hit, score=0).quote == hit.quote


def test_days_are_looked_up_once_and_seen_when_they_change(archive: Archive) -> None:
    searcher = archive.searcher()
    only = {"since": date(2024, 7, 1), "until": date(2024, 7, 31)}
    assert [hit.message_index for hit in searcher.search("kettle", **only).hits] == [2, 3]
    late = [say("user", "A kettle from abroad.", created_at=at("2024-07-20T08:00:00"))]
    archive.add(Conversation("claude", "late", late, title="Late"))
    found = {hit.conversation_id for hit in searcher.search("kettle", **only).hits}
    assert found == {"lamps", "late"}
    archive.lake.path("clean/messages", "2024-07").write_bytes(b"no parquet")
    result = searcher.search("kettle", **only)
    assert {hit.conversation_id for hit in result.hits} == {"lamps"}
    assert "2024-07.parquet" in result.tried
