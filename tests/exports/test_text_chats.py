from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palace_pipeline.exports import markdown_chat, notes, plaintext, quotes
from palace_pipeline.exports.base import Head
from palace_pipeline.exports.chat_shapes import SHAPES, Shape
from palace_pipeline.exports.markdown_chat import match_line, parse_chat
from palace_pipeline.exports.plaintext import stem
from palace_pipeline.exports.quotes import parse_quotes
from palace_pipeline.exports.speakers import clean_name, is_name, role_of
from palace_pipeline.exports.written_times import day_heading, month_first, read_when
from palace_pipeline.model import Conversation
from tests.exports.memory_member import read, shown

READERS = [quotes.READER, markdown_chat.READER, notes.READER]


def one(text: str | bytes, path: str = "chat.md") -> Conversation:
    conversations, _ = read(READERS, {path: text}, path)
    assert len(conversations) == 1
    return conversations[0]


def turns(text: str) -> list[tuple[str, str]] | None:
    messages = parse_quotes(text)
    return None if messages is None else [(message.role, message.text) for message in messages]


def said(text: str) -> list[tuple[str, str | None, str]] | None:
    chat = parse_chat(text)
    return None if chat is None else [(m.role, m.speaker, m.text) for m in chat.messages if m.visible]


# --- `>` transcripts --------------------------------------------------------------------------------------------------


def test_a_short_transcript_is_one() -> None:
    assert turns("> Où ?\n\nIci.\n\n> Et là ?\n\nNon.\n") == [
        ("user", "Où ?"),
        ("assistant", "Ici."),
        ("user", "Et là ?"),
        ("assistant", "Non."),
    ]
    assert turns("> only one\nits answer\n\nmore") == [("user", "only one"), ("assistant", "its answer\n\nmore")]


def test_one_mark_and_one_blank_are_syntax() -> None:
    assert turns(">a\n> b\n>\n> > c\n>  d\nyes") == [("user", "a\nb\n\n> c\n d"), ("assistant", "yes")]


def test_a_quotation_under_answer_text_and_code_stay_in_the_answer() -> None:
    answer = "The manual says:\n> never.\n\n---\n\n```sh\n\n> prompt\n```\n\n~~~~\n\n> x\n~~~\n> y\n~~~~"
    assert turns(f"> q\n{answer}\n\n> q2\nok") == [
        ("user", "q"),
        ("assistant", answer),
        ("user", "q2"),
        ("assistant", "ok"),
    ]


def test_a_fence_that_nothing_closes_does_not_swallow_the_next_turn() -> None:
    assert turns("> q\n```py\ncut off here\n\n> q2\nok") == [
        ("user", "q"),
        ("assistant", "```py\ncut off here"),
        ("user", "q2"),
        ("assistant", "ok"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \n",
        "no mark\n\n> quoted\nx",
        "> motto\n\nProse.\n\nMore prose.",
        "> motto\n> second line\n— Somebody\n\nProse.",
        "> motto\n>\n> -- nobody answers\n",
        "> one quotation\n\n> another\n\nProse.",
        "> [!NOTE]\n> a box\n\nProse\n\n> [!TIP]\n> another\n\nProse",
    ],
)
def test_quoting_prose_is_no_transcript(text: str) -> None:
    assert turns(text) is None


def test_a_box_inside_an_answer_opens_no_turn() -> None:
    answer = "See:\n\n> [!NOTE]\n> careful"
    assert turns(f"> q\n{answer}\n\n> q2\nok") == [
        ("user", "q"),
        ("assistant", answer),
        ("user", "q2"),
        ("assistant", "ok"),
    ]


def test_a_transcript_keeps_its_id_when_it_grows() -> None:
    short, longer = one("> q\na\n", "x/talk.md"), one("> q\na\n\n> q2\nb\n", "y/talk.md")
    assert short.conversation_id == longer.conversation_id
    assert [m.message_id for m in short.messages] == [m.message_id for m in longer.messages][:2]
    assert short.title == "talk"
    assert one("> q\na\n", "other.md").conversation_id != short.conversation_id


# --- transcripts with speakers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "line"), [(shape, line) for shape in SHAPES for line in shape.fits])
def test_lines_of_a_shape_have_it(shape: Shape, line: str) -> None:
    found = match_line(line)
    assert found is not None
    assert found[0].name == shape.name


@pytest.mark.parametrize(("shape", "line"), [(shape, line) for shape in SHAPES for line in shape.fails])
def test_other_lines_do_not(shape: Shape, line: str) -> None:
    found = match_line(line)
    assert found is None or found[0].name != shape.name


def test_every_shape_has_examples_and_a_name_of_its_own() -> None:
    assert all(shape.fits and shape.fails for shape in SHAPES)
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)


def test_headings_need_both_roles_and_one_level() -> None:
    assert said("## User\n\nq\n\n### Assistant\n\nstill q\n\n## Assistant\n\na") == [
        ("user", None, "q\n\n### Assistant\n\nstill q"),
        ("assistant", None, "a"),
    ]
    assert said("## User\n\nMeans: a person.\n\n## User research\n\nNine.") is None
    assert said("## User\nq\n## Claude:\na\n## System\nprompt") == [("user", None, "q"), ("assistant", None, "a")]


def test_headings_in_other_languages_and_with_emoji() -> None:
    assert said("## 👤 用户\n\n你好\n\n## 🤖 助手：\n\n您好") == [("user", None, "你好"), ("assistant", None, "您好")]


def test_a_system_section_is_a_row_beside_the_transcript() -> None:
    chat = parse_chat("# Title\n\n## System\n\nbe brief\n\n## User\n\nq\n\n## Assistant\n\na")
    assert chat is not None
    assert chat.title == "Title"
    assert [(m.role, m.text) for m in chat.messages] == [("system", "be brief"), ("user", "q"), ("assistant", "a")]


def test_where_role_labels_speak_other_labels_are_text() -> None:
    assert said("**You:** q\n**Note:** n\n\n**ChatGPT:** a\n**Note:** m\n**You:** thanks") == [
        ("user", None, "q\n**Note:** n"),
        ("assistant", None, "a\n**Note:** m"),
        ("user", None, "thanks"),
    ]


def test_two_assistants_are_told_apart() -> None:
    assert said("**You:** q\n**Claude:** a\n**ChatGPT:** b") == [
        ("user", None, "q"),
        ("assistant", "Claude", "a"),
        ("assistant", "ChatGPT", "b"),
    ]


def test_labels_of_people_must_repeat() -> None:
    assert said("- **Theo:** q\n- **Ana:** a\n  more\n- **Theo:** q2\n- **Ana:** b") == [
        ("user", "Theo", "q"),
        ("user", "Ana", "a\nmore"),
        ("user", "Theo", "q2"),
        ("user", "Ana", "b"),
    ]
    assert said("**Status:** on track\n**Owner:** Inès\n**Risk:** none") is None
    assert said("**Theo:** a\n**Theo:** b\n**Ana:** once") is None


def test_dates_in_lines() -> None:
    chat = parse_chat("Intro\n\n**Alice** (2024-03-15 11:58 PM): hi\n**Bob** (2024-03-16 12:01 AM): ho\n\nhum")
    assert chat is not None
    assert [(m.speaker, m.text, m.local_time) for m in chat.messages] == [
        (None, "Intro", None),
        ("Alice", "hi", "2024-03-15T23:58:00"),
        ("Bob", "ho\n\nhum", "2024-03-16T00:01:00"),
    ]


def test_a_day_heading_sets_the_day_of_the_times_below_it() -> None:
    text = "# 2024-03-15\n\n**[23:50] A:** x\n\n## 2024-03-16\n\n**[00:05] 👤 B:** y\n\n### Plan\n**[00:06] A:** z"
    chat = parse_chat(text)
    assert chat is not None
    assert chat.title is None
    assert [(m.speaker, m.text, m.local_time) for m in chat.messages] == [
        ("A", "x", "2024-03-15T23:50:00"),
        ("B", "y\n\n### Plan", "2024-03-16T00:05:00"),
        ("A", "z", "2024-03-16T00:06:00"),
    ]


def test_a_zone_makes_an_instant() -> None:
    chat = parse_chat("Alice (2024-03-15 18:37:00 UTC): hi\nBob (2024-03-15 20:38 +02:00): ho")
    assert chat is not None
    assert [m.created_at for m in chat.messages] == [
        datetime(2024, 3, 15, 18, 37, tzinfo=UTC),
        datetime(2024, 3, 15, 18, 38, tzinfo=UTC),
    ]


def test_month_or_day_first_is_decided_for_the_file() -> None:
    us = "A, 3/4/2024 6:37 PM: x\nB, 3/15/2024 6:38 PM: y"
    eu = "A, 4/3/2024 18:37: x\nB, 15/3/2024 18:38: y"
    for text in (us, eu):
        chat = parse_chat(text)
        assert chat is not None
        assert [(m.local_time or "")[:10] for m in chat.messages] == ["2024-03-04", "2024-03-15"]


@pytest.mark.parametrize(
    "text",
    [
        "Fish soup\n\n12:30 put the pot on\n12:45 add the fish\nNote: no salt",
        "**Breakfast** (08:00): eggs\n**Lunch** (12:30): soup",
        "[2024-03-15 18:37:00] ERROR: disk full\n[2024-03-15 18:38:00] ERROR: disk full",
        "Backup 2024-03-15 18:37:00\nBackup 2024-03-16 18:37:00\nCheck 2024-03-17 18:37:00",
        "# Form\n\nSome words.\n\nUser: a label\nAssistant: another\nUser: again",
        "User: bob\nAssistant: carol",
        "```\n**You:** q\n**ChatGPT:** a\n```\nAn example.",
        "**1.0** (2024-03-15 10:00): a\n**1.1** (2024-03-16 10:00): b",
    ],
)
def test_notes_are_no_chats(text: str) -> None:
    assert said(text) is None
    assert one(text).provider == "markdown"


def test_plain_roles_only_where_they_begin_the_file_and_repeat() -> None:
    assert said("# T\n\nHuman: q\n\nAssistant: a\nb\n\nHuman: q2") == [
        ("user", None, "q"),
        ("assistant", None, "a\nb"),
        ("user", None, "q2"),
    ]


def test_a_rule_before_every_turn_is_a_separator() -> None:
    text = "_Exported_\n\n---\n\n**User**\n\nq\n\n---\n\nmore\n\n---\n\n**Cursor**\n\na\n\n---\n"
    assert said(text) == [("user", None, "q\n\n---\n\nmore"), ("assistant", None, "a")]
    assert said("**User**\n\nq\n\n---\n\n**Cursor**\n\na\n\n**User**\n\nq2") == [
        ("user", None, "q\n\n---"),
        ("assistant", None, "a"),
        ("user", None, "q2"),
    ]


def test_the_shape_that_begins_first_wins_and_is_never_mixed() -> None:
    text = "## User\n\n**You:** x\n**ChatGPT:** y\n\n## Assistant\n\n**You:** z"
    assert said(text) == [("user", None, "**You:** x\n**ChatGPT:** y"), ("assistant", None, "**You:** z")]


def test_speaker_lines_without_text_are_counted() -> None:
    conversations, report = read(READERS, {"c.md": "**You:** q\n**ChatGPT:**\n**You:** q2"}, "c.md")
    assert [text for _, _, text in shown(conversations[0])] == ["q", "q2"]
    assert [(skip.reason, skip.count, skip.expected) for skip in report.skips] == [("empty message", 1, True)]


def test_only_dates_give_the_conversation_its_day() -> None:
    conversation = one("**Ana** (2024-03-15): a\n**Ben** (2024-03-16): b\n**Ana** (2024-03-17): c")
    assert [m.local_time for m in conversation.messages] == [None, None, None]
    assert conversation.local_created == "2024-03-15T00:00:00"


@pytest.mark.parametrize(
    ("written", "clock", "offset"),
    [
        ("9:04 AM", "09:04:00", None),
        ("12:01 AM", "00:01:00", None),
        ("12:01 p. m.", "12:01:00", None),
        ("2024-03-15 6:37\u202fPM", "18:37:00", None),
        ("Mon 11:18", "11:18:00", None),
        ("Mar 15, 2024 at 6:37:00 PM", "18:37:00", None),
        ("2024年3月15日 下午6:37", "18:37:00", None),
        ("Wed 2026-02-18 11:21 GMT+1", "11:21:00", 3600),
        ("2024-03-15T18:37:00Z", "18:37:00", 0),
        ("Today at 6:37 PM", "18:37:00", None),
    ],
)
def test_written_times(written: str, clock: str, offset: int | None) -> None:
    when = read_when(written)
    assert when is not None
    assert when.clock is not None
    assert when.clock.isoformat() == clock
    assert (when.offset.total_seconds() if when.offset is not None else None) == offset


@pytest.mark.parametrize(
    "text", ["24:00", "09:60", "13:00 PM", "on track", "2024-13-01 10:00", "1024-01-01", "", "v1.2"]
)
def test_no_times(text: str) -> None:
    assert read_when(text) is None


def test_ambiguous_days() -> None:
    def order(*texts: str) -> bool:
        return month_first(when for text in texts if (when := read_when(text)))

    assert order("3/4/2024 18:00", "3/15/2024 18:00") is True
    assert order("3/4/2024 18:00", "15/4/2024 18:00") is False
    assert order("9/1/2024 18:00", "10/1/2024 18:00", "2/2/2024 18:00") is False  # only so time goes forward
    assert order("3/4/2024 6:00 PM") is True
    assert order("3.4.2024 18:00") is False


@pytest.mark.parametrize(
    ("line", "day"),
    [
        ("# 2024-03-15", "2024-03-15"),
        ("#### 2024-03-15 (Friday)", "2024-03-15"),
        ("## 2024年3月15日 星期五", "2024-03-15"),
        ("##### 2024-03-15", None),
        ("# Week of 2024-03-15", None),
        ("# 2024-02-30", None),
    ],
)
def test_day_headings(line: str, day: str | None) -> None:
    found = day_heading(line)
    assert (found.isoformat() if found else None) == day


def test_names() -> None:
    assert clean_name("👤 Alice") == "Alice"
    assert clean_name("👩‍💻 李雷") == "李雷"
    assert clean_name("🐙") == "🐙"
    assert [role_of(name) for name in ("ChatGPT", "GPT-4o", "Claude 3.5 Sonnet", "我", "System:", "Claudette")] == [
        "assistant",
        "assistant",
        "assistant",
        "user",
        "system",
        None,
    ]
    assert [is_name(name) for name in ("小明", "+49 171 1234567", "1.2.0", "ERROR", "🐙")] == [
        True,
        True,
        False,
        False,
        True,
    ]


# --- documents --------------------------------------------------------------------------------------------------------


def test_a_note_is_one_document_known_by_its_path() -> None:
    note = one("# Harbour\n\nRope.\n", "a/harbour notes.md")
    assert (note.provider, note.title) == ("markdown", "harbour notes")
    assert shown(note) == [("user", None, "# Harbour\n\nRope.")]
    edited = one("# Harbour\n\nRope, chain.\n", "a/harbour notes.md")
    assert (edited.key, edited.messages[0].message_id) == (note.key, note.messages[0].message_id)
    assert one("# Harbour\n\nRope.\n", "b/harbour notes.md").key != note.key
    assert one("x", "a.b.txt").title == "a.b"
    assert one("x", "a.b.txt").provider == "text"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(encoding: str) -> None:
    text = "Liste für die Werft\r\n– Öl wechseln\r\nund noch eine lange Zeile ohne besondere Zeichen darin\r\n"
    assert one(text.encode(encoding), "werft.txt").messages[0].text == text.replace("\r\n", "\n").strip()


def test_an_empty_file_is_counted() -> None:
    conversations, report = read(READERS, {"e.md": "\ufeff\n  \n"}, "e.md")
    assert conversations == []
    assert [(s.reason, s.expected, s.unit) for s in report.skips] == [("empty file", True, "file")]


def test_a_text_that_is_too_large_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plaintext, "MAX_TEXT_BYTES", 10)
    conversations, report = read(READERS, {"e.md": "more than ten bytes"}, "e.md")
    assert conversations == []
    assert [(s.expected, s.unit) for s in report.skips] == [(False, "file")]


def test_a_transcript_that_begins_late_is_found_in_the_whole_text() -> None:
    late = "A long preface.\n" * 20000 + "\n**You:** q\n\n**ChatGPT:** a\n"
    conversation = one(late)
    assert conversation.provider == "transcript"
    assert shown(conversation) == [("user", None, "q"), ("assistant", None, "a")]
    assert conversation.messages[0].role == "system"
    assert conversation.messages[0].text.count("preface") == 20000


def test_other_files_are_left_to_others() -> None:
    for path in ("a.csv", "a.html", "a.py", "notes"):
        assert not any(reader.detect(Head(path, "text", text="> q\na")) for reader in READERS)
    assert not any(reader.detect(Head("a.txt", "array", items=[1])) for reader in READERS)


def test_stems() -> None:
    assert [stem(p) for p in ("a/b.md", "a.zip!/c.d.txt", "x.md.zst", ".hidden", "日记.txt")] == [
        "b",
        "c.d",
        "x",
        ".hidden",
        "日记",
    ]
