"""Rows that are kept in memory are those of the files as they now are."""

from datetime import date
from pathlib import Path

import polars as pl
import pytest

from palace_pipeline.model import CHUNKS, frame
from palace_pipeline.search.rows import RowReader
from palace_pipeline.store import lake as lake_module
from palace_pipeline.store.lake import Lake

DAY = date(2024, 5, 3)
COLUMNS = ["conversation_id", "text"]


def rows(key: str, *texts: str) -> pl.DataFrame:
    said = [
        {
            "day": DAY,
            "provider": "chatgpt",
            "conversation_id": key,
            "drawer_id": f"{key}{n}",
            "chunk_index": n,
            "text": text,
        }
        for n, text in enumerate(texts)
    ]
    return frame(said, CHUNKS)


def texts(reader: RowReader, *keys: str) -> list[tuple[str, str]]:
    found = reader.of("clean/chunks", [(DAY, ("chatgpt", key)) for key in keys], COLUMNS)
    return list(found.iter_rows())


@pytest.mark.parametrize("kept", [0, 1_000, 1 << 20])
def test_changes_are_seen_whatever_is_kept(tmp_path: Path, kept: int) -> None:
    lake = Lake(tmp_path)
    reader = RowReader(lake, kept)
    for key in "abc":
        lake.replace("clean/chunks", "2024-05", [("chatgpt", key)], rows(key, f"{key}1", f"{key}2"))
    assert texts(reader, "c", "a") == [("c", "c1"), ("c", "c2"), ("a", "a1"), ("a", "a2")]
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "a")], rows("a", "new"))
    assert texts(reader, "a") == [("a", "new")]
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "a")], rows("a"))
    assert texts(reader, "a", "nobody") == []
    assert texts(reader) == []


def test_a_month_that_is_split_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path)
    reader = RowReader(lake)
    names = [f"c{number}" for number in range(30)]
    lake.replace(
        "clean/chunks", "2024-05", [("chatgpt", n) for n in names], pl.concat([rows(n, "x" * 200) for n in names])
    )
    assert len(texts(reader, *names)) == 30
    monkeypatch.setattr(lake_module, "PART_BYTES", 2_000)
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "c1")], rows("c1", "y"))
    assert len(lake.files("clean/chunks", "2024-05")) > 1
    found = dict(texts(reader, *names))
    assert found == {name: "y" if name == "c1" else "x" * 200 for name in names}


def test_little_is_kept(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    reader = RowReader(lake, kept_bytes=5_000)
    for month in range(1, 10):
        day = date(2024, month, 3)
        said = rows("a", "x" * 3_000).with_columns(day=pl.lit(day))
        lake.replace("clean/chunks", f"2024-{month:02}", [("chatgpt", "a")], said)
        assert reader.of("clean/chunks", [(day, ("chatgpt", "a"))], COLUMNS).height == 1
    assert sum(part.frame.estimated_size() for part in reader._parts.values()) <= 5_000  # pyright: ignore[reportPrivateUsage]


def test_a_damaged_month_costs_only_itself(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    reader = RowReader(lake)
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "a")], rows("a", "x"))
    lake.path("clean/chunks", "2024-05").write_bytes(b"no parquet")
    assert texts(reader, "a") == []


def test_what_cannot_be_read_is_named_until_it_can_be(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    reader = RowReader(lake)
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "a")], rows("a", "one"))
    (file,) = lake.files("clean/chunks", "2024-05")
    good = file.read_bytes()
    file.write_bytes(b"no parquet")
    assert texts(reader, "a") == []
    assert list(reader.unread) == [("clean/chunks", "2024-05")]
    assert file.name in reader.unread["clean/chunks", "2024-05"]
    file.write_bytes(good)
    assert texts(reader, "a") == [("a", "one")]
    assert reader.unread == {}
    assert reader.of("clean/chunks", [(date(1999, 1, 1), ("chatgpt", "a"))], COLUMNS).is_empty()
    assert reader.unread == {}
