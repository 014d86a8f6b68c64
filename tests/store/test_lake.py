"""Month files: rows of some conversations are replaced, all others stay, and nothing is half written."""

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.model import CHUNKS, frame
from palace_pipeline.store import lake as lake_module
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


# --- months in parts --------------------------------------------------------------------------------------------------

steps = st.lists(
    st.tuples(
        st.sets(st.integers(0, 30), min_size=1, max_size=8),  # conversations that are replaced together
        st.integers(0, 3),  # rows of each
        st.integers(1, 400),  # length of a text
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=60)
@given(steps, st.sampled_from([300, 2_000, 20_000]))
def test_parts_hold_what_one_file_would(tmp_path_factory: pytest.TempPathFactory, done: list[Any], size: int) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    expected: dict[str, list[str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lake_module, "PART_BYTES", size)
        for number, (names, count, length) in enumerate(done):
            said = {f"c{name}": [f"{number}-{at}-{name}-".ljust(length, "x") for at in range(count)] for name in names}
            frames = [rows(key, *own) for key, own in said.items()]
            lake.replace("clean/chunks", "2024-05", [("chatgpt", key) for key in said], pl.concat(frames))
            expected |= said
            assert sorted(texts(lake)) == sorted((key, text) for key, own in expected.items() for text in own)
    for key, own in expected.items():
        assert [text for _, text in texts(lake, keys=[("chatgpt", key)])] == own
        assert len(lake.files("clean/chunks", "2024-05", [("chatgpt", key)])) <= 1
    found = lake.of_days("clean/chunks", DAY, DAY, columns=["conversation_id"])
    assert found.height == sum(map(len, expected.values()))
    assert lake.months("clean/chunks") in ([], ["2024-05"])
    for path in lake.files("clean/chunks", "2024-05"):
        frame = pl.read_parquet(path)
        # The estimate of a frame that was read counts buffers that the frame of its making did not have.
        spare = 16 * frame.width + frame.height
        assert frame.estimated_size() <= size + spare or frame["conversation_id"].n_unique() == 1
        order = frame.select("day", "provider", "conversation_id", "chunk_index").rows()
        assert order == sorted(order)


def many(lake: Lake, count: int = 40) -> list[Path]:
    keys = [("chatgpt", f"c{number}") for number in range(count)]
    lake.replace("clean/chunks", "2024-05", keys, pl.concat([rows(key, key.ljust(200, "x")) for _, key in keys]))
    return lake.files("clean/chunks", "2024-05")


def test_one_changed_conversation_touches_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_module, "PART_BYTES", 3_000)
    lake = Lake(tmp_path)
    files = many(lake)
    assert len(files) > 3
    before = {path: path.stat().st_ino for path in files}
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "c7")], rows("c7", "new"))
    after = {path: path.stat().st_ino for path in lake.files("clean/chunks", "2024-05")}
    assert [path for path in after if before.get(path) != after[path]] == lake.files(
        "clean/chunks", "2024-05", [("chatgpt", "c7")]
    )


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_kill_while_a_month_is_split_leaves_the_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """Killed after some parts were written, before the one file was removed."""
    lake = Lake(tmp_path)
    assert len(many(lake)) == 1
    before = texts(lake)
    monkeypatch.setattr(lake_module, "PART_BYTES", 3_000)
    original, done = lake_module.replacing, []

    def killed(path: Path) -> Any:
        if len(done) == written:
            raise KeyboardInterrupt
        done.append(path)
        return original(path)

    monkeypatch.setattr(lake_module, "replacing", killed)
    with pytest.raises(KeyboardInterrupt):
        lake.replace("clean/chunks", "2024-05", [("chatgpt", "c7")], rows("c7", "new"))
    monkeypatch.setattr(lake_module, "replacing", original)
    assert texts(lake) == before
    assert len(list((tmp_path / "clean/chunks").iterdir())) == 1 + written
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "c7")], rows("c7", "new"))
    assert sorted(texts(lake)) == sorted((key, "new" if key == "c7" else text) for key, text in before)
    assert sorted((tmp_path / "clean/chunks").iterdir()) == lake.files("clean/chunks", "2024-05")


def test_what_a_killed_split_left_is_removed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    (file,) = many(lake)
    for bits in ("0", "1", "10"):
        lake.path("clean/chunks", "2024-05", bits).write_bytes(file.read_bytes())
    before = texts(lake)
    assert lake.drop_shadowed() == 3
    assert list((tmp_path / "clean/chunks").iterdir()) == [file]
    assert texts(lake) == before
    file.rename(lake.path("clean/chunks", "2024-05", "0"))
    lake.path("clean/chunks", "2024-05", "01").write_bytes(b"half")
    assert lake.drop_shadowed() == 1


def test_a_reader_that_finds_a_part_split_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path)
    (file,) = many(lake)
    before = sorted(texts(lake))
    stale = [[file]]
    monkeypatch.setattr(lake_module, "PART_BYTES", 3_000)
    lake.replace("clean/chunks", "2024-05", [("chatgpt", "c7")], rows("c7", "c7".ljust(200, "x")))
    assert not file.exists()
    look = Lake.files
    monkeypatch.setattr(Lake, "files", lambda self, *args: stale.pop() if stale else look(self, *args))
    assert sorted(texts(lake)) == before


def test_a_damaged_part_is_named_with_its_month(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_module, "PART_BYTES", 3_000)
    lake = Lake(tmp_path)
    path = many(lake)[1]
    path.write_bytes(b"PAR1 no parquet")
    with pytest.raises(LakeDamaged, match=r"palace backfill --from 2024-05-01 --to 2024-05-31") as caught:
        texts(lake)
    assert path.name in str(caught.value)
    assert lake.unreadable(["2024-05"]) == [path]
