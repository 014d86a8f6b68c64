"""`query` reads the warehouse and the clean lake and can do nothing else; values come out as JSON."""

from __future__ import annotations

import json
import threading
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from palace_pipeline.store.duckfile import NotBuiltError
from palace_pipeline.store.sql import QueryError, query, to_json_rows
from palace_pipeline.store.warehouse import publish
from tests.store.lake_builder import at, conversation, talk, write


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    talks = conversation("codex", "a", date(2024, 5, 1), talk(at("2024-05-01T10:00:00"), "one", "two"), title="T")
    write(home, talks)
    (home / "lake/raw").mkdir()
    pl.DataFrame({"text": ["unredacted"]}).write_parquet(home / "lake/raw/2024-05.parquet")
    (home / "ledger.sqlite").write_text("x")
    publish(home, None, exports=[], skips=[], pages={})
    return home


def files(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


READING = [
    "SELECT 1",
    "FROM conversations",
    "WITH a AS (SELECT 1 AS x) SELECT * FROM a",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT sum(i) FROM n",
    "SELECT 1 UNION SELECT 2",
    "VALUES (1), (2)",
    "SHOW TABLES",
    "DESCRIBE messages",
    "SUMMARIZE conversations",
    "EXPLAIN SELECT * FROM messages",
    "  explain analyze SELECT count(*) FROM messages;",
    "SELECT comment FROM duckdb_columns()",
    "SELECT * FROM range(3), generate_series(1, 2), unnest([1])",
    "PIVOT messages ON role IN ('user', 'assistant') USING count(*) GROUP BY provider",
    "SELECT text FROM message_text -- a comment; with a semicolon",
    "SELECT count_words('two words')",
    "SELECT 'COPY_QUERY_NODE', 'read_text', {'type': 'COPY_NODE'}.type",
]


@pytest.mark.parametrize("sql", READING)
def test_all_ways_of_reading_work(home: Path, sql: str) -> None:
    columns, rows = query(home, sql)
    assert columns
    assert rows


def test_parameters_by_place_and_name(home: Path) -> None:
    assert query(home, "SELECT title FROM conversations WHERE provider = ?", ["codex"])[1] == [("T",)]
    assert query(home, "SELECT $a || $b", {"a": "x", "b": "y"})[1] == [("xy",)]
    assert query(home, "EXPLAIN SELECT title FROM conversations WHERE day = $1", [date(2024, 5, 1)])[1]


def test_the_clean_lake_is_readable_and_nothing_else(home: Path) -> None:
    clean = home / "lake/clean/messages/2024-05.parquet"
    assert query(home, f"SELECT count(*) FROM read_parquet('{clean}')")[1] == [(2,)]
    assert query(home, f"SELECT count(*) FROM '{clean}'")[1] == [(2,)]


WRITING = [
    "CREATE TABLE t AS SELECT 1",
    "CREATE TEMP TABLE t AS SELECT 1",
    "INSERT INTO meta VALUES ('a', 'b')",
    "DELETE FROM messages",
    "DROP VIEW v_day",
    "COPY (SELECT 1) TO '{clean}/x.csv'",
    "COPY (SELECT 1) TO '{clean}/messages/2024-05.parquet'",
    "WITH a AS (COPY (SELECT 1) TO '{clean}/x.csv') SELECT * FROM a",
    "with a as (select 1), b as (copy a to '{clean}/x.csv') select * from a, b",
    "SELECT * FROM (WITH a AS (COPY (SELECT 1) TO '{clean}/x.csv') SELECT * FROM a)",
    "WITH a AS (INSERT INTO meta VALUES ('a', 'b') RETURNING *) SELECT * FROM a",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{clean}/x.csv'",
    "EXPLAIN ANALYZE WITH a AS (COPY (SELECT 1) TO '{clean}/x.csv') SELECT * FROM a",
    "EXPLAIN (ANALYZE) WITH a AS (COPY (SELECT 1) TO '{clean}/x.csv') SELECT * FROM a",
    "EXPLAIN /* */ ANALYZE COPY (SELECT 1) TO '{clean}/x.csv'",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql("
    "'WITH a AS (COPY (SELECT 1) TO ''{clean}/x.csv'') SELECT * FROM a'))",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM enable_logging('QueryLog', storage = 'file', storage_path = '{clean}/log')",
    "SELECT * FROM Enable_Profiling(save_location = '{clean}/x.txt')",
    "EXPORT DATABASE '{clean}/out'",
    "ATTACH '{clean}/x.db'",
    "SET threads = 1",
    "PRAGMA enable_profiling",
    "CALL enable_logging()",
    "INSTALL fts",
    "LOAD fts",
    "SELECT 1; SELECT 2",
    "",
    "   ",
    "-- nothing",
    "SELEC 1",
    "SELECT '\udcff'",
    "-- first\nEXPLAIN SELECT 1",
    "SELECT nothing FROM conversations",
    "SELECT * FROM read_parquet('{home}/lake/raw/2024-05.parquet')",
    "SELECT * FROM '{home}/lake/raw/2024-05.parquet'",
    "SELECT * FROM read_parquet('{clean}/../raw/2024-05.parquet')",
    "SELECT * FROM read_text('{home}/ledger.sqlite')",
    "SELECT * FROM read_csv('{home}/ledger.sqlite')",
    "SELECT * FROM '{home}/ledger.sqlite'",
    "SELECT * FROM glob('{home}/*')",
    "SELECT * FROM secret",
]


@pytest.mark.parametrize("sql", WRITING)
def test_whatever_writes_sets_or_reads_elsewhere_is_refused(home: Path, sql: str) -> None:
    secret = pl.DataFrame({"a": [1]})
    assert secret.height == 1
    before = files(home)
    with pytest.raises(QueryError):
        query(home, sql.format(home=home, clean=home / "lake/clean"))
    assert files(home) == before


def test_a_home_without_a_warehouse_is_not_built(tmp_path: Path) -> None:
    with pytest.raises(NotBuiltError):
        query(tmp_path, "SELECT 1")
    assert list(tmp_path.iterdir()) == []


def test_an_unreadable_file_is_an_error_of_the_query(tmp_path: Path) -> None:
    (tmp_path / "palace.duckdb").write_bytes(b"no database")
    with pytest.raises(QueryError):
        query(tmp_path, "SELECT 1")


def test_queries_side_by_side_in_one_process(home: Path) -> None:
    answers: list[int] = []

    def ask() -> None:
        answers.extend(row[0] for row in query(home, "SELECT count(*) FROM message_text")[1])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [2, 2, 2, 2]


def test_times_are_utc_whatever_the_machine_says(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    sql = "SELECT started_at, started_at::DATE AS d, started_at::VARCHAR AS t FROM conversations"
    assert to_json_rows(*query(home, sql)) == [
        {"started_at": "2024-05-01T10:00:00Z", "d": "2024-05-01", "t": "2024-05-01 10:00:00+00"}
    ]


def test_values_as_json() -> None:
    berlin = timezone(timedelta(hours=2))
    values = {
        "none": (None, None),
        "yes": (True, True),
        "text": ("é", "é"),
        "small": (5, 5),
        "huge": (2**64, "18446744073709551616"),
        "real": (0.5, 0.5),
        "nan": (float("nan"), None),
        "inf": (float("-inf"), None),
        "money": (Decimal("1.50"), 1.5),
        "whole": (Decimal("3"), 3),
        "day": (date(2024, 5, 1), "2024-05-01"),
        "local": (datetime(2024, 5, 1, 10), "2024-05-01T10:00:00"),
        "instant": (datetime(2024, 5, 1, 10, 0, 0, 5, tzinfo=berlin), "2024-05-01T08:00:00.000005Z"),
        "utc": (datetime(2024, 5, 1, tzinfo=UTC), "2024-05-01T00:00:00Z"),
        "clock": (time(1, 2), "01:02:00"),
        "span": (timedelta(minutes=1), 60.0),
        "bytes": (b"\x00\xff", "AP8="),
        "list": ([date(2024, 5, 1), None], ["2024-05-01", None]),
        "struct": ({"a": Decimal("0.1"), 2: "b"}, {"a": 0.1, "2": "b"}),
        "uuid": (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    }
    (row,) = to_json_rows(list(values), [[value for value, _ in values.values()]])
    assert row == {name: expected for name, (_, expected) in values.items()}
    json.dumps(row, allow_nan=False)


def test_columns_of_one_name_are_all_kept_in_order() -> None:
    assert to_json_rows(["a", "a", "a_1", "b"], [[1, 2, 3, 4]]) == [{"a": 1, "a_1": 2, "a_1_1": 3, "b": 4}]
    assert to_json_rows(["a"], []) == []
