"""Discord, as DiscordChatExporter saves it: one JSON file per channel or thread, long ones in `[part N]` files.

Facts: https://github.com/Tyrrrz/DiscordChatExporter `JsonMessageWriter.cs`, `MessageKind.cs`, its issues 413 (a crash
leaves a cut file) and 1322 (forwarded messages), and https://docs.discord.com/developers/resources/message for the
kinds that it writes as numbers; checked 2026-11-29. Files of one channel are merged by channel id, messages by theirs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from palace_pipeline.exports import known_keys
from palace_pipeline.exports.attachments import base_name
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.detect import completed
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import count_of, dict_of, dicts_of, id_of, name_of, text_of, words_of
from palace_pipeline.exports.plaintext import stem
from palace_pipeline.exports.records import records_of
from palace_pipeline.exports.text import parse_json
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Citation, Conversation, Kind, Message

_SAID = frozenset("Default Reply ThreadStarterMessage 0 19 20 21 23".split())  # noqa: SIM905
"""Kinds that somebody said; 20 and 23 are answers to commands, which the exporter has no name for."""
_NOTICES = frozenset(
    """
    RecipientAdd RecipientRemove Call ChannelNameChange ChannelIconChange ChannelPinnedMessage GuildMemberJoin
    ThreadCreated 1 2 3 4 5 6 7 8 9 10 11 12 14 15 16 17 18 22 24 25 26 27 28 29 31 32 36 37 38 39 44 46
    """.split()  # noqa: SIM905 - forty quoted names would read worse
)
"""Records that Discord itself writes: joins, pins, boosts, calls, results of polls."""
_HEAD_BYTES = 65536
_MENTION = re.compile(r"<@!?(\d+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")
_SPACE = b"\xef\xbb\xbf \t\r\n\0"


class DiscordReader:
    """Reads one channel file, message by message."""

    format = "discord-chat-exporter"
    provider = "discord"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/Tyrrrz/DiscordChatExporter JsonMessageWriter.cs",
        "high",
        name="Discord channel",
        where="DiscordChatExporter, format JSON",
        since="2018",
    )
    layout: Literal["whole"] = "whole"
    known_keys = known_keys.DISCORD

    def detect(self, head: Head) -> bool:
        value = head.items[0] if head.shape == "object" and head.items else None
        return (
            isinstance(value, dict)
            and isinstance(value.get("guild"), dict)
            and isinstance(value.get("channel"), dict)
            and bool({"messages", "exportedAt", "dateRange"} & set(head.keys))
        )

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """At most one conversation; of a file that is cut, the messages before the cut."""
        head = _beginning(member)
        notices = Counter[str]()
        by_id: dict[str, Message] = {}
        for place, record in records_of(member, report, "messages", _is_message):
            message = _message(record, place, notices, report)
            if message is not None:
                by_id[message.message_id or f"#{len(by_id)}"] = message
        for reason, count in notices.items():
            report.skip(reason, expected=True, count=count)
        messages = list(by_id.values())
        if messages:
            yield _conversation(head, messages, member)
        elif not notices and not report.skips:
            report.skip("channel without messages", expected=True, unit="conversation")


READER = DiscordReader()


def _beginning(member: Member) -> dict[str, Any]:
    """Guild and channel, which stand before the messages."""
    with member.open() as stream:
        data = stream.read(_HEAD_BYTES)
    try:
        value = parse_json(completed(data.lstrip(_SPACE)))
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "timestamp" in value and isinstance(value.get("author"), dict)


def _conversation(head: dict[str, Any], messages: list[Message], member: Member) -> Conversation:
    guild, channel = dict_of(head.get("guild")), dict_of(head.get("channel"))
    name, guild_name = name_of(channel.get("name")), name_of(guild.get("name"))
    channel_id = id_of(channel.get("id")) or derive_conversation_id("discord", name or stem(member.path), messages)
    derive_ids(messages)
    private = str(channel.get("type")).startswith("Direct") or guild.get("id") in ("0", 0)
    return Conversation(
        "discord",
        channel_id,
        messages,
        title=name,
        project=name if private else guild_name or name,
        order="time" if any(message.created_at for message in messages) else "source",
    )


# --- messages ---------------------------------------------------------------------------------------------------------


def _message(record: Any, place: str, notices: Counter[str], report: Report) -> Message | None:
    if not isinstance(record, dict):
        report.skip("null in place of a message" if record is None else "not a message", place, expected=record is None)
        return None
    kind = id_of(record.get("type")) or "Default"
    if kind in _NOTICES:
        notices[f"notice of Discord ({kind})"] += 1
        return None
    if kind not in _SAID:
        report.unknown[f"type:{kind}"] += 1
    message = _said(record)
    if message.text or message.attachment:
        words_of(record.get("content"), report, place)
    else:
        if "content" in record and (not record["content"] or isinstance(record["content"], str)):
            notices["empty message"] += 1
        else:
            report.skip("message without content", place, expected=False)
        return None
    return message


def _said(record: dict[str, Any]) -> Message:
    author, created = dict_of(record.get("author")), parse_instant(record.get("timestamp"))
    bot = author.get("isBot") is True
    citations: list[Citation] = []
    text = _text(record, record, citations, bot=bot)
    files = _files(record)
    if record.get("forwardedMessage") or record.get("poll"):
        forwarded = dict_of(record.get("forwardedMessage"))
        parts = (text, _text(forwarded, record, citations, bot=True), _poll(record.get("poll")))
        text = "\n\n".join(part for part in parts if part)
        files += _files(forwarded)
    return Message(
        id_of(record.get("id")),
        "bot" if bot else "user",
        text,
        kind="text" if text else _kind(files),
        created_at=created,
        local_time=None if created else parse_naive(record.get("timestamp")),
        parent_id=_replies_to(record["reference"]) if record.get("reference") else None,
        speaker=name_of(author.get("nickname")) or name_of(author.get("name")) or id_of(author.get("id")) or None,
        edited_at=parse_instant(record.get("timestampEdited")),
        citations=list({citation.url: citation for citation in citations}.values()) if citations else citations,
        attachment=files,
    )


def _replies_to(value: Any) -> str | None:
    """The message that is answered; a forwarded one is none."""
    reference = dict_of(value)
    return None if reference.get("type") == "Forward" else id_of(reference.get("messageId")) or None


def _text(holder: dict[str, Any], record: dict[str, Any], citations: list[Citation], *, bot: bool) -> str:
    """What was said. A program's embeds are its words; a person's embeds are previews of links, which are cited."""
    said = _plain(text_of(holder.get("content")), record).strip()
    if not holder.get("embeds"):
        return said
    embeds: list[str] = []
    for embed in dicts_of(holder.get("embeds")):
        if (url := name_of(embed.get("url"))) is not None:
            citations.append(Citation(url, name_of(embed.get("title"))))
        if bot or not said:
            embeds.append(_embed(embed))
    return "\n\n".join(part for part in (said, *embeds) if part and (part is said or part not in said))


def _plain(text: str, record: dict[str, Any]) -> str:
    """Text with mentions as `@name` and custom emoji as `:name:`, as far as the exporter has left that to others."""
    if "<" not in text:
        return text
    names = {
        id_of(user.get("id")): name_of(user.get("nickname")) or name_of(user.get("name"))
        for user in dicts_of(record.get("mentions"))
    }
    return _EMOJI.sub(r"\1", _MENTION.sub(lambda match: "@" + (names.get(match[1]) or match[1]), text))


def _embed(embed: dict[str, Any]) -> str:
    lines = [name_of(dict_of(embed.get("author")).get("name")), name_of(embed.get("title"))]
    lines.append(name_of(embed.get("description")))
    for field in dicts_of(embed.get("fields")):
        pair = (name_of(field.get("name")), name_of(field.get("value")))
        lines.append(": ".join(part for part in pair if part))
    lines.append(name_of(dict_of(embed.get("footer")).get("text")))
    return "\n".join(line for line in lines if line)


def _poll(value: Any) -> str:
    """Question and answers; Discord nests each text in an object."""
    poll = dict_of(value)
    question = _poll_text(poll.get("question"))
    answers = [_poll_text(answer) for answer in poll["answers"]] if isinstance(poll.get("answers"), list) else []
    return "\n".join([*([question] if question else []), *(f"- {answer}" for answer in answers if answer)])


def _poll_text(value: Any) -> str:
    for _ in range(4):
        if not isinstance(value, dict):
            break
        keys = ("text", "answer", "media", "pollMedia", "poll_media", "question")
        value = next((value[key] for key in keys if key in value), None)
    return text_of(value).strip()


def _files(holder: dict[str, Any]) -> list[Attachment]:
    """Attachments by name and size, stickers by name. The addresses of attachments expire and are left out."""
    if not (holder.get("attachments") or holder.get("stickers")):
        return []
    files = [
        Attachment(
            name_of(file.get("fileName")) or base_name(text_of(file.get("url")).split("?")[0]) or None,
            size=count_of(file.get("fileSizeBytes")) or None,
        )
        for file in dicts_of(holder.get("attachments"))
    ]
    return files + [Attachment(name_of(sticker.get("name")), "sticker") for sticker in dicts_of(holder.get("stickers"))]


_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".heic", ".bmp")
_SOUNDS = (".ogg", ".opus", ".mp3", ".m4a", ".wav", ".flac", ".aac")


def _kind(files: Iterable[Attachment]) -> Kind:
    names = [(file.name or "").lower() for file in files]
    if all(name.endswith(_IMAGES) for name in names):
        return "image"
    return "audio" if all(name.endswith(_SOUNDS) for name in names) else "attachment"
