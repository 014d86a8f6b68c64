"""Slack: one JSON file per channel and day, names in files beside the folders.

Facts: https://slack.com/help/articles/220556107-How-to-read-Slack-data-exports, the event reference of docs.slack.dev,
and public parsers (slack-export-viewer, zulip, mmetl), checked 2026-11-29. A day file is a part of its channel's
conversation; the parts are merged by channel id, their messages by `ts`, which is id and time in one.
"""

from __future__ import annotations

import re
import unicodedata
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from palace_pipeline.exports import known_keys
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.containers import mark_of
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.plaintext import stem
from palace_pipeline.exports.records import opens_with, records_of
from palace_pipeline.exports.slack_text import Names, attachment_text, block_text, plain
from palace_pipeline.exports.text import clean_text, parse_json
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.model import Attachment, Citation, Conversation, Kind, Message

_NOTICES = frozenset(
    """
    channel_join channel_leave channel_topic channel_purpose channel_name channel_archive channel_unarchive
    channel_convert_to_private channel_convert_to_public channel_posting_permissions channel_canvas_updated
    group_join group_leave group_topic group_purpose group_name group_archive group_unarchive
    bot_add bot_remove bot_enable bot_disable pinned_item unpinned_item reminder_add reminder_delete
    joiner_notification joiner_notification_for_inviter app_conversation_join app_conversation_leave
    huddle_thread sh_room_created sh_room_shared tabbed_canvas_updated assistant_app_thread
    tombstone message_deleted message_replied
    """.split()  # noqa: SIM905 - thirty quoted names would read worse
)
"""Records that Slack itself writes about the channel: nobody said them."""
_SAID = frozenset(
    """
    file_share file_comment file_mention me_message thread_broadcast reply_broadcast bot_message slackbot_response
    message_changed
    """.split()  # noqa: SIM905
)
_BOT_SUBTYPES = ("bot_message", "slackbot_response")
_LISTS = (("users.json", "org_users.json"), ("channels.json", "groups.json", "mpims.json", "dms.json"))
"""Files beside the folders that name users, and channels."""
_DAY_FILE = re.compile(r"\d{4}-\d\d-\d\d")
_ID = re.compile(r"[CDG][A-Z0-9]{6,}")


@dataclass(frozen=True, slots=True)
class Channel:
    """The conversation that a folder is. `id` is None for a list of messages that lies in no export."""

    id: str | None
    name: str | None = None
    created: object = None


class SlackReader:
    """Reads a day file of an export, and lists of Slack messages that lie alone."""

    format = "slack-export"
    provider = "slack"
    recipe = 2
    spec = SpecTarget(
        "2026-11-29",
        "Slack help 220556107, docs.slack.dev, public parsers",
        "high",
        name="Slack export",
        where="workspace settings → Import/Export data: ZIP with `channels.json`, `users.json`, a folder per channel",
        since="2014",
    )
    layout: Literal["whole"] = "whole"
    known_keys = known_keys.SLACK

    def detect(self, head: Head) -> bool:
        if head.shape == "object" and head.wrapped is None and head.items:
            return _are_messages(head.items[0].get("messages"))
        return head.shape == "array" and _are_messages(head.items)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        records = [*records_of(member, report, None if opens_with(member) == b"[" else "messages")]
        names, channels = _names_beside(member)
        if not channels and "!/" in member.path and _DAY_FILE.fullmatch(stem(member.path)):
            # A ZIP is a whole export, and Slack's always lists its channels: this one is a torn or foreign archive, and
            # its rows could not be told from those of another channel of that name. Unpacked, the folder is read.
            reason = "day file of a Slack export whose channels.json is missing in the ZIP; unpack it to have it read"
            report.skip(reason, expected=False, count=len(records), unit="message")
            return
        channel = _channel_of(member, channels)
        names = _with_profiles(names, (record for _, record in records))
        messages = _messages(records, names, report)
        if not messages:
            return
        if channel.id is None:
            channel = replace(channel, id=derive_conversation_id("slack", stem(member.path), messages))
        derive_ids(messages)
        yield Conversation(
            "slack",
            channel.id or "",
            messages,
            title=channel.name,
            created_at=parse_instant(channel.created),
            project=channel.name,
            order="time" if any(message.created_at for message in messages) else "source",
            source_file=member.path,
        )


READER = SlackReader()


def _are_messages(values: object) -> bool:
    """Most of the values call themselves messages, and one surely is Slack's."""
    if not isinstance(values, list):
        return False
    records = [value for value in values if isinstance(value, dict)]
    called = [record for record in records if record.get("type") == "message"]
    return len(called) * 2 > len(records) and any(map(_is_message, called))


def _is_message(record: dict[str, Any]) -> bool:
    """OpenAI's messages have a `role`, Telegram's a `date` and a `from`."""
    if "role" in record:
        return False
    speaks = any(isinstance(record.get(key), str) for key in ("user", "bot_id", "username"))
    return isinstance(record.get("ts"), str) or (speaks and isinstance(record.get("text"), str))


# --- what lies beside -------------------------------------------------------------------------------------------------


def _channel_of(member: Member, channels: Mapping[str, Channel]) -> Channel:
    """The channel that the member's folder is: by name or id in the export's lists, else the folder itself."""
    parts = member.path.split("/")
    folder = unicodedata.normalize("NFC", parts[-2]) if len(parts) > 1 and not parts[-2].endswith("!") else ""
    if not folder:
        return Channel(None)
    if (known := channels.get(folder)) is not None:
        return known
    if channels or _DAY_FILE.fullmatch(stem(member.path)):
        return Channel(folder, None if _ID.fullmatch(folder) else folder)
    return Channel(None)


def _names_beside(member: Member) -> tuple[Names, Mapping[str, Channel]]:
    """Users and channels (by folder name and by id) of the export in which the member lies.

    What was read last is remembered: every day file of an export asks for the same.
    """
    beside = [[found for name in names if (found := member.near(f"../{name}"))] for names in _LISTS]
    marks = tuple(tuple(mark_of(found) for found in found_lists) for found_lists in beside)
    known = all(mark is not None for group in marks for mark in group)
    if known and marks in _remembered:
        _remembered.move_to_end(marks)
        return _remembered[marks]
    found = _read_names(*beside)
    if known:
        _remembered[marks] = found
        if len(_remembered) > _EXPORTS_REMEMBERED:
            _remembered.popitem(last=False)
    return found


_remembered: OrderedDict[Hashable, tuple[Names, Mapping[str, Channel]]] = OrderedDict()
_EXPORTS_REMEMBERED = 4


def _read_names(user_lists: Iterable[Member], channel_lists: Iterable[Member]) -> tuple[Names, Mapping[str, Channel]]:
    users: dict[str, str] = {}
    bots: set[str] = set()
    for user in _records_of(user_lists):
        if isinstance(user_id := user.get("id"), str):
            users[user_id] = _display_name(user) or user_id
            if user.get("is_bot") is True or user_id == "USLACKBOT":
                bots.add(user_id)
    channels: dict[str, Channel] = {}
    for record in _records_of(channel_lists):
        if isinstance(channel_id := record.get("id"), str):
            name = record.get("name")
            name = unicodedata.normalize("NFC", clean_text(name)) if isinstance(name, str) and name else None
            channel = Channel(channel_id, name, record.get("created"))
            channels[channel_id] = channel
            if name is not None:
                channels.setdefault(name, channel)
    titles = {channel.id: channel.name for channel in channels.values() if channel.id and channel.name}
    return Names(users, titles, frozenset(bots), frozenset(users) - bots), channels


def _records_of(lists: Iterable[Member]) -> Iterator[dict[str, Any]]:
    """The objects of JSON lists."""
    for member in lists:
        with member.open() as stream:
            data = stream.read()
        try:
            value = parse_json(data.removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError):
            continue  # the messages are worth reading without names
        yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _display_name(user: Mapping[str, Any]) -> str | None:
    """`display_name`, which may be "", then `real_name`, then `name`; from the profile first."""
    profile = user.get("profile")
    holders = (profile, user) if isinstance(profile, dict) else (user,)
    for key in ("display_name", "real_name", "name"):
        for holder in holders:
            if isinstance(name := holder.get(key), str) and name.strip():
                return clean_text(name).strip()
    return None


def _with_profiles(names: Names, records: Iterable[Any]) -> Names:
    """The names, with those that messages carry of their authors (guests and people of other workspaces)."""
    found: dict[str, str] = {}
    for record in records:
        if not isinstance(record, dict):
            continue
        user, profile = record.get("user"), record.get("user_profile")
        if not isinstance(user, str) or user in names.users or user in found or not isinstance(profile, dict):
            continue
        if name := _display_name(profile):
            found[user] = name
    return replace(names, users={**names.users, **found}) if found else names


# --- messages ---------------------------------------------------------------------------------------------------------


def _messages(records: Iterable[tuple[str, Any]], names: Names, report: Report) -> list[Message]:
    """Messages in the order of the file; of two records of one message the later one counts."""
    by_id: dict[str, Message] = {}
    for place, record in records:
        message = _message(record, place, names, report)
        if message is not None:
            by_id[message.message_id or f"#{len(by_id)}"] = message
    return list(by_id.values())


def _message(record: Any, place: str, names: Names, report: Report) -> Message | None:
    if record is None:
        report.skip("null in place of a message", place, expected=True)
        return None
    if not isinstance(record, dict):
        report.skip("not a message", place, expected=False)
        return None
    subtype = _string(record, "subtype")
    if subtype == "message_changed" and isinstance(record.get("message"), dict):
        record = {"type": "message", **record["message"]}
        subtype = _string(record, "subtype")
    if record.get("type", "message") != "message":
        report.unknown[f"type:{record.get('type')}"] += 1
        report.skip("not a message", place, expected=False)
        return None
    if subtype in _NOTICES:
        report.skip(str(subtype), place, expected=True)
        return None
    if subtype is not None and subtype not in _SAID:
        report.unknown[f"subtype:{subtype}"] += 1
    message = _said(record, names)
    if not message.text and not message.attachment:
        report.skip("empty message", place, expected=True)
        return None
    return message


def _said(record: dict[str, Any], names: Names) -> Message:
    stamp = _stamp(record.get("ts"))
    thread = _stamp(record["thread_ts"]) if "thread_ts" in record else ""
    bot = _is_bot(record, names)
    citations: list[Citation] = []
    files = _files(record)
    edited = record.get("edited")
    text = _text(record, names, citations, bot=bot)
    return Message(
        stamp,
        "bot" if bot else "user",
        text,
        kind="text" if text else _kind(files),
        created_at=parse_instant(stamp),
        parent_id=thread if thread and thread != stamp else None,
        speaker=_speaker(record, names, bot=bot),
        edited_at=parse_instant(edited.get("ts")) if isinstance(edited, dict) else None,
        citations=list({citation.url: citation for citation in citations}.values()) if citations else [],
        attachment=files,
    )


def _string(record: Mapping[str, Any], key: str) -> str | None:
    return value if isinstance(value := record.get(key), str) else None


def _stamp(value: object) -> str:
    """`ts` as text: as a number it would lose its last digits."""
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""


def _text(record: dict[str, Any], names: Names, citations: list[Citation], *, bot: bool) -> str:
    """What was said: `text`, for programs also what blocks and attachments add, for people what they forwarded."""
    text = record.get("text")
    said = plain(text, names, citations).strip() if isinstance(text, str) else ""
    if not said or bot:
        # A program's text may be a short form of its blocks, for notifications; a person's blocks repeat the text.
        held = _bare(said)
        lines = block_text(record.get("blocks"), names, citations).split("\n")
        said = "\n".join(part for part in (said, *(line for line in lines if _bare(line) not in held)) if part)
    if not (attachments := record.get("attachments")):
        return said
    more = attachment_text(attachments, names, citations, shared_only=not bot and bool(said))
    return "\n\n".join(part for part in (said, more if more not in said else "") if part)


def _bare(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


def _is_bot(record: dict[str, Any], names: Names) -> bool:
    """Posted by a program. One that posts for a person (`bot_id` and the `user` of somebody known) is that person."""
    user = _string(record, "user")
    if _string(record, "subtype") in _BOT_SUBTYPES or user == "USLACKBOT" or user in names.bots:
        return True
    return user not in names.people and bool(record.get("bot_id") or (not user and record.get("username")))


def _speaker(record: dict[str, Any], names: Names, *, bot: bool) -> str | None:
    user, comment = _string(record, "user"), record.get("comment")
    if user is None and isinstance(comment, dict):
        user = _string(comment, "user")
    profile = record.get("bot_profile")
    known = names.users.get(user) if user is not None else None
    called = record.get("username")
    program = profile.get("name") if isinstance(profile, dict) else None
    for name in (called, program, known, user, record.get("bot_id")) if bot else (known, called, user):
        if isinstance(name, str) and name.strip():
            return clean_text(name).strip()
    return None


def _files(record: dict[str, Any]) -> list[Attachment]:
    """Files by name, type and size. Their addresses carry a token of the export and are left out."""
    files = record.get("files")
    if files is None and "file" not in record:
        return []
    found = files if isinstance(files, list) else [record.get("file")]
    return [_file(file) for file in found if isinstance(file, dict)]


def _file(file: dict[str, Any]) -> Attachment:
    name = next((v for key in ("name", "title", "id") if isinstance(v := file.get(key), str) and v.strip()), None)
    kind, size = file.get("mimetype") or file.get("filetype"), file.get("size")
    spoken = file.get("transcription")
    preview = spoken.get("preview") if isinstance(spoken, dict) else None
    spoken_text = preview.get("content") if isinstance(preview, dict) else None
    candidates = (file.get("plain_text"), spoken_text, file.get("preview"))
    text = next((value for value in candidates if isinstance(value, str) and value.strip()), None)
    return Attachment(
        name=clean_text(name) if name is not None else None,
        type=kind if isinstance(kind, str) else None,
        size=size if isinstance(size, int) and 0 <= size < 1 << 53 else None,
        text=clean_text(text) if text is not None else None,
    )


def _kind(files: list[Attachment]) -> Kind:
    kinds = {(file.type or "").partition("/")[0] for file in files}
    return "image" if kinds == {"image"} else "audio" if kinds == {"audio"} else "attachment"
