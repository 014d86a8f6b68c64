"""When was something first talked about: against answers worked out by hand, and by looking at every message."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace_pipeline.model import VECTORS, Attachment, Conversation, frame
from palace_pipeline.search.asking import topic_of
from palace_pipeline.search.first import FirstMention, first_mention
from palace_pipeline.search.reading import day_view
from palace_pipeline.search.similar import duplicates_of
from palace_pipeline.search.timeline import timeline
from tests.search.small_archive import Archive, at, say


def first(archive: Archive, query: str, **only: Any) -> FirstMention:
    return first_mention(archive.searcher(), query, **only)


def place(found: FirstMention) -> tuple[str, int | None, str] | None:
    return (
        None
        if found.first is None
        else (found.first.hit.conversation_id, found.first.hit.message_index, found.first.how)
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("lantern", ("lamps", 0, "exact")),
        ("When did I first talk about the lantern?", ("lamps", 0, "exact")),
        ("copper lanterns", ("lamps", 1, "words")),  # another form of the word
        ("the kettle", ("lamps", 2, "exact")),
        ("竞业协议", ("竞业", 0, "exact")),
        ("競業協議", ("竞业", 0, "exact")),  # traditional asks for simplified
        ("我什么时候第一次聊到竞业协议？", ("竞业", 0, "exact")),
        ("协议竞业", ("竞业", 0, "words")),  # the pair on the border of two words stands nowhere
        ("lantern kettle", ("lamps", 2, "meaning")),  # never together: no more than near
        ("lantern terrace euro", ("lamps", 0, "together")),  # of one exchange, its title with it
        ("lantren", ("lamps", 0, "related")),  # a slip of the pen
        ("rpt_slot", ("agent", 0, "exact")),
        ("saffron", None),  # only tools, thinking and injected context speak of it
        ("zeppelin", None),
    ],
)
def test_the_first_mention_and_how_it_was_found(archive: Archive, query: str, expected: Any) -> None:
    assert place(first(archive, query)) == expected


def test_the_answer_is_dated_and_quoted_and_says_what_was_looked_through(archive: Archive) -> None:
    found = first(archive, "kettle")
    assert found.verdict == "found"
    assert found.first is not None
    hit = found.first.hit
    assert (hit.date, hit.at, hit.role) == ("2024-07-09", "2024-07-09T08:00:00Z", "user")
    assert hit.quote == "And the kettle?"
    assert [hit.quote[a:b] for a, b in hit.marks] == ["kettle"]
    looked = found.searched
    assert (looked.messages, looked.conversations) == (8, 3)
    assert (looked.since, looked.until) == (date(2023, 5, 5), date(2024, 7, 9))
    assert looked.before == 6  # two of the agreement, two of the lamps, two of the agent
    assert looked.complete


def test_another_language_is_found_by_meaning_and_is_no_more_than_weak(archive: Archive) -> None:
    found = first(archive, "фонарь")
    assert found.verdict == "weak"
    assert place(found) == ("lamps", 0, "meaning")


def test_what_comes_earlier_in_other_ways_is_told(archive: Archive) -> None:
    lanterns = [say("user", "The lanternman in the harbour.", created_at=at("2023-01-01T08:00:00"))]
    archive.add(Conversation("chatgpt", "old", lanterns, title="Harbour"))
    found = first(archive, "lantern")
    assert place(found) == ("lamps", 0, "exact")
    assert [(one.how, one.hit.conversation_id, one.hit.date) for one in found.earlier] == [
        ("related", "old", "2023-01-01")
    ]
    quote, marks = found.earlier[0].hit.quote, found.earlier[0].hit.marks
    assert [quote[a:b] for a, b in marks] == ["lanternman"]


def test_filters_and_roles(archive: Archive) -> None:
    assert place(first(archive, "lantern", role="assistant")) == ("lamps", 1, "exact")
    assert first(archive, "lantern", provider="claude").verdict == "none"
    assert place(first(archive, "kettle", since=date(2024, 7, 10))) is None
    assert place(first(archive, "lantern", until=date(2024, 3, 1))) == ("lamps", 0, "exact")


def test_the_day_is_that_of_the_display_zone(archive: Archive) -> None:
    found = first_mention(archive.searcher("Asia/Shanghai"), "lantern")
    assert found.first is not None
    assert found.first.hit.date == "2024-03-02"
    assert found.searched.before == 2


def test_a_message_without_a_date_is_shown_apart(archive: Archive) -> None:
    archive.add(Conversation("markdown", "note", [say("user", "A lantern, undated.")], title="Note"), dated=False)
    found = first(archive, "lantern")
    assert place(found) == ("lamps", 0, "exact")
    assert [one.hit.conversation_id for one in found.undated] == ["note"]
    assert found.searched.undated == 1
    alone = first(archive, "undated")
    assert (alone.first, alone.verdict, len(alone.undated)) == (None, "found", 1)


def test_naive_times_stand_between_instants(archive: Archive) -> None:
    archive.add(
        Conversation("whatsapp", "chat", [say("user", "a lantern!", local_time="2024-03-01T21:00:00")], title="Chat")
    )
    assert place(first(archive, "lantern")) == ("chat", 0, "exact")


def test_a_message_may_be_much_later_than_its_conversation(archive: Archive) -> None:
    """The conversation that began first is not the one that spoke of it first."""
    late = [
        say("user", "hello", created_at=at("2020-01-01T08:00:00")),
        say("user", "a zither", created_at=at("2025-01-01T08:00:00")),
    ]
    soon = [say("user", "the zither again", created_at=at("2024-12-31T08:00:00"))]
    archive.add(Conversation("chatgpt", "late", late, title="Old"))
    archive.add(Conversation("claude", "soon", soon, title="New"))
    assert place(first(archive, "zither")) == ("soon", 0, "exact")


@pytest.mark.parametrize("query", ["", "?!", "\ud800", "的", "what is the", "a" * 3000, "when", "什么时候"])
def test_odd_questions_do_not_crash(archive: Archive, query: str) -> None:
    assert first(archive, query).verdict in ("none", "weak", "found")
    assert timeline(archive.searcher(), query).verdict in ("none", "weak", "found")


def test_what_cannot_be_looked_through_is_said(archive: Archive) -> None:
    month = archive.lake.path("clean/messages", "2024-05")
    month.write_bytes(b"no parquet")
    found = first(archive, "kettle")
    assert not found.searched.complete
    assert place(found) == ("lamps", 2, "exact")


def test_an_empty_archive_says_so(tmp_path: Path) -> None:
    found = first_mention(Archive(tmp_path).searcher(), "lantern")
    assert (found.first, found.verdict) == (None, "none")
    assert "nothing" in found.tried
    assert timeline(Archive(tmp_path).searcher(), "lantern").stations == ()


# --- against every message --------------------------------------------------------------------------------------------

WORDS = ["amber", "basil", "cedar", "dune"]
messages = st.lists(
    st.tuples(
        st.integers(0, 4),  # conversation
        st.integers(0, 400),  # day
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        st.sampled_from(["user", "assistant"]),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages, st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True))
def test_nothing_earlier_is_missed(tmp_path_factory: pytest.TempPathFactory, said: list[Any], asked: list[str]) -> None:
    archive = Archive(tmp_path_factory.mktemp("home"))
    start = datetime(2024, 1, 1, 8, tzinfo=UTC)
    chats: dict[int, list[Any]] = {}
    for number, (chat, day, words, role) in enumerate(said):
        when = start + timedelta(days=day, minutes=number)
        chats.setdefault(chat, []).append(say(role, " ".join(words) + f" n{number}", created_at=when))
    for chat, these in chats.items():
        archive.add(Conversation("chatgpt", f"c{chat}", these, title=""))
    holding = [
        (message.created_at, message.text)
        for these in chats.values()
        for message in these
        if set(asked) <= set(message.text.split())
    ]
    found = first(archive, " ".join(asked))
    line = timeline(archive.searcher(), " ".join(asked))
    if not holding:
        assert found.first is None or found.first.how not in ("exact", "words")
        return
    assert found.first is not None
    assert found.first.hit.quote == min(holding)[1]
    stations = [one.first_date for one in line.stations]
    assert stations == sorted(stations, key=str)
    assert sum(line.months.values()) >= len(holding)


# --- timeline ---------------------------------------------------------------------------------------------------------


def test_a_timeline_is_by_conversation_oldest_first(archive: Archive) -> None:
    later = [
        say("user", "The lantern broke.", created_at=at("2025-02-01T08:00:00")),
        say("assistant", "Which lantern?", created_at=at("2025-03-01T08:00:00")),
    ]
    archive.add(Conversation("claude", "broken", later, title="Broken"))
    found = timeline(archive.searcher(), "lantern")
    assert [(one.conversation_id, one.first_date, one.last_date, one.mentions) for one in found.stations] == [
        ("lamps", "2024-03-01", "2024-03-01", 2),
        ("broken", "2025-02-01", "2025-03-01", 2),
    ]
    assert found.stations[1].mention.hit.quote == "The lantern broke."
    assert found.months == {"2024-03": 2, "2025-02": 1, "2025-03": 1}
    shorter = timeline(archive.searcher(), "lantern", limit=1)
    assert (len(shorter.stations), shorter.left_out) == (1, 1)


# --- the topic of a question ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("When did I first discuss the PostgreSQL migration?", "the PostgreSQL migration"),
        ("我们是什么时候开始讨论数据库迁移的", "数据库迁移"),
        ("Когда мы впервые обсуждали переезд?", "переезд"),
        ("Wann habe ich zum ersten Mal über Rust gesprochen?", "Rust"),
        ("¿Cuándo hablamos por primera vez de la hipoteca?", "la hipoteca"),
        ("PostgreSQL", "PostgreSQL"),
        ("first aid", "first aid"),  # no question for a time
        ("when", "when"),
        ('when did we talk about "when the kettle did boil"', '"when the kettle did boil"'),
        ("When did I first talk about first aid?", "first aid"),
        ("when did we first discuss scikit-learn?", "scikit-learn"),
        ("When did I first mention start-ups?", "start-ups"),
        ("我什么时候第一次聊到聊天机器人？", "聊天机器人"),
        ("我什么时候第一次聊到私有云", "私有云"),
        ("什么时候讨论过到期日", "到期日"),
        ("什么时候第一次提到期权", "期权"),
        ("我们什么时候讨论过自我介绍", "自我介绍"),
        ("いつも使うエディタ", "いつも使うエディタ"),
    ],
)
def test_the_topic_of_a_question(question: str, topic: str) -> None:
    assert topic_of(question) == topic


def test_an_answer_is_plain_data(archive: Archive) -> None:
    import json

    value = first(archive, "lantern").as_json()
    assert json.loads(json.dumps(value)) == json.loads(json.dumps(value))
    assert value["first"]["how"] == "exact"
    assert value["searched"]["since"] == "2023-05-05"
    assert replace(first(archive, "lantern"), first=None).as_json()["first"] is None


def test_only_what_lies_in_a_room_is_said_to_have_been_looked_through(archive: Archive) -> None:
    talk = [
        say("user", "A trombone for the parade.", created_at=at("2020-01-01T08:00:00")),
        say("user", "And a trombone for the attic.", created_at=at("2020-02-01T08:00:00")),
    ]
    archive.add(Conversation("chatgpt", "brass", talk, title="Brass"))
    drawers = archive.lake.read("clean/drawers", ["2020-01"])
    attic = pl.col("first_seq") == 1
    moved = drawers.join(
        archive.lake.read("clean/chunks", ["2020-01"]).select("drawer_id", "first_seq"), on="drawer_id"
    )
    moved = moved.with_columns(room=pl.when(attic).then(pl.lit("attic")).otherwise(pl.col("room")))
    archive.lake.replace("clean/drawers", "2020-01", [("chatgpt", "brass")], moved.select(drawers.columns))
    index = {row["drawer_id"]: row for row in moved.iter_rows(named=True)}
    assert len(index) == 2
    looked = first(archive, "parade", room="attic").searched
    assert (looked.messages, looked.conversations, looked.since) == (1, 1, date(2020, 2, 1))


def test_a_message_in_several_chunks_is_one_mention(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [Attachment("a.txt", text="The first ocarina."), Attachment("b.txt", text="The second ocarina.")]
    said = [say("user", "An ocarina, see below.", created_at=at("2020-01-01T08:00:00"), attachment=pieces)]
    archive.add(Conversation("chatgpt", "clay", said, title="Clay"))
    monkeypatch.setattr("palace_pipeline.search.mentions._TOGETHER", 1)  # each chunk in a batch of its own
    found = timeline(archive.searcher(), "ocarina")
    assert found.months == {"2020-01": 1}
    assert [one.mentions for one in found.stations] == [1]


def test_a_title_is_no_mention_of_a_message(archive: Archive) -> None:
    """Worked out by hand: of three exchanges under such a title one says the word, in both of its messages."""
    talk = [
        *(say("user", "How many fit?", created_at=at("2024-04-01T08:00:00")), say("assistant", "Twelve.")),
        say("user", "Is the ocarina heavy?", created_at=at("2024-05-02T08:00:00")),
        say("assistant", "An ocarina weighs little.", created_at=at("2024-05-02T08:01:00")),
        *(say("user", "And then?", created_at=at("2024-06-03T08:00:00")), say("assistant", "Nothing.")),
    ]
    archive.add(Conversation("chatgpt", "named", talk, title="Ocarina"))
    archive.add(
        Conversation(
            "chatgpt", "only", [say("user", "Shall we?", created_at=at("2024-07-04T08:00:00"))], title="Ocarina"
        )
    )
    found = timeline(archive.searcher(), "ocarina")
    told = [(one.conversation_id, one.mentions, one.first_date, one.last_date) for one in found.stations]
    assert told == [("named", 2, "2024-05-02", "2024-05-02"), ("only", 0, "2024-07-04", "2024-07-04")]
    assert (found.stations[0].mention.how, found.stations[1].mention.how) == ("exact", "beside")
    assert found.months == {"2024-05": 2}
    answer = first(archive, "ocarina")
    assert place(answer) == ("named", 2, "exact")
    assert [(one.how, one.hit.date) for one in answer.earlier] == [("beside", "2024-04-01")]


def test_a_conversation_without_a_title_is_called_by_what_was_asked_first(archive: Archive) -> None:
    talk = [
        say("user", "<injected>", hidden_reason="injected"),
        say("user", "Fix the bagpipe,\nplease. " + "It leaks. " * 20, created_at=at("2024-05-02T08:00:00")),
        say("assistant", "The ocarina is fixed.", created_at=at("2024-05-02T08:01:00")),
    ]
    archive.add(Conversation("claude-code", "agent2", talk))
    name = "Fix the bagpipe, please. It leaks. It leaks. It leaks. It leaks. It leaks. It l…"
    assert len(name) == 80
    found = first(archive, "ocarina").first
    assert found is not None
    assert (found.hit.title, found.hit.name) == ("", name)
    assert [one.name for one in timeline(archive.searcher(), "ocarina").stations] == [name]
    assert [
        one.name for one in archive.searcher().search("ocarina").by_conversation() if one.conversation_id == "agent2"
    ] == [name]
    (talk_of_day,) = day_view(archive.home, date(2024, 5, 2), UTC).conversations
    assert (talk_of_day.title, talk_of_day.name) == ("", name)
    (like,) = duplicates_of(archive.searcher(), "The ocarina is fixed.", bar=0.9).similar
    assert (like.title, like.name) == ("", name)


def test_a_timeline_that_reads_the_nearest_only_says_so(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palace_pipeline.search.timeline.MOST_CHUNKS", 1)
    for number in range(3):
        said = [say("user", f"A tuba, number {number}.", created_at=at(f"2020-0{number + 1}-01T08:00:00"))]
        archive.add(Conversation("chatgpt", f"tuba{number}", said, title="Tuba"))
    for month in ("2020-01", "2020-02"):  # these have no vectors
        archive.lake.replace("clean/vectors", month, [("chatgpt", f"tuba{int(month[-1]) - 1}")], frame([], VECTORS))
    found = timeline(archive.searcher(), "tuba")
    assert [one.conversation_id for one in found.stations] == ["tuba2"]
    assert found.missing == ("only 1 of 3 chunks were read, the nearest in meaning",)
