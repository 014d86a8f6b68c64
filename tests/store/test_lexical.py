"""The lexical index: what is found, with which filters, and what a kill, an error or another version leaves."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from palace_pipeline.store import lexical
from palace_pipeline.store.lexical import Filters, LexicalIndex, LexicalReader, LexicalRow, StaleIndexError, open_reader
from palace_pipeline.transcripts.terms import query_terms


def row(drawer_id: str, text: str, **fields: object) -> LexicalRow:
    values = {
        "drawer_id": drawer_id,
        "text": text,
        "context": "",
        "title": "",
        "provider": "chatgpt",
        "conversation_id": "c1",
        "wing": "garden",
        "room": "general",
        "kind": "exchange",
        "roles": ("user", "assistant"),
        "day": 20240105,
        "first_day": 20240105,
        "last_day": 20240105,
    }
    return LexicalRow(**{**values, **fields})  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lexical"


def written(path: Path, *rows: LexicalRow) -> LexicalReader:
    with LexicalIndex(path) as index:
        index.upsert(rows)
    reader = open_reader(path)
    assert reader is not None
    return reader


def found(reader: LexicalReader, query: str, filters: Filters | None = None) -> list[str]:
    return [drawer_id for drawer_id, _ in reader.search(query_terms(query), 10, filters or Filters())]


def test_words_of_any_script_are_found(path: Path) -> None:
    reader = written(
        path,
        row("zh", "我们把向量检索换成了混合检索"),
        row("tw", "這個資料庫要備份"),
        row("en", "We deployed the databases with rpt_slot=12"),
        row("ru", "Миграция базы прошла ночью"),
        row("ja", "ノートを買いました"),
    )
    assert found(reader, "向量") == ["zh"]
    assert found(reader, "资料库备份") == ["tw"]
    assert found(reader, "database") == ["en"]
    assert found(reader, "rpt_slot") == ["en"]
    assert found(reader, "slot") == ["en"]
    assert found(reader, "миграции баз") == ["ru"]
    assert found(reader, "ノート") == ["ja"]
    assert found(reader, "库") == ["tw"]


def test_the_rarer_word_counts_more_and_the_own_text_most(path: Path) -> None:
    reader = written(
        path,
        row("both", "kettle lantern"),
        row("lantern", "lantern and more words here"),
        row("title", "nothing here", title="lantern"),
        row("kettles", "kettle kettle"),
        row("more", "kettle once"),
    )
    assert found(reader, "kettle lantern")[0] == "both"
    assert set(found(reader, "lantern")) == {"both", "lantern", "title"}
    assert found(reader, "lantern")[-1] == "title"
    assert reader.document_frequency("kettl") == 3


@pytest.mark.parametrize("query", ["", "?!", "   ", "。"])
def test_nothing_asked_nothing_found(path: Path, query: str) -> None:
    assert found(written(path, row("a", "the text")), query) == []


def test_form_words_alone_find_texts_and_do_not_crash(path: Path) -> None:
    assert found(written(path, row("a", "what is the")), "what is the") == ["a"]


def test_filters(path: Path) -> None:
    reader = written(
        path,
        row("a", "kettle", provider="claude", wing="w1", room="technical", kind="tool", roles=("tool",)),
        row("b", "kettle", conversation_id="c2", first_day=20230101, last_day=20240301),
        row("c", "kettle", first_day=None, last_day=None),
    )
    assert found(reader, "kettle", Filters(provider="claude")) == ["a"]
    assert found(reader, "kettle", Filters(wing="w1", room="technical")) == ["a"]
    assert found(reader, "kettle", Filters(wing="w1", room="general")) == []
    assert found(reader, "kettle", Filters(kinds=("exchange", "people"))) == ["b", "c"]
    assert found(reader, "kettle", Filters(role="tool")) == ["a"]
    assert found(reader, "kettle", Filters(conversation_id="c2")) == ["b"]
    assert found(reader, "kettle", Filters(since=20240106)) == ["b", "c"]
    assert found(reader, "kettle", Filters(until=20240104)) == ["b", "c"]
    assert found(reader, "kettle", Filters(since=20240105, until=20240105, provider="claude")) == ["a"]
    # A filter does not move scores.
    scores = [score for _, score in reader.search(query_terms("kettle"), 9)]
    filtered = [score for _, score in reader.search(query_terms("kettle"), 9, Filters(wing="garden", since=20000101))]
    assert filtered == pytest.approx(scores[:2])


def test_upsert_replaces_and_delete_removes(path: Path) -> None:
    written(path, row("a", "kettle"), row("b", "lantern"), row("c", "saucer", day=20240201))
    with LexicalIndex(path) as index:
        index.upsert([row("a", "teapot")])
        index.delete(["b", "never there"])
        index.delete_days(20240201, 20240229)
    reader = open_reader(path)
    assert reader is not None
    assert reader.ids() == ["a"]
    assert found(reader, "kettle") == []
    assert found(reader, "teapot") == ["a"]


def test_an_error_leaves_the_last_commit(path: Path) -> None:
    written(path, row("a", "kettle"))

    def rows() -> Iterator[LexicalRow]:
        yield row("b", "lantern")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"), LexicalIndex(path) as index:
        index.upsert(rows())
    reader = open_reader(path)
    assert reader is not None
    assert reader.ids() == ["a"]


def test_a_killed_writer_leaves_the_last_commit_and_blocks_nobody(path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from palace_pipeline.store.lexical import LexicalIndex, LexicalRow
def row(n): return LexicalRow(f"k{{n}}", "kettle", "", "", "p", "c", "w", "r", "exchange", (), 20240101)
with LexicalIndex(Path({str(path)!r})) as index:
    index.upsert([row(1)]); index.commit()
    index.upsert([row(n) for n in range(2, 500)])
    os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert ended.returncode == -9
    reader = open_reader(path)
    assert reader is not None
    assert reader.ids() == ["k1"]
    assert written(path, row("b", "kettle")).count() == 2


def test_a_reader_makes_nothing(path: Path) -> None:
    assert open_reader(path) is None
    assert not path.exists()


def test_a_reader_keeps_what_it_opened(path: Path) -> None:
    reader = written(path, row("a", "kettle"))
    LexicalIndex.rebuild(path, [row("b", "kettle")])
    assert found(reader, "kettle") == ["a"]
    assert found(open_reader(path) or reader, "kettle") == ["b"]


def test_another_recipe_or_a_broken_index_asks_for_a_rebuild(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(path, row("a", "kettle"))
    with monkeypatch.context() as patch:
        patch.setattr(lexical, "RECIPE", "terms-999")
        with pytest.raises(StaleIndexError, match="terms-999"), LexicalIndex(path):
            pass
        with pytest.raises(StaleIndexError):
            open_reader(path)
    (path / "meta.json").write_text("broken")
    with pytest.raises(StaleIndexError, match="cannot be read"):
        open_reader(path)
    assert LexicalIndex.rebuild(path, [row("b", "lantern")]) == 1
    assert found(written(path), "lantern") == ["b"]


def test_files_are_the_owners_alone(path: Path) -> None:
    written(path, row("a", "kettle"))
    assert {stat.S_IMODE(p.stat().st_mode) for p in path.iterdir()} == {0o600}
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
