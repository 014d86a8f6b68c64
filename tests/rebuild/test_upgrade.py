"""Homes of older versions, made by code: they are copied where they are changed, brought up to date and lose no row; homes
of newer versions are refused, and nothing in them changes."""

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import polars as pl
import pytest

from palace_pipeline.doctor import examine
from palace_pipeline.model import LAKE
from palace_pipeline.settings import load_settings
from palace_pipeline.store import ledger as ledger_module
from palace_pipeline.store import vault as vault_module
from palace_pipeline.store.home import SCHEMA_VERSION, Home
from palace_pipeline.store.ledger import Ledger, pack_index
from palace_pipeline.store.upgrade import known_versions
from palace_pipeline.store.versions import FILE, TooNew
from tests.archive_state import state
from tests.cli.conftest import Run, palace  # noqa: F401 - a fixture
from tests.ingest.exports_for_tests import START, chat, export
from tests.rebuild.archives import assert_same, copied, home_at, take

ADDED_SINCE = {
    2: ("unknown_names", "format"),
    3: ("sightings", "forked_from"),
}
LATER_INDEXES = ("conversations_page", "sightings_updated", "sightings_empty", "sightings_aside")
NEW_TABLES_SINCE = {4: ("tombstones", "forgotten"), 5: ("withheld",), 6: ("shown_names",)}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    export(
        folder / "a.json", chat("a", "why is the sky blue?", "scattering"), chat("u", "no time", "at all", start=None)
    )
    export(folder / "b.json", chat("b", "数据库怎么选", "看读写比例", start=START + 40 * 86_400))
    (folder / "cut.json").write_text('[{"mapping": ')
    return folder


@pytest.fixture(scope="module")
def archive(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = home_at(tmp_path_factory.mktemp("archive") / "home")
    take(home, sources)
    return home


def rows(path: Path) -> dict[str, int]:
    """Rows of every table of an SQLite file."""
    with closing(sqlite3.connect(path)) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}


def make_ledger_older(path: Path, version: int) -> None:
    """Take from a ledger what later versions added."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        if version < 7:
            put_message_index_back(db)
        for since, (table, column) in ADDED_SINCE.items():
            if version < since:
                db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        for since, tables in NEW_TABLES_SINCE.items():
            for table in tables if version < since else ():
                db.execute(f"DROP TABLE {table}")
        db.execute(f"PRAGMA user_version = {version}")


def put_message_index_back(db: sqlite3.Connection) -> None:
    """Up to version 6 the messages of a conversation were one packed cell."""
    db.execute("ALTER TABLE conversations ADD COLUMN message_index BLOB NOT NULL DEFAULT x''")
    for provider, conversation_id in db.execute("SELECT provider, conversation_id FROM conversations").fetchall():
        key = (provider, conversation_id)
        found = db.execute(
            "SELECT message_id, hash FROM conversation_messages WHERE provider = ? AND conversation_id = ?", key
        ).fetchall()
        db.execute(
            "UPDATE conversations SET message_index = ? WHERE provider = ? AND conversation_id = ?",
            (pack_index(dict(found)), *key),
        )
    for kind, name in db.execute("SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'index')").fetchall():
        if kind == "trigger" or name in LATER_INDEXES:
            db.execute(f"DROP {kind} {name}")
    for table in ("conversation_messages", "unsettled", "unpublished"):
        db.execute(f"DROP TABLE {table}")


def make_home_older(home: Home) -> None:
    """As the first version left it: no catalogue in the vault, no versions noted, a lake that lacks a column."""
    with closing(sqlite3.connect(home.path / "vault/vault.sqlite", isolation_level=None)) as db:
        db.execute("DROP TRIGGER record_is_gone")
        for table in ("catalogue", "places", "record_places", "purged"):
            db.execute(f"DROP TABLE {table}")
        db.execute("PRAGMA user_version = 0")
    (home.path / FILE).unlink()
    (home.path / "schema_version").write_text("1\n")
    (home.lake.folder / "schema_version").unlink()


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_an_older_ledger_is_copied_and_brought_up_to_date(archive: Home, tmp_path: Path, version: int) -> None:
    home = copied(archive, tmp_path / "home")
    make_ledger_older(home.ledger_path, version)
    before = rows(home.ledger_path)
    with home.ledger() as ledger:
        assert ledger.db.execute("PRAGMA user_version").fetchone()[0] == ledger_module.SCHEMA_VERSION
    copy = home.path / f"before-upgrades/ledger-schema-{version}.sqlite"
    assert rows(copy) == before
    assert copy.stat().st_mode & 0o777 == 0o600
    after = rows(home.ledger_path)
    assert {table: after[table] for table in before} == before
    assert after["conversation_messages"] == rows(archive.ledger_path)["conversation_messages"]
    with Ledger.copy_of(copy).transaction():  # a dry run on an old ledger leaves no copy of a copy
        assert len(list(copy.parent.iterdir())) == 1


def test_an_older_home_is_brought_up_to_date_and_goes_on(archive: Home, sources: Path, tmp_path: Path) -> None:
    home = copied(archive, tmp_path / "home")
    make_home_older(home)
    before = rows(home.path / "vault/vault.sqlite")
    assert [finding for finding in examine(home) if finding.level == "wrong"] == []
    with home.writing():
        pass
    assert home.version() == SCHEMA_VERSION
    assert orjson.loads((home.path / FILE).read_bytes()) == known_versions(SCHEMA_VERSION)
    after = rows(home.path / "vault/vault.sqlite")
    assert {table: after[table] for table in before} == before
    assert after["catalogue"] == 3
    assert after["record_places"] == before["records"]
    take(home, sources)
    assert_same(home.path, archive.path)


def test_a_lake_that_lacks_a_column_gets_it_and_keeps_its_rows(archive: Home, tmp_path: Path) -> None:
    home = copied(archive, tmp_path / "home")
    make_home_older(home)
    for path in (home.lake.folder / "clean/conversations").glob("*.parquet"):
        pl.read_parquet(path).drop("project").write_parquet(path)
    with home.writing():
        pass
    for month in home.lake.months("clean/conversations"):
        old = pl.read_parquet(home.path / f"before-upgrades/lake/clean/conversations/{month}.parquet")
        new = pl.read_parquet(home.lake.path("clean/conversations", month))
        assert dict(new.schema) == LAKE["clean/conversations"]
        assert new.drop("project").equals(old)
        assert new["project"].is_null().all()
    assert [p.parent.name for p in (home.path / "before-upgrades").rglob("*.parquet")] == ["conversations"] * 3
    assert state(home.path)["tables"] == state(archive.path)["tables"]


def newer_ledger(home: Home) -> None:
    with closing(sqlite3.connect(home.ledger_path)) as db:
        db.execute("PRAGMA user_version = 99")


def newer_vault(home: Home) -> None:
    with closing(sqlite3.connect(home.path / "vault/vault.sqlite")) as db:
        db.execute("PRAGMA user_version = 99")


def noted(store: str) -> object:
    def note(home: Home) -> None:
        versions = {**known_versions(SCHEMA_VERSION), store: 99}
        (home.path / FILE).write_bytes(orjson.dumps(versions))

    return note


NEWER = {
    "home": lambda home: (home.path / "schema_version").write_text("99\n"),
    "ledger file": newer_ledger,
    "vault file": newer_vault,
    "lake marker": lambda home: (home.lake.folder / "schema_version").write_text("99\n"),
    **{f"{store} as noted": noted(store) for store in (*known_versions(SCHEMA_VERSION), "a store of the future")},
}


@pytest.mark.parametrize("store", NEWER)
def test_a_newer_store_is_refused_and_nothing_is_changed(
    store: str, archive: Home, sources: Path, tmp_path: Path
) -> None:
    home = copied(archive, tmp_path / "home")
    NEWER[store](home)  # pyright: ignore
    export(tmp_path / "new.json", chat("new", "is this taken?", "no"))

    def content() -> dict[str, bytes]:
        files = (path for path in home.path.rglob("*") if path.is_file() and path.name != ".lock")
        return {path.relative_to(home.path).as_posix(): path.read_bytes() for path in files}

    before = content()
    with pytest.raises(TooNew, match=r"newer Palace.*Nothing was changed; update Palace"):
        take(home, tmp_path / "new.json")
    assert content() == before


@pytest.mark.parametrize("command", ["status", "search sky", "doctor", "sql 'SELECT 1'", "stats"])
def test_a_newer_home_is_not_even_read(command: str, archive: Home, tmp_path: Path, palace: Run) -> None:  # noqa: F811
    home = copied(archive, tmp_path / "home")
    (home.path / "schema_version").write_text("99\n")
    result = palace(*shlex.split(command), home=home.path)
    assert result.code == 1
    assert "was written by a newer Palace (schema 99" in result.err
    assert result.out == ""


@pytest.mark.parametrize("marker", [None, "", "two"])
def test_a_home_whose_version_is_lost_is_still_an_archive(
    marker: str | None, archive: Home, sources: Path, tmp_path: Path
) -> None:
    home = copied(archive, tmp_path / "home")
    (home.path / "schema_version").unlink()
    if marker is not None:
        (home.path / "schema_version").write_text(marker)
    assert home.exists
    assert any(finding.what.endswith("schema_version is not there") for finding in examine(home))
    take(home, sources)
    assert home.version() == SCHEMA_VERSION
    assert_same(home.path, archive.path)


def test_versions_are_those_of_the_stores() -> None:
    """Whoever changes a store's version changes the note of it too: there is one number for each."""
    known = known_versions(SCHEMA_VERSION)
    assert known["ledger"] == ledger_module.SCHEMA_VERSION
    assert known["vault"] == vault_module.SCHEMA_VERSION
    assert max(ledger_module._UPGRADES) + 1 == ledger_module.SCHEMA_VERSION


def test_a_home_without_settings_or_stores_is_made_with_all_versions(tmp_path: Path) -> None:
    home = Home(load_settings(tmp_path / "new"))
    with home.writing():
        pass
    assert home.version() == SCHEMA_VERSION
    assert (home.lake.folder / "schema_version").read_text() == f"{known_versions(SCHEMA_VERSION)['lake']}\n"
    assert not (home.path / "before-upgrades").exists()
