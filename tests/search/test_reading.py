"""One day across providers, one conversation around a message, and texts that are there already."""

from __future__ import annotations

from datetime import UTC, date
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from palace_pipeline.model import Conversation
from palace_pipeline.search.reading import PurgedError, day_view, thread
from palace_pipeline.search.similar import duplicates_of
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.named import NotOneError
from tests.search.small_archive import Archive, at, say


@pytest.fixture
def named(archive: Archive) -> Archive:
    """The archive with the rows of its ledger."""
    ledger = Ledger(archive.home / "ledger.sqlite")
    with ledger.transaction():
        for provider, name, day in (
            ("chatgpt", "lamps", "2024-03-01"),
            ("claude", "竞业", "2023-05-05"),
            ("claude-code", "agent", "2024-05-05"),
        ):
            ledger.write(
                "INSERT INTO conversations (provider, conversation_id, day, dated, first_seen_day, input, messages, page)"
                " VALUES (?, ?, ?, 1, ?, '', 4, ?)",
                (provider, name, day, day, f"conversations/{provider}/2024/{name}.md"),
            )
    ledger.close()
    return archive


def test_a_day_shows_all_providers_in_the_order_of_the_clock(archive: Archive) -> None:
    archive.add(
        Conversation("slack", "c1", [say("user", "early", created_at=at("2024-05-05T06:00:00"))], title="general")
    )
    found = day_view(archive.home, date(2024, 5, 5), UTC)
    assert [(talk.provider, [one.text for one in talk.messages], talk.total) for talk in found.conversations] == [
        ("slack", ["early"], 1),
        ("claude-code", ["raise rpt_slot to 12", "rpt_slot is 12 now."], 2),
    ]
    assert found.messages == {"user": 2, "assistant": 1}
    assert [one.clock for one in found.conversations[1].messages] == ["10:00", "10:02"]


def test_a_day_is_one_of_the_display_zone_and_only_its_messages_count(archive: Archive) -> None:
    shanghai = ZoneInfo("Asia/Shanghai")
    found = day_view(archive.home, date(2024, 3, 2), shanghai)
    assert [(t.conversation_id, len(t.messages), t.total, t.opening) for t in found.conversations] == [
        ("lamps", 2, 4, "Which lantern did we buy for the terrace?")
    ]
    assert day_view(archive.home, date(2024, 3, 1), shanghai).conversations == ()
    july = day_view(archive.home, date(2024, 7, 9), UTC)  # filed under the month of its first message
    assert [one.message_index for one in july.conversations[0].messages] == [2, 3]
    assert day_view(archive.home, date(2024, 7, 9), UTC, provider="claude").conversations == ()


def test_a_day_of_an_archive_that_is_empty_or_damaged(tmp_path: Path, archive: Archive) -> None:
    assert day_view(tmp_path / "none", date(2024, 5, 5), UTC).conversations == ()
    archive.lake.path("clean/messages", "2023-05").write_bytes(b"no parquet")
    found = day_view(archive.home, date(2024, 5, 5), UTC)
    assert len(found.conversations) == 1
    assert "2023-05.parquet" in found.unread[0]


@pytest.mark.parametrize("name", ["chatgpt:lamps", "lamps", "lam", "chatgpt:la"])
def test_a_conversation_by_its_names(named: Archive, name: str) -> None:
    talk = thread(named.home, name, UTC)
    assert (talk.provider, talk.conversation_id, talk.title, talk.total) == ("chatgpt", "lamps", "Terrace", 4)
    assert [one.message_index for one in talk.messages] == [0, 1, 2, 3]
    assert talk.messages[0].at == "2024-03-01T22:30:00Z"


def test_around_a_message(named: Archive) -> None:
    assert [m.message_index for m in thread(named.home, "lamps", UTC, around=2, context=1).messages] == [1, 2, 3]
    assert [m.message_index for m in thread(named.home, "lamps", UTC, around=0, context=0).messages] == [0]
    with pytest.raises(IndexError, match="0 to 3"):
        thread(named.home, "lamps", UTC, around=4)


def test_what_people_do_not_see_is_shown_on_request(named: Archive) -> None:
    assert [one.role for one in thread(named.home, "agent", UTC).messages] == ["user", "assistant"]
    everything = thread(named.home, "agent", UTC, everything=True).messages
    assert [(one.role, one.message_index) for one in everything] == [
        ("user", None),
        ("user", 0),
        ("thinking", None),
        ("tool", None),
        ("assistant", None),
        ("assistant", 1),
    ]


def test_a_hit_leads_to_its_thread(named: Archive) -> None:
    (hit, *_) = named.searcher().search("kettle").hits
    talk = thread(named.home, hit.drawer_id, UTC, context=0)
    assert (talk.conversation_id, [one.text for one in talk.messages]) == ("lamps", ["And the kettle?"])


def test_no_such_conversation(named: Archive, tmp_path: Path) -> None:
    with pytest.raises(NotOneError, match="nothing-like-it"):
        thread(named.home, "nothing-like-it", UTC)
    with pytest.raises(NotOneError, match="empty"):
        thread(tmp_path / "none", "x", UTC)


def test_texts_that_are_there_already(archive: Archive) -> None:
    text = "Which lantern did we buy for the terrace?\n\nThe copper lantern from Fennel & Daughters, 48 euro."
    found = duplicates_of(archive.searcher(), text)
    assert found.duplicate
    assert [(one.conversation_id, one.similarity) for one in found.similar] == [("lamps", 1.0)]
    other = duplicates_of(archive.searcher(), "A quite different sentence about harbours.")
    assert (other.duplicate, other.similar) == (False, ())
    assert not duplicates_of(archive.searcher(), "").duplicate
    assert duplicates_of(archive.searcher(), text, provider="claude").similar == ()


def test_a_purged_conversation_is_said_to_be_gone(named: Archive) -> None:
    ledger = Ledger(named.home / "ledger.sqlite")
    with ledger.transaction():
        ledger.write("UPDATE conversations SET status = 'purged' WHERE conversation_id = 'lamps'")
    ledger.close()
    with pytest.raises(PurgedError, match="chatgpt:lamps was purged"):
        thread(named.home, "lam", UTC)


def test_the_day_of_a_text_that_is_there_already_is_that_of_its_messages(archive: Archive) -> None:
    found = duplicates_of(archive.searcher("Asia/Shanghai"), "And the kettle?", bar=0.3)
    # the conversation began in March
    assert (found.similar[0].conversation_id, found.similar[0].date) == ("lamps", "2024-07-09")
    archive.add(Conversation("markdown", "note", [say("user", "Salt the pretzel water.")], title="Note"), dated=False)
    found = duplicates_of(archive.searcher(), "Salt the pretzel water.")
    assert [(one.conversation_id, one.date) for one in found.similar] == [("note", None)]


def test_a_conversation_that_was_resumed_is_shown_in_the_one_that_holds_it(named: Archive) -> None:
    ledger = Ledger(named.home / "ledger.sqlite")
    with ledger.transaction():
        for name, heir in (("older", "old"), ("old", "lamps")):
            ledger.write(
                "INSERT INTO conversations (provider, conversation_id, day, dated, first_seen_day, input, messages, superseded_by)"
                " VALUES ('chatgpt', ?, '2024-01-01', 1, '2024-01-01', '', 2, ?)",
                (name, heir),
            )
    ledger.close()
    found = thread(named.home, "chatgpt:older", UTC)
    assert (found.conversation_id, found.instead_of) == ("lamps", "chatgpt:older")
    assert thread(named.home, "chatgpt:lamps", UTC).instead_of is None


def test_without_a_ledger_an_archive_is_not_called_empty(archive: Archive) -> None:
    (archive.home / "ledger.sqlite").unlink()
    with pytest.raises(NotOneError, match="ledger"):
        thread(archive.home, "lamps", UTC)
    drawer = archive.searcher().search("kettle").hits[0].drawer_id
    assert thread(archive.home, drawer, UTC).conversation_id == "lamps"


def test_a_message_that_is_there_already_is_found_within_its_exchange(archive: Archive) -> None:
    question = "And the kettle?"
    answer = "The kettle was a present of an aunt who collects copper, porcelain, old maps and rare stamps."
    said = [
        say("user", question, created_at=at("2019-07-09T08:00:00")),
        say("assistant", answer, created_at=at("2019-07-10T08:01:00")),
    ]
    archive.add(Conversation("claude", "aunt", said, title="Aunt"))
    found = duplicates_of(archive.searcher(), answer)
    assert [(one.conversation_id, one.message_index, one.similarity) for one in found.similar] == [("aunt", 1, 1.0)]
    assert (found.similar[0].quote, found.similar[0].date) == (answer, "2019-07-10")
    asked = duplicates_of(archive.searcher(), question)
    assert [(one.conversation_id, one.message_index) for one in asked.similar] == [("aunt", 0), ("lamps", 2)]
    assert [one.conversation_id for one in duplicates_of(archive.searcher(), question, limit=1).similar] == ["aunt"]
    assert not duplicates_of(archive.searcher(), "And the kettle of somebody else whom nobody knows?").duplicate
