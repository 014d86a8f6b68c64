"""Databases: nothing beside them changes, nothing in them is trusted, nothing good in them is lost with the bad."""

import gzip
import os
import shutil
import sqlite3
import zipfile
from collections import namedtuple

import pytest

from palace_pipeline.exports import databases
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.databases import LostRow, grouped, open_database, table_named, why
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.streams import MemberError
from tests.exports.sqlite_files import database, folder_state, member, with_log

TABLE = "CREATE TABLE notes (id INTEGER PRIMARY KEY, word TEXT, body TEXT)"


def insert(number, word="word", body="body"):
    return ("INSERT INTO notes VALUES (?, ?, ?)", (number, word, body))


def words(opened, report=None):
    report = report or Report("x")
    table = table_named(opened.connection, "notes")
    numbers = sorted({number for number, _ in table.keys("word", report)})
    return [row["word"] for row in table.rows(numbers, ("word",), report, "x")]


def test_a_quiet_database_is_read_in_place_and_leaves_no_trace(tmp_path):
    path = database(tmp_path / "in" / "a.db", "PRAGMA journal_mode = WAL", TABLE, insert(1, "one"))
    assert path.read_bytes()[18:20] == b"\x02\x02"  # it is in WAL mode, so opening it in the usual way makes a -shm
    before = folder_state(path.parent)
    opened = open_database(member(path), tmp_path / "nowhere")
    assert opened.tables == ["notes"]
    assert words(opened) == ["one"]
    opened.check()
    assert folder_state(path.parent) == before
    with pytest.raises(sqlite3.Error):
        opened.connection.execute("INSERT INTO notes VALUES (2, '', '')")


def test_rows_and_tables_that_are_only_in_the_log_are_read_from_a_copy_that_is_gone_at_once(tmp_path):
    path = with_log(tmp_path / "in" / "a.db", [TABLE, insert(1, "old")], [insert(2, "new"), "CREATE TABLE more (x)"])
    before = folder_state(path.parent)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    opened = open_database(member(path), scratch)
    assert list(scratch.iterdir()) == []
    assert opened.tables == ["notes", "more"]
    assert words(opened) == ["old", "new"]
    assert folder_state(path.parent) == before
    fresh = with_log(tmp_path / "fresh" / "a.db", [], [TABLE, insert(1, "all in the log")])
    assert head_of(member(fresh), scratch).keys == ["notes"]
    assert words(open_database(member(fresh), scratch)) == ["all in the log"]


def test_a_transaction_that_a_crash_left_half_done_is_undone_in_the_copy(tmp_path):
    path = database(tmp_path / "work" / "a.db", TABLE, *(insert(n, "sure", "x" * 900) for n in range(200)))
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN")
    writer.execute("UPDATE notes SET word = 'half done', body = body || 'y'")
    target = tmp_path / "in"
    target.mkdir()
    for ending in ("", "-journal"):
        shutil.copy(f"{path}{ending}", target / f"a.db{ending}")
    writer.execute("ROLLBACK")
    writer.close()
    assert b"half done" in (target / "a.db").read_bytes()
    before = folder_state(target)
    assert set(words(open_database(member(target / "a.db"), tmp_path))) == {"sure"}
    assert folder_state(target) == before


def test_an_empty_log_is_no_log(tmp_path):
    path = database(tmp_path / "in" / "a.db", TABLE, insert(1, "one"))
    (path.parent / "a.db-wal").touch()
    assert words(open_database(member(path), tmp_path / "nowhere")) == ["one"]


@pytest.mark.parametrize("how", ["rewritten", "touched", "log"])
def test_a_database_that_changes_while_it_is_read_says_so(tmp_path, how):
    path = database(tmp_path / "in" / "a.db", TABLE, insert(1))
    opened = open_database(member(path))
    words(opened)
    if how == "log":
        (path.parent / "a.db-wal").write_bytes(b"something new")
    elif how == "touched":
        os.utime(path, ns=(1, 1))
    else:
        path.write_bytes(path.read_bytes() + bytes(4096))
    with pytest.raises(MemberError, match="changed while it was read"):
        opened.check()


def test_a_database_that_never_rests_is_left_for_later(tmp_path, monkeypatch):
    path = with_log(tmp_path / "in" / "a.db", [TABLE], [insert(1)])
    real = databases._copy

    def copy(part, target):
        os.utime(path, ns=(next(times), 1))
        return real(part, target)

    times = iter(range(1, 100))
    monkeypatch.setattr(databases, "_copy", copy)
    monkeypatch.setattr(databases, "_state", lambda file: (file.stat().st_size, file.stat().st_atime_ns))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(MemberError, match="being written to"):
        open_database(member(path), scratch)
    assert list(scratch.iterdir()) == []


def test_without_room_nothing_is_copied(tmp_path, monkeypatch):
    path = with_log(tmp_path / "in" / "a.db", [TABLE], [insert(1)])
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(databases.shutil, "disk_usage", lambda _: usage(0, 0, 1024))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(MemberError, match="not enough room"):
        open_database(member(path), scratch)
    assert list(scratch.iterdir()) == []


def test_databases_in_archives_are_read_with_their_logs(tmp_path):
    path = with_log(tmp_path / "work" / "a.db", [TABLE, insert(1, "old")], [insert(2, "new")])
    folder = tmp_path / "in"
    folder.mkdir()
    with zipfile.ZipFile(folder / "x.zip", "w") as archive:
        for ending in ("", "-wal"):
            archive.write(f"{path}{ending}", f"deep/a.db{ending}")
    quiet = database(tmp_path / "work" / "b.db", TABLE, insert(1, "packed"))
    (folder / "b.db.gz").write_bytes(gzip.compress(quiet.read_bytes()))
    from palace_pipeline.exports.containers import members_of

    found = {m.path: m for m in members_of(folder, Report)}
    assert words(open_database(found["x.zip!/deep/a.db"], tmp_path)) == ["old", "new"]
    assert words(open_database(found["b.db.gz"], tmp_path)) == ["packed"]


def test_a_copy_is_private(tmp_path, monkeypatch):
    path = with_log(tmp_path / "in" / "a.db", [TABLE], [insert(1)])
    modes = []
    real = databases._opened

    def opened(uri, *args, **options):
        folder = next(p for p in (tmp_path / "scratch").iterdir())
        modes.append(oct(folder.stat().st_mode & 0o777))
        modes.extend(oct(p.stat().st_mode & 0o777) for p in folder.iterdir())
        return real(uri, *args, **options)

    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(databases, "_opened", opened)
    open_database(member(path), tmp_path / "scratch")
    assert modes == ["0o700", "0o600", "0o600"]


# --- hostile ones -----------------------------------------------------------------------------------------------------


def test_what_only_looks_like_a_table_is_none(tmp_path):
    path = database(
        tmp_path / "a.db",
        TABLE,
        "CREATE VIEW sessions AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id FROM n",
        "CREATE VIRTUAL TABLE messages USING fts5(session_id)",
    )
    opened = open_database(member(path))
    assert "sessions" not in opened.tables
    assert "messages" not in opened.tables
    assert table_named(opened.connection, "sessions") is None
    assert table_named(opened.connection, "messages") is None
    with pytest.raises(sqlite3.Error) as refused:
        opened.connection.execute("SELECT id FROM sessions").fetchone()
    assert why(refused.value) in ("tables of this database are not what their names say", why(sqlite3.Error()))


def test_computed_columns_and_functions_are_not_run(tmp_path):
    path = database(
        tmp_path / "a.db",
        "CREATE TABLE notes (word TEXT, bomb AS (hex(zeroblob(4000000))), kept AS (1) STORED)",
        "INSERT INTO notes (word) VALUES ('x')",
    )
    opened = open_database(member(path))
    assert table_named(opened.connection, "notes").columns == {"word"}
    with pytest.raises(sqlite3.Error):
        opened.connection.execute("SELECT zeroblob(10)")


def test_work_is_limited_by_the_size_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(databases, "_FREE_STEPS", 1_000_000)
    path = database(tmp_path / "a.db", TABLE, *(insert(n) for n in range(300)))
    opened = open_database(member(path))
    assert len(words(opened)) == 300
    with pytest.raises(sqlite3.Error) as ended:
        opened.connection.execute(
            "SELECT a.id FROM notes a, notes b, notes c WHERE c.body > 'z' || a.word || b.word"
        ).fetchall()
    assert why(ended.value) == "reading this database takes more work than its size allows"


def test_a_huge_cell_costs_only_its_row(tmp_path, monkeypatch):
    monkeypatch.setitem(databases._LIMITS, sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
    path = database(tmp_path / "a.db", TABLE, insert(1, "one"), insert(2, "two", "x" * 20_000), insert(3, "three"))
    opened = open_database(member(path))
    table = table_named(opened.connection, "notes")
    report = Report("a.db")
    rows = table.rows([1, 2, 3], ("word", "body"), report, "notes")
    assert [row["word"] for row in rows] == ["one", "three"]
    assert [(s.reason, s.where, s.expected) for s in report.skips] == [
        ("row too large to be read", "a.db: notes", False)
    ]
    with pytest.raises(LostRow):
        table.row(2, ("body",))


def test_rows_that_are_too_much_for_one_conversation_are_refused_before_memory_is(tmp_path, monkeypatch):
    monkeypatch.setattr(databases, "MAX_ROWS_BYTES", 1000)
    path = database(tmp_path / "a.db", TABLE, *(insert(n, "w", "x" * 100) for n in range(20)))
    opened = open_database(member(path))
    table = table_named(opened.connection, "notes")
    report = Report("a.db")
    assert table.rows(range(20), ("body",), report, "chat") is None
    assert [(s.reason, s.unit) for s in report.skips] == [("too large to be read", "conversation")]
    assert len(table.rows(range(5), ("body",), report, "chat")) == 5


@pytest.mark.parametrize("part", ["table", "index", "end"])
def test_damaged_pages_cost_what_is_on_them(tmp_path, part):
    rows = [insert(n, f"word-{n:04}", "x" * 300) for n in range(1, 401)]
    path = database(tmp_path / "a.db", TABLE, "CREATE INDEX by_word ON notes (word)", *rows)
    data = bytearray(path.read_bytes())
    pages = range(2 * 4096, len(data), 4096)
    leaves = [at for at in pages if data[at] == (0x0D if part == "table" else 0x0A)]
    if part == "end":
        del data[leaves[-1] :]
    else:
        data[leaves[1] : leaves[1] + 64] = b"\xff" * 64
    path.write_bytes(data)
    report = Report("a.db")
    opened = open_database(member(path))
    found = words(opened, report)
    if part == "end":
        with pytest.raises(MemberError, match="cut or damaged"):
            opened.check()
    assert len(found) > 200
    assert found == sorted(set(found))
    if part == "table":
        assert len(found) < 400
    assert any(not skip.expected for skip in report.skips) or len(found) == 400


@pytest.mark.parametrize("data", [b"SQLite format 3\0", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_only_begins_as_a_database_is_damage(tmp_path, data):
    (tmp_path / "a.db").write_bytes(data)
    with pytest.raises(MemberError, match="database"):
        head_of(member(tmp_path / "a.db"))


def test_odd_names_text_and_shadowed_row_numbers(tmp_path):
    path = database(
        tmp_path / "a.db",
        'CREATE TABLE "no""tes" (rowid TEXT, "a b" TEXT)',
        ("""INSERT INTO "no""tes" VALUES ('shadow', CAST(x'ff41004200' AS TEXT))""", ()),
        "CREATE TABLE bare (a TEXT PRIMARY KEY) WITHOUT ROWID",
    )
    opened = open_database(member(path))
    table = table_named(opened.connection, 'no"tes')
    assert table.number == "_rowid_"
    [(number, value)] = table.keys("a b", Report("a.db"))
    assert table.row(number, ("a b", "missing")) == {"a b": value} == {"a b": "\ufffdA\0B\0"}
    bare = table_named(opened.connection, "bare")
    with pytest.raises(sqlite3.Error) as odd:
        list(bare.keys("a", Report("a.db")))
    assert why(odd.value) == "tables of this database have an unknown shape"


def test_groups_keep_the_order_in_which_they_were_met():
    keys = [(3, "b"), (1, "a"), (2, None), (4, "b")]
    groups = grouped(keys, lambda key: key if isinstance(key, str) else None)
    assert {name: list(numbers) for name, numbers in groups.items()} == {"b": [3, 4], "a": [1]}
    assert list(groups) == ["b", "a"]
