"""The Chroma collection: what any client finds in it, and what a second run, a kill or another model does to it."""

from __future__ import annotations

import stat
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from palace_pipeline.store.vectors import (
    COLLECTION,
    ModelIdentity,
    OtherModelError,
    StoredDrawer,
    VectorStore,
    clear_slack,
    filed_at,
    held_open,
    reading,
)

MODEL = ModelIdentity("small", "0" * 64, 4)


def row(number: int, document: str = "text", **fields: object) -> StoredDrawer:
    vector = np.zeros(4, dtype=np.float32)
    vector[number % 4] = 1
    values = {
        "drawer_id": f"d{number}",
        "document": document,
        "vector": vector,
        "provider": "chatgpt",
        "conversation_id": "c1",
        "wing": "garden",
        "hall": "facts",
        "room": "general",
        "day": 20240102,
        "chunk_index": number,
    }
    return StoredDrawer(**{**values, **fields})  # type: ignore[arg-type]


def raw_get(path: Path, **query: object) -> dict[str, object]:
    """What a client that knows nothing of this project reads."""
    import chromadb
    from chromadb.config import Settings

    with chromadb.PersistentClient(str(path), settings=Settings(anonymized_telemetry=False)) as client:
        collection = client.get_collection(COLLECTION, embedding_function=None)
        return {
            **collection.get(**query),
            "head": collection.metadata,
            "space": collection.configuration["hnsw"]["space"],
        }


def test_a_foreign_client_finds_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "chroma"
    with VectorStore(path, MODEL) as store:
        store.upsert(
            [row(1, "两个 words", title="T", page="conversations/x.md", source_file="a.zip", filed_at="2024-01-02")]
        )
    got = raw_get(path, include=["documents", "metadatas", "embeddings"])
    assert got["ids"] == ["d1"]
    assert got["documents"] == ["两个 words"]
    assert got["metadatas"] == [
        {
            "provider": "chatgpt",
            "conversation_id": "c1",
            "document_id": "c1",
            "doc_id": "c1",
            "wing": "garden",
            "hall": "facts",
            "room": "general",
            "day": 20240102,
            "chunk_index": 1,
            "title": "T",
            "page": "conversations/x.md",
            "source_file": "a.zip",
            "filed_at": "2024-01-02",
        }
    ]
    assert got["embeddings"].tolist() == [[0, 1, 0, 0]]  # type: ignore[attr-defined]
    assert got["head"] == {"model": "small", "model_sha256": "0" * 64, "dimension": 4, "schema": 1}
    assert got["space"] == "cosine"


def test_unchanged_rows_are_not_written_again(tmp_path: Path) -> None:
    with VectorStore(tmp_path / "chroma", MODEL) as store:
        assert store.upsert([row(1), row(2)]) == 2
        assert store.upsert([row(1), row(2)]) == 0
        assert store.upsert([row(1, room="technical"), row(2, "other"), row(3)]) == 3
        assert store.upsert([row(1, room="technical", vector=np.full(4, 0.5, dtype=np.float32))]) == 1
        assert store.count() == 3
    stored = raw_get(tmp_path / "chroma", ids=["d1", "d2"], include=["documents", "metadatas", "embeddings"])
    by_id = dict(zip(stored["ids"], stored["documents"], strict=True))  # type: ignore[call-overload]
    assert by_id == {"d1": "text", "d2": "other"}


def test_delete_and_pages_of_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palace_pipeline.store.vectors.READ_PAGE", 3)
    monkeypatch.setattr("palace_pipeline.store.vectors.WRITE_BATCH", 4)
    with VectorStore(tmp_path / "chroma", MODEL) as store:
        store.upsert(row(number) for number in range(10))
        store.delete(["d0", "d5", "never there"])
        pages = list(store.ids())
    assert [len(page) for page in pages] == [3, 3, 2]
    assert sorted(drawer_id for page in pages for drawer_id in page) == [f"d{n}" for n in (1, 2, 3, 4, 6, 7, 8, 9)]


def test_ids_of_some_days(tmp_path: Path) -> None:
    with VectorStore(tmp_path / "chroma", MODEL) as store:
        store.upsert(row(number, day=20240100 + number) for number in range(1, 6))
        assert [sorted(page) for page in store.ids(20240102, 20240103)] == [["d2", "d3"]]
        assert [sorted(page) for page in store.ids(first_day=20240104)] == [["d4", "d5"]]


def test_sample_check_names_what_is_missing(tmp_path: Path) -> None:
    with VectorStore(tmp_path / "chroma", MODEL) as store:
        store.upsert([row(1), row(2)])
        assert store.sample_check(["d1", "d2"]) == []
        assert store.sample_check(["d1", "gone"]) == ["gone"]


def test_another_model_is_refused_and_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "chroma"
    with VectorStore(path, MODEL) as store:
        store.upsert([row(1), row(2)])
    other = ModelIdentity("large", "1" * 64, 4)
    with pytest.raises(OtherModelError, match=r"small .*large"), VectorStore(path, other):
        pass
    assert VectorStore.rebuild(path, other, [row(7)]) == 1
    # The same process sees the new directory under the old path.
    with VectorStore(path, other) as store:
        assert list(store.ids()) == [["d7"]]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chroma"]


def test_rebuild_refuses_a_store_that_is_open(tmp_path: Path) -> None:
    path = tmp_path / "chroma"
    with VectorStore(path, MODEL) as store, pytest.raises(ValueError, match="open"):
        VectorStore.rebuild(path, MODEL, [])
    assert store  # closed again: now it works
    assert VectorStore.rebuild(path, MODEL, []) == 0


def test_a_failed_rebuild_leaves_the_old_collection(tmp_path: Path) -> None:
    path = tmp_path / "chroma"
    with VectorStore(path, MODEL) as store:
        store.upsert([row(1)])

    def rows():  # type: ignore[no-untyped-def]
        yield row(2)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        VectorStore.rebuild(path, MODEL, rows())
    with VectorStore(path, MODEL) as store:
        assert list(store.ids()) == [["d1"]]
    assert VectorStore.rebuild(path, MODEL, [row(3)]) == 1


def test_a_kill_between_the_two_renames_is_put_right(tmp_path: Path) -> None:
    path = tmp_path / "chroma"
    with VectorStore(path, MODEL) as store:
        store.upsert([row(1)])
    path.rename(tmp_path / ".chroma-old")
    with VectorStore(path, MODEL) as store:
        assert store.count() == 1


def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "chroma"
    with VectorStore(path, MODEL) as store:
        store.upsert([row(1)])
    modes = {stat.S_IMODE(p.stat().st_mode) for p in path.rglob("*") if p.is_file()}
    folders = {stat.S_IMODE(p.stat().st_mode) for p in [path, *path.rglob("*")] if p.is_dir()}
    assert (modes, folders) == ({0o600}, {0o700})


def test_filed_at_is_the_latest_message_in_utc() -> None:
    early = datetime(2024, 3, 1, 23, 0, tzinfo=UTC)
    late = datetime(2024, 3, 2, 9, 30, tzinfo=timezone(timedelta(hours=8)))  # 01:30 UTC
    assert filed_at([None, early, late], date(2024, 3, 1)) == "2024-03-02T01:30:00Z"
    assert filed_at([None], date(2024, 3, 1)) == "2024-03-01"


def test_places_without_a_vector_hold_nothing(tmp_path: Path) -> None:
    """hnswlib writes out memory that it never cleared; what was in it is none of the index's business."""
    segment = tmp_path / "segment"
    segment.mkdir()
    header = struct.pack("<i4Q", 1, 0, 10, 3, 20).ljust(100, b"\1")
    (segment / "header.bin").write_bytes(header)
    (segment / "data_level0.bin").write_bytes(b"x" * 200)
    (segment / "length.bin").write_bytes(b"y" * 40)
    clear_slack(tmp_path)
    assert (segment / "data_level0.bin").read_bytes() == b"x" * 60 + bytes(140)
    assert (segment / "length.bin").read_bytes() == b"y" * 12 + bytes(28)
    assert (segment / "header.bin").read_bytes() == header


def test_a_large_collection_answers_as_before_when_its_slack_was_cleared(tmp_path: Path) -> None:
    rows = [row(number) for number in range(1500)]
    with VectorStore(tmp_path / "chroma", MODEL) as store:
        store.upsert(rows)
    header = next((tmp_path / "chroma").glob("*/header.bin"))
    _, _, places, used, size = struct.unpack_from("<i4Q", header.read_bytes())
    assert 0 < used < places
    slack = header.with_name("data_level0.bin").read_bytes()[used * size :]
    assert slack == bytes(len(slack))
    with VectorStore(tmp_path / "chroma", MODEL) as store:
        store.upsert([row(number) for number in range(1500, 1600)])
        assert store.sample_check([one.drawer_id for one in rows]) == []
        assert store.count() == 1600


def test_a_directory_that_is_held_open_is_loaded_once_and_let_go_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chromadb.api.rust import RustBindingsAPI

    started = list[object]()
    begin = RustBindingsAPI.start

    def counted(api: RustBindingsAPI) -> None:
        started.append(api)
        begin(api)

    monkeypatch.setattr(RustBindingsAPI, "start", counted)
    path = tmp_path / "chroma"
    with held_open(path):
        with VectorStore(path, MODEL) as store:
            store.upsert([row(1), row(2)])
        with reading(path) as read:
            assert read is not None
            assert read.ids(date(2024, 1, 2), date(2024, 1, 2)) == {"d1", "d2"}
            assert set(read.stored(["d1", "d2"])) == {"d1", "d2"}
        assert len(started) == 1
        assert VectorStore.rebuild(path, MODEL, [row(3)]) == 1  # lets go of what lies in the place of the old one
        with reading(path) as read:
            assert read is not None
            assert read.ids(date(2024, 1, 2), date(2024, 1, 2)) == {"d3"}
    before = len(started)
    with VectorStore(path, MODEL) as store:
        assert store.count() == 1
    assert len(started) == before + 1
    with pytest.raises(OtherModelError), held_open(path), VectorStore(path, MODEL):
        VectorStore(path, ModelIdentity("other", "1" * 64, 4)).__enter__()
    assert VectorStore.rebuild(path, MODEL, []) == 0
