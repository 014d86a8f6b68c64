"""The front matter of a session, read in whatever state people, models and sync programs leave it.

What can be understood is taken, what is no property of ours stays as it is, and what has to be guessed is said in
`problems`: words for people, without content.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from palace_pipeline.transcripts import front_matter
from palace_pipeline.workspace import names
from palace_pipeline.workspace.session import KEYS, MOST_TAGS, SUMMARY_LENGTH, Status, one_line

_ALIASES = {
    "标签": "tags",
    "標籤": "tags",
    "摘要": "summary",
    "总结": "summary",
    "状态": "status",
    "狀態": "status",
    "角色": "role",
    "模型": "model",
    "时间": "ts",
    "時間": "ts",
    "父会话": "parent",
    "轮数": "turns",
    "编号": "id",
    "timestamp": "ts",
    "time": "ts",
    "date": "ts",
    "created": "ts",
    "tag": "tags",
    "tokensin": "tokens_in",
    "tokensout": "tokens_out",
    "input_tokens": "tokens_in",
    "output_tokens": "tokens_out",
    "state": "status",
}
_STATUS: dict[str, Status] = {
    **dict.fromkeys(("open", "active", "in_progress", "running", "wip", "started", "进行中", "打开", "未完成"), "open"),
    **dict.fromkeys(("closed", "close", "done", "finished", "complete", "completed", "已完成", "完成", "关闭", "已关闭"), "closed"),
    **dict.fromkeys(("conflict", "conflicted", "冲突", "衝突"), "conflict"),
}  # fmt: skip
_LINE = re.compile(r"[\"']?([^\W\d][\w \-]{0,40}?)[\"']?[ \t]*[:：][ \t]*(.*)", re.DOTALL)
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)", re.DOTALL)
_MOST_LINES = 60
"""Lines at the top among which properties are looked for when nothing says where they end."""
_FENCE = re.compile(r"-{3,}[ \t]*")
_OF_YAML = ("---", "...", "%")
"""Beginnings of lines that end a block or are no property."""
_SEPARATORS = re.compile(r"[,，、;；\s]+")
_ID = re.compile(r"(?<!\d)\d{8}-\d{4}-[0-9a-f]{7}(?![0-9a-f])")
_TAG_LENGTH = 60
_PLAIN_TAG = re.compile(r"\w+(?:(?:-+|/)\w+)*")
_MASK = re.compile(r"\[(REDACTED|WITHHELD):([^\]\[\s]+)\]")
_NUMBER = re.compile(r"\d{1,15}")
_WRITTEN_TIME = re.compile(
    r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?"
    r"(?:[T ]*(\d{1,2})[:时](\d\d)(?:[:分](\d\d)(\.\d{1,6})?秒?)?分?)? *(Z|[+-]\d\d:?\d\d)?"
)


@dataclass(slots=True)
class Front:
    """Values by the schema's names as they were written, lines of YAML of other properties, and what was wrong."""

    values: dict[str, Any]
    extra: str = ""
    problems: list[str] = field(default_factory=list[str])


def open_front(text: str) -> tuple[Front, str]:
    """(front matter, text behind it) of a page with LF line ends."""
    block, start = front_matter.split(text)
    if block is not None:
        try:
            values = front_matter.load(block)
        except front_matter.FrontMatterError:
            pass
        else:
            if not values or any(map(_own_name, values)):
                return _sorted(values, block), text[start:]
    found = _line_by_line(text)
    if found is None:
        return Front({}, problems=["the front matter is missing"]), text
    values, rest = found
    front = _sorted(values, None)
    front.problems.append("the front matter is torn or no valid YAML")
    return front, rest


_SCHEMA = frozenset(KEYS)


def _sorted(values: dict[str, Any], block: str | None) -> Front:
    """The schema's properties under their own names, and the others as lines."""
    if values.keys() <= _SCHEMA and (block is None or "#" not in block):
        return Front(values)
    adopted = _adopted(values)
    ours = {name: value for name, value in values.items() if name in _SCHEMA}
    ours.update({own: values[name] for own, name in adopted.items()})
    taken = _SCHEMA | set(adopted.values())
    others = {name: value for name, value in values.items() if name not in taken}
    front = Front(ours)
    if block is not None:
        lines = front_matter.entries(block)
        front.extra = "".join(line for name, line in lines if name not in taken and not line.startswith(_OF_YAML))
        if _loads_as(front.extra, others):
            return front
    front.extra = as_lines(others)
    if not _loads_as(front.extra, others):
        front.problems.append("properties with nested values became text")
    return front


def _adopted(values: Mapping[str, Any]) -> dict[str, str]:
    """Name in the schema -> the spelling that stands for it (`Tags`, `标签`), where its own does not."""
    found: dict[str, str] = {}
    for name in values:
        if name in _SCHEMA:
            continue
        own = _own_name(name)
        if own is not None and own not in values:
            found.setdefault(own, name)
    return found


def as_lines(values: Mapping[str, Any]) -> str:
    """Properties as lines of YAML; what is neither text nor a list of texts becomes text."""
    lines: dict[str, front_matter.Value] = {}
    for name, value in values.items():
        flat = value is None or isinstance(value, str)
        flat = flat or (isinstance(value, list) and all(isinstance(item, str) for item in value))
        lines[front_matter.scalar(str(name))] = value if flat else repr(value)
    return front_matter.dump(lines)


def _loads_as(lines: str, values: Mapping[str, Any]) -> bool:
    try:
        return front_matter.load(lines) == values
    except front_matter.FrontMatterError:
        return False


def _line_by_line(text: str) -> tuple[dict[str, Any], str] | None:
    """(values, rest) of what stands at the top and looks like properties, or None if none of the schema's is there.

    Lines among them that are no properties go before the rest: they may be a person's words.
    """
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    opened = first < len(lines) and _FENCE.fullmatch(lines[first]) is not None
    first += opened
    end, rest = _end_of_properties(lines, first, opened)
    values: dict[str, Any] = {}
    odd: list[str] = []
    last = ""
    for line in lines[first:end]:
        if (item := _ITEM.fullmatch(line)) and last:
            old = values[last]
            values[last] = [*(old if isinstance(old, list) else [old] if old else []), _bare(item[1])]
        elif (match := _LINE.fullmatch(line)) and match[1].strip() not in values:
            last = match[1].strip()
            values[last] = _bare(match[2], comment=_own_name(last) not in (None, "summary"))
        elif line.strip():
            odd.append(line)
            last = ""
    if not any(map(_own_name, values)):
        return None
    return values, "\n".join([*odd, *lines[rest:]])


def _end_of_properties(lines: list[str], first: int, opened: bool) -> tuple[int, int]:
    """(behind the last line of properties, where the rest begins): a closing fence, else the last of our own names
    before the first heading or, without an opening fence, the first line that is none."""
    end = first
    for number in range(first, min(len(lines), first + _MOST_LINES)):
        line = lines[number]
        if _FENCE.fullmatch(line):
            return number, number + 1
        match = _LINE.fullmatch(line)
        known = match is not None and _own_name(match[1].strip()) is not None
        if known or (end == number and (match or _ITEM.fullmatch(line))):
            end = number + 1
        elif line.startswith(("# ", "## ", "＃")) or not opened:
            break
    return end, end


def _own_name(name: str) -> str | None:
    """The schema's name of a property under any spelling, None if it is not the schema's."""
    plain = name.strip().casefold().replace("-", "_").replace(" ", "_")
    return plain if plain in _SCHEMA else _ALIASES.get(plain)


def _bare(value: str, *, comment: bool = False) -> str:
    """A value without quotes and brackets, and without the comment behind it."""
    value = value.strip()
    if comment and value[:1] not in ("'", '"', "“", "‘"):
        value = re.sub(r"\s#.*", "", value, flags=re.DOTALL)
    return value.strip("[] \t").strip("\"'“”‘’ \t")


# --- values ----------------------------------------------------------------------------------------------------------


def text_in(value: Any) -> str:
    """A property as one line of text, '' if it is none."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(text_in, value)))
    return " ".join(value.split()) if isinstance(value, str) else ""


def number_in(value: Any) -> int | None:
    """A count as people write it (`12`, `"1,234"`, `12.0`, `３`), None if there is none."""
    text = unicodedata.normalize("NFKC", text_in(value)).replace(",", "").replace("_", "").replace("'", "")
    match = _NUMBER.match(text)
    return int(match[0]) if match else None


def tags_in(value: Any) -> list[str]:
    """Tags as people write them: a list, one text with commas, blanks or `#`; each once, without blanks."""
    items = value if isinstance(value, list) else _SEPARATORS.split(value) if isinstance(value, str) else []
    found = [tag for item in items if isinstance(item, str) for tag in [as_tag(item)] if tag]
    return list(dict.fromkeys(found))


def as_tag(text: str) -> str:
    """A text as a tag that Obsidian takes, too: letters and digits of any script, pictures, `_`, `-` and `/`; what else
    stands inside becomes `-`. At most 60 characters; digits alone get a `_` before them; a mask loses its brackets
    (`REDACTED-password`). '' if nothing is left."""
    if len(text) > _TAG_LENGTH or _PLAIN_TAG.fullmatch(text) is None:
        kept = "".join(char if _stays_in_tag(char) else " " for char in bare_masks(text[: 8 * _TAG_LENGTH]))
        text = re.sub("(?:-*/)+-*", "/", "-".join(kept.split())).strip("-/")[:_TAG_LENGTH].rstrip("-/")
    return f"_{text}"[:_TAG_LENGTH] if text.isdecimal() else text


def _stays_in_tag(char: str) -> bool:
    category = unicodedata.category(char)
    return char in "_-/" or category[0] in "LMN" or category == "So" or "\U0001f3fb" <= char <= "\U0001f3ff"


def bare_masks(text: str) -> str:
    """A text with its masks as `REDACTED-password`, where brackets and colons would mean something."""
    return _MASK.sub(r"\1-\2", text)


def short_tags(front: Front) -> tuple[str, ...]:
    """At most five tags; the others stay in a property of their own, `more_tags`."""
    found = tags_in(front.values.get("tags"))
    if len(found) > MOST_TAGS:
        _keep_apart(front, "more_tags", found[MOST_TAGS:])
        front.problems.append(f"more than {MOST_TAGS} tags; the others are in more_tags")
    return tuple(found[:MOST_TAGS])


def short_summary(front: Front) -> str:
    """At most 80 characters; a longer one stays whole in a property of its own, `long_summary`."""
    whole = text_in(front.values.get("summary"))
    short = one_line(whole, SUMMARY_LENGTH)
    if short != whole:
        _keep_apart(front, "long_summary", whole)
        front.problems.append(f"a summary of more than {SUMMARY_LENGTH} characters; all of it is in long_summary")
    return short


def _keep_apart(front: Front, name: str, value: front_matter.Value) -> None:
    """A property beside the schema's, unless there is one of that name already."""
    if not any(known == name for known, _ in front_matter.entries(front.extra)):
        front.extra += front_matter.dump({name: value})


def status_in(front: Front) -> Status:
    """The status; a word nobody knows counts as open."""
    word = text_in(front.values.get("status")).casefold().replace("-", "_").replace(" ", "_")
    if word and word not in _STATUS:
        front.problems.append("a status that is none of open, closed, conflict")
    return _STATUS.get(word, "open")


def parent_in(front: Front) -> str | None:
    """The id of the parent, also out of a link or path to its page."""
    text = text_in(front.values.get("parent"))
    if not text:
        return None
    match = _ID.search(text)
    found = match[0] if match else names.id_of(text.strip("[]<>() "))
    if found is None or not names.is_id(found):
        front.problems.append("a parent that is no id of a session")
        return None
    return found


def time_in(value: Any) -> datetime | None:
    """A time as people write it, with its offset if there is one; None if it is none."""
    text = text_in(value)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    match = _WRITTEN_TIME.fullmatch(unicodedata.normalize("NFKC", text))
    if match is None:
        return None
    year, month, day, hour, minute, second, part, offset = match.groups()
    written = (
        f"{year}-{month:0>2}-{day:0>2}T{hour or '0':0>2}:{minute or '00'}:{second or '00'}{part or ''}{offset or ''}"
    )
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        return None


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as a session has them: no more than it may have, each once."""
    return tuple(dict.fromkeys(tag for text in tags if (tag := as_tag(text))))[:MOST_TAGS]
