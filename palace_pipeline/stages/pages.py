"""`conversation_pages`: one Markdown page per conversation; what belongs to the user on it stays."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from palace_pipeline.model import Conversation
from palace_pipeline.planner import due, split_by_month
from palace_pipeline.redaction import made
from palace_pipeline.redaction.forgotten import KIND, Forgotten, masked_path
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.stages.common import Counts, Job, Key, batches, key_of, logged
from palace_pipeline.stages.progress import report
from palace_pipeline.stages.withheld import Place, hits, withhold
from palace_pipeline.store import pages
from palace_pipeline.store.files import write_bytes
from palace_pipeline.store.notes import update_notes
from palace_pipeline.transcripts.notes import Listed
from palace_pipeline.transcripts.notes import listed as listed_in_notes
from palace_pipeline.transcripts.page import PageHead, render
from palace_pipeline.transcripts.page_parts import segments, written_by_program
from palace_pipeline.transcripts.page_path import slug
from palace_pipeline.transcripts.rows import conversations_of
from palace_pipeline.workspace.index import (
    Row,
    add_missing,
    add_rows,
    conversation_row,
    forget_rows,
    live_row,
    page_key,
)
from palace_pipeline.workspace.logs import append_error
from palace_pipeline.workspace.sweeping import name_anew

WITHHELD = ""
"""Path in the ledger of a page that must not be shown."""


def write_pages(job: Job) -> Counts:
    """Write what has changed. Returns pages, those really written, removed ones, kept conflicts, withheld conversations
    and hits.

    A page is looked at once more before it is written (the user's notes are the user's): with a hit the conversation is
    withheld, here and in every store. What was written is read back; `scan_hits` are pages that show something even so.
    """
    started = time.perf_counter()
    names = ("pages", "written", "removed", "conflicts", "withheld", "scan_hits")
    counts: Counts = dict.fromkeys(names, 0)
    home, lake = job.home, job.home.lake
    with home.ledger() as ledger:
        work = due(ledger, "pages", job.span, job.recipes, force=job.force)
        forgotten = ledger.forgotten()
        funnel = Funnel(home.settings.redaction, home.key(), forgotten=forgotten) if work else None
        index = pages.PageIndex(home.path)
        done = 0
        for month, rows in split_by_month(work):
            for part in batches(rows):
                assert funnel is not None
                keys = [key_of(row) for row in part]
                rooms, wings = places_of(lake.read("clean/drawers", [month], keys=keys).iter_rows(named=True))
                masked = defaultdict[Key, list[int | None]](list)
                for row in lake.read("clean/findings", [month], keys=keys).iter_rows(named=True):
                    masked[row["provider"], row["conversation_id"]].append(row["seq"])
                known: dict[Key, Path | None] = {
                    key_of(row): home.path / row["page"] if row["page"] else None for row in part
                }
                page_of: dict[Key, str | None] = {}
                held: dict[Key, list[Place]] = {}
                listed: list[Row] = []
                sessions: list[Row] = []
                gone_rows = set[str]()
                noted: list[Listed] = []
                left: list[str] = [row["page"] for row in part if row["page"]]
                shown = list(
                    conversations_of(
                        lake.read("clean/conversations", [month], keys=keys),
                        lake.read("clean/messages", [month], keys=keys),
                    )
                )
                for head, conversation in shown:
                    if head["status"] == "withheld":
                        continue
                    key = conversation.key
                    page_head = PageHead(
                        day=head["day"],
                        dated=head["dated"],
                        wing=wings.get(key),
                        rooms=rooms.get(key, ()),
                        redactions=sum(_on_page(conversation, seq) for seq in masked[key]),
                        source_sha256=(head["source_sha256"],) if head["source_sha256"] else (),
                    )
                    planned = render(conversation, page_head)
                    if places := hits(
                        funnel, [*said(planned), ("page name", slug(conversation.title or ""))], made.page
                    ):
                        held[key] = places
                        continue
                    result = pages.write_page(
                        home.path,
                        conversation,
                        page_head,
                        known_path=known[key],
                        index=index,
                        named=_name(conversation.title or "", funnel, forgotten, home.key()),
                    )
                    counts["pages"] += 1
                    counts["written"] += result.written
                    if result.edited:
                        # Theirs it stays, but for what the rules of today would not let stand on any page.
                        masked_there = clean_copy(result.path, funnel)
                        if masked_there and result.conflict is not None:  # the mask may be all they differed in
                            again = pages.write_page(
                                home.path, conversation, page_head, known_path=result.path, index=index
                            )
                            result = result if again.conflict else replace(again, moved_from=result.moved_from)
                    if result.edited and result.written and result.conflict is not None:
                        counts["conflicts"] += 1
                        append_error(home.path, "conflict", result.path, _conflict(result.conflict))
                    elif result.conflict is not None:
                        clean_copy(result.conflict, funnel)
                    if (
                        result.written
                        and unlike(result.generated, planned)
                        and hits(funnel, said(result.generated), made.page)
                    ):
                        held[key] = [("page on disk", "unreadable")]
                        _remove(result.path, funnel)
                        counts["scan_hits"] += result.path.exists()
                        continue
                    page_of[key] = result.path.relative_to(home.path).as_posix()
                    if result.moved_from is not None:
                        left.append(result.moved_from.relative_to(home.path).as_posix())
                    noted.append(
                        listed_in_notes(
                            conversation, head["day"], page_head.rooms, page_of[key] or "", dated=head["dated"]
                        )
                    )
                    if (old := known[key]) is not None and _title_in(old) != _title_in(result.path):
                        gone_rows.add(page_key(*key))
                        name_anew(home.path, old, result.path)
                    if conversation.provider == "session":  # as a rule its live page is in the index already
                        live = live_row(home.path, conversation)
                        sessions += [live] if live is not None else []
                    else:
                        listed.append(conversation_row(conversation, head["day"], result.tags, page_of[key] or ""))
                for row in part:
                    key = key_of(row)
                    if key not in page_of and (path := known[key]) is not None:
                        _remove(path, funnel, forget=row["status"] == "purged")
                        counts["removed"] += 1
                index.sync()
                forget_rows(home.path, gone_rows | {page_key(*key) for key in keys if key not in page_of})
                add_rows(home.path, listed)
                add_missing(home.path, sessions)
                update_notes(home.path, left, noted)
                built: list[tuple[Key, str, str | None]] = [(key_of(row), row["made_from"], None) for row in part]
                with ledger.transaction():
                    ledger.write_many(
                        "UPDATE conversations SET page = ? WHERE provider = ? AND conversation_id = ?",
                        ((page_of.get(key), *key) for key in keys),
                    )
                    ledger.mark_built("pages", built)
                withhold(job, ledger, month, shown, held, stage="pages")
                counts["withheld"] += len(held)
                done += len(part)
                report("pages", done, len(work))
        if funnel is not None and ledger.meta("conflicts_recipe") != job.recipes.redaction:
            for copy in pages.conflict_copies(home.path):
                clean_copy(copy, funnel)
            ledger.set_meta("conflicts_recipe", job.recipes.redaction)
        return logged(job, ledger, "pages", started, counts)


_OWN = r"^(?:<!-- palace:.*|palace: .*|conversation_id: .*|chat_link: .*|  - \"[0-9a-f]{64}\")$\n?"
_OWN_LINES = re.compile(_OWN, re.MULTILINE)
_TOKEN = re.compile(r"^palace: ([0-9a-f]{8}) ", re.MULTILINE)
_OWN_PARTS = re.compile(f"({_OWN})", re.MULTILINE)


def _on_page(conversation: Conversation, seq: int | None) -> bool:
    """Does the page show this row? What is masked outside of all rows (a title) counts as shown."""
    return seq is None or ((row := conversation.messages[seq]).branch_active and row.hidden_reason is None)


def _title_in(path: Path) -> str:
    """The part of a page's name that says its title."""
    return path.name[11:-12]


def _name(title: str, funnel: Funnel, forgotten: Sequence[Forgotten], key: bytes) -> str | None:
    """The title a page has to be named by, if a name made of the title as it was could show what is masked now; else
    None. A purged value may stand in a name (in lower case) and not in the title."""
    short = slug(title)
    if (clean := masked_path(short, forgotten, key, KIND, made.said)) != short:
        return clean
    return title if funnel.has_mask(title) else None


def _remove(path: Path, funnel: Funnel, *, forget: bool = False) -> None:
    removal = pages.remove_page(path, forget=forget)
    if removal.conflict is not None:
        clean_copy(removal.conflict, funnel)


def _conflict(state: Path) -> str:
    return (
        f"you changed this page, and the archive has something new to say: it stands beside it in {state.name}. "
        "Choose with: palace conflicts"
    )


def clean_copy(copy: Path, funnel: Funnel) -> bool:
    """Mask what the rules of today find in a page that somebody edited, or its copy, where it stands; whether there was
    anything. What belongs to the user (notes, tags, own properties) stays."""
    text = copy.read_bytes().decode("utf-8", "replace")
    parts: list[str] = []
    for piece, ours in segments(text):
        # What people read, and between it the program's own lines and what is the user's.
        some = _OWN_PARTS.split(piece) if ours else ["", piece, ""]
        parts = [*parts[:-1], parts[-1] + some[0], *some[1:]] if parts else some
    said = {str(number): part for number, part in enumerate(parts) if number % 2 == 0}
    clean = funnel.redact_fields(said, nature=made.page).texts
    if clean == said:
        return False
    write_bytes(copy, "".join(clean.get(str(number), part) for number, part in enumerate(parts)).encode())
    return True


def said(page: str) -> list[tuple[str, str]]:
    """Name and text of the parts of a page, without the program's own lines: ids and hashes are exempt by schema, and
    some look like account numbers."""
    head, _, body = page.partition("\n\n# ")
    token = _TOKEN.search(head)
    body = re.sub(rf"^<!-- palace:{token[1]} .*$", "", body, flags=re.MULTILINE) if token else body
    return [("page head", _OWN_LINES.sub("", head)), ("page", f"# {body}")]


def unlike(written: str, planned: str) -> bool:
    """Does what was read back differ from what was looked at before it was written?"""
    return written != written_by_program(planned)


def places_of(drawers: object) -> tuple[dict[Key, tuple[str, ...]], dict[Key, str]]:
    """Rooms (by frequency, then name) and wing of each conversation."""
    counted: dict[Key, Counter[str]] = {}
    wings: dict[Key, str] = {}
    for row in drawers:  # pyright: ignore[reportGeneralTypeIssues]
        key = (row["provider"], row["conversation_id"])
        counted.setdefault(key, Counter())[row["room"]] += 1
        wings[key] = row["wing"]
    rooms = {
        key: tuple(room for room, _ in sorted(found.items(), key=lambda item: (-item[1], item[0])))
        for key, found in counted.items()
    }
    return rooms, wings
