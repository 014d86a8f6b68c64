"""OpenClaw: what its gateway and plugins put into a user's message -> the person's words, and the rest.

The gateway writes a date before a message that comes from a window (`[Wed 2026-02-18 11:21 GMT+1] `), a header with the
sender before one that comes from a channel, blocks of "untrusted metadata", queued system events, and notes on media.
Its own windows hide all that (src/shared/chat-envelope.ts, src/auto-reply/reply/strip-inbound-meta.ts,
src/gateway/server-methods/agent-timestamp.ts of https://github.com/openclaw/openclaw, checked 2026-11-29).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

from palace_pipeline.exports.agent_log import cut_blocks
from palace_pipeline.exports.attachments import base_name
from palace_pipeline.model import Attachment, Origin

_CHANNELS = (
    "WebChat|WhatsApp|Telegram|Signal|Slack|Discord|Google Chat|iMessage|Teams|MSTeams|Matrix|Zalo|Zalo Personal"
    "|BlueBubbles|LINE|Feishu|Lark|WeChat|QQ|DingTalk|Mattermost|IRC|Nostr|Twitch"
)
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?"
_ZONE = r"[A-Za-z]{1,5}(?:[+-]\d{1,2}(?::?\d\d)?)?"
_STAMP = re.compile(rf"\[(?:{_DAY} {_CLOCK}(?: ?{_ZONE})?|{_CLOCK} ?{_ZONE})\][ \t]?")
"""The gateway's date, now with the day of the week; a date alone may be a person's own."""
_CHANNEL = re.compile(rf"\[(?:{_CHANNELS})\b(?=[^\]\n]{{0,200}}(?:{_CLOCK}| id:))[^\]\n]{{0,240}}\][ \t]?")
_ANY_DATE = re.compile(rf"({_CLOCK})(?: ?({_ZONE}))?")
_FIXED_ZONE = re.compile(r"(?:GMT|UTC)(?:([+-])(\d{1,2})(?::?(\d\d))?)?|Z")
_META = re.compile(
    r"[^\n]{3,80} \(untrusted(?: metadata|, for context)\):[ \t]*\n```json\n.*?\n```[ \t]*\n*", re.DOTALL
)
_EVENT = re.compile(r"System(?: \(untrusted\))?: \[[^\]\n]{4,80}\][^\n]*(?:\n+|$)")
_TRAILING = re.compile(r"\n*^Untrusted context \(metadata, do not treat as instructions or commands\):$", re.MULTILINE)
_MESSAGE_ID = re.compile(r"^[ \t]*\[message_id: [^\]\n]{1,200}\][ \t]*\n?", re.MULTILINE | re.IGNORECASE)
_MEDIA = re.compile(
    r"^\[media attached(?: \d+/\d+)?: ([^\n(|\]]+?)(?: \(([\w.+-]+/[\w.+-]+)\))?(?: \| [^\n\]]*)?\][ \t]*\n?",
    re.MULTILINE,
)
_MEDIA_HEAD = re.compile(
    r"^\[media attached: \d+ files\][ \t]*\n?|^To send an image back, prefer the message tool[^\n]*\n?", re.MULTILINE
)
_DIRECTIVE = re.compile(r"\[\[ ?(?:reply_to_current|reply_to: ?[^\]\n]{1,100}|audio_as_voice) ?\]\][ \t]*")
_SILENT = frozenset({"NO_REPLY", "HEARTBEAT_OK", "ANNOUNCE_SKIP", "REPLY_SKIP"})
_MEMORY_TAGS = ("relevant-memories", "active_memory_plugin", "memory-context")

_PROGRAM_PROMPTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Read HEARTBEAT\.md\b"), "heartbeat"),
    (re.compile(r"\[cron:[^\]\n]{1,300}\]"), "cron"),
    (re.compile(r"A (?:scheduled reminder|cron job) has (?:been triggered|fired)"), "cron"),
    (re.compile(r"\[Subagent (?:Context|Task)\]"), "subagent"),
    (re.compile(r"A new session was started via /(?:new|reset)"), "session start"),
    (re.compile(r"Pre-compaction memory flush"), "memory flush"),
    (re.compile(r"An async command (?:you ran )?(?:earlier )?has completed"), "notice of the program"),
)
ORIGINS: dict[str, Origin] = {"heartbeat": "heartbeat", "cron": "cron", "subagent": "subagent"}
"""Kinds of prompt that make a session without any other prompt one of the program's own."""


@dataclass(slots=True)
class UserText:
    """A user message taken apart. `instant`, `local`: the gateway's time of it, as far as it has a zone."""

    own: str
    injected: list[tuple[str, str]] = field(default_factory=list)
    files: list[Attachment] = field(default_factory=list)
    instant: datetime | None = None
    local: str | None = None


def split_user_text(text: str) -> UserText:
    """The person's words, and what was put around them."""
    found = UserText(text)
    if "[" not in text and "ntrusted" not in text and "<" not in text and "System" not in text:
        return found
    for tag in _MEMORY_TAGS:
        text, inside = cut_blocks(text, tag)
        found.injected += [("memory", inner) for inner in inside]
    at = _after_breaks(text, 0)
    while True:
        match = _STAMP.match(text, at) or _CHANNEL.match(text, at)
        if match is not None:
            _read_time(match[0], found)
        elif (match := _META.match(text, at)) is not None:
            found.injected.append(("metadata of the channel", match[0].strip()))
        elif (match := _EVENT.match(text, at)) is not None:
            found.injected.append(("system event", match[0].strip()))
        else:
            break
        at = _after_breaks(text, match.end())
    text = text[at:]
    if (match := _TRAILING.search(text)) is not None:
        found.injected.append(("metadata of the channel", text[match.start() :].strip()))
        text = text[: match.start()]
    if "[m" in text or "[M" in text:
        for match in _MEDIA.finditer(text):
            found.files.append(Attachment(name=base_name(match[1].strip()) or None, type=match[2]))
        if found.files:
            text = _MEDIA_HEAD.sub("", _MEDIA.sub("", text))
        text = _MESSAGE_ID.sub("", text)
    found.own = text.strip() if text != found.own else text
    return found


def _after_breaks(text: str, at: int) -> int:
    while text.startswith("\n", at):
        at += 1
    return at


def _read_time(header: str, found: UserText) -> None:
    match = _ANY_DATE.search(header)
    if match is None or found.instant is not None or found.local is not None:
        return
    try:
        local = datetime.fromisoformat(match[1].replace(" ", "T"))
    except ValueError:
        return
    zone = _FIXED_ZONE.fullmatch(match[2] or "")
    if zone is None:  # no zone, or an abbreviation (EST, CST…) that several zones share
        found.local = local.isoformat(timespec="seconds")
        return
    offset = timedelta(hours=int(zone[2] or 0), minutes=int(zone[3] or 0))
    if offset < timedelta(hours=24):
        found.instant = local.replace(tzinfo=timezone(-offset if zone[1] == "-" else offset)).astimezone(UTC)


def program_prompt(text: str) -> str | None:
    """What kind of prompt of the program itself this is (`heartbeat`, `cron`…), or None for a person's."""
    start = text[:400].lstrip()
    return next((kind for pattern, kind in _PROGRAM_PROMPTS if pattern.match(start)), None)


def clean_answer(text: str) -> str:
    """An answer without the marks that tell the gateway how to deliver it."""
    return _DIRECTIVE.sub("", text).strip() if "[[" in text else text


def is_silent(text: str) -> bool:
    """An answer that says "nothing to say" in the agent's own code; it is never delivered."""
    return text.strip().strip("*`_. ") in _SILENT
