"""Slack's markup and blocks -> the text that a person sees.

Facts: https://docs.slack.dev/messaging/formatting-message-text (only `&`, `<`, `>` are escaped; everything in `<…>` is
markup) and https://docs.slack.dev/reference/block-kit/blocks, checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from palace_pipeline.exports.json_values import list_of
from palace_pipeline.exports.text import clean_text
from palace_pipeline.model import Citation

_MARKUP = re.compile(r"<([^<>]*)>")
_DEEPEST = 20
"""Blocks nest three deep in practice; deeper ones are not followed."""


@dataclass(frozen=True, slots=True)
class Names:
    """Display names of one export: user id -> name, channel id -> name, users that are programs."""

    users: Mapping[str, str] = field(default_factory=dict[str, str])
    channels: Mapping[str, str] = field(default_factory=dict[str, str])
    bots: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()


def plain(text: str, names: Names, citations: list[Citation]) -> str:
    """Text with mentions as `@name`, channels as `#name`, links by their label; the label's URL goes to `citations`."""
    if "<" in text:
        text = _MARKUP.sub(lambda match: _unmarked(match[1], names, citations), text)
    return clean_text(_unescaped(text))


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") if "&" in text else text


def _unmarked(inner: str, names: Names, citations: list[Citation]) -> str:
    target, bar, label = inner.partition("|")
    kind, name = target[:1], target[1:]
    if kind == "@":
        return "@" + (names.users.get(name) or label.removeprefix("@") or name)
    if kind == "#":
        return "#" + (label or names.channels.get(name) or name)
    if kind == "!":
        if name.startswith(("subteam^", "here", "channel", "everyone")):
            return "@" + (label.removeprefix("@") or name.removeprefix("subteam^"))
        return label or name.partition("^")[0]
    if "://" not in target and not target.startswith(("mailto:", "tel:", "sip:")):
        return f"<{inner}>"
    url = _unescaped(target)
    address = url.removeprefix("mailto:").removeprefix("tel:")
    if not bar or label in (target, address):
        return address
    # The label is what people read; a different address behind it must not be lost.
    if not url.startswith(("mailto:", "tel:")):
        citations.append(Citation(clean_text(url), clean_text(_unescaped(label))))
        return label or url
    return f"{label} ({address})" if address not in label else label


def block_text(blocks: object, names: Names, citations: list[Citation]) -> str:
    """The text of Block Kit blocks, for messages that programs post without a `text`."""
    if not isinstance(blocks, list):
        return ""
    parts = (_block(block, names, citations, 0) for block in blocks)
    return "\n".join(part for part in parts if part.strip())


def _block(value: Any, names: Names, citations: list[Citation], depth: int) -> str:
    if isinstance(value, list) and depth < _DEEPEST:
        return "\n".join(text for item in value if (text := _block(item, names, citations, depth + 1)).strip())
    if not isinstance(value, dict) or depth >= _DEEPEST:
        return ""
    if value.get("type") in ("rich_text_section", "rich_text_preformatted", "rich_text_quote"):
        return clean_text("".join(_inline(value.get("elements"), names, citations)))
    text = value.get("text")
    if isinstance(text, str):
        return plain(text, names, citations)
    inner = (value.get(key) for key in ("title", "text", "fields", "elements"))
    return "\n".join(part for item in inner if (part := _block(item, names, citations, depth + 1)).strip())


def _inline(elements: object, names: Names, citations: list[Citation]) -> Iterator[str]:
    """The pieces of a rich text; these are not escaped."""
    for element in list_of(elements):
        if not isinstance(element, dict):
            continue
        match element:
            case {"type": "text", "text": str(text)}:
                yield text
            case {"type": "link", "url": str(url)}:
                label = element.get("text")
                if isinstance(label, str) and label and label != url:
                    citations.append(Citation(clean_text(url), clean_text(label)))
                    yield label
                else:
                    yield url
            case {"type": "user", "user_id": str(user)}:
                yield "@" + names.users.get(user, user)
            case {"type": "channel", "channel_id": str(channel)}:
                yield "#" + names.channels.get(channel, channel)
            case {"type": "usergroup", "usergroup_id": str(group)}:
                yield "@" + group
            case {"type": "broadcast", "range": str(whom)}:
                yield "@" + whom
            case {"type": "emoji", "name": str(name)}:
                yield f":{name}:"
            case {"type": "date", "fallback": str(text)}:
                yield text
            case _:
                continue


def attachment_text(attachments: object, names: Names, citations: list[Citation], *, shared_only: bool) -> str:
    """The text of old-style `attachments`: what programs post, or (`shared_only`) a message that a person forwarded.

    A preview of a link is nobody's words: its address is cited, its text left out.
    """
    parts: list[str] = []
    for attachment in list_of(attachments):
        if not isinstance(attachment, dict):
            continue
        preview = attachment.get("from_url") or attachment.get("original_url")
        forwarded = attachment.get("is_share") is True
        if isinstance(preview, str) and not forwarded:
            title = attachment.get("title")
            citations.append(Citation(clean_text(preview), clean_text(title) if isinstance(title, str) else None))
        if (shared_only and not forwarded) or (preview and not forwarded and not shared_only):
            continue
        if said := _attachment(attachment, names, citations):
            parts.append(said)
    return "\n\n".join(parts)


def _attachment(attachment: dict[str, Any], names: Names, citations: list[Citation]) -> str:
    lines = [_field(attachment, key, names, citations) for key in ("pretext", "title", "text")]
    for item in list_of(attachment.get("fields")):
        if isinstance(item, dict):
            pair = [_field(item, key, names, citations) for key in ("title", "value")]
            lines.append(": ".join(part for part in pair if part))
    lines.append(block_text(attachment.get("blocks"), names, citations))
    lines.extend(block_text([b], names, citations) for b in _message_blocks(attachment))
    said = "\n".join(line for line in lines if line)
    return said or _field(attachment, "fallback", names, citations)


def _message_blocks(attachment: dict[str, Any]) -> Iterator[object]:
    if attachment.get("text"):
        return
    for block in list_of(attachment.get("message_blocks")):
        if isinstance(block, dict) and isinstance(message := block.get("message"), dict):
            yield from list_of(message.get("blocks"))


def _field(holder: dict[str, Any], key: str, names: Names, citations: list[Citation]) -> str:
    value = holder.get(key)
    return plain(value, names, citations).strip() if isinstance(value, str) else ""
