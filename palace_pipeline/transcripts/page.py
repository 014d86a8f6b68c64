"""One conversation as a Markdown page, and back.

Message text stands on the page as it was written, so that `grep` and people find it. What makes the way back exact is
a comment line before each message, which carries a token that occurs in no text of the conversation: whatever a text
holds (front matter, headings, fences, comments, a page of this archive), it cannot end or begin a message.

    ---                              front matter: facts for people and tools; `tags`, `aliases` and any further
    type: conversation               property belong to the user
    ---

    # Title

    ChatGPT · 12 messages · times in UTC

    <!-- palace:1a2b3c4d {"role":"user","id":"…","at":"2024-05-03T14:22:31.5Z"} -->
    ### 2024-05-03 14:22 · You

    text as written

    <!-- palace:1a2b3c4d {"role":"tool","kind":"tool_call","tool":"search"} -->
    > [!tool]- Tool call: search     a folded callout in Obsidian, a quotation elsewhere; a quotation contains
    >                                whatever fence or tag its text leaves open
    > ```
    > arguments
    > ```

    <!-- palace:1a2b3c4d end -->

    ## Notes

    the user's own
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, get_args

import orjson

from palace_pipeline.model import VISIBLE_ROLES, Conversation, Message, Origin, page_hash, short_hash
from palace_pipeline.transcripts import front_matter
from palace_pipeline.transcripts.notes import page_links
from palace_pipeline.transcripts.page_facts import (
    About,
    about,
    count,
    facts_of,
    facts_of_conversation,
    facts_of_file,
    row_of,
)
from palace_pipeline.transcripts.page_labels import CHAT_LINKS, heading_of, shown_rows, summary_of, title_of
from palace_pipeline.transcripts.page_parts import (
    MARK,
    NOBODYS,
    Takeover,
    UserParts,
    open_page,
    seal,
    take_over,
    text_of,
)
from palace_pipeline.transcripts.page_path import page_folder, page_name, slug
from palace_pipeline.transcripts.page_tail import closing_lines, file_line, link_lines, links_of

__all__ = ["PAGE_RECIPE", "PageError", "PageHead", "ParsedPage", "Takeover", "UserParts"]
__all__ += ["page_folder", "page_name", "parse", "render", "slug", "take_over"]

PAGE_RECIPE = "3"
"""Change it when the same rows give another page: pages are then written again."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

NOT_SHOWN = "not on the page"
"""`hidden_reason` of a row that holds the place of one that the page does not show."""


class PageError(ValueError):
    """The text is no page that can be read back; the message says what is missing and quotes nothing."""


@dataclass(slots=True, frozen=True)
class PageHead:
    """What a page says of its conversation beside the rows. `redactions`: number of masked places."""

    day: date
    dated: bool = True
    wing: str | None = None
    rooms: tuple[str, ...] = ()
    redactions: int = 0
    source_sha256: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class ParsedPage:
    """A page read back. `conversation` holds the rows the page shows, not branches left and hidden rows.

    `intact`: nothing but the user's parts has changed since the page was written. `problems`: places that could not be
    read, without content. `gaps`: how many rows that are not shown stand before each row, and after the last one.
    """

    conversation: Conversation
    head: PageHead
    user: UserParts
    intact: bool
    problems: tuple[str, ...] = ()
    gaps: tuple[int, ...] = ()

    def whole(self) -> Conversation:
        """The conversation with an empty hidden row for each one that the page does not show: every message has the
        number that it had."""
        messages: list[Message] = []
        for number, gap in enumerate(self.gaps):
            for _ in range(gap):
                messages.append(Message(f"page:{len(messages)}", "system", kind="system", hidden_reason=NOT_SHOWN))
            messages += self.conversation.messages[number : number + 1]
        return replace(self.conversation, messages=messages)


# --- writing ----------------------------------------------------------------------------------------------------------


def render(conversation: Conversation, head: PageHead, user: UserParts = NOBODYS) -> str:
    """The page of a redacted conversation. The same arguments give the same text, at any time and anywhere.

    Shown are the rows of the active branch that the source does not hide: what people and models said in full, tool,
    thinking and system rows folded. Line ends are LF.
    """
    rows = shown_rows(conversation)
    gaps = _gaps(conversation, rows)
    token = _token(conversation, rows)
    mark = f"\n{MARK}{token} "
    values = _front(conversation, head, rows)
    links = page_links(head.day, head.rooms, dated=head.dated)
    out = ["\n# ", heading_of(conversation, rows), "\n\n", summary_of(conversation, rows), "\n"]
    out += ["\n", links, "\n"] if links else []
    for message, gap in zip(rows, gaps, strict=False):
        text = _lines(message.text)
        links = link_lines(message)
        sources = links_of(links) if message.citations else []
        if message.role in VISIBLE_ROLES:
            tail = [*closing_lines(text), *links] if text else links[1:]
            facts = facts_of(message, len(tail), gap, sources)
            out += (mark, facts, " -->\n### ", title_of(message, conversation.provider), "\n\n")
            out += (text, "\n", *(f"{line}\n" for line in tail))
        else:
            title = f"[!{message.role}]- {title_of(message, conversation.provider)}"
            lines = "\n".join([title, *_folded_text(message.role, text), *links])
            out += (mark, facts_of(message, len(links), gap, sources), " -->\n", _quoted(lines), "\n")
        for number, file in enumerate(message.attachment):
            if file.text:
                lines = "\n".join([f"[!file]- {file_line(file)}", *_folded_text("tool", _lines(file.text))])
                out += (mark, facts_of_file(number), " -->\n", _quoted(lines), "\n")
    if facts := facts_of_conversation(conversation, values["model"], gaps[-1]):
        out += (mark, facts, " -->\n")
    body = "".join(out)
    values["palace"] = f"{token} {seal(body, front_matter.load(front_matter.dump(values)))}"
    values.update(tags=user.tags, aliases=user.aliases)
    return f"---\n{front_matter.dump(values)}{user.extra}---\n{body}{mark}end -->\n\n## Notes\n{user.notes}"


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _gaps(conversation: Conversation, rows: list[Message]) -> list[int]:
    """How many rows that are not shown stand before each of `rows`, and after the last one."""
    if len(rows) == len(conversation.messages):
        return [0] * (len(rows) + 1)
    gaps = [0]
    shown = {id(row) for row in rows}
    for message in conversation.messages:
        if id(message) in shown:
            gaps.append(0)
        else:
            gaps[-1] += 1
    return gaps


def _token(conversation: Conversation, rows: list[Message]) -> str:
    texts = [text for m in rows for text in (m.text, *(file.text or "" for file in m.attachment)) if MARK in text]
    token = page_hash(*conversation.key)
    attempt = 0
    while any(token in text for text in texts):
        attempt += 1
        token = short_hash(*conversation.key, str(attempt), length=8)
    return token


def _front(conversation: Conversation, head: PageHead, rows: list[Message]) -> dict[str, Any]:
    visible = [m for m in rows if m.role in VISIBLE_ROLES]
    started, ended = _span(visible) if head.dated else (None, None)
    model = conversation.model or next(iter(Counter(m.model for m in visible if m.model).most_common(1)), (None,))[0]
    values: dict[str, Any] = {
        "type": "conversation",
        "provider": conversation.provider,
        "conversation_id": conversation.conversation_id,
        "title": conversation.title,
        "date": head.day,
        "started_at": started,
        "ended_at": ended,
        "message_count": len(visible),
        "model": model,
        "wing": head.wing,
        "rooms": head.rooms,
        "redactions": head.redactions,
        "source_sha256": head.source_sha256,
    }
    if not head.dated:
        values["dated"] = False
    if conversation.origin != "person":
        values["origin"] = conversation.origin
    if conversation.provider in CHAT_LINKS and _UUID.fullmatch(conversation.conversation_id):
        values["chat_link"] = CHAT_LINKS[conversation.provider] + conversation.conversation_id
    return values


def _span(visible: list[Message]) -> tuple[datetime | None, datetime | None]:
    """First and last instant; naive times only if there is no instant."""
    times = [m.created_at for m in visible if m.created_at] or [
        datetime.fromisoformat(m.local_time) for m in visible if m.local_time
    ]
    return (min(times), max(times)) if times else (None, None)


def _folded_text(role: str, text: str) -> list[str]:
    if not text:
        return []
    if role != "tool":
        return ["", text]
    longest = max(map(len, re.findall("`{3,}", text)), default=2) if "```" in text else 2
    fence = "`" * (longest + 1)
    return ["", fence, text, fence]


def _quoted(text: str) -> str:
    """No blank after a bare `>`: editors that trim line ends would change the page."""
    return "\n".join([f"> {line}" if line else ">" for line in text.split("\n")])


# --- reading ----------------------------------------------------------------------------------------------------------


def parse(text: str) -> ParsedPage:
    """The rows, head and user's parts of a page. Takes CRLF and a BOM. Raises PageError if it is no whole page."""
    opened = open_page(text)
    values = opened.values
    if values is None or values.get("type") != "conversation":
        raise PageError("no front matter of a conversation page")
    if opened.body is None:
        raise PageError("the comment lines between the messages are missing")
    provider, conversation_id = values.get("provider"), values.get("conversation_id")
    if not isinstance(provider, str) or not isinstance(conversation_id, str):
        raise PageError("provider or conversation_id is missing in the front matter")
    problems: list[str] = []
    rows: list[Message] = []
    gaps = [0]
    said = About({})
    for number, part in enumerate(opened.body.split(f"\n{MARK}{opened.token} ")[1:], start=1):
        try:
            facts, content = _facts(part)
            if "conversation" in facts:
                said = about(facts["conversation"])
            elif "text_of_file" in facts:
                rows[-1].attachment[facts["text_of_file"]].text = _unfolded_text(content, "tool", 0)[0]
            else:
                gap = count(facts.get("gap"))
                rows.append(_row(facts, content))
                gaps[-1] += gap
                gaps.append(0)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError):
            problems.append(f"comment line {number} cannot be read")
            gaps[-1] += 1
    gaps[-1] += said.gap
    origin: Any = values.get("origin")
    conversation = Conversation(
        provider,
        conversation_id,
        rows,
        title=text_of(values, "title"),
        model=text_of(values, "model"),
        origin=origin if origin in get_args(Origin) else "person",
    )
    conversation = replace(conversation, **said.values)
    return ParsedPage(conversation, _head(values), opened.user, opened.intact, tuple(problems), tuple(gaps))


def _head(values: dict[str, Any]) -> PageHead:
    try:
        return PageHead(
            day=date.fromisoformat(str(values.get("date"))),
            dated=values.get("dated") != "false",
            wing=text_of(values, "wing"),
            rooms=front_matter.texts(values.get("rooms")),
            redactions=int(values.get("redactions") or 0),
            source_sha256=front_matter.texts(values.get("source_sha256")),
        )
    except (ValueError, TypeError):
        raise PageError("date, rooms, redactions or source_sha256 cannot be read in the front matter") from None


def _facts(part: str) -> tuple[dict[str, Any], str]:
    """The JSON of a comment line, and what follows the line. Raises ValueError or TypeError."""
    facts, _, content = part.partition(" -->\n")
    values = orjson.loads(facts)
    if not isinstance(values, dict):
        raise TypeError("no facts")
    return values, content


def _row(facts: dict[str, Any], content: str) -> Message:
    """A row from its facts and what follows their line. Raises ValueError, TypeError, KeyError or AttributeError."""
    tail = count(facts.get("tail"))
    shown = facts["role"] in VISIBLE_ROLES
    text, lines = _visible_text(content, tail) if shown else _unfolded_text(content, facts["role"], tail)
    return row_of(facts, text, links_of(lines) if lines else [])


def _visible_text(content: str, tail: int) -> tuple[str, list[str]]:
    if content.startswith("### "):
        content = content.partition("\n")[2]
    return _without_tail(content.removeprefix("\n").removesuffix("\n"), tail)


def _without_tail(content: str, tail: int) -> tuple[str, list[str]]:
    if not tail:
        return content, []
    lines = content.rsplit("\n", tail)
    return (lines[0], lines[1:]) if len(lines) > tail else ("", lines)


def _unfolded_text(content: str, role: str, tail: int) -> tuple[str, list[str]]:
    content = _unquoted(content.removesuffix("\n")).partition("\n")[2]
    text, tail_lines = _without_tail(content, tail)
    text = text.removeprefix("\n")
    if role == "tool" and text.startswith("```"):
        text = text.partition("\n")[2].rpartition("\n")[0]
    return text, tail_lines


def _unquoted(text: str) -> str:
    return "\n".join([line[2:] if line.startswith("> ") else line.removeprefix(">") for line in text.split("\n")])
