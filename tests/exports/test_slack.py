from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import slack
from palace_pipeline.exports.base import Head, Report
from palace_pipeline.exports.slack_text import Names, block_text, plain
from palace_pipeline.model import Citation, Conversation, Message, from_record, to_record
from tests.exports.memory_member import read, shown

READERS = [slack.READER]
USERS = [
    {"id": "U1", "name": "ines", "is_bot": False, "profile": {"display_name": "ines", "real_name": "Inès S"}},
    {"id": "U2", "name": "teo", "real_name": "Teo S", "profile": {"display_name": "", "real_name": "Teo S"}},
    {"id": "UB", "name": "helper", "is_bot": True, "profile": {"real_name": "Helper"}},
]
CHANNELS = [{"id": "C1", "name": "harbour", "created": 1773479360}, {"id": "C2", "name": "日本語チャンネル"}]
NAMES = Names({"U1": "ines"}, {"C1": "harbour"}, frozenset({"UB"}), frozenset({"U1"}))


def stamp(number: int) -> str:
    return f"17734804{number:02}.000100"


def message(number: int, text: str | None = "x", user: str | None = "U1", **more: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "type": "message",
        "user": user,
        "text": text,
        "ts": f"17734804{number:02}.000100",
        **more,
    }
    return {key: value for key, value in record.items() if value is not None}


def day(
    *records: Any, folder: str = "harbour", beside: dict[str, Any] | None = None
) -> tuple[list[Conversation], Report]:
    path = f"{folder}/2026-03-14.json"
    sides = {"channels.json": CHANNELS, "users.json": USERS} if beside is None else beside
    return read(READERS, {path: list(records), **sides}, path)


def only(*records: Any, **options: Any) -> Conversation:
    conversations, _ = day(*records, **options)
    assert len(conversations) == 1
    return conversations[0]


def test_a_day_file_is_a_part_of_its_channel() -> None:
    conversation = only(message(10, "hi"), message(20, "ho", "U2"))
    assert conversation.key == ("slack", "C1")
    assert (conversation.title, conversation.project, conversation.order) == ("harbour", "harbour", "time")
    assert conversation.created_at == datetime(2026, 3, 14, 9, 9, 20, tzinfo=UTC)
    assert shown(conversation) == [("user", "ines", "hi"), ("user", "Teo S", "ho")]
    first = conversation.messages[0]
    assert first.message_id == "1773480410.000100"
    assert first.created_at == datetime(2026, 3, 14, 9, 26, 50, 100, tzinfo=UTC)


def test_channels_are_found_by_name_and_by_id_in_all_lists() -> None:
    assert only(message(1), folder="日本語チャンネル").conversation_id == "C2"
    assert only(message(1), folder=unicodedata_nfd("日本語チャンネル")).conversation_id == "C2"
    beside = {"dms.json": [{"id": "D0SAMPLE", "members": ["U1"]}], "mpims.json": [{"id": "G1", "name": "mpdm-a--b-1"}]}
    direct = only(message(1), folder="D0SAMPLE", beside=beside)
    assert (direct.conversation_id, direct.title) == ("D0SAMPLE", None)
    assert only(message(1), folder="mpdm-a--b-1", beside=beside).conversation_id == "G1"


def unicodedata_nfd(text: str) -> str:
    import unicodedata

    return unicodedata.normalize("NFD", text)


def test_without_lists_the_folder_is_the_channel() -> None:
    lonely = only(message(1), folder="deck", beside={})
    assert (lonely.conversation_id, lonely.title) == ("deck", "deck")
    assert only(message(1), folder="C0SAMPLE1", beside={}).title is None


def test_a_list_alone_has_an_id_that_stays_when_it_grows() -> None:
    records = [message(1, "hi"), message(2, "ho", "U2")]
    (short,), _ = read(READERS, {"crew.json": records}, "crew.json")
    (longer,), _ = read(READERS, {"crew.json": [*records, message(3)]}, "crew.json")
    assert short.conversation_id == longer.conversation_id
    assert (short.title, short.messages[0].speaker) == (None, "U1")


def test_messages_without_times_keep_the_order_of_the_file() -> None:
    records = [{"type": "message", "user": user, "text": "好的 &amp;"} for user in ("U1", "U2", "U1")]
    (conversation,), _ = read(READERS, {"c.json": records}, "c.json")
    assert conversation.order == "source"
    assert shown(conversation) == [("user", u, "好的 &") for u in ("U1", "U2", "U1")]
    assert len({m.message_id for m in conversation.messages}) == 3


def test_names_come_from_the_users_then_from_the_messages() -> None:
    records = [
        message(1, "a", "U9", user_profile={"display_name": "", "real_name": "Guest"}),
        message(2, "b <@U9>", "U9"),
        message(3, "c", "U0GONE"),
        message(4, "d", "U1", user_profile={"display_name": "other"}),
    ]
    assert shown(only(*records)) == [
        ("user", "Guest", "a"),
        ("user", "Guest", "b @Guest"),
        ("user", "U0GONE", "c"),
        ("user", "ines", "d"),
    ]


@pytest.mark.parametrize(
    ("record", "speaker"),
    [
        (message(1, user=None, subtype="bot_message", bot_id="B1", username="tidebot"), "tidebot"),
        (message(1, user=None, subtype="bot_message", bot_id="B1"), "B1"),
        (message(1, user="UB", bot_id="B1", bot_profile={"name": "Helper app"}), "Helper app"),
        (message(1, user="UB"), "Helper"),
        (message(1, user="USLACKBOT", subtype="slackbot_response"), "USLACKBOT"),
        (message(1, user=None, username="hook"), "hook"),
    ],
)
def test_programs_are_bots(record: dict[str, Any], speaker: str) -> None:
    assert shown(only(record)) == [("bot", speaker, "x")]


def test_a_program_that_posts_for_a_person_is_the_person() -> None:
    assert shown(only(message(1, user="U1", bot_id="B1", app_id="A1"))) == [("user", "ines", "x")]


def test_what_a_program_posts_in_attachments_and_blocks_is_read_once() -> None:
    fallback = {"fallback": "High tide 06:15", "text": "High tide 06:15", "id": 1}
    assert shown(only(message(1, "", None, bot_id="B", attachments=[fallback])))[0][2] == "High tide 06:15"
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Deploy"}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "by <@U1>"}, "fields": [{"text": "*took* 3 s"}]},
        {"type": "context", "elements": [{"type": "image", "alt_text": "no"}, {"type": "mrkdwn", "text": "prod"}]},
    ]
    assert (
        shown(only(message(1, "Deploy", None, bot_id="B", blocks=blocks)))[0][2] == "Deploy\nby @ines\n*took* 3 s\nprod"
    )
    rich = [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [
        {"type": "text", "text": "a < b "}, {"type": "user", "user_id": "U1"}, {"type": "emoji", "name": "wave"},
        {"type": "link", "url": "https://example.invalid/x", "text": "here"},
    ]}]}]  # fmt: skip
    conversation = only(message(1, "", None, bot_id="B", blocks=rich))
    assert conversation.messages[0].text == "a < b @ines:wave:here"
    assert conversation.messages[0].citations == [Citation("https://example.invalid/x", "here")]
    # A person's blocks repeat the text.
    assert shown(only(message(1, "*bold*", blocks=rich)))[0][2] == "*bold*"


def test_a_preview_is_cited_and_a_forwarded_message_is_text() -> None:
    preview = {"from_url": "https://example.invalid/p", "title": "Page", "text": "not said"}
    conversation = only(message(1, "see", attachments=[preview]))
    assert conversation.messages[0].text == "see"
    assert conversation.messages[0].citations == [Citation("https://example.invalid/p", "Page")]
    shared = {"from_url": "https://example.invalid/p", "is_share": True, "text": "said before"}
    assert shown(only(message(1, "fyi", attachments=[shared])))[0][2] == "fyi\n\nsaid before"


def test_threads_edits_and_changes() -> None:
    conversation = only(
        message(1, "root", thread_ts="1773480401.000100"),
        message(2, "reply", thread_ts="1773480401.000100"),
        message(3, "orphan", thread_ts="1.000000"),
        message(4, "draft"),
        message(5, None, None, subtype="message_changed", message=message(4, "final", edited={"ts": "1773480499.0"})),
    )
    assert [m.text for m in conversation.messages] == ["root", "reply", "orphan", "final"]
    assert [m.parent_id for m in conversation.messages] == [None, "1773480401.000100", "1.000000", None]
    assert conversation.messages[3].edited_at == datetime(2026, 3, 14, 9, 28, 19, tzinfo=UTC)


def test_notices_are_expected_skips_by_name() -> None:
    conversations, report = day(
        message(1, "<@U1> has joined", subtype="channel_join"),
        message(2, "This message was deleted.", subtype="tombstone"),
        message(3, "", "USLACKBOT", subtype="huddle_thread"),
        message(4, None),
        {"type": "message", "ts": "1.0"},
        None,
        "odd",
    )
    assert conversations == []
    assert [(s.reason, s.expected) for s in report.skips] == [
        ("channel_join", True),
        ("tombstone", True),
        ("huddle_thread", True),
        ("empty message", True),
        ("empty message", True),
        ("null in place of a message", True),
        ("not a message", False),
    ]


def test_an_unknown_subtype_is_kept_and_reported() -> None:
    conversations, report = day(message(1, "kept", subtype="brand_new"))
    assert shown(conversations[0]) == [("user", "ines", "kept")]
    assert report.unknown == {"subtype:brand_new": 1}


def test_files_by_name_without_their_address() -> None:
    file = {"id": "F1", "name": "map.pdf", "mimetype": "application/pdf", "size": 7}
    file["url_private"] = "https://files.example.invalid/map.pdf?t=" + "x" * 8
    conversation = only(
        message(
            1,
            "",
            files=[file],
        ),
        message(2, "look", files=[{"id": "F2", "mode": "tombstone"}]),
        message(3, "", files=[{"name": "a.png", "mimetype": "image/png"}]),
    )
    assert [(m.text, m.kind, [(f.name, f.size) for f in m.attachment]) for m in conversation.messages] == [
        ("", "attachment", [("map.pdf", 7)]),
        ("look", "text", [("F2", None)]),
        ("", "image", [("a.png", None)]),
    ]
    assert "files.example.invalid" not in repr(conversation)


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("<@U1> <@U9> <@U9|teo> <@U1|old>", "@ines @U9 @teo @ines"),
        ("<#C1> <#C9|deck> <#C9>", "#harbour #deck #C9"),
        ("<!here> <!channel|channel> <!subteam^S1|@crew> <!subteam^S1>", "@here @channel @crew @S1"),
        ("<!date^1392734382^{date}|18 Feb>", "18 Feb"),
        ("<https://example.invalid/a?b=1&amp;c=2>", "https://example.invalid/a?b=1&c=2"),
        ("<mailto:a@example.invalid|a@example.invalid>", "a@example.invalid"),
        ("<mailto:a@example.invalid|write>", "write (a@example.invalid)"),
        ("a &lt;b&gt; &amp;amp; &quot; c", "a <b> &amp; &quot; c"),
        ("&lt;@U1&gt;", "<@U1>"),
        ("1 < 2 <", "1 < 2 <"),
        ("<odd>", "<odd>"),
    ],
)
def test_markup(marked: str, text: str) -> None:
    assert plain(marked, NAMES, []) == text


def test_a_link_with_a_label_keeps_its_address_as_citation() -> None:
    citations: list[Citation] = []
    assert plain("see <https://example.invalid/t|the tides &amp; more>", NAMES, citations) == "see the tides & more"
    assert citations == [Citation("https://example.invalid/t", "the tides & more")]


def test_damage_takes_only_its_own_record() -> None:
    raw = b'[{"type":"message","user":"U1","text":"a","ts":"1773480401.0"}, {"type": oops}, '
    raw += orjson.dumps(message(2, "b")) + b', {"type":"message","us'
    path = "harbour/2026-03-14.json"
    conversations, report = read(READERS, {path: raw, "channels.json": CHANNELS}, path)
    assert [m.text for m in conversations[0].messages] == ["a", "b"]
    assert all(not skip.expected for skip in report.skips)
    assert len(report.skips) == 2


def test_damaged_lists_beside_cost_only_the_names() -> None:
    assert shown(only(message(1), beside={"users.json": "{oops", "channels.json": "null"})) == [("user", "U1", "x")]


def test_the_answer_of_the_web_api_is_read_too() -> None:
    (conversation,), _ = read(
        READERS, {"h.json": {"ok": True, "messages": [message(2, "b"), message(1, "a")]}}, "h.json"
    )
    assert sorted(m.text for m in conversation.messages) == ["a", "b"]


@pytest.mark.parametrize(
    "items",
    [
        [],
        [{"type": "message", "role": "user", "content": "openai"}],
        [{"id": 1, "type": "message", "date": "2026-03-14T09:26:40", "from": "telegram", "text": "x"}],
        [{"id": "U1", "name": "ines", "profile": {}}],
        [{"type": "session"}],
    ],
)
def test_other_lists_are_not_taken(items: list[Any]) -> None:
    assert not slack.READER.detect(Head("x.json", "array", items=items))
    assert not slack.READER.detect(Head("x.json", "object", items=[{"messages": items}]))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_KEYS = """
user text ts thread_ts subtype bot_id username files file blocks attachments edited user_profile message comment
"""
_WORDS = ["U1", "channel_join", "message_changed"]
_RECORD = st.dictionaries(
    st.sampled_from(_KEYS.split()), _JSON | st.sampled_from(["U1", "channel_join", "message_changed"])
)


@settings(max_examples=100, deadline=None)
@given(st.lists(_RECORD | _JSON, max_size=5))
def test_no_record_is_odd_enough_to_stop_a_file(records: list[Any]) -> None:
    records = [{"type": "message", **record} if isinstance(record, dict) else record for record in records]
    conversations, report = day(message(1, "first"), *records, message(99, "last"))
    assert not any(skip.unit == "file" for skip in report.skips)
    assert from_record(to_record(conversations[0])).messages == conversations[0].messages
    texts = [m.text for m in conversations[0].messages]
    assert "first" in texts
    assert "last" in texts


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_escaped_text_comes_back(text: str) -> None:
    from palace_pipeline.exports.text import clean_text

    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert plain(escaped, NAMES, []) == clean_text(text)


@settings(max_examples=100, deadline=None)
@given(_JSON)
def test_any_blocks(blocks: Any) -> None:
    assert isinstance(block_text(blocks, NAMES, []), str)


def test_message_ids_are_unique() -> None:
    conversation = only(*(message(1, f"v{n}") for n in range(3)), message(2))
    assert [m.text for m in conversation.messages] == ["v2", "x"]
    assert isinstance(conversation.messages[0], Message)
