"""The lines a page puts after a message's text: what the text left open, its files, its sources."""

from __future__ import annotations

import re

from palace_pipeline.model import Attachment, Message

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)", re.DOTALL)
_RAW_OPEN = re.compile(r" {0,3}<(pre|script|style|textarea)(?:[\s>]|$)", re.IGNORECASE)
_RAW_CLOSE = re.compile(r"</(?:pre|script|style|textarea)>", re.IGNORECASE)
_RAW_TAG = re.compile(r"<(?:pre|script|style|textarea)\b", re.IGNORECASE)
_SOURCE = re.compile(r"- (?:\[((?:[^\[\]\\]|\\.)*)\]\()?<([^<>]*)>\)?")
_UNSAFE_IN_URL = re.compile(r"[<>\s]")
_FILE_MARK = "📎"


def one_line(text: str, length: int) -> str:
    """Text for a heading: on one line, blanks squeezed, at most `length` characters, no HTML."""
    return no_html(squeezed(text, length))


def squeezed(text: str, length: int) -> str:
    """Text on one line, blanks squeezed, at most `length` characters."""
    line = " ".join(text[: length * 4].split())
    return line if len(line) <= length else line[: length - 1] + "…"


def no_html(text: str) -> str:
    """Text in Markdown in which no tag or comment can begin."""
    return text.replace("<", "\\<")


def closing_lines(text: str) -> list[str]:
    """What a text leaves open and would swallow the rest of the page in a viewer: a fence, a raw HTML block, Obsidian's
    `%%` comment. (An open `<!--` ends in the next comment line of the page.)
    """
    if "```" not in text and "~~~" not in text and "%%" not in text and not ("<" in text and _RAW_TAG.search(text)):
        return []
    fence: tuple[str, str] | None = None
    raw: str | None = None
    comment = False
    for line in text.split("\n"):
        if fence:
            match = _FENCE.fullmatch(line)
            if match and match[2].startswith(fence[1]) and not match[3].strip():
                fence = None
        elif raw:
            raw = None if _RAW_CLOSE.search(line) else raw
        elif (match := _FENCE.fullmatch(line)) and not (match[2][0] == "`" and "`" in match[3]):
            fence = (match[1], match[2])
        else:
            if (match := _RAW_OPEN.match(line)) and not _RAW_CLOSE.search(line):
                raw = match[1]
            comment ^= line.count("%%") % 2 == 1
    closing = [fence[0] + fence[1]] if fence else [f"</{raw}>"] if raw else []
    return [*closing, "%%"] if comment else closing


def link_lines(message: Message) -> list[str]:
    """Names of the files beside a message, and its sources."""
    lines: list[str] = []
    if message.attachment:
        lines.append("")
        lines += [f"- {file_line(file)}" for file in message.attachment]
    if message.citations:
        lines += ["", "Sources:", ""]
        for source in message.citations:
            url = _UNSAFE_IN_URL.sub(lambda m: "".join(f"%{byte:02X}" for byte in m[0].encode()), source.url)
            title = re.sub(r"([\[\]\\])", r"\\\1", " ".join((source.title or "").split()))
            lines.append(f"- [{title}](<{url}>)" if title else f"- <{url}>")
    return lines


def file_line(file: Attachment) -> str:
    """Name, type and size of a file, on one line."""
    facts = ", ".join(fact for fact in (file.type, size_in_words(file.size)) if fact)
    name = one_line(file.name or "", 200) or "attachment"
    return f"{_FILE_MARK} {name} ({one_line(facts, 80)})" if facts else f"{_FILE_MARK} {name}"


def links_of(lines: list[str]) -> list[tuple[str, str | None]]:
    """(url, title) of the sources among such lines."""
    found: list[tuple[str, str | None]] = []
    for line in lines:
        match = _SOURCE.fullmatch(line)
        if match:
            found.append((match[2], re.sub(r"\\(.)", r"\1", match[1]) if match[1] else None))
    return found


def size_in_words(size: int | None) -> str:
    """Bytes as people say them; '' if unknown."""
    if size is None:
        return ""
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.0f} KB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
