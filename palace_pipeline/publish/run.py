"""An export: chosen conversations become files in a folder, one by one, so that memory does not follow their number.

Only what was redacted is read (the clean lake), and every text is looked at once more before it leaves, with the rules of this
moment: one in which something is found, and a conversation that is withheld, stay at home and are counted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from sqlite3 import Row
from typing import get_args

from palace_pipeline.model import Conversation, Skip
from palace_pipeline.publish import docx
from palace_pipeline.publish.browser import Browser, browser
from palace_pipeline.publish.chosen import Chosen
from palace_pipeline.publish.earlier import earlier
from palace_pipeline.publish.html import page
from palace_pipeline.publish.index import Entry, index_html, index_markdown
from palace_pipeline.publish.links import Links
from palace_pipeline.publish.pdf import steady
from palace_pipeline.publish.plain import markdown
from palace_pipeline.publish.sealed import Kind, Outcome, building, put
from palace_pipeline.publish.view import View, view_of
from palace_pipeline.redaction import made
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.stages.common import BATCH_MESSAGES
from palace_pipeline.stages.progress import report
from palace_pipeline.stages.withheld import hits
from palace_pipeline.store.files import make_folder
from palace_pipeline.store.home import Home
from palace_pipeline.store.lake import Key, LakeDamaged, month_of
from palace_pipeline.transcripts.page_labels import SOURCES
from palace_pipeline.transcripts.page_path import page_name
from palace_pipeline.transcripts.rows import conversations_of
from palace_pipeline.workspace.shown_since import shows_since

KINDS: tuple[Kind, ...] = get_args(Kind)
_MOST_FOLDED: dict[Kind, int] = {"html": 200_000, "md": 200_000, "pdf": 1_500, "docx": 1_500}
"""Characters of a tool's output or a thought: where nothing can be unfolded, a glance at it."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be written. `folded`: with tool calls, tool output and thinking. `title`: of the index."""

    folder: Path
    kind: Kind
    title: str
    folded: bool = True
    overwrite: bool = False


@dataclass(slots=True)
class Exported:
    """What was written: `files` by name, in the order of the index. `counts`: files by outcome, the index not counted."""

    files: list[str] = field(default_factory=list[str])
    counts: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(get_args(Outcome), 0))
    messages: int = 0
    skipped: list[Skip] = field(default_factory=list[Skip])
    index: str | None = None
    earlier: int = 0
    """Files of exports before this one that lie in the folder and stand in the index, too."""


def export(home: Home, chosen: Sequence[Chosen], order: Order) -> Exported:
    """Write the files. Nothing is written outside `order.folder`; a file there that no export wrote, or that somebody has changed
    since, stays unless `overwrite`, and is counted. Raises NoBrowser or BrowserFailed for PDF files."""
    done = Exported()
    if not chosen:
        return done
    entries: list[Entry] = []
    hidden: set[str] = set()
    with ExitStack() as stack:
        printer: Browser | None = None
        if order.kind == "pdf":
            printer = stack.enter_context(browser(make_folder(order.folder)))
        ledger = stack.enter_context(home.ledger())
        funnel = Funnel(home.settings.redaction, home.key(), forgotten=ledger.forgotten())
        names = _names(ledger.conversation, chosen, order.kind)
        # In a PDF a relative link becomes the path of this machine.
        links = Links(names if order.kind != "pdf" else None)
        make_folder(order.folder)
        for number, (one, found) in enumerate(_loaded(home, chosen, ledger.conversation, done), start=1):
            report("export", number, len(chosen))
            if found is None:
                hidden.add(names[one.key])
                reason = "withheld: it may hold something that must not be shown"
                done.skipped.append(_skip(reason + _still_there(order.folder, names[one.key]), one.key))
                continue
            view = view_of(found, home.settings.zone, folded=order.folded, most=_MOST_FOLDED[order.kind])
            plain = markdown(view, links)
            name = names[one.key]
            places = hits(funnel, [("file name", name)], made.path) + hits(funnel, [("text", plain)], made.page)
            provider, session = one.key
            if places or (provider == "session" and shows_since(home.path, home.key, session, name, plain)):
                hidden.add(name)
                kinds = ", ".join(sorted({kind for _, kind in places} or {"secret"}))
                reason = f"a second look found something to be masked ({kinds}); run: palace ingest"
                done.skipped.append(_skip(reason + _still_there(order.folder, name), one.key))
                continue
            outcome = _write(order.folder / name, view, plain, links, order, printer)
            done.counts[outcome] += 1
            if outcome == "in the way":
                reason = "another file of this name is there; it was left as it is (--overwrite replaces it)"
                done.skipped.append(Skip(reason, name, expected=False, unit="file"))
                continue
            done.files.append(name)
            done.messages += view.messages
            entries.append(
                Entry(
                    name,
                    view.title,
                    SOURCES.get(provider, provider),
                    view.dates[0],
                    view.messages,
                    view.language,
                    one.quotes,
                )
            )
        if entries:
            _write_index(order, funnel, entries, hidden, done)
    return done


def _write(path: Path, view: View, plain: str, links: Links, order: Order, printer: Browser | None) -> Outcome:
    if order.kind == "md":
        return put(path, plain.encode("utf-8", "replace"), "md", overwrite=order.overwrite)
    if order.kind == "html":
        return put(path, page(view, links).encode("utf-8", "replace"), "html", overwrite=order.overwrite)
    if order.kind == "docx":
        with building(path, "docx", overwrite=order.overwrite) as file:
            docx.write(file.stream, view, links)
        return file.outcome
    assert printer is not None
    with tempfile.NamedTemporaryFile(prefix=".tmp-", suffix=".html", dir=order.folder) as paper:
        paper.write(page(view, links, unfold=True).encode("utf-8", "replace"))
        paper.flush()
        pdf = b"".join(printer.print_pdf(Path(paper.name)))
    return put(path, steady(pdf), "pdf", overwrite=order.overwrite)


def _write_index(order: Order, funnel: Funnel, entries: list[Entry], hidden: set[str], done: Exported) -> None:
    """The index of the folder: of this export, in its order, or by date together with what earlier ones left there."""
    kind: Kind = "md" if order.kind == "md" else "html"
    done.index = f"index.{kind}"
    title, besides = order.title, hidden | {entry.file for entry in entries}
    if before := list(_shown(funnel, earlier(order.folder, done.index, kind, besides), done.index, done)):
        done.earlier = len(before)
        title, entries = "Conversations", sorted([*entries, *before], key=lambda entry: (entry.date, entry.file))
    text = (index_markdown if kind == "md" else index_html)(title, entries)
    outcome = put(order.folder / done.index, text.encode("utf-8", "replace"), kind, overwrite=order.overwrite)
    if outcome == "in the way":
        reason = "another index is there; it was left as it is (--overwrite replaces it)"
        done.skipped.append(Skip(reason, done.index, expected=False, unit="file"))
        done.index, done.earlier = None, 0


def _shown(funnel: Funnel, before: Iterable[Entry], index: str, done: Exported) -> Iterator[Entry]:
    """Those of earlier exports that the rules of this moment let stand in an index."""
    reason = "a file of an earlier export, of which the index would show what is to be masked now; it is not listed"
    for entry in before:
        in_name = hits(funnel, [("file name", entry.file)], made.path)
        if in_name or hits(funnel, [("text", "\n".join([entry.title, *entry.quotes]))], made.page):
            done.skipped.append(Skip(reason, index if in_name else entry.file, expected=False, unit="file"))
        else:
            yield entry


def _still_there(folder: Path, name: str) -> str:
    return "; a file of it from an earlier export is still in the folder: delete it" if (folder / name).exists() else ""


def _skip(reason: str, key: Key) -> Skip:
    return Skip(reason, f"{key[0]}:{key[1]}", expected=False, unit="conversation")


def _names(row_of: Callable[[Key], Row | None], chosen: Sequence[Chosen], kind: Kind) -> dict[Key, str]:
    """The name of each file: that of the conversation's page, which stays when a title changes."""
    names: dict[Key, str] = {}
    taken: set[str] = set()
    for one in chosen:
        row = row_of(one.key)
        stem = PurePosixPath(row["page"]).stem if row is not None and row["page"] else ""
        stem = stem or PurePosixPath(page_name(one.day, None, *one.key)).stem
        name, number = f"{stem}.{kind}", 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}.{kind}"
        taken.add(name.casefold())
        names[one.key] = name
    return names


def _loaded(
    home: Home, chosen: Sequence[Chosen], row_of: Callable[[Key], Row | None], done: Exported
) -> Iterator[tuple[Chosen, Conversation | None]]:
    """The conversations in their order, some of one month at a time; None for one that is withheld. A month that cannot be read
    is noted in `done`."""
    for month, part in _batches(chosen, row_of):
        keys = [one.key for one in part]
        try:
            heads = home.lake.read("clean/conversations", [month], keys=keys)
            rows = home.lake.read("clean/messages", [month], keys=keys)
        except LakeDamaged as error:
            done.skipped.append(Skip(str(error), month, expected=False, count=len(part), unit="conversation"))
            continue
        found = {conversation.key: (head, conversation) for head, conversation in conversations_of(heads, rows)}
        for one in part:
            if one.key not in found:
                done.skipped.append(_skip("it is not built yet; run: palace ingest", one.key))
                continue
            head, conversation = found[one.key]
            row = row_of(one.key)
            withheld = head["status"] == "withheld" or (row is not None and row["page"] == "")
            yield one, None if withheld else conversation


def _batches(chosen: Sequence[Chosen], row_of: Callable[[Key], Row | None]) -> Iterator[tuple[str, list[Chosen]]]:
    part: list[Chosen] = []
    size, month = 0, ""
    for one in chosen:
        row = row_of(one.key)
        messages = row["messages"] if row is not None else 0
        if part and (month_of(one.day) != month or size + messages > BATCH_MESSAGES):
            yield month, part
            part, size = [], 0
        part.append(one)
        size, month = size + messages, month_of(one.day)
    if part:
        yield month, part
