"""The line shapes of transcripts written as text, as data: one row per shape, with lines it is and is not made for.

To add a format add a row. `line` matches the beginning of a line up to the text of the message (to the end of the line
for shapes whose text stands below); its groups are `name` and, where the shape has a time, `when`. Rows are tried in
order, the first that fits a line has it; `markdown_chat` then chooses one shape for the whole file.
Shapes seen in: exports of Telegram, Discord, Teams, Signal, Element, WeeChat, browser extensions for ChatGPT,
SpecStory, Cursor, and in archives kept by hand (public parsers and issue reports, checked 2026-11-29).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Rule = Literal["roles", "alternating", "labels", "timed", "repeated"]
"""When lines of a shape make a chat. roles: a user's and an assistant's name both occur. alternating: the same, and
they are the file's first lines and repeat. labels: roles, else names that occur twice, two or more of them. timed: a
name with a date and time; with only one of them a name must repeat. repeated: a name must repeat in any case."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A way to write "who said this (and when)". `starts`: first characters of its lines, "" if any may come.

    `whole_line`: the text stands below. `bullet`: lines below are indented under a list mark.
    """

    name: str
    rule: Rule
    starts: str
    line: re.Pattern[str]
    fits: tuple[str, ...]
    fails: tuple[str, ...]
    whole_line: bool = False
    bullet: bool = False


_BOLD_NAME = r"(?P<name>[^*\n:：]{1,60}?)"
_PLAIN_NAME = r"(?P<name>[^\s,:：<>\[\]()#>*|`-][^,:：<>\[\]\n|`]{0,59}?)"
_BULLET = r"[-*+•] +"
_COLON = r"[:：]"
# Only the outline: what stands there must be a date or time (`written_times.read_when`), or the line is no speaker's.
_WHEN = r"(?P<when>[^()\[\]（）*\n]{4,60}?)"
_DIGIT_WHEN = r"(?P<when>\d[^()\[\]*\n]{2,40}?\d(?: ?[AaPp]\.?[Mm]\.?)?)"
_FULL_WHEN = (
    r"(?P<when>\d{1,4}[-/.年][^()\[\]*\n]{2,16}?[ ,T\u00a0\u202f]{1,2}[^\s()\[\]*\n]{0,2}\d{1,2}:\d\d(?::\d\d)?"
    r"(?:[ \u00a0\u202f]?[AaPp]\.?[Mm]\.?)?(?: (?:UTC|GMT|Z))?)"
)


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


SHAPES: tuple[Shape, ...] = (
    Shape(
        "bold name, time in brackets",
        "timed",
        "*",
        _re(rf"\*\*{_BOLD_NAME}\*\*{_COLON}? ?[(（\[]{_WHEN}[)）\]] *{_COLON}? *"),
        ("**Alice** (2024-03-15 9:00 AM): hello", "**Participant 2** (01:23:45) text", "**小明**（18:37）：你好"),
        ("**Alice** (the elder): hello", "**1.2.0** (2024-03-15): fixed", "Alice (09:00): hello"),
    ),
    Shape(
        "bulleted bold name, time in brackets",
        "timed",
        "-*+•",
        _re(rf"{_BULLET}\*\*{_BOLD_NAME}\*\*{_COLON}? ?[(（\[]{_WHEN}[)）\]] *{_COLON}? *"),
        ("- **Theo** (Mon 11:18)", "* **Theo** (2024-03-15 11:18): hi"),
        ("- **Theo** (captain)", "**Theo** (11:18): hi"),
        bullet=True,
    ),
    Shape(
        "bold name and time in brackets",
        "timed",
        "*_",
        _re(rf"_?\*\*{_BOLD_NAME} ?[(（\[]{_WHEN}[)）\]] ?(?:{_COLON}\*\*_?|\*\*_?{_COLON}?) *"),
        ("**Alice (2024-03-15 18:37):** hello", "_**User (2025-03-15 18:37:00Z)**_"),
        ("**Alice (the elder):** hello", "**Alice** (09:00): hello"),
    ),
    Shape(
        "bold time and name",
        "timed",
        "*",
        _re(rf"\*\*[(\[]{_WHEN}[)\]] {_BOLD_NAME}(?:{_COLON}\*\*|\*\*{_COLON}) *"),
        ("**[18:37] 👤 Alice:** hello", "**[2024-03-15 18:37] Alice**: hello"),
        ("**[draft] Alice:** hello", "[18:37] Alice: hello"),
    ),
    Shape(
        "bold name, time, dash",
        "timed",
        "*",
        _re(rf"\*\*{_BOLD_NAME}{_COLON}?\*\*{_COLON}? {_DIGIT_WHEN} ?[—–-] +"),
        ("**Alice** 09:15 — hello", "**Alice** 2024-03-15 09:15 - hello"),
        ("**Alice** 24:00 — hello", "**Alice** 09:60 - hello", "**Alice** 15 — hello"),
    ),
    Shape(
        "bold name and time, text below",
        "timed",
        "*_",
        _re(rf"_?\*\*{_BOLD_NAME}{_COLON}?\*\*_?{_COLON}?[ ,·•|—–-]+[(\[]?{_WHEN}[)\]]?\s*$"),
        ("**Alice** — 2024-03-15 18:37", "**Alice** · 18:37", "**Alice** Today at 6:37 PM"),
        ("**Alice** — captain", "**Alice** 18:37 hello"),
        whole_line=True,
    ),
    Shape(
        "time, bold name",
        "timed",
        "[(",
        _re(rf"[(\[]{_WHEN}[)\]] ?\*\*{_BOLD_NAME}(?:{_COLON}\*\*|\*\*{_COLON}) *"),
        ("[18:37] **Alice:** hello", "[2024-03-15 18:37] **Alice**: hello"),
        ("[x] **Alice:** hello", "[18:37] Alice: hello"),
    ),
    Shape(
        "bold label",
        "labels",
        "*_",
        _re(rf"_?\*\*{_BOLD_NAME} ?(?:{_COLON} ?\*\*_?|\*\*_? ?{_COLON}) *"),
        ("**You:** question", "**ChatGPT**: answer", "**小明：** 你好", "**Alice Example:**"),
        ("**bold** text: more", "- **You:** question", "**You: question**"),
    ),
    Shape(
        "bulleted bold label",
        "labels",
        "-*+•",
        _re(rf"{_BULLET}\*\*{_BOLD_NAME} ?(?:{_COLON} ?\*\*|\*\* ?{_COLON}) *"),
        ("- **Theo:** Who has the charts?", "* **Ana Sample**: I do."),
        ("- Theo: hi", "**Theo:** hi"),
        bullet=True,
    ),
    Shape(
        "bold role alone",
        "roles",
        "*_",
        _re(r"_?\*\*(?P<name>[^*\n]{1,40}?)\*\*_?\s*$"),
        ("**User**", "_**Assistant**_", "**Cursor**"),
        ("**User** asked", "User"),
        whole_line=True,
    ),
    Shape(
        "second level heading",
        "roles",
        "#",
        _re(rf"##[ \t]+(?P<name>[^\n]{{1,60}}?) ?{_COLON}?(?:(?: ?[(（\[]| [—–-] ){_WHEN}[)）\]]?)?[ \t]*#*\s*$"),
        ("## User", "## Assistant:", "## 🤖 Claude", "## 用户", "## User (2024-03-15 18:37)"),
        ("# User", "### User", "##User"),
        whole_line=True,
    ),
    Shape(
        "third level heading",
        "roles",
        "#",
        _re(rf"###[ \t]+(?P<name>[^\n]{{1,60}}?) ?{_COLON}?(?:(?: ?[(（\[]| [—–-] ){_WHEN}[)）\]]?)?[ \t]*#*\s*$"),
        ("### Human:", "### Assistant:", "### 👤 User"),
        ("## User", "#### User"),
        whole_line=True,
    ),
    Shape(
        "said",
        "roles",
        "#YCAGI",
        _re(rf"(?:#{{1,6}} )?(?P<name>(?:You|I|ChatGPT|Claude|Gemini|Assistant) said) ?{_COLON}\s*$"),
        ("You said:", "ChatGPT said:", "##### You said:"),
        ("You said: no", "Nobody said:"),
        whole_line=True,
    ),
    Shape(
        "name, time in round brackets",
        "timed",
        "",
        _re(rf"{_PLAIN_NAME} ?[(（]{_WHEN}[)）] ?{_COLON} *"),
        ("Alice (2024-03-15 18:37:00 UTC): hi", "小明（18:37）：你好"),
        ("Alice (her boat): hi", "there: a colon", "Alice (2024-03-15 18:37:00 UTC) hi"),
    ),
    Shape(
        "name, comma, time in square brackets",
        "timed",
        "",
        _re(rf"{_PLAIN_NAME}, \[{_WHEN}\] ?{_COLON}? *"),
        ("Alice Doe, [Mar 15, 2024 at 6:37:00 PM]", "Alice Doe, [15.03.2024 18:37] hi"),
        ("Alice Doe, [sic] hi",),
    ),
    Shape(
        "name, comma, date and time",
        "timed",
        "",
        _re(rf"{_PLAIN_NAME}, {_FULL_WHEN} ?{_COLON} +"),
        ("Alice Smith, 3/15/2024 6:37 PM: hi", "Alice Smith, 2024-03-15 18:37: hi"),
        ("Alice Smith, 3/15/2024: hi", "Alice Smith, born 3/15/2024 6:37 PM: hi"),
    ),
    Shape(
        "time, matrix id",
        "timed",
        "[",
        _re(rf"\[{_WHEN}\] <?@(?P<name>[^:\s<>@]{{1,60}}):[^\s<>:]{{1,100}}(?::\d+)?>?: +"),
        ("[18:37] @alice:matrix.org: hi", "[2024-03-15 18:37] <@bob:example.org>: hi"),
        ("[18:37] alice: hi",),
    ),
    Shape(
        "time, name in angle brackets",
        "timed",
        "[0123456789",
        _re(r"\[?(?P<when>\d[^\[\]<>\n]{3,40}?)\]? +<[ @+%&~]?(?P<name>[^<>\s]{1,40})> ?"),
        ("18:37 <alice> hi", "[18:37:00] <@alice> hi", "2024-03-15 18:37:00 <alice> hi"),
        ("<alice> hi", "24:10 <alice> hi"),
    ),
    Shape(
        "time in brackets, name, colon",
        "timed",
        "[",
        _re(rf"\[{_WHEN}\] {_PLAIN_NAME}{_COLON} +"),
        ("[18:37] Alice: hi", "[2024-03-15 18:37] 小明: 你好"),
        ("[draft] Alice: hi", "[2024-03-15 18:37:00] ERROR: disk full"),
    ),
    Shape(
        "date in brackets, name, text below",
        "timed",
        "[",
        _re(rf"\[{_WHEN}\] (?P<name>[^\s:：\[\]()][^:：\[\]()\n]{{0,59}}?)\s*$"),
        ("[03/15/2024 6:37 PM] Alice", "[15-Mar-24 06:37 PM] alice#1234"),
        ("[draft] Alice", "[03/15/2024 6:37 PM] Alice: hi"),
        whole_line=True,
    ),
    Shape(
        "name, dash, time, text below",
        "repeated",
        "",
        _re(rf"{_PLAIN_NAME} [—–] {_WHEN}\s*$"),
        ("Alice — Today at 6:37 PM", "Alice — 03/15/2024 6:37 PM"),
        ("Alice — captain", "Alice — 6:37 PM: hi"),
        whole_line=True,
    ),
    Shape(
        "name, date and time, text below",
        "repeated",
        "",
        _re(rf"{_PLAIN_NAME} {_FULL_WHEN}\s*$"),
        ("小明 2024/3/15 18:37:00", "Alice 2024-03-15 18:37"),
        ("Alice 18:37", "Alice 2024-03-15 18:37 hi"),
        whole_line=True,
    ),
    Shape(
        "numbered speaker",
        "labels",
        "Ss说說发發",
        _re(rf"(?P<name>(?:[Ss]peaker|SPEAKER|说话人|說話人|发言人|發言人)[ _]?(?:[A-Z]|\d{{1,3}})) ?{_COLON} *"),
        ("Speaker A: text", "SPEAKER_01: text", "说话人1：你好"),
        ("Speaker: text", "Loudspeaker A: text"),
    ),
    Shape(
        "plain role",
        "alternating",
        "",
        _re(rf"(?P<name>[^\s:：#>*`|-][^:：\n]{{0,30}}?) ?{_COLON}(?:\s+|(?<=：))"),
        ("User: hi", "Assistant: hello", "用户：你好"),
        ("User hi", "http://example.invalid"),
    ),
)
