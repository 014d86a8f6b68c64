from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import whatsapp
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.parse import parse_path
from palace_pipeline.exports.whatsapp_lines import calendar_of, read_line
from palace_pipeline.exports.whatsapp_words import chat_name
from palace_pipeline.model import Attachment, Conversation, to_record
from palace_pipeline.transcripts.merge import merge
from tests.exports.memory_member import MemoryMember, read, shown

READERS = [whatsapp.READER]
IOS, ANDROID = "_chat.txt", "WhatsApp Chat with Harbour.txt"
LRM = "\u200e"


def parse(text: str, path: str = ANDROID) -> tuple[list[Conversation], Report]:
    return read(READERS, {path: text.encode()}, path)


def only(text: str, path: str = ANDROID) -> Conversation:
    conversations, _ = parse(text, path)
    assert len(conversations) == 1
    return conversations[0]


def said(text: str, path: str = ANDROID) -> list[tuple[str | None, str | None, str]]:
    return [(m.local_time, m.speaker, m.text) for m in only(text, path).messages]


def reasons(report: Report) -> list[tuple[str, bool, int]]:
    return sorted((skip.reason, skip.expected, skip.count) for skip in report.skips)


# --- lines, calendars, clocks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("[14/03/2026, 9:26:40\u202fPM] N: t", "2026-03-14T21:26:40"),
        (f"{LRM}[14/03/2026, 9:26:40 PM] N: t", "2026-03-14T21:26:40"),
        ("[13.06.2023, 18:08:08] ~\u202fN: t", "2023-06-13T18:08:08"),
        ("3/14/26, 21:26 - N: t", "2026-03-14T21:26:00"),
        ("2023-12-20, 5:46 p.m. - N: t", "2023-12-20T17:46:00"),
        ("20/6/2017 8:28 p.\u00a0m. - N: t", "2017-06-20T20:28:00"),
        ("20/6/2017 12:28 a. m. - N: t", "2017-06-20T00:28:00"),
        ("03.08.21, 12:30 - N: t", "2021-08-03T12:30:00"),
        ("[2026. 3. 14. 오후 9:26:40] N: t", "2026-03-14T21:26:40"),
        ("2026년 3월 14일 오전 12:26 - N: t", "2026-03-14T00:26:00"),
        ("2026/3/14 下午9:26 - N: t", "2026-03-14T21:26:00"),
        ("[2026/3/14 凌晨12:26:40] N: t", "2026-03-14T00:26:40"),
        ("2026年3月14日 中午12:26 - N: t", "2026-03-14T12:26:00"),
        ("2026/03/14 午前9:26 - N: t", "2026-03-14T09:26:00"),
        ("14.3.2026 klo 21.26 - N: t", "2026-03-14T21:26:00"),
        ("[14.3.2026 klo 21.26.08] N: t", "2026-03-14T21:26:08"),
        ("14/03/26 21.26 - N: t", "2026-03-14T21:26:00"),
        ("14.03.26 г., 21:26 ч. - N: t", "2026-03-14T21:26:00"),
        ("14.03.2026, 21:26 Uhr - N: t", "2026-03-14T21:26:00"),
        ("14/03/2026 à 21:26 - N: t", "2026-03-14T21:26:00"),
        ("2026-03-14, 21 h 26 - N: t", "2026-03-14T21:26:00"),
        ("21/03/16 21:26:40: N: t", "2016-03-21T21:26:40"),
        ("١٤\u200f/٣\u200f/٢٠٢٦, ٩:٢٦ م - N: t", "2026-03-14T21:26:00"),
        ("۲۰۲۶/۳/۱۴،\u200f ۲۱:۲۶ - N: t", "2026-03-14T21:26:00"),
        ("۱۴۰۴/۱۲/۲۳،\u200f ۲۱:۲۶ - N: t", "2026-03-14T21:26:00"),
        ("[14/3/2569 21:26:40] N: t", "2026-03-14T21:26:40"),
        ("14/3/69 21:26 - N: t", "2026-03-14T21:26:00"),
    ],
)
def test_the_world_writes_dates_and_clocks_like_this(line: str, time: str) -> None:
    read = read_line(line)
    assert read is not None
    assert (calendar_of([read]).local_time(read), read.rest[-4:]) == (time, "N: t")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "12:30 - lunch",
        "1. Januar 2026 was cold: very",
        "3/14/26 was a good day - Teo: yes",
        "[14/03, 21:26] Teo: copied from another chat",
        "99/99/26, 21:26 - N: t",
        "3/14/26, 25:61 - N: t",
        "192.168.0.1 10:20 - N: t",
        "2026-03-14 and so on",
    ],
)
def test_other_lines_begin_no_message(line: str) -> None:
    assert read_line(line) is None


def order(*dates: str, clock: str = "21:26", english: bool = False) -> tuple[str, bool]:
    lines = [line for date in dates if (line := read_line(f"{date}, {clock} - N: t"))]
    assert len(lines) == len(dates)
    calendar = calendar_of(lines, english=english)
    return calendar.order, calendar.certain


def test_day_and_month_are_told_by_all_lines_of_a_file() -> None:
    assert order("3/4/26", "13/4/26") == ("day first", True)
    assert order("3/4/26", "4/13/26") == ("month first", True)
    # Messages come in order: read the other way round the second would be before the first.
    assert order("28/2/26", "1/3/26", "2/3/26") == ("day first", True)
    assert order("01/12/26", "02/01/26", "02/02/26") == ("month first", True)
    # Nothing certain: dots are European, AM and PM in capitals without zeros American, else what lies closer together.
    assert order("03.04.26") == ("day first", False)
    assert order("3/4/26", "4/4/26", clock="9:26 PM") == ("month first", False)
    assert order("3/4/26", "4/4/26", clock="9:26 pm") == ("day first", False)
    assert order("3/4/26", english=True) == ("month first", False)
    assert order("03/04/26", english=True) == ("day first", False)
    assert order("03/04/2026", "03/05/2026", "03/06/2026") == ("month first", False)
    assert order("03/04/26") == ("day first", False)
    assert order("5/5/26") == ("day first", True)
    assert order("26/3/14", "26/3/15", clock="下午9:26") == ("year first", False)
    assert order("26/3/31", "26/4/1", clock="下午9:26") == ("year first", True)


def test_a_guess_is_said() -> None:
    _, report = parse("03/04/26, 21:26 - Teo: hi\n03/04/26, 21:27 - Ana: ho")
    assert reasons(report) == [("day and month may be the other way round: read as day first", True, 0)]


def test_words_at_the_clock_that_nobody_knows_are_told_by_their_order() -> None:
    text = "14/3/26, 12:04 xam - T: a\n14/3/26, 9:00 xam - T: b\n14/3/26, 12:30 xpm - T: c\n14/3/26, 9:26 xpm - T: d"
    assert [time for time, _, _ in said(text)] == [
        "2026-03-14T00:04:00",
        "2026-03-14T09:00:00",
        "2026-03-14T12:30:00",
        "2026-03-14T21:26:00",
    ]


def test_dates_of_a_calendar_that_is_not_known_are_no_dates() -> None:
    conversations, report = parse("14/9/1447, 21:26 - Teo: hi\n15/9/1447, 21:26 - Teo: ho")
    assert [m.local_time for m in conversations[0].messages] == [None, None]
    assert report.unknown == {"calendar:foreign": 2}


# --- messages ---------------------------------------------------------------------------------------------------------


def test_lines_below_belong_to_the_message_above() -> None:
    text = "3/14/26, 21:27 - Teo: one\n\n1) two: x\n3/15/26, 00:01 - Ana: 3/14/26, 21:27 - no header\n\n"
    assert said(text) == [
        ("2026-03-14T21:27:00", "Teo", "one\n\n1) two: x"),
        ("2026-03-15T00:01:00", "Ana", "3/14/26, 21:27 - no header"),
    ]


def test_notices_are_counted_and_not_said() -> None:
    conversations, report = parse(
        "3/14/26, 21:26 - Messages and calls are end-to-end encrypted.\n"
        "3/14/26, 21:26 - Ana added you\n"
        '3/14/26, 21:26 - Ana changed the group name from "Trip: Rome" to "Sea"\n'
        "3/14/26, 21:27 - Ana: hi\n"
        "3/14/26, 21:28 - Ana: This message was deleted\n"
        "3/14/26, 21:29 - Ana: Missed voice call\n"
        "3/14/26, 21:30 - Ana: Waiting for this message. This may take a while.\n"
    )
    assert shown(conversations[0]) == [("user", "Ana", "hi")]
    assert reasons(report) == [
        ("call", True, 1),
        ("deleted message", True, 1),
        ("message that had not arrived", True, 1),
        ("notice of WhatsApp", True, 3),
    ]


def ios(*texts: str) -> str:
    head = f"[14/03/2026, 9:26:40 PM] Harbour: {LRM}Messages and calls are end-to-end encrypted.\n"
    return head + "\n".join(f"[14/03/2026, 9:27:{n:02} PM] Teo: {text}" for n, text in enumerate(texts))


@pytest.mark.parametrize(
    ("written", "text", "files"),
    [
        (f"{LRM}image omitted", "", [Attachment(type="image")]),
        (f"{LRM}Bild weggelassen", "", [Attachment(type="image")]),
        (f"{LRM}vídeo omitido", "", [Attachment(type="video")]),
        (f"{LRM}zzz zzz", "", None),
        (f"{LRM}图像已忽略", "", [Attachment(type="image")]),
        (f"{LRM}画像は省略されました", "", [Attachment(type="image")]),
        (f"Look {LRM}image omitted", "Look", [Attachment(type="image")]),
        (f"plan.pdf • {LRM}3 pages {LRM}document omitted", "", [Attachment("plan.pdf", "document")]),
        (
            f"{LRM}<attached: 00000012-PHOTO-2026-03-14-21-27-00.jpg>",
            "",
            [Attachment("00000012-PHOTO-2026-03-14-21-27-00.jpg", "image")],
        ),
        (f"My plan {LRM}<Anhang: 00000031-plan.pdf>", "My plan", [Attachment("00000031-plan.pdf", "document")]),
        (f"{LRM}<pièce jointe : 00000007-AUDIO-2026.opus>", "", [Attachment("00000007-AUDIO-2026.opus", "audio")]),
        (
            f"{LRM}POLL:\nWhen?\n{LRM}OPTION: Now ({LRM}1 vote)\n{LRM}OPTION: Later ({LRM}0 votes)",
            "When?\n- Now\n- Later",
            [],
        ),
        (f"{LRM}Location: https://maps.google.com/?q=1,2", "Location: https://maps.google.com/?q=1,2", []),
        (f"no {LRM}<This message was edited>", "no", []),
        ("1 < 2 and <b>", "1 < 2 and <b>", []),
        ("image omitted from the report", "image omitted from the report", []),
    ],
)
def test_what_ios_writes(written: str, text: str, files: list[Attachment] | None) -> None:
    conversations, report = parse(ios("first", written), IOS)
    messages = conversations[0].messages[1:]
    if files is None:  # words that are not known: WhatsApp's own, since the mark says so
        assert messages == []
        assert ("notice of WhatsApp", True, 2) in reasons(report)
        return
    assert [(m.text, m.attachment) for m in messages] == [(text, files)]
    assert LRM not in messages[0].text


def test_the_chat_says_its_name_on_ios() -> None:
    conversation = only(ios("hi"), IOS)
    assert (conversation.title, conversation.order) == ("Harbour", "source")
    assert shown(conversation) == [("user", "Teo", "hi")]


@pytest.mark.parametrize(
    ("written", "text", "files"),
    [
        ("<Media omitted>", "", [Attachment(type="media")]),
        ("<Medien ausgeschlossen>", "", [Attachment(type="media")]),
        ("<Multimedia omitido>", "", [Attachment(type="media")]),
        ("<省略多媒体文件>", "", [Attachment(type="document")]),
        ("<Media omitted>\nplan.pdf", "", [Attachment("plan.pdf", "document")]),
        ("<Media omitted>\nlook at this", "look at this", [Attachment(type="media")]),
        ("IMG-20260314-WA0001.jpg (file attached)", "", [Attachment("IMG-20260314-WA0001.jpg", "image")]),
        (f"{LRM}PTT-20260314-WA0001.opus (Datei angehängt)", "", [Attachment("PTT-20260314-WA0001.opus", "audio")]),
        (
            "IMG-20260314-WA0001.jpg (archivo adjunto)\nthe pier",
            "the pier",
            [Attachment("IMG-20260314-WA0001.jpg", "image")],
        ),
        ("plan.pdf (文件附件)\nplan.pdf", "", [Attachment("plan.pdf", "document")]),
        ("STK-20260314-WA0001.webp (file attached)", "", [Attachment("STK-20260314-WA0001.webp", "sticker")]),
        ("Ana.vcf (file attached)", "", [Attachment("Ana.vcf", "contact")]),
        ("null", "", [Attachment(type="view once")]),
        ("so what <This message was edited>", "so what", []),
        ("so was <Diese Nachricht wurde bearbeitet.>", "so was", []),
        ("see plan.pdf (old)", "see plan.pdf (old)", []),
        ("<br>", "<br>", []),
    ],
)
def test_what_android_writes(written: str, text: str, files: list[Attachment]) -> None:
    messages = only(f"3/14/26, 21:26 - Ana: first\n3/14/26, 21:27 - Teo: {written}").messages[1:]
    assert [(m.text, m.attachment) for m in messages] == [(text, files)]
    assert messages[0].kind == (
        "text"
        if text
        else {"image": "image", "sticker": "image", "audio": "audio"}.get(files[0].type or "", "attachment")
    )


@pytest.mark.parametrize(
    "phrase",
    [
        "Diese Nachricht wurde gelöscht.",
        "Eliminaste este mensaje.",
        "此消息已删除",
        "このメッセージは削除されました",
        "Bu mesaj silindi",
    ],
)
def test_deleted_messages_of_many_languages(phrase: str) -> None:
    conversations, report = parse(f"3/14/26, 21:26 - Ana: first\n3/14/26, 21:27 - Teo: {phrase}")
    assert [m.text for m in conversations[0].messages] == ["first"]
    assert reasons(report) == [("deleted message", True, 1)]


def test_unsaved_contacts_numbers_and_marks_in_names() -> None:
    text = f"[14/03/2026, 9:26:40 PM] ~\u202fTeo: a\n[14/03/2026, 9:26:41 PM] {LRM}+49 170 0000000: b\n"
    assert [speaker for _, speaker, _ in said(text, IOS)] == ["Teo", "+49 170 0000000"]


def test_right_to_left_text_keeps_its_marks_inside() -> None:
    assert said("3/14/26, 21:26 - Ana: a \u200fשלום\u200f b")[0][2] == "a \u200fשלום\u200f b"


def test_byte_order_mark_and_line_ends() -> None:
    text = "\ufeff[14/03/2026, 9:26:41 PM] Ana: one\r\ntwo\r\n[14/03/2026, 9:26:42 PM] Ana: three\r\n"
    assert [text for _, _, text in said(text, IOS)] == ["one\ntwo", "three"]
    conversations, _ = read(READERS, {IOS: text.encode("utf-16")}, IOS)
    assert [m.text for m in conversations[0].messages] == ["one\ntwo", "three"]


# --- identity ---------------------------------------------------------------------------------------------------------

CHAT = "3/1/26, 21:26 - Ana: first\n3/1/26, 21:26 - Ana: first\n3/2/26, 21:27 - Teo: <Media omitted>\n"
GROWN = CHAT + "3/14/26, 21:27 - Ana: later\n"


def test_a_chat_stays_the_same_when_it_grows_and_days_become_certain() -> None:
    short, grown = only(CHAT), only(GROWN)
    assert short.key == grown.key
    assert [m.message_id for m in grown.messages][:3] == [m.message_id for m in short.messages]
    assert [m.text for m in merge([short, grown]).messages] == ["first", "first", "", "later"]
    assert to_record(merge([short, grown])) == to_record(merge([grown, short]))


def test_an_export_with_media_is_the_same_chat() -> None:
    media = only(CHAT.replace("<Media omitted>", "IMG-20260302-WA0001.jpg (file attached)"))
    assert (media.key, [m.message_id for m in media.messages]) == (
        only(CHAT).key,
        [m.message_id for m in only(CHAT).messages],
    )


def test_a_renamed_contact_does_not_double_the_chat() -> None:
    merged = merge([only(CHAT), only(CHAT.replace("Ana", "Ana Maria"))])
    assert len(merged.messages) == 3


@pytest.mark.parametrize(
    ("name", "chat"),
    [
        ("WhatsApp Chat with Harbour", "Harbour"),
        ("WhatsApp Chat - Harbour (2)", "Harbour"),
        ("WhatsApp-Chat mit Opa & Oma", "Opa & Oma"),
        ("Chat de WhatsApp con José: viaje", "José: viaje"),
        ("Conversa do WhatsApp com Grupo do Zé com Café", "Grupo do Zé com Café"),
        ("Discussion WhatsApp avec Léa", "Léa"),
        ("Чат WhatsApp с контактом Иван", "Иван"),
        ("与小王的 WhatsApp 聊天", "小王"),
        ("與小王的 WhatsApp 對話", "小王"),
        ("太郎とのWhatsAppチャット", "太郎"),
        ("영희님과의 WhatsApp 대화", "영희"),
        ("Ali ile WhatsApp Sohbeti", "Ali"),
        ("צ'אט WhatsApp עם דן", "דן"),
        ("family", None),
        ("_chat", None),
    ],
)
def test_the_name_of_the_chat_is_in_the_name_of_the_file(name: str, chat: str | None) -> None:
    assert chat_name(name) == chat


def test_a_zip_with_media(tmp_path: Path) -> None:
    path = tmp_path / "WhatsApp Chat - Sea & Co.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_chat.txt", ios("hi", f"{LRM}<attached: 00000001-PHOTO-2026.jpg>"))
        archive.writestr("00000001-PHOTO-2026.jpg", b"\xff\xd8\xff")
    answer = parse_path(path)
    assert [(c["provider"], c["title"], len(c["messages"])) for c in answer["conversations"]] == [
        ("whatsapp", "Sea & Co", 2)
    ]
    assert all(skip["expected"] for skip in answer["skipped"])


# --- what is one ------------------------------------------------------------------------------------------------------


def detected(text: str, path: str = "notes.txt") -> bool:
    try:
        read(READERS, {path: text.encode()}, path)
    except StopIteration:
        return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        "3/14/26, 21:27 - Teo: the only dated line\nand text",
        "A diary\n3/14/26, 21:27 - Teo: hi\n3/14/26, 21:28 - Ana: ho",
        "2026-03-14 09:30 - Standup: planned\n2026-03-14 10:30 - Review: looked\n2026-03-14 11:30 - Lunch: ate",
        "[2026-03-14 10:00:00] ERROR: boom\n[2026-03-14 10:00:01] ERROR: boom\n[2026-03-14 10:00:02] INFO: ok",
        "[2026-03-14 10:00] Teo: hi\n[2026-03-14 10:01] Ana: ho\n[2026-03-14 10:02] Teo: hm",
        "3/14/26, 21:26 - nobody speaks\n3/14/26, 21:27 - here",
        "",
    ],
)
def test_notes_and_logs_are_no_chats(text: str) -> None:
    assert not detected(text)
    assert not detected(text, "chat.md")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("2023-12-20, 5:46 p.m. - Sam: 👋", "WhatsApp Chat with Sam.txt"),
        ("2023-12-20, 5:46 p.m. - Sam: 👋", "WhatsApp Chat with Sam.zip!/_chat.txt"),
        ("2023-12-20, 5:46 p.m. - Sam: 👋\n2023-12-20, 5:47 p.m. - Ana: ho", "renamed.txt"),
        ("3/14/26, 21:26 - Ana added you\n3/14/26, 21:27 - Teo: <Media omitted>", "renamed.txt"),
        ("3/14/26, 21:26 - Ana: hi", "WhatsApp Chat with Ana"),
    ],
)
def test_chats_are_known_by_their_lines_and_their_name(text: str, path: str) -> None:
    assert detected(text, path)


def test_text_before_the_first_message_is_counted() -> None:
    # Detection wants the first line to be one; a reader that is asked directly loses nothing in silence.
    report = Report(ANDROID)
    found = list(whatsapp.READER.read(MemoryMember({ANDROID: b"intro\n3/14/26, 21:26 - Ana: hi"}, ANDROID), report))
    assert len(found) == 1
    assert reasons(report) == [("text before the first message", False, 1)]


@given(st.text(alphabet="[]/.,:- \n\u200e0123456789PMT:abc<>(){}", max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_is_a_crash_and_none_is_lost(text: str) -> None:
    whole = f"3/14/26, 21:26 - Ana: first\n3/14/26, 21:27 - Teo: x{text}"
    conversations, _ = parse(whole)
    for conversation in conversations:
        to_record(conversation)
    assert conversations[0].messages[0].text == "first"
