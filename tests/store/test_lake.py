"""Month files: rows of some conversations are replaced, all others stay, and nothing is half written."""

from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.model import CHUNKS, frame
from palace_pipeline.store.lake import Lake, LakeDamaged

DAY = date(2024, 5, 3)


def rows(key: str, *texts: str) -> pl.DataFrame:
    return frame(
        [
            {
                "day": DAY,
                "provider": "chatgpt",
                "conversation_id": key,
                "drawer_id": f"{key}{n}",
                "chunk_index": n,
                "kind": "exchange",
                "first_seq": n,
                "last_seq": n,
                "text": text,
                "context": "",
                "tokens": 1,
                "text_hash": text,
            }
            for n, text in enumerate(texts)
        ],
        CHUNKS,
    )


def texts(lake: Lake, **options: object) -> list[tuple[str, str]]:
    found = lake.read("clean/chunks", ["2024-05"], **options)  # pyright: ignore[reportArgumentType]
    return list(found.select("conversation_id", "text").iter_rows())


def test_replacing_one_conversation_leaves_the_others(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "b")], rows("b", "old"))
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "a")], rows("a", "one", "two"))
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "b")], rows("b", "new"))
    assert texts(lake) == [("a", "one"), ("a", "two"), ("b", "new")]
    assert texts(lake, keys=[("chatgpt", "b")]) == [("b", "new")]
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "a")], rows("a"))
    assert texts(lake) == [("b", "new")]


def test_removing_what_is_not_there_writes_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "a")], rows("a"))
    assert lake.months("clean/chunks") == []
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "a")], rows("a", "x"))
    before = lake.path("clean/chunks", "2024-05").stat().st_mtime_ns
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "zz")], rows("zz"))
    assert lake.path("clean/chunks", "2024-05").stat().st_mtime_ns == before


@settings(max_examples=30, deadline=None)
@given(st.permutations(["a", "b", "c", "d"]))
def test_the_order_of_writing_does_not_matter(tmp_path_factory: pytest.TempPathFactory, order: list[str]) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    for key in order:
        lake.replace("clean/chunks", "2024-05", [("chatgpt", key)], rows(key, key))
    assert texts(lake) == [(k, k) for k in "abcd"]


def test_a_damaged_month_is_named_with_what_to_do(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "a")], rows("a", "x"))
    lake.path("clean/chunks", "2024-05").write_bytes(b"PAR1 no parquet")
    with pytest.raises(LakeDamaged, match=r"2024-05\.parquet"):
        texts(lake)
    with pytest.raises(LakeDamaged, match=r"2024-05\.parquet"):
        lake.replace("clean/chunks", "2024-05", [("chatgpt", "b")], rows("b", "y"))


def test_files_are_the_owners_alone_and_nothing_else_is_left(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "a")], rows("a", "x"))
    found = list((tmp_path / "clean/chunks").iterdir())
    assert [path.name for path in found] == ["2024-05.parquet"]
    assert found[0].stat().st_mode & 0o777 == 0o600
