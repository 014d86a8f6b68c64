from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import discord
from palace_pipeline.exports.base import Report
from palace_pipeline.model import Attachment, Citation, Conversation, to_record
from palace_pipeline.transcripts.merge import merge
from tests.exports.memory_member import MemoryMember, read, shown
from tests.exports.people_damage import ODD, dumped, places, retyped

READERS = [discord.READER]
FILE = "Harbour - Text - general [300].json"


def author(name: str = "Inès", **more: Any) -> dict[str, Any]:
    return {"id": "100", "name": name.lower(), "discriminator": "0000", "nickname": name, "isBot": False, **more}


def message(number: int, content: Any = "hi", **more: Any) -> dict[str, Any]:
    return {
        "id": str(number),
        "type": "Default",
        "timestamp": f"2026-03-14T10:26:{number:02}.2500000+01:00",
        "timestampEdited": None,
        "callEndedTimestamp": None,
        "isPinned": False,
        "content": content,
        "author": author(),
        "attachments": [],
        "embeds": [],
        "stickers": [],
        "reactions": [],
        "mentions": [],
        **more,
    }


def channel(*messages: Any, **more: Any) -> dict[str, Any]:
    return {
        "guild": {"id": "1", "name": "Harbour", "iconUrl": "x"},
        "channel": {"id": "300", "type": "GuildTextChat", "category": "Text", "name": "general", "topic": None},
        "dateRange": {"after": None, "before": None},
        "exportedAt": "2026-03-15T10:00:00+01:00",
        **more,
        "messages": list(messages),
        "messageCount": len(messages),
    }


def parse(value: Any) -> tuple[list[Conversation], Report]:
    return read(READERS, {FILE: value}, FILE)


def only(*messages: Any, **more: Any) -> Conversation:
    conversations, _ = parse(channel(*messages, **more))
    assert len(conversations) == 1
    return conversations[0]


def reasons(report: Report) -> list[tuple[str, bool, int]]:
    return sorted((skip.reason, skip.expected, skip.count) for skip in report.skips)


def test_a_channel_is_a_conversation() -> None:
    conversation = only(message(1), message(2, "ho", author=author("Teo")))
    assert conversation.key == ("discord", "300")
    assert (conversation.title, conversation.project, conversation.order) == ("general", "Harbour", "time")
    assert shown(conversation) == [("user", "Inès", "hi"), ("user", "Teo", "ho")]
    assert conversation.messages[0].created_at == datetime(2026, 3, 14, 9, 26, 1, 250000, tzinfo=UTC)


def test_private_chats_are_filed_by_their_name() -> None:
    private = only(
        message(1),
        guild={"id": "0", "name": "Direct Messages"},
        channel={"id": "5", "type": "DirectTextChat", "name": "teo"},
    )
    assert (private.title, private.project) == ("teo", "teo")


def test_parts_of_one_channel_become_one_conversation() -> None:
    parts = [only(message(1), message(2)), only(message(2), message(3, edited=1))]
    assert [m.message_id for m in merge(parts).messages] == ["1", "2", "3"]
    assert to_record(merge(parts)) == to_record(merge(parts[::-1]))


def test_names_and_programs() -> None:
    assert only(message(1, author=author(nickname=None))).messages[0].speaker == "inès"
    assert only(message(1, author={"id": "9"})).messages[0].speaker == "9"
    assert shown(only(message(1, author=author("TideBot", isBot=True)))) == [("bot", "TideBot", "hi")]
    assert only(message(1, author=None), message(2)).messages[0].speaker is None


def test_replies_edits_and_forwards() -> None:
    reply = message(1, type="Reply", reference={"type": "Default", "messageId": "7", "channelId": "300"})
    forward = message(
        2,
        "",
        reference={"type": "Forward", "messageId": "9"},
        forwardedMessage={
            "timestamp": "2026-03-13T08:00:00+01:00",
            "content": "storm tomorrow",
            "attachments": [{"id": "7", "url": "a", "fileName": "map.png", "fileSizeBytes": 10}],
        },
        timestampEdited="2026-03-14T10:30:00+01:00",
    )
    said = only(reply, forward).messages
    assert (said[0].parent_id, said[0].edited_at) == ("7", None)
    assert (said[1].text, said[1].parent_id) == ("storm tomorrow", None)
    assert said[1].attachment == [Attachment("map.png", size=10)]
    assert said[1].created_at == datetime(2026, 3, 14, 9, 26, 2, 250000, tzinfo=UTC)
    assert said[1].edited_at == datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


EMBED = {
    "title": "Tide",
    "url": "https://tide.example/x",
    "description": "High at noon",
    "fields": [{"name": "Depth", "value": "3 m"}],
    "footer": {"text": "harbour office"},
}


def test_embeds_are_a_programs_words_and_a_persons_citations() -> None:
    bot = only(message(1, "", embeds=[EMBED], author=author("Bot", isBot=True))).messages[0]
    assert bot.text == "Tide\nHigh at noon\nDepth: 3 m\nharbour office"
    person = only(message(1, "see https://tide.example/x", embeds=[EMBED])).messages[0]
    assert person.text == "see https://tide.example/x"
    assert person.citations == [Citation("https://tide.example/x", "Tide")]


def test_attachments_and_stickers() -> None:
    image = only(message(1, "", attachments=[{"url": "https://x/y/a.png?ex=1", "fileSizeBytes": 5}])).messages[0]
    assert (image.kind, image.text, image.attachment) == ("image", "", [Attachment("a.png", size=5)])
    sound = only(message(1, "", attachments=[{"fileName": "voice-message.ogg"}])).messages[0]
    assert sound.kind == "audio"
    sticker = only(message(1, "", stickers=[{"id": "1", "name": "wave", "format": "Png"}])).messages[0]
    assert sticker.attachment == [Attachment("wave", "sticker")]


def test_polls_are_read_in_both_shapes() -> None:
    old = {"question": "When?", "answers": [{"id": 1, "text": "Now"}, {"text": "Later"}]}
    new = {"question": {"text": "When?"}, "answers": [{"pollMedia": {"text": "Now"}}, {"media": {"text": "Later"}}]}
    for poll in (old, new):
        assert only(message(1, "", poll=poll)).messages[0].text == "When?\n- Now\n- Later"


def test_mentions_and_emoji_that_were_left_as_they_are() -> None:
    said = only(message(1, "<@100> <@!5> <:boat:12> <#7> a<b", mentions=[author()])).messages[0]
    assert said.text == "@Inès @5 :boat: <#7> a<b"


def test_what_discord_writes_itself_is_counted_and_not_said() -> None:
    conversations, report = parse(
        channel(
            message(1, "Joined the server.", type="GuildMemberJoin"),
            message(2, "Pinned a message.", type="ChannelPinnedMessage"),
            message(3, "", type="8"),
            message(4, "done", type="20"),
            message(5, "odd", type="HologramCall"),
            message(6, ""),
        )
    )
    assert [m.text for m in conversations[0].messages] == ["done", "odd"]
    assert [(skip.expected, skip.count) for skip in report.skips] == [(True, 1)] * 4
    assert report.unknown == {"type:HologramCall": 1}


def test_reactions_are_not_kept() -> None:
    loud = message(1, reactions=[{"emoji": {"name": "👍"}, "count": 3, "users": [author("Teo")]}])
    assert to_record(only(loud)) == to_record(only(message(1)))


def test_of_two_records_of_one_message_the_later_counts() -> None:
    assert [m.text for m in only(message(1, "old"), message(2), message(1, "new")).messages] == ["new", "hi"]


def test_ids_written_as_numbers_are_the_same_ids() -> None:
    number = only(message(1) | {"id": 1}, channel={"id": 300, "name": "general"})
    assert (number.conversation_id, number.messages[0].message_id) == ("300", "1")


def test_channel_without_messages_or_id() -> None:
    conversations, report = parse(channel())
    assert (conversations, reasons(report)) == ([], [("channel without messages", True, 1)])
    short, grown = (only(*m, channel={"name": "general"}) for m in ([message(1)], [message(1), message(2)]))
    assert short.key == grown.key


# --- damage -----------------------------------------------------------------------------------------------------------

SAMPLE = channel(
    message(1, attachments=[{"fileName": "a.png"}], mentions=[author()], reference={"messageId": "0"}),
    message(
        2, "", embeds=[EMBED], forwardedMessage={"content": "x"}, poll={"question": {"text": "q"}, "answers": [{}]}
    ),
    message(3, stickers=[{"name": "s"}]),
)


@given(st.sampled_from([*places(SAMPLE)]), st.sampled_from(ODD))
@settings(max_examples=120, deadline=None)
def test_a_wrong_type_anywhere_leaves_the_other_messages_unchanged(place: tuple[Any, ...], odd: Any) -> None:
    value = retyped(SAMPLE, place, odd)
    member = MemoryMember({FILE: dumped(value)}, FILE)
    report = Report(FILE)
    conversations = list(discord.READER.read(member, report))
    whole = only(*SAMPLE["messages"]).messages
    for number, expected in enumerate(whole):
        if place[:1] != ("messages",) or (len(place) > 1 and place[1] != number):
            assert place == ("messages",) or expected in conversations[0].messages


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_cut_file_gives_every_message_before_the_cut(data: st.DataObject) -> None:
    raw = json.dumps(SAMPLE, indent=2).encode()
    at = data.draw(st.integers(raw.index(b'"messages"'), raw.rindex(b"]")))
    conversations, report = read(READERS, {FILE: raw[:at]}, FILE)
    said = [m.message_id for c in conversations for m in c.messages]
    starts = [raw.index(f'"timestamp": "2026-03-14T10:26:{n:02}'.encode()) for n in (2, 3)]
    ends = [
        *(raw.rindex(b"}", 0, start) for start in (raw.rindex(b"{", 0, s) for s in starts)),
        raw.rindex(b"}", 0, raw.rindex(b"]")),
    ]
    assert said == [str(n) for n, end in enumerate(ends, 1) if end < at]
    assert any(not skip.expected for skip in report.skips)


def test_a_file_that_crashed_inside_a_message_and_was_closed_anyway() -> None:
    raw = dumped(SAMPLE)
    start = raw.index(b'{"id": "3"')
    conversations, report = read(READERS, {FILE: raw[: start + 120] + b'], "messageCount": 3}'}, FILE)
    assert [m.message_id for m in conversations[0].messages] == ["1", "2"]
    assert any(not skip.expected for skip in report.skips)


def test_a_lost_quote_costs_its_message() -> None:
    raw = dumped(channel(message(1), message(2, "lost"), message(3), message(4)))
    conversations, report = read(READERS, {FILE: raw.replace(b'"lost"', b'"lost')}, FILE)
    assert [m.message_id for m in conversations[0].messages] == ["1", "3", "4"]
    assert next(skip.reason for skip in report.skips if not skip.expected) in (
        "damaged JSON",
        "cut or damaged: the file ends inside the array",
    )


def test_odd_records_are_counted() -> None:
    bare = message(9)
    del bare["content"]
    conversations, report = parse(channel(None, "x", message(1), bare))
    assert [m.message_id for m in conversations[0].messages] == ["1"]
    assert reasons(report) == [
        ("message without content", False, 1),
        ("not a message", False, 1),
        ("null in place of a message", True, 1),
    ]
