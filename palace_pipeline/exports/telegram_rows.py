"""A record of Telegram's export -> a message: text in pieces, media by kind, polls, places, contacts.

Facts: https://github.com/telegramdesktop/tdesktop `export_output_json.cpp`, checked 2026-11-29.
"""

from __future__ import annotations

from typing import Any

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.json_values import count_of, id_of, name_of, text_of, words_of
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Citation, Kind, Message

ACTIONS = frozenset(
    """
    create_group edit_group_title edit_group_photo delete_group_photo invite_members remove_members join_group_by_link
    join_group_by_request create_channel migrate_to_supergroup migrate_from_group pin_message clear_history
    score_in_game send_payment phone_call conference_call take_screenshot attach_menu_bot_allowed web_app_bot_allowed
    allow_sending_messages send_passport_values joined_telegram proximity_reached requested_phone_number group_call
    invite_to_group_call set_messages_ttl group_call_scheduled edit_chat_theme send_webview_data send_premium_gift
    topic_created topic_edit suggest_profile_photo requested_peer set_chat_wallpaper set_same_chat_wallpaper
    gift_code_prize giveaway_launch giveaway_results boost_apply send_star_gift send_stars_gift refunded_payment
    paid_messages_refunded paid_messages_price_change send_gift todo_completions todo_append_tasks suggest_birthday
    no_forwards_toggle
    """.split()  # noqa: SIM905 - fifty quoted names would read worse
)
"""What Telegram writes about a chat; nobody said it."""
_ENTITIES = frozenset(
    """
    unknown mention hashtag bot_command link email bold italic code pre plain text_link mention_name phone cashtag
    underline strikethrough blockquote bank_card spoiler custom_emoji date
    """.split()  # noqa: SIM905
)
_BESIDE = frozenset(
    """
    poll todo_list photo file media_type contact_information location_information game_title invoice_information
    giveaway_information giveaway_results paid_media story stories
    """.split()  # noqa: SIM905
)
"""Keys of what is sent beside a text."""
_MEDIA: dict[str, tuple[str, Kind]] = {
    "sticker": ("sticker", "image"),
    "animation": ("animation", "attachment"),
    "video_message": ("video", "attachment"),
    "video_file": ("video", "attachment"),
    "voice_message": ("audio", "audio"),
    "audio_file": ("audio", "audio"),
}


def as_message(record: dict[str, Any], bot: str | None, report: Report) -> Message | None:
    """The message of a record of type `message`, or None if nothing was said. `bot`: `from_id` of a program."""
    citations: list[Citation] = []
    text = _text(record.get("text"), citations, report).strip()
    if not text:
        citations.clear()
        text = _text(record.get("text_entities"), citations, report).strip()
    files: list[Attachment] = []
    kind: Kind = "attachment"
    if not _BESIDE.isdisjoint(record):
        text = "\n\n".join(part for part in (text, _poll(record.get("poll")), _todo(record)) if part)
        files, kind = _files(record)
    if not text and not files:
        return None
    created = parse_instant(record.get("date_unixtime"))
    speaker_id = name_of(record.get("from_id"))
    return Message(
        id_of(record.get("id")),
        "bot" if bot is not None and speaker_id == bot else "user",
        text,
        kind="text" if text else kind,
        created_at=created or parse_instant(record.get("date")),
        local_time=None if created else parse_naive(record.get("date")),
        parent_id=id_of(record["reply_to_message_id"]) or None if "reply_to_message_id" in record else None,
        speaker=name_of(record.get("from")) or name_of(record.get("author")) or speaker_id,
        edited_at=parse_instant(record["edited_unixtime"]) if "edited_unixtime" in record else None,
        citations=list({citation.url: citation for citation in citations}.values()) if citations else citations,
        attachment=files,
    )


def _text(value: Any, citations: list[Citation], report: Report) -> str:
    """A text, or pieces of one: strings and objects with a `text`; what stands behind a link is cited."""
    if isinstance(value, str):
        return text_of(value)
    pieces: list[str] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            pieces.append(text_of(item))
        elif isinstance(item, dict):
            piece, kind = words_of(item.get("text", item), report), item.get("type")
            if isinstance(kind, str) and kind not in _ENTITIES:
                report.unknown[f"entity:{kind}"] += 1
            if "href" in item and (address := name_of(item["href"])) is not None:
                citations.append(Citation(address, piece.strip() or None))
            pieces.append(piece)
        else:
            words_of(item, report)
    return "".join(pieces)


def _answers(value: Any) -> list[str]:
    found = value if isinstance(value, list) else []
    texts = [item.get("text") if isinstance(item, dict) else item for item in found]
    return [f"- {line}" for text in texts if (line := _piece(text))]


def _piece(value: Any) -> str:
    """A short text, which newer versions write in pieces."""
    if isinstance(value, list):
        return "".join(text_of(item.get("text") if isinstance(item, dict) else item) for item in value).strip()
    return text_of(value).strip()


def _poll(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    question = _piece(value.get("question"))
    return "\n".join([*([question] if question else []), *_answers(value.get("answers"))])


def _todo(record: dict[str, Any]) -> str:
    value = record.get("todo_list")
    if not isinstance(value, dict):
        return ""
    title = _piece(value.get("title"))
    return "\n".join([*([title] if title else []), *_answers(value.get("answers"))])


def _files(record: dict[str, Any]) -> tuple[list[Attachment], Kind]:
    """What was sent beside the text, and the kind of a message that is nothing else."""
    files: list[Attachment] = []
    kind: Kind = "attachment"
    if isinstance(record.get("photo"), str):
        files.append(_file(record, "photo", "image", "photo_file_size"))
        kind = "image"
    media = record.get("media_type")
    shown, media_kind = _MEDIA.get(media, (None, kind)) if isinstance(media, str) else (None, kind)
    if isinstance(record.get("file"), str) or isinstance(media, str):
        files.append(_file(record, "file", name_of(record.get("mime_type")) or shown, "file_size"))
        kind = media_kind
        emoji = name_of(record.get("sticker_emoji"))
        if media == "sticker":
            files[-1].type = "sticker"
            files[-1].text = emoji
    if isinstance(contact := record.get("contact_information"), dict):
        parts = (name_of(contact.get(key)) for key in ("first_name", "last_name", "phone_number"))
        files.append(_card("contact", " ".join(part for part in parts if part)))
    if isinstance(place := record.get("location_information"), dict):
        at = ", ".join(str(place[key]) for key in ("latitude", "longitude") if isinstance(place.get(key), int | float))
        named = (name_of(record.get("place_name")), name_of(record.get("address")))
        files.append(_card("location", "\n".join(part for part in (*named, at) if part)))
    if (game := name_of(record.get("game_title"))) is not None:
        files.append(_card("game", game))
    if isinstance(invoice := record.get("invoice_information"), dict):
        files.append(_card("invoice", name_of(invoice.get("title")) or ""))
    for name in ("giveaway_information", "giveaway_results", "paid_media", "story", "stories"):
        if record.get(name) is not None:
            files.append(Attachment(type=name))
    return files, kind


def _file(record: dict[str, Any], key: str, kind: str | None, size: str) -> Attachment:
    """A file by its path in the export, or by its own name if it was not exported."""
    path = name_of(record.get(key))
    given = name_of(record.get("file_name")) if key == "file" else None
    if path is not None and path.startswith("("):
        path = None  # "(File not included. Change data exporting settings to download.)"
    elif path is not None and path.endswith(")") and " (File " in path:
        path = path.partition(" (File ")[0]
    return Attachment(path or given, kind, count_of(record.get(size)) or None)


def _card(kind: str, text: str) -> Attachment:
    return Attachment(type=kind, text=text or None)
