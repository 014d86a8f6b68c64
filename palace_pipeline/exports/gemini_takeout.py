"""Google Takeout, My Activity > Gemini Apps, as JSON: a list of activities, newest first.

`{header, title: "Prompted …", titleUrl?, time, subtitles[{name, url?}], products[], safeHtmlItem[{html}], attachedFiles[],
imageFile, …}`. The prompt is the title behind a localized verb, the answer is HTML; a prompt without an answer is usual.
Facts: https://github.com/NateBJones-Projects/OB1/pull/455, Google's data portability schema reference of My Activity,
descriptions of three real exports; checked 2026-11-29. Conversations: see `gemini_activity`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.gemini_activity import (
    PROVIDER,
    Activity,
    add_file,
    conversations_of,
    file_named,
    is_gemini,
    prompt_of,
)
from palace_pipeline.exports.html_text import html_to_text, resolve
from palace_pipeline.exports.json_values import text_of
from palace_pipeline.exports.records import records_of
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Citation, Conversation

_KNOWN_KEYS = frozenset(
    """
    header title titleUrl time subtitles description products details activityControls locationInfos imageFile audioFiles
    safeHtmlItem attachedFiles
    """.split()  # noqa: SIM905
)
_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


class GeminiTakeoutReader:
    """Reader of `MyActivity.json` (also named `My Activity.json`, or in the account's language)."""

    format = "gemini-takeout"
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/NateBJones-Projects/OB1/pull/455 and My Activity's schema reference",
        "high",
        name="Gemini (Takeout, JSON)",
        where="takeout.google.com → My Activity → only Gemini Apps, format JSON: `My Activity/Gemini Apps/MyActivity.json`",
        since="2023",
    )
    layout: Literal["whole"] = "whole"
    known_keys = {"": _KNOWN_KEYS}  # noqa: RUF012 - never changed

    def detect(self, head: Head) -> bool:
        """True for activities of My Activity; those of other products are taken too, and named as such."""
        if head.shape not in ("array", "jsonl"):
            return False
        items = [item for item in head.items if isinstance(item, dict) and _is_activity(item)]
        return any(_is_ours(item) or isinstance(item.get("products"), list) for item in items)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The conversations of the file, in its order of days."""
        yield from conversations_of(_activities(member, report), report)


READER = GeminiTakeoutReader()


def _is_activity(item: Mapping[str, Any]) -> bool:
    if "safeHtmlItem" in item:
        return "title" in item or "time" in item
    return isinstance(item.get("title"), str) and "time" in item and ("header" in item or "products" in item)


def _labels(item: Mapping[str, Any]) -> list[object]:
    products = item.get("products")
    return [item.get("header"), *(products if isinstance(products, list) else [])]


def _is_ours(item: Mapping[str, Any]) -> bool:
    labels = _labels(item)
    if any(isinstance(label, str) and label.strip() for label in labels):
        return is_gemini(labels)
    return "safeHtmlItem" in item or prompt_of(str(item.get("title")))[1]


def _activities(member: Member, report: Report) -> Iterator[tuple[str, Activity]]:
    others = 0
    for place, item in records_of(member, report):
        if not isinstance(item, dict):
            report.skip("not an activity", place, expected=item is None)
        elif not _is_ours(item):
            others += 1
        else:
            yield place, _activity(item, report, place)
    if others:
        report.skip("activity of another product", expected=True, count=others)


def _activity(item: Mapping[str, Any], report: Report, place: str) -> Activity:
    if not isinstance(item.get("title"), str | None):
        report.skip("title that is no text", place, expected=False)
    header = item.get("header")
    when = parse_instant(item.get("time"))
    found = Activity(
        title=_resolved(text_of(item.get("title"))),
        created_at=when,
        local_time=parse_naive(item.get("time")) if when is None else None,
        product=text_of(header),
    )
    if isinstance(address := item.get("titleUrl"), str):
        found.addresses.append(address)
    if note := _resolved(text_of(item.get("description"))).strip():
        found.notes.append(note)
    _take_answer(item.get("safeHtmlItem"), found, report, place)
    in_answer = {file.name for file in found.answer_files}
    for value in (
        *_values(item.get("attachedFiles")),
        *_values(item.get("imageFile")),
        *_values(item.get("audioFiles")),
    ):
        file = file_named(value)
        if file is not None and file.name not in in_answer:
            add_file(found.files, file)
    _take_subtitles(item.get("subtitles"), found, in_answer)
    return found


def _values(value: object) -> Iterator[str]:
    """File names: a text, a list of texts, or objects that hold one."""
    for inner in value if isinstance(value, list) else [value]:
        if isinstance(inner, dict):
            inner = next((inner[key] for key in ("name", "url", "fileName") if isinstance(inner.get(key), str)), None)
        if isinstance(inner, str):
            yield inner


def _take_answer(items: object, found: Activity, report: Report, place: str) -> None:
    """The answer; of one that was made again all versions, since nothing says which was kept."""
    texts: list[str] = []
    for item in items if isinstance(items, list) else [items]:
        html = item.get("html", item.get("htmlValue")) if isinstance(item, dict) else item
        if not isinstance(html, str):
            if item:
                report.skip("answer of an unknown shape", place, expected=False)
            continue
        shown = html_to_text(html)
        if shown.text:
            texts.append(shown.text)
        take_links(shown.links, shown.images, found)
    found.answer = "\n\n".join(texts)


def take_links(links: list[tuple[str, str]], images: list[tuple[str, str]], found: Activity) -> None:
    """Addresses an answer points at, and the files that lie beside the export."""
    for address, words in links:
        if address.startswith(("http://", "https://")):
            citation = Citation(address, words or None)
            if citation not in found.citations:
                found.citations.append(citation)
        else:
            add_file(found.answer_files, file_named(address))
    for source, _ in images:
        add_file(found.answer_files, file_named(source))


def _take_subtitles(subtitles: object, found: Activity, in_answer: set[str | None]) -> None:
    """Lines below the title: the files that were sent (`-  pier.png`), and which Gem was used."""
    notes: list[tuple[str, bool]] = []
    for subtitle in subtitles if isinstance(subtitles, list) else []:
        if not isinstance(subtitle, dict):
            continue
        name, url = _resolved(text_of(subtitle.get("name"))).strip(), subtitle.get("url")
        file = file_named(url) if isinstance(url, str) and url.strip() else None
        if file is not None:
            if file.name not in in_answer and all(file.name != known.name for known in found.files):
                found.files.append(Attachment(file.name, file.type))
            notes.append(("", True))
        elif name:
            if isinstance(url, str):
                found.addresses.append(url)
            notes.append((name, False))
    for number, (name, is_file) in enumerate(notes):
        # `Attached 1 file.`, in any language, stands right before the list of files.
        before_files = number + 1 < len(notes) and notes[number + 1][1] and any(c.isdecimal() for c in name)
        if not is_file and not before_files:
            found.notes.append(name)


def _resolved(text: str) -> str:
    """References that end as they should; a prompt may hold an address with `&copy=` in it."""
    return _REFERENCE.sub(lambda match: resolve(match[0]), text)
