"""Perplexity threads as browser extensions and scripts save them: two shapes, one thread per file or several.

Older: `{"metadata": {"thread_id", …}, "conversations": [{"query", "answer", …}]}`. Newer, the web page's own API:
`{"thread_metadata": {…}, "entries": [{"query_str", "blocks", "context_uuid", …}]}`, or a bare list of such entries.
One entry is a question and its answer. The official export is a workbook: see `perplexity_xlsx`.
Shape: https://github.com/Superkikim/nexus-ai-chat-importer src/providers/perplexity,
https://github.com/TGRRRR/perplexport src/types/conversation.ts, looked at on 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from palace_pipeline.exports.attachments import kind_of_files, url_file
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.detect import HEAD_BYTES, completed, head_of
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import list_of, name_of, text_of
from palace_pipeline.exports.perplexity_answer import Answer, read_answer, read_blocks
from palace_pipeline.exports.records import records_of
from palace_pipeline.exports.text import parse_json
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.exports.web_sources import citations_of
from palace_pipeline.model import Attachment, Conversation, Kind, Message, Role

MAX_THREAD_BYTES = 256 * 1024 * 1024
_QUESTIONS = ("query", "query_str", "question")
_TIMES = ("timestamp", "entry_created_datetime", "created_at", "entry_updated_datetime", "updated_datetime")
_MODELS = ("model", "display_model", "user_selected_model")
_LISTS = ("entries", "conversations")

Json = dict[str, Any]


class PerplexityThread:
    """Reads a whole file: a thread's head stands beside its list of entries."""

    format = "perplexity-thread"
    provider = "perplexity"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/Superkikim/nexus-ai-chat-importer src/providers/perplexity",
        "medium",
        name="Perplexity thread (JSON)",
        where="saved by browser extensions (Thread Exporter and the like)",
        since="2024",
    )
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """True for an object that is a thread, and for lists of threads or of their entries."""
        if head.shape == "object" and head.wrapped == "conversations":
            return "metadata" in head.keys and any(_is_turn(item) for item in head.items)
        return head.shape in ("array", "object", "jsonl") and any(
            _is_thread(item) or _is_entry(item) for item in head.items
        )

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The threads of a file; entries that stand by themselves are put together by their thread."""
        loose: dict[str, list[Any]] = {}
        for place, value in _values(member, report):
            if _is_entry(value):
                loose.setdefault(name_of(value.get("context_uuid")) or "", []).append(value)
            elif isinstance(value, dict) and any(isinstance(value.get(key), list) for key in _LISTS):
                yield from _thread(value, place, report)
            else:
                report.skip("not a thread", place, expected=value is None, unit="conversation")
        for entries in loose.values():
            yield from _thread({"entries": entries}, "", report)


READER = PerplexityThread()


def _is_turn(item: Any) -> bool:
    return isinstance(item, dict) and ("query" in item or "answer" in item) and "role" not in item


def _is_entry(item: Any) -> bool:
    return isinstance(item, dict) and "query_str" in item and bool({"blocks", "context_uuid", "text"} & set(item))


def _is_thread(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    head = item.get("metadata")
    if isinstance(head, dict) and isinstance(item.get("conversations"), list):
        return any(key.startswith("thread_") for key in head)
    entries = item.get("entries")
    return isinstance(entries, list) and (any(_is_entry(e) for e in entries[:8]) or "thread_metadata" in item)


def _values(member: Member, report: Report) -> Iterator[tuple[str, Any]]:
    """The records of a list or of JSON lines, or the one object; of a damaged one what can be had."""
    head = head_of(member)
    if head.shape != "object":
        yield from records_of(member, report)
        return
    with member.open() as stream:
        data = stream.read(MAX_THREAD_BYTES + 1)
    if len(data) <= MAX_THREAD_BYTES:
        try:
            yield "", parse_json(data.removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r\n"))
            return
        except (ValueError, RecursionError):
            pass  # it is read entry by entry below, and records_of counts what is damaged
    try:
        start = parse_json(completed(data[:HEAD_BYTES]))
    except (ValueError, RecursionError):
        start = None
    del data
    known = start if isinstance(start, dict) else {}
    key = next((key for key in _LISTS if key in head.keys), _LISTS[0])
    yield "", known | {key: [value for _, value in records_of(member, report, key)]}


def _thread(value: Json, place: str, report: Report) -> Iterator[Conversation]:
    entries = next(value[key] for key in _LISTS if isinstance(value.get(key), list))
    head: Json = {}
    for key in ("metadata", "thread_metadata"):
        head |= inner if isinstance(inner := value.get(key), dict) else {}
    good = [(number, entry) for number, entry in enumerate(entries) if isinstance(entry, dict)]
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            report.skip("not an entry", f"{place} entry {number}".strip(), expected=entry is None)
    good = _in_order(good)
    messages = [row for number, entry in good for row in _rows(entry, f"{place} entry {number}".strip(), report)]
    if not any(message.visible for message in messages):
        report.skip("no message that a person sees", place, expected=True, unit="conversation")
        return
    derive_ids(messages)
    first = good[0][1]
    title = _first(head, "thread_title", "title") or _first(first, "thread_title", "title")
    id = _first(head, "thread_id", "context_uuid", "thread_uuid") or _first(
        first, "context_uuid", "thread_url_slug", "backend_uuid", "uuid"
    )
    created = _first(head, "thread_created_at", "created_at")
    space = next((s for key in ("collection_info", "collection") if isinstance(s := first.get(key), dict)), {})
    yield Conversation(
        provider="perplexity",
        conversation_id=id or derive_conversation_id("perplexity", title or "", messages),
        messages=messages,
        title=title,
        created_at=parse_instant(created),
        updated_at=parse_instant(_first(head, "thread_updated_at", "updated_at")),
        local_created=parse_naive(created),
        project=name_of(space.get("title")),
    )


def _first(holder: Json, *keys: str) -> str | None:
    return next((text for key in keys if (text := name_of(holder.get(key))) is not None), None)


def _in_order(entries: list[tuple[int, Json]]) -> list[tuple[int, Json]]:
    """By their own index, else by time if all have one (some tools write the newest first), else as they stand."""
    for keys in (("index",), _TIMES[:2]):
        values = [next((entry[key] for key in keys if key in entry), None) for _, entry in entries]
        ranks: list[Any] = values if keys == ("index",) else [parse_instant(value) for value in values]
        kind: type = int if keys == ("index",) else datetime
        if ranks and all(type(rank) is kind for rank in ranks):
            return [entry for _, entry in sorted(zip(ranks, entries, strict=True), key=lambda pair: pair[0])]
    return entries


def _rows(entry: Json, place: str, report: Report) -> list[Message]:
    """Question, then what was planned and searched, then the answer."""
    question = next((text for key in _QUESTIONS if (text := text_of(entry.get(key))).strip()), "")
    answer = _answer(entry, place, report)
    if any(not isinstance(entry.get(key), str | None) for key in _QUESTIONS):
        report.skip("question that is no text", place, expected=False)
    created = next((entry[key] for key in _TIMES if entry.get(key) is not None), None)
    return exchange(
        _first(entry, "uuid", "backend_uuid", "frontend_uuid") or "",
        question,
        answer,
        (parse_instant(created), parse_naive(created)),
        place,
        report,
        model=_first(entry, *_MODELS),
        files=[file for item in list_of(entry.get("attachments")) if (file := _file(item)) is not None],
    )


def exchange(
    id: str,
    question: str,
    answer: Answer,
    time: tuple[datetime | None, str | None],
    place: str,
    report: Report,
    *,
    model: str | None = None,
    files: list[Attachment] | None = None,
) -> list[Message]:
    """The rows of a question and its answer, which share one (instant, local time); none if both are blank."""

    def row(role: Role, kind: Kind, mark: str, text: str, tool: str | None = None) -> Message:
        return Message(f"{id}{mark}" if id else "", role, text.strip("\n"), kind, time[0], time[1], tool_name=tool,
                       model=None if role == "user" else model)  # fmt: skip

    rows: list[Message] = []
    if question.strip() or files:
        kind = "text" if question.strip() else kind_of_files(files or [])
        rows.append(asked := row("user", kind, "#question", question))
        asked.attachment = files or []
    if answer.thoughts:
        rows.append(row("thinking", "thinking", "#plan", "\n".join(answer.thoughts)))
    if answer.searches:
        rows.append(row("tool", "tool_call", "#search", "\n".join(answer.searches), "web_search"))
    if answer.text.strip() or answer.pictures:
        rows.append(said := row("assistant", "text" if answer.text.strip() else "image", "", answer.text))
        said.citations, said.attachment = answer.citations, answer.pictures
    if answer.cut:
        report.skip("answer is cut in the source", place, expected=False)
    if not rows:
        report.skip("empty message", place, expected=True)
    return rows


def _answer(entry: Json, place: str, report: Report) -> Answer:
    """From the blocks of the web page, else from `answer` (older) or `text` (older still)."""
    found = read_blocks(blocks, report) if isinstance(blocks := entry.get("blocks"), list) else Answer()
    for key in ("answer", "text"):
        if not found.text.strip() and entry.get(key):
            older = read_answer(entry[key])
            older.citations += found.citations
            older.searches = found.searches or older.searches
            older.thoughts, older.pictures = found.thoughts, found.pictures
            found = older
    if not found.text.strip() and any(
        not isinstance(entry.get(key), kind | None) for key, kind in (("answer", str), ("text", str), ("blocks", list))
    ):
        report.skip("answer that is no text", place, expected=False)
    known = {citation.url for citation in found.citations}
    more = citations_of(entry.get("sources"), entry.get("web_results"), entry.get("citations"))
    found.citations += [citation for citation in more if citation.url not in known]
    return found


def _file(item: Any) -> Attachment | None:
    if isinstance(item, str):
        return url_file(item) if item else None
    if not isinstance(item, dict):
        return None
    name = _first(item, "file_name", "filename", "name")
    url = _first(item, "url")
    return Attachment(name, _first(item, "content_type", "type")) if name or url is None else url_file(url)
