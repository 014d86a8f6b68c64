"""`drawer_embeddings`: drawers and their vectors into Chroma, all chunks into the lexical index. Only what changed.

The ledger remembers each published row by a hash, written in two steps (first "about to", then "done"), so that after a
kill at any point the next run knows every id that may be in an index.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, datetime
from sqlite3 import Row
from typing import Any

import numpy as np
import polars as pl

from palace_pipeline.embedding.model import EmbeddingModel, load_model
from palace_pipeline.model import short_hash
from palace_pipeline.planner import EVER, Recipes, due, split_by_month
from palace_pipeline.redaction import made
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.stages.common import Counts, Job, Key, batches, gone, key_of, logged
from palace_pipeline.stages.progress import report
from palace_pipeline.stages.withheld import hits
from palace_pipeline.stages.words_gone import OLD_WORDS
from palace_pipeline.store.files import make_folder
from palace_pipeline.store.home import Home
from palace_pipeline.store.lake import Lake
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.lexical import LexicalIndex, LexicalRow, StaleIndexError
from palace_pipeline.store.vectors import (
    ModelIdentity,
    OtherModelError,
    StoredDrawer,
    VectorStore,
    filed_at,
    take_place,
)

_RULES = "indexes_redaction"
"""In the ledger's `meta`: the rules that the indexes were last brought in line with."""
SAMPLE = 200
"""Drawers looked up in Chroma after a run: it can lose vectors and still count right."""


def publish_vectors(job: Job) -> Counts:
    """Bring both indexes in line for what has changed. Returns drawers, chunks, written and removed rows, missing ones,
    and in how many places of a sample, read back from Chroma, a second look finds something.

    An index of another recipe, or one that is gone, is begun anew; every conversation is then due again. A collection of
    another model stays for those who ask it, and the new one is made beside it until nothing is due any more.
    """
    started = time.perf_counter()
    counts: Counts = {"conversations": 0, "drawers": 0, "chunks": 0, "written": 0, "removed": 0, "missing": 0}
    counts["scan_hits"] = 0
    home, lake = job.home, job.home.lake
    with home.ledger() as ledger:
        if not due(ledger, "vectors", job.span, job.recipes, force=job.force):
            _follow_rules(job, ledger, 0)
            return logged(job, ledger, "vectors", started, counts)
        model = load_model(home.settings.embedding)
        with ExitStack() as stack:
            store, index = _open(home, ledger, model, stack)
            work = due(ledger, "vectors", job.span, job.recipes, force=job.force)
            done, replaced, sample = 0, 0, list[str]()
            for month, rows in split_by_month(work):
                for part in batches(rows):
                    keys = [key_of(row) for row in part]
                    drawers, lexical = _rows_of(lake, month, part)
                    written, removed, old = _write(ledger, store, index, keys, drawers, lexical, anew=job.force)
                    replaced += old
                    built: list[tuple[Key, str, str | None]] = [(key_of(row), row["made_from"], None) for row in part]
                    ledger.mark_built("vectors", built)
                    counts["conversations"] += len(part)
                    counts["drawers"] += len(drawers)
                    counts["chunks"] += len(lexical)
                    counts["written"] += written
                    counts["removed"] += removed
                    sample += [drawer.drawer_id for drawer in drawers[: SAMPLE - len(sample)]]
                    done += len(part)
                    report("indexing", done, len(work))
            counts["missing"] = len(store.sample_check(sample))
            # Read back: what stands in the store itself, the same for every client.
            funnel = Funnel(home.settings.redaction, home.key(), forgotten=ledger.forgotten())
            for ours, shown in _by_nature(store.shown(sample)):
                counts["scan_hits"] += len(hits(funnel, shown, made.own if ours else made.said))
        if home.chroma_next.exists() and not due(ledger, "vectors", EVER, job.recipes):
            take_place(home.chroma_next, home.path / "chroma")
        _follow_rules(job, ledger, replaced)
        return logged(job, ledger, "vectors", started, counts)


def _by_nature(shown: Sequence[tuple[str, str]]) -> list[tuple[bool, list[tuple[str, str]]]]:
    """What Chroma shows: whether it is what we say of a drawer (ids, places, times), not what was said; and which it is."""
    said = ("document in Chroma", "title in Chroma")
    return [(ours, [one for one in shown if (one[0] not in said) is ours]) for ours in (False, True)]


def _follow_rules(job: Job, ledger: Ledger, replaced: int) -> None:
    """After a change of the rules of redaction, or when a source has masked its own words, as soon as the last day is done:
    leave no old words in the indexes.

    What is deleted stays for long in Chroma's queue and in the segments of the lexical index.
    """
    if ledger.meta(_RULES) == job.recipes.redaction and not ledger.meta(OLD_WORDS):
        return
    if replaced:
        ledger.set_meta(OLD_WORDS, "yes")
    if due(ledger, "redacted", EVER, job.recipes) or due(ledger, "vectors", EVER, job.recipes):
        return
    if ledger.meta(OLD_WORDS):
        rebuild_indexes(job.home, ledger, job.recipes)
    ledger.set_meta(_RULES, job.recipes.redaction)


def rebuild_indexes(home: Home, ledger: Ledger, recipes: Recipes) -> None:
    """Make both indexes anew from the lake, and put them in the place of the old ones: nothing is left of those.

    What still has to be published counts as not published afterwards.
    """
    waiting = {key_of(row) for row in due(ledger, "vectors", EVER, recipes)}
    everything = due(ledger, "vectors", EVER, recipes, force=True)
    done = [row for row in everything if key_of(row) not in waiting and not gone(row)]
    with ledger.transaction():
        ledger.write_many(
            "UPDATE published SET hash = NULL WHERE provider = ? AND conversation_id = ?", sorted(waiting)
        )

    def rows() -> Iterator[tuple[list[StoredDrawer], list[LexicalRow]]]:
        for month, of_month in split_by_month(done):
            for part in batches(of_month):
                yield _rows_of(home.lake, month, part)

    model = load_model(home.settings.embedding)
    identity = ModelIdentity(model.name, model.sha256, model.dimension)
    VectorStore.rebuild(home.path / "chroma", identity, (drawer for drawers, _ in rows() for drawer in drawers))
    _drop_next(home)
    LexicalIndex.rebuild(home.path / "lexical", (row for _, lexical in rows() for row in lexical))
    ledger.write("DELETE FROM meta WHERE name = ?", (OLD_WORDS,))


def make_indexes_anew(home: Home, ledger: Ledger, recipes: Recipes) -> Counts:
    """Make both indexes from the lake alone, whatever is in the old ones and whatever counts as published. Each takes the
    place of the old one when it is whole. Returns drawers and chunks.

    Everything before must be up to date. Who is killed begins again with the index that was not done.
    """
    work = due(ledger, "vectors", EVER, recipes, force=True)
    shown = [row for row in work if not gone(row)]
    published: list[tuple[str, str, str, str]] = []

    def rows() -> Iterator[tuple[list[StoredDrawer], list[LexicalRow]]]:
        done = 0
        for month, of_month in split_by_month(shown):
            for part in batches(of_month):
                yield _rows_of(home.lake, month, part)
                done += len(part)
                report("indexing", done, len(shown))

    def noted() -> Iterator[LexicalRow]:
        for drawers, lexical in rows():
            published.extend((*key, name, value) for name, (key, value) in _hashes(drawers, lexical).items())
            yield from lexical

    model = load_model(home.settings.embedding)
    identity = ModelIdentity(model.name, model.sha256, model.dimension)
    filed = VectorStore.rebuild(home.path / "chroma", identity, (drawer for drawers, _ in rows() for drawer in drawers))
    _drop_next(home)
    chunks = LexicalIndex.rebuild(home.path / "lexical", noted())
    with ledger.transaction():
        ledger.write("DELETE FROM published")
        ledger.write_many("INSERT OR REPLACE INTO published VALUES (?, ?, ?, ?)", published)
        ledger.mark_built("vectors", [(key_of(row), row["made_from"], None) for row in work])
        ledger.write("DELETE FROM meta WHERE name = ?", (OLD_WORDS,))
        ledger.set_meta(_RULES, recipes.redaction)
    return {"drawers": filed, "chunks": chunks}


def _rows_of(lake: Lake, month: str, part: Sequence[Row]) -> tuple[list[StoredDrawer], list[LexicalRow]]:
    """The rows of both indexes for some conversations of a month, from the lake."""
    keys = [key_of(row) for row in part]
    return _rows(
        heads=lake.read("clean/conversations", [month], keys=keys),
        messages=lake.read(
            "clean/messages",
            [month],
            keys=keys,
            columns=["provider", "conversation_id", "seq", "role", "created_at", "local_time"],
        ),
        chunks=lake.read("clean/chunks", [month], keys=keys),
        filed=lake.read("clean/drawers", [month], keys=keys),
        vectors=lake.read("clean/vectors", [month], keys=keys),
        pages={key_of(row): row["page"] or "" for row in part},
    )


def _open(home: Home, ledger: Ledger, model: EmbeddingModel, stack: ExitStack) -> tuple[VectorStore, LexicalIndex]:
    identity = ModelIdentity(model.name, model.sha256, model.dimension)
    store = _store(home, identity, stack)
    if store.is_empty():
        begin_anew(ledger)
    try:
        index = stack.enter_context(LexicalIndex(home.path / "lexical"))
    except StaleIndexError:
        LexicalIndex.rebuild(home.path / "lexical", [])
        index = stack.enter_context(LexicalIndex(home.path / "lexical"))
        begin_anew(ledger)
    return store, index


def _store(home: Home, identity: ModelIdentity, stack: ExitStack) -> VectorStore:
    """The collection of a model: the one that is there, or one that is being made beside that of another model."""
    try:
        return stack.enter_context(VectorStore(home.chroma, identity))
    except OtherModelError:
        _drop_next(home)  # the settings have changed once more before it was whole
        make_folder(home.chroma_next)
        return stack.enter_context(VectorStore(home.chroma_next, identity))


def _drop_next(home: Home) -> None:
    if home.chroma_next.exists():
        shutil.rmtree(home.chroma_next)


def begin_anew(ledger: Ledger) -> None:
    """An index was emptied: nothing counts as published, and every conversation is due."""
    with ledger.transaction():
        ledger.write("UPDATE published SET hash = NULL")
        ledger.write("UPDATE conversations SET vectors_in = NULL")


def _write(
    ledger: Ledger,
    store: VectorStore,
    index: LexicalIndex,
    keys: Sequence[Key],
    drawers: Sequence[StoredDrawer],
    lexical: Sequence[LexicalRow],
    *,
    anew: bool = False,
) -> tuple[int, int, int]:
    """Write what differs from what was published of these conversations (`anew`: all); returns rows written and removed,
    and of how many an older state is deleted."""
    now = _hashes(drawers, lexical)
    before: dict[str, str | None] = {}
    left: list[tuple[str, str, str]] = []
    for key in keys:
        for row in ledger.rows("SELECT drawer_id, hash FROM published WHERE provider = ? AND conversation_id = ?", key):
            before[row["drawer_id"]] = row["hash"]
            if row["drawer_id"] not in now:
                left.append((*key, row["drawer_id"]))
    stale = [name for name in before if name not in now]
    fresh = {name for name, (_, value) in now.items() if anew or before.get(name) != value}
    with ledger.transaction():
        ledger.write_many(
            "INSERT OR REPLACE INTO published VALUES (?, ?, ?, NULL)", ((*now[name][0], name) for name in sorted(fresh))
        )
    store.upsert(drawer for drawer in drawers if drawer.drawer_id in fresh)
    store.delete(stale)
    index.upsert(row for row in lexical if row.drawer_id in fresh)
    index.delete(stale)
    index.commit()
    with ledger.transaction():
        ledger.write_many(
            "UPDATE published SET hash = ? WHERE provider = ? AND conversation_id = ? AND drawer_id = ?",
            ((now[name][1], *now[name][0], name) for name in sorted(fresh)),
        )
        ledger.write_many("DELETE FROM published WHERE provider = ? AND conversation_id = ? AND drawer_id = ?", left)
    replaced = sum(before.get(name) is not None and before[name] != now[name][1] for name in fresh)
    return len(fresh), len(stale), len(stale) + replaced


def _hashes(drawers: Iterable[StoredDrawer], lexical: Iterable[LexicalRow]) -> dict[str, tuple[Key, str]]:
    filed = {drawer.drawer_id: drawer for drawer in drawers}
    out: dict[str, tuple[Key, str]] = {}
    for row in lexical:
        drawer = filed.get(row.drawer_id)
        rest = [str(drawer.metadata()), drawer.vector.tobytes().hex()] if drawer else []
        out[row.drawer_id] = ((row.provider, row.conversation_id), short_hash(repr(row), *rest))
    return out


def _rows(
    *,
    heads: pl.DataFrame,
    messages: pl.DataFrame,
    chunks: pl.DataFrame,
    filed: pl.DataFrame,
    vectors: pl.DataFrame,
    pages: Mapping[Key, str],
) -> tuple[list[StoredDrawer], list[LexicalRow]]:
    """The rows of both indexes for some conversations of a month."""
    head_of = {(head["provider"], head["conversation_id"]): head for head in heads.iter_rows(named=True)}
    spoken: dict[Key, dict[int, tuple[str, datetime | None, str | None]]] = {}
    for provider, conversation_id, seq, role, at, local in messages.iter_rows():
        spoken.setdefault((provider, conversation_id), {})[seq] = (role, at, local)
    place_of = {row["drawer_id"]: row for row in filed.iter_rows(named=True)}
    vector_of = dict(zip(vectors["drawer_id"].to_list(), vectors["vector"].to_numpy(), strict=True))
    drawers: list[StoredDrawer] = []
    lexical: list[LexicalRow] = []
    for chunk in chunks.iter_rows(named=True):
        key = (chunk["provider"], chunk["conversation_id"])
        head = head_of[key]
        said = [spoken[key][seq] for seq in range(chunk["first_seq"], chunk["last_seq"] + 1) if seq in spoken[key]]
        times = [at for _, at, _ in said if at is not None]
        days = [day for _, at, local in said if (day := _day(at, local)) is not None]
        place = place_of.get(chunk["drawer_id"])
        lexical.append(
            LexicalRow(
                drawer_id=chunk["drawer_id"],
                text=chunk["text"],
                context=chunk["context"],
                title=head["title"] or "",
                provider=key[0],
                conversation_id=key[1],
                wing=place["wing"] if place else "",
                room=place["room"] if place else "",
                kind=chunk["kind"],
                roles=tuple(sorted({role for role, _, _ in said})),
                day=_number(chunk["day"]),
                first_day=_number(min(days)) if days else None,
                last_day=_number(max(days)) if days else None,
            )
        )
        if place is None:
            continue
        drawers.append(_stored(chunk, head, place, vector_of[chunk["drawer_id"]], pages.get(key, ""), times))
    return drawers, lexical


def _stored(
    chunk: dict[str, Any],
    head: dict[str, Any],
    place: dict[str, Any],
    vector: np.ndarray[Any, np.dtype[np.float32]],
    page: str,
    times: list[datetime],
) -> StoredDrawer:
    return StoredDrawer(
        drawer_id=chunk["drawer_id"],
        document=chunk["text"],
        vector=vector,
        provider=chunk["provider"],
        conversation_id=chunk["conversation_id"],
        wing=place["wing"],
        hall=place["hall"],
        room=place["room"],
        day=_number(chunk["day"]),
        chunk_index=chunk["chunk_index"],
        title=head["title"] or "",
        page=page,
        source_file=head["source_file"] or "",
        filed_at=filed_at(times, chunk["day"]),
    )


def _day(at: datetime | None, local_time: str | None) -> date | None:
    """The UTC day of a message; a naive time counts with its own date."""
    if at is not None:
        return at.date()
    return date.fromisoformat(local_time[:10]) if local_time else None


def _number(day: date) -> int:
    return day.year * 10_000 + day.month * 100 + day.day
