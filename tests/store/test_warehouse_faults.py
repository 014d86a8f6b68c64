"""Nothing stops a publish of the tables: readers, writers, damage, kills, another home."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from palace_pipeline.store.lake import LakeDamaged
from palace_pipeline.store.sql import query
from tests.store.lake_builder import together, write
from tests.store.test_warehouse import branched, naive, publish_all, snapshot

# --- nothing stops a run ----------------------------------------------------------------------------------------------


def test_a_reader_keeps_what_it_opened_and_the_next_sees_the_new_file(tmp_path: Path) -> None:
    write(tmp_path, branched())
    publish_all(tmp_path)
    with duckdb.connect(str(tmp_path / "palace.duckdb"), read_only=True) as reader:
        write(tmp_path, together([branched(), naive()]))
        publish_all(tmp_path, changed=[("whatsapp", "n", date(2024, 7, 2))])
        assert reader.execute("SELECT count(*) FROM conversations").fetchall() == [(1,)]
        assert query(tmp_path, "SELECT count(*) FROM conversations")[1] == [(2,)]


def test_somebody_who_writes_in_the_file_does_not_stop_a_publish(tmp_path: Path) -> None:
    write(tmp_path, branched())
    publish_all(tmp_path)
    script = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); c.execute('CREATE TABLE mine AS SELECT 1');"
        "print('open', flush=True); sys.stdin.readline()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "palace.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        assert (tmp_path / "palace.duckdb.wal").exists()
        write(tmp_path, together([branched(), naive()]))
        publish_all(tmp_path, changed=[("whatsapp", "n", date(2024, 7, 2))])
        assert query(tmp_path, "SELECT count(*) FROM conversations")[1] == [(2,)]
        process.communicate("\n")
    assert query(tmp_path, "SELECT count(*) FROM conversations")[1] == [(2,)]


def damage_tail(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def damage_blocks(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[12_288:] = bytes(len(data) - 12_288)
    file.write_bytes(bytes(data))


def damage_all(file: Path) -> None:
    file.write_bytes(b"no database")


def other_schema(file: Path) -> None:
    file.unlink()
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE conversations (title VARCHAR)")


def older_recipe(file: Path) -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute("UPDATE meta SET value = 'old' WHERE key = 'recipe'")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, dict[str, list[tuple[Any, ...]]]]:
    """A home with its right file and what that says."""
    home = tmp_path_factory.mktemp("home")
    write(home, together([branched(), naive()]))
    publish_all(home)
    return home, (home / "palace.duckdb").read_bytes(), snapshot(home)


@pytest.mark.parametrize("harm", [damage_tail, damage_blocks, damage_all, other_schema, older_recipe, Path.unlink])
def test_a_damaged_or_foreign_file_is_built_anew(
    sound: tuple[Path, bytes, dict[str, list[tuple[Any, ...]]]], harm: Any
) -> None:
    home, data, right = sound
    (home / "palace.duckdb").write_bytes(data)
    harm(home / "palace.duckdb")
    result = publish_all(home, changed=[("whatsapp", "n", date(2024, 7, 2))])
    assert result.full
    assert snapshot(home) == right


def test_another_zone_or_home_means_a_full_build(tmp_path: Path) -> None:
    home = tmp_path / "one"
    write(home, branched())
    publish_all(home)
    assert publish_all(home, changed=[], zone=UTC).full
    assert query(home, "SELECT local_started FROM conversations")[1] == [(datetime(2024, 6, 30, 22, 30),)]
    moved = home.rename(tmp_path / "t[w]o *'")
    assert publish_all(moved, changed=[], zone=UTC).full
    assert query(moved, "SELECT count(*) FROM message_text")[1] == [(8,)]


def test_a_damaged_month_of_the_lake_stops_the_publish_and_leaves_the_file(tmp_path: Path) -> None:
    write(tmp_path, branched())
    publish_all(tmp_path)
    before = (tmp_path / "palace.duckdb").read_bytes()
    (tmp_path / "lake/clean/messages/2024-06.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(LakeDamaged, match="lake/clean/messages from 2024-06"):
        publish_all(tmp_path, changed=[("chatgpt", "a", date(2024, 6, 30))])
    assert (tmp_path / "palace.duckdb").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lake", "palace.duckdb"]


def test_a_home_that_duckdb_cannot_name_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"why\?: DuckDB cannot work below a folder with '\?' in its name"):
        publish_all(tmp_path / "why?")


def test_what_a_killed_publish_left_is_cleared(tmp_path: Path) -> None:
    write(tmp_path, branched())
    (tmp_path / ".tmp-warehouse").mkdir()
    (tmp_path / ".tmp-warehouse/new.duckdb").write_bytes(b"half")
    assert publish_all(tmp_path).full
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lake", "palace.duckdb"]
