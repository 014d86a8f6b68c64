from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import telegram
from palace_pipeline.exports.base import Report
from palace_pipeline.model import Attachment, Citation, Conversation, to_record
from tests.exports.memory_member import MemoryMember, read, shown
from tests.exports.people_damage import ODD, dumped, places, retyped

READERS = [telegram.READER]
FILE = "result.json"


def message(number: int, text: Any = "hi", **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": "message",
        "date": f"2026-03-14T10:26:{number:02}",
        "date_unixtime": str(1773480360 + number),
        "from": "Teo",
        "from_id": "user200",
        "text": text,
        "text_entities": [],
        **more,
    }


def chat(number: int, *messages: Any, **more: Any) -> dict[str, Any]:
    return {"name": f"Chat {number}", "type": "private_group", "id": number, **more, "messages": list(messages)}


def full(*chats: Any, left: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {
        "about": "Here is the data you requested.",
        "personal_information": {"user_id": 1, "phone_number": "+49 0"},
        "contacts": {"about": "", "list": [{"first_name": "Someone", "phone_number": "+49 1"}]},
        "chats": {"about": "", "list": list(chats)},
        "left_chats": {"about": "", "list": list(left)},
    }


def parse(value: Any) -> tuple[list[Conversation], Report]:
    return read(READERS, {FILE: value}, FILE)


def only(*messages: Any, **more: Any) -> Conversation:
    conversations, _ = parse(chat(7, *messages, **more))
    assert len(conversations) == 1
    return conversations[0]


def reasons(report: Report) -> list[tuple[str, bool, int]]:
    return sorted((skip.reason, skip.expected, skip.count) for skip in report.skips)


def test_a_single_chat() -> None:
    conversation = only(message(1), message(2, "ho", **{"from": "Inès", "from_id": "user100"}))
    assert conversation.key == ("telegram", "7")
    assert (conversation.title, conversation.project, conversation.order) == ("Chat 7", "Chat 7", "time")
    assert shown(conversation) == [("user", "Teo", "hi"), ("user", "Inès", "ho")]
    first = conversation.messages[0]
    assert (first.message_id, first.local_time) == ("1", None)
    assert first.created_at == datetime(2026, 3, 14, 9, 26, 1, tzinfo=UTC)


def test_all_chats_of_a_full_export_and_nothing_of_the_account() -> None:
    conversations, report = parse(full(chat(1, message(1)), chat(2), chat(3, message(2)), left=(chat(4, message(3)),)))
    assert [c.conversation_id for c in conversations] == ["1", "3", "4"]
    assert reasons(report) == [
        ("account data of a full export (contacts, sessions): not read", True, 1),
        ("empty conversation", True, 1),
    ]
    assert not any("+49" in to_record(c).decode() for c in conversations)


def test_a_full_export_whose_chats_come_late_is_known_by_its_beginning() -> None:
    value = full(chat(1, message(1)))
    value["contacts"]["list"] *= 30_000
    conversations, _ = parse(value)
    assert [c.conversation_id for c in conversations] == ["1"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", "plain"),
        (
            ["a ", {"type": "bold", "text": "b"}, "", {"type": "custom_emoji", "text": "🙂", "document_id": "x"}],
            "a b🙂",
        ),
        ("line\r\nnext\0", "line\nnext"),
        (["سلام hello ", {"type": "mention", "text": "@درود"}], "سلام hello @درود"),
    ],
)
def test_text_is_a_string_or_pieces(text: Any, said: str) -> None:
    assert only(message(1, text)).messages[0].text == said


def test_entities_are_the_text_where_there_is_no_other() -> None:
    entities = [{"type": "plain", "text": "see "}, {"type": "text_link", "text": "here", "href": "https://a.example/x"}]
    for text in ("", [], None):
        said = only(message(1, text, text_entities=entities)).messages[0]
        assert said.text == "see here"
        assert said.citations == [Citation("https://a.example/x", "here")]
    # Where both say the same, it is said once.
    said = only(message(1, ["see ", entities[1]], text_entities=entities)).messages[0]
    assert (said.text, len(said.citations)) == ("see here", 1)


def test_names_of_deleted_accounts_channels_and_programs() -> None:
    deleted = only(message(1, **{"from": None})).messages[0]
    assert deleted.speaker == "user200"
    nobody = message(1)
    del nobody["from"], nobody["from_id"]
    assert only(nobody, message(2)).messages[0].speaker is None
    bot = chat(7, message(1, **{"from": "Helper", "from_id": "user7"}), message(2), type="bot_chat")
    assert shown(parse(bot)[0][0]) == [("bot", "Helper", "hi"), ("user", "Teo", "hi")]


def test_replies_edits_and_naive_times() -> None:
    first = message(1, reply_to_message_id=5, edited="2026-03-14T11:00:00", edited_unixtime="1773482400")
    old = message(2)
    del old["date_unixtime"]
    said = only(first, old).messages
    assert (said[0].parent_id, said[0].edited_at) == ("5", datetime(2026, 3, 14, 10, 0, tzinfo=UTC))
    assert (said[1].created_at, said[1].local_time) == (None, "2026-03-14T10:26:02")
    assert only(message(1, edited="1970-01-01T01:00:00", edited_unixtime="0")).messages[0].edited_at is None


@pytest.mark.parametrize(
    ("media", "kind", "attachment"),
    [
        ({"photo": "photos/a.jpg", "photo_file_size": 9}, "image", Attachment("photos/a.jpg", "image", 9)),
        (
            {"file": "voice/a.ogg", "media_type": "voice_message", "mime_type": "audio/ogg", "file_size": 5},
            "audio",
            Attachment("voice/a.ogg", "audio/ogg", 5),
        ),
        (
            {"file": "stickers/s.webp", "media_type": "sticker", "sticker_emoji": "👍"},
            "image",
            Attachment("stickers/s.webp", "sticker", text="👍"),
        ),
        (
            {
                "file": "(File not included. Change data exporting settings to download.)",
                "file_name": "plan.pdf",
                "mime_type": "application/pdf",
            },
            "attachment",
            Attachment("plan.pdf", "application/pdf"),
        ),
        (
            {"file": "(File exceeds maximum size. Change data exporting settings to download.)"},
            "attachment",
            Attachment(),
        ),
        (
            {"contact_information": {"first_name": "In", "last_name": "Ès", "phone_number": "12"}},
            "attachment",
            Attachment(type="contact", text="In Ès 12"),
        ),
        (
            {"location_information": {"latitude": 1.5, "longitude": 2}, "place_name": "Pier"},
            "attachment",
            Attachment(type="location", text="Pier\n1.5, 2"),
        ),
    ],
)
def test_media_are_attachments(media: dict[str, Any], kind: str, attachment: Attachment) -> None:
    alone = only(message(1, "", **media)).messages[0]
    assert (alone.role, alone.text, alone.kind, alone.attachment) == ("user", "", kind, [attachment])
    beside = only(message(1, "see", **media)).messages[0]
    assert (beside.text, beside.kind, beside.attachment) == ("see", "text", [attachment])


def test_polls_and_lists_are_what_was_said() -> None:
    poll = {"question": "When?", "closed": False, "answers": [{"text": "Now", "voters": 1}, {"text": "Later"}]}
    assert only(message(1, "", poll=poll)).messages[0].text == "When?\n- Now\n- Later"
    todo = {"title": [{"type": "plain", "text": "Pack"}], "answers": [{"id": 1, "text": [{"text": "rope"}]}]}
    assert only(message(1, "", todo_list=todo)).messages[0].text == "Pack\n- rope"


def test_what_telegram_writes_itself_is_counted_and_not_said() -> None:
    service = {"id": 1, "type": "service", "date_unixtime": "1773480360", "actor": "T", "action": "pin_message"}
    conversations, report = parse(
        chat(
            7, service, {**service, "action": "new_thing"}, {"id": 3, "type": "unsupported"}, message(4), message(5, "")
        )
    )
    assert [m.message_id for m in conversations[0].messages] == ["4"]
    assert reasons(report) == [
        ("empty message", True, 1),
        ("message of a kind that the exporting Telegram did not know", False, 1),
        ("service record", True, 2),
    ]
    assert report.unknown == {"action:new_thing": 1}


def test_saved_messages_have_no_name() -> None:
    saved = chat(100, message(1), type="saved_messages")
    del saved["name"]
    [conversation], _ = parse(saved)
    assert (conversation.conversation_id, conversation.title) == ("100", None)


def test_telegrams_own_escapes_are_read() -> None:
    data = json.dumps(chat(7, message(1, "bell X end"), message(2, "a\\x1Fb"))).replace("bell X", "bell \\x07").encode()
    conversations, report = read(READERS, {FILE: data}, FILE)
    assert [m.text for m in conversations[0].messages] == ["bell \x07 end", "a\\x1Fb"]
    assert report.skips == []


def test_of_two_records_of_one_message_the_later_counts() -> None:
    assert [m.text for m in only(message(1, "old"), message(2), message(1, "new")).messages] == ["new", "hi"]


def test_a_chat_without_an_id_gets_one_that_stays_when_it_grows() -> None:
    short, grown = chat(7, message(1)), chat(7, message(1), message(2))
    del short["id"], grown["id"]
    assert parse(short)[0][0].key == parse(grown)[0][0].key


# --- damage -----------------------------------------------------------------------------------------------------------

SAMPLE = full(
    chat(1, message(1, ["a ", {"type": "link", "text": "b"}]), message(2, "", photo="p.jpg")),
    chat(2, message(3, poll={"question": "q", "answers": [{"text": "x"}]}, reply_to_message_id=1)),
    chat(3, message(4, edited_unixtime="1773480400", contact_information={"first_name": "a"})),
)
PLACES = [place for place in places(SAMPLE) if place[:2] == ("chats", "list")]


@given(st.sampled_from(PLACES), st.sampled_from(ODD))
@settings(max_examples=120, deadline=None)
def test_a_wrong_type_anywhere_leaves_the_other_chats_unchanged(place: tuple[Any, ...], odd: Any) -> None:
    whole = {c.conversation_id: to_record(c) for c in parse(SAMPLE)[0]}
    conversations, report = parse(retyped(SAMPLE, place, odd))
    got = {c.conversation_id: to_record(c) for c in conversations}
    assert not any(skip.reason == "damaged file" for skip in report.skips)
    if len(place) > 2:
        del whole[str(place[2] + 1)]
        assert whole.items() <= got.items()


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_cut_file_gives_every_message_before_the_cut(data: st.DataObject) -> None:
    raw = dumped(SAMPLE)
    at = data.draw(st.integers(raw.index(b'"messages"') + 30, len(raw) - 1))
    conversations, report = read(READERS, {FILE: raw[:at]}, FILE)
    said = {m.message_id for c in conversations for m in c.messages}
    ends = {
        str(n): raw.index(dumped(m)) + len(dumped(m))
        for c in SAMPLE["chats"]["list"]
        for m in c["messages"]
        for n in [m["id"]]
    }
    assert said == {number for number, end in ends.items() if end <= at}
    assert any(not skip.expected for skip in report.skips)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b'"id": 1, "type": "message"', b'"id": 1, "type": "message'),  # a lost quote
        (b'"photo": "p.jpg"}', b'"photo": "p.jpg"'),  # a lost bracket
        (b'"photo": "p.jpg"}]', b'"photo": "p.jpg"}'),  # the end of a list
        (b'"photo": "p.jpg"}]}', b'"photo": "p.jpg"}]'),  # the end of a chat
        (b'"photo": "p.jpg"}', b'"photo": "p.jpg"}}'),
    ],
)
def test_a_lost_mark_costs_its_message_and_no_other_chat(good: bytes, bad: bytes) -> None:
    raw = dumped(SAMPLE)
    assert raw.count(good) == 1
    whole = {c.conversation_id: to_record(c) for c in parse(SAMPLE)[0]}
    conversations, _ = read(READERS, {FILE: raw.replace(good, bad)}, FILE)
    got = {c.conversation_id: to_record(c) for c in conversations}
    assert {"2", "3"} <= set(got)
    assert got["2"] == whole["2"]
    assert got["3"] == whole["3"]
    assert all(m.message_id in ("1", "2") for c in conversations if c.conversation_id == "1" for m in c.messages)


def test_odd_chats_and_messages_are_counted() -> None:
    conversations, report = parse(
        full(None, 5, ["x"], {"id": 9}, chat(1, None, "x", [], message(1), {"id": 2, "type": "message"}))
    )
    assert [c.conversation_id for c in conversations] == ["1"]
    assert reasons(report) == [
        ("account data of a full export (contacts, sessions): not read", True, 1),
        ("chat without a list of messages", False, 1),
        ("message without content", False, 1),
        ("not a chat", False, 1),
        ("not a chat", False, 1),
        ("not a message", False, 1),
        ("not a message", False, 1),
        ("null in place of a chat", True, 1),
        ("null in place of a message", True, 1),
    ]


def test_an_export_of_another_form_is_said() -> None:
    value = full(chat(1, message(1)))
    value["chats"] = {"chats": value["chats"]}
    conversations, report = parse(value)
    assert conversations == []
    assert ("no list of chats", False, 1) in reasons(report)


def test_reading_twice_gives_the_same() -> None:
    assert [to_record(c) for c in parse(SAMPLE)[0]] == [to_record(c) for c in parse(SAMPLE)[0]]


def test_a_chat_is_given_before_the_next_one_is_read() -> None:
    """The memory is that of one chat: the first comes out before the end of the file is there."""
    many = dumped(full(*(chat(n, *(message(k, "x" * 2000) for k in range(1, 50))) for n in range(1, 60))))
    taken = 0

    class Stream(MemoryMember):
        def open(self):
            inner = super().open()

            class Counting:
                def read(self, size=-1, /):
                    nonlocal taken
                    piece = inner.read(size)
                    taken += len(piece)
                    return piece

                def __enter__(self):
                    return self

                def __exit__(self, *_):
                    return None

            return Counting()

    found = telegram.READER.read(Stream({FILE: many}, FILE), Report(FILE))
    assert next(found).conversation_id == "1"
    assert taken < len(many) // 2
