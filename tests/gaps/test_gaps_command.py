"""`palace gaps` and `palace backfill` on real archives: what was lost is found, healed, and found no more."""

import json
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import pytest

from palace_pipeline.cli.app import main
from palace_pipeline.cli.days import days_of
from palace_pipeline.cli.talk import UsageError
from palace_pipeline.planner import Range
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.lock import writer
from tests.archive_state import state
from tests.cli.conftest import Run, palace  # noqa: F401 - a fixture
from tests.ingest.exports_for_tests import chat, export

DAY = 86_400
NOW = datetime.now(UTC).replace(hour=1, minute=0, second=0, microsecond=0).timestamp()


def ago(days: int) -> str:
    return datetime.fromtimestamp(NOW - days * DAY, UTC).date().isoformat()


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an archive of three days, two in the window and one long ago, its export, and a copy of both."""
    base = tmp_path_factory.mktemp("gaps")
    export(
        base / "now/in/a.json",
        chat("old", "why?", "because"),
        chat("a", "what is new?", "not much", start=NOW - 3 * DAY),
        chat("b", "数据库怎么选？", "先看读写比例。", start=NOW - 9 * DAY),
    )
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(base / "now/home"), "ingest", str(base / "now/in")])
    assert ended.value.code == 0
    shutil.copytree(base / "now", base / "saved")
    return base


@pytest.fixture
def base(made_once: Path) -> Path:
    """The archive as it was made, in its own place again: other inodes, the same bytes."""
    if runner := sys.modules.get("palace_pipeline.runner"):
        runner._instance.cache_clear()  # its databases are about to be replaced
    shutil.rmtree(made_once / "now")
    shutil.copytree(made_once / "saved", made_once / "now")
    return made_once / "now"


@pytest.fixture
def home(base: Path) -> Home:
    return Home(load_settings(base / "home"))


@pytest.fixture
def built(base: Path) -> Path:
    return base / "in/a.json"


@pytest.fixture
def archive(palace: Run, base: Path) -> Run:  # noqa: F811
    return partial(palace, home=base / "home")


def month_file(home: Home, table: str, day: str) -> Path:
    return home.lake.path(table, day[:7])


@pytest.mark.usefixtures("built")
def test_a_whole_archive_has_no_gaps_and_the_window_is_thirty_days(archive: Run) -> None:
    found = archive("gaps", "--json")
    assert found.code == 0
    assert found.json["clean"] is True
    assert (found.json["missing"], found.json["evicted"], found.json["why"]) == ([], [], [])
    assert found.json["window"] == [ago(29), ago(0)]
    assert found.json["compared"] == 2
    assert archive("gaps", "--all", "--json").json["compared"] == 3


def test_a_deleted_page_is_missing_in_its_window_and_comes_back(archive: Run, home: Home) -> None:
    pages = {path.name: path for path in home.conversations.rglob("*.md")}
    before = state(home.path)
    (old,) = [path for name, path in pages.items() if name.startswith("2024")]
    old.unlink()
    assert archive("gaps", "--json").json["clean"] is True  # not one of the last thirty days
    found = archive("gaps", "--all", "--json")
    assert found.code == 1
    assert found.json["missing"] == [
        {"day": "2024-05-03", "provider": "chatgpt", "conversation_id": "old", "reason": "page: not there"}
    ]
    healed = archive("gaps", "--all", "--heal", "--json")
    assert healed.code == 0
    assert healed.json["clean"] is True
    assert healed.json["healed"]["ranges"] == [["2024-05-03", "2024-05-03"]]
    assert state(home.path) == before


LOSSES = [
    "raw/messages",
    "raw/conversations",
    "clean/messages",
    "clean/conversations",
    "clean/chunks",
    "clean/drawers",
    "clean/vectors",
]


@pytest.mark.slow
@pytest.mark.parametrize("table", LOSSES)
def test_a_lost_month_of_any_table_is_found_and_made_again(archive: Run, home: Home, table: str) -> None:
    before = state(home.path)
    month_file(home, table, ago(3)).unlink()
    found = archive("gaps", "--json")
    assert found.code == 1
    assert ago(3) in {row["day"] for row in found.json["missing"]}
    assert archive("gaps", "--heal", "--json").json["clean"] is True
    assert state(home.path) == before


@pytest.mark.slow
def test_a_damaged_month_file_is_replaced(archive: Run, home: Home) -> None:
    before = state(home.path)
    month_file(home, "clean/messages", ago(3)).write_bytes(b"PAR1 not parquet")
    assert archive("gaps", "--json").code == 1
    assert archive("gaps", "--heal", "--json").json["clean"] is True
    assert state(home.path) == before


@pytest.mark.slow
def test_rows_that_changed_in_the_lake_are_found_by_their_fingerprint(archive: Run, home: Home) -> None:
    import polars as pl

    path = month_file(home, "raw/messages", ago(3))
    rows = pl.read_parquet(path)
    rows.with_columns(text=pl.lit("something else")).write_parquet(path)
    (row,) = [row for row in archive("gaps", "--json").json["missing"] if row["day"] == ago(3)]
    assert "transcript (lake/raw): its content is not what was written" in row["reason"]
    assert archive("gaps", "--heal", "--json").json["clean"] is True
    assert pl.read_parquet(path).equals(rows)


@pytest.mark.slow
def test_drawers_lost_in_an_index_and_rows_lost_in_the_tables_are_found(archive: Run, home: Home) -> None:
    import chromadb
    import duckdb
    from chromadb.config import Settings

    before = state(home.path)
    client = chromadb.PersistentClient(str(home.path / "chroma"), settings=Settings(anonymized_telemetry=False))
    collection = client.get_collection("palace_drawers", embedding_function=None)
    collection.delete(where={"conversation_id": "a"})
    client.close()
    with duckdb.connect(str(home.warehouse)) as connection:
        connection.execute("DELETE FROM messages WHERE conversation_id = 'b'")
    missing = archive("gaps", "--json").json["missing"]
    assert {(row["conversation_id"], row["reason"]) for row in missing} == {
        ("a", "drawers in Chroma: not there"),
        ("b", "messages in palace.duckdb: none of 2 there"),
    }
    healed = archive("gaps", "--heal", "--json")
    assert healed.json["clean"] is True
    assert state(home.path) == before


@pytest.mark.slow
def test_a_deleted_index_and_deleted_tables_come_back(archive: Run, home: Home) -> None:
    before = state(home.path)
    shutil.rmtree(home.path / "chroma")
    home.warehouse.unlink()
    assert archive("gaps", "--json").code == 1
    assert archive("gaps", "--all", "--heal", "--json").json["clean"] is True
    assert state(home.path) == before


def test_a_file_that_was_not_taken_is_missing_by_its_conversations(archive: Run, home: Home, built: Path) -> None:
    export(home.path / "inbox/new.json", chat("n", "hi", "hello", start=NOW - DAY))
    export(built, chat("a", "what is new?", "not much", "and now?", "still", start=NOW - 3 * DAY))
    found = archive("gaps", "--json")
    assert found.code == 1
    assert found.json["missing"] == [
        {
            "day": ago(3),
            "provider": "chatgpt",
            "conversation_id": "a",
            "reason": "not taken yet in its present state: 2 new message(s)",
        },
        {"day": ago(1), "provider": "chatgpt", "conversation_id": "n", "reason": "not taken yet: 2 new message(s)"},
    ]
    healed = archive("gaps", "--heal", "--json")
    assert healed.code == 0
    assert healed.json["healed"]["files"] == 2
    assert "no gaps" in archive("gaps", "--heal").out


def test_a_new_file_with_old_days_alone_is_still_named(archive: Run, home: Home) -> None:
    export(home.path / "inbox/new.json", chat("n", "hi", "hello"))
    (row,) = archive("gaps", "--json").json["missing"]
    assert (row["day"], row["reason"]) == (None, "not taken yet")
    (row,) = archive("gaps", "--all", "--json").json["missing"]
    assert (row["day"], row["conversation_id"]) == ("2024-05-03", "n")


def test_a_log_that_is_gone_is_evicted_and_the_archive_keeps_it(archive: Run, built: Path) -> None:
    built.unlink()
    found = archive("gaps", "--json")
    assert found.code == 0
    assert found.json["clean"] is True
    (gone,) = found.json["evicted"]
    assert gone == {
        "path": str(built),
        "provider": "chatgpt",
        "conversations": 3,
        "messages": 6,
        "only_in_archive": 3,
    }
    assert archive("gaps", "--heal", "--all", "--json").json["clean"] is True
    assert len(archive("sql", "from conversations", "--json").json) == 3


@pytest.mark.slow
def test_a_look_after_a_limit_or_with_a_failed_file_is_never_clean(archive: Run, home: Home) -> None:
    inbox = home.path / "inbox"
    export(inbox / "m.json", chat("m", "hi", "hello", start=NOW - DAY))
    export(inbox / "n.json", chat("n", "hi", "hello", start=NOW - DAY))
    archive("ingest", "--limit", "1")
    found = archive("gaps", "--json").json
    assert found["clean"] is False
    assert any("--limit" in why for why in found["why"])
    assert archive("gaps", "--heal", "--json").json["clean"] is True
    (inbox / "cut.zip").write_bytes(b"PK\x03\x04 cut")
    healed = archive("gaps", "--heal", "--json")
    assert healed.code == 1
    assert healed.json["missing"] == []
    assert healed.json["failed"][0]["path"] == str(inbox / "cut.zip")
    assert "no gaps" not in archive("gaps", "--heal").out


def test_a_look_beside_a_writer_does_not_wait_and_is_not_clean(
    archive: Run,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = (
        "import sys, pathlib, time\nfrom palace_pipeline.store.lock import writer\n"
        f"with writer(pathlib.Path({str(home.path)!r})):\n    print('held', flush=True)\n    sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        found = archive("gaps", "--json")
    finally:
        other.communicate()
    assert found.code == 1
    assert found.json["missing"] == []
    assert any("another process is writing" in why for why in found.json["why"])
    with writer(home.path, wait_seconds=0):
        pass


def test_a_folder_of_the_settings_that_is_not_there_keeps_the_look_from_being_clean(archive: Run, home: Home) -> None:
    (home.path / "palace.toml").write_text('[[sources]]\npath = "inbox"\n[[sources]]\npath = "/nowhere/usb"\n')
    found = archive("gaps", "--json")
    assert found.code == 1
    assert found.json["why"] == ["/nowhere/usb is not there"]


def test_there_is_nothing_to_compare_without_an_archive(palace: Run) -> None:  # noqa: F811
    assert palace("gaps").code == 2


# --- backfill ---------------------------------------------------------------------------------------------------------


def test_days_of_a_backfill() -> None:
    one, two, four = date(2024, 5, 1), date(2024, 5, 2), date(2024, 5, 4)
    assert days_of(one, two, []) == [Range(one, two)]
    assert days_of(None, None, [four, one, one]) == [Range(one, one), Range(four, four)]
    assert days_of(one, two, [four]) == [Range(one, two), Range(four, four)]
    for wrong in ((None, None, []), (two, one, []), (one, None, []), (None, one, [])):
        with pytest.raises(UsageError):
            days_of(*wrong)


def test_a_backfill_of_some_days_redoes_exactly_those(archive: Run, home: Home) -> None:
    before = state(home.path)
    result = archive("backfill", "--day", ago(3), "--day", "2024-05-03", "--day", "2023-01-01", "--json")
    assert (result.code, result.json["days"], result.json["pages"]) == (0, 2, 2)
    assert state(home.path) == before
    with home.ledger() as ledger:
        done = [
            json.loads(row["counts"]) for row in ledger.rows("SELECT counts FROM stage_log WHERE stage = 'normalized'")
        ]
    assert sum(counts["conversations"] for counts in done[-2:]) == 2


@pytest.mark.slow
def test_a_day_between_two_that_are_redone_is_left_alone(archive: Run, home: Home, base: Path) -> None:
    export(base / "home/inbox/c.json", chat("c", "between", "yes", start=NOW - 6 * DAY))
    assert archive("ingest").code == 0
    result = archive("backfill", "--day", ago(3), "--day", ago(9), "--json")
    assert result.json["days"] == result.json["pages"] == 2
